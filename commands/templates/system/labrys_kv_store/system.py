"""kv-store as a system under test: its installation, its processes, when they are ready, and its clients."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusters.kit.contracts import CAS_MISMATCH, served
from harness.daemon import Daemon
from harness.declare import option
from harness.errors import InfrastructureError
from harness.process_clock import asked, http_date_s
from harness.promise import Promise
from harness.system import OneServiceSystem
from labrys_kv_store.client import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.client import Client
    from harness.node import Node
    from harness.process_clock import ClockReading

PORT = 8070
SERVER = "/opt/labrys/kv_store_server.py"
DATA_DIR = "/var/lib/labrys/kv_store"
LOG = "/var/log/labrys/kv_store/server.log"
POLL_S = 0.2
SERVES_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KvStoreOptions:
    """CHANGE: the options of your system. Each is a flag of `labrys test --system kv-store`."""

    sync: bool = option(False, "Whether the primary writes to disk before it answers.")


class KvStoreSystem(OneServiceSystem):
    """kv-store on a cluster."""

    name = "kv-store"
    summary = "Registers over HTTP, held by the first node."
    Options = KvStoreOptions
    serves = served(CLIENTS)
    answers = (CAS_MISMATCH,)
    role = "store"

    @classmethod
    def promises(cls, options: KvStoreOptions) -> Mapping[str, Promise]:
        """CHANGE: what your system promises to each workload, and who says so; options of the workload can follow it."""
        sentence = "Operations are linearizable, and an acknowledged write survives a kill."
        return {"register": Promise(sentence=sentence, source="the README of labrys-kv-store")}

    def install(self, node: Node) -> None:
        """CHANGE: install the system on the node, e.g. a package or a jar."""
        remote = self.cluster.remote(node)
        remote.run(f"mkdir -p {Path(SERVER).parent}")
        remote.put(Path(__file__).parent / "server.py", SERVER)

    def daemon(self, node: Node) -> Daemon:
        """CHANGE: the process of a node. Faults kill, pause and restart it."""
        arguments = ["python3", SERVER, "--address", node.address, "--port", str(PORT)]
        arguments += ["--primary", self.cluster.nodes[0].address]
        if self.options.sync:
            arguments += ["--file", f"{DATA_DIR}/registers.json"]
        return Daemon(
            role=self.role,
            argv=arguments,
            pattern=r"^python3 /opt/labrys/kv_store_server\.py",
            ports=[PORT],
            data_dir=DATA_DIR,
            log_files=[LOG],
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """CHANGE: wait until all nodes serve together; at the deadline, raise an error that names the nodes."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        waiting = {node.name: node for node in nodes}
        while waiting:
            for node in list(waiting.values()):
                if await http_date_s(node.address, PORT, SERVES_S) is not None:
                    del waiting[node.name]
            if waiting and loop.time() > deadline_s:
                raise InfrastructureError(f"{', '.join(waiting)} did not answer on port {PORT} within {timeout_s:g} s")
            await asyncio.sleep(POLL_S if waiting else 0)

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """CHANGE: ask a process for its time, for the proof of clock faults; or remove this method."""

        async def ask() -> float | None:
            return await http_date_s(node.address, PORT, timeout_s)

        return await asked(ask, source="the Date of its answer", resolution_s=1.0)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns a client that uses only this node, so `pinned` makes no difference."""
        return CLIENTS[self.workload](node, PORT)
