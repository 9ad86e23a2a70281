"""Carries out every command of docs/failing-seed.md and of the beginning of docs/tutorial.md, in the simulator.

The numbers in the outputs may change from version to version. The exit codes and the words may not.
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
    """Leaves out the plots of reports, which take most of the time; other tests check them."""
    monkeypatch.setattr("results.report.plots_of", lambda _: {})


def commands(page: str, *, until: str = "") -> list[str]:
    """Returns the lines of the shell blocks of a page, up to a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    text = text.partition(until)[0] if until else text
    return [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]


def carried_out(line: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """Carries out a line of a page; returns the exit code and the output."""
    labrys, *words = shlex.split(line)
    assert labrys == "labrys"
    code = cli.invoke([*words, *more])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_way_from_a_red_build_to_a_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step ends as the page says, and the next step uses its files."""
    monkeypatch.chdir(tmp_path)
    expected = [
        (1, ["linearizable", "✗ invalid"]),
        (1, ["[3/3]", "of 3 runs are invalid", "with 95 % confidence", "store/repeats/"]),
        (0, ["operations on key", "The events around them", "last entries on the key", "is leader in term"]),
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
        found, output = carried_out(line, capsys)
        assert found == code, output
        assert [part for part in parts if part not in output] == [], output
    test = (tmp_path / "regressions" / "halves.toml").read_text()
    assert 'expect-parts = ["linearizable"]' in test
    assert (tmp_path / "store" / "latest" / "report.html").is_file()


def test_the_tutorial_begins_with_a_bug(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without root and Java, the hunt finds the planted bug, and no run of the correct version is invalid."""
    monkeypatch.chdir(tmp_path)
    hunt, explain, correct = commands("tutorial.md", until="## 2.")
    code, output = carried_out(hunt, capsys, "--jobs", "1")
    assert (code, " is invalid: " in output, "report     " in output) == (1, True, True), output
    code, output = carried_out(explain, capsys)
    assert (code, "last entries on the key" in output) == (0, True), output
    page = (tmp_path / "store" / "latest" / "report.html").read_text()
    assert "What happened, in order" in page
    assert "A cell has the last index" in page
    code, output = carried_out(correct, capsys, "--jobs", "1")
    assert (code, ": 0 invalid, 4 valid" in output) == (0, True), output


@pytest.mark.parametrize("page", ["failing-seed.md", "tutorial.md", "simulator.md"])
def test_each_command_of_a_page_is_valid(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also for commands that need nodes, `labrys` has the command and its options."""
    text = "\n".join(commands(page)).replace("\\\n", "")
    for line in text.splitlines():
        words = shlex.split(line.removeprefix("sudo "), comments=True)
        if words[:1] == ["labrys"]:
            assert cli.invoke([*words[1:], "--help"]) == 0, line
            capsys.readouterr()
