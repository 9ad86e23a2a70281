"""The outcome of an operation by the error of a Redis server. Every verdict depends on this table.

A write is `fail` only with an error that Redis gives before it carries out the first write of the command or the script. A read
has no effect, so a read without a result is a `fail`. An answered write of a master may still vanish: Redis replicates later,
and promises no more.

Source: Redis 7.0, `processCommand` in server.c and `scriptCall` in script.c, which check these conditions before the command is
called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.answers import refused_with

if TYPE_CHECKING:
    from harness.op import Fail, Info

# The code of Redis to the code of the error in the history.
WRITE_NEVER_HAPPENED: Final = {
    "READONLY": "read-only",  # a replica got a write
    "MASTERDOWN": "master-down",  # a replica without contact, that answers only with it
    "NOREPLICAS": "no-replicas",  # fewer connected replicas than --min-replicas
    "WRONGTYPE": "wrong-type",  # the key holds another type
    "NOGROUP": "no-group",  # the stream is absent, or has no such group of consumers
}
REFUSALS: Final = ("read-only",)

# Errors that are answers of a working system.
CAS_MISMATCH: Final = "cas-mismatch"
EMPTY: Final = "empty"
HELD: Final = "held"
NOT_HELD: Final = "not-held"
ANSWERS: Final = (CAS_MISMATCH, EMPTY, HELD, NOT_HELD)


def refused(text: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation that Redis answered with an error.

    Args:
        text: The error as Redis sent it, e.g. `READONLY You can't write against a read only replica.`
        is_read: Whether the operation is a read, which never has an effect.
    """
    return refused_with(WRITE_NEVER_HAPPENED.get(text.partition(" ")[0]), text[:200], is_read=is_read)
