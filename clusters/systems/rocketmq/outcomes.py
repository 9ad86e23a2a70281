"""The outcome of an operation by the answer of a controller. Every verdict depends on this table.

The code is in the header. A *refusal* of the specification (2000 to 2014) is an answer like success: it depends on the state of
the broker group, and the model checks it. 2007 comes before any effect: the controller does not lead. With 2015, jraft does not
know whether an entry is committed. A controller on dledger answers code 1 if its append did not end in time, or was cancelled.

Source: RocketMQ 5.3.3, ResponseCode, DLedgerController, JRaftController, ControllerRequestProcessor, NettyRemotingAbstract.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.op import Fail, Info

if TYPE_CHECKING:
    from collections.abc import Mapping


class Meaning(enum.Enum):
    """What a code says."""

    ANSWER = "the controller has looked at the state and answers"
    NEVER = "the request was not carried out, and never will be"
    UNKNOWN = "the request may have been carried out, or may still be"


SUCCESS = 0
NOT_LEADER = 2007

TABLE: Mapping[int, tuple[str, Meaning]] = MappingProxyType(
    {
        0: ("success", Meaning.ANSWER),
        1: ("system-error", Meaning.UNKNOWN),
        2: ("system-busy", Meaning.NEVER),
        3: ("request-code-not-supported", Meaning.NEVER),
        2000: ("fenced-master-epoch", Meaning.ANSWER),
        2001: ("fenced-sync-state-set-epoch", Meaning.ANSWER),
        2002: ("invalid-master", Meaning.ANSWER),
        2003: ("invalid-replicas", Meaning.ANSWER),
        2004: ("master-not-available", Meaning.ANSWER),
        2005: ("invalid-request", Meaning.UNKNOWN),
        2006: ("broker-not-alive", Meaning.ANSWER),
        2007: ("not-leader", Meaning.NEVER),
        2008: ("broker-metadata-not-exist", Meaning.ANSWER),
        2009: ("invalid-clean-broker-metadata", Meaning.ANSWER),
        2010: ("broker-need-to-be-registered", Meaning.ANSWER),
        2011: ("master-still-exist", Meaning.ANSWER),
        2012: ("elect-master-failed", Meaning.ANSWER),
        2013: ("alter-sync-state-set-failed", Meaning.ANSWER),
        2014: ("broker-id-invalid", Meaning.ANSWER),
        2015: ("jraft-internal-error", Meaning.UNKNOWN),
        2016: ("broker-live-info-not-exists", Meaning.UNKNOWN),
    }
)

# A controller that does not lead names the one that does; `no-leader` where it names none, or itself.
REFUSALS = ("not-leader",)
NO_LEADER = "no-leader"


def meaning_of(code: int) -> Meaning:
    """Returns what a code says; of one that is not known nothing is certain."""
    return TABLE[code][1] if code in TABLE else Meaning.UNKNOWN


def not_answered(code: int, remark: str, *, is_read: bool) -> Fail | Info:
    """Returns the outcome of an operation whose code is no answer.

    Args:
        code: The header's code; not that of `NOT_LEADER`.
        remark: What the controller says beside.
        is_read: Whether the operation has no effect in any case.
    """
    name = TABLE[code][0] if code in TABLE else f"code-{code}"
    error = f"{name}: {remark[:200]}" if remark else name
    return Fail(error) if is_read or meaning_of(code) is Meaning.NEVER else Info(error)


def not_leader(leader: str | None) -> Fail:
    """Returns the outcome of an operation that was refused by a controller that does not lead.

    Args:
        leader: The node that leads, as far as the controller knows; None if it names none.
    """
    return Fail(NO_LEADER if leader is None else f"{TABLE[NOT_LEADER][0]}: {leader} leads")
