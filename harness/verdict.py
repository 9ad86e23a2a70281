"""Verdicts, and the composition of several into one.

A verdict is `valid`, `invalid` or `unknown`. A run's verdict has named parts, and the worst part decides, in the order invalid,
unknown, valid. So an unknown never hides a definite failure, and a valid part never hides an unknown. A run without parts is
unknown, because it tested nothing. If an extra part is unknown, the other parts decide, and the reason of the run names it
(`docs/decisions/0009-extra-parts.md`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from harness.about import MEMBER
from harness.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.about import About
    from harness.counterexample import Counterexample
    from harness.op import Value


CONTROL_NODE: Final = "control-node"  # the part that says whether the control node kept up


class Verdict(enum.StrEnum):
    """The verdict on a history, a part, or a run."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"

    @property
    def as_json(self) -> bool | Literal["unknown"]:
        """Returns true, false, or `"unknown"`, as in results.json."""
        return "unknown" if self is Verdict.UNKNOWN else self is Verdict.VALID

    @classmethod
    def from_json(cls, value: Value) -> Verdict | None:
        """Returns the verdict for true, false, or `"unknown"`; None for any other value."""
        if isinstance(value, bool):
            return cls.VALID if value else cls.INVALID
        return cls.UNKNOWN if value == "unknown" else None

    @property
    def severity(self) -> int:
        """Returns 0 for valid, 1 for unknown, 2 for invalid."""
        return {Verdict.VALID: 0, Verdict.UNKNOWN: 1, Verdict.INVALID: 2}[self]

    @property
    def exit_code(self) -> ExitCode:
        """Returns the exit code of a command for this verdict."""
        return {
            Verdict.VALID: ExitCode.VALID,
            Verdict.INVALID: ExitCode.INVALID,
            Verdict.UNKNOWN: ExitCode.UNKNOWN,
        }[self]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the worst verdict; unknown if there is none, because then nothing was checked."""
    return max(verdicts, key=lambda verdict: verdict.severity, default=Verdict.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One named part of a run's verdict.

    Attributes:
        name: E.g. `linearizable`, `replicas-equal`, `recovered`, `faults-effective`.
        verdict: The verdict of this part.
        reason: The reason, as one sentence with numbers.
        details: JSON-like data for the sentence.
        extra: Whether another part decides the same operations. If so, an unknown verdict of this part does not count for the
            run's verdict.
        counterexamples: The counterexamples of `details`, with their operations; empty if the part was read from a file.
    """

    name: str
    verdict: Verdict
    reason: str
    details: Mapping[str, Value] = field(default_factory=dict)
    extra: bool = False
    counterexamples: Sequence[Counterexample] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(
        cls,
        name: str,
        details: Mapping[str, Value] | None = None,
        *,
        held: str,
        untested: str | None = None,
        broken: str | None = None,
        about: About | None = None,
        extra: bool = False,
    ) -> Part:
        """Returns the part of a rule: invalid if it is broken, else unknown if something was not tested, else valid.

        Args:
            name: The name of the part.
            details: See `Part`.
            held: The reason if the rule holds, as a sentence.
            untested: What was not tested, as a sentence; None: all was.
            broken: How the rule is broken, as a sentence; None: it holds.
            about: Where and when the rule is broken; it is left out of a part that is not invalid.
            extra: See `Part`.
        """
        more = {} if details is None else dict(details)
        if broken is not None:
            where = {} if about is None else {MEMBER: about.to_json()}
            return cls(name=name, verdict=Verdict.INVALID, reason=broken, details={**more, **where}, extra=extra)
        if untested is not None:
            return cls(name=name, verdict=Verdict.UNKNOWN, reason=untested, details=more, extra=extra)
        return cls(name=name, verdict=Verdict.VALID, reason=held, details=more, extra=extra)

    @property
    def decides(self) -> bool:
        """Returns whether the run's verdict depends on it."""
        return not (self.extra and self.verdict is Verdict.UNKNOWN)


def verdict_of(parts: Iterable[Part]) -> Verdict:
    """Returns the combined verdict of parts; unknown if none of them decides."""
    return worst(part.verdict for part in parts if part.decides)


def reason_of(parts: Sequence[Part]) -> str:
    """Returns the sentence of the first deciding part, and the names of the other parts with the same verdict.

    A valid run's reason also names the extra parts that are unknown.
    """
    verdict = verdict_of(parts)
    undecided = [part for part in parts if not part.decides]
    deciding = [part for part in parts if part.verdict is verdict and part.decides] or undecided
    if not deciding:
        return "Nothing was judged."
    first, *others = deciding
    if verdict is Verdict.VALID:
        return (
            f"{first.reason} Not decided: {', '.join(part.name for part in undecided)}." if undecided else first.reason
        )
    return f"{first.reason} Also {verdict}: {', '.join(part.name for part in others)}." if others else first.reason
