"""The outcome of an operation by the answer of a DLedger node. Every verdict depends on this table.

A write is `fail` only with a code that the library checks *before* it appends to the log. With every other code, the entry may
be in a log and may still be committed. All pending writes of an old term get 403, even if their entries survive. 502 means only
that a quorum was late. A read has no effect, so a read without a result is a `fail`.

Source: DLedger 0.4.0, DLedgerServer.handleAppend and handleWrite (what precedes `appendAsLeader`), DLedgerEntryPusher (what
completes pending closures), DLedgerResponseCode (numbers and names).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clusters.kit.answers import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_LEADER = 404
INDEX_OUT_OF_RANGE = 410
LEADER_NOT_READY = 505
TERM_NOT_READY = 416

# The error for code 404 if the node knows no leader. If it names one, the error is a refusal such as `not-leader: n3 leads`.
NO_LEADER = "no-leader"
REFUSALS = ("not-leader",)
# The error of a compare-and-set whose expected value does not match.
CAS_MISMATCH = "cas-mismatch"
ANSWERS = (CAS_MISMATCH,)
BAD_ANSWER = "bad-answer"
MAX_LEADER_CHARACTERS = 100

NAMES = {
    -1: "unknown",
    300: "timeout",
    301: "metadata-error",
    302: "network-error",
    303: "unsupported",
    400: "unknown-group",
    401: "unknown-member",
    402: "unexpected-member",
    403: "expired-term",
    404: "not-leader",
    405: "not-follower",
    406: "inconsistent-state",
    407: "inconsistent-term",
    408: "inconsistent-index",
    409: "inconsistent-leader",
    410: "index-out-of-range",
    411: "unexpected-argument",
    412: "repeated-request",
    413: "repeated-push",
    414: "disk-error",
    415: "disk-full",
    416: "term-not-ready",
    417: "fall-behind-too-much",
    418: "take-leadership-failed",
    419: "index-less-than-local-begin",
    420: "request-with-empty-bodies",
    421: "push-request-is-full",
    422: "newer-install-snapshot-request-exists",
    500: "internal-error",
    501: "term-changed",
    502: "wait-quorum-ack-timeout",
    503: "leader-pending-full",
    504: "illegal-member-state",
    505: "leader-not-ready",
    506: "leader-transferring",
    507: "load-snapshot-error",
    508: "install-snapshot-error",
}

# The library returns these codes for a write only before it appends to the log.
WRITE_NEVER_HAPPENED = frozenset({400, 401, 404, 415, 420, 503, 506})

# Codes in the remoting layer's header. With the codes of HEADER_NEVER_EXECUTED it called no processor.
HEADER_NAMES = {1: "system-error", 2: "system-busy", 3: "request-code-not-supported"}
HEADER_NEVER_EXECUTED = frozenset({2, 3})


def name_of(code: int) -> str:
    """Returns the name of a code for `error` fields; `code-N` for a code that the library does not have."""
    return NAMES.get(code, f"code-{code}")


# The names of refusals after which a write never happens. They are the codes in the history too.
NEVER_HAPPENED: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: name
        for name in (
            NO_LEADER,
            *(NAMES[code] for code in WRITE_NEVER_HAPPENED),
            *(HEADER_NAMES[status] for status in HEADER_NEVER_EXECUTED),
        )
    }
)


def refusal(code: int, leader: str | None = None) -> Refused:
    """Returns the error of an answer with another code than success.

    A follower that names its leader and one that knows none have different names.

    Args:
        code: The answer's code.
        leader: The leader in the answer; None if there is none.
    """
    if code != NOT_LEADER:
        return Refused(name_of(code), "")
    return (
        Refused(NO_LEADER, "") if leader is None else Refused(name_of(code), f"{leader[:MAX_LEADER_CHARACTERS]} leads")
    )


def refusal_by_header(status: int, remark: str) -> Refused:
    """Returns the error of an answer that the remoting layer gave instead of DLedger.

    Args:
        status: The header's code.
        remark: The header's remark.
    """
    return Refused(HEADER_NAMES.get(status, f"remoting-{status}"), remark[:200])
