"""The requests of the clients, which any node may answer.

A node can hand a request on with the client's name as its sender, and the node that gets it answers the client. In Maelstrom,
an answer belongs to a request by the name of the client and the number of the message alone, so this works there.
"""

from __future__ import annotations

import enum
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.systems.maelstrom.vocabulary import Body

MAX_ANSWERED: Final = 100_000  # answered requests that are remembered, to tell a second answer from an unasked one


class Missing(enum.Enum):
    """Why there is no request that an answer belongs to."""

    ANSWERED = "answered"
    UNASKED = "unasked"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request without an answer.

    Attributes:
        node: The node that the client sent it to.
        number: Its number.
        check: Checks an answer; raises `Unfit`.
    """

    node: str
    number: int
    check: Callable[[Body], None]


class Clients:
    """The clients of a run, and their requests.

    Attributes:
        names: The names of the clients so far.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._open: dict[tuple[str, int], Asked] = {}
        self._answered: OrderedDict[tuple[str, int], None] = OrderedDict()

    def begin(self) -> str:
        """A client begins. Returns its name: `c1`, `c2`, ..."""
        name = f"c{len(self.names) + 1}"
        self.names.add(name)
        return name

    def ask(self, client: str, asked: Asked) -> None:
        """A client has sent a request."""
        self._open[client, asked.number] = asked

    def take(self, client: str, number: object) -> Asked | Missing:
        """Returns the request that an answer belongs to, which is answered from now on.

        Args:
            client: The name of the client.
            number: The `in_reply_to` of the answer.
        """
        if not isinstance(number, int) or isinstance(number, bool):
            return Missing.UNASKED
        key = (client, number)
        asked = self._open.pop(key, None)
        if asked is None:
            return Missing.ANSWERED if key in self._answered else Missing.UNASKED
        self._answered[key] = None
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)
        return asked
