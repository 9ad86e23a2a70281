"""The whole job: reads, judges, draws, and puts all of it into the output folder at once.

The law: what is in the output folder is either all of one job or nothing of it, and says of each run what was read of it. A
definite verdict is given only on a history that was read whole. A source that cannot be read is unknown with its reason, and
ends no job. An incremental job reads what is new or has changed, and what
it gives is what a full one would give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from checker.checking import conventions_of
from checker.deciders import Wanted
from harness.plain import one_line
from harness.verdict import Verdict, worst
from results.pipeline.decide.judges import judged as judged_by
from results.pipeline.decide.verdicts import VerdictOptions, verdicts
from results.pipeline.decide.withhold import not_judged, withheld
from results.pipeline.errors import BadOutput, JobFailed, RowsRefused, Unreadable, words_of
from results.pipeline.measure.timelines import timelines
from results.pipeline.measure.trends import trends
from results.pipeline.read.broken import MOST_SET_ASIDE, without
from results.pipeline.read.files import Files
from results.pipeline.read.ingest import ingest
from results.pipeline.read.runs import read_records
from results.pipeline.read.sources import find_sources
from results.pipeline.read.tables import union
from results.pipeline.schema import QUARANTINE, VERDICTS, conform
from results.pipeline.write.output import GENERATIONS, Output, read_table
from results.pipeline.write.page import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from checker.deciders import Decider
    from checker.models import Model
    from harness.errors import ExitCode
    from results.pipeline.progress import Steps
    from results.pipeline.read.ingest import Ingested
    from results.pipeline.read.runs import Records
    from results.pipeline.read.sources import Input
    from results.pipeline.write.output import Manifest

SHOWN_ROWS: Final = 20
OPERATIONS: Final = "operations"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOptions:
    """What is asked for.

    Attributes:
        paths: What to read, as Spark writes paths.
        out: The output folder.
        wanted: What decides, where that is not what each run says.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, where they are not those of each format.
        keyed: Whether values of events are pairs of a key and a value; None: as each history shows it.
        time_limit_s: Seconds for the search of each key; None for no limit.
        memory_limit: Bytes for each key in a worker.
        strict: Whether a row that does not fit ends the job.
        incremental: Whether only what is new is read.
        keep_operations: Whether operations that are in tables already are written too.
        pictures: Whether to draw.
    """

    paths: Sequence[str]
    out: str
    wanted: Wanted = field(default_factory=Wanted)
    initial: str | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    keyed: bool | None = None
    time_limit_s: float | None = 60.0
    memory_limit: int = 1 << 30
    strict: bool = False
    incremental: bool = False
    keep_operations: bool = False
    pictures: bool = True

    @property
    def deciding(self) -> dict[str, Any]:
        """What the verdicts depend on."""
        names = ("initial", "keyed", "time_limit_s", "memory_limit")
        told = {name: getattr(self, name) for name in names}
        told |= {"model": self.wanted.model, "conventions": dict(self.conventions)}
        if self.wanted.workload is not None or self.wanted.settings:
            told |= {"workload": self.wanted.workload, "workload_options": list(self.wanted.settings)}
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why rows are in quarantine.

    Attributes:
        reason: The reason.
        rows: How many rows have it.
        source: The first of the files that have such rows.
        sources: How many files have such rows.
    """

    reason: str
    rows: int
    source: str
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What an output folder says.

    Attributes:
        out: The folder's URI.
        runs: How many runs it knows.
        read: How many of them this job has read.
        operations: How many operations were judged.
        counts: Verdicts, each with how many runs and keys have it.
        refuted: The first invalid ones, as rows of `schema.VERDICTS`.
        undecided: The first unknown ones.
        orders: The same of the system's own order, where operations carry one.
        misordered: The first keys whose own order is not a legal one.
        reasons: The most frequent reasons in quarantine.
        quarantined: How many rows are in quarantine.
        tables: The folders of each table.
    """

    out: str
    runs: int
    read: int
    operations: int
    counts: Mapping[str, int]
    refuted: Sequence[Mapping[str, Any]]
    undecided: Sequence[Mapping[str, Any]]
    orders: Mapping[str, int]
    misordered: Sequence[Mapping[str, Any]]
    reasons: Sequence[Refusal]
    quarantined: int
    tables: Mapping[str, Sequence[str]]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all keys; unknown if there is none, since then nothing was judged."""
        found = [verdict for verdict in Verdict if self.counts.get(str(verdict))]
        return worst(found)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code that says it."""
        return self.verdict.exit_code


def analyze(spark: SparkSession, options: AnalysisOptions, steps: Steps) -> Summary:
    """Does the whole job.

    Raises:
        LabrysError: Something cannot be read, judged or written; the output folder is as it was.
    """
    files = Files(spark)
    with steps.step("find") as said:
        sources = find_sources(files, options.paths)
        said.text = f"{len(sources)} sources"
    output = Output(files, options.out)
    try:
        if options.incremental:
            sources = _new(sources, output, options)
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
    """Does a job, and begins it anew without a source that turns out to be damaged while it is read."""
    set_aside = 0
    while True:
        try:
            return job().run(sources)
        except (PySparkException, Py4JJavaError, Unreadable) as error:
            left = without(sources, error)
            if left is None or set_aside == MOST_SET_ASIDE:
                raise
            with steps.step("begin anew") as said:
                changed = (new for old, new in zip(sources, left, strict=True) if old.trouble != new.trouble)
                said.text = one_line("; ".join(new.trouble or "" for new in changed))
                output.clear()
            sources = left
            set_aside += 1


def _place(row: Row) -> str:
    return row["source"] if row["line"] is None else f"{row['source']}:{row['line']}"


def _new(sources: Sequence[Input], output: Output, options: AnalysisOptions) -> list[Input]:
    """Returns the sources that the output folder does not know, or knows otherwise."""
    before = output.before
    if before.generations and dict(before.options) != options.deciding:
        raise BadOutput(
            f"{output.root}: was made with {before.options}, and this job has {options.deciding}; run it without --incremental"
        )
    return [source for source in sources if before.sources.get(source.path) != source.fingerprint]


class _Group(NamedTuple):
    """Runs that are decided in the same way, at once.

    Attributes:
        name: The model or the workload.
        options: The options of the workload, as text; empty for a model.
        format: The format of a history that a model decides; empty for a workload.
        conventions: What such histories say of how they are to be judged.
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
    """One job on its way."""

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
        with self._steps.step("read") as said:
            read = ingest(
                self._spark,
                self._files,
                sources,
                staged=self._output.staged,
                kept=self._output.table(OPERATIONS),
                keyed=self._options.keyed,
                copy=self._options.keep_operations,
                known=self._known(sources),
            )
            records = read_records(
                self._spark, read.seen, read.fault_events, wanted=self._options.wanted, staged=self._output.staged
            )
            bad = self._quarantine(read, records)
            operations = sum(each.operations or 0 for each in read.seen)
            said.text = f"{len(read.seen)} runs, {operations:,} operations, {bad:,} rows in quarantine"
        if read.written:
            self._tables.append(OPERATIONS)
        for name, rows in (("runs", records.runs), ("faults", records.faults), ("sightings", records.sightings)):
            self._write(name, rows)
        with self._steps.step("judge"):
            self._write("verdicts", self._judged(read, records))
        with self._steps.step("timelines") as said:
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
            said.text = f"{len(tables)} tables"
        runs: dict[str, list[str]] = {source.path: [] for source in sources}
        for each in read.seen:
            runs[each.source.path].append(each.run)
        with self._steps.step("trends"):
            before = self._planned(sources, runs)
            there = {name: self._all(before, name) for name in ("runs", "verdicts", *tables)}
            self._write("trends", trends(there["runs"], there["verdicts"], there))
        manifest = self._planned(sources, runs)
        with self._steps.step("sum up"):
            found = summary(self._spark, self._output.root, manifest, read=len(read.seen))
        pages: dict[str, bytes] = {}
        if self._options.pictures:
            with self._steps.step("draw") as said:
                every = self._all(manifest, "trends")
                pages = render(
                    found,
                    timelines=there,
                    trends=every,
                    faults=self._all(manifest, "faults"),
                    verdicts=there["verdicts"],
                )
                said.text = f"{len(pages)} files"
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
        """Returns a table of this job with what earlier ones have left in it."""
        rows = read_table(self._spark, self._output.root, manifest, name)
        assert rows is not None  # noqa: S101 - this job has written it
        return rows

    def _write(self, name: str, rows: DataFrame) -> None:
        rows.write.parquet(self._output.table(name))
        self._tables.append(name)

    def _quarantine(self, read: Ingested, records: Records) -> int:
        """Writes what does not fit, and returns how many rows that is."""
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
            told = "; ".join(f"{_place(row)}: {row['reason']}" for row in first)
            raise RowsRefused(f"{count} rows do not fit, and --strict allows none: {told}")
        return count

    def _judged(self, read: Ingested, records: Records) -> DataFrame:
        """Returns the verdicts of all runs."""
        groups: dict[_Group, list[str]] = {}
        deciders: dict[_Group, Decider] = {}
        for each in read.seen:
            decider = records.deciders[each.run]
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
            assert model is not None  # noqa: S101 - what no judge decides, a model does
            options = self._verdict_options(model, group.format, dict(group.conventions))
            parts.append(conform(verdicts(rows, options), VERDICTS))
        judged = union(parts) if parts else self._spark.createDataFrame([], VERDICTS)
        if read.quarantine is None:
            empty = [each for each in read.seen if not each.operations or records.deciders[each.run] is None]
            return union([judged, not_judged(self._spark, empty, records)]) if empty else judged
        path = f"{self._output.staged}/verdicts"
        judged.write.parquet(path)
        judged = self._spark.read.schema(VERDICTS).parquet(path)
        others = not_judged(self._spark, read.seen, records).join(judged.select("run"), "run", "left_anti")
        return withheld(judged.unionByName(conform(others, VERDICTS)), read.quarantine, read.seen)

    def _verdict_options(self, model: type[Model], kind: str, said: Mapping[str, str]) -> VerdictOptions:
        conventions = {**conventions_of(kind), **said, **self._options.conventions}
        return VerdictOptions(
            model=model,
            initial=self._options.initial,
            conventions=conventions,
            time_limit_s=self._options.time_limit_s,
            memory_limit=self._options.memory_limit,
        )

    def _known(self, sources: Sequence[Input]) -> dict[str, str]:
        """Returns the sources of the runs that the output folder has already, and that this job does not read."""
        if not self._options.incremental:
            return {}
        anew = {source.path for source in sources}
        return {run: path for path, names in self._output.before.runs.items() if path not in anew for run in names}


def summary(spark: SparkSession, root: str, manifest: Manifest, *, read: int = 0) -> Summary:
    """Returns what an output folder says.

    Args:
        spark: The session.
        root: The folder's URI.
        manifest: Its manifest.
        read: How many runs the job has read that asks.
    """
    there = read_table(spark, root, manifest, "verdicts")
    quarantine = read_table(spark, root, manifest, "quarantine")
    assert there is not None and quarantine is not None  # noqa: S101, PT018 - each job writes both
    counted = (
        there.groupBy("verdict").agg(F.count("*").alias("keys"), F.sum("operations").alias("operations")).collect()
    )
    counts = {row["verdict"]: row["keys"] for row in counted}
    ordered = there.where("order_agrees is not null").groupBy("order_agrees").count().collect()
    orders = {row["order_agrees"]: row["count"] for row in ordered}
    quarantined = quarantine.count()
    by_reason = (
        quarantine.groupBy("reason")
        .agg(F.count("*").alias("rows"), F.min("source").alias("source"), F.count_distinct("source").alias("sources"))
        .orderBy(F.desc("rows"), "reason")
        .limit(SHOWN_ROWS)
    )
    names = sorted({name for generation in manifest.generations for name in generation.tables})
    return Summary(
        out=root,
        runs=sum(len(runs) for runs in manifest.runs.values()),
        read=read,
        operations=sum(row["operations"] for row in counted),
        counts=counts,
        refuted=_first(there, "verdict", Verdict.INVALID) if Verdict.INVALID in counts else [],
        undecided=_first(there, "verdict", Verdict.UNKNOWN) if Verdict.UNKNOWN in counts else [],
        orders=orders,
        misordered=_first(there, "order_agrees", Verdict.INVALID) if Verdict.INVALID in orders else [],
        reasons=[Refusal(**row.asDict()) for row in by_reason.collect()] if quarantined else [],
        quarantined=quarantined,
        tables={
            name: [
                f"{root}/{GENERATIONS}/{generation.id}/{name}"
                for generation in manifest.generations
                if name in generation.tables
            ]
            for name in names
        },
    )


def _first(rows: DataFrame, column: str, verdict: Verdict) -> list[dict[str, Any]]:
    some = rows.where(F.col(column) == str(verdict)).orderBy("run", "key").limit(SHOWN_ROWS)
    return [row.asDict() for row in some.drop("counterexample").collect()]
