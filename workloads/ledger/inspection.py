"""What the clients found of a ledger after healing: its metadata, the copies of its entries, and who fenced it.

It is the result of the operation `inspect`, a map:

- `ledger`: the id of the ledger in the system, which logs have; null if it has none.
- `state`, `last`: what the metadata say; the last entry is -1 if there is none.
- `write`, `ack`: the write quorum and the ack quorum.
- `fragments`: `[[first entry, [bookie, ...]], ...]`, ascending. A bookie has the name of its node.
- `entries`: `[[entry, [[value, [bookie, ...]], ...], [bookie without an answer, ...]], ...]`. Above the last one,
  it can leave out those that no bookie has.
- `fences`: `[[bookie, milliseconds, node], ...]`: how long before the end of the operation a bookie got its first request to
  fence the ledger, and the node that sent it; null if it is not known.
- `unread`: The bookies that could not be asked for their fences.

Entry e of a fragment belongs on the bookies that begin with number e modulo the size of the ensemble, as many as the write
quorum. Source: BookKeeper 4.17.3, `RoundRobinDistributionSchedule`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from checker.formats.columns import GREAT
from checker.words import Instant, value_text
from harness.console.plain import listed
from harness.console.plain import name as plain_name
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.op import Value

MOST_NAMES: Final = 20
MOST_VALUES: Final = 4
PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Fence:
    """The first request to fence a ledger that a bookie got.

    Attributes:
        bookie: The bookie.
        ago_ms: How long before the end of the inspection it was, in milliseconds.
        by: The node that sent it; None if it is not known.
    """

    bookie: str
    ago_ms: int
    by: str | None


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of an entry.

    Attributes:
        values: Each value with the bookies that have it.
        silent: The bookies that did not say whether they have one.
    """

    values: Sequence[tuple[Value, Sequence[str]]]
    silent: Sequence[str]

    @property
    def holders(self) -> list[str]:
        """Returns the bookies that have a copy."""
        return [bookie for _, bookies in self.values for bookie in bookies]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The result of an `inspect`; see the module."""

    ledger: int | None
    state: str
    last: int
    write: int
    ack: int
    fragments: Sequence[tuple[int, Sequence[str]]]
    entries: Mapping[int, Copies]
    fences: Sequence[Fence]
    unread: Sequence[str]

    def fragment(self, entry: int) -> tuple[int, Sequence[str]]:
        """Returns the first entry and the ensemble of the fragment of an entry."""
        return [fragment for fragment in self.fragments if fragment[0] <= entry or fragment is self.fragments[0]][-1]

    def quorum(self, entry: int) -> list[str]:
        """Returns the bookies on which an entry belongs."""
        ensemble = self.fragment(entry)[1]
        return [ensemble[(entry + index) % len(ensemble)] for index in range(min(self.write, len(ensemble)))]

    def scarce(self) -> Iterator[tuple[int, int, list[str]]]:
        """Yields the entries up to the last one that fewer of their bookies have than the ack quorum.

        Yields:
            The entry, the number of its bookies that have it, and the other bookies that do. An entry is left out if one of its
            bookies did not answer.
        """
        for entry, copies in self.entries.items():
            if entry > self.last:
                continue
            quorum, holders = self.quorum(entry), copies.holders
            named = {bookie for bookie in holders if bookie in quorum}
            if len(named) < self.ack and not {*copies.silent} & {*quorum}:
                yield entry, len(named), [bookie for bookie in holders if bookie not in quorum]

    def entries_with(self, value: Value) -> list[int]:
        """Returns the entries of which a bookie has this value."""
        text = value_text(value)
        return [
            entry
            for entry, copies in self.entries.items()
            if any(value_text(copy) == text for copy, _ in copies.values)
        ]

    def told(self, entry: int, end: Instant) -> list[str | Instant]:
        """Returns sentences about an entry: its fragment, its copies and its fences.

        Args:
            entry: The entry.
            end: The end of the inspection.
        """
        first, ensemble = self.fragment(entry)
        last = "no entry" if self.last < 0 else f"the last entry {self.last}"
        quorum = self.quorum(entry)
        copies = self.entries.get(entry, Copies((), ()))
        texts = [f"{_names(bookies)} {_has(bookies)} {value_text(value)}" for value, bookies in copies.values]
        if len(texts) > MOST_VALUES:
            texts[MOST_VALUES:] = [f"{len(texts) - MOST_VALUES} more values are left out"]
        lacking = [bookie for bookie in quorum if bookie not in copies.holders and bookie not in copies.silent]
        if lacking:
            texts.append(f"{_names(lacking)} {'lacks' if len(lacking) == 1 else 'lack'} it")
        if copies.silent:
            texts.append(f"{_names(copies.silent)} did not answer")
        of_ledger = "" if self.ledger is None else f" of ledger {self.ledger}"
        fragment = f"The fragment from entry {first} on has the bookies {_names(ensemble)}"
        if before := [earlier for earlier in self.fragments if earlier[0] < first]:
            fragment += f", and the one before it, from entry {before[-1][0]} on, {_names(before[-1][1])}"
        return [
            "At ",
            end,
            f", the metadata{of_ledger} say {plain_name(self.state)} with {last}. ",
            f"{fragment}; entry {entry} belongs on {_names(quorum)}: {', '.join(texts)}.",
            *self._told_fences([*dict.fromkeys([*ensemble, *copies.holders])], end),
        ]

    def _told_fences(self, bookies: Sequence[str], end: Instant) -> list[str | Instant]:
        """Returns when some bookies got their first requests to fence the ledger."""
        fences = [fence for fence in self.fences if fence.bookie in bookies]
        told: list[str | Instant] = []
        for fence in sorted(fences, key=lambda fence: -fence.ago_ms):
            at_ns = None if end.time_ns is None else max(0, end.time_ns - fence.ago_ms * NS_PER_MS)
            by = "" if fence.by is None else f" by {plain_name(fence.by)}"
            told += [", " if told else " Fenced: ", plain_name(fence.bookie), by, " at "]
            told.append(Instant(time_ns=at_ns, index=end.index))
        without = [bookie for bookie in bookies if bookie not in {fence.bookie for fence in fences} | {*self.unread}]
        if without:
            told += ["; no" if told else " No", f" request to fence the ledger reached {_names(without)}"]
        unread = [bookie for bookie in bookies if bookie in self.unread]
        if unread:
            told += ["; the" if told else " The", f" fences of {_names(unread)} could not be read"]
        return [*told, "."] if told else []


def inspection_of(answer: Any) -> Inspection | None:
    """Returns the inspection in the result of an `inspect`; None if it has another form."""
    match answer:
        case {
            "ledger": int() | None as ledger,
            "state": str(state),
            "last": int(last),
            "write": int(write),
            "ack": int(ack),
            "fragments": [*fragments],
            "entries": [*entries],
            "fences": [*fences],
            "unread": [*unread],
        } if -1 <= last < GREAT and 0 < write < GREAT and 0 < ack < GREAT and _are_names(unread):
            pass
        case _:
            return None
    ensembles = [(int(first), names) for first, names in map(_pair, fragments) if _is_id(first) and _are_names(names)]
    copies = [_copies(entry) for entry in entries]
    asked = [_fence(fence) for fence in fences]
    if not ensembles or len(ensembles) < len(fragments) or not all(names for _, names in ensembles):
        return None
    if None in copies or None in asked:
        return None
    return Inspection(
        ledger=ledger,
        state=state,
        last=last,
        write=write,
        ack=ack,
        fragments=sorted(ensembles, key=lambda ensemble: ensemble[0]),
        entries=dict(sorted((copy for copy in copies if copy is not None), key=lambda copy: copy[0])),
        fences=[fence for fence in asked if fence is not None],
        unread=unread,
    )


def _pair(pair: Any) -> tuple[Any, Any]:
    return (pair[0], pair[1]) if isinstance(pair, list) and len(pair) == PAIR else (None, None)


def _copies(stored: Any) -> tuple[int, Copies] | None:
    match stored:
        case [int(entry), [*values], [*silent]] if _is_id(entry) and _are_names(silent):
            pairs = [_pair(value) for value in values]
            if all(_are_names(names) and names for _, names in pairs):
                return entry, Copies(pairs, silent)
    return None


def _fence(fence: Any) -> Fence | None:
    match fence:
        case [str(bookie), int(ago_ms), str() | None as by] if _is_id(ago_ms):
            return Fence(bookie, ago_ms, by)
    return None


def _is_id(number: Any) -> bool:
    return type(number) is int and 0 <= number < GREAT


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _names(bookies: Sequence[str]) -> str:
    return listed([plain_name(bookie) for bookie in bookies[:MOST_NAMES]] or ["nobody"], "and")


def _has(bookies: Sequence[str]) -> str:
    return "has" if len(bookies) == 1 else "have"
