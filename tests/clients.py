"""When the operations of a random history begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


class Clients:
    """A few clients, each of which does one operation after the other.

    Operations lie around moments that go on, so that neighbours overlap. Who draws what they do in the order of these moments
    gets a history that is mostly honest.
    """

    def __init__(self, random: Random, *, ties: bool = False) -> None:
        """Begins with one to four clients.

        Args:
            random: What is drawn from.
            ties: Whether events may have one index.
        """
        self._random = random
        self._ties = ties
        self._free = dict.fromkeys(range(random.randint(1, 4)), 0)
        self._now = 0

    def next(self, number: int) -> tuple[int, int, int] | None:
        """Returns the process of an operation, its start and its end; None if no process is left.

        Args:
            number: The operation's number.
        """
        random = self._random
        if not self._free:
            return None
        process = random.choice(list(self._free))
        self._now += random.randrange(3)
        middle = max(self._now, self._free[process])
        start = middle - random.randrange(min(4, middle - self._free[process] + 1))
        end = middle + random.randrange(6)
        return (process, start, end) if self._ties else (process, start * 100 + 2 * number, end * 100 + 2 * number + 1)

    def done(self, process: int, end: int, *, crashed: bool) -> None:
        """Frees a process from the end of its operation on; for ever if that did not return."""
        if crashed:
            del self._free[process]
        else:
            self._free[process] = end if self._ties else end // 100 + 1
