"""A folder of regressions is a suite, with plans beside the files, fixed seeds, and a minimum of expected runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pytest

from commands.suite.results import how_often
from harness.console.parameters import PluginName, ProgramText, existing_file
from harness.console.plugins import FAULTS, SYSTEMS, WORKLOADS
from harness.errors import InputError
from harness.randomness import repeat_seed
from harness.suites.case import Case
from harness.suites.suite import load_suite
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.suites.suite import Suite

FILE = """
[[test]]
name = "lost-write"
plan = "lost-write.json"
seed = 7
repeat = 5
at-least = 1
expect = "invalid"
expect-parts = ["linearizable"]
"""


def types_of(options: Mapping[str, object]) -> dict[str, click.ParamType[Any]]:
    """Returns the types of all options, as `labrys test` has them."""
    places = {
        name: PluginName(group) for name, group in (("system", SYSTEMS), ("workload", WORKLOADS), ("fault", FAULTS))
    }
    every: dict[str, click.ParamType[Any]] = dict.fromkeys(options, click.STRING)
    return {**every, **places, "plan": existing_file(), "bin": ProgramText()}


def load(folder: Path) -> Suite:
    """Reads the folder with root seed 1; all options are known."""
    return load_suite(folder, seed=1, known=types_of)


@pytest.mark.parametrize("in_folder", [True, False])
def test_a_workload_in_a_file_is_relative_to_the_file_of_the_suite(tmp_path: Path, *, in_folder: bool) -> None:
    """The name of a case, from which its seed is drawn, does not depend on the place of the suite."""
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "a.toml").write_text(
        '[[test]]\nname = "a"\nsystem = "kv"\nfault = "f.py:KINDS"\nworkload = ["own/bank.py:Bank", "log"]\n'
    )
    cases = load(folder if in_folder else folder / "a.toml").cases
    assert [case.name for case in cases] == ["a[workload=own/bank.py:Bank]", "a[workload=log]"]
    assert [case.options["workload"] for case in cases] == [f"{folder}/own/bank.py:Bank", "log"]
    assert {(case.options["system"], case.options["fault"]) for case in cases} == {("kv", f"{folder}/f.py:KINDS")}


@pytest.mark.parametrize("in_folder", [True, False])
@pytest.mark.parametrize(
    ("line", "option", "moved"),
    [
        ('plan = "plans/a.json"', "plan", "{folder}/plans/a.json"),
        ('plan = "/plans/a.json"', "plan", "/plans/a.json"),
        ('bin = "./node.py --eager ./x"', "bin", "{folder}/node.py --eager ./x"),
        ('bin = "nodes/node.py"', "bin", "{folder}/nodes/node.py"),
        ('bin = "python3 node.py"', "bin", "python3 node.py"),
        ('bin = "~/node.py"', "bin", "~/node.py"),
        ('nemesis = "./kill"', "nemesis", "./kill"),
    ],
)
def test_a_path_is_relative_to_the_file_of_the_suite(
    tmp_path: Path, line: str, option: str, moved: str, *, in_folder: bool
) -> None:
    """Plans and programs are, whatever the working folder is; a program in PATH and an absolute path are not."""
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "a.toml").write_text(f'[[test]]\nname = "a"\n{line}\n')
    (case,) = load(folder if in_folder else folder / "a.toml").cases
    assert case.options[option] == moved.format(folder=folder)


def test_a_regression_is_one_case_of_many_runs(tmp_path: Path) -> None:
    """The path of its plan is relative to its folder, and it has its own seed."""
    folder = tmp_path / "regressions"
    folder.mkdir()
    (folder / "a.toml").write_text(FILE)
    (folder / "b.toml").write_text('[[test]]\nname = "b"\nrate = [1, 2]\n')
    (folder / "notes.md").write_text("no test")
    suite = load(folder)
    assert (suite.name, [case.name for case in suite.cases]) == (
        "regressions",
        ["lost-write", "b[rate=1]", "b[rate=2]"],
    )
    case = suite.cases[0]
    assert (case.seed, case.runs, case.at_least, case.expect_parts) == (7, 5, 1, frozenset({"linearizable"}))
    assert case.arguments() == [
        "test", "--seed", "7", "--plan", str(folder / "lost-write.json"), "--repeat", "5", "--until-fail"
    ]  # fmt: skip


def test_a_fixed_seed_and_separate_runs(tmp_path: Path) -> None:
    """Without `at-least`, each run is a case, with the same seeds as with --repeat."""
    (tmp_path / "a.toml").write_text('[[test]]\nname = "a"\nseed = 7\nrepeat = 2\n')
    assert [case.seed for case in load(tmp_path).cases] == [7, repeat_seed(7, 2)]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('name = "x"\n[[test]]\nname = "a"', "remove `name`"),
        ('[[test]]\nname = "a"\nrepeat = 3\nat-least = 4', "at-least takes a whole number from 1 to 3, not 4"),
        ('[[test]]\nname = "a"\nat-least = 1\nthresholds = ["p99_ms < 2"]', "does not go with thresholds"),
        ('[[test]]\nname = "a"\nexpect-parts = ["linearizable"]', 'needs expect = "invalid"'),
        ('[[test]]\nname = "a"\nexpect = "invalid"\nexpect-parts = "linearizable"', "takes a list"),
        ('[[test]]\nname = "a"\nseed = -1', "seed takes a whole number"),
        ('[[test]]\nname = "a"\nseed = true', "seed takes a whole number"),
    ],
)
def test_a_bad_regression_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    """The error names the file."""
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InputError, match=sentence) as refused:
        load(tmp_path)
    assert "a.toml" in str(refused.value)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """A suite needs a case."""
    with pytest.raises(InputError, match="found none"):
        load(tmp_path)


def result(case: Case, runs: Sequence[bool | str | None], parts: tuple[str, ...] = ("linearizable",)) -> Any:
    """Returns the result of a case with these verdicts of its runs."""
    documents = [
        {"valid": valid, "invalid": parts if valid is False else (), "reason": f"Run {number}.", "run": str(number)}
        for number, valid in enumerate(runs, 1)
    ]
    return how_often(case, {"runs": documents}, seconds=1.0)


def case(expect: Verdict, at_least: int, *parts: str) -> Case:
    """Returns a case of five runs."""
    return Case(
        name="c",
        test="c",
        reproduce="",
        options={},
        seed=1,
        expect=expect,
        expect_parts=frozenset(parts),
        runs=5,
        at_least=at_least,
    )


def test_enough_runs_as_expected_pass() -> None:
    """The result has the first of them."""
    summary = result(case(Verdict.INVALID, 1, "linearizable"), [True, True, False])
    assert (summary.passed, summary.run) == (True, "3")
    assert summary.outcome.reason.startswith(
        "1 of 3 runs is invalid by linearizable, and at least 1 of 5 should be. Run 3."
    )


@pytest.mark.parametrize(
    ("wanted", "runs", "verdict"),
    [
        (case(Verdict.INVALID, 1), (True,) * 5, Verdict.VALID),
        (case(Verdict.INVALID, 2), (True, False, True, True, True), Verdict.VALID),
        (case(Verdict.VALID, 5), (True, True, False, True, True), Verdict.INVALID),
        (case(Verdict.VALID, 5), (True, True, "unknown", True, True), Verdict.UNKNOWN),
        (case(Verdict.VALID, 5), (True, True, None, "unknown", True), None),
        (case(Verdict.VALID, 5), (), None),
    ],
)
def test_too_few_runs_as_expected_fail(wanted: Case, runs: tuple[Any, ...], verdict: Verdict | None) -> None:
    """The worst of the other runs decides."""
    summary = result(wanted, runs)
    assert (summary.passed, summary.verdict) == (False, verdict)


def test_another_part_is_another_bug() -> None:
    """A run whose expected part is not invalid does not count."""
    summary = result(case(Verdict.INVALID, 1, "linearizable"), [False, False], parts=("recovered",))
    assert not summary.passed
    assert summary.why.startswith("invalid, but not by linearizable: 0 of 2 runs are invalid by linearizable")
