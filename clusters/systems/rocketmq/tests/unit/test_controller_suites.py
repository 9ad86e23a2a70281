"""The suites of RocketMQ's controllers can be planned."""

from __future__ import annotations

import pytest

from tests.suites import assert_can_be_planned


@pytest.mark.parametrize("name", ["controller-jraft", "controller-dledger", "controller-releases"])
def test_the_suites_can_be_planned(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Every case has options that are understood, and a plan that there is room for."""
    assert_can_be_planned(capsys, name)
