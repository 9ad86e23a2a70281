"""`labrys triage`, and `labrys suite --fail-on new` and `expect-rate`, on stores."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import cli
from commands.suite.folder import SuiteFolder
from commands.suite.new_causes import causes_of_suite, exit_code
from commands.suite.rates import with_rates
from commands.triage.experiments import Replays
from harness.console import plugins
from harness.errors import ExitCode
from harness.option_values import repairs
from harness.suites.case import Case
from harness.suites.suite import Suite
from harness.verdict import Verdict
from results.causes.grouping import grouped
from results.record.signatures import Signature
from tests.cases import case_result
from tests.examples import DEFAULT, SIMULATED
from tests.trials import settled_by
from tests.unit.results import test_causes
from tests.unit.results.test_causes import changed, stored

if TYPE_CHECKING:
    from pathlib import Path

    from commands.options.compose import Settled
    from results.causes.cases import Case as Unexpected

STALE = (
    "--cluster", "sim", "--system", SIMULATED, "--nodes", "3", "--bug", "follower-reads", "--nemesis", "bridge",
    "--fault-on", "0.5-2", "--fault-quiet", "1-2", "--rate", "8", "--time-limit", "10",
)  # fmt: skip


def labrys(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Returns the exit code, the standard output and the standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*words])
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, captured.out, captured.err


def test_a_store_has_a_page_of_causes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text, Markdown, JSON and HTML have the same cause; the exit code says nothing about it."""
    store = tmp_path / "store"
    stored(store, "stale", "wrong", 1)
    stored(store, "valid", "right", 1)
    words = ("triage", str(store), "--known", str(tmp_path / "known"))
    code, text, _ = labrys(capsys, *words, "--html", str(tmp_path / "page.html"))
    assert code == ExitCode.VALID
    assert "2 runs of 1 night; 1 not as expected, of 1 cause." in text
    assert "A read missed an acknowledged write after the fault kill hit a node." in text
    _, markdown, _ = labrys(capsys, *words, "--format", "markdown")
    assert "| new |" in markdown
    _, document, _ = labrys(capsys, *words, "--format", "json")
    [cause] = json.loads(document)["causes"]
    assert (cause["state"], cause["runs"], cause["trials"], cause["parts"]) == ("new", 1, 1, ["linearizable"])
    assert "1 new cause" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_bad_arguments_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store that is missing, and a malformed known cause."""
    assert labrys(capsys, "triage", str(tmp_path / "none"))[0] == ExitCode.BAD_ARGUMENTS
    (tmp_path / "store").mkdir()
    (tmp_path / "known").mkdir()
    (tmp_path / "known" / "bad.toml").write_text("link = 1")
    code, _, err = labrys(capsys, "triage", str(tmp_path / "store"), "--known", str(tmp_path / "known"))
    assert code == ExitCode.BAD_ARGUMENTS
    assert "bad.toml" in err
    assert "Traceback" not in err


def test_an_option_says_what_it_can_repair() -> None:
    """A planted bug is repaired by the default, and each mend that a build lacks by one more number."""
    options = plugins.load(plugins.SYSTEMS, SIMULATED).Options
    assert repairs(options, {"bug": "follower-reads"}) == {"--bug follower-reads": {"bug": "none"}}
    assert repairs(options, {"bug": "none"}) == {}
    options = plugins.load(plugins.SYSTEMS, DEFAULT).Options
    left = repairs(options, {"mend": ""})
    numbers = {line.removeprefix("--mend "): changed["mend"] for line, changed in left.items()}
    assert len(numbers) > 1
    assert all(number == mend for number, mend in numbers.items())
    others = ",".join(number for number in numbers if number != "4")
    assert {line: set(changed["mend"].split(",")) for line, changed in repairs(options, {"mend": others}).items()} == {
        "--mend 4": set(numbers)
    }


def unexpected(settled: Settled, part: str) -> Unexpected:
    """Returns a run that is not as expected in a part."""
    found = test_causes.case(1, "stale", repairs=["--bug follower-reads"])
    signature = Signature(ended="invalid", parts=[part], sentences=["stale"])
    return replace(found, signature=signature, trial=replace(found.trial, reproduce=settled.reproduce))


def test_an_experiment_shows_the_cause_of_a_run() -> None:
    """A planted bug in the simulator: the run again is invalid, and without the bug it is not."""
    with settled_by(*STALE, "--seed", "1") as settled:
        replays = Replays(lambda _: settled, 60.0)
        [group] = grouped([unexpected(settled, "linearizable")], replays)
        assert (group.cause, replays.runs) == ("--bug follower-reads", 2)
        [group] = grouped([unexpected(settled, "recovered")], replays)
        assert (group.cause, replays.runs) == (None, 3)
    assert "decided nothing: a replay does not show it" in replays.sentence()
    spent = Replays(lambda _: settled, 0.0)
    assert spent.decide(unexpected(settled, "linearizable"), []) is None


def test_an_experiment_ends_with_the_budget() -> None:
    """A run that goes on at the end of the budget is ended, decides nothing, and is said."""
    said: list[str] = []
    with settled_by(*STALE, "--seed", "1") as settled:
        long = settled.having({"time_limit": 600.0})
        case = unexpected(long, "linearizable")
        replays = Replays(lambda _: long, 0.4, said.append)
        assert [group.cause for group in grouped([case], replays)] == [None]
    assert replays.runs == 1
    assert said == [f"{case.name}: the budget ended during its experiment, so it is not decided"]
    assert "The budget ended before all doubts were decided." in replays.sentence()


SEEN = Case(reproduce="labrys suite s.toml", name="reads", test="reads", options={}, seed=7, expect=Verdict.VALID)


def test_a_suite_fails_on_new_causes_only(tmp_path: Path) -> None:
    """A cause of an earlier night is red, and does not fail the suite; a new one does, and so does a run that is lost."""
    old, new = stored(tmp_path, "stale", "wrong", 1), stored(tmp_path, "stale", "wrong", 2)
    result = replace(case_result(SEEN, int(ExitCode.INVALID), failures=["linearizable=invalid"]), run=str(new))
    results = [result]
    changed(old / "test.json", started_utc="2026-07-20T10:11:12+00:00")
    [cause] = causes_of_suite(tmp_path, results, tmp_path / "known")
    assert (cause.state, exit_code([cause], results)) == ("open", ExitCode.VALID)
    changed(old / "test.json", started_utc="2026-07-29T10:11:12+00:00")
    [cause] = causes_of_suite(tmp_path, results, tmp_path / "known")
    assert (cause.state, exit_code([cause], results)) == ("new", ExitCode.INVALID)
    lost = [case_result(SEEN, int(ExitCode.INTERNAL), "it crashed")]
    assert exit_code([], lost) is ExitCode.INTERNAL


def test_a_rate_is_decided_over_the_nights_of_a_store(tmp_path: Path) -> None:
    """Earlier runs of the suite count, from the oldest on; a damaged one does not."""
    case = replace(SEEN, expect_rate=0.05)
    suite = Suite(name="s", seed=1, cases=[case])
    began = datetime(2026, 7, 1, tzinfo=UTC)
    bad = case_result(case, int(ExitCode.INVALID), "Stale.", failures=["linearizable=invalid"])
    for night in range(4):
        folder = SuiteFolder.create(tmp_path, suite, began + timedelta(days=night))
        [decided] = with_rates(suite, folder, tmp_path, [bad])
        folder.save(suite, {case.name: decided}, selected=[case.name])
        assert decided.rate is not None
        assert (decided.rate.hits, decided.rate.runs) == (night + 1, night + 1)
    assert (decided.passed, decided.ended) == (False, "invalid, too often")
    (folder.path / "suite.json").write_text("{")
    last = SuiteFolder.create(tmp_path, suite, began + timedelta(days=9))
    [decided] = with_rates(suite, last, tmp_path, [bad])
    assert decided.rate is not None
    assert decided.rate.runs == 4


def test_a_night_says_what_to_do_with_the_issues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A new cause opens an issue with the report for the authors of the system; the next night comments on it."""
    store, actions, issues = tmp_path / "store", tmp_path / "actions.json", tmp_path / "issues.json"
    stored(store, "stale", "wrong", 1)
    words = ("triage", str(store), "--known", str(tmp_path / "known"), "--actions", str(actions))
    assert labrys(capsys, *words, "--link", "https://example.org/5")[0] == ExitCode.VALID
    [action] = json.loads(actions.read_text())["actions"]
    assert (action["do"], action["title"][:30]) == ("open", "Labrys: A read missed an ackno")
    assert "## What happened" in action["body"]
    assert "**This cannot be.**" in action["body"]
    issues.write_text(json.dumps([{"number": 3, "state": "OPEN", "body": action["body"], "url": "u"}]))
    assert labrys(capsys, *words, "--issues", str(issues))[0] == ExitCode.VALID
    [action] = json.loads(actions.read_text())["actions"]
    assert (action["do"], action["number"]) == ("comment", 3)
    for more in (("--link", "javascript:alert(1)"), ("--issues", str(actions))):
        assert labrys(capsys, *words, *more)[0] == ExitCode.BAD_ARGUMENTS
    assert labrys(capsys, "triage", str(store), "--issues", str(issues))[0] == ExitCode.BAD_ARGUMENTS
