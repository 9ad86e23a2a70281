"""Brokers of RocketMQ as they are released, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import assert_two_runs_are_equal, assert_valid

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

GROUP = ("--system", "rocketmq", "--workload", "log", "--no-linearizable", "--nodes", "6", "--nemesis", "none")
WORDS = (*GROUP, "--rate", "5", "--time-limit", "3", "--seed", "1")


@pytest.mark.timeout(1200)
def test_brokers_run_by_seed(tmp_path: Path) -> None:
    """A thread of each broker computes while it waits for an acknowledgement, and time passes for it."""
    assert_valid(tmp_path, *WORDS)


@pytest.mark.night
@pytest.mark.timeout(2400)
def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls, and equal histories."""
    assert_two_runs_are_equal(tmp_path, *WORDS)
