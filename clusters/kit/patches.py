"""Patches of released source files: unified diffs without context lines, as `git diff -U0` writes them.

A patch shows nothing of the sources but the lines that it removes. It names the content of each file (`index`), so it fits one
release alone, and its line numbers are exact. Its paths are those of the authors' repository, so `git apply --unidiff-zero`
applies it there.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_FILE: Final = re.compile(
    r"^diff .*\nindex (?P<blob>[0-9a-f]{7,40})\.\..*\n--- a/(?P<path>\S+)\n\+\+\+ .*\n", re.MULTILINE
)
_HUNK: Final = re.compile(r"@@ -(?P<line>\d+)(?:,\d+)? \+\S+ @@.*\n(?P<removed>(?:-.*\n)*)(?P<added>(?:\+.*\n)*)")
_JAVA: Final = "/src/main/java/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A change of one place.

    Attributes:
        start: The number of lines before it.
        removed: The lines that it removes, with their ends.
        added: The lines that come there, with their ends.
    """

    start: int
    removed: Sequence[str]
    added: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a patch does to one file.

    Attributes:
        module: The folder of the file's module in the authors' repository.
        path: The path of the file below the Java sources of the module.
        blob: The first digits of the digest that git gives to the content of the file.
        hunks: The changes.
    """

    module: str
    path: str
    blob: str
    hunks: Sequence[Hunk]


def changes(text: str) -> Iterator[Change]:
    """Yields what a patch does to each of its files.

    Args:
        text: The patch.

    Raises:
        ValueError: It has something else than such changes.
    """
    at = 0
    while at < len(text):
        head = _FILE.match(text, at)
        if head is None:
            raise ValueError(f"expected the head of a file in a patch, got {text[at : at + 80]!r}")
        at, hunks = head.end(), []
        while (hunk := _HUNK.match(text, at)) is not None:
            removed, added = (
                [line[1:] for line in hunk[name].splitlines(keepends=True)] for name in ("removed", "added")
            )
            hunks.append(Hunk(start=int(hunk["line"]) - bool(removed), removed=removed, added=added))
            at = hunk.end()
        module, _, path = head["path"].partition(_JAVA)
        yield Change(module=module, path=path, blob=head["blob"], hunks=hunks)


def changed(source: bytes, of_file: Iterable[Change]) -> bytes:
    """Returns a source file with changes, each of which names lines of the file as it is released.

    Args:
        source: The content of the file.
        of_file: The changes. Where two add lines at one place, those of the first come first.

    Raises:
        ValueError: A change is for another content, or two of them change the same lines.
    """
    blob = hashlib.sha1(b"blob %d\0%b" % (len(source), source), usedforsecurity=False).hexdigest()
    lines = re.findall(r"[^\n]*\n|[^\n]+$", source.decode())
    made: list[str] = []
    hunks: list[Hunk] = []
    for change in of_file:
        if not blob.startswith(change.blob):
            raise ValueError(f"the patch is for {change.path} {change.blob}, and this is {blob[: len(change.blob)]}")
        hunks += change.hunks
    end = 0
    for hunk in sorted(hunks, key=lambda hunk: (hunk.start, len(hunk.removed))):
        start, after = hunk.start, hunk.start + len(hunk.removed)
        if start < end or lines[start:after] != hunk.removed:
            raise ValueError(f"the lines from {start + 1} on are not those that the patch removes")
        made += itertools.chain(lines[end:start], hunk.added)
        end = after
    return "".join([*made, *lines[end:]]).encode()
