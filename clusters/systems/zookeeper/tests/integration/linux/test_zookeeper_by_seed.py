"""ZooKeeper as it is released, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.verdict import Verdict
from tests.by_seed import assert_a_seed_repeats, assert_an_empty_disk_is_prepared, assert_calls_need_no_stop
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "zookeeper")


def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same."""
    assert_a_seed_repeats(tmp_path, *SYSTEM, "--nemesis", "kill")


@pytest.mark.night
def test_calls_need_no_stop(tmp_path: Path) -> None:
    """The programs answer some calls themselves, and do the same as if each of these calls stops."""
    assert_calls_need_no_stop(tmp_path, *SYSTEM, "--nemesis", "kill", least=0.1)


def test_an_empty_disk_comes_with_a_new_process(tmp_path: Path) -> None:
    """`wipe` removes the data of the processes that do not run. Then it prepares the new disk."""
    assert_an_empty_disk_is_prepared(tmp_path, *SYSTEM)


@pytest.mark.night
def test_an_option_lets_a_node_start_without_its_snapshot() -> None:
    """A loss of power takes the first snapshot, and not the log. Without the option, that is finding 1."""
    words = ("--cluster", "sim", *SYSTEM, "--nodes", "3", "--workload", "set", "--rate", "15", "--time-limit", "25")
    loss = ("--nemesis", "power-loss:all", "--fault-on", "4-6", "--fault-off", "2-3", "--fault-quiet", "3-5")
    without = trial(*words, *loss, seed=4).outcome
    assert "recovered" in without.invalid, without.reason
    with_it = trial(*words, *loss, "--trust-empty-snapshot", seed=4).outcome
    assert with_it.verdict is Verdict.VALID, with_it.reason
