"""A suite says of each case what its run left out, and whether a control failed by its fault."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from commands.suite import known_options
from commands.suites import SuiteFolder, _plain_name, _time_limit_s, print_table, run_suite, seed_of
from harness.errors import ExitCode, InputError
from harness.suite import Case, CaseResult, Suite, exit_code, load_suite
from harness.verdict import Verdict
from results.errors import StoreError
from results.store import Store

CONTROL = Case(name="control", test="control", options={}, seed=7, expect=Verdict.INVALID, expect_during_fault=True)
NO_VIOLATION = "invalid, but no violation was seen during or after a fault"


def run(
    case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, code: ExitCode, document: dict[str, Any]
) -> tuple[CaseResult, str, SuiteFolder]:
    """Runs a suite of one case whose command prints a document; returns its result, what is printed, and its folder."""
    command = folder / "command"
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(document)}\nEND\nexit {int(code)}\n")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    suite = Suite(name="s", seed=1, cases=[case])
    place = SuiteFolder.create(folder / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    out = io.StringIO()
    console = Console(file=out, width=400)
    (result,) = run_suite(
        suite, place, store=folder / "store", console=console, exit_first=False, before={}, time_limit_s=60, config=None
    )
    print_table(console, [result])
    assert place.done(suite) == {case.name: result}
    return result, out.getvalue(), place


@pytest.mark.parametrize(
    ("violations", "problem"),
    [
        ({"violations": {"total": 3, "during_faults": 0, "after_faults": 1, "before_faults": 2}}, None),
        ({"violations": {"total": 3, "during_faults": 2, "after_faults": 0, "before_faults": 1}}, None),
        ({"violations": {"total": 3, "during_faults": 0, "after_faults": 0, "before_faults": 3}}, NO_VIOLATION),
        ({"violations": None}, NO_VIOLATION),
        ({}, "invalid, but its results do not say whether a violation was seen during or after a fault"),
    ],
)
def test_a_control_of_a_fault_needs_a_violation_in_or_after_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, violations: dict[str, Any], problem: str | None
) -> None:
    """Its sentence says what is missing: on the terminal, in the table, in JUnit and in the exit code."""
    document = {"reason": "Bad.", "parts": {}, "run": "r", **violations}
    result, printed, place = run(CONTROL, tmp_path, monkeypatch, ExitCode.INVALID, {"valid": False, **document})

    failure = ET.parse(place.path / "junit.xml").getroot().find(".//failure")  # noqa: S314 - our own file
    if problem is None:
        assert result.passed
        assert failure is None
        assert exit_code([result]) is ExitCode.VALID
    else:
        assert not result.passed
        assert failure is not None
        assert failure.get("message") == f"{problem}: Bad."
        assert printed.count(f"{problem}: Bad.") == 2
        assert exit_code([result]) is ExitCode.INVALID


def test_an_extra_part_that_is_unknown_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is known to fail is told apart from what is new, however the budget of the extra part ends."""
    case = Case(
        name="c", test="c", options={}, seed=7, expect=Verdict.VALID, known_failures=frozenset({"recovered=invalid"})
    )
    order = {"valid": "unknown", "reason": "The budget ended.", "details": {}, "extra": True}
    recovered = {"valid": False, "reason": "Never.", "details": {}}
    for parts, passed in (
        ({"recovered": recovered, "order-agrees": order}, True),
        ({"recovered": recovered, "order-agrees": {**order, "extra": False}}, False),
        ({"recovered": recovered, "order-agrees": {**order, "valid": False}}, False),
    ):
        document = {"valid": False, "reason": "Never.", "parts": parts, "run": "r"}
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        result, _, _ = run(case, folder, monkeypatch, ExitCode.INVALID, document)
        assert result.passed is passed, parts


def test_a_suite_says_what_its_cases_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table and JUnit name each kind, however long the sentence before it is; a green case too."""
    case = Case(name="each", test="each", options={"nemesis": "all"}, seed=7, expect=Verdict.VALID)
    left_out = [{"kind": "packet-delay", "reason": "n1 lacks netem"}, {"kind": "crash", "reason": "n1 lacks caches"}]
    document = {"reason": "Good " * 100, "parts": {}, "run": "r", "left_out": left_out}
    result, printed, place = run(case, tmp_path, monkeypatch, ExitCode.VALID, {"valid": True, **document})

    assert result.passed
    table = printed.partition("case ")[2]
    assert "Left out of the faults: packet-delay, crash." in " ".join(table.split())
    said = ET.parse(place.path / "junit.xml").getroot().findtext(".//testcase/system-out")  # noqa: S314 - our own file
    assert "left out of the faults: packet-delay, crash" in (said or "")


def test_a_case_has_the_defaults_of_its_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that `--config` names is that of each case, too."""
    command = tmp_path / "command"
    command.write_text('#!/bin/sh\nprintf \'{"reason": "%s"}\' "$*"\n')
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    suite = Suite(name="s s", seed=1, cases=[replace(CONTROL, options={"rate": 3})])
    place = SuiteFolder.create(tmp_path / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    (result,) = run_suite(
        suite, place, store=tmp_path / "store", console=Console(file=io.StringIO()), exit_first=False, before={},
        time_limit_s=60, config=tmp_path / "my.toml",
    )  # fmt: skip
    assert result.reason == (
        f"-m cli --config {tmp_path}/my.toml test --seed 7 --rate 3 --store {tmp_path}/store --format json --name s_s-control"
    )


@pytest.mark.parametrize(
    ("options", "plan", "seconds"),
    [
        ({}, "", 30),
        ({"time-limit": 45}, "", 45),
        ({"time-limit": "soon"}, "", 30),
        ({"plan": "p.json"}, '{"time_limit_s": 2000}', 2000),
        ({"plan": "p.json"}, '{"reproduce": "labrys test", "plan": {"time_limit_s": 2000}}', 2000),
        ({"plan": "p.json", "time-limit": 45}, '{"time_limit_s": 2000}', 45),
        ({"plan": "p.json"}, '{"faults": []}', 30),
        ({"plan": "p.json"}, "[3]", 30),
        ({"plan": "p.json"}, '{"time_limit_s": Infinity}', 30),
        ({"plan": "p.json"}, "no JSON", 30),
        ({"plan": "nowhere.json"}, "", 30),
    ],
)
def test_a_case_has_the_time_that_its_run_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], plan: str, seconds: float
) -> None:
    """That of its option, else that of its plan, else that of a test without either."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(plan)
    case = Case(name="c", test="c", options=options, seed=7, expect=Verdict.VALID)
    assert _time_limit_s(case, 30) == seconds


@pytest.mark.parametrize("name", ["x" * 5000, "-x", "[nemesis=" + "kill," * 200 + "]", "\ud800" * 200, ""])
def test_any_name_becomes_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    """Whatever a case is called, its log can be made; long names that differ at their end stay different."""
    (tmp_path / f"{_plain_name(name)}.log").touch()
    assert Store(tmp_path).create_run(_plain_name(name), datetime.now(UTC)).path.is_dir()
    assert len(name) < 200 or _plain_name(f"{name}a") != _plain_name(f"{name}b")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"seed": 1e400}',
        '{"seed": -5}',
        '{"seed": [1]}',
        "[]",
        '{"format": "labrys-suite", "suite": "s", "seed": "1", "results": {"a": {"exit_code": "x"}}}',
        '{"format": "labrys-suite", "suite": "s", "seed": "1", "results": {"a": {"exit_code": 1e300}}}',
        '{"format": "labrys-suite", "suite": "s", "seed": "1", "results": [1]}',
    ],
)
def test_a_damaged_suite_is_not_resumed(tmp_path: Path, text: str) -> None:
    """Neither its seed nor its results are guessed."""
    (tmp_path / "suite.json").write_text(text, encoding="utf-8")
    case = Case(name="a", test="a", options={}, seed=1, expect=Verdict.VALID)
    with pytest.raises(InputError, match="resumed"):
        SuiteFolder(tmp_path).done(Suite(name="s", seed=seed_of(tmp_path), cases=[case]))


def test_a_store_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    """A file is in the way."""
    (tmp_path / "suites").touch()
    with pytest.raises(StoreError, match="could not be made"):
        SuiteFolder.create(tmp_path, Suite(name="s", seed=1, cases=[]), datetime.now(UTC))


@pytest.mark.parametrize(
    ("code", "document", "told"),
    [
        (ExitCode.INVALID, {"valid": False}, ExitCode.INVALID),
        (ExitCode.INVALID, {}, ExitCode.INTERNAL),
        (ExitCode.INVALID, {"valid": True}, ExitCode.INTERNAL),
        (ExitCode.VALID, {}, ExitCode.INTERNAL),
        (ExitCode.UNKNOWN, {"valid": "unknown"}, ExitCode.UNKNOWN),
        (ExitCode.BAD_ARGUMENTS, {}, ExitCode.BAD_ARGUMENTS),
    ],
)
def test_a_code_counts_as_a_verdict_only_with_its_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ExitCode, document: dict[str, Any], told: ExitCode
) -> None:
    """A Python that cannot start ends with 1, and lets no negative control pass."""
    control = replace(CONTROL, expect_during_fault=False)
    result, _, _ = run(control, tmp_path, monkeypatch, code, document)
    assert result.exit_code == told
    assert result.passed is (told is ExitCode.INVALID)


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parents[3] / "suites").glob("*.toml")), ids=lambda file: file.stem
)
def test_the_suites_name_options_that_there_are(file: Path) -> None:
    """Each case of each suite in the repository has only options of the command, of its system and of its workload."""
    assert load_suite(file, seed=1, known=known_options).cases
