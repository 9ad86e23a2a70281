"""Runs a job in this process, for operations that fit into memory, in local files.

The rule: if this process cannot do the job, it raises `NotSuited` with the reason, and the output folder is unchanged.

If there are many runs, other processes read, judge and measure them, and this one writes the same rows in the same order.
A process gets the operations of a few runs at a time.
"""

from __future__ import annotations

from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from checker.formats.readers import EDN, JEPSEN_FILE, JSON_ARRAY, JSONL, PARQUET
from checker.formats.source import UNPACK_LIMIT, opened
from harness.console.plain import counted
from harness.errors import InfrastructureError, InputError
from harness.pool import Pool, processes
from results.pipeline.decide.verdicts import decided, judged
from results.pipeline.decide.withhold import lost_of, unjudged, withheld
from results.pipeline.errors import NotSuited, Unreadable
from results.pipeline.job import Ingested, analyze
from results.pipeline.measure.spans import own
from results.pipeline.measure.timelines import Subject, measured, shown_keys
from results.pipeline.read.documents import known_of, recorded
from results.pipeline.read.local_files import LocalFiles, is_local, local
from results.pipeline.read.runs import joined, read_source
from results.pipeline.schema import QUARANTINE, TIMELINES
from results.pipeline.write.output import OPERATIONS
from results.pipeline.write.tables import reading, table_of, write_operations, write_table, write_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from results.pipeline.decide.withhold import Lost
    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.runs import Run
    from results.pipeline.read.sources import Input
    from results.pipeline.write.output import Manifest, Output
    from results.pipeline.write.summary import Summary
    from results.pipeline.write.tables import Reading

    Row = Mapping[str, Any]

Result = TypeVar("Result")

# The word that each operation has once in the file, whatever the size of its other members.
_INVOKES: Final = {JSONL: b'"invoke"', JSON_ARRAY: b'"invoke"', EDN: b":invoke"}
_ANY: Final = b"\n"  # for a log, whose lines have no such word
_LEAST_BYTES: Final = 32  # of an operation in a test.jepsen, where no word marks one
_FEW_RUNS: Final = 100  # other processes take longer to start than this one takes for these
_RUNS_AT_ONCE: Final = 4


class WorkerEnded(InfrastructureError):  # noqa: N818 - the name states the problem
    """A process that reads, judges or measures runs has ended unexpectedly."""


def analyze_here(options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs a job in this process; see `results.pipeline.job.analyze`."""
    for path in (*options.paths, options.out):
        if not is_local(path):
            raise NotSuited(f"{path}: is not a plain path of this machine")
    with Pool(processes()) as pool:
        return analyze(LocalRunner(options.in_process, pool), options, steps)


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
        if source.format == JEPSEN_FILE:
            return path.stat().st_size // _LEAST_BYTES
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


class LocalRunner:
    """Runs a job in this process; see `results.pipeline.job.Runner`.

    Attributes:
        files: The files of this machine.
    """

    files: LocalFiles
    _runs: Sequence[Run]
    _lost: Mapping[str, Mapping[str | None, Lost]]
    _output: Output
    _options: AnalysisOptions

    def __init__(self, limit: int, pool: Pool) -> None:
        """Starts without runs.

        Args:
            limit: The maximum number of operations.
            pool: Processes that share the work of many runs.
        """
        self.files = LocalFiles()
        self._limit = limit
        self._pool = pool
        self._records: dict[str, dict[str, list[dict[str, Any]]]] = {}  # by run and table
        self._quarantine: list[Row] = []
        self._verdicts: dict[str, list[Row]] = {}

    def suits(self, sources: Sequence[Input], steps: Steps) -> None:
        """See `Runner`."""
        with steps.step("count") as shown:
            shown.text = counted(_require_small(sources, self._limit), "operation")

    def read(self, sources: Sequence[Input], output: Output, options: AnalysisOptions) -> Ingested:
        """See `Runner`."""
        self._output, self._options = output, options
        before = output.known(sources) if options.incremental else {}
        self._runs, malformed = joined(self._each(partial(read_source, keyed=options.keyed), sources), before)
        seen = [run.seen for run in self._runs]
        documents = [row for run in self._runs for row in run.documents]
        known = known_of(seen, documents, options.wanted)
        damaged = [row for row in documents if row["problem"] is not None]
        nothing = dict.fromkeys(QUARANTINE.names)
        self._quarantine = malformed.to_pylist()
        self._quarantine += [
            {**nothing, "source": source.data, "run": source.name, "reason": source.trouble}
            for source in sources
            if source.trouble is not None
        ]
        lost = lost_of(self._quarantine, seen)
        self._quarantine += [
            {**nothing, "source": row["source"], "run": row["run"], "reason": row["problem"]} for row in damaged
        ]
        self._lost = lost
        self._records = {
            run.seen.run: recorded(run.seen, run.documents, run.fault_events, known.name(run.seen.run))
            for run in self._runs
        }
        for name in ("runs", "faults", "sightings"):
            self._write(name, (row for its in self._records.values() for row in its[name]))
        self._write("quarantine", self._quarantine)
        kept = [run for run in self._runs if run.operations.num_rows and (run.from_events or options.keep_operations)]
        for run in kept:
            folder = f"{output.table(OPERATIONS)}/{'paired' if run.from_events else 'copied'}"
            write_operations(folder, run.operations, run=run.seen.run, day=run.seen.source.day)
        examples = sorted(self._quarantine, key=lambda row: (row["source"], row["line"] or 0))[:3]
        return Ingested(seen=seen, quarantined=len(self._quarantine), examples=examples, written=bool(kept))

    def judge(self) -> None:
        """See `Runner`."""
        names = [run.seen.run for run in self._runs]
        judge = partial(_judged, options=self._options)
        self._verdicts = dict(zip(names, self._each(judge, self._runs, map(self._lost.get, names)), strict=True))
        self._write("verdicts", (row for rows in self._verdicts.values() for row in rows))

    def measure(self) -> Sequence[str]:
        """See `Runner`."""
        names = [run.seen.run for run in self._runs]
        records, verdicts = map(self._records.__getitem__, names), map(self._verdicts.__getitem__, names)
        per_run = self._each(_measured, self._runs, records, verdicts)
        for name in TIMELINES:
            write_tables(self._output.table(name), name, [tables[name] for tables in per_run])
        return tuple(TIMELINES)

    def _each(self, function: Callable[..., Result], runs: Sequence[Any], *others: Iterable[Any]) -> list[Result]:
        """Calls a function with each run or source, and with the next value of each of the others.

        Raises:
            WorkerEnded: A process of the pool has ended.
        """
        if len(runs) < _FEW_RUNS or processes() == 1:
            return list(map(function, runs, *others))
        try:
            return list(self._pool.map(function, runs, *others, chunksize=_RUNS_AT_ONCE))
        except BrokenProcessPool as error:
            raise WorkerEnded(
                "a process that analyzes runs has ended unexpectedly, e.g. because the machine has no memory left; "
                "analyze fewer runs at a time, with --incremental"
            ) from error

    def write(self, folder: str, name: str, rows: Iterable[Row]) -> None:
        """See `Runner`."""
        write_table(folder, name, rows)

    def _write(self, name: str, rows: Iterable[Row]) -> None:
        write_table(self._output.table(name), name, rows)

    def reading(self, root: str, manifest: Manifest) -> Reading:
        """See `Runner`."""
        return reading(root, manifest)

    def blamed(self, error: Exception) -> tuple[str, str] | None:
        """See `Runner`."""
        return (error.path, str(error)) if isinstance(error, Unreadable) else None


def _judged(run: Run, lost: Mapping[str | None, Lost] | None, *, options: AnalysisOptions) -> list[Row]:
    """Returns the verdicts of a run.

    Args:
        run: The run.
        lost: Its rows in quarantine, by key; None if there are none.
        options: The options of the analysis.
    """
    known = known_of([run.seen], run.documents, options.wanted)
    decider = known.deciders[run.seen.run]
    rows: Sequence[Row]
    if decider is None or not run.operations.num_rows:
        rows = [unjudged(run.seen, known)]
    elif decider.judge is not None:
        rows = judged(run.operations, decider.judge, options.memory_limit)
    else:
        assert decider.model is not None  # noqa: S101 - a decider has a judge or a model
        source = run.seen.source
        rows = decided(run.operations, options.of_model(decider.model, source.format, source.conventions))
    return list(rows if lost is None else withheld(rows, lost))


def _measured(run: Run, records: Mapping[str, Sequence[Row]], verdicts: Sequence[Row]) -> dict[str, pa.Table]:
    """Returns the timelines of a run, by the name of the table.

    Args:
        run: The run.
        records: Its rows in the tables of runs, faults and sightings.
        verdicts: Its rows in the table of verdicts.
    """
    [about] = records["runs"]
    keys = pc.value_counts(own(run.operations).column("key").drop_null())
    counts = [(row["values"], row["counts"]) for row in keys.to_pylist()]
    subject = Subject(
        run=run.seen.run,
        faults=records["faults"],
        sightings=records["sightings"],
        answers=about["answers"] or (),
        refusals=about["refusals"] or (),
        shown=shown_keys(counts, {row["key"]: row["verdict"] for row in verdicts}),
    )
    tables = measured(subject, run.operations)
    return {name: table_of(name, tables.get(name, ())) for name in TIMELINES}
