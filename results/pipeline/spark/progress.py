"""The progress of a Spark job: the steps of a job, with the running stages.

A thread asks Spark twice a second for the running stages, their finished tasks and the rows that they have read.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from py4j.protocol import Py4JError

from results.pipeline.progress import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession
    from rich.console import Console

    from results.pipeline.progress import Shown

PERIOD_S: Final = 0.5
JOIN_S: Final = 5.0


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
