"""What has one place has it: units of time, and settings of a Spark session."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("harness", "nemesis", "workloads", "checker", "clusters", "results", "commands")
SOURCES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_nanoseconds_in_a_second_are_defined_once() -> None:
    """`harness.units` says it, and nobody else gives the number a name."""
    paths = []
    for path in SOURCES:
        for node in ast.walk(_parsed(path)):
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Constant) and value.value == 10**9 and isinstance(value.value, int):
                paths.append(str(path.relative_to(ROOT)))
    assert paths == ["harness/units.py"]


@pytest.mark.parametrize("path", sorted((ROOT / "results" / "pipeline").rglob("*.py")), ids=lambda path: path.stem)
def test_no_setting_of_a_session_changes_while_plans_use_it(path: Path) -> None:
    """Only a session that a function has made for itself gets settings from it."""
    for function in ast.walk(_parsed(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        own = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith(".newSession()")
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        sets = [
            ast.unparse(node.func.value.value)
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func).endswith(".conf.set")
            and isinstance(node.func.value, ast.Attribute)
        ]
        assert set(sets) <= own
