"""The options of fault kinds: their names, defaults, and accepted values.

A user can edit a plan, so Labrys checks every option before a fault begins. An unknown option is an error with a suggestion.
A drawn plan includes the defaults, so that it is complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from nemesis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

    from harness.op import Value

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
        hunted: The values that each run of `labrys hunt` draws one of, unless the user gives options; empty: it is not drawn.
        drawn_with: Another option of the kind with as many values: both have their values at the same place.
        shrinks_to: The value of the smallest fault, for a number; `labrys shrink` tries to reach it. None: the number stays.
    """

    default: Value
    accepts: Callable[[Value], bool]
    expected: str
    meaning: str
    needed: bool = True
    hunted: Sequence[Value] = ()
    drawn_with: str | None = None
    shrinks_to: float | None = None

    def __post_init__(self) -> None:
        for value in (*self.hunted, *(() if self.shrinks_to is None else (self.shrinks_to,))):
            if not self.accepts(value):
                raise ValueError(f"an option takes {self.expected}, and hunts or shrinks would give it {shown(value)}")


def number(
    default: float | None,
    low: float,
    high: float,
    meaning: str,
    *,
    hunted: Sequence[float] = (),
    drawn_with: str | None = None,
    shrinks_to: float | None = None,
) -> Option:
    """Returns an option that takes a number from `low` to `high`; see `Option`."""

    def accepts(value: Value) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

    return Option(
        default=default,
        accepts=accepts,
        expected=f"a number from {low:g} to {high:g}",
        meaning=meaning,
        hunted=tuple(hunted),
        drawn_with=drawn_with,
        shrinks_to=shrinks_to,
    )


def integer(
    default: int | None,
    low: int,
    high: int,
    meaning: str,
    *,
    needed: bool = True,
    hunted: Sequence[int] = (),
    drawn_with: str | None = None,
    shrinks_to: int | None = None,
) -> Option:
    """Returns an option that takes a whole number from `low` to `high`; see `Option`."""

    def accepts(value: Value) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return Option(
        default=default,
        accepts=accepts,
        expected=f"a whole number from {low} to {high}",
        meaning=meaning,
        needed=needed,
        hunted=tuple(hunted),
        drawn_with=drawn_with,
        shrinks_to=shrinks_to,
    )


def choice(
    default: str | None, known: tuple[str, ...], meaning: str, *, needed: bool = True, hunted: Sequence[str] = ()
) -> Option:
    """Returns an option that takes one of several words; see `Option`."""
    return Option(
        default=default,
        accepts=known.__contains__,
        expected=f"one of {', '.join(known)}",
        meaning=meaning,
        needed=needed,
        hunted=tuple(hunted),
    )


def text(default: str | None, meaning: str, *, needed: bool = True) -> Option:
    """Returns an option that takes a short text. It may be empty if the default is."""

    def accepts(value: Value) -> bool:
        may_be = isinstance(value, str) and (bool(value) or default == "")
        return may_be and len(value) <= MAX_TEXT and value.isprintable()

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


def draw(known: Mapping[str, Option], rng: Random) -> dict[str, Value]:
    """Draws the options of a kind that declare values for hunts."""
    places: dict[str, int] = {}
    for name, option in known.items():
        if option.hunted:
            with_another = option.drawn_with is not None and option.drawn_with in places
            places[name] = places[str(option.drawn_with)] if with_another else rng.randrange(len(option.hunted))
    return {name: known[name].hunted[index] for name, index in places.items()}
