"""The option `--mend`: which findings it names, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.systems.dledger.mends import BY_VERSION, DLEDGER
from clusters.systems.dledger.options import DLedgerOptions
from harness.errors import InputError
from tests.findings import assert_mends_have_findings

FINDINGS = Path(__file__).parents[2] / "findings"


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


def test_each_mend_has_a_finding_and_a_line() -> None:
    """The page of the findings has a section and a line of the table for each mend."""
    assert_mends_have_findings(DLEDGER, FINDINGS / "dledger-0.4.0.md")


def test_each_mend_has_a_patch() -> None:
    """There is no other patch, and the report for the authors names it."""
    for version, known in BY_VERSION.items():
        folder = FINDINGS.parent / "patches" / version
        assert {path for paths in known.patches.values() for path in paths} == {*folder.iterdir()}
        assert [*known.patches] == [*known.texts]
    for number in DLEDGER.texts:
        report = (FINDINGS / "upstream" / f"{number}.md").read_text(encoding="utf-8")
        assert f"(../../patches/0.4.0/{number}.patch)" in report
        assert DLEDGER.patch(str(number)).startswith("diff --git a/dledger/src/main/java/")
    assert DLEDGER.patch("3") == DLEDGER.patch("x") == ""
