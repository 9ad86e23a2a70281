"""Carries out every command of docs/guide/own-binary-by-seed.md, and compares the outputs and the code with the page.

Another compiler, C library or kernel may give a seed another execution. So neither the numbers of outputs are compared, nor the
operations that a violation consists of.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pages import DOCS, carried_out, missing, plainly, steps

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]
ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "own_binary"
PAGE = "guide/own-binary-by-seed.md"
RACE, OTHERS, CONFIRM = "## 6.", "## 7.", "## 9."
NUMBER = re.compile(r"\d[\d,.]*")
CHANGE = re.compile(r"write of 0|cas from 0 to 0")
KEY = re.compile(r"\b([Kk]ey) [hk]0")


def section(begin: str, end: str = "") -> list[tuple[str, list[str]]]:
    """Returns the commands of a part of the page, each with the outputs that the page shows after it."""
    before = len(steps(PAGE, until=begin)) if begin else 0
    return steps(PAGE, until=end)[before:]


def lacking(line: str, outputs: list[str], printed: str) -> list[list[str]]:
    """Returns the pieces of outputs of the page that its command did not print, but for what depends on the machine."""
    if line.startswith("labrys explain"):
        outputs = [shown.splitlines()[0] for shown in outputs]
    return [missing(alike(shown), alike(printed)) for shown in outputs]


def alike(text: str) -> str:
    """Returns a text with one number, one change and one key in place of all."""
    return KEY.sub(r"\1 0", CHANGE.sub("change", NUMBER.sub("0", plainly(text))))


def carry_out(commands: list[tuple[str, list[str]]], codes: list[int]) -> list[str]:
    """Carries out commands of `labrys`, checks their exit codes and outputs, and returns what they print."""
    found = []
    for (line, outputs), expected in zip(commands, codes, strict=True):
        code, printed = carried_out(line)
        assert code == expected, printed
        assert lacking(line, outputs, printed) == [[] for _ in outputs], printed
        found.append(printed)
    return found


@pytest.fixture(autouse=True, name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a copy of the example, as the first commands of the page make it, and goes there."""
    commands = [line for line, _ in steps(PAGE)[:2]]
    assert commands == ["cp -r CLONE/examples/own_binary kv", "cd kv"]
    folder = tmp_path / "kv"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("store", "__pycache__"))
    monkeypatch.chdir(folder)
    return folder


def test_the_way_from_a_program_to_a_small_run(folder: Path) -> None:
    """The correct program passes; a hunt finds the lost sync, its seed repeats the execution, and a smaller run has it."""
    commands = section("## 3.", RACE)
    (at,) = [index for index, (line, _) in enumerate(commands) if line.startswith("grep")]
    words = [line.split()[1] for line, _ in (*commands[:at], *commands[at + 1 :])]
    assert words == ["test", "hunt", "explain", "replay", "shrink"]
    carry_out(commands[:at], [0, 1, 0, 1])
    line, (shown,) = commands[at]
    printed = subprocess.run(["/bin/bash", "-c", line], capture_output=True, text=True, check=True).stdout
    for text in (shown, printed):
        first, second, again = text.strip().splitlines()
        assert first != second == again
    (small,) = carry_out(commands[at + 1 :], [1])
    assert "after 1 fault of" in plainly(small)
    assert (folder / "regressions" / "early-answer.toml").is_file()


def test_the_way_to_a_race() -> None:
    """Without a fault, another schedule shows the compare-and-set that overwrites a write."""
    carry_out(section(RACE, OTHERS), [1, 0])


@pytest.mark.night
def test_the_other_languages() -> None:
    """The same bugs are found in Go and in Java."""
    go, java = section(OTHERS, CONFIRM)
    assert "--language go" in go[0]
    assert "--language java" in java[0]
    carry_out([go, java], [1, 1])


@pytest.mark.night
def test_the_find_on_real_nodes() -> None:
    """Network namespaces of this machine lose what was not synced, too."""
    carry_out(section(CONFIRM), [1])


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    """The other tests run it."""
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    written = [path.read_text(encoding="utf-8") for path in EXAMPLE.iterdir() if path.is_file()]
    code = re.findall(r"^```(?:c|python)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(code) == 3
    for block in code:
        assert any(block in text for text in written), block
