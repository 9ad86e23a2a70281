"""Slow disks and limited rates in a world of programs, whose kernel Labrys simulates."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, ClassVar, Final, cast

from harness.capabilities import SIMULATED_KERNEL
from harness.faults import Begun, Proof
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Disturbance
from nemesis.simulated.effect import Effect

if TYPE_CHECKING:
    from harness.op import Value
    from harness.world import ProgramWorld, World
    from nemesis.fault import Fault

NEEDS: Final = frozenset({SIMULATED_KERNEL})
PROVE_S: Final = 5.0
LEAST_SHARE: Final = 0.25  # of the mean time: no sync takes less
PROBE_BYTES: Final = 1_400
PROBES: Final = 100
BITS: Final = 8
KBIT: Final = 1_000
LEAST_ARRIVED: Final = 3  # probes that a rate can be read from


class InKernel(Effect):
    """The base class of the effects of this module."""

    NEEDS: ClassVar[frozenset[str]] = NEEDS
    world: ProgramWorld

    def __init__(self, fault: Fault, world: World) -> None:
        super().__init__(fault, world)
        self.world = cast("ProgramWorld", world)


class SlowSyncs(InKernel):
    """`disk-slow`."""

    async def begin(self) -> Begun:
        """Lets syncs on every target take long from now on."""
        for name in self.targets:
            self.world.slow_syncs(self.fault.id, name, self._mean_ns)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Waits until a sync on each target has taken long."""

        async def slowed() -> bool:
            syncs = self.world.slowed_syncs(self.fault.id)
            return all(syncs[name].longest_ns >= self._least_ns for name in self.targets)

        await self.fault.field.until(slowed, min(PROVE_S, self.fault.planned.lasts_s))
        return self._proof()

    async def again(self) -> Proof | None:
        """Looks no second time: `end` looks at all syncs."""
        return None

    async def end(self) -> Proof | None:
        """Lets later syncs be as fast as before. Those that go on take their time."""
        proof = self._proof()
        self.world.mend(self.fault.id)
        return proof

    def _proof(self) -> Proof:
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        measured: dict[str, Value] = {}
        syncs = self.world.slowed_syncs(self.fault.id)
        for name in self.targets:
            count, longest_ns = syncs[name].count, syncs[name].longest_ns
            measured[name] = {"syncs": count, "longest_ms": round(longest_ns / NS_PER_MS, 3)}
            if count:
                longest = f"began {count} syncs, of which the longest took {longest_ns / NS_PER_S:.3f} s"
                (good if longest_ns >= self._least_ns else bad)[name] = longest
            else:
                bad[name] = "began no sync"
        return self.fault.shown(bad, good, measured)

    @property
    def _mean_ns(self) -> int:
        return int(self.fault.options["sync_ms"] * NS_PER_MS)

    @property
    def _least_ns(self) -> int:
        return int(self._mean_ns * LEAST_SHARE)


class Rate(InKernel):
    """`packet-rate`."""

    async def begin(self) -> Begun:
        """Limits the rate of what each target sends."""
        self.fault.in_force = True
        limit = Disturbance(rate=self._bits_per_s, queue_ns=self._queue_ns)
        for name in self.targets:
            others = frozenset(self.fault.ends(name))
            self.world.disturb(self.fault.id, name, limit, arriving=False, others=others)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Sends more probes at once than the rate takes, from each target to a node that no other fault separates from it.

        The times between those that arrive show the rate, and the others are lost.
        """
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        measured: dict[str, Value] = {}
        spacing_ns = BITS * PROBE_BYTES * NS_PER_S / self._bits_per_s
        for name in self.targets:
            peers = self.fault.peers(name)
            if not peers:
                self.fault.problems[name] = "other faults keep all nodes from it"
                continue
            wait_s = (self._queue_ns + 10 * spacing_ns) / NS_PER_S
            arrived = (await self.world.probe_with([(name, peers[0])], size=PROBE_BYTES, count=PROBES, wait_s=wait_s))[
                name, peers[0]
            ]
            delays = sorted(arrival.delay_ns for arrival in arrived)
            gaps = [after - before for before, after in itertools.pairwise(delays)]
            rate = BITS * PROBE_BYTES * NS_PER_S / statistics.mean(gaps) / KBIT if any(gaps) else None
            lost = PROBES - len(arrived)
            shown = "too few to measure a rate" if rate is None else f"at {rate:.0f} kbit/s"
            text = f"sent {PROBES} large probes at once, of which {lost} were lost and the others arrived {shown}"
            is_limited = lost > 0 and (
                len(arrived) < LEAST_ARRIVED or (rate is not None and rate <= 2 * self._bits_per_s / KBIT)
            )
            (good if is_limited else bad)[name] = text
            measured[name] = {"sent": PROBES, "arrived": len(arrived), "kbit": None if rate is None else round(rate)}
        return self.fault.shown(bad, good, measured)

    async def again(self) -> Proof | None:
        """Looks no second time: the world keeps the rule until `end`, and more probes would change the seed's run."""
        return None

    async def end(self) -> Proof | None:
        """Ends the limit. What waits for it still comes at its time."""
        self.fault.in_force = False
        self.world.mend(self.fault.id)
        return None

    @property
    def _bits_per_s(self) -> float:
        return float(self.fault.options["kbit"]) * KBIT

    @property
    def _queue_ns(self) -> int:
        return int(self.fault.options["latency_ms"] * NS_PER_MS)
