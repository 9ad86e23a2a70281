"""The client of logs in BookKeeper: appends by the writer of a log, and reads by the process of its own node.

An append goes to the process that writes the log, as far as the clients know. Before a share of the appends, and after one
without an answer, the process of the client's own node takes the log over. A read opens each ledger without recovery, and
returns confirmed entries. BookKeeper does not promise that such a read is fresh: the last entry of an open ledger is confirmed
with the next one. A final read recovers each ledger, and reads its entries from all their bookies.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, unsupported
from clusters.kit.stored import entry_or_fail, values_in
from clusters.systems.bookkeeper.options import MOST_ENTRIES
from clusters.systems.bookkeeper.process import Process, limited
from clusters.systems.bookkeeper.reads import confirmed, copies
from harness.op import Fail, Ok

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.chains import Chains
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

ONLY_LOG: Final = "log"  # of a run whose operations have no key
READ_TIMEOUT_S: Final = 3.0
FINAL_TIMEOUT_S: Final = 20.0


class LogClient:
    """A `harness.client.RoutedClient` for logs.

    Attributes:
        node: The client's own node.
        via: The node whose process got its last append; None if it is its own.
    """

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
        self._processes = {each.name: Process(each) for each in nodes}
        self._bookies = bookies
        self._chains = chains
        self._take_over = take_over
        self._draws = draws
        self._final = final

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an append, or a read of an offset or of a range."""
        log = invocation.key or ONLY_LOG
        match invocation.f, invocation.value:
            case "append", value:
                outcome = await self._append(log, invocation.key, value)
            case "read", int(offset):
                outcome = await self._read(log, invocation.key, offset, offset)
                if isinstance(outcome, Ok):
                    return Ok(outcome.value[0][1] if outcome.value else None)
            case "read", [int(first), int(last)]:
                outcome = await self._read(log, invocation.key, first, last)
            case _:
                return unsupported(invocation.f, invocation.value)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the connections."""
        for process in self._processes.values():
            await process.close()

    async def _append(self, log: str, key: str | None, value: Value) -> Outcome:
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        own = self._processes[self.node.name]
        process = self._processes.get(self._chains.known.get(log, ""), own)
        takes_over = self._draws.random() < self._take_over or self._chains.is_silent(log, process.node.name)
        if takes_over:
            process = own
        self.via = None if process is own else process.node.name
        return await self._chains.appended(process, log, body, takes_over=takes_over)

    async def _read(self, log: str, key: str | None, first: int, last: int) -> Outcome:
        limit_s = FINAL_TIMEOUT_S if self._final else READ_TIMEOUT_S
        return await limited(self._entries(self._processes[self.node.name], log, key, first, last), limit_s)

    async def _entries(self, process: Process, log: str, key: str | None, first: int, last: int) -> list[Value]:
        chain = await self._chains.chain(process, log)
        found: list[Value] = []
        for place in range(max(0, first) // MOST_ENTRIES, min(last // MOST_ENTRIES, len(chain.ledgers) - 1) + 1):
            begin = place * MOST_ENTRIES
            ledger, low, high = chain.ledgers[place], first - begin, last - begin
            if self._final:
                entries = await copies(process, log, ledger, first=low, last=high, bookies=self._bookies)
            else:
                entries = await confirmed(process, ledger, low, high)
            for entry, body in entries:
                found += [[begin + entry, value] for value in values_in(body, key)]
        return found
