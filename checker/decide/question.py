"""What is asked about a history, and how much of its violations is explained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from checker.keyed import EXPLAINED
from checker.search.solving import Limits
from harness.verdict import Verdict

if TYPE_CHECKING:
    from checker.models import Model

_SHOWS_ALL: Final = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explaining:
    """For which invalid keys a small part is searched that is invalid by itself.

    Attributes:
        most: The maximum number of keys; those with the earliest violations.
        limit_s: Seconds for all of them; later keys get none, but the first one always does. None for no limit.
    """

    most: int = EXPLAINED
    limit_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked about a history.

    Attributes:
        model: The model of each object.
        limits: The algorithm, and the limits of all keys together.
        certificate: Whether to return the linearization of valid keys.
        cross_check: Whether a second algorithm must agree.
        fail_fast: Whether one invalid key is enough; other keys may then end as unknown.
        explain_model: Whether to return the effort of the slowest key.
        empty: The verdict if there are no operations: unknown, or valid as in knossos.
        explaining: Which invalid keys are explained by a small part of them.
    """

    model: Model
    limits: Limits = field(default_factory=Limits)
    certificate: bool = False
    cross_check: bool = False
    fail_fast: bool = False
    explain_model: bool = False
    empty: Verdict = Verdict.UNKNOWN
    explaining: Explaining = field(default_factory=Explaining)

    @property
    def needs_objects(self) -> bool:
        """Whether the answer needs all operations as objects: configurations, linearizations, statistics of the search."""
        return self.limits.algorithm == _SHOWS_ALL or self.certificate or self.explain_model
