"""The outcome of an operation by the answer of a node. Every verdict depends on this table.

An append is `fail` only if no entry with its value was sent to a bookie. After that, a recovery can find the entry at any time,
so the append is indeterminate. A read has no effect, so a read without a result is a `fail`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.sim import asking
from harness.op import Fail, Info, Ok

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.systems.sim_bookkeeper.messages import Answer
    from harness.op import Outcome

OK: Final = "ok"
UNSUPPORTED: Final = "unsupported"
NOT_CLIENT: Final = "not-a-client-node"
NOT_WRITER: Final = "not-writer"
TAKEOVER_LOST: Final = "takeover-lost"
NOT_CONNECTED: Final = asking.NOT_CONNECTED
UNREADABLE: Final = "unreadable"
FENCED: Final = "fenced"
NO_ANSWER: Final = asking.NO_ANSWER
NO_LEDGER: Final = "no-ledger"

# The codes before an entry is sent. A repetition can still succeed.
REFUSED: Final = frozenset({NOT_CLIENT, NOT_WRITER, TAKEOVER_LOST, NOT_CONNECTED})

OUTCOMES: Mapping[str, type[Fail | Info]] = MappingProxyType(
    {
        UNSUPPORTED: Fail,
        NOT_CLIENT: Fail,
        NOT_WRITER: Fail,
        TAKEOVER_LOST: Fail,  # the append waited for the recovery, and no bookie got it
        NOT_CONNECTED: Fail,  # no process listens on the node, so the request had no effect and will have none
        NO_LEDGER: Fail,  # nobody has created the ledger yet
        UNREADABLE: Fail,  # only a read has this answer: the files of the entry are damaged
        FENCED: Info,  # bookies may have the entry, and the next recovery may find it
        NO_ANSWER: Info,
    }
)


def outcome(answer: Answer, *, is_read: bool) -> Outcome:
    """Returns the outcome of an operation from the answer of a node. An unknown code is indeterminate."""
    if answer.code == OK:
        return Ok(answer.value)
    kind = Fail if is_read else OUTCOMES.get(answer.code, Info)
    return kind(answer.code if answer.writer is None else f"{answer.code}: {answer.writer} is the writer")
