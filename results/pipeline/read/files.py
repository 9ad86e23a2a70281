"""The protocol of a file system, as far as the job needs it.

The rule: a file that others look for appears whole or not at all. The job never reads rows of operations through this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file or a folder.

    Attributes:
        path: Its whole URI.
        name: The last part of the URI.
        is_folder: Whether it is a folder.
        size: Bytes.
        modified_ms: The time of the last change in its file system, in ms since 1970.
    """

    path: str
    name: str
    is_folder: bool
    size: int
    modified_ms: int


class Files(Protocol):
    """File systems. Paths are URIs as Hadoop writes them, e.g. `file:/tmp/store`.

    Each method raises `BadInput` if the path cannot be read or written.
    """

    def glob(self, pattern: str) -> list[Entry]:
        """Returns the entries of a path or a Hadoop pattern, sorted; a path that exists is never a pattern."""
        ...

    def folder(self, path: str) -> list[Entry]:
        """Returns the entries of a folder, sorted."""
        ...

    def exists(self, path: str) -> bool:
        """Returns whether such a file or folder exists."""
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
        """Writes a new file; returns False if it exists already."""
        ...

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file, and replaces an existing one atomically."""
        ...

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with its contents; does nothing if there is none."""
        ...
