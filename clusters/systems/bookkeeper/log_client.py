"""The client of logs in BookKeeper: appends by the writer of a log, and reads by the process of its own node.

An append goes to the process that writes the log, as far as the clients know. Before a share of the appends, and after one
without an answer, the process of the client's own node takes the log over. A read opens each ledger without recovery, and
returns confirmed entries. BookKeeper does not promise that such a read is fresh: the last entry of an open ledger is confirmed
with the next one. A final read recovers each ledger, and reads its entries from all their bookies.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S
from clusters.kit.contracts import Entries, Logs, Seen
from clusters.kit.stored import entry_body, values_in
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.outcomes import name_of
from clusters.systems.bookkeeper.process import Process
from clusters.systems.bookkeeper.reads import confirmed, copies
from harness.op import ONLY_KEY

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.chains import Chains
    from harness.node import Node
    from harness.op import Value

ONLY_LOG: Final = ONLY_KEY  # of a run whose operations have no key
READ_TIMEOUT_S: Final = 3.0
FINAL_TIMEOUT_S: Final = 20.0


class BookKeeperLogs(Logs):
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
        via: The node whose process got its last append; None if it is its own, or after a read.
    """

    serves = (
        "a log is a list of ledgers in ZooKeeper; append adds an entry to the last one, after a recovery if the process does "
        "not write it; read returns confirmed entries"
    )

    def __init__(
        self,
        *,
        node: Node,
        nodes: Sequence[Node],
        bookies: Mapping[str, str],
        chains: Chains,
        take_over: float,
        draws: random.Random,
        final: bool,
    ) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: The nodes with client processes.
            bookies: The name of the node of each bookie, by its address and port.
            chains: The logs.
            take_over: The share of appends before which the own process takes the log over.
            draws: Decides before which.
            final: Whether it reads after all faults, from all bookies.
        """
        self.node = node
        self.via: str | None = None
        self.read_timeout_s = FINAL_TIMEOUT_S if final else READ_TIMEOUT_S
        self._processes = {asked.name: Process(asked) for asked in nodes}
        self._bookies = bookies
        self._chains = chains
        self._take_over = take_over
        self._draws = draws
        self._final = final

    def name_of(self, code: int) -> str:
        """Returns the name of an error of BookKeeper."""
        return name_of(code)

    async def append(self, key: str, value: Value) -> Seen:
        """Appends an entry by the process that writes the log, or by the own one, which may take it over."""
        body = entry_body(key, value)
        own = self._processes[self.node.name]
        process = self._processes.get(self._chains.known.get(key, ""), own)
        takes_over = self._draws.random() < self._take_over or self._chains.is_silent(key, process.node.name)
        if takes_over:
            process = own
        self.via = None if process is own else process.node.name
        offset = await self._chains.appended(process, key, body, takes_over=takes_over)
        return Seen(offset, offset)

    async def read(self, key: str, first: int, last: int) -> Entries:
        """Reads entries by the process of the own node."""
        self.via = None
        process = self._processes[self.node.name]
        chain = await self._chains.chain(process, key)
        read_entries: list[tuple[int, Value]] = []
        for index in range(max(0, first) // MOST_ENTRIES, min(last // MOST_ENTRIES, len(chain.ledgers) - 1) + 1):
            begin = index * MOST_ENTRIES
            ledger, low, high = chain.ledgers[index], first - begin, last - begin
            if self._final:
                entries = await copies(process, key, ledger, first=low, last=high, bookies=self._bookies)
            else:
                entries = await confirmed(process, ledger, low, high)
            for entry, body in entries:
                read_entries += [(begin + entry, value) for value in values_in(body, key)]
        return Entries(read_entries)

    async def failed(self, error: Exception) -> None:  # noqa: ARG002 - after each of them
        """Pauses."""
        await asyncio.sleep(PAUSE_S)

    async def close(self) -> None:
        """Closes the connections."""
        for process in self._processes.values():
            await process.close()
