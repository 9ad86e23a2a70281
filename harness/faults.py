"""The interface of faults: a plan as data, and a nemesis that carries it out.

The plan is drawn from the seed before the run. It can be printed, stored, edited and replayed. The record of a fault, with its
actual targets and the proof that it took effect, is separate and never replaces the plan. The room `nemesis` has the kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value

ROLE = "role"  # the option of a planned fault with the role of its target processes


def called(kind: str, options: Mapping[str, Value]) -> str:
    """Returns the name of a fault for messages, e.g. `kill`, or `kill:broker` if its target is a role."""
    role = options.get(ROLE)
    return f"{kind}:{role}" if isinstance(role, str) else kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault of a plan.

    Attributes:
        id: Its number in the order of `start_s`, from 0.
        kind: E.g. `partition-random-halves`, `kill`, `pause`.
        target: A word such as `leader`, or a list of node names. A target that does not depend on the cluster, such as a random
            half, is a list of names here, so that the same seed hits the same nodes.
        start_s: Its start, in seconds after the start of the workload.
        end_s: Its end, in seconds after the start of the workload.
        wait_s: The longest time from `start_s` for which the fault waits for a rare message between nodes. It begins with that
            message, or after this time, and lasts for the rest of its planned time. Only in the simulator; 0: no wait.
        options: The options of the kind, e.g. `{"probability": 0.8}` or the grudge of a partition.
    """

    id: int
    kind: str
    target: str | Sequence[str]
    start_s: float
    end_s: float
    wait_s: float = 0.0
    options: Mapping[str, Value] = field(default_factory=dict)

    @property
    def lasts_s(self) -> float:
        """Returns the planned duration in seconds, without the wait for a message."""
        return self.end_s - self.start_s - self.wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The effect of a fault at its start.

    Attributes:
        targets: The names of the nodes that it hit, in order.
        details: E.g. the grudge, or the pids that were killed.
    """

    targets: Sequence[str]
    details: Mapping[str, Value] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The record of a planned fault.

    Attributes:
        planned: Its entry in the plan.
        targets: The names of the nodes that it hit.
        start_ns: The earliest time of its effect (before the first command), on the run's clock.
        end_ns: The latest time of its effect (after the last command).
        proof: Its proof; None only if it never began.
        details: As in `Begun`.
        error: The errors of its start, proof and end; None if there are none.
    """

    planned: PlannedFault
    targets: Sequence[str]
    start_ns: int
    end_ns: int
    proof: Proof | None
    details: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None


class Nemesis(Protocol):
    """Carries out the faults of a plan on a cluster. The run's loop calls its methods, and calls may overlap."""

    async def wait(self, fault: PlannedFault) -> Mapping[str, Value]:
        """Waits for a rare message between nodes, for at most `fault.wait_s`. Called before `begin` if this is not 0.

        Returns:
            The details of the message for the fault's record; empty if there was none.
        """
        ...

    async def begin(self, fault: PlannedFault) -> Begun:
        """Resolves the target, and injects the fault. The caller calls `end` even after an exception."""
        ...

    async def prove(self, fault: PlannedFault) -> Proof:
        """Measures the effect. Called right after `begin` and before `end`; may take some seconds."""
        ...

    async def end(self, fault: PlannedFault) -> Proof | None:
        """Heals this fault, and verifies that it is healed. Idempotent.

        Returns:
            A proof that replaces the one of `prove`, if counters measured the whole duration; else None.
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
