"""Programs of a system in virtual time: faults have their effect, and what cannot run there is refused.

The folder of each system has the tests of its own programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cli
from harness.errors import InputError
from tests.by_seed import EXAMPLE, invoked, plan_file
from tests.catches.hunts import Hunt
from tests.documents import is_proven
from tests.examples import PIPED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

KINDS = (
    "kill", "pause", "partition-one-way", "packet-loss", "packet-delay", "packet-duplicate", "packet-corrupt", "packet-reorder",
    "clock-skew", "clock-drift", "packet-rate",
)  # fmt: skip


def test_faults_have_their_effect_on_programs(tmp_path: Path) -> None:
    """Each kind is proved by what the controller and the programs say."""
    faults = [
        {
            "kind": kind,
            "target": ["n2"],
            "start_s": 1.0 + 2 * number,
            "end_s": 2.6 + 2 * number,
            "options": {"clock-skew": {"offset_ms": 5000}, "clock-drift": {"speed": 1.5}}.get(kind, {}),
        }
        for number, kind in enumerate(KINDS)
    ]
    path = plan_file(tmp_path, faults, time_limit_s=24)
    words = ("--system", EXAMPLE, "--plan", str(path), "--rate", "5", "--time-limit", "24", "--seed", "1")
    _, results = invoked(tmp_path, *words)
    unproven = {fault["planned"]["kind"]: fault["error"] for fault in results["faults"] if not is_proven(fault)}
    assert unproven == {}
    assert len(results["faults"]) == len(KINDS)


def test_a_hunt_leaves_the_disks_alone() -> None:
    """As of Java programs: it takes the power by default, and fills disks or damages files only if `--among` names the kind."""
    words = ("--cluster", "sim", "--nodes", "3")
    kinds = Hunt(words, seed=1, system=EXAMPLE).space.kinds
    assert "power-loss" in kinds
    assert not {"disk-full", "disk-error", "file-bitflip", "file-truncate"}.intersection(kinds)
    named = Hunt(words, seed=1, among="disk-full,disk-error,file-bitflip", system=EXAMPLE).space.kinds
    assert set(named) == {"disk-full", "disk-error", "file-bitflip"}


def test_what_cannot_run_there_is_refused_before_anything_starts() -> None:
    """The error says why, and which systems can."""
    with pytest.raises(InputError, match="runs as programs with pipes only: give --cluster pipes, not --cluster sim"):
        cli.invoke(["test", "--cluster", "sim", "--system", PIPED, "--workload", "echo"])
    with pytest.raises(InputError, match="whose messages are bytes to Labrys"):
        cli.invoke(["test", "--cluster", "sim", "--system", EXAMPLE, "--nemesis", "kill", "--fault-wait", "0.5"])
    with pytest.raises(InputError, match="needs --cluster sim or --cluster pipes --virtual, not --cluster local"):
        cli.invoke(["test", "--cluster", "local", "--system", EXAMPLE, "--carrier", "programs"])
    with pytest.raises(InputError, match="is no program, but code of the simulator"):
        cli.invoke(["test", "--cluster", "sim", "--system", "tests.toy_register:ToyRegisters", "--carrier", "programs"])
