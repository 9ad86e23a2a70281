"""Faults on five real nodes: each takes effect, is proved by what was measured, and is gone afterwards.

The system under test is a small TCP server on every node, a real process with a real port, which says of itself what a file
on its node says. Planted lies (packet tables that do nothing, a pid file that names somebody else) must be found out.
"""
# ruff: noqa: D102 - the methods of the small system and of the cluster with other addresses are described by their protocols

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clusters.local import LocalCluster
from harness.faults import PlannedFault
from harness.node import Node
from harness.system import NodeStatus
from nemesis.conductor import Conductor
from nemesis.errors import FaultError
from nemesis.kinds import missing_capabilities
from nemesis.undo import CHAIN, DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from harness.capabilities import Capabilities
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.faults import Begun, Proof
    from harness.remote import Remote
    from harness.system import ReplicaState

pytestmark = pytest.mark.integration

PORT = 7000
HOME = "/srv/echo"
SERVER = f"""
import os, socket, socketserver
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        with open("{HOME}/role") as f:
            self.wfile.write(f.read().encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    address_family = socket.AF_INET6
with open("{HOME}/pid", "w") as f:
    f.write(str(os.getpid()))
Server(("::", {PORT}), Echo).serve_forever()
"""


class Echo:
    """The smallest system there is: see the module."""

    name = "echo"
    dumps_replicas = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def _run(self, node: Node, command: str, *, check: bool = True) -> str:
        return self._cluster.remote(node).run(command, check=check).stdout.strip()

    def versions(self) -> Mapping[str, str]:
        return {"echo": "1"}

    def install(self, node: Node) -> None:
        remote = self._cluster.remote(node)
        remote.run(f"mkdir -p {HOME}/data")
        remote.write(f"{HOME}/server.py", SERVER)
        self.tell(node, leader=node.name == "n1", term=1)

    def tell(self, node: Node, *, leader: bool, term: int) -> None:
        """Lets the node's server say this of itself from now on."""
        role = json.dumps({"role": "leader" if leader else "follower", "term": term})
        self._cluster.remote(node).write(f"{HOME}/role", role)

    def start(self, node: Node) -> None:
        if self.process_state(node) is None:
            self._run(
                node, f"rm -f {HOME}/pid; cd {HOME}; setsid nohup {sys.executable} server.py >log 2>&1 </dev/null &"
            )

    def wait_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        for node in nodes:
            knock = f"bash -c '</dev/tcp/127.0.0.1/{PORT}' 2>/dev/null"
            self._run(node, f"for i in $(seq 100); do {knock} && exit 0; sleep 0.05; done; exit 1")

    def stop(self, node: Node) -> None:
        self.kill(node)

    def kill(self, node: Node) -> None:
        self._run(node, f"[ ! -e {HOME}/pid ] || kill -9 $(cat {HOME}/pid) 2>/dev/null; true")

    def pause(self, node: Node) -> None:
        self._run(node, f"kill -STOP $(cat {HOME}/pid)")

    def resume(self, node: Node) -> None:
        self._run(node, f"[ ! -e {HOME}/pid ] || kill -CONT $(cat {HOME}/pid) 2>/dev/null; true")

    def process_state(self, node: Node) -> tuple[int, str] | None:
        said = self._run(
            node, f"pid=$(cat {HOME}/pid) && echo $pid $(sed 's/.*) //' /proc/$pid/stat | cut -c1)", check=False
        )
        pid, *state = said.split() or [""]
        return (int(pid), state[0]) if state and state[0] != "Z" else None

    def wipe(self, node: Node) -> None:
        self._run(node, f"rm -rf {HOME}/data; mkdir -p {HOME}/data")

    def log_files(self, node: Node) -> Sequence[str]:
        return [f"{HOME}/log"]

    def fatal_log_patterns(self) -> Sequence[str]:
        return []

    def data_dir(self, node: Node) -> str:
        return f"{HOME}/data"

    def ports(self) -> Sequence[int]:
        return [PORT]

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        raise NotImplementedError("no test asks for operations")

    async def status(self, node: Node, timeout_s: float) -> NodeStatus | None:
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(node.address, PORT)
                said = json.loads(await reader.read())
                writer.close()
        except (OSError, TimeoutError, ValueError):
            return None
        return NodeStatus(node=node.name, role=said["role"], term=said["term"])

    async def lead(self, node: Node, timeout_s: float) -> bool:
        before = [status for status in [await self.status(each, 1.0) for each in self._cluster.nodes] if status]
        term = max((status.term or 0 for status in before), default=0) + 1
        for each in self._cluster.nodes:
            await asyncio.to_thread(self.tell, each, leader=each == node, term=term)
        return True

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState | None:
        return None


class Bench:
    """A cluster with the system running, and a way to carry out one fault on it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.system = Echo(cluster)
        self.names = [node.name for node in cluster.nodes]

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs asynchronous work where the nodes can be reached."""
        return asyncio.run(work)

    def shell(self, name: str, command: str) -> str:
        """Runs a command on a node."""
        return self.cluster.remote(self.node(name)).run(command).stdout

    def node(self, name: str) -> Node:
        """Returns a node by name."""
        return next(node for node in self.cluster.nodes if node.name == name)

    def conductor(self) -> Conductor:
        """Returns a nemesis for the cluster."""
        return Conductor(cluster=self.cluster, system=self.system)

    def through(self, fault: PlannedFault) -> tuple[Begun, Proof, Proof | None]:
        """Begins, proves and ends a fault."""

        async def work() -> tuple[Begun, Proof, Proof | None]:
            conductor = self.conductor()
            begun = await conductor.begin(fault)
            try:
                proof = await conductor.prove(fault)
            finally:
                ended = await conductor.end(fault)
            return begun, proof, ended

        begun, proof, ended = self.run(work())
        self.assert_clean()
        return begun, proof, ended

    def assert_clean(self) -> None:
        """No fault's rules and notes are left on any node, and every server runs."""
        for node in self.cluster.nodes:
            assert f"{CHAIN}-" not in self.shell(node.name, "iptables -S; ip6tables -S")
            assert not self.shell(node.name, f"ls {DIRECTORY} 2>/dev/null || true").strip()
            state = self.system.process_state(node)
            assert state is not None
            assert state[1] in "SR"


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Five nodes with the system on each."""
    with LocalCluster.up("test-nemesis") as cluster, cluster.entered():
        ready = Bench(cluster)
        for node in cluster.nodes:
            ready.system.install(node)
            ready.system.start(node)
        ready.system.wait_ready(cluster.nodes, 10)
        yield ready


def planned(kind: str, target: str | Sequence[str], **options: Any) -> PlannedFault:
    """Returns a plan's entry."""
    return PlannedFault(id=3, kind=kind, target=target, start_s=0.0, end_s=10.0, options=options)


ORDER = ["n4", "n2", "n5", "n1", "n3"]


@pytest.mark.parametrize(
    ("fault", "cut"),
    [
        (planned("partition-random-halves", ["n2", "n4"]), 12),
        (planned("partition-random-node", ["n3"]), 8),
        (planned("partition-random-node", "leader", order=ORDER), 8),
        (planned("partition-halves", ["n1", "n2"]), 12),
        (planned("partition-majorities-ring", ORDER), 10),
        (planned("bridge", ORDER), 8),
        (planned("partition-leader", "leader", order=ORDER, side="minority"), 12),
        (planned("partition-leader", "leader", order=ORDER, side="majority"), 12),
        (planned("partition-one-way", ["n5"]), 8),
        (planned("partition-fixed", "all", components=[["n1", "n2"], ["n3", "n4"]]), 16),
        (planned("partition-fixed", "all", grudge={"n1": ["n2"]}), 2),
    ],
    ids=lambda value: f"{value.kind}-{value.target}" if isinstance(value, PlannedFault) else "",
)
def test_a_partition_cuts_what_it_says_and_nothing_else(bench: Bench, fault: PlannedFault, cut: int) -> None:
    """All pairs are probed: the cut ones are silent, the whole ones answer, and the counters saw both."""
    begun, proof, ended = bench.through(fault)
    assert proof.effective, proof.reason
    answers = list(proof.measured["probes"].values())
    assert len(answers) == 20
    assert answers.count("silent") == cut
    assert answers.count("open") == 20 - cut
    assert f"All {cut} cut pairs were silent" in proof.reason
    assert begun.details["topology"]["sentence"]
    assert ended is not None
    assert ended.measured["dropped_total"] >= cut // 2


@pytest.mark.parametrize("kind", ["kill", "crash"])
def test_a_killed_process_is_gone_and_comes_back_with_another_pid(bench: Bench, kind: str) -> None:
    """The proof names the pid that vanished; after the end another one serves."""
    before = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    begun, proof, _ = bench.through(planned(kind, ["n2", "n5"]))
    assert begun.targets == ("n2", "n5")
    assert proof.effective, proof.reason
    assert proof.measured["vanished"] == ["n2", "n5"]
    after = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    changed = {name for name in before if before[name][0] != after[name][0]}  # type: ignore[index]
    assert changed == {"n2", "n5"}


def test_a_leader_is_killed_by_role(bench: Bench) -> None:
    """The role becomes a name when the fault begins."""
    begun, proof, _ = bench.through(planned("leader-kill", "leader", order=ORDER))
    assert begun.targets == ("n1",)
    assert proof.effective


def test_a_paused_process_is_stopped_and_goes_on_as_the_same(bench: Bench) -> None:
    """State T is seen in the kernel; afterwards the same pid runs on."""
    before = bench.system.process_state(bench.node("n4"))
    _, proof, _ = bench.through(planned("pause", ["n4"]))
    assert proof.effective, proof.reason
    assert proof.measured["states"]["n4"]["state"] == "T"
    assert bench.system.process_state(bench.node("n4"))[0] == before[0]  # type: ignore[index]


def test_overlapping_faults_heal_apart(bench: Bench) -> None:
    """Ending one partition leaves the other in place, and its proof knows what the other cuts."""
    first = PlannedFault(id=1, kind="partition-fixed", target=["n1"], start_s=0, end_s=9)
    second = PlannedFault(id=2, kind="partition-one-way", target=["n2"], start_s=0, end_s=9)
    third = PlannedFault(id=3, kind="pause", target=["n3"], start_s=0, end_s=9)

    async def work() -> None:
        conductor = bench.conductor()
        faults = [first, second, third]
        await asyncio.gather(*(conductor.begin(fault) for fault in faults))
        proofs = [await conductor.prove(fault) for fault in faults]
        assert all(proof.effective for proof in proofs), [proof.reason for proof in proofs]
        await conductor.end(first)
        rules = bench.shell("n5", "iptables -S")
        assert f"{CHAIN}-1" not in rules
        assert f"-A {CHAIN}-2 -s {bench.node('n2').address}/32 -j DROP" in rules
        again = await conductor.prove(second)
        assert again.effective, again.reason
        await asyncio.gather(conductor.end(second), conductor.end(third))
        assert await conductor.end(third) is None

    bench.run(work())
    bench.assert_clean()


def test_two_faults_of_a_process_never_share_a_node(bench: Bench) -> None:
    """A kill leaves out the node that a pause holds; where none is left it says who holds them."""
    pause = PlannedFault(id=1, kind="pause", target=["n1", "n2"], start_s=0, end_s=9)
    kill = PlannedFault(id=2, kind="kill", target=["n2", "n3"], start_s=0, end_s=9)
    crash = PlannedFault(id=3, kind="crash", target=["n1"], start_s=0, end_s=9)

    async def work() -> None:
        conductor = bench.conductor()
        await conductor.begin(pause)
        begun = await conductor.begin(kill)
        assert begun.targets == ("n3",)
        assert begun.details["problems"] == {"n2": "left out, held by 1-pause"}
        with pytest.raises(FaultError, match="finds no node to hit: n1 is held by 1-pause"):
            await conductor.begin(crash)
        await conductor.end(kill)
        await conductor.end(pause)

    bench.run(work())
    bench.assert_clean()


def test_the_next_start_heals_what_a_dead_nemesis_left(bench: Bench) -> None:
    """Rules and stopped processes are found on the nodes, by an object that knows nothing of them."""
    faults = [
        PlannedFault(id=7, kind="bridge", target=ORDER, start_s=0, end_s=9),
        PlannedFault(id=8, kind="pause", target=["n2", "n3"], start_s=0, end_s=9),
    ]

    async def break_and_forget() -> None:
        conductor = bench.conductor()
        for fault in faults:
            await conductor.begin(fault)

    bench.run(break_and_forget())
    foreign = "iptables -A INPUT -s 192.0.2.1 -j DROP"
    bench.shell("n1", foreign)
    bench.run(bench.conductor().heal())
    bench.assert_clean()
    for node in bench.cluster.nodes:
        assert CHAIN not in bench.shell(node.name, "iptables -S")
    assert "192.0.2.1" in bench.shell("n1", "iptables -S"), "foreign rules are not ours to remove"
    bench.shell("n1", foreign.replace("-A", "-D"))
    bench.run(bench.conductor().heal())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("exit 0", "packets still passed from n1 to n2"),
        (
            'case "$*" in *-S*) exec /usr/sbin/iptables "$@";; *DROP) exit 0;; esac; exec /usr/sbin/iptables "$@"',
            "still passed",
        ),
    ],
    ids=["does-nothing", "drops-nothing"],
)
def test_packet_tables_that_lie_are_found_out(bench: Bench, program: str, reason: str) -> None:
    """A program that reports success and drops nothing makes a fault that is recorded as without effect."""
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/iptables", f"#!/bin/sh\n{program}\n", mode=0o755)
        assert bench.shell(node.name, "command -v iptables").strip() == "/usr/local/sbin/iptables"
    try:
        _, proof, _ = bench.through(planned("partition-halves", ["n1"]))
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm /usr/local/sbin/iptables")
    assert not proof.effective
    assert reason.lower() in proof.reason.lower()


@pytest.mark.parametrize("kind", ["kill", "pause"])
def test_a_pid_file_that_lies_is_found_out(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process behind the port is what counts, whatever the system's pid file says."""
    monkeypatch.setattr("nemesis.faults.process.BACK_TIMEOUT_S", 1.0)
    other = bench.shell("n3", "setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $!").strip()
    true_pid = bench.shell("n3", f"cat {HOME}/pid; echo {other} > {HOME}/pid").strip()

    async def work() -> Proof:
        conductor = bench.conductor()
        await conductor.begin(planned(kind, ["n3"]))
        proof = await conductor.prove(planned(kind, ["n3"]))
        bench.shell("n3", f"echo {true_pid} > {HOME}/pid")
        if kind == "kill":
            with pytest.raises(FaultError, match=f"n3 still runs as pid {true_pid}"):
                await conductor.end(planned(kind, ["n3"]))
        else:
            await conductor.end(planned(kind, ["n3"]))
        return proof

    try:
        proof = bench.run(work())
    finally:
        bench.shell("n3", f"echo {true_pid} > {HOME}/pid; kill -9 {other} 2>/dev/null; true")
    assert not proof.effective
    assert f"pid {true_pid}" in proof.reason
    bench.assert_clean()


def test_a_node_that_does_not_come_back_is_a_finding(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart that fails is raised with the node and what is missing, and ends in the fault's record."""
    monkeypatch.setattr("nemesis.faults.process.BACK_TIMEOUT_S", 1.0)
    server = bench.shell("n4", f"cat {HOME}/server.py")

    async def work() -> None:
        conductor = bench.conductor()
        await conductor.begin(planned("kill", ["n4"]))
        bench.cluster.remote(bench.node("n4")).write(f"{HOME}/server.py", "raise SystemExit(1)\n")
        with pytest.raises(FaultError, match="n4 has no process"):
            await conductor.end(planned("kill", ["n4"]))

    try:
        bench.run(work())
    finally:
        bench.cluster.remote(bench.node("n4")).write(f"{HOME}/server.py", server)
        bench.system.start(bench.node("n4"))
        bench.system.wait_ready([bench.node("n4")], 5)
    bench.assert_clean()


def test_a_kill_of_what_does_not_run_is_without_effect(bench: Bench) -> None:
    """Nothing vanished, so nothing is claimed."""
    bench.system.kill(bench.node("n5"))
    _, proof, _ = bench.through(planned("kill", ["n5"]))
    assert not proof.effective
    assert "n5: did not run before" in proof.reason


def test_without_a_leader_a_leader_fault_hits_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """No node says that it leads: the fault fails within its deadline and leaves no trace."""
    monkeypatch.setattr("nemesis.conductor.LEADER_TIMEOUT_S", 0.5)
    bench.system.tell(bench.node("n1"), leader=False, term=1)

    async def work() -> None:
        conductor = bench.conductor()
        fault = planned("partition-leader", "leader", order=ORDER)
        with pytest.raises(FaultError, match="needs a leader"):
            await conductor.begin(fault)
        assert await conductor.end(fault) is None

    try:
        bench.run(work())
    finally:
        bench.system.tell(bench.node("n1"), leader=True, term=1)
    bench.assert_clean()


class Versatile:
    """The cluster with other addresses for its nodes."""

    def __init__(self, cluster: LocalCluster, addresses: Mapping[str, str]) -> None:
        self.name = cluster.name
        self.nodes = tuple(Node(name=node.name, address=addresses[node.name]) for node in cluster.nodes)
        self._cluster = cluster
        self._inner = {node.name: node for node in cluster.nodes}

    def remote(self, node: Node) -> Remote:
        return self._cluster.remote(self._inner[node.name])

    def capabilities(self) -> Mapping[str, Capabilities]:
        return self._cluster.capabilities()

    def entered(self) -> AbstractContextManager[None]:
        return self._cluster.entered()

    def close(self) -> None:
        self._cluster.close()


def test_nodes_with_ipv6_addresses_are_cut_by_ip6tables(bench: Bench) -> None:
    """The same proof over IPv6; IPv4 between the nodes is not touched."""
    addresses = {node.name: f"fd00:5::{index}" for index, node in enumerate(bench.cluster.nodes, 1)}
    for name, address in addresses.items():
        bench.shell(name, f"sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0; ip -6 addr add {address}/64 dev eth0 nodad")
    cluster = Versatile(bench.cluster, addresses)
    fault = planned("partition-random-node", ["n2"])

    async def work() -> tuple[Proof, str, str]:
        conductor = Conductor(cluster=cluster, system=Echo(cluster))
        await conductor.begin(fault)
        try:
            rules = bench.shell("n1", "ip6tables -S"), bench.shell("n1", "iptables -S")
            proof = await conductor.prove(fault)
        finally:
            await conductor.end(fault)
        return proof, *rules

    proof, six, four = bench.run(work())
    assert proof.effective, proof.reason
    assert f"-A {CHAIN}-3 -s fd00:5::2/128 -j DROP" in six
    assert f"{CHAIN}-3" not in four
    bench.assert_clean()


@pytest.mark.parametrize("probability", [0.3, 0.8])
def test_packet_loss_is_measured_from_outside(bench: Bench, probability: float) -> None:
    """Of datagrams sent to the targets about the asked part is lost; afterwards none."""
    _, proof, ended = bench.through(planned("packet-loss", ["n2", "n5"], probability=probability))
    assert proof.effective, proof.reason
    assert set(proof.measured["delivery"]) == {"n2", "n5"}
    for delivery in proof.measured["delivery"].values():
        assert delivery["sent"] == 600
        assert abs(delivery["lost"] - probability) < 0.12
    assert ended is not None
    assert 0.2 * 1200 < ended.measured["dropped_total"] < ended.measured["seen_total"]


def test_loss_that_is_not_what_was_asked_for_is_not_claimed(bench: Bench) -> None:
    """A statistic match that drops less than it says is found out by what arrives."""
    lie = "#!/bin/sh\nexec /usr/sbin/iptables $(echo \"$*\" | sed 's/--probability [0-9.]*/--probability 0.1/')\n"
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/iptables", lie, mode=0o755)
    try:
        _, proof, _ = bench.through(planned("packet-loss", ["n1"], probability=0.8))
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm /usr/local/sbin/iptables")
    assert not proof.effective
    assert "not the 80% that were asked for" in proof.reason


def test_a_narrow_link_drops_a_burst(bench: Bench) -> None:
    """Sent through one megabit, a burst of large datagrams arrives in part; before it arrived whole."""
    _, proof, _ = bench.through(planned("packet-rate", ["n4"], kbit=1000))
    assert proof.effective, proof.reason
    assert "qdisc noqueue" in bench.shell("n4", "tc qdisc show dev eth0")


def test_netem_is_refused_where_the_kernel_lacks_it(bench: Bench) -> None:
    """Whatever this kernel has, a fault is either refused with a reason or takes effect; never neither."""
    sentences = missing_capabilities(["packet-delay"], bench.cluster.capabilities(), bench.cluster.nodes)
    fault = planned("packet-delay", ["n3"], delay_ms=60, jitter_ms=10)
    if sentences:
        assert all("packet-delay needs netem on every node" in sentence for sentence in sentences)

        async def work() -> None:
            with pytest.raises(FaultError, match="needs netem"):
                await bench.conductor().begin(fault)

        bench.run(work())
    else:
        _, proof, _ = bench.through(fault)
        assert proof.effective, proof.reason


def test_leadership_goes_where_it_is_asked_to(bench: Bench) -> None:
    """The proof names the leader before and now; asking the leader itself transfers nothing."""
    try:
        begun, proof, _ = bench.through(planned("leadership-transfer", "follower", order=ORDER))
        assert begun.targets == ("n4",)
        assert proof.effective, proof.reason
        assert "n4 (term" in proof.reason
        _, proof, _ = bench.through(planned("leadership-transfer", ["n4"]))
        assert not proof.effective
    finally:
        for node in bench.cluster.nodes:
            bench.system.tell(node, leader=node.name == "n1", term=50)


@pytest.fixture
def volumes(bench: Bench) -> Iterator[Conductor]:
    """The servers' data on volumes of ours, with a conductor that knows of them."""
    conductor = bench.conductor()
    plan = [planned("power-loss", ["n1"])]
    for node in bench.cluster.nodes:
        bench.system.kill(node)
        bench.shell(node.name, f"mkdir -p {HOME}/data; echo kept > {HOME}/data/from-before")
    bench.run(conductor.prepare(plan))
    for node in bench.cluster.nodes:
        assert bench.shell(node.name, f"cat {HOME}/data/from-before") == "kept\n"
        bench.system.start(node)
    bench.system.wait_ready(bench.cluster.nodes, 5)
    yield conductor
    for node in bench.cluster.nodes:
        bench.system.kill(node)
    bench.run(conductor.release())
    for node in bench.cluster.nodes:
        assert "/dev/loop" not in bench.shell(node.name, "cat /proc/mounts")
        bench.system.start(node)
    bench.system.wait_ready(bench.cluster.nodes, 5)


def test_a_power_loss_takes_what_was_not_synced(bench: Bench, volumes: Conductor) -> None:
    """A synced file survives, one that was only written does not; the process is killed and comes back."""
    bench.shell("n2", f"cd {HOME}/data; echo safe > safe; sync safe; head -c 50000 /dev/urandom > lost")
    fault = planned("power-loss", ["n2"])

    async def work() -> Proof:
        await volumes.begin(fault)
        try:
            return await volumes.prove(fault)
        finally:
            await volumes.end(fault)
            await volumes.heal()

    proof = bench.run(work())
    assert proof.effective, proof.reason
    assert proof.measured["volumes"]["n2"]["files_changed"] >= 1
    assert bench.shell("n2", f"cat {HOME}/data/safe") == "safe\n"
    assert bench.shell("n2", f"cd {HOME}/data; [ ! -s lost ] && echo gone") == "gone\n"
    assert "ext4" in bench.shell("n2", f"grep {HOME}/data /proc/mounts"), (
        "healing keeps the volume while the run goes on"
    )
    bench.assert_clean()


def test_a_full_disk_refuses_writes_until_it_is_healed(bench: Bench, volumes: Conductor) -> None:
    """No room on the volume, room elsewhere, and room again afterwards."""
    fault = planned("disk-full", ["n3"])

    async def work() -> Proof:
        await volumes.begin(fault)
        try:
            proof = await volumes.prove(fault)
            assert (
                bench.shell("n3", f"dd if=/dev/zero of={HOME}/data/x bs=4k count=1 2>&1 | grep -c 'No space'; true")
                == "1\n"
            )
            bench.shell("n3", "dd if=/dev/zero of=/srv/elsewhere bs=64k count=1 2>/dev/null; rm /srv/elsewhere")
        finally:
            await volumes.end(fault)
        return proof

    proof = bench.run(work())
    assert proof.effective, proof.reason
    bench.shell("n3", f"dd if=/dev/zero of={HOME}/data/x bs=4k count=1 2>/dev/null")
    bench.assert_clean()


def test_disk_faults_are_refused_without_a_volume(bench: Bench) -> None:
    """The disk of a node, which may be this machine's, is never filled, nor shut down."""
    for kind in ("disk-full", "power-loss"):

        async def work(fault: PlannedFault) -> None:
            conductor = bench.conductor()
            with pytest.raises(FaultError, match="not on a volume of ours"):
                await conductor.begin(fault)
            await conductor.end(fault)

        bench.run(work(planned(kind, ["n1"])))
        bench.assert_clean()


def test_the_next_start_takes_away_the_volumes_of_a_dead_run(bench: Bench) -> None:
    """A conductor that made no volumes removes those it finds."""
    node = bench.node("n5")
    bench.system.kill(node)
    bench.run(bench.conductor().prepare([planned("disk-full", ["n5"])]))
    bench.system.start(node)
    bench.run(bench.conductor().heal())
    for each in bench.cluster.nodes:
        assert "/dev/loop" not in bench.shell(each.name, "cat /proc/mounts; losetup -j /var/lib/labrys/volume.img")
    bench.assert_clean()


@pytest.mark.parametrize("kind", ["file-truncate", "file-bitflip"])
def test_a_damaged_file_is_read_back(bench: Bench, kind: str) -> None:
    """The written part is hit, not the zeros behind it; the same numbers damage the same bytes."""
    make = f"cd {HOME}/data; rm -rf *; mkdir -p log; seq 1 5000 > log/0001; truncate -s 1M log/0001; : > empty; cp log/0001 /srv/before"
    seen = []
    for _ in range(2):
        bench.shell("n4", make)
        begun, proof, _ = bench.through(
            planned(kind, ["n4"], pick=0.3, **({"seed": 7} if kind == "file-bitflip" else {}))
        )
        assert proof.effective, proof.reason
        assert begun.details["damage"]["n4"]["file"] == f"{HOME}/data/log/0001"
        seen.append(
            bench.shell(
                "n4", f"cmp -l /srv/before {HOME}/data/log/0001 2>&1 | head -n 20; stat -c %s {HOME}/data/log/0001"
            )
        )
    assert seen[0] == seen[1]
    written = len("".join(f"{i}\n" for i in range(1, 5001)))
    if kind == "file-truncate":
        assert int(seen[0].splitlines()[-1]) == written - 1024
    else:
        changed = [int(line.split()[0]) for line in seen[0].splitlines()[:-1]]
        assert len(changed) == 8
        assert max(changed) <= written


def test_files_are_damaged_on_a_minority_at_most(bench: Bench) -> None:
    """A third of five nodes is refused by the nemesis itself, whatever the plan says."""
    bench.shell("n1", f"echo data > {HOME}/data/file")
    bench.shell("n2", f"echo data > {HOME}/data/file")

    async def work() -> None:
        conductor = bench.conductor()
        first = PlannedFault(id=1, kind="file-bitflip", target=["n1", "n2"], start_s=0, end_s=9, options={"flips": 1})
        await conductor.begin(first)
        await conductor.end(first)
        with pytest.raises(FaultError, match="is refused: it would bring the nodes with damaged files to n1, n2, n3"):
            await conductor.begin(planned("file-truncate", ["n3"]))

    bench.run(work())
    bench.assert_clean()


FAKE_DATE = """#!/bin/sh
offset=$(cat /srv/offset 2>/dev/null || echo 0)
now=$(/usr/bin/date +%s.%N)
case "$1" in
-s) awk -v to="${2#@}" -v now="$now" 'BEGIN { printf "%.6f", to - now }' > /srv/offset.new; mv /srv/offset.new /srv/offset;;
*) awk -v o="$offset" -v now="$now" 'BEGIN { printf "%.6f\\n", now + o }';;
esac
"""


class OwnClocks(Versatile):
    """The cluster as if its nodes had clocks of their own."""

    def capabilities(self) -> Mapping[str, Capabilities]:
        return {
            name: replace(can, available=can.available | {"clock"})
            for name, can in self._cluster.capabilities().items()
        }


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("clock-skew", {"offset_ms": -90_000}),
        ("clock-skew", {"offset_ms": 700}),
        ("clock-strobe", {"delta_ms": 5000, "period_ms": 40}),
    ],
)
def test_clocks_are_set_aside_and_put_back(bench: Bench, kind: str, options: dict[str, int]) -> None:
    """With a `date` that keeps its own offset, for these nodes share this machine's clock, which is never touched."""
    fault = planned(kind, ["n1", "n3"], **options)
    refused = bench.conductor()

    async def refuse() -> None:
        with pytest.raises(FaultError, match="needs clock on every node"):
            await refused.begin(fault)

    bench.run(refuse())
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/date", FAKE_DATE, mode=0o755)
        assert bench.shell(node.name, "command -v date").strip() == "/usr/local/sbin/date"
    cluster = OwnClocks(bench.cluster, {node.name: node.address for node in bench.cluster.nodes})

    async def work() -> Proof:
        conductor = Conductor(cluster=cluster, system=bench.system)
        await conductor.begin(fault)
        try:
            return await conductor.prove(fault)
        finally:
            await conductor.end(fault)

    try:
        proof = bench.run(work())
        for name in ("n1", "n3"):
            assert abs(float(bench.shell(name, "cat /srv/offset"))) < 0.1
        assert bench.shell("n2", "cat /srv/offset 2>/dev/null || echo untouched") == "untouched\n"
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm -f /usr/local/sbin/date /srv/offset")
    assert proof.effective, proof.reason
    bench.assert_clean()
