"""`results.json`: the verdict of a run as data, for programs and for making its report again.

`docs/results.schema.json` specifies the document, and a test checks it. The members for a list of runs (verdict, sentence,
seed, reproduce line) come first, so that a reader needs only the head of the file. The document has only recorded or measured
data; missing data is null.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from harness.leaders import rivals
from harness.outcome import behind
from harness.suites.thresholds import measured
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict, reason_of, verdict_of
from results.measure.availability import around, overall
from results.measure.circumstances import circumstances
from results.measure.leadership import Elections
from results.measure.measures import measure
from results.measure.op_outcomes import OUTCOMES, error_code, outcome
from results.measure.series import latency_points, latency_table, main_phase
from results.page.counterexample import counterexamples_of
from results.store.record import artifact_document, defaults_document, left_out_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.faults import FaultRecord, Fired
    from harness.leaders import Rivals
    from harness.node_clocks import Clocks
    from harness.op import Operation, Value
    from harness.phases import Phase
    from harness.suites.thresholds import Measured
    from harness.watch import Positions, Sighting
    from results.measure.availability import FaultAvailability, Window
    from results.measure.leadership import Leadership
    from results.measure.op_outcomes import Codes
    from results.store.record import RunRecord

FORMAT = "labrys-results"
VERSION = 2
MAX_DEPTH = 60
MAX_RIVALS = 20


def build(record: RunRecord) -> dict[str, Value]:
    """Returns the whole document."""
    test = record.test
    elections = {service: Elections(seen) for service, seen in record.all_sightings().items()}
    whole: dict[str, Value] = {
        "format": FORMAT,
        "version": VERSION,
        "valid": verdict_of(record.parts).as_json,
        "reason": reason_of(record.parts),
        "test": test.name,
        "seed": test.seed,
        "reproduce": test.reproduce,
        "thresholds": [],  # they need the numbers below; see the end
        "started": test.started_utc.isoformat(),
        "duration_s": record.duration_s,
        "counts": counts(record.operations, test.codes),
        "availability": _overall(record),
        "latency": latency_table(latency_points(main_phase(record.operations), test.codes)),
        "versions": dict(test.versions),
        "artifact": artifact_document(test.artifact),
        "timings": dict(record.timings),
        "phases": phases_document(record.phases),
        "problems": list(record.problems),
        "parts": _parts(record.parts),
        "faults": [
            _fault(fault, availability, elections[record.service_of(fault)])
            for fault, availability in zip(
                record.faults, around(record.faults, record.operations, test.codes), strict=True
            )
        ],
        "left_out": left_out_document(test.left_out),
        "defaults": defaults_document(test.defaults),
        "leadership": _leadership(elections[None].within(end_ns=workload_end_ns(record.timings))),
        "rival_leaders": [_rivals(each) for each in rivals(record.sightings)[:MAX_RIVALS]],
        "sightings": [_sighting(sighting) for sighting in record.sightings],
        "other_services": {
            name: _service(seen, elections[name], record) for name, seen in record.other_sightings.items()
        },
        "positions": _positions(record.positions),
        "clocks": None if record.clocks is None else _clocks(record.clocks),
        "violations": violations(record.parts),
        "counterexample": _counterexample(record),
    }
    numbers_of = measured(test.thresholds, partial(measure, whole))
    whole["thresholds"] = _thresholds(numbers_of, was_behind=behind(record.parts) is not None)
    return whole


def _thresholds(found: Iterable[Measured], *, was_behind: bool) -> list[Value]:
    """Returns each threshold with its number, and whether the run kept it.

    It is unknown whether a run whose control node was behind keeps a threshold that it crossed.
    """
    return [
        {
            "threshold": str(each.threshold),
            "measured": each.number,
            "kept": True if each.crossed is None else Verdict.UNKNOWN.as_json if was_behind else False,
            "crossed": each.crossed,
        }
        for each in found
    ]


def counts(operations: Iterable[Operation], codes: Codes) -> dict[str, Value]:
    """Counts operations in total, by outcome, and by function and outcome; counts errors by code, those of refusals too."""
    by_f: dict[str, Counter[str]] = {}
    errors: Counter[str] = Counter()
    for operation in operations:
        by_f.setdefault(operation.f, Counter())[outcome(operation.type, operation.error, codes)] += 1
        code = error_code(operation.error)
        if code is not None:
            errors[code] += 1
    total = sum(by_f.values(), Counter[str]())
    return {
        "operations": total.total(),
        **{each: total[each] for each in OUTCOMES},
        "by_f": {f: {each: by_f[f][each] for each in OUTCOMES} for f in sorted(by_f)},
        "errors": dict(errors.most_common()),
    }


def counterexample(parts: Iterable[Part]) -> Value:
    """Returns the first counterexample in the details of an invalid part; None if there is none."""
    return _detail(parts, "counterexample")


def violations(parts: Iterable[Part]) -> Value:
    """Returns the first count of violations in the details of an invalid part; None if there is none."""
    return _detail(parts, "violations")


def _detail(parts: Iterable[Part], name: str) -> Value:
    """Returns a detail of the first invalid part that has it; None if none has."""
    found = (part.details.get(name) for part in parts if part.verdict is Verdict.INVALID)
    return next((jsonable(detail) for detail in found if detail), None)


def _counterexample(record: RunRecord) -> Value:
    """Returns the counterexample with its circumstances."""
    found = counterexample(record.parts)
    examples = counterexamples_of(record, reason_of(record.parts)) if isinstance(found, dict) else ()
    return {**found, "circumstances": circumstances(examples[0], record)} if examples else found


def jsonable(value: Value, depth: int = 0) -> Value:
    """Returns `value` in the types of JSON: floats without a JSON form, and objects of other types, become text."""
    result: Value
    match value:
        case None | bool() | int() | str():
            result = value
        case numbers.Integral():
            result = int(value)
        case numbers.Real():
            result = float(value) if math.isfinite(value) else str(value)
        case _ if depth >= MAX_DEPTH:
            result = "(nested too deeply)"
        case Mapping():
            result = {str(key): jsonable(member, depth + 1) for key, member in value.items()}
        case list() | tuple():
            result = [jsonable(member, depth + 1) for member in value]
        case set() | frozenset():
            result = sorted((jsonable(member, depth + 1) for member in value), key=repr)
        case _:
            result = str(value)
    return result


def _parts(parts: Sequence[Part]) -> dict[str, Value]:
    document: dict[str, Value] = {}
    for part in parts:
        name, number = part.name, 1
        while name in document:  # two parts with one name: neither may hide the other
            number += 1
            name = f"{part.name}-{number}"
        document[name] = {
            "valid": part.verdict.as_json,
            "reason": part.reason,
            "details": jsonable(dict(part.details)),
            "extra": part.extra,
        }
    return document


def _fault(fault: FaultRecord, availability: FaultAvailability | None, elections: Elections) -> dict[str, Value]:
    planned, proof = fault.planned, fault.proof
    return {
        "id": planned.id,
        "kind": planned.kind,
        "targets": list(fault.targets),
        "start_s": fault.start_ns / NS_PER_S,
        "end_s": fault.end_ns / NS_PER_S,
        "effective": proof is not None and proof.effective,
        "proof": None if proof is None else {"reason": proof.reason, "measured": jsonable(dict(proof.measured))},
        "availability": None if availability is None else _availability(availability),
        "leadership": None if availability is None else _led(availability, elections),
        "error": fault.error,
        "details": jsonable(dict(fault.details)),
        "fired": None if fault.fired is None else _fired(fault.fired),
        "planned": {
            "target": planned.target if isinstance(planned.target, str) else list(planned.target),
            "start_s": planned.start_s,
            "end_s": planned.end_s,
            "trigger": None if planned.trigger is None else jsonable(planned.trigger.to_json()),
            "options": jsonable(dict(planned.options)),
        },
    }


def _fired(fired: Fired) -> dict[str, Value]:
    return {"time_s": fired.time_ns / NS_PER_S, "what": fired.what, "measured": jsonable(dict(fired.measured))}


def _overall(record: RunRecord) -> dict[str, Value] | None:
    measured = overall(record.operations, record.test.codes)
    if measured is None:
        return None
    window, by_f = measured
    following = any(operation.via is not None for operation in record.operations)
    return {
        "measured_by": "clients that follow the leader" if following else "all clients",
        **_whole(window),
        "by_f": {f: _whole(each) for f, each in by_f.items()},
    }


def _whole(window: Window) -> dict[str, Value]:
    """Returns a window over the whole workload, with its share of answered operations."""
    return {"share": window.answered / window.operations if window.operations else None, **_window(window)}


def _availability(availability: FaultAvailability) -> dict[str, Value]:
    return {
        **_pair(availability.during, availability.after),
        "rate_before": availability.rate_before,
        "rate_share": availability.rate_share,
        "overlaps": list(availability.overlaps),
        "nodes": {name: _pair(*pair) for name, pair in availability.nodes.items()},
        "by_f": {f: _pair(*pair) for f, pair in availability.functions.items()},
    }


def _led(availability: FaultAvailability, elections: Elections) -> dict[str, Value]:
    def within(window: Window) -> dict[str, Value]:
        return _leadership(elections.within(round(window.start_s * NS_PER_S), round(window.end_s * NS_PER_S)))

    return {
        "during": within(availability.during),
        "after": None if availability.after is None else within(availability.after),
    }


def _leadership(leadership: Leadership) -> dict[str, Value]:
    return {
        "changes": leadership.changes,
        "leaders": list(leadership.leaders),
        "terms": list(leadership.terms),
    }


def _rivals(found: Rivals) -> dict[str, Value]:
    return {"term": found.term, "sentence": str(found), "claims": [_sighting(claim) for claim in found.claims]}


def _pair(during: Window, after: Window | None) -> dict[str, Value]:
    return {"during": _window(during), "after": None if after is None else _window(after)}


def _window(window: Window) -> dict[str, Value]:
    return {
        "start_s": window.start_s,
        "end_s": window.end_s,
        "operations": window.operations,
        "answered": window.answered,
        "refused": window.refused,
        "first_ok_s": window.first_ok_s,
        "sustained_ok_s": window.sustained_ok_s,
        "longest_gap_s": window.longest_gap_s,
        "errors": dict(window.errors),
    }


def _sighting(sighting: Sighting) -> dict[str, Value]:
    return {
        "time_s": sighting.time_ns / NS_PER_S,
        "node": sighting.node,
        "role": sighting.role,
        "term": sighting.term,
        "leader": sighting.leader,
        "until_s": None if sighting.until_ns is None else sighting.until_ns / NS_PER_S,
    }


def _service(sightings: Sequence[Sighting], elections: Elections, record: RunRecord) -> dict[str, Value]:
    return {
        "leadership": _leadership(elections.within(end_ns=workload_end_ns(record.timings))),
        "rival_leaders": [_rivals(each) for each in rivals(sightings)[:MAX_RIVALS]],
        "sightings": [_sighting(sighting) for sighting in sightings],
    }


def _clocks(clocks: Clocks) -> dict[str, Value]:
    return {
        "began": clocks.began_utc.isoformat(),
        "nodes": {
            name: {
                "offset_s": clock.offset_ns / NS_PER_S,
                "uncertain_s": clock.uncertain_ns / NS_PER_S,
                "zone_s": clock.zone_s,
            }
            for name, clock in clocks.nodes.items()
        },
        "unknown": dict(clocks.unknown),
    }


def _positions(positions: Positions) -> dict[str, Value]:
    return {
        "time_s": [time_ns / NS_PER_S for time_ns in positions.time_ns],
        "applied": {node: list(indexes) for node, indexes in positions.applied.items()},
    }


def phases_document(phases: Iterable[Phase]) -> list[dict[str, Value]]:
    """Returns the phases in the order of their starts."""
    return [
        {"name": phase.name, "node": phase.node, "start_s": phase.start_s, "end_s": phase.end_s}
        for phase in sorted(phases, key=lambda phase: phase.start_s)
    ]


def workload_end_ns(timings: Mapping[str, Value]) -> int | None:
    """Returns the time of the end of the workload; None if it is unknown."""
    return round(timings["workload"] * NS_PER_S) if "workload" in timings else None
