"""What a running job shows: one line on a terminal that says what it is at, and a line for each thing it has done.

A thread asks Spark a few times a second which stages run, how many of their tasks are done and how many rows they have read.
Where standard error is no terminal, nothing moves: only the lines of what was done are written.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from py4j.protocol import Py4JError
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from results.spoken import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from results.pipeline.read.sources import Input

PERIOD_S: Final = 0.5
JOIN_S: Final = 5.0


class Shown:
    """What one step has to say at its end."""

    __slots__ = ("text",)

    def __init__(self) -> None:
        self.text = ""


class Steps:
    """Shows the steps of a job that runs in this process.

    Attributes:
        path: What does the job: `process` or `spark`.
        seconds: How long each step took.
    """

    path: ClassVar[str] = "process"

    def __init__(self, console: Console) -> None:
        """Begins with nothing to show."""
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
                f"{bare[0]}{others}: the first line is an event and not the header of a history.jsonl; the events are taken in "
                "the order of the lines"
            )

    @contextmanager
    def step(self, name: str) -> Iterator[Shown]:
        """Names what is done meanwhile; what is put in the yielded `text` is shown at the end."""
        began_s = time.monotonic()
        said = Shown()
        with self._moving(name):
            yield said
        self.seconds[name] = time.monotonic() - began_s
        took = seconds(self.seconds[name])
        self._console.print(Text.assemble((f"{name:<12}", "bold"), f"{said.text}  ", (took, "dim")), soft_wrap=True)

    @contextmanager
    def _moving(self, name: str) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[said]}", markup=False),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(f"{name:<12}", total=None, said="")
            with self._followed(lambda **told: progress.update(task, **told)):
                yield

    @contextmanager
    def _followed(self, show: Callable[..., None]) -> Iterator[None]:  # noqa: ARG002 - nothing is known before the end
        yield


class SparkSteps(Steps):
    """Shows the steps of a job of Spark's, and what Spark does in each."""

    path: ClassVar[str] = "spark"

    def __init__(self, spark: SparkSession, console: Console) -> None:
        """Begins with nothing to show."""
        super().__init__(console)
        context: Any = spark.sparkContext
        self._context = context
        self._store = context._jsc.sc().statusStore()  # noqa: SLF001 - the status tracker of pyspark counts no rows

    @contextmanager
    def step(self, name: str) -> Iterator[Shown]:
        """See `Steps.step`; Spark's own pages name the step as well."""
        self._context.setJobDescription(f"labrys: {name}")
        with super().step(name) as said:
            yield said

    @contextmanager
    def _followed(self, show: Callable[..., None]) -> Iterator[None]:
        """Shows the stages that run."""
        done = threading.Event()

        def follow() -> None:
            while not done.wait(PERIOD_S):
                try:
                    running = running_stages(self._store)
                except Py4JError:
                    return  # Spark has stopped; whoever waits for the job hears why
                total = sum(stage.tasks for stage in running)
                finished = sum(stage.done for stage in running)
                show(total=total or None, completed=finished, said=_said(running))

        thread = threading.Thread(target=follow, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join(JOIN_S)


class Stage:
    """A stage that runs.

    Attributes:
        tasks: How many tasks it has.
        done: How many of them are done.
        rows: How many rows they have read, from files and from other stages.
    """

    __slots__ = ("done", "rows", "tasks")

    def __init__(self, *, tasks: int, done: int, rows: int) -> None:
        self.tasks = tasks
        self.done = done
        self.rows = rows


def running_stages(store: Any) -> list[Stage]:
    """Returns the stages that run now, from Spark's own store of what it does."""
    stages = store.activeStages()
    return [
        Stage(
            tasks=stage.numTasks(),
            done=stage.numCompleteTasks(),
            rows=stage.inputRecords() + stage.shuffleReadRecords(),
        )
        for stage in (stages.apply(number) for number in range(stages.size()))
    ]


def _said(running: list[Stage]) -> str:
    if not running:
        return ""
    tasks, done, rows = (sum(getattr(stage, name) for stage in running) for name in ("tasks", "done", "rows"))
    stages = "1 stage" if len(running) == 1 else f"{len(running)} stages"
    return f"{stages}, {done} of {tasks} tasks, {rows:,} rows"
