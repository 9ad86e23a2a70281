"""The command line: exit codes, suggestions, defaults from a file and from the environment, the reproduce line."""

from __future__ import annotations

import contextlib
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import cli
import clusters.options
from commands.options import subjects
from commands.options.choosing import Chosen, NameOptions, installed
from commands.options.compose import stored_options
from commands.run.session import Session
from commands.run.test import run_test
from harness.capabilities import NAMES, Capabilities
from harness.console import plugins
from harness.console import sources as opt
from harness.console.sources import DefaultsCommand
from harness.errors import ExitCode, InfrastructureError
from harness.node import Node
from harness.outcome import RunOutcome
from harness.run import RunResult
from harness.verdict import Part, Verdict
from results.publish import announce
from results.record import record as records
from results.record.record import RunRecord, TestInfo
from results.store.store import Store
from results.stored.document import build
from results.stored.load import load_record
from tests.by_seed import EXAMPLE
from tests.examples import DEFAULT, SIMULATED
from tests.suites import assert_can_be_planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from commands.options.compose import Settled
    from harness.suites.case_result import CaseResult
    from results.store.store import Run

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
    """What `labrys plan --format json` prints."""
    code, out, err = run(capsys, "plan", "--format", "json", *arguments)
    assert code == ExitCode.VALID, err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that is refused writes to standard error."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sed", "4"], "--sed"),
        (["tset"], "No such command 'tset'. Did you mean 'test'?"),
        (["chek"], "No such command 'chek'. Did you mean 'check'?"),
        (["cluster", "statsu"], "No such command 'statsu'. Did you mean 'status'?"),
        (
            ["zzzz"],
            "Known are: analyze, bisect, build, calls, check, cluster, crash, doctor, explain, explore, faults, hunt, logs, ",
        ),
        (["plan", "--sed", "4"], "--seed"),
        (["plan", "--read-mode", "unsave"], "unsafe"),
        (["plan", "--nemesis", "kil"], "Did you mean 'kill'"),
        (["plan", "--values", "uniqe"], "unique"),
        (["plan", "--fault-on", "soon"], "6-15"),
        (["plan", "--nemesis", "kill", "--time-limit", "9"], "does not fit into"),
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
    arguments = ("plan", "--format", "json", "--nemesis", "kill,partition-random-halves", "--time-limit", "90")

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
    (elsewhere / "labrys.toml").write_text('[test]\ntime-limit = 111\nvalues = "small"\nseed = 3\n')

    assert plan(capsys)["plan"]["time_limit_s"] == 111
    monkeypatch.setenv("LABRYS_TEST_TIME_LIMIT", "222")
    assert plan(capsys)["plan"]["time_limit_s"] == 222
    document = plan(capsys, "--time-limit", "33")
    assert document["plan"]["time_limit_s"] == 33
    assert "--values small" in document["reproduce"]
    assert "--seed 3" in document["reproduce"]


def test_an_unknown_key_of_the_file_is_refused(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """A default that would silently be ignored is an error with a suggestion."""
    (elsewhere / "labrys.toml").write_text("[test]\ntime-limt = 111\n")

    code, _, err = run(capsys, "plan")

    assert code == ExitCode.BAD_ARGUMENTS
    assert "Did you mean 'time-limit'" in err


def test_a_bad_default_is_named_with_its_source(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value of the file, of the environment, and of the command line."""
    (elsewhere / "labrys.toml").write_text('[test]\nrate = "abc"\n')
    assert "labrys.toml has this value" in refused(capsys, "plan")
    assert "has this value" not in refused(capsys, "plan", "--rate", "abc")
    monkeypatch.setenv("LABRYS_TEST_RATE", "def")
    assert "LABRYS_TEST_RATE has this value" in refused(capsys, "plan")


def test_a_variable_that_is_no_option_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line suggests the nearest variable. Variables of other commands and other systems may stay."""
    for variable in (
        "LABRYS_TEST_TIMELIMIT",
        "LABRYS_TEST_READS",
        "LABRYS_TEST_STORE",
        "LABRYS_HUNT_X",
        "LABRYS_VM_NODES",
    ):
        monkeypatch.setenv(variable, "5")
    code, _, err = run(capsys, "plan")
    assert code == 0
    assert [line for line in err.splitlines() if "LABRYS_" in line] == [
        "LABRYS_TEST_TIMELIMIT has no effect: `labrys test` has no such option. Did you mean LABRYS_TEST_TIME_LIMIT?"
    ]
    monkeypatch.setenv("LABRYS_SYSTEMS_XYZZY", "5")
    code, _, err = run(capsys, "systems")
    assert code == 0
    assert "LABRYS_SYSTEMS_XYZZY has no effect" in err
    assert "`labrys systems --help` lists the options." in err


def of_many_workloads_without_the_default() -> str:
    """Returns the name of the system on machines that serves the most workloads, and not the default one."""
    others = [
        chosen for _, chosen in installed(plugins.SYSTEMS) if isinstance(chosen, Chosen) and not chosen.type.only_on
    ]
    without = [other for other in others if NameOptions().workload_name not in other.type.serves]
    return max(without, key=lambda system: len(system.type.serves)).name


@pytest.mark.parametrize(
    ("system", "has_default"), [(SIMULATED, True), (of_many_workloads_without_the_default(), False)]
)
def test_the_help_of_a_system_has_only_its_workloads(
    system: str, has_default: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it does not serve the default workload, the help has the options of all that it serves."""
    served = plugins.load(plugins.SYSTEMS, system).serves
    default = NameOptions().workload_name
    assert len(served) > 2
    assert (default in served) is has_default
    code, out, _ = run(capsys, "test", "--system", system, "--help")
    assert code == 0
    assert f"--workload [{'|'.join(served)}]" in out
    assert [
        line.split()[-1].rstrip(":") for line in out.splitlines() if line.startswith("Options of the workload")
    ] == ([default] if has_default else sorted(served))
    assert ("does not serve the default" in " ".join(out.split())) != has_default


def test_a_plan_is_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault and each stream has a line. The format is not that of `labrys test`."""
    monkeypatch.setenv("LABRYS_TEST_FORMAT", "github")
    arguments = ("--seed", "5", "--nemesis", "kill,packet-loss", "--fault-options", "packet-loss.probability=0.5")
    code, out, err = run(capsys, "plan", *arguments)
    assert (code, err) == (ExitCode.VALID, "")
    document = plan(capsys, *arguments)
    first, second, *_ = lines = out.splitlines()
    assert first == f"reproduce  {document['reproduce']}"
    faults = document["plan"]["faults"]
    assert second == f"plan       seed 5, 5 nodes, 60 s of workload, {len(faults)} faults"
    table = [line.split() for line in lines[4 : 4 + len(faults)]]
    for fault, cells in zip(faults, table, strict=True):
        times = (f"{fault['start_s']:.1f}", "s", f"{fault['end_s']:.1f}", "s")
        options = ["probability=0.5"] if "options" in fault else []
        assert cells == [str(fault["id"]), fault["kind"], *fault["target"], *times, *options]
    streams = [line for line in lines if line.startswith("stream ")]
    assert len(streams) == len(document["streams"]) == 5
    operation = document["streams"][0]["operations"][0]
    assert f"stream 0   {operation['f']} {operation['key']}" in streams[0]


def test_a_file_for_tests_does_not_set_the_format_of_a_plan(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    """The table [test] may have a format that `labrys plan` does not have."""
    (elsewhere / "labrys.toml").write_text("[test]\nformat = 'github'\nrate = 7\n")
    code, out, _ = run(capsys, "plan", "--seed", "1")
    assert code == ExitCode.VALID
    assert out.startswith("reproduce  ")
    assert "--rate 7" in out


def test_a_misspelt_choice_has_one_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    """The error does not list all choices."""
    err = refused(capsys, "hunt", "--bug", "lease-to-long")
    assert "'lease-to-long' is not one of the choices. Did you mean 'lease-too-long'?" in err
    assert "half-is-majority" not in err
    assert "Known are: closed, open." in refused(capsys, "plan", "--load", "xyz")


def test_a_plan_can_be_edited_and_carried_out(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """What `plan` prints under `plan` is what --plan reads."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill")["plan"]
    (elsewhere / "plan.json").write_text(json.dumps(drawn))

    assert plan(capsys, "--seed", "5", "--plan", "plan.json")["plan"]["faults"] == drawn["faults"]


def test_a_default_has_the_name_of_its_flag(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the file and in the environment; options of `test` that `plan` does not have are no mistake there."""
    (elsewhere / "labrys.toml").write_text('[test]\nload = "closed"\nstore = "runs"\nformat = "json"\n')
    assert "--load closed" in plan(capsys)["reproduce"]
    monkeypatch.setenv("LABRYS_TEST_LOAD", "open")
    assert "--load open" in plan(capsys)["reproduce"]


def test_defaults_that_nothing_reads_are_refused(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plan` has the defaults of `test`, so a table or a variable of its own would be ignored."""
    (elsewhere / "labrys.toml").write_text("[plan]\nrate = 3\n")
    assert "takes its defaults from [test]" in refused(capsys, "plan")
    (elsewhere / "labrys.toml").unlink()
    monkeypatch.setenv("LABRYS_PLAN_RATE", "3")
    assert "set LABRYS_TEST_RATE instead" in refused(capsys, "plan")


@pytest.mark.parametrize(
    ("table", "arguments", "expected"),
    [
        ("time-limit = 30", ("--time-limit", "60"), "--time-limit 60"),  # the built-in default, which the file hides
        ("time-limit = 60", (), "--time-limit 60"),
        ("time-limit = 30", (), "--time-limit 30"),
        ("in-turn = true", ("--no-in-turn",), "--no-in-turn"),
        ("final-reads = false", ("--final-reads",), "--final-reads"),
        ("nemesis = 'kill'", ("--nemesis", ""), "--nemesis ''"),
        ("", ("--time-limit", "60"), ""),
        ("", ("--rate", "33.3333333"), "--rate 33.3333333"),
        ("", ("--rate", "1234567.0"), "--rate 1234567"),
        ("", ("--hot-share", "0.1234567891"), "--hot-share 0.1234567891"),
    ],
)
def test_the_reproduce_line_means_the_same_with_and_without_the_file(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, table: str, arguments: tuple[str, ...], expected: str
) -> None:
    """It names what differs from the built-in default and what the file gives a value; numbers keep every digit."""
    file = elsewhere / "labrys.toml"
    file.write_text(f"[test]\n{table}\n")

    document = plan(capsys, "--seed", "4", *arguments)

    assert document["reproduce"] == f"labrys test --seed 4 {expected}".strip()
    words = shlex.split(document["reproduce"])[2:]
    assert plan(capsys, *words) == document
    file.unlink()
    again = plan(capsys, *words)
    assert (again["plan"], again["streams"]) == (document["plan"], document["streams"])


def test_the_reproduce_line_names_what_the_environment_gives(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the value is the built-in default."""
    monkeypatch.setenv("LABRYS_TEST_RATE", "40")
    assert plan(capsys, "--seed", "4")["reproduce"] == "labrys test --seed 4 --rate 40"


def test_a_plan_is_the_whole_truth_about_its_run(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """Its seed and time limit hold; what overrides them is told and stands in the reproduce line."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill", "--time-limit", "40")
    (elsewhere / "plan.json").write_text(json.dumps(drawn))

    code, out, err = run(capsys, "plan", "--plan", "plan.json", "--format", "json")
    carried = json.loads(out)
    assert (code, err) == (0, "")
    assert (carried["plan"], carried["streams"]) == (drawn["plan"], drawn["streams"])
    assert carried["reproduce"] == "labrys test --seed 5 --plan plan.json --time-limit 40"

    code, out, err = run(capsys, "plan", "--plan", "plan.json", "--time-limit", "60", "--seed", "6", "--format", "json")
    assert err == "--seed 6 overrides seed 5 of plan.json\n--time-limit 60 overrides 40 s of plan.json\n"
    longer = json.loads(out)
    assert (longer["plan"]["seed"], longer["plan"]["time_limit_s"]) == (6, 60)
    assert longer["plan"]["faults"] == drawn["plan"]["faults"]
    assert longer["reproduce"] == "labrys test --seed 6 --plan plan.json --time-limit 60"
    assert plan(capsys, *shlex.split(longer["reproduce"])[2:]) == longer


def test_what_the_file_decides_is_told_and_in_the_result(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """A `labrys.toml` of someone else's cannot silently make an invalid history valid."""
    history = elsewhere / "h.jsonl"
    events = [
        {"format": "labrys-history", "version": 1},
        {"index": 0, "time": 0, "type": "invoke", "process": 0, "f": "read", "value": None},
        {"index": 1, "time": 9, "type": "ok", "process": 0, "f": "read", "value": 3},
    ]
    history.write_text("".join(json.dumps(event) + "\n" for event in events))
    code, out, err = run(capsys, "check", "h.jsonl", "--format", "json")
    assert (code, json.loads(out)["defaults"], err) == (ExitCode.INVALID, None, "")

    file = elsewhere / "labrys.toml"
    file.write_text("[check]\nmodel = 'noop'\nalgorithm = 'auto'\n")
    for arguments in (("h.jsonl",), ("h.jsonl", "h.jsonl")):
        code, out, err = run(capsys, "check", *arguments, "--format", "json")
        assert err == f"defaults of {file}: model = noop, algorithm = auto\n"
        assert json.loads(out)["defaults"] == {"file": str(file), "options": {"model": "noop", "algorithm": "auto"}}
    code, out, err = run(capsys, "check", "h.jsonl", "--format", "json", "--model", "register")
    assert err == f"defaults of {file}: algorithm = auto\n"
    assert (code, json.loads(out)["defaults"]["options"]) == (ExitCode.INVALID, {"algorithm": "auto"})


def test_every_command_tells_what_the_file_decides() -> None:
    """Each of them is of the class that does."""
    context = cli.labrys.make_context("labrys", [], resilient_parsing=True)
    for name in cli.labrys.list_commands(context):
        command = cli.labrys.get_command(context, name)
        assert command is not None
        assert isinstance(command, DefaultsCommand) or not opt.options_of(command), name


def test_a_test_records_what_the_file_decides(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """test.json and results.json name the file and the options, and give them back."""
    nodes = tuple(Node(name=f"n{number}", address=f"10.0.0.{number}") for number in range(1, 6))
    cluster = SimpleNamespace(nodes=nodes, capabilities=dict)
    monkeypatch.setattr(clusters.options, "open_cluster", lambda *_, **__: contextlib.nullcontext(cluster))
    service = SimpleNamespace(
        role="node", nodes=nodes, serves_clients=True, reports=lambda: True, moves_leadership=True
    )
    system = SimpleNamespace(
        name=DEFAULT, versions=dict, answers=(), refusals=(), services=lambda: (service,),
        front=lambda: service, faketime=True, lacks={}, simulated=False,
        tells_time=lambda: True, runs_java=lambda: True, telling_log_texts=(),
    )  # fmt: skip
    monkeypatch.setattr(subjects, "system_of", lambda *_: system)
    monkeypatch.setattr(subjects, "builder_of", lambda _: None)
    begun: list[TestInfo] = []

    def carry_out(_: object, info: TestInfo, **__: object) -> None:
        begun.append(info)
        raise InfrastructureError("it ends here")

    monkeypatch.setattr("commands.run.session.carry_out", carry_out)
    (elsewhere / "labrys.toml").write_text("[test]\nread-mode = 'unsafe'\nstore = 'runs'\n")
    run(capsys, "test")
    (info,) = begun
    expected = {"file": str(elsewhere / "labrys.toml"), "options": {"read-mode": "unsafe", "store": "runs"}}
    assert info.defaults == expected
    assert records.test_document(info)["defaults"] == expected
    assert records.test_from_document(json.loads(json.dumps(records.test_document(info))), "x").defaults == expected
    assert build(RunRecord(test=info, duration_s=1.0, parts=()))["defaults"] == expected


def test_what_a_file_draws_gives_way_to_a_plan(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line says so, and a time limit of the environment overrides that of the plan."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill", "--time-limit", "40")
    (elsewhere / "plan.json").write_text(json.dumps(drawn))
    (elsewhere / "labrys.toml").write_text("[test]\nnemesis = 'pause'\nrate = 3\n")
    monkeypatch.setenv("LABRYS_TEST_TIME_LIMIT", "50")

    code, out, err = run(capsys, "plan", "--plan", "plan.json", "--format", "json")

    assert code == ExitCode.VALID
    assert err.splitlines() == [
        f"defaults of {elsewhere / 'labrys.toml'}: nemesis = pause, rate = 3",
        "nemesis = pause of labrys.toml has no effect: the faults come from plan.json",
        "LABRYS_TEST_TIME_LIMIT=50 overrides 40 s of plan.json",
    ]
    assert json.loads(out)["reproduce"] == "labrys test --seed 5 --plan plan.json --rate 3 --time-limit 50"
    assert "--plan plan.json excludes --nemesis kill" in refused(
        capsys, "plan", "--plan", "plan.json", "--nemesis", "kill"
    )


def test_a_plan_that_cannot_be_its_run_is_refused(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """For other nodes, or with a fault that ends after the run."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill", "--time-limit", "40")
    (elsewhere / "plan.json").write_text(json.dumps(drawn))

    err = refused(capsys, "plan", "--plan", "plan.json", "--nodes", "3")
    assert "plan.json: the plan is for the nodes n1, n2, n3, n4, n5, and the cluster has n1, n2, n3" in err
    assert "ends after the run, which ends at 9 s" in refused(
        capsys, "plan", "--plan", "plan.json", "--time-limit", "9"
    )


def inventory(folder: Path) -> Path:
    """Writes an inventory of three hosts."""
    (folder / "id").write_text("private")
    (folder / "id").chmod(0o600)
    hosts = "".join(
        f'[[hosts]]\nname = "{name}"\nhost = "192.0.2.{number}"\nhost_key = "ssh-ed25519 AAAA"\n'
        for number, name in enumerate(("ada", "bob", "eve"), 1)
    )
    path = folder / "lab.toml"
    path.write_text(f'key = "id"\n{hosts}')
    return path


def test_a_plan_is_for_the_hosts_of_the_inventory(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """Names and number are theirs, and the number is no option of theirs."""
    inventory(elsewhere)
    document = plan(capsys, "--cluster", "ssh", "--inventory", "lab.toml", "--nemesis", "kill:minority")
    assert document["plan"]["nodes"] == ["ada", "bob", "eve"]
    assert {name for fault in document["plan"]["faults"] for name in fault["target"]} <= {"ada", "bob", "eve"}
    assert "--nodes" not in document["reproduce"]
    assert plan(capsys, *shlex.split(document["reproduce"])[2:]) == document


def test_options_that_contradict_the_cluster_are_refused(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """On the command line; a default of elsewhere is not used, and a line says so."""
    inventory(elsewhere)
    assert "--inventory lab.toml needs --cluster ssh" in refused(capsys, "plan", "--inventory", "lab.toml")
    assert "needs --inventory FILE" in refused(capsys, "plan", "--cluster", "ssh")
    err = refused(capsys, "plan", "--cluster", "ssh", "--inventory", "lab.toml", "--nodes", "4")
    assert "--nodes 4 contradicts the cluster, which has 3: ada, bob, eve" in err

    (elsewhere / "labrys.toml").write_text('[test]\ninventory = "lab.toml"\nnodes = 4\n')
    code, out, err = run(capsys, "plan", "--format", "json")
    told = f"defaults of {elsewhere / 'labrys.toml'}: nodes = 4, inventory = lab.toml\n"
    assert (code, err) == (0, f"{told}inventory = lab.toml of labrys.toml has no effect with --cluster local\n")
    assert "--inventory" not in json.loads(out)["reproduce"]
    code, _, err = run(capsys, "plan", "--cluster", "ssh")
    assert (code, err) == (
        0,
        f"{told}nodes = 4 of labrys.toml has no effect: the cluster has 3 nodes, ada, bob, eve\n",
    )


def test_where_threads_stop_has_no_effect_without_simulated_threads(capsys: pytest.CaptureFixture[str]) -> None:
    """A system in Java in the simulator has such threads."""
    words = ("plan", "--format", "json", "--preempt", "0.5", "--cluster")
    for where, system in (("local", DEFAULT), ("sim", SIMULATED)):
        code, out, err = run(capsys, *words, where, "--system", system)
        told = f"the threads of {system} are not simulated with --cluster {where}"
        assert (code, err) == (0, f"--preempt has no effect: {told}\n")
        assert "--preempt" not in json.loads(out)["reproduce"]
    code, out, err = run(capsys, *words, "sim", "--system", DEFAULT)
    assert (code, err) == (0, "")
    assert "--preempt 0.5" in json.loads(out)["reproduce"]
    for flag in ("--trace-all", "--all-stop"):
        code, out, err = run(capsys, "plan", "--cluster", "sim", "--system", DEFAULT, flag)
        told = f"the processes of {DEFAULT} are no programs in virtual time with --cluster sim"
        assert (code, f"{flag} has no effect: {told}\n" in err) == (0, True)
        code, out, err = run(capsys, "plan", "--cluster", "sim", "--system", EXAMPLE, flag)
        assert (code, flag in err) == (0, False)


def test_the_nodes_of_vagrant_are_read_or_assumed(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Vagrantfile names them; without one, a sentence says what the plan assumes."""
    code, out, err = run(capsys, "plan", "--cluster", "vagrant", "--format", "json")
    assert code == ExitCode.VALID
    assert "the nodes are assumed to be n1, n2, n3, n4, n5" in err
    assert len(json.loads(out)["plan"]["nodes"]) == 5
    (elsewhere / "Vagrantfile").write_text((ROOT / "Vagrantfile").read_text())
    monkeypatch.setenv("LABRYS_VM_NODES", "3")
    assert plan(capsys, "--cluster", "vagrant")["plan"]["nodes"] == ["n1", "n2", "n3"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Puts an error in the place of every cluster; returns the options of those that were to be opened."""
    asked: list[dict[str, Any]] = []

    @contextlib.contextmanager
    def no_cluster(settled: Settled, *_: object) -> Iterator[None]:
        asked.append(settled.options.values())
        if asked:
            raise InfrastructureError("there is no cluster here")
        yield

    monkeypatch.setattr("commands.run.session.composed", no_cluster)
    return asked


@pytest.mark.parametrize(
    "arguments",
    [
        ("--nemesis", "nosuch"),
        ("--nemesis", "all", "--fault-on", "soon"),
        ("--nemesis", "kill", "--time-limit", "9"),
        ("--load", "closed", "--concurrency", "two"),
        ("--mix", "much"),
        ("--plan", "/dev/null"),
    ],
)
def test_options_are_checked_before_anything_is_opened(
    capsys: pytest.CaptureFixture[str], opened: list[dict[str, Any]], arguments: tuple[str, ...]
) -> None:
    """A test that cannot be is refused at once."""
    refused(capsys, "test", *arguments)
    assert opened == []


def test_what_all_leaves_out_is_told_before_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each kind, after the nodes were probed; the plan and test.json hold the same."""
    can = Capabilities(
        available=frozenset(NAMES) - {"netem", "switch"}, missing={"netem": "no\x1b[2J tc", "switch": "no tun"}
    )
    nodes = tuple(Node(name=f"n{number}", address=f"10.0.0.{number}") for number in range(1, 4))
    cluster = SimpleNamespace(nodes=nodes, capabilities=lambda: dict.fromkeys(["n1", "n2", "n3"], can))
    monkeypatch.setattr(clusters.options, "open_cluster", lambda *_, **__: contextlib.nullcontext(cluster))
    service = SimpleNamespace(
        role="node", nodes=nodes, serves_clients=True, reports=lambda: True, moves_leadership=True
    )
    system = SimpleNamespace(
        name=DEFAULT, versions=dict, answers=(), refusals=(), services=lambda: (service,),
        front=lambda: service, faketime=True, lacks={}, simulated=False,
        tells_time=lambda: True, runs_java=lambda: True, telling_log_texts=(),
    )  # fmt: skip
    monkeypatch.setattr(subjects, "system_of", lambda *_: system)
    monkeypatch.setattr(subjects, "builder_of", lambda _: None)
    begun: list[tuple[TestInfo, str]] = []

    def carry_out(_: object, info: TestInfo, *, plan: str, **__: object) -> None:
        begun.append((info, plan))
        raise InfrastructureError("it ends here")

    monkeypatch.setattr("commands.run.session.carry_out", carry_out)
    code, _, err = run(capsys, "test", "--nodes", "3", "--nemesis", "all", "--time-limit", "300")

    assert code == ExitCode.INTERNAL
    kinds = ["packet-delay", "packet-duplicate", "packet-reorder", "packet-corrupt"]
    told = [line for line in err.splitlines() if line.startswith("left out")]
    assert told == [f"left out   {kind}: n1, n2, n3 lack netem (no\\x1b[2J tc) and switch (no tun)" for kind in kinds]
    ((info, plan),) = begun
    assert list(info.left_out) == kinds
    assert [left["kind"] for left in json.loads(plan)["left_out"]] == kinds


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.INVALID, ExitCode.INVALID), (Verdict.UNKNOWN, ExitCode.INTERNAL)]
)
def test_what_broke_a_run_off_does_not_mask_an_invalid_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: ExitCode
) -> None:
    """What was recorded before is a definite failure; without one the exit code is that of the error."""
    cluster = SimpleNamespace(nodes=(), capabilities=dict)
    monkeypatch.setattr(clusters.options, "open_cluster", lambda *_, **__: contextlib.nullcontext(cluster))
    monkeypatch.setattr(subjects, "builder_of", lambda _: None)
    monkeypatch.setattr("commands.options.compose.compose", lambda *_: (None, None))
    monkeypatch.setattr("commands.run.session.info_of", lambda *_: SimpleNamespace(left_out={}, name="t"))
    monkeypatch.setattr("nemesis.planfile.to_json", lambda _: "")
    session = Session(
        outcome=RunOutcome.of([Part(name="x", verdict=verdict, reason="because")], error="the disk is full"),
        run=SimpleNamespace(report_html=None, path="run"),  # type: ignore[arg-type]
        document={},
        result=RunResult(),
        operations=(),
    )
    monkeypatch.setattr("commands.run.session.carry_out", lambda *_, **__: session)
    monkeypatch.setattr("results.live.terminal.print_summary", lambda *_, **__: None)
    assert run(capsys, "test")[0] == code


def stored_for_replay(capsys: pytest.CaptureFixture[str], folder: Path, reproduce: str, **changed: Any) -> Run:
    """Stores a run of three nodes; returns it. Some of its options are changed, or left out where they are `...`."""
    drawn = plan(capsys, "--seed", "5", "--nemesis", "kill", "--nodes", "3")["plan"]
    made = run_test.make_context("test", ["--nodes", "3", "--seed", "5"], auto_envvar_prefix=None)
    options = {name: value for name, value in {**stored_options(made.params), **changed}.items() if value is not ...}
    info = TestInfo(
        name="t", seed=5, reproduce=reproduce, started_utc=datetime(2026, 7, 29, tzinfo=UTC), system=DEFAULT,
        workload="register", nodes=("n1", "n2", "n3"), options=options,
    )  # fmt: skip
    stored = Store(folder / "store").create_run("t", info.started_utc)
    announce(stored, info)
    stored.history_jsonl.write_text('{"format": "labrys-history", "version": 1}\n')
    stored.plan_json.write_text(json.dumps(drawn))
    stored.write_json(stored.results_json, build(RunRecord(test=info, duration_s=1.0, parts=())))
    return stored


@pytest.mark.parametrize(
    "line",
    [
        "labrys test --seed 5 --nodes 3 --nemesis kill --in-turn --plan x.json",
        "labrys test --seed 5 --nodes 3 --rate 99 --time-limit 61 --final-reads --read-mode unsafe",
        "labrys cluster down zz --",
        "labrys test --config evil.toml --inventory evil.toml --cluster ssh",
        "labrys 'test",
        "",
    ],
)
def test_a_replay_has_the_options_of_its_run(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]], line: str
) -> None:
    """Whatever its reproduce line says, which is never carried out, and whatever defaults `labrys.toml` has by now."""
    stored = stored_for_replay(capsys, elsewhere, line)
    drawn = json.loads(stored.plan_json.read_text())
    (elsewhere / "labrys.toml").write_text(
        "[test]\nrate = 7\ntime-limit = 30\nnemesis = 'pause'\nnodes = 5\nseed = 8\n"
    )

    code, _, err = run(capsys, "replay", str(stored.path))

    assert code == ExitCode.INTERNAL, err
    assert "there is no cluster here" in err
    assert "nemesis = pause of labrys.toml has no effect" in err
    assert "overrides" not in err
    (asked,) = opened
    assert (asked["seed"], asked["nodes"], asked["rate"], asked["time_limit"]) == (5, 3, 40, 60)
    assert (str(asked["nemesis"]), asked["in_turn"], asked["read_mode"]) == ("", False, "read-index")
    assert json.loads(asked["plan_file"].read_text())["faults"] == drawn["faults"]


def test_an_unedited_replay_is_the_same_test(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]]
) -> None:
    """It keeps the test's name, and its reproduce line needs no file. An edited plan does, without an absolute path."""
    stored = stored_for_replay(capsys, elsewhere, "", nemesis="kill")
    _, _, err = run(capsys, "replay", "-1")
    assert [line for line in err.splitlines() if line.startswith("reproduce")] == [
        "reproduce  labrys test --seed 5 --nodes 3 --nemesis kill"
    ]
    assert (opened[-1]["test_name"], opened[-1]["plan_file"]) == ("t", None)
    assert run(capsys, "replay", "0", "--name", "other")[0] == ExitCode.INTERNAL
    assert opened[-1]["test_name"] == "other"

    plan = json.loads(stored.plan_json.read_text())
    plan["faults"][0]["end_s"] += 0.25
    stored.plan_json.write_text(json.dumps(plan))
    _, _, err = run(capsys, "replay", "0")
    assert "--plan store/t/20260729T000000.000Z/replay-by-role.json" in err
    assert opened[-1]["plan_file"] is not None


def test_a_report_takes_an_index_and_no_run_that_goes_on(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    """A negative index is no option; a running run is not taken for a broken one; the path is on standard output."""
    stored = stored_for_replay(capsys, elsewhere, "")
    for name in ("-1", "0", "t", "latest"):
        code, out, err = run(capsys, "report", name)
        assert code == ExitCode.VALID, err
        assert Path(out.strip()).resolve() == stored.report_html.resolve()
    assert "there is no run -2: the store store holds 1 run" in refused(capsys, "report", "-2")
    with stored.hold():
        assert "is still running, and writes its report at the end" in refused(capsys, "report")
        stored.results_json.unlink()
        assert load_record(stored).parts[0].reason.startswith("The run is not finished")
    assert load_record(stored).parts[0].reason.startswith("The run ended before its verdict")


def test_a_replay_takes_no_place_from_its_run(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]]
) -> None:
    """Clusters, hosts and files are those of the person who replays; a line says what is to be given."""
    inventory(elsewhere)
    places = {"cluster_name": "zz", "store_dir": "/etc", "test_name": "evil", "keep_cluster": True, "output": "json",
              "inventory": "/etc/passwd", "plan_file": "/etc/passwd"}  # fmt: skip
    stored = stored_for_replay(capsys, elsewhere, "", **places)
    code, out, err = run(capsys, "replay", str(stored.path))
    assert (code, out) == (ExitCode.INTERNAL, "")
    assert "the run was on the cluster 'zz'; give --cluster-name to use a running cluster" in err
    (asked,) = opened
    assert (asked["cluster_name"], asked["keep_cluster"], asked["test_name"], asked["inventory"]) == (
        None,
        False,
        "t",  # the name of its folder
        None,
    )
    assert (asked["store_dir"], asked["output"]) == (Path("store"), "text")

    assert run(capsys, "replay", str(stored.path), "--cluster-name", "mine", "--keep-cluster")[0] == ExitCode.INTERNAL
    assert (opened[-1]["cluster_name"], opened[-1]["keep_cluster"]) == ("mine", True)

    (stored.path / "test.json").write_text(stored.test_json.read_text().replace('"local"', '"ssh"'))
    err = refused(capsys, "replay", str(stored.path))
    assert "give --inventory FILE, because labrys never takes hosts from a run" in err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"evil": 1}, "'evil', which is no option of `labrys test`"),
        ({"config": "evil.toml"}, "'config', which is no option of `labrys test`"),
        ({"rate": "--config=evil.toml"}, "expected a value of --rate among the options"),
        ({"rate": -1}, "--rate among the options: -1.0 is not in the range"),
        ({"rate": float("inf")}, "expected a value of --rate"),
        ({"rate": 10**4000}, "expected a value of --rate"),
        ({"rate": True}, "expected a value of --rate"),
        ({"rate": None}, "expected a value of --rate"),
        ({"final_reads": "no"}, "expected a value of --final-reads"),
        ({"read_mode": "evil"}, "--read-mode among the options: 'evil' is not one of"),
        ({"mix": ["--config", "evil.toml"]}, "expected a value of --mix"),
        ({"hot_keys": 2.5}, "expected a value of --hot-keys"),
        ({"nemesis": {"a": 1}}, "expected a value of --nemesis"),
    ],
)
def test_options_of_a_run_are_held_to_their_flags(
    capsys: pytest.CaptureFixture[str],
    elsewhere: Path,
    opened: list[dict[str, Any]],
    changed: dict[str, Any],
    message: str,
) -> None:
    """A name that is no option's and a value of another type or range are refused, before anything is done."""
    stored = stored_for_replay(capsys, elsewhere, "")
    document = json.loads(stored.test_json.read_text())
    document["options"] |= changed
    stored.test_json.write_text(json.dumps(document))
    assert message in refused(capsys, "replay", str(stored.path))
    assert opened == []
    assert not list(stored.path.glob("replay-by-*"))


def test_a_replay_loads_no_faults_that_its_run_names(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]]
) -> None:
    """Kinds of faults in a file are the person's to name, too."""
    (elsewhere / "evil.py").write_text("raise SystemExit(7)\n")
    stored = stored_for_replay(capsys, elsewhere, "", fault="evil.py:KINDS")
    run(capsys, "replay", str(stored.path))
    assert [asked["fault"] for asked in opened] == [None]


@pytest.mark.parametrize(("place", "form"), [("evil:System", "MODULE:CLASS"), ("evil.py:System", "FILE.py:CLASS")])
def test_a_replay_imports_nothing_that_its_run_names(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]], place: str, form: str
) -> None:
    """A place in a module is the person's to name, and what is not installed cannot be replayed."""
    (elsewhere / "evil.py").write_text("raise SystemExit(7)\n")
    stored = stored_for_replay(capsys, elsewhere, "", system_name=place)
    err = " ".join(refused(capsys, "replay", str(stored.path)).split())
    assert f"the system {place} is a {form}, which labrys never takes from a file" in err
    document = json.loads(stored.test_json.read_text())
    document["options"] |= {"system_name": DEFAULT, "workload_name": "vault"}
    stored.test_json.write_text(json.dumps(document))
    assert "unknown workload vault" in refused(capsys, "replay", str(stored.path))
    assert opened == []
    run(capsys, "replay", str(stored.path), "--workload", "register")
    assert [asked["workload_name"] for asked in opened] == ["register"]


def test_a_run_of_an_earlier_version_is_replayed(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, opened: list[dict[str, Any]]
) -> None:
    """What its test.json does not know has the built-in default, whatever `labrys.toml` says; a line names it."""
    stored = stored_for_replay(
        capsys, elsewhere, "labrys test --read-mode unsafe", read_mode=..., hot_keys=..., threshold=...
    )
    (elsewhere / "labrys.toml").write_text("[test]\nread-mode = 'raft-log'\n")
    code, _, err = run(capsys, "replay", str(stored.path))
    assert code == ExitCode.INTERNAL
    assert "lacks --threshold, --read-mode, --hot-keys; the replay uses built-in defaults" in err
    assert (opened[0]["read_mode"], opened[0]["hot_keys"], opened[0]["threshold"]) == ("read-index", 2, ())


def test_a_suite_knows_the_time_limit_that_its_cases_have(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A case that says nothing of it has the default of `labrys.toml`, and is not ended before."""
    limits: list[float] = []

    def run_suite(*_: object, time_limit_s: float, **__: object) -> list[CaseResult]:
        limits.append(time_limit_s)
        return []

    monkeypatch.setattr("commands.suite.cases.run_suite", run_suite)
    (elsewhere / "s.toml").write_text('[[test]]\nname = "a"\n')
    run(capsys, "suite", "s.toml")
    (elsewhere / "labrys.toml").write_text("[test]\ntime-limit = 3600\n")
    run(capsys, "suite", "s.toml", "--store", "other")
    assert limits == [60, 3600]


@pytest.mark.parametrize("name", ["smoke", "nightly", "every-kind"])
def test_the_suites_that_are_shipped_can_be_planned(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Every case of every suite has options that are understood, and a plan that there is room for."""
    assert_can_be_planned(capsys, name)


def test_the_doctor_does_not_praise_hosts_that_it_cannot_reach(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    """Nothing is said of what faults need where no host lets us in."""
    (elsewhere / "id").touch(mode=0o600)
    (elsewhere / "known_hosts").touch()
    (elsewhere / "lab.toml").write_text(
        'key = "id"\nknown_hosts = "known_hosts"\n[[hosts]]\nname = "db-1"\nhost = "127.0.0.1"\nport = 1\n'
    )
    code, out, _ = run(capsys, "doctor", "--inventory", "lab.toml", "--format", "json")
    (finding,) = json.loads(out)["nodes"]
    assert (code, finding["what"], finding["ok"]) == (ExitCode.INTERNAL, "SSH", False)
    assert finding["fix"] == "`ssh -p 1 root@127.0.0.1 true` shows why"
