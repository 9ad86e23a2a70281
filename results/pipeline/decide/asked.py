"""What is asked about each key of runs: the question of `labrys check`, with limits that are those of one key."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from checker.checking import conventions_of, make_model
from checker.decide.question import Explaining, Question
from checker.deciders import DEFAULT_MODEL
from checker.formats.readers import PARQUET
from checker.keyed import EXPLAINED
from checker.search.solving import AUTO, Limits
from results.pipeline.decide.coding import coding_of
from results.pipeline.decide.rows import BYTES_PER_OPERATION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.models import Model
    from results.pipeline.decide.coding import RegisterCoding


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOptions:
    """The options of the check, as `labrys check` has them.

    Attributes:
        model: The model's class, or the name of an installed one.
        initial: The initial state in EDN; None: the model's own.
        conventions: `nil_read`, `failed_cas` and `crashed_dequeue`, if they differ from the conventions of our own formats.
        algorithm: One of `checker.search.solving.ALGORITHMS`.
        time_limit_s: Wall time for the search of one key; None for no limit.
        memory_limit: Bytes for one key in a worker.
        cross_check: Whether a second algorithm must agree.
        certificate: Whether to return the linearization of valid keys.
        explain_model: Whether to return the effort of the search of each key.
        explained: For how many invalid keys of a run a counterexample is searched; those with the earliest violations.
    """

    model: type[Model] | str = DEFAULT_MODEL
    initial: str | None = None
    conventions: Mapping[str, str] = field(default_factory=dict)
    algorithm: str = AUTO
    time_limit_s: float | None = 60.0
    memory_limit: int = 1 << 30
    cross_check: bool = False
    certificate: bool = False
    explain_model: bool = False
    explained: int = EXPLAINED

    def asked(self) -> Asked:
        """Returns what is asked about each key.

        Raises:
            InputError: The model does not exist, or cannot have this initial state.
        """
        limits = Limits(
            algorithm=self.algorithm, time_limit_s=self.time_limit_s, memory_limit=self.memory_limit, threads=1
        )
        return Asked(
            question=Question(
                model=make_model(self.model, self.initial, {**conventions_of(PARQUET), **self.conventions}),
                limits=limits,
                certificate=self.certificate,
                cross_check=self.cross_check,
                explain_model=self.explain_model,
                explaining=Explaining(most=self.explained),
            ),
            memory_limit=self.memory_limit,
        )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked about each key.

    Attributes:
        question: The question, whose limits are those of one key.
        memory_limit: Bytes for one key.
    """

    question: Question
    memory_limit: int

    @property
    def most(self) -> int:
        """How many operations of a key fit into memory as objects."""
        return max(self.memory_limit // BYTES_PER_OPERATION, 1)

    @property
    def coding(self) -> RegisterCoding | None:
        """How integers represent operations; None if whole operations have to decide."""
        return None if self.question.needs_objects else coding_of(self.question.model)
