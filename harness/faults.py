"""The interface of faults: a plan as data, and a nemesis that carries it out.

The plan is drawn from the seed before the run. It can be printed, stored, edited and replayed. The record of a fault, with its
actual targets and the proof that it took effect, is separate and never replaces the plan. The room `nemesis` has the kinds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - members are read by their annotations
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from harness.console.members import Seconds, TimeNs, Whole  # noqa: TC001 - likewise
from harness.op import Value  # noqa: TC001 - likewise
from harness.targets import PlanTarget  # noqa: TC001 - likewise

if TYPE_CHECKING:
    from harness.clock import Clock
    from harness.history import Recorder
    from harness.watch import Watch

RARE_MESSAGE = "rare-message"  # the trigger of --fault-wait


def called(kind: str, role: str | None) -> str:
    """Returns the name of a fault for messages, e.g. `kill`, or `kill:broker` if it is aimed at a role."""
    return kind if role is None else f"{kind}:{role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The condition with which a planned fault begins.

    Attributes:
        name: The name of the condition, e.g. `rare-message`; `labrys faults` lists them.
        limit_s: The longest time from the planned start of the fault for which it waits for the condition.
        parameters: The parameters of the condition, with defaults.
    """

    name: str
    limit_s: Seconds
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def to_json(self) -> dict[str, Value]:
        """Returns it as JSON-like data, as plans and results have it."""
        parameters = {"parameters": dict(self.parameters)} if self.parameters else {}
        return {"name": self.name, "limit_s": self.limit_s, **parameters}

    def __str__(self) -> str:
        """Returns its form on the command line, e.g. `log-line:elected`."""
        return ":".join([self.name, *(str(value) for value in self.parameters.values())])


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault of a plan.

    Attributes:
        id: Its number in the order of `start_s`, from 0.
        kind: E.g. `partition-random-halves`, `kill`, `pause`.
        target: What it hits. A target that does not depend on the cluster, such as a random half, is named here, so that the
            same seed hits the same nodes.
        start_s: Its start, in seconds after the start of the workload.
        end_s: Its end, in seconds after the start of the workload.
        trigger: The condition with which it begins, at `start_s` or up to the trigger's limit later. It then lasts for the rest
            of its planned time. None: it begins at `start_s`.
        role: The role of the processes that it hits; None: it hits whole nodes.
        order: The candidate nodes in a drawn order, which decides what the target and the leader leave open; empty if nothing
            depends on it.
        options: The options of the kind, e.g. `{"probability": 0.8}` or the grudge of a partition.
    """

    id: Whole
    kind: str
    target: PlanTarget
    start_s: Seconds
    end_s: Seconds
    trigger: Trigger | None = None
    role: str | None = None
    order: tuple[str, ...] = ()
    options: Mapping[str, Value] = field(default_factory=dict)

    @property
    def called(self) -> str:
        """Returns its name for messages; see `called`."""
        return called(self.kind, self.role)

    @property
    def wait_s(self) -> float:
        """Returns the longest time in seconds for which it waits for its trigger."""
        return wait_s(self.trigger)

    @property
    def lasts_s(self) -> float:
        """Returns the planned duration in seconds, without the wait for its trigger."""
        return self.end_s - self.start_s - self.wait_s

    def goes_with(self, other: PlannedFault) -> bool:
        """Returns whether both have the same times. Faults in turn then take their turn together."""
        return (self.start_s, self.end_s) == (other.start_s, other.end_s)


def wait_s(trigger: Trigger | None) -> float:
    """Returns the longest time in seconds for which a fault with this trigger waits."""
    return 0.0 if trigger is None else trigger.limit_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a trigger sees of a run, beside the nodes.

    Attributes:
        clock: The run's clock.
        history: The events so far.
        watch: The polls of the nodes; None if nobody polls them.
    """

    clock: Clock
    history: Recorder
    watch: Watch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fired:
    """What fired the trigger of a fault.

    Attributes:
        time_ns: The time when Labrys saw it, on the run's clock.
        what: The line, status or operation, in words that follow "the fault began", e.g. `after Vote from n1 to n2`.
        measured: JSON-like data for the words, e.g. the line. Under `node` it has the node of the line, status or operation.
    """

    time_ns: TimeNs
    what: str
    measured: Mapping[str, Value] = field(default_factory=dict)

    @property
    def node(self) -> str | None:
        """Returns the node that a fault with the target `trigger` hits; None if nothing names one."""
        named = self.measured.get("node")
        return named if isinstance(named, str) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The effect of a fault at its start.

    Attributes:
        targets: The names of the nodes that it hit, in order.
        details: E.g. the grudge, or the pids that were killed.
        effect: What happened to the nodes, as a clause in the past tense, e.g. `n1 and n2 lost power`; empty if nobody says it.
    """

    targets: Sequence[str]
    details: Mapping[str, Value] = field(default_factory=dict)
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The measurement of a fault while it was on.

    Attributes:
        effective: Whether the measurement proves the effect.
        reason: One sentence, with the numbers.
        measured: JSON-like data for the sentence.
    """

    effective: bool
    reason: str
    measured: Mapping[str, Value] = field(default_factory=dict)


def lasting(first: Proof, second: Proof) -> Proof:
    """Returns the proof of a state by two looks, at its begin and just before its end. Both must have seen it."""
    measured = {**first.measured, "at_the_end": dict(second.measured)}
    if second.effective:
        return replace(first, measured=measured)
    return Proof(effective=False, reason=f"{first.reason} But at its end: {second.reason}", measured=measured)


def unseen_at_the_end(first: Proof) -> Proof:
    """Returns the proof of a state that nobody could look at a second time."""
    return replace(first, effective=False, reason=f"{first.reason} Just before its end, nobody could look at it again.")


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The record of a planned fault; `results.json` has its members.

    Attributes:
        planned: Its entry in the plan.
        targets: The names of the nodes that it hit.
        start_ns: The earliest time of its effect (before the first command), on the run's clock.
        end_ns: The latest time of its effect (after the last command).
        proof: Its proof; None only if it never began.
        details: As in `Begun`.
        error: The errors of its wait, start, proof and end; None if there are none.
        fired: What fired its trigger; None if it has none, or the trigger never fired.
        effect: As in `Begun`. It is true only if the proof is effective.
    """

    planned: PlannedFault
    targets: tuple[str, ...]
    start_ns: TimeNs
    end_ns: TimeNs
    proof: Proof | None
    details: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None
    fired: Fired | None = None
    effect: str = ""

    @property
    def is_proven(self) -> bool:
        """Returns whether its effect was seen."""
        return self.proof is not None and self.proof.effective

    @property
    def stopped(self) -> Sequence[str]:
        """Returns the nodes whose process was seen to vanish; it starts again when the fault ends."""
        vanished = None if self.proof is None else self.proof.measured.get("vanished")
        labels = vanished if isinstance(vanished, list) else []  # a node, or one of its processes: `n1 (broker)`
        return [node for node in self.targets if any(str(label).partition(" (")[0] == node for label in labels)]


class Nemesis(Protocol):
    """Carries out the faults of a plan on a cluster. The run's loop calls its methods, and calls may overlap."""

    async def wait(self, fault: PlannedFault, sight: Sight) -> Fired | None:
        """Waits for the trigger of a fault, at most for the trigger's limit. Called before `begin` if the fault has a trigger.

        Returns:
            What fired it; None if it did not fire. Then the fault does not begin.
        """
        ...

    async def begin(self, fault: PlannedFault) -> Begun:
        """Resolves the target, and injects the fault. The caller calls `end` even after an exception."""
        ...

    async def prove(self, fault: PlannedFault) -> Proof:
        """Measures the effect. Called right after `begin` and before `end`; may take some seconds."""
        ...

    async def look_again(self, fault: PlannedFault) -> Proof | None:
        """Measures the effect a second time, just before `end`, if `prove` saw it.

        Returns:
            The proof over the time between the two looks; it is effective only if both saw the effect. None: no second look is
            due, because the fault has no effect, is an event, or is measured over its whole time by other means.
        """
        ...

    async def end(self, fault: PlannedFault) -> Proof | None:
        """Heals this fault, and verifies that it is healed. Idempotent.

        Returns:
            A proof that replaces the one of `prove` and `look_again`, if counters measured the whole duration; else None.
        """
        ...

    async def heal(self) -> None:
        """Heals all faults that Labrys may have left on the cluster, in this run or an earlier one. Idempotent.

        Called before a run and after it, also after an interruption.
        """
        ...


class RunNemesis(Nemesis, Protocol):
    """A nemesis that also prepares nodes, because some faults need preparations before the system starts."""

    async def prepare(self, plan: Sequence[PlannedFault]) -> None:
        """Prepares the nodes for the faults of a plan, e.g. with a volume. Called after the installation, before the start."""
        ...

    async def release(self) -> None:
        """Removes the preparations. Called after the system was stopped and its logs were collected. Idempotent."""
        ...
