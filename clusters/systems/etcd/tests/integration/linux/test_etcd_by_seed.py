"""etcd as it is released, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import (
    ONCE,
    assert_a_seed_repeats,
    assert_an_error_of_a_sync_is_proven,
    assert_calls_need_no_stop,
    invoked,
    plan_file,
)
from tests.crashes import crashed_twice
from tests.documents import is_proven
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "etcd")
FAULTS = (*SYSTEM, "--nemesis", "kill,partition-random-halves")


def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same, and another seed does something else."""
    assert_a_seed_repeats(tmp_path, *FAULTS, seeds=("1", "1", "2"))


def test_calls_need_no_stop(tmp_path: Path) -> None:
    """The programs answer some calls themselves, and do the same as if each of these calls stops."""
    assert_calls_need_no_stop(tmp_path, *FAULTS, least=0.2)


@pytest.mark.night
def test_a_full_disk_is_proven(tmp_path: Path) -> None:
    """A member logs that its disk is full, and ends."""
    words = (*SYSTEM, "--rate", "60", "--time-limit", "6", *ONCE)
    _, results = invoked(tmp_path, *words, "--nemesis", "disk-full:all", "--seed", "1")
    (full,) = results["faults"]
    assert is_proven(full)
    assert full["proof"]["reason"] == "n1 refuses a small file; n2 refuses a small file; n3 refuses a small file."
    logs = [path.read_text(errors="replace") for path in tmp_path.glob("*/2*/nodes/*/etcd.log")]
    assert any("no space left on device" in log for log in logs)


@pytest.mark.night
def test_an_error_of_a_sync_is_proven(tmp_path: Path) -> None:
    """The controller names the call that failed, and the program ends."""
    shown = r"fdatasync 3 of member/wal/\S+\.wal by etcd returned EIO .* ended, and was started again"
    says = "failed to save Raft hard state and entries"
    assert_an_error_of_a_sync_is_proven(tmp_path, *SYSTEM, file="*.wal", shown=shown, says=says)


def test_a_fault_begins_with_a_line_of_a_log(tmp_path: Path) -> None:
    """The restarted node logs who leads, and then loses packets."""
    trigger = {"name": "log-line", "limit_s": 8, "parameters": {"line": "elected"}}
    kill = {"kind": "leader-kill", "target": "leader", "start_s": 2, "end_s": 5, "options": {}}
    loss = {"kind": "packet-loss", "target": ["n2"], "start_s": 1.5, "end_s": 11.5, "trigger": trigger, "options": {}}
    path = plan_file(tmp_path, [kill, loss], time_limit_s=14)
    _, results = invoked(tmp_path, *SYSTEM, "--plan", str(path), "--rate", "10", "--time-limit", "14", "--seed", "1")
    (lost,) = [fault for fault in results["faults"] if fault["planned"]["kind"] == "packet-loss"]
    assert "elected leader" in lost["fired"]["what"]
    assert is_proven(lost)


@pytest.mark.parametrize(
    ("nth", "call", "lost"), [(1, "write", "none"), pytest.param(2, "sync", "all", marks=pytest.mark.night)]
)
def test_a_loss_of_power_at_a_step_repeats(tmp_path: Path, nth: int, call: str, lost: str) -> None:
    """The same step of the same seed gives the same operations, and the same execution of all programs."""
    one, two = crashed_twice(tmp_path, "etcd", nth, call, {"lost": lost})
    assert one.operations == two.operations
    assert one.result.execution is not None
    assert one.result.execution == two.result.execution


@pytest.mark.night
@pytest.mark.parametrize(
    ("trigger", "measured"),
    [("disk-step:sync:*.wal:3", {"call": "sync"}), ("packet:3:any:any:labrys/", {"packet": 3})],
)
def test_a_kill_meets_a_step_or_a_packet(tmp_path: Path, trigger: str, measured: dict[str, object]) -> None:
    """A plan without a loss of power has steps too; this is the command of docs/guide/crash.md, but shorter."""
    faults = ("--nemesis", "kill:trigger", "--fault-trigger", trigger, "--fault-wait", "2")
    rhythm = ("--fault-on", "1", "--fault-off", "0.5", "--fault-quiet", "1-1.5", "--time-limit", "6")
    run = trial("--cluster", "sim", *SYSTEM, "--nodes", "3", "--store", str(tmp_path), *faults, *rhythm, seed=3)
    first = run.result.faults[0]
    assert first.proof is not None
    assert first.proof.effective, first.proof.reason
    assert first.fired is not None
    assert first.fired.measured.items() >= measured.items()
