"""Faults of a node's wall clock: set aside once, or back and forth all the time.

Only for nodes with a clock of their own; a node that shares this machine's clock lacks the capability and is refused, twice:
before the run and when the fault begins. Healing needs no time server: when the fault begins, the difference between the
wall clock and the uptime, which no one can set, is kept in the undo note, and the clock is put back by it.
"""

from __future__ import annotations

import abc
import shlex
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import CLOCK as OWN_CLOCK
from harness.capabilities import ROOT
from harness.faults import Begun, Proof
from harness.healing import UNDO_DIRECTORY
from nemesis import options as opt
from nemesis.errors import FaultError
from nemesis.fault import CLOCK, Drawing, Fault, sentence
from nemesis.undo import SHELL_TIMEOUT_S, making, undoing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from nemesis.field import Field

END_TIMEOUT_S = 20.0
TOLERANCE_S = 0.1  # the uptime has hundredths, and a time daemon may slew meanwhile
SAMPLES = 12
LEAST_MS = 50
MOST_MS = 288_000
STROBE_PID = "/run/labrys/strobe.pid"

# Sets $base to what the wall clock says at an uptime of 0.
_BASE = """read up rest < /proc/uptime
base=$(awk -v now="$(date +%s.%N)" -v up="$up" 'BEGIN { printf "%.3f", now - up }')"""
# `at OFFSET` sets the clock to what it should say by $base, and that much more.
_AT = """at() {
  read up rest < /proc/uptime
  date -s "@$(awk -v base="$base" -v up="$up" -v more="$1" 'BEGIN { printf "%.3f", base + up + more }')" >/dev/null
}"""
_PUT_BACK = f"""base=BASE
{_AT}
if [ -e {STROBE_PID} ]; then
  pid=$(cat {STROBE_PID})
  kill -s KILL -- -$pid 2>/dev/null
  i=0; while grep -q '^State:[[:space:]]*[^Z[:space:]]' /proc/$pid/status 2>/dev/null; do
    i=$((i+1)); [ $i -lt 100 ] || exit 1; sleep 0.01
  done
  rm -f {STROBE_PID}
fi
at 0"""


def skewing(name: str, offset_s: float) -> str:
    """Returns a script that leaves the undo note and sets the clock aside by `offset_s`."""
    return _with_note(name, f"{_AT}\nat {offset_s:.3f}")


def strobing(name: str, delta_s: float, period_s: float) -> str:
    """Returns a script that leaves the undo note and lets the clock jump by `delta_s` and back, each after `period_s`."""
    loop = f"""echo $$ > {STROBE_PID}
base=$1
{_AT}
while :; do at {delta_s:.3f}; sleep {period_s:.3f}; at 0; sleep {period_s:.3f}; done"""
    start = f'setsid sh -c {shlex.quote(loop)} strobe "$base" >/dev/null 2>&1 </dev/null &'
    return _with_note(name, f"{start}\nuntil [ -e {STROBE_PID} ]; do sleep 0.01; done")


def _with_note(name: str, effect: str) -> str:
    note = making(name, effect="", undo=_PUT_BACK)
    return f'{_BASE}\n{note}\nsed -i "s/^base=BASE$/base=$base/" {UNDO_DIRECTORY}/{name}\n{effect}\n'


class ClockFault(Fault):
    """Common to faults of the clock."""

    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT, OWN_CLOCK})
    GROUPS: ClassVar[frozenset[str]] = frozenset({CLOCK})

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        super().__init__(planned=planned, targets=targets, field=field)
        self.before: dict[str, float] = {}

    @abc.abstractmethod
    def script(self) -> str:
        """Returns what makes the fault on a node."""

    def ahead_s(self, node: Node) -> float:
        """Reads how far a node's wall clock is ahead of its uptime, which no one can set."""
        return float(self.field.shell(node).run(f'{_BASE}\necho "$base"', timeout_s=SHELL_TIMEOUT_S).stdout)

    async def begin(self) -> Begun:
        """Measures the clocks, then sets them."""

        def strike(node: Node) -> None:
            self.before[node.name] = self.ahead_s(node)
            self.field.shell(node).run(self.script(), timeout_s=SHELL_TIMEOUT_S)

        await self.act(self.targets, strike, "setting the clock")
        return Begun(targets=self.targets, details={**self.options, "problems": dict(self.problems)})

    async def end(self) -> Proof | None:
        """Puts the clocks back and verifies that they show what they would have shown.

        Raises:
            FaultError: A clock is still wrong, or its node cannot be reached.
        """
        waiting = set(self.targets)
        failed: dict[str, Exception] = {}

        def undo(node: Node) -> None:
            self.field.shell(node).run(undoing(self.name), timeout_s=SHELL_TIMEOUT_S)
            now_s = self.ahead_s(node)
            off_s = now_s - self.before.get(node.name, now_s)
            if abs(off_s) > TOLERANCE_S:
                raise FaultError(f"its clock is still {off_s:+.3f} s off")

        async def undone() -> bool:
            outcomes = await self.field.each(sorted(waiting), undo)
            waiting.difference_update(outcomes.done)
            failed.clear()
            failed.update(outcomes.failed)
            return not waiting

        if not await self.field.until(undone, END_TIMEOUT_S):
            raise FaultError(f"fault {self.name} is not healed: {sentence(failed)}")
        return None


class Skew(ClockFault):
    """`clock-skew`."""

    SUMMARY: ClassVar[str] = "The target's wall clock is set ahead or back."
    PROOF: ClassVar[str] = "the wall clock against the node's uptime, before, during and after"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "offset_ms": opt.integer(None, -86_400_000, 86_400_000, "How far; drawn between 50 ms and 288 s, either way.")
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
        """Draws the nodes and, where it is not given, the offset: small ones as likely as large ones."""
        target, options = super().draw(drawing)
        size = LEAST_MS * (MOST_MS / LEAST_MS) ** drawing.rng.random()
        return target, {"offset_ms": round(size) * drawing.rng.choice((-1, 1)), **options}

    def script(self) -> str:
        """Returns the setting aside."""
        return skewing(self.name, float(self.options.get("offset_ms", 0)) / 1000)

    async def prove(self) -> Proof:
        """Measures the clocks again."""
        wanted_s = float(self.options.get("offset_ms", 0)) / 1000
        now = (await self.act(sorted(self.before), self.ahead_s, "reading the clock")).done
        off = {node: ahead_s - self.before[node] for node, ahead_s in sorted(now.items())}
        good = {node for node, off_s in off.items() if abs(off_s - wanted_s) <= min(TOLERANCE_S, abs(wanted_s) / 2)}
        texts = [
            f"{node}'s clock is {off_s:+.3f} s off, {wanted_s:+.3f} s was asked for" for node, off_s in off.items()
        ]
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        return Proof(
            effective=bool(off) and good == set(off),
            reason=f"{'; '.join(texts)}.",
            measured={"off_s": {node: round(off_s, 4) for node, off_s in off.items()}},
        )


class Strobe(ClockFault):
    """`clock-strobe`."""

    SUMMARY: ClassVar[str] = "The target's wall clock jumps ahead and back, over and over."
    PROOF: ClassVar[str] = "the clock, read many times, shows both the jump and the true time"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "delta_ms": opt.integer(None, 4, 86_400_000, "How far it jumps; drawn between 64 ms and 262 s."),
        "period_ms": opt.integer(None, 5, 60_000, "How long it stays; drawn between 5 ms and 1 s."),
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
        """Draws the nodes and, where they are not given, jump and period: small ones as likely as large ones."""
        target, options = super().draw(drawing)
        drawn = {
            "delta_ms": round(2 ** drawing.rng.uniform(6, 18)),
            "period_ms": round(5 * 200 ** drawing.rng.random()),
        }
        return target, {**drawn, **options}

    def script(self) -> str:
        """Returns the jumping."""
        delta_ms, period_ms = self.options.get("delta_ms", LEAST_MS), self.options.get("period_ms", LEAST_MS)
        return strobing(self.name, float(delta_ms) / 1000, float(period_ms) / 1000)

    async def prove(self) -> Proof:
        """Reads the clocks a number of times."""
        delta_s = float(self.options.get("delta_ms", LEAST_MS)) / 1000

        def sample(node: Node) -> list[float]:
            return [self.ahead_s(node) - self.before[node.name] for _ in range(SAMPLES)]

        seen = (await self.act(sorted(self.before), sample, "reading the clock")).done
        jumped = {node: sum(off_s > delta_s / 2 for off_s in offs) for node, offs in sorted(seen.items())}
        texts = [f"{node}'s clock was ahead in {count} of {SAMPLES} readings" for node, count in jumped.items()]
        texts += [f"{node}: {text}" for node, text in self.problems.items()]
        return Proof(
            effective=bool(jumped) and all(0 < count < SAMPLES for count in jumped.values()),
            reason=f"{'; '.join(texts)}; a jump of {delta_s:g} s was asked for.",
            measured={"off_s": {node: [round(off_s, 4) for off_s in offs] for node, offs in sorted(seen.items())}},
        )
