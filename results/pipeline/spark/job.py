"""The whole job: reads, judges and draws, and commits everything to the output folder at once.

The rule: the output folder holds the complete result of a job, or nothing of it. Each run has a row about what was read of it.
Only a history that was read completely gets a definite verdict. An unreadable source is unknown with its reason, and does not
end the job. An incremental job reads only new and changed sources, and gives the result of a full job.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.checking import conventions_of
from harness.console.plain import counted, one_line
from results.page.drawing import draw_all
from results.pipeline.decide.judges import judged as judged_by
from results.pipeline.decide.verdicts import VerdictOptions, verdicts
from results.pipeline.decide.withhold import not_judged, withheld
from results.pipeline.errors import JobFailed, RowsRefused, Unreadable, words_of
from results.pipeline.measure.figures import figures
from results.pipeline.measure.timelines import timelines
from results.pipeline.measure.trends import TRENDS, trends
from results.pipeline.read.sources import find_sources
from results.pipeline.schema import QUARANTINE, VERDICTS, conform
from results.pipeline.spark.broken import MOST_SET_ASIDE, without
from results.pipeline.spark.hadoop_files import HadoopFiles
from results.pipeline.spark.ingest import ingest
from results.pipeline.spark.records import read_records
from results.pipeline.spark.tables import union
from results.pipeline.write.gathered import gathered
from results.pipeline.write.output import OPERATIONS, Output, read_table
from results.pipeline.write.page import render
from results.pipeline.write.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from checker.models import Model
    from checker.search.deciders import Decider
    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input
    from results.pipeline.spark.ingest import Ingested
    from results.pipeline.spark.records import Records
    from results.pipeline.write.output import Manifest
    from results.pipeline.write.summary import Summary


def analyze(spark: SparkSession, options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs the whole job.

    Raises:
        LabrysError: Something cannot be read, judged or written; the output folder is unchanged.
    """
    files = HadoopFiles(spark)
    with steps.step("find") as shown:
        sources = find_sources(files, options.paths)
        shown.text = counted(len(sources), "source")
    steps.note_bare(sources)
    output = Output(files, options.out)
    try:
        if options.incremental:
            sources = output.changed(sources, options.deciding)
        if sources or not output.before.generations:
            return _run(partial(_Job, spark, files, output, options, steps), output, sources, steps)
        found = summary(spark, output.root, output.before)
        output.abort()
    except (PySparkException, Py4JJavaError) as error:
        output.abort()
        raise JobFailed(f"Spark could not do the job: {words_of(error)}") from error
    except BaseException:
        output.abort()
        raise
    return found


def _run(job: Callable[[], _Job], output: Output, sources: Sequence[Input], steps: Steps) -> Summary:
    """Runs a job; if Spark finds a damaged source, starts again without it."""
    set_aside = 0
    while True:
        try:
            return job().run(sources)
        except (PySparkException, Py4JJavaError, Unreadable) as error:
            left = without(sources, error)
            if left is None or set_aside == MOST_SET_ASIDE:
                raise
            with steps.step("begin anew") as shown:
                changed = (new for old, new in zip(sources, left, strict=True) if old.trouble != new.trouble)
                shown.text = one_line("; ".join(new.trouble or "" for new in changed))
                output.clear()
            sources = left
            set_aside += 1


def _place(row: Row) -> str:
    return row["source"] if row["line"] is None else f"{row['source']}:{row['line']}"


class _Group(NamedTuple):
    """Runs that are decided together, in the same way.

    Attributes:
        name: The model or the workload.
        options: The options of the workload, as text; empty for a model.
        format: The format of a history that a model decides; empty for a workload.
        conventions: The conventions that the histories themselves define.
    """

    name: str
    options: str
    format: str
    conventions: tuple[tuple[str, str], ...]


def _group(decider: Decider, source: Input) -> _Group:
    if decider.judge is not None:
        return _Group(decider.name, f"{decider.judge.__class__!r} {decider.options}", "", ())
    return _Group(decider.name, "", source.format, source.conventions)


class _Job:
    """One attempt at a job."""

    def __init__(
        self, spark: SparkSession, files: Files, output: Output, options: AnalysisOptions, steps: Steps
    ) -> None:
        self._spark = spark
        self._files = files
        self._output = output
        self._options = options
        self._steps = steps
        self._tables: list[str] = []

    def run(self, sources: Sequence[Input]) -> Summary:
        """Reads, judges and commits."""
        with self._steps.step("read") as shown:
            read = ingest(
                self._spark,
                self._files,
                sources,
                staged=self._output.staged,
                kept=self._output.table(OPERATIONS),
                keyed=self._options.keyed,
                copy=self._options.keep_operations,
                known=self._output.known(sources) if self._options.incremental else {},
            )
            records = read_records(
                self._spark, read.seen, read.fault_events, wanted=self._options.wanted, staged=self._output.staged
            )
            bad = self._quarantine(read, records)
            operations = sum(each.operations or 0 for each in read.seen)
            counts = [counted(len(read.seen), "run"), counted(operations, "operation"), counted(bad, "row")]
            shown.text = f"{', '.join(counts)} in quarantine"
        if read.written:
            self._tables.append(OPERATIONS)
        for name, rows in (("runs", records.runs), ("faults", records.faults), ("sightings", records.sightings)):
            self._write(name, rows)
        with self._steps.step("judge"):
            self._write("verdicts", self._judged(read, records))
        with self._steps.step("timelines") as shown:
            names = ("runs", "faults", "sightings", "verdicts")
            written = {name: self._spark.read.parquet(self._output.table(name)) for name in names}
            tables = timelines(
                read.operations,
                written["faults"],
                runs=written["runs"],
                sightings=written["sightings"],
                verdicts=written["verdicts"],
            )
            for name, rows in tables.items():
                self._write(name, rows)
            shown.text = counted(len(tables), "table")
        runs: dict[str, list[str]] = {source.path: [] for source in sources}
        for each in read.seen:
            runs[each.source.path].append(each.run)
        with self._steps.step("trends"):
            before = self._planned(sources, runs)
            there = {name: self._all(before, name) for name in ("runs", "verdicts", "faults", *tables)}
            compared = trends(row.asDict() for row in figures(there["runs"], there["verdicts"], there).collect())
            self._write("trends", self._spark.createDataFrame([tuple(row.values()) for row in compared], TRENDS))
        manifest = self._planned(sources, runs)
        with self._steps.step("sum up"):
            found = summary(self._spark, self._output.root, manifest, read=len(read.seen))
        pages: dict[str, bytes] = {}
        if self._options.pictures:
            with self._steps.step("draw") as shown:
                gather = partial(gathered, timelines=there, faults=there["faults"], verdicts=there["verdicts"])
                pages = render(found, compared, gather, draw_all)
                shown.text = counted(len(pages), "file")
        self._output.commit(manifest, pages)
        return found

    def _planned(self, sources: Sequence[Input], runs: Mapping[str, Sequence[str]]) -> Manifest:
        return self._output.plan(
            tables=self._tables,
            options=self._options.deciding,
            sources={source.path: source.fingerprint for source in sources},
            runs=runs,
            incremental=self._options.incremental,
        )

    def _all(self, manifest: Manifest, name: str) -> DataFrame:
        """Returns a table of this job, with the rows of earlier jobs."""
        rows = read_table(self._spark, self._output.root, manifest, name)
        assert rows is not None  # noqa: S101 - this job wrote it
        return rows

    def _write(self, name: str, rows: DataFrame) -> None:
        rows.write.parquet(self._output.table(name))
        self._tables.append(name)

    def _quarantine(self, read: Ingested, records: Records) -> int:
        """Writes the malformed rows, and returns their number."""
        parts = [] if read.quarantine is None else [read.quarantine]
        if records.problems is not None:
            parts.append(conform(records.problems, QUARANTINE))
        self._write("quarantine", union(parts) if parts else self._spark.createDataFrame([], QUARANTINE))
        if not parts:
            return 0
        written = self._spark.read.parquet(self._output.table("quarantine"))
        count = written.count()
        if count and self._options.strict:
            first = written.orderBy("source", "line").limit(3).collect()
            examples = "; ".join(f"{_place(row)}: {row['reason']}" for row in first)
            raise RowsRefused(f"{count} rows are malformed, and --strict allows none: {examples}")
        return count

    def _judged(self, read: Ingested, records: Records) -> DataFrame:
        """Returns the verdicts of all runs."""
        groups: dict[_Group, list[str]] = {}
        deciders: dict[_Group, Decider] = {}
        for each in read.seen:
            decider = records.known.deciders[each.run]
            if decider is not None and each.operations:
                group = _group(decider, each.source)
                groups.setdefault(group, []).append(each.run)
                deciders[group] = decider
        parts = []
        for group, runs in sorted(groups.items()):
            rows = read.operations
            if len(runs) < len(read.seen):
                chosen = self._spark.createDataFrame([(run,) for run in runs], "run string")
                rows = rows.join(F.broadcast(chosen), "run", "left_semi")
            judge = deciders[group].judge
            if judge is not None:
                parts.append(judged_by(rows, judge, self._options.memory_limit))
                continue
            model = deciders[group].model
            assert model is not None  # noqa: S101 - a decider has a judge or a model
            options = self._verdict_options(model, group.format, dict(group.conventions))
            parts.append(conform(verdicts(rows, options), VERDICTS))
        judged = union(parts) if parts else self._spark.createDataFrame([], VERDICTS)
        if read.quarantine is None:
            empty = [each for each in read.seen if not each.operations or records.known.deciders[each.run] is None]
            return union([judged, not_judged(self._spark, empty, records.known)]) if empty else judged
        path = f"{self._output.staged}/verdicts"
        judged.write.parquet(path)
        judged = self._spark.read.schema(VERDICTS).parquet(path)
        others = not_judged(self._spark, read.seen, records.known).join(judged.select("run"), "run", "left_anti")
        return withheld(judged.unionByName(conform(others, VERDICTS)), read.quarantine, read.seen)

    def _verdict_options(self, model: type[Model], kind: str, own: Mapping[str, str]) -> VerdictOptions:
        conventions = {**conventions_of(kind), **own, **self._options.conventions}
        return VerdictOptions(
            model=model,
            initial=self._options.initial,
            conventions=conventions,
            time_limit_s=self._options.time_limit_s,
            memory_limit=self._options.memory_limit,
        )
