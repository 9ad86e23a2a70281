"""The anomalies of a log, with explanations and the operations that show them. Their number is limited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import FAIL, NEVER, PAIR
from checker.judging import MAX_ANOMALIES, Anomaly
from checker.judging.rules import Rule
from checker.words import Instant, sentence, value_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from checker.formats.columns import Int64s
    from workloads.log.arrays import Bools
    from workloads.log.facts import Claims, Facts
    from workloads.log.findings import Findings

_NS_PER_S = 1e9
_MAX_ROWS = 12


def rules_of(facts: Facts, findings: Findings, *, linearizable: bool) -> list[Rule]:
    """Returns the rules of a log, in the order of `Findings.totals`. `linearizable`: whether stale reads are wrong."""
    made = _Anomalies(facts)

    def rule(kind: str, *sources: tuple[Int64s, Callable[[Int64s], Iterator[Anomaly]]], decides: bool = True) -> Rule:
        def anomalies() -> Iterator[Anomaly]:
            for subjects, make in sources:
                yield from make(subjects[:MAX_ANOMALIES])

        return Rule(kind=kind, anomalies=anomalies, decides=decides)

    return [
        rule("lost", (findings.lost, made.lost), (findings.vanished, made.vanished)),
        rule("stale", (findings.stale, made.stale), decides=linearizable),
        rule("conflict", (findings.conflict, made.conflict)),
        rule("changed", (findings.changed, made.changed)),
        rule("duplicated", (findings.duplicated, made.duplicated)),
        rule("unexpected", (findings.unexpected, made.unexpected)),
        rule("reordered", (findings.reordered, made.reordered)),
        *(rule(kind, (places, getattr(made, kind))) for kind, places in (findings.of_reading or {}).items()),
    ]


def last_of(facts: Facts, findings: Findings) -> dict[str, Anomaly]:
    """Returns, by kind, the anomaly of the append that was acknowledged last and whose entry is gone.

    Its first row is this append. An entry is gone if it is lost, or if another one is at its offset.
    """
    made, claims, log = _Anomalies(facts), facts.claims, facts.log
    end = log.history.end
    last: dict[str, tuple[int, Anomaly]] = {}
    for kind, places, make in (("lost", findings.lost, made.lost), ("conflict", findings.conflict, made.conflict)):
        rows = _first_answers(claims, places)
        if len(rows):
            latest = int(np.argmax(end[rows]))
            last[kind] = int(rows[latest]), next(make(places[_has_answer(claims, places)][latest : latest + 1]))
    if len(findings.vanished):
        append = int(findings.vanished[np.argmax(end[log.append[findings.vanished]])])
        row = int(log.append[append])
        if "lost" not in last or end[row] > end[last["lost"][0]]:
            last["lost"] = row, next(made.vanished(np.array([append])))
    return {
        kind: replace(anomaly, rows=tuple(dict.fromkeys((row, *anomaly.rows)))) for kind, (row, anomaly) in last.items()
    }


def _has_answer(claims: Claims, places: Int64s) -> Bools:
    """Returns for each of some places whether an append was acknowledged there."""
    answered = np.zeros(len(claims.distinct), np.bool_)
    answered[claims.place[: claims.answers]] = True
    has_answer: Bools = answered[places]
    return has_answer


def _first_answers(claims: Claims, places: Int64s) -> Int64s:
    """Returns the row of the append that was acknowledged first at each of some places that have one."""
    order = np.argsort(claims.end[: claims.answers], kind="stable")[::-1]
    first = np.full(len(claims.distinct), -1)
    first[claims.place[order]] = claims.row[order]  # the earliest one is written last
    rows: Int64s = first[places]
    return rows[rows >= 0]


class _Groups:
    """The members of some groups. It finds them in one pass over all members."""

    def __init__(self, group: Int64s, wanted: Int64s, size: int) -> None:
        mask = np.zeros(size, np.bool_)
        mask[wanted] = True
        some = np.flatnonzero(mask[group])
        order = np.argsort(group[some], kind="stable")
        self._members = some[order]
        self._groups = group[self._members]

    def of(self, group: int) -> Int64s:
        """Returns the members of a group, ascending."""
        begin, end = np.searchsorted(self._groups, [group, group + 1])
        return self._members[begin:end]


class _Anomalies:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._log = facts.log
        self._history = facts.log.history
        self._claims = facts.claims

    def lost(self, places: Int64s) -> Iterator[Anomaly]:
        for index, known, missed in self._missing(places):
            yield Anomaly(
                kind="lost",
                subject=self._offset(index),
                explanation=sentence(
                    f"{self._entry(known)} is lost: ",
                    *self._claim(known),
                    ", but ",
                    *self._lacks(missed, index),
                    ". No read that began later has it.",
                ),
                rows=(int(self._claims.row[known]), missed),
                decisive=missed,
            )

    def stale(self, places: Int64s) -> Iterator[Anomaly]:
        for index, known, missed in self._missing(places):
            again = int(self._facts.places.seen[index])
            stale_ns = self._history.start_ns[missed] - self._history.end_ns[self._claims.row[known]]
            yield Anomaly(
                kind="stale",
                subject=self._offset(index),
                explanation=sentence(
                    f"a read is stale: {self._entry(known)} was missing {stale_ns / _NS_PER_S:.3f} s after it was known. ",
                    *_capital(self._claim(known)),
                    ", but ",
                    *self._lacks(missed, index),
                    f". Process {self._history.process[again]}, whose read began at ",
                    self._began(again),
                    ", has it again.",
                ),
                rows=(int(self._claims.row[known]), missed, again),
                decisive=missed,
            )

    def vanished(self, appends: Int64s) -> Iterator[Anomaly]:
        for append in appends.tolist():
            row = int(self._log.append[append])
            value = value_text(self._log.value(int(self._log.appended[append])))
            yield Anomaly(
                kind="lost",
                subject=self._log.value(int(self._log.appended[append])),
                explanation=sentence(
                    f"the append of {value} by process {self._history.process[row]} is lost: it was acknowledged at ",
                    self._ended(row),
                    " without an offset. Later reads cover every offset between the entries before and after it,"
                    " and none has it.",
                ),
                rows=(row,),
                decisive=row,
            )

    def conflict(self, places: Int64s) -> Iterator[Anomaly]:
        groups = _Groups(self._claims.place, places, len(self._claims.distinct))
        for index in places.tolist():
            one, other = self._conflicting(groups.of(index))
            yield self._two("conflict", index, f"offset {self._offset(index)} has two entries: ", one, other)

    def _conflicting(self, claims: Int64s) -> tuple[int, int]:
        """Returns two contradicting claims about one place: two answers, an answer and a read, or two reads."""
        values = self._claims.value[claims]
        answers = claims[claims < self._claims.answers]
        if len(answers) > 1:
            return int(answers[0]), int(answers[1])
        return int(claims[0]), int(claims[np.flatnonzero(values != values[0])[0]])

    def changed(self, places: Int64s) -> Iterator[Anomaly]:
        groups = _Groups(self._claims.place, places, len(self._claims.distinct))
        for index in places.tolist():
            claims = groups.of(index)
            one, other = self._changing(claims[claims >= self._claims.answers])
            yield self._two("changed", index, f"the entry at offset {self._offset(index)} changed: ", one, other)

    def _changing(self, claims: Int64s) -> tuple[int, int]:
        """Returns two reads with different values; one began after the end of the other."""
        value, row = self._claims.value[claims], self._claims.row[claims]
        start, end = self._history.start[row], self._history.end[row]
        first = int(np.argmin(end))
        differs = np.flatnonzero(value != value[first])
        late = differs[start[differs] > end[first]]
        if len(late):
            return int(claims[first]), int(claims[late[0]])
        second = int(differs[np.argmin(end[differs])])
        back = np.flatnonzero((value == value[first]) & (start > end[second]))
        return int(claims[second]), int(claims[back[0]])

    def _two(self, kind: str, index: int, title: str, one: int, other: int) -> Anomaly:
        rows = int(self._claims.row[one]), int(self._claims.row[other])
        ends = [int(self._history.end[row]) for row in rows]
        return Anomaly(
            kind=kind,
            subject=self._offset(index),
            explanation=sentence(title, *self._claim(one), ", and ", *self._claim(other), "."),
            rows=rows,
            decisive=rows[int(np.argmax(ends))],
        )

    def duplicated(self, values: Int64s) -> Iterator[Anomaly]:
        groups = _Groups(self._claims.value, values, len(self._claims.numbers))
        for value in values.tolist():
            claims = groups.of(value)
            _, first = np.unique(self._claims.place[claims], return_index=True)
            shown = claims[np.sort(first)][:_MAX_ROWS]
            tried = int(self._facts.values.tried[value])
            total = int(self._facts.values.offsets[value])
            times = "once" if tried == 1 else f"{tried} times"
            yield Anomaly(
                kind="duplicated",
                subject=self._value(value),
                explanation=sentence(
                    f"{value_text(self._value(value))} is at {total} offsets, but it was appended {times}: ",
                    *self._claim(int(shown[0])),
                    ", and ",
                    *self._claim(int(shown[1])),
                    ".",
                ),
                rows=tuple(dict.fromkeys(self._claims.row[shown].tolist())),
                decisive=int(self._claims.row[shown[1]]),
            )

    def unexpected(self, values: Int64s) -> Iterator[Anomaly]:
        reads = _Groups(self._claims.value, values, len(self._claims.numbers))
        appends = _Groups(self._facts.appends.value, values, len(self._claims.numbers))
        for value in values.tolist():
            claims = reads.of(value)
            claims = claims[claims >= self._claims.answers]
            first = int(claims[np.argmin(self._history.end[self._claims.row[claims]])])
            rows = self._log.append[appends.of(value)]
            failed = rows[self._history.type[rows] == FAIL]
            tried = rows[self._history.type[rows] != FAIL]
            why: list[str | Instant] = [", which nobody appended."]
            named = failed[:1]
            if len(tried):
                named = tried[:1]
                why = [", but its append began only at ", self._began(int(tried[0])), "."]
            elif len(failed):
                why = [f", but the append of it by process {self._history.process[failed[0]]} failed."]
            row = int(self._claims.row[first])
            yield Anomaly(
                kind="unexpected",
                subject=self._value(value),
                explanation=sentence(*self._claim(first), *why),
                rows=(*named.tolist(), row),
                decisive=row,
            )

    def reordered(self, appends: Int64s) -> Iterator[Anomaly]:
        earlier = self._facts.appends.overtaken[appends]
        read_of = _Groups(self._claims.value, self._facts.appends.value[earlier], len(self._claims.numbers))
        for late, early in zip(appends.tolist(), earlier.tolist(), strict=True):
            row, before = int(self._log.append[late]), int(self._log.append[early])
            high = self._offset(int(self._facts.appends.place[early]))
            low = self._offset(int(self._facts.appends.place[late]))
            rows = [before]
            known: Sequence[str | Instant] = ("was acknowledged at ", self._ended(before))
            if self._history.end[before] >= self._history.start[row]:
                claims = read_of.of(int(self._facts.appends.value[early]))
                claims = claims[claims >= self._claims.answers]
                read = int(self._claims.row[claims[np.argmin(self._history.end[self._claims.row[claims]])]])
                rows.append(read)
                known = (f"was read by process {self._history.process[read]} before ", self._ended(read))
            values = [value_text(self._log.value(int(self._log.appended[append]))) for append in (early, late)]
            yield Anomaly(
                kind="reordered",
                subject=low,
                explanation=sentence(
                    f"the order contradicts real time: {values[0]} at offset {high} ",
                    *known,
                    f", and process {self._history.process[row]} began to append {values[1]} after that, at ",
                    self._began(row),
                    f", but {values[1]} is at the lower offset {low}.",
                ),
                rows=(*rows, row),
                decisive=row,
            )

    def skipped(self, places: Int64s) -> Iterator[Anomaly]:
        for index, known, _ in self._missing(places):
            row = int(self._facts.places.skipped[index])
            yield self._of_read(
                "skipped", index, row, known,
                f"skips {self._entry(known)} and has a higher offset; ", *self._claim(known),
            )  # fmt: skip

    def repeated(self, places: Int64s) -> Iterator[Anomaly]:
        for index in places.tolist():
            row = int(self._facts.places.repeated[index])
            yield self._of_read("repeated", index, row, None, f"has offset {self._offset(index)} more than once")

    def disordered(self, places: Int64s) -> Iterator[Anomaly]:
        for index in places.tolist():
            row = int(self._facts.places.disordered[index])
            yield self._of_read(
                "disordered", index, row, None, f"has offset {self._offset(index)} directly after a higher one"
            )

    def outside(self, places: Int64s) -> Iterator[Anomaly]:
        for index in places.tolist():
            row = int(self._facts.places.outside[index])
            yield self._of_read(
                "outside", index, row, None, f"has offset {self._offset(index)}, which it does not cover"
            )

    def _of_read(self, kind: str, index: int, row: int, known: int | None, *what: str | Instant) -> Anomaly:
        return Anomaly(
            kind=kind,
            subject=self._offset(index),
            explanation=sentence(*self._read(row), " ", *what, "."),
            rows=(row,) if known is None else tuple(dict.fromkeys([int(self._claims.row[known]), row])),
            decisive=row,
        )

    def _missing(self, places: Int64s) -> Iterator[tuple[int, int, int]]:
        """Yields each place with the first claim about its entry, and the last read that lacks the entry."""
        groups = _Groups(self._claims.place, places, len(self._claims.distinct))
        for index in places.tolist():
            claims = groups.of(index)
            known = int(claims[np.argmin(self._history.end[self._claims.row[claims]])])
            yield index, known, int(self._facts.places.missed[index])

    def _offset(self, index: int) -> int:
        return int(self._claims.distinct[index])

    def _value(self, rank: int) -> object:
        return self._log.value(int(self._claims.numbers[rank]))

    def _entry(self, claim: int) -> str:
        value = value_text(self._value(int(self._claims.value[claim])))
        return f"{value} at offset {self._offset(int(self._claims.place[claim]))}"

    def _claim(self, claim: int) -> tuple[str | Instant, ...]:
        row = int(self._claims.row[claim])
        value = value_text(self._value(int(self._claims.value[claim])))
        offset = self._offset(int(self._claims.place[claim]))
        who = f"process {self._history.process[row]}"
        if claim < self._claims.answers:
            return f"{who}'s append of {value} was acknowledged with offset {offset} at ", self._ended(row)
        return (
            f"{who} read {value} at offset {offset} (",
            self._began(row),
            " to ",
            self._ended(row),
            ")",
        )

    def _lacks(self, row: int, index: int) -> tuple[str | Instant, ...]:
        return *self._read(row), f" has nothing at offset {self._offset(index)}"

    def _read(self, row: int) -> tuple[str | Instant, ...]:
        values = self._history.value
        covered = f"offset {values.first[row]}"
        if values.kind[row] == PAIR:
            covered = f"offsets {values.first[row]} to {values.second[row]}"
        return f"process {self._history.process[row]}'s read of {covered}, which began at ", self._began(row), ","

    def _began(self, row: int) -> Instant:
        return self._instant(row, int(self._history.start_ns[row]), int(self._history.start[row]))

    def _ended(self, row: int) -> Instant:
        end = int(self._history.end[row])
        return self._instant(row, int(self._history.end_ns[row]), None if end == NEVER else end)

    def _instant(self, row: int, time_ns: int, index: int | None) -> Instant:
        timed = self._history.start_ns[row] > 0 or self._history.end_ns[row] > 0
        return Instant(time_ns=time_ns if timed and time_ns >= 0 else None, index=index)


def _capital(parts: tuple[str | Instant, ...]) -> tuple[str | Instant, ...]:
    first, *rest = parts
    return (first[:1].upper() + first[1:] if isinstance(first, str) else first, *rest)
