"""The command line of `labrys suite`: its lists, its errors, and its standard output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from harness.errors import ExitCode
from harness.suites.thresholds import MEASURES
from tests.cases import case_result
from tests.examples import DEFAULT, PIPED

if TYPE_CHECKING:
    from harness.suites.case_result import CaseResult
    from harness.suites.suite import Suite

SUITE = """
name = "short"
[[test]]
name = "faults"
nemesis = ["kill", "pause"]
thresholds = ["p99_ms < 200"]
[[test]]
name = "control"
read-mode = "unsafe"
expect = "invalid"
"""


@pytest.fixture(autouse=True)
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in a folder that has only a suite file."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "short.toml"
    file.write_text(SUITE)
    return file


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs `labrys suite` on the suite; returns its exit code, standard output and standard error."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["suite", "short.toml", "--seed", "7", *arguments])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_a_dry_run_lists_the_cases_and_runs_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Each case has its command on one line, and no file is written."""
    code, out, err = run(capsys, "--dry-run", "--only", "faults")
    assert (code, err) == (ExitCode.VALID, "")
    lines = out.splitlines()
    assert lines[0] == "faults[nemesis=kill]  p99_ms < 200"
    assert lines[1].startswith("  labrys test --seed ")
    assert lines[1].endswith(" --nemesis kill --threshold 'p99_ms < 200'")
    assert lines[-1] == "2 cases of seed 7, whose workloads take 120.0 s; nothing was run"
    assert [path.name for path in tmp_path.iterdir()] == ["short.toml"]

    code, out, _ = run(capsys, "--dry-run", "--format", "json")
    cases = json.loads(out)
    assert [case["name"] for case in cases] == ["faults[nemesis=kill]", "faults[nemesis=pause]", "control"]
    assert cases[2]["command"][:2] == ["labrys", "test"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "bridge"], "--only 'bridge' matches none of the 3 cases; the first are faults[nemesis=kill]"),
        (["--only", "kill and"], "'kill and' is not an expression such as"),
    ],
)
def test_an_expression_that_selects_no_case_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Otherwise a suite without a case would pass."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert message in err


def test_a_case_that_cannot_run_is_refused_before_the_first_runs(
    capsys: pytest.CaptureFixture[str], suite: Path, tmp_path: Path
) -> None:
    """A bad value in the last case is an error at once."""
    suite.write_text(SUITE + "rate = -3\n")
    code, out, err = run(capsys)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert "the case control: Invalid value for '--rate': -3.0 is not in the range" in err
    assert [path.name for path in tmp_path.iterdir()] == ["short.toml"]


@pytest.mark.parametrize("words", [[], ["--dry-run"]], ids=["run", "dry-run"])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('nemesis = "kill:nobody"', "the case control: unknown target 'nobody'"),
        ('workload = "queue"', f"the case control: the system {DEFAULT} serves "),
        ('plan = "none.json"', "the case control: Invalid value for '--plan': File 'none.json' does not exist."),
        (
            f'system = "{PIPED}"\nworkload = "echo"\ncluster = "sim"',
            f"the case control: the system {PIPED} runs as programs with pipes only: give --cluster pipes, not --cluster sim",
        ),
        ('nemesis = "kill"\nfault-on = "500"', "the case control: kill does not fit into 60 s: "),
    ],
)
def test_options_that_do_not_fit_together_are_refused_before_the_first_case(
    capsys: pytest.CaptureFixture[str], suite: Path, tmp_path: Path, *, line: str, message: str, words: list[str]
) -> None:
    """What `labrys test` refuses before it opens a cluster, a suite and its dry run refuse too; no folder is made."""
    suite.write_text(f"{SUITE}{line}\n".replace('read-mode = "unsafe"\n', ""))
    code, out, err = run(capsys, *words)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["short.toml"]


def test_the_name_of_a_case_selects_this_case_alone(capsys: pytest.CaptureFixture[str], suite: Path) -> None:
    """So the command that a summary prints for a case runs no other, also if its name is a part of another name."""
    suite.write_text('[[test]]\nname = "kill"\n[[test]]\nname = "kill-leader or not (all)"\n')
    for only, names in (
        ("kill", ["kill"]),
        ("kil", ["kill", "kill-leader or not (all)"]),
        ("kill-leader or not (all)", ["kill-leader or not (all)"]),
    ):
        _, out, _ = run(capsys, "--dry-run", "--format", "json", "--only", only)
        assert [case["name"] for case in json.loads(out)] == names


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('expect-part = ["linearizable"]', "has no key 'expect-part'. Did you mean 'expect-parts'?"),
        ('treshold = ["p99_ms < 1"]', "has no key 'treshold'. Did you mean 'thresholds'?"),
        ('threshold = "p99_ms < 1"', "has no key 'threshold'. Did you mean 'thresholds'?"),
        (
            'thresholds = ["raed.p99_ms < 1"]',
            "'raed.p99_ms < 1' names the function 'raed', and the workload register has the functions cas, read, write",
        ),
    ],
)
def test_a_misspelt_key_or_function_is_refused_before_the_first_case(
    capsys: pytest.CaptureFixture[str], suite: Path, tmp_path: Path, line: str, message: str
) -> None:
    """The error names the right key, or the functions of the workload; no folder is made."""
    suite.write_text(f"{SUITE}{line}\n")
    code, out, err = run(capsys)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["short.toml"]


def test_the_output_has_the_given_format(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With json it is one document, github has a line for each failed case, and text has the path of the JUnit file."""

    def run_suite(suite: Suite, *_: object, **__: object) -> list[CaseResult]:
        return [case_result(case, code, "100% so:\nyes") for case, code in zip(suite.cases, (0, 2, 1), strict=True)]

    monkeypatch.setattr("commands.suite.cases.run_suite", run_suite)
    code, out, err = run(capsys, "--format", "json")
    document = json.loads(out)
    assert code == ExitCode.UNKNOWN
    assert document["passed"] is False
    assert [(case["name"], case["passed"], case["valid"]) for case in document["cases"]] == [
        ("faults[nemesis=kill]", True, True),
        ("faults[nemesis=pause]", False, "unknown"),
        ("control", True, False),
    ]
    assert "? " not in err
    assert "✗ unknown, expected valid  faults[nemesis=pause]" in err
    assert "✓ invalid, as expected     control" in err

    warning, notice = run(capsys, "--format", "github", "--store", "other")[1].splitlines()
    assert warning.startswith(
        "::warning title=short faults[nemesis=pause]::unknown, expected valid: 100%25 so:%0Ayes%0Alabrys"
    )
    assert notice == "::notice title=short::2 of 3 cases were as expected"

    out = run(capsys, "--store", "third")[1]
    assert out.startswith("third/suites/short/")
    assert out.endswith("/junit.xml\n")


def test_the_page_on_suites_has_every_measure() -> None:
    """Its table has each measure of a threshold, with the words of the code."""
    text = (Path(__file__).parents[3] / "docs" / "guide" / "suites.md").read_text()
    for name, meaning in MEASURES.items():
        assert f"| `{name}` | {meaning} |" in text
