"""The client of single ledgers: the process that created a ledger writes it until it is closed or recovered.

The ledger of a key is a list with one ledger in ZooKeeper. An append goes to the process that created it. If this process has
started again, it no longer writes the ledger, and nobody does. All other operations go to the process of the client's own node.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, NotDone
from clusters.kit.contracts import Entries, Ledgers, Seen
from clusters.kit.stored import entry_body, values_in
from clusters.systems.bookkeeper.outcomes import NO_LEDGER, name_of
from clusters.systems.bookkeeper.process import Process
from clusters.systems.bookkeeper.reads import confirmed, copies, entry_in, inspected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.chains import Chains
    from clusters.systems.bookkeeper.fences import Fences
    from harness.node import Node
    from harness.op import Invocation, Value

READ_TIMEOUT_S: Final = 5.0
END_TIMEOUT_S: Final = 20.0


class BookKeeperLedgers(Ledgers):
    """A `harness.client.RoutedClient` for ledgers.

    Attributes:
        node: The client's own node.
        via: The node whose process got its last append; None if it is its own, or after another operation.
    """

    serves = (
        "append adds an entry; recover opens the ledger with recovery; confirmed is readLastAddConfirmed; inspect asks each "
        "bookie for each entry, and reads from their logs who fenced the ledger"
    )

    def __init__(
        self,
        *,
        node: Node,
        nodes: Sequence[Node],
        bookies: Mapping[str, str],
        chains: Chains,
        fences: Fences,
        final: bool,
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: The nodes with client processes.
            bookies: The name of the node of each bookie, by its address and port.
            chains: The ledgers, each a log with one ledger.
            fences: The fences of the ledgers.
            final: Whether it reads after all faults, from all bookies.
        """
        self.node = node
        self.via: str | None = None
        self._processes = {asked.name: Process(asked) for asked in nodes}
        self._chains = chains
        self._bookies = bookies
        self._fences = fences
        self._final = final

    def name_of(self, code: int) -> str:
        """Returns the name of an error of BookKeeper."""
        return name_of(code)

    def limit_s(self, invocation: Invocation) -> float | None:
        """Returns the time limit of an operation; an append has that of its caller."""
        if invocation.f == "append":
            return None
        is_short = invocation.f == "confirmed" or (invocation.f == "read" and not self._final)
        return READ_TIMEOUT_S if is_short else END_TIMEOUT_S

    async def append(self, key: str, value: Value) -> Seen:
        """Appends an entry by the process that created the ledger, or by the own one, which creates it."""
        body = entry_body(key, value)
        own = self._own()
        process = self._processes.get(self._chains.known.get(key, ""), own)
        self.via = None if process is own else process.node.name
        offset = await self._chains.appended(process, key, body, one_ledger=True)
        return Seen(offset, offset)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Reads confirmed entries, or recovers the ledger and reads them from all bookies."""
        process = self._own()
        ledger = await self._ledger(process, key)
        if self._final:
            bodies = await copies(process, key, ledger, first=first, last=last, bookies=self._bookies)
        else:
            bodies = await confirmed(process, ledger, first, last)
        return Entries([(entry, value) for entry, body in bodies for value in values_in(body, key)])

    async def last_confirmed(self, key: str) -> int:
        """Asks for the last confirmed entry."""
        process = self._own()
        return entry_in(await process.ask("confirmed", ledger=await self._ledger(process, key)))

    async def inspect(self, key: str) -> Value:
        """Recovers the ledger, and returns what all bookies have of it."""
        process = self._own()
        return await inspected(process, key, await self._ledger(process, key), self._bookies, self._fences)

    async def recover(self, key: str) -> int:
        """Recovers the ledger."""
        return await self._ended(key, "recover")

    async def end(self, key: str) -> int:
        """Closes the ledger."""
        return await self._ended(key, "close")

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - after each of them
        """Pauses."""
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connections."""
        for process in self._processes.values():
            await process.close()

    def _own(self) -> Process:
        """Returns the process of the client's own node."""
        self.via = None
        return self._processes[self.node.name]

    async def _ended(self, key: str, how: str) -> int:
        process = self._own()
        return entry_in(await process.ask(how, name=key, ledger=await self._ledger(process, key)))

    async def _ledger(self, process: Process, key: str) -> int:
        """Returns the id of the ledger, which never changes. ZooKeeper is asked until it has one."""
        if key not in self._chains.single:
            chain = await self._chains.chain(process, key)
            if not chain.ledgers:
                raise NotDone(NO_LEDGER, "nobody has created the ledger yet")
            self._chains.single[key] = chain.ledgers[0]
        return self._chains.single[key]
