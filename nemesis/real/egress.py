"""Shapes what real nodes send.

A queueing discipline of the kernel shapes all packets that the node sends to the others. A local cluster whose kernel lacks the
discipline has its switch do the same; see `nemesis.real.shaping`. The proof measures the time of TCP connections, and the
datagrams that arrive at the other nodes: how many, how often, and how many are damaged. It compares this with the same
measurement just before the fault. The switch also counts what it did.
"""

from __future__ import annotations

import abc
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.faults import Begun, Proof
from harness.slowness import slowed
from harness.switch import Bandwidth, Rule
from harness.units import NS_PER_MS
from harness.world import Disturbance
from nemesis.actor import OnNodes
from nemesis.datagrams import SMALL_BYTES, Arrivals, read_arrivals, send
from nemesis.errors import FaultError
from nemesis.fault import instead_of, sentence
from nemesis.faults.links import peers_of
from nemesis.probes import connect_times_ms
from nemesis.real.shaping import AtSwitch, Discipline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault
    from nemesis.faults.egress import Corrupt, Delay, Duplicate, Egress, Rate, Reorder
    from nemesis.real.shaping import Shaper

CONNECTS = 8
BURST_BYTES = 16 << 10
LEAST_WAIT_MS = 0.1
END_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A measurement of one node's sending side.

    Attributes:
        connect_ms: The times of TCP connections to other nodes.
        sent: The number of sent datagrams.
        arrived: The number of undamaged arrivals, duplicates included.
        damaged: The number of arrivals with a wrong checksum.
        ahead: The number of packets that were sent ahead of earlier ones.
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


class EgressOnNodes(OnNodes):
    """What the targets send is shaped. Subclasses define how, and how the effect shows.

    Attributes:
        COUNTED: The counter of the switch that shows the effect.
        DID: What the switch did to these packets, as a verb.
    """

    fault: Egress

    DATAGRAMS: ClassVar[int] = 100
    SIZE: ClassVar[int] = SMALL_BYTES
    REORDERS: ClassVar[bool] = False
    COUNTED: ClassVar[str]
    DID: ClassVar[str]

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.before: dict[str, Sample] = {}
        self.shaper: Shaper = Discipline(self.field, self.name, self.discipline())

    @abc.abstractmethod
    def discipline(self) -> str:
        """Returns the discipline as arguments of `tc`."""

    @abc.abstractmethod
    def rule(self, seed: int) -> Rule:
        """Returns the same as a rule of the switch."""

    @abc.abstractmethod
    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Returns whether two measurements show the effect, and the measured effect as a text."""

    async def begin(self) -> Begun:
        """Measures without the fault, then shapes what every target sends."""
        kind = type(self.fault)
        if kind.on_switch(self.options) or instead_of(kind, await self.field.capabilities()):
            self.shaper = AtSwitch(self.field, self.name, await self.field.switch(), self.rule, peers_of(self.options))
        self.before = await self._sample()
        await self.act(self.targets, self.shaper.set, f"setting `{self.shaper.means}`")
        return Begun(targets=self.targets, details={"discipline": self.shaper.means, "problems": dict(self.problems)})

    async def prove(self) -> Proof:
        """Measures again with the fault on, and compares."""
        during = await self._sample()
        counted = (await self.act(self.targets, self.shaper.counted, "reading the counters")).done
        texts = []
        effective = bool(during)
        for name, sample in sorted(during.items()):
            before = self.before.get(name)
            good, text = self.seen(before, sample) if before else (False, "was not measured before the fault")
            effective = effective and good
            texts.append(f"{name} {text}")
            if counted.get(name):
                effective = effective and counted[name].get(self.COUNTED, 0) > 0
                texts[-1] += f" (the switch {self._shown(counted[name])})"
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
            | ({"switch": counted[name]} if counted.get(name) else {})
            for name, sample in sorted(during.items())
        }
        return Proof(
            effective=effective, reason=f"{'; '.join(texts) or 'nothing could be measured'}.", measured=measured
        )

    def _shown(self, counts: Mapping[str, int]) -> str:
        """Returns what the switch did, and how long packets waited on average, as a clause."""
        ruled = counts.get("ruled", 0)
        waited_ms = counts.get("held_us", 0) / ruled / 1000 if ruled else 0.0
        wait = f", and packets waited {waited_ms:.1f} ms on average" if waited_ms >= LEAST_WAIT_MS else ""
        return f"{self.DID} {counts.get(self.COUNTED, 0)} of {ruled} packets{wait}"

    async def _sample(self) -> dict[str, Sample]:
        """Measures the targets one after another, so that their datagrams do not mix."""
        samples = {}
        for name in self.targets:
            peers = self.fault.peers(name)
            if peers:
                samples.update(await self._sample_one(name, peers))
        return samples

    async def _sample_one(self, name: str, peers: list[str]) -> dict[str, Sample]:
        port = self.fault.port()
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
        return self.shaper.ahead(node) if self.REORDERS else 0

    def _arrivals(self, node: Node) -> Arrivals:
        return read_arrivals(self.field.shell(node))

    async def end(self) -> Proof | None:
        """Ends the shaping of every target.

        Raises:
            FaultError: A node still has it, or cannot be reached.
        """
        waiting = set(self.targets)
        failed: dict[str, Exception] = {}

        async def undone() -> bool:
            outcomes = await self.field.each(sorted(waiting), self.shaper.remove)
            waiting.difference_update(outcomes.done)
            failed.clear()
            failed.update(outcomes.failed)
            return not waiting

        if not await self.field.until(undone, slowed(END_TIMEOUT_S)):
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        return None


def _ns(time_ms: Value) -> int:
    return round(float(time_ms) * NS_PER_MS)


def _late(before: Sample, during: Sample, delay_ms: float) -> int:
    """Returns how many connections took longer than before by at least half of a delay."""
    limit_ms = (before.median_ms or 0.0) + delay_ms / 2
    return sum(time_ms >= limit_ms for time_ms in during.connect_ms)


def _shown(sample: Sample) -> str:
    return "no connection" if sample.median_ms is None else f"{sample.median_ms:.1f} ms"


class DelayOnNodes(EgressOnNodes):
    """`packet-delay`."""

    fault: Delay

    COUNTED: ClassVar[str] = "delayed"
    DID: ClassVar[str] = "delayed"

    def rule(self, seed: int) -> Rule:
        """Returns the same delay, normally distributed if it varies."""
        delay_ns, jitter_ns = _ns(self.options["delay_ms"]), _ns(self.options["jitter_ms"])
        return Rule(seed=seed, disturbance=Disturbance(delay_ns=delay_ns, jitter_ns=jitter_ns))

    def discipline(self) -> str:
        """Returns netem's delay, normally distributed if it varies."""
        jitter = self.options["jitter_ms"]
        varies = f" {jitter:g}ms distribution normal" if jitter else ""
        return f"netem delay {self.options['delay_ms']:g}ms{varies}"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires at least half of the late connections that the delay and its jitter let expect.

        With a large jitter, the median of a few connections can be near 0 by chance. One retransmission makes their mean large.
        """
        delay_ms, jitter_ms = float(self.options["delay_ms"]), float(self.options["jitter_ms"])
        share = 1 - statistics.NormalDist(delay_ms, jitter_ms).cdf(delay_ms / 2) if jitter_ms else 1.0
        late, made = _late(before, during, delay_ms), len(during.connect_ms)
        grown = before.median_ms is not None and late > 0 and late >= made * share / 2
        return grown, f"connects in {_shown(during)}, before in {_shown(before)}; {late} of {made} connections are late"


class DuplicateOnNodes(EgressOnNodes):
    """`packet-duplicate`."""

    fault: Duplicate

    COUNTED: ClassVar[str] = "duplicated"
    DID: ClassVar[str] = "duplicated"

    def rule(self, seed: int) -> Rule:
        """Returns the same share of duplicates."""
        return Rule(seed=seed, disturbance=Disturbance(duplicate=self.options["percent"] / 100))

    def discipline(self) -> str:
        """Returns netem's duplication."""
        return f"netem duplicate {self.options['percent']:g}%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:  # noqa: ARG002
        """Requires at least half of the expected duplicates."""
        wanted = 1 + self.options["percent"] / 200
        return during.ratio >= wanted, f"sent {during.sent} datagrams, of which {during.arrived} arrived"


class CorruptOnNodes(EgressOnNodes):
    """`packet-corrupt`."""

    fault: Corrupt

    DATAGRAMS: ClassVar[int] = 400
    COUNTED: ClassVar[str] = "damaged"
    DID: ClassVar[str] = "damaged"

    def rule(self, seed: int) -> Rule:
        """Returns the same share of damaged packets."""
        return Rule(seed=seed, disturbance=Disturbance(damage=self.options["percent"] / 100))

    def discipline(self) -> str:
        """Returns netem's corruption."""
        return f"netem corrupt {self.options['percent']:g}%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires damaged datagrams, or fewer arrivals, since the kernel drops damaged IP headers before UDP counts them."""
        fewer = before.ratio - during.ratio >= self.options["percent"] / 400
        text = f"sent {during.sent} datagrams, of which {during.arrived} arrived whole and {during.damaged} damaged"
        return during.damaged > before.damaged or fewer, text


class ReorderOnNodes(EgressOnNodes):
    """`packet-reorder`."""

    fault: Reorder

    REORDERS: ClassVar[bool] = True
    COUNTED: ClassVar[str] = "ahead"
    DID: ClassVar[str] = "sent ahead"

    def rule(self, seed: int) -> Rule:
        """Returns the same delay, and the share of packets without it."""
        hurry = self.options["percent"] / 100
        return Rule(seed=seed, disturbance=Disturbance(delay_ns=_ns(self.options["delay_ms"]), hurry=hurry))

    def discipline(self) -> str:
        """Returns netem's reordering."""
        return f"netem delay {self.options['delay_ms']:g}ms reorder {self.options['percent']:g}% 50%"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires both delayed connections and packets ahead of others."""
        late = _late(before, during, float(self.options["delay_ms"]))
        text = (
            f"sent {during.ahead} packets ahead of others, and made {late} of {len(during.connect_ms)} connections late"
        )
        return late > 0 and during.ahead > before.ahead, text


class RateOnNodes(EgressOnNodes):
    """`packet-rate`."""

    fault: Rate

    DATAGRAMS: ClassVar[int] = 200
    SIZE: ClassVar[int] = 1400
    COUNTED: ClassVar[str] = "limited"
    DID: ClassVar[str] = "dropped"

    def rule(self, seed: int) -> Rule:
        """Returns the same rate, burst and latency."""
        bits_per_s, patience_ns = int(self.options["kbit"] * 1000), _ns(self.options["latency_ms"])
        return Rule(
            seed=seed, bandwidth=Bandwidth(bits_per_s=bits_per_s, burst_bytes=BURST_BYTES, patience_ns=patience_ns)
        )

    def discipline(self) -> str:
        """Returns a token bucket with a burst of a few packets."""
        return f"tbf rate {self.options['kbit']:g}kbit burst {BURST_BYTES} latency {self.options['latency_ms']:g}ms"

    def seen(self, before: Sample, during: Sample) -> tuple[bool, str]:
        """Requires that a burst loses at least a tenth more than before."""
        text = (
            f"sent a burst of {during.sent} large datagrams, of which {during.arrived} arrived, before {before.arrived}"
        )
        return before.ratio - during.ratio >= 0.1, text
