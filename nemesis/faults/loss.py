"""Packet loss: the target drops a random part of the packets from the other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import IPTABLES_STATISTIC, ROOT
from nemesis import options as opt
from nemesis.fault import INGRESS, Impact
from nemesis.faults.links import OnLinks, peers_of
from nemesis.faults.ruled import RuleFault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.fault import Hit
    from nemesis.field import Field

DISABLING = 0.5


class Loss(OnLinks, RuleFault):
    """`packet-loss`."""

    EFFECT: ClassVar[str] = "{nodes} lost packets"
    SUMMARY: ClassVar[str] = "Drops a random part of the packets that other nodes send to the target."
    PROOF: ClassVar[str] = (
        "datagrams that the other nodes send, compared with those that the kernel of the target counts; counters of the rules"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, IPTABLES_STATISTIC})
    GROUPS: ClassVar[frozenset[str]] = frozenset({INGRESS})
    WHOLE_NODE: ClassVar[str | None] = (
        "it drops a part of all packets that reach a node, whichever process they are for"
    )
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "probability": opt.number(0.8, 0.01, 1.0, "The share of the packets that is lost.", hunted=(0.2, 0.8)),
        **OnLinks.OPTIONS,
    }

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.probability = float(self.options["probability"])

    @classmethod
    def impact(cls, hit: Hit, options: Mapping[str, Value]) -> Impact:
        """Returns the targets as down if at least half of their packets are lost."""
        heavy = options["probability"] >= DISABLING
        if not heavy:
            return Impact()
        peers = frozenset(peers_of(options))
        if peers:
            return Impact(grudge={target: peers - {target} for target in hit.targets})
        return Impact(down=frozenset(hit.targets))

    def blurs(self) -> frozenset[str]:
        """Returns the targets while the rules may be in place."""
        return frozenset(self.targets) if self.in_force else frozenset()
