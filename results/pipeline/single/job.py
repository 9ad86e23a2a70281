"""The whole job in this process: what `results.pipeline.job` does with Spark, for few operations on this machine.

The law: the output folder is the one that Spark's job would leave, table by table; a test holds the two to each other. What
this path cannot do is found before anything is written, and `NotSuited` says what it is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from checker.formats.read import PARQUET
from harness.verdict import Verdict
from results.pipeline.decide.withhold import unjudged
from results.pipeline.errors import RowsRefused
from results.pipeline.measure.availability import AFTER, DURING
from results.pipeline.measure.timelines import AVAILABILITY, HEAT, LATENCIES, RATES, TOTALS
from results.pipeline.measure.trends import trends
from results.pipeline.read.documents import MERGED, PARSED, known_of, parsed
from results.pipeline.read.sources import RESULTS, TEST, find_sources
from results.pipeline.schema import RUNS
from results.pipeline.single.errors import NotSuited
from results.pipeline.single.local_files import LocalFiles, is_local, local
from results.pipeline.single.read import Run, read_runs
from results.pipeline.single.tables import LAYOUTS, read_table, write_operations, write_table
from results.pipeline.single.timelines import asked_of, timelines
from results.pipeline.single.verdicts import verdicts_of
from results.pipeline.write.gathered import FAULTS as OF_FAULTS
from results.pipeline.write.gathered import VERDICTS, Gathered
from results.pipeline.write.output import OPERATIONS, Output
from results.pipeline.write.page import render
from results.pipeline.write.summary import SHOWN_ROWS, Refusal, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.documents import Known
    from results.pipeline.read.sources import Input
    from results.pipeline.write.output import Manifest

    Row = Mapping[str, Any]

MOST_OPERATIONS: Final = 1_000_000
_BYTES_OF_EVENTS: Final = 100  # what the events of an operation take at least, as lines
_PACKED: Final = 10  # how much smaller they may be when they are compressed


def analyze(options: AnalysisOptions, steps: Steps) -> Summary:
    """Does the whole job.

    Raises:
        NotSuited: Only Spark can do it; the output folder is as it was.
        LabrysError: Something cannot be read, judged or written; the output folder is as it was.
    """
    for path in (*options.paths, options.out):
        if not is_local(path):
            raise NotSuited(f"{path}: is no plain path of this machine")
    files = LocalFiles()
    with steps.step("find") as said:
        sources = find_sources(files, options.paths)
        said.text = f"{len(sources)} sources"
    _hold_size(sources)
    output = Output(files, options.out)
    try:
        if options.incremental:
            sources = output.changed(sources, options.deciding)
        if sources or not output.before.generations:
            return _Job(output, options, steps).run(sources)
        found = summed(output.root, output.before)
    except BaseException:
        output.abort()
        raise
    output.abort()
    return found


def _hold_size(sources: Sequence[Input]) -> None:
    """Holds the input to what one process does quickly.

    Raises:
        NotSuited: There may be more, or there are data sets as Spark writes them.
    """
    most = 0
    for source in sources:
        if source.is_folder:
            raise NotSuited(f"{source.path}: is a data set of several files")
        if source.trouble is None:
            most += _at_most(source)
    if most > MOST_OPERATIONS:
        raise NotSuited(f"the sources may hold {most:,} operations, and one process takes {MOST_OPERATIONS:,}")


def _at_most(source: Input) -> int:
    """Returns how many operations a source may hold."""
    path = local(source.data)
    try:
        if source.format == PARQUET:
            return int(parquet.read_metadata(path).num_rows)
        size = path.stat().st_size
    except (OSError, pa.ArrowException) as error:
        raise NotSuited(f"{source.path}: {error}") from error
    return size * (_PACKED if path.suffix == ".gz" else 1) // _BYTES_OF_EVENTS


class _Job:
    """One job on its way."""

    def __init__(self, output: Output, options: AnalysisOptions, steps: Steps) -> None:
        self._output = output
        self._options = options
        self._steps = steps
        self._rows: dict[str, list[Row]] = {name: [] for name in LAYOUTS}

    def run(self, sources: Sequence[Input]) -> Summary:
        """Reads, judges and commits."""
        with self._steps.step("read") as said:
            runs, known = self._read(sources)
            operations = sum(run.operations.num_rows for run in runs)
            bad = len(self._rows["quarantine"])
            said.text = f"{len(runs)} runs, {operations:,} operations, {bad:,} rows in quarantine"
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
            compared = trends(_figures(root, plan(tables=written)))
            write_table(self._output.table("trends"), "trends", compared)
        manifest = plan(tables=[*written, "trends"])
        with self._steps.step("sum up"):
            found = summed(root, manifest, read=len(runs))
        pages: dict[str, bytes] = {}
        if self._options.pictures:
            with self._steps.step("draw") as said:
                pages = render(found, compared, partial(_gathered, root, manifest))
                said.text = f"{len(pages)} files"
        self._output.commit(manifest, pages)
        return found

    def _read(self, sources: Sequence[Input]) -> tuple[list[Run], Known]:
        """Reads operations and records; nothing is written before all of them are read."""
        options = self._options
        before = self._output.known(sources) if options.incremental else {}
        runs = read_runs(sources, before, keyed=options.keyed)
        for source in sources:
            if source.trouble is not None:
                broken = {"source": source.data, "run": source.name, "reason": source.trouble}
                self._rows["quarantine"].append(broken)
        layout = to_arrow_schema(PARSED)
        documents = [row for run in runs for row in _documents(run, layout)]
        known = known_of([run.seen for run in runs], documents, options.wanted)
        self._rows["quarantine"] += [
            {"source": row["source"], "run": row["run"], "reason": row["problem"]}
            for row in documents
            if row["problem"] is not None
        ]
        by_run: dict[str, list[Row]] = {}
        for row in documents:
            by_run.setdefault(row["run"], []).append(row)
        for run in runs:
            self._record(run, by_run.get(run.seen.run, ()), known)
        if options.strict and (rows := self._rows["quarantine"]):
            told = "; ".join(f"{row['source']}: {row['reason']}" for row in rows[:3])
            raise RowsRefused(f"{len(rows)} rows do not fit, and --strict allows none: {told}")
        return runs, known

    def _record(self, run: Run, documents: Iterable[Row], known: Known) -> None:
        """Adds what a run says about itself to the tables of runs, faults and sightings."""
        name, source = run.seen.run, run.seen.source
        merged = {each: next((row[each] for row in documents if row[each] is not None), None) for each in MERGED}
        faults = merged["fault_rows"]
        if faults is None:
            faults = list(_of_events(run.fault_events))
        self._rows["faults"] += [{**row, "run": name} for row in faults]
        self._rows["sightings"] += [{**row, "run": name} for row in merged["sighting_rows"] or ()]
        self._rows["runs"].append(
            {
                **{each: merged.get(each) for each in RUNS.names},
                "run": name,
                "day": source.day if merged["started"] is None else merged["started"][:10],
                "faults": ",".join(sorted({row["kind"] for row in faults})),
                "model": known.name(name),
                "format": source.format,
                "source": source.path,
            }
        )

    def _judge(self, run: Run, known: Known) -> None:
        decider = known.deciders[run.seen.run]
        if decider is None or not run.seen.operations:
            self._rows["verdicts"].append(unjudged(run.seen, known))
        else:
            self._rows["verdicts"] += verdicts_of(run, decider, self._options)

    def _measure(self, run: Run) -> None:
        name = run.seen.run

        def its(table: str) -> list[Row]:
            return [row for row in self._rows[table] if row["run"] == name]

        (about,) = its("runs")
        found = timelines(
            asked_of(run.operations, about["answers"] or (), about["refusals"] or ()),
            run=name,
            faults=its("faults"),
            sightings=its("sightings"),
            verdicts={row.get("key"): row["verdict"] for row in its("verdicts")},
        )
        for table, rows in found.items():
            self._rows[table] += rows

    def _write(self, runs: Sequence[Run]) -> list[str]:
        """Writes all tables but the trends; returns their names."""
        names = [name for name in LAYOUTS if name != "trends"]
        for name in names:
            write_table(self._output.table(name), name, self._rows[name])
        kept = [run for run in runs if run.operations.num_rows and (run.from_events or self._options.keep_operations)]
        for run in kept:
            folder = f"{self._output.table(OPERATIONS)}/{'paired' if run.from_events else 'copied'}"
            write_operations(folder, run.operations, run=run.seen.run, day=run.seen.source.day)
        return [*names, OPERATIONS] if kept else names


def _documents(run: Run, layout: Any) -> Iterable[Row]:
    """Yields what the two files of a run say."""
    source = run.seen.source
    for name, there in ((TEST, source.has_test), (RESULTS, source.has_results)):
        if there:
            file = f"{source.path}/{name}"
            yield from parsed(run.seen.run, file, local(file).read_bytes(), layout).to_pylist()


def _of_events(events: Sequence[Row]) -> Iterable[Row]:
    """Yields rows of faults from what events say of them."""
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


def _figures(root: str, manifest: Manifest) -> Iterable[Row]:
    """Yields the rows of `measure.figures`."""
    found: dict[str, dict[str, Any]] = {}
    for row in read_table(root, manifest, "runs", RUNS.names):
        found[row["run"]] = {**row, **dict.fromkeys(("severity", "availability", "p50_ms", "p99_ms", "measured_s"))}
        found[row["run"]] |= {"keys": None, "operations": None, "healed": 0, "unseen": 0, "asked": 0, "answered": 0}
    for row in read_table(root, manifest, "verdicts", ("verdict", "operations")):
        its = found[row["run"]]
        its["severity"] = max(its["severity"] or 0, Verdict(row["verdict"]).severity)
        its["keys"] = (its["keys"] or 0) + 1
        its["operations"] = (its["operations"] or 0) + row["operations"]
    for row in read_table(root, manifest, AVAILABILITY, ("node", "part", "sustained_ok_s")):
        if row["node"] is None and row["part"] == AFTER:
            its = found[row["run"]]
            its["healed"] += 1
            its["unseen"] += row["sustained_ok_s"] is None
            its["measured_s"] = _greatest(its["measured_s"], row["sustained_ok_s"])
    for row in read_table(root, manifest, TOTALS, ("asked", "answered", "p50_ms", "p99_ms")):
        its = found[row["run"]]
        its["asked"] += row["asked"]
        its["answered"] += row["answered"]
        its |= {name: _greatest(its[name], row[name]) for name in ("p50_ms", "p99_ms")}
    for its in found.values():
        its["availability"] = its["answered"] / its["asked"] if its["asked"] else None
    return found.values()


def _greatest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _gathered(root: str, manifest: Manifest, names: Sequence[str]) -> Gathered:
    """Returns what is drawn."""
    found: dict[str, dict[str, list[Row]]] = {name: {} for name in names}

    def take(table: str, rows: Iterable[Row]) -> None:
        for row in rows:
            found[row["run"]].setdefault(table, []).append(row)

    rates: dict[tuple[Any, ...], int] = {}
    bucket = ("run", "f", "type", "time_s", "width_s")
    for row in read_table(root, manifest, RATES, (*bucket, "operations"), names):
        group = tuple(row[name] for name in bucket)
        rates[group] = rates.get(group, 0) + row["operations"]
    take(RATES, ({**dict(zip(bucket, group, strict=True)), "operations": count} for group, count in rates.items()))
    for table in (LATENCIES, HEAT, TOTALS):
        take(table, read_table(root, manifest, table, LAYOUTS[table].names, names))
    shown = {(row["run"], row["key"]) for of_run in found.values() for row in of_run.get(HEAT, ())}
    verdicts = read_table(root, manifest, "verdicts", ("key", "verdict"), names)
    take(VERDICTS, (row for row in verdicts if (row["run"], row["key"]) in shown))
    faults = read_table(root, manifest, "faults", ("kind", "start_ns", "end_ns", "effective"), names)
    take(OF_FAULTS, sorted(faults, key=lambda row: row["start_ns"]))
    during: dict[tuple[str, str], tuple[int, int]] = {}
    for row in read_table(root, manifest, AVAILABILITY, ("kind", "node", "part", "operations", "answered")):
        if row["node"] is None and row["part"] == DURING:
            asked, answered = during.get((row["run"], row["kind"]), (0, 0))
            during[row["run"], row["kind"]] = asked + row["operations"], answered + row["answered"]
    bore = [
        {"run": run, "kind": kind, "asked": asked, "answered": answered}
        for (run, kind), (asked, answered) in during.items()
    ]
    return Gathered(runs=found, bore=bore)


def summed(root: str, manifest: Manifest, *, read: int = 0) -> Summary:
    """Returns what an output folder says; see `results.pipeline.write.summary.summary`."""
    there = read_table(root, manifest, "verdicts", [n for n in LAYOUTS["verdicts"].names if n != "counterexample"])
    there.sort(key=lambda row: (row["run"], row["key"] is not None, row["key"] or ""))
    refused: dict[str, list[str]] = {}
    for row in read_table(root, manifest, "quarantine", ("source", "reason")):
        refused.setdefault(row["reason"], []).append(row["source"])
    reasons = sorted(refused, key=lambda reason: (-len(refused[reason]), reason))

    def first(column: str, verdict: Verdict) -> Sequence[Row]:
        return [row for row in there if row[column] == str(verdict)][:SHOWN_ROWS]

    return Summary(
        out=root,
        runs=sum(len(runs) for runs in manifest.runs.values()),
        read=read,
        operations=sum(row["operations"] for row in there),
        counts=_counted(row["verdict"] for row in there),
        refuted=first("verdict", Verdict.INVALID),
        undecided=first("verdict", Verdict.UNKNOWN),
        orders=_counted(row["order_agrees"] for row in there if row["order_agrees"] is not None),
        misordered=first("order_agrees", Verdict.INVALID),
        reasons=[
            Refusal(reason=reason, rows=len(places), source=min(places), sources=len(set(places)))
            for reason, places in ((reason, refused[reason]) for reason in reasons[:SHOWN_ROWS])
        ],
        quarantined=sum(map(len, refused.values())),
        tables=manifest.tables(root),
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts
