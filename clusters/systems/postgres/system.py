"""PostgreSQL 15 as a system: a primary on the first node, and a hot standby on each other node.

PostgreSQL elects no primary. So a primary that is gone stays the primary, and its clients wait for it. A standby gets the log
of the primary a moment later.

A server does not run as root. So `setpriv` starts it as the user `nobody`. On a local node, the folder with the programs can be
a link into a folder that only root may enter. Then it is mounted at a second place.
"""

from __future__ import annotations

import asyncio
import itertools
import shlex
from typing import TYPE_CHECKING, ClassVar, Final

from clusters.kit.answers import NoAnswer, NotSent, Refused
from clusters.kit.contracts import served
from clusters.kit.exchange import asked_once
from clusters.kit.waiting import wait_until_complete
from clusters.systems.postgres.client import CLIENTS, CREATE
from clusters.systems.postgres.connection import PORT, USER, Connection, row_of
from clusters.systems.postgres.options import Asks, PostgresOptions
from clusters.systems.postgres.outcomes import ANSWERS
from clusters.systems.postgres.promises import promises
from harness.daemon import Daemon
from harness.errors import InfrastructureError
from harness.packages import DebianPackages
from harness.service import NodeStatus, Service
from harness.system import System
from harness.traits import Program, Tier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.systems.postgres.client import PostgresTransactions
    from harness.cluster import Cluster
    from harness.node import Node
    from harness.promise import Promise

PACKAGES: Final = DebianPackages(
    name="postgres", packages=["postgresql-15", "postgresql-client-15", "libpq5", "libicu72", "libxslt1.1"]
)
TREE: Final = f"{PACKAGES.root}-tree"  # the packages, for every user
BIN: Final = f"{TREE}/usr/lib/postgresql/15/bin"
SERVER: Final = f"{BIN}/postgres"
ENVIRONMENT: Final = {
    name: value.replace(f"{PACKAGES.root}/", f"{TREE}/") for name, value in PACKAGES.environment.items()
}
DATA_DIR: Final = "/var/lib/labrys/postgres"
CLUSTER_DIR: Final = f"{DATA_DIR}/cluster"  # below the folder, because a volume there has a folder of its own
LOG: Final = "/var/log/labrys/postgres/postgres.log"
CLUSTER_NAME: Final = "labrys"
NOBODY: Final = "65534"
TIMEOUT_S: Final = 1.0
BASE_BACKUP_S: Final = 60.0
AS_NOBODY: Final = f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups"
ACCESS: Final = "host all all all trust\nhost replication all all trust\n"
STATE: Final = (
    "SELECT pg_is_in_recovery(), pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
    "ELSE pg_current_wal_lsn() END, '0/0')::bigint"
)
FATAL: Final = (r"\bPANIC: ", r"TRAP: ", r"was terminated by signal (6|7|11)\b")
TELLING: Final = (
    "database system is ready to accept",
    "database system was not properly shut down",
    "redo done",
    "started streaming WAL",
    "terminating walreceiver",
    "could not receive data from WAL stream",
    "recovery conflict",
    "deadlock detected",
)


class PostgresSystem(System):
    """A primary and its standbys on a cluster."""

    name = "postgres"
    summary = "PostgreSQL 15 with one primary and asynchronous hot standbys."
    tier = Tier.PROMISE
    Options = PostgresOptions
    serves = served(CLIENTS)
    programs: ClassVar[Sequence[Program]] = (
        Program(name="setpriv", package="util-linux", purpose="running PostgreSQL as another user than root"),
    )
    answers = ANSWERS
    telling_log_texts = TELLING
    faketime = False  # not tried

    def __init__(self, cluster: Cluster, options: PostgresOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        nodes = list(cluster.nodes)
        self._primary = Primary(self, nodes[:1], options)
        self._standbys = nodes[1:]
        standby = Standby(self, self._standbys, options, primary=nodes[0])
        self._services = (self._primary, standby) if self._standbys else (self._primary,)
        self._options = options
        self._clients = itertools.count()

    def services(self) -> Sequence[Service]:
        """Returns the primary on the first node, and the standbys on the others."""
        return self._services

    @classmethod
    def promises(cls, options: PostgresOptions) -> Mapping[str, Promise]:
        """Returns what PostgreSQL promises to each workload."""
        return promises(options)

    def versions(self) -> Mapping[str, str]:
        """Returns the version of Debian's package."""
        return {"postgres": PACKAGES.versions()["postgresql-15"]}

    def install(self, node: Node) -> None:
        """Copies the unpacked packages to the node, to a place that every user can read."""
        remote = self.cluster.remote(node)
        PACKAGES.install(remote)
        remote.run(
            f"if {AS_NOBODY} test -x {PACKAGES.root}/usr; then\n  ln -sfn {PACKAGES.root} {TREE}\n"
            f"else\n  mkdir -p {TREE} && {{ mountpoint -q {TREE} || mount --bind $(readlink -f {PACKAGES.root}) {TREE}; }}\nfi"
        )

    def fatal_log_patterns(self) -> Sequence[str]:
        """Returns the lines of a server that found its own data wrong, or that crashed."""
        return FATAL

    def client(self, process: int, node: Node, *, pinned: bool = False) -> PostgresTransactions:  # noqa: ARG002 - by turn
        """Returns the client of a process. Its standby is the next one in turn."""
        standbys = self._standbys if self._options.reads_from is Asks.STANDBY and not pinned else []
        number = next(self._clients)
        standby = standbys[number % len(standbys)] if standbys else None
        return CLIENTS[self.workload](node=node, standby=standby, level=self._options.isolation)


class Server(Service):
    """A server of PostgreSQL. One process accepts connections, and each session has a process of its own."""

    def __init__(self, system: PostgresSystem, nodes: Sequence[Node], options: PostgresOptions) -> None:
        super().__init__(system, nodes)
        self._options = options

    def daemon(self, node: Node) -> Daemon:  # noqa: ARG002 - the same on every node
        """Returns the server of a node; its pattern matches the processes of sessions too."""
        return Daemon(
            role=self.role,
            argv=[*AS_NOBODY.split(), SERVER, "-D", CLUSTER_DIR],
            pattern=rf"^({SERVER} -D|postgres: {CLUSTER_NAME}: )",
            ports=(PORT,),
            data_dir=DATA_DIR,
            log_files=(LOG,),
            environment=ENVIRONMENT,
        )

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns whether a server is the primary, and how much of the log it has written or applied, in bytes."""
        row = await asked_once(Connection(node.address), lambda asked: row_of(asked, STATE), timeout_s)
        if row is None or len(row) != len(("in recovery", "position")):
            return ()
        is_standby, position = row
        applied = int(position) if position is not None and position.isdecimal() else None
        role = "follower" if is_standby == "t" else "leader"
        return (NodeStatus(node=node.name, role=role, leader=self.system.cluster.nodes[0].name, applied_index=applied),)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each server answers a query."""

        async def examine(asked: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
            statuses = await asyncio.gather(*(self.statuses(node, TIMEOUT_S) for node in asked))
            silent = [node for node, some in zip(asked, statuses, strict=True) if not some]
            return {node.name: "does not answer" for node in silent}, silent

        await wait_until_complete(self, nodes, timeout_s, examine, system_name="PostgreSQL")

    def as_nobody(self, node: Node, *commands: str) -> None:
        """Runs programs of PostgreSQL on a node as the user that runs the server, after it made the folder theirs.

        They do not sync each of a thousand files. So one sync of the file system follows.
        """
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in ENVIRONMENT.items())
        script = "\n".join(f"env {settings} TZ=UTC LC_ALL=C {AS_NOBODY} {command} >&2 || exit" for command in commands)
        self.system.tool(
            node,
            f"mkdir -p {DATA_DIR} && chown {NOBODY}:{NOBODY} {DATA_DIR} && cd {DATA_DIR} || exit\n{script}\nsync -f .",
            timeout_s=BASE_BACKUP_S,
        )


class Primary(Server):
    """The server that changes data."""

    role = "primary"

    def initialise(self, node: Node) -> None:
        """Makes a cluster of databases, and writes its configuration."""
        self.as_nobody(
            node, f"{BIN}/initdb -D {CLUSTER_DIR} -A trust -U {USER} --no-locale -E UTF8 -N --no-instructions"
        )
        lines = [
            f"cluster_name = '{CLUSTER_NAME}'", f"port = {PORT}", "listen_addresses = '*'", "unix_socket_directories = ''",
            f"deadlock_timeout = {self._options.deadlock_ms}", "timezone = 'GMT'", "log_timezone = 'GMT'",
            "wal_level = replica", "wal_keep_size = 256", "wal_retrieve_retry_interval = 500", "jit = off",
            "wal_receiver_timeout = 3000", "wal_sender_timeout = 3000", "max_connections = 200", "shared_buffers = '32MB'",
            "recovery_init_sync_method = syncfs", f"synchronous_commit = {'on' if self._options.synchronous_commit else 'off'}",
        ]  # fmt: skip
        remote = self.system.cluster.remote(node)
        remote.write(f"{CLUSTER_DIR}/postgresql.conf", "\n".join(lines) + "\n")
        remote.write(f"{CLUSTER_DIR}/pg_hba.conf", ACCESS)

    async def complete(self, timeout_s: float) -> None:
        """Makes the table, which standbys then have too."""
        connection = Connection(self.nodes[0].address)
        try:
            async with asyncio.timeout(timeout_s):
                await connection.query(CREATE)
        except (NotSent, NoAnswer, Refused, TimeoutError) as error:
            raise InfrastructureError(f"expected PostgreSQL to make a table, but: {error or 'no answer'}") from error
        finally:
            await connection.close()


class Standby(Server):
    """The servers that apply the log of the primary, and answer reads."""

    role = "standby"
    serves_clients = False

    def __init__(
        self, system: PostgresSystem, nodes: Sequence[Node], options: PostgresOptions, *, primary: Node
    ) -> None:
        super().__init__(system, nodes, options)
        self._primary = primary

    def initialise(self, node: Node) -> None:
        """Copies the data and the configuration of the primary, which serves by now."""
        address = shlex.quote(self._primary.address)
        self.as_nobody(
            node,
            f"{BIN}/pg_basebackup -D {CLUSTER_DIR} -h {address} -p {PORT} -U {USER} -X stream -c fast -R -N --no-password",
        )
