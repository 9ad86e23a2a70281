"""RocketMQ's controllers as a system: configuration, readiness, and options."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.controllers import lacking
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from harness.cluster import Paper
from harness.errors import ExitCode, InputError
from harness.node import Node
from harness.service import NodeStatus
from tests.artifacts import unbuilt

if TYPE_CHECKING:
    from harness.cluster import Cluster


def system(count: int = 3, **options: Any) -> RocketMQController:
    """Controllers on nodes that do not exist, at 192.0.2.1 and so on."""
    paper = Paper([f"n{number}" for number in range(1, count + 1)])
    made = RocketMQController(cast("Cluster", paper), ControllerOptions(**options), "broker-id")
    return unbuilt(made, "rocketmq-jars")


def configuration(**options: Any) -> dict[str, str]:
    """The configuration of the second node of three."""
    made = system(**options)
    [config] = made.daemon(made.cluster.nodes[1]).config_files.values()
    return dict(line.split("=", 1) for line in config.splitlines())


@pytest.mark.parametrize("reads", [False, True])
def test_a_node_on_dledger(reads: bool) -> None:
    """The configuration has the group, the node's id, and whether reads go through the log."""
    settings = configuration(process_read_event=reads)
    assert settings["controllerType"] == "DLedger"
    assert settings["controllerDLegerPeers"] == "n1-192.0.2.1:9878;n2-192.0.2.2:9878;n3-192.0.2.3:9878"
    assert settings["controllerDLegerSelfId"] == "n2"
    assert settings["processReadEvent"] == ("true" if reads else "false")
    assert not [name for name in settings if name.startswith("jRaft")]


def test_a_node_on_jraft() -> None:
    """The configuration has the ports of both protocols, in the same order, and the snapshot interval."""
    settings = configuration(consensus=Consensus.JRAFT, snapshot_interval_s=10, election_timeout_ms=700)
    assert settings["controllerType"] == "jRaft"
    assert settings["listenPort"] == "9878"
    assert settings["jRaftServerId"] == "192.0.2.2:9880"
    assert settings["jRaftInitConf"] == "192.0.2.1:9880,192.0.2.2:9880,192.0.2.3:9880"
    assert settings["jRaftControllerRPCAddr"] == "192.0.2.1:9878,192.0.2.2:9878,192.0.2.3:9878"
    assert (settings["jRaftSnapshotIntervalSecs"], settings["jRaftElectionTimeoutMs"]) == ("10", "700")
    assert not [name for name in settings if name.startswith("controllerDLeger")]


@pytest.mark.parametrize("count", [1, 3, 5, 7])
@pytest.mark.parametrize("consensus", Consensus)
def test_the_process(count: int, consensus: Consensus) -> None:
    """A node has one process, whose pattern matches its command line, with all its ports and its store."""
    made = system(count, consensus=consensus)
    [daemon] = made.daemons(made.cluster.nodes[0])
    assert re.search(daemon.pattern, " ".join(daemon.argv))
    assert daemon.ports == ((9878, 9880) if consensus is Consensus.JRAFT else (9878,))
    [config] = daemon.config_files.values()
    assert f"controllerStorePath={daemon.data_dir}/" in config
    assert config.count("192.0.2.") >= count
    assert "/opt/labrys/rocketmq-jars-0123456789ab/*" in daemon.argv


@pytest.mark.parametrize(
    "options",
    [
        {"consensus": Consensus.JRAFT, "rocketmq_version": "5.1.4"},
        {"consensus": Consensus.JRAFT, "process_read_event": True},
    ],
)
def test_choices_that_do_not_go_together(options: Any) -> None:
    """The error says how to fix the options."""
    with pytest.raises(InputError, match="jraft"):
        ControllerOptions(**options)


def status(node: str, leader: str | None) -> NodeStatus:
    """A controller's status."""
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
    """Controllers are ready if all answer, one leads, and all name it; otherwise the result has what each lacks."""
    said = {
        f"n{number}": None if who == "silent" else status(f"n{number}", who) for number, who in enumerate(leaders, 1)
    }
    assert lacking(said) == missing


def test_an_address_that_a_configuration_would_cut() -> None:
    """An error comes before anything runs."""
    cluster = cast("Cluster", SimpleNamespace(nodes=[Node(name="n1", address="fd00::1")]))
    with pytest.raises(InputError, match="RocketMQ cannot use the node n1") as raised:
        RocketMQController(cluster, ControllerOptions(), "broker-id")
    assert raised.value.exit_code is ExitCode.BAD_ARGUMENTS


def test_fatal_lines() -> None:
    """A broken JVM and a broken state machine match; the log lines of a controller without peers do not."""
    fatal = "|".join(system().fatal_log_patterns())
    assert re.search(fatal, "java.lang.OutOfMemoryError: Metaspace")
    assert re.search(fatal, "Fail to save snapshot.] on StateMachine x, raft may stop working since some error occurs")
    assert not re.search(fatal, "ERROR Failed to append entry to DLedger")
