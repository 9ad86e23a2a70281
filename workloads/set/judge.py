"""Checks one set: the kind of each element, and the consistency of the reads.

The kinds of elements (terms as in `Facts`; the module `facts` computes them):

- `lost`: a read missed it, and the last read that returned it, if any, began before the last read that did not. Always invalid.
  With `--no-linearizable`, a read may miss what the nodes have not exchanged yet. So there, the last one that did not must be a
  final read, after healing, or have begun `--rest` seconds after the last add had ended.
- `unsettled`: the same with `--no-linearizable`, without such a read. It is lost, or only late. The set is unknown.
- `unexpected`: a read returned the element and ended before any add of it began, or all its adds failed, or there was none.
  Invalid unless `--no-exact-reads`.
- `stale`: a read missed it, and later reads returned it. Invalid unless `--no-linearizable`.
- `ok`: an add of it succeeded, and every read that began after it was known returned it.
- `recovered`: the same, but no add of it succeeded: only a read proves it.
- `never-read`: an add of it succeeded, and no read began after that. The set is unknown.
- `unconfirmed`: no add of it succeeded and no later read returned it, so its state is not known.
- `failed`: all its adds certainly did not happen, and no read returned it.

Each element has one of these kinds; with `--no-exact-reads`, one that was added may be unexpected besides. Three more kinds are
about reads; the module `order` computes the last two:

- `duplicated`: a read returned the element more than once. Invalid unless `--no-exact-reads`.
- `out-of-order`: a read returned an element, but not another one whose add was acknowledged before the add of the first began.
  Invalid unless `--no-linearizable`.
- `incomparable`: two reads each returned an element that the other did not. The judge compares neighbours in the order of size.
  Invalid unless `--no-linearizable`.

These are the rules of Jepsen's `set-full`, where `stable` is ok, recovered or stale. But `set-full` allows a read before the
add, has no failed adds, ignores elements that nobody added, does not compare reads, and never notices a duplicate: it looks for
elements that a read has less than once. With `--no-exact-reads`, the sentence of the verdict warns of what it allows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from checker.formats.columns import OK
from checker.judging import MAX_ANOMALIES, Anomaly
from checker.judging.rules import Rule, judged, said
from harness.console.documents import shown
from harness.console.plain import counted_of
from harness.errors import InputError
from harness.units import NS_PER_S
from workloads.set.elements import Elements
from workloads.set.facts import NONE, facts_of
from workloads.set.order import crossed, skipped
from workloads.set.picture import picture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judgement
    from harness.op import Value
    from workloads.set.facts import Bools, Facts
    from workloads.set.order import Crossed, Skipped

QUANTILES: Final = (0, 0.5, 0.95, 0.99, 1)
WORST_STALE: Final = 8
_MS: Final = 1_000_000


def judge(history: Columns, *, linearizable: bool, rest_s: float = 0.0, exact: bool = True) -> Judgement:
    """Decides a set.

    Args:
        history: The operations of one set.
        linearizable: Whether reads must be linearizable. Then stale elements and inconsistent reads are invalid.
        rest_s: If they need not be: the seconds after the last add after which a read must return all elements.
        exact: Whether duplicated and unexpected elements are invalid. If not, they are only counted.

    Raises:
        InputError: A function is neither `add` nor `read`, or the result of a read is not a list.
    """
    adds, reads = _rows(history)
    elements = Elements(history, adds, reads)
    facts = facts_of(history, adds, reads, elements)
    proof = None if linearizable else _last_at_rest(history, adds, reads, rest_s)
    return _Judge(history, elements, facts, proof, rest_s, exact=exact).judgement(linearizable=linearizable)


def _last_at_rest(history: Columns, adds: Int64s, reads: Int64s, rest_s: float) -> int:
    """Returns the last read that is a final one, or began after a rest; `NONE` if there is none."""
    ended_ns = np.maximum(history.start_ns[adds], history.end_ns[adds])
    rest_ns = (int(ended_ns.max()) if len(adds) else 0) + int(rest_s * NS_PER_S)
    at_rest = history.start_ns[reads] >= rest_ns
    if not history.start_ns.any():
        at_rest[:] = False  # there are no times
    if history.final is not None:
        at_rest |= history.final[reads]
    return int(np.flatnonzero(at_rest)[-1]) if at_rest.any() else NONE


def _rows(history: Columns) -> tuple[Int64s, Int64s]:
    """Returns the rows of the adds, and those of the successful reads, in the order of their starts."""
    order = np.arange(len(history))
    if len(order) and (np.diff(history.start) < 0).any():
        order = np.argsort(history.start, kind="stable")
    names = dict.fromkeys(history.function.tolist()) if len(order) < 2 else np.unique(history.function).tolist()
    for number in names:
        if history.functions[number] not in {"add", "read"}:
            row = int(np.flatnonzero(history.function == number)[0])
            raise InputError(
                f"event {history.start[row]}: a set has the functions add and read, found {shown(history.functions[number])}"
            )
    known = {name: index for index, name in enumerate(history.functions)}
    function = history.function[order]
    is_read = (function == known.get("read", NONE)) & (history.type[order] == OK)
    return order[function == known.get("add", NONE)], order[is_read]


class _Judge:
    """One set with its facts."""

    def __init__(
        self,
        history: Columns,
        elements: Elements,
        facts: Facts,
        proof: int | None = None,
        rest_s: float = 0.0,
        *,
        exact: bool = True,
    ) -> None:
        """Takes the facts; `proof` is the last read that can prove a loss, None if each read can."""
        self.exact = exact
        self.history = history
        self.elements = elements
        self.facts = facts
        self.proof = proof
        self.rest_s = rest_s
        self.classes = _classes(facts, proof, exact=exact)
        wrong = self.classes["lost"] | self.classes["stale"] | self.classes["unexpected"] | self.classes["unsettled"]
        self.skipped = skipped(facts, ~wrong)
        self.crossed = crossed(facts, ~wrong)

    def judgement(self, *, linearizable: bool) -> Judgement:
        counts = self._counts()
        seen = counts["ok"] + counts["recovered"] + counts["stale"]
        return judged(
            self._rules(linearizable=linearizable),
            counts,
            held=f"{counts['reads']} reads returned all {seen} elements that are known to be in the set.",
            untested=self._untested(counts, seen),
            basis=self._warning(counts),
            last=self._last(),
            figures=self._figures(counts),
            plot=picture(self.history, self.facts, self.classes),
        )

    def _rules(self, *, linearizable: bool) -> list[Rule]:
        return [
            Rule(kind="lost", anomalies=self._lost, sentence="{number} elements are lost."),
            *self._rules_of_exact(),
            Rule(
                kind="stale", anomalies=self._stale, decides=linearizable,
                sentence="{number} elements were missed by reads that began after they were known.",
            ),
            Rule(
                kind="out-of-order", anomalies=self._skipped, decides=linearizable,
                sentence="{number} reads skipped an element.",
            ),
            Rule(
                kind="incomparable", anomalies=self._crossed, decides=linearizable,
                sentence="{number} pairs of reads saw adds in different orders.",
            ),
        ]  # fmt: skip

    def _rules_of_exact(self) -> list[Rule]:
        return [
            Rule(
                kind="unexpected", anomalies=self._unexpected, decides=self.exact,
                sentence="{number} elements were read before any add of them, or without one.",
            ),
            Rule(
                kind="duplicated", anomalies=self._duplicated, decides=self.exact,
                sentence="{number} elements were returned twice by one read.",
            ),
        ]  # fmt: skip

    def _untested(self, counts: Mapping[str, int], seen: int) -> str | None:
        """Returns why a loss may be unseen; None if it is not. `seen`: the number of elements that are known to be there."""
        if counts["unsettled"]:
            return (
                f"The last reads lack {counted_of(counts['unsettled'], counts['attempted'], 'element')}, but none of them is a "
                f"final read or began {self.rest_s:g} s after the last add (--rest), so they may be only late."
            )
        if counts["never-read"]:
            return (
                f"{counts['never-read']} of {counts['acknowledged']} acknowledged elements were added after the last read"
                " began, so a loss of them was not seen."
            )
        return (
            None if seen else f"None of {counts['attempted']} elements was both added and read, so nothing was tested."
        )

    def _warning(self, counts: Mapping[str, int]) -> str:
        """Returns a sentence about what `exact` would make invalid; empty if there is nothing."""
        broken = [] if self.exact else [rule for rule in self._rules_of_exact() if counts[rule.kind]]
        return f"Warning: {said(broken, counts)} With --exact-reads, this is invalid." if broken else ""

    def _counts(self) -> dict[str, int]:
        facts, number = self.facts, {name: int(np.count_nonzero(members)) for name, members in self.classes.items()}
        twice = np.zeros(len(self.elements), np.bool_)
        for _, members in facts.twice:
            twice[members] = True
        return {
            "attempted": int(np.count_nonzero((facts.add != NONE) | facts.failed)),
            "acknowledged": int(np.count_nonzero(facts.acknowledged)),
            **number,
            "duplicated": int(np.count_nonzero(twice)),
            "out-of-order": len(self.skipped),
            "incomparable": len(self.crossed),
            "reads": len(facts.reads),
        }

    def _figures(self, counts: Mapping[str, int]) -> dict[str, Value]:
        """Returns the figures of Jepsen's set-full, with its names; latencies in milliseconds."""
        facts, classes = self.facts, self.classes
        stable = np.flatnonzero(classes["ok"] | classes["recovered"] | classes["stale"])
        lost = np.flatnonzero(classes["lost"])
        until_stable = self._since_known_ms(stable, facts.last_absent)
        stale = np.flatnonzero(classes["stale"][stable])
        worst = stale[np.argsort(-until_stable[stale], kind="stable")[:WORST_STALE]]
        return {
            "attempt-count": counts["attempted"],
            "acknowledged-count": counts["acknowledged"],
            "stable-count": len(stable),
            "lost-count": counts["lost"],
            "stale-count": counts["stale"],
            "never-read-count": counts["never-read"] + counts["unconfirmed"],
            "duplicated-count": counts["duplicated"],
            "stable-latencies": _quantiles(until_stable),
            "lost-latencies": _quantiles(self._since_known_ms(lost, facts.last_present)),
            "worst-stale": [self._late(int(stable[index]), float(until_stable[index])) for index in worst.tolist()],
        }

    def _since_known_ms(self, numbers: Int64s, last: Int64s) -> Any:
        """Returns the time from an element being known to the start of its `last` read; 0 if that read began before."""
        began_ns = np.where(last[numbers] == NONE, 0, self._read_ns()[last[numbers]] + 1)
        return np.maximum(0, began_ns - self.history.end_ns[self.facts.known_row[numbers]]) / _MS

    def _read_ns(self) -> Int64s:
        return np.append(self.history.start_ns[self.facts.reads], 0)

    def _late(self, number: int, latency_ms: float) -> dict[str, Value]:
        facts, read_ns = self.facts, self._read_ns()
        return {
            "element": self.elements.element(number),
            "known-ns": int(self.history.end_ns[facts.known_row[number]]),
            "first-missed-ns": int(read_ns[facts.first_missed[number]]),
            "last-missed-ns": int(read_ns[facts.last_absent[number]]),
            "stable-latency": round(latency_ms, 3),
        }

    def _first(self, kind: str) -> list[int]:
        """Returns the first elements of a kind, in the order in which they became known."""
        numbers = np.flatnonzero(self.classes[kind])
        if len(numbers) > MAX_ANOMALIES:
            numbers = numbers[np.argpartition(self.facts.known[numbers], MAX_ANOMALIES)[:MAX_ANOMALIES]]
        ordered: list[int] = numbers[np.argsort(self.facts.known[numbers], kind="stable")].tolist()
        return ordered

    def _lost(self) -> Iterator[Anomaly]:
        yield from map(self._loss, self._first("lost"))

    def _loss(self, number: int) -> Anomaly:
        facts = self.facts
        after = int(np.searchsorted(facts.read_start, facts.known[number], side="right"))
        last = int(facts.last_present[number])
        gone = max(last + 1, after)
        missing = len(facts.reads) - gone
        seen = [last] if last != NONE else []
        return self._anomaly(
            "lost", number, f"{self._named(number)} is lost: {self._proof(number)}, and"
            f" {'the only read' if missing == 1 else f'none of the {missing} reads'} that began"
            f" from {self._at(gone)} on {'did not return' if missing == 1 else 'returned'} it.{self._at_rest()}",
            rows=[facts.add[number], facts.known_row[number], *facts.reads[[*seen, gone, len(facts.reads) - 1]]],
            decisive=facts.reads[gone if self.proof is None else self.proof],
        )  # fmt: skip

    def _last(self) -> dict[str, Anomaly]:
        """Returns the loss of the element whose add was acknowledged last; nothing if no such element is lost."""
        lost = np.flatnonzero(self.classes["lost"] & (self.facts.added != NONE))
        if not len(lost):
            return {}
        number = int(lost[np.argmax(self.history.end[self.facts.added[lost]])])
        loss = self._loss(number)
        return {"lost": replace(loss, rows=tuple(dict.fromkeys((int(self.facts.added[number]), *loss.rows))))}

    def _at_rest(self) -> str:
        """Returns why a late read proves a loss, if reads may be late."""
        if self.proof is None:
            return ""
        row = self.facts.reads[self.proof]
        if self.history.final is not None and self.history.final[row]:
            return f" The one that began at {self._at(self.proof)} is a final read, after healing."
        return f" The one that began at {self._at(self.proof)} came {self.rest_s:g} s or more after the last add."

    def _stale(self) -> Iterator[Anomaly]:
        facts = self.facts
        for number in self._first("stale"):
            missed, again = int(facts.first_missed[number]), int(facts.again[number])
            later_ns = self._read_ns()[missed] - self.history.end_ns[facts.known_row[number]]
            yield self._anomaly(
                "stale", number, f"{self._named(number)} was missed: {self._proof(number)}, and a read that began"
                f" {later_ns / _MS:.3f} ms later, at {self._at(missed)}, did not return it. All reads"
                f" that began from {self._at(again)} on returned it.",
                rows=[facts.add[number], facts.known_row[number], *facts.reads[[missed, facts.last_absent[number], again]]],
                decisive=facts.reads[missed],
            )  # fmt: skip

    def _unexpected(self) -> Iterator[Anomaly]:
        facts = self.facts
        for number in self._first("unexpected"):
            row, add = int(facts.reads[facts.too_early[number]]), int(facts.add[number])
            why = "which was never added"
            if facts.failed[number]:
                why = "although every add of it failed and so did not happen"
            elif add != NONE:
                why = f"before any add of it began; the first began at {_seconds(self.history.start_ns[add])}"
            yield self._anomaly(
                "unexpected", number, f"A read returned {self._named(number, inside=True)} at"
                f" {_seconds(self.history.end_ns[row])}, {why}.",
                rows=[row, add], decisive=row,
            )  # fmt: skip

    def _duplicated(self) -> Iterator[Anomaly]:
        for read, numbers in self.facts.twice:
            row = int(self.facts.reads[read])
            for number in numbers.tolist():
                times = int(np.count_nonzero(self.elements.of_reads[read] == number))
                yield self._anomaly(
                    "duplicated", number, f"A read returned {self._named(number, inside=True)} {times} times at"
                    f" {_seconds(self.history.end_ns[row])}; a set holds an element once.",
                    rows=[self.facts.add[number], row], decisive=row,
                )  # fmt: skip

    def _skipped(self) -> Iterator[Anomaly]:
        for case in self.skipped:
            yield self._skip(case)

    def _skip(self, case: Skipped) -> Anomaly:
        facts, row = self.facts, int(self.facts.reads[case.read])
        return self._anomaly(
            "out-of-order", case.skipped, f"A read that began at {self._at(case.read)} returned"
            f" {self._named(case.returned, inside=True)} but not {self._named(case.skipped, inside=True)}, although"
            f" {self._proof(case.skipped)}, before the add of the other began.",
            rows=[facts.add[case.skipped], facts.known_row[case.skipped], facts.add[case.returned], row], decisive=row,
        )  # fmt: skip

    def _crossed(self) -> Iterator[Anomaly]:
        for case in self.crossed:
            yield self._cross(case)

    def _cross(self, case: Crossed) -> Anomaly:
        facts = self.facts
        one, other = self._named(case.of_one, inside=True), self._named(case.of_other, inside=True)
        first, second = sorted((int(facts.reads[case.one]), int(facts.reads[case.other])))
        return self._anomaly(
            "incomparable", case.of_one, f"One read returned {one} but not {other}, and another read {other} but not {one},"
            " so they saw the two adds in different orders.",
            rows=[facts.add[case.of_one], facts.add[case.of_other], first, second], decisive=second,
        )  # fmt: skip

    def _anomaly(self, kind: str, number: int, explanation: str, *, rows: list[Any], decisive: Any) -> Anomaly:
        kept = tuple(dict.fromkeys(int(row) for row in rows if row != NONE))
        subject = self.elements.element(number)
        return Anomaly(kind=kind, subject=subject, explanation=explanation, rows=kept, decisive=int(decisive))

    def _named(self, number: int, *, inside: bool = False) -> str:
        return f"{'element' if inside else 'Element'} {shown(self.elements.element(number))}"

    def _proof(self, number: int) -> str:
        row = int(self.facts.known_row[number])
        what = "its add was acknowledged" if self._is_add(row) else "a read returned it"
        return f"{what} at {_seconds(self.history.end_ns[row])}"

    def _is_add(self, row: int) -> bool:
        return self.history.functions[int(self.history.function[row])] == "add"

    def _at(self, read: int) -> str:
        return _seconds(self.history.start_ns[self.facts.reads[read]])


def _classes(facts: Facts, proof: int | None, *, exact: bool) -> dict[str, Bools]:
    """Returns the elements of each kind; each element has one. `proof`: see `_Judge`.

    If reads need not be exact, an element that was added may be unexpected besides.
    """
    tried = facts.add != NONE
    unexpected = facts.too_early != NONE
    missed = facts.first_missed != NONE
    left = tried & ~unexpected if exact else tried
    gone = left & missed & (facts.last_present < facts.last_absent)
    stale = left & missed & ~gone
    lost = gone if proof is None else gone & (np.maximum(facts.last_present + 1, facts.first_missed) <= proof)
    left = left & ~missed
    stable = left & (facts.last_present > facts.last_absent)
    left = left & ~stable
    return {
        "ok": stable & facts.acknowledged,
        "recovered": stable & ~facts.acknowledged,
        "stale": stale,
        "lost": lost,
        "unsettled": gone & ~lost,
        "never-read": left & facts.acknowledged,
        "unconfirmed": left & ~facts.acknowledged,
        "failed": facts.failed & ~unexpected,
        "unexpected": unexpected,
    }


def _quantiles(values: Any) -> dict[str, float] | None:
    if not len(values):
        return None
    ordered = np.sort(values)
    return {f"{q:g}": round(float(ordered[min(len(ordered) - 1, int(len(ordered) * q))]), 3) for q in QUANTILES}


def _seconds(time_ns: Any) -> str:
    return f"{int(time_ns) / 1e9:.6f} s"
