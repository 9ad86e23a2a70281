"""The option `--mend` of RocketMQ's controllers: which findings it names, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.systems.rocketmq.mends import CONTROLLER
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from harness.errors import InputError
from tests.findings import assert_mends_have_findings

FINDINGS = Path(__file__).parents[2] / "findings"


@pytest.mark.parametrize("text", ["3", "1,1", "1, 4", "x", ",", "all,1"])
def test_other_texts_are_refused(text: str) -> None:
    """A finding without a mend, a number that comes twice, and anything else are errors."""
    with pytest.raises(InputError, match="expected numbers of findings"):
        ControllerOptions(mend=text)


def test_only_controllers_on_dledger_have_mends() -> None:
    """No finding on jraft has a mend."""
    with pytest.raises(InputError, match="--mend is for --consensus dledger"):
        ControllerOptions(mend="all", consensus=Consensus.JRAFT)


def test_each_mend_has_a_finding_and_a_line() -> None:
    """The page of the findings has a section and a line of the table for each mend."""
    assert_mends_have_findings(CONTROLLER, FINDINGS / "rocketmq-controller-5.3.3.md")


def test_each_mend_has_its_patches() -> None:
    """Most of them are those of DLedger 0.3.1.2, which other systems have too."""
    paths = [path for number in CONTROLLER.texts for path in CONTROLLER.patches[number]]
    assert all(path.is_file() for path in paths)
    own = FINDINGS.parent / "patches"
    assert {path for path in paths if path.parent == own} == {*own.iterdir()}
    assert CONTROLLER.patch("10").count("diff --git ") == len(CONTROLLER.patches[10])
