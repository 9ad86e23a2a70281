"""The commands `labrys report` and `labrys serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.console.parameters import Whole, folder
from harness.console.sources import DefaultsCommand
from harness.console.terminal import echo, near, open_console
from harness.errors import InputError
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from results.record.record import RunRecord
    from results.store.store import Run

_STORE = click.option(
    "--store",
    type=folder(),
    default=Path("store"),
    show_default=True,
    help="The folder with all runs.",
)


@click.command(cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@_STORE
@click.option("--edn", is_flag=True, help="Also write history.edn and results.edn, as Jepsen does.")
@click.option(
    "--for-authors",
    is_flag=True,
    help="Write instead for-authors.md, which the authors of the system can follow without Labrys. RUN must be invalid.",
)
def report(run: str, store: Path, *, edn: bool, for_authors: bool) -> None:
    """Writes the report of RUN again from its files, and prints its path.

    RUN is the folder of a run, or a run in the store: `latest`, `<test>`, `<test>/<time>`, or an index. Index 0 is the newest
    run and -1 the oldest.
    """
    from harness.history import read_history
    from results.live.terminal import print_summary
    from results.publish import draw, write_edn
    from results.signatures.warnings import warning_classes
    from results.store.store import Store
    from results.stored.document import build
    from results.stored.load import load_record

    found = Store(store).open_run(run)
    if found.is_running():
        raise InputError(
            f"{found.path} is still running, and writes its report at the end; `labrys serve` shows it live at /live"
        )
    record = load_record(found)
    if for_authors:
        echo(near(_write_for_authors(found, record)))
        return
    document = build(record, warnings=warning_classes(found, record.test.nodes))
    draw(found, record, document)
    if edn:
        problems = write_edn(found, read_history(found.history_jsonl, within=found.path).ops, document)
        if problems:
            raise InputError("; ".join(problems))
    path = near(found.report_html)
    print_summary(open_console(), document, report=path)
    echo(path)


def _write_for_authors(run: Run, record: RunRecord) -> Path:
    """Writes the report for the authors of the system, and returns its path.

    Raises:
        InputError: The run is not invalid.
    """
    from harness.verdict import Verdict, verdict_of
    from results.causes.reading import alike
    from results.page.authors import authors_report

    verdict = verdict_of(record.parts)
    if verdict is not Verdict.INVALID:
        raise InputError(f"{run.path} is {verdict}: there is a report for authors only of an invalid run")
    seen = alike(run, record.test.reproduce)
    run.write_text(run.for_authors_md, authors_report(run, record, rate=seen.rate, shorter=seen.shorter))
    return run.for_authors_md


@click.command(cls=DefaultsCommand)
@_STORE
@click.option("--port", type=Whole(0, 65535), default=8080, show_default=True, help="The port; 0 chooses a free one.")
def serve(store: Path, port: int) -> None:
    """Serves the store to web browsers on this machine."""
    from results.live.serve import StoreServer
    from results.store.store import Store

    with StoreServer(Store(store), port) as server:
        try:
            echo(f"{server.url} shows {store}; Ctrl-C ends it", err=True)
            server.serve_forever()
        except KeyboardInterrupt:
            echo("", err=True)
