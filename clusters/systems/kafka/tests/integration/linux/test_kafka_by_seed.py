"""Kafka as it is released, in virtual time, with librdkafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import SHORT, assert_two_runs_are_equal, assert_valid

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "kafka", "--workload", "log", "--seed", "1")
ONE_BROKER = (*SYSTEM, "--nodes", "1", "--nemesis", "none", "--rate", "10", "--time-limit", "3")
PAUSED = (*SYSTEM, "--nemesis", "pause:broker", *SHORT)


@pytest.mark.timeout(1200)
def test_librdkafka_runs_by_seed(tmp_path: Path) -> None:
    """So do the tools that format disks and metadata. One broker is enough for it; the night has three."""
    assert_valid(tmp_path, *ONE_BROKER)


@pytest.mark.night
@pytest.mark.timeout(2400)
def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls, and equal histories."""
    assert_two_runs_are_equal(tmp_path, *PAUSED)
