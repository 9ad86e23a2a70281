"""The plain command of a workload on real nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.plain import assert_the_plain_command_is_fair

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.mark.timeout(600)
def test_the_plain_command_is_a_fair_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lock failed in each acquire before its options followed the promise."""
    assert_the_plain_command_is_fair(tmp_path, capsys, "etcd", "lock", "--nodes", "3")
