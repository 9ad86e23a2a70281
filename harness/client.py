"""The interface of a client of a system under test.

A client is one connection of one process, over the system's own protocol and never over SSH. The soundness of all verdicts
depends on its outcomes: `Fail` only if the request certainly had and will have no effect, `Info` in every case of doubt. The
interpreter records an exception that leaves `invoke` as `Info`, so a client need not catch an exception that it does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Invocation, Outcome


class Client(Protocol):
    """One process' connection to the system.

    Attributes:
        node: The node of this client; recorded with each of its operations.
    """

    node: Node

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation. It is called for one operation at a time, and may be cancelled at the time-out."""
        ...

    async def close(self) -> None:
        """Releases the connection. It is called once, also after a cancelled `invoke`, and must not block for long."""
        ...


class RoutedClient(Client, Protocol):
    """A client that chooses the node it asks, e.g. because it follows the leader.

    Such clients measure the availability of the system, and other clients that of one node (`results.measure.availability`).

    Attributes:
        via: The name of the node that the last operation was sent to; None if the client stays at `node` after all.
    """

    via: str | None


def via_of(client: Client | None) -> str | None:
    """Returns the node that a routed client asked; None for all other clients."""
    via = getattr(client, "via", None)
    return via if isinstance(via, str) else None


class ClientFactory(Protocol):
    """Makes the client of a process."""

    def __call__(self, process: int, node: Node) -> Client:
        """Returns a client for `process` at `node`; it connects on first use."""
        ...
