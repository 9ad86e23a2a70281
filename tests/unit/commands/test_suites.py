"""A suite carries out its cases, judges them, and writes their results."""

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

from commands.suite.cases import EXTRA_S, limit_s, run_suite, workload_s
from commands.suite.contexts import known_options
from commands.suite.folder import SuiteFolder, file_names, plain_name, seed_of
from commands.suite.jobs import Jobs
from commands.suite.summary import github_lines, print_summary
from harness.console.members import read
from harness.errors import ExitCode, InputError
from harness.suites.case import Case
from harness.suites.case_result import CaseResult, exit_code
from harness.suites.expectation import SuiteCase
from harness.suites.suite import Suite, load_suite
from harness.suites.thresholds import read_threshold
from harness.verdict import Part, Verdict
from results.store.errors import StoreError
from results.store.store import Store
from tests.cases import case_result
from tests.suites import SUITES

ROOT = Path(__file__).parents[3]
CONTROL = Case(
    reproduce="labrys suite s.toml",
    name="control",
    test="control",
    options={},
    seed=7,
    expect=Verdict.INVALID,
    expect_during_fault=True,
)
CROSSED = {"threshold": "p99_ms < 200", "measured": 312.4, "kept": False, "crossed": "p99_ms < 200: it is 312.4"}
KEPT = {"threshold": "availability > 0.9", "measured": 0.95, "kept": True, "crossed": None}
NO_VIOLATION = "invalid, but no violation was seen during or after a fault"


def run(
    case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch, code: ExitCode, document: dict[str, Any]
) -> tuple[CaseResult, str, SuiteFolder]:
    """Runs a suite of one case whose command prints a document; returns its result, the output, and the folder."""
    command = folder / "command"
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(document)}\nEND\nexit {int(code)}\n")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    suite = Suite(name="s", seed=1, cases=[case])
    suite_folder = SuiteFolder.create(folder / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    out = io.StringIO()
    console = Console(file=out, width=4000)
    (result,) = run_suite(
        suite,
        suite_folder,
        store=folder / "store",
        console=console,
        exit_first=False,
        before={},
        time_limit_s=60,
        config=None,
        selected={case.name},
        jobs=Jobs(),
    )
    print_summary(console, [result], (1, 1))
    assert suite_folder.finished(suite) == {case.name: result}
    return result, out.getvalue(), suite_folder


@pytest.mark.parametrize(
    ("violations", "problem"),
    [
        ({"violations": {"total": 3, "during_faults": 0, "after_faults": 1, "before_faults": 2}}, None),
        ({"violations": {"total": 3, "during_faults": 2, "after_faults": 0, "before_faults": 1}}, None),
        ({"violations": {"total": 3, "during_faults": 0, "after_faults": 0, "before_faults": 3}}, NO_VIOLATION),
        ({"violations": None}, NO_VIOLATION),
        ({}, "invalid, but it is unknown whether a violation was seen during or after a fault"),
    ],
)
def test_a_control_of_a_fault_needs_a_violation_in_or_after_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, violations: dict[str, Any], problem: str | None
) -> None:
    """Otherwise the terminal, the summary and JUnit have the reason, and the exit code is 1."""
    document = {"reason": "Bad.", "parts": {}, "run": "r", **violations}
    result, printed, suite_folder = run(CONTROL, tmp_path, monkeypatch, ExitCode.INVALID, {"valid": False, **document})

    failure = ET.parse(suite_folder.path / "junit.xml").getroot().find(".//failure")  # noqa: S314 - our own file
    if problem is None:
        assert result.passed
        assert failure is None
        assert exit_code([result]) is ExitCode.VALID
    else:
        assert not result.passed
        assert result.ended == "invalid, not as expected"
        assert failure is not None
        assert failure.get("message") == f"{problem}: Bad."
        assert printed.count(f"{problem}: Bad.") == 2
        assert exit_code([result]) is ExitCode.INVALID


def test_a_crossed_threshold_fails_a_valid_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary, JUnit, the annotations and `suite.json` have the threshold and the measured value."""
    demands = (read_threshold("p99_ms < 200"), read_threshold("availability > 0.9"))
    case = Case(
        reproduce="labrys suite s.toml",
        name="c",
        test="c",
        options={},
        seed=7,
        expect=Verdict.VALID,
        thresholds=demands,
    )
    assert case.arguments()[3:] == ["--threshold", "p99_ms < 200", "--threshold", "availability > 0.9"]
    document = {"valid": True, "reason": "Good.", "parts": {}, "run": "r", "thresholds": [CROSSED, KEPT]}
    result, printed, suite_folder = run(case, tmp_path, monkeypatch, ExitCode.INVALID, document)

    assert result.outcome.crossed == ("p99_ms < 200: it is 312.4",)
    assert not result.passed
    assert exit_code([result]) is ExitCode.INVALID
    assert "✗ valid, crossed a threshold  c" in printed
    assert "crossed the threshold p99_ms < 200: it is 312.4. Good." in printed
    failure = ET.parse(suite_folder.path / "junit.xml").getroot().find(".//failure")  # noqa: S314 - our own file
    assert failure is not None
    assert "p99_ms < 200: it is 312.4" in str(failure.get("message"))
    first, last = github_lines("s", [result], (1, 1))
    assert first.startswith("::error title=s c::valid, crossed a threshold: crossed the threshold p99_ms < 200")
    assert last == "::notice title=s::0 of 1 case was as expected"


def test_a_threshold_of_a_run_whose_control_node_was_behind_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such numbers are not the system's (decision 0012). A threshold that is not crossed still counts as kept."""
    part = {"valid": "unknown", "reason": "The control node was behind: too late.", "details": {}, "extra": True}
    document = {"valid": True, "reason": "Good.", "parts": {"control-node": part}, "run": "r"}
    case = Case(reproduce="labrys suite s.toml", name="c", test="c", options={}, seed=7, expect=Verdict.VALID)
    for threshold, code in ((KEPT, ExitCode.VALID), ({**CROSSED, "kept": "unknown"}, ExitCode.UNKNOWN)):
        folder = tmp_path / str(code)
        folder.mkdir()
        result, printed, suite_folder = run(case, folder, monkeypatch, code, {**document, "thresholds": [threshold]})
        assert exit_code([result]) is code
        assert result.passed is (code is ExitCode.VALID)
    assert "✗ valid, thresholds unknown  c" in printed
    assert "it is unknown whether the system keeps the threshold p99_ms < 200: it is 312.4. The control node" in printed
    assert ET.parse(suite_folder.path / "junit.xml").getroot().find(".//error") is not None  # noqa: S314 - our own file
    assert next(iter(github_lines("s", [result], (1, 1)))).startswith("::warning")
    invalid = Part(name="linearizable", verdict=Verdict.INVALID, reason="")
    outcome = replace(result.outcome, judged=Verdict.INVALID, parts=[*result.outcome.parts, invalid])
    assert exit_code([replace(result, outcome=outcome)]) is ExitCode.INVALID
    broken = replace(result, outcome=replace(result.outcome, error="the disk is full"), code=ExitCode.INTERNAL)
    assert not broken.undecided


def test_each_case_has_a_folder_name_of_its_own() -> None:
    """It has the whole name of the case; names that would be equal get a digest."""
    cases = [
        Case(reproduce="labrys suite s.toml", name=name, test="faults", options={}, seed=1, expect=Verdict.VALID)
        for name in ("faults[nemesis=kill]", "faults[nemesis=bridge,rate=3]#2", "a b", "a[b]")
    ]
    names = file_names(Suite(name="s", seed=1, cases=cases))
    assert names["faults[nemesis=kill]"] == "faults_nemesis_kill"
    assert names["faults[nemesis=bridge,rate=3]#2"] == "faults_nemesis_bridge_rate_3_2"
    assert names["a b"] != names["a[b]"]
    assert all(name.startswith("a_b-") for name in (names["a b"], names["a[b]"]))


def test_a_suite_shows_the_progress_of_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets lines of the case's progress, and `suites/current` points to the folder meanwhile."""
    monkeypatch.setattr("commands.suite.following.PLAIN_INTERVAL_S", 0.01)
    command = tmp_path / "command"
    link = tmp_path / "store" / "suites" / "current"
    wait = f"until grep -q '12 of 60 s' {tmp_path}/out; do sleep 0.01; done"
    command.write_text(f"#!/bin/sh\nls {link}/suite.json >&2 && echo '   12 of 60 s   7 ok' >&2\n{wait}\necho '{{}}'\n")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    case = Case(reproduce="labrys suite s.toml", name="c[x=1]", test="c", options={}, seed=7, expect=Verdict.VALID)
    suite = Suite(name="s", seed=1, cases=[case])
    suite_folder = SuiteFolder.create(tmp_path / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    with (tmp_path / "out").open("w", buffering=1) as out:
        run_suite(
            suite, suite_folder, store=tmp_path / "store", console=Console(file=out), exit_first=False, before={},
            time_limit_s=60, config=None, selected={case.name}, jobs=Jobs(),
        )  # fmt: skip
    printed = (tmp_path / "out").read_text()
    assert printed.startswith("[1/1] c[x=1]\n")
    assert not link.is_symlink()
    assert json.loads((suite_folder.path / "suite.json").read_text())["running"] == []


def test_only_the_chosen_cases_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The earlier results of other cases stay."""
    command = tmp_path / "command"
    command.write_text("#!/bin/sh\necho '{}'\nexit 255\n")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    cases = [
        Case(reproduce="labrys suite s.toml", name=name, test=name, options={}, seed=1, expect=Verdict.VALID)
        for name in "abc"
    ]
    suite = Suite(name="s", seed=1, cases=cases)
    suite_folder = SuiteFolder.create(tmp_path / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    known = case_result(cases[0], 0)
    results = run_suite(
        suite, suite_folder, store=tmp_path / "store", console=Console(file=io.StringIO()), exit_first=False,
        before={"a": known}, time_limit_s=60, config=None, selected={"c"}, jobs=Jobs(),
    )  # fmt: skip
    assert [result.case.name for result in results] == ["a", "c"]
    assert set(suite_folder.finished(suite)) == {"a", "c"}


def test_an_extra_part_that_is_unknown_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a known failure stays known, even if the budget of an extra part ends."""
    case = Case(
        name="c",
        test="c",
        reproduce="",
        options={},
        seed=7,
        expect=Verdict.VALID,
        known_failures=frozenset({"recovered=invalid"}),
    )
    order = {"valid": "unknown", "reason": "The budget ended.", "details": {}, "extra": True}
    recovered = {"valid": False, "reason": "Never.", "details": {}, "extra": False}
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


def test_the_summary_has_the_kinds_that_were_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal and JUnit name each kind, also after a long reason, and also for a case that passed."""
    case = Case(
        reproduce="labrys suite s.toml",
        name="each",
        test="each",
        options={"nemesis": "all"},
        seed=7,
        expect=Verdict.VALID,
    )
    left_out = {"packet-delay": "n1 lacks netem", "crash": "n1 lacks caches"}
    document = {"reason": "Good " * 100, "parts": {}, "run": "r", "left_out": left_out}
    result, printed, suite_folder = run(case, tmp_path, monkeypatch, ExitCode.VALID, {"valid": True, **document})

    assert result.passed
    assert "Left out of the faults: packet-delay, crash." in printed
    assert printed.count("Good " * 99 + "Good") == 2, "no sentence is cut"
    output = ET.parse(suite_folder.path / "junit.xml").getroot().findtext(".//testcase/system-out")  # noqa: S314 - our own file
    assert "left out of the faults: packet-delay, crash" in (output or "")


def test_a_case_has_the_defaults_of_its_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has the file of `--config`."""
    command = tmp_path / "command"
    command.write_text("""#!/bin/sh\nprintf '{"reason": "%s"}' "$(echo "$*" | sed 's/"/\\\\"/g')"\n""")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))
    suite = Suite(name="s s", seed=1, cases=[replace(CONTROL, options={"rate": 3})])
    suite_folder = SuiteFolder.create(tmp_path / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    (result,) = run_suite(
        suite, suite_folder, store=tmp_path / "store", console=Console(file=io.StringIO()), exit_first=False, before={},
        time_limit_s=60, config=tmp_path / "my.toml", selected={"control"}, jobs=Jobs(),
    )  # fmt: skip
    words, _, document = result.outcome.reason.partition(" --suite-case ")
    assert words == (
        f"-P -m cli --config {tmp_path}/my.toml test --seed 7 --rate 3 --store {tmp_path}/store --format json "
        "--name s_s-control"
    )
    assert read(json.loads(document), SuiteCase, "") == suite.case_of(suite.cases[0])


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
def test_the_duration_of_a_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], plan: str, seconds: float
) -> None:
    """It comes from its time limit, else from its plan, else from the default."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.json").write_text(plan)
    case = Case(reproduce="labrys suite s.toml", name="c", test="c", options=options, seed=7, expect=Verdict.VALID)
    assert workload_s(case, 30) == seconds


@pytest.mark.parametrize(("slowness", "factor"), [(None, 1), (8, 8), (2.5, 2.5), (0.1, 1), ("8", 1), (True, 1)])
def test_a_case_on_slow_nodes_has_more_time(slowness: float | str | None, factor: float) -> None:
    """Its set-up, recovery and final reads take longer; its workload does not."""
    options: dict[str, float | str] = {"time-limit": 60}
    if slowness is not None:
        options["slowness"] = slowness
    case = replace(CONTROL, options=options)
    assert limit_s(case, 30) == 60 + factor * EXTRA_S


@pytest.mark.parametrize("name", ["x" * 5000, "-x", "[nemesis=" + "kill," * 200 + "]", "\ud800" * 200, ""])
def test_any_name_becomes_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    """The log of a case with this name can be made; long names that differ at the end stay different."""
    (tmp_path / f"{plain_name(name)}.log").touch()
    assert Store(tmp_path).create_run(plain_name(name), datetime.now(UTC)).path.is_dir()
    assert len(name) < 200 or plain_name(f"{name}a") != plain_name(f"{name}b")


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
    """A bad seed or a bad result is an error."""
    (tmp_path / "suite.json").write_text(text, encoding="utf-8")
    case = Case(reproduce="labrys suite s.toml", name="a", test="a", options={}, seed=1, expect=Verdict.VALID)
    with pytest.raises(InputError, match="resume"):
        SuiteFolder(tmp_path).finished(Suite(name="s", seed=seed_of(tmp_path), cases=[case]))


def test_a_store_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """A file has the name of the folder."""
    (tmp_path / "suites").touch()
    with pytest.raises(StoreError, match="could not be made"):
        SuiteFolder.create(tmp_path, Suite(name="s", seed=1, cases=[]), datetime.now(UTC))


@pytest.mark.parametrize(
    ("code", "document", "expected"),
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: ExitCode, document: dict[str, Any], expected: ExitCode
) -> None:
    """A Python that cannot start ends with 1, and a negative control must not pass by that."""
    control = replace(CONTROL, expect_during_fault=False)
    result, _, _ = run(control, tmp_path, monkeypatch, code, document)
    assert result.exit_code == expected
    assert result.passed is (expected is ExitCode.INVALID)


@pytest.mark.parametrize("name", SUITES)
def test_the_suites_of_the_repository_have_known_options(name: str) -> None:
    """Each case has only options of the command, of its system and of its workload."""
    assert load_suite(SUITES[name], seed=1, known=known_options).cases


@pytest.mark.parametrize("table", ["[defaults]", "[[test]]\nname = 'a'"])
def test_a_system_in_a_file_beside_the_suite_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """Its options are known too: they are read before all other paths of the suite are moved."""
    (tmp_path / "systems").mkdir()
    (tmp_path / "suites").mkdir()
    (tmp_path / "systems/toy.py").write_text((ROOT / "tests/toy_register.py").read_text())
    file = tmp_path / "suites/night.toml"
    more = "" if "test" in table else "[[test]]\nname = 'a'"
    file.write_text(f"{table}\nsystem = '../systems/toy.py:ToyRegisters'\n{more}")
    monkeypatch.chdir(tmp_path)
    [case] = load_suite(Path("suites/night.toml"), seed=1, known=known_options).cases
    assert case.options["system"] == "suites/../systems/toy.py:ToyRegisters"
