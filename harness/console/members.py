"""Reads and writes JSON documents by the types that describe their members.

The types are dataclasses of the domain, or structs of msgspec for what only a document has. So a new field of such a type is
written, read and checked without further code.

The rule: a document may come from anyone. So each member is checked before anything uses it. A member of another type or range
is an error that names it, and nothing is converted. Members that a type does not have are ignored.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec

from harness.console.documents import shown
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

MAX_S: Final = 1e9  # thirty years; more than any run, and its nanoseconds fit into 64 bits
MAX_NS: Final = 10**18
MAX_WHOLE: Final = 2**63 - 1
MAX_DEPTH: Final = 60

Seconds = Annotated[float, msgspec.Meta(ge=-MAX_S, le=MAX_S)]
Duration = Annotated[float, msgspec.Meta(ge=0, le=MAX_S)]
TimeNs = Annotated[int, msgspec.Meta(ge=-MAX_NS, le=MAX_NS)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
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
    "datetime": "a date and time",
}
_REWRITTEN: Final = (
    (re.compile(r", got .*"), ""),
    (re.compile("^Expected"), "expected"),
    (re.compile("^Invalid enum value .*"), "expected another word"),
    (re.compile("^Invalid RFC3339 encoded datetime"), "expected a date and time as 2026-07-29T10:11:12+00:00"),
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
    except UnicodeEncodeError as half:
        where = f"{name}: " if name else ""
        raise error(f"{where}expected texts of whole characters, not {shown(half.object)}") from None


def written(value: Any, depth: int = 0) -> Any:
    """Returns a value in the types of JSON: a dataclass or a struct becomes an object with its members.

    Floats without a JSON form, and objects of other types, become text. An unset member is left out.
    """
    result: Any
    match value:
        case str():
            result = str(value)
        case None | bool():
            result = value
        case numbers.Integral():
            result = int(value)
        case numbers.Real():
            result = float(value) if math.isfinite(value) else str(value)
        case _ if depth >= MAX_DEPTH:
            result = "(nested too deeply)"
        case Mapping():
            result = {str(key): written(member, depth + 1) for key, member in value.items()}
        case list() | tuple():
            result = [written(member, depth + 1) for member in value]
        case set() | frozenset():
            result = sorted((written(member, depth + 1) for member in value), key=repr)
        case _:
            result = _object_of(value, depth)
    return result


def _object_of(value: Any, depth: int) -> Any:
    """Returns a dataclass or a struct as an object with its members, and any other value as text."""
    names = _members_of(type(value))
    if names is None:
        return value.isoformat() if isinstance(value, datetime) else str(value)
    config = value.__struct_config__ if isinstance(value, msgspec.Struct) else None
    tag = {} if config is None or config.tag is None else {config.tag_field: config.tag}
    members = ((name, getattr(value, name)) for name in names)
    return tag | {name: written(member, depth + 1) for name, member in members if member is not msgspec.UNSET}


def _members_of(kind: type) -> tuple[str, ...] | None:
    """Returns the names of the members of a dataclass or a struct; None for other types."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else None


def _sentence(problem: str, value: Any, form: Any, name: str) -> str:
    """Returns the sentence for a problem, which has the form "Expected `int`, got `str` - at `$.a[0].b`"."""
    match = _PROBLEM.fullmatch(problem)
    what, path = (problem, "") if match is None else (match["what"], match["path"] or "")
    keys: list[str | int] = []
    for step in _STEP.finditer(path):
        holder = _at(value, keys)
        key = step["name"] or (_wrong_key(value, form, keys) if step["any"] else int(step["index"]))
        name += f"[{key}]" if isinstance(holder, list) else f"{name and '.'}{shown(key, quoted=False)}"
        keys.append(key)
    missing = re.fullmatch(r"Object missing required field `(\w+)`", what)
    if missing is not None:
        return f"the member {name}{name and '.'}{missing[1]} is missing"
    document = name or "the document"
    if not what.startswith(("Expected", "Invalid", "Number")):
        return f"{document}: {what}"  # the sentence of a type's own check
    for pattern, words in _REWRITTEN:
        what = pattern.sub(words, what)
    what = re.sub(
        r"`([^`]*)`", lambda kinds: " or ".join(_WORDS.get(word, word) for word in kinds[1].split(" | ")), what
    )
    return f"{document}: {what}, found {shown(_at(value, keys))}"


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
        return [changed if index == keys[0] else member for index, member in enumerate(value)]
    return {**value, keys[0]: changed}
