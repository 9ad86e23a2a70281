"""Asks a system to move its leadership, on real nodes and in a simulated world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis.actor import OnNodes
from nemesis.errors import FaultError

if TYPE_CHECKING:
    from nemesis.fault import Fault
    from nemesis.faults.leadership import Transfer

TRANSFER_TIMEOUT_S = 10.0
PROVE_TIMEOUT_S = 5.0


class TransferOnNodes(OnNodes):
    """`leadership-transfer`."""

    fault: Transfer

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._before: tuple[str, int | None] | None = None
        self._accepted = False
        self._looked = False

    async def begin(self) -> Begun:
        """Requests the transfer, within a limited time.

        Raises:
            FaultError: No node reports that it leads, so there is no leadership to transfer.
        """
        half_s = self.fault.planned.lasts_s / 2  # the other half is for the proof
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
