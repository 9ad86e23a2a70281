"""Three real DLedger nodes: installation, start, requests, pause, kill, transfer, comparison and wipe."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
import zipfile
from typing import TYPE_CHECKING, TypeVar

import pytest

from clusters.kit import conformance
from clusters.kit.routing import Routing
from clusters.systems.dledger.nodes import DATA_DIR, JAR, LOG_DIR, PATTERN, PORT
from clusters.systems.dledger.options import DLedgerOptions, ReadMode
from clusters.systems.dledger.system import DLedgerSystem
from harness import readiness
from harness.cluster import on_all
from harness.errors import CommandFailed, InfrastructureError, NodeError
from harness.op import Fail, Ok
from harness.service import first_status
from tests.artifacts import built
from tests.outcomes import asked_by_key
from tests.served import cluster_of, started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clusters.local import LocalCluster
    from harness.node import Node

    T = TypeVar("T")

pytestmark = pytest.mark.integration

WORKLOAD = "register"
READY_S = 60.0
SETTLED_S = 15.0
KEYS = (f"key-{number}" for number in itertools.count())


cluster = cluster_of("DLedger")


@pytest.fixture(scope="module")
def installed(cluster: LocalCluster) -> DLedgerSystem:
    """DLedger with snapshots, on all nodes."""
    system = built(DLedgerSystem(cluster, DLedgerOptions(snapshot_threshold=100), WORKLOAD))
    on_all(cluster.nodes, system.install)
    return system


@pytest.fixture
def system(installed: DLedgerSystem, cluster: LocalCluster) -> DLedgerSystem:
    """DLedger on all nodes, serving."""
    return started(installed, cluster.nodes, READY_S)


async def eventually(what: str, holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a limited time until a condition holds."""
    deadline_s = time.monotonic() + SETTLED_S
    while not await holds():
        assert time.monotonic() < deadline_s, f"{what} did not happen in {SETTLED_S:g} s"
        await asyncio.sleep(0.1)


def leader_of(system: DLedgerSystem, cluster: LocalCluster) -> Node:
    """The node that reports that it leads."""
    statuses = [asyncio.run(first_status(system, node, 2.0)) for node in cluster.nodes]
    (leader,) = [status.node for status in statuses if status is not None and status.role == "leader"]
    return next(node for node in cluster.nodes if node.name == leader)


def others(cluster: LocalCluster, than: Node) -> list[Node]:
    """All nodes but one."""
    return [node for node in cluster.nodes if node.name != than.name]


def test_the_jar_says_what_is_tested(installed: DLedgerSystem) -> None:
    """The provenance has the version that the jar itself has."""
    assert installed.versions() == {"dledger": "0.4.0"}
    with zipfile.ZipFile(installed.artifact.path / JAR) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode().splitlines()
    assert "DLedger-Version: 0.4.0" in manifest
    assert installed.artifact.provenance.short in installed.artifact.there


def test_installing_again_changes_nothing(installed: DLedgerSystem, cluster: LocalCluster) -> None:
    """An artifact that is on the node is not copied or linked again."""
    node = cluster.nodes[0]
    remote = cluster.remote(node)
    before = remote.run(f"stat -c '%i %Y' {installed.artifact.there}").stdout
    installed.install(node)
    assert remote.run(f"stat -c '%i %Y' {installed.artifact.there}").stdout == before


@pytest.mark.parametrize("law", [law for _, law in conformance.cases(DLedgerSystem.serves)], ids=conformance.name)
def test_clients_keep_the_laws(system: DLedgerSystem, cluster: LocalCluster, law: conformance.Law) -> None:
    """At the leader: a follower refuses them."""
    asyncio.run(law(conformance.Bench(nodes=[leader_of(system, cluster)], client=system.client)))


@pytest.mark.parametrize("mode", ReadMode)
def test_read_modes(system: DLedgerSystem, cluster: LocalCluster, mode: ReadMode) -> None:
    """Every mode works at the leader; only the unsafe one works at a follower."""
    key = next(KEYS)
    reading = DLedgerSystem(cluster, DLedgerOptions(read_mode=mode, routing=Routing.PINNED), WORKLOAD)
    leader = leader_of(system, cluster)
    assert asyncio.run(asked_by_key(reading.client(0, leader), ("write", key, 3), ("read", key, None))) == [
        Ok(3),
        Ok(3),
    ]
    (at_follower,) = asyncio.run(asked_by_key(reading.client(1, others(cluster, leader)[0]), ("read", key, None)))
    assert (
        isinstance(at_follower, Ok)
        if mode is ReadMode.UNSAFE
        else at_follower == Fail(f"not-leader: {leader.name} leads")
    )


def test_a_pinned_client_stays_and_a_following_one_goes(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """A pinned client at a follower is always refused, with pauses; a following one reaches the leader at once."""
    key = next(KEYS)
    leader = leader_of(system, cluster)
    follower = others(cluster, leader)[0]
    following = DLedgerSystem(cluster, DLedgerOptions(routing=Routing.LEADER), WORKLOAD).client(0, follower)
    start_s = time.monotonic()
    refused = asyncio.run(asked_by_key(system.client(0, follower, pinned=True), *[("write", key, 1)] * 3))
    assert refused == [Fail(f"not-leader: {leader.name} leads")] * 3
    assert time.monotonic() - start_s > 0.3
    assert asyncio.run(asked_by_key(following, ("write", key, 1), ("write", key, 2))) == [
        Fail(f"not-leader: {leader.name} leads"),
        Ok(2),
    ]


def test_leadership_goes_where_it_is_told(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """Every node can become the leader, and then reads the writes through the others."""
    key = next(KEYS)
    for value, node in enumerate(cluster.nodes):
        assert asyncio.run(system.lead(node, 40.0)), node.name
        assert leader_of(system, cluster) == node
        client = system.client(value, node, pinned=True)
        outcomes = asyncio.run(asked_by_key(client, ("read", key, None), ("write", key, value)))
        assert outcomes == [Ok(value - 1 if value else None), Ok(value)]


def test_leadership_moves_promptly_for_the_final_reads(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """Every node can lead, and has the writes through the others."""
    key = next(KEYS)
    for value, node in enumerate(cluster.nodes):
        assert asyncio.run(system.lead_promptly(node, 40.0)), node.name
        assert leader_of(system, cluster) == node
        outcomes = asyncio.run(
            asked_by_key(system.client(value, node, pinned=True), ("read", key, None), ("write", key, value))
        )
        assert outcomes == [Ok(value - 1 if value else None), Ok(value)]


def test_replicas_are_equal_at_one_index(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """Without load, all nodes reach one applied index with the same state; snapshots were made before."""
    key = next(KEYS)
    leader = leader_of(system, cluster)
    asyncio.run(asked_by_key(system.client(0, leader, pinned=True), *[("write", key, value) for value in range(120)]))

    async def settled() -> bool:
        replicas = await asyncio.gather(*(system.replica(node, 2.0) for node in cluster.nodes))
        states = [replica for replica in replicas if replica is not None]
        if len(states) < len(cluster.nodes) or len({state.applied_index for state in states}) > 1:
            return False
        assert all(state.state == states[0].state for state in states)
        return bool(states[0].state[key] == 119)

    asyncio.run(eventually("one applied index", settled))
    status = asyncio.run(first_status(system, leader, 2.0))
    assert status is not None
    assert status.details is not None
    assert status.details["snapshotsSaved"] > 0


def test_pause_and_resume(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """All threads of a paused process are in state T, and it is silent; after the resume the same process answers."""
    node = others(cluster, leader_of(system, cluster))[0]
    before = system.process_state(node)
    assert before is not None
    system.pause(node)
    threads = cluster.remote(node).run(f"sed 's/.*) //' /proc/{before[0]}/task/*/stat | cut -c1").stdout.split()
    assert len(threads) > 10
    assert set(threads) == {"T"}
    assert system.process_state(node) == (before[0], "T")
    assert asyncio.run(first_status(system, node, 0.5)) is None
    assert asyncio.run(system.replica(node, 0.5)) is None
    system.resume(node)
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    resumed = system.process_state(node)
    assert resumed is not None
    assert resumed[0] == before[0]
    assert resumed[1] != "T"


def test_kill_and_start_again(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """After kill -9 of all nodes there is no process; after a restart they have all answered writes."""
    key = next(KEYS)
    asyncio.run(asked_by_key(system.client(0, leader_of(system, cluster), pinned=True), ("write", key, 42)))
    on_all(cluster.nodes, system.kill)
    assert [system.process_state(node) for node in cluster.nodes] == [None] * 3
    on_all(cluster.nodes, system.kill)  # nothing to do, no error
    on_all(cluster.nodes, system.resume)
    (refused,) = asyncio.run(asked_by_key(system.client(0, cluster.nodes[0], pinned=True), ("read", key, None)))
    assert isinstance(refused, Fail)
    assert refused.error.startswith("not-connected: ")
    on_all(cluster.nodes, system.start)
    started = [system.process_state(node) for node in cluster.nodes]
    assert None not in started
    on_all(cluster.nodes, system.start)  # runs already
    assert [state[0] for state in started if state] == [
        state[0] for state in map(system.process_state, cluster.nodes) if state
    ]
    asyncio.run(system.until_ready(cluster.nodes, READY_S))
    assert asyncio.run(
        asked_by_key(system.client(0, leader_of(system, cluster), pinned=True), ("read", key, None))
    ) == [Ok(42)]


def test_waiting_for_a_dead_node_ends_early(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """If a process is gone, the wait ends early with the node and its log."""
    node = others(cluster, leader_of(system, cluster))[0]
    system.kill(node)
    start_s = time.monotonic()
    with pytest.raises(InfrastructureError, match=f"{node.name} runs no process of DLedger any more") as raised:
        asyncio.run(readiness.until_ready(system, READY_S))
    assert time.monotonic() - start_s < READY_S / 2
    assert f"--- {node.name}: process node does not run; it reports no status\n" in str(raised.value)
    assert "DLedger" in str(raised.value)


def test_a_wait_that_is_too_short_says_what_is_missing(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """At the deadline, the error has the silent node and its last log lines."""
    node = others(cluster, leader_of(system, cluster))[0]
    system.pause(node)
    try:
        with pytest.raises(InfrastructureError, match=f"within 1 s, but {node.name} does not answer") as raised:
            asyncio.run(readiness.until_ready(system, 1.0))
    finally:
        system.resume(node)
    assert f"--- {node.name}: process node is stopped; it reports no status\n" in str(raised.value)
    assert re.search(rf"last lines of {LOG_DIR}/\S+ on {node.name}:\n.", str(raised.value))
    others_said = [f"--- {other.name}: process node runs; reports " for other in cluster.nodes if other != node]
    assert all(said in str(raised.value) for said in others_said)


def test_a_port_in_use_is_named(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """If another process has the port, DLedger does not start, and the error has the reason."""
    node = cluster.nodes[0]
    remote = cluster.remote(node)
    system.kill(node)
    squatter = remote.run(
        f"setsid nohup python3 -m http.server {PORT} </dev/null >/dev/null 2>&1 & echo $!\n"
        f"for turn in $(seq 100); do ss -Hltn 'sport = :{PORT}' | grep -q . && exit 0; sleep 0.1; done; exit 1"
    ).stdout.strip()
    try:
        with pytest.raises(NodeError, match=rf"{node.name}: port {PORT} is taken"):
            system.start(node)
    finally:
        remote.run(f"kill -9 {squatter}")
    assert remote.run(f"pgrep -f '{PATTERN}'", check=False).status == 1


def test_a_command_line_that_ends_at_once_is_an_error(
    system: DLedgerSystem, cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM that refuses its flags is an error at once, with its output."""
    node = cluster.nodes[0]
    system.kill(node)
    monkeypatch.setattr("clusters.systems.dledger.nodes.JVM_FLAGS", ("-XX:+NoSuchFlag",))
    monkeypatch.setattr("harness.daemon.LAUNCH_WAIT_S", 1)

    def launch() -> None:
        system.start(node)  # says so, if the process is gone before it was seen
        asyncio.run(readiness.until_ready(system, READY_S))  # as a run waits: the error has the end of the log

    with pytest.raises(InfrastructureError, match="NoSuchFlag"):
        launch()


def test_logs_are_where_they_are_said_to_be(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """The current log of every node is among the log files."""
    for node in cluster.nodes:
        paths = [
            path
            for path in system.log_files(node)
            if cluster.remote(node).run(f"test -s {path}", check=False).status == 0
        ]
        assert f"{LOG_DIR}/node.0.log" in paths


def test_wipe_leaves_mount_points(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """A wipe removes data and logs, also on a mounted volume; a second wipe is not an error."""
    node = cluster.nodes[0]
    remote = cluster.remote(node)
    on_all(cluster.nodes, system.kill)
    on_all(cluster.nodes, system.wipe)
    remote.run(f"mount -t tmpfs tmpfs {DATA_DIR} && mkdir {DATA_DIR}/deep && touch {DATA_DIR}/deep/file")
    try:
        system.wipe(node)
        assert remote.run(f"find {DATA_DIR} {LOG_DIR} -mindepth 1").stdout == ""
    finally:
        remote.run(f"umount {DATA_DIR}")
    remote.run(f"rm -r {DATA_DIR} {LOG_DIR}")
    system.wipe(node)


def test_pausing_what_does_not_run_is_an_error(system: DLedgerSystem, cluster: LocalCluster) -> None:
    """A pause without a process is an error."""
    node = cluster.nodes[0]
    system.kill(node)
    with pytest.raises(CommandFailed):
        system.pause(node)
