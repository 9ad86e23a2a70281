"""The story of a violation on the terminal, one moment after the other, and the evidence of other parts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from harness.console.plain import counted, one_line, plain
from harness.units import NS_PER_S
from harness.verdict import Verdict
from results.page.story import HEADS, LOG, OPERATION, POLL, at, differences, held
from results.words.bounds import label
from results.words.formatting import aligned, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from harness.counterexample import Counterexample
    from harness.node_states import ClusterState
    from results.circumstances.messages import Nearby
    from results.logs.since_start import SinceStart
    from results.page.evidence import Evidence
    from results.page.story import Moment

MAX_SENTENCE = 2_000


def print_reason(console: Console, verdict: Verdict, reason: str) -> None:
    """Prints the sentence of a run."""
    sign, style = {Verdict.INVALID: ("✗", "bold red")}.get(verdict, ("?", "bold yellow"))
    console.print(Text.assemble((f"{sign} {verdict}  ", style), one_line(reason)[:MAX_SENTENCE]), soft_wrap=True)


def print_story(console: Console, example: Counterexample, moments: Sequence[Moment], *, reason: str) -> None:
    """Prints a violation and the events around it.

    Args:
        console: The console for the output.
        example: The counterexample.
        moments: The events, in the order of time.
        reason: The run's sentence.
    """
    print_reason(console, Verdict.INVALID, reason)
    on = "" if example.key is None else f" on key {one_line(example.key)[:60]}"
    first_ns, last_ns = moments[0].time_ns, moments[-1].time_ns
    console.print()
    took = seconds((last_ns - first_ns) / NS_PER_S)
    console.print(f"{len(example.operations)} operations{on} show the violation. The events around them, in {took}:")
    print_moments(console, moments)


def print_moments(console: Console, moments: Sequence[Moment]) -> None:
    """Prints events in the order of time, each with the states of the nodes where they are known."""
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
        changed = before is None or before.nodes != moment.state.nodes
        if moment.kind == OPERATION or (changed and moment.kind in {LOG, POLL}):
            _print_state(console, moment.state)
        before = moment.state


def _print_state(console: Console, state: ClusterState) -> None:
    for line in aligned([HEADS, *(held(node) for node in state.nodes)]):
        console.print(Text(f"{'':>23}{line}", style="dim"), soft_wrap=True)


def print_evidence(console: Console, piece: Evidence, moments: Sequence[Moment] = ()) -> None:
    """Prints what a run shows about a part without a counterexample, with the moments of its scene."""
    sign, style = {Verdict.INVALID: ("✗", "bold red")}.get(piece.verdict, ("?", "bold yellow"))
    console.print()
    console.print(
        Text.assemble((f"{sign} {label(piece.part)}: {piece.verdict}  ", style), one_line(piece.reason)[:MAX_SENTENCE]),
        soft_wrap=True,
    )
    for sentence in piece.sentences:
        console.print(Text(f"  {one_line(sentence)}"), soft_wrap=True)
    for table in piece.tables:
        console.print(Text(f"\n  {one_line(table.title)}:"), soft_wrap=True)
        for line in aligned([table.heads, *table.rows]):
            console.print(Text(f"    {plain(line)}", style="dim"), soft_wrap=True)
        if table.left_out:
            console.print(Text(f"    {counted(table.left_out, 'more row')}; results.json has all", style="dim"))
    if moments:
        console.print(Text("\n  What happened around it, in order:"))
        print_moments(console, moments)
    if piece.lines:
        console.print(Text("\n  Lines of the logs:"))
    for logged in piece.lines:
        console.print(Text(f"    {at(logged.time_ns):>14} {one_line(logged.shown)}", style="dim"), soft_wrap=True)
    for title, text in piece.texts:
        console.print(Text(f"\n  {title}:"))
        for line in text.splitlines():
            console.print(Text(f"    {plain(line)}", style="dim"), soft_wrap=True)


def print_since(console: Console, since: Sequence[SinceStart]) -> None:
    """Prints what the nodes logged since their last start before a violation; nothing if they logged nothing of note."""
    for start in since:
        console.print(Text(f"\n  {start.title}:"), soft_wrap=True)
        for line in (*start.first, *start.severe):
            console.print(Text(f"    {at(line.time_ns):>14} {one_line(line.shown)}", style="dim"), soft_wrap=True)


def print_messages(console: Console, nearby: Nearby) -> None:
    """Prints the messages of programs around a violation; nothing if there are none."""
    if not nearby.messages:
        return
    console.print()
    console.print("The messages around the violation, as the nodes wrote and got them:")
    for message in nearby.messages:
        console.print(
            Text(f"{at(message.sent_ns):>14}  {message.shown}", style="bold" if message.is_lost else ""), soft_wrap=True
        )
    if nearby.rest:
        console.print(Text(nearby.rest, style="dim"), soft_wrap=True)
