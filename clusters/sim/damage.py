"""What a fault changes in a file of a simulated node: the draws of places, and the content that goes there.

The functions are pure: they read a file by a function, and return what to write. `clusters.sim.disk` and `clusters.sim.folder`
write it, and read it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from harness.damage import Changed, How
from harness.errors import NodeError
from harness.randomness import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from harness.damage import Damaging

    Read = Callable[[int, int], bytes]  # by an offset and a length

_TRIES: Final = 256  # chunks to look at, and sources to draw for a chunk


class Edit(NamedTuple):
    """Bytes that go into a file.

    Attributes:
        at: The offset.
        content: The bytes.
        source: The offset that they are copied from; None if they are no copy.
    """

    at: int
    content: bytes
    source: int | None = None


def edits(damaging: Damaging, size: int, read: Read, earlier: Read | None = None) -> list[Edit]:
    """Returns what to write into a file, in the order of the offsets; nothing if it cannot have this damage.

    Args:
        damaging: The damage: flips, copies, or chunks that are rolled back.
        size: The size of the part of the file that was written.
        read: Reads the file as it is.
        earlier: Reads the file as it was when the files were kept.
    """
    if damaging.how is How.FLIP:
        flipped = flips(size, damaging.amount, damaging.seed, chunk_bytes=damaging.chunk_bytes, share=damaging.share)
        return [Edit(offset, bytes((read(offset, 1)[0] ^ bit,))) for offset, bit in sorted(flipped.items())]
    draws = stream(damaging.seed, "chunks")
    first, count = damaging.share
    own = range(first, -(-size // damaging.chunk_bytes), count)
    if damaging.how is How.ROLL_BACK:
        changed_chunks = [edit for chunk in own if (edit := _earlier(damaging, chunk, size, read, earlier)) is not None]
        return sorted(draws.sample(changed_chunks, min(len(changed_chunks), damaging.amount)))
    copies: list[Edit] = []
    for chunk in draws.sample(own, min(len(own), max(damaging.amount, _TRIES))):
        edit = _copied(damaging, chunk, size, read, draws)
        copies += [] if edit is None else [edit]
        if len(copies) == damaging.amount:
            break
    return sorted(copies)


def _copied(damaging: Damaging, chunk: int, size: int, read: Read, draws: Random) -> Edit | None:
    """Returns a copy of another chunk over this one; None if no drawn one has another content."""
    at, length = chunk * damaging.chunk_bytes, damaging.chunk_bytes
    before = read(at, min(length, size - at))
    others = range(-(-size // length))
    for other in draws.sample(others, min(len(others), _TRIES)):
        content = read(other * length, min(len(before), size - other * length))
        if other != chunk and content != before[: len(content)]:
            return Edit(at, content, other * length)
    return None


def _earlier(damaging: Damaging, chunk: int, size: int, read: Read, earlier: Read | None) -> Edit | None:
    """Returns the earlier content of a chunk, as far as there was one; None if it is the same."""
    at = chunk * damaging.chunk_bytes
    content = b"" if earlier is None else earlier(at, min(damaging.chunk_bytes, size - at))
    return Edit(at, content) if content != read(at, len(content)) else None


def flips(
    size: int, amount: int, seed: int, *, chunk_bytes: int = 0, share: tuple[int, int] = (0, 1)
) -> Mapping[int, int]:
    """Returns the bits that change in a file: for each place, the value to which only its bit is set.

    Args:
        size: The size of the part of the file that was written.
        amount: The number of places; at most as many are returned as there may change.
        seed: The seed of the draws.
        chunk_bytes: The size of a chunk.
        share: Which chunks may change; see `harness.damage.Damaging`.
    """
    draws = stream(seed, "bits")
    first, count = share
    if count == 1:
        places = draws.sample(range(size), min(amount, size))
    else:
        whole, rest = divmod(size, chunk_bytes)
        own = len(range(first, whole, count)) * chunk_bytes + (rest if whole % count == first else 0)
        drawn = [divmod(number, chunk_bytes) for number in draws.sample(range(own), min(amount, own))]
        places = [(first + number * count) * chunk_bytes + rest for number, rest in drawn]
    return {offset: 1 << draws.randrange(8) for offset in places}


def picked(pick: float, count: int) -> int:
    """Returns the place of the chosen one of several files."""
    return min(int(pick * count), count - 1)


def reader(content: bytes | bytearray) -> Read:
    """Returns a function that reads bytes by an offset and a length."""
    return lambda at, length: bytes(content[at : at + length])


def unable(node: str, damaging: Damaging, folder: str, *, matching: int) -> NodeError:
    """Returns the error that no file can have a damage.

    Args:
        node: The name of the node.
        damaging: The damage.
        folder: The path of the folder with the files.
        matching: The number of files whose names match.
    """
    if not matching or damaging.how in {How.CUT, How.FLIP}:
        return NodeError(node, f"no file with data matches {damaging.pattern} in {folder}")
    lacks = "changed since the files were kept" if damaging.how is How.ROLL_BACK else "has two different chunks"
    share, count = damaging.share
    own = f" in the chunks of this node, those with number {share} of each {count}" if count > 1 else ""
    return NodeError(node, f"none of the {matching} files in {folder} that match {damaging.pattern} {lacks}{own}")


def changed(
    damaging: Damaging,
    path: str,
    made: Sequence[Edit],
    *,
    written_bytes: int,
    before: Read,
    now: Read,
    sizes: tuple[int, int],
) -> Changed:
    """Returns the damage as it was read back.

    Args:
        damaging: The damage that was asked for.
        path: The path of the file.
        made: What was written.
        written_bytes: The size of the file before, up to the last byte that is not zero.
        before: Reads the file as it was, at the places of `made`.
        now: Reads the file as it is.
        sizes: The sizes before and after.
    """
    good = []
    differ = abs(sizes[0] - sizes[1])
    for edit in made:
        was, content = before(edit.at, len(edit.content)), now(edit.at, len(edit.content))
        differ += sum(one != other for one, other in zip(was, content, strict=False))
        if content == edit.content and (was != content or sizes[0] != sizes[1]):
            good.append(edit)
    return Changed(
        file=path,
        before_bytes=sizes[0],
        after_bytes=sizes[1],
        written_bytes=written_bytes,
        meant=len(made),
        places=tuple(edit.at for edit in good),
        length_bytes=1 if damaging.how is How.FLIP else damaging.chunk_bytes,
        sources=tuple(edit.source for edit in good if edit.source is not None),
        differ=differ,
    )
