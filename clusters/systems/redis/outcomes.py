"""The outcome of an operation by the error of a Redis server. Every verdict depends on this table.

A write is `fail` only with an error that Redis gives before it carries out the first write of the command or the script. A read
has no effect, so a read without a result is a `fail`. An answered write of a master may still vanish: Redis replicates later,
and promises no more.

Source: Redis 7.0, `processCommand` in server.c and `scriptCall` in script.c, which check these conditions before the command is
called.
"""

from __future__ import annotations

from typing import Final

from clusters.kit.contracts import CAS_MISMATCH, EMPTY, HELD, NOT_HELD

WRONG_TYPE: Final = "WRONGTYPE"

# The code of Redis to the code of the error in the history.
WRITE_NEVER_HAPPENED: Final = {
    "READONLY": "read-only",  # a replica got a write
    "MASTERDOWN": "master-down",  # a replica without contact, that answers only with it
    "NOREPLICAS": "no-replicas",  # fewer connected replicas than --min-replicas
    WRONG_TYPE: "wrong-type",  # the key holds another type
    "NOGROUP": "no-group",  # the stream is absent, or has no such group of consumers
}
REFUSALS: Final = ("read-only",)

# Errors that are answers of a working system.
ANSWERS: Final = (CAS_MISMATCH, EMPTY, HELD, NOT_HELD)
