"""What ZooKeeper promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.kit.transactions import LIST_APPEND, RW_REGISTER
from clusters.systems.zookeeper.options import Checks, Reads, ZooKeeperOptions
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

GUIDE: Final = "ZooKeeper Programmer's Guide, Consistency Guarantees, https://zookeeper.apache.org/doc/r3.9.3/zookeeperProgrammers.html"
RECIPES: Final = "ZooKeeper Recipes and Solutions, https://zookeeper.apache.org/doc/r3.9.3/recipes.html"
LOCAL: Final = " A read without sync may be old. The test asks for recent reads all the same, as a negative control."
UNSYNCED: Final = " Without a synced log, a power loss of all nodes may lose acknowledged changes."


def promises(options: ZooKeeperOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    lost = "" if options.force_sync else UNSYNCED
    old = LOCAL if options.zookeeper_reads is Reads.LOCAL else ""
    reads = "a read after a sync is recent while one node leads" if options.zookeeper_reads is Reads.SYNC else ""
    if options.zookeeper_reads is Reads.QUORUM:
        reads = "a read after a write of its client is recent"
    changes = f"Changes take place in one order{f', and {reads}' if reads else ''}.{old}{lost}"
    level = "cursor-stability" if options.zookeeper_checks is Checks.WRITTEN else "strict-serializable"
    return {
        **dict.fromkeys(("register", "set", "counter"), Promise(sentence=changes, source=GUIDE)),
        "lock": Promise(
            sentence=f"The lowest child holds the lock, until its client deletes it or the session of the client ends.{lost}",
            source=RECIPES,
        ),
        "queue": Promise(
            sentence=f"A value stays until a client deletes its child, and one client can do that.{lost}",
            source=RECIPES,
        ),
        **dict.fromkeys(
            (LIST_APPEND, RW_REGISTER),
            Promise(
                sentence=f"A multi carries out all of its parts or none, so transactions are {level}.{lost}",
                source=GUIDE,
                options={"consistency_model": level},
            ),
        ),
    }
