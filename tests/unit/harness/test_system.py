"""The processes of a system are enough to start, kill, pause and examine it."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import readiness
from harness.clock import Clock, run_virtual
from harness.cluster import Paper
from harness.daemon import NOT_LAUNCHED, PORT_TAKEN, Daemon, states
from harness.declare import NoOptions
from harness.errors import InputError, NodeError
from harness.node import Node
from harness.service import NodeStatus, Service, first_status
from harness.services import statuses_of
from harness.system import System
from harness.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.client import Client
    from harness.cluster import Cluster
    from harness.remote import Remote

N1 = Node(name="n1", address="10.0.0.1")
N2 = Node(name="n2", address="10.0.0.2")
FRONT = Daemon(
    role="front", argv=("front", "--at", "a b"), pattern="^front ", ports=(8001, 8002), data_dir="/d/front",
    log_files=("/l/front.log",), environment={"HEAP": "1 g"}, config_files={"/etc/front/it's.conf": "a = 'b'\n"},
)  # fmt: skip
BACK = replace(FRONT, role="back", argv=("back",), pattern="^back$", ports=(9000,), data_dir="/d/back")


class Shell:
    """A shell that records its commands, and returns a given answer."""

    node = "n1"

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.answer = SimpleNamespace(status=0, stdout="", stderr="")

    def run(self, command: str, **_: Any) -> Any:
        """Records the command."""
        self.scripts.append(command)
        return self.answer


class Part(Service):
    """A service with a given process, which is ready at once."""

    def __init__(self, system: System, daemon: Daemon, nodes: Sequence[Node] | None = None) -> None:
        super().__init__(system, nodes)
        self.role = daemon.role
        self.serves_clients = daemon == FRONT
        self._daemon = daemon

    def daemon(self, node: Node) -> Daemon:
        """Returns the given process."""
        return self._daemon

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Returns at once."""


class Pair(System):
    """A system with two services: a back on n1, and a front on each node."""

    name = "pair"

    def services(self) -> Sequence[Service]:
        """Returns the back before the front."""
        return (Part(self, BACK, self.cluster.nodes[:1]), Part(self, FRONT))

    def install(self, node: Node) -> None:
        """Does nothing."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Has no clients."""
        raise NotImplementedError


@pytest.fixture
def shell() -> Shell:
    """Returns the shell of all nodes."""
    return Shell()


@pytest.fixture
def pair(shell: Shell) -> Pair:
    """Returns the system on two nodes."""
    cluster = cast("Cluster", SimpleNamespace(nodes=(N1, N2), remote=lambda node: shell))
    return Pair(cluster, NoOptions(), "register")


def test_the_defaults_of_a_system(pair: Pair) -> None:
    """All methods beside those that a system must have are optional."""
    assert pair.workload == "register"
    assert dict(pair.versions()) == {}
    assert dict(pair.serves) == {}
    assert pair.fatal_log_patterns() == ()
    assert not (pair.refusals)
    front = pair.front()
    assert front.role == "front"
    assert not (front.dumps_replicas)
    assert not (front.reads_need_leader)
    assert not (front.moves_leadership)

    async def asked() -> list[Any]:
        return [await first_status(front, N1, 1.0), await statuses_of(pair, N1, 1.0), await front.lead(N1, 1.0)]

    assert run_virtual(asked()) == [None, [], False]


def test_processes_start_in_their_order_and_end_the_other_way(pair: Pair, shell: Shell) -> None:
    """The first process starts first and ends last. A role selects one process."""
    pair.start(N1)
    pair.kill(N1)
    assert ["'^back$'" in script for script in shell.scripts] == [True, False, False, True]
    shell.scripts.clear()
    pair.start(N1, "front")
    pair.pause(N1, "front")
    assert len(shell.scripts) == 2
    assert not any("^back" in script for script in shell.scripts)


def test_ports_logs_and_data_belong_to_roles(pair: Pair) -> None:
    """Without a role, they are those of all processes. The data directory of several processes is an error."""
    assert pair.ports() == [9000, 8001, 8002]
    assert pair.ports("front") == [8001, 8002]
    assert pair.log_files(N1, "front") == ["/l/front.log"]
    assert pair.data_dir(N1, "back") == "/d/back"
    assert pair.data_dir(N2) == "/d/front"
    with pytest.raises(
        InputError, match=r"the role of one process of pair on n1, not None; its processes are: back, front"
    ):
        pair.data_dir(N1)


def test_roles_are_known_without_nodes() -> None:
    """A plan is drawn before there are nodes, so their names are enough for the roles."""
    assert Pair.roles(["n1", "n2", "n3"], NoOptions(), "register") == {"back": ("n1",), "front": ("n1", "n2", "n3")}
    assert [node.address for node in Paper(["a", "b"]).nodes] == ["192.0.2.1", "192.0.2.2"]


def test_states_are_read_from_the_process_table(shell: Shell) -> None:
    """The name of a program may have any characters, and a zombie does not count."""
    shell.answer.stdout = "0 17 (a) T (b) S 1 1\n0 18 (front) R 1 1\nnonsense\n1 19 (back) Z 1 1\n"
    assert states(cast("Remote", shell), (FRONT, BACK)) == {"front": (17, "S"), "back": None}
    assert states(cast("Remote", shell), ()) == {}


def test_a_start_writes_the_configuration(shell: Shell) -> None:
    """The start also sets the variables of the process and of faults."""
    FRONT.start(cast("Remote", shell))
    (script,) = shell.scripts
    assert script.index("/etc/front/it") < script.index("setsid nohup env ")
    assert "env $(cat /run/labrys/environment" in script
    assert "HEAP='1 g' front --at 'a b'" in script


@pytest.mark.parametrize(
    ("status", "stdout", "stderr", "message"),
    [
        (PORT_TAKEN, "8002\n", "", "n1: port 8002 is taken by another process"),
        (NOT_LAUNCHED, "", "no such flag\n", "n1: the process 'front' could not be launched: no such flag"),
        (NOT_LAUNCHED, "", "", "(no output)"),
    ],
)
def test_the_error_of_a_failed_start(shell: Shell, status: int, stdout: str, stderr: str, message: str) -> None:
    """It has the port that is in use, or the last lines of the log."""
    shell.answer = SimpleNamespace(status=status, stdout=stdout, stderr=stderr)
    with pytest.raises(NodeError) as raised:
        FRONT.start(cast("Remote", shell))
    assert message in str(raised.value)


class Voting(Part):
    """A service whose processes report roles, also of two groups, and note what happens to them."""

    def __init__(self, system: System, daemon: Daemon, nodes: Sequence[Node] | None = None) -> None:
        super().__init__(system, daemon, nodes)
        self.calls: list[str] = []
        self.groups: Sequence[str | None] = (None,)

    def initialise(self, node: Node) -> None:
        """Notes the call."""
        self.calls.append(f"initialise {node.name}")

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Notes the call."""
        self.calls.append(f"wait {' '.join(node.name for node in nodes)}")

    async def complete(self, timeout_s: float) -> None:
        """Notes the call."""
        self.calls.append("complete")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Says that n1 leads."""
        role = "leader" if node == N1 else "follower"
        return [NodeStatus(node=node.name, role=role, term=3, group=group) for group in self.groups]


class Voters(Pair):
    """The pair with services that report."""

    def __init__(self, cluster: Cluster, options: object, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self.calls: list[str] = []
        self.parts: Sequence[Voting] = (Voting(self, BACK, cluster.nodes[:1]), Voting(self, FRONT))
        for part in self.parts:
            part.calls = self.calls

    def services(self) -> Sequence[Voting]:
        """Returns the back before the front."""
        return self.parts

    def start(self, node: Node, role: str | None = None) -> None:
        """Notes the call."""
        self.calls.append(f"start {role} on {node.name}")


@pytest.fixture
def voters(shell: Shell) -> Voters:
    """Returns the system on two nodes."""
    return Voters(cast("Cluster", SimpleNamespace(nodes=(N1, N2), remote=lambda node: shell)), NoOptions(), "register")


@pytest.mark.parametrize("first", [True, False])
def test_a_service_starts_after_the_one_before_it_serves(voters: Voters, *, first: bool) -> None:
    """At the first start, each node is initialised before it, and the service is completed after it."""
    run_virtual(readiness.bring_up(voters, 5.0, first=first))
    every = [
        "initialise n1", "start back on n1", "wait n1", "complete",
        "initialise n1", "start front on n1", "initialise n2", "start front on n2", "wait n1 n2", "complete",
    ]  # fmt: skip
    once = [call for call in every if first or not call.startswith(("initialise", "complete"))]
    assert voters.calls == once


def test_statuses_name_their_service_only_if_there_are_several(voters: Voters) -> None:
    """So the error of a system that is not ready tells the processes of a node apart."""
    both = run_virtual(statuses_of(voters, N1, 1.0))
    assert [(status.process, status.role) for status in both] == [("back", "leader"), ("front", "leader")]
    voters.parts = voters.parts[1:]
    assert [status.process for status in run_virtual(statuses_of(voters, N1, 1.0))] == [None]


def test_the_watch_tells_the_leaders_of_services_and_groups_apart(voters: Voters) -> None:
    """The sightings of the service for clients stand alone; each other service and each group has its own."""
    voters.parts[0].groups = ("east", "west")

    async def polled() -> Watch:
        watch = Watch(system=voters, clock=Clock(asyncio.get_running_loop()))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(watch.run(), 2.5)
        return watch

    watch = run_virtual(polled())
    assert [(seen.node, seen.role) for seen in watch.sightings] == [("n1", "leader"), ("n2", "follower")]
    assert watch.leader() == ("n1", 3)
    named = {name: [seen.node for seen in sightings] for name, sightings in watch.others.items()}
    assert named == {"back": [], "back east": ["n1"], "back west": ["n1"]}
    assert list(watch.positions.applied) == ["n1", "n2"]


def test_services_without_a_status_are_not_polled(pair: Pair) -> None:
    """Nothing says then that a node gave no answer."""

    async def polled() -> Watch:
        watch = Watch(system=pair, clock=Clock(asyncio.get_running_loop()))
        await watch.run()
        return watch

    watch = run_virtual(polled())
    assert (watch.sightings, watch.others, watch.leader()) == ([], {}, None)


@pytest.mark.parametrize(
    "pattern", ["front", "front --at", r"[f]ront", r"front[[:space:]]--at", "front|^back", "^sh ", "pgrep", "*front"]
)
def test_a_pattern_that_matches_its_own_shell_is_refused(pattern: str) -> None:
    """The shell that starts the process has its words, and the one that looks for it has the pattern: a kill would end both."""
    with pytest.raises(ValueError, match=r'also matches the shell .* begin it with \^ and the program: r"\^front "'):
        replace(FRONT, pattern=pattern)


@pytest.mark.parametrize("pattern", ["^front ", r"^([^ ]*/)?front[[:space:]]", "^front --at|^postgres: main: "])
def test_a_pattern_that_begins_with_the_program_is_fine(pattern: str) -> None:
    """Also with classes of characters, which only extended regular expressions have."""
    assert replace(FRONT, pattern=pattern).pattern == pattern
