"""PostgreSQL as it is released, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.by_seed import assert_a_seed_repeats

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "postgres", "--workload", "list-append", "--nodes", "2")


def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same."""
    assert_a_seed_repeats(tmp_path, *SYSTEM, "--nemesis", "kill:standby,partition-random-halves")
