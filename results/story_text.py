"""The story of a violation on the terminal, one moment after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.plain import one_line
from harness.units import NS_PER_S
from results.formatting import seconds
from results.story import HEADS, OPERATION, at, differences, held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from harness.counterexample import Counterexample
    from harness.node_states import ClusterState
    from results.story import Moment

MAX_SENTENCE = 2_000


def print_story(console: Console, example: Counterexample, moments: Sequence[Moment], *, reason: str) -> None:
    """Prints a violation and the events around it.

    Args:
        console: The console for the output.
        example: The counterexample.
        moments: The events, in the order of time.
        reason: The run's sentence.
    """
    console.print(Text.assemble(("✗ invalid  ", "bold red"), one_line(reason)[:MAX_SENTENCE]), soft_wrap=True)
    on = "" if example.key is None else f" on key {one_line(example.key)[:60]}"
    first_ns, last_ns = moments[0].time_ns, moments[-1].time_ns
    console.print()
    took = seconds((last_ns - first_ns) / NS_PER_S)
    console.print(f"{len(example.operations)} operations{on} show the violation. The events around them, in {took}:")
    before: ClusterState | None = None
    for number, moment in enumerate(moments, 1):
        sign = "✗" if moment.culprit else " "
        console.print(
            Text(
                f"{number:>3} {at(moment.time_ns):>14} {sign} {moment.text}", style="bold red" if moment.culprit else ""
            ),
            soft_wrap=True,
        )
        if moment.state is None:
            continue
        for difference in differences(before, moment.state):
            console.print(Text(f"{'':>21}{difference}", style="dim"), soft_wrap=True)
        if moment.kind == OPERATION:
            _print_state(console, moment.state)
        before = moment.state


def _print_state(console: Console, state: ClusterState) -> None:
    rows = [HEADS, *(held(node) for node in state.nodes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADS))]
    for row in rows:
        cells = "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        console.print(Text(f"{'':>23}{cells.rstrip()}", style="dim"), soft_wrap=True)
