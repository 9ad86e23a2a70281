"""The command `labrys crash`."""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from clusters.sim.jvm import idle
from commands.crash.states import EACH, enumerate_states, in_order, with_stalls
from commands.crash.visits import HITS, ONE, Crashing, Visited, record, visit
from commands.hunt.command import DEFAULTS
from commands.options import choosing, subjects
from commands.options.choosing import ChoosingCommand
from commands.options.compose import settle
from commands.options.run_options import RUN, OutputOptions, RunOptions, Sources
from commands.replay.command import recalled
from commands.run.test import completed_options, run_once
from harness.console import sources as opt
from harness.console.documents import shown
from harness.console.parameters import Choice, Number, Whole
from harness.console.plain import counted, one_line
from harness.console.suggest import did_you_mean
from harness.console.terminal import echo, open_console
from harness.declare import with_option, with_options
from harness.errors import ExitCode, InfrastructureError, InputError
from harness.pool import Pool
from harness.randomness import fresh_seed
from harness.verdict import Verdict
from harness.world import SYNCING
from nemesis.choices import DRAWING, PLAN_FILE
from nemesis.disksteps import MAX_STALL_MS, STEPS
from nemesis.kinds import use
from results.store.naming import RunName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from commands.crash.states import CrashState, Enumerated
    from commands.crash.visits import Recorded
    from commands.options.compose import Settled

PROGRESS_S: Final = 5.0
PLANS: Final = "crashes"  # the folder of the store with the plan of each find
MAX_ERRORS: Final = 3
OF_RUN: Final = frozenset({choosing.SYSTEM, choosing.WORKLOAD, "fault", "bin"})  # what a run may not say for itself


@click.command("crash", cls=ChoosingCommand)
@with_options(*RUN)
@click.option(
    "--of", "run", type=RunName(), default=None, metavar="RUN",
    help="The run whose steps are visited, with its seed, options and faults; without it, the options say what runs.",
)  # fmt: skip
@click.option(
    "--hit", type=Choice(HITS), default=ONE, show_default=True,
    help="The nodes that lose power: the node of the step, a majority with it, or all.",
)  # fmt: skip
@click.option(
    "--down", "down_s", type=Number(0.05, 600), default=1.0, show_default=True, help="The least seconds without power."
)
@click.option(
    "--states", type=Whole(1, 100_000), default=12, show_default=True, help="Visit up to so many states of each step."
)
@click.option(
    "--at", default=":".join(EACH), show_default=True, metavar="CALL[:FILE]",
    help="Visit only steps of this kind, on files that fit a glob pattern, e.g. sync:*.wal.",
)  # fmt: skip
@click.option(
    "--depth", type=Whole(1, 2), default=1, show_default=True,
    help="Let nodes lose power up to so many times in a run: with 2, again while they recover.",
)  # fmt: skip
@click.option(
    "--recovery", "recovery_s", type=Number(0.01, 600), default=0.5, show_default=True,
    help="The seconds after a restart that count as its recovery.",
)  # fmt: skip
@click.option(
    "--stall-ms", type=Whole(0, MAX_STALL_MS), default=0, show_default=True,
    help="The longest stall of a thread before the step, on each node that loses power; only programs by seed. 0: none.",
)  # fmt: skip
@click.option(
    "--tries", type=Whole(1, 100_000), default=1, show_default=True,
    help="With --stall-ms: how often each state is visited.",
)  # fmt: skip
@click.option("--minutes", type=Number(0, 100_000, above=True), default=10.0, show_default=True, help="The time limit.")
@click.option(
    "--finds", type=Whole(1, 1_000_000), default=1, show_default=True, help="Stop after this many invalid runs."
)
@click.option(
    "--jobs", type=Whole(1, 1024), default=None,
    help="The number of processes that run at the same time.  [default: the number of processors]",
)  # fmt: skip
@with_option(OutputOptions, "store_dir")
@click.pass_context
def crash(ctx: click.Context, /, **values: Any) -> None:
    """Lets a node lose its power at every step of its disk.

    A step is a change of a file, or a sync. First, one run notes the steps of all disks. Then there is a run for each step,
    and for each state that the disk may have then: what was not synced is lost, in whole or in part. The run is the same up to
    the step, because the simulator repeats it by its seed. After --down seconds, the node starts again, and the run goes on
    and is judged as by `labrys test`. States that are the same are visited once. First, a state
    of each kind is visited: of each call, file and loss. Then a second one of each follows; the seed draws the steps.

    With --depth 2, the nodes of each run that is not invalid lose power again: at each step that they make within --recovery
    seconds after their restart. At the end, the command runs the first invalid run again as `labrys test`, and stores it.

    Exit codes: 1 a run is invalid, 255 a run broke off, 2 no run is valid, or not all states were visited, 0 otherwise.
    """
    console = open_console()
    crashing = Crashing(
        hit=values["hit"],
        down_s=values["down_s"],
        depth=values["depth"],
        recovery_s=values["recovery_s"],
        most=values["states"],
        at=_step_kind(values["at"]),
        stall_ms=values["stall_ms"],
    )
    if values["tries"] > 1 and not crashing.stall_ms:
        raise InputError("--tries draws stalls, so it needs --stall-ms")
    began_s = time.monotonic()
    settled = _settled(ctx, values)
    options = settled.options
    recorded = record(settled, crashing)
    enumerated = enumerate_states(
        recorded.steps, until_ns=recorded.until_ns, most=crashing.most, one=crashing.one, at=crashing.at
    )
    _print_steps(console, recorded, enumerated, time.monotonic() - began_s)
    if recorded.outcome.invalid:
        raise InputError(
            f"the run is invalid without a loss of power ({', '.join(recorded.outcome.invalid)}); give another --seed, or run "
            f"it alone: {recorded.settled.reproduce}"
        )
    if not enumerated.states:
        raise InputError(f"no disk of {options.system.name} has a step in this run, so there is nothing to visit")
    states = crashing.in_time(recorded, enumerated.states)
    if crashing.stall_ms:
        states = with_stalls(
            states,
            length_ms=crashing.stall_ms,
            tries=values["tries"],
            since_ns=recorded.steps.waited_ns,
            seed=options.load.seed,
        )
    visits = _Visits(console, until_s=began_s + 60 * values["minutes"], finds=values["finds"], of=len(states))
    jobs = values["jobs"] or len(os.sched_getaffinity(0))
    action = partial(visit, recorded.settled, crashing)
    with _workers(jobs, len(states) * crashing.depth, options.faults.fault) as carry_out:
        interrupted = visits.run(carry_out(action, in_order(states, options.load.seed)))
        more = [] if interrupted else visits.recoveries()
        if more and not visits.is_over:
            interrupted = visits.run(carry_out(action, in_order(more, options.load.seed)))
    visits.show(time.monotonic() - began_s)
    finds = visits.of_verdict(Verdict.INVALID)
    plans = [_write_plan(recorded.settled, crashing, find.state, options.output.store_dir) for find in finds]
    for find, plan in zip(finds, plans, strict=True):
        echo(f"{plan}\t{','.join(find.outcome.invalid)}\t{_told(find.state)}")
    if finds:
        first = finds[0]
        console.print(f"invalid    {_told(first.state)}: {one_line(first.outcome.reason)}", soft_wrap=True)
        again = _planned(ctx, recorded.settled, plans[0])
        ctx.exit(run_once(again.options, again.sources, summary=console))
    ctx.exit(ExitCode.INTERRUPTED if interrupted else visits.exit_code)


for _parameter in crash.params:
    if _parameter.name in DEFAULTS:
        _parameter.default = DEFAULTS[_parameter.name]


def _settled(ctx: click.Context, values: dict[str, Any]) -> Settled:
    """Returns the options of the run whose steps are visited: those of a run of the store, or those of the command line.

    Raises:
        InputError: They are not for the simulator.
    """
    if values["run"] is None:
        options, sources = RunOptions.of(values), Sources.of(ctx)
        _need_simulator(options)
        if options.load.seed is None:
            options = options.seeded(fresh_seed())
        subjects.check(options)
    else:
        given = opt.origins(ctx).keys() & {field.name for part in RUN for field in fields(part)}
        if given - OF_RUN:
            flags = ", ".join(
                f"--{opt.long_name(parameter)}"
                for parameter in opt.options_of(ctx.command, ctx)
                if parameter.name in given - OF_RUN
            )
            raise InputError(f"--of takes the options of its run, so these have no place beside it: {flags}")
        more = {name: values.get(name) if name in given else None for name in OF_RUN}
        (options, sources), _, _ = recalled(
            ctx, values["run"], store_dir=values["store_dir"], targets="role", more=more, always_plan=True
        )
    _need_simulator(options)
    return settle(options, sources)


def _step_kind(text: str) -> tuple[str, str]:
    """Returns the call and the pattern of `--at`.

    Raises:
        InputError: There is no such call.
    """
    call, _, pattern = text.partition(":")
    if call not in STEPS:
        raise InputError(f"--at {shown(text)}: {shown(call)} is no kind of steps. {did_you_mean(call, STEPS)}")
    return call, pattern or "*"


def _need_simulator(options: RunOptions) -> None:
    if not options.cluster.simulated:
        raise InputError("labrys crash needs the simulator, which repeats a run up to each step; leave out --cluster")


def _planned(ctx: click.Context, settled: Settled, plan: Path) -> Settled:
    """Returns the options of `labrys test` with a plan in the place of the options that draw one."""
    own = (*RUN, settled.options.system.type.Options, settled.options.workload.type.Options)
    names = {"store_dir", *(field.name for part in own for field in fields(part))} - DRAWING
    values = {name: value for name, value in settled.options.values().items() if name in names and value is not None}
    return settle(*completed_options(ctx.find_root(), {**values, PLAN_FILE: plan}))


def _told(state: CrashState) -> str:
    """Returns a state in words."""
    step = state.step
    before = "" if state.first is None else f"{_told(state.first)}; then, in the recovery, "
    when = "right before a sync takes effect, the" if step.call == SYNCING else "right after step"
    return f"{before}{step.node} {when} {state.nth}, {step.call} {step.file}: {state.words}"


def _write_plan(settled: Settled, crashing: Crashing, state: CrashState, store: Path) -> Path:
    """Writes the plan that visits a state. Returns its path."""
    from nemesis.planfile import to_json

    plan = crashing.of_state(settled, state).plan()
    losses = "-".join(
        f"{loss.step.node}-{'before-sync-' if loss.step.call == SYNCING else ''}{loss.nth}-{loss.rank}"
        for loss in state.losses
    )
    name = f"{settled.options.system.name}-{settled.options.seed}-{losses}.json"
    folder = store / PLANS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "".join(character if character.isalnum() or character in "-._" else "_" for character in name)
    path.write_text(to_json(plan), encoding="utf-8")
    return path


def _print_steps(console: Console, recorded: Recorded, enumerated: Enumerated, seconds: float) -> None:
    """Prints the number of steps and states."""
    kinds = Counter(step.call for step in enumerated.steps)
    told = ", ".join(f"{call} {count:,}" for call, count in kinds.most_common())
    console.print(
        f"steps      {len(enumerated.steps):,} of {len(recorded.settled.nodes)} nodes in {seconds:.1f} s: {told}"
    )
    left = f", and --states leaves out {enumerated.left_out:,}" if enumerated.left_out else ""
    console.print(
        f"states     {len(enumerated.states):,} to visit; {enumerated.merged:,} more are the same as one of them{left}"
    )


@contextmanager
def _workers(
    jobs: int, runs: int, kinds: str | None
) -> Iterator[Callable[[Callable[[CrashState], Visited], Sequence[CrashState]], Iterator[Visited]]]:
    """Yields a function that carries out runs, on several processors if there are several jobs."""
    if jobs == 1:
        idle.expect(runs)
        yield map
        return
    with Pool(jobs, _begin, kinds, runs // jobs) as pool:

        def carry_out(action: Callable[[CrashState], Visited], states: Sequence[CrashState]) -> Iterator[Visited]:
            waiting = iter(states)
            running = {pool.submit(action, state) for state in islice(waiting, 2 * jobs)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    if (state := next(waiting, None)) is not None:
                        running.add(pool.submit(action, state))
                    yield future.result()

        yield carry_out


def _begin(kinds: str | None, runs: int) -> None:
    """Prepares a process of the pool for a number of runs."""
    idle.expect(runs)
    if kinds is not None:
        use(kinds)


class _Visits:
    """The visits so far, and when there are enough of them."""

    def __init__(self, console: Console, *, until_s: float, finds: int, of: int) -> None:
        self._console = console
        self._until_s = until_s
        self._finds = finds
        self._of = of
        self._visits: list[Visited] = []
        self._shown_s = time.monotonic()

    def run(self, visits: Iterable[Visited]) -> bool:
        """Takes visits until there are enough, or the time is over. Returns whether a person ended it.

        Raises:
            InfrastructureError: Too many runs in a row broke off.
        """
        try:
            for visited in visits:
                self._visits.append(visited)
                self._progress(visited)
                if self.is_over:
                    break
        except KeyboardInterrupt:
            return True
        return False

    @property
    def is_over(self) -> bool:
        """Returns whether there are enough visits, or the time is over."""
        return time.monotonic() >= self._until_s or len(self.of_verdict(Verdict.INVALID)) >= self._finds

    def recoveries(self) -> list[CrashState]:
        """Prints how many steps and states the recoveries so far have. Returns the states, which are to visit too."""
        enumerations = [visited.recovery for visited in self._visits if visited.recovery is not None]
        states = [state for recovery in enumerations for state in recovery.states]
        self._of += len(states)
        if enumerations:
            merged, left = (
                sum(recovery.merged for recovery in enumerations),
                sum(recovery.left_out for recovery in enumerations),
            )
            out = f", and --states leaves out {left:,}" if left else ""
            steps = sum(len(recovery.steps) for recovery in enumerations)
            self._console.print(f"recovery   {steps:,} steps after the restarts of {counted(len(enumerations), 'run')}")
            self._console.print(
                f"states     {len(states):,} more to visit; {merged:,} are the same as one of them{out}"
            )
        return states

    def of_verdict(self, verdict: Verdict) -> list[Visited]:
        """Returns the visits with a verdict, in the order of the steps."""
        chosen = [visited for visited in self._visits if visited.error is None and visited.verdict is verdict]
        return sorted(chosen, key=lambda visited: (visited.state.step.time_ns, visited.state.nth))

    def _progress(self, visited: Visited) -> None:
        if visited.error is not None:
            self._console.print(f"! {_told(visited.state)}: {one_line(visited.error)}", soft_wrap=True)
            last = self._visits[-MAX_ERRORS:]
            if len(last) == MAX_ERRORS and all(other.error is not None for other in last):
                raise InfrastructureError(f"{MAX_ERRORS} runs in a row broke off, so the search ends: {visited.error}")
        elif time.monotonic() - self._shown_s > PROGRESS_S:
            self._shown_s = time.monotonic()
            invalid = len(self.of_verdict(Verdict.INVALID))
            self._console.print(f"· {len(self._visits):,} of {self._of:,} states, {invalid} invalid", style="dim")

    def show(self, seconds: float) -> None:
        """Prints how many runs had which verdict, and how many states were not visited."""
        counts = {verdict: len(self.of_verdict(verdict)) for verdict in Verdict}
        broken = sum(visited.error is not None for visited in self._visits)
        left = self._of - len(self._visits)
        self._console.print(
            f"visited    {counted(len(self._visits), 'state')} in {seconds:.0f} s: {counts[Verdict.INVALID]} invalid, "
            f"{counts[Verdict.VALID]} valid, {counts[Verdict.UNKNOWN]} unknown"
            + (f", {broken} broken off" if broken else "")
            + (f"; not visited: {left:,}" if left else "")
        )
        missed = sum(not visited.hit for visited in self.of_verdict(Verdict.UNKNOWN))
        if missed:
            self._console.print(f"missed     in {counted(missed, 'run')}, the loss of power had no proven effect")
        why = Counter(name for visited in self.of_verdict(Verdict.UNKNOWN) for name in visited.outcome.undecided)
        if why:
            told = ", ".join(f"{name} {number}" for name, number in why.most_common())
            self._console.print(f"unknown    by part: {told}")

    @property
    def exit_code(self) -> ExitCode:
        """Returns the exit code of runs of which none is invalid."""
        if any(visited.error is not None for visited in self._visits):
            return ExitCode.INTERNAL
        if not self.of_verdict(Verdict.VALID) or len(self._visits) < self._of:
            return ExitCode.UNKNOWN
        return ExitCode.VALID
