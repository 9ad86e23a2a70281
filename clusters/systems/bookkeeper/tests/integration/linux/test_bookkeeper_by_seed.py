"""BookKeeper as it is released, in virtual time, with its clients in Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import SHORT, assert_two_runs_are_equal, assert_valid

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "bookkeeper", "--workload", "ledger", "--nodes", "5")
WORDS = (*SYSTEM, "--nemesis", "pause:client", *SHORT, "--seed", "1")


@pytest.mark.timeout(1200)
def test_clients_in_java_run_by_seed(tmp_path: Path) -> None:
    """So do the tools that format disks and metadata."""
    assert_valid(tmp_path, *WORDS)


@pytest.mark.night
@pytest.mark.timeout(2400)
def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed have equal digests of all calls, and equal histories."""
    assert_two_runs_are_equal(tmp_path, *WORDS)
