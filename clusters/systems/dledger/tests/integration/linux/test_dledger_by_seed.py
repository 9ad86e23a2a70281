"""DLedger's servers in virtual time, as programs without an agent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.by_seed import SHORT, assert_a_seed_repeats, assert_calls_need_no_stop, invoked
from tests.documents import is_proven

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "dledger", "--carrier", "programs")


@pytest.mark.night
def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same."""
    assert_a_seed_repeats(tmp_path, *SYSTEM, "--nemesis", "pause")


@pytest.mark.night
def test_calls_need_no_stop(tmp_path: Path) -> None:
    """The programs answer some calls themselves, and do the same as if each of these calls stops."""
    assert_calls_need_no_stop(tmp_path, *SYSTEM, "--nemesis", "pause", "--stalls", "3", least=0.1)


@pytest.mark.night
def test_a_power_loss_takes_pages_of_mapped_files(tmp_path: Path) -> None:
    """DLedger maps its log and its index for writing."""
    _, results = invoked(tmp_path, *SYSTEM, "--nemesis", "power-loss:all", *SHORT, "--seed", "1")
    (power, *_) = results["faults"]
    assert is_proven(power)
    assert re.search(r"[1-9]\d* of \d+ files lost unsynced data", power["proof"]["reason"])
