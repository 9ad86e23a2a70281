"""Nacos as it is released, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import assert_a_seed_repeats, invoked
from tests.documents import is_proven

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "nacos")


@pytest.mark.night
def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same."""
    assert_a_seed_repeats(tmp_path, *SYSTEM, "--nemesis", "kill", "--mix", "2:1:0")


@pytest.mark.night
@pytest.mark.timeout(1200)
def test_it_meets_kills_cuts_and_losses_of_power(tmp_path: Path) -> None:
    """All of them have their effect, and the group works again. The findings say what it keeps."""
    kinds = {"kill", "partition-random-halves", "power-loss"}
    rhythm = ("--time-limit", "10", "--fault-on", "1-2", "--fault-off", "1-2", "--fault-quiet", "1-2")
    words = (*SYSTEM, "--nemesis", ",".join(sorted(kinds)), "--rate", "10", *rhythm, "--recovery-timeout", "90")
    _, results = invoked(tmp_path, *words, "--seed", "1")
    assert {fault["planned"]["kind"] for fault in results["faults"] if is_proven(fault)} == kinds
    assert results["parts"]["faults-effective"]["valid"] is True
    assert results["parts"]["recovered"]["valid"] is True
