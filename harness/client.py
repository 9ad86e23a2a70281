"""The interface of a client of a system under test.

A client is one connection of one process, over the system's own protocol and never over SSH. Its typing of outcomes is
the soundness of the whole tool: `Fail` only if the request certainly had and will have no effect, `Info` in every
case of doubt. An exception that leaves `invoke` is recorded as `Info` by the interpreter; a client need not catch what it
does not understand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harness.node import Node
    from harness.op import Invocation, Outcome


class Client(Protocol):
    """One process' connection to the system.

    Attributes:
        node: The node this client belongs to; recorded with each of its operations.
    """

    node: Node

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation. Called for one operation at a time; may be cancelled at the interpreter's time-out."""
        ...

    async def close(self) -> None:
        """Releases the connection; called once, also after a cancelled `invoke`. Must not block for long."""
        ...


class RoutedClient(Client, Protocol):
    """A client that chooses the node it asks, e.g. because it follows the leader.

    Such clients measure availability: they ask the system, where other clients ask one node (`results.availability`).

    Attributes:
        via: The name of the node that the last operation was sent to; None if the client stays at `node` after all.
    """

    via: str | None


def via_of(client: Client | None) -> str | None:
    """Returns the node that a client asked, if it chooses its node; None for all others."""
    via = getattr(client, "via", None)
    return via if isinstance(via, str) else None


class ClientFactory(Protocol):
    """Makes the client of a process."""

    def __call__(self, process: int, node: Node) -> Client:
        """Returns a client for `process`, placed at `node`; it connects when it is first used."""
        ...
