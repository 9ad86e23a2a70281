"""The options of fault kinds: their names, defaults, and accepted values.

A user can edit a plan, so Labrys checks every option before a fault begins. An unknown option is an error with a suggestion.
A drawn plan includes the defaults, so that it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from harness.faults import ROLE
from nemesis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.op import Value

# A plan adds this option to those of the kind.
ORDER = "order"
MAX_TEXT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of a kind.

    Attributes:
        default: The default; None leaves the option out of the plan.
        accepts: Returns whether a value is accepted.
        expected: The accepted values, as a text.
        meaning: One line for the documentation.
        needed: Whether a trigger must have it, if it has no default.
    """

    default: Value
    accepts: Callable[[Value], bool]
    expected: str
    meaning: str
    needed: bool = True


def number(default: float | None, low: float, high: float, meaning: str) -> Option:
    """Returns an option that takes a number from `low` to `high`."""

    def accepts(value: Value) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

    return Option(default=default, accepts=accepts, expected=f"a number from {low:g} to {high:g}", meaning=meaning)


def integer(default: int | None, low: int, high: int, meaning: str) -> Option:
    """Returns an option that takes a whole number from `low` to `high`."""

    def accepts(value: Value) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return Option(default=default, accepts=accepts, expected=f"a whole number from {low} to {high}", meaning=meaning)


def choice(default: str | None, known: tuple[str, ...], meaning: str) -> Option:
    """Returns an option that takes one of several words."""
    return Option(default=default, accepts=known.__contains__, expected=f"one of {', '.join(known)}", meaning=meaning)


def text(default: str | None, meaning: str, *, needed: bool = True) -> Option:
    """Returns an option that takes a short text."""

    def accepts(value: Value) -> bool:
        return isinstance(value, str) and 0 < len(value) <= MAX_TEXT and value.isprintable()

    return Option(default=default, accepts=accepts, expected="a short text", meaning=meaning, needed=needed)


def flag(meaning: str) -> Option:
    """Returns an option that takes true or false. Without it, it is false."""
    return Option(
        default=None, accepts=lambda value: isinstance(value, bool), expected="true or false", meaning=meaning
    )


def groups(meaning: str) -> Option:
    """Returns an option that takes a list of lists of texts."""

    def accepts(value: Value) -> bool:
        return isinstance(value, list | tuple) and all(_texts(item) for item in value)

    return Option(default=None, accepts=accepts, expected="a list of lists of texts", meaning=meaning)


def mapping(meaning: str) -> Option:
    """Returns an option that takes a map from texts to lists of texts."""

    def accepts(value: Value) -> bool:
        return isinstance(value, dict) and all(isinstance(k, str) and _texts(v) for k, v in value.items())

    return Option(default=None, accepts=accepts, expected="a map from text to a list of texts", meaning=meaning)


def own(options: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the options that belong to the kind, without the plan's order of nodes and its role."""
    return {name: value for name, value in options.items() if name not in {ORDER, ROLE}}


def settle(kind: str, known: Mapping[str, Option], given: Mapping[str, Value]) -> dict[str, Value]:
    """Returns the options of a fault: the given ones, and the defaults of the others.

    Args:
        kind: The name of the kind, for messages.
        known: The options of the kind.
        given: The given values.

    Raises:
        PlanError: An option is unknown, or the kind does not accept its value.
    """
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, known) if known else "It has none."
            raise PlanError(f"{kind} has no option {shown(name)}. {hint}")
        if not known[name].accepts(value):
            raise PlanError(f"the option {name!r} of {kind} takes {known[name].expected}, not {shown(value)}")
    defaults = {name: option.default for name, option in known.items() if option.default is not None}
    return {**defaults, **given}


def _texts(value: Value) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
