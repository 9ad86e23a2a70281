"""What Kafka promises to the clients of each workload; README.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clusters.systems.kafka.options import Acks, KafkaOptions
from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

SEMANTICS: Final = (
    "Apache Kafka documentation, Message Delivery Semantics, https://kafka.apache.org/documentation/#semantics"
)
LEADER: Final = (
    "With acks=leader, an acknowledged record may be lost with its leader; the test asks for it, as a negative control."
)
OLD: Final = "Reads may be old, since a leader that was replaced and does not know it yet answers too."


def promises(options: KafkaOptions) -> Mapping[str, Promise]:
    """Returns the promise to each workload."""
    stays = "An acknowledged record stays while one replica in sync lives."
    if options.acks is Acks.LEADER:
        stays = LEADER
    return {
        "log": Promise(sentence=f"{stays} {OLD}", source=SEMANTICS, options={"linearizable": False}),
        "queue": Promise(
            sentence=f"{stays} A group delivers each record at least once.",
            source=SEMANTICS,
            options={"delivery": "at-least-once"},
        ),
    }
