"""Files of Python that the user names."""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

import pytest

from harness.console import own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LATCH = """
from own_helper import NAME

class Latch:
    name = NAME

    def doubled(self, number):
        return 2 * number
"""


@pytest.fixture
def latch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns a file with a class and a helper beside it. Its modules are unloaded afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "own_helper.py").write_text("NAME = 'latch'\n")
    path = tmp_path / "json.py"
    path.write_text(LATCH)
    yield path
    own.module_of.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_runs_once_under_a_name_of_its_own(latch: Path) -> None:
    """It finds its helper, and a module of the same name stays what it is."""
    module = own.module_of(latch)
    assert module is own.module_of(latch)
    assert module.Latch.name == "latch"
    assert module.__name__.startswith("harness.console.own.json_")
    assert "Latch" not in vars(sys.modules["json"])
    assert own.readable(f"module '{module.__name__}' has") == "module 'json.py' has"
    assert sys.path[-1] == str(latch.parent)


def test_two_files_of_one_name_are_two_modules(latch: Path) -> None:
    """Files with the same name in two folders do not replace each other."""
    other = latch.parent / "other" / latch.name
    other.parent.mkdir()
    other.write_text("class Latch:\n    name = 'other'\n")
    assert own.module_of(other).Latch.name == "other"
    assert own.module_of(latch).Latch.name == "latch"


def test_equal_files_with_other_neighbours_are_two_modules(latch: Path) -> None:
    """Each copy has its own folder, in this process and in another one."""
    first = own.module_of(latch)
    copy = latch.parent / "copy" / latch.name
    copy.parent.mkdir()
    copy.write_text(LATCH)
    second = own.module_of(copy)
    assert (first.__file__, second.__file__) == (str(latch), str(copy))
    assert own.readable(second.__name__) == "json.py"
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert type(pool.submit(second.Latch).result()) is second.Latch


def test_a_new_process_finds_the_file_by_the_name_of_its_class(latch: Path) -> None:
    """An object of the class goes to a process that did not load the file, and back."""
    made = own.module_of(latch).Latch()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(made.doubled, 21).result() == 42
        assert type(pool.submit(type(made)).result()) is type(made)


def test_code_that_has_changed_does_not_run(latch: Path) -> None:
    """All processes of a command run the same code."""
    module = own.module_of(latch)
    del sys.modules[module.__name__]
    latch.write_text(LATCH.replace("2 *", "3 *"))
    with pytest.raises(ImportError, match=r"json.py was changed or removed after it was loaded; run the command again"):
        importlib.import_module(module.__name__)
