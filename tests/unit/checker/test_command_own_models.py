"""`labrys check --model module:Class`: a model from a user's file, and the search's effort."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from checker.deciders import Wanted
from harness.errors import ExitCode, InputError
from tests.judges import Ids
from tests.own_models import lines, operation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.unit.checker.conftest import Ran

PLACE = "tests.own_models:MaxRegister"
GOOD = [operation(0, "max", 5, 0, 1, 5), operation(1, "read", None, 2, 3, 5), operation(1, "max", 3, 4, None)]
BAD = [operation(0, "max", 5, 0, 1, 5), operation(1, "read", None, 2, 3, 0)]
MODULE = """
from checker.models import Call, Inconsistent, Model
import {imported}

class Latch(Model):
    name = "latch"
    initial = False

    def step(self, state, op: Call):
        return state or op.f == "set"
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a history."""

    def make(operations: Any, name: str = "history.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines(operations)))
        return path

    return make


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Returns the working folder. Its modules are unloaded afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_model_of_the_user_decides(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Verdict, name, explanation and exit code are those of the named model."""
    assert run(file(GOOD), "--model", PLACE).code == ExitCode.VALID
    ran = run(file(BAD), "--model", PLACE, "--format", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["valid"], document["model"]) == (ExitCode.INVALID, False, "max-register")
    assert document["explanation"] == (
        "Process 1's read of 0 at 0.003 s is not possible after process 0's max of 5 (0.000 s to 0.001 s): the maximum is 5."
    )


def test_the_initial_state_is_the_model_s_to_take(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """A model with `initial` in its `__init__` gets it. Another one refuses it with a remedy."""
    seven = [operation(0, "read", None, 0, 1, 7)]
    assert run(file(seven), "--model", PLACE, "--initial", "7").code == ExitCode.VALID
    with pytest.raises(InputError, match="it takes no initial state; leave --initial out, or give"):
        run(file(seven), "--model", "tests.own_models:BoundedStack", "--initial", "7")


def test_a_module_in_the_working_folder_is_found(
    run: Callable[..., Ran], file: Callable[..., Path], folder: Path
) -> None:
    """It works without packaging and PYTHONPATH."""
    (folder / "own_latch.py").write_text(MODULE.format(imported="json"))
    assert run(file(GOOD), "--model", "own_latch:Latch").code == ExitCode.VALID


def test_a_file_may_have_the_name_of_a_room(run: Callable[..., Ran], file: Callable[..., Path], folder: Path) -> None:
    """`results/checker.py` in a folder of the user's hides no room, and no room hides it."""
    (folder / "results").mkdir()
    (folder / "results" / "checker.py").write_text(MODULE.format(imported="own_helper"))
    (folder / "results" / "own_helper.py").write_text("")
    assert run(file(GOOD), "--model", "results/checker.py:Latch").code == ExitCode.VALID


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("nothing_here:Latch", "expected nothing_here.py in the working folder"),
        ("tests.own_models:Missing", "expected MODULE:CLASS, with a class that the module tests.own_models has"),
        ("nothing/here.py:Latch", "expected a file of Python, relative to the working folder"),
        ("own_needs.py:Latch", r"No module named 'nothing_there' \(.*own_needs.py:3\); the file can import installed"),
        ("own_ends.py:Latch", r"SystemExit: 0 \(.*own_ends.py:1\); correct the file"),
        ("own_latch.py:Missing", r"module 'own_latch.py' has no attribute 'Missing'; expected FILE.py:CLASS"),
        ("tests.own_models:", "expected MODULE:CLASS"),
        (":Latch", "cannot be loaded from :Latch"),
        ("tests.own_models:draw", "is no class below checker.models.Model; docs/guide/new-model.md shows one"),
        ("tests.own_models:WithoutStep", r"lacks the method step\(state, op\); docs/guide/new-model.md shows one"),
        ("tests.own_models:Demanding", "its `__init__` needs size; give each parameter a default value"),
        ("tests.own_models:Broken", r"step \(.*own_models.py:\d+\) failed: ZeroDivisionError.*; correct the model"),
        ("own_needs:Latch", r"No module named 'nothing_there' \(.*own_needs.py:3\); correct the module, `python -c"),
        ("own_ends:Latch", r"SystemExit: 0 \(.*own_ends.py:1\); correct the module"),
    ],
)
def test_a_broken_place_is_a_sentence(
    run: Callable[..., Ran], file: Callable[..., Path], folder: Path, place: str, expected: str
) -> None:
    """The message has a remedy, and the exit code is that of bad input."""
    (folder / "own_needs.py").write_text(MODULE.format(imported="nothing_there"))
    (folder / "own_ends.py").write_text("raise SystemExit(0)\n")
    (folder / "own_latch.py").write_text(MODULE.format(imported="json"))
    with pytest.raises(InputError, match=expected) as caught:
        run(file(GOOD), "--model", place)
    assert caught.value.exit_code == ExitCode.BAD_ARGUMENTS


BROKEN = {
    "no-op": (
        "def step(self, state):  # here\n        return state",
        r"expected step\(self, state, op\), found step\(self, state\);",
    ),
    "no-self": (
        "def step(state, op):  # here\n        return state",
        r"expected step\(self, state, op\), found step\(state, op\)",
    ),
    "keyword": (
        "def step(self, state, op, *, now):  # here\n        return state",
        r"expected step\(self, state, op\), found step\(self, state, op, \*, now\)",
    ),
    "async": (
        "async def step(self, state, op):  # here\n        return state",
        r"step\(self, state, op\), a function without `async`",
    ),
    "generator": ("def step(self, state, op):  # here\n        yield", "a function without `yield`, found another"),
    "no-function": ("step = 5", r"expected step\(self, state, op\), found 5"),
    "raises": ("def step(self, state, op):\n        return state.missing  # here", "failed: AttributeError: .*missing"),
    "exits": ("def step(self, state, op):\n        raise SystemExit(0)  # here", "failed: SystemExit: 0; correct"),
    "class": ("def step(self, state, op):  # here\n        return Inconsistent", "expected a state or an object"),
    "error": ("def step(self, state, op):  # here\n        return ValueError()", "found ValueError"),
    "not-implemented": ("def step(self, state, op):  # here\n        return NotImplemented", "found NotImplemented"),
    "unhashable": ("def step(self, state, op):  # here\n        return Unhashable()", "expected hashable states"),
    "changed": (
        "initial = []\n    def step(self, state, op):  # here\n        state.append(1)\n        return state",
        "expected a new state, and the given one as it was, found a state that `step` changed in place",
    ),
    "observes": (
        "def step(self, state, op):\n        return 1\n    def observes(self):  # here\n        return False",
        r"expected observes\(self, op\), found observes\(self\)",
    ),
    "flow": (
        "def step(self, state, op):\n        return 1\n    def flow(self, op):  # here\n        return [1]",
        "expected a Flow or None",
    ),
    "flow-values": (
        "def step(self, state, op):\n        return 1\n    def flow(self, op):  # here\n        return Flow(5)",
        "expected a Flow or None",
    ),
    "describe": (
        'def step(self, state, op):\n        return Inconsistent("")\n    def describe(self, _):  # here\n        return 5',
        "expected a mapping with names as keys",
    ),
    "name": (
        "name = 5\n    def step(self, state, op):\n        return 1",
        "expected a text as its attribute `name`, found 5",
    ),
    "keeps-failed": (
        'keeps_failed = "cas"\n    def step(self, state, op):\n        return 1',
        "expected a set of names of functions as its attribute `keeps_failed`, found 'cas'",
    ),
    "initial-values": (
        "initial_values = 5\n    def step(self, state, op):\n        return 1",
        "expected a list of values as its attribute `initial_values`, found 5",
    ),
    "initial": (
        "initial = Unhashable()\n    def step(self, state, op):\n        return 1",
        r"own_mistake.py:\d+\): expected hashable states",
    ),
    "no-step": ("nothing = 1", r"lacks the method step\(state, op\).*; found Mistake \(.*own_mistake.py:8\)"),
    "import": ("import nothing_there  # here", "ModuleNotFoundError: No module named 'nothing_there'"),
}


@pytest.mark.parametrize("mistake", BROKEN)
@pytest.mark.parametrize("form", ["text", "json", "edn"])
def test_a_mistake_in_a_model_is_an_error_with_its_line(
    run: Callable[..., Ran], file: Callable[..., Path], folder: Path, mistake: str, form: str
) -> None:
    """Bad input, with the file, the line, what Labrys expected and what it found; never a traceback, never a verdict."""
    body, expected = BROKEN[mistake]
    text = (
        "from checker.models import Flow, Inconsistent, Model\n\n"
        "class Unhashable:\n    __hash__ = None\n    def __eq__(self, other):\n        return self is other\n\n"
        f"class Mistake(Model):\n    name = 'mistake'\n    {body}\n"
    )
    (folder / "own_mistake.py").write_text(text)
    with pytest.raises(InputError, match=expected) as caught:
        run(file(BAD), "--model", "own_mistake:Mistake", "--format", form)
    assert caught.value.exit_code == ExitCode.BAD_ARGUMENTS
    line = next((number for number, text_line in enumerate(text.splitlines(), 1) if "# here" in text_line), None)
    if line is not None:
        assert f"own_mistake.py:{line})" in str(caught.value)
    elif mistake != "no-function":
        assert "own_mistake.py:" in str(caught.value)


def test_a_file_of_defaults_never_names_a_module(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """`labrys.toml` belongs to a folder. A module in it would be untrusted code."""
    with pytest.raises(click.BadParameter, match="labrys never takes from a file"):
        run(file(GOOD), default_map={"model": PLACE})
    with pytest.raises(InputError, match="labrys never takes from a file"):
        Wanted(model=PLACE, by_place=False).of_history()


def test_a_run_s_folder_never_names_a_module(run: Callable[..., Ran], tmp_path: Path) -> None:
    """The workload of test.json is one of the installed workloads."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines(GOOD)))
    (tmp_path / "run" / "test.json").write_text(json.dumps({"workload": "tests.judges:Ids", "options": {}}))
    with pytest.raises(InputError, match="labrys never takes from a file"):
        run(tmp_path / "run")
    assert run(tmp_path / "run", "--model", PLACE).code == ExitCode.VALID


def test_a_workload_may_name_a_model_beside_it(
    run: Callable[..., Ran], file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code shows the place, not a file."""
    monkeypatch.setattr(Ids, "model", PLACE)
    ran = run(file(BAD), "--workload", "tests.judges:Ids")
    assert ran.code == ExitCode.INVALID
    assert "(max-register, 2 operations" in ran.out


def test_a_long_counterexample_is_cut_on_the_terminal(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """A stack of forty takes forty pushes: the text has the last thirty operations and the number of all, JSON has all."""
    pushes = [operation(0, "push", value, 2 * value, 2 * value + 1) for value in range(40)]
    path = file([*pushes, operation(0, "pop", None, 80, 81, 38)])
    lines_ = run(path, "--model", "tests.own_models:Stack").out.splitlines()
    assert lines_[1].endswith("is not possible: the top is 39.")
    index = lines_.index("These operations alone have no legal order; the last 30 of 41:")
    assert len(lines_) == index + 31
    assert "  pop " in lines_[-1]
    document = json.loads(run(path, "--model", "tests.own_models:Stack", "--format", "json").out)
    assert len(document["counterexample"]) == 41


def test_the_search_is_told_of_in_every_format(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Lines of text after the verdict, also for several files; an object in JSON; a map in EDN."""
    path = file(GOOD)
    for files in ([path], [path, file(GOOD, "other.jsonl")]):
        out = run(*files, "--model", PLACE, "--explain-model").out
        assert out.count("Checked: 3 operations, 1 of which only observe; 3 classes, ") == len(files)
        assert out.count("Algorithm: jit-dfs; ") == len(files)
        assert "1 operation never returned" in out
    document = json.loads(run(path, "--model", PLACE, "--explain-model", "--format", "json").out)["search"]
    assert (document["classes"], document["observers"], document["crashed"]) == (3, 1, {"max of 3": 1})
    assert document["widest"] == {"operations": 1, "invoke_index": 0}
    assert ":search {" in run(path, "--model", PLACE, "--explain-model", "--format", "edn").out
    assert "search" not in json.loads(run(path, "--model", PLACE, "--format", "json").out)


def test_a_checker_of_a_workload_has_no_model_to_explain(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """An option without any effect is refused."""
    with pytest.raises(InputError, match="--explain-model: only models support this"):
        run(file(GOOD), "--workload", "tests.judges:Ids", "--explain-model")
