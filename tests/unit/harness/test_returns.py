"""What a method of a plug-in returns is checked against the annotation of the method that it overrides."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.system import SimNodes
from harness.errors import PluginError
from harness.returns import wrong_in
from harness.service import Service
from workloads.base import BaseWorkload

if TYPE_CHECKING:
    from collections.abc import Callable

UNCHECKED = {"None", "Any"}
RIGHT: dict[str, Any] = {
    "bool": True, "int": 7, "str": "x", "Sequence": ["x"], "Collection": [7], "Mapping": {}, "list": [], "tuple": (7, "x"),
    "type": int,
}  # fmt: skip


def function_of(member: Any) -> Callable[..., Any] | None:
    """Returns the function of a method or a property."""
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    return function if inspect.isfunction(function) else None


def checked() -> list[tuple[type, str, str]]:
    """Returns each method of a plug-in with what it must return."""
    methods: list[tuple[type, str, str]] = []
    for cls in (SimNodes, Service, BaseWorkload):
        for name in dir(cls):
            function = function_of(inspect.getattr_static(cls, name))
            due = None if function is None else function.__annotations__.get("return")
            if not name.startswith("_") and isinstance(due, str) and due not in UNCHECKED:
                methods.append((cls, name, due))
    return methods


def bare(cls: Any) -> Any:
    """Returns an object of a class, though some methods are missing."""
    cls.__abstractmethods__ = frozenset()
    return object.__new__(cls)


def made(cls: type, name: str, value: Any) -> Any:
    """Returns what a method returns in a class that overrides it with one that returns a value."""
    member = inspect.getattr_static(cls, name)

    def plain(*_: Any, **__: Any) -> Any:
        return value

    async def awaited(*_: Any, **__: Any) -> Any:
        return value

    is_async = inspect.iscoroutinefunction(member)
    method: Any = awaited if is_async else plain
    if isinstance(member, property | classmethod):
        method = type(member)(method)
    overriding = type("Own", (cls,), {name: method, "name": "own", "__module__": __name__})
    own = bare(overriding)
    if isinstance(member, property):
        return getattr(own, name)
    result = getattr(own, name)()
    return asyncio.run(result) if is_async else result


@pytest.mark.parametrize(("cls", "name", "due"), checked(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_wrong_value_of_any_method_is_named(cls: type, name: str, due: str) -> None:
    """Each method, with nothing, a number, a text, and a coroutine: the sentence has its place, and what was expected."""
    allowed = {word.strip() for word in due.split("|")}
    for value, kind in ((None, "None"), (7, "int"), ("x", "str")):
        if kind in allowed:
            assert made(cls, name, value) == value
            continue
        with pytest.raises(PluginError) as raised:
            made(cls, name, value)
        words = {"None": "None", "int": r"an int \(7\)", "str": r"a str \(.?x.?\)"}[kind]
        location = r"\(\S*test_returns\.py:\d+\)"
        right = rf"(system|service|workload) \S+: {name} {location} returned {words}; expected {re.escape(due)}; correct the \1"
        assert re.fullmatch(right, str(raised.value)), raised.value


def test_a_right_value_passes() -> None:
    """Of each kind of annotation; a class of Labrys is taken for right, since only its fields count."""
    for _, name, due in checked():
        for word in re.split(r"\|(?![^\[]*\])", due):
            head = word.strip().partition("[")[0]
            value = None if head == "None" else RIGHT.get(head, object())
            if head != "Sequence" or word.strip() == "Sequence[str]":
                assert wrong_in(value, due) is None, (name, due, value)


@pytest.mark.parametrize(
    ("value", "annotation", "wrong"),
    [
        ([None], "Sequence[NodeStatus]", "a list with None at place 0"),
        (["a", 7], "Sequence[str]", "a list with an int (7) at place 1"),
        ("abc", "Sequence[str]", "a str ('abc')"),
        (True, "int", "True"),
        ({}, "Sequence[str]", "a dict"),
        ([], "Mapping[str, Sequence[str]]", "a list"),
        ({"a": 1}, "NodeStatus | None", "a dict"),
        (None, "NodeStatus | None", None),
        ((1, "T"), "tuple[int, str] | None", None),
        (iter([]), "Iterable[str]", None),
        (object(), "Value", None),
    ],
)
def test_values_and_annotations(value: Any, annotation: str, wrong: str | None) -> None:
    """Lists are looked into; an iterator is not, since it can be read only once."""
    assert wrong_in(value, annotation) == wrong


def test_a_method_that_should_be_async_is_named() -> None:
    """Without `async`, its value cannot be awaited; and a coroutine is no list."""

    class Plain(SimNodes):
        name = "own"

        def statuses(self, *_: Any) -> Any:
            return []

        async def fatal_log_patterns(self) -> Any:  # type: ignore[override]
            return []

    own: Any = bare(Plain)
    with pytest.raises(
        PluginError, match=r"returned a list; expected an awaitable of Sequence\[NodeStatus\], as of `async def`"
    ):
        own.statuses()
    with pytest.raises(PluginError, match=r"returned a coroutine, as of `async def`; expected Sequence\[str\]"):
        asyncio.run(own.fatal_log_patterns())


def test_a_class_beside_the_base_is_checked_too() -> None:
    """A mixin of the user has methods of the plug-in."""

    class Mixin:
        def versions(self) -> Any:
            return 7

    class Own(Mixin, SimNodes):
        name = "own"

    own: Any = bare(Own)
    with pytest.raises(PluginError, match=r"versions .* returned an int"):
        own.versions()


def test_the_methods_of_labrys_are_not_touched() -> None:
    """Only foreign code is checked."""
    assert not hasattr(SimNodes.process_states, "_labrys_checked")
