"""Reads the members of JSON documents by the types that describe them.

The rule: a document may come from anyone. So each member is checked before anything uses it. A member of another type or range
is an error that names it, and nothing is converted. Members that a type does not have are ignored.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

MAX_S: Final = 1e9  # thirty years; more than any run, and its nanoseconds fit into 64 bits
MAX_WHOLE: Final = 2**63 - 1

Seconds = Annotated[float, msgspec.Meta(ge=-MAX_S, le=MAX_S)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=MAX_S)]
Whole = Annotated[int, msgspec.Meta(ge=0, le=MAX_WHOLE)]
Trace = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{8})*$")]  # eight digits for each virtual second
Integer = Annotated[int, msgspec.Meta(ge=-MAX_WHOLE, le=MAX_WHOLE)]

_PROBLEM: Final = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_WORDS: Final = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}
_REWRITTEN: Final = (
    (re.compile(r", got .*"), ""),
    (re.compile("^Expected"), "expected"),
    (re.compile("^Invalid enum value .*"), "expected another word"),
    (re.compile("^Number out of range"), "expected a number of 64 bits"),
    (re.compile(r"of length >= (\d+)"), r"of at least \1 members"),
    (re.compile(r"of length <= (\d+)"), r"of at most \1 members"),
    (re.compile(">= "), "of at least "),
    (re.compile("<= "), "of at most "),
)


def read(value: Any, form: type[T], name: str, *, error: type[InputError] = InputError) -> T:
    """Returns a member as its type describes it.

    Args:
        value: The member, as `json.loads` returns it.
        form: The type: a `msgspec.Struct`, a dataclass, or a list, tuple or mapping of such.
        name: The member's name in errors; empty for a whole document.
        error: The class of the error.

    Raises:
        InputError: The member has another type or range. The error has the place, what was expected, and what was found.
    """
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as wrong:
        raise error(_sentence(str(wrong), value, form, name)) from None


def instant(text: str, name: str, *, error: type[InputError] = InputError) -> datetime:
    """Returns the date with time in the member `name`, in UTC.

    Raises:
        InputError: The text is not a date with time.
    """
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        expected = "a date and time as 2026-07-29T10:11:12+00:00"
        raise error(f"{name}: expected {expected}, found {shown(text)}") from None


def _sentence(problem: str, value: Any, form: Any, name: str) -> str:
    """Returns the sentence for a problem, which has the form "Expected `int`, got `str` - at `$.a[0].b`"."""
    found = _PROBLEM.fullmatch(problem)
    what, path = (problem, "") if found is None else (found["what"], found["path"] or "")
    keys: list[str | int] = []
    for step in _STEP.finditer(path):
        holder = _at(value, keys)
        key = step["name"] or (_wrong_key(value, form, keys) if step["any"] else int(step["index"]))
        name += f"[{key}]" if isinstance(holder, list) else f"{name and '.'}{shown(key, quoted=False)}"
        keys.append(key)
    missing = re.fullmatch(r"Object missing required field `(\w+)`", what)
    if missing is not None:
        return f"the member {name}{name and '.'}{missing[1]} is missing"
    place = name or "the document"
    if not what.startswith(("Expected", "Invalid", "Number")):
        return f"{place}: {what}"  # the sentence of a type's own check
    for pattern, words in _REWRITTEN:
        what = pattern.sub(words, what)
    what = re.sub(
        r"`([^`]*)`", lambda kinds: " or ".join(_WORDS.get(each, each) for each in kinds[1].split(" | ")), what
    )
    return f"{place}: {what}, found {shown(_at(value, keys))}"


def _at(value: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        value = value[key]
    return value


def _wrong_key(value: Any, form: Any, keys: Sequence[str | int]) -> str:
    """Returns the first wrong member of an object at `keys`. It halves the object until one member is left."""
    members = list(_at(value, keys).items())
    while len(members) > 1:
        half = members[: len(members) // 2]
        members = half if _is_wrong(_with(value, keys, dict(half)), form) else members[len(half) :]
    return str(members[0][0])


def _is_wrong(value: Any, form: Any) -> bool:
    try:
        msgspec.convert(value, form)
    except msgspec.ValidationError:
        return True
    return False


def _with(value: Any, keys: Sequence[str | int], member: Any) -> Any:
    """Returns a copy of a document in which the member at `keys` is another one."""
    if not keys:
        return member
    changed = _with(value[keys[0]], keys[1:], member)
    if isinstance(value, list):
        return [changed if place == keys[0] else each for place, each in enumerate(value)]
    return {**value, keys[0]: changed}
