"""Makes the signature of a run from its record, so that it is the same when the run is judged and when it is read later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness import phases as ph
from harness.suites.expectation import CaseOutcome
from harness.verdict import Verdict, reason_of
from results.circumstances.losses import first_sentence
from results.record.counterexample import counterexamples_of
from results.record.signatures import MAX_CLASS, MAX_LISTED, Signature
from results.signatures.blame import blame_of
from results.signatures.moments import first_violation, leaders_at, nodes_at
from results.signatures.stripping import Stripper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from harness.suites.expectation import Shown
    from harness.verdict import Part
    from results.record.record import RunRecord

_STAGES: Final = (ph.CLUSTER, ph.BUILD, ph.INSTALL, ph.START, ph.WORKLOAD)
_LATER: Final = (ph.RECOVER, ph.FINAL_READS, ph.COMPARE)
_BROKE_OFF: Final = ("The run broke off", "The run ended before its verdict")
_FAULTS: Final = (" after ", " while ", " during ")  # the words before the faults of a first sentence
COMPLETED: Final = "completed"


def signature_of(record: RunRecord, shown: Shown) -> Signature | None:
    """Returns the signature of a run; None if the run is as expected.

    Args:
        record: The run.
        shown: What it showed, as `results.measure.outcome.shown` returns it.
    """
    if record.test.expectation.outcome(shown) is CaseOutcome.EXPECTED:
        return None
    stripper, plan, crossed = Stripper(record.test.nodes), _plan(record), shown.crossed
    if shown.verdict is Verdict.INVALID:
        return _invalid(record, stripper, plan)
    if shown.verdict is Verdict.VALID:
        sentences = [stripper.sentence(threshold) for threshold in crossed] or [
            stripper.sentence(reason_of(record.parts))
        ]
        return Signature(
            ended="crossed" if crossed else "valid",
            parts=[threshold.partition(" ")[0][:MAX_CLASS] for threshold in list(crossed)[:MAX_LISTED]],
            sentences=sentences[:MAX_LISTED],
            plan=plan,
        )
    return _unknown(record, stripper, plan)


def _invalid(record: RunRecord, stripper: Stripper, plan: list[str] | None) -> Signature:
    violated = [part for part in record.parts if part.verdict is Verdict.INVALID]
    said = first_sentence(record)
    examples = counterexamples_of(record, reason_of(record.parts))
    moment = first_violation(record, examples)
    details = next((part.details for part in violated if part.details.get("counterexample")), {})
    example = details.get("counterexample")
    members: Mapping[str, Value] = example if isinstance(example, dict) else {}
    return Signature(
        ended="invalid",
        parts=_names(violated),
        sentences=[stripper.sentence(reason) for reason in (*([said] if said else []), *_reasons(violated))],
        anomaly=_word(members.get("kind")) or _word(details.get("kind")),
        lost=_lost(stripper.sentence(said)),
        when=_word(members.get("when")),
        leaders=None if moment is None else leaders_at(record, moment),
        nodes=[] if moment is None else nodes_at(record, moment),
        plan=plan,
    )


def _unknown(record: RunRecord, stripper: Stripper, plan: list[str] | None) -> Signature:
    lacking = [part for part in record.parts if part.verdict is Verdict.UNKNOWN and part.decides]
    if not lacking:
        lacking = [part for part in record.parts if part.verdict is Verdict.UNKNOWN]
    ended = next((part for part in lacking if part.name == COMPLETED), None)
    broke_off = ended is not None and ended.reason.startswith(_BROKE_OFF)
    blame, why = blame_of(record.parts)
    states = _states(record) if broke_off else []
    return Signature(
        ended="broken off" if broke_off else "unknown",
        parts=[COMPLETED] if broke_off else _names(lacking),
        sentences=[
            stripper.sentence(reason.partition("\n")[0])
            for reason in _reasons([ended] if ended and broke_off else lacking)
        ]
        + states,
        phase=_phase(record) if broke_off else "",
        plan=plan,
        blame=blame,
        why=why,
    )


def _names(parts: Sequence[Part]) -> list[str]:
    return list(dict.fromkeys(part.name[:MAX_CLASS] for part in parts))[:MAX_LISTED]


def _reasons(parts: Sequence[Part]) -> list[str]:
    return [part.reason for part in parts][: MAX_LISTED - 1]


def _word(value: Value) -> str:
    return value[:MAX_CLASS] if isinstance(value, str) else ""


def _lost(sentence: str) -> str:
    """Returns the first words of a first sentence, before its faults."""
    first = sentence.partition(". ")[0]
    ends = [position for word in _FAULTS if (position := first.find(word)) > 0]
    return first[: min(ends)] if ends else first.removesuffix(".")


def _phase(record: RunRecord) -> str:
    """Returns the phase that a run broke off in: the last one that began before healing, or else the last one after it."""
    begun = {phase.name for phase in record.phases}
    if not begun:
        return ph.WORKLOAD if record.operations else ""
    completed = next((part.details for part in record.parts if part.name == COMPLETED), {})
    seconds, planned_s = completed.get("seconds"), completed.get("planned_seconds")
    whole = isinstance(seconds, int | float) and isinstance(planned_s, int | float) and seconds >= planned_s
    stages: tuple[str, ...] = (*_STAGES, *_LATER) if whole else _STAGES
    return next((name for name in reversed(stages) if name in begun), "")


def _states(record: RunRecord) -> list[str]:
    """Returns how many nodes were in which state in their last polls, as a sentence without numbers; none if nobody asked."""
    newest = {seen.node: seen.role or "silent" for seen in sorted(record.sightings, key=lambda seen: seen.time_ns)}
    return [f"At its end, nodes were: {', '.join(sorted(set(newest.values())))}."[:MAX_CLASS]] if newest else []


def _plan(record: RunRecord) -> list[str] | None:
    """Returns the kinds of faults in the order of their starts, if a file gives the plan; else None."""
    if record.test.options.get("plan_file") is None:
        return None
    faults = sorted(record.faults, key=lambda fault: fault.start_ns)
    return [fault.planned.called[:MAX_CLASS] for fault in faults][:MAX_LISTED]
