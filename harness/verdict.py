"""Verdicts, and how several become one.

A verdict is `valid`, `invalid` or `unknown`. A run's verdict is composed of named parts, and the worst one decides:
invalid over unknown over valid. So an unknown never hides a definite failure, and a valid part never hides an unknown.
Nothing that was judged is unknown too: a run that tested nothing has not passed. A part may be an extra: where it is unknown,
the others decide, and the run's reason names it (`docs/decisions/0009-extra-parts.md`).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.counterexample import Counterexample
    from harness.op import Value


class Verdict(enum.StrEnum):
    """What is known about the correctness of a history, a part, or a run."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"

    @property
    def as_json(self) -> bool | str:
        """Returns true, false, or `"unknown"`, as in results.json."""
        return "unknown" if self is Verdict.UNKNOWN else self is Verdict.VALID

    @classmethod
    def from_json(cls, value: Value) -> Verdict | None:
        """Returns the verdict that true, false, or `"unknown"` stands for; None for anything else."""
        if isinstance(value, bool):
            return cls.VALID if value else cls.INVALID
        return cls.UNKNOWN if value == "unknown" else None

    @property
    def severity(self) -> int:
        """Returns how bad it is: 0 for valid, 1 for unknown, 2 for invalid."""
        return {Verdict.VALID: 0, Verdict.UNKNOWN: 1, Verdict.INVALID: 2}[self]

    @property
    def exit_code(self) -> ExitCode:
        """Returns the exit code a command ends with on this verdict."""
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
        reason: One sentence with the reason and numbers.
        details: JSON-like data for the sentence.
        extra: Whether another part decides the same operations without this one. So an unknown verdict of this part is told of,
            and leaves the run's verdict to the others.
        counterexamples: Those of `details`, as the operations that they were made of; empty where the part was read from a
            file.
    """

    name: str
    verdict: Verdict
    reason: str
    details: Mapping[str, Value] = field(default_factory=dict)
    extra: bool = False
    counterexamples: Sequence[Counterexample] = field(default=(), compare=False, repr=False)

    @property
    def decides(self) -> bool:
        """Whether the run's verdict depends on it."""
        return not (self.extra and self.verdict is Verdict.UNKNOWN)
