"""`labrys check` of workloads with judges: found by name, made with the run's options, reported like the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from checker.edn.reader import loads
from checker.edn.values import Keyword
from checker.formats.jepsen import write_history
from checker.formats.parquet import read_rows_of, write_operations
from harness.console import plugins
from harness.errors import LabrysError
from harness.pairing import events_of
from tests.judges import asks, registry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.op import Operation
    from tests.unit.checker.conftest import Ran

TWICE = asks(("a", 1), ("b", 7), ("b", None), ("a", 2), ("b", 8), ("b", 7))
ONCE = asks((None, 1), (None, 2))


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `tests.judges.registry` the installed plug-ins."""
    monkeypatch.setattr(plugins, "plugins", registry)


@pytest.fixture
def edn(tmp_path: Path) -> Callable[..., Path]:
    """Writes a history in EDN."""

    def make(operations: list[Operation], name: str = "history.edn") -> Path:
        write_history(tmp_path / name, events_of(operations))
        return tmp_path / name

    return make


def run_folder(path: Path, operations: list[Operation], **test: Any) -> Path:
    """Makes the folder of a run of the workload `ids`."""
    path.mkdir()
    header = {"format": "labrys-history", "version": 1}
    lines = [
        {"index": e.index, "time": e.time_ns, "type": str(e.type), "process": e.process, "f": e.f, "value": e.value}
        | ({} if e.key is None else {"key": e.key})
        for e in events_of(operations)
    ]
    (path / "history.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [header, *lines]))
    (path / "test.json").write_text(json.dumps({"workload": "ids", "options": {}, **test}))
    return path


def test_a_run_is_judged_by_its_workload(run: Callable[..., Ran], tmp_path: Path) -> None:
    """Verdict, kind, operations, counts and keys are those of the judge's part."""
    code, out, _ = run(run_folder(tmp_path / "r", TWICE), "--format", "json")
    document = json.loads(out)
    assert (code, document["valid"], document["workload"], document["analyzer"]) == (1, False, "ids", "ids")
    assert (document["kind"], document["key"]) == ("twice", "b")
    assert [op["invoke_index"] for op in document["counterexample"]] == [2, 10]
    assert document["op"]["invoke_index"] == 10
    assert document["counts"] == {"ids": 4, "twice": 1}
    assert document["keys"] == {"total": 2, "valid": 1, "unknown": 0, "invalid": 1}
    assert document["failures"] == ["b"]
    assert (
        document["explanation"] == "Key b: The id 7 was given 2 times. 1 of 2 keys is invalid. In all: 4 ids, 1 twice."
    )


def test_a_person_reads_it(run: Callable[..., Ran], tmp_path: Path) -> None:
    """The text has verdict, message and operations. Several histories have a table."""
    bad, good = run_folder(tmp_path / "bad", TWICE), run_folder(tmp_path / "good", ONCE)
    code, out, _ = run(bad)
    assert code == 1
    assert "history.jsonl: invalid (ids, 6 operations, " in out
    assert "These operations show it:" in out
    assert out.count("process ") == 2
    assert run(good).code == 0
    code, out, _ = run(good, bad)
    assert code == 1
    assert "2 histories: 1 valid, 0 unknown, 1 invalid, 0 errors; 8 operations" in out


def test_edn_says_it_with_the_names_of_knossos(run: Callable[..., Ran], tmp_path: Path) -> None:
    """`:valid?`, `:op` and `:analyzer` are where tools expect them."""
    _, out, _ = run(run_folder(tmp_path / "r", TWICE), "--format", "edn")
    result = dict(loads(out).items())
    assert result[Keyword("valid?")] is False
    assert result[Keyword("analyzer")] == Keyword("ids")
    assert dict(result[Keyword("op")].items())[Keyword("index")] == 11
    assert len(result[Keyword("counterexample")]) == 2


@pytest.mark.parametrize(
    ("options", "settings", "code"),
    [
        ({}, [], 1),
        ({"times": 2}, [], 0),
        ({"times": 2}, ["times=1"], 1),
        ({}, ["times=2"], 0),
        ({"lenient": True, "pace": "no number", "system_option": [1]}, [], 0),
        ({}, ["lenient=true"], 0),
    ],
)
def test_options_that_judge_come_from_the_run_and_the_person(
    run: Callable[..., Ran], tmp_path: Path, options: dict[str, Any], settings: list[str], code: int
) -> None:
    """The user's options take precedence over the run's. Other options of a run do not change the verdict."""
    folder = run_folder(tmp_path / "r", TWICE, options=options)
    assert run(folder, *(word for setting in settings for word in ("--workload-option", setting))).code == code


@pytest.mark.parametrize(
    ("test", "arguments", "message"),
    [
        ({"options": {"times": 11}}, [], "test.json: the option times: 11 is not in the range 1<=x<=10"),
        ({"options": {"times": "2"}}, [], "test.json: the option times: expected a number, found '2'"),
        ({"options": {"times": True}}, [], "the option times: expected a number, found True"),
        ({"options": {"lenient": 1}}, [], "the option lenient: expected true or false, found 1"),
        ({"workload": "idz"}, [], "unknown workload idz. Did you mean 'ids'?; set it with --model or"),
        ({"workload": "tests.judges:Ids"}, [], "which labrys never takes from a file"),
        ({"workload": "broken"}, [], "the workload broken of the package tests cannot be loaded"),
        ({"workload": [1]}, [], "expected the workload's name, found [1]"),
        ({}, ["--workload-option", "times=x"], "--workload-option times: 'x' is not a whole number"),
        ({}, ["--workload-option", "pace=1"], "the workload ids has no option pace that a verdict depends on"),
        ({}, ["--workload-option", "times"], "expected NAME=VALUE, found times"),
        ({}, ["--certificate", "--time-limit", "3"], "--time-limit, --certificate: only models support this"),
        ({}, ["--nil-read", "any"], "--nil-read: only models support this"),
        ({}, ["--model", "noop", "--workload", "ids"], "give one of them"),
        ({}, ["--model", "noop", "--workload-option", "times=2"], "give one of them"),
    ],
)
def test_what_cannot_be_is_a_sentence(
    run: Callable[..., Ran], tmp_path: Path, test: dict[str, Any], arguments: list[str], message: str
) -> None:
    """For a hostile run folder or a typing error, the message has the expected and the actual value."""
    folder = run_folder(tmp_path / "r", TWICE, **test)
    with pytest.raises(LabrysError) as refused:
        run(folder, *arguments)
    assert message in str(refused.value)
    assert refused.value.exit_code == 254


def test_any_file_with_a_workload(run: Callable[..., Ran], edn: Callable[..., Path]) -> None:
    """`--workload` names the judge of a file, by name or by place. Options without a workload are refused."""
    file = edn(TWICE)
    assert run(file, "--workload", "ids").code == 1
    assert run(file, "--workload", "tests.judges:Ids", "--workload-option", "times=2").code == 0
    code, out, _ = run(edn(asks(("a", 1), f="read")), "--workload", "register")
    assert (code, "invalid (cas-register, " in out) == (1, True)
    with pytest.raises(LabrysError, match="needs a workload that has the option"):
        run(file, "--workload-option", "times=2")


def test_a_model_can_decide_the_run_of_a_judge(run: Callable[..., Ran], tmp_path: Path) -> None:
    """`--model` requests linearizability for any workload."""
    _, out, _ = run(run_folder(tmp_path / "r", TWICE), "--model", "noop", "--format", "json")
    assert json.loads(out)["model"] == "noop"


def test_nothing_tested_is_unknown(run: Callable[..., Ran], tmp_path: Path) -> None:
    """Without operations, or with none for the judge, the cause names the case. Only the user's option makes it valid."""
    nothing, silent = run_folder(tmp_path / "nothing", []), run_folder(tmp_path / "silent", asks((None, None)))
    code, out, _ = run(nothing, "--format", "json")
    assert (code, json.loads(out)["cause"]) == (2, "empty")
    code, out, _ = run(silent, "--format", "json")
    assert (code, json.loads(out)["cause"], json.loads(out)["explanation"]) == (2, "untested", "No id was given.")
    assert run(nothing, "--empty", "valid").code == 0


def test_a_table_is_judged_without_objects(
    run: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parquet and EDN of the same operations give the same result. Only the shown operations become objects."""
    path = tmp_path / "operations.parquet"
    write_operations(path, TWICE, run="r")
    _, out, _ = run(run_folder(tmp_path / "r", TWICE), "--format", "json")
    expected = json.loads(out)
    read: list[int] = []

    def counted(path: Path, indexes: Any) -> Any:
        read.extend(indexes.tolist())
        return read_rows_of(path, indexes)

    monkeypatch.setattr("checker.judging.by_judge.read_rows_of", counted)
    monkeypatch.setattr("checker.checking.from_parquet", None)
    _, out, _ = run(path, "--workload", "ids", "--format", "json")
    document = json.loads(out)
    assert read == [2, 10]
    names = ("valid", "explanation", "kind", "keys", "counts", "failures", "operations", "events")
    assert {name: document[name] for name in names} == {name: expected[name] for name in names}
    assert [op["invoke_index"] for op in document["counterexample"]] == [2, 10]
    assert document["counterexample"][0]["node"] == "n1"


def test_a_table_that_breaks_a_rule_is_refused(run: Callable[..., Ran], tmp_path: Path) -> None:
    """A process that invokes while its operation is open is refused for every judge."""
    path = tmp_path / "operations.parquet"
    first, second = asks((None, 1), (None, 2))
    write_operations(path, [first, type(second)(**{**_fields(second), "process": 0, "invoke_index": 1})], run="r")
    with pytest.raises(LabrysError, match="row 2"):
        run(path, "--workload", "ids")


def _fields(operation: Operation) -> dict[str, Any]:
    return {name: getattr(operation, name) for name in operation.__dataclass_fields__}


def test_an_operation_that_is_none_of_the_workload_is_named(run: Callable[..., Ran], edn: Callable[..., Path]) -> None:
    """The message names the event and the expected content. Beside other files, it is a result."""
    bad, good = edn(asks((None, 1), f="push")), edn(ONCE, "good.edn")
    with pytest.raises(LabrysError, match="event 0: expected ask, found push"):
        run(bad, "--workload", "ids")
    code, out, _ = run(bad, good, "--workload", "ids")
    assert code == 254
    assert "1 valid, 0 unknown, 0 invalid, 1 errors" in out


def test_a_file_of_defaults_names_no_module(run: Callable[..., Ran], edn: Callable[..., Path]) -> None:
    """`labrys.toml` belongs to a folder. A module in it would be untrusted code."""
    with pytest.raises(LabrysError, match="which labrys never takes from a file"):
        run(edn(ONCE), default_map={"workload": "tests.judges:Ids"})
