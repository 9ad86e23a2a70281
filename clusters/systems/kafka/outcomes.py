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

from typing import Any, Final

from clusters.kit.answers import InDoubt, NoAnswer, NotDone, Refused

# Name of the error in librdkafka to the code of the error in the history.
NEVER_APPENDED: Final = {"MSG_SIZE_TOO_LARGE": "too-large"}

NO_LEADER: Final = "no-leader"
NOT_LEADER: Final = "not-leader"
NOT_ASSIGNED: Final = "not-assigned"
NOTHING_CAME: Final = "nothing-came"  # the queue may be empty, or its leader may be away
REFUSALS: Final = (NOT_LEADER, NOT_ASSIGNED, NOTHING_CAME)
ABORTED: Final = "aborted"
NOT_SENT: Final = "not-sent"


MAX_SHOWN: Final = 200


def name_of(name: str) -> str:
    """Returns the code in the history of an error of librdkafka after which the record may be in a log."""
    return name.strip("_").lower().replace("_", "-")


def offset_in(answer: Any) -> int | None:
    """Returns the offset of a record by what became of it, see `program.records`; None for one in a transaction.

    Raises:
        Refused: The append ended with an error of the library, e.g. `NOT_ENOUGH_REPLICAS`.
        NotDone: The record was not sent, or its transaction was aborted.
        InDoubt: The library does not say how the record ended.
        NoAnswer: It is no answer.
    """
    match answer:
        case ["ok", int() | None as offset]:
            return offset
        case ["refused", str(name), str(text)]:
            raise Refused(name, text[:MAX_SHOWN])
        case ["not-sent", str(name), str(text)]:
            raise NotDone(NEVER_APPENDED.get(name, NOT_SENT), text[:MAX_SHOWN])
        case ["aborted", str(text)]:
            raise NotDone(ABORTED, text[:MAX_SHOWN])
        case ["busy", str(text)]:
            raise NotDone(NOT_SENT, text)
        case ["unknown", str(code), str(text)]:
            raise InDoubt(code, text)
    raise NoAnswer(f"expected what became of a record, found {str(answer)[:MAX_SHOWN]}")
