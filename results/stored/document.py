"""`results.json`: the verdict of a run as data, for programs and for making its report again.

`docs/reference/results.schema.json` specifies the document, and a test checks it. The members for a list of runs (verdict,
sentence, seed, reproduce line) come first, so that a reader needs only the head of the file. The document has only recorded or
measured data; missing data is null.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from harness.leaders import rivals
from harness.outcome import behind
from harness.suites.thresholds import measured
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict, reason_of, verdict_of
from results.circumstances.faults import circumstances
from results.circumstances.losses import reason
from results.measure.availability import around, overall
from results.measure.leadership import Elections
from results.measure.measures import measure, why_missing
from results.measure.op_outcomes import OUTCOMES, error_code, outcome
from results.measure.series import latency_points, latency_table, main_phase
from results.record.counterexample import counterexamples_of
from results.record.forms import (
    Counts,
    Defaults,
    Led,
    LeftOut,
    Quantiles,
    Results,
    RivalLeaders,
    StoredClock,
    StoredClocks,
    StoredFault,
    StoredFired,
    StoredPart,
    StoredPlan,
    StoredPositions,
    StoredProof,
    StoredService,
    StoredSighting,
    StoredThreshold,
    StoredTrigger,
)
from results.record.record import promise_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.faults import FaultRecord
    from harness.node_clocks import Clocks
    from harness.op import Operation, Value
    from harness.phases import Phase
    from harness.suites.thresholds import Measured
    from harness.watch import Sighting
    from results.measure.availability import FaultAvailability, Window
    from results.measure.leadership import Leadership
    from results.measure.op_outcomes import Codes
    from results.record.record import RunRecord

FORMAT: Final = "labrys-results"
VERSION: Final = 2
MAX_DEPTH: Final = 60
MAX_RIVALS: Final = 20


def build(record: RunRecord) -> dict[str, Value]:
    """Returns the whole document."""
    test = record.test
    elections = {service: Elections(seen) for service, seen in record.all_sightings().items()}
    windows = around(record.faults, record.operations, test.codes)
    quantiles = latency_table(latency_points(main_phase(record.operations), test.codes))
    end_ns = workload_end_ns(record.timings)
    results = Results(
        format=FORMAT,
        version=VERSION,
        valid=verdict_of(record.parts).as_json,
        reason=reason(record),
        test=test.name,
        seed=test.seed,
        reproduce=test.reproduce,
        thresholds=[],  # they need the numbers below; see the end
        started=test.started_utc.isoformat(),
        duration_s=record.duration_s,
        counts=counts(record.operations, test.codes),
        availability=overall(record.operations, test.codes),
        latency={f: Quantiles(**each) for f, each in quantiles.items()},
        versions=dict(test.versions),
        artifact=test.artifact,
        promise=promise_document(test),
        timings=dict(record.timings),
        phases=phases_of(record.phases),
        problems=list(record.problems),
        parts=_parts(record.parts),
        faults=[
            _fault(fault, availability, elections[record.service_of(fault)])
            for fault, availability in zip(record.faults, windows, strict=True)
        ],
        left_out=[LeftOut(kind=kind, reason=reason) for kind, reason in test.left_out.items()],
        defaults=None if test.defaults is None else Defaults(**test.defaults),
        leadership=elections[None].within(end_ns=end_ns),
        rival_leaders=_rivals(record.sightings),
        sightings=_sightings(record.sightings),
        other_services={
            name: StoredService(
                leadership=elections[name].within(end_ns=end_ns),
                rival_leaders=_rivals(seen),
                sightings=_sightings(seen),
            )
            for name, seen in record.other_sightings.items()
        },
        positions=StoredPositions(
            time_s=[time_ns / NS_PER_S for time_ns in record.positions.time_ns],
            applied={node: list(indexes) for node, indexes in record.positions.applied.items()},
        ),
        clocks=None if record.clocks is None else _clocks(record.clocks),
        execution=msgspec.UNSET if record.execution is None else record.execution,
        violations=violations(record.parts),
        counterexample=_counterexample(record),
    )
    document: dict[str, Value] = msgspec.to_builtins(results)
    limits = measured(test.thresholds, partial(measure, document), partial(why_missing, document))
    document["thresholds"] = msgspec.to_builtins(_thresholds(limits, was_behind=behind(record.parts) is not None))
    return document


def _thresholds(found: Iterable[Measured], *, was_behind: bool) -> list[StoredThreshold]:
    """Returns each threshold with its number, and whether the run kept it.

    It is unknown whether a run whose control node was behind keeps a threshold that it crossed.
    """
    return [
        StoredThreshold(
            threshold=str(each.threshold),
            measured=each.number,
            kept=True if each.crossed is None else "unknown" if was_behind else False,
            crossed=each.crossed,
        )
        for each in found
    ]


def counts(operations: Iterable[Operation], codes: Codes) -> Counts:
    """Counts operations in total, by outcome, and by function and outcome; counts errors by code, those of refusals too."""
    by_f: dict[str, Counter[str]] = {}
    errors: Counter[str] = Counter()
    for operation in operations:
        by_f.setdefault(operation.f, Counter())[outcome(operation.type, operation.error, codes)] += 1
        code = error_code(operation.error)
        if code is not None:
            errors[code] += 1
    total = sum(by_f.values(), Counter[str]())
    return Counts(
        operations=total.total(),
        **{each: total[each] for each in OUTCOMES},
        by_f={f: {each: by_f[f][each] for each in OUTCOMES} for f in sorted(by_f)},
        errors=dict(errors.most_common()),
    )


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


def _parts(parts: Sequence[Part]) -> dict[str, StoredPart]:
    found: dict[str, StoredPart] = {}
    for part in parts:
        name, number = part.name, 1
        while name in found:  # two parts with one name: neither may hide the other
            number += 1
            name = f"{part.name}-{number}"
        found[name] = StoredPart(
            valid=part.verdict.as_json, reason=part.reason, details=jsonable(part.details), extra=part.extra
        )
    return found


def _fault(fault: FaultRecord, availability: FaultAvailability | None, elections: Elections) -> StoredFault:
    planned, proof, fired = fault.planned, fault.proof, fault.fired
    return StoredFault(
        id=planned.id,
        kind=planned.kind,
        targets=list(fault.targets),
        start_s=fault.start_ns / NS_PER_S,
        end_s=fault.end_ns / NS_PER_S,
        effective=proof is not None and proof.effective,
        proof=None if proof is None else StoredProof(reason=proof.reason, measured=jsonable(proof.measured)),
        availability=availability,
        leadership=None if availability is None else _led(availability, elections),
        error=fault.error,
        details=jsonable(fault.details),
        fired=None
        if fired is None
        else StoredFired(time_s=fired.time_ns / NS_PER_S, what=fired.what, measured=jsonable(fired.measured)),
        effect=fault.effect,
        planned=StoredPlan(
            target=planned.target if isinstance(planned.target, str) else list(planned.target),
            start_s=planned.start_s,
            end_s=planned.end_s,
            trigger=None if planned.trigger is None else StoredTrigger(**jsonable(planned.trigger.to_json())),
            options=jsonable(planned.options),
        ),
    )


def _led(availability: FaultAvailability, elections: Elections) -> Led:
    def within(window: Window) -> Leadership:
        return elections.within(round(window.start_s * NS_PER_S), round(window.end_s * NS_PER_S))

    return Led(
        during=within(availability.during),
        after=None if availability.after is None else within(availability.after),
    )


def _rivals(sightings: Sequence[Sighting]) -> list[RivalLeaders]:
    return [
        RivalLeaders(term=found.term, sentence=str(found), claims=_sightings(found.claims))
        for found in rivals(sightings)[:MAX_RIVALS]
    ]


def _sightings(sightings: Iterable[Sighting]) -> list[StoredSighting]:
    return [
        StoredSighting(
            time_s=seen.time_ns / NS_PER_S,
            node=seen.node,
            role=seen.role,
            term=seen.term,
            leader=seen.leader,
            until_s=None if seen.until_ns is None else seen.until_ns / NS_PER_S,
        )
        for seen in sightings
    ]


def _clocks(clocks: Clocks) -> StoredClocks:
    return StoredClocks(
        began=clocks.began_utc.isoformat(),
        nodes={
            name: StoredClock(
                offset_s=clock.offset_ns / NS_PER_S, uncertain_s=clock.uncertain_ns / NS_PER_S, zone_s=clock.zone_s
            )
            for name, clock in clocks.nodes.items()
        },
        unknown=dict(clocks.unknown),
    )


def phases_of(phases: Iterable[Phase]) -> list[Phase]:
    """Returns the phases in the order of their starts."""
    return sorted(phases, key=lambda phase: phase.start_s)


def workload_end_ns(timings: Mapping[str, Value]) -> int | None:
    """Returns the time of the end of the workload; None if it is unknown."""
    return round(timings["workload"] * NS_PER_S) if "workload" in timings else None
