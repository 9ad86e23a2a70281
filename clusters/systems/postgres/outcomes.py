"""The outcome of a transaction by the error of a PostgreSQL server. Every verdict depends on this table.

A transaction has an effect only if the server carries out COMMIT. A client sends COMMIT when all statements have answers. So:

- An error of a statement before COMMIT, or a lost connection before COMMIT was sent, is `fail`: the server rolls back.
- An answer to COMMIT with one of the errors below is `fail`: the server has rolled back. Each other error there, and no answer,
  says nothing about the effect. So it is `info`, or `fail` for a transaction that only reads.

Source: PostgreSQL 15, "Appendix A. PostgreSQL Error Codes", and `CommitTransaction` in xact.c, which checks for serialization
failures before it writes the record of the commit.
"""

from __future__ import annotations

from typing import Final

# The code of PostgreSQL to the code of the error in the history. With each of them, the server has rolled back.
ROLLED_BACK: Final = {
    "40000": "rolled-back",  # transaction_rollback
    "40001": "conflict",  # serialization_failure: by the isolation level, or by the recovery of a standby
    "40P01": "deadlock",  # deadlock_detected
}
# Errors that are answers of a working system.
ANSWERS: Final = tuple(ROLLED_BACK.values())
