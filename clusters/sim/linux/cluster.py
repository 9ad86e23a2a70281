"""The cluster `sim` for systems whose processes are Linux programs: nodes of one simulation, with their own files.

A command of the harness on a node, such as `mkdir`, runs natively among the node's files, in no virtual time: the simulation
stands still while this process works. The processes of a system run in the simulation.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NoReturn

from clusters.local import namespaces
from clusters.sim.cores import Core
from clusters.sim.linux.data import COPY_S
from clusters.sim.linux.seen import JVM_WORK
from clusters.sim.linux.world import PAUSED, RUNNING, LinuxWorld, Started
from clusters.sim.threads import Threads
from harness.capabilities import SIMULATED, SIMULATED_MESSAGES, Capabilities
from harness.ends import End, shell_status
from harness.errors import CommandFailed, CommandTimeout, InputError, NodeError
from harness.node import Node
from harness.remote.protocol import DEFAULT_TIMEOUT_S, Result
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from harness.cluster import Cluster
    from harness.daemon import Daemon

LACKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        SIMULATED_MESSAGES: "its processes are programs, whose messages are bytes to Labrys",
    }
)
MAX_OUTPUT: Final = 16 << 20


class LinuxCluster:
    """A cluster of programs in virtual time; see `harness.cluster.Cluster` and `harness.world.SimulatedCluster`.

    Attributes:
        name: Always `sim`, since a run has at most one simulated cluster.
        world: The world of its nodes.
    """

    name = "sim"

    def __init__(self, names: Sequence[str], seed: int, *, threads: Threads | None = None) -> None:
        """Describes the nodes. Nothing starts before it is needed.

        Args:
            names: The names of the nodes.
            seed: The root seed of the run.
            threads: Where threads stop; None: as in runs that have no option.
        """
        self._root = Path(tempfile.mkdtemp(prefix="labrys-linux-"))
        self.world = LinuxWorld(names, seed, self._root, threads or Threads())
        self._nodes = tuple(Node(name=name, address=address) for name, address in self.world.addresses.items())
        self._remotes = {name: LinuxRemote(name, self.world) for name in names}
        self._processes = {name: LinuxProcesses(remote, self.world) for name, remote in self._remotes.items()}

    @property
    def nodes(self) -> Sequence[Node]:
        """Returns the nodes, in the order of their names."""
        return self._nodes

    def remote(self, node: Node) -> LinuxRemote:
        """Returns the shell on a node."""
        return self._remotes[node.name]

    def processes(self, node: Node) -> LinuxProcesses:
        """Returns the processes of a node; see `harness.daemon.Processes`."""
        return self._processes[node.name]

    def capabilities(self) -> Mapping[str, Capabilities]:
        """Returns the faults with a simulated effect, but not waits for messages."""
        can = Capabilities(available=frozenset({SIMULATED}), missing=LACKS)
        return {node.name: can for node in self._nodes}

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Shares a core with the programs, and enters a network namespace without a network.

        Connections to the programs are no sockets of this process. So a library with sockets of its own gets an error at once.
        """
        core = Core()
        try:
            with namespaces.entered(f"/proc/{self.world.controller.pid}/ns/net"):
                yield
        finally:
            core.free()

    def close(self) -> None:
        """Ends the programs, and removes their files."""
        self.world.close()
        shutil.rmtree(self._root, ignore_errors=True)


def log_calls(cluster: Cluster, path: Path) -> None:
    """Lets the programs of a cluster in virtual time leave a log of calls, before anything of it starts.

    Args:
        cluster: A `LinuxCluster`.
        path: The file, which is replaced.

    Raises:
        InputError: The cluster has no programs in virtual time, or they have started.
    """
    if not isinstance(cluster, LinuxCluster):
        raise InputError(f"a log of calls needs programs in virtual time; the cluster {cluster.name} has none")
    cluster.world.log_calls(path)


class LinuxProcesses:
    """The processes of a node; see `harness.daemon.Processes`."""

    def __init__(self, remote: LinuxRemote, world: LinuxWorld) -> None:
        self._node = remote.node
        self._remote = remote
        self._world = world
        self._tools = 0  # so far

    def start(self, daemon: Daemon) -> None:
        """Starts a process; does nothing if it runs."""
        if self._find(daemon):
            return
        self._remote.run(daemon.preparation())
        self._world.daemons[self._node, daemon.role] = daemon
        self._world.add_volume(self._node, daemon.data_dir)
        self._world.starts(self._node)
        environment = {**daemon.environment, **(JVM_WORK if daemon.makes_objects_in_loops else {})}
        variables = [f"{name}={value}" for name, value in environment.items()]
        program = self._world.controller.start(
            self._node,
            ["/usr/bin/env", *variables, *daemon.argv],
            folder=daemon.working_dir or daemon.data_dir,
            output=daemon.log_files[0],
        )
        self._world.processes[self._node, daemon.role] = Started(program, daemon)

    def kill(self, daemon: Daemon) -> None:
        """Ends a process; does nothing if it does not run."""
        process = self._find(daemon)
        if process is not None:
            self._world.controller.kill(process.program)
            del self._world.processes[self._node, daemon.role]
        self._world.stopped(self._node, daemon.role)

    def pause(self, daemon: Daemon) -> None:
        """Stops a process.

        Raises:
            CommandFailed: It does not run.
        """
        process = self._find(daemon)
        if process is None:
            raise CommandFailed(self._node, "pause", 1, f"the process {daemon.role} does not run")
        self._world.controller.pause(process.program)
        process.paused = True

    def resume(self, daemon: Daemon) -> None:
        """Continues a process; does nothing if it does not run."""
        process = self._find(daemon)
        if process is not None:
            self._world.controller.resume(process.program)
            process.paused = False

    def wipe(self, daemon: Daemon) -> None:
        """Removes the data and the logs of a process. Folders stay."""
        daemon.wipe(self._remote)

    def states(self, daemons: Iterable[Daemon]) -> dict[str, tuple[int, str] | None]:
        """Returns the number and the state letter of each process by role; None if it does not run."""
        states: dict[str, tuple[int, str] | None] = {}
        for daemon in daemons:
            process = self._find(daemon)
            states[daemon.role] = None if process is None else (process.program, PAUSED if process.paused else RUNNING)
        return states

    def ends(self, daemons: Iterable[Daemon]) -> list[End]:
        """Returns how processes ended that Labrys did not end."""
        roles = {daemon.role for daemon in daemons}
        return [
            End(role=role, ago_s=(self._world.now_ns - time_ns) / NS_PER_S, status=status, lines=lines)
            for time_ns, role, status, lines in self._world.ended.get(self._node, ())
            if role in roles
        ]

    def tool(self, command: str, timeout_s: float) -> Result:
        """Runs a command line as a program of the simulation, in its time; see `harness.system.System.tool`.

        Raises:
            CommandFailed: Its status is not 0.
            CommandTimeout: It ran longer.
        """
        self._tools += 1
        files = [f"/run/labrys-tool-{self._tools}{end}" for end in ("", ".errors")]
        words = ["/bin/sh", "-c", 'exec 2>"$1"; exec /bin/sh -c "$2"', "sh", files[1], command]
        program = self._world.controller.start(self._node, words, folder="/", output=files[0])
        status = self._world.end_of(program, timeout_s)
        if status is None:
            self._world.controller.kill(program)
            raise CommandTimeout(self._node, command, timeout_s)
        output, errors = (self._remote.run(f"cat {file}; rm {file}").stdout for file in files)
        code = shell_status(status)
        if code != 0:
            raise CommandFailed(self._node, command, code, errors)
        return Result(node=self._node, command=command, status=code, stdout=output, stderr=errors)

    def _find(self, daemon: Daemon) -> Started | None:
        return self._world.processes.get((self._node, daemon.role))


class LinuxRemote:
    """The shell on a node: commands run natively among its files. They see neither its processes nor its network.

    Attributes:
        node: The name of the node.
    """

    def __init__(self, node: str, world: LinuxWorld) -> None:
        self.node = node
        self._world = world

    def run(
        self, command: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, check: bool = True, stdin: str | None = None
    ) -> Result:
        """Runs a command line; see `harness.remote.Remote`.

        Raises:
            CommandFailed: `check` is set and the status is not 0.
            CommandTimeout: The deadline passed.
        """
        try:
            done = subprocess.run(
                [*self._world.inside(self.node), "/bin/sh", "-c", command],
                input=(stdin or "").encode(),
                capture_output=True,
                timeout=timeout_s,
                env=dict(self._world.variables),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandTimeout(self.node, command, timeout_s) from error
        output, errors = (text[:MAX_OUTPUT].decode(errors="replace") for text in (done.stdout, done.stderr))
        status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        if check and status != 0:
            raise CommandFailed(self.node, command, status, errors)
        return Result(node=self.node, command=command, status=status, stdout=output, stderr=errors)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a file to the node."""
        self._replace(remote, local.read_bytes(), mode)

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> None:
        """Writes a file of the node."""
        self._replace(remote, content.encode(), mode)

    def get(self, remote: str, local: Path) -> None:
        """Copies a file of the node.

        Raises:
            FileNotFoundError: The node has no such file.
        """
        with local.open("wb") as target:
            done = subprocess.run(
                [*self._world.inside(self.node), "/bin/cat", "--", remote],
                stdin=subprocess.DEVNULL,
                stdout=target,
                stderr=subprocess.DEVNULL,
                timeout=COPY_S,
                check=False,
            )
        if done.returncode != 0:
            local.unlink()
            raise FileNotFoundError(remote)

    def shows(self, folder: Path) -> bool:
        """Returns whether the node sees a folder of this machine at the same path."""
        return any(folder.is_relative_to(shown) for shown in self._world.shown)

    def dial(self, port: int) -> NoReturn:
        """Refuses: debuggers of processes need real time.

        Raises:
            NodeError: Always.
        """
        raise NodeError(self.node, f"port {port} of a program in virtual time cannot be dialled")

    def close(self) -> None:
        """Does nothing: there is no connection."""

    def _replace(self, remote: str, content: bytes, mode: int) -> None:
        path, new = shlex.quote(remote), shlex.quote(f"{remote}.labrys")
        done = subprocess.run(
            [
                *self._world.inside(self.node),
                "/bin/sh",
                "-c",
                f"cat > {new} && chmod {mode:o} {new} && mv {new} {path}",
            ],
            input=content,
            capture_output=True,
            timeout=COPY_S,
            env=dict(self._world.variables),
            check=False,
        )
        if done.returncode != 0:
            raise NodeError(self.node, f"{remote} cannot be written: {done.stderr.decode(errors='replace').strip()}")
