"""The lines on the stdin and stdout of a node, with their times: what the program got and what it said.

A line of the transcript is `SECONDS > LINE` for stdin, and `SECONDS < LINE` for stdout. The file has no name, so no program can
put a link or a FIFO in its place.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

IN: Final = ">"
OUT: Final = "<"
MAX_BYTES: Final = 256 << 20


class Transcript:
    """The transcript of a node, in a file."""

    def __init__(self) -> None:
        """Begins an empty transcript."""
        self._file = tempfile.TemporaryFile(prefix="labrys-messages-")  # noqa: SIM115 - `close` closes it
        self._left = MAX_BYTES

    def add(self, now_ns: int, arrow: str, line: bytes) -> None:
        """Adds a line. After `MAX_BYTES` it adds nothing more, but a note."""
        if self._left < 0:
            return
        text = f"{now_ns / NS_PER_S:.6f} {arrow} ".encode() + line + b"\n"
        self._left -= len(text)
        self._file.write(text if self._left >= 0 else b"(Labrys keeps no more lines of this node)\n")

    def copy(self, target: Path) -> None:
        """Copies it to a file.

        Raises:
            FileNotFoundError: It is empty.
        """
        if not self._file.tell():
            raise FileNotFoundError("the node has no messages")
        with target.open("wb") as file:
            self._file.seek(0)
            shutil.copyfileobj(self._file, file)
        self._file.seek(0, 2)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
