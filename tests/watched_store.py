"""A system with two services on real nodes: a store for the clients, and voters that choose a leader among themselves.

docs/guide/new-system.md quotes it. The store on n1 has the registers, and the others forward to it. The first voter that runs
leads.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from harness.daemon import Daemon
from harness.errors import InfrastructureError
from harness.op import Fail, Info, Ok
from harness.service import NodeStatus, Service
from harness.system import System

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node
    from harness.op import Invocation, Outcome

PROGRAM = "/opt/labrys/watched_store.py"
CONFIG = "/etc/labrys/watched_store.json"
PORTS = {"store": 8300, "voter": 8301}
POLL_S = 0.05

# Both services are this program. It answers a line of JSON with one. The store counts its starts in its configuration.
SERVER = """
import json, socket, socketserver, sys
role, own, port, *peers = sys.argv[1:]
values = {}
if role == "store":
    with open("CONFIG") as file:
        config = json.load(file)
    config["starts"] += 1
    with open("CONFIG", "w") as file:
        json.dump(config, file)
    print(json.dumps({"starts": config["starts"]}), flush=True)

def ask(address, request, timeout):
    with socket.create_connection((address, int(port)), timeout) as peer:
        peer.sendall(json.dumps(request).encode() + b"\\n")
        return json.loads(peer.makefile().readline())

def lives(address):
    try:
        return address == own or ask(address, {"f": "ping"}, 0.3) == "pong"
    except (OSError, ValueError):
        return False

def answer(request):
    f = request["f"]
    if f == "ping":
        return "pong"
    if f == "status":
        return next(peer for peer in peers if lives(peer))
    if config["primary"] != own:
        return ask(config["primary"], request, 2)
    if f == "read":
        return values.get(request["key"])
    if f == "cas":
        old, new = request["value"]
        if values.get(request["key"]) != old:
            return {"mismatch": True}
        values[request["key"]] = new
    else:
        values[request["key"]] = request["value"]
    return request["value"]

class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(json.dumps(answer(json.loads(self.rfile.readline()))).encode() + b"\\n")

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

Server((own, int(port)), Handler).serve_forever()
""".replace("CONFIG", CONFIG)


class Answering(Service):
    """A service of the program; each process answers requests on its port."""

    def daemon(self, node: Node) -> Daemon:
        """Returns the process of a node."""
        peers = [peer.address for peer in self.nodes]
        return Daemon(
            role=self.role,
            argv=["python3", PROGRAM, self.role, node.address, str(PORTS[self.role]), *peers],
            pattern=f"^python3 {PROGRAM} {self.role} ",
            ports=[PORTS[self.role]],
            data_dir=f"/var/lib/labrys/watched_store/{self.role}",
            log_files=[f"/var/log/labrys/watched_store/{self.role}.log"],
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each process answers."""
        end_s = time.monotonic() + timeout_s
        for node in nodes:
            while await asked(node, self.role, {"f": "ping"}, timeout_s=0.5) != "pong":
                if time.monotonic() > end_s:
                    raise InfrastructureError(f"the {self.role} of {node.name} does not answer within {timeout_s:g} s")
                await asyncio.sleep(POLL_S)


class Voters(Answering):
    """The voters on the first three nodes."""

    role = "voter"
    serves_clients = False

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Asks a voter for the leader that it sees."""
        address = await asked(node, self.role, {"f": "status"}, timeout_s=timeout_s)
        leader = next((peer.name for peer in self.nodes if peer.address == address), None)
        if leader is None:
            return ()
        return [NodeStatus(node=node.name, role="leader" if leader == node.name else "follower", leader=leader)]


class Store(Answering):
    """The store on all nodes."""

    role = "store"

    def initialise(self, node: Node) -> None:
        """Writes the configuration, which the process changes at each start."""
        config = {"primary": self.nodes[0].address, "starts": 0}
        self.system.cluster.remote(node).write(CONFIG, json.dumps(config))

    async def complete(self, timeout_s: float) -> None:
        """Writes a register through the last node, which forwards it."""
        request = {"f": "write", "key": "made", "value": 1}
        if await asked(self.nodes[-1], self.role, request, timeout_s=timeout_s) != 1:
            raise InfrastructureError(f"{self.nodes[-1].name} does not write within {timeout_s:g} s")


class WatchedStore(System):
    """The voters, and the store."""

    name = "watched-store"
    summary = "Registers on the first node, and voters beside it."
    serves: ClassVar[Mapping[str, str]] = {"register": "read, write and cas are requests to the store"}
    answers = ("cas-mismatch",)

    def services(self) -> Sequence[Service]:
        """Returns the voters on the first three nodes, and the store on all."""
        return (Voters(self, self.cluster.nodes[:3]), Store(self))

    def install(self, node: Node) -> None:
        """Copies the program."""
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {PurePosixPath(PROGRAM).parent} {PurePosixPath(CONFIG).parent}")
        remote.write(PROGRAM, SERVER)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> StoreClient:
        """Returns a client that uses only this node."""
        return StoreClient(node)


class StoreClient:
    """Asks the store of its node."""

    def __init__(self, node: Node) -> None:
        self.node = node

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Carries out one operation."""
        request = {"f": invocation.f, "key": invocation.key, "value": invocation.value}
        answer = await asked(self.node, "store", request, timeout_s=2.0)
        if isinstance(answer, dict):
            lost = Fail("no-answer") if invocation.f == "read" else Info("no-answer")
            return Fail("cas-mismatch") if "mismatch" in answer else lost
        return Ok(answer)

    async def close(self) -> None:
        """Has nothing to close."""


async def asked(node: Node, role: str, request: Mapping[str, Any], *, timeout_s: float) -> Any:
    """Sends a request to a service of a node. Returns its answer; an empty dict if there is none in time."""
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(node.address, PORTS[role])
            try:
                writer.write(json.dumps(request).encode() + b"\n")
                return json.loads(await reader.readline())
            finally:
                writer.close()
    except (OSError, ValueError):
        return {}
