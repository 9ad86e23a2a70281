"""The template engine of all pages. It escapes text, and an undefined name is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.console.plain import counted, counted_of
from results.words.formatting import moment, outcomes, percent, ratio, seconds

if TYPE_CHECKING:
    from collections.abc import Callable


def environment(*, finalize: Callable[[Any], Any] | None = None) -> Environment:
    """Returns the engine for `results/page/templates`, with the functions and filters of all pages.

    Args:
        finalize: Converts each value before it is shown.
    """
    made = Environment(
        loader=PackageLoader("results.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    made.filters["moment"] = moment
    made.filters["seconds"] = seconds
    made.globals["counted"] = counted
    made.globals["counted_of"] = counted_of
    made.globals["percent"] = percent
    made.globals["ratio"] = ratio
    made.globals["outcomes"] = outcomes
    return made
