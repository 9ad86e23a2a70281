"""Carries out the runs of a hunt: in the simulator on several processors or machines, and on real nodes one after the other.

A simulated run has no folder, because a hunt has thousands of them. A run on real nodes is a run of `labrys test`, with its
folder and its report.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from clusters.sim.jvm import idle
from commands.hunt.draws import Behaviour, behaviour_of
from harness.errors import InputError, InterruptedEarly, LabrysError
from harness.outcome import RunOutcome
from harness.pool import Pool
from nemesis.choices import DRAWING
from nemesis.kinds import use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commands.hunt.draws import Draw
    from commands.options.compose import Settled
    from commands.run.session import Session
    from commands.run.trial import Trial

    OptionsOf = Callable[[Draw], tuple[Settled, Mapping[str, Any]]]
    CarryOut = Callable[[Sequence[Draw]], Iterator["HuntRun"]]

# How a run ended. A refused run has no plan, because its faults do not fit into its time.
VALID: Final = "valid"
INVALID: Final = "invalid"
UNKNOWN: Final = "unknown"
REFUSED: Final = "refused"
BROKEN: Final = "broken off"

DRIVER_MEMORY: Final = "1g"  # the driver only sends options and gets outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntRun:
    """One run of a hunt that was carried out, small enough to pass between processes.

    Attributes:
        draw: The run.
        outcome: Its outcome.
        refused: Whether it has no plan.
        behaviour: What the run showed to a guided hunt.
        report: The report; None for a simulated run, which has none.
    """

    draw: Draw
    outcome: RunOutcome
    refused: bool = False
    behaviour: Behaviour = field(default_factory=Behaviour)
    report: str | None = None

    @property
    def ended(self) -> str:
        """Returns how it ended: one of the words above. A run that a person ended before its verdict is unknown."""
        if self.refused:
            return REFUSED
        if self.outcome.verdict is not None:
            return str(self.outcome.verdict)
        return UNKNOWN if self.outcome.error is None else BROKEN


@contextlib.contextmanager
def in_simulator(
    options_of: OptionsOf, *, runs: int, jobs: int, kinds: str | None, copies: int = 1
) -> Iterator[CarryOut]:
    """Yields a function that carries out simulated runs, and yields their outcomes in order.

    Args:
        options_of: Returns the options that runs share, and what a run draws, by parameter name.
        runs: The most runs.
        jobs: The number of processes; one needs no pool.
        kinds: The place of kinds of faults of the user's own; None if there is none.
        copies: How many runs share a start.
    """
    if copies > 1:
        with _sharing(options_of, jobs=jobs, kinds=kinds, copies=copies) as carry_out:
            yield carry_out
        return
    if jobs == 1:
        idle.expect(runs)
        yield lambda draws: map(_simulated, draws, map(options_of, draws))
        return
    with Pool(jobs, _begin, kinds, runs // jobs) as pool:
        yield lambda draws: pool.map(_simulated, draws, map(options_of, draws))


@contextlib.contextmanager
def on_executors(options_of: OptionsOf, *, master: str, runs: int, kinds: str | None) -> Iterator[CarryOut]:
    """Yields a function that carries out simulated runs on the executors of a cluster, and yields their outcomes in order.

    Args:
        options_of: Returns the options that runs share, and what a run draws, by parameter name.
        master: The URL of the master.
        runs: The most runs.
        kinds: The place of kinds of faults of the user's own; None if there is none.

    Raises:
        NoSpark: Spark is missing or does not start.
        JobFailed: Executors were lost.
    """
    from results.pipeline.spark.session import require_spark

    require_spark()
    from results.pipeline.spark.carrying import carried_out, width_of
    from results.pipeline.spark.running import running

    with running(master=master, driver_memory=DRIVER_MEMORY, settings={}, named=kinds, runs_systems=True) as spark:
        begin = partial(_begin, kinds, runs // width_of(spark))
        yield lambda draws: iter(carried_out(spark, begin, _simulated, [(draw, options_of(draw)) for draw in draws]))


def _begin(kinds: str | None, runs: int) -> None:
    """Prepares a process of the pool for a number of runs. It knows the kinds of faults that the hunt knows."""
    idle.expect(runs)
    if kinds is not None:
        use(kinds)


@contextlib.contextmanager
def _sharing(options_of: OptionsOf, *, jobs: int, kinds: str | None, copies: int) -> Iterator[CarryOut]:
    """Yields a function that carries out simulated runs, of which some share their start."""

    def groups(draws: Sequence[Draw]) -> list[Sequence[Draw]]:
        return [draws[first : first + copies] for first in range(0, len(draws), copies)]

    def options(draws: Sequence[Draw]) -> list[Sequence[tuple[Settled, Mapping[str, Any]]]]:
        return [[*map(options_of, group)] for group in groups(draws)]

    if jobs == 1:
        yield lambda draws: chain.from_iterable(map(_copied, groups(draws), options(draws)))
        return
    with Pool(jobs, _begin, kinds, 0) as pool:
        yield lambda draws: chain.from_iterable(pool.map(_copied_list, groups(draws), options(draws)))


def _copied_list(draws: Sequence[Draw], options: Sequence[tuple[Settled, Mapping[str, Any]]]) -> list[HuntRun]:
    """Carries out runs that share a start, in a process of the pool."""
    return [*_copied(draws, options)]


def _copied(draws: Sequence[Draw], options: Sequence[tuple[Settled, Mapping[str, Any]]]) -> Iterator[HuntRun]:
    """Carries out runs that share a start."""
    from commands.run.copying import attempts

    base, own = options[0]
    start = base.having({name: value for name, value in own.items() if name not in DRAWING})
    runs = [base.having(own) for base, own in options]
    return attempts(start, runs, lambda number, attempt: _told(draws[number], attempt))


def _simulated(draw: Draw, options: tuple[Settled, Mapping[str, Any]]) -> HuntRun:
    """Carries out one simulated run."""
    from commands.run.trial import attempt

    base, own = options
    return _told(draw, lambda: attempt(base.having(own)))


def _told(draw: Draw, attempt: Callable[[], Trial]) -> HuntRun:
    """Returns what a hunt hears of a simulated run."""
    try:
        trial = attempt()
    except InterruptedEarly:
        return _interrupted(draw)
    except LabrysError as error:
        return _without_verdict(draw, error)
    return HuntRun(draw=draw, outcome=trial.outcome.brief(), behaviour=behaviour_of(trial.result, trial.operations))


def on_nodes(carry_out: Callable[[Draw], Session]) -> CarryOut:
    """Returns a function that carries out runs on real nodes, one after the other, and yields their outcomes.

    Args:
        carry_out: Carries out one run as `labrys test` does.
    """

    def carry_out_all(draws: Sequence[Draw]) -> Iterator[HuntRun]:
        for draw in draws:
            try:
                session = carry_out(draw)
            except (InterruptedEarly, KeyboardInterrupt):
                yield _interrupted(draw)
            except LabrysError as error:
                yield _without_verdict(draw, error)
            else:
                yield HuntRun(
                    draw=draw,
                    outcome=session.outcome.brief(),
                    behaviour=behaviour_of(session.result, session.operations),
                    report=str(session.run.report_html),
                )

    return carry_out_all


def _interrupted(draw: Draw) -> HuntRun:
    return HuntRun(draw=draw, outcome=RunOutcome(judged=None, interrupted=True))


def _without_verdict(draw: Draw, error: LabrysError) -> HuntRun:
    return HuntRun(draw=draw, outcome=RunOutcome(judged=None, error=str(error)), refused=isinstance(error, InputError))
