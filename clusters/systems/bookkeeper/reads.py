"""Reads of a ledger: confirmed entries by the library, or the copies of entries on all bookies of the cluster.

The metadata of a ledger name the bookies of each entry. Another bookie may have a copy, e.g. from before a change of the
ensemble. The library never reads such a copy, so it does not count. But it cannot have another value either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clusters.systems.answers import NoAnswer, RefusedByCode
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.outcomes import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.bookkeeper.process import Process

MAX_SHOWN = 200


@dataclass(slots=True, kw_only=True)
class Copies:
    """The answers about one entry.

    Attributes:
        bodies: The different bodies on bookies that the metadata name for the entry.
        named: How many of these bookies have a body.
        silent: The codes of those that did not say whether they have one.
        elsewhere: The body on each other bookie that has one.
    """

    bodies: set[str] = field(default_factory=set)
    named: int = 0
    silent: list[int] = field(default_factory=list)
    elsewhere: dict[str, str] = field(default_factory=dict)


async def confirmed(process: Process, ledger: int, first: int, last: int) -> list[tuple[int, bytes]]:
    """Returns the ids and bodies of confirmed entries in a range, from one bookie each.

    Raises:
        NoAnswer: The answer has none. For more see `Process.ask`.
    """
    low, high = max(0, first), min(last, MOST_ENTRIES - 1)
    found = await process.ask("read", ledger=ledger, first=low, last=high)
    if not isinstance(found, list) or not all(isinstance(body, str) for body in found):
        raise NoAnswer(f"expected the bodies of entries, found {str(found)[:MAX_SHOWN]}")
    return [(entry, body.encode()) for entry, body in enumerate(found, low)]


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
    found: list[tuple[int, bytes]] = []
    for entry, of_entry in await _copies(process, log, ledger, first=first, last=last, bookies=bookies):
        if not of_entry.bodies:
            if of_entry.silent:
                raise RefusedByCode(of_entry.silent[0])
            continue
        found += [(entry, body.encode()) for body in sorted({*of_entry.bodies, *of_entry.elsewhere.values()})]
    return found


async def scarce(
    process: Process, log: str, ledger: int, ack_quorum: int, bookies: Mapping[str, str]
) -> list[tuple[int, int, list[str]]]:
    """Recovers a ledger of a log, and returns the entries that too few of their bookies have.

    Returns:
        The id of each such entry, the number of bookies of its write quorum that have it, as the metadata name them, and the
        nodes of the other bookies that have it.

    Raises:
        RefusedByCode: Too few bookies have an entry, and one did not say whether it has it. For more see `Process.ask`.
        NoAnswer: The answer has no copies.
    """
    found: list[tuple[int, int, list[str]]] = []
    for entry, of_entry in await _copies(process, log, ledger, first=0, last=MOST_ENTRIES - 1, bookies=bookies):
        if of_entry.named < ack_quorum:
            if of_entry.silent:
                raise RefusedByCode(of_entry.silent[0])
            found.append((entry, of_entry.named, sorted(of_entry.elsewhere)))
    return found


async def _copies(
    process: Process, log: str, ledger: int, *, first: int, last: int, bookies: Mapping[str, str]
) -> list[tuple[int, Copies]]:
    """Recovers a ledger, and returns the answers of all bookies about each entry of a range."""
    low, high = max(0, first), min(last, entry_in(await process.ask("recover", name=log, ledger=ledger)))
    if high < low:
        return []
    found = await process.ask("copies", ledger=ledger, first=low, last=high, bookies=list(bookies))
    return sorted(_by_entry(found, bookies).items())


def entry_in(found: Any) -> int:
    """Returns the id of an entry in an answer; -1 for none.

    Raises:
        NoAnswer: It is none.
    """
    if type(found) is not int or found < -1:
        raise NoAnswer(f"expected the id of an entry, found {str(found)[:MAX_SHOWN]}")
    return found


def _by_entry(found: Any, bookies: Mapping[str, str]) -> Mapping[int, Copies]:
    by_entry: dict[int, Copies] = {}
    for each in found if isinstance(found, list) else [found]:
        match each:
            case [int(entry), str(bookie), str() | None as body, int(code), bool(named)] if (body is None) == bool(
                code
            ):
                of_entry = by_entry.setdefault(entry, Copies())
                if named and body is not None:
                    of_entry.bodies.add(body)
                    of_entry.named += 1
                elif named and code not in ABSENT:
                    of_entry.silent.append(code)
                elif body is not None:
                    of_entry.elsewhere[bookies.get(bookie, bookie)] = body
            case _:
                raise NoAnswer(
                    "expected entry, bookie, body and code of each copy, and whether the metadata name the bookie, found "
                    f"{str(each)[:MAX_SHOWN]}"
                )
    return by_entry
