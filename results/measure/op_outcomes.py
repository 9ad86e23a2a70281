"""The outcome of an operation: `ok`, `fail`, `info` or `refused`.

The rule: every count, table and picture of operations uses the outcome that `outcome` returns. A *refusal* is a `fail` by which
a node names the leader. It is not an outage, so it is not counted as `fail`. The history keeps its own types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

REFUSED: Final = "refused"
# In the order of every picture and table.
OUTCOMES: Final = (*(str(kind) for kind in (OpType.OK, OpType.INFO, OpType.FAIL)), REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codes:
    """The meaning of codes of `fail` errors; a run's `test.json` has them.

    Attributes:
        answers: A working system gives them as an answer.
        refusals: A node names the leader.
    """

    answers: AbstractSet[str] = frozenset()
    refusals: AbstractSet[str] = frozenset()


def outcome(type_: str, error: str | None, codes: Codes) -> str:
    """Returns the outcome of an operation that ended, one of `OUTCOMES`.

    Args:
        type_: The type of its completion.
        error: The error of its completion.
        codes: The meaning of error codes.
    """
    return REFUSED if type_ == OpType.FAIL and error_code(error) in codes.refusals else str(type_)


def answered(type_: str, error: str | None, codes: Codes) -> bool:
    """Returns whether the system answered the operation: it is `ok`, or a `fail` that is normal for a working system.

    Args:
        type_: The type of its completion.
        error: The error of its completion.
        codes: The meaning of error codes.
    """
    if type_ == OpType.FAIL:
        return error_code(error) in codes.answers
    return type_ == OpType.OK


def error_code(error: str | None) -> str | None:
    """Returns the code of an error, which ends at its first colon."""
    return None if error is None else error.partition(":")[0].strip()
