"""The outcome of a transaction by the answers of the nodes. Every verdict depends on this table.

Only a commit has an effect. So a transaction whose commit was not sent is `fail`. Only the leader of the term in which a
transaction began appends its record. A later leader answers for it as soon as a record of its own term is committed: then a
majority has this record, and a record of an earlier term that the leader lacks is never committed. So each answer in
`NEVER_HAPPENED` to a commit is certain. Any other answer, or none, is `info`.
"""

from __future__ import annotations

from typing import Final

from clusters.sim import asking

OK: Final = "ok"
CONFLICT: Final = "conflict"  # another transaction changed one of its keys
ABORTED: Final = "aborted"  # it began in an earlier term, or the leader knows no such transaction
DISK_FULL: Final = "disk-full"  # the leader could not write the record
NOT_LEADER: Final = "not-the-leader"  # or no longer, or not yet with a committed record of its own term
NOT_READY: Final = "not-ready"  # a node that has not heard of a leader since its start
NOT_CONNECTED: Final = asking.NOT_CONNECTED
NO_ANSWER: Final = asking.NO_ANSWER

# The codes of an answer to a commit after which the transaction never happens.
NEVER_HAPPENED: Final = {code: code for code in (CONFLICT, ABORTED, DISK_FULL)}
ANSWERS: Final = (CONFLICT,)
