"""`results.json`: the verdict of a run as data, for programs and for making its report again.

`docs/reference/results.schema.json` specifies the document, and a test checks it. The members for a list of runs (verdict,
sentence, seed, reproduce line) come first, so that a reader needs only the head of the file. The document has only recorded or
measured data; missing data is null. What was recorded is in it as the record has it; see `results.record.record.Observations`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from harness.console.members import written
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
from results.measure.outcome import shown
from results.measure.series import latency_points, latency_table, main_phase
from results.record.counterexample import counterexamples_of
from results.record.forms import (
    Counts,
    Led,
    MeasuredFault,
    Quantiles,
    Results,
    RivalLeaders,
    ServiceLeaders,
    StoredPart,
    StoredThreshold,
)
from results.record.record import Observations
from results.signatures.signature import signature_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation, Value
    from harness.phases import Phase
    from harness.suites.thresholds import Measured
    from harness.watch import Sighting
    from results.measure.availability import FaultAvailability, Window
    from results.measure.leadership import Leadership
    from results.measure.op_outcomes import Codes
    from results.record.record import RunRecord

FORMAT: Final = "labrys-results"
VERSION: Final = 3
MAX_RIVALS: Final = 20
HEAD: Final = (
    "format",
    "version",
    "valid",
    "reason",
    "test",
    "seed",
    "reproduce",
    "thresholds",
    "signature",
    "warnings",
)


def build(record: RunRecord, *, warnings: Mapping[str, int] | None = None) -> dict[str, Value]:
    """Returns the whole document.

    Args:
        record: The run.
        warnings: The classes of warnings in its logs, as `results.signatures.warnings` returns them; None: nobody read them.
    """
    test = record.test
    elections = {service: Elections(seen) for service, seen in record.all_sightings().items()}
    windows = around(record.faults, record.operations, test.codes)
    quantiles = latency_table(latency_points(main_phase(record.operations), test.codes))
    end_ns = workload_end_ns(record.timings)
    results = Results(
        **{
            **_members(record, Observations),
            "phases": phases_of(record.phases),
            "faults": [
                _fault(fault, availability, elections[record.service_of(fault)])
                for fault, availability in zip(record.faults, windows, strict=True)
            ],
        },
        format=FORMAT,
        version=VERSION,
        valid=verdict_of(record.parts).as_json,
        reason=reason(record),
        test=test.name,
        seed=test.seed,
        reproduce=test.reproduce,
        thresholds=[],  # they need the numbers below; see the end
        signature=None,  # likewise
        warnings=None if warnings is None else dict(warnings),
        started_utc=test.started_utc,
        counts=counts(record.operations, test.codes),
        availability=overall(record.operations, test.codes),
        latency={f: Quantiles(**values) for f, values in quantiles.items()},
        versions=test.versions,
        artifact=test.artifact,
        promise=test.promise,
        parts=_parts(record.parts),
        left_out=test.left_out,
        defaults=test.defaults,
        leadership=elections[None].within(end_ns=end_ns),
        rival_leaders=_rivals(record.sightings),
        other_leaders={
            name: ServiceLeaders(leadership=elections[name].within(end_ns=end_ns), rival_leaders=_rivals(seen))
            for name, seen in record.other_sightings.items()
        },
        violations=violations(record.parts),
        counterexample=_counterexample(record),
    )
    members: dict[str, Value] = written(results)
    document = {name: members.pop(name) for name in HEAD} | members
    limits = measured(test.thresholds, partial(measure, document), partial(why_missing, document))
    document["thresholds"] = written(_thresholds(limits, was_behind=behind(record.parts) is not None))
    document["signature"] = written(signature_of(record, shown(document, verdict_of(record.parts), record.parts)))
    return document


def _members(value: Any, kind: type) -> dict[str, Any]:
    """Returns the members that a value has of a dataclass, its own one or a base of it."""
    return {member.name: getattr(value, member.name) for member in fields(kind)}


def _thresholds(thresholds: Iterable[Measured], *, was_behind: bool) -> list[StoredThreshold]:
    """Returns each threshold with its number, and whether the run kept it.

    It is unknown whether a run whose control node was behind keeps a threshold that it crossed.
    """
    return [
        StoredThreshold(
            threshold=str(threshold.threshold),
            measured=threshold.number,
            kept=True if threshold.crossed is None else "unknown" if was_behind else False,
            crossed=threshold.crossed,
        )
        for threshold in thresholds
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
        **{kind: total[kind] for kind in OUTCOMES},
        by_f={f: {kind: by_f[f][kind] for kind in OUTCOMES} for f in sorted(by_f)},
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
    details = (part.details.get(name) for part in parts if part.verdict is Verdict.INVALID)
    return next((written(detail) for detail in details if detail), None)


def _counterexample(record: RunRecord) -> Value:
    """Returns the counterexample with its circumstances."""
    example = counterexample(record.parts)
    examples = counterexamples_of(record, reason_of(record.parts)) if isinstance(example, dict) else ()
    return {**example, "circumstances": circumstances(examples[0], record)} if examples else example


def _parts(parts: Sequence[Part]) -> dict[str, StoredPart]:
    stored: dict[str, StoredPart] = {}
    for part in parts:
        name, number = part.name, 1
        while name in stored:  # two parts with one name: neither may hide the other
            number += 1
            name = f"{part.name}-{number}"
        stored[name] = StoredPart(
            valid=part.verdict.as_json, reason=part.reason, details=dict(part.details), extra=part.extra
        )
    return stored


def _fault(fault: FaultRecord, availability: FaultAvailability | None, elections: Elections) -> MeasuredFault:
    return MeasuredFault(
        **_members(fault, type(fault)),
        availability=availability,
        leadership=None if availability is None else _led(availability, elections),
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
        RivalLeaders(term=rival.term, sentence=str(rival), claims=rival.claims)
        for rival in rivals(sightings)[:MAX_RIVALS]
    ]


def phases_of(phases: Iterable[Phase]) -> list[Phase]:
    """Returns the phases in the order of their starts."""
    return sorted(phases, key=lambda phase: phase.start_s)


def workload_end_ns(timings: Mapping[str, Value]) -> int | None:
    """Returns the time of the end of the workload; None if it is unknown."""
    return round(timings["workload"] * NS_PER_S) if "workload" in timings else None
