"""RocketMQ's controllers as a system: what their nodes are told, when they are ready, and which choices there are."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.rocketmq import jars
from clusters.systems.rocketmq.controller import FATAL, RocketMQController, lacking
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from harness.cluster import Paper
from harness.errors import ExitCode, InfrastructureError, InputError
from harness.node import Node
from harness.system import NodeStatus

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cluster import Cluster


def system(count: int = 3, **options: Any) -> RocketMQController:
    """Controllers on paper, at 192.0.2.1 and so on."""
    paper = Paper([f"n{number}" for number in range(1, count + 1)])
    return RocketMQController(cast("Cluster", paper), ControllerOptions(**options), "broker-id")


def configuration(**options: Any) -> dict[str, str]:
    """The configuration of the second node of three."""
    made = system(**options)
    lines = made.configuration(made.cluster.nodes[1]).splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("reads", [False, True])
def test_a_node_on_dledger(reads: bool) -> None:
    """It has the group, its own id, and whether reads go through the log."""
    found = configuration(process_read_event=reads)
    assert found["controllerType"] == "DLedger"
    assert found["controllerDLegerPeers"] == "n1-192.0.2.1:9878;n2-192.0.2.2:9878;n3-192.0.2.3:9878"
    assert found["controllerDLegerSelfId"] == "n2"
    assert found["processReadEvent"] == ("true" if reads else "false")
    assert not [name for name in found if name.startswith("jRaft")]


def test_a_node_on_jraft() -> None:
    """It has the ports of both protocols, in one order, and the snapshots."""
    found = configuration(consensus=Consensus.JRAFT, snapshot_interval_s=10, election_timeout_ms=700)
    assert found["controllerType"] == "jRaft"
    assert found["listenPort"] == "9878"
    assert found["jRaftServerId"] == "192.0.2.2:9880"
    assert found["jRaftInitConf"] == "192.0.2.1:9880,192.0.2.2:9880,192.0.2.3:9880"
    assert found["jRaftControllerRPCAddr"] == "192.0.2.1:9878,192.0.2.2:9878,192.0.2.3:9878"
    assert (found["jRaftSnapshotIntervalSecs"], found["jRaftElectionTimeoutMs"]) == ("10", "700")
    assert not [name for name in found if name.startswith("controllerDLeger")]


@pytest.mark.parametrize("count", [1, 3, 5, 7])
@pytest.mark.parametrize("consensus", Consensus)
def test_the_process(count: int, consensus: Consensus) -> None:
    """One of a node: its pattern finds its command line, and faults know all its ports and its store."""
    made = system(count, consensus=consensus)
    [daemon] = made.processes(made.cluster.nodes[0])
    assert re.search(daemon.pattern, " ".join(daemon.argv))
    assert daemon.ports == ((9878, 9880) if consensus is Consensus.JRAFT else (9878,))
    [config] = daemon.config_files.values()
    assert f"controllerStorePath={daemon.data_dir}/" in config
    assert config.count("192.0.2.") >= count
    assert "/opt/labrys/rocketmq-5.3.3/*" in daemon.argv


@pytest.mark.parametrize(
    "options",
    [
        {"consensus": Consensus.JRAFT, "rocketmq_version": "5.1.4"},
        {"consensus": Consensus.JRAFT, "process_read_event": True},
    ],
)
def test_choices_that_do_not_go_together(options: Any) -> None:
    """They are refused with what to do."""
    with pytest.raises(InputError, match="jraft"):
        ControllerOptions(**options)


def status(node: str, leader: str | None) -> NodeStatus:
    """What a controller says."""
    return NodeStatus(node=node, role="leader" if node == leader else "follower", leader=leader)


@pytest.mark.parametrize(
    ("leaders", "missing"),
    [
        (("n1", "n1", "n1"), {}),
        (("n1", "n1", None), {"n3": "sees no leader, not n1"}),
        (("n1", "n1", "silent"), {"n3": "does not answer"}),
        ((None, None, None), dict.fromkeys(["n1", "n2", "n3"], "sees no leader; nobody leads")),
        (
            ("n1", "n2", "n2"),
            {"n1": "sees n1; n1 and n2 lead", "n2": "sees n2; n1 and n2 lead", "n3": "sees n2; n1 and n2 lead"},
        ),
        # The leader that they name is dead.
        (("n9", "n9", "n9"), dict.fromkeys(["n1", "n2", "n3"], "sees n9; nobody leads")),
    ],
)
def test_ready(leaders: tuple[str | None, ...], missing: dict[str, str]) -> None:
    """All answer, one leads, and all name it; else each says what it lacks."""
    said = {f"n{place}": None if who == "silent" else status(f"n{place}", who) for place, who in enumerate(leaders, 1)}
    assert lacking(said) == missing


def test_an_address_that_a_configuration_would_cut() -> None:
    """It is refused before anything runs."""
    cluster = cast("Cluster", SimpleNamespace(nodes=[Node(name="n1", address="fd00::1")]))
    with pytest.raises(InputError, match="RocketMQ cannot use the node n1") as raised:
        RocketMQController(cluster, ControllerOptions(), "broker-id")
    assert raised.value.exit_code is ExitCode.BAD_ARGUMENTS


def test_jars_that_are_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that gets them."""
    monkeypatch.setattr(jars, "MODULE", tmp_path)
    with pytest.raises(InfrastructureError, match=r"prepare-package -Drocketmq\.version=5\.2\.0"):
        jars.folder("5.2.0")


def test_the_digest_of_jars(tmp_path: Path) -> None:
    """It is that of all of them in the order of their names, and of nothing else."""
    for name, content in (("b.jar", b"2"), ("a.jar", b"1"), ("c.txt", b"3")):
        (tmp_path / name).write_bytes(content)
    assert jars.digest(tmp_path).startswith("6b51d431df5d7f14"), "SHA-256 of 12"


def test_fatal_lines() -> None:
    """A JVM that broke, a state machine that was given up; not what a controller writes when it loses its peers."""
    assert re.search("|".join(FATAL), "java.lang.OutOfMemoryError: Metaspace")
    assert re.search(
        "|".join(FATAL), "Fail to save snapshot.] on StateMachine x, raft may stop working since some error occurs"
    )
    assert not re.search("|".join(FATAL), "ERROR Failed to append entry to DLedger")
