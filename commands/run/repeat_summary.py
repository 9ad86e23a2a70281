"""The terminal output of a repeated test: a line for each run, then a table and the number of invalid runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from harness.console.plain import one_line, plain
from harness.console.terminal import PIPE_WIDTH
from harness.verdict import Verdict
from results.live.terminal import after_progress
from results.words.formatting import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from commands.run.repeating import Repetition, Tally
    from harness.outcome import RunOutcome

_LOOKS = {
    Verdict.VALID: ("✓ valid", "green"),
    Verdict.INVALID: ("✗ invalid", "bold red"),
    Verdict.UNKNOWN: ("? unknown", "yellow"),
    None: ("! error", "yellow"),
}
_NUMBERS = {"run", "seed", "time"}
WIDTH = max(len(sign) for sign, _ in _LOOKS.values())
SEED_WIDTH = 19


def print_run(console: Console, tally: Tally) -> None:
    """Prints the last run of a tally, with its reason unless it is valid."""
    run = tally.runs[-1]
    console.print(Text.assemble(f"[{run.number}/{tally.asked}] ", _line(run)))
    for threshold in run.outcome.crossed:
        console.print(Text(f"      {one_line(threshold)}", style="dim"), soft_wrap=True)
    if run.outcome.verdict is not Verdict.VALID:
        console.print(Text(f"      {one_line(run.outcome.reason)}", style="dim"), soft_wrap=True)


def print_tally(console: Console, tally: Tally, *, page: Path) -> None:
    """Prints a table of all runs, the command of each run that is not valid, and the number of invalid runs.

    Args:
        console: The console.
        tally: The outcome of the runs.
        page: The page with links to the runs.
    """
    after_progress(console)
    if console.width < PIPE_WIDTH:  # in a pipe, the lines of the runs are enough
        console.print(_table(tally))
    red = [run for run in tally.runs if run.outcome.verdict is not Verdict.VALID or run.outcome.crossed]
    for line in dict.fromkeys(run.reproduce for run in red):  # with --same-seed, all runs have the same one
        console.print(Text.assemble(("reproduce  ", "dim"), one_line(line)), soft_wrap=True)
    console.print(Text(tally.describe(), style="bold"), soft_wrap=True)
    console.print(Text.assemble(("page       ", "dim"), plain(str(page))), soft_wrap=True)


def _table(tally: Tally) -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in ("run", "verdict", "seed", "time", "why"):
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    for run in tally.runs:
        outcome, (sign, style) = run.outcome, _look(run.outcome)
        blamed = (
            "; ".join(map(one_line, outcome.crossed))
            if outcome.verdict is Verdict.VALID
            else ", ".join(map(one_line, outcome.invalid)) or one_line(outcome.reason)
        )
        table.add_row(str(run.number), Text(sign, style=style), str(run.seed), seconds(run.seconds), Text(blamed))
    return table


def _look(outcome: RunOutcome) -> tuple[str, str]:
    """Returns the sign and the word for the verdict of a run, with its thresholds, and their colour."""
    shown = outcome.shown
    if shown is None or not shown.crossed:
        return _LOOKS[outcome.verdict]
    alone, style = _LOOKS[shown.alone]
    return f"{alone[0]} {shown.words}", style


def _line(run: Repetition) -> Text:
    sign, style = _look(run.outcome)
    return Text.assemble(
        (f"{sign:<{WIDTH}}", style),
        f"  seed {run.seed:<{SEED_WIDTH}}  {seconds(run.seconds):>8}",
        f"  {', '.join(map(one_line, run.outcome.invalid))}" if run.outcome.invalid else "",
    )
