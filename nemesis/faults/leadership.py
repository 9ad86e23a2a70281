"""Leadership transfer by the system's own request. No node fails, but another node becomes the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import TRANSFER
from harness.targets import Named
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.fault import LEADERSHIP, Fault

if TYPE_CHECKING:
    from collections.abc import Sequence


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

    @classmethod
    def check_target(cls, kind: str, target: tgt.Target, nodes: Sequence[str]) -> None:
        """Checks a target: one node."""
        super().check_target(kind, target, nodes)
        if isinstance(target, Named) and len(target.nodes) != 1:
            raise PlanError(f"{kind} needs one node as the new leader, and {len(target.nodes)} are named")
