"""The command line: exit codes, suggestions, defaults from a file and from the environment, the reproduce line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import cli
from harness.errors import ExitCode
from harness.suite import load_suite

ROOT = Path(__file__).parents[3]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs the command line in this process; returns its exit code, and what it wrote to both outputs."""
    with pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Works in an empty folder, where no configuration of this project's is found."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What `labrys plan` prints."""
    code, out, err = run(capsys, "plan", *arguments)
    assert code == ExitCode.VALID, err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sed", "4"], "--sed"),
        (["tset"], "No such command"),
        (["plan", "--sed", "4"], "--seed"),
        (["plan", "--read-mode", "unsave"], "unsafe"),
        (["plan", "--nemesis", "kil"], "Did you mean 'kill'"),
        (["plan", "--values", "uniqe"], "unique"),
        (["plan", "--fault-on", "soon"], "6-15"),
        (["plan", "--nemesis", "kill", "--time-limit", "9"], "no room"),
        (["plan", "--load", "closed", "--concurrency", "two"], "2n"),
    ],
)
def test_what_is_not_understood_is_refused_with_a_hint(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Exit code 254, nothing on standard output, and what would have been understood."""
    code, out, err = run(capsys, *arguments)

    assert code == ExitCode.BAD_ARGUMENTS
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_the_same_seed_gives_the_same_plan_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    """Operations and faults depend on seed and options alone, and another seed gives others."""
    arguments = ("plan", "--nemesis", "kill,partition-random-halves", "--time-limit", "90")

    first = run(capsys, *arguments, "--seed", "11")
    again = run(capsys, *arguments, "--seed", "11")
    other = run(capsys, *arguments, "--seed", "12")

    assert first == again
    assert first[1] != other[1]
    document = json.loads(first[1])
    assert {fault["kind"] for fault in document["plan"]["faults"]} == {"kill", "partition-random-halves"}
    assert document["streams"]


def test_the_reproduce_line_repeats_what_was_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that differs from its default, and the seed; the line itself gives the same plan."""
    chosen = ("--nemesis", "kill", "--time-limit", "45.5", "--fault-on", "3-4", "--no-final-reads", "--nodes", "5")

    document = plan(capsys, "--seed", "5", *chosen)

    line = document["reproduce"]
    assert "--nodes" not in line
    assert "--no-final-reads" in line
    words = shlex.split(line)
    assert words[:2] == ["labrys", "test"]
    assert plan(capsys, *words[2:]) == document


def test_a_flag_beats_the_environment_and_that_beats_the_file(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults come from `labrys.toml`, then LABRYS_* variables, then the command line; all are in the reproduce line."""
    (elsewhere / "labrys.toml").write_text('[plan]\ntime-limit = 111\nvalues = "small"\nseed = 3\n')

    assert plan(capsys)["plan"]["time_limit_s"] == 111
    monkeypatch.setenv("LABRYS_PLAN_TIME_LIMIT", "222")
    assert plan(capsys)["plan"]["time_limit_s"] == 222
    document = plan(capsys, "--time-limit", "33")
    assert document["plan"]["time_limit_s"] == 33
    assert "--values small" in document["reproduce"]
    assert "--seed 3" in document["reproduce"]


def test_an_unknown_key_of_the_file_is_refused(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """A default that would silently be ignored is an error with a suggestion."""
    (elsewhere / "labrys.toml").write_text("[plan]\ntime-limt = 111\n")

    code, _, err = run(capsys, "plan")

    assert code == ExitCode.BAD_ARGUMENTS
    assert "Did you mean 'time-limit'" in err


def test_a_plan_can_be_edited_and_carried_out(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """What `plan` prints under `plan` is what --plan reads."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill")["plan"]
    (elsewhere / "plan.json").write_text(json.dumps(drawn))

    assert plan(capsys, "--seed", "5", "--plan", "plan.json")["plan"]["faults"] == drawn["faults"]


@pytest.mark.parametrize("name", ["smoke", "nightly", "rip-59", "openchaos"])
def test_the_suites_that_are_shipped_can_be_planned(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Every case of every suite has options that are understood, and a plan that there is room for."""
    known = {option.removeprefix("--") for parameter in cli.run_test.params for option in parameter.opts}
    suite = load_suite(ROOT / "suites" / f"{name}.toml", seed=1, known=known)

    for case in suite.cases:
        arguments = case.arguments()
        assert plan(capsys, *arguments[1:])["plan"]["faults"], case.name
