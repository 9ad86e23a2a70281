"""The tables of the pipeline: their columns with types, and their version.

The rule: a written table has exactly these columns in this order, and `docs/reference/tables.md` describes each. A change to
any of them raises `VERSION`. `checker.formats.parquet` defines the table of operations, so the job and `labrys check` read
the same files. Spark's types follow from these (`results.pipeline.spark.types`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from checker.formats.parquet import COLUMNS
from harness.op import OpType
from harness.units import NS_PER_S
from harness.values import whole
from results.measure.op_outcomes import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT: Final = "labrys-analysis"
VERSION: Final = 8

# A hundred years. Sums and differences of smaller times fit into 64 bits, and Spark's arithmetic fails on an overflow.
MOST_NS: Final = 100 * 366 * 86_400 * NS_PER_S

_TEXT: Final = pa.string()
_WHOLE: Final = pa.int64()
_NUMBER: Final = pa.float64()
_FLAG: Final = pa.bool_()
_TEXTS: Final = pa.list_(_TEXT)
_WHOLES: Final = pa.list_(_WHOLE)
_COUNTS: Final = pa.map_(_TEXT, _WHOLE)
_KINDS: Final[Mapping[str, pa.DataType]] = {"string": _TEXT, "name": _TEXT, "int64": _WHOLE}
TYPES: Final = tuple(str(kind) for kind in OpType if kind is not OpType.INVOKE)

OPERATIONS: Final = pa.schema([pa.field(column.name, _KINDS[column.kind]) for column in COLUMNS])

QUARANTINE: Final = pa.schema(
    [
        pa.field("source", _TEXT, nullable=False),
        pa.field("run", _TEXT),
        pa.field("key", _TEXT),
        pa.field("line", _WHOLE),
        pa.field("invoke_index", _WHOLE),
        pa.field("reason", _TEXT, nullable=False),
        pa.field("sample", _TEXT),
    ]
)

VERDICTS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("key", _TEXT),
        pa.field("verdict", _TEXT, nullable=False),
        pa.field("model", _TEXT, nullable=False),
        pa.field("analyzer", _TEXT, nullable=False),
        pa.field("engine", _TEXT, nullable=False),
        pa.field("cause", _TEXT),
        pa.field("kind", _TEXT),
        pa.field("operations", _WHOLE, nullable=False),
        pa.field("op_invoke_index", _WHOLE),
        pa.field("op_complete_index", _WHOLE),
        pa.field("explanation", _TEXT),
        pa.field("counterexample", _TEXT),
        pa.field("order_agrees", _TEXT),
        pa.field("order_reason", _TEXT),
        pa.field("certificate", pa.list_(_WHOLE)),  # the invokes of the operations in the order of a linearization
        pa.field("effort", _TEXT),  # of the search, as JSON
    ]
)

RUNS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("day", _TEXT),  # of its start, in UTC, e.g. 2026-11-21
        pa.field("started", _TEXT),  # ISO 8601
        pa.field("test", _TEXT),  # the test's name
        pa.field("system", _TEXT),
        pa.field("system_version", _TEXT),
        pa.field("labrys_version", _TEXT),
        pa.field("workload", _TEXT),
        pa.field("faults", _TEXT),  # the kinds that began, sorted, separated by commas; empty for none
        pa.field("nodes", _WHOLE),
        pa.field("seed", _TEXT),
        pa.field("reproduce", _TEXT),
        pa.field("said_verdict", _TEXT),  # in results.json: valid, invalid or unknown; null without one
        pa.field("said_reason", _TEXT),
        pa.field("said_recovery_s", _NUMBER),  # from healing until the system worked, or the run gave up
        pa.field("said_restarted", _FLAG),  # whether the run restarted every node for that
        pa.field("said_recovery_error", _TEXT),  # what was missing in the end; null if the system worked
        pa.field("said_failures", _TEXTS),  # parts that decide it, not valid, `name=verdict`
        pa.field("said_fault_violations", _WHOLE),  # violations during or after a fault
        pa.field("said_behind", _TEXT),  # the sentence of `control-node` if it was behind; else null
        pa.field("said_crossed", _TEXTS),  # a sentence for each threshold that the run crossed
        pa.field("said_signature", _TEXT),  # what the run showed, as JSON; null if it is as expected
        pa.field("said_warnings", _TEXT),  # the classes of warnings in its logs, as JSON; null if they are unknown
        pa.field("software", _TEXT),  # the program that the system is a view of
        pa.field("repeats", _FLAG),  # whether the simulator repeats the run by its seed
        pa.field("suite", _TEXT),  # the suite that ran it; without one, this and the next six are null
        pa.field("suite_case", _TEXT),  # e.g. faults[nemesis=kill]#2
        pa.field("line", _TEXT),  # the case without the number of its repetition
        pa.field("expects", _TEXT),  # the verdict that the suite expects: valid, invalid or unknown
        pa.field("expects_in_fault", _FLAG),  # whether a violation is expected during or after a fault
        pa.field("known_failures", _TEXTS),  # parts that may fail, `name=verdict`
        pa.field("expects_parts", _TEXTS),  # parts that must be invalid
        pa.field("duration_s", _NUMBER),
        pa.field("answers", _TEXTS),  # codes of fail errors that count as availability
        pa.field("refusals", _TEXTS),  # codes of fail errors that name another node
        pa.field("model", _TEXT, nullable=False),  # the model or workload that checks its operations
        pa.field("format", _TEXT, nullable=False),  # jsonl, edn, console-log, parquet or unknown
        pa.field("source", _TEXT, nullable=False),  # the path that it was read from
        pa.field("report", _TEXT),  # the path of its report; null if it has none
    ]
)

FAULTS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("fault", _WHOLE, nullable=False),  # its number within the run
        pa.field("kind", _TEXT, nullable=False),
        pa.field("targets", _TEXTS),
        pa.field("start_ns", _WHOLE, nullable=False),
        pa.field("end_ns", _WHOLE),  # null: it never ended
        pa.field("effective", _FLAG),  # null: unknown
        pa.field("proof", _TEXT),  # the sentence of the proof
    ]
)

SIGHTINGS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("time_ns", _WHOLE, nullable=False),
        pa.field("node", _TEXT, nullable=False),
        pa.field("role", _TEXT),
        pa.field("term", _WHOLE),
        pa.field("leader", _TEXT),
    ]
)

TRENDS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("day", _TEXT),
        pa.field("started", _TEXT),
        pa.field("test", _TEXT),
        pa.field("suite", _TEXT),  # null: no suite ran it
        pa.field("line", _TEXT),  # the case without its repetition; the test if no suite ran it
        pa.field("system", _TEXT),
        pa.field("system_version", _TEXT),
        pa.field("workload", _TEXT),
        pa.field("faults", _TEXT),
        pa.field("verdict", _TEXT),  # the worst of the run's keys; null if none was judged
        pa.field("said_verdict", _TEXT),  # from results.json; null without one
        pa.field("expects", _TEXT),  # the verdict that the suite expects; null without a suite
        pa.field("outcome", _TEXT),  # one of `harness.suites.expectation.CaseOutcome`; null if nothing was judged
        pa.field("crossed", _TEXTS),  # a sentence for each threshold that the run crossed
        pa.field("keys", _WHOLE),
        pa.field("operations", _WHOLE),
        pa.field("availability", _NUMBER),  # the share answered over the run, 0 to 1
        pa.field("recovery_s", _NUMBER),  # null if the system did not recover, or it is unknown
        pa.field("recovery_from", _TEXT),  # `run` or `operations`; null if it is unknown
        pa.field("restarted", _FLAG),  # whether the run had to restart every node; null if it is unknown
        pa.field("unrecovered", _WHOLE),  # how many times the system did not recover
        pa.field("p50_ms", _NUMBER),  # the maximum of the run's functions
        pa.field("p99_ms", _NUMBER),
        pa.field("behind", _FLAG),  # whether the control node was behind; null if it is unknown
        pa.field("regressions", _TEXTS),  # names of the figures above that became worse
        pa.field("report", _TEXT),  # the path of its report; null if it has none
    ]
)

AVAILABILITY_COLUMNS: Final = pa.schema(
    [
        pa.field("run", _TEXT, nullable=False),
        pa.field("fault", _WHOLE, nullable=False),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("node", _TEXT),  # the clients that stay there; null: those that measure the system
        pa.field("f", _TEXT),  # null: all functions; a row has a node, a function, or neither
        pa.field("part", _TEXT, nullable=False),  # during, after
        pa.field("start_s", _NUMBER, nullable=False),
        pa.field("end_s", _NUMBER, nullable=False),
        pa.field("operations", _WHOLE, nullable=False),
        pa.field("answered", _WHOLE, nullable=False),
        pa.field("refused", _WHOLE, nullable=False),
        pa.field("rate_before", _NUMBER),  # of `during` for all clients; null if nothing was measured before
        pa.field("rate_share", _NUMBER),
        pa.field("first_ok_s", _NUMBER),
        pa.field("sustained_ok_s", _NUMBER),
        pa.field("longest_gap_s", _NUMBER, nullable=False),
        pa.field("errors", _COUNTS),
        pa.field("overlaps", _WHOLES),
    ]
)

# The timelines. `time_s` is the start of a bucket of time, and `width_s` the width of the run's buckets.
RATES: Final = "rates"  # how many operations there are with each function, outcome and node
LATENCIES: Final = "latencies"  # of ok operations
# Of a whole run: the outcomes of each function, the latency of its ok operations, and of the operations that measure
# availability, how many were asked (without refusals) and answered.
TOTALS: Final = "totals"
CONCURRENCY: Final = "concurrency"  # how many operations were open at the start of a bucket
AVAILABILITY: Final = "availability"  # around each fault
LEADERS: Final = "leaders"  # `fault` and `part` are null for the whole run
HEAT: Final = "heat"  # the operations (without refusals) of some keys, see `results.pipeline.measure.timelines`

_BUCKET: Final = (pa.field("time_s", _NUMBER), pa.field("width_s", _NUMBER))
_QUANTILES: Final = [pa.field(name, _NUMBER) for name in ("p50_ms", "p95_ms", "p99_ms", "max_ms")]


def _named(*fields: pa.Field | str) -> pa.Schema:
    """Returns a schema; a column without a type is a text."""
    return pa.schema([pa.field(field, _TEXT) if isinstance(field, str) else field for field in fields])


TIMELINES: Final[Mapping[str, pa.Schema]] = {
    RATES: _named("run", "f", "type", "node", *_BUCKET, pa.field("operations", _WHOLE)),
    LATENCIES: _named("run", "f", *_BUCKET, pa.field("operations", _WHOLE), *_QUANTILES),
    TOTALS: _named("run", "f", *(pa.field(name, _WHOLE) for name in (*OUTCOMES, "asked", "answered")), *_QUANTILES),
    CONCURRENCY: _named("run", *_BUCKET, pa.field("open", _WHOLE)),
    AVAILABILITY: AVAILABILITY_COLUMNS,
    LEADERS: _named(
        "run",
        pa.field("fault", _WHOLE),
        "part",
        pa.field("changes", _WHOLE),
        pa.field("leaders", _TEXTS),
        pa.field("terms", _WHOLES),
    ),
    HEAT: _named("run", "key", *_BUCKET, pa.field("operations", _WHOLE), pa.field("answered", _WHOLE)),
}

# All tables but the operations, which only some jobs write.
TABLES: Final[Mapping[str, pa.Schema]] = {
    "runs": RUNS,
    "faults": FAULTS,
    "sightings": SIGHTINGS,
    "quarantine": QUARANTINE,
    "verdicts": VERDICTS,
    "trends": TRENDS,
    **TIMELINES,
}


def storable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row as a table takes it: a value in a text may have half of a character, and no table takes that."""
    return {name: whole(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
