"""The durations of faults and pauses of a kind, and their form on the command line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.documents import shown
from harness.console.parameters import MAX_RUN_S
from harness.faults import wait_s
from nemesis.errors import PlanError
from nemesis.kinds import find_kind
from nemesis.triggers import parse_trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from harness.faults import Trigger

    T = TypeVar("T")

LEAST_S = 0.01
EVERY_KIND = ""  # in values by kind, the name of the kinds that have no value of their own


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """The durations of faults of a kind, and of the pauses between them.

    The defaults fit a Raft group with a heartbeat interval of about half a second. Such a group replaces an isolated leader
    after 4 to 6 s, and a healed node has caught up after 3 to 6 s.

    Attributes:
        on_s: The range of a fault's duration.
        off_s: The range of the pause after it.
        quiet_s: The time before the first fault.
        tail_s: The time after the last fault, to observe its consequences.
        trigger: The condition with which a fault begins; None: it begins at its time. Its limit is planned in addition to the
            duration.
    """

    on_s: tuple[float, float] = (6.0, 15.0)
    off_s: tuple[float, float] = (4.0, 12.0)
    quiet_s: float = 5.0
    tail_s: float = 10.0
    trigger: Trigger | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in (("on", self.on_s), ("off", self.off_s)):
            if not LEAST_S <= low <= high <= MAX_RUN_S:
                raise PlanError(
                    f"the range of {name} times must lie within {LEAST_S:g} to {MAX_RUN_S:g} s and go up, not from {low:g} "
                    f"to {high:g}"
                )
        if self.quiet_s < 0 or self.tail_s < 0:
            raise PlanError("the quiet times before the first and after the last fault cannot be negative")

    @property
    def wait_s(self) -> float:
        """Returns the longest time in seconds for which a fault waits for its trigger."""
        return wait_s(self.trigger)

    @property
    def least_s(self) -> float:
        """Returns the shortest time limit for one fault."""
        return self.quiet_s + self.wait_s + self.on_s[0] + self.tail_s


def rhythms(
    on: str,
    off: str,
    kinds: Iterable[str],
    *,
    quiet: str = "5-10",
    triggers: Mapping[str, Trigger] | None = None,
) -> dict[str, Rhythm]:
    """Parses the rhythms of kinds.

    Args:
        on: Ranges of a fault's duration: `low-high`, or one number for both, and `kind=low-high` for single kinds, with commas
            between them.
        off: Ranges of the pause after it, in the same form.
        kinds: The names of the requested kinds.
        quiet: The seconds without faults, `BEFORE-AFTER`.
        triggers: The condition with which faults of a kind begin; a kind without one begins at its time. See `triggers_of`.

    Raises:
        PlanError: A part has another form, occurs twice, or names a kind that is not requested.
    """
    kinds = list(kinds)
    durations, pauses, triggers = _ranges(on, kinds), _ranges(off, kinds), triggers or {}
    default = Rhythm()
    quiet_s, tail_s = _both(quiet)
    return {
        kind: Rhythm(
            on_s=durations.get(kind, durations.get(EVERY_KIND, default.on_s)),
            off_s=pauses.get(kind, pauses.get(EVERY_KIND, default.off_s)),
            quiet_s=quiet_s,
            tail_s=tail_s,
            trigger=triggers.get(kind, triggers.get(EVERY_KIND)),
        )
        for kind in kinds
    }


def no_shorter_than(on: str, least_s: float) -> str:
    """Returns ranges of a fault's duration in the form of the command line, each of them raised to a least duration.

    Args:
        on: The ranges; see `rhythms`.
        least_s: The least duration in seconds.

    Raises:
        PlanError: A part has another form.
    """
    return ",".join(_raised(part.strip(), least_s) for part in on.split(","))


def _raised(part: str, least_s: float) -> str:
    name, equals, seconds = part.rpartition("=")
    low, high = _range(seconds.strip(), part)
    if low >= least_s:
        return part
    return f"{name}{equals}{least_s:g}" + (f"-{high:g}" if high > least_s else "")


def triggers_of(text: str, kinds: Iterable[str], limit_s: float) -> dict[str, Trigger]:
    """Parses the triggers of kinds: `TRIGGER` for all kinds, and `KIND=TRIGGER` for single ones, with commas between them.

    Args:
        text: The text.
        kinds: The names of the requested kinds.
        limit_s: The longest time in seconds for which a fault waits.

    Returns:
        The trigger of each kind; under `EVERY_KIND`, that of all other kinds.

    Raises:
        PlanError: A part has another form, occurs twice, or names a kind that is not requested, or an unknown trigger.
    """
    if not text:
        return {}
    return _by_kind(text, list(kinds), lambda value, _: parse_trigger(value, limit_s), ("trigger", "triggers"))


def _both(text: str) -> tuple[float, float]:
    """Returns the two numbers of seconds in a text such as `5-10`."""
    first, _, second = text.partition("-")
    try:
        both = float(first), float(second or first)
    except ValueError:
        both = (math.nan, math.nan)
    if not all(0 <= seconds <= MAX_RUN_S for seconds in both):
        raise PlanError(f"expected seconds of quiet before and after the faults such as 5-10, not {shown(text)}")
    return both


def _ranges(text: str, kinds: list[str]) -> dict[str, tuple[float, float]]:
    """Returns ranges of seconds by kind."""
    return _by_kind(text, kinds, _range, ("range of seconds", "ranges"))


def _range(seconds: str, part: str) -> tuple[float, float]:
    low, _, high = seconds.partition("-")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise PlanError(
            f"expected a range of seconds such as 6-15, or one number, or KIND=6-15; not {shown(part)}"
        ) from None


def _by_kind(text: str, kinds: list[str], parse: Callable[[str, str], T], called: tuple[str, str]) -> dict[str, T]:
    """Returns values by kind; under `EVERY_KIND`, the value of all other kinds.

    Args:
        text: Values, and `kind=value`, with commas between them.
        kinds: The names of the requested kinds.
        parse: Makes the value of its text; the second text is the whole part, for errors.
        called: What messages call one value and several.
    """
    one, several = called
    given: dict[str, T] = {}
    for part in (part.strip() for part in text.split(",")):
        name, equals, value = part.rpartition("=")
        kind = find_kind(name.strip()).name if equals else EVERY_KIND
        parsed = parse(value.strip(), part)
        if kind in given:
            raise PlanError(f"{shown(text)} has two {several} for {kind or 'all kinds'}")
        if kind and kind not in kinds:
            raise PlanError(f"there is a {one} for {kind}, but --nemesis does not have this kind")
        given[kind] = parsed
    return given
