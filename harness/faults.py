"""The view of the harness on faults: a plan as data, and a nemesis that executes it.

The plan is drawn from the seed before the run. It can be printed, stored, edited and replayed. The record of a fault, with its
actual targets and the proof that it took effect, is separate and never replaces the plan. The room `nemesis` has the kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value

ROLE = "role"  # the option of a planned fault that names the role of the processes it is aimed at


def called(kind: str, options: Mapping[str, Value]) -> str:
    """Returns the name of a fault for people, e.g. `kill`, or `kill:broker` if its target is a role."""
    role = options.get(ROLE)
    return f"{kind}:{role}" if isinstance(role, str) else kind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """One fault of a plan.

    Attributes:
        id: Dense from 0 in the order of `start_s`.
        kind: E.g. `partition-random-halves`, `kill`, `pause`.
        target: By role or by name: `one`, `minority`, `leader`, ..., or a list of node names. A drawn target that needs no
            look at the cluster (a random half) is already resolved to names here, so that the same seed hits the same nodes.
        start_s: Seconds after the workload's start.
        end_s: When it is healed.
        options: The options of the kind, e.g. `{"probability": 0.8}` or the grudge of a partition.
    """

    id: int
    kind: str
    target: str | Sequence[str]
    start_s: float
    end_s: float
    options: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a fault did when it began.

    Attributes:
        targets: The nodes it hit, by name, in order.
        details: E.g. the grudge, or the pids that were killed.
    """

    targets: Sequence[str]
    details: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was measured while a fault was on.

    Attributes:
        effective: True only if the effect was seen; False if it was looked for and not seen.
        reason: One sentence, with the numbers.
        measured: JSON-like data behind the sentence.
    """

    effective: bool
    reason: str
    measured: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """The record of a planned fault.

    Attributes:
        planned: The plan's entry.
        targets: The nodes that were hit.
        start_ns: When it began to take effect at the earliest (before the first command), on the run's clock.
        end_ns: When it was healed at the latest (after the last command).
        proof: None only if it never began.
        details: As in `Begun`.
        error: What went wrong with beginning, proving or healing it; None if nothing did.
    """

    planned: PlannedFault
    targets: Sequence[str]
    start_ns: int
    end_ns: int
    proof: Proof | None
    details: Mapping[str, Value] = field(default_factory=dict)
    error: str | None = None


class Nemesis(Protocol):
    """Carries out a plan's faults on a cluster. Its methods are called from the run's loop and may overlap."""

    async def begin(self, fault: PlannedFault) -> Begun:
        """Resolves the target and breaks it. On an exception the caller still calls `end`."""
        ...

    async def prove(self, fault: PlannedFault) -> Proof:
        """Measures the effect; called while the fault is on, right after `begin`, before `end`. May take some seconds."""
        ...

    async def end(self, fault: PlannedFault) -> Proof | None:
        """Heals this one fault, and verifies that it is healed. Idempotent.

        Returns:
            A proof that replaces that of `prove`, where the whole duration was measured (counters); else None.
        """
        ...

    async def heal(self) -> None:
        """Heals everything a nemesis of this tool may have left on the cluster, also in an earlier run. Idempotent.

        Called before a run and after it, also after an interruption.
        """
        ...


class RunNemesis(Nemesis, Protocol):
    """A nemesis as a whole run needs it: some faults need something before the system starts."""

    async def prepare(self, plan: Sequence[PlannedFault]) -> None:
        """Makes what the plan's faults need, e.g. a disk of their own. Called when the system is installed and not started."""
        ...

    async def release(self) -> None:
        """Takes away what `prepare` made. Called when the system was stopped and its logs were collected. Idempotent."""
        ...
