"""The kinds of faults in a simulated world: effect, proof and healing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.system import SimNodes
from harness.capabilities import NAMES, SIMULATED, SWITCH, Capabilities
from harness.faults import PlannedFault
from harness.targets import Named
from harness.world import Arrival
from nemesis.errors import PlanError
from nemesis.kinds import all_called, find_kind
from nemesis.lacking import left_out, missing_capabilities
from nemesis.simulated.network import Delay
from tests.trials import TOY, trial

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from commands.run.trial import Trial

OF_REAL_NODES = {"thread-stall"}  # `all` never has it, and `--stalls` does the same in the simulator
# The toy has no kernel, and does not say what it does after an error of its disk.
OF_PROGRAMS = {"clock-drift", "disk-error", "disk-slow", "packet-rate"}
UNSUITED = {"leadership-transfer", "leaders-kill"}  # n1 is always the leader
NAMED = {
    "file-bitflip": "n1",
    "file-copy": "n1",
    "file-rollback": "n1",
    "file-truncate": "n1",
    "fixed-kill": "n2",
    "fixed-pause": "n2",
    "fixed-loss": "n2",
    "fixed-delay": "n2",
    "partition-fixed": "n2",
    "wipe": "n1",  # the only node with a file
}
OPTIONS = {"file-copy": "file-copy.chunk_bytes=1", "file-rollback": "file-rollback.back=1"}  # the file is short


def planned(kind: str, node: str, start_s: float, end_s: float) -> dict[str, Any]:
    """Returns a fault of a plan, without its id."""
    return {"kind": kind, "target": [node], "start_s": start_s, "end_s": end_s, "options": {}}


def carried_out(folder: Path, faults: Sequence[dict[str, Any]]) -> Trial:
    """Carries out a run of the toy with these faults."""
    plan = {
        "format": "labrys-plan",
        "version": 3,
        "nodes": ["n1", "n2", "n3", "n4", "n5"],
        "seed": 1,
        "time_limit_s": 8.0,
        "faults": [{"id": number, **fault} for number, fault in enumerate(faults)],
    }
    file = folder / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    return trial(*TOY[2:], "--plan", str(file))


def test_kinds_that_need_a_kernel_are_left_out_with_a_reason() -> None:
    """`all` leaves out exactly the kinds without an effect on nodes that are no programs, and none on programs."""
    (left,) = left_out({"n1": Capabilities(available=frozenset({SIMULATED}), missing=SimNodes.lacks)})
    assert left.kind == "packet-rate"
    assert "its processes have no kernel of their own" in left.reason
    assert left_out({"n1": Capabilities(available=frozenset({SIMULATED}))}) == ()


@pytest.mark.parametrize("kind", sorted({*all_called()} - OF_REAL_NODES - OF_PROGRAMS - UNSUITED))
def test_a_kind_takes_effect_and_heals(kind: str) -> None:
    """Each fault is effective, there is no error, and the system works afterwards."""
    aim = f"{kind}:{NAMED[kind]}" if kind in NAMED else kind
    own = ("--fault-options", OPTIONS[kind]) if kind in OPTIONS else ()
    result = trial(*TOY, "--nemesis", aim, "--in-turn", "--fault-on", "2-3", "--fault-off", "1-2", *own)
    (record,) = result.result.faults
    assert record.error is None
    assert record.proof is not None
    assert record.proof.effective, record.proof.reason
    assert result.result.recovery is not None
    assert result.result.recovery.error is None


@pytest.mark.parametrize("kind", ["packet-delay", "packet-loss"])
def test_packets_of_single_links_are_disturbed(kind: str) -> None:
    """Only the packets between n1 and n3 in one direction, and the proof measures those."""
    words = (*TOY, "--nemesis", f"{kind}:n1", "--in-turn", "--fault-on", "2-3", "--fault-off", "1-2")
    (record,) = trial(*words, "--fault-options", f"{kind}.peers=n3").result.faults
    assert record.proof is not None
    assert record.proof.effective, record.proof.reason
    measured = record.proof.measured.get("n1")
    assert isinstance(measured, dict)
    assert measured["sent"] == 100  # two nodes would take 200 probes


@pytest.mark.parametrize(
    ("aim", "options"),
    [
        ("packet-delay:n1", "packet-delay.delay_ms=10,packet-delay.jitter_ms=50"),
        ("clock-strobe:all", "clock-strobe.delta_ms=600,clock-strobe.period_ms=600"),
    ],
)
def test_a_fault_of_a_second_is_proven(aim: str, options: str) -> None:
    """A proof that takes longer than the fault leaves a run unknown. No seed fails by chance."""
    for seed in range(1, 11):
        words = (*TOY, "--seed", str(seed), "--nemesis", aim, "--in-turn", "--fault-on", "1-1")
        own = [word for option in options.split(",") for word in ("--fault-options", option)]
        records = trial(*words, "--fault-off", "1-1", "--time-limit", "8", *own).result.faults
        assert records
        for record in records:
            assert record.proof is not None
            assert record.proof.effective, (seed, record.proof.reason)


def test_a_cut_that_ends_during_a_proof_contradicts_nothing(tmp_path: Path) -> None:
    """The other partition has dropped probes, though it is over when they are counted."""
    cuts = [
        planned("partition-random-node", "n1", 1.5, 2.02),
        planned("partition-random-node", "n3", 2.0, 3.0),
    ]
    for record in carried_out(tmp_path, cuts).result.faults:
        assert record.proof is not None
        assert record.proof.effective, record.proof.reason


def test_packets_without_a_delay_prove_none() -> None:
    """The links of the simulator have small delays of their own."""
    fault: Any = SimpleNamespace(options={"delay_ms": 10.0, "jitter_ms": 50.0})
    delay = object.__new__(Delay)
    delay.fault = fault
    arrivals = [Arrival(number=number, delay_ns=2_000_000, damaged=False) for number in range(100)]
    assert delay.seen(arrivals, 100) == (False, "sent probes that took 2 ms on average, expected 25.3 ms")
    assert delay.seen([], 100) == (False, "sent probes that did not arrive, expected 25.3 ms")


def test_a_link_that_is_not_there_is_refused() -> None:
    """A name must be a node, and the other end must be another one."""
    words = (*TOY, "--nemesis", "packet-delay:n1", "--fault-on", "2-3", "--fault-options")
    with pytest.raises(PlanError, match="unknown target 'n9'"):
        trial(*words, "packet-delay.peers=n9")
    record = trial(*words, "packet-delay.peers=n1").result.faults[0]
    assert record.error is not None
    assert "has no link between n1 and n1" in record.error


def test_single_links_need_the_switch_between_real_nodes() -> None:
    """A queueing discipline is not enough, because it shapes all links."""
    fault = PlannedFault(
        id=0, kind="packet-delay", target=Named(("n1",)), start_s=1.0, end_s=2.0, options={"peers": "n2"}
    )
    can = Capabilities(available=frozenset(NAMES) - {SWITCH}, missing={SWITCH: "no tun"})
    assert missing_capabilities([fault], {"n1": can}) == [
        "n1 lacks switch, which packet-delay on single links needs: no tun"
    ]
    assert missing_capabilities([fault], {"n1": Capabilities(available=frozenset(NAMES))}) == []


def test_the_end_of_a_full_disk_leaves_killed_processes_alone(tmp_path: Path) -> None:
    """Another fault has killed the process, and starts it again at its own end."""
    result = carried_out(tmp_path, [planned("kill", "n2", 1.0, 5.0), planned("disk-full", "n2", 2.0, 3.0)])
    assert [(record.planned.kind, record.error) for record in result.result.faults] == [
        ("kill", None),
        ("disk-full", None),
    ]
    assert all(record.proof is not None and record.proof.effective for record in result.result.faults)


def test_a_kind_without_an_effect_is_refused_by_name() -> None:
    """Such a kind is an error before the run, with the missing effect."""
    with pytest.raises(Exception, match="thread-stall has no effect in the simulator"):
        trial(*TOY, "--nemesis", "thread-stall", "--fault-on", "1-2")


def test_an_error_of_a_call_needs_a_system_that_knows_it() -> None:
    """No other simulated system has it, and no real node; the reason says why."""
    with pytest.raises(
        Exception,
        match="lacks simulated-calls, which disk-error needs: its processes are objects of Labrys that do not",
    ):
        trial(*TOY, "--nemesis", "disk-error", "--fault-on", "1-2")
    (fault,) = [PlannedFault(id=1, kind="disk-error", target=Named(("n1",)), start_s=1.0, end_s=2.0, options={})]
    real = Capabilities(available=frozenset(NAMES))
    (lacking,) = missing_capabilities([fault], {"n1": real})
    assert lacking.endswith("Labrys lets system calls fail in the simulator only")


def test_the_transactional_store_survives_an_error_of_its_disks() -> None:
    """A node ends by the error, which is the proof, and starts again at the end of the fault."""
    own = ("--cluster", "sim", "--system", "sim-txn", "--workload", "list-append", "--time-limit", "8", "--rate", "10")
    times = ("--in-turn", "--fault-quiet", "1-2", "--fault-on", "2-3", "--fault-off", "1-2")
    found = trial(*own, "--nemesis", "disk-error:n1", *times, "--fault-options", "disk-error.file=commit-*")
    (record, *_) = found.result.faults
    assert record.proof is not None
    assert record.proof.effective, record.proof.reason
    assert "its process ended, and was started again" in record.proof.reason
    assert found.result.recovery is not None
    assert found.result.recovery.error is None


@pytest.mark.parametrize("option", ["after", "stall"])
def test_a_simulated_process_does_not_outlive_its_disk(option: str) -> None:
    """A power loss with such an option has no effect, and the error says why."""
    result = trial(*TOY, "--nemesis", "power-loss", "--fault-options", f"power-loss.{option}=1", "--fault-on", "2-3")
    assert {record.proof for record in result.result.faults} == {None}
    assert all("does not outlive its disk" in (record.error or "") for record in result.result.faults)
    assert result.result.recovery is not None
    assert result.result.recovery.error is None


def test_a_torn_write_must_survive() -> None:
    """If all that is not durable is lost, no write is there in part; the options are refused before the run."""
    kind = find_kind("power-loss").fault
    with pytest.raises(PlanError, match=r"power-loss\.lost=all none survives; give power-loss\.lost=none"):
        kind.settle("power-loss", {"lost": "all", "torn": True})
    assert kind.settle("power-loss", {"lost": "none", "torn": True}) == {"lost": "none", "torn": True}
