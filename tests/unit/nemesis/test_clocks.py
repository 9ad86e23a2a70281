"""A clock fault is proven by the process itself, and by nothing that only stands beside it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.capabilities import CLOCK, NAMES, Capabilities
from harness.clock import run_virtual
from harness.daemon import Daemon
from harness.declare import NoOptions
from harness.errors import InputError
from harness.faults import PlannedFault, Proof
from harness.node import Node
from harness.process_clock import ClockReading
from harness.system import OneServiceSystem
from nemesis.conductor import Conductor
from nemesis.errors import FaultError
from tests.unit.nemesis.test_binaries import GO, INTERPRETER, LOADED, NOTE, elf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.cluster import Cluster
    from harness.system import System

N1 = Node(name="n1", address="192.0.2.1")
SHARED = Capabilities(available=frozenset(NAMES) - {CLOCK}, missing={CLOCK: "shared"})
DYNAMIC, GO_PROGRAM = elf(INTERPRETER, LOADED, NOTE), elf(INTERPRETER, LOADED, NOTE, note=GO)


class Shell:
    """A shell on a node that has the file with the offset, and one process."""

    node = "n1"

    def __init__(self, program: bytes, *, loaded: bool = True) -> None:
        self.program = program
        self.loaded = loaded
        self.offset = "+0"

    def run(self, command: str, **_: Any) -> Any:
        """Sets the offset, prints it, or looks at the program."""
        program = f"{self.program.hex()}\nunmarked\n"
        if "/maps" in command:
            return SimpleNamespace(stdout=f"{'loaded' if self.loaded else 'bare'}\n{program}", status=0)
        if "command -v" in command:
            return SimpleNamespace(stdout=program, status=0)
        if "clock-offset-" in command:
            return SimpleNamespace(stdout=f"{self.offset}\n", status=0)
        if "undo" in command and "set -e" not in command:
            self.offset = "+0"
        elif "\nat " in command and "setsid" not in command:
            self.offset = command.rpartition("\nat ")[2].split()[0]
        return SimpleNamespace(stdout="", status=0)


class Server(OneServiceSystem):
    """A system with one process; `said_s` is what the process says about its clock, by the offset that the node sets."""

    name = "server"
    role = "r"

    def __init__(self, shell: Shell, said_s: Callable[[float], float | None] | None, *, doubt_s: float = 0.0) -> None:
        super().__init__(cast("Cluster", SimpleNamespace(nodes=(N1,))), NoOptions(), "none")
        self.shell = shell
        self.said_s = said_s
        self.doubt_s = doubt_s

    def install(self, node: Node) -> None:
        """Has nothing to install."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no clients."""
        raise NotImplementedError

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready at once."""

    def daemon(self, node: Node) -> Daemon:
        """Returns the process."""
        return Daemon(role="r", argv=("server",), pattern="^server", ports=(1,), data_dir="/d", log_files=("/l",))

    def process_states(self, node: Node, role: str | None = None) -> dict[str, tuple[int, str]]:
        """Returns its state."""
        return {"r": (7, "S")}

    def tells_time(self) -> bool:
        """Returns whether it says its time at all."""
        return self.said_s is not None

    async def clock(self, node: Node, timeout_s: float) -> ClockReading | None:
        """Returns its word, after a while."""
        await asyncio.sleep(0.1)
        said_s = None if self.said_s is None else self.said_s(float(self.shell.offset))
        if said_s is None:
            return None
        return ClockReading(least_s=said_s - self.doubt_s, most_s=said_s + self.doubt_s, source="its word")


def carried_out(system: Server, kind: str = "clock-skew", *, can: Capabilities = SHARED, **options: Any) -> Proof:
    """Begins, proves and ends a fault in virtual time; returns the proof."""
    cluster = SimpleNamespace(nodes=(N1,), capabilities=lambda: {"n1": can}, remote=lambda node: system.shell)
    conductor = Conductor(cluster=cast("Cluster", cluster), system=system)
    fault = PlannedFault(id=1, kind=kind, target=["n1"], start_s=0.0, end_s=9.0, options=options)

    async def work() -> Proof:
        await conductor.begin(fault)
        proof = await conductor.prove(fault)
        await conductor.end(fault)
        return proof

    return run_virtual(work())


def test_a_process_that_says_the_wanted_time_is_a_proof() -> None:
    """It says another time than the machine, by the offset of the fault."""
    proof = carried_out(Server(Shell(DYNAMIC), lambda offset_s: offset_s, doubt_s=0.002), offset_ms=200_000)
    assert proof.effective
    assert proof.reason == "n1's clock is +200.000 s off by its word, expected +200.000 s."
    assert proof.measured["said_by"] == {"n1": "its word"}


def test_a_process_that_keeps_the_true_time_has_no_fault() -> None:
    """The library is in its memory and the offset is set, but the process reads its clock elsewhere."""
    proof = carried_out(Server(Shell(DYNAMIC), lambda offset_s: 0.0, doubt_s=0.002), offset_ms=200_000)
    assert not proof.effective
    assert proof.reason == "n1's clock is +0.000 s off by its word, expected +200.000 s."


@pytest.mark.parametrize(
    ("said_s", "reason"),
    [
        (
            None,
            "n1's process never says its time, so nobody saw the effect; docs/guide/new-system.md says how it can (`clock`).",
        ),
        (lambda offset_s: None, "n1's process did not say its time during the proof."),
    ],
)
def test_a_silent_process_is_no_proof(said_s: Callable[[float], float | None] | None, reason: str) -> None:
    """Nothing is proven that nobody observed, even if the library is in the memory of the process."""
    proof = carried_out(Server(Shell(DYNAMIC), said_s), offset_ms=200_000)
    assert not proof.effective
    assert proof.reason == reason


@pytest.mark.parametrize(("offset_ms", "effective"), [(3000, True), (-3000, True), (400, False)])
def test_an_imprecise_word_must_exclude_the_true_time(offset_ms: int, *, effective: bool) -> None:
    """A log with whole seconds cannot prove a jump of less than its doubt."""
    proof = carried_out(Server(Shell(DYNAMIC), lambda offset_s: offset_s, doubt_s=0.6), offset_ms=offset_ms)
    assert proof.effective is effective


def test_imprecise_words_together_are_precise() -> None:
    """Each word leaves a range, and only what fits all of them counts."""
    phases = iter([0.0, 0.45, -0.45] * 20)
    system = Server(Shell(DYNAMIC), lambda offset_s: offset_s + next(phases), doubt_s=0.5)
    proof = carried_out(system, offset_ms=400)
    assert proof.effective, proof.reason


@pytest.mark.parametrize(
    ("shell", "reason"),
    [
        (Shell(GO_PROGRAM), "is a Go program, which reads the clock without the C library"),
        (Shell(elf(LOADED)), "is linked statically"),
        (Shell(DYNAMIC, loaded=False), "libfaketime is not in its process"),
    ],
)
def test_a_process_that_libfaketime_does_not_reach_is_refused(shell: Shell, reason: str) -> None:
    """The fault does not begin, whatever the process says."""
    with pytest.raises(FaultError, match=reason):
        carried_out(Server(shell, lambda offset_s: offset_s), offset_ms=200_000)
    assert shell.offset == "+0"


@pytest.mark.parametrize(("program", "reason"), [(GO_PROGRAM, "server, the r, is a Go program"), (DYNAMIC, None)])
def test_a_run_with_clock_faults_of_a_go_program_is_refused(program: bytes, reason: str | None) -> None:
    """The program on the node says it before the system starts."""
    shell = Shell(program)
    cluster = SimpleNamespace(nodes=(N1,), capabilities=lambda: {"n1": SHARED}, remote=lambda node: shell)
    conductor = Conductor(cluster=cast("Cluster", cluster), system=cast("System", Server(shell, None)))
    fault = PlannedFault(id=1, kind="clock-skew", target=["n1"], start_s=0.0, end_s=9.0)
    if reason is None:
        run_virtual(conductor.prepare([fault]))
        return
    with pytest.raises(InputError, match=reason) as refused:
        run_virtual(conductor.prepare([fault]))
    assert "--nemesis all,-clock-skew,-clock-strobe" in str(refused.value)


def test_a_strobe_needs_both_times_from_the_process() -> None:
    """One process sees the jumps, and one keeps the true time."""
    turns = iter([0.0, 5.0] * 50)
    seen = carried_out(
        Server(Shell(DYNAMIC), lambda offset_s: next(turns)), "clock-strobe", delta_ms=5000, period_ms=40
    )
    assert seen.effective
    assert "n1's clock was ahead in 6 of 12 readings" in seen.reason
    blind = carried_out(Server(Shell(DYNAMIC), lambda offset_s: 0.0), "clock-strobe", delta_ms=5000, period_ms=40)
    assert not blind.effective
    silent = carried_out(Server(Shell(DYNAMIC), None), "clock-strobe", delta_ms=5000, period_ms=40)
    assert not silent.effective
    assert "never says its time" in silent.reason


@pytest.mark.parametrize(("apart_s", "effective"), [(500.0, True), (0.0, True), (None, False)])
def test_a_machine_with_another_time_than_this_one_is_no_fault(apart_s: float | None, *, effective: bool) -> None:
    """The process of a role is asked before the fault too, if its machine has a clock of its own."""
    shell = Shell(DYNAMIC)

    def said_s(offset_s: float) -> float:
        return offset_s + apart_s if apart_s is not None else 500.0  # the last process does not see the offset

    proof = carried_out(
        Server(shell, said_s, doubt_s=0.002), can=Capabilities(available=frozenset(NAMES)), role="r", offset_ms=500_000
    )
    assert proof.effective is effective, proof.reason


def test_a_fault_is_not_healed_while_the_process_says_so() -> None:
    """The offset is taken away, but the process still says the other time."""
    with pytest.raises(FaultError, match=r"its clock is still \+5\.000 s off"):
        carried_out(Server(Shell(DYNAMIC), lambda offset_s: 5.0), offset_ms=5000)
