"""Slow disks and limited rates in a world of programs, whose kernel Labrys simulates."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, ClassVar, Final

from harness.capabilities import SIMULATED_KERNEL
from harness.faults import Begun, Proof
from harness.units import NS_PER_MS, NS_PER_S
from harness.world import Disturbance
from nemesis.simulated.effect import Effect
from nemesis.simulated.network import Disturbed

if TYPE_CHECKING:
    from harness.op import Value
    from harness.world import ProgramWorld
    from harness.world import SlowSyncs as Syncs

NEEDS: Final = frozenset({SIMULATED_KERNEL})
PROVE_S: Final = 5.0
LEAST_SHARE: Final = 0.25  # of the mean time: no sync takes less
PROBE_BYTES: Final = 1_400
PROBES: Final = 100
BITS: Final = 8
KBIT: Final = 1_000
LEAST_ARRIVED: Final = 3  # probes that a rate can be read from


class SlowSyncs(Effect):
    """`disk-slow`."""

    NEEDS: ClassVar[frozenset[str]] = NEEDS
    world: ProgramWorld

    async def begin(self) -> Begun:
        """Lets syncs on every target take long from now on."""
        for name in self.targets:
            self.world.slow_syncs(self.fault.id, name, self._mean_ns)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Waits until a sync on each target has taken long."""

        async def slowed() -> bool:
            syncs = self.world.slowed_syncs(self.fault.id)
            return all(self._is_slow(syncs[name]) for name in self.targets)

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
            own = syncs[name]
            measured[name] = {
                "syncs": own.count,
                "longest_ms": round(own.longest_ns / NS_PER_MS, 3),
                "before_ms": round(own.before_ns / NS_PER_MS, 3),
            }
            if not own.count:
                bad[name] = "began no sync"
            elif not own.before_ns:
                bad[name] = "had made no sync before, so there is none to compare with"
            else:
                longest_s, before_s = own.longest_ns / NS_PER_S, own.before_ns / NS_PER_S
                (good if self._is_slow(own) else bad)[name] = (
                    f"began {own.count} syncs, of which the longest took {longest_s:.3f} s, and before {before_s:.3f} s"
                )
        return self.fault.shown(bad, good, measured)

    def _is_slow(self, syncs: Syncs) -> bool:
        """Returns whether a sync took as long as the fault makes it, and longer than each one before."""
        return 0 < syncs.before_ns < syncs.longest_ns and syncs.longest_ns >= self._least_ns

    @property
    def _mean_ns(self) -> int:
        return int(self.fault.options["sync_ms"] * NS_PER_MS)

    @property
    def _least_ns(self) -> int:
        return int(self._mean_ns * LEAST_SHARE)


class Rate(Disturbed):
    """`packet-rate`."""

    NEEDS: ClassVar[frozenset[str]] = NEEDS
    world: ProgramWorld

    def disturbance(self) -> Disturbance:
        """Returns the limit."""
        return Disturbance(rate=self._bits_per_s, queue_ns=self._queue_ns)

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

    @property
    def _bits_per_s(self) -> float:
        return float(self.fault.options["kbit"]) * KBIT

    @property
    def _queue_ns(self) -> int:
        return int(self.fault.options["latency_ms"] * NS_PER_MS)
