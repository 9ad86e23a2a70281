"""Faults of a node's sending side: delay, duplicates, reordering, damage, limited rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import NETEM, ROOT, SWITCH, TBF
from nemesis import options as opt
from nemesis.fault import EGRESS
from nemesis.faults.links import PEERS, OnLinks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Value


class Egress(OnLinks):
    """The base class of faults of what the targets send."""

    PROOF: ClassVar[str] = "connection times and datagrams that arrive at the other nodes, before and during the fault"
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, NETEM})
    INSTEAD: ClassVar[Mapping[str, str]] = {NETEM: SWITCH}
    GROUPS: ClassVar[frozenset[str]] = frozenset({EGRESS})
    WHOLE_NODE: ClassVar[str | None] = "it shapes all that a node sends, whichever process sends it"

    @classmethod
    def on_switch(cls, options: Mapping[str, Value]) -> bool:
        """Returns whether it is about single links: a queueing discipline is for all of them."""
        return PEERS in options

    def blurs(self) -> frozenset[str]:
        """Returns the targets."""
        return frozenset(self.targets)


class Delay(Egress):
    """`packet-delay`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets late"
    SUMMARY: ClassVar[str] = "Delays the packets that the target sends, by a varying time."
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "delay_ms": opt.number(
            100, 1, 10_000, "The mean delay.", hunted=(20, 100, 400)
        ),  # 400: longer than many elections
        "jitter_ms": opt.number(
            50, 0, 10_000, "The variation of the delay.", hunted=(10, 50, 200), drawn_with="delay_ms"
        ),
        **OnLinks.OPTIONS,
    }


class Duplicate(Egress):
    """`packet-duplicate`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets twice"
    SUMMARY: ClassVar[str] = "Duplicates a random part of the packets that the target sends."
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(20, 1, 100, "The share of packets that is duplicated.", hunted=(20, 80)),
        **OnLinks.OPTIONS,
    }


class Corrupt(Egress):
    """`packet-corrupt`."""

    EFFECT: ClassVar[str] = "{nodes} sent damaged packets"
    SUMMARY: ClassVar[str] = "Flips a bit in a part of the packets that the target sends."
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(5, 1, 100, "The share of packets that is corrupted."),
        **OnLinks.OPTIONS,
    }


class Reorder(Egress):
    """`packet-reorder`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets out of order"
    SUMMARY: ClassVar[str] = "Delays most of the packets that the target sends, so that the rest overtake them."
    PROOF: ClassVar[str] = "connection times before and during the fault, and packets that were sent ahead of others"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(25, 1, 99, "The share of packets without a delay."),
        "delay_ms": opt.number(20, 1, 10_000, "The delay of the other packets.", hunted=(20, 200)),
        **OnLinks.OPTIONS,
    }


class Rate(Egress):
    """`packet-rate`."""

    EFFECT: ClassVar[str] = "{nodes} had little bandwidth"
    SUMMARY: ClassVar[str] = "Limits the target's sending rate and drops the packets beyond it."
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, TBF})
    INSTEAD: ClassVar[Mapping[str, str]] = {TBF: SWITCH}
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "kbit": opt.number(1000, 64, 1_000_000, "The rate in kbit/s."),
        "latency_ms": opt.number(50, 1, 10_000, "The maximum time that a packet waits before it is dropped."),
        **OnLinks.OPTIONS,
    }
