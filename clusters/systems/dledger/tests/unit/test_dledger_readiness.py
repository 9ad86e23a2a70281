"""DLedger groups: readiness, possible names of nodes, and fatal log lines."""

from __future__ import annotations

import asyncio
import re
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from clusters.sim.cluster import SimCluster
from clusters.systems.dledger import nodes
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger.simulated import SimDLedger
from clusters.systems.dledger.system import DLedgerSystem
from harness.cluster import Paper
from harness.errors import ExitCode, InfrastructureError, InputError
from harness.node import Node
from harness.service import NodeStatus

if TYPE_CHECKING:
    from pathlib import Path

    from harness.cluster import Cluster


FATAL = "|".join(DLedgerSystem(cast("Cluster", Paper(["n1"])), DLedgerOptions(), "register").fatal_log_patterns())


def status(
    node: str, *, leader: str | None = "n1", term: int = 3, ready: int = -1, applied: int = 9, committed: int = 9
) -> NodeStatus:
    """The status of a node; `ready` is the term in which a leader has committed an entry."""
    return NodeStatus(
        node=node,
        role="leader" if node == leader else "follower" if leader else "candidate",
        term=term,
        leader=leader,
        applied_index=applied,
        committed_index=committed,
        details={"readyTerm": ready},
    )


def lacking(*statuses: NodeStatus | None) -> dict[str, str]:
    """What nodes n1, n2, ... lack."""
    views = {f"n{number}": status for number, status in enumerate(statuses, 1)}
    system = DLedgerSystem(cast("Cluster", Paper(list(views))), DLedgerOptions(), "register")
    return dict(asyncio.run(system.lacking(views)))


def test_one_ready_leader_and_followers_that_have_its_entries() -> None:
    """The group is ready if all follow one leader that serves, and have applied its committed entries."""
    assert lacking(status("n1", ready=3), status("n2"), status("n3", committed=-1)) == {}


def test_a_silent_node_is_named() -> None:
    """A group with a node that does not answer is not ready."""
    assert lacking(status("n1", ready=3), None) == {"n2": "does not answer"}


def test_a_leader_that_has_not_committed_in_its_term_does_not_serve() -> None:
    """A leader serves only if it is ready in its current term."""
    for ready in (-1, 2):
        assert set(lacking(status("n1", ready=ready), status("n2"))) == {"n1", "n2"}


def test_without_a_leader_nobody_serves() -> None:
    """The message has each node's view."""
    got = lacking(status("n1", leader=None), status("n2", leader=None, term=4))
    assert got["n2"] == "is candidate in term 4 and sees no leader; none serves"


def test_a_node_in_another_term_or_with_another_leader_lacks_the_leader() -> None:
    """The leader of the highest term counts; a deposed one that still believes in itself is behind."""
    got = lacking(status("n1", ready=3), status("n2", leader="n2", term=4, ready=4), status("n3", leader="n2", term=4))
    assert got == {"n1": "sees n1 in term 3, not n2 in 4"}


def test_a_node_that_is_behind_says_how_far() -> None:
    """A follower that has not applied what the leader had committed may never do so."""
    got = lacking(status("n1", ready=3, committed=9), status("n2", applied=4))
    assert got == {"n2": "has applied 4 of 9 entries"}


def test_an_empty_group_has_nothing_to_apply() -> None:
    """The entry 0 of a leader that serves is its own empty entry; a follower need not know yet that it is committed."""
    assert lacking(status("n1", ready=3, applied=0, committed=0), status("n2", applied=-1, committed=-1)) == {}
    assert lacking(status("n1", ready=3, applied=1, committed=1), status("n2", applied=-1)) != {}


def test_names_that_dledger_would_cut() -> None:
    """A member has the form `id-host:port`; a name or address that breaks this form is an error."""
    cluster = cast("Cluster", SimpleNamespace(nodes=[Node(name="n1", address="fd00::1")]))
    with pytest.raises(InputError, match="DLedger cannot use the node n1") as raised:
        DLedgerSystem(cluster, DLedgerOptions(), "register")
    assert raised.value.exit_code is ExitCode.BAD_ARGUMENTS


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01T00:00:00.000Z ERROR [StateMachineCaller-n1] Main: FATAL: the library has given up",
        "java.lang.OutOfMemoryError: Java heap space",
        "Terminating due to java.lang.OutOfMemoryError: Direct buffer memory",
        "# A fatal error has been detected by the Java Runtime Environment:",
        "  java.lang.IllegalAccessError: class DefaultMmapFile cannot access class sun.nio.ch.DirectBuffer",
        "  java.lang.NoClassDefFoundError: io/netty/Thing",
        "2026-01-01T00:00:00.000Z ERROR [x] DLedgerLeaderElector: [n2][BUG] currTerm 7 has leader n1, but received leader n3",
    ],
)
def test_fatal_lines(line: str) -> None:
    """A broken JVM, a library that gave up, and two leaders in one term are fatal."""
    assert re.search(FATAL, line)


@pytest.mark.parametrize(
    "line",
    [
        "2026-01-01T00:00:00.000Z ERROR [voteInvokeExecutor-3] DLedgerRpcNettyService: Send vote request failed",
        "  org.apache.rocketmq.remoting.exception.RemotingConnectException: connect to 127.0.0.1:21914 failed",
        "2026-01-01T00:00:00.000Z WARN  [x] DLedgerLeaderElector: [BUG] [HandleLeaderTransfer] currTerm=4 != request.term=3",
        "2026-01-01T00:00:00.000Z ERROR [main] SnapshotManager: Failed to load snapshot",
        "2026-01-01T00:00:00.000Z INFO  [x] DLedgerLeaderElector: [n2] [ChangeRoleToCandidate] from term: 4 and currTerm: 3",
    ],
)
def test_lines_of_a_healthy_node(line: str) -> None:
    """Log lines of a start, of lost peers, and of a late transfer are not fatal."""
    assert not re.search(FATAL, line)


def test_a_machine_without_maven_and_a_jdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If neither the cache nor the installation has the node, the error names what is missing and how to get it."""
    (tmp_path / "bin").mkdir()
    for name in ("sh", "tar", "sha256sum", "cut"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(nodes, "PACKAGED", tmp_path / "packaged")
    with pytest.raises(InfrastructureError) as raised:
        DLedgerSystem.build(DLedgerOptions(), print)
    assert "dledger-node 0.4.0 is neither in the cache nor in this installation" in str(raised.value)
    assert "mvn is not on PATH (for building DLedger's node; `apt-get install maven` installs it)" in str(raised.value)
    assert "`apt-get install openjdk-17-jdk-headless` installs it" in str(raised.value)


@pytest.mark.parametrize(
    ("end", "is_fatal"), [("Runtime.halt(74)", False), ("Runtime.halt(1)", True), ("System.exit(-1)", True)]
)
def test_a_simulated_node_may_end_as_its_disk_fails(end: str, is_fatal: bool) -> None:
    """The mend of finding 22 ends a node with the status 74. Any other end by itself is fatal."""
    patterns = SimDLedger(SimCluster(("n1",), 1), DLedgerOptions(), "register").fatal_log_patterns()
    assert bool(re.search("|".join(patterns), f"2.736895 FATAL it called {end}\n")) is is_fatal
