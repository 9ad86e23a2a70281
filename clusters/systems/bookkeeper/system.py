"""BookKeeper as a system under test: bookies and ZooKeeper from the released jars, and a client process on each client node.

BookKeeper's protocol runs in its client library. So the clients are processes of their own on nodes of their own: they can be
killed, paused and cut off, as bookies can.
"""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.systems import jvm, zookeepers
from clusters.systems.answers import NoAnswer, NotSent, RefusedByCode
from clusters.systems.bookkeeper.chains import Chains
from clusters.systems.bookkeeper.ledger_client import LedgerClient
from clusters.systems.bookkeeper.log_client import LogClient
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.outcomes import REFUSALS, name_of
from clusters.systems.bookkeeper.process import PORT, Process, Refused
from clusters.systems.waiting import wait_until_complete
from clusters.systems.zookeepers import ZooKeeperServers
from harness.cluster import on_all
from harness.daemon import Daemon
from harness.errors import InputError
from harness.service import Service
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.system import System

MODULE: Final = Path(__file__).parent / "jars"
BOOKIE: Final = "bookie"
CLIENT: Final = "client"
LEDGER: Final = "ledger"
BOOKIE_PORT: Final = 3181
BOOKIE_CLASS: Final = "org.apache.bookkeeper.server.Main"
SHELL_CLASS: Final = "org.apache.bookkeeper.bookie.BookieShell"
CLIENT_CLASS: Final = "io.labrys.bookkeeper.Main"
DATA_DIR: Final = "/var/lib/labrys/bookkeeper"
FORMAT_TIMEOUT_S: Final = 60.0
TRIED_S: Final = 8.0
JVM_FLAGS: Final = (
    *jvm.JVM_FLAGS,
    "-Xms48m",
    "-Xmx128m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:ActiveProcessorCount=2",
    *jvm.SIMPLE_LOGGER,
)
JAVA: Final = jvm.java("running BookKeeper")
MAVEN: Final = jvm.maven("getting BookKeeper's jars")
COMPILER: Final = jvm.compiler("building BookKeeper's client process")


def _log(role: str) -> str:
    return f"/var/log/labrys/bookkeeper-{role}/{role}.log"


def _config(role: str) -> str:
    return f"/etc/labrys/bookkeeper-{role}.conf"


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}\n" for key, value in settings.items()
    )


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
        await asyncio.to_thread(self._format)

    def _format(self) -> None:
        remote = self.system.cluster.remote(self.nodes[0])
        remote.write(_config("shell"), _lines(self._bookkeeper.shared()))
        classes = f"'{self.system.artifact.there}/*'"
        remote.run(
            f"java {' '.join(JVM_FLAGS)} -cp {classes} {SHELL_CLASS} -conf {_config('shell')} "
            "metaformat -nonInteractive -force",
            timeout_s=FORMAT_TIMEOUT_S,
        )


class Bookies(Service):
    """The bookies. None of them leads."""

    role = BOOKIE
    serves_clients = False

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system

    def daemon(self, node: Node) -> Daemon:
        """Returns the bookie of a node."""
        return _daemon(
            self.system,
            BOOKIE,
            [BOOKIE_CLASS, "--conf", _config(BOOKIE)],
            port=BOOKIE_PORT,
            data_dir=f"{DATA_DIR}-{BOOKIE}",
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
        await asyncio.to_thread(on_all, self.nodes, lambda node: self.system.cluster.remote(node).run(sync))

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
            "skipListSizeLimit": 4_194_304,
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
            "httpServerEnabled": False,
            "diskUsageThreshold": 0.99,
            "diskUsageWarnThreshold": 0.98,
            "autoRecoveryDaemonEnabled": False,
        }

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        found = await asyncio.gather(*(_accepts(node.address, BOOKIE_PORT) for node in nodes))
        silent = [node for node, accepts in zip(nodes, found, strict=True) if not accepts]
        return {node.name: "has a bookie that accepts no connection" for node in silent}, silent


class Clients(Service):
    """The client processes, which Labrys' clients use."""

    role = CLIENT

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system

    def daemon(self, node: Node) -> Daemon:
        """Returns the client process of a node."""
        options = self._bookkeeper.options
        settings = {
            **self._bookkeeper.shared(),
            "ensemblePlacementPolicy": "org.apache.bookkeeper.client.DefaultEnsemblePlacementPolicy",
            "delayEnsembleChange": options.delay_ensemble_change,
            "labrysDigest": options.digest.upper(),
        }
        return _daemon(
            self.system,
            CLIENT,
            [CLIENT_CLASS, node.address, str(PORT), self._bookkeeper.zookeeper_addresses(), _config(CLIENT)],
            port=PORT,
            data_dir=f"{DATA_DIR}-{CLIENT}",
            settings=settings,
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each process has written an entry to a ledger of its own, and has read it."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="BookKeeper's clients")

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        found = await asyncio.gather(*map(self._trouble, nodes))
        missing = {node.name: trouble for node, trouble in zip(nodes, found, strict=True) if trouble}
        return missing, [node for node in nodes if node.name in missing]

    async def _trouble(self, node: Node) -> str:
        """Returns what hinders the process of a node; empty if it can use ledgers."""
        options, process = self._bookkeeper.options, Process(node)
        try:
            async with asyncio.timeout(slowed(TRIED_S)):
                ledger = await process.ask(
                    "create", ensemble=options.ensemble, write=options.write_quorum, ack=options.ack_quorum
                )
                entry = await process.ask("append", ledger=ledger, body="ready")
                last = await process.ask("close", ledger=ledger)
                bodies = await process.ask("read", ledger=ledger, first=0, last=0)
        except RefusedByCode as error:
            return f"cannot use a ledger: {name_of(error.code)}"
        except (NotSent, NoAnswer, Refused) as error:
            return f"cannot use a ledger: {error}"
        except TimeoutError:
            return f"does not answer in {slowed(TRIED_S):g} s"
        finally:
            process.close()
        return "" if (entry, last, bodies) == (0, 0, ["ready"]) else "does not read what it wrote"


class BookKeeperSystem(jvm.JvmInstallation):
    """ZooKeeper, bookies and client processes on a cluster.

    Attributes:
        options: The options.
    """

    name = "bookkeeper"
    summary = "Bookies of BookKeeper 4.17, which keep replicated ledgers; their clients are processes of their own."
    Options = BookKeeperOptions
    software = "BookKeeper"
    programs = (JAVA, MAVEN, COMPILER)
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "log": "a log is a list of ledgers in ZooKeeper; append adds an entry to the last one, after a recovery if the "
            "process does not write it; read returns confirmed entries",
            "ledger": "append adds an entry; recover opens the ledger with recovery; confirmed is readLastAddConfirmed",
        }
    )
    refusals = REFUSALS
    ready_timeout_s = 90.0

    def __init__(self, cluster: Cluster, options: BookKeeperOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.options: BookKeeperOptions = options
        nodes = cluster.nodes
        bookies = nodes[: -options.client_nodes]
        if len(bookies) < options.ensemble:
            raise InputError(
                f"expected at least {options.ensemble + options.client_nodes} nodes, {options.ensemble} for the bookies of an "
                f"ensemble and {options.client_nodes} for clients, found {len(nodes)}; change --nodes, --ensemble or "
                "--client-nodes"
            )
        self._metadata = Metadata(self, nodes[: int(options.zookeepers)])
        self._bookies = Bookies(self, bookies)
        self._clients = Clients(self, nodes[-options.client_nodes :])
        self._chains = Chains(options)

    def services(self) -> Sequence[Service]:
        """Returns ZooKeeper on the first nodes, clients on the last ones, and bookies on all but those of clients."""
        return self._metadata, self._bookies, self._clients

    @classmethod
    def build(cls, options: BookKeeperOptions, say: Callable[[str], object]) -> Artifact:
        """Gets the released jars with Maven, and compiles the client process against them, if the cache lacks them."""
        version = options.bookkeeper_version
        return jvm.maven_build(
            "bookkeeper-jars", version, MODULE, "package", f"-Dbookkeeper.version={version}",
            product=f"target/{version}", files=("pom.xml", "src/main/**/*.java"), tools=(MAVEN, COMPILER),
        ).artifact(say)  # fmt: skip

    def versions(self) -> Mapping[str, str]:
        """Returns the version of the release."""
        return {"bookkeeper": self.artifact.provenance.version}

    def zookeeper_addresses(self) -> str:
        """Returns where ZooKeeper listens, as its clients need it."""
        return ",".join(f"{node.address}:{zookeepers.PORT}" for node in self._metadata.nodes)

    def shared(self) -> Mapping[str, object]:
        """Returns the settings that bookies and clients share."""
        return {
            "metadataServiceUri": f"zk+hierarchical://{self.zookeeper_addresses().replace(',', ';')}/ledgers",
            "zkTimeout": self.options.zookeeper_timeout_ms,
        }

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of a process. A pinned one recovers each ledger that it reads, and asks all bookies."""
        if self.workload == LEDGER:
            return LedgerClient(node=node, nodes=self._clients.nodes, chains=self._chains, final=pinned)
        return LogClient(
            node=node,
            nodes=self._clients.nodes,
            chains=self._chains,
            take_over=self.options.take_over,
            draws=random.Random(process),  # noqa: S311 - no secret
            final=pinned,
        )


def _daemon(
    system: System, role: str, program: Sequence[str], *, port: int, data_dir: str, settings: Mapping[str, object]
) -> Daemon:
    return Daemon(
        role=role,
        argv=[
            "java",
            *JVM_FLAGS,
            f"-Duser.home={Path(_log(role)).parent}",
            "-cp",
            f"{system.artifact.there}/*",
            *program,
        ],
        pattern=rf"^java .*{re.escape(program[0])}",
        ports=(port,),
        data_dir=data_dir,
        log_files=(_log(role),),
        config_files={_config(role): _lines(settings)},
        log_clock=jvm.simple_log_clock(_log(role)),
    )


async def _accepts(address: str, port: int) -> bool:
    try:
        async with asyncio.timeout(slowed(jvm.STATUS_TIMEOUT_S)):
            _, writer = await asyncio.open_connection(address, port)
    except OSError:  # a TimeoutError is an OSError
        return False
    writer.close()
    return True
