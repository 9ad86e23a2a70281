"""The durations of faults and pauses of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.parameters import MAX_RUN_S
from harness.faults import wait_s
from nemesis.asked import Span
from nemesis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from harness.faults import Trigger
    from nemesis.asked import ByKind, Quiet

LEAST_S = 0.01


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
    on: ByKind[Span], off: ByKind[Span], kinds: Iterable[str], *, quiet: Quiet, triggers: ByKind[Trigger]
) -> dict[str, Rhythm]:
    """Returns the rhythms of kinds.

    Args:
        on: The ranges of a fault's duration.
        off: The ranges of the pause after it.
        kinds: The names of the requested kinds.
        quiet: The seconds without faults at the start and at the end.
        triggers: The condition with which faults of a kind begin; a kind without one begins at its time.

    Raises:
        PlanError: A range is not possible, or there is a range or a trigger of a kind that is not requested.
    """
    kinds = list(kinds)
    given: tuple[tuple[ByKind[Any], str], ...] = (
        (on, "range of seconds"),
        (off, "range of seconds"),
        (triggers, "trigger"),
    )
    for values, called in given:
        for kind in values.own:
            if kind not in kinds:
                raise PlanError(f"there is a {called} for {kind}, but --nemesis does not have this kind")
    usual = Rhythm()
    durations = {kind: _seconds(on.of(kind), usual.on_s) for kind in kinds}
    pauses = {kind: _seconds(off.of(kind), usual.off_s) for kind in kinds}
    return {
        kind: Rhythm(
            on_s=durations[kind],
            off_s=pauses[kind],
            quiet_s=quiet.before_s,
            tail_s=quiet.after_s,
            trigger=triggers.of(kind),
        )
        for kind in kinds
    }


def _seconds(span: Span | None, usual: tuple[float, float]) -> tuple[float, float]:
    return usual if span is None else (span.low_s, span.high_s)


def no_shorter_than(on: ByKind[Span], least_s: float) -> ByKind[Span]:
    """Returns ranges of a fault's duration, each of them raised to a least duration.

    Args:
        on: The ranges.
        least_s: The least duration in seconds.
    """

    def raised(span: Span) -> Span:
        return Span(max(span.low_s, least_s), max(span.high_s, least_s))

    return on.map(raised)
