"""Logs without end: each is a list of ledgers in ZooKeeper, of which the last one is open.

The writer of a log is the client process that created the last ledger. To become the writer, a process recovers the last
ledger, which fences and closes it. Then it creates a new ledger, and puts it at the end of the list by compare-and-set. Pulsar
uses ledgers in this way. An offset in a log is the place of the ledger in the list times `MOST_ENTRIES`, plus the id of the
entry.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clusters.kit.answers import NoAnswer, NotDone, NotSent, RefusedByCode
from clusters.kit.contracts import NO_ANSWER
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.outcomes import LIST_CHANGED, NO_HANDLE, NOT_WRITER, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.bookkeeper.options import BookKeeperOptions
    from clusters.systems.bookkeeper.process import Process

MAX_LEDGERS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The list of a log, as ZooKeeper has it.

    Attributes:
        version: The version of the list; -1 if there is none.
        ledgers: The ids of its ledgers.
        writer: The node whose process added the last one; None without ledgers.
    """

    version: int
    ledgers: Sequence[int]
    writer: str | None


@dataclass(slots=True, kw_only=True)
class Writer:
    """A process that writes the last ledger of a log.

    Attributes:
        ledger: The id of the ledger.
        place: Its place in the list.
        begun: The number of entries that were given to it.
        idle: Whether each of them has an answer.
    """

    ledger: int
    place: int
    begun: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    flying: int = 0


class Chains:
    """The logs of a run, for all its clients."""

    def __init__(self, options: BookKeeperOptions) -> None:
        self._options = options
        self._writers: dict[tuple[str, str], Writer] = {}
        self._locks: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._silent: dict[str, str] = {}  # the node whose process did not answer the last append to a log
        self.known: dict[str, str] = {}  # the writer's node of each log, as it was last seen
        self.single: dict[str, int] = {}  # the ledger of each log with one ledger

    async def chain(self, process: Process, log: str) -> Chain:
        """Asks a process for the list of a log.

        Raises:
            NoAnswer: The answer is none, or no client of this run wrote the list. For more see `Process.ask`.
        """
        stored = await process.ask("get", name=log)
        match stored:
            case {"version": -1, **_unused}:
                return Chain(version=-1, ledgers=(), writer=None)
            case {"version": int(version), "text": str(text)}:
                chain = _read(text, version)
                self.known[log] = str(chain.writer)
                return chain
        raise NoAnswer(f"expected the list of {log}, found {str(stored)[:100]}")

    async def writer(self, process: Process, log: str, *, takes_over: bool) -> Writer:
        """Returns the writer of a log at a process.

        Args:
            process: The process.
            log: The log.
            takes_over: Whether the process takes the log over in any case. Otherwise it does so only if it wrote the log last,
                or if nobody did.

        Raises:
            NotDone: Another process writes the log. For more see `Process.ask`.
        """
        node_and_log = process.node.name, log
        async with self._locks[node_and_log]:
            writer = None if takes_over else self._writers.get(node_and_log)
            if writer is not None and writer.begun >= self._options.ledger_entries:
                await writer.idle.wait()
                await process.ask("close", ledger=writer.ledger)
                writer = None
            if writer is None:
                self._writers.pop(node_and_log, None)
                chain = await self.chain(process, log)
                if chain.writer not in {None, process.node.name} and not takes_over:
                    raise NotDone(NOT_WRITER, f"{chain.writer} writes the log")
                writer = self._writers[node_and_log] = await self._take_over(process, log, chain)
        return writer

    async def creator(self, process: Process, log: str) -> Writer:
        """Returns the writer of a log with one ledger at a process, which creates it if there is none.

        Raises:
            NotDone: The process does not write it. For more see `Process.ask`.
        """
        node_and_log = process.node.name, log
        async with self._locks[node_and_log]:
            writer = self._writers.get(node_and_log)
            if writer is None:
                chain = await self.chain(process, log)
                if chain.ledgers:
                    raise NotDone(NO_HANDLE, f"{process.node.name} does not write the ledger")
                writer = self._writers[node_and_log] = await self._take_over(process, log, chain)
        return writer

    async def appended(
        self, process: Process, log: str, body: bytes, *, takes_over: bool = False, one_ledger: bool = False
    ) -> int:
        """Appends an entry through a process, and returns its offset.

        Args:
            process: The process.
            log: The log.
            body: The body of the entry.
            takes_over: See `writer`.
            one_ledger: Whether the log has one ledger, whose writer never changes; see `creator`.

        Raises:
            NotDone: The process did not give the entry to BookKeeper.
            NoAnswer: It may have done so; see `append`.
            RefusedByCode: It has done so. For more see `Process.ask`.
        """
        writer = None
        answered = False
        try:
            getting = self.creator(process, log) if one_ledger else self.writer(process, log, takes_over=takes_over)
            writer = await getting
            offset = await self.append(process, writer, body)
            answered = True
        except (NotSent, NotDone, NoAnswer, RefusedByCode) as error:
            answered = isinstance(error, (NotDone, RefusedByCode))
            if writer is None and isinstance(error, (NoAnswer, RefusedByCode)):
                code = name_of(error.code) if isinstance(error, RefusedByCode) else NO_ANSWER
                raise NotDone(code, str(error)) from error
            if writer is not None and not one_ledger and self._writers.get((process.node.name, log)) is writer:
                del self._writers[process.node.name, log]  # a ledger takes nothing after an error
            raise
        finally:
            if not answered:  # also after the time limit of the operation
                self._silent[log] = process.node.name
        self._silent.pop(log, None)
        return offset

    def is_silent(self, log: str, node: str) -> bool:
        """Returns whether the process of a node did not answer the last append to a log."""
        return self._silent.get(log) == node

    async def append(self, process: Process, writer: Writer, body: bytes) -> int:
        """Appends an entry, and returns its offset.

        Raises:
            NoAnswer: The answer is no id of an entry. For more see `Process.ask`.
        """
        writer.begun += 1
        writer.flying += 1
        writer.idle.clear()
        try:
            entry = await process.ask("append", ledger=writer.ledger, body=body.decode())
        finally:
            writer.flying -= 1
            if not writer.flying:
                writer.idle.set()
        if type(entry) is not int or not 0 <= entry < MOST_ENTRIES:
            raise NoAnswer(f"expected the id of an entry below {MOST_ENTRIES}, found {str(entry)[:100]}")
        return writer.place * MOST_ENTRIES + entry

    async def _take_over(self, process: Process, log: str, chain: Chain) -> Writer:
        if chain.ledgers:
            await process.ask("recover", name=log, ledger=chain.ledgers[-1])
        options = self._options
        ledger = await process.ask(
            "create", ensemble=options.ensemble, write=options.write_quorum, ack=options.ack_quorum
        )
        if type(ledger) is not int:
            raise NoAnswer(f"expected the id of a ledger, found {str(ledger)[:100]}")
        text = json.dumps({"ledgers": [*chain.ledgers, ledger], "writer": process.node.name})
        term = len(chain.ledgers)
        if await process.ask("put", name=log, version=chain.version, text=text, ledger=ledger, term=term) == -1:
            raise NotDone(LIST_CHANGED, "another client took the log over meanwhile")
        self.known[log] = process.node.name
        return Writer(ledger=ledger, place=term)


def _read(text: str, version: int) -> Chain:
    try:
        stored: Any = json.loads(text)
    except (ValueError, RecursionError):
        stored = None
    match stored:
        case {"ledgers": [*ledgers], "writer": str(writer)} if 0 < len(ledgers) <= MAX_LEDGERS and all(
            type(ledger) is int for ledger in ledgers
        ):
            return Chain(version=version, ledgers=ledgers, writer=writer)
    raise NoAnswer(f"expected the list of a log, found {text[:100]!r}")
