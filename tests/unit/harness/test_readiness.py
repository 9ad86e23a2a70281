"""A system that is not ready is explained: each node with its processes, its status and the end of its logs."""

from __future__ import annotations

import asyncio
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import readiness
from harness.clock import Clock, run_virtual
from harness.daemon import Daemon
from harness.declare import NoOptions
from harness.errors import InfrastructureError, InputError, NodeUnreachable
from harness.node import Node
from harness.recovery import recover
from harness.served import Served
from harness.service import NodeStatus
from harness.system import OneServiceSystem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from harness.client import Client
    from harness.cluster import Cluster

NODES = tuple(Node(name=name, address="192.0.2.1") for name in ("n1", "n2", "n3"))


class Here:
    """A shell that runs its commands on this machine; that of n3 cannot be reached."""

    def __init__(self, node: str) -> None:
        self.node = node

    def run(self, command: str, *, check: bool = True, timeout_s: float = 10.0) -> Any:
        """Runs a command."""
        if self.node == "n3":
            raise NodeUnreachable("n3", "no route to host")
        ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=timeout_s, check=check)
        return SimpleNamespace(status=ended.returncode, stdout=ended.stdout, stderr=ended.stderr)


class Own(OneServiceSystem):
    """A system of a user's own, which only says that it is not ready.

    Attributes:
        error: The error of every wait.
        starts: The nodes that were started.
    """

    name = "own"
    role = "store"

    def __init__(self, folder: Path, error: Exception) -> None:
        cluster = cast("Cluster", SimpleNamespace(nodes=NODES, remote=lambda node: Here(node.name)))
        super().__init__(cluster, NoOptions(), "register")
        self._folder = folder
        self.error = error
        self.starts: list[str] = []

    def daemon(self, node: Node) -> Daemon:
        """Returns the process, which does not run."""
        logs = [str(self._folder / node.name / name) for name in ("out.log", "empty.log", "lacking.log")]
        return Daemon(
            role=self.role, argv=["store"], pattern="^no-such-program$", ports=[1], data_dir="/d", log_files=logs
        )

    def install(self, node: Node) -> None:
        """Does nothing."""

    def start(self, node: Node, role: str | None = None) -> None:
        """Fails on n2, if the error is one of a start."""
        self.starts.append(node.name)
        if node.name == "n2" and "cannot start" in str(self.error):
            raise self.error

    def kill(self, node: Node, role: str | None = None) -> None:
        """Does nothing."""

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is never ready."""
        raise self.error

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Has a status on n1, none on n2, and a defect on n3."""
        if node.name == "n3":
            raise KeyError("role\x1b[2J")
        return (NodeStatus(node="n1", role="candidate", term=4, applied_index=17),) if node.name == "n1" else ()

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Client:
        """Has no clients."""
        raise NotImplementedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Logs of n1 and n2, one of them hostile and long."""
    for name in ("n1", "n2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "empty.log").touch()
    (tmp_path / "n1" / "out.log").write_text("".join(f"line {number}\n" for number in range(5000)))
    (tmp_path / "n2" / "out.log").write_text("\x1b]0;owned\x07 no space left\n" + "x" * 9000 + "\n")
    return tmp_path


def said(system: Own, action: Any) -> str:
    """The error of an action on the system."""
    with pytest.raises(InfrastructureError) as raised:
        asyncio.run(action(system))
    return str(raised.value)


@pytest.mark.parametrize(
    "error", [InfrastructureError("n2 did not answer on port 1"), TimeoutError("n2 did not answer on port 1")]
)
def test_every_node_is_told_with_its_status_and_its_logs(folder: Path, error: Exception) -> None:
    """The reason of the system comes first; a node that cannot be asked is told too."""
    text = said(Own(folder, error), lambda system: readiness.until_ready(system, 1.0))

    first, *lines = text.splitlines()
    assert first == "n2 did not answer on port 1"
    assert "--- n1: process store does not run; reports candidate in term 4, sees no leader, has applied 17" in lines
    assert "--- n2: process store does not run; it reports no status" in lines
    (lost,) = [line for line in lines if line.startswith("--- n3: ")]
    assert "its processes cannot be seen: n3: no route to host" in lost
    assert "its status cannot be read: " in lost
    assert "(its logs cannot be read: n3: no route to host)" in lines
    assert f"last lines of {folder}/n1/out.log on n1:" in lines
    assert "line 4999" in lines
    assert "empty.log" not in text
    assert "lacking.log" not in text


def test_logs_are_bounded_and_cannot_command_the_terminal(folder: Path) -> None:
    """Twelve lines of each log, each cut; control characters are shown as text."""
    text = said(Own(folder, InfrastructureError("no")), lambda system: readiness.until_ready(system, 1.0))
    assert sum(line.startswith("line ") for line in text.splitlines()) == 12
    assert "\\x1b]0;owned\\x07 no space left" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 700
    assert len(text) < 5000


def test_a_start_that_fails_is_told_like_a_wait(folder: Path) -> None:
    """The other nodes are started, too."""
    system = Own(folder, InfrastructureError("n2: cannot start"))
    text = said(system, lambda system: readiness.bring_up(system, 1.0, first=True))
    assert text.startswith("n2: cannot start\n--- n1: ")
    assert sorted(system.starts) == ["n1", "n2", "n3"]


def test_recovery_and_restart_tell_the_same(folder: Path) -> None:
    """Both errors of the recovery have the circumstances; the first is from the time before the restart."""

    class Nobody:
        """Clients that cannot be asked, so that only the nodes say whether they serve."""

        healed_s = None
        worked = True

        def unasked(self) -> Served:
            """Returns that nothing is shown."""
            names, none = [node.name for node in NODES], frozenset[str]()
            return Served(nodes=names, quorum=2, reads=none, codes=none, sorts=none)

        so_far = unasked

        async def ask(self, timeout_s: float) -> Served:
            """Asks nothing."""
            return self.unasked()

    async def recovery() -> Any:
        return await recover(
            Own(folder, InfrastructureError("no leader")),
            NODES,
            clients=Nobody(),
            timeout_s=1.0,
            clock=Clock(asyncio.get_running_loop()),
        )

    end = run_virtual(recovery())
    for error in (end.first_error, end.error):
        assert error.startswith("no leader\n--- n1: process store does not run; ")
        assert "line 4999" in error


def test_bad_input_and_defects_stay_what_they_are(folder: Path) -> None:
    """Their exit code and their traceback do not depend on the nodes."""
    for error in (InputError("no such option"), ZeroDivisionError("oops")):
        with pytest.raises(type(error), match=f"^{error}$"):
            asyncio.run(readiness.until_ready(Own(folder, error), 1.0))
