"""Carries out the runs of a hunt: in the simulator on several processors, and on real nodes one after the other.

A simulated run has no folder, because a hunt has thousands of them. A run on real nodes is a run of `labrys test`, with its
folder and its report.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from commands.compose import settle
from commands.hunting import Shown, shown_by
from commands.repeating import outcome_of
from commands.test import run_test
from harness.console.plain import one_line
from harness.errors import InputError, InterruptedEarly, LabrysError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from commands.compose import Settled
    from commands.hunting import Draw
    from commands.session import Session

    CarryOut = Callable[[Sequence[Draw]], Iterator["HuntRun"]]

# The outcomes of a run. A refused run has no plan, because its faults do not fit into its time.
VALID: Final = "valid"
INVALID: Final = "invalid"
UNKNOWN: Final = "unknown"
REFUSED: Final = "refused"
BROKEN: Final = "broken off"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntRun:
    """The outcome of one run of a hunt, small enough to pass between processes.

    Attributes:
        draw: The run.
        outcome: One of the outcomes above.
        blamed: The names of the invalid parts.
        reason: The reason of the verdict, of the refusal, or the error.
        shown: What the run showed to a guided hunt.
        report: The report; None for a simulated run, which has none.
        interrupted: Whether a person ended the run.
    """

    draw: Draw
    outcome: str
    blamed: tuple[str, ...] = ()
    reason: str = ""
    shown: Shown = field(default_factory=Shown)
    report: str | None = None
    interrupted: bool = False


@contextlib.contextmanager
def in_simulator(
    words: Sequence[str], options_of: Callable[[Draw], Mapping[str, Any]], *, jobs: int
) -> Iterator[CarryOut]:
    """Yields a function that carries out simulated runs, and yields their outcomes in order.

    Args:
        words: The command-line words of `labrys test` that all runs share.
        options_of: Returns the options of a run by parameter name.
        jobs: The number of processes; one needs no pool.
    """
    one = functools.partial(_simulated, tuple(words))
    if jobs == 1:
        yield lambda draws: map(one, draws, map(options_of, draws))
        return
    spawning = multiprocessing.get_context("spawn")
    # Ctrl-C goes to all processes of the terminal. The hunt itself ends the pool.
    with ProcessPoolExecutor(jobs, mp_context=spawning, initializer=_ignore_interruptions) as pool:
        try:
            yield lambda draws: pool.map(one, draws, map(options_of, draws))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _ignore_interruptions() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@functools.cache
def base(words: tuple[str, ...], nodes: int | None) -> tuple[Mapping[str, Any], Settled]:
    """Returns the options that runs of a hunt share. The cache saves parsing them again for each run.

    Args:
        words: The command-line words of `labrys test` that all runs of the hunt share.
        nodes: The number of nodes of the run; None if the words have it.
    """
    import cli

    words = words if nodes is None else (*words, "--nodes", str(nodes))
    with (
        cli.labrys.make_context("labrys", ["test"]) as root,
        run_test.make_context("test", [*words], parent=root) as test,
    ):
        options = dict(test.params)
        return options, settle(test, options)


def _simulated(words: tuple[str, ...], draw: Draw, given: Mapping[str, Any]) -> HuntRun:
    """Carries out one simulated run.

    Args:
        words: The command-line words of `labrys test` that all runs share.
        draw: The run.
        given: The options of this run by parameter name.
    """
    from commands.trial import attempt

    options, settled = base(words, given.get("nodes"))
    try:
        trial = attempt({**options, **given}, settled, seed=draw.seed)
    except InterruptedEarly:
        return _interrupted(draw)
    except LabrysError as error:
        return _without_verdict(draw, error)
    blamed = trial.blamed
    return HuntRun(
        draw=draw,
        outcome=str(trial.verdict),
        blamed=blamed,
        reason=next((part.reason for part in trial.parts if part.name in blamed), ""),
        shown=shown_by(trial.result, trial.operations),
    )


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
                yield _outcome_of(draw, session)

    return carry_out_all


def _outcome_of(draw: Draw, session: Session) -> HuntRun:
    verdict, reason, invalid = outcome_of(session)
    return HuntRun(
        draw=draw,
        outcome=BROKEN if verdict is None else str(verdict),
        blamed=invalid,
        reason=one_line(reason),
        shown=shown_by(session.result, session.operations),
        report=str(session.run.report_html),
        interrupted=session.interrupted,
    )


def _interrupted(draw: Draw) -> HuntRun:
    return HuntRun(draw=draw, outcome=UNKNOWN, interrupted=True)


def _without_verdict(draw: Draw, error: LabrysError) -> HuntRun:
    outcome = REFUSED if isinstance(error, InputError) else BROKEN
    return HuntRun(draw=draw, outcome=outcome, reason=one_line(str(error)))
