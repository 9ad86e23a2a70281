"""Faults of the wall clock: one jump, or repeated jumps forward and back.

Labrys refuses a node without a clock of its own and without libfaketime, before the run and at the start of the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import CLOCK as OWN_CLOCK
from harness.capabilities import FAKETIME, ROOT, SIMULATED_SPEED
from nemesis import options as opt
from nemesis.fault import CLOCK, Drawing, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node
    from nemesis.fault import Drawn

LEAST_MS = 50
MOST_MS = 288_000


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


class Skew(ClockFault):
    """`clock-skew`."""

    EFFECT: ClassVar[str] = "{nodes} had a wrong clock"
    SUMMARY: ClassVar[str] = "Sets the target's wall clock forward or back."
    PROOF: ClassVar[str] = (
        "the clock of the machine, compared with its uptime; if only the process has another clock, what the process itself "
        "says about the time"
    )
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "offset_ms": opt.integer(
            None,
            -86_400_000,
            86_400_000,
            "The size of the jump; drawn from 50 ms to 288 s, forward or back, if not given.",
        )
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes and, if it is not given, the offset, log-uniformly."""
        drawn = super().draw(drawing)
        size = LEAST_MS * (MOST_MS / LEAST_MS) ** drawing.rng.random()
        return drawn.with_usual({"offset_ms": round(size) * drawing.rng.choice((-1, 1))})


class Strobe(ClockFault):
    """`clock-strobe`."""

    EFFECT: ClassVar[str] = "{nodes} had a clock that jumped"
    SUMMARY: ClassVar[str] = "Makes the target's wall clock jump forward and back, again and again."
    PROOF: ClassVar[str] = (
        "many readings of the machine's clock, or answers of the process itself, show both the jump and the true time"
    )
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "delta_ms": opt.integer(None, 4, 86_400_000, "The size of the jump; drawn from 64 ms to 262 s if not given."),
        "period_ms": opt.integer(None, 5, 60_000, "The time between two jumps; drawn from 5 ms to 1 s if not given."),
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes and, if they are not given, jump and period, log-uniformly."""
        drawn = super().draw(drawing)
        return drawn.with_usual(
            {
                "delta_ms": round(2 ** drawing.rng.uniform(6, 18)),
                "period_ms": round(5 * 200 ** drawing.rng.random()),
            }
        )


class Drift(Fault):
    """`clock-drift`."""

    EFFECT: ClassVar[str] = "{nodes} had clocks with another speed"
    SUMMARY: ClassVar[str] = (
        "Lets all clocks of the target, and its time-outs, run faster or slower, only in the simulator."
    )
    PROOF: ClassVar[str] = (
        "two readings of the monotonic clock and of the wall clock of the node, as its programs read them"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_SPEED})
    GROUPS: ClassVar[frozenset[str]] = frozenset({CLOCK})
    WHOLE_NODE: ClassVar[str | None] = "all processes of a node have its clocks"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "speed": opt.number(
            None, 0.01, 100, "The speed of the clocks, as a multiple of the true one; drawn from 0.5 to 2 if not given."
        )
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes and, if it is not given, the speed, log-uniformly."""
        drawn = super().draw(drawing)
        return drawn.with_usual({"speed": round(2 ** drawing.rng.uniform(-1, 1), 3)})
