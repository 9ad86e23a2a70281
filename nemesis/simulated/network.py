"""Partitions and disturbed packets in a simulated world. Probes through its network prove the effect."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, ClassVar

from harness.faults import Begun, Proof
from harness.units import NS_PER_MS
from harness.world import Disturbance
from nemesis.datagrams import Delivery
from nemesis.errors import FaultError
from nemesis.simulated.effect import Effect
from nemesis.topology import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from harness.op import Value
    from harness.world import Arrival, Pair
    from nemesis.faults.loss import Loss as LossFault
    from nemesis.faults.partition import Partition

PROBE_WAIT_S = 0.05
PROBES = 3
MEASURING = 100


class Cut(Effect):
    """The effect of all partitions: a grudge in force."""

    fault: Partition

    async def begin(self) -> Begun:
        """Puts the grudge in force."""
        self.world.cut(self.fault.id, self.fault.grudge)
        self.fault.in_force = True
        grudge: dict[str, Value] = {node: sorted(dropped) for node, dropped in self.fault.grudge.items()}
        return Begun(targets=self.targets, details={"grudge": grudge, "topology": describe(self.fault.grudge)})

    async def prove(self) -> Proof:
        """Probes every direction of every pair. No probe must arrive in a cut direction, and one must arrive in each other."""
        members = self.fault.members
        pairs = [(a, b) for a in members for b in members if a != b]
        arrived, affected = await self._probe(pairs)
        cut = [(a, b) for a, b in pairs if a in self.fault.grudge[b]]
        whole = [pair for pair in pairs if pair not in cut and pair not in affected]
        leaks = [pair for pair in cut if arrived[pair]]
        closed = [pair for pair in whole if not arrived[pair]]
        wrong = [f"packets still passed from {_list(leaks)}"] if leaks else []
        wrong += [f"no packet arrived from {_list(closed)}, which should not be cut"] if closed else []
        right = (
            f"no packet passed in the {len(cut)} cut directions, and packets passed in each of the {len(whole)} other "
            "directions"
        )
        reason = "; ".join(wrong) or (right if cut else "no direction is cut")
        return Proof(
            effective=bool(cut) and not wrong,
            reason=f"{reason[:1].upper()}{reason[1:]}.",
            measured={"arrived": _counts({pair: len(arrivals) for pair, arrivals in arrived.items()})},
        )

    async def _probe(self, pairs: Sequence[Pair]) -> tuple[Mapping[Pair, Sequence[Arrival]], AbstractSet[Pair]]:
        """Probes directions. Returns what arrived, and the directions that other faults affected before or after it."""
        before = self._affected(pairs)
        arrived = await self.world.probe(pairs, count=PROBES, wait_s=PROBE_WAIT_S)
        return arrived, before | self._affected(pairs)

    def _affected(self, pairs: Sequence[Pair]) -> AbstractSet[Pair]:
        """Returns the directions that other faults cut or disturb at the moment."""
        others, blurred = self.fault.also_cut(), self.fault.blurred()
        return {(a, b) for a, b in pairs if a in others[b] or {a, b} & blurred}

    async def again(self) -> Proof | None:
        """Looks no second time: the world keeps the rule until `end`, and more probes would change the seed's run."""
        return None

    async def end(self) -> Proof | None:
        """Ends the grudge, and verifies that probes arrive in all directions that no other fault affects.

        Raises:
            FaultError: No probe arrives in such a direction.
        """
        self.world.mend(self.fault.id)
        self.fault.in_force = False
        dropped = self.world.dropped(self.fault.id)
        cut = [(a, b) for b in self.fault.members for a in self.fault.members if a in self.fault.grudge[b]]
        arrived, affected = await self._probe(cut)
        silent = [pair for pair in cut if not arrived[pair] and pair not in affected]
        if silent:
            raise FaultError(f"fault {self.fault.name} has ended, but no packet arrives from {_list(silent)}")
        proof = self.fault.proof
        if proof is None:
            return None
        total = sum(dropped.values())
        return Proof(
            effective=proof.effective,
            reason=f"{proof.reason} In all {total} packets were dropped.",
            measured={**proof.measured, "dropped": _counts(dropped), "dropped_total": total},
        )


class Disturbed(Effect):
    """Disturbed packets. Subclasses define the disturbance, and how its effect shows."""

    ARRIVING: ClassVar[bool] = False

    def disturbance(self) -> Disturbance:
        """Returns the disturbance of the packets."""
        raise NotImplementedError

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:
        """Returns whether the arrivals show the effect, and the measurement as a clause about the node."""
        raise NotImplementedError

    async def begin(self) -> Begun:
        """Disturbs the packets of every target."""
        self.fault.in_force = True
        how = self.disturbance()
        for name in self.targets:
            others = frozenset(self.fault.ends(name))
            self.world.disturb(self.fault.id, name, how, arriving=self.ARRIVING, others=others)
        shown: dict[str, Value] = {name: getattr(how, name) for name in how.__slots__ if getattr(how, name)}
        return Begun(targets=self.targets, details={"disturbance": shown})

    async def prove(self) -> Proof:
        """Sends probes between each target and nodes that other faults do not separate from it."""
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        measured: dict[str, Value] = {}
        how = self.disturbance()
        wait_s = PROBE_WAIT_S + (how.delay_ns + 5 * how.jitter_ns) / 1e9
        for name in self.targets:
            pairs = [(peer, name) if self.ARRIVING else (name, peer) for peer in self.fault.peers(name)]
            if not pairs:
                self.fault.problems[name] = "other faults keep all nodes from it"
                continue
            arrived = await self.world.probe(pairs, count=MEASURING, wait_s=wait_s)
            arrivals = [arrival for pair in pairs for arrival in arrived[pair]]
            sent = MEASURING * len(pairs)
            shows, text = self.seen(arrivals, sent)
            (good if shows else bad)[name] = text
            measured[name] = {
                "sent": sent,
                "arrived": len(arrivals),
                "damaged": sum(arrival.damaged for arrival in arrivals),
                "median_ms": _median_ms(arrivals),
            }
        return self.fault.shown(bad, good, measured)

    async def again(self) -> Proof | None:
        """Looks no second time: the world keeps the rule until `end`, and more probes would change the seed's run."""
        return None

    async def end(self) -> Proof | None:
        """Ends the disturbance."""
        self.fault.in_force = False
        self.world.mend(self.fault.id)
        return None


class Loss(Disturbed):
    """`packet-loss`."""

    fault: LossFault

    ARRIVING: ClassVar[bool] = True

    def disturbance(self) -> Disturbance:
        """Returns the loss."""
        return Disturbance(lose=self.fault.probability)

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:
        """Requires that the requested share is lost; see `evidence.near`."""
        delivery, wanted = Delivery(sent=sent, arrived=len(arrived)), self.fault.probability
        text = f"lost {delivery.lost:.1%} of {sent} probes, expected {wanted:.0%}"
        return delivery.is_near(wanted), text


class Delay(Disturbed):
    """`packet-delay`."""

    def disturbance(self) -> Disturbance:
        """Returns the delay."""
        options = self.fault.options
        return Disturbance(
            delay_ns=int(options["delay_ms"] * NS_PER_MS), jitter_ns=int(options["jitter_ms"] * NS_PER_MS)
        )

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:  # noqa: ARG002 - all arrive
        """Requires at least half of the mean delay. With a large jitter, the median of 100 delays can be near 0 by chance."""
        wanted_ms = _clipped_mean(float(self.fault.options["delay_ms"]), float(self.fault.options["jitter_ms"]))
        took_ms = statistics.fmean(arrival.delay_ns for arrival in arrived) / NS_PER_MS if arrived else 0.0
        text = f"sent probes that took {took_ms:.3g} ms on average" if arrived else "sent probes that did not arrive"
        return took_ms >= wanted_ms / 2, f"{text}, expected {wanted_ms:.3g} ms"


class Duplicate(Disturbed):
    """`packet-duplicate`."""

    def disturbance(self) -> Disturbance:
        """Returns the duplication."""
        return Disturbance(duplicate=self.fault.options["percent"] / 100)

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:
        """Requires at least half of the expected duplicates, and at least one."""
        wanted = max(1.0, sent * self.fault.options["percent"] / 200)
        return len(arrived) - sent >= wanted, f"sent {sent} probes, of which {len(arrived)} arrived"


class Corrupt(Disturbed):
    """`packet-corrupt`: a damaged packet has a wrong checksum, and the receiver drops it."""

    def disturbance(self) -> Disturbance:
        """Returns the corruption."""
        return Disturbance(damage=self.fault.options["percent"] / 100)

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:
        """Requires damaged probes."""
        damaged = sum(arrival.damaged for arrival in arrived)
        return damaged > 0, f"sent {sent} probes, of which {damaged} arrived with a wrong checksum"


class Reorder(Disturbed):
    """`packet-reorder`."""

    def disturbance(self) -> Disturbance:
        """Returns a delay for most packets, and none for the rest."""
        options = self.fault.options
        return Disturbance(delay_ns=int(options["delay_ms"] * NS_PER_MS), hurry=options["percent"] / 100)

    def seen(self, arrived: Sequence[Arrival], sent: int) -> tuple[bool, str]:
        """Requires both late probes and probes that overtook them."""
        limit_ns = self.fault.options["delay_ms"] * NS_PER_MS / 2
        late = sum(arrival.delay_ns >= limit_ns for arrival in arrived)
        return 0 < late < len(arrived), f"sent {sent} probes, of which {late} came late, and the others overtook them"


def _clipped_mean(mean: float, deviation: float) -> float:
    """Returns the mean of a normal distribution after its negative values became 0."""
    if not deviation:
        return mean
    normal = statistics.NormalDist()
    return mean * normal.cdf(mean / deviation) + deviation * normal.pdf(mean / deviation)


def _median_ms(arrived: Sequence[Arrival]) -> float | None:
    return round(statistics.median(arrival.delay_ns for arrival in arrived) / NS_PER_MS, 3) if arrived else None


def _list(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{a} to {b}" for a, b in sorted(pairs))


def _counts(counts: Mapping[Pair, int]) -> dict[str, Value]:
    return {f"{a} to {b}": count for (a, b), count in sorted(counts.items())}
