"""Several faults at once, impossible targets, and healing by a new conductor."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest

from harness.faults import PlannedFault
from harness.healing import CHAIN
from harness.targets import Named
from nemesis.errors import FaultError
from tests.integration.nemesis.bench import ORDER, planned

if TYPE_CHECKING:
    from harness.faults import Begun, Proof
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


def test_overlapping_faults_heal_apart(bench: Bench) -> None:
    """The end of one partition leaves the other, and the proof considers the links that the other cuts."""
    first = PlannedFault(id=1, kind="partition-fixed", target=Named(("n1",)), start_s=0, end_s=9)
    second = PlannedFault(id=2, kind="partition-one-way", target=Named(("n2",)), start_s=0, end_s=9)
    third = PlannedFault(id=3, kind="pause", target=Named(("n3",)), start_s=0, end_s=9)

    async def work() -> None:
        conductor = bench.conductor()
        faults = [first, second, third]
        await asyncio.gather(*(conductor.begin(fault) for fault in faults))
        proofs = [await conductor.prove(fault) for fault in faults]
        assert all(proof.effective for proof in proofs), [proof.reason for proof in proofs]
        await conductor.end(first)
        rules = bench.shell("n5", "iptables -S")
        assert f"{CHAIN}-1" not in rules
        assert f"-A {CHAIN}-2 -s {bench.node('n2').address}/32 -j DROP" in rules
        again = await conductor.prove(second)
        assert again.effective, again.reason
        await asyncio.gather(conductor.end(second), conductor.end(third))
        assert await conductor.end(third) is None

    bench.run(work())
    bench.assert_clean()


def test_two_faults_of_a_process_never_share_a_node(bench: Bench) -> None:
    """A kill leaves out a paused node; without a free node, the error has the other fault."""
    pause = PlannedFault(id=1, kind="pause", target=Named(("n1", "n2")), start_s=0, end_s=9)
    kill = PlannedFault(id=2, kind="kill", target=Named(("n2", "n3")), start_s=0, end_s=9)
    crash = PlannedFault(id=3, kind="crash", target=Named(("n1",)), start_s=0, end_s=9)

    async def work() -> None:
        conductor = bench.conductor()
        await conductor.begin(pause)
        begun = await conductor.begin(kill)
        assert begun.targets == ("n3",)
        assert begun.details["problems"] == {"n2": "left out, because 1-pause affects it"}
        with pytest.raises(FaultError, match="has no target left: 1-pause already affects n1"):
            await conductor.begin(crash)
        await conductor.end(kill)
        await conductor.end(pause)

    bench.run(work())
    bench.assert_clean()


def test_the_next_start_heals_what_a_dead_nemesis_left(bench: Bench) -> None:
    """A new conductor finds rules and stopped processes on the nodes."""
    faults = [
        PlannedFault(id=7, kind="bridge", target=Named(tuple(ORDER)), start_s=0, end_s=9),
        PlannedFault(id=8, kind="pause", target=Named(("n2", "n3")), start_s=0, end_s=9),
    ]

    async def break_and_forget() -> None:
        conductor = bench.conductor()
        for fault in faults:
            await conductor.begin(fault)

    bench.run(break_and_forget())
    foreign = "iptables -A INPUT -s 192.0.2.1 -j DROP"
    bench.shell("n1", foreign)
    bench.run(bench.conductor().heal())
    bench.assert_clean()
    for node in bench.cluster.nodes:
        assert CHAIN not in bench.shell(node.name, "iptables -S")
    assert "192.0.2.1" in bench.shell("n1", "iptables -S"), "foreign rules are not ours to remove"
    bench.shell("n1", foreign.replace("-A", "-D"))
    bench.run(bench.conductor().heal())


def test_without_a_leader_a_leader_fault_hits_nobody(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a leader, the fault fails within its deadline and leaves nothing."""
    monkeypatch.setattr("nemesis.conductor.MOST_PATIENCE_S", 0.5)
    bench.system.tell(bench.node("n1"), leader=False, term=1)

    async def work() -> None:
        conductor = bench.conductor()
        fault = planned("partition-leader", "leader", order=ORDER)
        with pytest.raises(FaultError, match="needs a leader"):
            await conductor.begin(fault)
        assert await conductor.end(fault) is None

    try:
        bench.run(work())
    finally:
        bench.system.tell(bench.node("n1"), leader=True, term=1)
    bench.assert_clean()


def test_a_fault_that_is_interrupted_while_it_begins_is_healed(bench: Bench) -> None:
    """Healing waits for running commands, so that their effects do not outlive it."""
    faults = [
        PlannedFault(id=1, kind="partition-halves", target=Named(("n1", "n2")), start_s=0, end_s=9),
        PlannedFault(id=2, kind="pause", target=Named(("n3", "n4")), start_s=0, end_s=9),
    ]

    async def work(after_s: float) -> None:
        conductor = bench.conductor()
        begun = [asyncio.create_task(conductor.begin(fault)) for fault in faults]
        await asyncio.sleep(after_s)
        for task in begun:
            task.cancel()
        await conductor.heal()

    for after_s in (0.0, 0.02, 0.05, 0.1):
        bench.run(work(after_s))
        bench.assert_clean()


@pytest.mark.timeout(180)
def test_a_node_that_cannot_be_reached_stops_neither_fault_nor_healing(bench: Bench) -> None:
    """The other nodes are cut, the reason has the unknown ones, and nothing hangs; when the node is back, all is healed."""
    silence = "iptables -I INPUT -p tcp --dport 22 -j DROP"
    later = f"sleep 0.3; {silence}; sleep 14; {silence.replace('-I', '-D')}"
    bench.cluster.capabilities()  # a run probes them before any fault
    bench.shell("n5", f"setsid sh -c '{later}' >/dev/null 2>&1 </dev/null &")
    fault = planned("partition-random-node", ["n2"])

    async def work() -> tuple[Begun, Proof]:
        await asyncio.sleep(1.0)
        conductor = bench.conductor()
        async with asyncio.timeout(30):
            begun = await conductor.begin(fault)
        async with asyncio.timeout(30):
            proof = await conductor.prove(fault)
        with contextlib.suppress(FaultError):
            async with asyncio.timeout(60):
                await conductor.end(fault)
        await conductor.heal()
        return begun, proof

    begun, proof = bench.run(work())
    assert set(begun.details["problems"]) == {"n5"}
    assert "n5: " in proof.reason
    assert len(proof.reason) < 600
    bench.assert_clean()
