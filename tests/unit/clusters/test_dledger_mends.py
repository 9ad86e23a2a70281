"""The option `--mend`: which findings it names, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clusters.systems.dledger import mends
from clusters.systems.dledger.options import DLedgerOptions
from harness.errors import InputError

FINDINGS = Path(__file__).parents[3] / "docs" / "findings" / "dledger-0.4.0.md"


def test_numbers_come_in_order() -> None:
    """The order of the numbers makes no other jar."""
    assert list(mends.DLEDGER.chosen("")) == []
    assert list(mends.DLEDGER.chosen("4,1")) == [1, 4]
    assert list(mends.DLEDGER.chosen("all")) == list(mends.MENDS)


@pytest.mark.parametrize("text", ["3", "1,1", "1, 4", "x", ",", "all,1"])
def test_other_texts_are_refused(text: str) -> None:
    """A finding without a mend, a number that comes twice, and anything else are errors."""
    with pytest.raises(InputError, match="expected numbers of findings"):
        DLedgerOptions(mend=text)


def test_each_mend_has_a_finding_and_a_line() -> None:
    """The page of the findings has a section and a line of the table for each mend."""
    text = FINDINGS.read_text(encoding="utf-8")
    sections = set(map(int, re.findall(r"^## (\d+)\. ", text, re.MULTILINE)))
    lines = {int(found) for found in re.findall(r"^\| (\d+)(?: and 5)? \| `", text, re.MULTILINE)}
    assert set(mends.MENDS) <= sections
    assert set(mends.MENDS) <= lines
