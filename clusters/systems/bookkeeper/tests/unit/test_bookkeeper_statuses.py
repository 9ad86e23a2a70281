"""What client processes of BookKeeper report of themselves, and the rule that a last confirmed entry only rises."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from clusters.kit.confirmed import Confirmed
from clusters.systems.bookkeeper import process
from clusters.systems.bookkeeper.clients import Clients
from harness.node import Node
from harness.op import ONLY_KEY
from harness.service import NodeStatus
from harness.verdict import Verdict

NODE = Node(name="n5", address="127.0.0.1")


def asked(monkeypatch: pytest.MonkeyPatch, answer: object) -> list[NodeStatus]:
    """Asks a process that gives this answer for its status."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert json.loads(await reader.readline()) == {"do": "status"}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def all_of_it() -> list[NodeStatus]:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            monkeypatch.setattr(process, "PORT", server.sockets[0].getsockname()[1])
            system: Any = SimpleNamespace()
            return list(await Clients(system, [NODE]).statuses(NODE, 5.0))

    return asyncio.run(all_of_it())


def test_a_process_leads_what_it_writes_and_is_a_candidate_for_what_it_recovers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The term is the place of the ledger in the list; a log without a name is no group."""
    statuses = asked(monkeypatch, {"ok": {"writes": [[ONLY_KEY, 7, 2, 10, 12]], "recovers": [["k1", 9]]}})
    assert [
        (status.role, status.term, status.group, status.committed_index, status.last_index) for status in statuses
    ] == [
        ("leader", 2, None, 10, 12),
        ("candidate", None, "k1", None, None),
    ]


@pytest.mark.parametrize("answer", [{"ok": {}}, {"ok": {"writes": [["log"]], "recovers": 3}}, {"ok": 4}])
def test_a_process_that_writes_nothing_is_a_client(monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    """So it is one whose answer has another form."""
    assert asked(monkeypatch, answer) == [NodeStatus(node="n5", role="client")]


def test_a_process_that_answers_with_an_error_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is raised."""
    assert asked(monkeypatch, {"error": "x"}) == []


def test_a_last_confirmed_entry_that_goes_back_is_found() -> None:
    """Only if the higher one was known before the question; two questions at once may be answered in any order."""

    def status(entry: int) -> list[NodeStatus]:
        return [NodeStatus(node="n5", role="leader", committed_index=entry, details={"ledger": 7})]

    confirmed = Confirmed()
    assert confirmed.part().verdict is Verdict.UNKNOWN
    before = confirmed.known("n5")
    confirmed.note("n5", before, status(4))
    confirmed.note("n5", before, status(3))
    assert confirmed.part().verdict is Verdict.VALID
    confirmed.note("n5", confirmed.known("n5"), status(3))
    part = confirmed.part()
    assert part.verdict is Verdict.INVALID
    assert part.reason == "n5 reported entry 4 of ledger 7 as confirmed, and later entry 3."
