"""The arrows between rooms are those of CONTRIBUTING.md, and no others; modules have an order inside of a room too."""

from __future__ import annotations

import graphlib
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("harness", "nemesis", "workloads", "checker", "clusters", "results", "commands")
# In the other rooms, a part may name the type of what it belongs to.
WITHOUT_CIRCLES_OF_TYPES = ("checker", "results")


def test_rooms_import_only_what_they_may() -> None:
    """No room imports another one against the arrows (the contracts are in pyproject.toml)."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)

    assert linted.returncode == 0, linted.stdout + linted.stderr


@pytest.mark.parametrize(("rooms", "types"), [(ROOMS, False), (WITHOUT_CIRCLES_OF_TYPES, True)], ids=["code", "types"])
def test_no_modules_import_each_other(rooms: tuple[str, ...], types: bool) -> None:
    """There is no circle of imports, also not of imports in functions; in some rooms not even of types."""
    graph = grimp.build_graph(rooms[0], *rooms[1:], exclude_type_checking_imports=not types, cache_dir=None)
    assert len(graph.modules) > 100
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"these modules import each other: {' <- '.join(error.args[1])}")
