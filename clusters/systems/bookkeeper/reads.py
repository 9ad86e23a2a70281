"""Reads of a ledger: confirmed entries by the library, or the copies of entries on all bookies of the cluster.

The metadata of a ledger name the bookies of each entry. Another bookie may have a copy, e.g. from before a change of the
ensemble. The library never reads such a copy, so it does not count. But it cannot have another value either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clusters.kit.answers import NoAnswer, RefusedByCode
from clusters.kit.stored import values_in
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.outcomes import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.fences import Fences
    from clusters.systems.bookkeeper.process import Process
    from harness.op import Value

MAX_SHOWN = 200
BEYOND = 20  # entries after the last one that an inspection asks for


@dataclass(slots=True, kw_only=True)
class Copies:
    """The answers about one entry.

    Attributes:
        bodies: The body on each bookie that has one, of those that the metadata name for the entry.
        silent: The codes of those that did not say whether they have one.
        elsewhere: The body on each other bookie that has one.
    """

    bodies: dict[str, str] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def all(self) -> Mapping[str, Sequence[str]]:
        """Returns the bookies of each body."""
        by_body: dict[str, list[str]] = {}
        for bookie, body in (*self.bodies.items(), *self.elsewhere.items()):
            by_body.setdefault(body, []).append(bookie)
        return by_body


async def confirmed(process: Process, ledger: int, first: int, last: int) -> list[tuple[int, bytes]]:
    """Returns the ids and bodies of confirmed entries in a range, from one bookie each.

    Raises:
        NoAnswer: The answer has none. For more see `Process.ask`.
    """
    low, high = max(0, first), min(last, MOST_ENTRIES - 1)
    bodies = await process.ask("read", ledger=ledger, first=low, last=high)
    if not isinstance(bodies, list) or not all(isinstance(body, str) for body in bodies):
        raise NoAnswer(f"expected the bodies of entries, found {str(bodies)[:MAX_SHOWN]}")
    return [(entry, body.encode()) for entry, body in enumerate(bodies, low)]


async def copies(
    process: Process, log: str, ledger: int, *, first: int, last: int, bookies: Mapping[str, str]
) -> list[tuple[int, bytes]]:
    """Recovers a ledger of a log, and returns the ids and the different bodies of entries in a range, from all bookies.

    An entry has two bodies if two bookies have different ones. It is left out only if each bookie that the metadata name for it
    says that it lacks the entry.

    Args:
        process: The process that asks.
        log: The log.
        ledger: The id of the ledger.
        first: The first id of the range.
        last: The last one.
        bookies: The name of the node of each bookie of the cluster, by its address and port.

    Raises:
        RefusedByCode: No bookie returned an entry, and one did not say that it has none. For more see `Process.ask`.
        NoAnswer: The answer has no copies.
    """
    entries: list[tuple[int, bytes]] = []
    low, high = max(0, first), min(last, entry_in(await process.ask("recover", name=log, ledger=ledger)))
    if high < low:
        return []
    answers = await process.ask("copies", ledger=ledger, first=low, last=high, bookies=list(bookies))
    for entry, of_entry in sorted(_by_entry(answers, bookies).items()):
        if not of_entry.bodies:
            if of_entry.silent:
                raise RefusedByCode(next(iter(of_entry.silent.values())))
            continue
        entries += [(entry, body.encode()) for body in sorted(of_entry.all())]
    return entries


async def inspected(
    process: Process, log: str, ledger: int, bookies: Mapping[str, str], fences: Fences
) -> dict[str, Value]:
    """Recovers a ledger of a log, and returns its metadata, the copies of its entries, and its fences.

    Returns:
        The map that `workloads.ledger.inspection` describes. It has up to `BEYOND` entries after the last one, those that a
        bookie has.

    Raises:
        RefusedByCode: Too few bookies have an entry, and one did not say whether it has it. For more see `Process.ask`.
        NoAnswer: The answer has no copies, or no metadata, or the metadata changed meanwhile.
    """
    last = entry_in(await process.ask("recover", name=log, ledger=ledger))
    metadata = await _metadata(process, ledger, bookies)
    answer = await process.ask("copies", ledger=ledger, first=0, last=last + BEYOND, bookies=list(bookies))
    if await _metadata(process, ledger, bookies) != metadata:
        raise NoAnswer("the metadata of the ledger changed meanwhile")
    entries: list[Value] = []
    for entry, of_entry in sorted(_by_entry(answer, bookies).items()):
        if entry <= last and of_entry.silent and len(of_entry.bodies) < metadata["ack"]:
            raise RefusedByCode(next(iter(of_entry.silent.values())))
        values = [
            [value, sorted(holders)]
            for body, holders in sorted(of_entry.all().items())
            for value in values_in(body.encode(), log)
        ]
        if values or entry <= last:
            entries.append([entry, values, sorted(of_entry.silent)])
    asked, unread = await fences.of(ledger)
    return {**metadata, "ledger": ledger, "last": last, "entries": entries, "fences": asked, "unread": unread}


async def _metadata(process: Process, ledger: int, bookies: Mapping[str, str]) -> dict[str, Value]:
    """Returns the members `state`, `write`, `ack` and `fragments` of an inspection."""
    metadata: Any = await process.ask("metadata", ledger=ledger)
    match metadata:
        case {"state": str(state), "writeQuorum": int(write), "ackQuorum": int(ack), "ensembles": dict(ensembles)}:
            fragments = [
                [int(first), [bookies.get(str(bookie), str(bookie)) for bookie in names]]
                for first, names in ensembles.items()
                if str(first).isdecimal() and isinstance(names, list)
            ]
            return {"state": state, "write": write, "ack": ack, "fragments": sorted(fragments)}
    raise NoAnswer(f"expected the metadata of a ledger, found {str(metadata)[:MAX_SHOWN]}")


def entry_in(value: Any) -> int:
    """Returns the id of an entry in an answer; -1 for none.

    Raises:
        NoAnswer: It is none.
    """
    if type(value) is not int or value < -1:
        raise NoAnswer(f"expected the id of an entry, found {str(value)[:MAX_SHOWN]}")
    return value


def _by_entry(answer: Any, bookies: Mapping[str, str]) -> Mapping[int, Copies]:
    by_entry: dict[int, Copies] = {}
    for copy in answer if isinstance(answer, list) else [answer]:
        match copy:
            case [int(entry), str(bookie), str() | None as body, int(code), bool(named)] if (body is None) == bool(
                code
            ):
                of_entry, node = by_entry.setdefault(entry, Copies()), bookies.get(bookie, bookie)
                if body is not None:
                    (of_entry.bodies if named else of_entry.elsewhere)[node] = body
                elif named and code not in ABSENT:
                    of_entry.silent[node] = code
            case _:
                raise NoAnswer(
                    "expected entry, bookie, body and code of each copy, and whether the metadata name the bookie, found "
                    f"{str(copy)[:MAX_SHOWN]}"
                )
    return by_entry
