"""docs/failing-seed.md and the beginning of docs/tutorial.md: every command in them is carried out, in the simulator.

The numbers of their outputs are those of one version. What has to stay true is what each command ends with, and what it shows.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import cli

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the plots of reports, which take most of the time and which other tests look at."""
    monkeypatch.setattr("results.report.plots_of", lambda _: {})


def commands(page: str, *, until: str = "") -> list[str]:
    """Returns the lines of the shell blocks of a page, up to a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = text.partition(until)[0] if until else text
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def carried_out(line: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """Carries out a line of a page; returns the exit code and all that it said."""
    labrys, *words = shlex.split(line)
    assert labrys == "labrys"
    code = cli.invoke([*words, *more])
    said = capsys.readouterr()
    return code, said.out + said.err


def test_the_way_from_a_red_build_to_a_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of the page ends as it says, and the next step finds what it left."""
    monkeypatch.chdir(tmp_path)
    expected = [
        (1, ["linearizable", "✗ invalid"]),
        (1, ["[3/3]", "of 3 runs are invalid", "with 95 % confidence", "store/repeats/"]),
        (0, ["operations on key", "What happened around them", "last entries on the key", "is leader in term"]),
        (
            1,
            [
                "linearizable is invalid in both",
                "before  3 faults",
                "after   1 fault",
                "kept    regressions/halves.toml",
            ],
        ),
        (0, ["✓ invalid, as expected  halves", "1 of 1 cases were as expected"]),
        (0, ["✓ valid"]),
    ]
    lines = commands("failing-seed.md")
    assert len(lines) == len(expected)
    for line, (code, parts) in zip(lines, expected, strict=True):
        found, said = carried_out(line, capsys)
        assert found == code, said
        assert [part for part in parts if part not in said] == [], said
    test = (tmp_path / "regressions" / "halves.toml").read_text()
    assert 'expect-parts = ["linearizable"]' in test
    assert (tmp_path / "store" / "latest" / "report.html").is_file()


def test_the_tutorial_begins_with_a_bug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No root, no Java: the planted bug is found and explained, and the correct version is not accused."""
    monkeypatch.chdir(tmp_path)
    hunt, explain, correct = commands("tutorial.md", until="## 2.")
    code, said = carried_out(hunt, capsys, "--jobs", "1")
    assert (code, " is invalid: " in said, "report     " in said) == (1, True, True), said
    code, said = carried_out(explain, capsys)
    assert (code, "last entries on the key" in said) == (0, True), said
    page = (tmp_path / "store" / "latest" / "report.html").read_text()
    assert "What happened, in order" in page
    assert "A cell has the last index" in page
    code, said = carried_out(correct, capsys, "--jobs", "1")
    assert (code, ": 0 invalid, 4 valid" in said) == (0, True), said


@pytest.mark.parametrize("page", ["failing-seed.md", "tutorial.md", "simulator.md"])
def test_each_command_of_a_page_is_understood(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that need nodes, too: `labrys` knows the command and its options."""
    text = "\n".join(commands(page)).replace("\\\n", "")
    for line in text.splitlines():
        words = shlex.split(line.removeprefix("sudo "), comments=True)
        if words[:1] == ["labrys"]:
            assert cli.invoke([*words[1:], "--help"]) == 0, line
            capsys.readouterr()
