"""Watches of etcd: the client shows what a node sends, and the judge finds what a node must not send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from clusters.systems.etcd.client import EtcdLogs
from clusters.systems.etcd.gateway import PORT
from clusters.systems.etcd.options import Reads
from harness.node import Node
from harness.op import Fail, Invocation, Ok
from harness.verdict import Verdict
from tests.unit.workloads.logs import in_turn, judged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from harness.op import Outcome, Value

    Events = list[dict[str, Any]]

NODE = Node(name="n1", address=f"127.34.{os.getpid() >> 8 & 255}.{os.getpid() & 255}")


def lost(events: Events) -> Events:
    """Leaves out the second event of three."""
    return events[:1] + events[2:]


def doubled(events: Events) -> Events:
    """Repeats the first event."""
    return events[:1] + events


def reordered(events: Events) -> Events:
    """Shows the last event but one last."""
    return [*events[:-2], events[-1], events[-2]]


def right(events: Events) -> Events:
    """Shows all events."""
    return events


class Etcd:
    """A node with one key, whose watches may show its history wrongly.

    Attributes:
        begun: The start revision of each watch.
        ignores_start: Whether watches begin with the first event, whatever their start revision is.
    """

    def __init__(self, shows: Callable[[Events], Events] = right, *, ignores_start: bool = False) -> None:
        self.begun: list[int] = []
        self.ignores_start = ignores_start
        self._shows = shows
        self._revision = 1
        self._events: Events = []
        self._watches: list[asyncio.Event] = []

    async def put(self, request: web.Request) -> web.Response:
        """Answers a put with the revision that it made."""
        self._revision += 1
        kv = {**await request.json(), "create_revision": "2", "mod_revision": str(self._revision)}
        self._events.append({"kv": kv})
        return web.json_response({"header": {"revision": str(self._revision)}})

    async def range(self, _: web.Request) -> web.Response:
        """Answers a range with the key as the last put left it."""
        return web.json_response({"kvs": [event["kv"] for event in self._events[-1:]]})

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Sends the events from the start revision on, each in two parts, until the watch is cut."""
        first = int((await request.json())["create_request"]["start_revision"])
        self.begun.append(first)
        response, cut, sent = web.StreamResponse(), asyncio.Event(), 0
        self._watches.append(cut)
        await response.prepare(request)
        await response.write(b'{"result":{"created":true}}\n')
        if self.ignores_start:
            first = 0
        while not cut.is_set():
            events = [event for event in self._events if int(event["kv"]["mod_revision"]) >= first]
            if len(events) > sent:
                line = json.dumps({"result": {"events": self._shows(events[sent:])}}).encode() + b"\n"
                await response.write(line[:30])
                await response.write(line[30:])
                sent = len(events)
            await asyncio.sleep(0.005)
        return response

    def cut(self) -> None:
        """Ends all watches."""
        for watch in self._watches:
            watch.set()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[EtcdLogs]:
        """Serves at the address of the node; yields a client of it."""
        application = web.Application()
        application.add_routes(
            [web.post(f"/v3/{path}", getattr(self, name)) for path, name in
             (("kv/put", "put"), ("kv/range", "range"), ("watch", "watch"))]
        )  # fmt: skip
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, NODE.address, PORT).start()
        client = EtcdLogs(NODE, Reads.LINEARIZABLE)
        try:
            yield client
        finally:
            await client.close()
            self.cut()
            await runner.cleanup()


async def appended(client: EtcdLogs, *values: int) -> None:
    """Appends values."""
    for value in values:
        assert isinstance(await client.invoke(Invocation("append", value, "k")), Ok)


async def read(client: EtcdLogs, first: int, last: int = 999) -> Outcome:
    """Reads the log from an offset on."""
    return await client.invoke(Invocation("read", [first, last], "k"))


def test_a_read_goes_on_with_its_watch_and_begins_a_new_one_after_a_gap_or_a_cut() -> None:
    """A watch begins at the first offset of a read that does not follow the last event, and after a cut at the next event."""

    async def work() -> list[Value]:
        etcd = Etcd()
        async with etcd.serving() as client:
            shown = [await read(client, 0)]
            await appended(client, 7, 8)
            shown.append(await read(client, 0))
            await appended(client, 9, 10)
            shown += [await read(client, 4, 4), await read(client, 5)]
            etcd.cut()
            await appended(client, 11)
            broken = await read(client, 6)
            shown.append(broken if isinstance(broken, Ok) else await read(client, 6))
            shown.append(await read(client, 3, 4))
            assert etcd.begun == [1, 6, 3]
        return [outcome.value for outcome in shown if isinstance(outcome, Ok)]

    assert asyncio.run(work()) == [
        [], [[2, 7], [3, 8]], [[4, 9]], [[5, 10]], [[6, 11]], [[3, 8], [4, 9]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shows", "first", "kind"),
    [(lost, 2, "stale"), (doubled, 2, "repeated"), (reordered, 2, "disordered"), (right, 4, "outside")],
)
def test_an_event_that_is_lost_doubled_out_of_order_or_too_old_is_found(
    shows: Callable[[Events], Events], first: int, kind: str
) -> None:
    """The client mends nothing, so the judge finds each mistake of a watch by its kind, and none in a right one."""

    async def work(etcd: Etcd) -> Outcome:
        async with etcd.serving() as client:
            await appended(client, 7, 8, 9)
            return await read(client, first)

    def kinds(etcd: Etcd) -> list[str]:
        shown = asyncio.run(work(etcd))
        assert isinstance(shown, Ok)
        history = [("append", value, value - 5) for value in (7, 8, 9)]
        whole = [[2, 7], [3, 8], [4, 9]]
        judgement = judged(in_turn(*history, ("read", [first, 999], shown.value), ("read", [2, 4], whole)), follow=True)
        assert (judgement.verdict is Verdict.INVALID) == bool(judgement.anomalies)
        return sorted({anomaly.kind for anomaly in judgement.anomalies})

    assert kinds(Etcd(shows, ignores_start=kind == "outside")) == [kind]
    assert kinds(Etcd()) == []


def test_a_watch_that_is_behind_fails_the_read_and_loses_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read whose watch does not show the last change fails; the next one has the events that came meanwhile."""
    monkeypatch.setattr("clusters.systems.etcd.client.WATCH_TIMEOUT_S", 0.2)
    is_behind = True

    def shows(events: Events) -> Events:
        return events[:-1] if is_behind else events

    async def work() -> tuple[Outcome, Outcome]:
        nonlocal is_behind
        async with Etcd(shows).serving() as client:
            await appended(client, 7, 8)
            behind = await read(client, 2)
            is_behind = False
            await appended(client, 9)
            return behind, await read(client, 2)

    behind, later = asyncio.run(work())
    assert behind == Fail("no-answer: the watch is behind: it has not shown revision 3 of the key")
    assert later == Ok([[2, 7], [4, 9]])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"result":{"canceled":true,"compact_revision":"9"}}', "etcd cancelled the watch"),
        (b'{"error":{"message":"no"}}', "expected the events of a watch"),
        (b'{"result":{"events":[{"kv":{"key":"!"}}]}}', "expected the events of a watch"),
        (b"no json", "expected an object of JSON"),
        (b"", "expected an object of JSON"),
    ],
)
def test_a_watch_that_ends_or_sends_something_else_fails_the_read(line: bytes, expected: str) -> None:
    """What a node sends is not believed; the next read begins a new watch."""

    class Odd(Etcd):
        async def watch(self, request: web.Request) -> web.StreamResponse:
            """Sends the line."""
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(line + b"\n")
            return response

    async def work() -> Outcome:
        async with Odd().serving() as client:
            await appended(client, 7)
            return await read(client, 2)

    outcome = asyncio.run(work())
    assert isinstance(outcome, Fail)
    assert expected in outcome.error
