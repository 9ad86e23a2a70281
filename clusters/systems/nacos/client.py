"""The client of Nacos: a register is a service with one persistent instance, and the value is in its metadata.

A write sets the instance, and creates the service first if it is absent. Nacos has no compare-and-set.

Nacos promises its values in the end, and a node that is behind answers too. So a pinned client, which reads the final values,
reads only once its node has stored as many changes of the service as the leader, and shows what it has stored.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from clusters.kit.answers import UNSUPPORTED, NoAnswer, NotDone, NotSent, Refused
from clusters.kit.contracts import Done, Registers, Seen, by_workload
from clusters.kit.stored import value_of
from clusters.systems.nacos.naming import Naming
from clusters.systems.nacos.outcomes import ABSENT, NO_SERVICE, WRITE_NEVER_HAPPENED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.nacos.options import Writes
    from harness.node import Node
    from harness.op import Value

PREFIX: Final = "labrys-"
LEADER_TIMEOUT_S: Final = 3.0
ATTEMPTS: Final = 10
PAUSE_S: Final = 0.1  # until a node may know a service that another one created
SHOWS: Final = 15  # pauses in which a node must show what it has stored; it never may, and that is what it shows then
EXISTS: Final = "specified service already exists"


class NacosRegisters(Registers):
    """A `harness.client.RoutedClient`: it stays at its node, or follows the leader.

    Attributes:
        node: The client's own node.
        via: The node that received its last operation; None if the client stays at its node.
    """

    serves = "write sets the only instance of a service, read lists it; there is no cas"
    never_happened = WRITE_NEVER_HAPPENED
    read_timeout_s = 3.0

    def __init__(self, *, node: Node, nodes: Sequence[Node], follows: bool, pinned: bool, writes: Writes) -> None:
        """Connects with the first operation.

        Args:
            node: The client's own node.
            nodes: All nodes.
            follows: Whether the client follows the leader.
            pinned: Whether it reads only what its own node holds at rest.
            writes: When the leader acknowledges a write to a service that this client creates.
        """
        self.node = node
        self.via: str | None = None
        self._nodes = nodes
        self._follows = follows
        self._pinned = pinned
        self._writes = writes
        self._turn = nodes.index(node)
        self._at: Node | None = None if follows else node
        self._naming: Naming | None = None

    async def read(self, key: str) -> Seen:
        """Lists the instances of the service."""
        naming, service = await self._connected(), _service(key)
        text = await (self._at_rest(naming, service) if self._pinned else naming.read(service))
        return Seen(None if text is None else value_of(text))

    async def write(self, key: str, value: Value) -> Done:
        """Sets the instance of the service, and creates the service if it is absent."""
        naming, service = await self._connected(), _service(key)
        for _ in range(ATTEMPTS):
            try:
                await naming.write(service, json.dumps(value))
            except Refused as error:
                if error.code != ABSENT:
                    raise
            else:
                return Done()
            try:  # the write did not happen, and a service without an instance has no value
                await naming.create(service, self._writes)
            except (NoAnswer, Refused) as error:
                if not str(error).startswith(EXISTS):
                    raise NotDone(NO_SERVICE, str(error)) from error
            await asyncio.sleep(PAUSE_S)
        raise NotDone(NO_SERVICE, f"{service} is not there after {ATTEMPTS} attempts")

    async def cas(self, key: str, expected: Value, new: Value) -> Done | None:  # noqa: ARG002 - of the contract
        """Sends nothing."""
        raise NotDone(UNSUPPORTED, "Nacos has no compare-and-set")

    async def failed(self, error: Exception) -> None:
        """Leaves the node if the client follows the leader."""
        await super().failed(error)
        if self._follows:
            await self.close()
            self._at = None

    async def close(self) -> None:
        """Closes the connection."""
        if self._naming is not None:
            await self._naming.close()
            self._naming = None

    async def _connected(self) -> Naming:
        """Returns the connection to the client's node, or to the leader."""
        if self._at is None:
            self._at = await self._leader()
        self.via = self._at.name if self._follows else None
        self._naming = self._naming or Naming(self._at.address)
        return self._naming

    async def _leader(self) -> Node:
        """Asks the next node for the leader.

        Raises:
            NotSent: It does not answer, or names none.
        """
        asked = self._nodes[self._turn % len(self._nodes)]
        self._turn += 1
        naming = Naming(asked.address)
        try:
            async with asyncio.timeout(LEADER_TIMEOUT_S):
                peers = await naming.peers()
        except (NoAnswer, Refused, TimeoutError) as error:
            raise NotSent(f"{asked.name} does not name a leader: {error}") from error
        finally:
            await naming.close()
        leading = {peer.address for peer in peers if peer.role == "leader"}
        node = next((node for node in self._nodes if node.address in leading), None)
        if node is None:
            raise NotSent(f"{asked.name} knows no leader")
        return node

    async def _at_rest(self, naming: Naming, service: str) -> str | None:
        """Returns the value of a service, once its node has stored all changes of the leader, and had time to show them.

        Raises:
            NoAnswer: The node is behind the leader.
        """
        leader = Naming((await self._leader()).address)
        try:
            known, _ = await leader.stored(service)
        finally:
            await leader.close()
        changes, stored = await naming.stored(service)
        if changes < known:
            raise NoAnswer(f"the node has stored {changes} of {known} changes")
        shown = await naming.read(service)
        for _ in range(SHOWS):
            if shown == stored:
                break
            await asyncio.sleep(PAUSE_S)
            shown = await naming.read(service)
        return shown


CLIENTS: Final = by_workload(NacosRegisters)


def _service(key: str) -> str:
    """Returns the name of the service of a key. Nacos allows letters, digits and .:_- in it."""
    return PREFIX + quote(key, safe="").replace("~", "%7E").replace("%", ":")
