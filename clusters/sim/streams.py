"""Connections that carry bytes in order, as TCP does, over the simulated network.

The network loses, doubles, delays and reorders packets. A connection delivers each packet once and in order. If the network
loses a packet, the sender repeats it after a time-out that doubles, and the later packets wait. So after a cut, a connection
goes on where it was, as late as one of TCP. There are no windows, no acknowledgements and no keep-alives, and a sender never
gives up. If a process ends, the kernel of its node closes its connections.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.sim.world import SimWorld

REPEAT_NS: Final = 200 * NS_PER_MS  # Linux: the smallest time-out of a packet with data
CONNECT_REPEAT_NS: Final = 1000 * NS_PER_MS  # Linux: the first time-out of a packet that opens a connection
MAX_REPEAT_NS: Final = 120_000 * NS_PER_MS  # Linux: the largest time-out
REFUSED, RESET, CLOSED = "refused", "reset", "closed"


class Owner(Protocol):
    """The process or the client that uses one end of a connection."""

    def opened(self, end: End) -> None:
        """The peer has accepted the connection."""
        ...

    def arrived(self, end: End, data: bytes) -> None:
        """Bytes have arrived."""
        ...

    def closed(self, end: End, why: str) -> None:
        """The connection is closed: `REFUSED`, `RESET` or `CLOSED`."""
        ...


class End:
    """One end of a connection.

    Attributes:
        node: Its node; None for a client, whose packets no fault affects.
        number: The number by which its owner knows it.
        peer: The other end; None before the peer has accepted.
        open: Whether its owner can still use it.
        owner: Receives its events.
    """

    def __init__(
        self,
        world: SimWorld,
        node: str | None,
        number: int,
        owner: Owner,
        *,
        to: str | None,
        message: Callable[[bytes], object] = bytes,
    ) -> None:
        """Makes an end without a peer.

        Args:
            world: The world of the network.
            node: Its node; None for a client.
            number: The number by which its owner knows it.
            owner: Receives its events.
            to: The node of the other end; None for a client.
            message: Returns the message that bytes are, for those who wait for a rare one; see `clusters.sim.rarity`.
        """
        self.node = node
        self.number = number
        self.peer: End | None = None
        self.open = True
        self._world = world
        self.owner = owner
        self._to = to
        self._message = message
        self._sent = 0
        self._expected = 0
        self._early: dict[int, tuple[Callable[..., None], tuple[Any, ...]]] = {}
        self._queue: deque[tuple[Callable[..., None], tuple[Any, ...], int]] = deque()
        self._repeats_ns = 0

    def connect(self, accept: Callable[[End], End | None]) -> None:
        """Asks the node at the other end to accept the connection.

        Args:
            accept: Is called when the request arrives. Returns the end there; None if nobody listens.
        """
        self._send(self._asked, (accept,), CONNECT_REPEAT_NS)

    def _asked(self, accept: Callable[[End], End | None]) -> None:
        """The request to connect has arrived at the other node."""
        other = accept(self)
        if other is None:
            if self.node is None or self._to is None:
                self._carry(self._lost, (REFUSED,))
            elif not self._world.network.send(self._to, self.node, self._lost, (REFUSED,)):
                self._world.later(CONNECT_REPEAT_NS, self._ask_again, (accept,))
            return
        self.peer, other.peer = other, self
        other._send(self._opened, (), CONNECT_REPEAT_NS)  # noqa: SLF001 - the other end of this connection

    def _ask_again(self, accept: Callable[[End], End | None]) -> None:
        """The refusal was lost, so the kernel of this node has no answer, and repeats its request."""
        if self.open:
            self.connect(accept)

    def send(self, data: bytes) -> None:
        """Sends bytes; does nothing if this end is closed."""
        if not self.open or self.peer is None:
            return
        held_ns = 0
        if self._world.rarity.counts and self.node is not None and self._to is not None:
            held_ns = self._world.rarity.held_ns(self._world.now_ns, self.node, self._to, self._message(data))
        if self._world.awaited is not None and self.node is not None and self._to is not None:
            held_ns = max(held_ns, self._world.awaited.held_ns(self._world.now_ns, self.node, self._to, data))
        arrive, arguments = self.peer._arrived, (data,)  # noqa: SLF001 - the other end of this connection
        if held_ns:
            self._world.later(held_ns, self._send, (arrive, arguments, REPEAT_NS))
        else:
            self._send(arrive, arguments, REPEAT_NS)

    def close(self) -> None:
        """Closes this end. The peer learns of it after it has received all bytes."""
        if self.open:
            self.open = False
            if self.peer is not None:
                self._send(self.peer._lost, (CLOSED,), REPEAT_NS)  # noqa: SLF001

    def _opened(self) -> None:
        if self.open:
            self.owner.opened(self)
        else:
            self._reset()

    def _arrived(self, data: bytes) -> None:
        if self.open:
            self.owner.arrived(self, data)
        else:
            self._reset()

    def _reset(self) -> None:
        """Tells the peer that nobody uses this end any more. If the packet is lost, the next one of the peer causes another."""
        if self.peer is not None:
            self._carry(self.peer._lost, (RESET,))  # noqa: SLF001

    def _lost(self, why: str) -> None:
        if self.open:
            self.open = False
            self.owner.closed(self, why)

    def _send(self, arrive: Callable[..., None], arguments: tuple[Any, ...], repeat_ns: int) -> None:
        """Sends a packet after all earlier ones."""
        if self._queue or not self._carried(arrive, arguments, repeat_ns):
            self._queue.append((arrive, arguments, repeat_ns))

    def _flush(self) -> None:
        """Sends the packets that wait, until the network loses one."""
        while self._queue and self._carried(*self._queue[0]):
            self._repeats_ns = 0
            self._queue.popleft()

    def _carried(self, arrive: Callable[..., None], arguments: tuple[Any, ...], repeat_ns: int) -> bool:
        """Sends the next packet, and returns whether it arrives. If the network loses it, `_flush` follows after a time-out."""
        if self._carry(self.ordered, (self._sent, arrive, arguments)):
            self._sent += 1
            return True
        self._repeats_ns = min(self._repeats_ns * 2 or repeat_ns, MAX_REPEAT_NS)
        self._world.later(self._repeats_ns, self._flush, ())
        return False

    def _carry(self, arrive: Callable[..., None], arguments: tuple[Any, ...]) -> bool:
        """Puts a packet on the network; returns whether it arrives."""
        if self.node is None or self._to is None:
            self._world.later(self._world.links.near_ns(), arrive, arguments)
            return True
        return self._world.network.send(self.node, self._to, arrive, arguments)

    def ordered(self, number: int, arrive: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """A packet of this end has arrived at the other one. Handles it when all earlier ones have arrived."""
        if number == self._expected and not self._early:  # most packets
            self._expected += 1
            arrive(*arguments)
            return
        if number < self._expected or number in self._early:
            return
        self._early[number] = (arrive, arguments)
        while (arrival := self._early.pop(self._expected, None)) is not None:
            self._expected += 1
            arrival[0](*arrival[1])

    def foresee(self, number: int, arrive: Callable[..., None], arguments: tuple[Any, ...]) -> Foreseen | None:
        """Takes a packet of this end before the time of its arrival, if only the owner of the other end will notice it.

        Then the caller tells this owner at the time of the arrival, or calls `Foreseen.put_back`. No code of this class may run
        before.

        Args:
            number: The arguments of `ordered`, which the event would call.
            arrive: As above.
            arguments: As above.

        Returns:
            What will arrive; None if the packet does something else too.
        """
        peer = self.peer
        if number != self._expected or self._early or peer is None or not peer.open:
            return None
        if arrive not in {peer._arrived, peer._lost}:  # noqa: SLF001 - the other end of this connection
            return None
        self._expected += 1
        return Foreseen(self, peer, arguments[0])

    def put_back(self) -> None:
        """Undoes the last `foresee`."""
        self._expected -= 1


class Foreseen(NamedTuple):
    """A packet that its receiver gets before the event of its arrival.

    Attributes:
        sender: The end that sent it.
        receiver: The other end.
        content: The bytes; if the packet ends the connection, the reason.
    """

    sender: End
    receiver: End
    content: bytes | str
