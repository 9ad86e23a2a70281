"""A released program stands still right after a step of its disk, and loses power there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crashes import crashed_twice

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]


@pytest.mark.parametrize(("nth", "call", "lost"), [(1, "write", "none"), (2, "sync", "all")])
def test_a_loss_of_power_at_a_step_repeats(tmp_path: Path, nth: int, call: str, lost: str) -> None:
    """The same step of the same seed gives the same operations, and the same execution of all programs."""
    one, two = crashed_twice(tmp_path, "etcd", nth, call, {"lost": lost})
    assert one.operations == two.operations
    assert one.result.execution is not None
    assert one.result.execution == two.result.execution
