"""Carries out the runs of `labrys crash`: one that notes the steps of all disks, and one for each state of a disk.

A run repeats by its seed up to the step, so no run needs a copy of the simulation. Each state is a plan with one more fault: a
loss of power with the trigger `disk-step`. So a find is an ordinary run, and `labrys test --plan` carries it out again.
"""

from __future__ import annotations

import glob
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from commands.crash.states import EACH, DrawnStall, of_recovery
from harness.errors import InfrastructureError, InputError, LabrysError
from harness.faults import PlannedFault, Trigger
from harness.outcome import RunOutcome
from harness.targets import Named
from harness.units import NS_PER_S
from harness.verdict import Verdict
from harness.world import ANY_STEP, SYNCING
from nemesis.disksteps import ANY_CALL
from nemesis.plan import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commands.crash.states import CrashState, Enumerated
    from commands.options.compose import Settled
    from harness.op import Value
    from harness.world import DiskSteps, Losing

KIND: Final = "power-loss"
TRIGGER: Final = "disk-step"
PROGRESS: Final = "progress"
ONE, MAJORITY, ALL = "one", "majority", "all"
HITS: Final = (ONE, MAJORITY, ALL)
NEVER: Final = 10**12  # no run has so many steps
OPERATIONS: Final = 3  # so many begin while a node is without power, so that clients test the others meanwhile
MARGIN_S: Final = 0.05
LONGER_S: Final = 3.0  # most systems elect another leader in this time
LAST_S: Final = 1.0  # the last part of the workload, which comes after the restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run without a loss of power at a step.

    Attributes:
        settled: Its options, with its faults as the given plan.
        steps: The steps of all disks.
        until_ns: The time of the world from which steps are too late for a restart in the run.
        begun_ns: The times of the world at which operations of clients begin, ascending.
        outcome: Its outcome.
    """

    settled: Settled
    steps: DiskSteps
    until_ns: int
    begun_ns: Sequence[int]
    outcome: RunOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """A run with a loss of power at a step.

    Attributes:
        state: The state.
        outcome: Its outcome.
        hit: Whether each loss of power had its effect.
        error: Why it broke off; None if it did not.
        recovery: The states of the steps of the recovery; None if nobody asks for them, or the run is
            invalid, broke off or had no such loss.
    """

    state: CrashState
    outcome: RunOutcome
    hit: bool
    error: str | None = None
    recovery: Enumerated | None = None

    @property
    def verdict(self) -> Verdict:
        """Returns the verdict of the run. A run without its loss of power shows nothing."""
        if self.outcome.invalid:
            return Verdict.INVALID
        return Verdict.UNKNOWN if not self.hit or self.outcome.verdict is None else self.outcome.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashing:
    """What all runs of the command share.

    Attributes:
        hit: Which nodes lose power: the one of the step, a majority with it, or all.
        down_s: How long they are without power at least.
        depth: How many losses of power a run has at most.
        recovery_s: How long a recovery takes: a further loss of power comes within this time after a restart.
        most: The most states of a step.
        at: The kind of the steps that are visited, and a glob pattern of their files.
        stall_ms: The most milliseconds for which a thread stalls before a step; 0: none does.
    """

    hit: str
    down_s: float
    depth: int = 1
    recovery_s: float = 0.0
    most: int = 1
    at: tuple[str, str] = EACH
    stall_ms: int = 0

    @property
    def one(self) -> bool:
        """Returns whether one node loses its power, and not several."""
        return self.hit == ONE

    def limit_s(self, settled: Settled, before: int = 0) -> float:
        """Returns the seconds of the workload whose steps are visited, after a number of losses of power.

        Raises:
            InputError: There are none.
        """
        whole_s = settled.options.load.time_limit
        more_s = self.down_s + self.recovery_s
        limit_s = whole_s - self.down_s - LAST_S - self.stall_ms / 1000 - (self.depth - 1) * more_s
        if limit_s <= 0:
            recovery = f", {self.recovery_s:g} s for each recovery" if self.depth > 1 else ""
            stall = f", {self.stall_ms:g} ms for a stall" if self.stall_ms else ""
            raise InputError(
                f"a workload of {whole_s:g} s leaves no time for steps, {self.down_s:g} s without power for each loss"
                f"{recovery}{stall}, and {LAST_S:g} s after the last restart; give a longer --time-limit or a shorter --down"
            )
        return limit_s + before * more_s

    def in_time(self, recorded: Recorded, states: Sequence[CrashState]) -> list[CrashState]:
        """Returns states with the time without power in which `OPERATIONS` begin, as far as the run leaves that time.

        Without a quorum, nothing can succeed in this time. With two losses of power, the steps of the recovery would be late.
        """
        nodes = recorded.settled.nodes
        if self.depth > 1 or len(nodes) - len(self.nodes(recorded.settled, nodes[0])) <= len(nodes) // 2:
            return [*states]
        ends_ns = recorded.steps.waited_ns + int((recorded.settled.options.load.time_limit - LAST_S) * NS_PER_S)
        begun_ns = recorded.begun_ns

        def timed(state: CrashState) -> CrashState:
            at_ns = state.step.time_ns
            most_s = (ends_ns - at_ns) / NS_PER_S - MARGIN_S
            begun = begun_ns[bisect_right(begun_ns, at_ns) :][:OPERATIONS]
            asked_s = (begun[-1] - at_ns) / NS_PER_S + MARGIN_S if begun else 0.0
            down_s = max(self.down_s, round(min(asked_s, most_s), 3))
            longer_s = round(min(down_s + LONGER_S, most_s), 3)
            return replace(state, down_s=down_s, longer_s=longer_s if longer_s > down_s else 0.0)

        return [timed(state) for state in states]

    def nodes(self, settled: Settled, node: str) -> Sequence[str]:
        """Returns the nodes that lose power at a step of a node."""
        names = settled.nodes
        first = names.index(node)
        order = [*names[first:], *names[:first]]
        count = {ONE: 1, MAJORITY: len(names) // 2 + 1, ALL: len(names)}[self.hit]
        return sorted(order[:count], key=names.index)

    def fault(
        self,
        settled: Settled,
        node: str,
        nth: int,
        options: dict[str, Value],
        *,
        call: str = ANY_STEP,
        file: str = "*",
        starts: int = 0,
        before: int = 0,
        down_s: float = 0.0,
        stall: DrawnStall | None = None,
    ) -> PlannedFault:
        """Returns the loss of power at a step of a kind, after a number of starts of the node, and of losses of power."""
        down_s = max(down_s, self.down_s)
        limit_s = self.limit_s(settled, before) + self.stall_ms / 1000 + self.down_s - down_s
        parameters: dict[str, Value] = {"call": call, "file": file, "n": nth, "on": node}
        if starts:
            parameters["starts"] = starts
        if stall is not None:
            parameters |= {
                "stall": stall.nth,
                "calls": stall.calls,
                "after_us": stall.after_us,
                "stall_ms": stall.length_ms,
            }
        return PlannedFault(
            id=0,
            kind=KIND,
            target=Named(tuple(self.nodes(settled, node))),
            start_s=0.0,
            end_s=limit_s + down_s,
            trigger=Trigger(name=TRIGGER, limit_s=limit_s, parameters=parameters),
            options=options,
        )

    def with_faults(self, settled: Settled, faults: Sequence[PlannedFault]) -> Settled:
        """Returns a run with more faults."""
        plan = settled.given
        assert plan is not None  # noqa: S101 - `recorded` gives one
        return replace(settled, given=replace(plan, faults=number([*plan.faults, *faults])))

    def of_state(self, settled: Settled, state: CrashState) -> Settled:
        """Returns the run that visits a state."""
        return self.with_faults(
            settled,
            [
                self.fault(
                    settled,
                    loss.step.node,
                    options=_losing(loss.losing),
                    **_named(loss),
                    starts=loss.starts,
                    before=before,
                    down_s=loss.down_s,
                    stall=loss.stall,
                )
                for before, loss in enumerate(state.losses)
            ],
        )


def record(settled: Settled, crashing: Crashing) -> Recorded:
    """Carries out the run whose steps are visited.

    Raises:
        LabrysError: The run broke off, or no disk notes its steps.
    """
    from commands.options.compose import composed
    from commands.run.trial import attempt

    with composed(settled) as (_, plan):
        planned = replace(settled, given=plan)
    stall = (
        DrawnStall(after_us=NEVER, calls=ANY_CALL, nth=1, length_ms=crashing.stall_ms) if crashing.stall_ms else None
    )
    watching = crashing.with_faults(planned, [crashing.fault(planned, planned.nodes[0], NEVER, {}, stall=stall)])
    trial = attempt(watching)
    if trial.outcome.error is not None:
        raise InfrastructureError(f"the run without a crash broke off: {trial.outcome.error}")
    until_ns = trial.steps.waited_ns + int(crashing.limit_s(planned) * NS_PER_S)
    begun_ns = sorted(trial.steps.waited_ns + operation.start_ns for operation in trial.operations)
    return Recorded(settled=planned, steps=trial.steps, until_ns=until_ns, begun_ns=begun_ns, outcome=trial.outcome)


def visit(recorded: Settled, crashing: Crashing, state: CrashState) -> Visited:
    """Carries out the run that visits a state.

    If no operation succeeded without the nodes, another run leaves them without power for longer.
    """
    visited = _visit(recorded, crashing, state)
    nothing_succeeded = visited.hit and visited.error is None and visited.outcome.undecided == (PROGRESS,)
    if not nothing_succeeded or not state.longer_s:
        return visited
    return _visit(recorded, crashing, replace(state, down_s=state.longer_s, longer_s=0.0))


def _visit(recorded: Settled, crashing: Crashing, state: CrashState) -> Visited:
    """Carries out the run that visits a state."""
    from commands.run.trial import attempt

    try:
        trial = attempt(crashing.of_state(recorded, state))
    except LabrysError as error:
        return Visited(state=state, outcome=RunOutcome(judged=None, error=str(error)), hit=False, error=str(error))
    hits = sum(
        record.is_proven and record.planned.trigger is not None and record.planned.trigger.name == TRIGGER
        for record in trial.result.faults
    )
    visited = Visited(
        state=state, outcome=trial.outcome.brief(), hit=hits >= len(state.losses), error=trial.outcome.error
    )
    if len(state.losses) == crashing.depth or not visited.hit or visited.error or visited.outcome.invalid:
        return visited
    recovery = of_recovery(
        state,
        trial.steps,
        nodes=crashing.nodes(recorded, state.step.node),
        within_ns=int(crashing.recovery_s * NS_PER_S),
        most=crashing.most,
        one=crashing.one,
        at=crashing.at,
    )
    return replace(visited, recovery=recovery)


def _named(loss: CrashState) -> _Named:
    """Returns how a trigger names a step: by its place among all steps, or those of its file if a stall moves other steps."""
    if loss.stall is None:
        return {"nth": loss.nth, "call": SYNCING if loss.step.call == SYNCING else ANY_STEP}
    return {"nth": loss.of_file, "call": loss.step.call, "file": glob.escape(loss.step.file)}


class _Named(TypedDict):
    nth: int
    call: str
    file: NotRequired[str]


def _losing(losing: Losing) -> dict[str, Value]:
    """Returns the options of `power-loss` that lose this."""
    lost = "all" if losing.changes is None else "+".join(map(str, sorted(losing.changes))) or "none"
    return {"lost": lost, **({"torn": True} if losing.torn else {})}
