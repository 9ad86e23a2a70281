"""A process of a system on a node: start, kill, pause, and state.

Labrys finds a process by its command line in the process table of the node, never by a pid file. It ends a process with
SIGKILL. The process is gone only when no process listens on its ports. `System` uses these descriptions, so a system describes
its processes, and not how to kill them.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from harness.ends import MAX_LINES, MAX_ON_NODE, MAX_TAIL, End, last_lines
from harness.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from harness.cluster import Cluster
    from harness.node import Node
    from harness.process_clock import LogClock
    from harness.remote import Remote, Result

# A file with environment variables that a fault sets for the system's processes, e.g. a library to load: lines NAME=value
# without spaces. A second file is for one role. In a shell:
# `env $(cat /run/labrys/environment /run/labrys/environment-ROLE 2>/dev/null) COMMAND`.
# A system that ignores these files cannot have such faults.
ENVIRONMENT = "/run/labrys/environment"
# For each role: how its processes ended that Labrys did not end, and a mark while Labrys ends one.
ENDED = "/run/labrys/ended"
ENDING = "/run/labrys/ending"
LAUNCH_WAIT_S = 5
KILL_WAIT_S = 10
PAUSE_WAIT_S = 5
ZOMBIE = "Z"
PORT_TAKEN = 98
NOT_LAUNCHED = 97
LOG_TAIL_LINES = 12
ROLE = re.compile(r"[a-z][a-z0-9-]{0,39}")
# Classes of characters that extended regular expressions have, and those of Python do not.
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": r"\s",
    "upper": "A-Z",
}
# The number of a daemon, then the beginning of its /proc/PID/stat; the name of a program may have spaces and parentheses.
_STAT = re.compile(r"(?P<number>\d+) (?P<pid>\d+) \(.*\) (?P<state>\S)")


_UPTIME = re.compile(r"\d{1,12}(?:\.\d{1,9})?")
_END = re.compile(r"(?P<status>\d{1,3}) (?P<up>\d{1,12}(?:\.\d{1,9})?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A process that a node runs for the system.

    Attributes:
        role: Its role in the system, e.g. `broker`; a node has at most one process of a role.
        argv: Its command line. The program is looked up on the node's PATH.
        pattern: An extended regular expression that matches its command line, as for `pgrep -f`. It must not match the shell
            that starts it or looks for it: begin it with `^` and the program.
        ports: The TCP ports that it listens on.
        leader_ports: The TCP ports that it listens on only while it leads; after a restart, it need not listen on them again.
        data_dir: The absolute path of the directory with the data that must survive a crash. No other process uses it.
        log_files: The absolute paths of its logs. The first gets its standard output and standard error.
        environment: Additional environment variables.
        working_dir: The folder in which it starts; None for `data_dir`.
        config_files: Files that are written before each start: absolute path to content.
        java_packages: If it is a JVM, the packages of its program, e.g. `org.example`. Faults of threads act only there.
        makes_objects_in_loops: If it is a JVM, whether its threads may wait in loops that make objects. In virtual time, such
            loops then take time.
        log_clock: How one of its logs tells the time, so that a clock fault can be proven by it; None: it does not.
    """

    role: str
    argv: Sequence[str]
    pattern: str
    ports: Sequence[int]
    data_dir: str
    log_files: Sequence[str]
    leader_ports: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    working_dir: str | None = None
    config_files: Mapping[str, str] = field(default_factory=dict)
    java_packages: Sequence[str] = ()
    makes_objects_in_loops: bool = False
    log_clock: LogClock | None = None

    @property
    def every_port(self) -> Sequence[int]:
        """Returns the TCP ports that it may listen on, with those of a leader."""
        return (*self.ports, *self.leader_ports)

    def __post_init__(self) -> None:
        if not ROLE.fullmatch(self.role):
            raise ValueError(
                f"expected a role of lower-case letters, digits and hyphens, e.g. broker, not {self.role!r}"
            )
        if self._matches_a_shell():
            program = self.argv[0].replace(".", r"\.")
            raise ValueError(
                f"the pattern {self.pattern!r} of the process {self.role} also matches the shell that starts it or looks for "
                f'it, which a kill would end; begin it with ^ and the program: r"^{program} "'
            )

    def start(self, remote: Remote) -> None:
        """Starts it in a session of its own, and waits until it is in the process table. Does nothing if it already runs.

        Raises:
            NodeError: A port is in use, or the start failed; the message has the last lines of its log.
        """
        launch_log = shlex.quote(self.log_files[0])
        started = remote.run(
            f"{self.found()} >/dev/null && exit 0\n"
            f"for port in {self._ports()}; do\n"
            f'  if {_listens("$port")}; then echo "$port"; exit {PORT_TAKEN}; fi\n'
            "done\n"
            f"{self.preparation()}"
            f"cd {shlex.quote(self.working_dir or self.data_dir)} || exit\n"
            f"{self._watched(launch_log)}"
            f"for turn in $(seq {LAUNCH_WAIT_S * 50}); do {self.found()} >/dev/null && exit 0; sleep 0.02; done\n"
            f"tail -n {LOG_TAIL_LINES} {launch_log} >&2; exit {NOT_LAUNCHED}",
            check=False,
        )
        if started.status == PORT_TAKEN:
            port = started.stdout.strip()
            raise NodeError(remote.node, f"port {port} is taken by another process; `ss -ltnp` on the node shows which")
        if started.status != 0:
            raise NodeError(
                remote.node,
                f"the process {self.role!r} could not be launched: {started.stderr.strip() or '(no output)'}",
            )

    def kill(self, remote: Remote) -> None:
        """Ends it with SIGKILL, and waits until it is gone and its ports are free. Does nothing if it does not run.

        After the end of its first thread, a process has no command line. Its other threads may still hold a port.

        Raises:
            CommandFailed: At the deadline, it still runs, or a process still listens on its ports.
        """
        listening = " || ".join(_listens(str(port)) for port in self.every_port) or "false"
        remote.run(
            f"mkdir -p {ENDED.rpartition('/')[0]} && : >{ENDING}-{self.role}\n"
            f"for turn in $(seq {KILL_WAIT_S * 20}); do\n"
            f"  if pids=$({self.found()}); then kill -9 $pids 2>/dev/null\n"
            f"  elif ! {{ {listening}; }}; then exit 0; fi\n"
            "  sleep 0.05\n"
            "done\n"
            f'echo "still there: process ${{pids:-(none)}}, or the listener on port {self._ports()}" >&2; exit 1'
        )

    def pause(self, remote: Remote) -> None:
        """Stops it with SIGSTOP, and waits until none of its threads runs.

        A thread stops only when it gets a processor, and can answer a request before that. With 30 busy threads on two busy
        processors, this took up to 1.2 s, and the process was in state T long before. A thread in state D waits in the kernel,
        and stops before it leaves it.

        Raises:
            CommandFailed: It does not run; or at the deadline, one of its threads still runs.
        """
        moving = r"s/^\([0-9]*\) .*) \([^TtDXZ]\) .*/\1 (\2)/p"
        remote.run(
            f"pids=$({self.found()}) || {{ echo 'the process {self.role} does not run' >&2; exit 1; }}\n"
            "kill -STOP $pids || exit\n"
            f"for turn in $(seq {PAUSE_WAIT_S * 50}); do\n"
            f"  threads=$(cat $(printf '/proc/%s/task/*/stat ' $pids) 2>/dev/null | sed -n '{moving}')\n"
            '  [ -n "$threads" ] || exit 0\n'
            "  sleep 0.02\n"
            "done\n"
            f'echo "process" $pids "got SIGSTOP, and after {PAUSE_WAIT_S} s these threads still run:" $threads >&2; exit 1'
        )

    def resume(self, remote: Remote) -> None:
        """Continues it with SIGCONT. Does nothing if it does not run."""
        remote.run(f"pids=$({self.found()}) || exit 0; kill -CONT $pids")

    def wipe(self, remote: Remote) -> None:
        """Removes its data, its logs, and rotated logs, whose names begin with the name of a log and a dot.

        Directories stay, because a fault may have mounted a volume there.
        """
        data_dir = shlex.quote(self.data_dir)
        logs = " ".join(f"{shlex.quote(path)} {shlex.quote(path)}.*" for path in self.log_files)
        remote.run(f"[ ! -d {data_dir} ] || find {data_dir} -mindepth 1 -delete || exit\nrm -f {logs}")

    def found(self) -> str:
        """Returns a shell command that prints its pids, and fails if there is none."""
        return f"pgrep -f {shlex.quote(self.pattern)}"

    def _matches_a_shell(self) -> bool:
        """Returns whether the pattern matches a shell with the words of the process, or with those that look for it."""
        pattern = re.sub(r"\[:(\w+):\]", lambda name: _CLASSES.get(name[1], ""), self.pattern)
        try:
            return re.search(pattern, f"sh -c {self.found()}; {self._command()}") is not None
        except re.error:  # Python does not know all that `pgrep` does
            return not self.pattern.startswith("^")

    def _watched(self, launch_log: str) -> str:
        """Returns the lines of a shell that launch it, and note its end unless Labrys ends it.

        The shell that waits for it holds no file and no folder of it, so that a fault can unmount its volume.
        """
        ended, ending = f"{ENDED}-{self.role}", f"{ENDING}-{self.role}"
        return (
            f"mkdir -p {ENDED.rpartition('/')[0]} && rm -f {ending}\n"
            "(\n"
            f"  setsid nohup {self._command()} </dev/null >>{launch_log} 2>&1 &\n"
            "  cd /; trap '' HUP; wait $!; status=$?\n"
            f"  [ -e {ending} ] && exit\n"
            "  read -r up _ </proc/uptime\n"
            f'  {{ echo "$status $up"; tail -c {MAX_TAIL} {launch_log} | tail -n {MAX_LINES} | sed "s/^/> /"; }} >>{ended}\n'
            ") </dev/null >/dev/null 2>&1 &\n"
        )

    def _ports(self) -> str:
        return " ".join(map(str, self.every_port))

    def preparation(self) -> str:
        """Returns the lines of a shell that make its directories and its files before a start."""
        parents = [path.rpartition("/")[0] for path in (*self.log_files, *self.config_files)]
        directories = [self.data_dir, *([self.working_dir] if self.working_dir else []), *parents]
        return f"mkdir -p {_quoted(dict.fromkeys(directories))} || exit\n{self._configure()}"

    def _configure(self) -> str:
        return "".join(
            f"printf %s {shlex.quote(content)} > {shlex.quote(path)} || exit\n"
            for path, content in self.config_files.items()
        )

    def _command(self) -> str:
        own = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        files = f"{ENVIRONMENT} {ENVIRONMENT}-{self.role}"
        return f"env $(cat {files} 2>/dev/null) {own} {shlex.join(self.argv)}"


class Processes(Protocol):
    """The processes of a node; each method is as that of `Daemon`, and `states` as the function."""

    def start(self, daemon: Daemon) -> None: ...  # noqa: D102 - above

    def kill(self, daemon: Daemon) -> None: ...  # noqa: D102

    def pause(self, daemon: Daemon) -> None: ...  # noqa: D102

    def resume(self, daemon: Daemon) -> None: ...  # noqa: D102

    def wipe(self, daemon: Daemon) -> None: ...  # noqa: D102

    def states(self, daemons: Iterable[Daemon]) -> dict[str, tuple[int, str] | None]: ...  # noqa: D102

    def ends(self, daemons: Iterable[Daemon]) -> list[End]: ...  # noqa: D102

    def tool(self, command: str, timeout_s: float) -> Result:
        """Runs a command line with programs of the system to its end; see `harness.system.System.tool`."""
        ...


class ShellProcesses:
    """The processes of a node with a shell."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def start(self, daemon: Daemon) -> None:
        """Starts a process; see `Daemon.start`."""
        daemon.start(self._remote)

    def kill(self, daemon: Daemon) -> None:
        """Ends a process; see `Daemon.kill`."""
        daemon.kill(self._remote)

    def pause(self, daemon: Daemon) -> None:
        """Stops a process; see `Daemon.pause`."""
        daemon.pause(self._remote)

    def resume(self, daemon: Daemon) -> None:
        """Continues a process; see `Daemon.resume`."""
        daemon.resume(self._remote)

    def wipe(self, daemon: Daemon) -> None:
        """Removes the data and the logs of a process; see `Daemon.wipe`."""
        daemon.wipe(self._remote)

    def states(self, daemons: Iterable[Daemon]) -> dict[str, tuple[int, str] | None]:
        """Reads the states of processes; see `states`."""
        return states(self._remote, daemons)

    def ends(self, daemons: Iterable[Daemon]) -> list[End]:
        """Reads how processes ended; see `ends`."""
        return ends(self._remote, daemons)

    def tool(self, command: str, timeout_s: float) -> Result:
        """Runs a command line; see `harness.remote.Remote.run`."""
        return self._remote.run(command, timeout_s=timeout_s)


def processes_of(cluster: Cluster, node: Node) -> Processes:
    """Returns the processes of a node: those that a simulation has, or those that its shell finds."""
    of = cast("Callable[[Node], Processes] | None", getattr(cluster, "processes", None))
    return ShellProcesses(cluster.remote(node)) if of is None else of(node)


def preloads(remote: Remote) -> bool:
    """Returns whether processes that start on the node now load a library for faults; see `ENVIRONMENT`."""
    return remote.run(f"grep -qs '^LD_PRELOAD=' {ENVIRONMENT}", check=False).status == 0


def states(remote: Remote, daemons: Iterable[Daemon]) -> dict[str, tuple[int, str] | None]:
    """Reads the states of several processes from the node's process table, in one command.

    Returns:
        For each role, the pid and the state letter as in /proc/PID/stat (`T` is stopped); None if it does not run.
    """
    described = list(daemons)
    if not described:
        return {}
    script = "\n".join(
        f"for pid in $({daemon.found()}); do\n"
        f"  read -r stat < /proc/$pid/stat && printf '%s %s\\n' {number} \"$stat\"\ndone"
        for number, daemon in enumerate(described)
    )
    by_role: dict[str, tuple[int, str] | None] = {daemon.role: None for daemon in described}
    for line in map(_STAT.match, remote.run(f"{script}\ntrue").stdout.splitlines()):
        if line and line["state"] != ZOMBIE:
            role = described[int(line["number"])].role
            by_role[role] = by_role[role] or (int(line["pid"]), line["state"])
    return by_role


def ends(remote: Remote, daemons: Iterable[Daemon]) -> list[End]:
    """Reads how processes ended that Labrys did not end, in one command; also those of earlier runs on this node."""
    roles = list(dict.fromkeys(daemon.role for daemon in daemons))
    if not roles:
        return []
    most = MAX_ON_NODE * (MAX_LINES + 1)
    script = 'read -r up _ </proc/uptime; echo "$up"\n' + "\n".join(
        f'if [ -e {ENDED}-{role} ]; then echo "= {role}"; tail -n {most} {ENDED}-{role}; fi' for role in roles
    )
    now, *lines = remote.run(f"{script}\ntrue").stdout.splitlines() or [""]
    now_s = _seconds(now)
    listed: list[End] = []
    role = ""
    for line in lines:
        end = _END.fullmatch(line)
        if line.startswith("= "):
            role = line.removeprefix("= ")
        elif end is not None and now_s is not None:
            listed.append(End(role=role, ago_s=now_s - float(end["up"]), status=int(end["status"])))
        elif line.startswith("> ") and listed and listed[-1].role == role:
            said = [*listed[-1].lines, line.removeprefix("> ")]
            listed[-1] = listed[-1]._replace(lines=last_lines("\n".join(said).encode()))
    return listed


def _seconds(text: str) -> float | None:
    return float(text) if _UPTIME.fullmatch(text) else None


def _listens(port: str) -> str:
    return f'ss -Hltn "sport = :{port}" 2>/dev/null | grep -q .'


def _quoted(paths: Iterable[str]) -> str:
    return shlex.join(list(paths))
