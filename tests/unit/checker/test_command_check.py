"""`labrys check`: verdicts, formats of output, exit codes, defaults of each format, several files."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import tempfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import checker.checking
from checker.edn.reader import load_all, loads
from checker.edn.values import Keyword
from checker.errors import Disagreement
from checker.formats.parquet import write_operations
from checker.formats.read import read_histories
from checker.search.solving import ALGORITHMS
from cli import main
from commands.check.command import ALGORITHM_NAMES
from tests.unit.checker.conftest import Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from checker.decide.history import Decidable

K = Keyword

VALID = """{:process 0, :type :invoke, :f :write, :value 1}
{:process 1, :type :invoke, :f :read, :value nil}
{:process 0, :type :ok, :f :write, :value 1}
{:process 1, :type :ok, :f :read, :value 1}
"""
STALE = """{:index 0, :time 1000, :type :invoke, :process 0, :f :write, :value 1}
{:index 1, :time 2000, :type :ok, :process 0, :f :write, :value 1}
{:index 2, :time 3000, :type :invoke, :process 0, :f :write, :value 2}
{:index 3, :time 4000, :type :ok, :process 0, :f :write, :value 2}
{:index 4, :time 5000, :type :invoke, :process 1, :f :read, :value nil}
{:index 5, :time 6000, :type :ok, :process 1, :f :read, :value 1}
"""
BAD = "{:process 0, :type :ok, :f :write, :value 1}\n"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `labrys check` like the command: it prints errors, and returns the exit code."""

    def go(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as left:
            main(["check", *map(str, arguments)])
        captured = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, captured.out, captured.err)

    return go


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Makes a file."""

    def make(text: str, name: str = "history.edn") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_names_are_those_of_the_algorithms() -> None:
    """The command has its own list of names for a quick start, so the lists must be equal."""
    assert set(ALGORITHM_NAMES) == set(ALGORITHMS)


def test_a_short_check_brings_nothing_heavy(file: Callable[..., Path]) -> None:
    """Start-up dominates the check of a short history, so the command imports only the necessary modules."""
    script = (
        "import contextlib, sys\nfrom cli import main\n"
        "with contextlib.suppress(SystemExit):\n    main(['check', sys.argv[1]])\n"
        "heavy = {'asyncio', 'pyarrow', 'numpy', 'rich', 'matplotlib', 'importlib.metadata', 'tempfile'}\n"
        "print('heavy:', *sorted(heavy & sys.modules.keys()))\n"
    )
    own = '{"format":"labrys-history","version":1}\n'
    for text in (VALID, own):
        ran = subprocess.run([sys.executable, "-c", script, file(text)], capture_output=True, text=True, check=True)
        assert ran.stdout.splitlines()[-1] == "heavy:"


def test_a_valid_history(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """The command prints it and ends with 0."""
    code, out, err = run(file(VALID))
    assert (code, err) == (0, "")
    assert out.startswith(f"{file(VALID)}: valid (cas-register, 2 operations, by ")


def test_an_invalid_history_as_text(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """The command prints the reason, with times and the contradicting operations, and ends with 1."""
    code, out, _ = run(file(STALE), "--model", "register")
    assert code == 1
    lines = out.splitlines()
    assert ": invalid (register, 3 operations, by " in lines[0]
    assert lines[1].startswith("Process 1 read 1 at 0.000005 s, but process 0's write of 2 had completed at ")
    assert lines[-1] == "  process 1  read   1  0.000005 s to 0.000006 s (events 4-5)"


def test_an_invalid_history_as_json(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """One object with at least the members of design.md, and the impossible operation."""
    code, out, _ = run(file(STALE), "--format", "json")
    assert code == 1
    document = json.loads(out)
    assert document["valid"] is False
    assert document["operations"] == 3
    assert document["op"]["index"] == 5
    assert document["previous_ok"]["index"] == 3
    assert {op["index"] for op in document["counterexample"]} == {1, 3, 5}
    assert {"analyzer", "seconds", "explanation", "file", "model"} <= document.keys()
    assert (document["format"], document["events"], document["timed"]) == ("edn", 6, True)
    assert "keys" not in document


def test_an_invalid_history_as_edn(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Knossos's result map. Events of a history without times have none."""
    untimed = STALE.replace(":time", ":ignored")
    code, out, _ = run(file(untimed), "--format", "edn", "--algorithm", "linear")
    assert code == 1
    result = loads(out)
    assert result[K("valid?")] is False
    assert result[K("op")] == loads("{:process 1, :type :ok, :f :read, :value 1, :index 5}")
    assert result[K("previous-ok")][K("index")] == 3
    assert result[K("analyzer")] == K("linear")


def test_an_unknown_history(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """An algorithm that does not apply returns `unknown` with the reason, and exit code 2."""
    same = (
        "".join(f"{{:process {i} :type :{kind} :f :enqueue :value 1}}\n" for i in range(3) for kind in ("invoke", "ok"))
        + "{:process 9 :type :invoke :f :dequeue :value nil}\n{:process 9 :type :ok :f :dequeue :value 1}\n"
    )
    code, out, _ = run(file(same), "--model", "fifo-queue", "--algorithm", "zones", "--format", "json")
    document = json.loads(out)
    assert (code, document["valid"], document["cause"]) == (2, "unknown", "unsuited")


@pytest.mark.parametrize(
    ("text", "options", "valid"),
    [
        ("read nil after write", [], True),
        ("read nil after write", ["--nil-read", "exact"], False),
        ("initial", [], False),
        ("initial", ["--initial", "7"], True),
        ("failed cas", [], True),
        ("failed cas", ["--failed-cas", "observe"], False),
        ("console failed cas", [], False),
        ("console failed cas", ["--failed-cas", "drop"], True),
        ("own read nil after write", [], False),
        ("own read nil after write", ["--nil-read", "any"], True),
    ],
)
def test_conventions_of_formats(
    run: Callable[..., Ran], file: Callable[..., Path], text: str, options: Sequence[str], valid: bool
) -> None:
    """Each format has the conventions of its tool. A flag overrides them."""
    texts = {
        "read nil after write": VALID.replace(":value 1}\n", ":value 1}\n", 1).replace(
            ":ok, :f :read, :value 1", ":ok, :f :read, :value nil"
        )
        + "{:process 5 :type :invoke :f :read :value nil}\n{:process 5 :type :ok :f :read :value nil}\n",
        "initial": "{:process 0 :type :invoke :f :read :value nil}\n{:process 0 :type :ok :f :read :value 7}\n",
        "failed cas": VALID
        + "{:process 5 :type :invoke :f :cas :value [1 2]}\n{:process 5 :type :fail :f :cas :value [1 2]}\n",
        "console failed cas": "".join(
            f"INFO  jepsen.util - 0\t{event}\n"
            for event in (":invoke\t:write\t1", ":ok\t:write\t1", ":invoke\t:cas\t[1 2]", ":fail\t:cas\t[1 2]")
        ),
        "own read nil after write": '{"format":"labrys-history","version":1}\n'
        + "".join(
            json.dumps({"index": i, "time": i, "type": kind, "process": 0, "f": f, "value": value}) + "\n"
            for i, (kind, f, value) in enumerate(
                [("invoke", "write", 1), ("ok", "write", 1), ("invoke", "read", None), ("ok", "read", None)]
            )
        ),
    }
    code, out, _ = run(file(texts[text]), "--format", "json", *options)
    assert json.loads(out)["valid"] is valid
    assert code == (0 if valid else 1)


def test_keys(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Each key is decided separately, and the failing one is named. The EDN is that of Jepsen's independent checker."""
    text = VALID.replace(":value nil", ":value [:a nil]").replace(":value 1", ":value [:a 1]")
    text += (
        STALE.replace(":process ", ":process 1")
        .replace(":value nil", ":value [:b nil]")
        .replace(":value 1", ":value [:b 1]")
        .replace(":value 2", ":value [:b 2]")
        .replace(":index", ":i")
        .replace(":time", ":t")
    )
    document = json.loads(run(file(text), "--keyed", "--format", "json").out)
    assert (document["valid"], document["key"], document["failures"]) == (False, "b", ["b"])
    assert document["keys"] == {"total": 2, "valid": 1, "invalid": 1, "unknown": 0}
    result = loads(run(file(text), "--keyed", "--format", "edn").out)
    assert result[K("failures")] == ("b",)
    assert result[K("results")]["a"][K("valid?")] is True
    assert "Key b: " in run(file(text), "--keyed").out


def test_a_certificate(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """The output has a valid history's legal order on request."""
    assert json.loads(run(file(VALID), "--certificate", "--format", "json").out)["certificate"] == {"": [0, 1]}
    assert run(file(VALID), "--certificate").out.splitlines()[-1] == "  0 1"


def test_several_files(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """A table with a total. An invalid history determines the exit code despite any other error."""
    files = [file(VALID, "a.edn"), file(BAD, "b.edn"), file(STALE, "c.edn")]
    code, out, _ = run(*files)
    assert code == 1
    rows = out.splitlines()
    assert [row.split()[0] for row in rows[:4]] == ["verdict", "valid", "error", "invalid"]
    assert f"{files[1]}:1: process 0 completes" in rows[2]
    assert rows[-1].startswith("3 histories: 1 valid, 0 unknown, 1 invalid, 1 errors; 5 operations in ")
    document = json.loads(run(*files, "--format", "json").out)
    assert (document["valid"], document["operations"]) == (False, 5)
    assert [history["valid"] for history in document["histories"]] == [True, "unknown", False]
    assert "error" in document["histories"][1]
    maps = load_all(run(*files, "--format", "edn").out)
    assert [history[K("valid?")] for history in maps] == [True, K("unknown"), False]


def test_errors_among_several_files(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Without an invalid history, an unreadable file determines the exit code."""
    code, out, _ = run(file(VALID, "a.edn"), file(BAD, "b.edn"), "--format", "json")
    assert (code, json.loads(out)["valid"]) == (254, "unknown")
    assert run(file(BAD, "b.edn"), file(BAD, "c.edn")).code == 254
    assert run(file(VALID, "a.edn"), file(VALID, "b.edn")).code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--model", "mutex"],
            "history.edn: event 0 (process 0): model mutex: expected acquire or release, found write",
        ),
        (["--initial", "[1"], "--initial:1:3: the '[' of line 1 is never closed"),
        (["--initial", "##NaN"], "--initial: expected a value that equals itself"),
        (["--model", "counter", "--initial", ":a"], "expected an integer"),
        (["--model", "registre"], "unknown model registre. Did you mean 'register'?"),
        (["--model", "list-append"], "unknown model list-append"),
        (["--time-limit", "0"], "0"),
        (["--time-limit", "nan"], "nan"),
        (["--time-limit", "inf"], "inf"),
        (["--memory-limit", "99999999999999999999"], "99999999999999999999"),
        (["--memory-limit", "x"], "x"),
    ],
)
def test_bad_arguments(run: Callable[..., Ran], file: Callable[..., Path], arguments: list[str], reason: str) -> None:
    """A message on standard error, nothing on standard output, 254."""
    code, out, err = run(file(VALID), *arguments)
    assert (code, out) == (254, "")
    assert reason in err
    assert "Traceback" not in err


def test_bad_files(run: Callable[..., Ran], file: Callable[..., Path], tmp_path: Path) -> None:
    """The message has the file, the line and the reason; 254."""
    code, out, err = run(file(BAD))
    assert (code, out) == (254, "")
    assert err.startswith(f"labrys: {tmp_path / 'history.edn'}:1: process 0 completes 'write' (ok)")
    assert "No such file" in run(tmp_path / "missing").err
    assert "expected a file, or a run's folder" in run(tmp_path).err


def test_hostile_values_are_spelled_out(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """Control characters and text that is not Unicode reach neither a terminal nor a pipe unescaped."""
    text = '{"format":"labrys-history","version":1}\n' + "".join(
        json.dumps({"index": i, "time": i, "type": kind, "process": 0, "f": "read", "value": value}) + "\n"
        for i, (kind, value) in enumerate([("invoke", None), ("ok", "\x1b[2J\ud800\x9b")])
    )
    code, out, _ = run(file(text))
    assert code == 1
    assert out.isprintable() or set(filter(lambda c: not c.isprintable(), out)) == {"\n"}
    assert "\\ud800" in out
    assert json.loads(run(file(text), "--format", "json").out)["op"]["value"] == "\x1b[2J\ud800\x9b"


def test_warnings_go_to_standard_error(run: Callable[..., Ran], file: Callable[..., Path]) -> None:
    """The output shows what was skipped, and so does the JSON."""
    torn = '{"format":"labrys-history","version":1}\n{"ind'
    code, out, err = run(file(torn), "--format", "json", "--empty", "valid")
    assert code == 0
    assert "line 2, the last one, is torn off" in err
    assert json.loads(out)["warnings"] == ["line 2, the last one, is torn off and was left out"]


def test_a_run_folder(run: Callable[..., Ran], tmp_path: Path) -> None:
    """Its history is checked with the model of its workload. For an unknown workload, the user gives the model."""
    (tmp_path / "history.jsonl").write_text('{"format":"labrys-history","version":1}\n')
    (tmp_path / "test.json").write_text('{"format":"labrys-test","workload":"register"}')
    code, out, _ = run(tmp_path, "--format", "json")
    assert (code, json.loads(out)["operations"]) == (2, 0)
    (tmp_path / "test.json").write_text('{"workload":"vault"}')
    assert "unknown workload vault" in run(tmp_path).err
    (tmp_path / "test.json").write_text("{")
    assert "set it with --model" in run(tmp_path).err
    assert run(tmp_path, "--model", "noop", "--empty", "valid").code == 0


def test_other_ways_in(
    run: Callable[..., Ran], file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standard input, gzip and Parquet give the file's own verdict."""
    (history,) = read_histories(str(file(STALE)))
    table, packed = tmp_path / "operations.parquet", tmp_path / "h.gz"
    write_operations(table, history.operations, run="r")
    packed.write_bytes(gzip.compress(STALE.encode()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(STALE.encode())))
    for name in ("-", table, packed):
        code, out, _ = run(name, "--format", "json")
        assert (code, json.loads(out)["op"]["index"]) == (1, 5)


@pytest.mark.parametrize("algorithm", ["auto", "zones", "search", "linear", "wgl", "competition"])
def test_algorithms_agree(run: Callable[..., Ran], file: Callable[..., Path], algorithm: str) -> None:
    """All algorithms give the same verdict and the same failing operation."""
    document = json.loads(run(file(STALE), "--algorithm", algorithm, "--cross-check", "--format", "json").out)
    assert (document["valid"], document["op"]["index"]) == (False, 5)


def test_a_mistake_of_our_own_is_no_verdict(
    run: Callable[..., Ran], file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected exception ends with 255. Python's own 1 would mean an invalid history."""

    def stumble(*_arguments: Any, **_options: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(checker.checking, "decide", stumble)
    code, out, err = run(file(VALID))
    assert (code, out) == (255, "")
    assert "oops" in err


def test_a_disagreement_is_an_internal_error(
    run: Callable[..., Ran], file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 255, and the history is kept for debugging."""

    def disagree(history: Decidable, _question: object) -> None:
        raise Disagreement("zones says valid, but wgl says invalid", history.operations(0))

    monkeypatch.setattr(checker.checking, "decide", disagree)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code, _, err = run(file(STALE))
    assert code == 255
    kept = err.partition("the history is in ")[2].strip()
    (history,) = read_histories(kept)
    assert [operation.result for operation in history.operations] == [1, 2, 1]
