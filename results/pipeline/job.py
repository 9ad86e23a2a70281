"""The whole job: reads, judges and draws, and commits everything to the output folder at once.

The rule: the output folder holds the complete result of a job, or nothing of it. Each run has a row about what was read of it.
Only a history that was read completely gets a definite verdict. An unreadable source is unknown with its reason, and does not
end the job. An incremental job reads only new and changed sources, and gives the result of a full job.

A runner runs the functions that read, decide and measure: in this process (`results.pipeline.local`), or with Spark
(`results.pipeline.spark.job`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from harness.console.plain import counted, one_line
from results.page.drawing import draw_all
from results.pipeline.errors import RowsRefused
from results.pipeline.measure.figures import figures
from results.pipeline.measure.trends import trends
from results.pipeline.read.broken import MOST_SET_ASIDE, without
from results.pipeline.read.sources import find_sources
from results.pipeline.write.gathered import gathered
from results.pipeline.write.output import OPERATIONS, Output
from results.pipeline.write.page import render
from results.pipeline.write.summary import summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Shown, Steps
    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input, Seen
    from results.pipeline.write.output import Manifest
    from results.pipeline.write.summary import Summary
    from results.pipeline.write.tables import Reading

_OF_READING_AND_JUDGING = ("runs", "faults", "sightings", "quarantine", "verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What was read.

    Attributes:
        seen: The runs, sorted by name.
        quarantined: The number of rows in quarantine.
        examples: The first rows in quarantine, in the columns of `schema.QUARANTINE`.
        written: Whether operations were written as a table.
    """

    seen: Sequence[Seen]
    quarantined: int
    examples: Sequence[Mapping[str, Any]]
    written: bool


class Runner(Protocol):
    """Runs the functions of a job on the operations of all runs, and writes their results as tables of the output folder."""

    @property
    def files(self) -> Files:
        """The file systems of the sources and of the output folder."""

    def suits(self, sources: Sequence[Input], steps: Steps) -> None:
        """Checks that the runner can do the job.

        Raises:
            NotSuited: It cannot.
        """

    def read(self, sources: Sequence[Input], output: Output, options: AnalysisOptions) -> Ingested:
        """Reads operations and records, and writes the tables of operations, runs, faults, sightings and quarantine."""

    def judge(self) -> None:
        """Writes the table of verdicts."""

    def measure(self) -> Sequence[str]:
        """Writes the tables of timelines, and returns their names."""

    def write(self, folder: str, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes a small table."""

    def reading(self, root: str, manifest: Manifest) -> Reading:
        """Returns the function that reads the tables of an output folder."""

    def blamed(self, error: Exception) -> tuple[str, str] | None:
        """Returns the file that an error is about, and the reason; None if it is about no file."""


def analyze(runner: Runner, options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs the whole job.

    Raises:
        NotSuited: The runner cannot do it; the output folder is unchanged.
        LabrysError: Something cannot be read, judged or written; the output folder is unchanged.
    """
    with steps.step("find") as shown:
        sources = find_sources(runner.files, options.paths)
        shown.text = counted(len(sources), "source")
    runner.suits(sources, steps)
    output = Output(runner.files, options.out)
    try:
        if options.incremental:
            sources = output.changed(sources, options.deciding)
        if sources or not output.before.generations:
            return _run(_Job(runner, output, options, steps), sources, steps)
        total = summary(runner.reading(output.root, output.before), output.root, output.before)
    except BaseException:
        output.abort()
        raise
    output.abort()
    return total


def _run(job: _Job, sources: Sequence[Input], steps: Steps) -> Summary:
    """Runs a job; if a source turns out to be damaged, starts again without it."""
    set_aside = 0
    while True:
        try:
            return job.run(sources)
        except Exception as error:
            blamed = job.runner.blamed(error)
            left = None if blamed is None else without(sources, *blamed)
            if left is None or set_aside == MOST_SET_ASIDE:
                raise
            with steps.step("begin anew") as shown:
                changed = (new for old, new in zip(sources, left, strict=True) if old.trouble != new.trouble)
                shown.text = one_line("; ".join(new.trouble or "" for new in changed))
                job.output.clear()
            sources = left
            set_aside += 1


def _place(row: Mapping[str, Any]) -> str:
    return row["source"] if row["line"] is None else f"{row['source']}:{row['line']}"


class _Job:
    """A job.

    Attributes:
        runner: Its runner.
        output: Its output folder.
    """

    def __init__(self, runner: Runner, output: Output, options: AnalysisOptions, steps: Steps) -> None:
        self.runner = runner
        self.output = output
        self._options = options
        self._steps = steps

    def run(self, sources: Sequence[Input]) -> Summary:
        """Reads, judges and commits."""
        runner, output, steps = self.runner, self.output, self._steps
        with steps.step("read") as shown:
            read = self._read(sources, shown)
        steps.note_bare(sources)
        with steps.step("judge"):
            runner.judge()
        with steps.step("timelines") as shown:
            measured = runner.measure()
            shown.text = counted(len(measured), "table")
        tables = [*_OF_READING_AND_JUDGING, *measured, *([OPERATIONS] if read.written else [])]
        runs: dict[str, list[str]] = {source.path: [] for source in sources}
        for history in read.seen:
            runs[history.source.path].append(history.run)
        plan = partial(
            output.plan,
            options=self._options.deciding,
            sources={source.path: source.fingerprint for source in sources},
            runs=runs,
            incremental=self._options.incremental,
        )
        with steps.step("trends"):
            compared = trends(figures(runner.reading(output.root, plan(tables=tables))))
            runner.write(output.table("trends"), "trends", compared)
        manifest = plan(tables=[*tables, "trends"])
        reading = runner.reading(output.root, manifest)
        with steps.step("sum up"):
            total = summary(reading, output.root, manifest, read=len(read.seen))
        pages: dict[str, bytes] = {}
        if self._options.pictures:
            with steps.step("draw") as shown:
                pages = render(total, compared, partial(gathered, reading), draw_all)
                shown.text = counted(len(pages), "file")
        output.commit(manifest, pages)
        return total

    def _read(self, sources: Sequence[Input], shown: Shown) -> Ingested:
        read = self.runner.read(sources, self.output, self._options)
        if read.quarantined and self._options.strict:
            examples = "; ".join(f"{_place(row)}: {row['reason']}" for row in read.examples)
            raise RowsRefused(f"{read.quarantined} rows are malformed, and --strict allows none: {examples}")
        operations = sum(history.operations or 0 for history in read.seen)
        counts = [counted(len(read.seen), "run"), counted(operations, "operation"), counted(read.quarantined, "row")]
        shown.text = f"{', '.join(counts)} in quarantine"
        return read
