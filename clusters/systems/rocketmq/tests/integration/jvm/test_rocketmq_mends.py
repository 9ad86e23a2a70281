"""The mends of RocketMQ's controllers: a seed shows each finding in the released jars, and not in the mended ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.systems.rocketmq.controller import RocketMQController
from clusters.systems.rocketmq.mends import CONTROLLER
from clusters.systems.rocketmq.options import ControllerOptions
from harness.verdict import Verdict
from tests.recompiled import assert_compiles_alike
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

PLAN = "clusters/systems/rocketmq/findings/rocketmq-controller-5.3.3-two-first-masters/plan.json"
CONTROLLERS = ("--cluster", "sim", "--system", "rocketmq-controller", "--workload", "elect", "--rate", "5")
LEFT_OUT = (
    *CONTROLLERS, "--nodes", "3", "--nemesis", "kill,partition-leader,pause,leadership-transfer", "--fault-on", "3-8",
    "--fault-off", "0.5-3", "--fault-quiet", "0.5-3", "--time-limit", "10",
)  # fmt: skip
TWO_FIRST_MASTERS = (*CONTROLLERS, "--plan", PLAN, "--max-in-flight", "1", "--time-limit", "6.952")
FULL_DISKS = (
    "--cluster", "sim", "--system", "rocketmq-controller", "--workload", "broker-id", "--nodes", "3", "--nemesis",
    "disk-full:all", "--fault-on", "4-5", "--fault-off", "0.5-3", "--fault-quiet", "0.5-3", "--time-limit", "8", "--rate", "20",
)  # fmt: skip

FAILED_SYNCS = (
    "--cluster", "sim", "--system", "rocketmq-controller", "--workload", "sync-state-set", "--nodes", "3", "--nemesis",
    "disk-error:all,power-loss:all", "--fault-on", "3-3.5", "--fault-off", "2-3", "--fault-quiet", "2-3", "--fault-options",
    "disk-error.call=msync,disk-error.file=*data/*,disk-error.times=2000,power-loss.lost=all", "--in-turn", "--rate", "20",
    "--time-limit", "16",
)  # fmt: skip


@pytest.mark.parametrize(
    ("finding", "words", "seed", "part"),
    [
        pytest.param("6", FULL_DISKS, 6, "recovered", marks=pytest.mark.night),
        ("4", LEFT_OUT, 577543130896587572, "recovered"),
        pytest.param("15", FAILED_SYNCS, 1, "linearizable", marks=pytest.mark.night),
        pytest.param("9", TWO_FIRST_MASTERS, 1221919709868472333, "linearizable", marks=pytest.mark.night),
    ],
)
def test_a_mend_removes_its_finding(finding: str, words: tuple[str, ...], seed: int, part: str) -> None:
    """The released controllers have the finding in this run, and mended ones do not."""

    def verdict(*mend: str) -> Verdict:
        return next(
            candidate.verdict for candidate in trial(*words, *mend, seed=seed).outcome.parts if candidate.name == part
        )

    assert verdict() is Verdict.INVALID
    assert verdict("--mend", finding) is Verdict.VALID


@pytest.mark.night
def test_another_compiler_makes_the_released_code(tmp_path: Path) -> None:
    """Without a patch, the compiler of the mends makes the released instructions of all classes that have one."""
    assert_compiles_alike(CONTROLLER, RocketMQController.build(ControllerOptions(), print), tmp_path)
