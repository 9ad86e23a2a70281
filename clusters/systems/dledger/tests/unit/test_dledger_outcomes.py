"""The outcome table: every row, and codes outside of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.systems.dledger import outcomes
from harness.op import Fail, Info

# An independent copy of the table, written by hand from the sources.
REFUSED_BEFORE_THE_APPEND = {
    400: "unknown-group",
    401: "unknown-member",
    404: "not-leader",
    415: "disk-full",
    420: "request-with-empty-bodies",
    503: "leader-pending-full",
    506: "leader-transferring",
}
PERHAPS_APPENDED = {
    -1: "unknown",
    300: "timeout",
    301: "metadata-error",
    302: "network-error",
    303: "unsupported",
    402: "unexpected-member",
    403: "expired-term",
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
    416: "term-not-ready",
    417: "fall-behind-too-much",
    418: "take-leadership-failed",
    419: "index-less-than-local-begin",
    421: "push-request-is-full",
    422: "newer-install-snapshot-request-exists",
    500: "internal-error",
    501: "term-changed",
    502: "wait-quorum-ack-timeout",
    504: "illegal-member-state",
    505: "leader-not-ready",
    507: "load-snapshot-error",
    508: "install-snapshot-error",
}


def test_the_lists_here_are_complete() -> None:
    """Every code that the library knows is on one of the two lists, except success."""
    assert set(outcomes.NAMES) == set(REFUSED_BEFORE_THE_APPEND) | set(PERHAPS_APPENDED)


@pytest.mark.parametrize(("code", "name"), REFUSED_BEFORE_THE_APPEND.items())
def test_writes_refused_before_the_append_failed(code: int, name: str) -> None:
    """With a code that the library checks before the append, the write is a fail."""
    assert outcomes.refused_write(code) == Fail("no-leader" if code == outcomes.NOT_LEADER else name)


@pytest.mark.parametrize(("code", "name"), PERHAPS_APPENDED.items())
def test_other_writes_are_unknown(code: int, name: str) -> None:
    """With any other code, the entry may be in a log and may be committed, so the write is info."""
    assert outcomes.refused_write(code) == Info(name)


@pytest.mark.parametrize("code", [*REFUSED_BEFORE_THE_APPEND, *PERHAPS_APPENDED])
def test_refused_reads_failed(code: int) -> None:
    """A read has no effect, so a read without a result is a fail."""
    assert outcomes.refused_read(code) == Fail("no-leader" if code == outcomes.NOT_LEADER else outcomes.NAMES[code])


def test_a_refusal_that_names_the_leader_has_a_code_of_its_own() -> None:
    """Availability does not count a refusal with a leader; a node without a leader is an outage."""
    assert outcomes.refused_read(404, "n3") == outcomes.refused_write(404, "n3") == Fail("not-leader: n3 leads")
    assert outcomes.REFUSALS == ("not-leader",)
    assert outcomes.refused_read(505, "n3") == Fail("leader-not-ready")


@given(st.integers().filter(lambda code: code not in outcomes.NAMES))
def test_an_unknown_code_is_unknown(code: int) -> None:
    """With an unknown code, a write is info, and the error has the number."""
    assert outcomes.refused_write(code) == Info(f"code-{code}")
    assert outcomes.refused_read(code) == Fail(f"code-{code}")


@pytest.mark.parametrize(
    ("status", "name", "write"),
    [
        (1, "system-error", Info),
        (2, "system-busy", Fail),
        (3, "request-code-not-supported", Fail),
        (4, "remoting-4", Info),
        (-9, "remoting--9", Info),
    ],
)
def test_the_remoting_layers_own_answers(status: int, name: str, write: type[Fail | Info]) -> None:
    """Only "busy" and "not supported" mean that no processor was called; a long remark is shortened."""
    assert outcomes.refused_by_header(status, "", is_read=False) == write(name)
    assert outcomes.refused_by_header(status, "why", is_read=True) == Fail(f"{name}: why")
    assert len(outcomes.refused_by_header(status, "x" * 5000, is_read=False).error) < 300
