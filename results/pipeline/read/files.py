"""What the job asks of file systems, whichever they are.

The law: a file that others look for appears whole or not at all. Rows of operations are never read through this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or a folder.

    Attributes:
        path: Its whole URI.
        name: The last part of it.
        is_folder: Whether it is a folder.
        size: Bytes.
        modified_ms: When it was changed last, as its file system says.
    """

    path: str
    name: str
    is_folder: bool
    size: int
    modified_ms: int


class Files(Protocol):
    """Some file systems. Paths are URIs as Hadoop writes them, e.g. `file:/tmp/store`.

    Each method raises `BadInput` where the path cannot be read or written.
    """

    def glob(self, pattern: str) -> list[Entry]:
        """Returns what a path or a pattern of Hadoop leads to, sorted; a path that exists is never taken for a pattern."""
        ...

    def folder(self, path: str) -> list[Entry]:
        """Returns what a folder holds, sorted."""
        ...

    def exists(self, path: str) -> bool:
        """Says whether there is such a file or folder."""
        ...

    def qualified(self, path: str) -> str:
        """Returns a path's whole URI."""
        ...

    def read(self, path: str, limit: int) -> bytes:
        """Returns the first bytes of a file, at most `limit`."""
        ...

    def tail(self, path: str, size: int, limit: int) -> bytes:
        """Returns the last bytes of a file of this size, at most `limit`."""
        ...

    def create(self, path: str, content: bytes) -> bool:
        """Writes a file that must not be there yet; says whether it was not."""
        ...

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file whole, over the one that is there."""
        ...

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with all that it holds; nothing if there is none."""
        ...
