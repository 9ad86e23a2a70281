"""The servers of the system: ZooKeeper with the metadata, the bookies, and auto-recovery."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from clusters.kit import jvm
from clusters.kit.answers import NoAnswer, NotSent
from clusters.kit.http import Http
from clusters.kit.waiting import wait_until_complete
from clusters.kit.zookeepers import ZooKeeperServers
from clusters.systems.bookkeeper.daemons import DATA_DIR, PLACEMENT, config_of, daemon
from harness.cluster import on_all
from harness.service import NodeStatus, Service
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.bookkeeper.system import BookKeeperSystem
    from harness.daemon import Daemon
    from harness.node import Node

BOOKIE: Final = "bookie"
AUTO_RECOVERY: Final = "auto-recovery"
BOOKIE_PORT: Final = 3181
HTTP_PORT: Final = 3182
RECOVERY_PORT: Final = 3183
BOOKIE_CLASS: Final = "org.apache.bookkeeper.server.Main"
HTTP_OK: Final = 200
SYNC_TIMEOUT_S: Final = 60.0
RECOVERY_CLASS: Final = "org.apache.bookkeeper.replication.AutoRecoveryMain"


class Metadata(ZooKeeperServers):
    """The servers of ZooKeeper that have the metadata of the ledgers."""

    serves_clients = False

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system

    async def complete(self, timeout_s: float) -> None:  # noqa: ARG002 - the command has a limit of its own
        """Formats the metadata.

        Raises:
            NodeError: The command failed.
        """
        await asyncio.to_thread(self._bookkeeper.shell, self.nodes[0], "metaformat -nonInteractive -force")


class Bookies(Service):
    """The bookies. None of them leads."""

    role = BOOKIE
    serves_clients = False
    every_node_returns = "A bookie that starts again serves the entries on its disks."

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system

    def daemon(self, node: Node) -> Daemon:
        """Returns the bookie of a node."""
        return daemon(
            self.system,
            BOOKIE,
            [BOOKIE_CLASS, "--conf", config_of(BOOKIE)],
            ports=(BOOKIE_PORT, HTTP_PORT),
            settings=self._settings(node),
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each bookie accepts connections. Whether they serve, the client processes try out."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="bookies")

    async def complete(self, timeout_s: float) -> None:  # noqa: ARG002 - a sync takes a moment
        """Syncs the data of the bookies to the disks.

        A bookie leaves its cookie in memory, and does not start if a power loss cuts this file off. A power loss long after the
        start is what a test is about.
        """
        sync = f"sync -f {DATA_DIR}-{BOOKIE}"
        await asyncio.to_thread(on_all, self.nodes, lambda node: self.system.tool(node, sync, timeout_s=SYNC_TIMEOUT_S))

    def renew(self, node: Node) -> None:
        """Removes the cookie of a bookie from ZooKeeper, as an operator does before a bookie with new disks starts there.

        Raises:
            NodeError: The command failed.
        """
        self._bookkeeper.shell(node, f"cookie_delete {node.address}:{BOOKIE_PORT}")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns what a bookie says of itself over HTTP: `writable`, `read-only` or `starting`; none if it does not answer."""
        state = await told(node, HTTP_PORT, "/api/v1/bookie/state", timeout_s)
        match state:
            case {"running": bool(running), "readOnly": bool(read_only)}:
                role = "read-only" if read_only else "writable" if running else "starting"
                return (NodeStatus(node=node.name, role=role),)
        return ()

    def _settings(self, node: Node) -> Mapping[str, object]:
        options = self._bookkeeper.options
        data_dir = f"{DATA_DIR}-{BOOKIE}"
        return {
            **self._bookkeeper.shared(),
            "bookiePort": BOOKIE_PORT,
            "advertisedAddress": node.address,
            "allowLoopback": True,
            "journalDirectories": f"{data_dir}/journal",
            "ledgerDirectories": f"{data_dir}/ledgers",
            "indexDirectories": f"{data_dir}/ledgers",
            "ledgerStorageClass": "org.apache.bookkeeper.bookie.SortedLedgerStorage",
            "skipListSizeLimit": options.memtable_bytes,
            "journalMaxSizeMB": 16,
            "journalPreAllocSizeMB": 1,
            "logSizeLimit": 33_554_432,
            "pageLimit": 256,
            "pageSize": 8192,
            "numAddWorkerThreads": 1,
            "numReadWorkerThreads": 1,
            "numLongPollWorkerThreads": 0,
            "serverNumIOThreads": 2,
            "journalSyncData": options.journal_sync,
            "journalWriteData": options.journal_data,
            "journalAdaptiveGroupWrites": False,
            "gcWaitTime": 60_000,
            **told_over_http(node, HTTP_PORT),
            "diskUsageThreshold": 0.99,
            "diskUsageWarnThreshold": 0.98,
            "autoRecoveryDaemonEnabled": False,
        }

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        accepting = await asyncio.gather(*(_accepts(node.address, BOOKIE_PORT) for node in nodes))
        silent = [node for node, accepts in zip(nodes, accepting, strict=True) if not accepts]
        return {node.name: "has a bookie that accepts no connection" for node in silent}, silent


class AutoRecovery(Service):
    """The processes that copy what lost bookies had. One of them, which they elect in ZooKeeper, looks for it."""

    role = AUTO_RECOVERY
    serves_clients = False

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system

    def daemon(self, node: Node) -> Daemon:
        """Returns the process of a node."""
        settings = {
            **self._bookkeeper.shared(),
            "openLedgerRereplicationGracePeriod": self._bookkeeper.options.auto_recovery_grace_ms,
            "ensemblePlacementPolicy": PLACEMENT,
            **told_over_http(node, RECOVERY_PORT),
        }
        return daemon(
            self.system,
            AUTO_RECOVERY,
            [RECOVERY_CLASS, "--conf", config_of(AUTO_RECOVERY)],
            ports=(RECOVERY_PORT,),
            settings=settings,
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each process answers over HTTP."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="auto-recovery")

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        accepting = await asyncio.gather(*(_accepts(node.address, RECOVERY_PORT) for node in nodes))
        silent = [node for node, accepts in zip(nodes, accepting, strict=True) if not accepts]
        return {node.name: "has no auto-recovery that accepts connections" for node in silent}, silent


def told_over_http(node: Node, port: int) -> Mapping[str, object]:
    """Returns the settings with which a process tells its state over HTTP."""
    return {
        "httpServerEnabled": True,
        "httpServerClass": "org.apache.bookkeeper.http.vertx.VertxHttpServer",
        "httpServerHost": node.address,
        "httpServerPort": port,
    }


async def told(node: Node, port: int, path: str, timeout_s: float) -> Any:
    """Returns the JSON that a process tells over HTTP; None if there is none in time."""
    http = Http(f"http://{node.address}:{port}")
    try:
        async with asyncio.timeout(timeout_s):
            status, body = await http.send("GET", path)
            return json.loads(body) if status == HTTP_OK else None
    except (NotSent, NoAnswer, TimeoutError, ValueError, RecursionError):
        return None
    finally:
        await http.close()


async def _accepts(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(slowed(jvm.STATUS_TIMEOUT_S)):
            _, writer = await asyncio.open_connection(address, port)
    except OSError:  # a TimeoutError is an OSError
        return False
    writer.close()
    return True
