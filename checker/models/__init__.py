"""Models: the behaviour of objects, one operation at a time.

A model is found by an entry point of the group `labrys.models`. Its name is the model's name, and its object is the model's
class. The built-in models are found in the same way.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from checker.errors import ModelError
from checker.models.base import Call, Code, Flow, Inconsistent, Model, NativeModel, Numbers
from checker.models.blaming import blaming, place_of
from checker.models.contract import hold_to_contract
from checker.models.registers import CasRegister
from harness.console.plain import name as plain_name
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMED: Final = frozenset(
    {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
)
DEFAULT: Final = CasRegister.name  # without the metadata of packages, whose import would take most of a short check


def names() -> Iterable[str]:
    """Returns the names of all installed models, without importing them."""
    from harness.console import plugins  # noqa: PLC0415 - see `DEFAULT`

    return plugins.plugins(plugins.MODELS)


def find_model(name: str, *, by_place: bool = False) -> type[Model]:
    """Returns the class of a model.

    Args:
        name: Its name.
        by_place: Whether the name may be `module:Class`, because it is from the user or from the code of a workload.

    Raises:
        ModelError: There is no such model, or it cannot be loaded; with a suggestion.
    """
    if name == DEFAULT:
        return CasRegister
    from harness.console import plugins  # noqa: PLC0415 - see `DEFAULT`

    try:
        cls = plugins.load(plugins.MODELS, name, by_place=by_place)
    except InputError as error:
        raise ModelError(str(error)) from error
    if not (isinstance(cls, type) and issubclass(cls, Model)):
        raise ModelError(
            f"the model {plain_name(name)} is no class below checker.models.Model; docs/guide/new-model.md shows one"
            f"{_found(cls)}"
        )
    if cls.step is Model.step:
        raise ModelError(
            f"the model {plain_name(name)} lacks the method step(state, op); docs/guide/new-model.md shows one{_found(cls)}"
        )
    return cls


def _found(code: Any) -> str:
    return f"; found {place_of(code)}"


def model(name: str, **options: Any) -> Model:
    """Returns the model with this name.

    Args:
        name: As on the command line, e.g. `cas-register`.
        **options: The options of its class: `initial`; for registers `nil_read` and `failed_cas`; for queues
            `crashed_dequeue`. Options that are None, or that this model does not have, are ignored, so one set fits all models.

    Raises:
        ModelError: There is no such model, or it cannot have this initial state.
    """
    return made(find_model(name), **options)


def made(cls: type[Model], **options: Any) -> Model:
    """Returns a model of a class; ignores options that it does not have. See `model`.

    Raises:
        ModelError: It cannot have this initial state, or its class has a mistake.
    """
    with blaming(cls):
        known = inspect.signature(cls).parameters
        if options.get("initial") is not None and "initial" not in known:
            raise ModelError(
                f"model {cls.name}: it takes no initial state; leave --initial out, or give `__init__` a parameter `initial`"
            )
        given = {key: value for key, value in options.items() if value is not None and key in known}
        lacking = [
            key for key, parameter in known.items() if parameter.default is parameter.empty and parameter.kind in _NAMED
        ]
        if not given.keys() >= set(lacking):
            raise ModelError(
                f"model {cls.name}: its `__init__` needs {', '.join(lacking)}; give each parameter a default value"
            )
        model = cls(**given)
        if not isinstance(model, NativeModel):
            hold_to_contract(model)
        return model


__all__ = [
    "DEFAULT",
    "Call",
    "Code",
    "Flow",
    "Inconsistent",
    "Model",
    "NativeModel",
    "Numbers",
    "find_model",
    "made",
    "model",
    "names",
]
