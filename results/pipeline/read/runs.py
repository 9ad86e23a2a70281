"""The tables of runs and of their faults: what `test.json` and `results.json` say, one row for each run and each fault.

A run whose verdict file is missing or damaged is a row all the same, with what is known. What a run says about itself, its
verdict too, is quoted here and never taken for what this job finds.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know
from pyspark.sql import types as t

from checker.deciders import SAY_IT
from checker.formats.parquet import decode_value
from harness.errors import InputError, LabrysError
from harness.fault_events import fault_event
from results.pipeline.read.events import plain_uri
from results.pipeline.read.sources import RESULTS, TEST, literal
from results.pipeline.schema import MOST_NS, conform
from results.reading import checked, faults_from, verdict_from, workload_sightings_from
from results.record import test_from_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from checker.deciders import Decider, Wanted
    from results.pipeline.read.tables import Seen

RUNS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("day", t.StringType()),  # of its start, in UTC, e.g. 2026-11-21
        t.StructField("started", t.StringType()),  # ISO 8601
        t.StructField("test", t.StringType()),  # the test's name; that of a suite's case begins with the suite's
        t.StructField("system", t.StringType()),
        t.StructField("system_version", t.StringType()),
        t.StructField("labrys_version", t.StringType()),
        t.StructField("workload", t.StringType()),
        t.StructField("faults", t.StringType()),  # the kinds that began, sorted, with commas between; empty for none
        t.StructField("nodes", t.LongType()),
        t.StructField("seed", t.StringType()),
        t.StructField("reproduce", t.StringType()),
        t.StructField("said_verdict", t.StringType()),  # of results.json: valid, invalid or unknown; null without one
        t.StructField("said_reason", t.StringType()),
        t.StructField("said_recovery_s", t.DoubleType()),  # from healing until the system worked again or was given up
        t.StructField("said_restarted", t.BooleanType()),  # whether every node had to be restarted for that
        t.StructField("said_recovery_error", t.StringType()),  # what was missing in the end; null if the system worked
        t.StructField("duration_s", t.DoubleType()),
        t.StructField("answers", t.ArrayType(t.StringType())),  # codes of fail errors that count as availability
        t.StructField("refusals", t.ArrayType(t.StringType())),  # codes by which a node names another to ask
        t.StructField("model", t.StringType(), nullable=False),  # what its operations are checked against
        t.StructField("format", t.StringType(), nullable=False),  # jsonl, edn, etcd-log, parquet or unknown
        t.StructField("source", t.StringType(), nullable=False),  # where it was read from
    ]
)

FAULTS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("fault", t.LongType(), nullable=False),  # its number within the run
        t.StructField("kind", t.StringType(), nullable=False),
        t.StructField("targets", t.ArrayType(t.StringType())),
        t.StructField("start_ns", t.LongType(), nullable=False),
        t.StructField("end_ns", t.LongType()),  # null: it never ended
        t.StructField("effective", t.BooleanType()),  # null: not known
        t.StructField("proof", t.StringType()),  # the sentence that says how it is known
    ]
)

SIGHTINGS: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("time_ns", t.LongType(), nullable=False),
        t.StructField("node", t.StringType(), nullable=False),
        t.StructField("role", t.StringType()),
        t.StructField("term", t.LongType()),
        t.StructField("leader", t.StringType()),
    ]
)

# What an event of the nemesis says of a fault.
_FAULT_EVENTS: Final = t.StructType(
    [
        t.StructField("run", t.StringType()),
        t.StructField("position", t.LongType()),
        t.StructField("time_ns", t.LongType()),
        t.StructField("fault", t.LongType()),
        t.StructField("kind", t.StringType()),
        t.StructField("begins", t.BooleanType()),
        t.StructField("targets", t.ArrayType(t.StringType())),
    ]
)

# What is read of the two files of a run; null where one is missing or damaged, and then `problem` says why.
_PARSED: Final = t.StructType(
    [
        t.StructField("run", t.StringType(), nullable=False),
        t.StructField("source", t.StringType(), nullable=False),
        t.StructField("problem", t.StringType()),
        *(
            RUNS[name]
            for name in ("started", "test", "system", "system_version", "labrys_version", "workload", "nodes")
        ),
        *(RUNS[name] for name in ("seed", "reproduce", "said_verdict", "said_reason", "duration_s", "answers")),
        RUNS["refusals"],
        t.StructField("options", t.StringType()),  # those of the test, as JSON
        *(RUNS[name] for name in ("said_recovery_s", "said_restarted", "said_recovery_error")),
        t.StructField("fault_rows", t.ArrayType(t.StructType(FAULTS.fields[1:]))),
        t.StructField("sighting_rows", t.ArrayType(t.StructType(SIGHTINGS.fields[1:]))),
    ]
)
_MERGED: Final = tuple(field for field in _PARSED.names if field not in {"run", "source", "problem"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What runs say about themselves.

    Attributes:
        runs: A row of `RUNS` for each run.
        faults: A row of `FAULTS` for each fault.
        sightings: A row of `SIGHTINGS` for each change of what a node said of itself.
        problems: `source`, `run` and `reason` of files that are damaged, which do not touch verdicts; None if none is.
        deciders: What decides each run; None where nothing is known that does.
        undecided: Why nothing is known that decides a run.
        damaged: What is wrong with the files of a run, of which one cannot be read.
    """

    runs: DataFrame
    faults: DataFrame
    sightings: DataFrame
    problems: DataFrame | None
    deciders: Mapping[str, Decider | None]
    undecided: Mapping[str, str]
    damaged: Mapping[str, str]


def read_records(
    spark: SparkSession, seen: Sequence[Seen], fault_events: DataFrame | None, *, wanted: Wanted, staged: str
) -> Records:
    """Reads the records of runs.

    Args:
        spark: The session.
        seen: The runs.
        fault_events: Events of faults, for runs that have no record of them.
        wanted: What the user says about what decides.
        staged: A folder for what is needed only while the job runs.
    """
    parsed = spark.createDataFrame([], _PARSED)
    files = {
        f"{each.source.path}/{name}": each.run
        for each in seen
        for name, there in ((TEST, each.source.has_test), (RESULTS, each.source.has_results))
        if there
    }
    if files:
        text = spark.read.text([literal(path) for path in sorted(files)], wholetext=True)
        content = text.select(
            F.col("value").cast("binary").alias("content"), F.col("_metadata.file_path").alias("file")
        )
        content.mapInArrow(_parser(files), _PARSED).write.parquet(f"{staged}/records")
        parsed = spark.read.schema(_PARSED).parquet(f"{staged}/records")
    merged = parsed.groupBy("run").agg(*(F.first(name, ignorenulls=True).alias(name) for name in _MERGED))
    told = parsed.select("run", "source", "workload", "options", "problem").collect() if files else []
    tests = {row["run"]: row for row in told if row["workload"] is not None}
    problems = parsed.where("problem is not null").select("source", "run", F.col("problem").alias("reason"))
    deciders: dict[str, Decider | None] = {}
    undecided: dict[str, str] = {}
    for each in seen:
        try:
            deciders[each.run] = _decider(tests.get(each.run), wanted, is_run=each.source.is_run)
        except InputError as error:
            deciders[each.run], undecided[each.run] = None, str(error)
    rows = [
        (each.run, each.source.day, each.source.format, each.source.path, _name(deciders[each.run])) for each in seen
    ]
    known = spark.createDataFrame(rows, "run string, changed string, format string, source string, model string")
    recorded = merged.select("run", F.explode("fault_rows").alias("fault")).select("run", "fault.*")
    faults = recorded if fault_events is None else recorded.unionByName(_of_events(fault_events, merged))
    runs = (
        known.join(merged, "run", "left")
        .join(
            faults.groupBy("run").agg(F.array_join(F.array_sort(F.collect_set("kind")), ",").alias("faults")),
            "run",
            "left",
        )
        .withColumn("day", F.coalesce(F.substring("started", 1, 10), "changed"))
        .withColumn("faults", F.coalesce("faults", F.lit("")))
    )
    sightings = merged.select("run", F.explode("sighting_rows").alias("sighting")).select("run", "sighting.*")
    return Records(
        runs=conform(runs, RUNS),
        faults=conform(faults, FAULTS),
        sightings=conform(sightings, SIGHTINGS),
        problems=problems if any(row["problem"] is not None for row in told) else None,
        deciders=deciders,
        undecided=undecided,
        damaged={row["run"]: row["problem"] for row in told if row["problem"] is not None},
    )


def _decider(test: Row | None, wanted: Wanted, *, is_run: bool) -> Decider:
    """Returns what decides a run, or a history without one, as `labrys check` has it.

    Raises:
        InputError: Nothing is known that does.
    """
    if test is not None:
        return wanted.of_run(test["workload"], json.loads(test["options"]), test["source"])
    if is_run and wanted.model is None and wanted.workload is None:
        raise InputError(f"no {TEST} tells the run's workload; {SAY_IT}")
    return wanted.of_history()


def _name(decider: Decider | None) -> str:
    return "" if decider is None else decider.name


def _of_events(events: DataFrame, merged: DataFrame) -> DataFrame:
    """Returns what histories tell of their faults, where no record does: kinds, targets and times, and no proof."""
    recorded = merged.where("fault_rows is not null").select("run")
    told = events.join(recorded, "run", "left_anti").select("run", "position", "time_ns", "f", "value")
    told = told.mapInArrow(_decode_events, _FAULT_EVENTS)
    starts = F.col("begins")
    return (
        told.groupBy("run", "fault")
        .agg(
            F.min(F.when(starts, F.col("kind"))).alias("kind"),
            F.max_by(F.when(starts, F.col("targets")), F.when(starts, F.col("position"))).alias("targets"),
            F.min(F.when(starts, F.col("time_ns"))).alias("start_ns"),
            F.max(F.when(~starts, F.col("time_ns"))).alias("end_ns"),
            F.lit(None).cast("boolean").alias("effective"),
            F.lit(None).cast("string").alias("proof"),
        )
        .where("start_ns is not null")
    )


def _decode_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields what events of the nemesis say of faults; those that say nothing are left out."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - the executors' alone

    layout = to_arrow_schema(_FAULT_EVENTS)
    for batch in batches:
        rows = []
        for row in batch.to_pylist():
            try:
                event = fault_event(row["f"], decode_value(row["value"]) if row["value"] is not None else None)
            except ValueError:
                continue  # a value that is no JSON says nothing
            if event is not None:
                told = {"kind": _plain(event.kind), "targets": [*map(_plain, event.targets)]}
                rows.append(row | asdict(event) | told)
        yield pa.RecordBatch.from_pylist([{name: row[name] for name in layout.names} for row in rows], schema=layout)


def _parser(runs: Mapping[str, str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns what parses whole files on the executors."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415 - the executors' alone

        layout = to_arrow_schema(_PARSED)
        for batch in batches:
            for content, place in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                file = plain_uri(place)
                yield _parsed(runs[file], file, content, layout)

    return parse


def _parsed(run: str, file: str, content: bytes, layout: pa.Schema) -> pa.RecordBatch:
    """Returns the row of a file; one with the problem alone, where a member is damaged or no column can hold it."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    def row(fields: Mapping[str, Any]) -> pa.RecordBatch:
        said = {"run": run, "source": file, **fields}
        return pa.RecordBatch.from_pylist([{name: said.get(name) for name in _PARSED.names}], schema=layout)

    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        return row({"problem": _plain(f"{file}: expected JSON: {error}")})
    try:
        return row(_of_test(document, file) if file.endswith(f"/{TEST}") else _of_results(document, file))
    except LabrysError as error:
        said = str(error)
        return row({"problem": _plain(said if said.startswith(file) else f"{file}: {said}")})
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        wrong = f"{file}: a member is missing or of the wrong type: {type(error).__name__}: {error}"
        return row({"problem": _plain(wrong)})


def _recovery(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the part `recovered` of a run's verdict says; nothing if the run ended before it was observed."""
    details = document.get("parts", {}).get("recovered", {}).get("details", {})
    if details.get("seconds") is None:
        return {}
    seconds, error = float(details["seconds"]), details["error"]
    if not math.isfinite(seconds):
        raise ValueError(f"expected finite seconds in the part recovered, found {seconds}")
    return {
        "said_recovery_s": seconds,
        "said_restarted": details["restarted"] is True,
        "said_recovery_error": None if error is None else str(error),
    }


def _time(time_ns: int) -> int:
    if abs(time_ns) >= MOST_NS:
        raise ValueError(f"expected a time within {MOST_NS} ns, found {time_ns}")
    return time_ns


def _plain(text: str) -> str:
    """Returns a text as one that a column can hold, however the file's own was."""
    return text.encode(errors="backslashreplace").decode()


def _of_test(document: Any, file: str) -> dict[str, Any]:
    test = test_from_document(document, file)
    return {
        "started": test.started_utc.astimezone(UTC).isoformat(),
        "test": test.name,
        "system": test.system,
        "system_version": test.versions.get(test.system),
        "labrys_version": test.versions.get("labrys"),
        "workload": test.workload,
        "nodes": len(test.nodes),
        "seed": str(test.seed),
        "reproduce": test.reproduce,
        "answers": [str(code) for code in test.answers],
        "refusals": [str(code) for code in test.refusals],
        "options": json.dumps(dict(test.options)),
    }


def _of_results(document: Any, file: str) -> dict[str, Any]:
    checked(document, file)
    return {
        "said_verdict": str(verdict_from(document["valid"])),
        "said_reason": str(document["reason"]),
        "duration_s": float(document["duration_s"]),
        **_recovery(document),
        "fault_rows": [
            {
                "fault": fault.planned.id,
                "kind": fault.planned.kind,
                "targets": list(fault.targets),
                "start_ns": _time(fault.start_ns),
                "end_ns": _time(fault.end_ns),
                "effective": None if fault.proof is None else fault.proof.effective,
                "proof": None if fault.proof is None else fault.proof.reason,
            }
            for fault in faults_from(document)
        ],
        "sighting_rows": [
            {
                "time_ns": _time(sighting.time_ns),
                "node": sighting.node,
                "role": sighting.role,
                "term": sighting.term,
                "leader": sighting.leader,
            }
            for sighting in workload_sightings_from(document)
        ],
    }
