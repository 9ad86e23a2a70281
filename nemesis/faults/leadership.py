"""Leadership transfer by the system's own request. No node fails, but another node becomes the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import TRANSFER
from harness.faults import Begun, Proof
from harness.slowness import slowed
from harness.targets import Named
from nemesis import targets as tgt
from nemesis.errors import FaultError, PlanError
from nemesis.fault import LEADERSHIP, Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import PlannedFault
    from nemesis.field import Field

TRANSFER_TIMEOUT_S = 10.0
PROVE_TIMEOUT_S = 5.0


class Transfer(Fault):
    """`leadership-transfer`."""

    EFFECT: ClassVar[str] = "{nodes} {were} asked to lead"
    SUMMARY: ClassVar[str] = "Asks the system to make the target the leader."
    PROOF: ClassVar[str] = (
        "another node reported before that it leads; the target reports that it leads, in a later term"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset()
    OF_SYSTEM: ClassVar[frozenset[str]] = frozenset({TRANSFER})
    GROUPS: ClassVar[frozenset[str]] = frozenset({LEADERSHIP})
    LEAST_NODES: ClassVar[int] = 2
    WHOLE_NODE: ClassVar[str | None] = None
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.FOLLOWER, tgt.ONE, tgt.TRIGGER)

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self._before: tuple[str, int | None] | None = None
        self._accepted = False
        self._looked = False

    @classmethod
    def check_target(cls, kind: str, target: tgt.Target, nodes: Sequence[str]) -> None:
        """Checks a target: one node."""
        super().check_target(kind, target, nodes)
        if isinstance(target, Named) and len(target.nodes) != 1:
            raise PlanError(f"{kind} needs one node as the new leader, and {len(target.nodes)} are named")

    async def begin(self) -> Begun:
        """Requests the transfer, within a limited time.

        Raises:
            FaultError: No node reports that it leads, so there is no leadership to transfer.
        """
        half_s = self.planned.lasts_s / 2  # the other half is for the proof
        self._before = await self.field.leader_and_term(half_s, self.role)
        if self._before is None:
            raise FaultError(f"fault {self.name}: no node reports that it leads, so there is no leadership to transfer")
        (target,) = self.targets
        system = self.field.system
        service = system.front() if self.role is None else system.service(self.role)
        self._accepted = await service.lead(self.field.node(target), min(slowed(TRANSFER_TIMEOUT_S), half_s))
        leader, term = self._before
        return Begun(targets=self.targets, details={"from": leader, "from_term": term, "accepted": self._accepted})

    async def prove(self) -> Proof:
        """Asks the nodes for the current leader."""
        now = await self.field.leader_and_term(slowed(PROVE_TIMEOUT_S), self.role)
        self._looked = True
        (target,) = self.targets
        before = self._before
        measured = {"before": list(before or ()), "now": list(now or ()), "accepted": self._accepted}
        if before is None or now is None:
            return Proof(effective=False, reason="No node reported that it leads.", measured=measured)
        old, new = _described(before), _described(now)
        if before[0] == target:
            return Proof(effective=False, reason=f"{old} already led, so nothing was transferred.", measured=measured)
        if now[0] != target:
            return Proof(effective=False, reason=f"{new} leads, not {target}; {old} led before.", measured=measured)
        if before[1] is not None and now[1] is not None and now[1] <= before[1]:
            reason = f"{new} reports that it leads, but in no later term than {old} before."
            return Proof(effective=False, reason=reason, measured=measured)
        return Proof(effective=True, reason=f"{new} leads; {old} led before.", measured=measured)

    async def again(self) -> Proof | None:
        """Looks no second time: a transfer is an event, and the leader may change after it."""
        return None

    async def end(self) -> Proof | None:
        """Heals nothing, since a transfer is an event. It makes the proof if there was no time for it before."""
        return None if self._looked or self._before is None else await self.prove()


def _described(leader: tuple[str, int | None]) -> str:
    node, term = leader
    return node if term is None else f"{node} (term {term})"
