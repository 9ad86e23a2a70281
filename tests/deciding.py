"""Decides operations in memory, for tests: a question in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checker.decide.decision import decide, of_one
from checker.decide.history import OfObjects
from checker.decide.question import Explaining, Question
from checker.models import model as model_of
from checker.search.solving import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker._kernel import Cancellation
    from checker.keyed import KeyedAnalysis
    from checker.models import Model
    from checker.result import Analysis
    from harness.op import Operation


def question_of(
    model: Model | str,
    *,
    algorithm: str = "auto",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    cancellation: Cancellation | None = None,
    counterexample: bool = True,
    explaining: Explaining | None = None,
    **others: Any,
) -> Question:
    """Returns a question; `others` are its other fields."""
    return Question(
        model=model_of(model) if isinstance(model, str) else model,
        limits=Limits(
            algorithm=algorithm,
            time_limit_s=time_limit,
            memory_limit=memory_limit,
            threads=threads,
            cancellation=cancellation,
        ),
        explaining=(explaining or Explaining()) if counterexample else Explaining(most=0),
        **others,
    )


def analysis(model: Model | str, operations: Sequence[Operation], *, is_part: bool = False, **asked: Any) -> Analysis:
    """Decides the operations on one object, or some of them; `asked` is as in `question_of`."""
    return of_one(decide(OfObjects.of_one(operations, is_part=is_part), question_of(model, **asked)))


def check_keys(model: Model | str, operations: Iterable[Operation], **asked: Any) -> KeyedAnalysis:
    """Decides the operations on all keys; `asked` is as in `question_of`."""
    return decide(OfObjects.of(operations), question_of(model, **asked))
