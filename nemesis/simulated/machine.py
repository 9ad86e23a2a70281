"""Full disks and wrong clocks in a simulated world."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from harness.capabilities import SIMULATED_CLOCK, SIMULATED_DISK, SIMULATED_SPEED
from harness.faults import Begun, Proof
from harness.units import NS_PER_MS, NS_PER_S
from nemesis.errors import FaultError
from nemesis.simulated.effect import Effect

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from harness.op import Value
    from harness.world import DriftWorld, World
    from nemesis.faults.disk import DiskFault, DiskFull

SAMPLES = 24
READ_S: Final = 0.1  # between two readings of a clock


class Full(Effect):
    """`disk-full`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_DISK})
    fault: DiskFull

    async def begin(self) -> Begun:
        """Fills the disk of every target."""
        for name in self.targets:
            self.world.fill_disk(name, full=True)
        return Begun(targets=self.targets)

    async def prove(self) -> Proof:
        """Tries to write a small file."""
        takes = {name: self.world.disk_takes(name) for name in self.targets}
        bad = {name: "takes a small file" for name, taken in takes.items() if taken}
        good = {name: "refuses a small file" for name, taken in takes.items() if not taken}
        return self.fault.shown(bad, good, {"writable": dict(takes)})

    async def again(self) -> Proof | None:
        """Looks no second time: the world keeps the disk full until `end`, and a write would change the seed's run."""
        return None

    async def end(self) -> Proof | None:
        """Frees the space, and starts the process again if it died because of the full disk.

        Raises:
            FaultError: A disk is still full, or a process had died.
        """
        killed = self.fault.killed()
        for name in self.targets:
            self.world.fill_disk(name, full=False)
        died = start_again(self.fault, self.world, killed)
        full = [name for name in self.targets if not self.world.disk_takes(name)]
        if full:
            raise FaultError(f"fault {self.fault.name} is not healed: {', '.join(full)} still refuses a small file")
        if died:
            raise FaultError(
                f"fault {self.fault.name}: the process did not survive the full disk on {', '.join(died)}; it was started "
                "again"
            )
        return None


def start_again(fault: DiskFault, world: World, killed: Collection[str]) -> list[str]:
    """Starts the processes of a fault of a disk that have ended because of it.

    Args:
        fault: The fault.
        world: The world.
        killed: The targets whose processes another fault has killed, and starts again; see `DiskFault.killed`.

    Returns:
        The names of their nodes.
    """
    died: dict[str, None] = {}
    for name in fault.targets:
        node = fault.field.node(name)
        for role in fault.roles_on(node):
            if name not in killed and not world.listens(name, role):
                died[name] = None
                fault.field.system.start(node, role)
    return list(died)


class ClockAside(Effect):
    """`clock-skew`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_CLOCK})

    async def begin(self) -> Begun:
        """Sets the wall clock of every target forward or back."""
        for name in self.targets:
            self.world.set_clock(name, ahead_ns=self._ahead_ns)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Compares the clocks with the true time."""
        off = {name: self.world.ahead_ns(name) for name in self.targets}
        texts = {name: f"shows a time that is {ahead_ns / NS_PER_S:+.3f} s off" for name, ahead_ns in off.items()}
        good = {name: texts[name] for name, ahead_ns in off.items() if ahead_ns == self._ahead_ns and ahead_ns}
        bad = {name: text for name, text in texts.items() if name not in good}
        return self.fault.shown(bad, good, {"off_s": {name: ahead_ns / NS_PER_S for name, ahead_ns in off.items()}})

    async def end(self) -> Proof | None:
        """Sets the clocks right."""
        for name in self.targets:
            self.world.set_clock(name, ahead_ns=0)
        return None

    @property
    def _ahead_ns(self) -> int:
        return int(self.fault.options.get("offset_ms", 0)) * NS_PER_MS


class ClockToAndFro(Effect):
    """`clock-strobe`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_CLOCK})

    async def begin(self) -> Begun:
        """Makes the wall clock of every target jump forward and back repeatedly."""
        for name in self.targets:
            self.world.set_clock(name, ahead_ns=self._delta_ns, period_ns=self._period_ns)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Reads the clocks until each was ahead and right, in more than four periods at most."""
        seen: dict[str, list[float]] = {name: [] for name in self.targets}
        for _ in range(SAMPLES):
            for name, offs_s in seen.items():
                offs_s.append(self.world.ahead_ns(name) / NS_PER_S)
            if all(_jumps(offs_s) for offs_s in seen.values()):
                break
            await asyncio.sleep(self._period_ns / NS_PER_S / 5)
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        for name, offs_s in seen.items():
            ahead = sum(off_s > 0 for off_s in offs_s)
            text = f"was {self._delta_ns / NS_PER_S:g} s ahead in {ahead} of {len(offs_s)} readings"
            (good if _jumps(offs_s) else bad)[name] = text
        measured: dict[str, Value] = {name: list(offs_s) for name, offs_s in seen.items()}
        return self.fault.shown(bad, good, {"off_s": measured})

    async def again(self) -> Proof | None:
        """Looks no second time: the world lets the clock jump until `end`."""
        return None

    async def end(self) -> Proof | None:
        """Sets the clocks right."""
        for name in self.targets:
            self.world.set_clock(name, ahead_ns=0)
        return None

    @property
    def _delta_ns(self) -> int:
        return int(self.fault.options["delta_ms"]) * NS_PER_MS

    @property
    def _period_ns(self) -> int:
        return int(self.fault.options["period_ms"]) * NS_PER_MS


def _jumps(offs_s: Sequence[float]) -> bool:
    """Returns whether a clock was ahead in some readings, and not in others."""
    return len({off_s > 0 for off_s in offs_s}) == 2


class ClockDrifts(Effect):
    """`clock-drift`."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_SPEED})
    world: DriftWorld

    async def begin(self) -> Begun:
        """Gives the clocks of every target another speed."""
        for name in self.targets:
            self.world.set_speed(name, self._speed)
        return Begun(targets=self.targets, details=dict(self.fault.options))

    async def prove(self) -> Proof:
        """Reads the clocks of every target twice."""
        first = {name: self._read(name) for name in self.targets}
        await asyncio.sleep(READ_S)
        bad: dict[str, str] = {}
        good: dict[str, str] = {}
        measured: dict[str, Value] = {}
        for name, earlier in first.items():
            true_ns, *passed_ns = (now - then for now, then in zip(self._read(name), earlier, strict=True))
            speeds = [round(time_ns / true_ns, 4) for time_ns in passed_ns]
            measured[name] = {"monotonic": speeds[0], "wall": speeds[1]}
            text = f"has a monotonic clock with {speeds[0]:g} times the true speed, and a wall clock with {speeds[1]:g}"
            drifts = self._speed != 1 and all(abs(speed - self._speed) <= self._speed / 100 for speed in speeds)
            (good if drifts else bad)[name] = text
        return self.fault.shown(bad, good, measured)

    async def again(self) -> Proof | None:
        """Looks no second time: the world keeps the speed until `end`."""
        return None

    async def end(self) -> Proof | None:
        """Gives the clocks their true speed, and sets the wall clock right. The monotonic clock keeps what it has gained."""
        for name in self.targets:
            self.world.set_speed(name, 1)
            self.world.set_clock(name, ahead_ns=0)
        return None

    def _read(self, name: str) -> tuple[int, int, int]:
        """Returns the true time, the monotonic clock and the wall clock of a node, from any start."""
        now_ns = self.world.now_ns
        return now_ns, self.world.monotonic_ns(name), now_ns + self.world.ahead_ns(name)

    @property
    def _speed(self) -> float:
        return float(self.fault.options["speed"])
