"""Carries out the runs of `labrys crash`: one that notes the steps of all disks, and one for each state of a disk.

A run repeats by its seed up to the step, so no run needs a copy of the simulation. Each state is a plan with one more fault: a
loss of power with the trigger `disk-step`. So a find is an ordinary run, and `labrys test --plan` carries it out again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from harness.errors import InfrastructureError, InputError, LabrysError
from harness.faults import PlannedFault, Trigger
from harness.outcome import RunOutcome
from harness.targets import Named
from harness.units import NS_PER_S
from harness.verdict import Verdict
from nemesis.plan import number

if TYPE_CHECKING:
    from commands.crash.states import CrashState
    from commands.options.compose import Settled
    from harness.op import Value
    from harness.world import DiskSteps

KIND: Final = "power-loss"
TRIGGER: Final = "disk-step"
ONE, MAJORITY, ALL = "one", "majority", "all"
HITS: Final = (ONE, MAJORITY, ALL)
NEVER: Final = 10**12  # no run has so many steps
LAST_S: Final = 1.0  # the last part of the workload, which comes after the restart


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run without a loss of power at a step.

    Attributes:
        settled: Its options, with its faults as the given plan.
        steps: The steps of all disks.
        until_ns: The time of the world from which steps are too late for a restart in the run.
        outcome: Its outcome.
    """

    settled: Settled
    steps: DiskSteps
    until_ns: int
    outcome: RunOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """A run with a loss of power at a step.

    Attributes:
        state: The state.
        outcome: Its outcome.
        hit: Whether the loss of power had its effect.
        error: Why it broke off; None if it did not.
    """

    state: CrashState
    outcome: RunOutcome
    hit: bool
    error: str | None = None

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
        down_s: How long they are without power.
    """

    hit: str
    down_s: float

    def limit_s(self, settled: Settled) -> float:
        """Returns the seconds of the workload whose steps are visited.

        Raises:
            InputError: There are none.
        """
        whole_s = settled.options.load.time_limit
        limit_s = whole_s - self.down_s - LAST_S
        if limit_s <= 0:
            raise InputError(
                f"a workload of {whole_s:g} s leaves no time for steps, {self.down_s:g} s without power, and {LAST_S:g} s "
                "after the restart; give a longer --time-limit or a shorter --down"
            )
        return limit_s

    def fault(self, settled: Settled, node: str, nth: int, options: dict[str, Value]) -> PlannedFault:
        """Returns the loss of power at a step."""
        limit_s = self.limit_s(settled)
        names = settled.nodes
        first = names.index(node)
        order = [*names[first:], *names[:first]]
        count = {ONE: 1, MAJORITY: len(names) // 2 + 1, ALL: len(names)}[self.hit]
        return PlannedFault(
            id=0,
            kind=KIND,
            target=Named(tuple(sorted(order[:count], key=names.index))),
            start_s=0.0,
            end_s=limit_s + self.down_s,
            trigger=Trigger(
                name=TRIGGER, limit_s=limit_s, parameters={"call": "any", "file": "*", "n": nth, "on": node}
            ),
            options=options,
        )

    def with_fault(self, settled: Settled, fault: PlannedFault) -> Settled:
        """Returns a run with one more fault."""
        plan = settled.given
        assert plan is not None  # noqa: S101 - `recorded` gives one
        return replace(settled, given=replace(plan, faults=number([*plan.faults, fault])))

    def of_state(self, settled: Settled, state: CrashState) -> Settled:
        """Returns the run that visits a state."""
        losing = state.losing
        lost = "all" if losing.changes is None else "+".join(map(str, sorted(losing.changes))) or "none"
        options: dict[str, Value] = {"lost": lost, **({"torn": True} if losing.torn else {})}
        return self.with_fault(settled, self.fault(settled, state.step.node, state.nth, options))


def record(settled: Settled, crashing: Crashing) -> Recorded:
    """Carries out the run whose steps are visited.

    Raises:
        LabrysError: The run broke off, or no disk notes its steps.
    """
    from commands.options.compose import composed
    from commands.run.trial import attempt

    with composed(settled) as (_, plan):
        planned = replace(settled, given=plan)
    watching = crashing.with_fault(planned, crashing.fault(planned, planned.nodes[0], NEVER, {}))
    trial = attempt(watching)
    if trial.outcome.error is not None:
        raise InfrastructureError(f"the run without a crash broke off: {trial.outcome.error}")
    until_ns = trial.steps.waited_ns + int(crashing.limit_s(planned) * NS_PER_S)
    return Recorded(settled=planned, steps=trial.steps, until_ns=until_ns, outcome=trial.outcome)


def visit(recorded: Settled, crashing: Crashing, state: CrashState) -> Visited:
    """Carries out the run that visits a state."""
    from commands.run.trial import attempt

    try:
        trial = attempt(crashing.of_state(recorded, state))
    except LabrysError as error:
        return Visited(state=state, outcome=RunOutcome(judged=None, error=str(error)), hit=False, error=str(error))
    hit = any(
        record.planned.trigger is not None
        and record.planned.trigger.name == TRIGGER
        and record.proof is not None
        and record.proof.effective
        for record in trial.result.faults
    )
    return Visited(state=state, outcome=trial.outcome.brief(), hit=hit, error=trial.outcome.error)
