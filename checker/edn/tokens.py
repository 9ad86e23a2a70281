"""Cuts a stream of text into the tokens of EDN, a line at a time, and computes their places for errors.

The place of a token is computed only for an error, by cutting its line again. So cutting takes few calls for each line. A line
without strings, comments, tags and characters, as most lines of a history, is split at spaces and brackets. A regular
expression cuts any other line. A line is read in pieces of bounded length. A token that continues in the next piece, and a
string that continues in the next line, are joined in time proportional to their length, up to a bound.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Protocol, TypeVar

from harness.errors import InputError
from harness.event_lines import MAX_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

MAX_TOKEN_CHARACTERS = MAX_LINE_BYTES  # a value has no more characters in EDN than its line of history.jsonl
PIECE_CHARACTERS = 1 << 16

_SPACE: Final = " \t\n\r\f\v\x1c\x1d\x1e\x1f,"
_END: Final = r'\s\x1c-\x1f,"()\[\]{};\\'
# Every quantifier is possessive, so the expression never backtracks. A text must not end in space, which would be slow.
TOKEN: Final = re.compile(
    r"[\s\x1c-\x1f,]*+("
    rf"[^{_END}#^`~@][^{_END}^`~@]*+"  # a name or a number
    r"|[()\[\]{}]"
    r'|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
    r"|#[{_]"
    r"|;[^\n]*+"
    rf"|\\.[^{_END}]*+"  # a character
    rf"|#[^{_END}]*+"  # a tag
    r"|\S)",
    re.ASCII | re.DOTALL,
)
_PLAIN_TOKEN: Final = re.compile(r"[\s\x1c-\x1f,]*+([()\[\]{}]|[^\s\x1c-\x1f,()\[\]{}]++)", re.ASCII)
_STRING_REST: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_QUOTE: Final = '"'
_SPREAD_LINES: Final = 64


class EdnError(InputError):
    """A text is not EDN, or exceeds the reader's bounds.

    Attributes:
        name: The name of the text: a file, or `-`.
        line: The line, from 1.
        column: The column in code points, from 1.
        reason: What was expected and what was found.
    """

    def __init__(self, name: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"{name}:{line}:{column}: {reason}")
        self.name = name
        self.line = line
        self.column = column
        self.reason = reason


class TextStream(Protocol):
    """Text that can be read by lines; any text file."""

    def readline(self, size: int = -1, /) -> str:
        """Returns the next line with its newline, or at most `size` characters of it; empty at the end."""
        ...


def _ends_map(line: str) -> bool:
    return line.rstrip(_SPACE)[-1:] == "}"


def _without_end_space(text: str) -> str:
    stripped = text.rstrip(_SPACE)
    return text[: len(stripped) + 1] if stripped.endswith("\\") else stripped  # a comma can be a character


class Tokens(Generic[T]):
    """Yields lists of tokens, each from one line or a part of it.

    Attributes:
        line: The line of the last list.
        whole_line: Reads a whole line, or a map over several lines, into a value that is yielded in place of its tokens, or
            returns None. It may be changed between two lists. It is not called in the middle of a line.
    """

    def __init__(self, stream: TextStream, *, name: str, max_token: int) -> None:
        """Prepares to read.

        Args:
            stream: The text.
            name: Its name in errors.
            max_token: The maximum length of a token.
        """
        self.line = 0
        self.whole_line: Callable[[str], T | None] | None = None
        self._from_stream = stream.readline
        self._ahead: deque[str] = deque()  # lines that were already read
        self._name = name
        self._max_token = max_token
        self._text = ""  # the text of the last list
        self._column = 0  # the length of its line before it
        self._grammar = TOKEN  # the expression that cut it

    def __iter__(self) -> Iterator[list[str] | T]:
        """Yields the lists, and the values of `whole_line`.

        Raises:
            EdnError: A token is too long.
        """
        while text := self._ahead.popleft() if self._ahead else self._from_stream(PIECE_CHARACTERS):
            self.line += 1
            self._text, self._column = text, 0
            if text[-1] != "\n":
                yield from self._with_open_end()
            elif self.whole_line is not None and (whole := self.whole_line(text) or self._spread(text)) is not None:
                yield whole
                if self._ahead:
                    self.line += len(self._ahead)
                    self._text = self._ahead[-1]
                    self._ahead.clear()
            elif _QUOTE in text or "#" in text or ";" in text or "\\" in text or not text.isascii():
                tokens = self._cut(text)
                if _QUOTE in tokens:
                    yield from self._with_open_end()
                else:
                    yield tokens
            else:
                self._grammar = _PLAIN_TOKEN
                text = text.replace(",", " ").replace("{", " { ").replace("}", " } ")
                yield text.replace("[", " [ ").replace("]", " ] ").replace("(", " ( ").replace(")", " ) ").split()

    def _spread(self, text: str) -> T | None:
        """Reads a map that begins with this line and ends with a later one, by `whole_line`.

        Returns:
            The value of `whole_line`; `_ahead` has the other lines of the map. If it is None, these lines are still to be cut.
        """
        if self._ahead or self.whole_line is None or text.lstrip(_SPACE)[:1] != "{" or _ends_map(text):
            return None
        size = len(text)
        while len(self._ahead) < _SPREAD_LINES and size < PIECE_CHARACTERS:
            more = self._from_stream(PIECE_CHARACTERS)
            if not more:
                break
            self._ahead.append(more)
            size += len(more)
            if _ends_map(more):
                return self.whole_line(text + "".join(self._ahead))
        return None

    def _readline(self, size: int) -> str:
        return self._ahead.popleft() if self._ahead else self._from_stream(size)

    def refuse(self, number: int, reason: str) -> NoReturn:
        """Raises an error about a token.

        Args:
            number: Its number in the last list.
            reason: The reason.
        """
        for index, match in enumerate(self._grammar.finditer(_without_end_space(self._text))):
            if index == number:
                self._refuse_at(match.start(1), reason)
        self._refuse_at(len(self._text), reason)

    def refuse_end(self, reason: str) -> NoReturn:
        """Raises an error about the end of the text."""
        self._refuse_at(len(self._text), reason)

    def _refuse_at(self, offset: int, reason: str) -> NoReturn:
        raise EdnError(self._name, max(self.line, 1), self._column + offset + 1, reason)

    def _with_open_end(self) -> Iterator[list[str]]:
        """Yields the tokens of a line, or of several lines if the last token may continue after them."""
        while True:
            start, in_string = self._last_token()
            if in_string:
                rest = self._text[start:]
                yield self._cut(self._text[:start])
                self._column += start
                token, line, column, after = self._string(rest)
                yield self._cut(token)
                self.line, self._column, self._text = line, column, after
                continue
            more = "" if self._text.endswith("\n") else self._readline(PIECE_CHARACTERS)
            if not more:
                yield self._cut(self._text)
                return
            rest = self._text[start:]
            yield self._cut(self._text[:start])
            self._column += start
            if len(rest) > self._max_token:
                self._refuse_at(0, f"expected at most {self._max_token} characters without a space")
            self._text = rest + more

    def _cut(self, text: str) -> list[str]:
        self._text, self._grammar = text, TOKEN
        return TOKEN.findall(_without_end_space(text))

    def _last_token(self) -> tuple[int, bool]:
        """Returns the start of the first unclosed string and True, or else the start of the last token and False."""
        start = len(self._text)
        for match in TOKEN.finditer(_without_end_space(self._text)):
            start = match.start(1)
            if match[1] == _QUOTE:
                return start, True
        return start, False

    def _string(self, begun: str) -> tuple[str, int, int, str]:
        """Reads up to the end of a string.

        Args:
            begun: The beginning of the string.

        Returns:
            The whole string; and the line, the column and the text of the rest of its last line.
        """
        parts, size = [begun], len(begun)
        line, column = self.line, self._column
        escaping = _STRING_REST.match(begun, 1).end() < len(begun)  # type: ignore[union-attr]  # matches anything
        while True:
            if parts[-1].endswith("\n"):
                line, column = line + 1, 0
            else:
                column += len(parts[-1])
            piece = self._readline(PIECE_CHARACTERS)
            if not piece:
                self._refuse_at(0, "the string that begins here is never closed")
            end = _STRING_REST.match(piece, int(escaping)).end()  # type: ignore[union-attr]  # matches anything
            if piece[end : end + 1] == _QUOTE:
                return "".join([*parts, piece[: end + 1]]), line, column + end + 1, piece[end + 1 :]
            escaping = end < len(piece)
            parts.append(piece)
            size += len(piece)
            if size > self._max_token:
                self._refuse_at(0, f"expected a string of at most {self._max_token} characters")
