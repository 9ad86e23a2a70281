"""The outcome of an operation by the answer of a controller. Every verdict depends on this table.

The code is in the header. A refusal that the specification defines (2000 to 2014) is an answer like success: it depends on the
state of the broker group, and the model checks it. With 2007 the controller is not the leader, and the request has no effect.
With 2015, jraft does not know whether an entry is committed. A controller on dledger answers code 1 if its append did not end
in time, or was cancelled.

Source: RocketMQ 5.3.3, ResponseCode, DLedgerController, JRaftController, ControllerRequestProcessor, NettyRemotingAbstract.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping


class Meaning(enum.Enum):
    """The meaning of a code."""

    ANSWER = "the controller has read the state and answers"
    NEVER = "the request had no effect, and will have none"
    UNKNOWN = "the request may have had an effect, or may still have one"


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

# The error of a controller that is not the leader: `not-leader` if it names the leader, `no-leader` if it names none or itself.
REFUSALS = ("not-leader",)
NO_LEADER = "no-leader"
BAD_ANSWER = "bad-answer"


def meaning_of(code: int) -> Meaning:
    """Returns the meaning of a code; `UNKNOWN` for a code that is not in the table."""
    return TABLE[code][1] if code in TABLE else Meaning.UNKNOWN


# The names of refusals after which a request has no effect. They are the codes in the history too.
NEVER_HAPPENED: Final[Mapping[str, str]] = MappingProxyType(
    {name: name for name in (NO_LEADER, *(name for name, meaning in TABLE.values() if meaning is Meaning.NEVER))}
)


def refusal(code: int, remark: str) -> Refused:
    """Returns the error of a code that is not an answer.

    Args:
        code: The header's code; not `NOT_LEADER`.
        remark: The controller's remark; may be empty.
    """
    return Refused(TABLE[code][0] if code in TABLE else f"code-{code}", remark[:200])


def not_leader(leader: str | None) -> Refused:
    """Returns the error of a controller that is not the leader.

    Args:
        leader: The leader that the controller names; None if it names none.
    """
    return Refused(NO_LEADER, "") if leader is None else Refused(TABLE[NOT_LEADER][0], f"{leader} leads")
