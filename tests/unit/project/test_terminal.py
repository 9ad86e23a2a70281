"""Everything that is written to a terminal goes through `harness.console.terminal`, which escapes it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

import cli
from harness.console.terminal import open_console
from harness.errors import ExitCode

ROOT = Path(__file__).parents[3]
ROOMS = ("harness", "nemesis", "workloads", "checker", "clusters", "results")
PROGRAMS = {*ROOT.glob("clusters/systems/*/program/main.py")}  # their standard output is a pipe to Labrys
EVENTS = [
    {"format": "labrys-history", "version": 1},
    {"index": 0, "time": 0, "type": "invoke", "process": 0, "f": "read", "value": None},
    {"index": 1, "time": 9, "type": "ok", "process": 0, "f": "read", "value": 3},
]


def calls(path: Path) -> list[str]:
    """Returns the calls of a module that write to a terminal, each as `file:line call`."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in {"print", "Console", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"} or (
                called.startswith("traceback.print")
            ):
                lines.append(f"{path.relative_to(ROOT)}:{node.lineno} {called}")
    return lines


def test_nothing_else_writes_to_a_terminal() -> None:
    """A `click.echo`, a `print` or a console of rich in another module would let foreign text through."""
    files = [ROOT / "cli.py", *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")))]
    writers = {ROOT / "harness/console/terminal.py", *PROGRAMS, *ROOT.glob("clusters/systems/*/tests/**/*.py")}
    assert [call for path in files if path not in writers for call in calls(path)] == []


@pytest.mark.parametrize("arguments", [["check"], ["check", "--format", "json"], ["check", "--format", "edn"]])
def test_a_name_cannot_steer_the_terminal_or_break_a_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str]
) -> None:
    """Names of files, functions and keys, in what is found and in what is refused."""
    hostile = tmp_path / "a\u202e\x1b[2J\nb.jsonl: valid"
    hostile.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    bad = tmp_path / "\x9b2J\nlabrys: forged"
    bad.write_text("\x1b]0;x\x07\u202e")
    for files in ([hostile], [bad], [hostile, bad], [tmp_path / "\x1b[31m\nlabrys: none"]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, *map(str, files)])
        out, err = capsys.readouterr()
        assert ended.value.code in {ExitCode.INVALID, ExitCode.BAD_ARGUMENTS}
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out + err)
        assert not any(
            line.startswith(("labrys: forged", "labrys: none", "b.jsonl")) for line in (out + err).split("\n")
        )


def test_an_option_that_is_wrong_is_quoted_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """Click quotes what it does not know."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", "--\x1b[2J", "--model", "\u202e"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (ExitCode.BAD_ARGUMENTS, "")
    assert not {"\x1b", "\u202e"} & set(err)


def test_a_pipe_has_no_width(tmp_path: Path) -> None:
    """A sentence stays in one line there, and so does each part of a verdict."""
    sentence = "a long sentence " * 40
    with (tmp_path / "out").open("w") as file:
        open_console(stderr=False, file=file).print(sentence)
    assert (tmp_path / "out").read_text() == f"{sentence}\n"
