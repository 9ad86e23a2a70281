"""A run goes through its phases, always heals, and keeps its records."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness import reached, states
from harness.children import below
from harness.clock import run_virtual
from harness.combinators import limit
from harness.declare import NoOptions
from harness.errors import ExitCode, InfrastructureError, InterruptedEarly, NodeError, NotServing, PluginError, headline
from harness.faults import Begun, PlannedFault, Proof
from harness.final_reads import FinalReads
from harness.history import HistoryWriter
from harness.load import ClosedLoop
from harness.node import Node
from harness.node_clocks import NodeClock
from harness.op import RECOVERY_PHASE, Fail, Invocation, Ok, OpType
from harness.outcome import RunOutcome
from harness.process_clock import LogClock
from harness.run import RunResult, go
from harness.service import NodeStatus, ReplicaState
from harness.switch import SwitchEnded
from harness.system import OneServiceSystem
from harness.targets import AllNodes
from harness.test import Test
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import harness.cluster
    from harness.daemon import Daemon

NODES = tuple(Node(name=f"n{number}", address=f"192.0.2.{number}") for number in (1, 2, 3))


class Registers(OneServiceSystem):
    """A register in memory as a system on three nodes; it records all calls."""

    name = "registers"
    role = "registers"
    dumps_replicas = True
    refusals = ()
    reads_need_leader = True
    moves_leadership = True

    def __init__(self) -> None:
        super().__init__(cast("harness.cluster.Cluster", Cluster()), NoOptions(), "writes")
        self.calls: list[str] = []
        self.values: dict[str, Any] = {}
        self.unready = 0
        self.lacking: dict[str, str] = {}
        self.dead = 0
        self.silent: frozenset[str] = frozenset()
        self.broken_install = False
        self.leader: str | None = "n1"

    def daemon(self, node: Node) -> Daemon:
        """Has no process."""
        raise NotImplementedError

    def install(self, node: Node) -> None:
        """Installs, or fails if `broken_install` is set."""
        if self.broken_install:
            raise InfrastructureError(f"{node.name}: no space left")
        self.calls.append(f"install {node.name}")

    def start(self, node: Node, role: str | None = None) -> None:
        """Starts."""
        self.calls.append(f"start {node.name}")

    def stop(self, node: Node, role: str | None = None) -> None:
        """Stops."""
        self.calls.append(f"stop {node.name}")

    def kill(self, node: Node, role: str | None = None) -> None:
        """Kills."""
        self.calls.append(f"kill {node.name}")

    def wipe(self, node: Node, role: str | None = None) -> None:
        """Wipes."""

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready at the first call, and then fails `unready` times, and always if it waits for a node of `lacking`."""
        self.calls.append("ready?")
        waits = {node.name: self.lacking[node.name] for node in nodes if node.name in self.lacking}
        if waits and self.calls.count("ready?") > 1:
            raise NotServing("some nodes lack something", waits)
        if self.unready and self.calls.count("ready?") > 1:
            self.unready -= 1
            raise InfrastructureError("n2 sees no leader")

    def is_dead(self, node: Node) -> bool:
        """Returns whether no client of a node is answered: from the end of the fault on, until `dead` restarts."""
        ended = "end 0" in self.calls
        return ended and (self.calls.count("kill n1") < self.dead or node.name in self.silent)

    def log_files(self, node: Node, role: str | None = None) -> Sequence[str]:
        """Returns one log."""
        return ("/var/log/registers.log",)

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Returns a client that answers after a tenth of a second."""
        return RegisterClient(self, node)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Reports `leader` as the leader; None for no leader."""
        role = "leader" if node.name == self.leader else "follower"
        return (NodeStatus(node=node.name, role=role, term=1, leader=self.leader, applied_index=len(self.calls)),)

    async def lead(self, node: Node, timeout_s: float) -> bool:
        """Lets every node lead except n3, for which it takes the whole time."""
        self.calls.append(f"lead {node.name}")
        if node.name == "n3":
            await asyncio.sleep(timeout_s)
        return node.name != "n3"

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState:
        """Dumps the registers."""
        return ReplicaState(node=node.name, applied_index=9, state=dict(self.values))


class RegisterClient:
    """Reads and writes the registers."""

    def __init__(self, system: Registers, node: Node) -> None:
        self.node = node
        self._system = system

    async def invoke(self, invocation: Invocation) -> Ok | Fail:
        """Answers after a tenth of a second."""
        await asyncio.sleep(0.1)
        if self._system.is_dead(self.node):
            return Fail("status-504")
        if invocation.f == "write":
            self._system.values[invocation.key or ""] = invocation.value
            return Ok(invocation.value)
        return Ok(self._system.values.get(invocation.key or ""))

    async def close(self) -> None:
        """Does nothing."""


class Shell:
    """A shell that can only copy a log."""

    def run(self, command: str, *, check: bool = True) -> Any:
        """Finds no library for faults."""
        return SimpleNamespace(status=1)

    def get(self, remote: str, local: Path) -> None:
        """Writes a log; n2 has none."""
        if local.parent.name == "n2":
            raise FileNotFoundError(remote)
        local.write_text("fine\n")


class Cluster:
    """A cluster of three names."""

    name = "three"
    nodes = NODES

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Does nothing."""
        yield

    def remote(self, node: Node) -> Any:
        """Returns the shell."""
        return Shell()


class Writes:
    """A workload that writes one value for ever, and reads it at the end."""

    name = "writes"

    def generator(self, *, seed: int, streams: int) -> Any:
        """Writes."""
        return limit(10**9, Invocation("write", 1, "k"))

    def final_generator(self, *, history: Any, node: Node) -> Any:
        """Reads once."""
        return limit(1, Invocation("read", None, "k", phase="final"))


class Nemesis:
    """Records its calls, and injects nothing."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    async def begin(self, fault: PlannedFault) -> Begun:
        """Begins."""
        self.calls.append(f"begin {fault.id}")
        return Begun(targets=["n1"])

    async def look_again(self, fault: PlannedFault) -> Proof | None:
        """Looks no second time."""
        return None

    async def prove(self, fault: PlannedFault) -> Proof:
        """Proves."""
        return Proof(effective=True, reason="seen")

    async def end(self, fault: PlannedFault) -> None:
        """Ends."""
        self.calls.append(f"end {fault.id}")

    async def heal(self) -> None:
        """Heals."""
        self.calls.append("heal")

    async def prepare(self, plan: Sequence[PlannedFault]) -> None:
        """Prepares."""
        self.calls.append("prepare")

    async def release(self) -> None:
        """Releases."""
        self.calls.append("release")


class Screen:
    """Records the progress; sends this process the signal `number` when the phase that begins with `at` begins."""

    def __init__(self, at: str | None = None, number: int = signal.SIGINT) -> None:
        self.phases: list[str] = []
        self.problems: list[str] = []
        self._at = at
        self._number = number

    def phase(self, text: str) -> None:
        """Records a phase."""
        self.phases.append(text)
        if self._at is not None and text.startswith(self._at):
            self._at = None
            os.kill(os.getpid(), self._number)

    def workload_began(self, watch: Any, clock: Any) -> None:
        """Does nothing."""

    def problem(self, text: str) -> None:
        """Records a problem."""
        self.problems.append(text)


def perform(
    system: Registers,
    tmp_path: Path,
    *,
    carry_out: Callable[[Any], RunResult] = run_virtual,
    screen: Screen | None = None,
    **changes: Any,
) -> tuple[RunResult, HistoryWriter, Screen]:
    """Runs a test of two seconds with one fault; in virtual time, if `carry_out` is not another runner."""
    plan = (PlannedFault(id=0, kind="kill", target=AllNodes(), start_s=0.5, end_s=1.0),)
    values: dict[str, Any] = {
        "seed": 1,
        "cluster": Cluster(),
        "system": system,
        "workload": Writes(),
        "nemesis": Nemesis(system.calls),
        "plan": plan,
        "load": ClosedLoop(concurrency=2),
        "time_limit_s": 2.0,
        "operation_timeout_s": 1.0,
    }
    history = HistoryWriter(tmp_path / "history.jsonl", {})
    screen = Screen() if screen is None else screen
    try:
        result = carry_out(
            go(Test(**(values | changes)), history=history, logs_dir=tmp_path / "nodes", observer=screen)
        )
    finally:
        history.close()
    return result, history, screen


def test_a_run_goes_through_all_phases(tmp_path: Path) -> None:
    """The phases are in the right order."""
    system = Registers()

    result, history, _ = perform(system, tmp_path)

    assert system.calls[0] == "heal"
    assert [call for call in system.calls if call in {"begin 0", "end 0", "heal"}] == [
        "heal",
        "begin 0",
        "end 0",
        "heal",
    ]
    assert system.calls[-4:] == ["stop n1", "stop n2", "stop n3", "release"]
    assert system.calls.index("install n3") < system.calls.index("prepare") < system.calls.index("start n1")
    assert result.error is None
    assert not result.interrupted
    assert [list(fault.targets) for fault in result.faults] == [["n1"]]
    assert result.recovery is not None
    assert not result.recovery.restarted
    assert result.replicas is not None
    assert result.replicas.compared == {9: ["n1", "n2", "n3"]}
    assert result.workload_s == pytest.approx(2.0, abs=0.2)
    writes = [op for op in history.ops if op.f == "write" and op.type is OpType.OK]
    assert len(writes) >= 36  # two workers, ten a second each, two seconds
    finals = [op for op in history.ops if op.phase == "final" and op.type is OpType.OK]
    assert [op.node for op in finals] == ["n1", "n2"]


def test_a_node_that_cannot_lead_is_left_out_of_the_final_reads(tmp_path: Path) -> None:
    """All its reads would fail. The result has the reason, and the run continues."""
    result, _, screen = perform(Registers(), tmp_path)

    assert result.final_reads == FinalReads(
        through=("n1", "n2"), left_out={"n3": "did not become leader in 15 s"}, missing=None
    )
    assert any("n3 did not become leader" in problem for problem in screen.problems)
    assert result.problems


def finals(history: HistoryWriter) -> list[str | None]:
    """Returns the nodes that answered final reads, in order."""
    return [op.node for op in history.ops if op.phase == "final" and op.type is OpType.OK]


def test_the_node_that_leads_is_read_first(tmp_path: Path) -> None:
    """A change of the leader may not succeed in time."""
    system = Registers()
    system.leader = "n2"

    result, history, _ = perform(system, tmp_path)

    assert finals(history) == ["n2", "n1"]
    assert result.final_reads is not None
    assert result.final_reads.through == ("n2", "n1")


def test_the_test_bounds_its_final_reads(tmp_path: Path) -> None:
    """The reads through a node, and its attempt to lead, have their own deadlines."""

    class ForEver(Writes):
        def final_generator(self, *, history: Any, node: Node) -> Any:
            return limit(10**9, Invocation("read", None, "k", phase="final"))

    result, history, _ = perform(
        Registers(), tmp_path, workload=ForEver(), final_reads_timeout_s=4.0, lead_timeout_s=3.0
    )

    times_s = [op.time_ns / 1e9 for op in history.ops if op.phase == "final" and op.node == "n2"]
    assert 3.8 <= max(times_s) - min(times_s) <= 4.2
    assert result.final_reads is not None
    assert result.final_reads.left_out == {"n3": "did not become leader in 3 s"}


def test_if_reads_need_no_leader_every_node_is_read(tmp_path: Path) -> None:
    """No node is asked to lead."""
    system = Registers()
    system.reads_need_leader = system.moves_leadership = False
    system.leader = None

    result, history, screen = perform(system, tmp_path)

    assert finals(history) == ["n1", "n2", "n3"]
    assert result.final_reads == FinalReads(through=("n1", "n2", "n3"))
    assert not any(call.startswith("lead ") for call in system.calls)
    assert not any("leader" in problem for problem in screen.problems)


def test_if_the_leadership_cannot_be_moved_the_leader_is_read(tmp_path: Path) -> None:
    """The other nodes are left out, each with the reason."""
    system = Registers()
    system.moves_leadership = False
    system.leader = "n2"

    result, history, _ = perform(system, tmp_path)

    assert finals(history) == ["n2"]
    assert result.final_reads is not None
    assert result.final_reads.through == ("n2",)
    assert result.final_reads.left_out == dict.fromkeys(
        ("n1", "n3"), "does not lead; n2 does, and registers does not move the leadership"
    )
    assert not any(call.startswith("lead ") for call in system.calls)
    assert history.ops[-1].time_ns < 4_000_000_000  # the workload has 2 s


def test_if_no_node_leads_the_final_reads_are_missing_with_the_reason(tmp_path: Path) -> None:
    """No node was read."""
    system = Registers()
    system.moves_leadership = False
    system.leader = None

    result, history, _ = perform(system, tmp_path)

    assert not finals(history)
    assert result.final_reads is not None
    assert result.final_reads.missing is not None
    assert "n1 does not lead, nor does any other node" in result.final_reads.missing


def test_a_run_without_final_reads_has_no_result_of_them(tmp_path: Path) -> None:
    """The test has none."""
    result, history, _ = perform(Registers(), tmp_path, final_reads=False)

    assert result.final_reads is None
    assert not finals(history)


def test_replicas_that_cannot_be_dumped_are_not_compared(tmp_path: Path) -> None:
    """The system does not dump them."""
    system = Registers()
    system.dumps_replicas = False

    assert perform(system, tmp_path)[0].replicas is None


@pytest.mark.parametrize("preloads", [True, False])
def test_a_start_that_fails_under_libfaketime_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, preloads: bool
) -> None:
    """The error says that the library may be the cause, and what to do; without the library it does not."""

    class Dead(Registers):
        """A system that does not start."""

        def start(self, node: Node, role: str | None = None) -> None:
            """Fails on n2."""
            if node.name == "n2":
                raise NodeError("n2", "the process 'r' could not be launched: symbol lookup error")

    monkeypatch.setattr(
        Shell, "run", lambda self, command, **_: SimpleNamespace(status=0 if preloads else 1, stdout="")
    )
    with pytest.raises(NodeError, match="could not be launched") as failed:
        perform(Dead(), tmp_path)
    notes = " ".join(failed.value.__notes__)
    assert ("faketime = False" in notes) is preloads
    assert ("--nemesis all,-clock-skew,-clock-strobe" in notes) is preloads


def test_a_node_without_the_service_takes_no_part_in_the_comparison(tmp_path: Path) -> None:
    """n3 does not run it, so n1 and n2 decide, and the part is valid."""

    class Partly(Registers):
        """The registers run on n1 and n2."""

        @property
        def nodes(self) -> Sequence[Node]:
            """Returns n1 and n2."""
            return self.cluster.nodes[:2]

    replicas = perform(Partly(), tmp_path)[0].replicas
    assert replicas is not None
    assert replicas.applied == {"n1": 9, "n2": 9}
    assert states.replicas_equal(replicas).verdict is Verdict.VALID


def test_nodes_are_watched_until_the_replicas_were_compared(tmp_path: Path) -> None:
    """The last poll is from the last seconds of the run, on the history's clock."""
    result, history, _ = perform(Registers(), tmp_path)

    end_ns = history.ops[-1].time_ns + 15_000_000_000  # after the last final read n3 is waited for
    assert result.workload_s < 3
    assert {seen.node for seen in result.sightings} == {"n1", "n2", "n3"}
    assert all(end_ns - 2_000_000_000 < seen.last_ns <= end_ns + 1_000_000_000 for seen in result.sightings)
    assert len(result.positions.time_ns) == len(result.positions.applied["n2"])
    assert end_ns - 2_000_000_000 < result.positions.time_ns[-1]


class LostSwitch(Nemesis):
    """A nemesis whose switch has ended by itself when the run heals."""

    async def heal(self) -> None:
        """Heals, and tells that the nodes had no network."""
        await super().heal()
        if "begin 0" in self.calls:
            raise SwitchEnded("the switch ended")


def test_a_run_whose_switch_ended_breaks_off(tmp_path: Path) -> None:
    """Its network was no network, so it observes no recovery and no final reads, and cannot be valid; its records stay."""
    system = Registers()
    result, history, screen = perform(system, tmp_path, nemesis=LostSwitch(system.calls))
    assert result.error == "the switch ended"
    assert "the switch ended" in screen.problems
    assert result.recovery is None
    assert result.final_reads is None or result.final_reads.missing
    assert len(history.ops) > 10


def test_an_error_after_healing_keeps_the_records(tmp_path: Path) -> None:
    """The result has the error; the logs are collected and the processes stopped."""

    class Dumb(Registers):
        """Fails to dump its state."""

        async def replica(self, node: Node, timeout_s: float) -> ReplicaState:
            """Fails."""
            raise ValueError("no such registers")

    system = Dumb()
    result, history, _ = perform(system, tmp_path)

    assert result.error is not None
    assert result.error.startswith("system registers: replica (")
    assert result.error.endswith(") failed: ValueError: no such registers; correct the system")
    assert finals(history) == ["n1", "n2"]
    assert result.replicas is None
    assert result.logs
    assert system.calls[-2:] == ["stop n3", "release"]


# The shell ends when the process that it leaves has its own name.
LEAVES = 'setsid sleep 405 & until [ "$(cat /proc/$!/comm)" = sleep ]; do sleep 0.01; done'


def leaving(before: Callable[[Registers], object]) -> Registers:
    """Returns a system whose installation leaves a process in a session of its own on this machine."""

    class Leaving(Registers):
        def install(self, node: Node) -> None:
            if node.name == "n1":
                subprocess.run(["sh", "-c", LEAVES], check=True)
            before(self)
            super().install(node)

    return Leaving()


def test_a_process_that_the_installation_leaves_is_named_and_ended(tmp_path: Path) -> None:
    """In virtual time too: the process is a real one."""
    result, _, screen = perform(leaving(lambda _: None), tmp_path)

    (problem,) = (text for text in result.problems if "left process" in text)
    assert problem in screen.problems
    assert re.fullmatch(
        r"the code of registers left process \d+ \(`sleep 405`\) on this machine; Labrys has ended it", problem
    )
    assert not [process for process in below() if "sleep\x00405" in Path(f"/proc/{process.pid}/cmdline").read_text()]


def test_a_process_that_a_failed_installation_leaves_is_ended(tmp_path: Path) -> None:
    """The run ends with the error of the installation."""
    screen = Screen()

    def fails(system: Registers) -> None:
        system.broken_install = True

    with pytest.raises(InfrastructureError, match="no space left"):
        perform(leaving(fails), tmp_path, screen=screen)
    assert any("(`sleep 405`)" in problem for problem in screen.problems)


def test_logs_that_a_node_never_wrote_are_no_problem(tmp_path: Path) -> None:
    """The existing logs are collected."""
    result, _, _ = perform(Registers(), tmp_path)

    assert {node: [path.name for path in paths] for node, paths in result.logs.items()} == {
        "n1": ["registers.log"],
        "n2": [],
        "n3": ["registers.log"],
    }


def test_the_logs_of_a_run_have_the_zone_that_its_processes_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node has its own zone, unless the log of a process has another one."""
    clock = NodeClock(offset_ns=0, uncertain_ns=0, zone_s=3600)
    monkeypatch.setattr("harness.run.read_clocks", lambda *_: ({"n1": clock, "n2": clock}, {"n3": "no answer"}))
    east = LogClock(path="/l", pattern="(.*)", form="%Y", resolution_s=1.0, utc_offset_s=28_800)
    of: Any = {"n1": [SimpleNamespace(log_clock=east)], "n2": [SimpleNamespace(log_clock=None)]}
    monkeypatch.setattr(Registers, "daemons", lambda _, node: of[node.name])
    result, _, _ = perform(Registers(), tmp_path)
    assert result.clocks is not None
    assert {name: clock.zone_s for name, clock in result.clocks.nodes.items()} == {"n1": 28_800, "n2": 3600}


def test_a_system_that_does_not_recover_is_restarted_once(tmp_path: Path) -> None:
    """Its nodes say that they serve, and answer nothing. The second wait succeeds after every node was killed and started."""
    system = Registers()
    system.dead = 1

    result, history, _ = perform(system, tmp_path)

    assert result.recovery is not None
    assert result.recovery.restarted
    assert result.recovery.error is None
    assert result.recovery.first_error is not None
    assert headline(result.recovery.first_error).startswith("within 30 s, none of ")
    assert sum(call.startswith("kill") for call in system.calls) == 3
    part = reached.recovered(result.recovery)
    assert part.verdict is Verdict.INVALID
    asked = [op for op in history.ops if op.phase == RECOVERY_PHASE and op.type is OpType.OK]
    assert asked
    assert min(op.time_ns for op in asked) > 30e9


def test_a_system_that_answers_nothing_has_not_recovered_whatever_it_says(tmp_path: Path) -> None:
    """The final reads are tried, a few through each node; the logs are collected and the processes stopped."""
    system = Registers()
    system.dead = 2

    result, history, _ = perform(system, tmp_path)

    assert result.recovery is not None
    assert result.recovery.error is not None
    assert "none of " in headline(result.recovery.error)
    assert reached.recovered(result.recovery).verdict is Verdict.INVALID
    assert result.replicas is None
    assert not [op for op in history.ops if op.phase == "final" and op.type is OpType.OK]
    assert result.final_reads is not None
    assert result.final_reads.through == ()
    assert "n1 answered none of 1 reads" in str(result.final_reads.missing)
    assert system.calls[-2:] == ["stop n3", "release"]
    assert result.logs


def test_what_a_system_says_of_itself_does_not_decide(tmp_path: Path) -> None:
    """Its clients are served, so it has recovered; the sentence has what it says."""
    system = Registers()
    system.unready = 10**6

    result, history, _ = perform(system, tmp_path)

    assert result.recovery is not None
    assert not result.recovery.restarted
    part = reached.recovered(result.recovery)
    assert part.verdict is Verdict.VALID
    assert part.reason.endswith("By its own words: n2 sees no leader.")
    assert finals(history) == ["n1", "n2"]


def test_nodes_that_stay_out_are_named_and_the_others_are_read(tmp_path: Path) -> None:
    """A quorum serves, so the system has recovered. A loss is decided through the nodes that answer."""
    system = Registers()
    system.reads_need_leader = system.moves_leadership = False
    system.lacking = {"n3": "runs no process any more"}
    system.silent = frozenset({"n3"})

    result, history, _ = perform(system, tmp_path, load=ClosedLoop(concurrency=3))

    assert result.recovery is not None
    assert result.recovery.served == ("n1", "n2")
    assert result.recovery.quorum == 2
    part = reached.recovered(result.recovery)
    assert part.verdict is Verdict.VALID
    assert "clients at 2 of 3 nodes got answers" in part.reason
    assert "Nodes that stayed out: n3 runs no process any more." in part.reason
    assert finals(history) == ["n1", "n2"]
    assert result.final_reads == FinalReads(through=("n1", "n2"), left_out={"n3": "answered none of 1 reads"})
    assert result.replicas is not None
    assert states.replicas_equal(result.replicas).verdict is Verdict.VALID


@pytest.mark.parametrize(("damaging", "verdict"), [((), Verdict.INVALID), (("kill",), Verdict.VALID)])
def test_every_node_returns_if_the_system_promises_it(
    tmp_path: Path, damaging: tuple[str, ...], verdict: Verdict
) -> None:
    """One that stays out is a finding, unless a fault damaged its data."""
    system = Registers()
    system.every_node_returns = "A follower gets from the leader what it lacks."
    system.lacking = {"n1": "is 1000 entries behind"}

    result, _, _ = perform(system, tmp_path, damaging=frozenset(damaging))

    part = reached.recovered(result.recovery)
    assert part.verdict is verdict
    assert "n1" in str(part.details["out"])


def test_too_few_nodes_are_no_quorum(tmp_path: Path) -> None:
    """Clients at one of three nodes are served, and the system promises a majority; its own quorum of one suffices."""

    class OfOne(Registers):
        """Promises to serve at one node."""

        def quorum(self) -> int:
            """Returns one."""
            return 1

    for kind, verdict in ((Registers, Verdict.INVALID), (OfOne, Verdict.VALID)):
        system = kind()
        system.silent = frozenset({"n2", "n3"})
        (tmp_path / verdict).mkdir()
        result, _, _ = perform(system, tmp_path / verdict, load=ClosedLoop(concurrency=3))
        part = reached.recovered(result.recovery)
        assert part.verdict is verdict
        assert (verdict is Verdict.VALID) or "only clients at n1 got answers, and the quorum is 2 of 3" in part.reason


def test_reads_alone_are_no_recovery(tmp_path: Path) -> None:
    """Changes succeeded before the fault, so they must succeed after it."""

    class Both(Writes):
        """Reads and writes in turn."""

        final = ("read",)

        def generator(self, *, seed: int, streams: int) -> Any:
            """Returns both."""
            turns = itertools.count()
            return limit(10**9, lambda _: Invocation("read" if next(turns) % 2 else "write", 1, "k"))

    class ReadOnly(Registers):
        """Takes no write after the fault."""

        def is_dead(self, node: Node) -> bool:
            """Is not."""
            return False

        def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
            """Returns a client whose writes fail from the end of the fault on."""
            return Refusing(self, node)

    class Refusing(RegisterClient):
        """Refuses writes."""

        async def invoke(self, invocation: Invocation) -> Ok | Fail:
            """Refuses a write after the fault."""
            if invocation.f == "write" and "end 0" in self._system.calls:
                await asyncio.sleep(0.1)
                return Fail("read-only")
            return await super().invoke(invocation)

    result, _, _ = perform(ReadOnly(), tmp_path, workload=Both(), time_limit_s=4.0)

    part = reached.recovered(result.recovery)
    assert part.verdict is Verdict.INVALID
    assert "no change of a client succeeded" in part.reason


def test_what_never_worked_is_not_accused(tmp_path: Path) -> None:
    """No client was ever answered, e.g. because of a mistake in the client. Nothing shows whether the system works again."""

    class Mute(Registers):
        """Answers nothing."""

        def is_dead(self, node: Node) -> bool:
            """Is, from the beginning."""
            return True

    system = Mute()
    result, _, _ = perform(system, tmp_path)

    part = reached.recovered(result.recovery)
    assert part.verdict is Verdict.UNKNOWN
    assert part.reason.startswith("No client got an answer during the workload, nor after it")
    assert not any(call.startswith("kill") for call in system.calls)


def test_a_workload_that_is_over_asks_nobody(tmp_path: Path) -> None:
    """Then only the nodes say that they serve, which is no proof."""

    class Few(Writes):
        """Ends during the fault."""

        def generator(self, *, seed: int, streams: int) -> Any:
            """Returns twelve writes."""
            return limit(12, Invocation("write", 1, "k"))

    result, _, _ = perform(Registers(), tmp_path, workload=Few())

    assert result.recovery is not None
    assert reached.recovered(result.recovery).verdict is Verdict.UNKNOWN


def test_a_failed_installation_is_raised_after_cleaning_up(tmp_path: Path) -> None:
    """The nodes are healed and stopped before."""
    system = Registers()
    system.broken_install = True

    with pytest.raises(InfrastructureError, match="no space left"):
        perform(system, tmp_path)

    assert system.calls.count("heal") == 2
    assert system.calls[-2:] == ["stop n3", "release"]


def test_an_interruption_does_not_wait_until_the_system_is_ready(tmp_path: Path) -> None:
    """The wait is cancelled, and the nodes are healed and stopped."""

    class NeverReady(Registers):
        """Gets Ctrl-C while its start hangs."""

        async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
            """Waits for an hour."""
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.sleep(3600)
            finally:
                self.calls.append("left")

    system = NeverReady()
    with pytest.raises(InterruptedEarly, match="before its workload began"):
        perform(system, tmp_path, carry_out=asyncio.run)
    assert "left" in system.calls
    assert system.calls[-2:] == ["stop n3", "release"]


@pytest.mark.parametrize("hook", ["install", "start", "until_ready", "statuses", "replica", "log_files", "stop"])
def test_a_system_that_calls_exit_does_not_end_the_run(tmp_path: Path, hook: str) -> None:
    """With 0 it would pass as valid. Nodes are healed, and the error names the method."""

    class Exits(Registers):
        """Calls `sys.exit(0)` in one method."""

    async def ends_later(*_: Any, **__: Any) -> None:
        sys.exit(0)

    def ends(*_: Any, **__: Any) -> None:
        sys.exit(0)

    setattr(Exits, hook, ends_later if hook in {"until_ready", "statuses", "replica"} else ends)
    system, told = Exits(), ""
    try:
        result, _, screen = perform(system, tmp_path, carry_out=asyncio.run, time_limit_s=0.2, lead_timeout_s=0.1)
        told = f"{result.error} {screen.problems}"
    except PluginError as error:
        told = str(error)
    assert "sys.exit(0)" in told
    assert system.calls.count("heal") == 2


BEFORE = ("installing", "starting")
AFTER = ("workload", "healing", "waiting for recovery", "final reads", "comparing", "collecting", "stopping")
NUMBERS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("phase", [*BEFORE, *AFTER])
def test_a_signal_in_any_phase_ends_the_run_as_an_interrupted_one(tmp_path: Path, phase: str, number: str) -> None:
    """Before the workload there is nothing to judge; after it the history is kept. The nodes are healed and stopped."""
    system, screen = Registers(), Screen(phase, NUMBERS[number])
    if phase in BEFORE:
        with pytest.raises(InterruptedEarly) as raised:
            perform(system, tmp_path, carry_out=asyncio.run, screen=screen)
        assert raised.value.exit_code is ExitCode.INTERRUPTED
    else:
        result, history, _ = perform(
            system, tmp_path, carry_out=asyncio.run, screen=screen, time_limit_s=0.2, lead_timeout_s=0.1
        )
        assert result.interrupted
        assert result.error is None
        assert RunOutcome.of((), interrupted=result.interrupted).exit_code is ExitCode.INTERRUPTED
        assert phase == "workload" or history.ops
    assert system.calls.count("heal") == 2
    assert system.calls[-2:] == ["stop n3", "release"]


class Deaf(Registers):
    """Ignores each cancellation of one of its methods."""

    def __init__(self, hook: str) -> None:
        super().__init__()
        self._hook = hook

    async def _hang(self, hook: str, *, now: bool = True) -> None:
        while hook == self._hook and now:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Hangs at the first call, or at the second."""
        await super().until_ready(nodes, timeout_s)
        await self._hang("first", now=self.calls.count("ready?") == 1)
        await self._hang("second", now=self.calls.count("ready?") > 1)

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Hangs."""
        await self._hang("statuses")
        return await super().statuses(node, timeout_s)

    async def replica(self, node: Node, timeout_s: float) -> ReplicaState:
        """Hangs."""
        await self._hang("replica")
        return await super().replica(node, timeout_s)


@pytest.mark.parametrize(
    ("hook", "phase"),
    [("first", "starting"), ("second", "waiting for recovery"), ("statuses", "workload"), ("replica", "comparing")],
)
def test_a_system_that_ignores_each_cancellation_cannot_keep_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hook: str, phase: str
) -> None:
    """One signal ends the run within the limits, and the end of the loop does not wait for the method."""
    monkeypatch.setattr("harness.run.STAGE_GRACE_S", 0.2)
    monkeypatch.setattr("harness.run.GRACE_S", 0.2)
    began_s = time.monotonic()
    with pytest.raises(InterruptedEarly) if hook == "first" else contextlib.nullcontext():
        perform(Deaf(hook), tmp_path, carry_out=asyncio.run, screen=Screen(phase), time_limit_s=0.2, lead_timeout_s=0.1)
    assert time.monotonic() - began_s < 10


def test_a_system_that_never_says_whether_it_is_ready_is_given_up(tmp_path: Path) -> None:
    """The time limit is the system's to keep; a margin later, Labrys keeps it, in virtual time too."""
    with pytest.raises(
        InfrastructureError, match="until_ready of the system registers did not end within its time limit"
    ):
        perform(Deaf("first"), tmp_path)


@pytest.mark.parametrize(
    ("hook", "error"),
    [("second", None), ("replica", "replica of the system did not end within its time limit of 5 s")],
)
def test_a_system_that_hangs_after_the_workload_is_given_up(tmp_path: Path, hook: str, error: str | None) -> None:
    """The time limit of each method is kept with a margin, in virtual time too. Clients decide whether it has recovered."""
    result, _, _ = perform(Deaf(hook), tmp_path)
    assert result.recovery is not None
    assert result.error == error


def test_an_error_in_the_workload_keeps_the_records(tmp_path: Path) -> None:
    """The result has the error, the nodes are healed, and the logs are collected."""

    class Broken(Writes):
        """Fails at the tenth question."""

        def generator(self, *, seed: int, streams: int) -> Any:
            """Answers nine times."""
            asked = iter(range(9))

            def answer(asker: Any) -> Invocation:
                next(asked)
                return Invocation("write", 1, "k")

            return limit(10**9, answer)

    system = Registers()

    result, history, _ = perform(system, tmp_path, workload=Broken())

    assert result.error is not None
    assert "StopIteration" in result.error
    assert len(history.ops) >= 9
    assert system.calls.count("heal") == 2
    assert result.recovery is None
    assert result.final_reads == FinalReads(missing="The run ended before its final reads.")
    assert result.logs
