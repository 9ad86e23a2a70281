"""Runs a job in this process, for operations that fit into memory, in local files.

The rule: if this process cannot do the job, it raises `NotSuited` with the reason, and the output folder is unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from checker.checking import conventions_of
from checker.formats.read import EDN, JSONL, PARQUET
from checker.formats.source import UNPACK_LIMIT, opened
from harness.console.plain import counted
from harness.errors import InputError
from results.pipeline.decide.coding import coding_of
from results.pipeline.decide.verdicts import VerdictOptions, decided, judged, most_in_kernel
from results.pipeline.decide.withhold import lost_of, unjudged, withheld
from results.pipeline.errors import NotSuited, Unreadable
from results.pipeline.job import Ingested, analyze
from results.pipeline.measure.spans import own
from results.pipeline.measure.timelines import Subject, measured, shown_keys
from results.pipeline.read.documents import known_of, parsed, recorded
from results.pipeline.read.local_files import LocalFiles, is_local, local
from results.pipeline.read.runs import read_runs
from results.pipeline.read.sources import RESULTS, TEST
from results.pipeline.schema import QUARANTINE, TIMELINES
from results.pipeline.write.output import OPERATIONS
from results.pipeline.write.tables import reading, write_operations, write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from checker.search.deciders import Decider
    from results.pipeline.options import AnalysisOptions
    from results.pipeline.progress import Steps
    from results.pipeline.read.documents import Known
    from results.pipeline.read.runs import Run
    from results.pipeline.read.sources import Input
    from results.pipeline.write.output import Manifest, Output
    from results.pipeline.write.summary import Summary
    from results.pipeline.write.tables import Read

    Row = Mapping[str, Any]

# The word that each operation has once in the file, whatever the size of its other members.
_INVOKES: Final = {JSONL: b'"invoke"', EDN: b":invoke"}
_ANY: Final = b"\n"  # for a log, whose lines have no such word


def analyze_here(options: AnalysisOptions, steps: Steps) -> Summary:
    """Runs a job in this process; see `results.pipeline.job.analyze`."""
    for path in (*options.paths, options.out):
        if not is_local(path):
            raise NotSuited(f"{path}: is not a plain path of this machine")
    return analyze(LocalRunner(options.in_process), options, steps)


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


class LocalRunner:
    """Runs a job in this process; see `results.pipeline.job.Runner`.

    Attributes:
        files: The files of this machine.
    """

    files: LocalFiles
    _runs: Sequence[Run]
    _known: Known
    _output: Output
    _options: AnalysisOptions

    def __init__(self, limit: int) -> None:
        """Starts without runs.

        Args:
            limit: The maximum number of operations.
        """
        self.files = LocalFiles()
        self._limit = limit
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
        self._runs, malformed = read_runs(sources, before, keyed=options.keyed)
        seen = [run.seen for run in self._runs]
        documents = [row for run in self._runs for row in _documents(run)]
        self._known = known_of(seen, documents, options.wanted)
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
        by_run: dict[str, list[Row]] = {}
        for row in documents:
            by_run.setdefault(row["run"], []).append(row)
        self._records = {
            run.seen.run: recorded(
                run.seen, by_run.get(run.seen.run, ()), run.fault_events, self._known.name(run.seen.run)
            )
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
        self._verdicts = {run.seen.run: self._judged(run) for run in self._runs}
        self._write("verdicts", (row for rows in self._verdicts.values() for row in rows))

    def _judged(self, run: Run) -> list[Row]:
        name, operations = run.seen.run, run.operations
        decider = self._known.deciders[name]
        rows: Sequence[Row]
        if decider is None or not operations.num_rows:
            rows = [unjudged(run.seen, self._known)]
        elif decider.judge is not None:
            rows = judged(operations, decider.judge, self._options.memory_limit)
        else:
            options = _options(run, decider, self._options)
            _require_fits(run, options)
            rows = decided(operations, options)
        lost = self._lost.get(name)
        return list(rows if lost is None else withheld(rows, lost))

    def measure(self) -> Sequence[str]:
        """See `Runner`."""
        found: dict[str, list[Row]] = {name: [] for name in TIMELINES}
        for run in self._runs:
            for name, rows in measured(self._subject(run), run.operations).items():
                found[name].extend(rows)
        for name, its in found.items():
            self._write(name, its)
        return list(found)

    def _subject(self, run: Run) -> Subject:
        name = run.seen.run
        records = self._records[name]
        [about] = records["runs"]
        keys = pc.value_counts(own(run.operations).column("key").drop_null())
        counts = [(row["values"], row["counts"]) for row in keys.to_pylist()]
        return Subject(
            run=name,
            faults=records["faults"],
            sightings=records["sightings"],
            answers=about["answers"] or (),
            refusals=about["refusals"] or (),
            shown=shown_keys(counts, {row["key"]: row["verdict"] for row in self._verdicts[name]}),
        )

    def write(self, folder: str, name: str, rows: Iterable[Row]) -> None:
        """See `Runner`."""
        write_table(folder, name, rows)

    def _write(self, name: str, rows: Iterable[Row]) -> None:
        write_table(self._output.table(name), name, rows)

    def reading(self, root: str, manifest: Manifest) -> Read:
        """See `Runner`."""
        return reading(root, manifest)

    def blamed(self, error: Exception) -> tuple[str, str] | None:
        """See `Runner`."""
        return (error.path, str(error)) if isinstance(error, Unreadable) else None


def _options(run: Run, decider: Decider, options: AnalysisOptions) -> VerdictOptions:
    source = run.seen.source
    assert decider.model is not None  # noqa: S101 - a decider has a judge or a model
    return VerdictOptions(
        model=decider.model,
        initial=options.initial,
        conventions={**conventions_of(source.format), **dict(source.conventions), **options.conventions},
        time_limit_s=options.time_limit_s,
        memory_limit=options.memory_limit,
    )


def _require_fits(run: Run, options: VerdictOptions) -> None:
    """Checks that the kernel decides each key that dataflow could decide.

    Raises:
        NotSuited: A key of a register has too many operations.
    """
    most = most_in_kernel(options.memory_limit)
    if run.operations.num_rows <= most or coding_of(options.work().model) is None:
        return
    greatest = pc.max(pc.value_counts(run.operations.column("key")).field("counts")).as_py()
    if greatest > most:
        raise NotSuited(
            f"{run.seen.source.path}: a key has {greatest:,} operations, and {most:,} fit into its memory limit"
        )


def _documents(run: Run) -> Iterator[dict[str, Any]]:
    """Yields the rows of the two files of a run."""
    source = run.seen.source
    for name, there in ((TEST, source.has_test), (RESULTS, source.has_results)):
        if there:
            file = f"{source.path}/{name}"
            yield parsed(run.seen.run, file, local(file).read_bytes())
