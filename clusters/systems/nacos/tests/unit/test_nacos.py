"""Nacos' client side: the table of outcomes, what a node says, and when a write certainly did not happen."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("aiohttp")
from aiohttp import web

from clusters.kit import http
from clusters.kit.answers import NoAnswer
from clusters.systems.nacos import client as client_module
from clusters.systems.nacos import naming as module
from clusters.systems.nacos import system
from clusters.systems.nacos.client import NacosRegisters
from clusters.systems.nacos.naming import Naming, Peer, value_in
from clusters.systems.nacos.options import NacosOptions, Writes
from clusters.systems.nacos.outcomes import WRITE_NEVER_HAPPENED, code_of
from harness.cluster import Paper
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from harness.service import NodeStatus
from workloads.register.workload import RegisterOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harness.op import Outcome

# An independent copy of the table, written by hand from the sources.
CERTAIN = {
    "dom doesn't exist: labrys-h0": "no-service",
    "java.lang.IllegalStateException: dom doesn't exist: labrys-h0": "no-service",
    "failed to add ip for dom, caused java.lang.IllegalStateException: dom doesn't exist: labrys-h0": "no-service",
    "no leader now.": "no-leader",
    "java.security.AccessControlException: Adding IP for dom is forbidden now.": "forbidden",
}
OPEN = [
    "data publish failed, key=com.alibaba.nacos.naming.iplist.public##labrys-h0",
    "failed to add ip for dom, caused java.net.SocketTimeoutException: Read timed out",
    "failed to add ip for dom, caused data publish failed, key=k",
    "the words dom doesn't exist: are not at the beginning",
    "",
]


@pytest.mark.parametrize(("text", "code"), CERTAIN.items())
def test_an_error_before_the_leader_changes_itself_is_certain(text: str, code: str) -> None:
    """The words of the node that passed the write on, and the name of the exception, change nothing."""
    assert WRITE_NEVER_HAPPENED[code_of(text)] == code
    assert set(CERTAIN.values()) == set(WRITE_NEVER_HAPPENED.values())


@pytest.mark.parametrize("text", OPEN)
def test_every_other_error_leaves_a_write_open(text: str) -> None:
    """The leader has the value before it asks the followers; a read has no effect."""
    assert code_of(text) not in WRITE_NEVER_HAPPENED


@pytest.mark.parametrize("instances", [[{"metadata": {}}], [1], None, [{"metadata": {"value": "1"}}] * 2])
def test_what_no_client_wrote_is_no_value(instances: Any) -> None:
    """A service of a test has at most one instance, with a value."""
    assert value_in([]) is None
    assert value_in([{"metadata": {"value": "[1]"}, "port": 1}]) == "[1]"
    with pytest.raises(NoAnswer):
        value_in(instances)


def served(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[str, dict[str, str]], tuple[int, str]],
    use: Callable[[], Awaitable[Any]],
) -> Any:
    """Runs code against a server on the loopback, which answers by the last part of a path and the parameters."""

    async def handle(request: web.Request) -> web.Response:
        given = {**request.query, **{name: str(value) for name, value in (await request.post()).items()}}
        status, text = answer(request.path.removeprefix("/nacos/v1/ns/"), given)
        return web.Response(status=status, text=text)

    async def all_of_it() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        monkeypatch.setattr(module, "PORT", runner.addresses[0][1])
        monkeypatch.setattr(
            http, "CONNECT_TIMEOUT_S", 30.0
        )  # the machine may be busy, and client and server share a loop
        try:
            return await use()
        finally:
            await runner.cleanup()

    return asyncio.run(all_of_it())


def written(monkeypatch: pytest.MonkeyPatch, answers: dict[str, list[tuple[int, str]]]) -> tuple[Outcome, list[str]]:
    """Returns the outcome of a write against a node that gives these answers, and the paths that were asked."""
    asked: list[str] = []

    def answer(path: str, given: dict[str, str]) -> tuple[int, str]:
        asked.append(path)
        assert given.get("dom", given.get("serviceName")) == "labrys-a:2Fb"
        return answers[path].pop(0)

    async def write() -> Outcome:
        node = Node(name="n1", address="127.0.0.1")
        client = NacosRegisters(node=node, nodes=[node], follows=False, pinned=False, writes=Writes.FOLLOWERS)
        try:
            return await client.invoke(Invocation("write", 7, "a/b"))
        finally:
            await client.close()

    return served(monkeypatch, answer, write), asked


ABSENT = (500, "java.lang.IllegalStateException: dom doesn't exist: labrys-a:2Fb")


def test_a_write_creates_its_service_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another client created it meanwhile, the write is tried again too."""
    answers = {
        "api/addIP4Dom": [ABSENT, ABSENT, (200, "ok")],
        "service": [(200, "ok"), (400, "specified service already exists, serviceName : labrys-a:2Fb")],
    }
    outcome, asked = written(monkeypatch, answers)
    assert outcome == Ok(7)
    assert asked == ["api/addIP4Dom", "service", "api/addIP4Dom", "service", "api/addIP4Dom"]


def test_without_its_service_a_write_certainly_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that may be there has no instance, so the write did not happen."""
    outcome, _ = written(monkeypatch, {"api/addIP4Dom": [ABSENT], "service": [(400, "data publish failed, key=k")]})
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("no-service: ")
    outcome, _ = written(monkeypatch, {"api/addIP4Dom": [(400, "data publish failed, key=k")]})
    assert isinstance(outcome, Info)
    outcome, _ = written(monkeypatch, {"api/addIP4Dom": [(200, "what is this")]})
    assert isinstance(outcome, Info)


def finally_read(
    monkeypatch: pytest.MonkeyPatch, changes: list[int], shown: list[str], stored_value: str = "2"
) -> Outcome:
    """Returns the outcome of a final read; the leader and then the node have stored so many changes, and it shows these."""
    monkeypatch.setattr(client_module, "PAUSE_S", 0.0)

    def answer(path: str, given: dict[str, str]) -> tuple[int, str]:
        if path == "raft/state":
            return 200, json.dumps({"peers": [{"ip": "127.0.0.1:8848", "state": "LEADER", "term": 1}]})
        value = stored_value if path == "raft/get" else shown.pop(0)
        instances = [{"metadata": {"value": value}}]
        if path == "instance/list":
            return 200, json.dumps({"hosts": instances})
        return 200, json.dumps([{"timestamp": changes.pop(0), "value": json.dumps(instances)}])

    async def read() -> Outcome:
        node = Node(name="n1", address="127.0.0.1")
        client = NacosRegisters(node=node, nodes=[node], follows=False, pinned=True, writes=Writes.FOLLOWERS)
        try:
            return await client.invoke(Invocation("read", None, "a"))
        finally:
            await client.close()

    outcome: Outcome = served(monkeypatch, answer, read)
    return outcome


def test_a_final_read_waits_for_the_changes_of_the_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is behind gives no answer, and one that has stored a value has time to show it."""
    behind = finally_read(monkeypatch, [5, 4], [])
    assert isinstance(behind, Fail)
    assert "the node has stored 4 of 5 changes" in behind.error
    assert finally_read(monkeypatch, [5, 5], ["1", "1", "2"]) == Ok(2)


def test_a_node_that_never_shows_what_it_has_stored_is_read_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a value that is lost between the two is seen."""
    assert finally_read(monkeypatch, [5, 5], ["1"] * (client_module.SHOWS + 1)) == Ok(1)


def test_a_node_says_whom_it_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers have an address, a role and a term; what has another form is no answer."""
    state = {"peers": [{"ip": "10.0.0.1:8848", "state": "LEADER", "term": 102, "voteFor": None}], "doms": 0}
    endless = '{"peers": [{"ip": "10.0.0.1:8848", "state": "LEADER", "term": 1e999}]}'
    texts = iter([json.dumps(state), json.dumps({"peers": [{"ip": 1}]}), "[]", "{", endless])

    async def peers() -> list[Any]:
        naming = Naming("127.0.0.1")
        answers: list[Any] = [await naming.peers()]
        for _ in range(4):
            with pytest.raises(NoAnswer):
                await naming.peers()
        await naming.close()
        return answers

    answers = served(monkeypatch, lambda *_: (200, next(texts)), peers)
    assert answers == [[Peer("10.0.0.1", "leader", 102)]]


STORED: dict[str, Any] = {"timestamp": 2, "value": json.dumps([{"metadata": {"value": "[1]"}}])}
ODD_TIMES: list[Any] = ["x", None, [], float("inf"), float("nan")]
ODD_INSTANCES: list[Any] = ["{", "[1]", "[" * 100_000, []]


def stored(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[int, str | None]:
    """Returns what a node has stored of a service, if it answers with this text."""

    async def use() -> Any:
        naming = Naming("127.0.0.1")
        try:
            return await naming.stored("labrys-a")
        finally:
            await naming.close()

    pair: tuple[int, str | None] = served(monkeypatch, lambda *_: (200, text), use)
    return pair


def test_a_node_says_what_it_has_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is a list of one: the number of changes with the instances, or null for a service that it does not know."""
    assert stored(monkeypatch, json.dumps([STORED])) == (2, "[1]")
    assert stored(monkeypatch, "[null]") == (0, None)


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "null", "7", '"x"', '{"a": 1}', "ok", json.dumps(STORED), json.dumps([STORED, STORED]), "[null, null]"),
        *("[7]", "[[]]", "[{}]", '[{"timestamp": 1}]', '[{"timestamp": 1, "value": null}]'),
        *(json.dumps([{**STORED, "timestamp": odd}]) for odd in ODD_TIMES),
        *(json.dumps([{**STORED, "value": odd}]) for odd in ODD_INSTANCES),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_an_odd_answer_about_what_is_stored_is_no_answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A list of none or of several, another kind of value, and numbers without an end: the dump of the replica fails."""
    with pytest.raises(NoAnswer):
        stored(monkeypatch, text)


def status(name: str, role: str, leader: str | None) -> NodeStatus:
    """Returns what a node says about itself."""
    return NodeStatus(node=name, role=role, term=1, leader=leader)


def test_a_group_is_ready_when_all_name_the_one_that_leads() -> None:
    """A node that names nobody, or somebody else, lacks the leader."""
    cluster: Any = Paper(["n1", "n2", "n3"])
    made = system.NacosSystem.made(cluster, NacosOptions(), "register", RegisterOptions(mix="2:1:0"))
    n1, n2 = status("n1", "leader", "n1"), status("n2", "follower", "n1")

    def lacking(third: NodeStatus | None) -> set[str]:
        return set(asyncio.run(made.lacking({"n1": n1, "n2": n2, "n3": third})))

    assert lacking(status("n3", "follower", "n1")) == set()
    assert lacking(status("n3", "candidate", None)) == {"n3"}
    assert lacking(None) == {"n3"}
    assert lacking(status("n3", "leader", "n3")) == {"n1", "n2", "n3"}


def test_the_version_is_that_of_the_jars() -> None:
    """`pom.xml` gets the release that the system names."""
    pom = (system.MODULE / "pom.xml").read_text()
    assert re.findall(r"<nacos\.version>([^<]+)<", pom) == [system.VERSION]
