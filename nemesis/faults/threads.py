"""Holds single threads of a JVM, as on a busy machine that takes the processor away from one thread and not from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import JAVA, ROOT
from nemesis import options as opt
from nemesis.fault import PROCESS, Drawing, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nemesis.fault import Drawn

SEEDS = 2**31 - 1


class HoldThreads(Fault):
    """`thread-stall`."""

    EFFECT: ClassVar[str] = "{nodes} had stalled threads"
    SUMMARY: ClassVar[str] = "Holds single threads of a JVM for up to 100 ms, each at a drawn line of the program."
    PROOF: ClassVar[str] = (
        "the JVM names each held thread with its line, and reports it as suspended; at the end, it reports none"
    )
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT})
    OF_SYSTEM: ClassVar[frozenset[str]] = frozenset({JAVA})
    GROUPS: ClassVar[frozenset[str]] = frozenset({PROCESS})
    WHOLE_NODE: ClassVar[str | None] = None
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "per_second": opt.number(
            20, 0.1, 500, "The mean number of lines in a second that begin to wait for a thread, for up to 5 s each."
        ),
        "most_ms": opt.number(100, 1, 10_000, "The longest time for which a thread is held; the shortest is 1 ms."),
        "code": opt.text(
            None, "The packages or classes of the lines, with + between them; by default the packages of the program."
        ),
        "seed": opt.integer(None, 0, SEEDS, "Selects the lines and the times; drawn if not given."),
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the nodes, and the number that selects the lines and the times."""
        return super().draw(drawing).with_usual({"seed": drawing.rng.randint(0, SEEDS)})
