"""Faults of a node's sending side, by a queueing discipline: delay, duplicates, reordering, damage, limited rate.

The discipline is at the root of the device that leads to the other nodes. It has a handle of Labrys, and shapes all packets
that the node sends there. The proof measures the time of TCP connections, and the datagrams that arrive at the other nodes: how
many, how often, and how many are damaged. It compares this with the same measurement just before the fault.
"""

from __future__ import annotations

import abc
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import NETEM, ROOT, TBF
from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis import options as opt
from nemesis.datagrams import SMALL_BYTES, Arrivals, read_arrivals, send
from nemesis.errors import FaultError
from nemesis.fault import EGRESS, Fault, sentence
from nemesis.probes import connect_times_ms
from nemesis.simulated import network
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.node import Node
    from nemesis.field import Field
    from nemesis.simulated.effect import Effect

HANDLE = "1ab:"
CONNECTS = 8
END_TIMEOUT_S = 20.0
_UNDO = f"""
for dev in $(tc qdisc show | sed -n 's/^qdisc [a-z]* {HANDLE} dev \\([^ ]*\\) root.*/\\1/p'); do
  tc qdisc del dev $dev root handle {HANDLE}
done
[ -z "$(tc qdisc show | grep ' {HANDLE} ')" ]
"""
# The second line of a discipline's statistics ends with `requeues N)`.
_AHEAD = f"tc -s qdisc show | sed -n '/ {HANDLE} / {{ n; s/.*requeues \\([0-9]*\\)).*/\\1/p }}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A measurement of one node's sending side.

    Attributes:
        connect_ms: The times of TCP connections to other nodes.
        sent: The number of sent datagrams.
        arrived: The number of undamaged arrivals, duplicates included.
        damaged: The number of arrivals with a wrong checksum.
        ahead: The number of packets that the discipline sent ahead of earlier ones.
    """

    connect_ms: tuple[float, ...]
    sent: int
    arrived: int
    damaged: int
    ahead: int

    @property
    def median_ms(self) -> float | None:
        """Returns the median time of a connection; None if there was no connection."""
        return statistics.median(self.connect_ms) if self.connect_ms else None

    @property
    def ratio(self) -> float:
        """Returns the number of arrivals for each sent datagram."""
        return self.arrived / self.sent if self.sent else 0.0


class Egress(Fault):
    """A queueing discipline on the targets. Subclasses define the discipline, and how its effect shows."""

    PROOF: ClassVar[str] = "connection times and datagrams that arrive at the other nodes, before and during the fault"
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, NETEM})
    GROUPS: ClassVar[frozenset[str]] = frozenset({EGRESS})
    LEAST_NODES: ClassVar[int] = 2
    WHOLE_NODE: ClassVar[str | None] = "it shapes all that a node sends, whichever process sends it"
    DATAGRAMS: ClassVar[int] = 100
    SIZE: ClassVar[int] = SMALL_BYTES
    REORDERS: ClassVar[bool] = False

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.before: dict[str, Sample] = {}

    @abc.abstractmethod
    def discipline(self) -> str:
        """Returns the discipline as arguments of `tc`."""

    @abc.abstractmethod
    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Returns whether two measurements show the effect, and the measured effect as a text."""

    def blurs(self) -> frozenset[str]:
        """Returns the targets."""
        return frozenset(self.targets)

    async def begin(self) -> Begun:
        """Measures without the fault, then sets the discipline on every target."""
        self.before = await self._sample()
        await self.act(self.targets, self._set, f"setting `{self.discipline()}`")
        return Begun(targets=self.targets, details={"discipline": self.discipline(), "problems": dict(self.problems)})

    def _set(self, node: Node) -> None:
        peer = next(other for other in self.field.nodes if other.name != node.name)
        effect = (
            f"dev=$(ip -o route get {peer.address} | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p')\n"
            f"tc qdisc add dev $dev root handle {HANDLE} {self.discipline()}"
        )
        self.field.shell(node).run(making(self.name, effect=effect, undo=_UNDO), timeout_s=SHELL_TIMEOUT_S)

    async def prove(self) -> Proof:
        """Measures again with the fault on, and compares."""
        during = await self._sample()
        texts = []
        effective = bool(during)
        for name, sample in sorted(during.items()):
            before = self.before.get(name)
            good, text = self.seen(before, sample) if before else (False, "was not measured before the fault")
            effective = effective and good
            texts.append(f"{name} {text}")
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        measured = {
            name: {
                "median_ms_before": self.before[name].median_ms if name in self.before else None,
                "median_ms": sample.median_ms,
                "sent": sample.sent,
                "arrived": sample.arrived,
                "damaged": sample.damaged,
            }
            | ({"ahead": sample.ahead} if self.REORDERS else {})
            for name, sample in sorted(during.items())
        }
        return Proof(
            effective=effective, reason=f"{'; '.join(texts) or 'nothing could be measured'}.", measured=measured
        )

    async def _sample(self) -> dict[str, Sample]:
        """Measures the targets one after another, so that their datagrams do not mix."""
        samples = {}
        for name in self.targets:
            peers = self.peers(name)
            if peers:
                samples.update(await self._sample_one(name, peers))
        return samples

    async def _sample_one(self, name: str, peers: list[str]) -> dict[str, Sample]:
        port = self.port()
        targets = [self.field.node(peer) for peer in peers]

        def connect_and_send(node: Node) -> tuple[list[float], int]:
            ahead = self._ahead(node)
            times = connect_times_ms(self.field.shell(node), targets, port=port, count=CONNECTS)
            send(self.field.shell(node), targets, count=self.DATAGRAMS, size=self.SIZE)
            return times, self._ahead(node) - ahead

        before = (await self.act(peers, self._arrivals, "reading datagram counters")).done
        sending = (await self.act([name], connect_and_send, "sending datagrams")).done
        after = (await self.act(sorted(before), self._arrivals, "reading datagram counters")).done
        came = [after[peer].since(before[peer]) for peer in after]
        if name not in sending:
            return {}
        times, ahead = sending[name]
        return {
            name: Sample(
                connect_ms=tuple(times),
                sent=self.DATAGRAMS * len(came),
                arrived=sum(arrivals.arrived for arrivals in came),
                damaged=sum(arrivals.damaged for arrivals in came),
                ahead=ahead,
            )
        }

    def _ahead(self, node: Node) -> int:
        """Returns how many packets the discipline has sent ahead of earlier ones.

        netem puts such a packet at the head of its queue, and counts it as a requeue (net/sched/sch_netem.c of Linux).
        """
        if not self.REORDERS:
            return 0
        found = self.field.shell(node).run(_AHEAD, timeout_s=SHELL_TIMEOUT_S).stdout.split()
        return sum(map(int, found))

    def _arrivals(self, node: Node) -> Arrivals:
        return read_arrivals(self.field.shell(node))

    async def end(self) -> Proof | None:
        """Removes the discipline from every target.

        Raises:
            FaultError: A node still has it, or cannot be reached.
        """
        waiting = set(self.targets)
        failed: dict[str, Exception] = {}

        def undo(node: Node) -> None:
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)

        async def undone() -> bool:
            outcomes = await self.field.each(sorted(waiting), undo)
            waiting.difference_update(outcomes.done)
            failed.clear()
            failed.update(outcomes.failed)
            return not waiting

        if not await self.field.until(undone, slowed(END_TIMEOUT_S)):
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        return None


def _shown(sample: Sample) -> str:
    return "no connection" if sample.median_ms is None else f"{sample.median_ms:.1f} ms"


class Delay(Egress):
    """`packet-delay`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets late"
    SUMMARY: ClassVar[str] = "Delays the packets that the target sends, by a varying time."
    SIMULATED: ClassVar[type[Effect] | None] = network.Delay
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "delay_ms": opt.number(
            100, 1, 10_000, "The mean delay.", hunted=(20, 100, 400)
        ),  # 400: longer than many elections
        "jitter_ms": opt.number(
            50, 0, 10_000, "The variation of the delay.", hunted=(10, 50, 200), drawn_with="delay_ms"
        ),
    }

    def discipline(self) -> str:
        """Returns netem's delay, normally distributed if it varies."""
        jitter = self.options["jitter_ms"]
        varies = f" {jitter:g}ms distribution normal" if jitter else ""
        return f"netem delay {self.options['delay_ms']:g}ms{varies}"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires that connections take longer by at least half of the delay."""
        late = during.median_ms is not None and before.median_ms is not None
        grown = late and (during.median_ms or 0.0) - (before.median_ms or 0.0) >= float(self.options["delay_ms"]) / 2
        return bool(grown), f"connects in {_shown(during)}, before in {_shown(before)}"


class Duplicate(Egress):
    """`packet-duplicate`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets twice"
    SUMMARY: ClassVar[str] = "Duplicates a random part of the packets that the target sends."
    SIMULATED: ClassVar[type[Effect] | None] = network.Duplicate
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(20, 1, 100, "The share of packets that is duplicated.", hunted=(20, 80))
    }

    def discipline(self) -> str:
        """Returns netem's duplication."""
        return f"netem duplicate {self.options['percent']:g}%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:  # noqa: ARG002
        """Requires at least half of the expected duplicates."""
        wanted = 1 + self.options["percent"] / 200
        return during.ratio >= wanted, f"sent {during.sent} datagrams, of which {during.arrived} arrived"


class Corrupt(Egress):
    """`packet-corrupt`."""

    EFFECT: ClassVar[str] = "{nodes} sent damaged packets"
    SUMMARY: ClassVar[str] = "Flips a bit in a part of the packets that the target sends."
    SIMULATED: ClassVar[type[Effect] | None] = network.Corrupt
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(5, 1, 100, "The share of packets that is corrupted.")
    }
    DATAGRAMS: ClassVar[int] = 400

    def discipline(self) -> str:
        """Returns netem's corruption."""
        return f"netem corrupt {self.options['percent']:g}%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires damaged datagrams, or fewer arrivals, since the kernel drops damaged IP headers before UDP counts them."""
        fewer = before.ratio - during.ratio >= self.options["percent"] / 400
        text = f"sent {during.sent} datagrams, of which {during.arrived} arrived whole and {during.damaged} damaged"
        return during.damaged > before.damaged or fewer, text


class Reorder(Egress):
    """`packet-reorder`."""

    EFFECT: ClassVar[str] = "{nodes} sent packets out of order"
    SUMMARY: ClassVar[str] = "Delays most of the packets that the target sends, so that the rest overtake them."
    PROOF: ClassVar[str] = (
        "connection times before and during the fault, and packets that the discipline sent ahead of others"
    )
    SIMULATED: ClassVar[type[Effect] | None] = network.Reorder
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "percent": opt.number(25, 1, 99, "The share of packets without a delay."),
        "delay_ms": opt.number(20, 1, 10_000, "The delay of the other packets.", hunted=(20, 200)),
    }
    REORDERS: ClassVar[bool] = True

    def discipline(self) -> str:
        """Returns netem's reordering."""
        return f"netem delay {self.options['delay_ms']:g}ms reorder {self.options['percent']:g}% 50%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires both delayed connections and packets ahead of others."""
        limit_ms = (before.median_ms or 0.0) + float(self.options["delay_ms"]) / 2
        late = sum(time_ms >= limit_ms for time_ms in during.connect_ms)
        text = (
            f"sent {during.ahead} packets ahead of others, and made {late} of {len(during.connect_ms)} connections late"
        )
        return late > 0 and during.ahead > before.ahead, text


class Rate(Egress):
    """`packet-rate`."""

    EFFECT: ClassVar[str] = "{nodes} had little bandwidth"
    SUMMARY: ClassVar[str] = "Limits the target's sending rate and drops the packets beyond it."
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, TBF})
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "kbit": opt.number(1000, 64, 1_000_000, "The rate in kbit/s."),
        "latency_ms": opt.number(50, 1, 10_000, "The maximum time that a packet waits before it is dropped."),
    }
    DATAGRAMS: ClassVar[int] = 200
    SIZE: ClassVar[int] = 1400

    def discipline(self) -> str:
        """Returns a token bucket with a burst of a few packets."""
        return f"tbf rate {self.options['kbit']:g}kbit burst 16kb latency {self.options['latency_ms']:g}ms"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires that a burst loses at least a tenth more than before."""
        text = (
            f"sent a burst of {during.sent} large datagrams, of which {during.arrived} arrived, before {before.arrived}"
        )
        return before.ratio - during.ratio >= 0.1, text
