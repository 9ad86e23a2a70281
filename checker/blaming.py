"""Separates errors in a user's own model from errors in Labrys. The former are errors of the input, with file and line."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from checker.errors import ModelError
from harness.errors import LabrysError, sentence
from harness.plain import name as plain_name
from harness.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.models.base import Model

_OURS: Final = "checker.models."
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
    except Exception as error:
        place = _place(error, cls)
        if place is None:
            raise
        text = one_line(sentence(error))
        raise ModelError(
            f"model {plain_name(cls.name)}: {place} failed: {type(error).__name__}: {plain_name(text, _MOST)}; "
            "correct the model"
        ) from error


def _place(error: Exception, cls: type[Model]) -> str | None:
    """Returns the place of an exception in the model's code; None if it is not from that code."""
    files = {
        getattr(sys.modules.get(base.__module__), "__file__", None)
        for base in cls.__mro__
        if not base.__module__.startswith(_OURS) and base is not object
    }
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f"{frames[-1].name} ({plain_name(frames[-1].filename)}:{frames[-1].lineno})" if frames else None
