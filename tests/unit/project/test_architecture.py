"""docs/guide/architecture.md names files, things in them and entry points that there are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import cli
from harness.console import plugins

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "guide" / "architecture.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\| .+ \| `([a-z_/]+\.py)` \| `(\w+)` \|$", re.MULTILINE)


def defined(path: Path) -> set[str]:
    """Returns the names of all functions, methods and classes of a module."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)}


def test_each_step_is_where_the_page_says() -> None:
    """A file that moves, or a name that changes, moves on the page too."""
    steps = STEP.findall(PAGE)
    assert len(steps) > 30
    assert [(file, name) for file, name in steps if name not in defined(ROOT / file)] == []


def test_each_path_of_the_page_is_there() -> None:
    """Files and folders, and links to other pages."""
    for path in re.findall(r"`([a-z_]+/[a-z_./]*|cli\.py)`", PAGE):
        assert (ROOT / path).exists(), path
    for link in re.findall(r"\]\(([^)#]+)", PAGE):
        assert (ROOT / "docs" / "guide" / link).exists(), link


def test_the_page_has_every_registry() -> None:
    """Each group of entry points is where a new thing can belong."""
    for group in plugins.SINGULAR:
        assert f"`{group}`" in PAGE
    assert "`COMMANDS` in `cli.py`" in PAGE
    assert cli.COMMANDS
