"""What Redis promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.transactions import LIST_APPEND, RW_REGISTER
from clusters.systems.redis.options import Asks, Fsync, QueueBy, RedisOptions, TransactionsBy
from harness.promise import Handling, OnDamage, Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

REPLICATION: Final = (
    "Redis documentation, https://redis.io/docs/latest/operate/oss_and_stack/management/replication/ and "
    "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/"
)
LOCKS: Final = (
    "Redis documentation, Distributed locks, https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/"
)
UNSYNCED: Final = {
    Fsync.ALWAYS: "",
    Fsync.EVERYSEC: ", and a power loss those of the last second",
    Fsync.NO: ", and a power loss those that are not on the disk",
}
LEASE_S: Final = 5.0
ON_DAMAGE: Final = OnDamage(
    handling=Handling.REFUSES,
    sentence="Redis cuts off a torn end of its append-only file, and does not start if it finds damage before that. "
    "The file has no checksums, so Redis does not promise to find all damage.",
    source="redis.conf of Redis 7.0, aof-load-truncated, https://github.com/redis/redis/blob/7.0/redis.conf",
)


def promises(options: RedisOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    lost = losses(options)
    own = options.asks is Asks.OWN
    one = (
        "A replica answers reads from its own state, which may be old."
        if own
        else "A master carries out one command at a time."
    )
    once = "before the client has it" if options.queue_by is QueueBy.LIST else "after the client acknowledges it"
    return {
        "register": Promise(
            sentence=f"{one} {lost}", source=REPLICATION, options={"linearizable": False} if own else {}
        ),
        "set": Promise(sentence=f"{one} {lost}", source=REPLICATION, options={"linearizable": False} if own else {}),
        "counter": Promise(sentence=f"{one} {lost}", source=REPLICATION),
        "queue": Promise(
            sentence=f"A value comes out once, unless a client is lost meanwhile; it is removed {once}. {lost}",
            source=REPLICATION,
        ),
        "lock": Promise(
            sentence=f"One client holds a lock until it releases it, or until the lease of the lock has ended. {lost}",
            source=LOCKS,
            options={"sessions": False, "lease_s": LEASE_S},
        ),
        **dict.fromkeys((LIST_APPEND, RW_REGISTER), _transactions(options)),
    }


def losses(options: RedisOptions) -> str:
    """Returns the sentence about the acknowledged writes that Redis may lose."""
    return f"A failover may lose acknowledged writes{UNSYNCED[options.fsync]}; the test reports that."


def _transactions(options: RedisOptions) -> Promise:
    if options.transactions_by is TransactionsBy.COMMANDS:
        sentence = (
            "Other commands run between the commands of a transaction, so it promises nothing: a negative control."
        )
        return Promise(sentence=sentence, source=REPLICATION)
    level = "serializable" if options.asks is Asks.OWN else "strict-serializable"
    return Promise(
        sentence=f"A script runs alone on the master, so transactions are {level}. {losses(options)}",
        source=REPLICATION,
        options={"consistency_model": level},
    )
