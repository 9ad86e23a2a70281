"""Faults with a role as target affect and prove only the process of that role."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from clusters.local import LocalCluster
from harness import readiness
from harness.daemon import Daemon
from harness.declare import NoOptions
from harness.errors import InfrastructureError
from harness.faults import PlannedFault
from harness.healing import CHAIN
from harness.process_clock import asked, http_date_s
from harness.service import NodeStatus, Service
from harness.system import System
from harness.targets import Named, from_json
from nemesis.conductor import Conductor
from nemesis.errors import FaultError
from tests.slow_faults import forget_plugins, install_slow_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from harness.client import Client
    from harness.faults import Begun, Proof
    from harness.node import Node
    from harness.process_clock import ClockReading

pytestmark = pytest.mark.integration

PYTHON = os.path.realpath(sys.executable)
PORTS = {"front": 8101, "back": 8102}
LEADS = {"front": "n1", "back": "n3"}


class Servers(Service):
    """A file server on each of its nodes."""

    def __init__(self, system: System, role: str, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self.role = role
        self.port = PORTS[role]
        self.serves_clients = role == "front"

    def daemon(self, node: Node) -> Daemon:
        """Returns the server of a node."""
        return Daemon(
            role=self.role,
            argv=(PYTHON, "-m", "http.server", "--bind", "0.0.0.0", str(self.port)),
            pattern=f"^{PYTHON} -m http.server .*{self.port}$",
            ports=(self.port,),
            data_dir=f"/srv/pages/{self.role}",
            log_files=(f"/srv/pages/log/{self.role}.log",),
            config_files={f"/srv/pages/{self.role}/index.html": f"<p>{self.role} of {node.name}</p>\n"},
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until the port of every node has a listener."""
        for node in nodes:
            knock = f"bash -c '</dev/tcp/127.0.0.1/{self.port}' 2>/dev/null"
            script = f"for i in $(seq {int(timeout_s * 20)}); do {knock} && exit 0; sleep 0.05; done; exit 1"
            answer = await asyncio.to_thread(self.system.cluster.remote(node).run, script, check=False)
            if answer.status:
                raise InfrastructureError(f"{self.role} of {node.name} does not listen on {self.port}")

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Asks the server for its time, which is in the header of its answer."""

        async def ask() -> float | None:
            return await http_date_s(node.address, self.port, timeout_s)

        return await asked(ask, source="the Date of its answer", resolution_s=1.0)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns the leader of the role."""
        return [NodeStatus(node=node.name, role="leader" if LEADS[self.role] == node.name else "follower")]


class Pages(System):
    """Two services: a back on the first three nodes, and a front on all."""

    name = "pages"

    def services(self) -> Sequence[Service]:
        """Returns the back before the front."""
        nodes = self.cluster.nodes
        return (Servers(self, "back", nodes[:3]), Servers(self, "front", nodes))

    def install(self, node: Node) -> None:
        """Has nothing to install."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Has no clients."""
        raise NotImplementedError


class Site:
    """The system on a cluster, and a way to carry out one fault on it."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.cluster = cluster
        self.system = Pages(cluster, NoOptions(), "none")

    def node(self, name: str) -> Node:
        """Returns a node by name."""
        return next(node for node in self.cluster.nodes if node.name == name)

    def pids(self, role: str) -> dict[str, tuple[int, str] | None]:
        """Returns the processes of a role by node."""
        by_node = {node.name: self.system.process_states(node, role) for node in self.cluster.nodes}
        return {name: states[role] for name, states in by_node.items() if role in states}

    def nices(self, name: str) -> dict[str, int]:
        """Returns the nice value of each process of a node, by role."""
        remote = self.cluster.remote(self.node(name))
        states = self.system.process_states(self.node(name))
        shown = {role: remote.run(f"ps -o ni= -p {state[0]}").stdout for role, state in states.items() if state}
        return {role: int(text) for role, text in shown.items()}

    def get(self, source: str, target: str, role: str) -> str:
        """Requests a server's page from another node; empty without an answer."""
        connect = f"exec 3<>/dev/tcp/{self.node(target).address}/{PORTS[role]}"
        script = f"{connect} && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && tail -n 1 <&3"
        remote = self.cluster.remote(self.node(source))
        asked = remote.run(f"timeout 1 bash -c {shlex.quote(script)}", check=False)
        return asked.stdout.strip()

    def through(self, fault: PlannedFault, meanwhile: Any = None) -> tuple[Begun, Proof, Any]:
        """Begins and proves a fault, calls a function, and ends the fault."""

        async def work() -> tuple[Begun, Proof, Any]:
            conductor = Conductor(cluster=self.cluster, system=self.system)
            await conductor.prepare([fault])
            begun = await conductor.begin(fault)
            try:
                proof = await conductor.prove(fault)
                seen = await asyncio.to_thread(meanwhile) if meanwhile else None
            finally:
                await conductor.end(fault)
            return begun, proof, seen

        return asyncio.run(work())


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Five nodes with the servers on them."""
    with LocalCluster.up(f"test-roles-{os.getpid()}") as cluster, cluster.entered():
        made = Site(cluster)
        for node in cluster.nodes:
            made.system.start(node)
        asyncio.run(readiness.until_ready(made.system, 10))
        yield made


def planned(
    kind: str, target: str | Sequence[str], role: str, *, order: Sequence[str] = (), **options: Any
) -> PlannedFault:
    """Returns a plan's entry. The target is a word or names."""
    return PlannedFault(
        id=4,
        kind=kind,
        target=from_json(target),
        start_s=0.0,
        end_s=10.0,
        order=tuple(order),
        role=role,
        options=options,
    )


def test_a_killed_front_leaves_the_back_alone(site: Site) -> None:
    """The pid of the front vanishes and another one comes back; the back keeps its process."""
    fronts, backs = site.pids("front"), site.pids("back")
    _, proof, seen = site.through(
        planned("kill", ["n1", "n4"], "front"), lambda: (site.pids("front"), site.pids("back"))
    )
    assert proof.effective, proof.reason
    assert proof.measured["vanished"] == ["n1", "n4"]
    assert proof.measured["pids"]["n1"] == fronts["n1"][0]  # type: ignore[index]
    killed, other = seen
    assert [name for name, state in killed.items() if state is None] == ["n1", "n4"]
    assert other == backs == site.pids("back")
    after = site.pids("front")
    assert None not in after.values()
    assert [name for name in after if after[name][0] != fronts[name][0]] == ["n1", "n4"]  # type: ignore[index]
    assert site.get("n2", "n1", "front") == "<p>front of n1</p>"


def test_a_paused_back_leaves_the_front_alone(site: Site) -> None:
    """The back is in state T and silent, and the front of the same node answers; each role has its leader."""
    order = ["n2", "n1", "n3"]

    def look() -> Any:
        return site.pids("back"), site.pids("front"), site.get("n1", "n3", "back"), site.get("n1", "n3", "front")

    begun, proof, seen = site.through(planned("pause", "leader", "back", order=order), look)
    assert begun.targets == ("n3",)
    assert proof.effective, proof.reason
    backs, fronts, silent, answer = seen
    assert [name for name, state in backs.items() if state[1] == "T"] == ["n3"]
    assert [name for name, state in fronts.items() if state[1] == "T"] == []
    assert silent == ""
    assert answer == "<p>front of n3</p>"
    assert site.get("n1", "n3", "back") == "<p>back of n3</p>"


def test_without_a_role_all_processes_of_a_node_are_hit(site: Site) -> None:
    """Each process has its own proof, with its role."""
    _, proof, _ = site.through(PlannedFault(id=5, kind="kill", target=Named(("n2", "n5")), start_s=0.0, end_s=10.0))
    assert proof.effective, proof.reason
    assert proof.measured["vanished"] == ["n2 (back)", "n2 (front)", "n5"]
    asyncio.run(readiness.until_ready(site.system, 10))


def test_parted_fronts_leave_the_backs_alone(site: Site) -> None:
    """Only packets to and from the ports of the fronts are dropped, by the counters and by probes on those ports."""

    def look() -> Any:
        ends = (("n1", "n2"), ("n2", "n1"), ("n2", "n3"))
        return [site.get(a, b, "front") for a, b in ends], [site.get(a, b, "back") for a, b in ends]

    fault = planned("partition-random-halves", ["n1", "n4"], "front")
    begun, proof, (fronts, backs) = site.through(fault, look)
    assert proof.effective, proof.reason
    assert "All 12 cut pairs were silent" in proof.reason
    assert "all 8 whole ones answered" in proof.reason
    assert begun.details["ports"] == [PORTS["front"]]
    assert all(packets > 0 for packets in proof.measured["dropped"].values())
    assert fronts == ["", "", "<p>front of n3</p>"]
    assert backs == ["<p>back of n2</p>", "<p>back of n1</p>", "<p>back of n3</p>"]
    for node in site.cluster.nodes:
        assert CHAIN + "-" not in site.cluster.remote(node).run("iptables -S").stdout
    assert site.get("n1", "n2", "front") == "<p>front of n2</p>"


def test_a_partition_of_a_role_divides_its_nodes_only(site: Site) -> None:
    """Nodes without the role get no rules, and are not in the grudge."""
    begun, proof, _ = site.through(planned("partition-random-halves", ["n2"], "back"))
    assert proof.effective, proof.reason
    assert sorted(begun.details["grudge"]) == ["n1", "n2", "n3"]
    assert "All 4 cut pairs were silent" in proof.reason


def test_two_roles_of_one_node_are_held_apart(site: Site) -> None:
    """A front can be paused while the back of its node is dead; two faults of the same front are refused."""
    kill = PlannedFault(id=6, kind="kill", target=Named(("n1",)), start_s=0, end_s=3, role="back")
    pause = PlannedFault(id=7, kind="pause", target=Named(("n1",)), start_s=0, end_s=3, role="front")
    again = PlannedFault(id=8, kind="kill", target=Named(("n1",)), start_s=0, end_s=3)

    async def work() -> list[Proof]:
        conductor = Conductor(cluster=site.cluster, system=site.system)
        await conductor.begin(kill)
        await conductor.begin(pause)
        proofs = [await conductor.prove(kill), await conductor.prove(pause)]
        with pytest.raises(FaultError, match="has no target left: 7-pause already affects n1"):
            await conductor.begin(again)
        await conductor.end(pause)
        await conductor.end(kill)
        return proofs

    for proof in asyncio.run(work()):
        assert proof.effective, proof.reason


def test_power_is_lost_by_the_data_of_one_role(site: Site) -> None:
    """The unsynced file of the back is gone; that of the front is still there."""
    fault = planned("power-loss", ["n2"], "back")
    node, system = site.node("n2"), site.system
    remote = site.cluster.remote(node)

    async def work() -> Proof:
        conductor = Conductor(cluster=site.cluster, system=system)
        await conductor.prepare([fault])
        for other in site.cluster.nodes:
            system.start(other)
        await readiness.until_ready(system, 10)
        remote.run(
            "head -c 50000 /dev/urandom > /srv/pages/front/written; head -c 50000 /dev/urandom > /srv/pages/back/written"
        )
        await conductor.begin(fault)
        proof = await conductor.prove(fault)
        await conductor.end(fault)
        return proof

    for other in site.cluster.nodes:
        system.kill(other)
    try:
        proof = asyncio.run(work())
        assert proof.effective, proof.reason
        assert remote.run("grep -c /srv/pages /proc/mounts").stdout.strip() == "1"
        assert remote.run("stat -c %s /srv/pages/front/written").stdout.strip() == "50000"
        assert remote.run("cmp -s /srv/pages/back/written /srv/pages/front/written", check=False).status != 0
        assert remote.run("stat -c %s /srv/pages/back/written 2>/dev/null || echo 0").stdout.strip() == "0"
    finally:
        for other in site.cluster.nodes:
            system.kill(other)
        conductor = Conductor(cluster=site.cluster, system=system)
        asyncio.run(conductor.heal())
        for other in site.cluster.nodes:
            system.start(other)
        asyncio.run(readiness.until_ready(system, 10))
    assert "/srv/pages" not in remote.run("cat /proc/mounts").stdout


def test_the_clock_of_one_role_is_set_aside(site: Site) -> None:
    """Only this process' clock changes, by libfaketime; the other process of the node keeps the right time."""
    fault = planned("clock-skew", ["n1"], "front", offset_ms=60_000)
    if "faketime" not in site.cluster.capabilities()["n1"].available:
        pytest.skip("libfaketime is not installed")
    whole = PlannedFault(
        id=9, kind="clock-skew", target=Named(("n1",)), start_s=0, end_s=9, options={"offset_ms": -5000}
    )
    for node in site.cluster.nodes:
        site.system.kill(node)

    async def work() -> list[Any]:
        conductor = Conductor(cluster=site.cluster, system=site.system)
        await conductor.prepare([fault])
        for node in site.cluster.nodes:
            site.system.start(node)
        await readiness.until_ready(site.system, 10)
        proofs: list[Any] = []
        for each in (fault, whole):
            await conductor.begin(each)
            proofs.append(await conductor.prove(each))
            offsets = site.cluster.remote(site.node("n1")).run(
                "cd /run/labrys; cat clock-offset-front clock-offset-back"
            )
            proofs.append(offsets.stdout.split())
            await conductor.end(each)
        for node in site.cluster.nodes:
            site.system.kill(node)
        await conductor.release()
        return proofs

    try:
        one, moved, both, all_moved = asyncio.run(work())
    finally:
        for node in site.cluster.nodes:
            site.system.start(node)
        asyncio.run(readiness.until_ready(site.system, 10))
    assert one.effective, one.reason
    (least_s, most_s) = one.measured["between_s"]["n1"]
    assert least_s <= 60.0 <= most_s
    assert most_s - least_s < 1.5
    assert moved[0].startswith(("+60.", "+59.9"))
    assert abs(float(moved[1])) < 0.1
    assert both.effective, both.reason
    assert set(both.measured["off_s"]) == {"n1 (front)", "n1 (back)"}
    assert all(float(moved) < -4.8 for moved in all_moved)


def test_the_fault_of_the_docs_works(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code in docs/guide/new-fault.md injects, proves and heals, only on the processes of one role."""
    install_slow_faults(tmp_path, monkeypatch)
    try:
        _, proof, nices = site.through(planned("low-priority", ["n2"], "front", nice=7), lambda: site.nices("n2"))
        assert proof.effective, proof.reason
        assert proof.reason == "1 processes have nice 7."
        assert nices["front"] == 7
        assert nices["back"] != 7
        assert site.nices("n2")["front"] == nices["back"]
    finally:
        forget_plugins()
