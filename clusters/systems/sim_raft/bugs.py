"""The planted bugs: deliberate mistakes of the system. A run has at most one.

A bug changes a line or two of the correct code, in the part where a real system would have it. `TABLE` names real systems with
the same mistake, and their issues.
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
    READ_WITHOUT_QUORUM = "read-without-quorum"
    READ_BEFORE_OWN_ENTRY = "read-before-own-entry"
    FOLLOWER_READS = "follower-reads"
    LEASE_TOO_LONG = "lease-too-long"
    LEASE_ON_WALL_CLOCK = "lease-on-wall-clock"
    LEASE_KEPT_IN_TRANSFER = "lease-kept-in-transfer"
    RESTARTED_VOTER_BREAKS_LEASE = "restarted-voter-breaks-lease"
    VOTE_NOT_PERSISTED = "vote-not-persisted"
    TERM_NOT_PERSISTED = "term-not-persisted"
    TWO_VOTES_IN_A_TERM = "two-votes-in-a-term"
    VOTE_COUNTED_TWICE = "vote-counted-twice"
    VOTE_OF_OLD_TERM = "vote-of-old-term"
    VOTE_FOR_SHORTER_LOG = "vote-for-shorter-log"
    VOTE_BY_LENGTH = "vote-by-length"
    HALF_IS_MAJORITY = "half-is-majority"
    HALF_OF_EVEN_IS_MAJORITY = "half-of-even-is-majority"
    OLD_TERM_COMMITTED_BY_COUNT = "old-term-committed-by-count"
    MATCH_OF_OLD_TERM = "match-of-old-term"
    HIGHER_TERM_IGNORED = "higher-term-ignored"
    COMMITTED_ENTRIES_CUT = "committed-entries-cut"
    PREVIOUS_TERM_NOT_CHECKED = "previous-term-not-checked"
    OLD_LEADER_OBEYED = "old-leader-obeyed"
    STALE_APPEND_CUTS = "stale-append-cuts"
    COMMIT_PAST_MATCH = "commit-past-match"
    OLD_SNAPSHOT_INSTALLED = "old-snapshot-installed"
    SNAPSHOT_KEEPS_CONFLICT = "snapshot-keeps-conflict"
    SNAPSHOT_WITHOUT_SESSIONS = "snapshot-without-sessions"
    RETRY_APPLIED_TWICE = "retry-applied-twice"
    LOST_LEADERSHIP_IS_FAIL = "lost-leadership-is-fail"
    ACKNOWLEDGED_BEFORE_FSYNC = "acknowledged-before-fsync"
    LOG_END_NOT_RESTORED = "log-end-not-restored"
    LOST_ENTRIES_NOT_NOTICED = "lost-entries-not-noticed"
    CHECKSUM_NOT_VERIFIED = "checksum-not-verified"
    OLDER_PROMISES_TRUSTED = "older-promises-trusted"
    FAILED_SYNC_TRUSTED = "failed-sync-trusted"
    TRANSFER_UNCHECKED = "transfer-unchecked"


# A read through the log is an entry, so no mistake about reads affects it. Locks have no reads.
_WITHOUT_LOG: Final = MappingProxyType({"reads": ("read-index", "lease")})
_LEASE: Final = MappingProxyType({"reads": ("lease",)})
_READING: Final = ("register", "set", "log", "counter")
# With two nodes, both vote for each leader, so the old leader knows of the new one.
_BESIDE_A_MAJORITY: Final = MappingProxyType({"nodes": 3})
_SNAPSHOTS: Final = Needs(at_least={"nodes": 2, "snapshot_entries": 1})
_DAMAGES: Final = ("file-truncate", "file-bitflip", "file-copy", "file-rollback")
# Faults after which a node starts again from its disk.
_RESTARTS: Final = ("kill", "leaders-kill", "crash", "power-loss", "disk-full", *_DAMAGES)
# What most bugs need, because a single node has nobody to disagree with.
_TWO_NODES: Final = Needs(at_least={"nodes": 2})

TABLE: Final[Mapping[Bug, Planted]] = MappingProxyType(
    {
        Bug.READ_WITHOUT_QUORUM: Planted(
            does="A leader answers reads at once, without asking a majority whether it still leads.",
            seen="etcd (etcd-io/etcd#741); Consul (hashicorp/consul#54)",
            needs=Needs(options=_WITHOUT_LOG, at_least=_BESIDE_A_MAJORITY, workloads=_READING),
        ),
        Bug.READ_BEFORE_OWN_ENTRY: Planted(
            does="A new leader answers reads before it has committed an entry of its own term, so it may lack commits.",
            seen="etcd (etcd-io/etcd#7331); RedisRaft (RedisLabs/redisraft#18)",
            needs=Needs(options=_WITHOUT_LOG, at_least={"nodes": 2}, workloads=_READING),
        ),
        Bug.FOLLOWER_READS: Planted(
            does="Every node answers reads from its applied state.",
            seen="hraftd, an example program, documents it (otoolep/hraftd#22)",
            needs=Needs(workloads=_READING),
        ),
        Bug.LEASE_TOO_LONG: Planted(
            does="A leader trusts its lease for three election timeouts, and voters forget it after one.",
            seen="SOFAJRaft (sofastack/sofa-jraft#34)",
            needs=Needs(options=_LEASE, at_least=_BESIDE_A_MAJORITY, workloads=_READING),
        ),
        Bug.LEASE_ON_WALL_CLOCK: Planted(
            does="A leader measures its lease by the wall clock, which can be set back.",
            seen="SOFAJRaft (sofastack/sofa-jraft#26)",
            needs=Needs(
                options=_LEASE,
                at_least=_BESIDE_A_MAJORITY,
                workloads=_READING,
                faults=("clock-skew", "clock-strobe"),
            ),
        ),
        Bug.LEASE_KEPT_IN_TRANSFER: Planted(
            does="A leader still trusts its lease after a transfer, though the election does not wait for its end.",
            seen="asked about etcd's library (etcd-io/raft#99, etcd-io/etcd#12704)",
            needs=Needs(
                options=_LEASE,
                at_least=_BESIDE_A_MAJORITY,
                workloads=_READING,
                faults=("leadership-transfer",),
            ),
        ),
        Bug.RESTARTED_VOTER_BREAKS_LEASE: Planted(
            does="A restarted node votes at once, though it may have granted a leader a lease.",
            seen="NebulaGraph (vesoft-inc/nebula#5352)",
            needs=Needs(
                options=_LEASE,
                at_least=_BESIDE_A_MAJORITY,
                workloads=_READING,
                faults=_RESTARTS,
            ),
        ),
        Bug.VOTE_NOT_PERSISTED: Planted(
            does="A node keeps its vote in memory only, so after a restart it votes again in the same term.",
            seen="Barge (mgodave/barge#5)",
            needs=Needs(at_least={"nodes": 2}, faults=_RESTARTS),
        ),
        Bug.TERM_NOT_PERSISTED: Planted(
            does="A node keeps term and vote in memory only; a restart takes the term from the log.",
            seen="raft-java (wenweihu86/raft-java#57)",
            needs=Needs(at_least={"nodes": 2}, faults=_RESTARTS),
        ),
        Bug.TWO_VOTES_IN_A_TERM: Planted(
            does="A node votes for every candidate of a term whose log is good enough.",
            seen="Zeebe (camunda/camunda#5356); Hazelcast (hazelcast/hazelcast#16643)",
            needs=_TWO_NODES,
        ),
        Bug.VOTE_COUNTED_TWICE: Planted(
            does="A candidate counts answers, not voters, so a duplicate message is two votes.",
            seen="Xraft (xnnyygn/xraft#27)",
            # With three nodes, the candidate and one voter are a majority.
            needs=Needs(at_least={"nodes": 4}),
        ),
        Bug.VOTE_OF_OLD_TERM: Planted(
            does="A candidate counts a late vote for an earlier term.",
            seen="little-raft (andreev-io/little-raft#44); akka-raft (ktoso/akka-raft#46)",
            needs=_TWO_NODES,
        ),
        Bug.VOTE_FOR_SHORTER_LOG: Planted(
            does="A voter does not compare the candidate's log with its own.",
            seen="akka-raft (ktoso/akka-raft#30); jgroups-raft (jgroups-extras/jgroups-raft#14)",
            needs=_TWO_NODES,
        ),
        Bug.VOTE_BY_LENGTH: Planted(
            does="A voter compares the lengths of the logs, and not the terms of their last entries.",
            seen="noraft (sile/noraft#22)",
            needs=_TWO_NODES,
        ),
        Bug.HALF_IS_MAJORITY: Planted(
            does="The majority of n nodes is n/2, rounded down: 2 of 5.",
            seen="async-raft, for reads (async-raft/async-raft#143)",
            needs=_TWO_NODES,
        ),
        Bug.HALF_OF_EVEN_IS_MAJORITY: Planted(
            does="The majority of n nodes is n/2, rounded up: right for 5, but 2 of 4.",
            seen="rafter (andrewjstone/rafter#16)",
            needs=Needs(options={"nodes": (4, 2, 6, 8)}),
        ),
        Bug.OLD_TERM_COMMITTED_BY_COUNT: Planted(
            does="A leader commits entries of earlier terms when a majority has them, and begins its term without an entry.",
            seen="LogCabin (logcabin/logcabin#44); dqlite's raft (canonical/raft#220); PySyncObj (bakwc/PySyncObj#169)",
            needs=_TWO_NODES,
        ),
        Bug.MATCH_OF_OLD_TERM: Planted(
            does="A leader keeps the positions of its followers from an earlier term as leader.",
            seen="Copycat (atomix/copycat#29)",
            needs=_TWO_NODES,
        ),
        Bug.HIGHER_TERM_IGNORED: Planted(
            does="A leader does not step down when a follower answers with a higher term, and counts that answer for reads.",
            seen="Stratus (cloudwalk/stratus#1048)",
            needs=_TWO_NODES,
        ),
        Bug.COMMITTED_ENTRIES_CUT: Planted(
            does="A new leader makes its followers drop all entries after the end of its log at the start of its process.",
            seen="DLedger 0.4.0 (finding 1 in clusters/systems/dledger/findings/dledger-0.4.0.md)",
            needs=_TWO_NODES,
        ),
        Bug.PREVIOUS_TERM_NOT_CHECKED: Planted(
            does="A follower accepts entries after any entry of the right index, whatever its term.",
            needs=_TWO_NODES,
        ),
        Bug.OLD_LEADER_OBEYED: Planted(
            does="A follower accepts entries from the leader of an earlier term.",
            needs=_TWO_NODES,
        ),
        Bug.STALE_APPEND_CUTS: Planted(
            does="A follower cuts its log at the end of a late message, though it already has later entries.",
            seen="willemt's raft (willemt/raft#37)",
            needs=_TWO_NODES,
        ),
        Bug.COMMIT_PAST_MATCH: Planted(
            does="A follower takes the leader's commit index up to the end of its own log, though that end may not match.",
            seen="Copycat (atomix/copycat#265); ScyllaDB (scylladb/scylladb#9965)",
            needs=_TWO_NODES,
        ),
        Bug.OLD_SNAPSHOT_INSTALLED: Planted(
            does="A follower installs a snapshot that is older than its applied state, and drops its log.",
            seen="openraft (databendlabs/openraft#543)",
            needs=_SNAPSHOTS,
        ),
        Bug.SNAPSHOT_KEEPS_CONFLICT: Planted(
            does="A follower keeps its entries after an installed snapshot, though its entry at that index has another term.",
            seen="DLedger 0.4.0 (finding 9 in clusters/systems/dledger/findings/dledger-0.4.0.md); "
            "HashiCorp's raft (hashicorp/raft#704)",
            needs=_SNAPSHOTS,
        ),
        Bug.SNAPSHOT_WITHOUT_SESSIONS: Planted(
            does="A snapshot has the state machine, but not the table of sessions.",
            needs=Needs(at_least={"snapshot_entries": 1}),
        ),
        Bug.RETRY_APPLIED_TWICE: Planted(
            does="A repeated request takes effect again.",
            seen="jetcd, the Java client of etcd (etcd-io/etcd#14890, etcd-io/jetcd#1444)",
            needs=Needs(at_least={"attempts": 2}),
        ),
        Bug.LOST_LEADERSHIP_IS_FAIL: Planted(
            does="A deposed leader answers its waiting commands as refused, though they are in its log and may survive.",
            seen="RedisRaft (RedisLabs/redisraft#23)",
            needs=_TWO_NODES,
        ),
        Bug.ACKNOWLEDGED_BEFORE_FSYNC: Planted(
            does="A node acknowledges entries when they are written, before they are synced.",
            seen="NATS JetStream (nats-io/nats-server#7564); TiKV (tikv/tikv#994)",
            # Files are damaged too: the node does not notice the loss of entries that it acknowledged without a sync.
            needs=Needs(faults=("power-loss", *_DAMAGES)),
        ),
        Bug.LOG_END_NOT_RESTORED: Planted(
            does="A restart drops the last record as torn, though it may be whole.",
            needs=Needs(faults=_RESTARTS),
        ),
        Bug.LOST_ENTRIES_NOT_NOTICED: Planted(
            does="A node whose disk has lost acknowledged entries votes as if it never had them.",
            seen="NATS (nats-io/nats-server#7587); NuRaft (eBay/NuRaft#185)",
            needs=Needs(faults=_DAMAGES),
        ),
        Bug.CHECKSUM_NOT_VERIFIED: Planted(
            does="A restart does not verify the checksums of the log.",
            needs=Needs(faults=("file-bitflip", "file-copy", "file-rollback")),
        ),
        Bug.OLDER_PROMISES_TRUSTED: Planted(
            does="A restart takes the first whole copy of its promises, though the other one is newer.",
            needs=Needs(faults=("file-rollback",)),
        ),
        Bug.FAILED_SYNC_TRUSTED: Planted(
            does="After a failed sync, a node syncs again what it reads, and takes it as durable.",
            seen="PostgreSQL before 12 (wiki.postgresql.org/wiki/Fsync_Errors)",
            needs=Needs(faults=("disk-error",)),
        ),
        Bug.TRANSFER_UNCHECKED: Planted(
            does="A leader transfers its leadership to a follower that is not up to date, and the voters trust it.",
            needs=Needs(at_least={"nodes": 2}, faults=("leadership-transfer",)),
        ),
    }
)
