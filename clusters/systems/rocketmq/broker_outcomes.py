"""The outcome of a send by the answer of a broker. Every verdict depends on these tables.

A send is `fail` only if the broker certainly refused it before it put the message into its log. A code alone does not say so:
the remark does. All other answers but 0 are `info`, e.g.:

- 10, 11 and 12: the message is in the log of the master. It is open whether it is on the disk or on the slaves.
- 1 with the remark "in-sync replicas not enough": in RocketMQ 5.3.3, the broker answers so before it puts the message into its
  log. But the code is the one of every error in the broker, so the outcome stays `info`.

Source: RocketMQ 5.3.3. `SendMessageProcessor.handlePutMessageResult` has the codes and remarks. Only
`HookUtils.checkBeforePutMessage` gives 14 and `[PC_SYNCHRONIZED]`. `NettyRemotingAbstract.processRequestCommand` gives
`[REJECTREQUEST]`, which is also the answer of a slave, and `[OVERLOAD]`. `BrokerFastFailure` takes a request out of its queue
before it answers with `[..._CLEAN_QUEUE]`. `AbstractSendMessageProcessor.msgCheck` gives 16 and 17.

A commit log on DLedger gives `[PC_SYNCHRONIZED]` for every error of DLedger's append, and 14 for errors of an append that waits
for a quorum (`DLedgerCommitLog.asyncPutMessage` and `asyncPutMessages`). DLedger can have written the message, or the first
ones of a batch, before such an error. So both are `info` there.

The end of a transaction: a slave refuses it with 11 (`EndTransactionProcessor.processRequest`). A broker commits a message only
by such a request, and no producer of Labrys answers when a broker asks for the state of a transaction. So a commit that was
not sent, or was refused for certain, is `fail`, although the half message is in the log.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import InDoubt, NotDone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUCCESS: Final = 0
BUSY: Final = 2
SLAVE_NOT_AVAILABLE: Final = 11
SERVICE_NOT_AVAILABLE: Final = 14
NO_PERMISSION: Final = 16
TOPIC_NOT_EXIST: Final = 17
PULL_NOT_FOUND: Final = 19
PULL_RETRY_IMMEDIATELY: Final = 20  # also the answer of a slave at the end of its queue
PULL_OFFSET_MOVED: Final = 21
QUERY_NOT_FOUND: Final = 22

# Code to the code of the error in the history.
NAMES: Mapping[int, str] = MappingProxyType(
    {
        1: "system-error",
        2: "system-busy",
        10: "flush-disk-timeout",
        11: "slave-not-available",
        12: "flush-slave-timeout",
        13: "message-illegal",
        14: "service-not-available",
        16: "no-permission",
        17: "topic-not-exist",
    }
)
# Code to the beginnings of remarks with which the broker has certainly not put the message into its log.
REFUSED: Mapping[int, Sequence[str]] = MappingProxyType(
    {
        BUSY: (
            "[REJECTREQUEST]",
            "[OVERLOAD]",
            "[PC_SYNCHRONIZED]",
            "[PCBUSY_CLEAN_QUEUE]",
            "[TIMEOUT_CLEAN_QUEUE]",
        ),
        SERVICE_NOT_AVAILABLE: ("service not available now",),
        NO_PERMISSION: ("the broker[",),
        TOPIC_NOT_EXIST: ("topic[",),
    }
)

# The same of a commit log on DLedger.
REFUSED_BY_DLEDGER: Mapping[int, Sequence[str]] = MappingProxyType(
    {
        BUSY: ("[REJECTREQUEST]", "[OVERLOAD]", "[PCBUSY_CLEAN_QUEUE]", "[TIMEOUT_CLEAN_QUEUE]"),
        NO_PERMISSION: REFUSED[NO_PERMISSION],
        TOPIC_NOT_EXIST: REFUSED[TOPIC_NOT_EXIST],
    }
)
# The same of the end of a transaction. A slave gives no remark.
END_REFUSED: Mapping[int, Sequence[str]] = MappingProxyType(
    {BUSY: ("[REJECTREQUEST]", "[OVERLOAD]", "[TIMEOUT_CLEAN_QUEUE]"), SLAVE_NOT_AVAILABLE: ("",)}
)

NOT_MASTER: Final = "not-master"  # a pinned client asked a slave
NO_MASTER: Final = "no-master"  # the route has none
HALF_MESSAGE: Final = "half-message"  # the half message of a transaction is not known to be there
NOTHING_CAME: Final = "nothing-came"  # the queue may be empty, or its master may be away
ROLLED_BACK: Final = "rolled-back"  # the producer itself ended the transaction so
REFUSALS: Final = (NOT_MASTER, NOTHING_CAME, ROLLED_BACK)


def refusal(code: int, remark: str, certain: Mapping[int, Sequence[str]] = REFUSED) -> NotDone:
    """Returns the error of an answer to a send that is not success: `InDoubt`, or another `NotDone` if it is certain.

    Args:
        code: The code of the answer.
        remark: What the broker says of it; may be empty.
        certain: The refusals that are certain.
    """
    is_certain = remark.startswith(tuple(certain.get(code, ())))
    return (NotDone if is_certain else InDoubt)(NAMES.get(code, f"code-{code}"), remark[:200])
