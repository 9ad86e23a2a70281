"""The lines on the stdin and stdout of a node, with their times: what the program got and what it said.

A line of the transcript is `SECONDS > LINE` for stdin, and `SECONDS < LINE` for stdout. The file has no name, so no program can
put a link or a FIFO in its place.

A transcript has a limit, as the log of stderr has. Its last line says what is left out, with a digest of it. So two runs whose
transcripts differ only there still differ. `results.logs.transcripts` reads this line.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from typing import TYPE_CHECKING, Final

from harness.units import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

IN: Final = ">"
OUT: Final = "<"
MAX_BYTES: Final = 64 << 20  # of the transcript of a node


class Transcript:
    """The transcript of a node, in a file."""

    def __init__(self) -> None:
        """Begins an empty transcript."""
        self._file = tempfile.TemporaryFile(prefix="labrys-messages-")  # noqa: SIM115 - `close` closes it
        self._kept = 0  # bytes
        self._left_ns: int | None = None  # the time of the first line that is left out
        self._left_lines = self._left_bytes = 0
        self._digest = hashlib.sha256()

    def add(self, now_ns: int, arrow: str, line: bytes) -> None:
        """Adds a line. The first one that `MAX_BYTES` have no room for is left out, and so are all after it."""
        text = f"{now_ns / NS_PER_S:.6f} {arrow} ".encode() + line + b"\n"
        if self._left_ns is None and self._kept + len(text) <= MAX_BYTES:
            self._kept += len(text)
            self._file.write(text)
            return
        self._left_ns = now_ns if self._left_ns is None else self._left_ns
        self._left_lines += 1
        self._left_bytes += len(text)
        self._digest.update(text)

    @property
    def left_out(self) -> str:
        """Returns what is left out, as a clause; empty if nothing is."""
        if self._left_ns is None:
            return ""
        lines = f"{self._left_lines} line{'' if self._left_lines == 1 else 's'}"
        return f"{lines}, {self._left_bytes} bytes, from {self._left_ns / NS_PER_S:.6f} s on"

    def copy(self, target: Path) -> None:
        """Copies it to a file, with a last line about what is left out.

        Raises:
            FileNotFoundError: It is empty.
        """
        if not self._file.tell() and not self.left_out:
            raise FileNotFoundError("the node has no messages")
        with target.open("wb") as file:
            self._file.seek(0)
            shutil.copyfileobj(self._file, file)
            if self.left_out:
                file.write(f"(Labrys left out {self.left_out}; SHA-256 {self._digest.hexdigest()})\n".encode())
        self._file.seek(0, 2)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
