"""One node alone gets its recorded messages: what it says is compared with what it said, line by line."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import cli
from clusters.pipes.command import environment_of
from clusters.sim.machine import random_of
from commands.replay.node import Replayed, recorded_lines, replayed
from harness.errors import ExitCode, InputError
from results.logs.transcripts import lines_of
from tests.examples import PIPED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# It counts in its folder, says its seed at the start, and repeats each other line.
PROGRAM = """\
import os, pathlib, sys
print("hears", file=sys.stderr, flush=True)
for line in sys.stdin:
    if '"init"' in line:
        count = pathlib.Path("count")
        count.write_text(count.read_text() + "x" if count.exists() else "x")
        print(count.read_text(), os.environ["LABRYS_SEED"], flush=True)
    elif "end" in line:
        sys.exit(3)
    elif "silent" not in line:
        print(line.strip(), flush=True)
"""
INIT = '{"src":"c0","dest":"n0","body":{"type":"init"}}'


def answers(tmp_path: Path, transcript: str, *, until_s: float | None = None, wait_s: float = 5.0) -> Replayed:
    """Feeds a transcript to the program."""
    run, record = stored(tmp_path, transcript.encode())
    program = tmp_path / "node.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program)]
    lines = recorded_lines(run, record, "n0")
    return replayed(lines, command, seed=7, node="n0", until_s=until_s, wait_s=wait_s)


def stored(tmp_path: Path, transcript: bytes) -> tuple[Any, Any]:
    """Returns a run with the transcript of a node."""
    folder = tmp_path / "nodes" / "n0"
    folder.mkdir(parents=True)
    (folder / "messages.log").write_bytes(transcript)
    run = SimpleNamespace(path=tmp_path, nodes_dir=tmp_path / "nodes")
    return run, SimpleNamespace(test=SimpleNamespace(nodes=["n0", "n1"]))


def seeds() -> list[str]:
    """Returns the seeds of the first two starts."""
    return [environment_of(random_of(7, "n0", number))["LABRYS_SEED"] for number in (1, 2)]


def test_a_program_that_says_the_same_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It starts again at each init, in its folder and with the seed of that start. Its stderr is shown, and its folder goes."""
    one, two = seeds()
    transcript = f"""\
0.000000 > {INIT}
0.000000 < x {one}
1.000000 > a
1.000000 > silent
no line of a transcript
1.500000 < a
2.000000 > {INIT}
2.000000 < xx {two}
3.000000 > b
"""
    found = answers(tmp_path, transcript)
    assert found == Replayed(same=3, starts=2, fed=5)
    assert found.sentences("n0") == ["n0 got 5 messages in 2 starts, and wrote the same 3 lines."]
    assert capsys.readouterr().err == "hears\nhears\n"
    assert one != two


@pytest.mark.parametrize(
    ("heard", "came"),
    [("wrong", '{"x": 1}'), ("end", "nothing: the program ended with status 3"), ("silent", "nothing in 0.2 s")],
)
def test_the_first_difference_is_named(tmp_path: Path, heard: str, came: str) -> None:
    """It has the line of the transcript, what was recorded, and what came or why nothing did."""
    heard = '{"x": 1}' if heard == "wrong" else heard
    transcript = (
        f"0.000000 > {INIT}\n0.000000 < x {seeds()[0]}\n4.000000 > {heard}\n4.250000 < said\x1b\n5.000000 > b\n"
    )
    found = answers(tmp_path, transcript, wait_s=5.0 if came[0] == "{" or "status" in came else 0.2)
    assert found.sentences("n0") == [
        "n0 got 2 messages, and wrote the same 1 line until line 4 of messages.log, at 4.250000 s.",
        "expected  said\\x1b",
        f"came      {came}",
    ]
    assert found.expected is not None


def test_later_messages_can_be_left_out(tmp_path: Path) -> None:
    """The time is that of the transcript."""
    transcript = f"0.000000 > {INIT}\n0.000000 < x {seeds()[0]}\n4.000000 > a\n4.250000 < said\n"
    found = answers(tmp_path, transcript, until_s=4.1)
    assert found.expected is None
    assert found.code is ExitCode.VALID
    (tmp_path / "other").mkdir()
    nothing = answers(tmp_path / "other", f"1.000000 > {INIT}\n", until_s=0.5)
    assert nothing.code is ExitCode.UNKNOWN, "no line was compared"


def test_a_foreign_transcript_is_an_error(tmp_path: Path) -> None:
    """A node that the run does not have, no transcript, and one without a start have a sentence."""
    run, record = stored(tmp_path, b"1.0 > x\n\xff\n1.000000 > a\n")
    with pytest.raises(InputError, match=r"the nodes of .* are n0, n1"):
        recorded_lines(run, record, "../n0")
    with pytest.raises(InputError, match="Only runs of programs with pipes"):
        recorded_lines(run, record, "n1")
    with pytest.raises(InputError, match="comes before the first init"):
        replayed(recorded_lines(run, record, "n0"), ["true"], seed=1, node="n0", until_s=None, wait_s=1)
    (tmp_path / "long").write_bytes(b"1.000000 > " + b"x" * 100 + b"\n2.000000 < y\n")
    with (tmp_path / "long").open("rb") as file:
        lines = [(line.number, line.text) for line in lines_of(file, most_bytes=200, most_line=40)]
    assert lines == [(1, b"x" * 29), (2, b"y")]


@pytest.mark.parametrize("option", ["--until", "--wait"])
def test_options_of_one_node_need_a_node(tmp_path: Path, option: str) -> None:
    """Without --node they would mean nothing."""
    with pytest.raises(InputError, match=f"{option} needs --node"):
        cli.invoke(["replay", "latest", "--store", str(tmp_path), option, "1"])


@pytest.mark.parametrize(
    "words",
    [("--targets", "name"), ("--repeat", "2"), ("--until-fail",), ("--format", "json"), ("--system", PIPED)],
)
def test_options_of_a_run_are_refused_with_a_node(tmp_path: Path, words: Sequence[str]) -> None:
    """Nothing runs, so they would mean nothing. The message names the option."""
    with pytest.raises(InputError, match=f"{words[0]} has no meaning with --node"):
        cli.invoke(["replay", "latest", "--store", str(tmp_path), "--node", "n1", "--bin", "true", *words])
