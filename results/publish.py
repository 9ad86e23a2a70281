"""Writes the results of a run, the verdict first.

`results.json` is written before everything that only presents it. So an error in a plot or a report never costs the verdict.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from checker.formats.jepsen import write_history
from harness.console.members import written
from harness.phases import WRITE, Phases
from results.record.record import test_document
from results.signatures.warnings import warning_classes
from results.store.edn import results_edn
from results.stored.document import build, phases_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.op import Op, Value
    from results.record.record import RunRecord, TestInfo
    from results.store.store import Run

logger = logging.getLogger(__name__)


def announce(run: Run, test: TestInfo) -> None:
    """Writes `test.json`, the description of the test, before the run starts."""
    run.write_json(run.test_json, test_document(test))


def tried(what: str, make: Callable[[], object]) -> list[str]:
    """Makes a file that only presents a verdict, so that its failure neither costs the verdict nor changes the exit code.

    Args:
        what: The file, for the problem.
        make: Makes it.

    Returns:
        The problem as a sentence, if the file could not be made. The log has the traceback.
    """
    try:
        make()
    except Exception as error:
        logger.exception("%s could not be made", what)
        return [f"{what} could not be made: {type(error).__name__}: {error}"]
    return []


def publish(
    run: Run,
    record: RunRecord,
    *,
    drawn: Mapping[str, tuple[str, str]] | None = None,
    phases: Phases | None = None,
    events: Sequence[Op] | None = None,
) -> Mapping[str, Value]:
    """Writes `results.json` and all files that are made from it.

    Args:
        run: The folder.
        record: The record of the run.
        drawn: The plots, if they are drawn already, as `results.page.report.plots_of` returns them.
        phases: Measures the phase `write`. At the end, `results.json` gets it too; the report cannot have it.
        events: The events of the run, to write the files in Jepsen's format; None: these are not written.

    Returns:
        The document of `results.json`. If another file could not be made, its problems contain the reason.

    Raises:
        StoreError: `results.json` itself could not be written.
    """
    with (Phases() if phases is None else phases).during(WRITE):
        first = document = build(record, warnings=warning_classes(run, record.test.nodes))
        run.write_json(run.results_json, document)
        problems = [
            *([] if events is None else write_edn(run, events, first)),
            *tried("the report", lambda: draw(run, record, first, drawn=drawn)),
        ]
        if problems:
            document = {**document, "problems": [*document["problems"], *problems]}
    if phases is not None:
        document = {**document, "phases": written(phases_of(phases.done))}
    if document is not first:
        run.write_json(run.results_json, document)
    return document


def write_edn(run: Run, events: Sequence[Op], document: Mapping[str, Value]) -> list[str]:
    """Writes the history and the results in Jepsen's format. Returns a sentence for each file that could not be made."""
    return [
        *tried(run.history_edn.name, lambda: write_history(run.history_edn, events)),
        *tried(run.results_edn.name, lambda: run.write_text(run.results_edn, results_edn(document))),
    ]


def draw(
    run: Run,
    record: RunRecord,
    document: Mapping[str, Value],
    *,
    drawn: Mapping[str, tuple[str, str]] | None = None,
) -> None:
    """Writes the plots, the report, and the JUnit file; see `publish`."""
    from results.circumstances.messages import messages_near  # noqa: PLC0415 - only a report shows them
    from results.page import report  # noqa: PLC0415 - they load matplotlib, and only this needs it
    from results.page.evidence import evidence, logs_of  # noqa: PLC0415 - only a report shows lines of logs
    from results.record.counterexample import counterexamples_of  # noqa: PLC0415 - only a report shows them
    from results.stored import junit  # noqa: PLC0415 - they load matplotlib, and only this needs it
    from results.stored.node_states import read_states  # noqa: PLC0415 - only a report shows them

    run.write_text(run.junit_xml, junit.junit_xml([junit.of_run(record, document)]))
    drawn = report.plots_of(record) if drawn is None else drawn
    for name, (_, svg) in drawn.items():
        run.write_text(run.plots_dir / f"{name}.svg", svg)
    logs = report.tails(run)
    lines = logs_of(run, record, evidence(record))
    for file, page in report.key_pages(record, document, lines=lines):
        run.write_text(run.path / file, page)
    examples = counterexamples_of(record, str(document["reason"]))
    messages = messages_near(run, record, examples[0] if examples else None)
    page = report.render(
        record, document, drawn=drawn, logs=logs, lines=lines, states=read_states(run), messages=messages
    )
    run.write_text(run.report_html, page)
