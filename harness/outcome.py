"""The outcome of a run: what its parts say, or the error that it broke off with.

What carries out a run returns it, and everything else follows from it: exit codes, counts, lines and pages. A definite failure
is never masked by an error: what a run recorded before it broke off may be invalid, and then it is. `RunOutcome.verdict` is the
only place that has this rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.errors import ExitCode, worst_code
from harness.suites.expectation import Shown
from harness.verdict import CONTROL_NODE, Verdict, reason_of, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.verdict import Part


def failures(parts: Iterable[Part]) -> tuple[str, ...]:
    """Returns the parts that decide a run and are not valid, as `name=verdict`."""
    return tuple(f"{part.name}={part.verdict}" for part in parts if part.decides and part.verdict is not Verdict.VALID)


def behind(parts: Iterable[Part]) -> str | None:
    """Returns the sentence that the control node was behind; None if it kept up, or if it is unknown."""
    reasons = (part.reason for part in parts if part.name == CONTROL_NODE and part.verdict is not Verdict.VALID)
    return next(reasons, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        judged: The verdict of its parts; None if nothing was judged.
        sentence: The reason of that verdict; empty if there is none.
        parts: The parts of the verdict.
        error: The error that broke the run off; None if there is none.
        interrupted: Whether a person ended the run early.
        crossed: A sentence for each threshold that it crossed.
    """

    judged: Verdict | None
    sentence: str = ""
    parts: Sequence[Part] = ()
    error: str | None = None
    interrupted: bool = False
    crossed: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        parts: Sequence[Part],
        *,
        sentence: str | None = None,
        error: str | None = None,
        interrupted: bool = False,
        crossed: Sequence[str] = (),
    ) -> RunOutcome:
        """Returns the outcome of a run that was judged; the sentence is by default that of its first deciding part."""
        return cls(
            judged=verdict_of(parts),
            sentence=reason_of(parts) if sentence is None else sentence,
            parts=tuple(parts),
            error=error,
            interrupted=interrupted,
            crossed=tuple(crossed),
        )

    @property
    def verdict(self) -> Verdict | None:
        """Returns the verdict; None if nothing was judged, or if an error broke the run off and it is not invalid."""
        return None if self.error is not None and self.judged is not Verdict.INVALID else self.judged

    @property
    def reason(self) -> str:
        """Returns the reason of the verdict; the error if there is no verdict."""
        return self.error if self.error is not None and self.verdict is None else self.sentence

    @property
    def invalid(self) -> tuple[str, ...]:
        """Returns the names of the invalid parts."""
        return tuple(part.name for part in self.parts if part.verdict is Verdict.INVALID)

    @property
    def undecided(self) -> tuple[str, ...]:
        """Returns the names of the parts that count for the verdict and are unknown."""
        return tuple(part.name for part in self.parts if part.decides and part.verdict is Verdict.UNKNOWN)

    @property
    def behind(self) -> bool:
        """Returns whether the control node was behind."""
        return behind(self.parts) is not None

    @property
    def shown(self) -> Shown | None:
        """Returns what the run showed, for the expectation of a suite; None if there is no verdict."""
        if self.verdict is None:
            return None
        return Shown(verdict=self.verdict, failures=failures(self.parts), crossed=self.crossed, behind=self.behind)

    @property
    def alone(self) -> Verdict | None:
        """Returns the verdict with the thresholds, as if no suite expected another verdict; None if there is no verdict."""
        return None if self.shown is None else self.shown.alone

    @property
    def exit_code(self) -> ExitCode:
        """Returns the exit code of a command that carries out this run (docs/decisions/0007)."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.INTERNAL if self.alone is None else self.alone.exit_code

    def brief(self) -> RunOutcome:
        """Returns the outcome without the details of its parts, to keep many of them, and to pass them between processes."""
        return replace(self, parts=tuple(replace(part, details={}, counterexamples=()) for part in self.parts))


def worst(outcomes: Iterable[RunOutcome]) -> ExitCode:
    """Returns the exit code of the worst run; that of an unknown verdict if there is none."""
    return worst_code(outcome.exit_code for outcome in outcomes)
