"""Sets wall clocks on real nodes.

If a node has its own clock, the actor sets it. If it shares the clock of this machine, the actor changes only the clock of the
system's process, with libfaketime (see `fakeclock`). Healing needs no time server: the undo note has the difference between
the wall clock and the uptime at the start, and healing restores it. No process can set the uptime.

The proof reads the clock that the actor set: that of the machine, or that of the process, by the word of the process
(`harness.service.Service.clock`). Without its word, the fault has no proof.
"""

from __future__ import annotations

import abc
import asyncio
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.capabilities import CLOCK as OWN_CLOCK
from harness.errors import LabrysError
from harness.faults import Begun, Proof
from harness.healing import UNDO_DIRECTORY
from harness.process_clock import ClockReading
from harness.slowness import slowed
from nemesis import fakeclock, ownclock
from nemesis.actor import OnNodes
from nemesis.errors import FaultError
from nemesis.fault import brief, sentence
from nemesis.faults.clock import LEAST_MS
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from harness.node import Node
    from nemesis.fault import Fault
    from nemesis.faults.clock import ClockFault, Skew, Strobe

END_TIMEOUT_S = 20.0
PROVE_S = 5.0  # how long processes may take to say their time
LOOK_S = 1.5  # how long one of them may take
TOLERANCE_S = 0.1  # the uptime has hundredths, and a time daemon may slew meanwhile
SAMPLES = 12
LEAST_GAP_S = 0.03
MAX_GAP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setter:
    """How scripts set the clock of a node.

    Attributes:
        base: A script that sets $base, the reference for `at`.
        at: The shell function `at OFFSET`, which sets the clock ahead by so many seconds, or back.
    """

    base: str
    at: str


def skewing(name: str, offset_s: float, setter: Setter) -> str:
    """Returns a script that writes the undo note and sets the clock ahead.

    Args:
        name: The note's name.
        offset_s: By how many seconds; negative: back.
        setter: How to set the clock.
    """
    return _with_note(name, f"{setter.at}\nat {offset_s:.3f}", setter)


def strobing(name: str, delta_s: float, period_s: float, setter: Setter) -> str:
    """Returns a script that writes the undo note, and makes the clock jump by `delta_s` and back, once in each `period_s`."""
    pid_file = _strobe_pid(name)
    loop = f"""echo $$ > {pid_file}
base=$1
{setter.at}
while :; do at {delta_s:.3f}; sleep {period_s:.3f}; at 0; sleep {period_s:.3f}; done"""
    start = f'setsid sh -c {shlex.quote(loop)} strobe "$base" >/dev/null 2>&1 </dev/null &'
    return _with_note(name, f"{start}\nuntil [ -e {pid_file} ]; do sleep 0.01; done", setter)


def _strobe_pid(name: str) -> str:
    return f"/run/labrys/strobe-{name}.pid"


def _stop_strobe(name: str) -> str:
    pid_file = _strobe_pid(name)
    return f"""if [ -e {pid_file} ]; then
  pid=$(cat {pid_file})
  kill -s KILL -- -$pid 2>/dev/null
  i=0; while grep -q '^State:[[:space:]]*[^Z[:space:]]' /proc/$pid/status 2>/dev/null; do
    i=$((i+1)); [ $i -lt 100 ] || exit 1; sleep 0.01
  done
  rm -f {pid_file}
fi"""


def _with_note(name: str, effect: str, setter: Setter) -> str:
    undo = f"base=BASE\n{setter.at}\n{_stop_strobe(name)}\nat 0"
    note = making(name, effect="", undo=undo)
    return f'{setter.base}\n{note}\nsed -i "s/^base=BASE$/base=$base/" {UNDO_DIRECTORY}/{name}\n{effect}\n'


class ClockOnNodes(OnNodes):
    """The base class of actors that set clocks."""

    fault: ClockFault

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.before: dict[str, float] = {}  # of each machine whose clock was set: seconds ahead of the uptime
        self.faked: frozenset[str] = frozenset()
        self.injected: set[str] = set()
        self.seen: dict[str, ClockReading] = {}  # what each process said during the fault, by label
        self._said_before: dict[str, ClockReading] = {}

    @abc.abstractmethod
    def script(self, setter: Setter) -> str:
        """Returns the script that injects the fault on a node."""

    async def begin(self) -> Begun:
        """Sets the clocks, after a look at the programs that libfaketime must reach."""
        can = await self.field.capabilities()
        self.faked = frozenset(name for name in self.targets if self.role or OWN_CLOCK not in can[name].available)
        # A machine with its own clock may differ from this one, which is the reference of some processes' words.
        apart = {
            label: of for label, of in self._processes(self.faked).items() if OWN_CLOCK in can[of[0].name].available
        }
        self._said_before = await self._say(apart)

        def inject(node: Node) -> None:
            if node.name in self.faked:
                self._check_processes(node)
            else:
                self.before[node.name] = self._machine_s(node, 1)[0]
            self.field.shell(node).run(self.script(self._setter(node)), timeout_s=SHELL_TIMEOUT_S)
            self.injected.add(node.name)

        await self.act(self.targets, inject, "setting the clock")
        of_process = sorted(self.faked)
        return Begun(
            targets=self.targets,
            details={**self.options, "only_the_process": of_process, "problems": dict(self.problems)},
        )

    def _check_processes(self, node: Node) -> None:
        states = self.field.system.process_states(node, self.role)
        for label, role in self.fault.labels(node).items():
            state = states.get(role)
            if state is None:
                raise FaultError(f"{label}: no process runs there, so no clock changes")
            fakeclock.check_process(self.field.shell(node), state[0])

    def _setter(self, node: Node) -> Setter:
        if node.name not in self.faked:
            return Setter(base=ownclock.BASE, at=ownclock.AT)
        return Setter(base="base=0", at=fakeclock.at(self.role, self.field.roles_on(node)))  # its offset is absolute

    def _machine_s(self, node: Node, samples: int, gap_s: float = 0.0) -> list[float]:
        """Reads `samples` times how far the clock of a machine is ahead of its uptime, which no process can set."""
        output = self.field.shell(node).run(ownclock.readings(samples, gap_s), timeout_s=SHELL_TIMEOUT_S).stdout
        return ownclock.parsed_s(output)

    async def machines_off_s(self, samples: int, gap_s: float = 0.0) -> dict[str, list[float]]:
        """Reads `samples` times how far off the clock of each machine is that the fault set."""

        def read(node: Node) -> list[float]:
            return [ahead_s - self.before[node.name] for ahead_s in self._machine_s(node, samples, gap_s)]

        machines = sorted(self.injected - self.faked)
        return (await self.act(machines, read, "reading the clock")).done if machines else {}

    def _processes(self, names: Iterable[str]) -> dict[str, tuple[Node, str]]:
        """Returns the node and the role of each process with a clock of its own on some nodes, by label."""
        nodes = [self.field.node(name) for name in sorted(names)]
        return {label: (node, role) for node in nodes for label, role in self.fault.labels(node).items()}

    def set_aside(self) -> dict[str, tuple[Node, str]]:
        """Returns the node and the role of each process whose clock the fault set, by label."""
        return self._processes(self.injected & self.faked)

    async def _say(self, processes: Mapping[str, tuple[Node, str]]) -> dict[str, ClockReading]:
        """Asks processes for their time at once; those that do not say it are left out."""
        if not self.field.system.tells_time():
            return {}
        asked = [self.field.system.service(role).clock(node, slowed(LOOK_S)) for node, role in processes.values()]
        said = await asyncio.gather(*asked, return_exceptions=True)
        for label, reading in zip(processes, said, strict=True):
            if isinstance(reading, LabrysError):
                self.problems[label] = f"asking for its time failed: {brief(reading)}"
            elif isinstance(reading, BaseException):
                raise reading
        readings = zip(processes, said, strict=True)
        return {label: reading for label, reading in readings if isinstance(reading, ClockReading)}

    async def say_off(self, processes: Mapping[str, tuple[Node, str]]) -> dict[str, ClockReading]:
        """Asks processes how far their clocks are off since the fault began."""
        readings = {}
        for label, reading in (await self._say(processes)).items():
            before = self._said_before.get(label)
            readings[label] = reading if before is None else reading.since(before)
        return readings

    def silence(self, labels: Iterable[str]) -> list[str]:
        """Returns a sentence for each process that did not say its time, and for each problem."""
        why = "did not say its time during the proof"
        if not self.field.system.tells_time():
            why = "never says its time, so nobody saw the effect; docs/guide/new-system.md says how it can (`clock`)"
        texts = [f"{label}'s process {why}" for label in labels if label not in self.problems]
        return [*texts, *(f"{label}: {text}" for label, text in self.problems.items())]

    async def again(self) -> Proof | None:
        """Reads the clocks again. What a process said at the first look does not count."""
        earlier, self.seen = self.seen, {}
        proof = await self.prove()
        self.seen = {**earlier, **self.seen}
        return proof

    async def end(self) -> Proof | None:
        """Sets the clocks back, and verifies that they are right again.

        Raises:
            FaultError: A clock is still wrong, or its node cannot be reached.
        """
        waiting = set(self.targets)
        failed: dict[str, Exception] = {}

        def undo(node: Node) -> None:
            remote = self.field.shell(node)
            remote.run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            if node.name not in self.injected:
                return
            if node.name in self.faked:
                # The clock of the next process, since another fault can have killed this one.
                offsets = {label: fakeclock.offset_s(remote, role) for label, role in self.fault.labels(node).items()}
            else:
                offsets = {node.name: self._machine_s(node, 1)[0] - self.before[node.name]}
            for label, off_s in offsets.items():
                if abs(off_s) > TOLERANCE_S:
                    raise FaultError(f"the clock of {label} is still {off_s:+.3f} s off")

        async def undone() -> bool:
            outcomes = await self.field.each(sorted(waiting), undo)
            waiting.difference_update(outcomes.done)
            failed.clear()
            failed.update(outcomes.failed)
            if waiting:
                return False
            # A process that said its time during the fault is asked again. It need not answer, since it may be dead.
            said = await self.say_off({label: of for label, of in self.set_aside().items() if label in self.seen})
            wrong = {label: reading for label, reading in said.items() if reading.is_off}
            failed.update(
                {label: FaultError(f"its clock is still {reading.text} off") for label, reading in wrong.items()}
            )
            return not wrong

        if not await self.field.until(undone, slowed(END_TIMEOUT_S)):
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        return None


class SkewOnNodes(ClockOnNodes):
    """`clock-skew`."""

    fault: Skew

    def script(self, setter: Setter) -> str:
        """Returns the script that sets the clock once."""
        return skewing(self.name, float(self.options.get("offset_ms", 0)) / 1000, setter)

    async def prove(self) -> Proof:
        """Reads the clocks of machines. Asks processes until each is as far off as wanted, or the time is over."""
        wanted_s = float(self.options.get("offset_ms", 0)) / 1000
        off = {
            name: ClockReading(least_s=offs_s[0], most_s=offs_s[0], source="")
            for name, offs_s in (await self.machines_off_s(1)).items()
        }
        waiting = self.set_aside()

        async def shown_by_all() -> bool:
            for label, reading in (await self.say_off(waiting)).items():
                self.seen[label] = reading.narrowed(self.seen.get(label, reading))
                if shows(self.seen[label], wanted_s):
                    del waiting[label]
            return not waiting or not self.field.system.tells_time()

        await self.field.until(shown_by_all, slowed(PROVE_S))
        off |= self.seen
        silent = [label for label in self.set_aside() if label not in self.seen]
        texts = [
            f"{label}'s clock is {reading.text} off{reading.source and f' by {reading.source}'}, expected {wanted_s:+.3f} s"
            for label, reading in sorted(off.items())
        ]
        texts += self.silence(silent)
        return Proof(
            effective=bool(off) and not silent and all(shows(reading, wanted_s) for reading in off.values()),
            reason=f"{'; '.join(texts)}.",
            measured={
                "off_s": {label: round(reading.middle_s, 4) for label, reading in sorted(off.items())},
                "between_s": {
                    label: [round(reading.least_s, 4), round(reading.most_s, 4)]
                    for label, reading in sorted(off.items())
                },
                "said_by": {label: reading.source for label, reading in sorted(self.seen.items())},
            },
        )


class StrobeOnNodes(ClockOnNodes):
    """`clock-strobe`."""

    fault: Strobe

    def script(self, setter: Setter) -> str:
        """Returns the script that makes the clock jump repeatedly."""
        delta_ms, period_ms = self.options.get("delta_ms", LEAST_MS), self.options.get("period_ms", LEAST_MS)
        return strobing(self.name, float(delta_ms) / 1000, float(period_ms) / 1000, setter)

    async def prove(self) -> Proof:
        """Reads the clocks several times."""
        delta_s = float(self.options.get("delta_ms", LEAST_MS)) / 1000
        # The readings cover several jumps, and their pause is no multiple of the period. A slow node also jumps slowly.
        gap_s = min(MAX_GAP_S, slowed(max(LEAST_GAP_S, 0.4 * float(self.options.get("period_ms", LEAST_MS)) / 1000)))

        seen = await self.machines_off_s(SAMPLES, gap_s)
        ahead = {name: sum(off_s > delta_s / 2 for off_s in offs_s) for name, offs_s in seen.items()}
        right = {name: len(offs_s) - ahead[name] for name, offs_s in seen.items()}
        processes = self.set_aside()

        async def sampled() -> bool:
            for label, reading in (await self.say_off(processes)).items():
                self.seen[label] = reading
                seen.setdefault(label, []).append(reading.middle_s)
                ahead[label] = ahead.get(label, 0) + (reading.least_s > 0)
                right[label] = right.get(label, 0) + (not reading.is_off and reading.most_s < delta_s)
            enough = all(ahead.get(label) and right.get(label) and len(seen[label]) >= SAMPLES for label in processes)
            return enough or not self.field.system.tells_time()

        if processes:
            await self.field.until(sampled, slowed(PROVE_S), every_s=gap_s)
        silent = [label for label in processes if label not in seen]
        texts = [
            f"{label}'s clock was ahead in {ahead[label]} of {len(offs)} readings"
            for label, offs in sorted(seen.items())
        ]
        texts += self.silence(silent)
        return Proof(
            effective=bool(seen) and not silent and all(ahead[label] and right[label] for label in seen),
            reason=f"{'; '.join(texts)}; expected a jump of {delta_s:g} s.",
            measured={"off_s": {label: [round(off_s, 4) for off_s in offs] for label, offs in sorted(seen.items())}},
        )


def shows(reading: ClockReading, wanted_s: float) -> bool:
    """Returns whether a clock is certainly off, and as far as wanted within the tolerance."""
    tolerance_s = min(TOLERANCE_S, abs(wanted_s) / 2)
    return reading.is_off and reading.least_s - tolerance_s <= wanted_s <= reading.most_s + tolerance_s
