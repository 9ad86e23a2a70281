"""Separates errors in a user's own model from errors in Labrys. The former are errors of the input, with file and line."""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from checker.errors import ModelError
from harness.blame import files_of, place_in
from harness.console.plain import name as plain_name
from harness.console.plain import one_line
from harness.errors import LabrysError, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from checker.models.base import Model

_OURS: Final = ("checker.models.",)
_MOST: Final = 300


@contextmanager
def blaming(cls: type[Model]) -> Iterator[None]:
    """Raises an exception from the code of a model as `ModelError`; errors of the checker stay as they are.

    Args:
        cls: The model's class.

    Raises:
        ModelError: The code of the model failed; the message names the function, the file and the line.
    """
    try:
        yield
    except LabrysError:
        raise
    except (Exception, SystemExit) as error:  # a `step` that calls `sys.exit` must not end Labrys
        location = place_in(error, files_of(cls, _OURS))
        if location is None:
            raise
        text = one_line(sentence(error))
        raise ModelError(
            f"model {plain_name(cls.name)}: {location} failed: {type(error).__name__}: {plain_name(text, _MOST)}; "
            "correct the model"
        ) from error


def place_of(code: Any, called: str = "") -> str:
    """Returns the place of a function or a class of the user, e.g. `step (latch.py:7)`.

    Args:
        code: The function or the class.
        called: Its name; empty for its own name.
    """
    shown = called or getattr(code, "__name__", type(code).__name__)
    plain = inspect.unwrap(code) if callable(code) else code
    try:
        file, line = inspect.getsourcefile(plain), inspect.getsourcelines(plain)[1]
    except (TypeError, OSError):  # not from a file
        return plain_name(shown)
    return f"{plain_name(shown)} ({plain_name(str(file))}:{line})"


def wrong_state(model_name: str, step: Any, expected: str, value: object) -> ModelError:
    """Returns the error of a `step` whose states break a rule; the table of the kernel raises it.

    Args:
        model_name: The model's name.
        step: Its method.
        expected: What a state has to be.
        value: What the method returned or did.
    """
    shown = plain_name(one_line(value if isinstance(value, str) else _repr(value)), _MOST)  # a text says what it did
    return ModelError(
        f"model {plain_name(str(model_name))}: {place_of(step, 'step')}: expected {expected}, found {shown}; correct the model"
    )


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - the user's code
        return f"an object of the class {type(value).__name__}"
