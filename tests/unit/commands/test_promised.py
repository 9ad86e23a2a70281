"""Options of a workload follow what the system promises; the plain command of each system and workload is a fair test."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import cli
from commands.options.choosing import Chosen, installed
from commands.options.promised import promise_of, promise_tested, values_of
from commands.options.run_options import RunOptions
from commands.replay.command import recalled, replay_run
from commands.run.test import run_test
from harness.console import plugins
from harness.declare import click_options
from harness.errors import ExitCode, InputError
from harness.promise import Promise
from harness.system import System
from harness.verdict import Verdict
from tests.trials import settled_by, trial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands.options.compose import Settled

ROOT = Path(__file__).parents[3]


def of_old_reads() -> str:
    """Returns the name of a system that promises a log whose reads may be old."""
    return next(
        chosen.name
        for chosen in systems()
        for workload, promise in chosen.type.promises(chosen.type.Options()).items()
        if workload == "log" and promise.options.get("linearizable") is False
    )


def systems() -> Iterator[Chosen]:
    """Yields each installed system."""
    for _, chosen in installed(plugins.SYSTEMS):
        assert isinstance(chosen, Chosen), chosen
        yield chosen


WORKLOADS = {name: chosen.type for name, chosen in installed(plugins.WORKLOADS) if isinstance(chosen, Chosen)}
SIMULATED = [
    (system.name, workload) for system in systems() if system.type.only_on == "sim" for workload in system.type.serves
]


def called(*arguments: str) -> int:
    """Carries out a command; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    return int(ended.value.code or 0)


def values(settled: Settled) -> dict[str, Any]:
    """Returns the values of all options."""
    return settled.options.values()


@pytest.mark.parametrize(("system", "workload"), SIMULATED)
def test_the_plain_command_of_a_simulated_system_is_a_fair_test(system: str, workload: str) -> None:
    """Each workload of each simulated system, for some seconds: a correct system is valid."""
    result = trial("--cluster", "sim", "--system", system, "--workload", workload, "--time-limit", "4", "--rate", "10")
    assert result.outcome.verdict is Verdict.VALID, result.outcome.reason


@pytest.mark.parametrize("chosen", [*systems()], ids=lambda system: system.name)
def test_each_system_says_what_it_promises_to_each_workload(chosen: Chosen) -> None:
    """A sentence, who makes the promise, and options that the workload has, with values that it takes."""
    promises = chosen.type.promises(chosen.type.Options())
    assert promises.keys() == chosen.type.serves.keys()
    for name, promise in promises.items():
        assert promise.sentence.endswith(".")
        pages = re.findall(r"[\w/.-]+\.md", promise.source)
        assert "://" in promise.source or pages, promise.source
        assert [page for page in pages if "://" not in promise.source and not (ROOT / page).is_file()] == []
        workload = WORKLOADS[name]
        promised = values_of(promise, workload)
        for option in click_options(workload.Options):
            if str(option.name) in promised:
                kind = option.type
                assert kind.convert(promised[str(option.name)], option, None) == promised[str(option.name)]


@pytest.mark.parametrize("chosen", [*systems()], ids=lambda system: system.name)
def test_the_plain_command_can_work(chosen: Chosen) -> None:
    """No workload of a system is refused, and the reproduce line of the plain command has no option of the workload."""
    cluster = ["--cluster", chosen.type.only_on] if chosen.type.only_on else []
    program = ["--bin", "true"] if chosen.type.only_on == "pipes" else []
    for workload in chosen.type.serves:
        words = ["--system", chosen.name, "--workload", workload, "--seed", "1"]
        with settled_by(*cluster, *program, *words) as settled:
            assert promise_tested(
                chosen.type, settled.options.system.options, settled.options.workload.type,
                settled.options.workload.options,
            ).others == ()  # fmt: skip
            flags = {option.opts[0] for option in click_options(WORKLOADS[workload].Options)}
            assert not flags & set(shlex.split(settled.reproduce)), settled.reproduce


def test_an_option_of_the_user_counts_more_than_the_promise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the command line, in the environment and in labrys.toml; the reproduce line has it."""
    system = of_old_reads()
    plain = ("--system", system, "--workload", "log", "--seed", "1")
    with settled_by(*plain, "--linearizable") as settled:
        assert values(settled)["linearizable"] is True
        assert "--linearizable" in settled.reproduce
        own = settled.options
        tested = promise_tested(own.system.type, own.system.options, own.workload.type, own.workload.options)
        assert tested.others == ("--linearizable",)
        assert "The test asks for something else: --linearizable." in tested.sentence(system, "log")
    with settled_by(*shlex.split(settled.reproduce)[2:]) as repeated:
        assert values(repeated) == values(settled)
    monkeypatch.setenv("LABRYS_TEST_LINEARIZABLE", "true")
    with settled_by(*plain) as settled:
        assert values(settled)["linearizable"] is True
    monkeypatch.delenv("LABRYS_TEST_LINEARIZABLE")
    config = tmp_path / "labrys.toml"
    config.write_text("[test]\nlinearizable = true\n", encoding="utf-8")
    with cli.labrys.make_context("labrys", ["--config", str(config), "test"]) as root:
        context = run_test.make_context("test", [*plain], parent=root)
        assert RunOptions.of(context.params).values()["linearizable"] is True


def test_without_promises_a_workload_has_its_own_defaults() -> None:
    """`--no-promises`; the reproduce line has the options themselves if it can."""
    words = ("--workload", "log", "--seed", "1", "--no-promises")
    with settled_by("--system", of_old_reads(), *words) as settled:
        assert values(settled)["linearizable"] is True
        assert settled.reproduce.endswith("--linearizable")
    with settled_by(*shlex.split(settled.reproduce)[2:]) as repeated:
        assert values(repeated) == values(settled)


def test_a_case_of_a_suite_keeps_its_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has the workload's own defaults, unless it asks for promises; so suites of before are the same tests."""
    mark = json.dumps(
        {
            "suite": "s", "case": "c", "line": "c", "expectation": {},
        }
    )  # fmt: skip
    system = of_old_reads()
    plain = ("--system", system, "--workload", "log", "--seed", "1", "--suite-case", mark)
    with settled_by(*plain) as settled:
        assert values(settled)["linearizable"] is True
    with settled_by(*plain, "--promises") as settled:
        assert values(settled)["linearizable"] is False
    file = tmp_path / "own.toml"
    file.write_text(
        f'[defaults]\nsystem = "{system}"\nworkload = "log"\npromises = true\n[[test]]\nname = "a"\n', encoding="utf-8"
    )
    assert called("suite", str(file), "--dry-run") == ExitCode.VALID
    capsys.readouterr()


def test_a_system_that_promises_nothing_has_the_defaults_of_the_workload() -> None:
    """The report says so."""
    with settled_by("--cluster", "sim", "--system", "tests.toy_register:ToyRegisters", "--seed", "1") as settled:
        own = settled.options
        tested = promise_tested(own.system.type, own.system.options, own.workload.type, own.workload.options)
    assert tested.promise is None
    assert tested.sentence("toy-registers", "register") == (
        "toy-registers does not say what it promises, so the test asks for the defaults of register."
    )


def test_a_promise_with_an_unknown_option_is_refused() -> None:
    """With the nearest one."""
    promise = Promise(sentence="Nothing.", source="docs/index.md", options={"linearisable": False})
    with pytest.raises(InputError, match="Did you mean 'linearizable'"):
        values_of(promise, WORKLOADS["log"])
    assert promise_of(System, object(), "log") is None


def test_the_verdict_names_the_promise_and_who_makes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the terminal, in results.json, in test.json and in the report; a replay asks for the same."""
    store = tmp_path / "store"
    words = ("--cluster", "sim", "--system", "sim-txn", "--workload", "list-append", "--isolation", "snapshot")
    assert called("test", *words, "--seed", "5", "--time-limit", "4", "--rate", "20", "--store", str(store)) == 0
    assert "  Tested: Transactions of the level snapshot" in capsys.readouterr().out.splitlines()[1]
    (results,) = store.glob("*/2*/results.json")
    document = json.loads(results.read_text(encoding="utf-8"))
    tested = json.loads(results.with_name("test.json").read_text(encoding="utf-8"))["tested"]
    assert tested["source"] == "Labrys, the specification of sim-txn, clusters/systems/sim_txn/README.md"
    assert tested["others"] == []
    assert document["promise"] == f"{tested['promise']} By: {tested['source']}"
    page = results.with_name("report.html").read_text(encoding="utf-8")
    assert 'id="promise">Tested: Transactions of the level snapshot' in page
    with cli.labrys.make_context("labrys", ["replay"]) as root:
        context = replay_run.make_context("replay", ["--store", str(store)], parent=root)
        more = {name: value for name, value in context.params.items() if name not in {"run", "targets", "store_dir"}}
        with context:
            (options, _), _, _ = recalled(context, "latest", store_dir=store, targets="role", more=more)
    assert options.values()["consistency_model"] == "snapshot-isolation"
    assert options.values()["promises"] is True
