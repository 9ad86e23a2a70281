"""The command `labrys triage`."""

from __future__ import annotations

import json
import time
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from commands.options import choosing
from commands.options.recorded import recorded_options
from harness.console.parameters import Choice, PathType, Seconds, existing_file, existing_folder, folder
from harness.console.plain import counted, one_line
from harness.console.sources import DefaultsCommand
from harness.console.terminal import echo, open_console
from harness.errors import InputError
from results.causes.known import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from commands.options.compose import Settled
    from commands.triage.experiments import Replays
    from results.causes.cases import Case
    from results.causes.reading import ReadRun
    from results.causes.texts import Page
    from results.record.record import TestInfo

PROGRESS_S: Final = 5.0
MAX_BUDGET_S: Final = 7 * 86_400.0
BUDGET_S: Final = 120.0
NOT_GIVEN: Final = (choosing.SYSTEM, choosing.WORKLOAD, "bin", "cluster_kind", "fault", "inventory", "test_name")


@click.command("triage", cls=DefaultsCommand)
@click.argument("stores", nargs=-1, required=True, type=existing_folder(), metavar="STORE...")
@click.option(
    "--budget", "budget_s", type=Seconds(0, MAX_BUDGET_S), metavar="TIME", default=BUDGET_S, show_default="2m",
    help="The time for experiments, e.g. 10m; 0: none.",
)  # fmt: skip
@click.option(
    "--known", type=folder(), metavar="FOLDER", default=KNOWN, show_default=True,
    help="The folder of known causes.",
)  # fmt: skip
@click.option("--html", type=PathType(path_type=Path), metavar="FILE", help="Also write the page as HTML.")
@click.option(
    "--actions", type=PathType(path_type=Path), metavar="FILE",
    help="Also write what to do with the issues of a repository, as JSON: one issue for each cause.",
)  # fmt: skip
@click.option("--issues", type=existing_file(), metavar="FILE", help="The issues of the repository, for --actions.")
@click.option("--link", default="", metavar="URL", help="The address of this night, for the texts of --actions.")
@click.option(
    "--format", "output", type=Choice(["text", "markdown", "json"]), default="text", show_default=True,
    help="Format of standard output.",
)  # fmt: skip
@click.pass_context
def triage(
    ctx: click.Context,
    /,
    *,
    stores: Sequence[Path],
    budget_s: float,
    known: Path,
    html: Path | None,
    actions: Path | None,
    issues: Path | None,
    link: str,
    output: str,
) -> None:
    """Puts the runs of stores that are not as expected into groups, one for each cause.

    Give the stores of several nights, or the output folder of `labrys analyze` with earlier nights, to see the rate of each
    cause, since when it is there, and what is new. Runs with alike symptoms are a group. For runs of simulated systems with
    known defects, experiments decide within --budget: a run again with one defect repaired. The exit code is 0; `labrys suite
    --fail-on new` fails by new causes.
    """
    from results.causes.html import html_of, links_from
    from results.causes.texts import json_of, markdown_of, text_of

    if actions is None and (issues is not None or link):
        raise InputError("--issues and --link need --actions FILE, which gets what to do with the issues")
    page = page_of_stores(ctx, stores, budget_s=budget_s, known=known, console=open_console())
    if html is not None:
        try:
            html.write_text(html_of(page, links_from(html.parent)), encoding="utf-8")
        except OSError as error:
            raise InputError(f"--html: {html} could not be written: {error.strerror or error}") from error
    if actions is not None:
        from commands.triage.issues import write_actions

        write_actions(actions, page, issues=issues, known=known, link=link)
    if output == "json":
        echo(json.dumps(json_of(page), indent=2))
    else:
        echo("\n".join(text_of(page) if output == "text" else markdown_of(page)))


def page_of_stores(
    ctx: click.Context, stores: Sequence[Path], *, budget_s: float, known: Path, console: Console
) -> Page:
    """Returns the causes of the runs of stores.

    Args:
        ctx: The context of the command, for replays.
        stores: The stores.
        budget_s: The most seconds for experiments.
        known: The folder of known causes.
        console: The console for progress.

    Raises:
        InputError: A known cause is malformed.
    """
    from commands.triage.experiments import Replays
    from results.causes.grouping import grouped
    from results.causes.known import read_known
    from results.causes.reading import read_stores
    from results.causes.standing import causes_of
    from results.causes.texts import page_of

    entries = read_known(known)
    tables = {store: read for store in stores if (read := _trend(store)) is not None}
    before = [run for runs, _ in tables.values() for run in runs]
    only_stores = [store for store in stores if store not in tables]
    seen = read_stores(only_stores, before=before, repairs=_repairs, progress=_progress(console))
    seen.unread |= {name: why for _, unread in tables.values() for name, why in unread.items()}
    replays: Replays | None = None
    if budget_s > 0 and any(case.repairs for case in seen.cases):
        replays = Replays(_recalling(ctx), budget_s, lambda text: console.print(f"· {one_line(text)}", style="dim"))
    groups = grouped(seen.cases, replays)
    causes = causes_of(seen, groups, entries, datetime.now(UTC).date())
    return page_of([str(store) for store in stores], seen, causes, "" if replays is None else replays.sentence())


def _trend(folder: Path) -> tuple[list[ReadRun], dict[str, str]] | None:
    """Returns the runs of a trend folder, and those that are left out; None for a store."""
    from results.pipeline.write.output import MANIFEST

    if not (folder / MANIFEST).is_file():
        return None  # a store needs no library of tables
    from results.pipeline.read.trend_runs import read_trend

    return read_trend(folder)


def _progress(console: Console) -> Callable[[int, int], None]:
    """Returns a function that prints how many runs are read, from time to time."""
    shown_s = time.monotonic()

    def show(number: int, total: int) -> None:
        nonlocal shown_s
        if time.monotonic() - shown_s > PROGRESS_S:
            shown_s = time.monotonic()
            console.print(f"· {number:,} of {counted(total, 'run')} read", style="dim")

    return show


def _repairs(test: TestInfo) -> tuple[str, ...]:
    """Returns the known defects of a test's build that a rebuild can repair; none if its system is not installed."""
    from commands.triage.experiments import repairs_of

    options = recorded_options(test)
    if options is None:
        return ()  # a replay would refuse it with the reason
    return repairs_of(type(options), {field.name: getattr(options, field.name) for field in fields(options)})


def _recalling(ctx: click.Context) -> Callable[[Case], Settled]:
    """Returns a function that returns the options that carry out a run of a store again, by the rules of `labrys replay`."""
    from commands.options.compose import settle
    from commands.replay.command import recalled

    def settled_of(case: Case) -> Settled:
        run = case.trial.run
        if run is None:
            raise InputError(f"{case.name} has no folder")
        more: dict[str, Any] = dict.fromkeys(NOT_GIVEN)
        store = run.path.parent.parent
        (options, sources), _, _ = recalled(ctx, str(run.path.resolve()), store_dir=store, targets="role", more=more)
        return settle(options, sources)

    return settled_of
