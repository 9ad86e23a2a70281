"""Judges a history of transactions: reads the columns, asks the kernel, and makes anomalies with their explanations.

The kernel (`checker/kernel/src/transactions`) finds the anomalies. A consistency model decides which of them make the history
invalid. There is no time-out; only a part of G-SI is searched, within a limit of steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker._kernel import Malformed, SamePosition, Transactions, transactions
from checker.consistency import (
    GARBAGE,
    MALFORMED,
    NONE,
    PROCESS,
    REALTIME,
    TRANSACTION_ORDER,
    Question,
    class_of,
    find,
    implied_orders,
    order_of,
    prohibited,
    ruled_out,
    searched,
)
from checker.formats.columns import OTHER
from checker.judging import MAX_ANOMALIES, STEP_LIMIT, UNSUITED, UNTESTED, Anomaly, Judgement, value_at
from checker.transactions.twice import of_the_rest
from checker.transactions.words import CYCLIC_VERSIONS, MAX_LINKS, REGISTERS, Words
from checker.values import decode_value
from checker.words import value_text
from harness.console.documents import shown
from harness.console.plain import counted
from harness.errors import InputError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker._kernel import Link, Ordering, TransactionFindings
    from checker.formats.columns import ColumnOfValues, Columns, Int64s
    from harness.op import Value

_FORMS: Final = {
    "list-append": "[r key null] or [append key element]",
    "rw-register": "[r key null] or [w key value]",
}
_SHAPES: Final[Mapping[str, str]] = {
    "not-a-list": "a list of micro-operations",
    "not-a-micro-operation": "a micro-operation [function, key, value]",
    "unknown-function": "a micro-operation {forms}",
    "read-no-list": "a list as the result of a read",
    "other-shape": "the functions, keys and written values of the request, {request}, in its answer",
}
CONTRADICTION: Final = "contradiction"
IN_PARTS: Final = "in-parts"
# Why the kernel did not decide whether the versions of registers have an order.
_OPEN: Final[Mapping[str, str]] = {
    "limit": "The search for an order of the others reached its limit of steps.",
    IN_PARTS: "Parts of a history do not search an order of the others; raise --memory-limit, or give the system's own order.",
    "too-large": "The history has too many transactions to search an order of the others, and the likely one is none.",
}
_LACKING: Final = {
    PROCESS: "does not tell the processes",
    REALTIME: "does not tell when transactions began",
}


def judge(
    history: Columns,
    *,
    workload: str,
    model: str,
    sources: Sequence[str] = (),
    anomalies: tuple[str, ...] = (),
    initial: str | None = None,
) -> Judgement:
    """Decides the transactions of a history.

    Args:
        history: The operations; their values are lists of micro-operations, whatever their functions are.
        workload: The micro-operations: `list-append` or `rw-register`.
        model: The name or an alias of a consistency model.
        sources: What the order of versions follows from besides the initial version and the lists that were read:
            `sequential-keys`, `linearizable-keys`; for registers also `writes-follow-reads`, `transaction-order`,
            `atomic-visibility`.
        anomalies: Anomalies that the history must not have besides those that the model prohibits.
        initial: As in `Question`.

    Raises:
        InputError: An operation is no transaction of the workload, or the model is unknown, or a source needs what the history
            lacks.
    """
    question = Question(
        workload=workload, model=find(model).name, sources=tuple(sources), anomalies=anomalies, initial=initial
    )
    _hold_sources(history, sources)
    history = _in_order(history)
    findings = _found(history, question)
    if isinstance(findings, Malformed):
        return _malformed(history, workload, findings)
    if isinstance(findings, SamePosition):
        return _same_position(history, findings)
    return judged(history, question, findings, len(history))


def _found(history: Columns, question: Question) -> TransactionFindings | Malformed | SamePosition:
    """Returns what the kernel finds."""
    anomalies, sources = question.anomalies, question.sources
    return transactions(
        question.workload,
        kind=history.type,
        process=history.process,
        start=history.start,
        end=history.end,
        request=_places(history.value),
        answer=_places(history.result),
        texts=history.texts if isinstance(history.texts, Transactions) else list(history.texts),
        extra=_order(history, order_of(question.model, anomalies)),
        sources=list(sources),
        more=list(searched(question.model, anomalies)),
        position=_positions(history) if TRANSACTION_ORDER in sources else None,
        initial=question.initial,
        asked=_asked(history, question),
    )


def judged(history: Columns, question: Question, findings: TransactionFindings, size: int) -> Judgement:
    """Returns the judgement of what the kernel found.

    Args:
        history: The operations that the findings are about; their rows are those of this history.
        question: What is asked.
        findings: What the kernel found.
        size: The number of all transactions.
    """
    of_all = _Judged(history, question, findings, size).judgement()
    return of_all if findings.twice is None else of_the_rest(of_all, history, findings.twice)


def _order(history: Columns, wanted: str) -> str:
    """Returns what orders transactions besides their data, as far as the history has it."""
    if wanted == REALTIME and REALTIME in history.lacks:
        wanted = PROCESS
    return NONE if wanted == PROCESS and PROCESS in history.lacks else wanted


def _asked(history: Columns, question: Question) -> tuple[str, str, list[str]]:
    """Returns what the order of the versions of registers must keep."""
    strongest, order = class_of(question.model, question.anomalies)
    return strongest, _order(history, order), sorted(prohibited(question.model, question.anomalies))


def _hold_sources(history: Columns, sources: Sequence[str]) -> None:
    for source, needed, what in (
        ("sequential-keys", PROCESS, "a process for each operation"),
        ("linearizable-keys", REALTIME, "an event of type invoke for each operation"),
    ):
        if source in sources and needed in history.lacks:
            raise InputError(
                f"expected {what}, which {source} needs; give a history that has it, or leave {source} away"
            )


def _in_order(history: Columns) -> Columns:
    """Returns the rows in the order of their invokes."""
    if len(history) and (np.diff(history.start) < 0).any():
        return history.only(np.argsort(history.start, kind="stable"))
    return history


def _places(values: ColumnOfValues) -> Int64s:
    """Returns the places of the texts of values; -1 for a value that is no list of micro-operations."""
    return np.where(values.kind == OTHER, values.first, -1).astype(np.int64)


def _malformed(history: Columns, workload: str, wrong: Malformed) -> Judgement:
    """Returns the judgement of a transaction whose answer has another form than its request has.

    Args:
        history: The operations.
        workload: The name of the workload.
        wrong: What is wrong.

    Raises:
        InputError: The request is wrong.
    """
    row, index = wrong.row, wrong.place
    values, event = (history.result, history.end[row]) if wrong.answer else (history.value, history.start[row])
    value = value_at(history, values, row)
    where, request = f"event {event}", value_at(history, history.value, row)
    if index is not None and isinstance(value, list) and index < len(value):
        where, value = f"{where}, micro-operation {index + 1}", value[index]
        request = request[index] if isinstance(request, list) and index < len(request) else request
    expected = _SHAPES[wrong.what].format(forms=_FORMS[workload], request=shown(request))
    sentence = f"{where}: expected {expected}, found {shown(value)}"
    if not wrong.answer:
        raise InputError(sentence)
    weakest, stronger = ruled_out([MALFORMED])
    return Judgement(
        verdict=Verdict.INVALID,
        reason=f"The system answered a transaction with something else, at {where}. So the other transactions were not judged.",
        counts={"transactions": len(history), MALFORMED: 1},
        anomalies=(
            Anomaly(kind=MALFORMED, subject=None, explanation=f"{MALFORMED}: {sentence}.", rows=(row,), decisive=row),
        ),
        figures={"anomaly-types": [MALFORMED], "allowed-anomaly-types": [], "not": weakest, "also-not": stronger},
    )


def _positions(history: Columns) -> Int64s:
    """Returns the place of each number of the system's own among all; -1 for a transaction without one."""
    positions = np.full(len(history), -1, np.int64)
    if history.order is not None:
        known = history.order.known
        positions[known] = np.unique(history.order.number[known], return_inverse=True)[1]
    return positions


def _same_position(history: Columns, same: SamePosition) -> Judgement:
    rows = same.rows
    first, second = (f"event {history.start[row]}" for row in rows)
    number = "" if history.order is None else f" {history.order.number[rows[0]]}"
    return Judgement(
        verdict=Verdict.UNKNOWN,
        cause=UNSUITED,
        reason=f"{second[0].upper()}{second[1:]} writes the key {shown(decode_value(same.key))} with the order{number}, and so "
        f"does {first}; expected another order for each transaction that writes a key, which {TRANSACTION_ORDER} needs. Leave "
        f"{TRANSACTION_ORDER} away, or give a history whose orders are positions of whole transactions.",
    )


class _Judged:
    """Makes the judgement of what the kernel found."""

    def __init__(self, history: Columns, question: Question, findings: TransactionFindings, size: int) -> None:
        self._history = history
        self._size = size
        self._workload = question.workload
        self._model = question.model
        self._more = question.anomalies
        self._lacking = [lack for lack in history.lacks if lack in _needed(order_of(self._model, self._more))]
        self._found = findings
        garbage = {element for finding in findings.findings if finding.kind == GARBAGE for element in finding.elements}
        self._words = Words(
            history, question, reasons=findings.reasons, may_begin=garbage.pop() if len(garbage) == 1 else None
        )
        self._ordering = findings.ordering
        self._counts = dict(findings.counts)
        if self._ordering is not None and self._ordering.answer == CONTRADICTION:
            self._counts[self._unordered()] = 1
        self._sources = question.sources
        self._placed = findings.placed

    def judgement(self) -> Judgement:
        """Returns the verdict with its anomalies."""
        bad = prohibited(self._model, self._more)
        types = sorted(self._counts)
        wrong = [name for name in types if name in bad]
        weakest, stronger = ruled_out(types)
        anomalies = [anomaly for anomaly in self._anomalies() if anomaly.kind in bad]
        anomalies.sort(key=lambda anomaly: (-sum(map(len, ruled_out([anomaly.kind]))), len(anomaly.rows)))
        undecided = [name for name in self._undecided() if name in bad]
        no_order = self._placed is not None and not self._placed[0]
        is_open = self._ordering is not None and self._ordering.answer in _OPEN
        decided = self._found.data_edges and not self._lacking and not undecided and not no_order and not is_open
        verdict = Verdict.INVALID if wrong else Verdict.VALID if decided else Verdict.UNKNOWN
        return Judgement(
            verdict=verdict,
            cause=STEP_LIMIT
            if undecided or (is_open and self._found.data_edges)
            else UNSUITED
            if self._found.data_edges
            else UNTESTED,
            reason=self._reason(verdict, wrong, [name for name in types if name not in bad], undecided)
            + self._assumed(),
            counts={"transactions": self._size, **{name: self._counts[name] for name in wrong}},
            anomalies=_varied(anomalies)[:MAX_ANOMALIES],
            basis=self._orders(),
            figures={
                "consistency-model": self._model,
                "anomaly-types": wrong,
                "allowed-anomaly-types": [name for name in types if name not in bad],
                "not": weakest,
                "also-not": stronger,
                "dependencies": self._found.data_edges,
                **({"implied-orders": list(implied_orders(self._model))} if self._ordering is not None else {}),
                **({"assumed-orders": list(self._sources)} if self._sources else {}),
                **({"undecided-anomaly-types": undecided} if undecided else {}),
                **({"lacking-edges": self._lacking} if self._lacking else {}),
            },
        )

    def _unordered(self) -> str:
        """Returns the type of anomaly that each order of the versions of registers has."""
        strongest, order = class_of(self._model, self._more)
        return strongest if order == NONE else f"{strongest}-{order}"

    def _orders(self) -> str:
        """Returns a sentence that names the orders of versions that were used."""
        if self._ordering is not None:
            used = [f"implied by {self._model}: {', '.join(implied_orders(self._model))}"]
        else:
            used = ["the initial version comes first" if self._workload == REGISTERS else "the lists that were read"]
        if self._sources:
            used.append(f"assumed: {', '.join(self._sources)}")
        return f"Orders of versions used: {'; '.join(used)}."

    def _assumed(self) -> str:
        """Returns a sentence about the system's own order, if it is assumed."""
        if self._placed is None:
            return ""
        count, all_ = self._placed
        if not count:
            return (
                f" No transaction that wrote has an order, so {TRANSACTION_ORDER} shows nothing. Leave it away, or record the "
                "order in which the system committed the transactions."
            )
        left = (
            f" {all_ - count} of {counted(all_, 'transaction')} that may have written have no place in it."
            if count < all_
            else ""
        )
        return f" This assumes that the versions of each key follow the system's own commit order.{left}"

    def _undecided(self) -> list[str]:
        """Returns the types for which the kernel's limit of steps did not suffice."""
        return sorted({overlap.kind for overlap in self._found.overlaps if not overlap.decided})

    def _reason(self, verdict: Verdict, wrong: list[str], allowed: list[str], undecided: list[str]) -> str:
        size = counted(self._size, "transaction")
        if verdict is Verdict.INVALID:
            if prohibited(self._model).isdisjoint(wrong):
                return f"The history of {size} has anomalies that --anomalies excludes: {', '.join(wrong)}."
            how = "" if self._ordering is None else ": no order of the versions of its registers keeps it"
            return f"The history of {size} contradicts {self._model}{how}."
        if not self._found.data_edges:
            return f"In the history of {size}, none depends on another one, so nothing was tested."
        others = f" {self._model} allows these anomalies, which are there: {', '.join(allowed)}." if allowed else ""
        more = f" and none of {', '.join(self._more)}" if self._more else ""
        return self._not_invalid(size, f"no anomaly that {self._model} prohibits{more}", undecided) + others

    def _not_invalid(self, size: str, none: str, undecided: list[str]) -> str:
        """Returns why a history with dependencies is valid or unknown."""
        if undecided:
            overlaps = [overlap for overlap in self._found.overlaps if overlap.kind in undecided]
            writers = {row for overlap in overlaps for row, _ in overlap.writers}
            return (
                f"The history of {size} has {none.replace('no anomaly', 'no other anomaly', 1)}, but {undecided[0]} is not "
                f"decided. No read shows the order of the appends of {counted(len(writers), 'transaction')} to common keys, "
                "and the search for an order in which none of them overlap reached its limit. Read each key once more at the "
                "end of a test."
            )
        if self._ordering is not None and self._ordering.answer in _OPEN:
            return (
                f"By the orders of versions that are known, the history of {size} has {none}. {_OPEN[self._ordering.answer]} "
                f"So it is not decided whether an order of all versions keeps {self._model}."
            )
        if self._lacking:
            lacking = " and ".join(_LACKING[lack] for lack in self._lacking)
            return (
                f"The history of {size} {lacking}, so {self._model} is not decided. By its data, it has {none}. Choose a model "
                "that needs no more than that, e.g. serializable."
            )
        return f"The history of {size} has {none}."

    def _anomalies(self) -> list[Anomaly]:
        anomalies = []
        for finding in self._found.findings:
            text, rows, elements = self._words.finding(finding), finding.rows, finding.elements
            first = (decode_value(element) for element in elements[:1] if element is not None)
            subject: Value = [decode_value(finding.key), *first]
            decisive = rows[0] if len(rows) == 1 else None
            edges = _steps(self._words, rows, elements) if finding.kind == CYCLIC_VERSIONS else ()
            anomalies.append(self._anomaly(finding.kind, subject, text, rows, decisive=decisive, edges=edges))
        for cycle in self._found.cycles:
            links = cycle.links
            text = self._words.cycle(cycle.component, links)
            rows = [link.first for link in links]
            edges = self._edges(links[:MAX_LINKS])
            anomalies.append(self._anomaly(cycle.kind, _keys(links), text, rows, decisive=None, edges=edges))
        if self._ordering is not None and self._ordering.answer == CONTRADICTION:
            anomalies.append(self._contradiction(self._ordering))
        for overlap in self._found.overlaps:
            if overlap.decided:
                writers = overlap.writers
                rows = [row for row, _ in writers]
                subject = [decode_value(key) for key in dict.fromkeys(key for _, key in writers)]
                text = self._words.overlap(overlap.component, writers)
                edges = _apart(writers[:MAX_LINKS])
                anomalies.append(self._anomaly(overlap.kind, subject, text, rows, decisive=None, edges=edges))
        return anomalies

    def _contradiction(self, ordering: Ordering) -> Anomaly:
        """Returns the anomaly that each order of the versions of registers has."""
        cycles = [case.shown for case in ordering.cases if case.shown is not None]
        links = [link for cycle in cycles for link in cycle.links][:MAX_LINKS]
        reasons = [link for cycle in cycles for order in cycle.orders for link in order.links]
        rows = [row for link in (*links, *reasons) for row in (link.first, link.second)] or ordering.rows
        text = self._words.ordering(ordering.cases, len(ordering.rows))
        return self._anomaly(self._unordered(), _keys(links), text, rows, decisive=None, edges=self._edges(links))

    def _edges(self, links: Sequence[Link]) -> tuple[tuple[int, int, str], ...]:
        return tuple((link.first, link.second, self._words.reason(link)) for link in links)

    def _anomaly(
        self,
        kind: str,
        subject: Value,
        text: str,
        rows: list[int],
        *,
        decisive: int | None,
        edges: tuple[tuple[int, int, str], ...] = (),
    ) -> Anomaly:
        weakest, _ = ruled_out([kind])
        falls = f" So the history is not {' and not '.join(weakest)}." if weakest else ""
        return Anomaly(
            kind=kind,
            subject=subject,
            explanation=f"{kind}: {text}{falls}",
            rows=tuple(dict.fromkeys(rows))[: MAX_LINKS + 1],  # those that the words name
            decisive=decisive,
            edges=edges,
        )


def _keys(links: Sequence[Link]) -> Value:
    """Returns the keys of the edges, each once."""
    return [decode_value(key) for key in dict.fromkeys(link.key for link in links if link.key is not None)]


def _steps(words: Words, rows: Sequence[int], elems: Sequence[str | None]) -> tuple[tuple[int, int, str], ...]:
    """Returns an edge for each step of a cycle of versions that two transactions show."""
    return tuple(
        (rows[2 * number], rows[2 * number + 1], f"{words.version(before)} before {words.version(after)}")
        for number, (before, after) in enumerate(Words.steps(rows, elems))
        if rows[2 * number] != rows[2 * number + 1]
    )


def _apart(writers: Sequence[tuple[int, str]]) -> tuple[tuple[int, int, str], ...]:
    """Returns an edge from each writer of a key to the next one, and one back without a reason: they must not overlap."""
    by_key: dict[str, list[int]] = {}
    for row, key in writers:
        by_key.setdefault(key, []).append(row)
    return tuple(
        (one, other, "" if other == rows[0] else f"apart {value_text(decode_value(key))}")
        for key, rows in by_key.items()
        for one, other in zip(rows, [*rows[1:], rows[0]], strict=True)
        if one != other
    )


def _needed(order: str) -> Sequence[str]:
    """Returns the kinds of edges besides those of data that a model needs; those of real time include those of processes."""
    return {REALTIME: (PROCESS, REALTIME), PROCESS: (PROCESS,)}.get(order, ())


def _varied(anomalies: list[Anomaly]) -> list[Anomaly]:
    """Returns anomalies with the first one of each kind before all others."""
    first = {id(anomaly) for anomaly in {anomaly.kind: anomaly for anomaly in reversed(anomalies)}.values()}
    return [anomaly for anomaly in anomalies if id(anomaly) in first] + [
        anomaly for anomaly in anomalies if id(anomaly) not in first
    ]
