"""A suite as Markdown: failed cases first, the commands that run them again, and no foreign markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from commands.suite.markdown import MAX_ROWS, suite_markdown
from harness.suites.case import Case
from harness.verdict import Verdict
from tests.cases import case_result

if TYPE_CHECKING:
    from harness.suites.case_result import CaseResult


def result(name: str, exit_code: int, reason: str = "Fine.") -> CaseResult:
    """Returns the result of a case that expects valid."""
    case = Case(
        reproduce="labrys suite s.toml --only x --seed 9",
        name=name,
        test=name,
        options={"nemesis": "kill"},
        seed=7,
        expect=Verdict.VALID,
    )
    return case_result(case, exit_code, reason, seconds=61.0)


def test_failed_cases_are_first_and_can_be_run_again() -> None:
    """The heading has the counts, and the text has the number of cases that did not run."""
    text = suite_markdown(
        "smoke", 9, [result("good", 0), result("bad", 1, "Stale."), result("broken", 255)], counts=(4, 4)
    )
    lines = text.splitlines()
    assert lines[0] == "## <code>smoke</code>: 1 of 4 cases was as expected; 1 did not run"
    assert lines[2] == "The seed of the suite is 9."
    assert [line.split(" | ")[1] for line in lines if line.startswith(("| ✓", "| ✗"))] == [
        f"<code>{name}</code>" for name in ("bad", "broken", "good")
    ]
    assert "| invalid, expected valid |" in text
    assert "| error 255 |" in text
    assert lines[-2:] == ["- <code>labrys suite s.toml --only x --seed 9</code>"] * 2


def test_a_suite_as_expected_has_no_commands() -> None:
    """A suite without a result has no table either."""
    assert "again" not in suite_markdown("s", 1, [result("a", 0)], counts=(1, 1))
    assert suite_markdown("s", 1, [], counts=(2, 2)).count("\n") == 3


def test_the_table_of_a_long_suite_is_cut() -> None:
    """A line has the number of the other cases."""
    text = suite_markdown(
        "s", 1, [result(f"c{number}", 0) for number in range(MAX_ROWS + 5)], counts=(MAX_ROWS + 5, MAX_ROWS + 5)
    )
    assert "The file junit.xml has 5 more cases." in text
    assert text.count("\n| ✓") == MAX_ROWS


@given(st.text(), st.text())
def test_no_foreign_text_is_markup(name: str, reason: str) -> None:
    """No text adds a tag, cell, mention, reference, link, emphasis or line break."""
    plain = suite_markdown("s", 1, [result("n", 1, "r")], counts=(1, 1))
    text = suite_markdown("s", 1, [result(name, 1, reason)], counts=(1, 1))
    assert len(text.splitlines()) == len(plain.splitlines())
    row = next(line for line in text.splitlines() if line.startswith("| ✗"))
    cells = re.findall(r"<code>(.*?)</code>", row)
    assert len(cells) == 2
    for cell in cells:
        assert re.fullmatch(r"(?:[A-Za-z0-9 .,=/-]|&#\d+;)*", cell)


def test_the_heading_has_the_selection() -> None:
    """Three numbers that differ by their meaning have their meaning beside them."""
    text = suite_markdown("s", 1, [result("a", 0)], counts=(1, 3))
    assert text.startswith("## <code>s</code>: 1 of 1 case was as expected; 1 of 3 cases selected\n")
