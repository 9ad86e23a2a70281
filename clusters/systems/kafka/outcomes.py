"""The outcome of an append by the error that librdkafka reports. Every verdict depends on this table.

An append is `fail` only with an error that the library gives before it sends, or if the record is too large for the library or
for the leader. It is `info` with every other error. These look certain and are not:

- NOT_LEADER_OR_FOLLOWER and UNKNOWN_TOPIC_OR_PARTITION: a leader with acks=all appends, and waits for the replicas. If it stops
  leading meanwhile, it answers the waiting request with the first one, and the new leader may have the record. The library
  reports neither: it sends the record again until its time is over, with `retries=0` too.
- NOT_ENOUGH_REPLICAS: the leader refused the record before it appended. But the library may have sent it before, see above.
- REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND: the record is in the log of the leader. A leader with too few in-sync
  replicas lets its high watermark stay (KIP-966), so the wait for it times out. It gives the second error only if a replica
  leaves between the rise of the high watermark and the answer, which no test can time.
- _MSG_TIMED_OUT: the library gave up, and does not say whether it had sent the record.

An enqueue of a queue has the same outcomes. With a transaction, it is `fail` too if the library demanded an abort, and the
abort succeeded: no consumer gets the record, because all read committed records only.

Source: Kafka 4.1, `ReplicaManager.appendRecords` and `DelayedProduce`, `Partition.appendRecordsToLeader`; librdkafka 2,
`rdkafka_request.c` (the actions on an error of a produce request).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from harness.op import Outcome

# Name of the error in librdkafka to the code of the error in the history.
NEVER_APPENDED: Final = {"MSG_SIZE_TOO_LARGE": "too-large"}

NOT_LEADER: Final = "not-leader"
NOT_ASSIGNED: Final = "not-assigned"
NOTHING_CAME: Final = "nothing-came"  # the queue may be empty, or its leader may be away
REFUSALS: Final = (NOT_LEADER, NOT_ASSIGNED, NOTHING_CAME)
ABORTED: Final = "aborted"
NOT_SENT: Final = "not-sent"


def refused(name: str, text: str) -> Fail | Info:
    """Returns the outcome of an append that ended with an error.

    Args:
        name: The name of the error, e.g. `NOT_ENOUGH_REPLICAS`.
        text: What the library says of it.
    """
    code = NEVER_APPENDED.get(name)
    if code is not None:
        return Fail(f"{code}: {text[:200]}")
    return Info(f"{name.strip('_').lower().replace('_', '-')}: {text[:200]}")


def not_sent(name: str, text: str) -> Fail:
    """Returns the outcome of an append that the library refused, see `refused`."""
    return Fail(f"{NEVER_APPENDED.get(name, NOT_SENT)}: {text[:200]}")


def outcome_of(answer: Any) -> Outcome:
    """Returns the outcome of an append by what became of its record; see `program.records`."""
    match answer:
        case ["ok", int(offset)]:
            outcome: Outcome = Ok(offset, order=offset)
        case ["ok", None]:
            outcome = Ok(None)
        case ["refused", str(name), str(text)]:
            outcome = refused(name, text)
        case ["not-sent", str(name), str(text)]:
            outcome = not_sent(name, text)
        case ["aborted", str(text)]:
            outcome = Fail(f"{ABORTED}: {text[:200]}")
        case ["busy", str(text)]:
            outcome = Fail(f"{NOT_SENT}: {text}")
        case ["unknown", str(text)]:
            outcome = Info(text)
        case _:
            outcome = Info(f"no-answer: expected what became of a record, found {str(answer)[:200]}")
    return outcome
