"""Five real nodes with a minimal system, and a way to carry out one fault on them.

The system is a TCP server, a real process with a real port. Its status comes from a file on its node.
"""
# ruff: noqa: D102 - the methods of the small system and of the cluster with other addresses are described by their protocols

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from harness.daemon import ENVIRONMENT, Daemon
from harness.declare import NoOptions
from harness.faults import PlannedFault
from harness.healing import CHAIN, UNDO_DIRECTORY
from harness.node import Node
from harness.process_clock import asked
from harness.service import NodeStatus, first_status
from harness.system import OneServiceSystem
from harness.targets import from_json
from nemesis.conductor import Conductor

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clusters.local import LocalCluster
    from harness.capabilities import Capabilities
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.faults import Begun, Proof
    from harness.process_clock import ClockReading
    from harness.remote import Remote

HOME = "/srv/echo"
PORT = 7000
# The real interpreter: that of a virtual environment can be in a folder that nodes do not share, such as /tmp.
PYTHON = os.path.realpath(sys.executable)
ORDER = ["n4", "n2", "n5", "n1", "n3"]
SERVER = f"""
import os, socket, socketserver, time
class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        with open("{HOME}/role") as f:
            said = f.read().rstrip("}}").encode()
        with open("/proc/stat") as f:
            booted = next(float(line.split()[1]) for line in f if line.startswith("btime "))
        with open("/proc/uptime") as f:
            kernel = booted + float(f.read().split()[0])
        self.wfile.write(said + b', "clock": %f, "kernel": %f}}' % (time.time(), kernel))
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    address_family = socket.AF_INET6
with open("{HOME}/pid", "w") as f:
    f.write(str(os.getpid()))
Server(("::", {PORT}), Echo).serve_forever()
"""


class Echo(OneServiceSystem):
    """A minimal system; see the module. It trusts a pid file, unlike good systems."""

    name = "echo"
    role = "echo"
    clock_field = "clock"
    resolution_s = 0.000_001

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, NoOptions(), "none")

    def daemon(self, node: Node) -> Daemon:
        return Daemon(
            role="echo",
            argv=(PYTHON, "server.py"),
            pattern=f"^{PYTHON} server.py",
            ports=(PORT,),
            data_dir=f"{HOME}/data",
            log_files=(f"{HOME}/log",),
        )

    def _run(self, node: Node, command: str, *, check: bool = True) -> str:
        return self.cluster.remote(node).run(command, check=check).stdout.strip()

    def install(self, node: Node) -> None:
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {HOME}/data")
        remote.write(f"{HOME}/server.py", SERVER)
        self.tell(node, leader=node.name == "n1", term=1)

    def tell(self, node: Node, *, leader: bool, term: int) -> None:
        """Sets the status that the node's server reports."""
        role = json.dumps({"role": "leader" if leader else "follower", "term": term})
        self.cluster.remote(node).write(f"{HOME}/role", role)

    def start(self, node: Node, role: str | None = None) -> None:
        if self.process_state(node) is None:
            command = f"env $(cat {ENVIRONMENT} 2>/dev/null) {PYTHON} server.py"
            self._run(node, f"rm -f {HOME}/pid; cd {HOME}; setsid nohup {command} >log 2>&1 </dev/null &")

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        for node in nodes:
            knock = f"bash -c '</dev/tcp/127.0.0.1/{PORT}' 2>/dev/null"
            script = f"for i in $(seq 100); do {knock} && exit 0; sleep 0.05; done; exit 1"
            await asyncio.to_thread(self._run, node, script)

    def kill(self, node: Node, role: str | None = None) -> None:
        """Kills the server and waits until it is gone, or `start` could take it for a running one."""
        gone = "! [ -e /proc/$pid/stat ] || sed 's/.*) //' /proc/$pid/stat 2>/dev/null | grep -q ^Z"
        wait = f"for i in $(seq 200); do if {gone}; then exit 0; fi; sleep 0.05; done; exit 1"
        self._run(node, f"pid=$(cat {HOME}/pid 2>/dev/null) || exit 0; kill -9 $pid 2>/dev/null; {wait}")

    def pause(self, node: Node, role: str | None = None) -> None:
        self._run(node, f"kill -STOP $(cat {HOME}/pid)")

    def resume(self, node: Node, role: str | None = None) -> None:
        self._run(node, f"[ ! -e {HOME}/pid ] || kill -CONT $(cat {HOME}/pid) 2>/dev/null; true")

    def process_states(self, node: Node, role: str | None = None) -> Mapping[str, tuple[int, str] | None]:
        said = self._run(
            node, f"pid=$(cat {HOME}/pid) && echo $pid $(sed 's/.*) //' /proc/$pid/stat | cut -c1)", check=False
        )
        pid, *state = said.split() or [""]
        return {"echo": (int(pid), state[0]) if state and state[0] != "Z" else None}

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        raise NotImplementedError("no test asks for operations")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(node.address, PORT)
                said = json.loads(await reader.read())
                writer.close()
        except (OSError, TimeoutError, ValueError):
            return ()
        status = NodeStatus(
            node=node.name,
            role=said["role"],
            term=said["term"],
            details={"clock": said["clock"], "kernel": said["kernel"]},
        )
        return (status,)

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Asks the server for its time, as a status has it."""

        async def ask() -> float | None:
            status = await first_status(self, node, timeout_s)
            return None if status is None or status.details is None else float(str(status.details[self.clock_field]))

        return await asked(ask, source="its answer", resolution_s=self.resolution_s)

    async def lead(self, node: Node, timeout_s: float) -> bool:
        before = [status for status in [await first_status(self, other, 1.0) for other in self.cluster.nodes] if status]
        term = max((status.term or 0 for status in before), default=0) + 1
        for other in self.cluster.nodes:
            await asyncio.to_thread(self.tell, other, leader=other == node, term=term)
        return True


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
        """Begins, proves and ends a fault. If it has an effect, a second look must see the effect too."""

        async def work() -> tuple[Begun, Proof, Proof | None]:
            conductor = self.conductor()
            begun = await conductor.begin(fault)
            try:
                proof = await conductor.prove(fault)
                again = await conductor.look_again(fault)
                assert again is None or again.effective, again
            finally:
                ended = await conductor.end(fault)
            return begun, proof, ended

        begun, proof, ended = self.run(work())
        self.assert_clean()
        return begun, proof, ended

    def assert_clean(self) -> None:
        """Checks that no node has rules or notes of faults, and that every server runs."""
        for node in self.cluster.nodes:
            assert f"{CHAIN}-" not in self.shell(node.name, "iptables -S; ip6tables -S")
            assert not self.shell(node.name, f"ls {UNDO_DIRECTORY} 2>/dev/null || true").strip()
            state = self.system.process_state(node)
            assert state is not None
            assert state[1] in "SR"


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


def planned(
    kind: str, target: str | Sequence[str], *, order: Sequence[str] = (), role: str | None = None, **options: Any
) -> PlannedFault:
    """Returns a plan's entry. The target is a word or names."""
    return PlannedFault(
        id=3,
        kind=kind,
        target=from_json(target),
        start_s=0.0,
        end_s=10.0,
        order=tuple(order),
        role=role,
        options=options,
    )
