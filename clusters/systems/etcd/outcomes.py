"""The outcome of an operation by the error of an etcd node. Every verdict depends on this table.

A write is `fail` only with an error that etcd gives *before* it proposes the request to Raft, or while it applies an entry that
then changes nothing on any node. With every other error, such as `leader changed` or `request timed out`, the entry may be in a
log and may still be committed. A read has no effect, so a read without a result is a `fail`.

Source: etcd 3.4.23 and 3.7.3, `etcdserver/v3_server.go` (`processInternalRaftRequestOnce`: what precedes the proposal),
`etcdserver/api/v3rpc/key.go` (requests that are not valid) and the applier (a put with a lease that is gone).
"""

from __future__ import annotations

from typing import Final

from clusters.kit.contracts import CAS_MISMATCH, CONFLICT, HELD, NOT_HELD

# Message of etcd to the code of the error in the history.
WRITE_NEVER_HAPPENED: Final = {
    "etcdserver: request is too large": "too-large",
    "etcdserver: duplicate key given in txn request": "duplicate-key",
    "etcdserver: requested lease not found": "no-lease",
}

# Errors that are answers of a working system.
ANSWERS: Final = (CAS_MISMATCH, HELD, NOT_HELD, CONFLICT)
