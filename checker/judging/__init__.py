"""Judges: the checkers of workloads that do not check linearizability.

A judge checks one object. It gets the operations as arrays (`checker.formats.columns`), so that ten million operations need no
Python objects, and returns a `Judgement`. A run, `labrys check` and `labrys analyze` use the same judge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from checker.values import decode_value
from checker.violations import Violation, count, counterexamples, ranked
from harness.console.plain import counted_of
from harness.op import Operation, OpType
from harness.verdict import Part, Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checker.formats.columns import ColumnOfValues, Columns, Int64s
    from harness.counterexample import Counterexample
    from harness.faults import FaultRecord
    from harness.op import Value

MAX_ANOMALIES: Final = 100  # of one object, in full
MAX_KEYS: Final = 10_000
LAST: Final = "last"  # the member of a part's details that has `Judgement.last`
UNTESTED: Final = "untested"  # the causes of an unknown verdict of a judge: it found nothing to check,
UNSUITED: Final = "unsuited"  # it cannot judge such a history,
STEP_LIMIT: Final = "step-limit"  # or its search reached its limit,
UNPROMISED: Final = (
    "nothing-promised"  # or no answer promised anything, so nothing could be broken: it hides no other object
)
_TYPES: Final = (OpType.OK, OpType.FAIL, OpType.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """Something that a correct system cannot do.

    Attributes:
        kind: A word of the workload, e.g. `lost`, `duplicated`.
        subject: The element, offset or token that it is about.
        explanation: One or two sentences, with the operations' processes, nodes or times where they help.
        rows: The rows of the operations that show it, a dozen at most.
        decisive: The row of the operation that is impossible, given the others; None if there is none.
        edges: For a cycle, in its order: a row, the next row, and why the first precedes the second, e.g. `rw x`. `apart x`:
            both write x, and must not overlap.
    """

    kind: str
    subject: Value
    explanation: str
    rows: tuple[int, ...]
    decisive: int | None = None
    edges: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The result of a judge for one object.

    Attributes:
        verdict: The verdict; unknown with a reason if nothing was tested, or if the judge could not decide.
        reason: One sentence with numbers.
        counts: Word to number, e.g. `{"ok": 100, "lost": 0}`; sums over objects must make sense.
        anomalies: The first anomalies, `MAX_ANOMALIES` at most; `counts` has their true numbers.
        last: By kind, for kinds by which something is gone: the anomaly of what was acknowledged last. Its first row is the
            operation that was acknowledged. It may be none of `anomalies`.
        figures: Other JSON values about this object, e.g. quantiles.
        plot: The plot over time for the report, made by `checker.judging.marks.plot`; None if there is none.
        cause: Why the verdict is unknown: `UNTESTED`, `UNSUITED`, `STEP_LIMIT` or `UNPROMISED`.
        basis: A sentence about what the verdict was decided by, whatever it is; empty if there is nothing to say.
    """

    verdict: Verdict
    reason: str
    counts: Mapping[str, int] = field(default_factory=dict)
    anomalies: Sequence[Anomaly] = ()
    last: Mapping[str, Anomaly] = field(default_factory=dict)
    figures: Mapping[str, Value] = field(default_factory=dict)
    plot: Mapping[str, Value] | None = None
    cause: str = UNTESTED
    basis: str = ""

    @property
    def tells(self) -> bool:
        """Whether it counts for the verdict on all objects; without a promise, it does not."""
        return self.verdict is not Verdict.UNKNOWN or self.cause != UNPROMISED


class Judge(Protocol):
    """Decides one object; a workload without a model is a judge.

    Attributes:
        name: The name of its part of a verdict.
    """

    name: str

    def judge(self, history: Columns) -> Judgement:
        """Decides the operations of one object, in the order of their invokes.

        Raises:
            InputError: The workload does not know an operation; the message has its event index and what was expected.
        """
        ...


def judge_keys(judge: Judge, history: Columns) -> dict[str | None, tuple[Judgement, Int64s]]:
    """Decides each object of a history by itself.

    Returns:
        By key, in the order of the history: the judgement, and the rows of `history` that the rows of its anomalies refer to.
    """
    judgements: dict[str | None, tuple[Judgement, Int64s]] = {}
    for key, rows in history.rows_by_key():
        judgements[key] = judge.judge(history.only(rows)), rows
    return judgements


def part_of(
    judge: Judge,
    history: Columns,
    *,
    operation: Callable[[int], Operation] | None = None,
    faults: Sequence[FaultRecord] = (),
) -> Part:
    """Decides a history, and returns the result as a part of a verdict.

    Args:
        judge: The checker.
        history: All operations.
        operation: Returns the operation of a row; None: made from the columns, which lack some fields.
        faults: The records of the run's faults. The part shows an anomaly during or after a fault first.
    """
    at = cache(operation or (lambda row: operation_at(history, row)))
    return composed(judge.name, judge_keys(judge, history), len(history), operation=at, faults=faults)


def composed(
    name: str,
    judgements: Mapping[str | None, tuple[Judgement, Int64s]],
    operations: int,
    *,
    operation: Callable[[int], Operation],
    faults: Sequence[FaultRecord] = (),
) -> Part:
    """Returns the judgements of all objects as a part of a verdict.

    Args:
        name: The judge's name.
        judgements: The result of `judge_keys`.
        operations: The number of operations.
        operation: Returns the operation of a row of the history.
        faults: See `part_of`.
    """
    telling = {key: judgement for key, (judgement, _) in judgements.items() if judgement.tells}
    verdict = worst(judgement.verdict for judgement in telling.values())
    deciding = [key for key, (judgement, _) in judgements.items() if judgement.verdict is verdict]
    if telling:
        deciding = [key for key in deciding if key in telling]
    counts: Counter[str] = Counter()
    for judgement, _ in judgements.values():
        counts.update(judgement.counts)
    details: dict[str, Value] = {
        "operations": operations,
        "keys": len(judgements),
        "nothing_promised": len(judgements) - len(telling),
        "verdicts": {
            str(verdict): sum(judged.verdict is verdict for judged, _ in judgements.values()) for verdict in Verdict
        },
        "counts": dict(counts),
        "figures": {
            key or "": dict(judgement.figures)
            for key, (judgement, _) in list(judgements.items())[:MAX_KEYS]
            if judgement.figures
        },
    }
    if not judgements:
        return Part(
            name=name, verdict=verdict, reason="There were no operations, so nothing was tested.", details=details
        )
    first = judgements[deciding[0]][0].reason
    examples: Sequence[Counterexample] = ()
    violations = ranked(_violations(judgements, operation), faults)
    shown = violations[0].key if violations else deciding[0]
    if (drawn := judgements[shown][0].plot) is not None:
        details["plot"] = {**drawn, "key": shown}
    if violations:
        documents = [violation.to_json() for violation in violations[:MAX_ANOMALIES]]
        examples = counterexamples(violations[:MAX_ANOMALIES])
        details["violations"] = count(violations)
        details["counterexample"], details["counterexamples"] = documents[0], documents
        details[LAST] = {
            str(anomaly.kind): anomaly.to_json() for anomaly in ranked(_last(judgements, operation), faults)
        }
        first = violations[0].explanation
    if verdict is Verdict.UNKNOWN:
        details["cause"] = judgements[deciding[0]][0].cause
    if verdict is not Verdict.VALID:
        details["invalid_keys" if verdict is Verdict.INVALID else "unknown_keys"] = deciding[:MAX_KEYS]
    where = "" if deciding[0] is None or violations else f"Key {deciding[0]}: "
    more = (
        f" {counted_of(len(deciding), len(judgements), 'key', 'are')} {verdict}."
        if len(judgements) > 1 and verdict is not Verdict.VALID
        else ""
    )
    totals = ", ".join(f"{number} {word}" for word, number in counts.items())
    if verdict is Verdict.VALID and len(judgements) > 1:
        promised = (
            f"{counted_of(len(telling), len(judgements), 'key', 'are')} valid, and the others have no promise to break"
        )
        all_of = f"All {len(judgements)} keys are valid" if len(telling) == len(judgements) else promised
        reason = f"{all_of}: {totals}."
    elif violations:
        reason = f"{first}{more} In all: {totals}."
    else:
        reason = f"{where}{first}{more}"
    reason = f"{reason} {judgements[shown][0].basis}".rstrip()
    return Part(name=name, verdict=verdict, reason=reason, details=details, counterexamples=examples)


def _violations(
    judgements: Mapping[str | None, tuple[Judgement, Int64s]], operation: Callable[[int], Operation]
) -> list[Violation]:
    return [
        _violation(key, anomaly, rows, operation)
        for key, (judgement, rows) in judgements.items()
        for anomaly in judgement.anomalies
    ]


def _violation(key: str | None, anomaly: Anomaly, rows: Int64s, operation: Callable[[int], Operation]) -> Violation:
    return Violation(
        key=key,
        kind=anomaly.kind,
        subject=anomaly.subject,
        explanation=anomaly.explanation if key is None else f"Key {key}: {anomaly.explanation}",
        operations=[operation(int(rows[row])) for row in anomaly.rows],
        decisive=None if anomaly.decisive is None else operation(int(rows[anomaly.decisive])),
        edges=tuple(
            (operation(int(rows[first])).invoke_index, operation(int(rows[second])).invoke_index, why)
            for first, second, why in anomaly.edges
        ),
    )


def _last(
    judgements: Mapping[str | None, tuple[Judgement, Int64s]], operation: Callable[[int], Operation]
) -> list[Violation]:
    """Returns, for each kind by which something is gone, the violation of what was acknowledged last on any key."""
    last: dict[str, tuple[int, Violation]] = {}
    for key, (judgement, rows) in judgements.items():
        for kind, anomaly in judgement.last.items():
            ended_ns = operation(int(rows[anomaly.rows[0]])).last_ns
            if kind not in last or ended_ns > last[kind][0]:
                last[kind] = ended_ns, _violation(key, anomaly, rows, operation)
    return [violation for _, violation in last.values()]


def operation_at(history: Columns, row: int) -> Operation:
    """Returns the operation of a row, with the fields that columns have: no node, error, phase and scheduled time."""
    kind = _TYPES[history.type[row]]
    end_ns = int(history.end_ns[row])
    return Operation(
        process=int(history.process[row]),
        f=history.functions[history.function[row]],
        value=value_at(history, history.value, row),
        result=value_at(history, history.result, row),
        type=kind,
        start_ns=int(history.start_ns[row]),
        end_ns=None if end_ns < 0 else end_ns,
        invoke_index=int(history.start[row]),
        complete_index=None if kind is OpType.INFO else int(history.end[row]),
        key=history.keys[history.key[row]],
    )


def value_at(history: Columns, values: ColumnOfValues, row: int) -> Value:
    """Returns the value of a column of values in a row."""
    from checker.formats.columns import INTEGER, NOTHING, PAIR  # noqa: PLC0415 - loads pyarrow

    match values.kind[row]:
        case kind if kind == NOTHING:
            return None
        case kind if kind == INTEGER:
            return int(values.first[row])
        case kind if kind == PAIR:
            return [int(values.first[row]), int(values.second[row])]
        case _:
            return decode_value(history.texts[values.first[row]])
