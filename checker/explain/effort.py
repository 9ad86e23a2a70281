"""Describes the effort of a check, to explain why a model of the user is slow.

Operations of one class differ only in their time. Labrys calls the model once for each state and each class that meets it; the
answers are the table of transitions. A search grows with the number of concurrent operations, and with the number of operations
that never returned, since each of these may take effect at any later time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from checker.models.opcodes import INFINITE, OBSERVERS
from checker.words import began, kind_text, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker._kernel import Outcome
    from checker.search.encode import Encoded
    from harness.op import Operation

_NAMED: Final = 4
_WIDE: Final = 12  # from this number of open operations on, or with crashed ones, the advice is shown
_LONG_S: Final = 1.0
# By the name of a counter of the kernel, what it counts, in the order of the lines.
_REDUCTIONS: Final[Mapping[str, str]] = {
    "segments": "parts of the history, examined one by one because there are too many states",
    "absorbed": "operations that change nothing any more, applied at once",
    "commuted": "orders of operations that commute, left out",
    "merged": "equivalent states, merged",
    "dead_ends": "dead ends, dropped early",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The effort of the check of one key.

    Attributes:
        key: The key; None if the history has only one object.
        analyzer: The analyzer that decided.
        seconds: Wall time.
        steps: Steps of the search.
        operations: The number of operations.
        classes: The number of their classes.
        observers: How many of the operations only observe.
        states: The number of states; None if the kernel does not count them.
        entries: The number of transitions in the table; None likewise.
        stats: The counters of the kernel.
        widest: The maximum number of operations that were open at once, without those that never returned.
        widest_at: The operation that began at that moment; None if there is none.
        crashed: The number of operations that never returned, by kind, the most frequent first.
    """

    key: str | None
    analyzer: str
    seconds: float
    steps: int
    operations: int
    classes: int
    observers: int
    states: int | None
    entries: int | None
    stats: Mapping[str, int]
    widest: int
    widest_at: Operation | None
    crashed: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        at = self.widest_at
        return {
            "key": self.key,
            "analyzer": self.analyzer,
            "seconds": self.seconds,
            "steps": self.steps,
            "operations": self.operations,
            "classes": self.classes,
            "observers": self.observers,
            "states": self.states,
            "entries": self.entries,
            "reductions": dict(self.stats),
            "widest": {"operations": self.widest, "invoke_index": None if at is None else at.invoke_index},
            "crashed": dict(self.crashed),
        }

    def lines(self) -> list[str]:
        """Returns it as lines of text."""
        of_key = "" if self.key is None else f" of key {self.key}, the slowest"
        seen = [f"{self.classes:,} classes"]
        seen += [] if self.states is None else [f"{self.states:,} states"]
        seen += [] if self.entries is None else [f"a table of {self.entries:,} transitions"]
        steps = f"{self.steps:,} steps of a search, " if self.steps else ""
        lines = [
            f"Checked{of_key}: {self.operations:,} operations, {self.observers:,} of which only observe; {', '.join(seen)}.",
            f"Algorithm: {self.analyzer}; {steps}{self.seconds:.3f} s.",
        ]
        lines += [f"{self.stats[name]:,} {words}." for name, words in _REDUCTIONS.items() if self.stats.get(name)]
        if self.widest_at is not None:
            lines.append(
                sentence(f"At most {self.widest:,} operations were open at once, at ", began(self.widest_at), ".")
            )
        total = sum(self.crashed.values())
        if total:
            named = [f"{count:,} of {kind}" for kind, count in list(self.crashed.items())[:_NAMED]]
            more = f", and {len(self.crashed) - _NAMED:,} more kinds" if len(self.crashed) > _NAMED else ""
            noun = "operation" if total == 1 else "operations"
            lines.append(
                f"{total:,} {noun} never returned and may take effect at any later time: {', '.join(named)}{more}."
            )
        if self.seconds >= _LONG_S and (total or self.widest >= _WIDE):
            lines.append(
                "Fewer processes, fewer operations that never return, shorter keys or unique values make this faster."
            )
        return lines


def effort(encoded: Encoded, outcome: Outcome, key: str | None) -> Effort:
    """Returns the effort of the check of a key.

    Args:
        encoded: The key's operations.
        outcome: The kernel's outcome for them.
        key: The key.
    """
    counts = outcome.counts
    coder = encoded.coder
    watching = bytes(code.f in OBSERVERS for code in encoded.classes)
    observers = coder.observers()
    if observers is not None:
        watching = bytes(observers[code.a] for code in encoded.classes)
    observing = {id(code) for code, flag in zip(encoded.classes, watching, strict=True) if flag}
    crashed = Counter(
        kind_text(op) for op, end in zip(encoded.operations, encoded.ends, strict=True) if end == INFINITE
    )
    widest, at = _widest(encoded)
    return Effort(
        key=key,
        analyzer=outcome.analyzer,
        seconds=outcome.seconds,
        steps=outcome.steps,
        operations=len(encoded.operations),
        classes=len(encoded.classes),
        observers=sum(id(code) in observing for code in encoded.codes),
        states=coder.states,
        entries=coder.entries,
        stats={} if counts is None else {name: getattr(counts, name) for name in _REDUCTIONS},
        widest=widest,
        widest_at=at,
        crashed=dict(crashed.most_common()),
    )


def _widest(encoded: Encoded) -> tuple[int, Operation | None]:
    """Returns the maximum number of returned operations that were open at once, and the operation that began then."""
    events = [(start, 1, i) for i, start in enumerate(encoded.starts) if encoded.ends[i] != INFINITE]
    events += [(end, 0, i) for i, end in enumerate(encoded.ends) if end != INFINITE]
    # An operation that ends at the index of another's start is still open then.
    events.sort(key=lambda event: (event[0], -event[1]))
    count = most = 0
    at: Operation | None = None
    for _, begins, i in events:
        count += 1 if begins else -1
        if count > most:
            most, at = count, encoded.operations[i]
    return most, at
