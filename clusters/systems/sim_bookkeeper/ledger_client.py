"""The client of single ledgers in the simulated BookKeeper.

An append goes to the client node that created the ledger, and the first one to the client node that stands for the client's own
node. All other operations go there, but a close goes to the writer. A client for final reads recovers each ledger, and asks
every bookie for its entries, as the client of the real bookies does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import unsupported
from clusters.sim.asking import MS, answer_of
from clusters.sim.errors import Broken, Refused
from clusters.systems.sim_bookkeeper import outcomes
from clusters.systems.sim_bookkeeper.ensemble import pieces
from clusters.systems.sim_bookkeeper.ledger_messages import AskHeld, Held, LedgerRequest
from clusters.systems.sim_bookkeeper.messages import Answer
from clusters.systems.sim_bookkeeper.outcomes import outcome
from harness.op import ONLY_KEY, Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clusters.sim.asking import NodeConnection
    from clusters.systems.sim_bookkeeper.layout import Layout
    from clusters.systems.sim_bookkeeper.messages import Meta
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

    Fences = Callable[[str], Sequence[Sequence[Value]]]

READS: Final = ("read", "confirmed", "inspect")
OF_WRITER: Final = ("append", "close")


def request_of(invocation: Invocation) -> LedgerRequest | None:
    """Returns the request of an operation to one client node; None if there is no such operation."""
    f, value = invocation.f, invocation.value
    match f, value:
        case ("append", _) | ("read", [int(), int()]) | ("close" | "confirmed" | "recover", None):
            return LedgerRequest(invocation.key or ONLY_KEY, f, value)
    return None


def outcome_of(invocation: Invocation, answer: Answer) -> Outcome:
    """Returns the outcome of an operation from the answer of a node."""
    return outcome(answer, is_read=invocation.f in READS)


class SimLedgerClient:
    """A `harness.client.RoutedClient` for the workload `ledger`.

    Attributes:
        node: The client's own node.
        via: The client node that got its last request; None before the first.
    """

    def __init__(
        self,
        *,
        connection: NodeConnection,
        node: Node,
        home: str,
        layout: Layout,
        options: SimBookkeeperOptions,
        writers: dict[str, str],
        fences: Fences,
        final: bool,
    ) -> None:
        """Makes the client of a process.

        Args:
            connection: The connection to the nodes.
            node: The client's own node.
            home: The client node that it asks.
            layout: The parts of the nodes.
            options: How long it waits for an answer, and the ack quorum.
            writers: The client node that writes each ledger, as far as the clients of the run know.
            fences: Returns the first requests to fence a ledger, as `workloads.ledger.inspection` has them.
            final: Whether it reads after all faults, from all bookies.
        """
        self.node = node
        self.via: str | None = None
        self._connection = connection
        self._home = home
        self._layout = layout
        self._options = options
        self._writers = writers
        self._fences = fences
        self._final = final

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation on the ledger of the key."""
        key, f, value = invocation.key or ONLY_KEY, invocation.f, invocation.value
        match f, value:
            case ("read", [int(), int()]) | ("inspect", None) if self._final:
                return await self._whole(key, f, value)
        request = request_of(invocation)
        if request is None:
            return unsupported(f, value)
        if f in OF_WRITER:
            return outcome_of(invocation, await self._ask_writer(key, request))
        return outcome_of(invocation, await self._ask(self._home, request))

    async def close(self) -> None:
        """Does nothing: a connection has no state on the nodes."""

    async def _ask_writer(self, key: str, body: LedgerRequest) -> Answer:
        """Asks the client node that writes a ledger; the answer of another one may name it."""
        at = self._writers.get(key, self._home)
        answer = await self._ask(at, body)
        if answer.writer is not None and answer.writer != at:
            at = self._writers[key] = answer.writer
            answer = await self._ask(at, body)
        if answer.code == outcomes.OK:
            self._writers[key] = at
        return answer

    async def _ask(self, at: str, body: LedgerRequest) -> Answer:
        self.via = at
        return await answer_of(self._connection, at, body, timeout_ms=self._options.answer_ms, made=Answer)

    async def _whole(self, key: str, f: str, value: Value) -> Outcome:
        """Recovers a ledger, and reads its entries from all bookies, or inspects it."""
        recovered = outcome(await self._ask(self._home, LedgerRequest(key, "recover")), is_read=True)
        if not isinstance(recovered, Ok):
            return recovered
        stores = {name: await self._held(name, key) for name in (*self._layout.bookies, self._layout.metadata)}
        store = stores.pop(self._layout.metadata)
        meta = None if store is None else store.meta
        if meta is None or None in stores.values():
            return Fail(outcomes.NO_ANSWER)
        last = recovered.value
        entries = _copies({name: answer for name, answer in stores.items() if answer is not None})
        if f == "inspect":
            return Ok(self._inspected(key, last, meta, entries))
        first, end = value
        listed: list[Value] = []
        for _, low, high, ensemble in pieces(meta.segments[-1], first, min(end, last)):
            for offset in range(low, high + 1):
                values, damaged = entries.get(offset, ([], []))
                if not any({*names} & {*ensemble} for _, names in values):
                    if {*damaged} & {*ensemble}:
                        return Fail(outcomes.UNREADABLE)
                    continue
                listed += [[offset, body] for body, _ in values]
        return Ok(listed)

    def _inspected(self, key: str, last: int, meta: Meta, entries: dict[int, Any]) -> dict[str, Value]:
        segment = meta.segments[-1]
        return {
            "ledger": None,
            "state": "OPEN" if segment.last is None else "CLOSED",
            "last": last,
            "write": max(len(fragment.bookies) for fragment in segment.fragments),
            "ack": self._options.ack_quorum,
            "fragments": [[fragment.first, [*fragment.bookies]] for fragment in segment.fragments],
            "entries": [[offset, *entries.get(offset, ([], []))] for offset in sorted({*range(last + 1), *entries})],
            "fences": [[*fence] for fence in self._fences(key)],
            "unread": [],
        }

    async def _held(self, name: str, key: str) -> Held | None:
        try:
            answer = await self._connection.ask(name, AskHeld(key), self._options.answer_ms * MS)
        except (Refused, Broken, TimeoutError):
            return None
        return answer if isinstance(answer, Held) else None


def _copies(stores: dict[str, Held]) -> dict[int, tuple[list[Value], list[Value]]]:
    """Returns for each offset the values with the bookies that have them, and the bookies on which the entry is damaged."""
    by_offset: dict[int, tuple[list[Value], list[Value]]] = {}
    for name, stored in stores.items():
        for offset, entry in stored.entries:
            values, _ = by_offset.setdefault(offset, ([], []))
            same = next((names for value, names in values if value == entry.value), None)
            if same is None:
                values.append([entry.value, [name]])
            else:
                same.append(name)
        for offset in stored.damaged:
            by_offset.setdefault(offset, ([], []))[1].append(name)
    return by_offset
