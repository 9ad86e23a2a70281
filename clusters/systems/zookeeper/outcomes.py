"""The outcome of an operation by the error of a ZooKeeper node. Every verdict depends on this table.

A node answers a change with an error only after the leader has put the error, and not the change, into the order of all
transactions. So a change that is refused with one of these never happens. All other errors, a lost connection and a missing
answer say nothing: the leader may have logged the change, and may still commit it. A read has no effect, so a read without a
result is a `fail`.

An operation of several requests is `fail` only if each request before the refused one changed nothing that a workload can see.

Source: ZooKeeper 3.9.3, `PrepRequestProcessor` (which turns a `KeeperException` into a transaction of type error) and
`KeeperException.Code`.
"""

from __future__ import annotations

from typing import Final

from clusters.kit.contracts import CAS_MISMATCH, CONFLICT, EMPTY, HELD, NOT_HELD

NO_NODE: Final = -101
BAD_VERSION: Final = -103
NODE_EXISTS: Final = -110

# Code of ZooKeeper to the code of the error in the history.
WRITE_NEVER_HAPPENED: Final = {
    -8: "bad-arguments",
    NO_NODE: "no-node",
    BAD_VERSION: "bad-version",
    -108: "no-children-for-ephemerals",
    NODE_EXISTS: "node-exists",
    -111: "not-empty",
    -114: "invalid-acl",
}

# Errors that are answers of a working system.
ANSWERS: Final = (CAS_MISMATCH, HELD, NOT_HELD, EMPTY, CONFLICT)
