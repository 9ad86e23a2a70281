"""A resource that the holders of locks write to, and that can refuse old fencing tokens.

A lease protects a lock and not what the lock protects: a client that pauses for longer than its lease writes although another
client holds the lock. A resource that has seen the token of the later holder can refuse this write. The control node keeps the
resource, and one event loop carries out all its writes, so it is linearizable by construction.

Source: M. Kleppmann, "How to do distributed locking", 2016, "Making the lock safe with fencing".
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from harness.client import via_of
from harness.op import Fail, Ok

if TYPE_CHECKING:
    from harness.client import Client, ClientFactory
    from harness.node import Node
    from harness.op import Invocation, Outcome, Value


class Takes(enum.StrEnum):
    """The writes that a resource takes."""

    NONE = "none"
    ALL = "all"
    FENCED = "fenced"


class Resource:
    """What the locks of one run protect: the number of writes, and the newest token of each lock."""

    def __init__(self, *, fenced: bool) -> None:
        """Makes a resource that has seen no token.

        Args:
            fenced: Whether it refuses tokens that are older than the newest one of the same lock.
        """
        self._fenced = fenced
        self._newest: dict[str | None, int] = {}
        self._writes = 0

    def write(self, key: str | None, token: Value) -> Outcome:
        """Carries out a write of the holder of a lock.

        Args:
            key: The lock.
            token: The token of the holder's acquire; None if the system has none.

        Returns:
            Ok with the number of the write among all that the resource took; `Fail` if it refused the write.
        """
        if self._fenced:
            if type(token) is not int:
                return Fail("no-token: the resource takes only writes with a fencing token")
            newest = self._newest.get(key, token)
            if token < newest:
                return Fail(f"old-token: {token} is older than {newest}")
            self._newest[key] = token
        self._writes += 1
        return Ok(self._writes)


class Holder:
    """A client that writes to the resource, and gives all other operations to a client of the system.

    Attributes:
        node: The node of the system's client.
        via: The node that this client asked with the last operation; None after a write, which asks none.
    """

    def __init__(self, client: Client, resource: Resource) -> None:
        self.node = client.node
        self.via: str | None = None
        self._client = client
        self._resource = resource

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out an operation of the lock workload."""
        if invocation.f == "write":
            self.via = None
            return self._resource.write(invocation.key, invocation.value)
        try:
            return await self._client.invoke(invocation)
        finally:
            self.via = via_of(self._client)

    async def close(self) -> None:
        """Closes the client of the system."""
        await self._client.close()


def holders(system: ClientFactory, resource: Resource) -> ClientFactory:
    """Returns a factory of clients that write to a resource."""

    def holder(process: int, node: Node) -> Client:
        return Holder(system(process, node), resource)

    return holder
