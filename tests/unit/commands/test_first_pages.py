"""Carries out every command of docs/guide/failing-seed.md and of the beginning of docs/guide/tutorial.md, in the simulator.

The pages show what the commands print. Only the times that commands take, and the names of runs, may differ.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

import cli
from harness.verdict import CONTROL_NODE
from tests.examples import SIMULATED
from tests.pages import DOCS, carried_out, commands, missing, plainly, steps
from tests.trials import trial

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("without_plots")


def test_the_way_from_a_red_build_to_a_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step ends and prints as the page says, and the next step uses its files."""
    monkeypatch.chdir(tmp_path)
    page_steps = steps("guide/failing-seed.md")
    codes = [1, 0, 1, 1, 0, 0, 0]  # test, explain, --repeat, shrink, bisect, suite, and the test without the bug
    assert [line.split()[1] for line, _ in page_steps] == [
        "test",
        "explain",
        "test",
        "shrink",
        "bisect",
        "suite",
        "test",
    ]
    for (line, outputs), code in zip(page_steps, codes, strict=True):
        ended, printed = carried_out(line)
        assert ended == code, printed
        if "bisect" in line:  # the page shows the file of the step before, too
            printed += (tmp_path / "regressions" / "halves.toml").read_text()
        assert [missing(shown, plainly(printed)) for shown in outputs] == [[] for _ in outputs], printed
    assert sum(len(outputs) for _, outputs in page_steps) == 7
    assert (tmp_path / "store" / "latest" / "report.html").is_file()


def test_the_tutorial_begins_with_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without root and Java, the hunt finds the planted bug, and no run of the correct version is invalid."""
    monkeypatch.chdir(tmp_path)
    (hunt, (shown,)), (explain, _), (correct, _) = steps("guide/tutorial.md", until="## 2.")
    code, output = carried_out(hunt, "--jobs", "1")
    assert (code, missing(shown, plainly(output)), "report     " in output) == (1, [], True), output
    code, output = carried_out(explain)
    assert (code, "last entries on the key" in output) == (0, True), output
    page = (tmp_path / "store" / "latest" / "report.html").read_text()
    assert "What happened, in order" in page
    assert "A cell has the last index" in page
    code, output = carried_out(correct, "--jobs", "1")
    assert (code, ": 0 invalid, 4 valid" in output) == (0, True), output


def test_the_page_of_results_has_every_part_of_a_verdict() -> None:
    """Its table names all parts of a run, and its sentence those that may be unknown in a valid run."""
    page = "\n".join((DOCS / "reference" / name).read_text(encoding="utf-8") for name in ("results.md", "verdicts.md"))
    run = trial("--system", SIMULATED, "--cluster", "sim", "--time-limit", "22", "--nemesis", "kill", seed=1)
    (table,) = re.findall(r"^## Parts\n\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    listed = {name for row in re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE) for name in row.split("`")}
    assert {part.name for part in run.outcome.parts} | {CONTROL_NODE} <= listed
    (sentence,) = re.findall(r"^  (`[^.]*) are such parts", page, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", sentence)) == {part.name for part in run.outcome.parts if part.extra} | {
        CONTROL_NODE,  # only on real nodes
    }


def test_the_first_page_is_short() -> None:
    """A visitor reads it in some minutes, and all its links lead to files of the repository or to the web."""
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) < 110
    targets = re.findall(r"\]\(([^)#]+)", readme)
    assert targets
    assert [
        target for target in targets if not target.startswith("https://") and not (DOCS.parent / target).exists()
    ] == []


@pytest.mark.parametrize("page", ["README.md", "docs/guide/tutorial.md", "docs/guide/clusters.md"])
def test_a_page_says_what_removes_the_nodes_of_a_killed_test(page: str) -> None:
    """Nobody can clean up after a SIGKILL, so the paragraph names the command that does."""
    for paragraph in (DOCS.parent / page).read_text(encoding="utf-8").split("\n\n"):
        if "kill -9" in paragraph:
            assert "labrys cluster down" in " ".join(paragraph.split())
            assert "also after `kill -9`" not in " ".join(paragraph.split())


@pytest.mark.parametrize(
    "page",
    [
        "guide/failing-seed.md",
        "guide/tutorial.md",
        "guide/simulator.md",
        "guide/hunt.md",
        "guide/report.md",
        "reference/java-programs.md",
        "reference/linux-programs.md",
    ],
)
def test_each_command_of_a_page_is_valid(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also for commands that need nodes, `labrys` has the command and its options."""
    text = "\n".join(commands(page)).replace("\\\n", "")
    for line in text.splitlines():
        words = shlex.split(line.removeprefix("sudo "), comments=True)
        if words[:1] == ["labrys"]:
            assert cli.invoke([*words[1:], "--help"]) == 0, line
            capsys.readouterr()
