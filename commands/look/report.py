"""The commands `labrys report` and `labrys serve`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.console.parameters import Whole, folder
from harness.console.sources import DefaultsCommand
from harness.console.terminal import echo, near, open_console
from harness.errors import InputError
from results.causes.known import KNOWN
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.causes.known import Known
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
@click.option(
    "--known", type=folder(), metavar="FOLDER", default=KNOWN, show_default=True,
    help="The folder of known causes, for steps with the system's own tools.",
)  # fmt: skip
def report(run: str, store: Path, *, edn: bool, for_authors: bool, known: Path) -> None:
    """Writes the report of RUN again from its files, and prints its path.

    RUN is the folder of a run, or a run in the store: `latest`, `<test>`, `<test>/<time>`, or an index. Index 0 is the newest
    run and -1 the oldest.
    """
    from harness.history import read_history
    from results.causes.known import read_known
    from results.live.terminal import print_summary
    from results.publish import draw, write_edn
    from results.signatures.warnings import warning_classes
    from results.store.store import Store
    from results.stored.document import build
    from results.stored.load import load_record

    stored_run = Store(store).open_run(run)
    if stored_run.is_running():
        raise InputError(
            f"{stored_run.path} is still running, and writes its report at the end; `labrys serve` shows it live at /live"
        )
    record = load_record(stored_run)
    if for_authors:
        stored_run.write_text(stored_run.for_authors_md, for_the_authors(stored_run, record, read_known(known)))
        echo(near(stored_run.for_authors_md))
        return
    document = build(record, warnings=warning_classes(stored_run, record.test.nodes))
    draw(stored_run, record, document)
    if edn:
        problems = write_edn(stored_run, read_history(stored_run.history_jsonl, within=stored_run.path).ops, document)
        if problems:
            raise InputError("; ".join(problems))
    path = near(stored_run.report_html)
    print_summary(open_console(), document, report=path)
    echo(path)


def for_the_authors(run: Run, record: RunRecord, known: Sequence[Known]) -> str:
    """Returns the report of a run for the authors of the system, as Markdown.

    Args:
        run: The folder of the run, in its store.
        record: Its record.
        known: The known causes; the steps and the patch are those of the one that the run matches.

    Raises:
        InputError: The run is not invalid, or the page with the steps cannot be read.
    """
    from commands.options.recorded import recorded_options
    from harness.option_values import patch_of
    from harness.verdict import Verdict, verdict_of
    from results.causes.grouping import Group
    from results.causes.known import of_group, steps_of
    from results.causes.reading import alike
    from results.page.authors import authors_report

    verdict = verdict_of(record.parts)
    if verdict is not Verdict.INVALID:
        raise InputError(f"{run.path} is {verdict}: there is a report for authors only of an invalid run")
    seen = alike(run, record.test.reproduce)
    entry = None if seen.case is None else of_group(Group(cases=[seen.case]), known)
    steps = "" if entry is None else steps_of(entry)
    patch = ""
    if entry is not None and entry.cause is not None and (options := recorded_options(record.test)) is not None:
        patch = patch_of(options, entry.cause)
    return authors_report(run, record, rate=seen.rate, shorter=seen.shorter, steps=steps, patch=patch)


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
