"""The lines on the stdin and stdout of a node, with their times: what the program got and what it said.

A line of the transcript is `SECONDS > LINE` for stdin, and `SECONDS < LINE` for stdout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

IN: Final = ">"
OUT: Final = "<"
MAX_BYTES: Final = 256 << 20


class Transcript:
    """The transcript of a node, in a file."""

    def __init__(self, path: Path) -> None:
        """Begins an empty transcript."""
        self._path = path
        self._file = path.open("wb")
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
        self._file.flush()
        content = self._path.read_bytes()
        if not content:
            raise FileNotFoundError(self._path)
        target.write_bytes(content)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
