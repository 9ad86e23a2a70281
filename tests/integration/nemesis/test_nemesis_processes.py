"""Kills and pauses on real nodes, and a wrong pid file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from harness.healing import CHAIN
from nemesis.errors import FaultError
from tests.integration.nemesis.bench import HOME, ORDER, planned

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.faults import PlannedFault, Proof
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


def test_a_killed_process_is_gone_and_comes_back_with_another_pid(bench: Bench) -> None:
    """The proof has the pid that vanished; after the end another pid serves."""
    before = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    begun, proof, _ = bench.through(planned("kill", ["n2", "n5"]))
    assert begun.targets == ("n2", "n5")
    assert proof.effective, proof.reason
    assert proof.measured["vanished"] == ["n2", "n5"]
    after = {node.name: bench.system.process_state(node) for node in bench.cluster.nodes}
    changed = {name for name in before if before[name][0] != after[name][0]}  # type: ignore[index]
    assert changed == {"n2", "n5"}


def test_a_leader_is_killed_by_role(bench: Bench) -> None:
    """The role becomes a name when the fault begins."""
    begun, proof, _ = bench.through(planned("leader-kill", "leader", order=ORDER))
    assert begun.targets == ("n1",)
    assert proof.effective


def test_the_next_leader_is_killed_after_the_first(bench: Bench) -> None:
    """A minority goes down, one leader after another; without a successor, only the leader is killed, with a reason."""
    bench.system.tell(bench.node("n2"), leader=True, term=0)
    try:
        begun, proof, _ = bench.through(planned("leaders-kill", "leader+minority", order=ORDER, after=0.2))
    finally:
        bench.system.tell(bench.node("n2"), leader=False, term=1)
    assert begun.targets == ("n1", "n2")
    assert proof.effective, proof.reason
    assert proof.measured["vanished"] == ["n1", "n2"]

    begun, proof, _ = bench.through(planned("leaders-kill", "leader+minority", order=ORDER, after=6.0))
    assert begun.targets == ("n1",)
    assert "no node reported in time that it leads" in proof.reason


def test_a_paused_process_is_stopped_and_goes_on_as_the_same(bench: Bench) -> None:
    """The kernel shows state T and no processor time; afterwards the same pid continues."""
    before = bench.system.process_state(bench.node("n4"))
    _, proof, ended = bench.through(planned("pause", ["n4"]))
    assert proof.effective, proof.reason
    assert ended is not None
    assert ended.effective, ended.reason
    assert ended.measured["stood_still"]["n4"]["ticks"] == 0
    assert "no processor time was used" in ended.reason
    assert proof.measured["states"]["n4"]["state"] == "T"
    assert bench.system.process_state(bench.node("n4"))[0] == before[0]  # type: ignore[index]


def twice(
    bench: Bench, fault: PlannedFault, between: Callable[[], object], then: Callable[[], object] = bool
) -> tuple[Proof, Proof | None]:
    """Begins and ends a fault.

    Args:
        bench: The cluster.
        fault: The fault.
        between: What happens between the two looks.
        then: What happens after them, before the end.

    Returns:
        The proof by the first look, and that by both.
    """

    async def work() -> tuple[Proof, Proof | None]:
        conductor = bench.conductor()
        await conductor.begin(fault)
        try:
            first = await conductor.prove(fault)
            await asyncio.to_thread(between)
            return first, await conductor.look_again(fault)
        finally:
            await asyncio.to_thread(then)
            await conductor.end(fault)

    first, second = bench.run(work())
    bench.assert_clean()
    return first, second


def test_a_kill_that_a_supervisor_undoes_has_no_proof(bench: Bench) -> None:
    """The process ran again before Labrys started it, so the kill is not proved for its whole time."""
    node = bench.node("n2")

    def start() -> None:
        bench.system.start(node)
        bench.run(bench.system.until_ready([node], 5.0))

    first, second = twice(bench, planned("kill", ["n2"]), start, lambda: bench.system.kill(node))
    assert first.effective, first.reason
    assert second is not None
    assert not second.effective
    assert "But at its end: n2 runs again, as pid " in second.reason


def test_a_pause_that_somebody_ends_has_no_proof(bench: Bench) -> None:
    """The process is not stopped any more at the second look."""
    pid = bench.system.process_state(bench.node("n4"))[0]  # type: ignore[index]
    first, second = twice(bench, planned("pause", ["n4"]), lambda: bench.shell("n4", f"kill -CONT {pid}"))
    assert first.effective, first.reason
    assert second is not None
    assert not second.effective
    assert "But at its end: n4 listens on its ports as pid " in second.reason


def test_a_cut_that_somebody_opens_has_no_proof(bench: Bench) -> None:
    """A system or an administrator that flushes the rules ends the partition; the second probes pass."""
    fault = planned("partition-random-node", ["n1"])
    flush = f"iptables -S | sed -n 's/^-N \\({CHAIN}[^ ]*\\).*/\\1/p' | xargs -r -n 1 iptables -F"
    first, second = twice(bench, fault, lambda: [bench.shell(name, flush) for name in bench.names])
    assert first.effective, first.reason
    assert second is not None
    assert not second.effective
    assert "But at its end: Packets still passed from " in second.reason


@pytest.mark.parametrize("kind", ["kill", "pause"])
def test_a_pid_file_that_lies_is_found_out(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that listens on the port counts, and not the system's pid file."""
    monkeypatch.setattr("nemesis.real.process.BACK_TIMEOUT_S", 1.0)
    other = bench.shell("n3", "setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $!").strip()
    true_pid = bench.shell("n3", f"cat {HOME}/pid; echo {other} > {HOME}/pid").strip()

    async def work() -> Proof:
        conductor = bench.conductor()
        await conductor.begin(planned(kind, ["n3"]))
        proof = await conductor.prove(planned(kind, ["n3"]))
        bench.shell("n3", f"echo {true_pid} > {HOME}/pid")
        if kind == "kill":
            with pytest.raises(FaultError, match=f"n3 still runs as pid {true_pid}"):
                await conductor.end(planned(kind, ["n3"]))
        else:
            await conductor.end(planned(kind, ["n3"]))
        return proof

    try:
        proof = bench.run(work())
    finally:
        bench.shell("n3", f"echo {true_pid} > {HOME}/pid; kill -9 {other} 2>/dev/null; true")
    assert not proof.effective
    assert f"pid {true_pid}" in proof.reason
    bench.assert_clean()


def test_a_node_that_does_not_come_back_is_a_finding(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed restart is an error with the node, what it lacks, and its last log lines."""
    monkeypatch.setattr("nemesis.real.process.BACK_TIMEOUT_S", 1.0)
    server = bench.shell("n4", f"cat {HOME}/server.py")

    async def work() -> None:
        conductor = bench.conductor()
        await conductor.begin(planned("kill", ["n4"]))
        bench.cluster.remote(bench.node("n4")).write(f"{HOME}/server.py", "raise SystemExit('no echo today')\n")
        with pytest.raises(
            FaultError, match=r"n4 has no process\n--- last lines of the logs of n4\n[^n]*no echo today"
        ):
            await conductor.end(planned("kill", ["n4"]))

    try:
        bench.run(work())
    finally:
        bench.cluster.remote(bench.node("n4")).write(f"{HOME}/server.py", server)
        bench.system.start(bench.node("n4"))
        asyncio.run(bench.system.until_ready([bench.node("n4")], 5))
    bench.assert_clean()


def test_a_kill_of_what_does_not_run_is_without_effect(bench: Bench) -> None:
    """If no process vanished, the fault is not effective."""
    bench.system.kill(bench.node("n5"))
    _, proof, _ = bench.through(planned("kill", ["n5"]))
    assert not proof.effective
    assert "n5: did not run before" in proof.reason


def test_leadership_goes_where_it_is_asked_to(bench: Bench) -> None:
    """The proof has the old and the new leader; a transfer to the leader itself is not effective."""
    try:
        begun, proof, _ = bench.through(planned("leadership-transfer", "follower", order=ORDER))
        assert begun.targets == ("n4",)
        assert proof.effective, proof.reason
        assert "n4 (term" in proof.reason
        _, proof, _ = bench.through(planned("leadership-transfer", ["n4"]))
        assert not proof.effective
    finally:
        for node in bench.cluster.nodes:
            bench.system.tell(node, leader=node.name == "n1", term=50)


def test_a_transfer_that_took_its_whole_time_is_looked_at_in_the_end(bench: Bench) -> None:
    """If there was no time for the proof, it is made at the end of the fault."""

    async def work() -> Proof | None:
        conductor = bench.conductor()
        await conductor.begin(planned("leadership-transfer", ["n3"]))
        return await conductor.end(planned("leadership-transfer", ["n3"]))

    try:
        proof = bench.run(work())
    finally:
        for node in bench.cluster.nodes:
            bench.system.tell(node, leader=node.name == "n1", term=1)
    assert proof is not None
    assert proof.effective, proof.reason
