"""The command `labrys hunt`."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

import clusters.options
from clusters.options import PlaceOptions
from commands.hunt.runs import BROKEN, INVALID, REFUSED, UNKNOWN, VALID, in_simulator, on_executors, on_nodes
from commands.hunt.space import HuntOptions, prepare
from commands.options import choosing, subjects
from commands.options.choosing import ChoosingCommand
from commands.options.needs import planted_bugs
from commands.options.run_options import RUN, OutputOptions, RunOptions
from commands.run.test import run_once, run_test
from harness.console import sources as opt
from harness.console.parameters import Number, Whole
from harness.console.plain import counted, counted_of, one_line
from harness.console.plain import name as plain_name
from harness.console.plugins import PLACE_SEPARATOR
from harness.console.terminal import echo, open_console
from harness.declare import with_option, with_options
from harness.errors import ExitCode, InfrastructureError, InputError, worst_code
from harness.randomness import fresh_seed
from harness.verdict import Verdict
from nemesis.asked import ByKind, Quiet, Span
from nemesis.choices import Parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

    from commands.hunt.draws import Chooser, Draw
    from commands.hunt.runs import CarryOut, HuntRun
    from commands.run.session import Session
    from harness.verdict import Part

# The defaults of a hunt: a simulated system, and short runs with short faults. On real nodes, runs are those of `labrys test`.
DEFAULTS: Mapping[str, Any] = {
    choosing.SYSTEM: choosing.SIMULATED_SYSTEM,
    "cluster_kind": clusters.options.SIMULATED,
    "fault_on": ByKind(Span(0.5, 3.0)),
    "fault_off": ByKind(Span(0.3, 2.0)),
    "fault_quiet": Quiet(1.0, 3.0),
    "rate": 5.0,
    "time_limit": 12.0,
}
SIMULATED_MINUTES, REAL_MINUTES = 10.0, 60.0
ROUND = 32  # simulated runs that are drawn together, whatever the number of processes
PROGRESS_S = 5.0  # between two lines of progress in the simulator
MAX_ERRORS = 3  # runs in a row that break off
MAX_REASONS = 5  # that a hunt tells why runs are unknown
NUMBER = re.compile(r"\d+(\.\d+)?")


@click.command("hunt", cls=ChoosingCommand)
@with_options(*RUN, PlaceOptions)
@click.option("--runs", type=Whole(1, 10_000_000), default=1000, show_default=True, help="The maximum number of runs.")
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=None,
    help=f"The time limit in minutes.  [default: {SIMULATED_MINUTES:g} in the simulator, else {REAL_MINUTES:g}]",
)  # fmt: skip
@click.option(
    "--finds", type=Whole(1, 1_000_000), default=1, show_default=True, help="Stop after this many invalid runs."
)
@click.option(
    "--jobs",
    type=Whole(1, 1024),
    default=None,
    help="In the simulator: the number of processes that run at the same time.  [default: the number of processors]",
)
@click.option(
    "--copies",
    type=Whole(1, 10_000),
    default=1,
    show_default=True,
    help="In the simulator, with programs: start the nodes once for so many runs. Each of these runs goes on in a copy of the "
    "nodes, with the same settings, and has its own faults and seed.",
)
@click.option(
    "--spark", metavar="MASTER", default=None,
    help="In the simulator: run on the executors of this Spark cluster, e.g. spark://host:7077.",
)  # fmt: skip
@click.option(
    "--guided/--blind",
    default=True,
    show_default=True,
    help="--guided: every second run changes one value of an earlier run that showed something new. "
    "--blind: each run is drawn alone.",
)
@click.option(
    "--among",
    type=Parsed("request_of"),
    metavar="KIND,...",
    default=None,
    help="Draw only these kinds, e.g. kill,pause or all,-crash.  [default: all kinds that the nodes support]",
)
@click.option(
    "--triggers",
    metavar="TRIGGER[:VALUE],...",
    default=None,
    help="Also draw triggers, the conditions with which faults begin: all, or e.g. new-leader,log-line:snapshot; "
    "`labrys faults` lists them.  [default: none]",
)
@with_option(OutputOptions, "store_dir")
@click.pass_context
def hunt(ctx: click.Context, /, **values: Any) -> None:
    """Runs many seeds, and stops at the first invalid run.

    In the simulator, runs use all processors. At the end, the command runs the first invalid run again as `labrys test`, and
    stores it. With --cluster, runs are on real nodes, one after the other, and each of them is stored. Their defaults, e.g. of
    --time-limit, are those of `labrys test`.

    Without --nemesis, each run draws its kinds of faults, with their targets and options. It also draws --fault-on,
    --fault-off, --rate, some options of the system and the workload, and in the simulator --fault-wait and --nodes, unless you
    give them. With --nemesis, runs differ only in the seed, and the output has the share of invalid runs with its confidence
    interval. Exit codes, the worst first: 1 a run is invalid, 255 a run broke off, 2 no run is valid, 0 otherwise.
    """
    from commands.hunt.draws import Chooser

    shared = HuntOptions.of(ctx.find_root(), _options(ctx, values), opt.origins(ctx))
    budget = _Budget.of(values, simulated=shared.options.cluster.simulated)
    console = open_console()
    given, among, triggers = shared.are_faults_given, values["among"], values["triggers"]
    if given and (among or triggers):
        raise InputError(
            f"{'--among' if among else '--triggers'} cannot go with --nemesis or --plan, which set the faults of every run"
        )
    if triggers and "fault_trigger" in shared.origins:
        raise InputError("--triggers cannot go with --fault-trigger, which sets the triggers of every run")
    shared, space, told = prepare(shared, among, triggers)
    for sentence in told:
        console.print(sentence, soft_wrap=True)
    chooser = Chooser(space, seed=shared.options.seed, guided=values["guided"], copies=budget.copies)
    began_s = time.monotonic()
    with _carrying_out(shared, budget, console) as carry_out:
        tried, interrupted = _Hunt(shared, budget, console).run(chooser, carry_out)
    _print_counts(console, shared, tried, time.monotonic() - began_s, with_interval=given)
    invalid = [run for run in tried if run.ended == INVALID]
    for run in invalid:
        echo(f"{run.draw.seed}\t{','.join(run.outcome.invalid)}\t{shared.settled(run.draw).reproduce}")
    if invalid:
        first = invalid[0]
        parts = (part.reason for part in first.outcome.parts if part.verdict is Verdict.INVALID)
        reason = next(parts) if first.report is None else one_line(first.outcome.reason)
        console.print(f"run {first.draw.number + 1} is invalid: {reason}", soft_wrap=True)
        if first.report is None:
            ctx.exit(_run_again(shared, first.draw, console))
        console.print(f"report     {first.report}", soft_wrap=True)
    elif not _keeps_breaking_off(tried):
        for bug in (bug for bug in planted_bugs(shared.options) if bug.needs.plants):
            console.print(
                f"no run shows {bug.words}, though each run can: give more --runs and --minutes, or name kinds of faults that "
                "fit with --among",
                soft_wrap=True,
            )
    else:
        last = one_line(tried[-1].outcome.reason)
        raise InfrastructureError(f"{MAX_ERRORS} runs in a row broke off, so the hunt ends: {last}")
    ctx.exit(ExitCode.INTERRUPTED if interrupted and not invalid else _exit_code(tried))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Budget:
    """How much a hunt may do.

    Attributes:
        runs: The maximum number of runs.
        minutes: The time limit in minutes.
        finds: The number of invalid runs that ends the hunt.
        jobs: The number of processes.
        spark: The master of the Spark cluster whose executors run; None for this machine.
        copies: How many runs share a start.
    """

    runs: int
    minutes: float
    finds: int
    jobs: int
    spark: str | None
    copies: int

    @property
    def round(self) -> int:
        """The number of simulated runs that are drawn together: whole starts, and at least two if runs share them."""
        return ROUND if self.copies == 1 else self.copies * max(2, -(-ROUND // self.copies))

    @classmethod
    def of(cls, values: Mapping[str, Any], *, simulated: bool) -> _Budget:
        """Returns the budget that the command line gives."""
        return cls(
            runs=values["runs"],
            minutes=values["minutes"] or (SIMULATED_MINUTES if simulated else REAL_MINUTES),
            finds=values["finds"],
            jobs=values["jobs"] or len(os.sched_getaffinity(0)),
            spark=values["spark"],
            copies=values["copies"],
        )


def _options(ctx: click.Context, values: Mapping[str, Any]) -> RunOptions:
    """Returns the options of a hunt. On real nodes, the defaults are those of `labrys test`.

    Raises:
        InputError: The options contradict each other.
    """
    options = RunOptions.of(values)
    if not options.cluster.simulated:
        for name in ("jobs", "spark"):
            if values[name] is not None:
                raise InputError(f"--{name} is for the simulator; on real nodes, runs are one after the other")
        usual = {str(parameter.name): parameter.default for parameter in opt.options_of(run_test)}
        open_names = {*DEFAULTS} - {choosing.SYSTEM, *opt.origins(ctx)}
        options = options.having({name: usual[name] for name in open_names})
    if values["spark"] is not None:
        if values["jobs"] is not None:
            raise InputError(
                "--jobs is for the processes of this machine, and --spark runs on executors; give one of them"
            )
        for what, value in (("system", values[choosing.SYSTEM]), ("workload", values[choosing.WORKLOAD])):
            if PLACE_SEPARATOR in str(value):
                raise InputError(
                    f"--spark needs a {what} of an installed package, not {value}: executors find it by its name"
                )
    _check_copies(options, values)
    if options.load.seed is None:
        options = options.seeded(fresh_seed())
    subjects.check(options)
    return options


def _check_copies(options: RunOptions, values: Mapping[str, Any]) -> None:
    """Refuses `--copies` where no run can share a start.

    Raises:
        InputError: The system has no programs in virtual time, or another option contradicts it.
    """
    if values["copies"] == 1:
        return
    if values["spark"] is not None:
        raise InputError(
            "--copies is for the processes of this machine, and --spark runs on executors; give one of them"
        )
    if options.cluster.start_seed is not None:
        raise InputError("--copies draws the seed of each start, and --start-seed gives one; give one of them")
    if not subjects.by_programs(options):
        raise InputError(
            "--copies needs programs in virtual time (`labrys systems` lists them); the processes of "
            f"{plain_name(options.system.name)} are none here"
        )


def _reasons(tried: Sequence[HuntRun]) -> Sequence[tuple[int, HuntRun, Part]]:
    """Returns why runs are unknown, the most frequent reason first: how many runs have it, and the first run with its part.

    Reasons of one part that differ in numbers alone are one. A run has the reason of its first part that is unknown.
    """
    first: dict[tuple[str, str], tuple[HuntRun, Part]] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for run in tried:
        undecided = (part for part in run.outcome.parts if part.decides and part.verdict is Verdict.UNKNOWN)
        part = next(undecided, None) if run.ended == UNKNOWN else None
        if part is not None:
            reason = part.name, NUMBER.sub("#", part.reason)
            first.setdefault(reason, (run, part))
            counts[reason] += 1
    return [(count, *first[reason]) for reason, count in counts.most_common()]


def _print_counts(
    console: Console, shared: HuntOptions, tried: Sequence[HuntRun], seconds: float, *, with_interval: bool
) -> None:
    """Prints the number of runs with each outcome, why runs are unknown, and the share of invalid runs with its interval."""
    from harness.suites.proportions import interval

    counts = Counter(run.ended for run in tried)
    broken = f", {counts[BROKEN]} broken off" if counts[BROKEN] else ""
    console.print(
        f"{counted(len(tried), 'run')} in {seconds:.1f} s, {len(tried) * 60 / seconds:.3g} a minute: "
        f"{counts[INVALID]} invalid, {counts[VALID]} valid, {counts[UNKNOWN]} unknown, "
        f"{counts[REFUSED]} without time for their faults{broken}"
    )
    why = Counter(name for run in tried if run.ended == UNKNOWN for name in run.outcome.undecided)
    if why:  # a run that a person ended has no parts
        console.print(f"unknown runs by part: {', '.join(f'{name} {number}' for name, number in why.most_common())}")
    reasons = _reasons(tried)
    for count, run, part in reasons[:MAX_REASONS]:
        console.print(
            f"  {part.name} in {counted(count, 'run')}: {one_line(part.reason)}\n    {shared.settled(run.draw).reproduce}",
            soft_wrap=True,
        )
    if reasons[MAX_REASONS:]:
        console.print(f"  {counted(len(reasons) - MAX_REASONS, 'other reason')}")
    if tried and counts[REFUSED] == len(tried):
        console.print(f"no run has a plan: {one_line(tried[0].outcome.reason)}", soft_wrap=True)
    judged = len(tried) - counts[REFUSED] - counts[BROKEN]
    if with_interval and judged:
        low, high = interval(counts[INVALID], judged)
        console.print(
            f"{counted_of(counts[INVALID], judged, 'run', 'are')} invalid: {low:.1%} to {high:.1%} with 95 % confidence"
        )


def _keeps_breaking_off(tried: Sequence[HuntRun]) -> bool:
    """Returns whether so many of the last runs broke off that the hunt must end."""
    return len(tried) >= MAX_ERRORS and all(run.ended == BROKEN for run in tried[-MAX_ERRORS:])


def _exit_code(tried: Sequence[HuntRun]) -> ExitCode:
    """Returns the exit code of the worst run; unknown runs count only if no run is valid."""
    codes = {INVALID: ExitCode.INVALID, BROKEN: ExitCode.INTERNAL, VALID: ExitCode.VALID}
    worst = worst_code(codes.get(run.ended, ExitCode.UNKNOWN) for run in tried)
    any_valid = any(run.ended == VALID for run in tried)
    return ExitCode.VALID if worst is ExitCode.UNKNOWN and any_valid else worst


for _parameter in hunt.params:
    if _parameter.name in DEFAULTS:
        _parameter.default = DEFAULTS[_parameter.name]


def _run_again(shared: HuntOptions, draw: Draw, console: Console) -> ExitCode:
    """Carries out a run again as `labrys test` does, with a folder in the store; returns the exit code of its verdict."""
    settled = shared.settled(draw)
    # Standard output has the lines of the finds.
    return run_once(settled.options, settled.sources, summary=console)


@contextlib.contextmanager
def _carrying_out(shared: HuntOptions, budget: _Budget, console: Console) -> Iterator[CarryOut]:
    """Yields the function that carries out runs of this hunt."""
    from commands.run.session import compose_and_carry_out
    from results.store.store import Store

    if shared.options.cluster.simulated:
        kinds = shared.options.faults.fault
        if budget.spark is not None:
            with on_executors(shared.simulated(), master=budget.spark, runs=budget.runs, kinds=kinds) as carry_out:
                yield carry_out
            return
        with in_simulator(
            shared.simulated(), runs=budget.runs, jobs=budget.jobs, kinds=kinds, copies=budget.copies
        ) as carry_out:
            yield carry_out
        return

    def one(draw: Draw) -> Session:
        settled = shared.settled(draw)
        console.print(f"run {draw.number + 1}  {settled.reproduce}", style="dim", soft_wrap=True)
        return compose_and_carry_out(settled, store=Store(settled.options.output.store_dir), console=console)

    yield on_nodes(one)


class _Hunt:
    """Carries out runs until the budget is used up, enough runs are invalid, or too many in a row break off."""

    def __init__(self, shared: HuntOptions, budget: _Budget, console: Console) -> None:
        self._shared = shared
        self._budget = budget
        self._console = console
        self._simulated = shared.options.cluster.simulated
        self._until_s = time.monotonic() + budget.minutes * 60
        self._shown_s = time.monotonic()
        self._tried: list[HuntRun] = []

    def run(self, chooser: Chooser, carry_out: CarryOut) -> tuple[list[HuntRun], bool]:
        """Carries out the runs.

        In the simulator, runs are drawn in rounds, so that a draw does not depend on the speed of other runs.

        Returns:
            The runs, and whether a person ended the hunt.
        """
        most = self._budget.runs
        try:
            while len(self._tried) < most:
                draws = [
                    chooser.draw()
                    for _ in range(min(self._budget.round if self._simulated else 1, most - len(self._tried)))
                ]
                for run in carry_out(draws):
                    self._tried.append(run)
                    new = chooser.learn(run.draw, run.behaviour)
                    self._show(run, new=new, seen=chooser.seen)
                    if run.outcome.interrupted or self._enough():
                        return self._tried, run.outcome.interrupted
        except KeyboardInterrupt:
            return self._tried, True
        return self._tried, False

    def _show(self, run: HuntRun, *, new: int, seen: int) -> None:
        """Prints progress, and a line for a run that broke off."""
        number = len(self._tried)
        if run.ended == BROKEN:
            line = self._shared.settled(run.draw).reproduce
            self._console.print(f"! run {number} broke off: {one_line(run.outcome.reason)}\n  {line}", soft_wrap=True)
        if not self._simulated:
            blamed = f" by {', '.join(run.outcome.invalid)}" if run.outcome.invalid else ""
            self._console.print(f"· run {number} is {run.ended}{blamed}; new features: {new}", soft_wrap=True)
        elif time.monotonic() - self._shown_s > PROGRESS_S:
            self._shown_s = time.monotonic()
            self._console.print(f"· {number} runs, {seen} features seen", style="dim")

    def _enough(self) -> bool:
        finds = sum(run.ended == INVALID for run in self._tried)
        return finds >= self._budget.finds or time.monotonic() >= self._until_s or _keeps_breaking_off(self._tried)
