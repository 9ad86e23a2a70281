"""Writes what a run leaves for its readers, the verdict first.

`results.json` is written before anything that could fail for the sake of beauty: a report that cannot be drawn never costs
a verdict.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from results.document import build
from results.edn import results_edn
from results.record import test_document

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value
    from results.record import RunRecord, TestInfo
    from results.store import Run

logger = logging.getLogger(__name__)


def announce(run: Run, test: TestInfo) -> None:
    """Writes `test.json`: what was asked for, before anything is done."""
    run.write_json(run.test_json, test_document(test))


def publish(run: Run, record: RunRecord) -> Mapping[str, Value]:
    """Writes `results.json` and everything that is made from it.

    Returns:
        The document that `results.json` holds. If something else could not be made, that is among its problems.

    Raises:
        StoreError: `results.json` itself could not be written.
    """
    document = build(record)
    run.write_json(run.results_json, document)
    try:
        run.write_text(run.results_edn, results_edn(document))
        draw(run, record, document)
    except Exception as error:
        # A verdict must not be lost, nor an exit code changed, by what is only made to show it.
        logger.exception("the report could not be made")
        problem = f"the report could not be made: {type(error).__name__}: {error}"
        document = {**document, "problems": [*document["problems"], problem]}
        run.write_json(run.results_json, document)
    return document


def draw(run: Run, record: RunRecord, document: Mapping[str, Value]) -> None:
    """Writes the plots, the report, and the verdict for CI servers."""
    from results import junit, report  # noqa: PLC0415 - bring matplotlib, which only this needs
    from results.looks import read_looks  # noqa: PLC0415 - only a report shows them

    run.write_text(run.junit_xml, junit.junit_xml([junit.of_run(record, document)]))
    drawn = report.plots_of(record)
    for name, (_, svg) in drawn.items():
        run.write_text(run.plots_dir / f"{name}.svg", svg)
    logs = report.tails(run)
    for file, page in report.key_pages(record, document):
        run.write_text(run.path / file, page)
    run.write_text(run.report_html, report.render(record, document, drawn=drawn, logs=logs, looks=read_looks(run)))
