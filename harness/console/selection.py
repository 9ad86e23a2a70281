"""Selects names with an expression, as pytest's `-k` does.

    expression = and_part { "or" and_part }
    and_part   = not_part { "and" not_part }
    not_part   = "not" not_part | "(" expression ")" | WORD

A WORD is any text without spaces and parentheses. It matches each name that contains it; case does not matter. So
`partitions and not raft-log` selects `partitions[nemesis=bridge,read-mode=read-index]`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness.console.plain import name
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Selection: TypeAlias = Callable[[str], bool]
    _Reader: TypeAlias = Callable[[str, Sequence[str]], tuple[Selection, Sequence[str]]]

MAX_WORDS = 200  # also a limit for nested parentheses
_WORDS = re.compile(r"[()]|[^\s()]+")
_OPERATORS = frozenset({"and", "or", "not", "(", ")"})


def read_selection(text: str) -> Selection:
    """Returns a function that takes a name, and returns whether the expression selects it.

    Raises:
        InputError: The expression does not fit the grammar.
    """
    words = _WORDS.findall(text)
    if len(words) > MAX_WORDS:
        raise InputError(f"expected an expression of at most {MAX_WORDS} words, found {len(words)}")
    selects, rest = _either(text, words)
    if rest:
        raise _wrong(text, f"unexpected {name(rest[0])!r}")
    return lambda candidate: selects(candidate.casefold())


def _either(text: str, words: Sequence[str]) -> tuple[Selection, Sequence[str]]:
    parts, rest = _parts(text, words, _both, "or")
    return lambda candidate: any(part(candidate) for part in parts), rest


def _both(text: str, words: Sequence[str]) -> tuple[Selection, Sequence[str]]:
    parts, rest = _parts(text, words, _one, "and")
    return lambda candidate: all(part(candidate) for part in parts), rest


def _parts(text: str, words: Sequence[str], read: _Reader, operator: str) -> tuple[list[Selection], Sequence[str]]:
    """Reads parts with an operator between them; returns the parts and the rest of the words."""
    first, rest = read(text, words)
    parts = [first]
    while rest and rest[0] == operator:
        part, rest = read(text, rest[1:])
        parts.append(part)
    return parts, rest


def _one(text: str, words: Sequence[str]) -> tuple[Selection, Sequence[str]]:
    if not words:
        raise _wrong(text, "expected a part of a name at its end")
    word, rest = words[0], words[1:]
    if word == "not":
        part, rest = _one(text, rest)
        return lambda candidate: not part(candidate), rest
    if word == "(":
        part, rest = _either(text, rest)
        if not rest or rest[0] != ")":
            raise _wrong(text, "expected ')'")
        return part, rest[1:]
    if word in _OPERATORS:
        raise _wrong(text, f"expected a part of a name, not {word!r}")
    part_of_name = word.casefold()
    return lambda candidate: part_of_name in candidate, rest


def _wrong(text: str, why: str) -> InputError:
    return InputError(f"{name(text)!r} is not an expression such as 'kill and not (bridge or pause)': {why}")
