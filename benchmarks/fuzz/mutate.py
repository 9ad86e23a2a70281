"""Makes nearly correct files: replaces values in documents, and changes bytes, lines and words in texts.

All randomness comes from the given `Random`, so each case is reproducible.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


def deep(depth: int) -> list[Any]:
    """Returns a list with nesting `depth`."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


TEXTS: Sequence[str] = (
    "", "x", "n1", "n9", "0", "-1", "nan", "inf", "x" * 300, "x" * 70_000, "\x1b[2J\x1b]0;owned\x07", "\u202eevil", "a\nb",
    "\x00", "\ud800", "\x9b2J", "../../../etc/passwd", "/proc/self/mem", "/dev/full", "~nosuchuser/x", "[red]x[/red]", "[/]",
    "<script>alert(1)</script>", "]]>", "%s%n{0}", "a..b", "a" * 64 + ".example", "1979-05-27", "2026-11-22T00:00:00", "leader",
    "all", "kill:n1", "999999n", "1:1", "1:1:1e9", "0.1-inf", "kill=1-2", "valid", "\u2028", "\N{PILE OF POO}",
)  # fmt: skip
NUMBERS: Sequence[Any] = (
    0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**18, -(10**18), 10**400, 0.5, -0.0, 1e-300,
    1e15, 1e308, -1e308, float("nan"), float("inf"), float("-inf"), True, False, None,
)  # fmt: skip
OTHERS: Sequence[Any] = ([], {}, [[]], [None], {"": 0}, {"x": {"y": []}}, [1, "x", None])
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_WORD = re.compile(rb"[\w:./-]+")


def value(rng: Random) -> Any:
    """Returns a value that is seldom correct."""
    choice = rng.randrange(20)
    if choice < 9:
        return rng.choice(NUMBERS)
    if choice < 16:
        return rng.choice(TEXTS)
    if choice < 19:
        return copy.deepcopy(rng.choice(OTHERS))
    return deep(rng.choice((5, 70, 150)))  # the words of texts have deeper ones


def document(rng: Random, original: Any) -> Any:
    """Returns a document with one to three of its places changed."""
    changed = {"": copy.deepcopy(original)}
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(changed)[1:]
        if not places:
            break
        holder, key = rng.choice(places)
        choice = rng.randrange(12)
        if choice < 7:
            holder[key] = value(rng)
        elif choice == 7:
            del holder[key]
        elif choice == 8:
            other, its = rng.choice(places)
            if its in other if isinstance(other, dict) else its < len(other):
                holder[key] = copy.deepcopy(other[its])
        elif choice == 9:
            holder[key] = [holder[key]]
        elif choice == 10 and isinstance(holder, dict):
            holder[rng.choice(TEXTS)] = holder.pop(key)
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        else:
            holder[rng.choice(TEXTS)] = value(rng)
    return changed.get("")


def _places(root: Any) -> list[tuple[Any, Any]]:
    """Returns every place of a document: the container, and the key or index in it."""
    places: list[tuple[Any, Any]] = []
    waiting = [root]
    while waiting:
        holder = waiting.pop()
        members = list(holder.items()) if isinstance(holder, dict) else list(enumerate(holder))
        for key, member in members:
            places.append((holder, key))
            if isinstance(member, dict | list):
                waiting.append(member)
    return places


def as_json(rng: Random, document: Any) -> bytes:
    """Writes a document as JSON or nearly JSON."""
    return json.dumps(document, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1))).encode(
        "utf-8", "surrogatepass"
    )


def text(rng: Random, original: bytes, words: Sequence[str]) -> bytes:
    """Returns a text with one to four changes of bytes, lines or words.

    Args:
        rng: The source of randomness.
        original: The text.
        words: Correct and incorrect words of its language.
    """
    changed = original
    for _ in range(rng.choice((1, 1, 2, 4))):
        changed = rng.choice(_CHANGES)(rng, changed, words)
    if rng.random() < 0.04:
        changed = gzip.compress(changed)
        if rng.random() < 0.5:
            changed = changed[: rng.randrange(len(changed))]
    return changed


def _word(rng: Random, words: Sequence[str]) -> bytes:
    return rng.choice(words if rng.random() < 0.6 else TEXTS).encode("utf-8", "surrogatepass")


def _flip(rng: Random, data: bytes, _words: Sequence[str]) -> bytes:
    if not data:
        return b"\0"
    offset = rng.randrange(len(data))
    return data[:offset] + bytes([data[offset] ^ (1 << rng.randrange(8))]) + data[offset + 1 :]


def _cut(rng: Random, data: bytes, _words: Sequence[str]) -> bytes:
    offset, length = rng.randrange(len(data) + 1), rng.choice((1, 2, 5, 30, 1000))
    return data[:offset] + data[offset + length :]


def _double(rng: Random, data: bytes, _words: Sequence[str]) -> bytes:
    offset, length = rng.randrange(len(data) + 1), rng.choice((1, 5, 60, 400))
    part = data[offset : offset + length] * rng.choice((1, 1, 2, 50))
    return data[:offset] + part + data[offset:]


def _end(rng: Random, data: bytes, _words: Sequence[str]) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _insert(rng: Random, data: bytes, words: Sequence[str]) -> bytes:
    offset = rng.randrange(len(data) + 1)
    return data[:offset] + _word(rng, words) * rng.choice((1, 1, 1, 3, 2000)) + data[offset:]


def _replace(rng: Random, data: bytes, words: Sequence[str]) -> bytes:
    matches = list(_WORD.finditer(data))
    if not matches:
        return data
    match = rng.choice(matches)
    return data[: match.start()] + _word(rng, words) + data[match.end() :]


def _number(rng: Random, data: bytes, _words: Sequence[str]) -> bytes:
    matches = list(_NUMBER.finditer(data))
    if not matches:
        return data
    match = rng.choice(matches)
    return data[: match.start()] + str(rng.choice((*NUMBERS, "9" * 5000, "1e999"))).encode() + data[match.end() :]


def _lines(rng: Random, data: bytes, words: Sequence[str]) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    choice = rng.randrange(4)
    if choice == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif choice == 1:
        lines.insert(other, lines[one])
    elif choice == 2:
        del lines[one]
    else:
        lines.insert(one, _word(rng, words))
    return b"\n".join(lines)


_CHANGES: Sequence[Callable[[Random, bytes, Sequence[str]], bytes]] = (
    _flip, _cut, _double, _end, _insert, _insert, _replace, _replace, _replace, _number, _number, _lines, _lines,
)  # fmt: skip
