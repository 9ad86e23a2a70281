"""The client of single ledgers: the process that created a ledger writes it until it is closed or recovered.

The ledger of a key is a list with one ledger in ZooKeeper. An append goes to the process that created it. If this process has
started again, it no longer writes the ledger, and nobody does. All other operations go to the process of the client's own node.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import PAUSE_S, Refused, unsupported
from clusters.kit.stored import entry_or_fail, values_in
from clusters.systems.bookkeeper.outcomes import NO_LEDGER
from clusters.systems.bookkeeper.process import Process, limited
from clusters.systems.bookkeeper.reads import confirmed, copies, entry_in, inspected
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.chains import Chains
    from clusters.systems.bookkeeper.fences import Fences
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

READ_TIMEOUT_S: Final = 5.0
END_TIMEOUT_S: Final = 20.0


class LedgerClient:
    """A `harness.client.RoutedClient` for ledgers.

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
        self._processes = {each.name: Process(each) for each in nodes}
        self._chains = chains
        self._bookies = bookies
        self._fences = fences
        self._final = final

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation on the ledger of the key."""
        key = str(invocation.key)
        own = self._processes[self.node.name]
        self.via = None
        match invocation.f, invocation.value:
            case "append", value:
                outcome = await self._append(key, value)
            case "read", [int(first), int(last)]:
                limit_s = END_TIMEOUT_S if self._final else READ_TIMEOUT_S
                outcome = await limited(self._read(own, key, first, last), limit_s)
            case "inspect", None:
                outcome = await limited(self._inspect(own, key), END_TIMEOUT_S)
            case "confirmed", None:
                outcome = await limited(self._confirmed(own, key), READ_TIMEOUT_S)
            case ("recover" | "close") as f, None:
                outcome = await limited(self._end(own, key, f), END_TIMEOUT_S, has_effect=True)
            case _:
                return unsupported(invocation.f, invocation.value)
        if not isinstance(outcome, Ok):
            await asyncio.sleep(PAUSE_S)
        return outcome

    async def close(self) -> None:
        """Closes the connections."""
        for process in self._processes.values():
            await process.close()

    async def _append(self, key: str, value: Value) -> Outcome:
        body = entry_or_fail(key, value)
        if isinstance(body, Fail):
            return body
        process = self._processes.get(self._chains.known.get(key, ""), self._processes[self.node.name])
        self.via = None if process.node == self.node else process.node.name
        return await self._chains.appended(process, key, body, one_ledger=True)

    async def _read(self, process: Process, key: str, first: int, last: int) -> list[Value]:
        ledger = await self._ledger(process, key)
        if self._final:
            found = await copies(process, key, ledger, first=first, last=last, bookies=self._bookies)
        else:
            found = await confirmed(process, ledger, first, last)
        return [[entry, value] for entry, body in found for value in values_in(body, key)]

    async def _inspect(self, process: Process, key: str) -> dict[str, Value]:
        return await inspected(process, key, await self._ledger(process, key), self._bookies, self._fences)

    async def _confirmed(self, process: Process, key: str) -> int:
        return entry_in(await process.ask("confirmed", ledger=await self._ledger(process, key)))

    async def _end(self, process: Process, key: str, f: str) -> int:
        return entry_in(await process.ask(f, name=key, ledger=await self._ledger(process, key)))

    async def _ledger(self, process: Process, key: str) -> int:
        """Returns the id of the ledger, which never changes. ZooKeeper is asked until it has one."""
        if key not in self._chains.single:
            chain = await self._chains.chain(process, key)
            if not chain.ledgers:
                raise Refused(NO_LEDGER, "nobody has created the ledger yet")
            self._chains.single[key] = chain.ledgers[0]
        return self._chains.single[key]
