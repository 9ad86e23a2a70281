"""Damage to a file of a stopped process: what a fault asks for, and what was read back from the file.

The model is Jepsen's `jepsen.nemesis.file`: a file is chunks of one size, with numbers from 0. A helical fault damages other
chunks on each node: of n nodes, the i-th one changes only chunks whose number has the remainder i after division by n. So each
chunk stays whole on all nodes but one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class How(StrEnum):
    """What happens to a file."""

    CUT = "cut"
    """It loses its last written bytes."""
    FLIP = "flip"
    """One bit flips in each of some bytes."""
    COPY = "copy"
    """Some chunks get the content of other chunks of the file."""
    ROLL_BACK = "roll-back"
    """Some chunks, or the whole file, get the content that they had when the files were kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaging:
    """The damage that a fault asks for on one node.

    Attributes:
        how: What happens to the file.
        pattern: A pattern of names of files, or of paths in the directory, as in a shell.
        pick: The choice among the files that can have this damage, from 0 to 1.
        amount: The number of bytes to cut off, of bytes with a flip, or of chunks.
        seed: The seed of the draws.
        chunk_bytes: The size of a chunk. 0: the whole file is rolled back.
        share: The number of the node, from 0, and the number of nodes, for a helical fault. (0, 1): each chunk may change.
    """

    how: How
    pattern: str
    pick: float
    amount: int
    seed: int = 0
    chunk_bytes: int = 0
    share: tuple[int, int] = (0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The damage of a file, read back from it.

    Attributes:
        file: Its absolute path.
        before_bytes: Its size before.
        after_bytes: Its size after.
        written_bytes: Its size before, up to the last byte that is not zero.
        meant: The number of places that were to change.
        places: The offsets of those that have the new content, and had another one before.
        length_bytes: The size of each place; 0: to the end of the file.
        sources: For each place, the offset of the content that was copied over it; empty without copies.
        differ: The number of bytes that differ from those before.
    """

    file: str
    before_bytes: int
    after_bytes: int
    written_bytes: int = 0
    meant: int = 0
    places: Sequence[int] = ()
    length_bytes: int = 1
    sources: Sequence[int] = ()
    differ: int = 0
