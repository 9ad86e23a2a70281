"""What etcd promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.transactions import LIST_APPEND, RW_REGISTER
from clusters.systems.etcd.options import Compares, EtcdOptions, Reads
from harness.promise import Handling, OnDamage, Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

GUARANTEES: Final = "etcd documentation, KV API guarantees, https://etcd.io/docs/v3.4/learning/api_guarantees/"
LEASES: Final = "etcd documentation, Notes on the usage of lock and lease, https://etcd.io/docs/v3.5/learning/why/"
LEASE_S: Final = 5.0
ON_DAMAGE: Final = OnDamage(
    handling=Handling.REFUSES,
    sentence="A member verifies the checksums of its log and of its snapshots, and does not start if they do not fit. The "
    "database has none, and by default no member compares it with that of others.",
    source="etcd documentation, Data Corruption, https://etcd.io/docs/v3.5/op-guide/data_corruption/",
)
OLD: Final = "A node answers a serializable read from its own state, which may be old."


def promises(options: EtcdOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    fresh = options.etcd_reads is Reads.LINEARIZABLE
    control = "" if fresh else f" {OLD} The test asks for recent reads all the same, as a negative control."
    linearizable = Promise(sentence=f"Operations are linearizable.{control}", source=GUARANTEES)
    return {
        **dict.fromkeys(("register", "set", "counter"), linearizable),
        "lock": Promise(
            sentence="One client holds a lock until it releases it, or until the lease of the lock has ended; only the lease "
            "frees the lock of a client that is gone.",
            source=LEASES,
            options={"sessions": False, "lease_s": LEASE_S},
        ),
        "log": Promise(
            sentence="A watch shows each change once, in order, and leaves out none; it may lag.",
            source=f"{GUARANTEES} (Watch APIs)",
            options={"follow": True},
        ),
        **dict.fromkeys((LIST_APPEND, RW_REGISTER), _transactions(options, fresh=fresh)),
    }


def _transactions(options: EtcdOptions, *, fresh: bool) -> Promise:
    """Returns the promise of the client's transactions, which are two transactions of etcd."""
    if options.etcd_compares is Compares.NONE:
        sentence = "Transactions that compare no key promise nothing: they lose updates, as a negative control."
        return Promise(sentence=sentence, source=GUARANTEES)
    level = "snapshot-isolation" if options.etcd_compares is Compares.WRITTEN else "strict-serializable"
    if not fresh and options.etcd_compares is Compares.ALL:
        level = "serializable"
    return Promise(
        sentence=f"Transactions are {level}, by the keys whose revisions they compare and the reads that they use.",
        source=GUARANTEES,
        options={"consistency_model": level},
    )
