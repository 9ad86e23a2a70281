"""The command `labrys shrink`."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import harness.console.choices
from clusters.options import ClusterOptions, PlaceOptions
from commands.options.compose import settle
from commands.options.run_options import OutputOptions, reproduce_line
from commands.options.subjects import goals_of
from commands.replay.command import ByPlace, recalled
from commands.run.in_time import Deadline
from harness.console.parameters import Number, PathType, Whole
from harness.console.plain import counted
from harness.console.terminal import echo, open_console
from harness.declare import with_option, with_options
from harness.errors import ExitCode, InfrastructureError, InputError
from harness.outcome import RunOutcome
from harness.randomness import repeat_seed
from harness.verdict import Verdict
from nemesis.choices import FAULT_OPTION, PLAN_FILE
from results.causes.cases import SHRUNK_COMMAND
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from commands.options.compose import Settled
    from commands.options.run_options import RunOptions
    from commands.shrink.steps import Candidate
    from nemesis.planfile import Plan
    from results.store.store import Run

SIMULATED_MINUTES, REAL_MINUTES = 5.0, 60.0
PROGRESS_S = 10.0  # between two lines of progress
MAX_ERRORS = 3
PLANS = "shrinking"  # the folder, in that of the run, with the plan of each run on real nodes
MAX_NAME = 80


@click.command("shrink", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=None,
    help=f"The time limit in minutes.  [default: {SIMULATED_MINUTES:g} in the simulator, else {REAL_MINUTES:g}]",
)  # fmt: skip
@click.option(
    "--any-seed", is_flag=True, help="In the simulator: give each run another seed, and decide as on real nodes."
)
@click.option(
    "--seeds", type=Whole(1, 10_000), default=1, show_default=True,
    help="In the simulator: try up to so many seeds for each step. The first of them is that of the last smaller run.",
)  # fmt: skip
@click.option(
    "--keep", type=PathType(path_type=Path), metavar="FOLDER/NAME",
    help="Also write a regression: NAME.toml and NAME.json.",
)  # fmt: skip
@with_options(ByPlace)
@FAULT_OPTION
@with_option(ClusterOptions, "inventory")
@with_options(PlaceOptions)
@with_option(OutputOptions, "store_dir")
@click.pass_context
def shrink_run(
    ctx: click.Context,
    /,
    *,
    run: str,
    minutes: float | None,
    any_seed: bool,
    seeds: int,
    keep: Path | None,
    store_dir: Path,
    **more: Any,
) -> None:
    """Searches for a smaller version of RUN that is still invalid.

    Smaller means fewer and shorter faults, fewer targets, a shorter run, fewer clients and fewer keys. RUN is named as for
    `labrys replay`. In the simulator each step takes one run. On real nodes a run is invalid only with some probability, so a
    sequential test decides each step with several runs. The result is a plan in the folder of the run; standard output has the
    command that runs it. A run starts only if it can end within --minutes, and a run that takes longer is ended as by Ctrl-C.
    The exit code is 1 if RUN is invalid again, and 2 if it is not. A RUN whose stored verdict is not invalid is refused.
    """
    from commands.shrink.regressions import write_regression
    from commands.shrink.steps import Candidate, shrinkable
    from harness.load import ClosedLoop
    from nemesis.planfile import to_json
    from results.store.store import Store

    console = open_console()
    run_s = _stored_length_s(Store(store_dir).open_run(run))
    (options, sources), _, stored_run = recalled(
        ctx, run, store_dir=store_dir, targets="role", more=more, always_plan=True
    )
    settled = settle(options, sources)
    options, plan = settled.options, settled.given
    assert plan is not None  # noqa: S101 - a replay has a plan
    simulated = options.cluster.simulated
    if any_seed and not simulated:
        raise InputError("--any-seed is for the simulator; on real nodes, a sequential test decides in any case")
    if seeds > 1 and (any_seed or not simulated):
        raise InputError("--seeds is for the simulator, without --any-seed: there, a run with one seed has one verdict")
    by_chance = any_seed or not simulated
    others = [repeat_seed(options.seed, number) for number in range(1, seeds)]
    load = harness.console.choices.make_load(options.load, len(settled.nodes))
    workers = load.concurrency if isinstance(load, ClosedLoop) else 0
    goals = goals_of(options)
    whole = Candidate(
        faults=tuple(plan.faults),
        time_limit_s=options.load.time_limit,
        options=shrinkable(options.values(), goals, workers=workers),
        goals=goals,
    )
    budget_s = 60 * (minutes or (SIMULATED_MINUTES if simulated else REAL_MINUTES))
    runner = _Runner(console=console, folder=stored_run, settled=settled, any_seed=any_seed, longest_s=run_s)
    best = _by_chance(runner, whole, budget_s) if by_chance else _exactly(runner, whole, budget_s, others)
    if best is None:
        if runner.ended_early:
            found_out = "the time was over before it was invalid again; give more --minutes"
        else:
            found_out = (
                f"it was invalid in none of {counted(runner.runs, 'further run')}, so there is nothing to shrink"
            )
        console.print(f"{stored_run.path}: {found_out}", soft_wrap=True)
        ctx.exit(ExitCode.INTERRUPTED if runner.interrupted else ExitCode.UNKNOWN)
    path = stored_run.shrunk_json
    smaller = _plan_of(plan, best)
    stored_run.write_text(path, to_json(smaller))
    ended = " The time was over before all steps were tried." if runner.ended_early else ""
    console.print(f"{runner.part} is invalid in both, after {runner.runs} runs.{ended}", soft_wrap=True)
    console.print(f"before  {whole.describe()}", soft_wrap=True)
    console.print(f"after   {best.describe()}", soft_wrap=True)
    result = runner.options_of(best).having({PLAN_FILE: path})
    if keep is not None:
        kept = write_regression(
            result, sources, plan=to_json(smaller), part=runner.part, path=keep, by_chance=by_chance
        )
        console.print(f"kept    {kept}", soft_wrap=True)
    line = reproduce_line(result, sources)
    stored_run.write_text(stored_run.path / SHRUNK_COMMAND, f"{line}\n")
    echo(line)
    ctx.exit(ExitCode.INTERRUPTED if runner.interrupted else ExitCode.INVALID)


def _plan_of(plan: Plan, candidate: Candidate) -> Plan:
    """Returns the plan of a candidate of a run with a plan."""
    seed = plan.seed if candidate.seed is None else candidate.seed
    return replace(plan, faults=candidate.faults, time_limit_s=candidate.time_limit_s, seed=seed)


def _stored_length_s(run: Run) -> float:
    """Returns the length of an invalid run, from its start to its verdict.

    Raises:
        InputError: The run is not invalid, or has no verdict.
    """
    from results.store.store import read_head

    document = read_head(run.results_json, ("valid", "reason", "duration_s"))
    verdict, length_s = Verdict.from_json(document.get("valid")), document.get("duration_s")
    search = "`labrys replay RUN --repeat 10` runs its plan again, and `labrys hunt` searches for an invalid run"
    if run.is_running():
        raise InputError(f"{run.path} is still running, and shrink needs its verdict")
    if verdict is None or not isinstance(length_s, int | float):
        raise InputError(f"{run.path} has no verdict, so shrink does not know what to keep; {search}")
    if verdict is not Verdict.INVALID:
        raise InputError(f"{run.path} is {verdict}, and shrink makes an invalid run smaller; {search}")
    return float(length_s)


def _exactly(runner: _Runner, whole: Candidate, budget_s: float, seeds: Sequence[int]) -> Candidate | None:
    """Returns the smallest invalid candidate, if each candidate always has the same verdict; None if `whole` is not invalid."""
    from commands.shrink.steps import shrink

    runner.stop_at(time.monotonic() + budget_s)
    runner.refuse_too_short(whole)
    if not runner.finds(whole):
        return None

    def has_finding(candidate: Candidate) -> bool:
        taken = bool(runner.finds(candidate))
        if taken:
            runner.show_smaller(candidate)
        return taken

    return shrink(whole, has_finding, enough=runner.enough, seeds=seeds)


def _by_chance(runner: _Runner, whole: Candidate, budget_s: float) -> Candidate | None:
    """Returns the smallest candidate, if a run is invalid only with some probability; None if `whole` is never invalid."""
    from commands.shrink.by_chance import LAST_SHARE, Chance, confirmed
    from commands.shrink.steps import shrink

    chance = Chance()
    until_s = time.monotonic() + budget_s
    runner.stop_at(until_s - budget_s * LAST_SHARE)
    runner.refuse_too_short(whole)
    if not chance.begin(lambda: runner.finds(whole), enough=lambda: runner.enough(whole)):
        return None
    taken = [whole]

    def has_finding(candidate: Candidate) -> bool:
        if not chance.decides(lambda: runner.finds(candidate), enough=lambda: runner.enough(candidate)):
            return False
        taken.append(candidate)
        runner.show_smaller(candidate)
        return True

    shrink(whole, has_finding, enough=runner.enough)
    runner.stop_at(until_s)
    best, text = confirmed(taken, runner.finds, frequent=chance.frequent, enough=runner.enough)
    runner.show(f"{chance.describe()} {text}")
    return best


class _Runner:
    """Carries out candidates, in the simulator or on real nodes.

    Attributes:
        part: The part of the verdict that must be invalid: the first invalid part of the first invalid run.
        runs: The number of runs so far.
    """

    def __init__(
        self,
        *,
        console: Console,
        folder: Run,
        settled: Settled,
        any_seed: bool,
        longest_s: float,
    ) -> None:
        """Takes the run to shrink.

        Args:
            console: The console for progress.
            folder: The folder of the run.
            settled: Its options.
            any_seed: Whether each simulated run has another seed.
            longest_s: The length of the run.
        """
        self.part = ""
        self.runs = 0
        self._console = console
        self._folder = folder
        self._settled = settled
        self._any_seed = any_seed
        self._longest_s = longest_s
        self._beside_s: float = (
            longest_s - settled.options.load.time_limit
        )  # the rest of a run, negative for most simulated runs
        self._deadline = Deadline(time.monotonic())
        self._shown_s = time.monotonic()
        self._errors = 0

    @property
    def interrupted(self) -> bool:
        """Returns whether a person ended the search."""
        return self._deadline.interrupted

    @property
    def ended_early(self) -> bool:
        """Returns whether there was no time for a run."""
        return self._deadline.ended_early

    def show(self, text: str) -> None:
        """Prints a line."""
        self._console.print(text, soft_wrap=True)

    def show_smaller(self, candidate: Candidate) -> None:
        """Prints that a candidate is smaller and still invalid."""
        self._console.print(f"smaller: {candidate.describe()}", style="dim", soft_wrap=True)

    def stop_at(self, until_s: float) -> None:
        """Sets the end of the time, on the monotonic clock."""
        self._deadline.until_s = until_s

    def enough(self, candidate: Candidate) -> bool:
        """Returns whether a person ended the search, or a run of this candidate cannot end in time."""
        return self._deadline.enough(self._length_s(candidate))

    def refuse_too_short(self, whole: Candidate) -> None:
        """Refuses a time in which the original run cannot end.

        Raises:
            InputError: It names the length of the run.
        """
        if self.enough(whole):
            raise InputError(
                f"a run of {self._folder.path} takes about {self._length_s(whole):.0f} s, and --minutes leaves "
                f"{max(0.0, self._deadline.until_s - time.monotonic()):.0f} s for the search; give more --minutes"
            )

    def _length_s(self, candidate: Candidate) -> float:
        """Returns the expected length of a run: that of the longest one so far, or less if its workload is shorter."""
        return max(0.0, min(self._longest_s, candidate.time_limit_s + self._beside_s))

    def options_of(self, candidate: Candidate) -> RunOptions:
        """Returns the options of a candidate."""
        own = {name: str(value) if name == "concurrency" else value for name, value in candidate.options.items()}
        options = self._settled.options.having({**own, "time_limit": candidate.time_limit_s})
        return options if candidate.seed is None else options.seeded(candidate.seed)

    def finds(self, candidate: Candidate) -> bool | None:
        """Carries out a candidate once, and returns whether the part is invalid; None if the run ended before its verdict."""
        self.runs += 1
        plan = self._settled.given
        assert plan is not None  # noqa: S101 - a replay has a plan
        given = _plan_of(plan, candidate)
        settled = replace(self._settled, options=self.options_of(candidate), given=given)
        simulated = settled.options.cluster.simulated
        carry_out = self._simulated if simulated else self._real
        began_s = time.monotonic()
        outcome = self._deadline.carry_out(lambda: carry_out(settled))
        length_s = time.monotonic() - began_s
        self._longest_s = max(self._longest_s, length_s)
        self._beside_s = max(self._beside_s, length_s - candidate.time_limit_s)
        invalid = () if outcome is None else outcome.invalid
        if not self.part and invalid:
            self.part = invalid[0]
        hit = self.part in invalid
        if not simulated or time.monotonic() - self._shown_s > PROGRESS_S:
            self._shown_s = time.monotonic()
            what = "was ended before its verdict" if outcome is None else "is invalid" if hit else "is not invalid"
            self._console.print(f"· run {self.runs} {what}: {candidate.describe()}", style="dim", soft_wrap=True)
        return None if outcome is None else hit

    def _simulated(self, settled: Settled) -> RunOutcome | None:
        from commands.run.trial import attempt

        seed = settled.options.seed
        return attempt(settled.seeded(repeat_seed(seed, self.runs)) if self._any_seed else settled).outcome

    def _real(self, settled: Settled) -> RunOutcome | None:
        """Carries out a run on real nodes. A run that breaks off counts as not invalid; three in a row end the search."""
        from commands.run.session import compose_and_carry_out
        from nemesis.planfile import to_json
        from results.store.store import Store

        path = self._folder.path / PLANS / f"{self.runs}.json"
        assert settled.given is not None  # noqa: S101 - a candidate has a plan
        self._folder.write_text(path, to_json(settled.given))
        name = f"{self._folder.test_name[:MAX_NAME]}-shrink"
        own = replace(
            settled,
            options=settled.options.having({PLAN_FILE: path, "test_name": name}),
            sources=replace(settled.sources, defaults=None),
        )
        store = Store(settled.options.output.store_dir)
        try:
            session = compose_and_carry_out(own, store=store, console=open_console(quiet=True))
        except InfrastructureError as error:
            self._errors += 1
            if self._errors == MAX_ERRORS:
                raise
            self._console.print(f"! run {self.runs} broke off: {error}", soft_wrap=True)
            return RunOutcome(judged=None, error=str(error))
        self._errors = 0
        return None if session.outcome.interrupted else session.outcome
