"""When each bookie got its first request to fence a ledger, and from which node, as the logs of the bookies say.

A bookie tells nobody whether a ledger is fenced, but it logs each request with the address of the client. Source: BookKeeper
4.17.3, `ReadEntryProcessorV3`. The age of a line is the difference of two times of one clock, that of the bookie's node. So it
is wrong only if a fault moved this clock since.
"""

from __future__ import annotations

import asyncio
import shlex
from datetime import datetime
from typing import TYPE_CHECKING, Final

from clusters.systems.bookkeeper.daemons import log_of
from harness.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node
    from harness.system import System

REQUESTED: Final = "edger fence request received"
FRESH_S: Final = 5.0
TIMEOUT_S: Final = 10.0
MOST_LINES: Final = 20_000
# For each ledger, the time of the first request, the ledger, and the address.
_FIRST: Final = f'/{REQUESTED} for ledger: / && !seen[$2]++ {{ split($1, words, " "); print words[1], $2, $3 }}'


class Fences:
    """The first requests to fence each ledger, for all clients of a run."""

    def __init__(self, system: System, bookies: Sequence[Node]) -> None:
        self._system = system
        self._bookies = bookies
        self._names = {node.address: node.name for node in system.cluster.nodes}
        self._read_s: float | None = None
        self._first: dict[
            str, Mapping[int, tuple[float, str]]
        ] = {}  # by bookie and ledger: the time on the loop's clock
        self._reading = asyncio.Lock()

    async def of(self, ledger: int) -> tuple[list[list[str | int]], list[str]]:
        """Returns the bookies that were asked to fence a ledger, with the age in milliseconds and the node of the request.

        Also returns the bookies whose logs could not be read. The logs are read again after `FRESH_S`.
        """
        loop = asyncio.get_running_loop()
        async with self._reading:
            if self._read_s is None or loop.time() - self._read_s > FRESH_S:
                fences = await asyncio.gather(*(asyncio.to_thread(self._read, node, loop) for node in self._bookies))
                self._first = {
                    node.name: first for node, first in zip(self._bookies, fences, strict=True) if first is not None
                }
                self._read_s = loop.time()
        asked: list[list[str | int]] = []
        for bookie, first in self._first.items():
            if (request := first.get(ledger)) is not None:
                ago_s = max(0.0, loop.time() - request[0])
                asked.append([bookie, round(ago_s * 1000), request[1]])
        return asked, [node.name for node in self._bookies if node.name not in self._first]

    def _read(self, node: Node, loop: asyncio.AbstractEventLoop) -> Mapping[int, tuple[float, str]] | None:
        """Returns the first request for each ledger in the log of a bookie; None if it cannot be read."""
        log = shlex.quote(log_of("bookie"))
        search = f"awk -F 'for ledger: | from address: /' '{_FIRST}' {log} | head -n {MOST_LINES}"
        command = f"[ -r {log} ] && date +%s.%N && {search}"
        now_s = loop.time()
        try:
            output = self._system.tool(node, command, timeout_s=TIMEOUT_S).stdout
            clock, *lines = output.splitlines()
            first: dict[int, tuple[float, str]] = {}
            for line in lines:
                time, ledger, address = line.split(" ")
                ago_s = float(clock) - datetime.fromisoformat(time).timestamp()
                host = address.rsplit(":", 1)[0]
                first.setdefault(int(ledger), (now_s - ago_s, self._names.get(host, host)))
        except (NodeError, ValueError):
            return None
        return first
