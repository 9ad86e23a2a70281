"""Reads small TOML and JSON files for Labrys, within limits.

It checks the size of a file before it parses it, the nesting before any recursion, and the numbers before any computation. So
no file takes unbounded time or memory, and every mistake in a file gives an error.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final, NoReturn

from harness.errors import InputError
from harness.values import MAX_NESTING

if TYPE_CHECKING:
    from pathlib import Path

MAX_TOML_BYTES: Final = 1 << 20
MAX_DEPTH: Final = MAX_NESTING + 3  # a value of a history, in the entries of a log, in the body of a message
MAX_TOML_DEPTH: Final = 16
MAX_TOML_INTEGER: Final = 2**63 - 1  # the largest integer that TOML guarantees
SHOWN_CHARACTERS: Final = 80

# The tokens that nest in TOML, outside of comments and strings: brackets, and the dots of a key.
_TOML_TOKENS: Final = re.compile(
    r'#[^\n]*+|"""(?:[^\\"]|\\.|"(?!""))*+(?:""")?|\'\'\'(?:[^\']|\'(?!\'\'))*+(?:\'\'\')?'
    r'|"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|[][{}=,\n.]',
    re.DOTALL,
)


def read_bytes(path: Path, most: int) -> bytes:
    """Returns the content of a file.

    Args:
        path: The file.
        most: The maximum number of bytes.

    Raises:
        InputError: The file cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # a path with NUL in it
        raise InputError(f"{str(path)!r} is no path: {error}") from error
    if len(content) > most:
        raise _too_large(path, most)
    return content


def _too_large(path: Path, most: int) -> InputError:
    return InputError(f"{path}: expected at most {most} bytes, found more")


def read_text(path: Path, most: int) -> str:
    """Returns the content of a file of UTF-8 text; see `read_bytes`.

    Raises:
        InputError: The file cannot be read, is larger, or is not UTF-8.
    """
    return _decoded(path, read_bytes(path, most))


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file of tables, lists, texts, finite numbers, and true and false.

    Raises:
        InputError: The file cannot be read, is not TOML, or exceeds the limits.
    """
    return parse_toml(path, read_bytes(path, MAX_TOML_BYTES))


def parse_toml(path: Path, content: bytes) -> dict[str, Any]:
    """Reads the content of a TOML file; see `read_toml`.

    Raises:
        InputError: It is not TOML, or exceeds the limits.
    """
    if len(content) > MAX_TOML_BYTES:
        raise _too_large(path, MAX_TOML_BYTES)
    text = _decoded(path, content).replace("\r\n", "\n")
    _check_nesting(path, text)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # tomllib's own error, or a number of thousands of digits
        raise InputError(f"{path}: cannot be read as TOML: {error}") from error
    _check_values(path, "", tables)
    return tables


def _check_nesting(path: Path, text: str) -> None:
    """Refuses deep nesting, because tomllib recurses over brackets and takes quadratic time over the parts of a key."""
    depth = parts = 0
    for token in _TOML_TOKENS.finditer(text):
        sign = token[0]
        if sign == ".":
            parts += 1
        elif sign in "[]{}=,\n":
            parts = 0
            depth = max(0, depth + (sign in "[{") - (sign in "]}"))
        if max(depth, parts) >= MAX_TOML_DEPTH:
            line = text.count("\n", 0, token.start()) + 1
            raise InputError(f"{path}:{line}: expected nesting of at most {MAX_TOML_DEPTH}, found more")


def _check_values(path: Path, inside: str, value: Any) -> None:
    """Refuses values that no option, no suite and no inventory can have."""
    if isinstance(value, dict):
        for key, member in value.items():
            _check_values(path, f"{inside}.{key}" if inside else key, member)
        return
    if isinstance(value, list):
        for index, member in enumerate(value):
            _check_values(path, f"{inside}[{index}]", member)
        return
    where = f"{path}: {shown(inside, quoted=False)}"
    if isinstance(value, int) and abs(value) > MAX_TOML_INTEGER:
        raise InputError(f"{where}: expected a whole number of at most {MAX_TOML_INTEGER}, found a greater one")
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{where}: expected a finite number, found {value}")
    if isinstance(value, str) and "\0" in value:
        raise InputError(f"{where}: expected a text without NUL, found {shown(value)}")
    if not isinstance(value, str | int | float):
        raise InputError(f"{where}: expected a text, a number, true or false, found {shown(str(value))}")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {text[:SHOWN_CHARACTERS]}")
    return value


_DECODER: Final = json.JSONDecoder(
    parse_constant=_no_constant, parse_float=_finite
)  # a new one costs as much as a message


def parse_json(text: str | bytes, where: str) -> Any:
    """Reads a JSON document with finite numbers and limited nesting.

    Args:
        text: The document.
        where: Its name in errors.

    Raises:
        InputError: It is not such a document.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        document = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: is not JSON: {error}") from error
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            member for value in level if isinstance(value, dict | list)
            for member in (value.values() if isinstance(value, dict) else value) if isinstance(member, dict | list)
        ]  # fmt: skip
        if not level:
            return document
    raise InputError(f"{where}: expected nesting of at most {MAX_DEPTH}, found more")


def shown(value: Any, *, quoted: bool = True) -> str:
    """Returns the beginning of a value, for a message."""
    text = repr(value) if quoted else str(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}... ({len(text)} characters)"
