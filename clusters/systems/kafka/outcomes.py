"""The outcome of an append by the error that librdkafka reports. Every verdict depends on this table.

An append is `fail` only with an error that a leader gives *before* it appends, or that the library gives before it sends. It is
`info` with every other error. Three of them look certain and are not:

- NOT_LEADER_OR_FOLLOWER: a leader with acks=all appends, and waits for the replicas. If it stops leading meanwhile, it answers
  the waiting request with this error. The new leader may have the record.
- NOT_ENOUGH_REPLICAS_AFTER_APPEND and REQUEST_TIMED_OUT: the record is in the log of the leader. The first is rare: a leader
  with too few in-sync replicas lets its high watermark stay (KIP-966), so the wait for it times out.
- _MSG_TIMED_OUT: the library gave up, and does not say whether it had sent the record.

An enqueue of a queue has the same outcomes. With a transaction, it is `fail` too if the library demanded an abort, and the
abort succeeded: no consumer gets the record, because all read committed records only.

An idempotent producer tries again. Its last error says nothing of earlier attempts, so only an error of the library itself is
certain.

Source: Kafka 4.1, `ReplicaManager.appendRecords` and `DelayedProduce`, `Partition.appendRecordsToLeader`; librdkafka 2,
`rdkafka_request.c` (the actions on an error of a produce request).
"""

from __future__ import annotations

from typing import Final

from harness.op import Fail, Info

# Name of the error in librdkafka to the code of the error in the history.
BEFORE_SENDING: Final = {"MSG_SIZE_TOO_LARGE": "too-large"}
BEFORE_APPENDING: Final = {"NOT_ENOUGH_REPLICAS": "not-enough-replicas"}

NOT_LEADER: Final = "not-leader"
NOT_ASSIGNED: Final = "not-assigned"
NOTHING_CAME: Final = "nothing-came"  # the queue may be empty, or its leader may be away
REFUSALS: Final = (NOT_LEADER, NOT_ASSIGNED, NOTHING_CAME)
ABORTED: Final = "aborted"
NOT_SENT: Final = "not-sent"


def refused(name: str, text: str, *, once: bool) -> Fail | Info:
    """Returns the outcome of an append that ended with an error.

    Args:
        name: The name of the error, e.g. `NOT_ENOUGH_REPLICAS`.
        text: What the library says of it.
        once: Whether the producer sends a record at most once.
    """
    code = BEFORE_SENDING.get(name) or (BEFORE_APPENDING.get(name) if once else None)
    if code is not None:
        return Fail(f"{code}: {text[:200]}")
    return Info(f"{name.strip('_').lower().replace('_', '-')}: {text[:200]}")


def not_sent(name: str, text: str) -> Fail:
    """Returns the outcome of an append that the library refused, see `refused`."""
    return Fail(f"{BEFORE_SENDING.get(name, NOT_SENT)}: {text[:200]}")
