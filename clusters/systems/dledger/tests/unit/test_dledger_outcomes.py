"""The outcome table: every row, and codes outside of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.systems.dledger import outcomes
from clusters.systems.dledger.client import DLedgerRegisters
from clusters.systems.dledger.members import Members
from clusters.systems.dledger.options import ReadMode
from clusters.systems.dledger.routing import Group
from harness.node import Node
from harness.op import Fail, Info, Invocation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clusters.kit.answers import Refused
    from harness.op import Outcome, Value

NODES = (Node(name="n1", address="127.0.0.1"),)
GROUP = Group(name="g", nodes=NODES, port=1, members=Members(NODES, port=1, system="DLedger"))

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


class Refusing(DLedgerRegisters):
    """A client whose node refuses each request with one error."""

    def __init__(self, error: Refused) -> None:
        """Takes the error."""
        super().__init__(group=GROUP, node=NODES[0], follows=False, read_mode=ReadMode.READ_INDEX)
        self.error = error

    async def _register(self, request: Mapping[str, Value]) -> Mapping[str, Value]:
        raise self.error


def refused(error: Refused, f: str) -> Outcome:
    """Returns what a refused operation becomes."""
    return asyncio.run(Refusing(error).invoke(Invocation(f, 5, "k")))


def refused_write(code: int, leader: str | None = None) -> Outcome:
    """Returns what a write becomes whose answer has this code."""
    return refused(outcomes.refusal(code, leader), "write")


def refused_read(code: int, leader: str | None = None) -> Outcome:
    """Returns the same of a read."""
    return refused(outcomes.refusal(code, leader), "read")


def test_the_lists_here_are_complete() -> None:
    """Every code that the library knows is on one of the two lists, except success."""
    assert set(outcomes.NAMES) == set(REFUSED_BEFORE_THE_APPEND) | set(PERHAPS_APPENDED)


@pytest.mark.parametrize(("code", "name"), REFUSED_BEFORE_THE_APPEND.items())
def test_writes_refused_before_the_append_failed(code: int, name: str) -> None:
    """With a code that the library checks before the append, the write is a fail."""
    assert refused_write(code) == Fail("no-leader" if code == outcomes.NOT_LEADER else name)


@pytest.mark.parametrize(("code", "name"), PERHAPS_APPENDED.items())
def test_other_writes_are_unknown(code: int, name: str) -> None:
    """With any other code, the entry may be in a log and may be committed, so the write is info."""
    assert refused_write(code) == Info(name)


@pytest.mark.parametrize("code", [*REFUSED_BEFORE_THE_APPEND, *PERHAPS_APPENDED])
def test_refused_reads_failed(code: int) -> None:
    """A read has no effect, so a read without a result is a fail."""
    assert refused_read(code) == Fail("no-leader" if code == outcomes.NOT_LEADER else outcomes.NAMES[code])


def test_a_refusal_that_names_the_leader_has_a_code_of_its_own() -> None:
    """Availability does not count a refusal with a leader; a node without a leader is an outage."""
    assert refused_read(404, "n3") == refused_write(404, "n3") == Fail("not-leader: n3 leads")
    assert outcomes.REFUSALS == ("not-leader",)
    assert refused_read(505, "n3") == Fail("leader-not-ready")


@given(st.integers().filter(lambda code: code not in outcomes.NAMES))
def test_an_unknown_code_is_unknown(code: int) -> None:
    """With an unknown code, a write is info, and the error has the number."""
    assert refused_write(code) == Info(f"code-{code}")
    assert refused_read(code) == Fail(f"code-{code}")


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
    assert refused(outcomes.refusal_by_header(status, ""), "write") == write(name)
    assert refused(outcomes.refusal_by_header(status, "why"), "read") == Fail(f"{name}: why")
    assert len(str(outcomes.refusal_by_header(status, "x" * 5000))) < 300


def test_no_name_has_two_meanings() -> None:
    """The names of DLedger's codes and those of the remoting layer are in one table."""
    names = [*outcomes.NAMES.values(), *outcomes.HEADER_NAMES.values(), outcomes.NO_LEADER, outcomes.BAD_ANSWER]
    assert len(set(names)) == len(names)
