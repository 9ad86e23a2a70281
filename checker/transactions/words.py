"""Explains anomalies of transactions in words: each edge of a cycle with its reason.

Transactions are T1, T2, ... in the order of the cycle.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from checker.edn.writer import dumps
from checker.formats.columns import INFO, OK
from checker.judging import value_at
from checker.values import decode_value
from checker.words import list_text, value_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker._kernel import Case, Finding, Link, ShownCycle, VersionReason
    from checker.consistency import Question
    from checker.formats.columns import Columns
    from harness.op import Value

# Why one version of a register follows another one, by what this follows from.
_SOURCES: Final[Mapping[str, str]] = {
    "writes-follow-reads": " (a transaction read {before} first, and wrote {after})",
    "sequential-keys": " (one process had {before} before {after})",
    "linearizable-keys": " (a transaction with {before} ended before one with {after} began)",
    "transaction-order": " (the system says that it committed {before} before {after})",
    "atomic-visibility": " (a transaction read from the writers of both, and had {after})",
}
_READS: Final = frozenset({"r", "read"})
MAX_LINKS: Final = 12  # of a cycle, in words
CYCLIC_VERSIONS: Final = "cyclic-versions"
REGISTERS: Final = "rw-register"


class Words:
    """Explains the anomalies of one history."""

    def __init__(
        self,
        history: Columns,
        question: Question,
        *,
        reasons: Sequence[VersionReason] = (),
        may_begin: str | None = None,
    ) -> None:
        """Prepares.

        Args:
            history: The operations.
            question: What is asked about them.
            reasons: For registers, why the kernel orders versions.
            may_begin: The only value that was read and that nobody wrote, in canonical JSON; registers may begin with it.
        """
        self._history = history
        self._sources = question.sources
        self._initial = question.initial or "null"
        self._may_begin = may_begin if question.workload == REGISTERS and question.initial is None else None
        self._reasons: dict[tuple[str | None, str | None, str | None], str] = {
            (reason.key, reason.before, reason.after): reason.source for reason in reasons
        }
        self._is_list = question.workload != REGISTERS
        self._write = "appended" if self._is_list else "wrote"
        self._written = "appended" if self._is_list else "written"

    def cycle(self, component: int, links: Sequence[Link]) -> str:
        """Returns the explanation of a cycle.

        Args:
            component: The number of transactions in its component.
            links: Its edges.
        """
        names: dict[int, str] = {}
        parts = []
        for link in links[:MAX_LINKS]:
            before, after = self._both(link, names)
            parts.append(f"{self._because(link, before, after)}, so {names[link.first]} precedes {names[link.second]}.")
        left = len(links) - len(parts)
        if left:
            parts.append(f"{left} more edges lead back to T1.")
        size = f" among {component} transactions that depend on each other" if component > len(links) else ""
        head = f"a cycle of {len(links)} transactions{size}."
        return " ".join([head, *parts, "A transaction cannot precede itself."])

    def ordering(self, cases: Sequence[Case], count: int) -> str:
        """Returns the explanation of versions of registers that have no order.

        Args:
            cases: The contradictions; several begin with both orders of two versions.
            count: The number of transactions.
        """
        names: dict[int, str] = {}
        if len(cases) == 1 and cases[0].shown is not None:
            return self._contradiction(cases[0].shown, names)
        parts = [f"{count} transactions, whatever the order of the versions."]
        for case in cases:
            chosen = case.chosen
            if chosen is not None:
                key, before, after = (self.version(element) for element in (chosen.key, chosen.before, chosen.after))
                how = "other orders contradict" if case.shown is None else self._contradiction(case.shown, names)
                parts.append(f"If {before} of {key} precedes {after}: {how}")
                parts[-1] = parts[-1].removesuffix(".") + "."
        if not cases:
            parts.append("The search tried every order.")
        return " ".join(parts)

    def _contradiction(self, shown: ShownCycle, names: dict[int, str]) -> str:
        """Returns a cycle, and what the orders of versions follow from that it needs."""
        links, left = shown.links, shown.left
        parts = [f"a cycle of {len(links)} transactions."]
        for link in links[:MAX_LINKS]:
            before, after = self._both(link, names)
            parts.append(f"{self._because(link, before, after)}, so {names[link.first]} precedes {names[link.second]}.")
        if len(links) > MAX_LINKS:
            parts.append(f"{len(links) - MAX_LINKS} more edges lead back to {names[links[0].first]}.")
        parts.append("A transaction cannot precede itself.")
        for order in shown.orders:
            key, before, after = (self.version(element) for element in (order.key, order.before, order.after))
            some = order.links
            if order.why == "chosen":
                continue
            head = f"Of {key}, {before} precedes {after}"
            if not some:
                why = _SOURCES.get(order.why, "").format(before=before, after=after)
                parts.append(f"{head}{why}.")
                continue
            path = "; ".join(self._because(link, *self._both(link, names)) for link in some[:MAX_LINKS])
            more = f"; and {len(some) - MAX_LINKS} more edges" if len(some) > MAX_LINKS else ""
            seen = f"; and {names[some[-1].second]} read {key} as {after}" if order.why == "seen" else ""
            parts.append(f"{head}: {path}{more}{seen}.")
        if left:
            parts.append(f"{left} more orders of versions follow in such ways.")
        return " ".join(parts)

    def overlap(self, component: int, writers: Sequence[tuple[int, str]]) -> str:
        """Returns the explanation of transactions that append to common keys and that no order keeps apart.

        Args:
            component: The number of transactions that depend on each other.
            writers: Each row with a key; those of one key are neighbours.
        """
        names: dict[int, str] = {}
        by_key: dict[str, list[str]] = {}
        for row, key in writers[:MAX_LINKS]:
            by_key.setdefault(key, []).append(self._name(row, names))
        parts = [f"{' and '.join(who)} {self._write} to {self.version(key)}" for key, who in by_key.items()]
        left = len(writers) - MAX_LINKS
        more = f"; {left} more such appends" if left > 0 else ""
        return (
            f"{'; '.join(parts)}{more}. No read shows the order of these appends. Transactions that append to a common key "
            f"must not overlap, but every order without an overlap contradicts the dependencies among {component} transactions."
        )

    def version(self, text: str | None) -> str:
        """Returns a key or a version in words, from its canonical JSON; None is the initial version."""
        return value_text(decode_value(self._initial if text is None else text))

    def _both(self, link: Link, names: dict[int, str]) -> tuple[str, str]:
        """Returns the names of the two transactions of an edge."""
        return self._name(link.first, names), self._name(link.second, names)

    def _name(self, row: int, names: dict[int, str]) -> str:
        """Returns the name of a transaction; at the first use with its process and events."""
        known = names.get(row)
        if known is not None:
            return known
        names[row] = f"T{len(names) + 1}"
        return f"{names[row]} ({self._place(row)})"

    def _place(self, row: int) -> str:
        history = self._history
        end = "" if history.type[row] == INFO else str(history.end[row])
        events = f"event {end}" if end == str(history.start[row]) else f"events {history.start[row]}-{end}"
        return f"process {history.process[row]}, {events}"

    def reason(self, link: Link) -> str:
        """Returns the kind of an edge and its key, in short: `rw x`."""
        kind = "rw" if link.kind == "conflict" else link.kind
        return kind if link.key is None else f"{kind} {self.version(link.key)}"

    def _because(self, link: Link, one: str, other: str) -> str:
        first, second, kind = link.first, link.second, link.kind
        history = self._history
        if kind == "process":
            return f"{one} and {other} are transactions of process {history.process[first]}, in this order"
        if kind == "realtime":
            return f"{one} ended at event {history.end[first]}, before {other} began at event {history.start[second]}"
        key = self.version(link.key)
        after = self.version(link.after)
        if kind == "wr":
            return f"{one} {self._write} {after} to {key}, and {other} read {key} as {self._read(second, link.key, link.after)}"
        why = _SOURCES.get(self._reasons.get((link.key, link.before, link.after), ""), "").format(
            before=self.version(link.before), after=after
        )
        if kind == "ww":
            return f"{one} {self._write} {self.version(link.before)} to {key}, and {other} {self._write} {after} after it{why}"
        read = self._read(first, link.key, link.before)
        both = (
            f"; both {self._write} to {self._common(first, second)}, so they must not overlap"
            if kind == "conflict"
            else ""
        )
        return f"{one} read {key} as {read}, and {other} {self._write} {after} after that{why}{both}"

    def _common(self, one: int, other: int) -> str:
        """Returns a key that two transactions write."""
        theirs = [key for function, key, _ in self._mops(other) if function not in _READS]
        return next(
            (value_text(key) for function, key, _ in self._mops(one) if function not in _READS and key in theirs), ""
        )

    def _read(self, row: int, key: str | None, last: str | None) -> str:
        """Returns what a transaction read: a list whose last element is known, or a value; None for the initial version."""
        if not self._is_list:
            return self.version(last)
        wanted = None if last is None else decode_value(last)
        for function, read_key, value in self._mops(row):
            if function not in _READS or read_key != decode_value(key or "null"):
                continue
            if isinstance(value, list) and value and value[-1] == wanted:
                return list_text(value)
            if not value and last is None:
                return "[]"
        return self.version(last)

    def _mops(self, row: int) -> list[Value]:
        history = self._history
        mops = value_at(history, history.result, row)
        if mops is None or history.type[row] not in {OK, INFO}:
            mops = value_at(history, history.value, row)
        return mops if isinstance(mops, list) else []

    def finding(self, finding: Finding) -> str:
        """Returns the explanation of an anomaly that is no cycle."""
        kind, key, rows, places, elems = finding.kind, finding.key, finding.rows, finding.places, finding.elements
        names: dict[int, str] = {}
        if kind == CYCLIC_VERSIONS and self._is_list:
            return self._back(self.version(key), rows, places, elems, names)
        if kind == CYCLIC_VERSIONS:
            return self._cyclic(self.version(key), rows, places, elems, names)
        who = [self._name(row, names) for row in rows[:2]]
        values = [self._shown(self._mops(row)[index][2]) for row, index in zip(rows[:2], places[:2], strict=True)]
        where, elem, next_elem = self.version(key), *(self.version(member) for member in [*elems, None, None][:2])
        if kind == "internal":
            return self._internal(who[0], where, rows, places, elems)
        if kind == "lost-update":
            readers = " and ".join(who) + (f" and {len(rows) - 2} more" if len(rows) > 2 else "")
            return f"{readers} each read {where} as {values[0]} first, and then {self._write} to it."
        other, other_value = [*who, ""][1], [*values, ""][1]
        saw = f"{who[0]} read {where} as {values[0]}"
        with_it = f"{saw}, with {elem}," if self._is_list else f"{saw},"
        ends = f" which ends with {elem}," if self._is_list else ""
        return {
            "garbage-read": f"{saw}, but no transaction {self._write} {elem}.{self._beginning(elems)}",
            "duplicate-elements": f"{saw}, which has {elem} twice.",
            "future-read": f"{with_it} which the same transaction {self._write} only later.",
            "G1a": f"{with_it} but {other} {self._write} {elem} and failed.",
            "G1b": f"{saw},{ends} but {other} {self._write} to {where} again after {elem}.",
            "dirty-update": f"{who[0]} {self._write} {elem} to {where} and failed, but {other}, which succeeded, {self._write} "
            f"{next_elem} after it.",
            "incompatible-order": f"{saw}, where {next_elem} does not follow {elem}, but {other} {self._write} {elem} and then "
            f"{next_elem}."
            if elems
            else f"{saw}, and {other} read it as {other_value}; neither list is the beginning of the other.",
        }[kind]

    def _beginning(self, elems: Sequence[str | None]) -> str:
        """Returns how to say that registers begin with a value that nobody wrote, if it may be so."""
        if self._may_begin is None or elems != [self._may_begin]:
            return ""
        edn = dumps(decode_value(self._may_begin))
        return f" If the registers begin with {edn}, say so with --initial {shlex.quote(edn)}."

    def _cyclic(
        self, where: str, rows: Sequence[int], places: Sequence[int], elems: Sequence[str | None], names: dict[int, str]
    ) -> str:
        """Returns the explanation of versions that precede each other: each step with what it follows from.

        Args:
            where: The key.
            rows: Two transactions for each of the first steps.
            places: For each of them, the place of its access.
            elems: The versions; each precedes the next one, and the last one the first one.
            names: The names of transactions.
        """
        parts = []
        for number, (before, after) in enumerate(self.steps(rows, elems)):
            one, other = rows[2 * number : 2 * number + 2]
            how = self._step(before, (one, other), places[2 * number : 2 * number + 2], names)
            parts.append(f"{self.version(before)} precedes {self.version(after)}, because {how}.")
        left = len(elems) - len(parts)
        more = f" {left} more steps lead back to {self.version(elems[0])}." if left else ""
        return f"the assumed order of the versions of {where} has a cycle. {' '.join(parts)}{more} No version precedes itself."

    def _back(
        self, where: str, rows: Sequence[int], places: Sequence[int], elems: Sequence[str | None], names: dict[int, str]
    ) -> str:
        """Returns the explanation of a transaction that begins with an older version of a list than an earlier one leaves.

        Args:
            where: The key.
            rows: The earlier transaction, and the later one.
            places: The place of the access of each.
            elems: The last element of each version.
            names: The names of transactions.
        """
        one, other = rows
        last, first = map(self.version, elems)
        how = self._step(elems[0], (one, other), places, names)
        is_read = self._mops(other)[places[1]][0] in _READS
        but = f"what {names[other]} read lacks {last}" if is_read else f"in the lists, {first} comes before {last}"
        return (
            f"the assumed order of the versions of {where} contradicts the lists. {how[0].upper()}{how[1:]}. But {but}."
        )

    @staticmethod
    def steps(rows: Sequence[int], elems: Sequence[str | None]) -> list[tuple[str | None, str | None]]:
        """Returns each step of a cycle of versions that has its two transactions."""
        return list(zip(elems, [*elems[1:], *elems[:1]], strict=True))[: len(rows) // 2]

    def _step(self, before: str | None, rows: tuple[int, int], places: Sequence[int], names: dict[int, str]) -> str:
        """Returns what a step of a cycle of versions follows from, by the sources that are assumed."""
        history, (one, other) = self._history, rows
        if one == other and before is None:
            return f"it is the initial value ({self._name(one, names)} {self._had(one, places[1])})"
        if one == other:
            return f"{self._name(one, names)} {self._had(one, places[0])} first, and {self._had(one, places[1])}"
        first = f"{self._name(one, names)}, which {self._had(one, places[0])},"
        second = f"{self._name(other, names)}, which {self._had(other, places[1])},"
        is_later = history.type[one] == OK and history.end[one] < history.start[other]
        if "sequential-keys" in self._sources and is_later and history.process[one] == history.process[other]:
            return f"{first} and {second} are transactions of process {history.process[one]}, in this order"
        if "linearizable-keys" in self._sources and is_later:
            return f"{first} ended at event {history.end[one]}, before {second} began at event {history.start[other]}"
        if "transaction-order" in self._sources and self._is_committed_before(one, other):
            return f"the system says that it committed {first} before {second[:-1]}"
        return f"a transaction read from {first} and from {second} and had the version of the latter"

    def _is_committed_before(self, one: int, other: int) -> bool:
        order = self._history.order
        if order is None or not order.known[one] or not order.known[other]:
            return False
        return bool(order.number[one] < order.number[other])

    def _had(self, row: int, index: int) -> str:
        """Returns what a micro-operation on a register did: `wrote 3`, `read nil`."""
        function, _, value = self._mops(row)[index]
        return f"{'read' if function in _READS else self._write} {value_text(value)}"

    def _shown(self, value: Value) -> str:
        return list_text(value) if self._is_list else value_text(value)

    def _internal(
        self, who: str, where: str, rows: Sequence[int], places: Sequence[int], elems: Sequence[str | None]
    ) -> str:
        mops = self._mops(rows[0])
        read = f"{who} read {where} as {self._shown(mops[places[0]][2])}"
        own = ", ".join(map(self.version, elems))
        wrote = f" and {self._write} {own} after that" if own else ""
        if len(places) > 1 and mops[places[1]][0] not in _READS:
            return f"{read}, but it had {self._written} {value_text(mops[places[1]][2])} before."
        if len(places) > 1:
            return f"{read}, but it had read {where} as {self._shown(mops[places[1]][2])}{wrote}."
        return f"{read}, but it had {self._written} {own} before."
