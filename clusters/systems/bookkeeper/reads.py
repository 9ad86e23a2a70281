"""Reads of a ledger: confirmed entries by the library, or the copies of entries on all bookies that should have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clusters.systems.answers import NoAnswer, RefusedByCode
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.outcomes import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.systems.bookkeeper.process import Process

MAX_SHOWN = 200


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


async def copies(process: Process, log: str, ledger: int, first: int, last: int) -> list[tuple[int, bytes]]:
    """Recovers a ledger of a log, and returns the ids and the different bodies of entries in a range, from all their bookies.

    An entry has two bodies if two bookies have different ones. It is left out only if each of its bookies says that it lacks
    the entry.

    Raises:
        RefusedByCode: No bookie returned an entry, and one did not say that it has none. For more see `Process.ask`.
        NoAnswer: The answer has no copies.
    """
    found: list[tuple[int, bytes]] = []
    for entry, answers in await _copies(process, log, ledger, first, last):
        bodies = {body for body, code in answers if not code}
        silent = [code for _, code in answers if code not in {0, *ABSENT}]
        if not bodies and silent:
            raise RefusedByCode(silent[0])
        found += [(entry, body.encode()) for body in sorted(bodies)]
    return found


async def scarce(process: Process, log: str, ledger: int, ack_quorum: int) -> list[tuple[int, int]]:
    """Recovers a ledger of a log, and returns the entries that too few of their bookies have.

    Returns:
        The id of each such entry, and the number of bookies of its write quorum that have it, as the metadata name them.

    Raises:
        RefusedByCode: Too few bookies have an entry, and one did not say whether it has it. For more see `Process.ask`.
        NoAnswer: The answer has no copies.
    """
    found: list[tuple[int, int]] = []
    for entry, answers in await _copies(process, log, ledger, 0, MOST_ENTRIES - 1):
        holders = sum(not code for _, code in answers)
        if holders < ack_quorum:
            silent = [code for _, code in answers if code not in {0, *ABSENT}]
            if silent:
                raise RefusedByCode(silent[0])
            found.append((entry, holders))
    return found


async def _copies(
    process: Process, log: str, ledger: int, first: int, last: int
) -> list[tuple[int, list[tuple[str, int]]]]:
    """Recovers a ledger, and returns each entry of a range with the body and the code of each of its bookies."""
    low, high = max(0, first), min(last, entry_in(await process.ask("recover", name=log, ledger=ledger)))
    if high < low:
        return []
    return list(_by_entry(await process.ask("copies", ledger=ledger, first=low, last=high)))


def entry_in(found: Any) -> int:
    """Returns the id of an entry in an answer; -1 for none.

    Raises:
        NoAnswer: It is none.
    """
    if type(found) is not int or found < -1:
        raise NoAnswer(f"expected the id of an entry, found {str(found)[:MAX_SHOWN]}")
    return found


def _by_entry(found: Any) -> Iterator[tuple[int, list[tuple[str, int]]]]:
    """Yields each entry with the body and the code of each of its bookies."""
    by_entry: dict[int, list[tuple[str, int]]] = {}
    for each in found if isinstance(found, list) else [found]:
        match each:
            case [int(entry), str(), str() | None as body, int(code)] if (body is None) == bool(code):
                by_entry.setdefault(entry, []).append((body or "", code))
            case _:
                raise NoAnswer(f"expected entry, bookie, body and code of each copy, found {str(each)[:MAX_SHOWN]}")
    yield from sorted(by_entry.items())
