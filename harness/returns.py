"""Checks what the methods of a plug-in return, so that a wrong value is named where it comes from, and not where it is used.

What a method must return is the annotation of the method that it overrides. The check is no proof: it looks at containers, at
plain values such as numbers and texts, and at the members of short lists. An object of a wrong class has no fields that Labrys
needs, and `harness.blame` says so. Methods of Labrys's own classes are not checked.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from harness.blame import is_foreign
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_MEMBERS: Final = 1000  # of a list whose members are checked
_MARK: Final = "_labrys_checked"
_PLAIN: Final = (str, bytes, int, float, type(None))
_ANY: Final = frozenset({"Any", "Value", "object"})
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "Sequence": (Sequence,), "list": (Sequence,), "Mapping": (Mapping,), "dict": (Mapping,), "Collection": (Collection,),
    "Iterable": (Iterable,), "tuple": (Sequence,), "type": (type,), "Callable": (Callable,),  # type: ignore[dict-item]
    "str": (str,), "int": (int,), "float": (int, float), "bool": (bool,), "None": (type(None),),
}  # fmt: skip
_OF_MEMBERS: Final = frozenset({"Sequence", "list", "Collection", "Iterable"})


def check_returns(cls: type, kind: str) -> None:
    """Replaces the methods of a plug-in's class by ones that check their results.

    Args:
        cls: The class; `__init_subclass__` of its base calls this.
        kind: What it is in messages, e.g. `system`.
    """
    for name in dir(cls):
        if name.startswith("_"):
            continue
        owner = next(base for base in cls.__mro__ if name in vars(base))
        expected = _expected(cls, name)
        if expected is None or not is_foreign(owner.__module__):
            continue
        made = _checked(vars(owner)[name], _Check(kind=kind, method=name, expected=expected[0], is_async=expected[1]))
        if made is not None:
            setattr(cls, name, made)


def _expected(cls: type, name: str) -> tuple[str, bool] | None:
    """Returns the annotation of what a method of Labrys returns, and whether it is awaited; None if nothing is checked."""
    for base in cls.__mro__:
        member = vars(base).get(name)
        function = _function(member)
        if function is None or is_foreign(base.__module__):
            continue
        annotation = function.__annotations__.get("return")
        is_async = inspect.iscoroutinefunction(function)
        if not isinstance(annotation, str) or (annotation == "None" and not is_async):
            return None
        return annotation, is_async
    return None


def _function(member: Any) -> Callable[..., Any] | None:
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return function if inspect.isfunction(function) else None


class _Check:
    """What a method must return."""

    def __init__(self, *, kind: str, method: str, expected: str, is_async: bool) -> None:
        self.kind = kind
        self.method = method
        self.expected = expected
        self.is_async = is_async

    def value(self, function: Callable[..., Any], of: Any, value: Any) -> Any:
        """Returns a value if it is right.

        Raises:
            PluginError: It is not.
        """
        wrong = None if self.expected == "None" else wrong_in(value, self.expected)
        if wrong is not None:
            raise self._error(function, of, wrong, self.expected)
        return value

    def awaitable(self, function: Callable[..., Any], of: Any, value: Any) -> Any:
        """Returns what is awaited in place of a value."""
        if not inspect.isawaitable(value):
            expected = f"an awaitable of {self.expected}, as of `async def`"
            raise self._error(function, of, called_by_kind(value), expected)

        async def awaited() -> Any:
            return self.value(function, of, await value)

        return awaited()

    def _error(self, function: Callable[..., Any], of: Any, returned: str, expected: str) -> PluginError:
        name = plain_name(str(getattr(of, "name", getattr(of, "role", type(of).__name__))))
        return PluginError(
            f"{self.kind} {name}: {place_of(self.method, function)} returned {returned}; expected {expected}; "
            f"correct the {self.kind}"
        )


def _checked(member: Any, check: _Check) -> Any:
    """Returns a member of a class with the check; None if it is no function, or has it already."""
    function = _function(member)
    if function is None or hasattr(function, _MARK):
        return None
    if inspect.iscoroutinefunction(function) and check.is_async:

        @functools.wraps(function)
        async def called(*words: Any, **named: Any) -> Any:
            return check.value(function, words[0], await function(*words, **named))

    else:

        @functools.wraps(function)
        def called(*words: Any, **named: Any) -> Any:
            value = function(*words, **named)
            what = check.awaitable if check.is_async else check.value
            return what(function, words[0] if words else None, value)

    setattr(called, _MARK, True)
    if isinstance(member, property):
        return property(called, member.fset, member.fdel)
    return type(member)(called) if isinstance(member, classmethod | staticmethod) else called


def place_of(method: str, function: Any) -> str:
    """Returns a method with its file and line; without them if it is no function of Python."""
    code = getattr(function, "__code__", None)
    return method if code is None else f"{method} ({plain_name(code.co_filename)}:{code.co_firstlineno})"


def wrong_in(value: Any, annotation: str) -> str | None:
    """Returns what a value is if it does not fit an annotation; None if it fits, or if that is not known.

    Args:
        value: The value.
        annotation: The annotation as text, e.g. `Sequence[NodeStatus] | None`.
    """
    wrong = [_wrong(value, part) for part in _split(annotation, "|")]
    return None if None in wrong else wrong[0]


def _wrong(value: Any, annotation: str) -> str | None:
    head, _, rest = annotation.strip().partition("[")
    head = head.strip("\"' ")
    if head in _ANY:
        return None
    kinds = _KINDS.get(head)
    if kinds is None:  # a class of Labrys, or a protocol
        return (
            called_by_kind(value)
            if isinstance(value, (*_PLAIN, Sequence, Mapping)) or inspect.iscoroutine(value)
            else None
        )
    is_text = isinstance(value, str | bytes) and head != "str"
    if not isinstance(value, kinds) or is_text or (isinstance(value, bool) and head in {"int", "float"}):
        return called_by_kind(value)
    if head not in _OF_MEMBERS or not isinstance(value, Sequence | frozenset | set):
        return None
    (member,) = list(_split(rest.removesuffix("]"), ","))[:1] or ["Any"]
    for index, element in enumerate(islice(value, MAX_MEMBERS)):
        wrong = wrong_in(element, member)
        if wrong is not None:
            return f"{called_by_kind(value)} with {wrong} at place {index}"
    return None


def _split(text: str, mark: str) -> Iterator[str]:
    """Yields the parts of an annotation between marks that are in no brackets."""
    depth = begin = 0
    for index, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == mark and not depth:
            yield text[begin:index]
            begin = index + 1
    yield text[begin:]


def called_by_kind(value: Any) -> str:
    """Returns what a foreign value is in a sentence, e.g. `None`, `an int (7)` or `a Thing`."""
    if inspect.iscoroutine(value):
        value.close()
        return "a coroutine, as of `async def`"
    if value is None or isinstance(value, bool):
        return str(value)
    article = "an" if type(value).__name__[:1] in "aeiou" else "a"
    kind = f"{article} {plain_name(type(value).__name__)}"
    return f"{kind} ({shown(value)})" if isinstance(value, str | int | float) else kind
