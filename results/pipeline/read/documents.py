"""The two files of a run, `test.json` and `results.json`, and the model or workload that follows from them.

A damaged file becomes a problem with its reason, and other knowledge about the run stays. The run's own verdict is only quoted;
it never replaces the verdict of this job.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from checker.deciders import MODEL_HINT
from harness.console.members import written
from harness.errors import InputError, LabrysError
from harness.fault_events import fault_event
from harness.faults import FaultRecord
from harness.outcome import behind, failures
from results.causes.cases import SIMULATED
from results.measure.outcome import crossed, fault_violations
from results.pipeline.read.sources import TEST
from results.pipeline.schema import FAULTS, MOST_NS, RUNS, SIGHTINGS
from results.record.record import test_from_document
from results.record.signatures import Signature, WarningClasses
from results.stored.reading import (
    checked,
    member,
    parts_from,
    verdict_from,
    workload_sightings_from,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from checker.deciders import Decider, Wanted
    from harness.op import Value
    from harness.suites.expectation import SuiteCase
    from results.pipeline.read.sources import Seen

# The fields of the two files of a run; null if a file is missing or damaged, and then `problem` has the reason.
PARSED: Final = pa.schema(
    [
        pa.field("run", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("problem", pa.string()),
        *(
            RUNS.field(name)
            for name in ("started", "test", "system", "system_version", "labrys_version", "workload", "nodes")
        ),
        *(RUNS.field(name) for name in ("seed", "reproduce", "said_verdict", "said_reason", "duration_s", "answers")),
        RUNS.field("refusals"),
        pa.field("options", pa.string()),  # the options of the test, as JSON
        *(RUNS.field(name) for name in ("said_recovery_s", "said_restarted", "said_recovery_error")),
        *(RUNS.field(name) for name in ("said_failures", "said_fault_violations", "said_behind", "said_crossed")),
        *(RUNS.field(name) for name in ("said_signature", "said_warnings", "software", "repeats")),
        *(RUNS.field(name) for name in ("suite", "suite_case", "line", "expects", "expects_in_fault")),
        *(RUNS.field(name) for name in ("known_failures", "expects_parts")),
        pa.field("fault_rows", pa.list_(pa.struct(list(FAULTS)[1:]))),
        pa.field("sighting_rows", pa.list_(pa.struct(list(SIGHTINGS)[1:]))),
    ]
)
MERGED: Final = tuple(field for field in PARSED.names if field not in {"run", "source", "problem"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The model or judge of each run, from its files and from the user.

    Attributes:
        deciders: The model or judge of each run; None if it is unknown.
        undecided: Why it is unknown.
        damaged: The problem of a run with a damaged file.
    """

    deciders: Mapping[str, Decider | None]
    undecided: Mapping[str, str] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)

    def name(self, run: str) -> str:
        """Returns the name of a run's model or judge; empty if it is unknown."""
        decider = self.deciders[run]
        return "" if decider is None else decider.name


def known_of(seen: Sequence[Seen], rows: Iterable[Mapping[str, Any]], wanted: Wanted) -> Known:
    """Returns the model or judge of each run.

    Args:
        seen: The runs.
        rows: The rows of `parsed` for their files: `run`, `source`, `workload`, `options` and `problem` of each.
        wanted: The user's choice.
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
    for history in seen:
        try:
            deciders[history.run] = _decider(tests.get(history.run), wanted, is_run=history.source.is_run)
        except InputError as error:
            deciders[history.run], undecided[history.run] = None, str(error)
    return Known(deciders=deciders, undecided=undecided, damaged=damaged)


def _decider(test: Mapping[str, Any] | None, wanted: Wanted, *, is_run: bool) -> Decider:
    """Returns the model or judge of a run, or of a history without one, as `labrys check` does.

    Raises:
        InputError: It is unknown.
    """
    if test is not None:
        return wanted.of_run(test["workload"], json.loads(test["options"]), test["source"])
    if is_run and wanted.model is None and wanted.workload is None:
        raise InputError(f"there is no {TEST} with the run's workload; {MODEL_HINT}")
    return wanted.of_history()


def parsed(run: str, file: str, content: bytes) -> dict[str, Any]:
    """Returns the columns of `PARSED` of a file; only the problem if a member is damaged or does not fit into its column.

    Args:
        run: The run.
        file: The URI of its `test.json` or its `results.json`.
        content: The bytes of the file.
    """

    def row(fields: Mapping[str, Any]) -> dict[str, Any]:
        known = {"run": run, "source": file, **fields}
        fitted = pa.RecordBatch.from_pylist([{name: known.get(name) for name in PARSED.names}], schema=PARSED)
        return dict(fitted.to_pylist()[0])

    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        return row({"problem": _plain(f"{file}: expected JSON: {error}")})
    try:
        return row(_of_test(document, file) if file.endswith(f"/{TEST}") else _of_results(document, file))
    except LabrysError as error:
        text = str(error)
        return row({"problem": _plain(text if text.startswith(file) else f"{file}: {text}")})
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        wrong = f"{file}: a member is missing or of the wrong type: {type(error).__name__}: {error}"
        return row({"problem": _plain(wrong)})


def _recovery(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the members of the part `recovered` of a run's verdict; nothing if no recovery was measured.

    That is so if the run ended before, or if it had no fault: then the time is none, and not zero.
    """
    details = document.get("parts", {}).get("recovered", {}).get("details", {})
    if details.get("seconds") is None:
        return {}
    seconds, error = float(details["seconds"]), details["error"]
    if not math.isfinite(seconds):
        raise ValueError(f"expected finite seconds in the part recovered, found {seconds}")
    if document.get("faults") == [] and error is None and details["restarted"] is not True:
        return {}
    return {
        "said_recovery_s": seconds,
        "said_restarted": details["restarted"] is True,
        "said_recovery_error": None if error is None else str(error),
    }


def _failures(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parts of a run's verdict that are not valid, with related facts; nothing if it has no parts."""
    if "parts" not in document:
        return {}
    parts = parts_from(document)
    late = behind(parts)
    return {
        "said_failures": [_plain(part) for part in failures(parts)],
        "said_fault_violations": fault_violations(document),
        "said_behind": None if late is None else _plain(late),
        "said_crossed": [_plain(sentence) for sentence in crossed(document)],
    }


def _time(time_ns: int) -> int:
    if abs(time_ns) >= MOST_NS:
        raise ValueError(f"expected a time within {MOST_NS} ns, found {time_ns}")
    return time_ns


def _plain(text: str) -> str:
    """Returns a text that a column can hold: without lone surrogates."""
    return text.encode(errors="backslashreplace").decode()


def _of_test(document: Any, file: str) -> dict[str, Any]:
    test = test_from_document(document, file)
    return {
        "started": test.started_utc.astimezone(UTC).isoformat(),
        "test": test.name,
        "system": test.system,
        "system_version": test.system_version,
        "labrys_version": test.versions.get("labrys"),
        "workload": test.workload,
        "nodes": len(test.nodes),
        "seed": str(test.seed),
        "reproduce": test.reproduce,
        "answers": [str(code) for code in test.answers],
        "refusals": [str(code) for code in test.refusals],
        "options": json.dumps(dict(test.options)),
        "software": _plain(test.software),
        "repeats": test.options.get("cluster_kind") == SIMULATED,
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
        "said_signature": _as_json(document, "signature", Signature),
        "said_warnings": _as_json(document, "warnings", WarningClasses),
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
            for fault in member(document, "faults", list[FaultRecord])
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


def _as_json(document: Mapping[str, Any], name: str, form: Any) -> str | None:
    """Returns a member as JSON, after a check of its type; None if it is null, or if a run of an earlier version lacks it."""
    if document.get(name) is None:
        return None
    return json.dumps(written(member(document, name, form)))


def event_row(f: Value, value: Value) -> dict[str, Any] | None:
    """Returns the fault event in an event of the nemesis, as values of a table; None if there is none."""
    event = fault_event(f, value)
    if event is None:
        return None
    return asdict(event) | {"kind": _plain(event.kind), "targets": [*map(_plain, event.targets)]}


def recorded(
    seen: Seen, documents: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]], model: str
) -> dict[str, list[dict[str, Any]]]:
    """Returns the rows of a run in the tables of runs, faults and sightings, by the name of the table.

    A run with a missing or damaged file still has a row, with what is known.

    Args:
        seen: The run.
        documents: The rows of `parsed` for its files.
        events: The fault events of its history, each with its `position` and `time_ns`, for a run without a record of faults.
        model: The name of its model or judge; empty if it is unknown.
    """
    run, source = seen.run, seen.source
    merged = {name: next((row[name] for row in documents if row[name] is not None), None) for name in MERGED}
    faults = merged["fault_rows"]
    if faults is None:
        faults = list(_of_events(events))
    about = {
        **{name: merged.get(name) for name in RUNS.names},
        "run": run,
        "day": source.day if merged["started"] is None else merged["started"][:10],
        "faults": ",".join(sorted({row["kind"] for row in faults})),
        "model": model,
        "format": source.format,
        "source": source.path,
        "report": source.report,
    }
    return {
        "runs": [about],
        "faults": [{**row, "run": run} for row in faults],
        "sightings": [{**row, "run": run} for row in merged["sighting_rows"] or ()],
    }


def _of_events(events: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yields rows of faults from events."""
    by_fault: dict[int, list[Mapping[str, Any]]] = {}
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
                "effective": None,
                "proof": None,
            }
