"""BookKeeper as a system under test: bookies and ZooKeeper from the released jars, and a client process on each client node.

BookKeeper's protocol runs in its client library. So the clients are processes of their own on nodes of their own: they can be
killed, paused and cut off, as bookies can.
"""

from __future__ import annotations

import random
import shlex
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.kit import jvm, zookeepers
from clusters.kit.contracts import by_workload, served
from clusters.systems.bookkeeper.bookies import BOOKIE, BOOKIE_PORT, AutoRecovery, Bookies, Metadata
from clusters.systems.bookkeeper.chains import Chains
from clusters.systems.bookkeeper.clients import CLIENT, Clients
from clusters.systems.bookkeeper.daemons import JVM_FLAGS, config_of, lines_of, log_of
from clusters.systems.bookkeeper.fences import REQUESTED, Fences
from clusters.systems.bookkeeper.ledger_client import BookKeeperLedgers
from clusters.systems.bookkeeper.log_client import BookKeeperLogs
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.outcomes import REFUSALS
from clusters.systems.bookkeeper.promises import promises
from harness.errors import InputError
from harness.traits import LogLine, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.builds import Artifact
    from harness.client import Client
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise
    from harness.service import Service
    from harness.verdict import Part

MODULE: Final = Path(__file__).parent / "jars"
LEDGER: Final = "ledger"
CLIENTS: Final = by_workload(BookKeeperLogs, BookKeeperLedgers)
SHELL_CLASS: Final = "org.apache.bookkeeper.bookie.BookieShell"
SHELL_TIMEOUT_S: Final = 60.0
JAVA: Final = jvm.java("running BookKeeper")
MAVEN: Final = jvm.maven("getting BookKeeper's jars")
COMPILER: Final = jvm.compiler("building BookKeeper's client process")

LINES: Final[Mapping[str, LogLine]] = MappingProxyType(
    {
        "recovers": LogLine(
            path=log_of(CLIENT), pattern="Ledgers - recovers ledger", meaning="a client begins to recover a ledger"
        ),
        "recovers-other": LogLine(
            path=log_of(CLIENT),
            pattern="Ledgers - recovers ledger .*, which another process created",
            meaning="a client begins to recover a ledger that another process created",
        ),
        "recovered": LogLine(
            path=log_of(CLIENT), pattern="Ledgers - has recovered ledger", meaning="a client has recovered a ledger"
        ),
        "writes": LogLine(
            path=log_of(CLIENT), pattern="Session - writes ledger", meaning="a client becomes the writer of a log"
        ),
        "ensemble": LogLine(
            path=log_of(CLIENT), pattern="New Ensemble: ", meaning="a writer has replaced a bookie of its ledger"
        ),
        "fences": LogLine(path=log_of(BOOKIE), pattern=REQUESTED, meaning="a bookie is asked to fence a ledger"),
        "read-only": LogLine(
            path=log_of(BOOKIE), pattern="ransitioning [Bb]ookie to [Rr]ead", meaning="a bookie becomes read-only"
        ),
    }
)

TELLING: Final = (
    f"L{REQUESTED} for ledger",
    "Ledger fenced/deleted",
    "Ledgers - recovers ledger",
    "Ledgers - has recovered ledger",
    "Session - writes ledger",
    "Closing recovered ledger",
    "New Ensemble: ",
    "Failed to write entry",
)


class BookKeeperSystem(jvm.JvmInstallation):
    """ZooKeeper, bookies and client processes on a cluster.

    Attributes:
        options: The options.
    """

    name = "bookkeeper"
    summary = "Bookies of BookKeeper 4.17, which keep replicated ledgers; their clients are processes of their own."
    tier = Tier.FINDING
    Options = BookKeeperOptions
    software = "BookKeeper"
    programs = (JAVA, MAVEN, COMPILER)
    libraries: ClassVar[Mapping[str, str]] = MappingProxyType({"aiohttp": "bookkeeper"})
    serves = served(CLIENTS)
    refusals = REFUSALS
    log_lines: ClassVar[Mapping[str, LogLine]] = LINES
    telling_log_texts = TELLING
    ready_timeout_s = 180.0  # up to nine JVMs, role after role; on a busy machine a start took 87 s

    def __init__(self, cluster: Cluster, options: BookKeeperOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.options: BookKeeperOptions = options
        nodes = cluster.nodes
        metadata = nodes[: int(options.zookeepers)]
        bookies = nodes[len(metadata) if options.zookeeper_apart else 0 : -options.client_nodes]
        if len(bookies) < options.ensemble:
            raise InputError(
                f"expected at least {options.ensemble + options.client_nodes} nodes, {options.ensemble} for the bookies of an "
                f"ensemble and {options.client_nodes} for clients, found {len(nodes)}; change --nodes, --ensemble or "
                "--client-nodes"
            )
        self._metadata = Metadata(self, metadata)
        self._bookies = Bookies(self, bookies)
        self._clients = Clients(self, nodes[-options.client_nodes :])
        self._recovery = AutoRecovery(self, bookies[: options.auto_recovery])
        self._chains = Chains(options)
        self._fences = Fences(self, bookies)

    @classmethod
    def promises(cls, options: BookKeeperOptions) -> Mapping[str, Promise]:
        """Returns what BookKeeper promises to each workload."""
        return promises(options)

    def services(self) -> Sequence[Service]:
        """Returns ZooKeeper on the first nodes, bookies on all but the last ones, auto-recovery if wanted, and clients."""
        recovery = (self._recovery,) if self._recovery.nodes else ()
        return self._metadata, self._bookies, *recovery, self._clients

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

    def shell(self, node: Node, command: str) -> None:
        """Runs a command of BookKeeper's shell on a node.

        Raises:
            NodeError: It failed.
        """
        self.cluster.remote(node).write(config_of("shell"), lines_of(self.shared()))
        classes = f"'{self.artifact.there}/*'"
        self.tool(
            node,
            f"java {shlex.join(JVM_FLAGS)} -cp {classes} {SHELL_CLASS} -conf {config_of('shell')} {command}",
            timeout_s=SHELL_TIMEOUT_S,
        )

    def own_parts(self) -> Sequence[Part]:
        """Returns the part about the last confirmed entries that writers report."""
        return (self._clients.confirmed.part(),)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Returns the client of a process. A pinned one recovers each ledger that it reads, and asks all bookies."""
        bookies = {f"{other.address}:{BOOKIE_PORT}": other.name for other in self._bookies.nodes}
        if self.workload == LEDGER:
            return BookKeeperLedgers(
                node=node,
                nodes=self._clients.nodes,
                bookies=bookies,
                chains=self._chains,
                fences=self._fences,
                final=pinned,
            )
        return BookKeeperLogs(
            node=node,
            nodes=self._clients.nodes,
            bookies=bookies,
            chains=self._chains,
            take_over=self.options.take_over,
            draws=random.Random(process),  # noqa: S311 - no secret
            final=pinned,
        )
