"""The outcome of an operation by the error of an etcd node. Every verdict depends on this table.

A write is `fail` only with an error that etcd gives *before* it proposes the request to Raft, or while it applies an entry that
then changes nothing on any node. With every other error, such as `leader changed` or `request timed out`, the entry may be in a
log and may still be committed. A read has no effect, so a read without a result is a `fail`.

Source: etcd 3.4.23 and 3.7.3, `etcdserver/v3_server.go` (`processInternalRaftRequestOnce`: what precedes the proposal),
`etcdserver/api/v3rpc/key.go` (requests that are not valid) and the applier (a put with a lease that is gone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.answers import refused_with

if TYPE_CHECKING:
    from harness.op import Fail, Info

# Message of etcd to the code of the error in the history.
WRITE_NEVER_HAPPENED: Final = {
    "etcdserver: request is too large": "too-large",
    "etcdserver: duplicate key given in txn request": "duplicate-key",
    "etcdserver: requested lease not found": "no-lease",
}

# Errors that are answers of a working system.
CAS_MISMATCH: Final = "cas-mismatch"
HELD: Final = "held"
NOT_HELD: Final = "not-held"
CONFLICT: Final = "conflict"
ANSWERS: Final = (CAS_MISMATCH, HELD, NOT_HELD, CONFLICT)


def refused(message: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation that etcd refused.

    Args:
        message: The message of the error.
        is_read: Whether the operation is a read, which never has an effect.
    """
    return refused_with(WRITE_NEVER_HAPPENED.get(message), message, is_read=is_read)
