"""docs/reference/checker.md, algorithms.md and docs/guide/new-model.md match the code."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from checker.models import names
from commands.check.command import ALGORITHM_NAMES, check
from harness.errors import ExitCode
from tests.own_models import lines, operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ROOT = Path(__file__).parents[3]
OWN = (ROOT / "docs" / "guide" / "new-model.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference" / page for page in ("checker.md", "algorithms.md"))
TEXT = "\n".join([*(page.read_text(encoding="utf-8") for page in REFERENCE), OWN])


def first_cells(section: str) -> Iterator[str]:
    """Yields the names in the first column of the first table of a section."""
    body = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    table = re.search(r"(?:^\|.*\|\n)+", body, re.MULTILINE)
    assert table is not None
    for row in table[0].splitlines()[2:]:
        yield from re.findall(r"`([^`]+)`", row.split("|")[1])


def test_models_algorithms_and_flags() -> None:
    """The table has exactly these."""
    assert set(first_cells("Models")) == set(names())
    assert set(first_cells("Algorithms")) == set(ALGORITHM_NAMES)
    flags = {
        name for option in check.params for name in [*option.opts, *option.secondary_opts] if name.startswith("--")
    }
    named = set(re.findall(r"--[a-z][a-z-]*", TEXT))
    assert named <= flags
    assert flags - named == set()


def test_choices_of_conventions() -> None:
    """Each flag's values are those of the command."""
    rows = re.findall(r"^\| `--([a-z-]+)` \| (`\w+`, `\w+`) \|", TEXT, re.MULTILINE)
    choices = {option.name: option.type for option in check.params if isinstance(option.type, click.Choice)}
    assert len(rows) == 3
    for flag, values in rows:
        assert tuple(re.findall(r"`(\w+)`", values)) == tuple(choices[flag.replace("-", "_")].choices)


def test_analyzers_are_those_of_the_kernel() -> None:
    """The names in the table are those of results."""
    source = (ROOT / "checker/kernel/src/near/mod.rs").read_text(encoding="utf-8")
    names = set(re.findall(r'=> \("(\w+)"', source)) - {"none"}
    documented = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .* \| .* \| .*\|$", TEXT, re.MULTILINE)
    documented_names = {name for cell in documented for name in re.findall(r"`(\w+)`", cell)}
    assert names <= documented_names


def test_the_model_of_the_guide_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code block is a module in the working folder, and the command prints the guide's output."""
    (block,) = re.findall(r"```python\n(.*?)```", OWN, re.DOTALL)
    (tmp_path / "maximum.py").write_text(block)
    history = [
        operation(0, "max", 5, 0, 1, 5),
        operation(0, "max", 3, 2, 4, 3),
        operation(1, "read", None, 3, 5, 5),
        operation(2, "read", None, 6, 7, 3),
    ]
    for name, operations in (("history.jsonl", history), ("fits.jsonl", history[:3])):
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines(operations)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    given = ["--model", "maximum:MaxRegister"]
    try:
        assert check.main(["fits.jsonl", *given], standalone_mode=False) == ExitCode.VALID
        capsys.readouterr()
        assert check.main(["history.jsonl", *given, "--explain-model"], standalone_mode=False) == ExitCode.INVALID
    finally:
        sys.modules.pop("maximum", None)
    own = re.sub(r"## What the counterexample promises.*?\n\|", "", OWN, flags=re.DOTALL)  # of a stack
    shown = re.findall(r"^    ((?:history\.jsonl:|Process|Checked|Algorithm|At most).*)$", own, re.MULTILINE)
    printed = capsys.readouterr().out.splitlines()
    assert len(shown) == 5
    assert [line for line in shown if line.startswith("Process") and line not in printed] == []
    # The cost of a search may change.
    assert {re.sub(r"\d[\d.]*", "#", line) for line in shown} <= {re.sub(r"\d[\d.]*", "#", line) for line in printed}
