"""The outcome of an operation by the answer of a node. Every verdict depends on this table.

A command's code is `fail` in two cases only: the node refuses the command before it appends it to its log, or the state machine
answers that it changed nothing. Without an answer, or with `leadership-lost`, the entry may be in a log and may be committed
later. A read has no effect, so a read without a result is a `fail`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.sim import asking
from harness.op import Fail, Info

if TYPE_CHECKING:
    from collections.abc import Mapping

OK: Final = "ok"
CAS_MISMATCH: Final = "cas-mismatch"
LOCK_HELD: Final = "lock-held"
NOT_HOLDER: Final = "not-holder"
UNSUPPORTED: Final = "unsupported"
NOT_LEADER: Final = "not-leader"
NO_LEADER: Final = "no-leader"
NOT_READY: Final = "leader-not-ready"
TRANSFERRING: Final = "leader-transferring"
LEADERSHIP_LOST: Final = "leadership-lost"
OLD_REQUEST: Final = "old-request"
NOT_CONNECTED: Final = asking.NOT_CONNECTED
NO_ANSWER: Final = asking.NO_ANSWER

# The state machine's codes for a command that changes nothing.
ANSWERS: Final = (CAS_MISMATCH, LOCK_HELD, NOT_HOLDER)
# The code of an answer that names the leader.
REFUSALS: Final = (NOT_LEADER,)
# The codes before a command reaches the log. A repetition can still succeed.
REFUSED: Final = frozenset({NOT_LEADER, NO_LEADER, NOT_READY, TRANSFERRING, NOT_CONNECTED})

OUTCOMES: Mapping[str, type[Fail | Info]] = MappingProxyType(
    {
        **dict.fromkeys(ANSWERS, Fail),
        UNSUPPORTED: Fail,
        NOT_LEADER: Fail,
        NO_LEADER: Fail,
        NOT_READY: Fail,
        TRANSFERRING: Fail,
        NOT_CONNECTED: Fail,  # no process listens on the node, so the request had no effect and will have none
        LEADERSHIP_LOST: Info,  # the command is in the log of a deposed leader, and may survive
        OLD_REQUEST: Info,  # the session already has a later request
        NO_ANSWER: Info,
    }
)


def outcome(code: str, text: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation whose answer is not `ok`.

    Args:
        code: A code of this table. An unknown code is indeterminate.
        text: The text after the code in the error; may be empty.
        is_read: Whether the operation is a read, which never has an effect.
    """
    kind = Fail if is_read else OUTCOMES.get(code, Info)
    return kind(f"{code}: {text}" if text else code)
