"""The outcome of a transaction by the error of a PostgreSQL server. Every verdict depends on this table.

A transaction has an effect only if the server carries out COMMIT. A client sends COMMIT when all statements have answers. So:

- An error of a statement before COMMIT, or a lost connection before COMMIT was sent, is `fail`: the server rolls back.
- An answer to COMMIT with one of the errors below is `fail`: the server has rolled back. Each other error there, and no answer,
  says nothing about the effect. So it is `info`, or `fail` for a transaction that only reads.

Source: PostgreSQL 15, "Appendix A. PostgreSQL Error Codes", and `CommitTransaction` in xact.c, which checks for serialization
failures before it writes the record of the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.op import Fail

if TYPE_CHECKING:
    from harness.op import Outcome

from clusters.kit.answers import no_answer

# The code of PostgreSQL to the code of the error in the history. With each of them, the server has rolled back.
ROLLED_BACK: Final = {
    "40000": "rolled-back",  # transaction_rollback
    "40001": "conflict",  # serialization_failure: by the isolation level, or by the recovery of a standby
    "40P01": "deadlock",  # deadlock_detected
}
# Errors that are answers of a working system.
ANSWERS: Final = tuple(ROLLED_BACK.values())


def refused(code: str, text: str, *, in_commit: bool, is_read: bool) -> Outcome:
    """Returns the outcome of a transaction that PostgreSQL answered with an error.

    Args:
        code: The code of the error, of five characters.
        text: What the server said.
        in_commit: Whether it is the answer to COMMIT.
        is_read: Whether the transaction only reads.
    """
    known = ROLLED_BACK.get(code)
    if known is not None:
        return Fail(f"{known}: {text}")
    wrong = f"refused: {code} {text}"
    return no_answer(wrong, is_read=is_read) if in_commit else Fail(wrong)
