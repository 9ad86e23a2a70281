"""What all parts of a client node share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusters.sim.host import Reply

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from clusters.sim.host import Host
    from clusters.systems.sim_bookkeeper.layout import Layout
    from clusters.systems.sim_bookkeeper.messages import Answer
    from clusters.systems.sim_bookkeeper.options import SimBookkeeperOptions


@dataclass(slots=True)
class Setting:
    """What all parts of a client node share.

    Attributes:
        host: The machine.
        options: The configuration.
        layout: The parts of the nodes.
        key: The key of the log.
    """

    host: Host
    options: SimBookkeeperOptions
    layout: Layout
    key: str

    def to_bookies(self, bookies: Iterable[str], message: Any, without: AbstractSet[str] = frozenset()) -> None:
        """Sends a message to these bookies but some."""
        for bookie in bookies:
            if bookie not in without:
                self.host.send(bookie, message)

    def answer(self, client: str, request: int, answer: Answer) -> None:
        """Answers a client's request."""
        self.host.send(client, Reply(request, answer))
