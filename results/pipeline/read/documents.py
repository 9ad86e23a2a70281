"""What the two files of a run say, `test.json` and `results.json`, and what decides the run by that.

A file that is damaged is a problem with its reason, and whatever else is known of the run stays. What a run says about itself,
its verdict too, is quoted here and never taken for what this job finds.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import types as t

from checker.deciders import SAY_IT
from harness.errors import InputError, LabrysError
from harness.fault_events import fault_event
from results.pipeline.read.sources import TEST
from results.pipeline.schema import FAULTS, MOST_NS, RUNS, SIGHTINGS
from results.reading import (
    behind,
    checked,
    failures,
    fault_violations,
    faults_from,
    parts_from,
    verdict_from,
    workload_sightings_from,
)
from results.record import test_from_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from checker.deciders import Decider, Wanted
    from harness.expectation import SuiteCase
    from harness.op import Value
    from results.pipeline.read.tables import Seen

# What is read of the two files of a run; null where one is missing or damaged, and then `problem` says why.
PARSED: Final = t.StructType(
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
        *(RUNS[name] for name in ("said_failures", "said_fault_violations", "said_behind")),
        *(RUNS[name] for name in ("suite", "suite_case", "line", "expects", "expects_in_fault", "known_failures")),
        RUNS["expects_parts"],
        t.StructField("fault_rows", t.ArrayType(t.StructType(FAULTS.fields[1:]))),
        t.StructField("sighting_rows", t.ArrayType(t.StructType(SIGHTINGS.fields[1:]))),
    ]
)
MERGED: Final = tuple(field for field in PARSED.names if field not in {"run", "source", "problem"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What decides each run, as far as its files and the user say it.

    Attributes:
        deciders: What decides each run; None where nothing is known that does.
        undecided: Why nothing is known that decides a run.
        damaged: What is wrong with the files of a run, of which one cannot be read.
    """

    deciders: Mapping[str, Decider | None]
    undecided: Mapping[str, str] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)

    def name(self, run: str) -> str:
        """Returns the name of what decides a run; empty where nothing is known that does."""
        decider = self.deciders[run]
        return "" if decider is None else decider.name


def known_of(seen: Sequence[Seen], rows: Iterable[Mapping[str, Any]], wanted: Wanted) -> Known:
    """Says what decides each run.

    Args:
        seen: The runs.
        rows: What `parsed` says of their files: `run`, `source`, `workload`, `options` and `problem` of each.
        wanted: What the user says about what decides.
    """
    tests: dict[str, Mapping[str, Any]] = {}
    damaged: dict[str, str] = {}
    for row in rows:
        if row["workload"] is not None:
            tests[row["run"]] = row
        if row["problem"] is not None:
            damaged[row["run"]] = row["problem"]
    deciders: dict[str, Decider | None] = {}
    undecided: dict[str, str] = {}
    for each in seen:
        try:
            deciders[each.run] = _decider(tests.get(each.run), wanted, is_run=each.source.is_run)
        except InputError as error:
            deciders[each.run], undecided[each.run] = None, str(error)
    return Known(deciders=deciders, undecided=undecided, damaged=damaged)


def _decider(test: Mapping[str, Any] | None, wanted: Wanted, *, is_run: bool) -> Decider:
    """Returns what decides a run, or a history without one, as `labrys check` has it.

    Raises:
        InputError: Nothing is known that does.
    """
    if test is not None:
        return wanted.of_run(test["workload"], json.loads(test["options"]), test["source"])
    if is_run and wanted.model is None and wanted.workload is None:
        raise InputError(f"no {TEST} tells the run's workload; {SAY_IT}")
    return wanted.of_history()


def event_row(f: Value, value: Value) -> dict[str, Any] | None:
    """Returns what an event of the nemesis says of a fault, as a table can hold it; None if it says nothing."""
    event = fault_event(f, value)
    if event is None:
        return None
    return asdict(event) | {"kind": _plain(event.kind), "targets": [*map(_plain, event.targets)]}


def parsed(run: str, file: str, content: bytes, layout: pa.Schema) -> pa.RecordBatch:
    """Returns the row of a file; one with the problem alone, where a member is damaged or no column can hold it.

    Args:
        run: The run.
        file: The URI of its `test.json` or its `results.json`.
        content: What it holds.
        layout: The columns of `PARSED` as pyarrow has them.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    def row(fields: Mapping[str, Any]) -> pa.RecordBatch:
        said = {"run": run, "source": file, **fields}
        return pa.RecordBatch.from_pylist([{name: said.get(name) for name in PARSED.names}], schema=layout)

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


def _failures(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns which parts of a run's verdict are not valid, and what bears on them; nothing if it has no parts."""
    if "parts" not in document:
        return {}
    parts = parts_from(document)
    late = behind(parts)
    return {
        "said_failures": [_plain(part) for part in failures(parts)],
        "said_fault_violations": fault_violations(document),
        "said_behind": None if late is None else _plain(late),
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
        **({} if test.suite is None else _of_suite(test.suite)),
    }


def _of_suite(case: SuiteCase) -> dict[str, Any]:
    return {
        "suite": _plain(case.suite),
        "suite_case": _plain(case.case),
        "line": _plain(case.line),
        "expects": str(case.expectation.verdict),
        "expects_in_fault": case.expectation.during_fault,
        "known_failures": [_plain(part) for part in sorted(case.expectation.known_failures)],
        "expects_parts": [_plain(part) for part in sorted(case.expectation.parts)],
    }


def _of_results(document: Any, file: str) -> dict[str, Any]:
    checked(document, file)
    return {
        "said_verdict": str(verdict_from(document["valid"])),
        "said_reason": str(document["reason"]),
        "duration_s": float(document["duration_s"]),
        **_recovery(document),
        **_failures(document),
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
