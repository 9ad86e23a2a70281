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

from clusters.kit.answers import NoAnswer, NotSent, carried_out, unsupported
from clusters.kit.stored import value_of
from clusters.systems.nacos.naming import Naming, Refused
from clusters.systems.nacos.outcomes import NO_SERVICE, code_of, refused
from harness.op import ONLY_KEY, Fail, Ok

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clusters.systems.nacos.options import Writes
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value

PREFIX: Final = "labrys-"
READ_TIMEOUT_S: Final = 3.0
ATTEMPTS: Final = 10
PAUSE_S: Final = 0.1  # until a node may know a service that another one created
SHOWS: Final = 15  # pauses in which a node must show what it has stored; it never may, and that is what it shows then
EXISTS: Final = "specified service already exists"


class NacosClient:
    """A `harness.client.RoutedClient`: it stays at its node, or follows the leader.

    Attributes:
        node: The client's own node.
        via: The node that received its last operation; None if the client stays at its node.
    """

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

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the workload."""
        is_read = invocation.f == "read"
        operation = self._carry_out(invocation)
        outcome: Outcome
        try:
            outcome = await carried_out(
                operation, self._at or self.node, is_read=is_read, read_timeout_s=READ_TIMEOUT_S
            )
        except Refused as error:
            outcome = refused(error.text, is_read=is_read)
        if not isinstance(outcome, Ok) and self._follows:
            await self.close()
            self._at = None
        return outcome

    async def close(self) -> None:
        """Closes the connection."""
        if self._naming is not None:
            await self._naming.close()
            self._naming = None

    async def _carry_out(self, invocation: Invocation) -> Outcome:
        # Nacos allows letters, digits and .:_- in the name of a service.
        service = PREFIX + quote(invocation.key or ONLY_KEY, safe="").replace("~", "%7E").replace("%", ":")
        if self._at is None:
            self._at = await self._leader()
        self.via = self._at.name if self._follows else None
        self._naming = self._naming or Naming(self._at.address)
        match invocation.f, invocation.value:
            case "read", _:
                found = await (self._at_rest(self._naming, service) if self._pinned else self._naming.read(service))
                return Ok(None if found is None else value_of(found))
            case "write", value:
                return await self._write(self._naming, service, value)
        return unsupported(invocation.f, invocation.value)

    async def _leader(self) -> Node:
        """Asks the next node for the leader.

        Raises:
            NotSent: It does not answer, or names none.
        """
        asked = self._nodes[self._turn % len(self._nodes)]
        self._turn += 1
        naming = Naming(asked.address)
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
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

    async def _write(self, naming: Naming, service: str, value: Value) -> Outcome:
        for _ in range(ATTEMPTS):
            try:
                await naming.write(service, json.dumps(value))
            except Refused as error:
                if code_of(error.text) != NO_SERVICE:
                    raise
            else:
                return Ok(value)
            try:  # the write did not happen, and a service without an instance has no value
                await naming.create(service, self._writes)
            except Refused as error:
                if not error.text.startswith(EXISTS):
                    return Fail(f"{NO_SERVICE}: {error}")
            except NoAnswer as error:
                return Fail(f"{NO_SERVICE}: {error}")
            await asyncio.sleep(PAUSE_S)
        return Fail(f"{NO_SERVICE}: {service} is not there after {ATTEMPTS} attempts")
