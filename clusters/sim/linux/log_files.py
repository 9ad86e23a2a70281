"""The logs of programs in virtual time, while they run: their last lines, and waits for a line."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING, Final

from harness.console.below import open_file
from harness.ends import MAX_TAIL, last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet
    from pathlib import Path

MAX_BYTES: Final = 64 << 20  # that are read at once


class LogFiles:
    """The logs of the nodes of a run."""

    def __init__(self, path_of: Callable[[str, str], Path]) -> None:
        """Reads nothing yet.

        Args:
            path_of: Returns where this process sees a file of a node.
        """
        self._path_of = path_of
        self._readers: dict[asyncio.Future[tuple[str, str]], tuple[AbstractSet[str], re.Pattern[str]]] = {}
        self._read: dict[tuple[str, str], int] = {}

    @property
    def are_awaited(self) -> bool:
        """Returns whether somebody waits for a line."""
        return bool(self._readers)

    async def line(
        self, nodes: AbstractSet[str], pattern: str, logs: Callable[[], Iterable[tuple[str, str]]]
    ) -> tuple[str, str]:
        """Waits for a line in the log of one of some nodes; what came before does not count.

        Args:
            nodes: The names of the nodes.
            pattern: A regular expression that is searched in each line.
            logs: Returns the nodes and the logs that there are now.

        Returns:
            The node and the line.
        """
        future: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        if not self._readers:
            self._read = {}
        self.look(logs())
        self._readers[future] = (nodes, re.compile(pattern))
        try:
            return await future
        finally:
            del self._readers[future]

    def look(self, logs: Iterable[tuple[str, str]]) -> bool:
        """Reads what has come to some logs, for those who wait. Returns whether there was a line for one of them."""
        was_there = False
        for node, log in logs:
            try:
                with open_file(self._path_of(node, ""), self._path_of(node, log)) as file:
                    begin = self._read.setdefault((node, log), file.seek(0, os.SEEK_END))
                    file.seek(begin)
                    text, _, _ = file.read(MAX_BYTES).rpartition(b"\n")
            except OSError:
                continue  # the process has not made it yet, or has put a link in its place
            self._read[node, log] = begin + len(text) + bool(text)
            for line in text.decode(errors="replace").splitlines():
                for future, (nodes, pattern) in self._readers.items():
                    if node in nodes and not future.done() and pattern.search(line):
                        future.set_result((node, line))
                        was_there = True
        return was_there

    def last(self, node: str, log: str) -> tuple[str, ...]:
        """Returns the last lines of a log; nothing if the process has not made it, or has put a link in its place."""
        try:
            with open_file(self._path_of(node, ""), self._path_of(node, log)) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_TAIL))
                return last_lines(file.read(MAX_TAIL))
        except OSError:
            return ()
