"""The option `--mend`: which findings it names, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.systems.dledger.mends import DLEDGER
from clusters.systems.dledger.options import DLedgerOptions
from clusters.systems.dledger_log.options import DLedgerLogOptions
from clusters.systems.rocketmq.mends import CONTROLLER
from clusters.systems.rocketmq.options import Consensus, ControllerOptions
from harness.errors import InputError

if TYPE_CHECKING:
    from clusters.kit.mending import Mends

SYSTEMS = Path(__file__).parents[3] / "clusters" / "systems"


def test_numbers_come_in_order() -> None:
    """The order of the numbers makes no other jar."""
    assert list(DLEDGER.chosen("")) == []
    assert list(DLEDGER.chosen("4,1")) == [1, 4]
    assert list(DLEDGER.chosen("all")) == list(DLEDGER.texts)


@pytest.mark.parametrize("text", ["3", "1,1", "1, 4", "x", ",", "all,1"])
def test_other_texts_are_refused(text: str) -> None:
    """A finding without a mend, a number that comes twice, and anything else are errors."""
    with pytest.raises(InputError, match="expected numbers of findings"):
        DLedgerOptions(mend=text)
    with pytest.raises(InputError, match="expected numbers of findings"):
        ControllerOptions(mend=text)


def test_an_older_library_has_fewer_mends() -> None:
    """A mend is for the versions that have its finding."""
    assert DLedgerLogOptions(library_version="0.3.1.2", mend="8,17,18,19,20").mend
    with pytest.raises(InputError, match="one of 8, 17, 18, 19, 20, or all"):
        DLedgerLogOptions(library_version="0.3.1.2", mend="1")


def test_only_controllers_on_dledger_have_mends() -> None:
    """No finding on jraft has a mend."""
    with pytest.raises(InputError, match="--mend is for --consensus dledger"):
        ControllerOptions(mend="all", consensus=Consensus.JRAFT)


@pytest.mark.parametrize(
    ("mends", "page"),
    [
        (DLEDGER, "dledger/findings/dledger-0.4.0.md"),
        (CONTROLLER, "rocketmq/findings/rocketmq-controller-5.3.3.md"),
    ],
)
def test_each_mend_has_a_finding_and_a_line(mends: Mends, page: str) -> None:
    """The page of the findings has a section and a line of the table for each mend."""
    text = (SYSTEMS / page).read_text(encoding="utf-8")
    sections = set(map(int, re.findall(r"^## (\d+)\. ", text, re.MULTILINE)))
    lines = {int(found) for found in re.findall(r"^\| (\d+)(?: and 5)? \| `", text, re.MULTILINE)}
    assert set(mends.texts) <= sections
    assert set(mends.texts) <= lines
