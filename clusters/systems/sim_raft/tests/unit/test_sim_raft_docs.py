"""The page on the simulated Raft agrees with the code."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import clusters.systems.sim_raft
from clusters.systems.sim_raft import outcomes
from clusters.systems.sim_raft.bugs import TABLE, Bug
from clusters.systems.sim_raft.options import Reads, SimRaftOptions
from harness.op import Fail
from tests.catches.hunts import row_of

PAGE = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_page_has_each_bug_in_order() -> None:
    """The table has one row for each bug, and no other rows."""
    rows = [line for line in PAGE.splitlines() if line.startswith(tuple(f"| `{bug}` |" for bug in Bug))]
    assert [line for line in rows if line.count("|") == 5] == [row_of(bug, planted) for bug, planted in TABLE.items()]
    assert set(TABLE) == set(Bug) - {Bug.NONE}
    assert len(TABLE) >= 20


def test_the_page_has_each_option() -> None:
    """The page names all options, read modes, codes of answers, and modules."""
    for field in fields(SimRaftOptions):
        assert f"| `--{field.name.replace('_', '-')}` |" in PAGE
    for way in Reads:
        assert f"| `{way}`" in PAGE
    for path in Path(clusters.systems.sim_raft.__file__).parent.glob("*.py"):
        if path.stem not in {"__init__", "bugs", "options", "roles", "messages", "system"}:
            assert f"`{path.stem}`" in PAGE


def test_the_page_types_each_code() -> None:
    """The page lists which codes are fails and which are info."""
    lines = [line for line in PAGE.splitlines() if "| fail |" in line or "| info |" in line]
    for code, kind in outcomes.OUTCOMES.items():
        (line,) = (line for line in lines if f"`{code}`" in line)
        assert ("| fail |" in line) == (kind is Fail)
