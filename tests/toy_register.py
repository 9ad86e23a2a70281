"""The smallest simulated system: registers on the node n1, which the others point to. For tests of the simulator itself.

Correct, unless the option `forgets` is set: then it acknowledges writes before it syncs them, and a power loss brings old
values back.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clusters.sim.errors import Broken, Refused
from clusters.sim.host import Reply, Request
from clusters.sim.system import SimSystem
from harness.declare import option
from harness.op import Fail, Info, Ok
from harness.service import NodeStatus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clusters.sim.host import Factory, Host
    from harness.node import Node
    from harness.op import Invocation, Outcome

LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyOptions:
    """The options."""

    forgets: bool = option(default=False, help="Acknowledge a write before it is synced.")


class ToyRegisters(SimSystem):
    """Registers on one node of a simulated cluster."""

    name = "toy-registers"
    summary = "Registers on one simulated node."
    Options = ToyOptions
    serves = {"register": "reads, writes and compare-and-sets of n1's registers"}  # noqa: RUF012
    answers = ("cas-mismatch",)

    def factory(self, node: Node) -> Factory:
        """Returns what makes the process."""
        return lambda host: ToyProcess(host, forgets=self.options.forgets)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ToyClient:
        """Returns a client, which always asks n1."""
        return ToyClient(self, process, node)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks for the number of entries; n1 leads."""
        entries = await self.ask(node, {"f": "status"}, timeout_s)
        if entries is None:
            return ()
        role = "leader" if node.name == "n1" else "follower"
        return (NodeStatus(node=node.name, role=role, term=1, leader="n1", applied_index=entries),)


class Leaderless(ToyRegisters):
    """Nodes that never have a leader, so that a run cannot begin."""

    name = "leaderless-registers"

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a follower without a leader."""
        return (NodeStatus(node=node.name, role="follower", term=1, leader=None, applied_index=0),)


class Witnesses(ToyRegisters):
    """Registers with a node n3 that serves no clients, as docs/guide/new-system.md describes it."""

    name = "witness-registers"

    def client(self, process: int, node: Node, *, pinned: bool = False) -> ToyClient:
        """Returns a client that fails at once at n3 if it may ask no other node."""
        return Silent(self, process, node) if pinned and node.name == "n3" else ToyClient(self, process, node)


class Raising(ToyRegisters):
    """Registers whose status breaks the rule that it never raises."""

    name = "raising-registers"

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Raises after a while."""
        if self.world.now_ns > 3_000_000_000:
            raise ConnectionResetError("no answer")
        return await super().statuses(node, timeout_s)


class Forgetting(ToyRegisters):
    """Registers whose leader reports no applied entry from the fourth second on."""

    name = "forgetting-registers"
    raft_invariants = "An applied entry stays applied."

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks the node."""
        statuses = await super().statuses(node, timeout_s)
        if node.name != "n1" or self.world.now_ns < 4_000_000_000:
            return statuses
        return [replace(status, applied_index=0) for status in statuses]


class ToyProcess:
    """The process of a node; see `clusters.sim.host.Process`."""

    def __init__(self, host: Host, *, forgets: bool) -> None:
        self._host = host
        self._forgets = forgets
        self._entries: list[tuple[str, Any]] = []

    def start(self) -> None:
        """Reads the log; a line that is damaged is left out."""
        if LOG in self._host.disk.names():
            self._entries = [*_entries(self._host.disk.read(LOG))]
        self._beat()

    def _beat(self) -> None:
        for peer in self._host.peers:
            self._host.send(peer, "beat")
        self._host.after(100_000_000, self._beat)

    def receive(self, sender: str, message: Any) -> None:
        """Answers a request."""
        if isinstance(message, Request):
            self._host.send(sender, Reply(message.id, self._answer(message.body)))

    def _answer(self, body: dict[str, Any]) -> Any:
        registers = dict(self._entries)
        if body["f"] == "status":
            return len(self._entries)
        value = registers.get(body["key"])
        if body["f"] == "read":
            return value
        if body["f"] == "cas" and value != body["value"][0]:
            return {"mismatch": value}
        entry = (body["key"], body["value"][1] if body["f"] == "cas" else body["value"])
        self._host.disk.append(LOG, json.dumps(entry).encode() + b"\n")
        if not self._forgets:
            self._host.disk.sync(LOG)
        self._entries.append(entry)
        return body["value"]


def _entries(log: bytes) -> Iterator[tuple[str, Any]]:
    """Yields the entries of a log that can be read."""
    for line in log.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str):
            yield entry[0], entry[1]


class ToyClient:
    """Asks n1."""

    def __init__(self, system: ToyRegisters, process: int, node: Node) -> None:
        self.node = node
        self._connection = system.connect(process)

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        body = {"f": invocation.f, "key": invocation.key, "value": invocation.value}
        try:
            answer = await self._connection.ask("n1", body)
        except Refused as refused:
            return Fail(f"refused: {refused}")
        except Broken as broken:
            return Info(f"broken: {broken}")
        if isinstance(answer, dict):
            return Fail(f"cas-mismatch: holds {answer['mismatch']}")
        return Ok(answer)

    async def close(self) -> None:
        """Has nothing to close."""


class Silent(ToyClient):
    """A client of a node that serves no clients."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Fails without a request."""
        return Fail("no-service")
