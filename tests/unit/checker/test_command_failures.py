"""`labrys check` with several files: each file has its own errors, and no error hides an invalid history."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import checker.checking
from checker import presentation
from checker.decide.decision import decide
from checker.formats.parquet import write_operations
from checker.formats.read import read_histories
from cli import main
from harness.errors import ExitCode
from harness.values import MAX_NESTING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.op import Operation

HEADER = '{"format":"labrys-history","version":1}\n'
INVALID = "{:process 0 :type :invoke :f :read :value nil}\n{:process 0 :type :ok :f :read :value 7}\n"
VALID = "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n"


def own(*events: tuple[str, Any]) -> str:
    """Returns a history.jsonl with one process's reads."""
    lines = [
        {"index": i, "time": i, "type": kind, "process": 0, "f": "read", "value": value}
        for i, (kind, value) in enumerate(events)
    ]
    return HEADER + "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Checks histories, given as texts, in order."""

    def go(texts: Sequence[str], *options: str) -> tuple[int, str, str]:
        files = []
        for number, text in enumerate(texts):
            file = tmp_path / f"h{number}"
            file.write_text(text)
            files.append(str(file))
        with pytest.raises(SystemExit) as left:
            main(["check", *options, *files])
        captured = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return left.value.code, captured.out, captured.err

    return go


HOSTILE = {
    "a huge time": own(("invoke", None), ("ok", 7)).replace('"time": 1', f'"time": 1{"0" * 400}'),
    "a huge integer in EDN": INVALID.replace("7", "7" * 4000),
    "a huger integer in EDN": INVALID.replace("7", "7" * 5000),
    "a huge process": INVALID.replace(":process 0", f":process {'7' * 4000}"),
    "a huge time in EDN": INVALID.replace(":process 0", f":process 0 :time {'7' * 4000}"),
    "deep nesting": own(("invoke", None)) .replace("null", "[" * 100_000 + "]" * 100_000),
    "deep nesting in EDN": INVALID.replace("7", "[" * 100_000 + "]" * 100_000),
    "half a character": own(("invoke", None), ("ok", "\ud800")),
    "binary": "{\0",
    "nothing": "",
}  # fmt: skip


@pytest.mark.parametrize("output", ["text", "json", "edn"])
@pytest.mark.parametrize("name", HOSTILE)
def test_whatever_is_wrong_with_one_file_the_others_are_judged(
    check: Callable[..., tuple[int, str, str]], name: str, output: str
) -> None:
    """An invalid history before or after it gives 1, and both files are reported, without a traceback."""
    for texts in ([INVALID, HOSTILE[name]], [HOSTILE[name], INVALID]):
        code, out, err = check(texts, "--format", output)
        assert code == ExitCode.INVALID
        assert "Traceback" not in out + err
        assert "h0" in out
        assert "h1" in out
    alone, _, err = check([HOSTILE[name]], "--format", output)
    assert alone in {ExitCode.INVALID, ExitCode.BAD_ARGUMENTS}
    assert "Traceback" not in err


@pytest.mark.parametrize("output", ["json", "edn"])
def test_what_a_format_cannot_say_hides_no_verdict(check: Callable[..., tuple[int, str, str]], output: str) -> None:
    """The details around a value of the greatest depth are deeper: EDN omits them with the reason, and the verdict stays."""
    deep = json.loads("[" * MAX_NESTING + "]" * MAX_NESTING)
    code, out, _ = check([own(("invoke", None), ("ok", deep))], "--format", output)
    assert code == ExitCode.INVALID
    if output == "edn":
        assert ":valid? false" in out
        assert "the details are left out, because they cannot be written: expected a value nested" in out
    else:
        assert json.loads(out)["op"]["value"] == deep


@pytest.mark.parametrize("output", ["json", "edn"])
def test_half_a_character_is_an_escape(check: Callable[..., tuple[int, str, str]], output: str) -> None:
    """JSON and EDN write it as JSON does."""
    code, out, _ = check([HOSTILE["half a character"]], "--format", output)
    assert code == ExitCode.INVALID
    assert (':value "\\ud800"' if output == "edn" else '"value": "\\ud800"') in out


class Panic(BaseException):
    """The kernel raises this error."""


@pytest.mark.parametrize("error", [MemoryError, RecursionError, ZeroDivisionError, Panic])
def test_our_own_mistakes_are_errors_of_their_file(
    check: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """The traceback is on standard error, and the file has an error. The invalid one gives 1; without it the code is 255."""
    calls: list[int] = []

    def stumble(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise error("oops")
        return decide(*arguments, **options)

    monkeypatch.setattr(checker.checking, "decide", stumble)
    code, out, err = check([VALID, INVALID], "--format", "json")
    assert code == ExitCode.INVALID
    document = json.loads(out)
    assert [history["valid"] for history in document["histories"]] == ["unknown", False]
    assert f"the check failed: {error.__name__}: oops" in document["histories"][0]["error"]
    assert "Traceback" in err
    calls.clear()
    assert check([VALID, VALID])[0] == ExitCode.INTERNAL
    calls.clear()
    assert check([VALID])[0] == ExitCode.INTERNAL


def test_an_interrupt_is_no_error_of_a_file(
    check: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends the command."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(checker.checking, "decide", interrupt)
    assert check([VALID, INVALID])[0] == ExitCode.INTERRUPTED


def test_a_run_that_fails_hides_no_other_run_of_its_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Parquet file may have several runs. Each has its own result."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import
    from pyarrow import parquet  # noqa: PLC0415

    tables = []
    for run, text in (("a", VALID), ("b", VALID.replace("write", "nosuch")), ("c", INVALID)):
        (tmp_path / "h.edn").write_text(text)
        (history,) = read_histories(str(tmp_path / "h.edn"))
        operations: Sequence[Operation] = history.operations
        write_operations(tmp_path / "one.parquet", operations, run=run)
        tables.append(parquet.read_table(tmp_path / "one.parquet"))
    parquet.write_table(pa.concat_tables(tables), tmp_path / "all.parquet")
    with pytest.raises(SystemExit) as left:
        main(["check", "--format", "json", str(tmp_path / "all.parquet")])
    assert left.value.code == ExitCode.INVALID
    histories = json.loads(capsys.readouterr().out)["histories"]
    assert [history["valid"] for history in histories] == [True, "unknown", False]
    assert histories[1]["file"].endswith("#b")


def test_a_result_that_cannot_be_shown_hides_no_other(
    check: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """For any error, the result has its verdict and the error in place of its details."""
    real = presentation._lines_of_model

    def stumble(result: Any) -> list[str]:
        if result.analysis.worst.op is not None and result.history.name.endswith("h0"):
            raise OverflowError("too large for a float")
        return real(result)

    monkeypatch.setattr(presentation, "_lines_of_model", stumble)
    code, out, _ = check([INVALID, INVALID])
    assert code == ExitCode.INVALID
    assert "the details are left out, because they cannot be written: too large for a float" in out
    assert "2 invalid" in out
