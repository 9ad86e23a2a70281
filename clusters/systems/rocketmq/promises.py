"""What RocketMQ promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.rocketmq.broker_options import Flush, Mode, RocketMQOptions
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

FAILOVER: Final = "RocketMQ documentation, Master-Slave automatic switchover, https://rocketmq.apache.org/docs/deploymentOperations/03autofailover"
RIP_44: Final = (
    "RIP-44, Support DLedger Controller, https://github.com/apache/rocketmq/wiki/RIP-44-Support-DLedger-Controller"
)
ORDER: Final = "Each message queue keeps the order of its producer, and a group gets each message at least once."
OLD: Final = "Reads may be old: a message is visible after it is acknowledged, and a deposed master goes on to answer."
CONTROLLERS: Final = ("broker-id", "elect", "sync-state-set", "controller")


def promises(options: RocketMQOptions) -> Mapping[str, Promise]:
    """Returns the promise of the brokers to each workload."""
    if options.mode is Mode.DLEDGER_COMMITLOG:
        stays = "An acknowledged message is in the commit log of a majority of the brokers."
    else:
        stays = "An acknowledged message stays while one member of the sync set lives."
        if options.flush is Flush.ASYNC:
            stays += " A power loss of the whole sync set may lose acknowledged messages."
    return {
        "log": Promise(sentence=f"{stays} {OLD}", source=FAILOVER, options={"linearizable": False}),
        "queue": Promise(
            sentence=f"{stays} {ORDER}", source=FAILOVER, options={"delivery": "at-least-once", "order": "producer"}
        ),
    }


def of_controllers() -> Mapping[str, Promise]:
    """Returns the promise of the controllers to each workload, whatever their options are."""
    promise = Promise(
        sentence="The controllers answer as one state machine, which elects at most one master in an epoch, from the sync set.",
        source=f"{RIP_44}; clusters/systems/rocketmq/controllers.md has the specification",
    )
    return dict.fromkeys(CONTROLLERS, promise)
