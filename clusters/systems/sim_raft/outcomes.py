"""What an answer of a node says about an operation: the table that every verdict rests on.

A code is `fail` for a command only if the node gives it before it appends the command to its log, or after the state machine
has answered that nothing was changed. Without an answer, or with `leadership-lost`, the entry may be in a log and may be
committed later. A read has no effect, so whatever is not an answer is a `fail`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

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
NOT_CONNECTED: Final = "not-connected"
NO_ANSWER: Final = "no-answer"

# What the state machine answers where it changes nothing.
ANSWERS: Final = (CAS_MISMATCH, LOCK_HELD, NOT_HOLDER)
# By which a node names the node to ask instead.
REFUSALS: Final = (NOT_LEADER,)
# What a node answers before a command has come to its log. A repetition may still succeed.
REFUSED: Final = frozenset({NOT_LEADER, NO_LEADER, NOT_READY, TRANSFERRING, NOT_CONNECTED})

OUTCOMES: Mapping[str, type[Fail | Info]] = MappingProxyType(
    {
        **dict.fromkeys(ANSWERS, Fail),
        UNSUPPORTED: Fail,
        NOT_LEADER: Fail,
        NO_LEADER: Fail,
        NOT_READY: Fail,
        TRANSFERRING: Fail,
        NOT_CONNECTED: Fail,  # nobody listens there, so the request had and will have no effect
        LEADERSHIP_LOST: Info,  # the command is in the log of a leader that was deposed, and may survive
        OLD_REQUEST: Info,  # the session has gone on
        NO_ANSWER: Info,
    }
)


def outcome(code: str, text: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation that did not get the answer `ok`.

    Args:
        code: A code of this table; an unknown one is in doubt.
        text: What follows the code in the error; may be empty.
        is_read: Whether the operation has no effect in any case.
    """
    kind = Fail if is_read else OUTCOMES.get(code, Info)
    return kind(f"{code}: {text}" if text else code)
