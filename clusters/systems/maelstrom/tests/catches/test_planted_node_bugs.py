"""Planted bugs in programs on stdin and stdout: each is found in virtual time, and the program without it is valid.

The seed repeats each of these runs, message by message.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from harness.console.documents import parse_json
from harness.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = Path(__file__).parents[5] / "examples" / "nodes"
CUTS = ("--nemesis", "partition-random-halves")
# The workload, the program, the arguments of its bug, and further options of the run.
BUGS: Sequence[tuple[str, str, str, Sequence[str]]] = [
    ("unique-ids", "unique_ids.py", "--forget-start", ("--nemesis", "kill")),
]
MORE_BUGS: Sequence[tuple[str, str, str, Sequence[str]]] = [
    ("broadcast", "broadcast.py", "--once", CUTS),
    ("pn-counter", "counter.py", "--sum", ()),
    ("g-counter", "kv_counter.py", "--shared", ("--service-timeouts", "0.1")),
    ("lin-kv", "lin_kv.py", "--service seq-kv", ()),
    ("kafka", "logs.py", "--blind", ()),
    ("kafka", "logs.py", "--own-commits", ("--strict-commits",)),
    ("kafka", "logs.py", "--last-commit", ("--strict-commits", "--service-timeouts", "0.1")),
    ("txn-list-append", "txn.py", "--blind", ()),
    ("txn-rw-register", "txn.py", "--blind", ("--linearizable-keys",)),
    ("txn-rw-register", "txn_gossip.py", "--write-by-write", (*CUTS, "--consistency-model", "read-committed")),
]


def run(
    folder: Path, capsys: pytest.CaptureFixture[str], workload: str, command: str, more: Sequence[str]
) -> tuple[int, dict[str, bool | str]]:
    """Carries out one run; returns the exit code, and the verdict of each part."""
    with pytest.raises(SystemExit) as ended:
        cli.main(
            [
                "test", "--cluster", "pipes", "--virtual", "--system", "maelstrom", "--store", str(folder), "--seed", "3",
                "--nodes", "3", "--time-limit", "4", "--rate", "20", "--workload", workload, "--fault-on", "0.5-1",
                "--fault-off", "0.5-1", "--fault-quiet", "0.5-1", "--bin", f"{sys.executable} {NODES / command}", *more,
            ]
        )  # fmt: skip
    capsys.readouterr()
    assert isinstance(ended.value.code, int)
    (results,) = folder.glob("*/2*/results.json")
    document = parse_json(results.read_bytes(), str(results))
    return ended.value.code, {name: part["valid"] for name, part in document["parts"].items()}


def test_no_program_that_a_run_names_is_started(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run may come from anyone. So its program must stand on the command line of `replay`."""
    run(tmp_path, capsys, "echo", "echo.py", ("--name", "t"))
    (test,) = tmp_path.glob("t/2*/test.json")
    test.write_text(test.read_text().replace(str(NODES / "echo.py"), str(tmp_path / "started")))
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "--store", str(tmp_path)])
    assert ended.value.code == ExitCode.BAD_ARGUMENTS
    assert "labrys starts no program that a run names; give --bin COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "--store", str(tmp_path), "--bin", f"{sys.executable} {NODES / 'echo.py'}"])
    assert ended.value.code == ExitCode.VALID


def alone(folder: Path, node: str, command: str) -> object:
    """Feeds the recorded messages of a node to a program; returns the exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main(["replay", "--store", str(folder), "--node", node, "--bin", f"{sys.executable} {NODES / command}"])
    return ended.value.code


@pytest.mark.parametrize(
    "planted",
    [*BUGS, *(pytest.param(bug, marks=pytest.mark.night) for bug in MORE_BUGS)],
)
def test_a_bug_is_found_and_the_correct_program_is_valid(
    planted: tuple[str, str, str, Sequence[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part of the workload is invalid with the bug, and both runs repeat themselves. `explain` prints the messages.

    Each node alone says what it said in the run, and the program without the bug says something else at one of them.
    """
    workload, program, bug, more = planted
    code, parts = run(tmp_path / "wrong", capsys, workload, f"{program} {bug}", more)
    assert (code, parts["repeatable"], parts["protocol"]) == (ExitCode.INVALID, True, True)
    name = "linearizable" if workload == "lin-kv" else workload
    assert parts[name] is False
    with pytest.raises(SystemExit) as ended:
        cli.main(["explain", "--store", str(tmp_path / "wrong")])
    assert (ended.value.code, "The messages around the violation" in capsys.readouterr().out) == (
        ExitCode.VALID,
        True,
    )
    assert {alone(tmp_path / "wrong", node, f"{program} {bug}") for node in ("n0", "n1", "n2")} == {ExitCode.VALID}
    assert ExitCode.INVALID in {alone(tmp_path / "wrong", node, program) for node in ("n0", "n1", "n2")}
    capsys.readouterr()
    code, parts = run(tmp_path / "right", capsys, workload, program, more)
    assert (code, parts["repeatable"], parts[name]) == (ExitCode.VALID, True, True)


@pytest.mark.night
def test_the_raft_of_the_examples_is_linearizable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is valid with kills and cuts; a longer hunt finds each of its planted bugs (docs/guide/node-programs.md)."""
    code, parts = run(tmp_path, capsys, "lin-kv", "raft.py", ("--nemesis", "kill,partition-random-halves"))
    assert (code, parts["linearizable"], parts["repeatable"]) == (ExitCode.VALID, True, True)


@pytest.mark.night
def test_a_raft_whose_nodes_all_lose_their_files_loses_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With new disks on all nodes at once, no Raft can keep what it acknowledged. A kill alone loses nothing."""
    code, parts = run(tmp_path / "killed", capsys, "lin-kv", "raft.py", ("--nemesis", "kill:all", "--fault-off", "2-2"))
    assert (parts["linearizable"], parts["faults-effective"]) == (True, True)
    code, parts = run(tmp_path / "wiped", capsys, "lin-kv", "raft.py", ("--nemesis", "wipe:all", "--fault-off", "2-2"))
    assert (code, parts["linearizable"], parts["faults-effective"]) == (ExitCode.INVALID, False, True)


def test_a_program_that_the_seed_does_not_repeat_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The part names the first message that differs. It does not change the verdict."""
    program = tmp_path / "clock.py"
    source = (
        (NODES / "unique_ids.py").read_text().replace("node.random.getrandbits(64)", "__import__('time').time_ns()")
    )
    program.write_text(source)
    (tmp_path / "node.py").write_text((NODES / "node.py").read_text())
    code, parts = run(tmp_path / "store", capsys, "unique-ids", str(program), ())
    assert (code, parts["repeatable"]) == (ExitCode.VALID, "unknown")


@pytest.mark.night
def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/guide/node-programs.md: new nodes, a lost broadcast, a Raft, a hunt for its bug, one node alone, and time-outs."""
    page = (NODES.parents[1] / "docs" / "guide" / "node-programs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    (tmp_path / "examples").symlink_to(NODES.parent)
    monkeypatch.chdir(tmp_path)
    codes = {}
    for command in commands:
        name, *words = shlex.split(command)
        assert name == "labrys"
        if words[0] == "suite":
            continue  # a suite of its own, which a night runs
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        codes[command] = ended.value.code
    assert "The messages around the violation" in capsys.readouterr().out
    valid, invalid = ExitCode.VALID, ExitCode.INVALID
    expected = [valid, valid, valid, valid, invalid, valid, invalid, valid, valid, invalid]
    assert list(codes.values()) == expected, codes
