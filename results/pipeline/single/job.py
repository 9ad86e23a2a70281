"""The whole job in this process: the job of `results.pipeline.spark.job`, for few operations in local files.

The rule: the output folder equals the one of Spark's job, table by table; a test compares the two. If this process cannot do
the job, it raises `NotSuited` with the reason before it writes anything.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from checker.formats.read import EDN, JSONL, PARQUET
from checker.formats.source import UNPACK_LIMIT, opened
from harness.console.plain import counted
from harness.errors import InputError
from results.page.drawing import draw_all
from results.pipeline.decide.withhold import unjudged
from results.pipeline.errors import RowsRefused
from results.pipeline.measure.trends import trends
from results.pipeline.read.documents import MERGED, PARSED, known_of, parsed
from results.pipeline.read.local_files import LocalFiles, is_local, local
from results.pipeline.read.sources import RESULTS, TEST, find_sources
from results.pipeline.schema import RUNS
from results.pipeline.single.asked import asked_of
from results.pipeline.single.errors import NotSuited
from results.pipeline.single.figures import figures
from results.pipeline.single.gathered import gathered
from results.pipeline.single.read import Run, read_runs
from results.pipeline.single.summary import summary
from results.pipeline.single.tables import LAYOUTS, write_operations, write_table
from results.pipeline.single.timelines import timelines
from results.pipeline.single.verdicts import verdicts_of
from results.pipeline.write.output import OPERATIONS, Output
from results.pipeline.write.page import render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.documents import Known
    from results.pipeline.read.sources import Input
    from results.pipeline.write.summary import Summary

    Row = Mapping[str, Any]

QUARANTINE: Final = "quarantine"
# The word that each operation has once in the file, whatever the size of its other members.
_INVOKES: Final = {JSONL: b'"invoke"', EDN: b":invoke"}
_ANY: Final = b"\n"  # for a log, whose lines have no such word


def analyze(options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs the whole job.

    Raises:
        NotSuited: Only Spark can do it; the output folder is unchanged.
        LabrysError: Something cannot be read, judged or written; the output folder is unchanged.
    """
    for path in (*options.paths, options.out):
        if not is_local(path):
            raise NotSuited(f"{path}: is not a plain path of this machine")
    files = LocalFiles()
    with steps.step("find") as shown:
        sources = find_sources(files, options.paths)
        shown.text = counted(len(sources), "source")
    with steps.step("count") as shown:
        shown.text = counted(_require_small(sources, options.in_process), "operation")
    output = Output(files, options.out)
    try:
        if options.incremental:
            sources = output.changed(sources, options.deciding)
        if sources or not output.before.generations:
            return _Job(output, options, steps).run(sources)
        found = summary(output.root, output.before)
    except BaseException:
        output.abort()
        raise
    output.abort()
    return found


def _require_small(sources: Sequence[Input], limit: int) -> int:
    """Checks that the input is small enough for one process, and returns the number of its operations.

    Raises:
        NotSuited: It is not, or a source is a data set of several files.
    """
    count = 0
    for source in sources:
        if source.is_folder:
            raise NotSuited(f"{source.path}: is a data set of several files")
        if source.trouble is None:
            count += _count(source, limit - count)
        if count > limit:
            raise NotSuited(
                f"the sources have more than {limit:,} operations, the limit of this process (--in-process)"
            )
    return count


def _count(source: Input, enough: int) -> int:
    """Returns the number of operations in a source. It counts to the end, or until there are more than `enough`.

    A table has the number in its footer. In a history, the invokes are counted, in a few percent of the time that reading
    takes. A value may have the same word, so the number can be too high.
    """
    path = local(source.data)
    try:
        if source.format == PARQUET:
            return int(parquet.read_metadata(path).num_rows)
        word = _INVOKES.get(source.format, _ANY)
        count = 0
        end = b""
        with opened(str(path)) as stream:
            for part in stream.parts(UNPACK_LIMIT):
                joined = end + part
                count += joined.count(word)
                end = joined[max(len(joined) - len(word) + 1, 0) :]
                if count > enough:
                    break
    except (InputError, OSError, pa.ArrowException) as error:
        raise NotSuited(f"{source.path}: {error}") from error
    return count


class _Job:
    """One attempt at a job."""

    def __init__(self, output: Output, options: AnalysisOptions, steps: Steps) -> None:
        self._output = output
        self._options = options
        self._steps = steps
        self._quarantine: list[Row] = []
        self._rows: dict[str, dict[str, list[dict[str, Any]]]] = {}  # by run and table

    def run(self, sources: Sequence[Input]) -> Summary:
        """Reads, judges and commits."""
        with self._steps.step("read") as shown:
            runs, known = self._read(sources)
            operations = sum(run.operations.num_rows for run in runs)
            bad = len(self._quarantine)
            shown.text = (
                f"{counted(len(runs), 'run')}, {counted(operations, 'operation')}, {counted(bad, 'row')} in quarantine"
            )
        self._steps.note_bare(sources)
        with self._steps.step("judge"):
            for run in runs:
                self._judge(run, known)
        with self._steps.step("timelines"):
            for run in runs:
                self._measure(run)
        written = self._write(runs)
        named: dict[str, list[str]] = {source.path: [] for source in sources}
        for run in runs:
            named[run.seen.source.path].append(run.seen.run)
        plan = partial(
            self._output.plan,
            options=self._options.deciding,
            sources={source.path: source.fingerprint for source in sources},
            runs=named,
            incremental=self._options.incremental,
        )
        root = self._output.root
        with self._steps.step("trends"):
            compared = trends(figures(root, plan(tables=written)))
            write_table(self._output.table("trends"), "trends", compared)
        manifest = plan(tables=[*written, "trends"])
        with self._steps.step("sum up"):
            found = summary(root, manifest, read=len(runs))
        pages: dict[str, bytes] = {}
        if self._options.pictures:
            with self._steps.step("draw") as shown:
                pages = render(found, compared, partial(gathered, root, manifest), draw_all)
                shown.text = counted(len(pages), "file")
        self._output.commit(manifest, pages)
        return found

    def _read(self, sources: Sequence[Input]) -> tuple[list[Run], Known]:
        """Reads operations and records; writing starts after all of them are read."""
        options = self._options
        before = self._output.known(sources) if options.incremental else {}
        runs = read_runs(sources, before, keyed=options.keyed)
        for source in sources:
            if source.trouble is not None:
                broken = {"source": source.data, "run": source.name, "reason": source.trouble}
                self._quarantine.append(broken)
        layout = to_arrow_schema(PARSED)
        documents = [row for run in runs for row in _documents(run, layout)]
        known = known_of([run.seen for run in runs], documents, options.wanted)
        self._quarantine += [
            {"source": row["source"], "run": row["run"], "reason": row["problem"]}
            for row in documents
            if row["problem"] is not None
        ]
        by_run: dict[str, list[Row]] = {}
        for row in documents:
            by_run.setdefault(row["run"], []).append(row)
        for run in runs:
            self._record(run, by_run.get(run.seen.run, ()), known)
        if options.strict and (rows := self._quarantine):
            examples = "; ".join(f"{row['source']}: {row['reason']}" for row in rows[:3])
            raise RowsRefused(f"{len(rows)} rows are malformed, and --strict allows none: {examples}")
        return runs, known

    def _record(self, run: Run, documents: Iterable[Row], known: Known) -> None:
        """Adds the records of a run to the tables of runs, faults and sightings."""
        name, source = run.seen.run, run.seen.source
        merged = {each: next((row[each] for row in documents if row[each] is not None), None) for each in MERGED}
        faults = merged["fault_rows"]
        if faults is None:
            faults = list(_of_events(run.fault_events))
        about = {
            **{each: merged.get(each) for each in RUNS.names},
            "run": name,
            "day": source.day if merged["started"] is None else merged["started"][:10],
            "faults": ",".join(sorted({row["kind"] for row in faults})),
            "model": known.name(name),
            "format": source.format,
            "source": source.path,
            "report": source.report,
        }
        self._rows[name] = {
            "runs": [about],
            "faults": [{**row, "run": name} for row in faults],
            "sightings": [{**row, "run": name} for row in merged["sighting_rows"] or ()],
        }

    def _judge(self, run: Run, known: Known) -> None:
        """Adds the verdicts of a run."""
        decider = known.deciders[run.seen.run]
        if decider is None or not run.seen.operations:
            rows = [unjudged(run.seen, known)]
        else:
            rows = verdicts_of(run, decider, self._options)
        self._rows[run.seen.run]["verdicts"] = rows

    def _measure(self, run: Run) -> None:
        """Adds the timelines of a run."""
        its = self._rows[run.seen.run]
        (about,) = its["runs"]
        its |= timelines(
            asked_of(run.operations, about["answers"] or (), about["refusals"] or ()),
            run=run.seen.run,
            faults=its["faults"],
            sightings=its["sightings"],
            verdicts={row.get("key"): row["verdict"] for row in its["verdicts"]},
        )

    def _write(self, runs: Sequence[Run]) -> list[str]:
        """Writes all tables but the trends; returns their names."""
        names = [name for name in LAYOUTS if name != "trends"]
        for name in names:
            rows = (row for its in self._rows.values() for row in its.get(name, ()))
            write_table(self._output.table(name), name, self._quarantine if name == QUARANTINE else rows)
        kept = [run for run in runs if run.operations.num_rows and (run.from_events or self._options.keep_operations)]
        for run in kept:
            folder = f"{self._output.table(OPERATIONS)}/{'paired' if run.from_events else 'copied'}"
            write_operations(folder, run.operations, run=run.seen.run, day=run.seen.source.day)
        return [*names, OPERATIONS] if kept else names


def _documents(run: Run, layout: Any) -> Iterable[Row]:
    """Yields the rows of the two files of a run."""
    source = run.seen.source
    for name, there in ((TEST, source.has_test), (RESULTS, source.has_results)):
        if there:
            file = f"{source.path}/{name}"
            yield from parsed(run.seen.run, file, local(file).read_bytes(), layout).to_pylist()


def _of_events(events: Sequence[Row]) -> Iterable[Row]:
    """Yields rows of faults from events."""
    by_fault: dict[int, list[Row]] = {}
    for event in events:
        by_fault.setdefault(event["fault"], []).append(event)
    for fault, its in by_fault.items():
        starts = [event for event in its if event["begins"]]
        if starts:
            yield {
                "fault": fault,
                "kind": min(event["kind"] for event in starts),
                "targets": max(starts, key=lambda event: event["position"])["targets"],
                "start_ns": min(event["time_ns"] for event in starts),
                "end_ns": max((event["time_ns"] for event in its if not event["begins"]), default=None),
            }
