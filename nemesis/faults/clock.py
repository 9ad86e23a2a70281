"""Faults of the wall clock: one jump, or repeated jumps forward and back.

If a node has its own clock, the fault sets it. If it shares the clock of this machine, the fault changes only the clock of the
system's process, with libfaketime (see `fakeclock`). Labrys refuses a node without either before the run and at the start of
the fault. Healing needs no time server: the undo note has the difference between the wall clock and the uptime at the start,
and healing restores it. No process can set the uptime.
"""

from __future__ import annotations

import abc
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import CLOCK as OWN_CLOCK
from harness.capabilities import FAKETIME, ROOT
from harness.faults import Begun, Proof
from harness.healing import UNDO_DIRECTORY
from harness.slowness import slowed
from nemesis import fakeclock, ownclock
from nemesis import options as opt
from nemesis.errors import FaultError
from nemesis.fault import CLOCK, Drawing, Fault, sentence
from nemesis.simulated import machine
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from nemesis.field import Field
    from nemesis.simulated.effect import Effect

END_TIMEOUT_S = 20.0
TOLERANCE_S = 0.1  # the uptime has hundredths, and a time daemon may slew meanwhile
SAMPLES = 12
LEAST_GAP_S = 0.03
MAX_GAP_S = 1.0
LEAST_MS = 50
MOST_MS = 288_000


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


class ClockFault(Fault):
    """The base class of faults of the clock."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, OWN_CLOCK})
    INSTEAD: ClassVar[Mapping[str, str]] = {OWN_CLOCK: FAKETIME}
    GROUPS: ClassVar[frozenset[str]] = frozenset({CLOCK})
    WHOLE_NODE: ClassVar[str | None] = None

    @classmethod
    def needs(cls, nodes: Sequence[Node], *, at_role: bool = False) -> frozenset[str]:
        """Returns the capabilities that it needs. Only libfaketime gives the process of a role its own clock."""
        return frozenset({ROOT, FAKETIME}) if at_role else super().needs(nodes)

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.before: dict[str, dict[str, float]] = {}  # node to label to seconds ahead of the uptime
        self.faked: frozenset[str] = frozenset()

    @abc.abstractmethod
    def script(self, setter: Setter) -> str:
        """Returns the script that injects the fault on a node."""

    def ahead_s(self, node: Node) -> dict[str, float]:
        """Reads how far each wall clock is ahead of the node's uptime, which no process can set; by label."""
        return {label: offs_s[0] for label, offs_s in self.samples_s(node, 1).items()}

    def samples_s(self, node: Node, samples: int, gap_s: float = 0.0) -> dict[str, list[float]]:
        """Reads `samples` times how far each wall clock is ahead of the node's uptime.

        Args:
            node: The node.
            samples: The number of readings.
            gap_s: The pause between two readings.

        Returns:
            The readings by label: of each process with its own clock, or of the machine under the node's name.

        Raises:
            FaultError: A process that needs its own clock does not run, or has no such clock.
        """
        if node.name not in self.faked:
            return {node.name: self._of_machine_s(node, samples, gap_s)}
        states = self.field.system.process_states(node, self.role)
        found = {}
        for label, role in self.labels(node).items():
            state = states.get(role)
            if state is None:
                raise FaultError(f"{label}: no process runs there, so no clock changes")
            found[label] = fakeclock.ahead_s(self.field.shell(node), state[0], role, samples=samples, gap_s=gap_s)
        return found

    def _next_ahead_s(self, node: Node) -> dict[str, float]:
        """Reads the same for the next processes that start, since another fault can have killed the current ones."""
        if node.name not in self.faked:
            return {node.name: self._of_machine_s(node, 1, 0.0)[0]}
        remote = self.field.shell(node)
        return {label: fakeclock.ahead_s(remote, None, role)[0] for label, role in self.labels(node).items()}

    def _setter(self, node: Node) -> Setter:
        if node.name not in self.faked:
            return Setter(base=ownclock.BASE, at=ownclock.AT)
        return Setter(base="base=0", at=fakeclock.at(self.role, self.field.roles_on(node)))  # its offset is absolute

    def _of_machine_s(self, node: Node, samples: int, gap_s: float) -> list[float]:
        output = self.field.shell(node).run(ownclock.readings(samples, gap_s), timeout_s=SHELL_TIMEOUT_S).stdout
        return ownclock.parsed_s(output)

    async def begin(self) -> Begun:
        """Reads the clocks, then sets them."""
        can = await self.field.capabilities()
        self.faked = frozenset(name for name in self.targets if self.role or OWN_CLOCK not in can[name].available)

        def inject(node: Node) -> None:
            self.before[node.name] = self.ahead_s(node)
            self.field.shell(node).run(self.script(self._setter(node)), timeout_s=SHELL_TIMEOUT_S)

        await self.act(self.targets, inject, "setting the clock")
        of_process = sorted(self.faked)
        return Begun(
            targets=self.targets,
            details={**self.options, "only_the_process": of_process, "problems": dict(self.problems)},
        )

    async def end(self) -> Proof | None:
        """Sets the clocks back, and verifies that they are right again.

        Raises:
            FaultError: A clock is still wrong, or its node cannot be reached.
        """
        waiting = set(self.targets)
        failed: dict[str, Exception] = {}

        def undo(node: Node) -> None:
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            if node.name not in self.before:
                return
            for label, ahead_s in self._next_ahead_s(node).items():
                off_s = ahead_s - self.before[node.name][label]
                if abs(off_s) > TOLERANCE_S:
                    raise FaultError(f"the clock of {label} is still {off_s:+.3f} s off")

        async def undone() -> bool:
            outcomes = await self.field.each(sorted(waiting), undo)
            waiting.difference_update(outcomes.done)
            failed.clear()
            failed.update(outcomes.failed)
            return not waiting

        if not await self.field.until(undone, slowed(END_TIMEOUT_S)):
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        return None


class Skew(ClockFault):
    """`clock-skew`."""

    SUMMARY: ClassVar[str] = "Sets the target's wall clock forward or back."
    PROOF: ClassVar[str] = "the wall clock compared with the uptime of the node, before, during and after the fault"
    SIMULATED: ClassVar[type[Effect] | None] = machine.ClockAside
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "offset_ms": opt.integer(
            None,
            -86_400_000,
            86_400_000,
            "The size of the jump; drawn from 50 ms to 288 s, forward or back, if not given.",
        )
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
        """Draws the nodes and, if it is not given, the offset, log-uniformly."""
        target, options = super().draw(drawing)
        size = LEAST_MS * (MOST_MS / LEAST_MS) ** drawing.rng.random()
        return target, {"offset_ms": round(size) * drawing.rng.choice((-1, 1)), **options}

    def script(self, setter: Setter) -> str:
        """Returns the script that sets the clock once."""
        return skewing(self.name, float(self.options.get("offset_ms", 0)) / 1000, setter)

    async def prove(self) -> Proof:
        """Reads the clocks again."""
        wanted_s = float(self.options.get("offset_ms", 0)) / 1000
        now = (await self.act(sorted(self.before), self.ahead_s, "reading the clock")).done
        off = {
            label: ahead_s - self.before[node][label]
            for node, found in sorted(now.items())
            for label, ahead_s in found.items()
        }
        good = {node for node, off_s in off.items() if abs(off_s - wanted_s) <= min(TOLERANCE_S, abs(wanted_s) / 2)}
        texts = [f"{node}'s clock is {off_s:+.3f} s off, expected {wanted_s:+.3f} s" for node, off_s in off.items()]
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        return Proof(
            effective=bool(off) and good == set(off),
            reason=f"{'; '.join(texts)}.",
            measured={"off_s": {node: round(off_s, 4) for node, off_s in off.items()}},
        )


class Strobe(ClockFault):
    """`clock-strobe`."""

    SUMMARY: ClassVar[str] = "Makes the target's wall clock jump forward and back, again and again."
    PROOF: ClassVar[str] = "many readings of the clock show both the jump and the true time"
    SIMULATED: ClassVar[type[Effect] | None] = machine.ClockToAndFro
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "delta_ms": opt.integer(None, 4, 86_400_000, "The size of the jump; drawn from 64 ms to 262 s if not given."),
        "period_ms": opt.integer(None, 5, 60_000, "The time between two jumps; drawn from 5 ms to 1 s if not given."),
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
        """Draws the nodes and, if they are not given, jump and period, log-uniformly."""
        target, options = super().draw(drawing)
        drawn = {
            "delta_ms": round(2 ** drawing.rng.uniform(6, 18)),
            "period_ms": round(5 * 200 ** drawing.rng.random()),
        }
        return target, {**drawn, **options}

    def script(self, setter: Setter) -> str:
        """Returns the script that makes the clock jump repeatedly."""
        delta_ms, period_ms = self.options.get("delta_ms", LEAST_MS), self.options.get("period_ms", LEAST_MS)
        return strobing(self.name, float(delta_ms) / 1000, float(period_ms) / 1000, setter)

    async def prove(self) -> Proof:
        """Reads the clocks several times."""
        delta_s = float(self.options.get("delta_ms", LEAST_MS)) / 1000
        # The readings cover several jumps, and their pause is no multiple of the period. A slow node also jumps slowly.
        gap_s = min(MAX_GAP_S, slowed(max(LEAST_GAP_S, 0.4 * float(self.options.get("period_ms", LEAST_MS)) / 1000)))

        def sample(node: Node) -> dict[str, list[float]]:
            before = self.before[node.name]
            return {
                label: [at_s - before[label] for at_s in all_s]
                for label, all_s in self.samples_s(node, SAMPLES, gap_s).items()
            }

        read = (await self.act(sorted(self.before), sample, "reading the clock")).done
        seen = {label: offs for found in read.values() for label, offs in found.items()}
        jumped = {node: sum(off_s > delta_s / 2 for off_s in offs) for node, offs in sorted(seen.items())}
        texts = [f"{node}'s clock was ahead in {count} of {SAMPLES} readings" for node, count in jumped.items()]
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        return Proof(
            effective=bool(jumped) and all(0 < count < SAMPLES for count in jumped.values()),
            reason=f"{'; '.join(texts)}; expected a jump of {delta_s:g} s.",
            measured={"off_s": {node: [round(off_s, 4) for off_s in offs] for node, offs in sorted(seen.items())}},
        )
