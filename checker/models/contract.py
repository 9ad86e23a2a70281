"""Refuses a model of the user whose class does not keep the rules of `Model`, before anybody asks it.

Without this, a method with a wrong signature fails in the middle of a search, outside the user's own code. The message has the
method with its file and line, what Labrys expected, and what it found.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from checker.errors import ModelError
from checker.models.base import Model
from checker.models.blaming import place_of
from harness.console.plain import name as plain_name
from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

METHODS: Final[Mapping[str, tuple[str, ...]]] = {
    "step": ("state", "op"),
    "observes": ("op",),
    "silent": ("op",),
    "flow": ("op",),
    "impossible": ("op",),
    "describe": ("state",),
    "call": ("operation",),
}
_NO_VALUE: Final = (
    (inspect.iscoroutinefunction, "a function without `async`"),
    (inspect.isasyncgenfunction, "a function without `async`"),
    (inspect.isgeneratorfunction, "a function without `yield`"),
)


def hold_to_contract(model: Model) -> None:
    """Checks the class of a model.

    Raises:
        ModelError: It does not keep the rules of `Model`.
    """
    for name, parameters in METHODS.items():
        if getattr(type(model), name, None) is not getattr(Model, name):
            _refuse_signature(model, name, parameters)
    for name, expected, is_kept in (
        ("name", "a text", isinstance(model.name, str)),
        ("keeps_failed", "a set of names of functions", _is_group(model.keeps_failed, Collection)),
        ("initial_values", "a list of values", _is_group(model.initial_values, Iterable)),
    ):
        if not is_kept:
            raise ModelError(
                f"model {plain_name(str(model.name))}: expected {expected} as its attribute `{name}`, found "
                f"{_shown(getattr(model, name))}, in the class of {place_of(type(model))}; correct it"
            )


def _is_group(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, (str, bytes))


def _refuse_signature(model: Model, name: str, parameters: tuple[str, ...]) -> None:
    method: Callable[..., Any] = getattr(model, name)
    expected = f"{name}({', '.join(('self', *parameters))})"
    actual = ""
    if not callable(method):
        actual = _shown(method)
    else:
        try:
            signature = inspect.signature(method)
            signature.bind(*parameters)
        except ValueError:  # a function in C without a signature
            return
        except TypeError:
            actual = _signature_in_class(model, name)
    for is_other, plain in _NO_VALUE:
        if is_other(method):
            expected, actual = f"{expected}, {plain}", "another"
    if actual:
        raise ModelError(
            f"model {plain_name(str(model.name))}: {place_of(method, name)}: expected {expected}, found {actual}; "
            "docs/guide/new-model.md shows a model"
        )


def _signature_in_class(model: Model, name: str) -> str:
    """Returns the signature as the class has it, with `self`."""
    method = inspect.getattr_static(model, name)
    return f"{name}{inspect.signature(getattr(method, '__func__', method))}"


def _shown(value: object) -> str:
    return plain_name(one_line(repr(value)))
