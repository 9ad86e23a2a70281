"""Locals and parameters are named by their thing (`verdicts`, `index`), so three words that fit anything name none."""

from __future__ import annotations

from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
FOLDERS = (
    "harness", "nemesis", "workloads", "checker", "clusters", "results", "commands", "benchmarks", "tools", "examples",
)  # fmt: skip
REFUSED = {"found", "each", "place"}


def locals_of(code: CodeType) -> Iterator[str]:
    """Yields the names of all locals and parameters of compiled code, with those of nested functions."""
    yield from {*code.co_varnames, *code.co_cellvars}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from locals_of(part)


def test_locals_of_each_kind_are_seen() -> None:
    """A field of a class and an attribute are no locals."""
    text = """
class Match:
    place: int
    other = 1
    def method(self, a, *b, **c):
        d = self.place = [e for e in a]
        for f, (g, *h) in b:
            lambda i: (j := i)
        with c as k:
            l: int = k
        try: m = lambda: d
        except ValueError as n: pass
        match d:
            case [o, *p]: pass
            case str() as q: pass
"""
    assert {name for name in locals_of(compile(text, "", "exec")) if name.isalpha()} == {*"abcdefghijklmnopq", "self"}


def test_no_local_has_a_name_that_fits_anything() -> None:
    """Tests may have them."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "tests" not in path.parts]
    assert len(paths) > 800
    bad = []
    for path in sorted(paths):
        code = compile(path.read_text(encoding="utf-8"), str(path), "exec")
        bad += [f"{path.relative_to(ROOT)}: {name}" for name in locals_of(code) if name in REFUSED]
    assert bad == []
