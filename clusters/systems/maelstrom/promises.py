"""What a program of a user promises to the clients of each workload; docs/guide/node-programs.md has the runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.promise import Promise

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKLOADS: Final = "Maelstrom, Workloads, https://github.com/jepsen-io/maelstrom/blob/main/doc/workloads.md"
TRANSACTIONS: Final = "Transactions are strict-serializable, unless --consistency-model names another level."
SENTENCES: Final = {
    "echo": "Each answer is the value that was sent.",
    "unique-ids": "No two answers are the same.",
    "broadcast": "Each node knows each acknowledged message in the end.",
    "g-set": "Each node knows each acknowledged element in the end.",
    "g-counter": "Each node knows the sum of the acknowledged adds in the end.",
    "pn-counter": "Each node knows the sum of the acknowledged adds in the end.",
    "lin-kv": "Operations on a key are linearizable.",
    "kafka": "An acknowledged message stays at its offset; polls may be old, and show each log in order.",
    "txn-list-append": TRANSACTIONS,
    "txn-rw-register": TRANSACTIONS,
}


def promises() -> Mapping[str, Promise]:
    """Returns what Maelstrom asks of a program for each workload."""
    return {name: Promise(sentence=sentence, source=WORKLOADS) for name, sentence in SENTENCES.items()}
