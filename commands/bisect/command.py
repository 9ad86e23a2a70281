"""The command `labrys bisect`."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusters.options import ClusterOptions, PlaceOptions
from commands.bisect.commits import CommitOptions, axis_of_commits
from commands.bisect.deciding import Decider, NoTimeError, Runs
from commands.bisect.search import most_decisions, search
from commands.bisect.state import Search, State
from commands.bisect.texts import Answer, document_of, lines_of
from commands.bisect.values import MENDS, axis_of
from commands.options.run_options import OutputOptions
from commands.replay.command import ByPlace
from commands.run.in_time import Deadline
from harness.console.parameters import Choice, Number, SuiteFile, existing_file
from harness.console.plain import counted
from harness.console.terminal import echo, open_console
from harness.declare import with_option, with_options
from harness.errors import ExitCode, InputError
from harness.option_values import build
from nemesis.choices import FAULT_OPTION
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.bisect.search import Found
    from commands.bisect.values import Axis, Point
    from commands.options.compose import Settled
    from harness.outcome import RunOutcome

SIMULATED_MINUTES, REAL_MINUTES = 30.0, 240.0
ERROR = 0.05
MAX_NAME = 80
MOST_NAMES = 12
_PROPORTION = Number(0, 1, above=True)


@click.command("bisect", cls=RunCommand)
@click.argument("run", type=RunName(), required=False)
@click.option(
    "--suite-case", "case", type=(SuiteFile(exists=True, path_type=Path), str), default=None, metavar="FILE CASE",
    help="In place of RUN: a case of a suite that has the bug.",
)  # fmt: skip
@click.option("--good", metavar="VALUE", help="A value without the bug.  [default: the first --value]")
@click.option(
    "--bad", metavar="VALUE", help="A value with the bug.  [default: the release of RUN, or the last --value]"
)
@click.option(
    "--over", metavar="OPTION", default=None,
    help=f"An option of the system or the workload, or {MENDS}: known defects, repaired one by one.  "
    "[default: the option with the release of the system]",
)  # fmt: skip
@click.option(
    "--value", "values", multiple=True, metavar="VALUE",
    help="A value of the option; can be repeated.  [default: the releases by version]",
)  # fmt: skip
@click.option(
    "--parts", metavar="PART,...", default=None,
    help="A run is bad if one of these parts is invalid.  [default: the invalid parts of RUN, or the verdict of a case]",
)  # fmt: skip
@click.option(
    "--error", type=Number(0, 0.5, above=True), default=ERROR, show_default=True,
    help="The bound for a wrong answer, shared by all tests.",
)  # fmt: skip
@click.option(
    "--rates", type=(_PROPORTION, _PROPORTION), default=None, metavar="GOOD BAD",
    help="The rates that the tests tell apart, e.g. 0.02 0.2.  [default: measured at the bad end]",
)  # fmt: skip
@click.option("--seed-alone", is_flag=True, help="In the simulator: one run of each value, and no test.")
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=None,
    help=f"The time limit in minutes.  [default: {SIMULATED_MINUTES:g} in the simulator, else {REAL_MINUTES:g}]",
)  # fmt: skip
@click.option("--resume", type=existing_file(), metavar="FILE", help="Continue the bisection of this file.")
@click.option(
    "--format", "output", type=Choice(["text", "json"]), default="text", show_default=True,
    help="Format of standard output.",
)  # fmt: skip
@with_options(CommitOptions, ByPlace)
@FAULT_OPTION
@with_option(ClusterOptions, "inventory")
@with_options(PlaceOptions)
@with_option(OutputOptions, "store_dir")
@click.pass_context
def bisect(
    ctx: click.Context,
    /,
    *,
    run: str | None,
    case: tuple[Path, str] | None,
    good: str | None,
    bad: str | None,
    over: str | None,
    values: Sequence[str],
    parts: str | None,
    error: float,
    rates: tuple[float, float] | None,
    seed_alone: bool,
    minutes: float | None,
    resume: Path | None,
    output: str,
    store_dir: Path,
    **more: Any,
) -> None:
    """Finds the release, the value, the commit or the mend with which RUN changes from good to bad.

    RUN is an invalid run, named as for `labrys replay`. Labrys carries out its plan with one value after the other. In the
    simulator, a value with which its seed shows the bug is bad. If the seed does not show it, and on real nodes, a sequential
    test decides by the rate of bad runs: with further seeds in the simulator, and with the same seed on real nodes. A run that
    broke off, or that leaves the parts unknown, is neither good nor bad. The exit code is 0 with an answer, and 2 without one.
    """
    from commands.bisect.subject import of_case, of_run

    if (run is None) == (case is None):
        raise InputError("labrys bisect needs a RUN, or --suite-case FILE CASE, and not both")
    if rates is not None and not rates[0] < rates[1] < 1:
        raise InputError(f"--rates: expected 0 < GOOD < BAD < 1, not {rates[0]:g} and {rates[1]:g}")
    if case is not None:
        settled, own = of_case(ctx, *case)
    else:
        settled, own = of_run(ctx, str(run), store_dir, more, over)
    judged = own if parts is None else tuple(filter(None, (part.strip() for part in parts.split(","))))
    if parts is not None and not judged:
        raise InputError("--parts: expected names of parts of a verdict with commas between them, e.g. linearizable")
    simulated = settled.options.cluster.simulated
    if seed_alone and not simulated:
        raise InputError("--seed-alone is for the simulator; on real nodes, a seed does not repeat a run")
    if seed_alone and rates is not None:
        raise InputError("--rates has no meaning with --seed-alone, which makes no test")
    console = open_console()
    commits = build(CommitOptions, more)
    axis = (
        axis_of(settled, over, values, good, bad)
        if commits.repository is None
        else axis_of_commits(
            settled, commits, over, values, good=good, bad=bad, say=lambda text: echo(f"· {text}", err=True)
        )
    )
    searched = Search(
        run=settled.reproduce,
        over=axis.flag,
        points=[point.name for point in axis.points],
        parts=list(judged),
        error=error,
        rates=None if rates is None else list(rates),
        seed_alone=seed_alone,
        build=list(axis.build),
    )
    name = settled.options.output.test_name or f"{settled.options.system.name}-{settled.options.workload.name}"
    state = (
        State.create(store_dir, name, searched, datetime.now(UTC)) if resume is None else State.read(resume, searched)
    )
    limit_s = 60 * (minutes or (SIMULATED_MINUTES if simulated else REAL_MINUTES))
    runs = Runs(
        carry_out=_in_simulator(settled, axis) if simulated else _on_nodes(settled, axis, store_dir, name),
        parts=judged,
        state=state,
        deadline=Deadline(time.monotonic() + limit_s),
        say=lambda text: console.print(text, soft_wrap=True, markup=False, highlight=False),
    )
    if state.runs:
        runs.say(f"resumes after {counted(len(state.runs), 'run')} of {state.path}")
    runs.say(f"searches {counted(len(axis.points), axis.noun)} by {axis.flag}: {_names(searched.points)}")
    decider = Decider(
        runs,
        seed=settled.options.seed,
        simulated=simulated,
        seed_alone=seed_alone,
        error=error / most_decisions(len(axis.points)),
        rates=rates,
    )
    bounds, why = None, ""
    try:
        bounds, why = _search(axis, decider)
    except NoTimeError:
        why = "the search was interrupted" if runs.deadline.interrupted else "the time was over; give more --minutes"
        runs.say(f"{why}; the same command with `--resume {shlex.quote(str(state.path))}` continues it")
    bad_run = None if bounds is None else _bad_run(axis, bounds, runs, settled)
    document = document_of(Answer(axis=axis, found=bounds, why=why, bad_run=bad_run), decider, state)
    echo(json.dumps(document, indent=2) if output == "json" else "\n".join(lines_of(document)))
    if runs.deadline.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)
    ctx.exit(ExitCode.UNKNOWN if bounds is None else ExitCode.VALID)


def _names(names: Sequence[str]) -> str:
    """Returns names with commas between them; of many, the first and the last one."""
    return ", ".join(names) if len(names) <= MOST_NAMES else f"{names[0]} to {names[-1]}"


def _search(axis: Axis, decider: Decider) -> tuple[Found | None, str]:
    """Decides both ends, and then the values between them. Returns the answer; or None, and why there is none."""
    ends = axis.points[-1], axis.points[0]
    if not decider.is_bad(ends[0], last=True):
        return None, f"{ends[0].name} is not bad: {decider.decisions[-1].how}"
    if decider.is_bad(ends[1]) is not False:
        return None, f"{ends[1].name} is not good: {decider.decisions[-1].how}"
    return search(len(axis.points), lambda index: decider.is_bad(axis.points[index])), ""


def _bad_run(axis: Axis, bounds: Found, runs: Runs, settled: Settled) -> str:
    """Returns the command of the first bad run of the bad neighbour."""
    point = axis.points[bounds.bad]
    past = next(past for past in runs.state.runs if past.bad and past.point == point.name)
    return settled.having(axis.changes_of(point)).seeded(int(past.seed)).reproduce


def _in_simulator(settled: Settled, axis: Axis) -> Callable[[Point, int], RunOutcome | None]:
    """Returns a function that carries out a run in memory."""
    from commands.run.trial import attempt

    return lambda point, seed: attempt(settled.having(axis.changes_of(point)).seeded(seed)).outcome


def _on_nodes(settled: Settled, axis: Axis, store_dir: Path, name: str) -> Callable[[Point, int], RunOutcome | None]:
    """Returns a function that carries out a run as `labrys test` does, with a folder in the store."""
    from commands.run.session import compose_and_carry_out
    from results.store.store import Store

    own = replace(
        settled.having({"test_name": f"{name[:MAX_NAME]}-bisect"}), sources=replace(settled.sources, defaults=None)
    )

    def carry_out(point: Point, seed: int) -> RunOutcome | None:
        changed = own.having(axis.changes_of(point)).seeded(seed)
        session = compose_and_carry_out(changed, store=Store(store_dir), console=open_console(quiet=True))
        return None if session.outcome.interrupted else session.outcome

    return carry_out
