"""The progress of a running job: a moving line for the current step on a terminal, and one line for each finished step.

A thread asks Spark twice a second for the running stages, their finished tasks and the rows that they have read. If standard
error is no terminal, only the lines of finished steps are written.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from py4j.protocol import Py4JError
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from results.page.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from results.pipeline.read.sources import Input

PERIOD_S: Final = 0.5
JOIN_S: Final = 5.0


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


class SparkSteps(Steps):
    """Shows the steps of a Spark job, with the running stages."""

    path: ClassVar[str] = "spark"

    def __init__(self, spark: SparkSession, console: Console) -> None:
        """Starts without any step."""
        super().__init__(console)
        context: Any = spark.sparkContext
        self._context = context
        self._store = context._jsc.sc().statusStore()  # noqa: SLF001 - the status tracker of pyspark counts no rows

    @contextmanager
    def step(self, name: str) -> Iterator[Shown]:
        """See `Steps.step`; Spark's web pages show the name of the step too."""
        self._context.setJobDescription(f"labrys: {name}")
        with super().step(name) as shown:
            yield shown

    @contextmanager
    def _followed(self, show: Callable[..., None]) -> Iterator[None]:
        """Shows the running stages."""
        done = threading.Event()

        def follow() -> None:
            while not done.wait(PERIOD_S):
                try:
                    running = running_stages(self._store)
                except Py4JError:
                    return  # Spark has stopped; the main thread gets the error
                total = sum(stage.tasks for stage in running)
                finished = sum(stage.done for stage in running)
                show(total=total or None, completed=finished, state=_state(running))

        thread = threading.Thread(target=follow, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(JOIN_S)


class Stage:
    """A running stage.

    Attributes:
        tasks: The number of its tasks.
        done: How many of them are finished.
        rows: How many rows they have read, from files and from other stages.
    """

    __slots__ = ("done", "rows", "tasks")

    def __init__(self, *, tasks: int, done: int, rows: int) -> None:
        self.tasks = tasks
        self.done = done
        self.rows = rows


def running_stages(store: Any) -> list[Stage]:
    """Returns the stages that run now, from Spark's status store."""
    stages = store.activeStages()
    return [
        Stage(
            tasks=stage.numTasks(),
            done=stage.numCompleteTasks(),
            rows=stage.inputRecords() + stage.shuffleReadRecords(),
        )
        for stage in (stages.apply(number) for number in range(stages.size()))
    ]


def _state(running: list[Stage]) -> str:
    if not running:
        return ""
    tasks, done, rows = (sum(getattr(stage, name) for stage in running) for name in ("tasks", "done", "rows"))
    stages = "1 stage" if len(running) == 1 else f"{len(running)} stages"
    return f"{stages}, {done} of {tasks} tasks, {rows:,} rows"
