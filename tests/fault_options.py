"""The options about faults from the texts of a command line, for tests."""

from __future__ import annotations

from typing import Any

import click

from harness.declare import click_options
from harness.errors import InputError
from nemesis.choices import FaultOptions


def parsed(**texts: Any) -> FaultOptions:
    """Returns options with the values that click makes of texts.

    Raises:
        InputError: A text is not valid.
    """
    types = {str(option.name): option.type for option in click_options(FaultOptions)}
    try:
        values = {
            name: types[name].convert(text, None, None) if isinstance(text, str) else text
            for name, text in texts.items()
        }
    except click.BadParameter as error:
        raise InputError(error.message) from error
    return FaultOptions(**values)
