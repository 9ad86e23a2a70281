"""The planted bugs: deliberate mistakes of the store. A run has at most one.

A bug changes a line or two of the correct code, in the part where a real system would have it. `TABLE` names real systems with
the same mistake, by the reports of jepsen.io/analyses where there is one.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.sim.planted import Planted
from harness.declare import Needs

if TYPE_CHECKING:
    from collections.abc import Mapping


class Bug(enum.StrEnum):
    """A planted bug; `none` is the correct version."""

    NONE = "none"
    RETRIES_UNKNOWN = "retries-unknown"
    APPLIED_TWICE = "applied-twice"
    OLD_TIMESTAMP = "old-timestamp"
    LATE_SNAPSHOT = "late-snapshot"
    OWN_WRITES_MISSING = "own-writes-missing"
    LOCKS_EXISTING_KEYS = "locks-existing-keys"
    ONE_DIRECTION = "one-direction"
    LOST_UPDATES = "lost-updates"
    ABORT_LEAVES_WRITES = "abort-leaves-writes"
    PARTIAL_AFTER_CRASH = "partial-after-crash"
    COMMIT_BEFORE_SYNC = "commit-before-sync"
    REPLICA_ORDER = "replica-order"
    OLD_LEADER_READS = "old-leader-reads"
    NEW_LEADER_TIMESTAMP = "new-leader-timestamp"
    FORGETS_COMMITTED = "forgets-committed"
    COMMIT_BEFORE_MAJORITY = "commit-before-majority"
    FAILED_SYNC_TRUSTED = "failed-sync-trusted"


# Faults after which a process starts again from its disk.
_RESTARTS: Final = ("kill", "leaders-kill", "crash", "power-loss")

TABLE: Final[Mapping[Bug, Planted]] = MappingProxyType(
    {
        Bug.RETRIES_UNKNOWN: Planted(
            does="A client carries out a transaction again if its commit has no answer.",
            seen="TiDB 2.1.7, etcd 3.5.5 (issue 14890)",
        ),
        Bug.APPLIED_TWICE: Planted(
            does="The leader carries out a commit again that comes again.",
            seen="MongoDB 4.2.6",
        ),
        Bug.OLD_TIMESTAMP: Planted(
            does="The leader gives snapshots of a time that it renews ten times a second, and not with each commit.",
        ),
        Bug.LATE_SNAPSHOT: Planted(
            does="A transaction takes its snapshot with its second access, and the first read is of the time before.",
        ),
        Bug.OWN_WRITES_MISSING: Planted(
            does="A transaction does not see its own writes.",
            seen="FaunaDB 2.6.0",
        ),
        Bug.LOCKS_EXISTING_KEYS: Planted(
            does="A commit does not check the keys that it read and that did not exist.",
            seen="TiDB 3.0.0-beta.1",
            needs=Needs(options={"isolation": ("serializable",)}),
        ),
        Bug.ONE_DIRECTION: Planted(
            does="A commit checks the keys that it read before its first write, and not those that it read after it.",
            seen="PostgreSQL 12.3",
            needs=Needs(options={"isolation": ("serializable",)}),
        ),
        Bug.LOST_UPDATES: Planted(
            does="A commit does not check the keys that it writes.",
        ),
        Bug.ABORT_LEAVES_WRITES: Planted(
            does="A commit that meets a conflict leaves the writes before the key of the conflict.",
        ),
        Bug.PARTIAL_AFTER_CRASH: Planted(
            does="A node writes each key of a commit by itself, a moment after the one before, so a crash leaves a part.",
            needs=Needs(faults=_RESTARTS),
        ),
        Bug.COMMIT_BEFORE_SYNC: Planted(
            does="The nodes acknowledge a commit before its record is synced.",
            needs=Needs(faults=("power-loss",)),
        ),
        Bug.REPLICA_ORDER: Planted(
            does="A replica applies commits in another order than the leader.",
            seen="Amazon RDS for PostgreSQL, multi-AZ",
            needs=Needs(options={"reads_from": ("replica",), "consistency_model": ("serializable",)}),
        ),
        Bug.OLD_LEADER_READS: Planted(
            does="A leader answers transactions that only read without asking whether it still leads.",
        ),
        Bug.NEW_LEADER_TIMESTAMP: Planted(
            does="A new leader gives snapshots of the last commit that it had heard of, until it commits a transaction.",
            seen="YugaByte 1.3.1",
        ),
        Bug.FORGETS_COMMITTED: Planted(
            does="A new leader answers that the transactions which earlier leaders committed are aborted.",
        ),
        Bug.COMMIT_BEFORE_MAJORITY: Planted(
            does="The leader answers a commit, and shows it, before a majority of the nodes has it.",
        ),
        Bug.FAILED_SYNC_TRUSTED: Planted(
            does="A node goes on with a record although both syncs of it have failed.",
            seen="PostgreSQL before 12 (wiki.postgresql.org/wiki/Fsync_Errors)",
            needs=Needs(faults=("disk-error",)),
        ),
    }
)
