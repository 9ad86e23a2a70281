"""Reads EDN from a stream, one form after the other.

The rules: text that is not EDN is an error with line and column, never a guess. Tagged values of any name are kept, and none is
interpreted. Hostile text costs time in proportion to its length: nesting, tokens and numbers are bounded, and nothing recurses.

A line is cut into tokens, and a stack of open collections builds values from them. Most tokens of a history are the same few
keywords and numbers, so their values are cached by their text. Only other tokens leave the inner loop.
"""

from __future__ import annotations

import io
from operator import length_hint
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from checker.edn.atoms import atom
from checker.edn.lines import Lines, Row
from checker.edn.tokens import MAX_TOKEN_CHARACTERS, EdnError, Tokens
from checker.edn.values import EdnList, EdnMap, EdnSet, Keyword, Symbol, Tagged
from harness.values import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from checker.edn.tokens import TextStream
    from checker.edn.values import EdnValue

MAX_DEPTH = MAX_NESTING
_REMEMBERED = 1 << 12
_REMEMBERED_CHARACTERS = 40
_LONG_NUMBERS = range(4, 19)  # shorter numbers are cached, longer ones need checks

_CLOSERS: Final = {"(": ")", "[": "]", "{": "}", "#{": "}"}
_CLOSING: Final = frozenset(")]}")
_QUICK_OPENERS: Final = frozenset("[{")
_QUICK_CLOSERS: Final = {"]": "[", "}": "{"}
_ENDS_MAP: Final = frozenset("}")
_OPEN_STRING: Final = '"'
_DISCARD: Final = "#_"
_MISSING: Final = object()


# An open form: its opener `(`, `[`, `{`, `#{`, `#_`, `#:namespace` or `#tag`; the members so far of its parent; its line; and
# whether it is a vector or map whose end completes no prefix. It is a plain tuple, because a history opens millions.
_Frame: TypeAlias = "tuple[str, list[EdnValue], int, bool]"


def _never(_token: str, missing: object) -> object:
    return missing


class Reader:
    """Yields the forms of a stream. On request it yields the members of a vector or list around all forms.

    Attributes:
        line: The line in which the form yielded last begins.
    """

    def __init__(
        self,
        stream: TextStream,
        *,
        name: str = "-",
        see_through: bool = False,
        keywords: Iterable[Keyword] = (),
        rows: bool = False,
        max_depth: int = MAX_DEPTH,
        max_token: int = MAX_TOKEN_CHARACTERS,
    ) -> None:
        """Prepares to read; nothing is read yet.

        Args:
            stream: The text.
            name: Its name in errors.
            see_through: Whether to yield the members of a vector or list that contains everything, each as soon as it is
                read, instead of the vector or list itself.
            keywords: Keywords that the text is likely to have; the reader yields these objects, so that dicts find them faster.
            rows: Whether to yield a `Row` in place of an `EdnMap` if that is faster.
            max_depth: The maximum number of open collections, tags and discards.
            max_token: The maximum length of a string, name, number or comment, in characters.
        """
        self.line = 1
        self._tokens: Tokens[Row] = Tokens(stream, name=name, max_token=max_token)
        self._lines = Lines()
        self._max_depth = max_depth
        self._rows = rows
        self._may_see_through = see_through
        self._around: str | None = None  # the closing bracket of the vector or list around everything
        self._ended_line: int | None = None  # the line of that bracket
        self._stack: list[_Frame] = []
        self._members: list[EdnValue] = []  # the members of the innermost open collection, or the complete forms
        self._atoms: dict[str, EdnValue] = {str(keyword): keyword for keyword in keywords}

    @property
    def saw_through(self) -> bool:
        """Returns whether there was a vector or list around everything; known after it has been read."""
        return self._ended_line is not None

    def __iter__(self) -> Iterator[EdnValue]:  # noqa: C901, PLR0912 - the inner loop, whose short cuts make it fast
        """Yields each form.

        Raises:
            EdnError: The text is not EDN, or exceeds the bounds.
        """
        complete, stack = self._members, self._stack
        known: Callable[[str, object], Any] = self._atoms.get
        members, get, quick = complete, known, not self._may_see_through
        for tokens in self._tokens:
            line = self._tokens.line
            if isinstance(tokens, Row):
                self.line = line
                yield tokens if self._rows else EdnMap.of_columns(*tokens)
                continue
            rest = iter(tokens)
            try:
                # All cases but the last are fast paths for the most frequent cases of `_step`.
                for token in rest:
                    value = get(token, _MISSING)
                    if value is not _MISSING:
                        members.append(value)
                        continue
                    if token in _QUICK_OPENERS and quick and len(stack) < self._max_depth:
                        if not stack:
                            self.line = line
                        stack.append((token, members, line, True))
                        self._members = members = []
                    elif token in _QUICK_CLOSERS and stack and stack[-1][3] and stack[-1][0] == _QUICK_CLOSERS[token]:
                        value = EdnMap.of(members) if token in _ENDS_MAP else tuple(members)
                        self._members = members = stack.pop()[1]
                        members.append(value)
                    elif (
                        quick
                        and stack
                        and token.isdecimal()
                        and len(token) in _LONG_NUMBERS
                        and token[0] != "0"
                        and token.isascii()
                    ):
                        members.append(int(token))
                    else:
                        members, prefixed = self._step(token)
                        get = _never if prefixed else known
                        quick = not (prefixed or self._may_see_through or self._ended_line is not None)
                    if complete:
                        if length_hint(rest) == 0 and type(complete[0]) is EdnMap:
                            self._lines.learn(complete[0])
                        yield from complete
                        complete.clear()
            except ValueError as error:
                self._tokens.refuse(len(tokens) - length_hint(rest) - 1, str(error))
            if complete:
                self._begin()
                yield from complete
                complete.clear()
            self._tokens.whole_line = self._lines.read if quick and not stack else None
        self._end()

    def _step(self, token: str) -> tuple[list[EdnValue], bool]:
        """Handles any token without a cached value; returns the list for the next value, and whether it has a prefix."""
        if token in _CLOSERS:
            self._open(token)
        elif token in _CLOSING:
            self._close(token)
        elif token[0] == "#" and token[1:2] != "#":
            self._open(_DISCARD if token == _DISCARD else _tag(token))
        elif token[0] != ";":
            self._place(self._atom(token))
        return self._members, bool(self._stack) and self._stack[-1][0] not in _CLOSERS

    def _open(self, opener: str) -> None:
        if not self._stack:
            seen_through = self._may_see_through and opener in "(["
            self._begin()
            if seen_through:
                self._around = _CLOSERS[opener]
                return
        if len(self._stack) >= self._max_depth:
            raise ValueError(f"expected nesting of at most {self._max_depth}")
        self._stack.append((opener, self._members, self._tokens.line, False))
        self._members = []

    def _begin(self) -> None:
        """Starts a form at the top level."""
        if self._ended_line is not None:
            self._tokens.refuse_end(
                f"expected the end of the file after the last closing bracket in line {self._ended_line}"
            )
        self._may_see_through = False
        self.line = self._tokens.line

    def _close(self, token: str) -> None:
        if not self._stack:
            if token != self._around:
                raise ValueError(f"{token!r} closes nothing")
            self._around, self._ended_line = None, self._tokens.line
            return
        opener, outer, line, _ = self._stack[-1]
        expected = _CLOSERS.get(opener)
        if expected is None:
            raise ValueError(f"expected a value after {opener} of line {line}, found {token!r}")
        if expected != token:
            raise ValueError(f"expected {expected!r} for the {opener!r} of line {line}, found {token!r}")
        value = _collection(opener, self._members)
        self._stack.pop()
        self._members = outer
        self._place(value)

    def _place(self, value: EdnValue) -> None:
        """Adds a complete value to its parent, and completes the prefixes before it."""
        while self._stack and self._stack[-1][0] not in _CLOSERS:
            opener, self._members, _, _ = self._stack.pop()
            if opener == _DISCARD:
                return
            value = _prefixed(opener, value)
        self._members.append(value)

    def _atom(self, token: str) -> EdnValue:
        if token == _OPEN_STRING:
            raise ValueError("the string that begins here is never closed")
        value = atom(token)
        if not self._stack:
            self._begin()
        if len(self._atoms) < _REMEMBERED and len(token) < _REMEMBERED_CHARACTERS:
            self._atoms[token] = value
        return value

    def _end(self) -> None:
        if self._stack:
            opener, _, line, _ = self._stack[-1]
            self._tokens.refuse_end(f"the {opener!r} of line {line} is never closed")
        if self._around is not None:
            self._tokens.refuse_end(f"expected {self._around!r} at the end")


def _tag(token: str) -> str:
    if token.startswith("#:"):
        Keyword(token[2:] + "/name")
    else:
        Tagged(token[1:], None)
    return token


def _collection(opener: str, members: list[EdnValue]) -> EdnValue:
    if opener == "[":
        return tuple(members)
    if opener == "(":
        return EdnList(members)
    if opener == "#{":
        return EdnSet(members)
    return EdnMap.of(members)


def _prefixed(opener: str, value: EdnValue) -> EdnValue:
    if not opener.startswith("#:"):
        return Tagged(opener[1:], value)
    if not isinstance(value, EdnMap):
        raise ValueError(f"expected a map after {opener}")  # noqa: TRY004 - the text is wrong, not a type
    return EdnMap((_in_namespace(opener[2:], key), member) for key, member in value.items())


def _in_namespace(namespace: str, key: EdnValue) -> EdnValue:
    """Returns a key of a map with a namespace: `a` gets the namespace, `_/a` gets none, and `b/a` stays."""
    if not isinstance(key, Keyword | Symbol) or key.name == "/":
        return key
    own, slash, name = key.name.partition("/")
    if not slash:
        return type(key)(f"{namespace}/{key.name}")
    return type(key)(name) if own == "_" else key


def loads(text: str, *, name: str = "text") -> EdnValue:
    """Returns the only form in `text`.

    Raises:
        EdnError: There is no form, or more than one, or the text is not EDN.
    """
    forms = load_all(text, name=name)
    if len(forms) != 1:
        raise EdnError(name, 1, 1, f"expected one form, found {len(forms)}")
    return forms[0]


def load_all(text: str, *, name: str = "text") -> list[EdnValue]:
    """Returns all forms in `text`.

    Raises:
        EdnError: A part of it is not EDN.
    """
    return list(Reader(io.StringIO(text), name=name))
