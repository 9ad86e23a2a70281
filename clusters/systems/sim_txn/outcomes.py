"""The outcome of a transaction by the answers of the nodes. Every verdict depends on this table.

Only a commit has an effect. So a transaction whose commit was not sent is `fail`. The primary commits a transaction only in the
run of its process in which it began. So each answer of the table to a commit is certain. A commit without an answer is `info`.
"""

from __future__ import annotations

from typing import Final

OK: Final = "ok"
CONFLICT: Final = "conflict"  # another transaction changed one of its keys
ABORTED: Final = "aborted"  # the primary started again, and knows no such transaction
DISK_FULL: Final = "disk-full"  # the record of the commit could not be written
NOT_PRIMARY: Final = "not-the-primary"
NOT_REPLICA: Final = "not-a-replica"
NOT_CONNECTED: Final = "not-connected"
NO_ANSWER: Final = "no-answer"

FAILED: Final = frozenset({CONFLICT, ABORTED, DISK_FULL, NOT_PRIMARY, NOT_REPLICA})
ANSWERS: Final = (CONFLICT,)
