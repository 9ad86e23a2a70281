"""The first sentence of an invalid run: what a user lost, and after which faults, in the words of the system.

It claims only what the operations and the proofs of the faults show. A read that returns a value which an acknowledged write
had replaced *missed* this write. It missed a value that *had been seen before* if no such write was acknowledged, but an
earlier operation had observed a newer value. The write was *never seen again* if processes were stopped in between, and no
later operation saw it. It is *gone* only if the state itself lacks it: besides, a compare-and-set took effect on the older
value, or all reads after healing still return an older value. "After" means later in time, and claims no cause. A fault counts
only if its effect was proven.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.judging import LAST
from checker.linearizable import FURTHER, MISSING
from checker.models.counters import Counter
from checker.models.registers import CasRegister, Register
from harness.console.plain import name
from harness.counterexample import Counterexample
from harness.leaders import rivals
from harness.op import OpType
from harness.states import ONE_LEADER, REPLICAS_EQUAL
from harness.units import NS_PER_S
from harness.verdict import Verdict, reason_of, verdict_of
from results.circumstances.fault_clauses import clauses, faults_between
from results.circumstances.loss_words import lacking, words_of
from results.circumstances.missed import WORKLOADS, missed_write
from results.circumstances.registers import Lost, is_cas, lost_of, makers_of, missed_of, newer_of, observed
from results.record.counterexample import by_index, counterexamples_of, read_counterexample, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation, Value
    from harness.verdict import Part
    from results.circumstances.loss_words import Words
    from results.record.record import RunRecord

LOST: Final = "lost"  # the kind of a violation
_REGISTERS: Final = frozenset(model.name for model in (Register, CasRegister))
_GAINED: Final = frozenset({"add", "append", "enqueue", "send"})
_OF_ONE: Final[Mapping[Lost, str]] = {
    Lost.BACK: "a read missed a value that had been seen before",
    Lost.MISSED: "a read missed an acknowledged write",
    Lost.UNSEEN: "an acknowledged write was never seen again",
    Lost.GONE: "an acknowledged write is gone",
}
_OF_SEVERAL: Final[Mapping[Lost, str]] = {
    Lost.BACK: "reads missed values of {n} keys that had been seen before",
    Lost.MISSED: "reads missed acknowledged writes of {n} keys",
    Lost.UNSEEN: "acknowledged writes of {n} keys were never seen again",
    Lost.GONE: "acknowledged writes of {n} keys are gone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a violation of a register shows.

    Attributes:
        lost: How much is lost.
        when: The clause about the faults; empty if the run had none.
        missed: The last acknowledged write that is lost; None if none was acknowledged.
        is_shown: Whether the violation itself shows this write.
    """

    lost: Lost
    when: str
    missed: Operation | None = None
    is_shown: bool = False


def reason(record: RunRecord) -> str:
    """Returns the sentences of a run: what a user lost, if the run shows it, and the reason of the verdict."""
    return f"{first_sentence(record)} {reason_of(record.parts)}".lstrip()


def first_sentence(record: RunRecord) -> str:
    """Returns what a user lost; empty if the run is not invalid, or if its own first sentence says it."""
    if verdict_of(record.parts) is not Verdict.INVALID:
        return ""
    part = next(part for part in record.parts if part.verdict is Verdict.INVALID)
    if part.name == ONE_LEADER:
        return _of_leaders(record)
    if part.name == REPLICAS_EQUAL and not part.details.get("counterexample"):
        return _said("replicas hold different data", faults_between(record.faults, 0, None))
    example = part.details.get("counterexample")
    return _of_counterexample(part, example, record) if isinstance(example, dict) else ""


def _of_counterexample(part: Part, stored: Mapping[str, Value], record: RunRecord) -> str:
    """Returns the sentence about the operations that show the violation of a part; empty without them."""
    examples = counterexamples_of(record, "")
    if not examples:
        return ""
    of_key = _by_key(record.operations)
    model = part.details.get("model")
    if model in _REGISTERS:
        shown = [*examples, *_further(part, record.operations)]
        losses = [_of_register(example, of_key.get(example.key, ()), record.faults) for example in shown]
        if losses[0] is not None:
            return _of_registers(losses[0], [loss for loss in losses if loss is not None])
    missing = _missing(part, stored, examples[0], record.operations)
    if missing is None or model is None:
        said = f"{_gone_beside(part, stored)} {_of_kind(part, stored, examples, record)}".strip()
    else:
        words = words_of(part.name, str(model), str(stored.get("kind")))
        what = lacking(str(model)) if words is None else words.one
        said = _said(what, faults_between(record.faults, missing.last_ns, examples[0].culprit))
    if missing is None:
        return said
    which = "before" if model == Counter.name else "that is missing"
    return f"{said} The last acknowledged {name(missing.f)} {which} is {_acknowledged(missing)}."


def _missing(
    part: Part, stored: Mapping[str, Value], example: Counterexample, operations: Sequence[Operation]
) -> Operation | None:
    """Returns the last acknowledged operation that the answer of a violation lacks; None if a loss is not what it shows."""
    if part.name in WORKLOADS:
        return missed_write(part.name, str(stored.get("kind")), example, operations)
    index = part.details.get(MISSING)
    return by_index(operations).get(index) if isinstance(index, int) else None


def _further(part: Part, operations: Sequence[Operation]) -> Iterator[Counterexample]:
    """Yields the decisive operation of each invalid key without a counterexample, as one without other operations."""
    listed_ones = part.details.get(FURTHER)
    by_number = {operation.invoke_index: operation for operation in operations} if listed_ones else {}
    for entry in listed_ones if isinstance(listed_ones, list) else ():
        index = entry[1] if isinstance(entry, list) and len(entry) == 2 else None
        culprit = by_number.get(index) if isinstance(index, int) else None
        if culprit is not None:
            yield Counterexample(key=culprit.key, explanation="", operations=(), culprit=culprit)


def _said(what: str, when: str) -> str:
    return f"{what[:1].upper()}{what[1:]}{f' {when}' if when else ''}."


def _by_key(operations: Sequence[Operation]) -> Mapping[str | None, list[Operation]]:
    by_key: dict[str | None, list[Operation]] = {}
    for operation in operations:
        by_key.setdefault(operation.key, []).append(operation)
    return by_key


# -- registers -----------------------------------------------------------------------------------------------------------------


def _of_registers(first: Loss, losses: Sequence[Loss]) -> str:
    """Returns the sentence about the first violation, and about others that show the same, or more, after the same faults."""
    as_much = (lambda lost: lost is Lost.BACK) if first.lost is Lost.BACK else (lambda lost: lost >= first.lost)
    alike = [loss for loss in losses if as_much(loss.lost) and loss.when == first.when]
    what = _OF_SEVERAL[first.lost].format(n=f"{len(alike):,}") if len(alike) > 1 else _OF_ONE[first.lost]
    said = _said(what, first.when)
    last = max((loss for loss in alike if loss.missed is not None), key=_missed_ns, default=None)
    if last is None or last.missed is None or (last is first and first.is_shown):
        return said
    of_key = "" if last is first or last.missed.key is None else f" on key {name(last.missed.key)}"
    at = _at(last.missed)
    return f"{said} The last acknowledged write before is {_named(last.missed)}{of_key}, at {at}."


def _missed_ns(loss: Loss) -> int:
    return -1 if loss.missed is None else loss.missed.last_ns


def _of_register(
    example: Counterexample, operations: Sequence[Operation], faults: Sequence[FaultRecord]
) -> Loss | None:
    """Returns what a read of an older value shows; None if the decisive operation is none, or if it may be no older value."""
    culprit = example.culprit
    saw = None if culprit is None else observed(culprit)
    if culprit is None or saw is None:
        return None
    makers = makers_of(operations)
    missed = missed_of(culprit, saw, operations, makers)
    if missed is None:
        seen = newer_of(culprit, saw, operations, makers)
        return None if seen is None else Loss(lost=Lost.BACK, when=faults_between(faults, seen.last_ns, culprit))
    stopped = any(
        fault.is_proven and fault.stopped and missed.last_ns < fault.end_ns and fault.start_ns < culprit.start_ns
        for fault in faults
    )
    lost = lost_of(missed, operations, makers)
    return Loss(
        lost=Lost.MISSED if lost is Lost.UNSEEN and not stopped else lost,
        when=faults_between(faults, missed.last_ns, culprit),
        missed=missed,
        is_shown=missed.invoke_index in {operation.invoke_index for operation in example.operations},
    )


def _at(operation: Operation) -> str:
    return f"{operation.last_ns / NS_PER_S:.3f} s"


def _acknowledged(operation: Operation) -> str:
    of_key = "" if operation.key is None else f" on key {name(operation.key)}"
    return f"{_named(operation)}{of_key}, acknowledged at {_at(operation)}"


def _named(operation: Operation) -> str:
    if operation.value is None:
        return f"process {operation.process}'s {name(operation.f)}"
    what = "compare-and-set to" if is_cas(operation) else f"{operation.f} of"
    value: Value = operation.value[1] if is_cas(operation) else operation.value
    return f"process {operation.process}'s {what} {name(short(value))}"


# -- judges and other models ---------------------------------------------------------------------------------------------------


def _of_kind(part: Part, stored: Mapping[str, Value], examples: Sequence[Counterexample], record: RunRecord) -> str:
    kind, model, faults = stored.get("kind"), part.details.get("model"), record.faults
    words = words_of(part.name, model if isinstance(model, str) else None, kind if isinstance(kind, str) else None)
    if words is None:
        return ""
    documents = part.details.get("counterexamples")
    listed_ones = documents if isinstance(documents, list) else []
    alike = [
        example
        for example, entry in zip(examples, listed_ones, strict=False)
        if isinstance(entry, dict) and entry.get("kind") == kind
    ] or [examples[0]]
    counts = part.details.get("counts")
    counted_ones = counts.get(kind, 1) if isinstance(counts, dict) else 1
    count = counted_ones if isinstance(counted_ones, int) else 1
    last = _last(part, str(kind), alike, record, is_all=count == len(alike)) if words.gone and count > 1 else None
    whens = [_when_of(example, words, faults) for example in alike]
    if count == len(alike) and len(set(whens)) == 1:
        said = _said(words.of(count), whens[0])
        return said if last is None else f"{said} The last of them is {last[1]}."
    # The faults are those around one violation; others may be of another time.
    if last is not None:
        when = _when_of(last[0], words, faults)
        below = f", the one below {whens[0]}" if whens[0] not in {"", when} else ""
        of_last = f", the last of them {when}: {last[1]}" if when else f". The last of them is {last[1]}"
        return _said(f"{words.of(count)}{below}{of_last}", "")
    several = count > 1 and words.several
    which = f", the one below {whens[0]}" if several and whens[0] else f" {whens[0]}" if whens[0] else ""
    return _said(f"{words.of(count)}{which}", "")


def _gone_beside(part: Part, stored: Mapping[str, Value]) -> str:
    """Returns a sentence about what is gone, if the operations show another kind of violation; empty if nothing is.

    It has no clause about faults, because those of the operations may not be those of the losses.
    """
    counts, words = part.details.get("counts"), words_of(part.name, None, LOST)
    number = counts.get(LOST) if isinstance(counts, dict) else None
    is_shown = part.details.get("model") is not None or stored.get("kind") == LOST
    if is_shown or words is None or not isinstance(number, int) or number < 1:
        return ""
    return _said(words.of(number), "")


def _last(
    part: Part, kind: str, alike: Sequence[Counterexample], record: RunRecord, *, is_all: bool
) -> tuple[Counterexample, str] | None:
    """Returns what was acknowledged last of what is gone, with the words for it; None if it is unknown.

    Args:
        part: The part; its judge tells the last one, since the examples may be the first ones; a plug-in's judge may not.
        kind: The kind of the violations.
        alike: The examples of this kind.
        record: The run.
        is_all: Whether the examples are all violations of this kind.
    """
    told = part.details.get(LAST)
    stored = told.get(kind) if isinstance(told, dict) else None
    last = read_counterexample(stored, by_index(record.operations), "") if stored else None
    if last is None and is_all:
        last = max(alike, key=_known_ns)
    gained = None if last is None else _gained(last)
    if last is None or gained is None:
        return None
    return last, _acknowledged(gained)


def _when_of(example: Counterexample, words: Words, faults: Sequence[FaultRecord]) -> str:
    """Returns the clause about the faults between an acknowledgement and the operation that shows the violation."""
    if words.by_then:
        return faults_between(faults, 0, example.culprit)
    gained, culprit = _gained(example), example.culprit
    if gained is None or culprit is None or gained.invoke_index != culprit.invoke_index:
        return faults_between(faults, _known_ns(example), culprit)
    # What was acknowledged is itself what could not have happened: a later operation shows it, or the end of the run.
    later = [operation for operation in example.operations if operation.start_ns > gained.last_ns]
    if later or len(example.operations) == 1:
        return faults_between(faults, gained.last_ns, min(later, key=lambda operation: operation.last_ns, default=None))
    return faults_between(faults, _known_ns(example), culprit)


def _gained(example: Counterexample) -> Operation | None:
    """Returns the last acknowledged operation that put something in before the decisive one began; else the decisive one."""
    culprit = example.culprit
    acknowledged = [
        operation for operation in example.operations if operation.f in _GAINED and operation.type is OpType.OK
    ]
    before = [operation for operation in acknowledged if culprit is None or operation.last_ns <= culprit.start_ns]
    itself = [
        operation
        for operation in acknowledged
        if culprit is not None and operation.invoke_index == culprit.invoke_index
    ]
    return max(before or itself, key=lambda operation: operation.last_ns, default=None)


def _known_ns(example: Counterexample) -> int:
    """Returns the time from which on an example shows what must be there: the end of the operation that put it in."""
    gained = _gained(example)
    if gained is not None and (example.culprit is None or gained.invoke_index != example.culprit.invoke_index):
        return gained.last_ns
    return min(operation.start_ns for operation in example.operations)


def _of_leaders(record: RunRecord) -> str:
    """Returns the sentence about the first term with two leaders, and the faults since its first leader; empty without one."""
    for rival in rivals(record.sightings):
        first = rival.claims[0]
        second = next(claim for claim in rival.claims if claim.node != first.node)
        between = [
            fault
            for fault in record.faults
            if fault.is_proven and fault.start_ns < second.time_ns and first.time_ns < fault.end_ns
        ]
        return _said("one term had two leaders", f"after {clauses(between)}" if between else "")
    return ""
