"""The plain command of a workload on real nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plain import assert_the_plain_command_is_fair

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.mark.night
@pytest.mark.timeout(600)
def test_the_plain_command_is_a_fair_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the final reads each node leads, which takes seven seconds: so there are three nodes, and five in the night."""
    assert_the_plain_command_is_fair(tmp_path, capsys, "redis", "lock", "--nodes", "3")
