"""The progress of a running job: a moving line for the current step on a terminal, and one line for each finished step.

If standard error is no terminal, only the lines of finished steps are written.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from results.words.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from results.pipeline.read.sources import Input


class Shown:
    """The text that a step shows at its end."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text = ""


class Steps:
    """Shows the steps of a job that runs in this process.

    Attributes:
        path: The engine of the job: `process` or `spark`.
        seconds: The duration of each step.
    """

    path: ClassVar[str] = "process"

    def __init__(self, console: Console) -> None:
        """Starts without any step."""
        self._console = console
        self.seconds: dict[str, float] = {}

    def note(self, text: str) -> None:
        """Shows a line that belongs to no step."""
        self._console.print(Text(text), soft_wrap=True)

    def note_bare(self, sources: Sequence[Input]) -> None:
        """Shows one line for all histories that have no header."""
        bare = [source.name for source in sources if source.bare]
        if bare:
            more = len(bare) - 1
            others = f" and {more:,} other histor{'y' if more == 1 else 'ies'}" if more else ""
            self.note(
                f"{bare[0]}{others}: the first line is an event and not the header of a history.jsonl; Labrys takes the events "
                "in the order of the lines"
            )

    @contextmanager
    def step(self, name: str) -> Iterator[Shown]:
        """Shows a step while the block runs; at the end it shows the `text` of the yielded object."""
        began_s = time.monotonic()
        shown = Shown()
        with self._moving(name):
            yield shown
        self.seconds[name] = time.monotonic() - began_s
        took = seconds(self.seconds[name])
        self._console.print(Text.assemble((f"{name:<12}", "bold"), f"{shown.text}  ", (took, "dim")), soft_wrap=True)

    @contextmanager
    def _moving(self, name: str) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[state]}", markup=False),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(f"{name:<12}", total=None, state="")
            with self._followed(lambda **state: progress.update(task, **state)):
                yield

    @contextmanager
    def _followed(self, show: Callable[..., None]) -> Iterator[None]:  # noqa: ARG002 - this process has no progress to show
        yield
