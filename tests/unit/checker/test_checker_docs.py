"""docs/checker.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from checker.command import ALGORITHM_NAMES, check
from checker.models import names
from harness.op import Operation, OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "checker.md").read_text(encoding="utf-8")


def first_cells(section: str) -> Iterator[str]:
    """Yields the names in the first column of the first table of a section."""
    body = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    table = re.search(r"(?:^\|.*\|\n)+", body, re.MULTILINE)
    assert table is not None
    for row in table[0].splitlines()[2:]:
        yield from re.findall(r"`([^`]+)`", row.split("|")[1])


def test_models_algorithms_and_flags() -> None:
    """All of them are there, and no others."""
    assert set(first_cells("Models")) == set(names())
    assert set(first_cells("Which algorithm decides")) == set(ALGORITHM_NAMES)
    flags = {
        name for option in check.params for name in [*option.opts, *option.secondary_opts] if name.startswith("--")
    }
    named = set(re.findall(r"--[a-z][a-z-]*", TEXT))
    assert named <= flags
    assert flags - named == set()


def test_choices_of_conventions() -> None:
    """Each flag's values are those that the command takes."""
    rows = re.findall(r"^\| `--([a-z-]+)` \| (`\w+`, `\w+`) \|", TEXT, re.MULTILINE)
    choices = {option.name: option.type for option in check.params if isinstance(option.type, click.Choice)}
    assert len(rows) == 3
    for flag, values in rows:
        assert tuple(re.findall(r"`(\w+)`", values)) == tuple(choices[flag.replace("-", "_")].choices)


def test_analyzers_are_those_of_the_kernel() -> None:
    """The names in the table are what results can say."""
    source = (ROOT / "checker/kernel/src/near/mod.rs").read_text(encoding="utf-8")
    names = set(re.findall(r'=> \("(\w+)"', source)) - {"none"}
    documented = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .* \| .* \| .*\|$", TEXT, re.MULTILINE)
    found = {name for cell in documented for name in re.findall(r"`(\w+)`", cell)}
    assert names <= found


def operation(process: int, f: str, value: Any, start: int, kind: OpType = OpType.OK) -> Operation:
    """Returns an operation of ten moments."""
    return Operation(
        process=process,
        f=f,
        value=None if f == "look" else value,
        result=value if kind is OpType.OK else None,
        type=kind,
        start_ns=start,
        end_ns=start + 10,
        invoke_index=start,
        complete_index=start + 10,
    )


def test_the_model_of_the_guide_works() -> None:
    """The code block is run as it stands, on a history that fits and on one that does not."""
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    code = compile(block, "docs/checker.md", "exec")
    on, off = True, False
    fits = [operation(0, "set", None, 0), operation(1, "look", on, 5), operation(2, "look", off, 8)]
    broken = [operation(0, "set", None, 0), operation(1, "look", off, 20)]
    for operations, verdict in ((fits, Verdict.VALID), (broken, Verdict.INVALID)):
        names: dict[str, Any] = {"operations": operations, "__name__": "guide"}
        exec(code, names)  # noqa: S102 - our own text
        assert names["result"].valid is verdict
