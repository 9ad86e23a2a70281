"""Models: what objects do, one operation at a time.

A model is found by an entry point of the group `labrys.models`, whose name is the model's and whose object is its class; those
of Labrys come in the same way.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final

from checker.errors import ModelError
from checker.models.base import Call, Code, Inconsistent, Model, NativeModel, Numbers
from checker.models.registers import CasRegister
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT: Final = CasRegister.name  # known without the metadata of packages, whose import would be most of a short check


def names() -> Iterable[str]:
    """Returns the names of all installed models; imports none of them."""
    from harness import plugins  # noqa: PLC0415 - see `DEFAULT`

    return plugins.plugins(plugins.MODELS)


def find_model(name: str) -> type[Model]:
    """Returns the class of a model.

    Raises:
        ModelError: There is no such model, or it cannot be loaded; with a suggestion.
    """
    if name == DEFAULT:
        return CasRegister
    from harness import plugins  # noqa: PLC0415 - see `DEFAULT`

    try:
        found = plugins.load(plugins.MODELS, name)
    except InputError as error:
        raise ModelError(str(error)) from error
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise ModelError(f"the model {name} is no class below checker.models.Model; docs/checker.md shows one")
    return found


def model(name: str, **options: Any) -> Model:
    """Returns the model of that name.

    Args:
        name: As on the command line, e.g. `cas-register`.
        **options: What its class takes: `initial`; for registers `nil_read` and `failed_cas`; for queues `crashed_dequeue`.
            Options that are None, or that this model does not have, are left out, so that one set of options fits all.

    Raises:
        ModelError: There is no such model, or it cannot begin like that.
    """
    cls = find_model(name)
    known = inspect.signature(cls).parameters
    return cls(**{key: value for key, value in options.items() if value is not None and key in known})


__all__ = ["DEFAULT", "Call", "Code", "Inconsistent", "Model", "NativeModel", "Numbers", "find_model", "model", "names"]
