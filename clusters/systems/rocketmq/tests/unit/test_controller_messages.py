"""Error messages of controllers that cannot run, with scripted answers of nodes instead of a JVM."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.kit.answers import NoAnswer
from clusters.systems.rocketmq.client import Controllers
from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.options import ControllerOptions
from clusters.systems.rocketmq.settings import launch_log
from harness import readiness
from harness.errors import InfrastructureError, NodeError
from harness.node import Node
from harness.remote import Result
from harness.service import NodeStatus
from tests.artifacts import unbuilt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.cluster import Cluster

NODES = [Node(name=f"n{number}", address=f"192.0.2.{number}") for number in (1, 2, 3)]


class Answers:
    """A node with the same answer to every command."""

    def __init__(self, node: str, answer: Callable[[str], tuple[int, str, str]]) -> None:
        self.node = node
        self._answer = answer

    def run(self, command: str, **_: Any) -> Result:
        """Answers one command."""
        status, stdout, stderr = self._answer(command)
        return Result(node=self.node, command=command, status=status, stdout=stdout, stderr=stderr)


def system(answer: Callable[[str], tuple[int, str, str]]) -> RocketMQController:
    """Controllers on nodes with this answer."""
    cluster = SimpleNamespace(nodes=NODES, remote=lambda node: Answers(node.name, answer))
    return unbuilt(RocketMQController(cast("Cluster", cluster), ControllerOptions(), "broker-id"), "rocketmq-jars")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            (127, "bash: line 1: java: command not found\n", ""),
            "found none (`java -version` prints: bash: line 1: java",
        ),
        ((0, 'openjdk version "11.0.20" 2023-07-18\nOpenJDK Runtime\n', ""), "found Java 11 (`java -version` prints"),
        ((1, "", ""), "found none (`java -version` prints: nothing)"),
    ],
)
def test_a_jdk_that_is_too_old_or_missing(answer: tuple[int, str, str], expected: str) -> None:
    """The message has the expected version, the found one, and how to install Java."""
    with pytest.raises(NodeError) as raised:
        system(lambda _: answer).install(NODES[0])
    assert "n1: expected Java 17 or later to run RocketMQ" in str(raised.value)
    assert expected in str(raised.value)
    assert "`apt-get install openjdk-17-jre-headless` installs it" in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((98, "9878\n", ""), "port 9878 is taken by another process; `ss -ltnp` on the node shows which"),
        ((97, "", "Error: Could not create the JVM"), "could not be launched: Error: Could not create the JVM"),
        ((1, "", "mkdir: cannot create directory: No space left on device"), "No space left on device"),
    ],
)
def test_a_start_that_fails(answer: tuple[int, str, str], said: str) -> None:
    """For a port in use, a JVM that ends at once, or a full disk, the message has the node and its output."""
    with pytest.raises(NodeError) as raised:
        system(lambda _: answer).start(NODES[1])
    assert "n2: " in str(raised.value)
    assert said in str(raised.value)


def test_a_controller_that_dies_at_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait ends early, and the error has the last lines of all logs."""
    monkeypatch.setattr("clusters.kit.waiting.ALIVE_CHECK_S", 0.0)

    def answer(command: str) -> tuple[int, str, str]:
        return (0, "java.io.IOException: No space left on device\n" if "tail" in command else "", "")

    made = system(answer)
    asked: list[str] = []

    async def statuses(node: Node, _: float) -> Sequence[NodeStatus]:
        asked.append(node.name)
        return () if node.name == "n3" else (NodeStatus(node=node.name, role="follower", leader="n3"),)

    monkeypatch.setattr(made, "statuses", statuses)
    with pytest.raises(InfrastructureError) as raised:
        asyncio.run(readiness.until_ready(made, 60.0))
    message = str(raised.value)
    assert "n3 runs no process of RocketMQ's controller any more" in message
    assert "--- n3: process controller does not run; it reports no status\n" in message
    assert "--- n1: process controller does not run; reports follower, sees n3\n" in message
    assert f"last lines of {launch_log('controller')} on n3:\njava.io.IOException: No space left on device" in message
    assert len(asked) < 100


def test_a_group_that_never_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the leader that each controller sees, and the controllers that report to lead."""
    made = system(lambda _: (0, "", ""))

    async def statuses(node: Node, _: float) -> Sequence[NodeStatus]:
        leader = {"n1": "n1", "n2": "n2", "n3": None}[node.name]
        return (NodeStatus(node=node.name, role="leader" if leader == node.name else "follower", leader=leader),)

    monkeypatch.setattr(made, "statuses", statuses)
    with pytest.raises(InfrastructureError) as raised:
        asyncio.run(made.until_ready(NODES, 0.0))
    for said in ("n1 sees n1; n1 and n2 lead", "n2 sees n2; n1 and n2 lead", "n3 sees no leader; n1 and n2 lead"):
        assert said in str(raised.value)


def test_a_leader_that_does_not_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """All name the leader, but it answers no read; the message has this."""
    made = system(lambda _: (0, "", ""))

    async def statuses(node: Node, _: float) -> Sequence[NodeStatus]:
        return (NodeStatus(node=node.name, role="leader" if node.name == "n2" else "follower", leader="n2"),)

    monkeypatch.setattr(made, "statuses", statuses)
    monkeypatch.setattr(Controllers, "connect", _refused)
    with pytest.raises(InfrastructureError, match="n2 leads, but does not serve yet"):
        asyncio.run(made.until_ready(NODES, 0.0))


async def _refused(*_: Any, **__: Any) -> None:
    raise NoAnswer("refused")
