"""Runs a job with Spark: the functions of the job run on the workers; see `results.pipeline.job`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from results.pipeline.decide.withhold import Lost, lost_of, unjudged, withheld
from results.pipeline.errors import JobFailed, Unreadable, words_of
from results.pipeline.job import Ingested
from results.pipeline.job import analyze as analyze_by
from results.pipeline.read.local_files import LocalFiles, is_local
from results.pipeline.schema import QUARANTINE, TABLES, TIMELINES, VERDICTS
from results.pipeline.spark.broken import blamed
from results.pipeline.spark.envelopes import by_run, mapped, posted, table_of
from results.pipeline.spark.hadoop_files import HadoopFiles
from results.pipeline.spark.ingest import ingest
from results.pipeline.spark.measured import measured
from results.pipeline.spark.output import reading
from results.pipeline.spark.records import read_records
from results.pipeline.spark.tables import union
from results.pipeline.spark.types import conform, struct_of
from results.pipeline.spark.verdicts import judged, verdicts
from results.pipeline.write.output import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from checker.deciders import Decider
    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.documents import Known
    from results.pipeline.read.files import Files
    from results.pipeline.read.sources import Input
    from results.pipeline.spark.envelopes import Contents
    from results.pipeline.spark.ingest import IngestedFrames
    from results.pipeline.write.output import Manifest, Output
    from results.pipeline.write.summary import Summary
    from results.pipeline.write.tables import Reading

_LOST = "lost"


def analyze(spark: SparkSession, options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs a job with Spark; see `results.pipeline.job.analyze`.

    Raises:
        JobFailed: Spark could not do the job.
    """
    # Both name each file alike, and this process reads the files of its machine without asking Java for each.
    here = all(map(is_local, (*options.paths, options.out)))
    try:
        return analyze_by(SparkRunner(spark, LocalFiles() if here else HadoopFiles(spark)), options, steps)
    except (PySparkException, Py4JJavaError) as error:
        raise JobFailed(f"Spark could not do the job: {words_of(error)}") from error


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


class SparkRunner:
    """Runs a job with Spark; see `results.pipeline.job.Runner`.

    Attributes:
        files: The file systems that Spark reaches.
    """

    _read: IngestedFrames
    _known: Known
    _output: Output
    _options: AnalysisOptions

    def __init__(self, spark: SparkSession, files: Files) -> None:
        """Starts without runs."""
        self.files = files
        self._spark = spark

    def suits(self, sources: Sequence[Input], steps: Steps) -> None:
        """See `Runner`; Spark can do every job."""

    def read(self, sources: Sequence[Input], output: Output, options: AnalysisOptions) -> Ingested:
        """See `Runner`."""
        self._output, self._options = output, options
        self._read = read = ingest(
            self._spark,
            self.files,
            sources,
            staged=output.staged,
            kept=output.table(OPERATIONS),
            keyed=options.keyed,
            copy=options.keep_operations,
            known=output.known(sources) if options.incremental else {},
        )
        records, self._known, damaged = read_records(
            self._spark, read.seen, read.fault_events, wanted=options.wanted, staged=output.staged
        )
        records.write.parquet(f"{output.staged}/tables")
        self._records = self._spark.read.parquet(f"{output.staged}/tables")
        for name in ("runs", "faults", "sightings"):
            self._write(name, table_of(self._records, name))
        parts = [] if read.quarantine is None else [read.quarantine]
        if damaged:
            rows = self._spark.createDataFrame(
                [tuple(row.values()) for row in damaged], "source string, run string, reason string"
            )
            parts.append(conform(rows, QUARANTINE))
        self._write("quarantine", union(parts) if parts else self._spark.createDataFrame([], struct_of(QUARANTINE)))
        count, first = 0, []
        if parts:
            written = self._spark.read.parquet(output.table("quarantine"))
            count = written.count()
            first = [row.asDict() for row in written.orderBy("source", "line").limit(3).collect()]
        return Ingested(seen=read.seen, quarantined=count, examples=first, written=read.written)

    def judge(self) -> None:
        """See `Runner`."""
        self._write("verdicts", self._judged())

    def measure(self) -> Sequence[str]:
        """See `Runner`."""
        verdict_frame = self._spark.read.parquet(self._output.table("verdicts"))
        frame = measured(self._read.operations, self._records, verdict_frame).localCheckpoint()
        for name in TIMELINES:
            self._write(name, table_of(frame, name))
        return list(TIMELINES)

    def write(self, folder: str, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """See `Runner`."""
        layout = struct_of(TABLES[name])
        tuples = [tuple(row.get(column) for column in layout.names) for row in rows]
        self._spark.createDataFrame(tuples, layout).write.parquet(folder)

    def reading(self, root: str, manifest: Manifest) -> Reading:
        """See `Runner`."""
        return reading(self._spark, root, manifest)

    def blamed(self, error: Exception) -> tuple[str, str] | None:
        """See `Runner`."""
        if isinstance(error, Unreadable):
            return error.path, str(error)
        return blamed(error) if isinstance(error, PySparkException | Py4JJavaError) else None

    def _write(self, name: str, rows: DataFrame) -> None:
        rows.write.parquet(self._output.table(name))

    def _judged(self) -> DataFrame:
        """Returns the verdicts of all runs."""
        read, known = self._read, self._known
        groups: dict[_Group, list[str]] = {}
        deciders: dict[_Group, Decider] = {}
        for history in read.seen:
            decider = known.deciders[history.run]
            if decider is not None and history.operations:
                group = _group(decider, history.source)
                groups.setdefault(group, []).append(history.run)
                deciders[group] = decider
        parts = []
        for group, runs in sorted(groups.items()):
            rows = read.operations
            if len(runs) < len(read.seen):
                rows = rows.join(F.broadcast(self._named(runs)), "run", "left_semi")
            judge = deciders[group].judge
            if judge is not None:
                parts.append(judged(rows, judge, self._options.memory_limit))
            else:
                model = deciders[group].model
                assert model is not None  # noqa: S101 - a decider has a judge or a model
                parts.append(verdicts(rows, self._options.of_model(model, group.format, group.conventions)))
        frame = union(parts) if parts else self._spark.createDataFrame([], struct_of(VERDICTS))
        if read.quarantine is None:
            empty = [history for history in read.seen if not history.operations or known.deciders[history.run] is None]
            rest = posted(self._spark, ((history.run, "verdicts", unjudged(history, known)) for history in empty))
            return union([frame, table_of(rest, "verdicts")]) if empty else frame
        path = f"{self._output.staged}/verdicts"
        frame.write.parquet(path)
        frame = self._spark.read.schema(struct_of(VERDICTS)).parquet(path)
        decided = {row["run"] for row in frame.select("run").distinct().collect()}
        others = (
            (history.run, "verdicts", unjudged(history, known)) for history in read.seen if history.run not in decided
        )
        return self._withheld(frame.unionByName(table_of(posted(self._spark, others), "verdicts")))

    def _withheld(self, frame: DataFrame) -> DataFrame:
        """Returns verdicts, where rows in quarantine make a verdict unknown."""
        assert self._read.quarantine is not None  # noqa: S101 - the caller has asked
        counted = self._read.quarantine.groupBy("source", "run", "key").agg(
            F.count("*").alias("rows"),
            F.min(F.struct(F.coalesce("line", F.lit(0)).alias("at"), "reason", "line")).alias("first"),
        )
        rows = (row.asDict() | row["first"].asDict() for row in counted.collect())
        lost = lost_of(rows, self._read.seen)
        if not lost:
            return frame
        theirs = F.broadcast(self._named(list(lost)))

        def seal(batch: pa.RecordBatch) -> Iterator[tuple[str, str, Any]]:
            return ((row["run"], "verdicts", row) for row in batch.to_pylist())

        quarantined = posted(
            self._spark,
            ((run, _LOST, [(key, asdict(loss)) for key, loss in keys.items()]) for run, keys in lost.items()),
        )
        doubted = by_run(mapped(frame.join(theirs, "run", "left_semi"), seal).unionByName(quarantined), _doubted)
        return frame.join(theirs, "run", "left_anti").unionByName(table_of(doubted, "verdicts"))

    def _named(self, runs: Sequence[str]) -> DataFrame:
        return self._spark.createDataFrame([(run,) for run in runs], "run string")


def _doubted(_: str, contents: Contents) -> Mapping[str, Iterable[Any]]:
    lost = {key: Lost(**loss) for key, loss in contents[_LOST][0]}
    return {"verdicts": withheld(contents["verdicts"], lost)}
