"""A log on a node is followed line by line, also through rotations and truncations, by commands that end by themselves."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING, cast

import pytest

from harness.errors import NodeError
from harness.remote import Result
from nemesis import loglines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from harness.remote import Remote

LONG_S = 20.0  # the line ends the command long before
SHORT_S = 0.3


class Shell:
    """The shell of this machine in place of that of a node."""

    node = "n1"

    def __init__(self, *, answers: bool = True) -> None:
        self._answers = answers

    def run(self, command: str, *, timeout_s: float, check: bool) -> Result:
        """Runs a command line."""
        assert not check
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=timeout_s, check=False)
        stdout = done.stdout.decode("utf-8", "replace") if self._answers else "sh: tail: not found"
        return Result(node=self.node, command=command, status=done.returncode, stdout=stdout, stderr="")


def looked(
    log: Path, after: loglines.Place | None = None, *, look_s: float = SHORT_S, pattern: str = "elected|took"
) -> loglines.Look:
    """Looks at the log once."""
    return loglines.look(cast("Remote", Shell()), str(log), pattern, after, look_s=look_s)


def meanwhile(write: Callable[[], object]) -> threading.Thread:
    """Writes while a command follows the log."""

    def later() -> None:
        time.sleep(0.5)
        write()

    thread = threading.Thread(target=later)
    thread.start()
    return thread


def add(log: Path, text: str) -> None:
    """Appends to the log."""
    with log.open("a") as end:
        end.write(text)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Returns the path of a log with one line that matches, from before."""
    path = tmp_path / "it's a log.txt"
    path.write_text("n1 took over long ago\n")
    return path


def test_only_lines_after_the_first_look_count(log: Path) -> None:
    """The first look begins at the end of the log; the line ends it at once."""
    writing = meanwhile(lambda: add(log, "nothing\nn1 took a snapshot\nn1 took another\n"))
    began_s = time.monotonic()
    look = looked(log, look_s=LONG_S)
    writing.join()
    assert look.line == "n1 took a snapshot"
    assert time.monotonic() - began_s < LONG_S / 2


def test_a_look_without_a_line_ends_and_the_next_one_misses_nothing(log: Path) -> None:
    """A line between two looks, or one that was incomplete, is found by the next look."""
    first = looked(log)
    assert first.line is None
    add(log, "n1 too")
    second = looked(log, first.place)
    assert second.line is None
    add(log, "k it\n")
    assert looked(log, second.place, look_s=LONG_S).line == "n1 took it"
    third = looked(log)
    assert looked(log, third.place).line is None


@pytest.mark.parametrize("within", [False, True], ids=["between two looks", "during a look"])
def test_a_rotation_loses_no_line(log: Path, *, within: bool) -> None:
    """After a rotation, the rest of the old log and the whole new one count."""

    def rotate(old: str, new: str) -> None:
        add(log, old)
        log.rename(log.with_suffix(".1"))
        log.write_text(new)

    position = looked(log).place
    if within:
        writing = meanwhile(lambda: rotate("old\n", "n1 was elected\n"))
        assert looked(log, position, look_s=LONG_S).line == "n1 was elected"
        writing.join()
        return
    rotate("n1 took the last chance\n", "new\n")
    assert looked(log, position, look_s=LONG_S).line == "n1 took the last chance"
    rotate("x\n", "n1 was elected\n")
    (log.with_suffix(".1")).unlink()
    assert looked(log, position, look_s=LONG_S).line == "n1 was elected"


def test_a_log_that_was_cut_is_read_from_its_start(log: Path) -> None:
    """A restarted process may truncate its log."""
    position = looked(log).place
    log.write_text("n1 took\n")
    assert looked(log, position, look_s=LONG_S).line == "n1 took"


def test_a_log_can_be_late(tmp_path: Path) -> None:
    """A log that does not exist yet counts from its first line."""
    log = tmp_path / "late.log"
    writing = meanwhile(lambda: log.write_text("n1 was elected\r\n"))
    assert looked(log, look_s=LONG_S).line == "n1 was elected"
    writing.join()


def test_strange_lines_and_patterns_are_only_text(log: Path, tmp_path: Path) -> None:
    """No text of a log or a pattern reaches the shell; bytes that are no text do not end the search; a long line is cut."""
    position = looked(log).place
    with log.open("ab") as end:
        end.write(b"\0\xff binary\n$(touch " + os.fsencode(tmp_path) + b"/x) `took'; took\n")
    assert looked(log, position, look_s=LONG_S, pattern="`took'; t").line == f"$(touch {tmp_path}/x) `took'; took"
    position = looked(log).place
    add(log, "took" + "x" * 10_000 + "\n")
    line = looked(log, position, look_s=LONG_S, pattern="^took").line
    assert line is not None
    assert len(line) == loglines.MAX_LINE_BYTES
    assert {path.name for path in tmp_path.iterdir()} == {log.name}


def test_a_command_leaves_nothing_behind(log: Path) -> None:
    """After a look, no process follows the log."""
    add(log, "x\n")
    position = looked(log).place
    add(log, "took\n")
    looked(log, position, look_s=LONG_S)
    time.sleep(0.2)
    following = subprocess.run(["pgrep", "-f", str(log)], capture_output=True, check=False)
    assert following.stdout == b""


def test_another_answer_is_an_error(log: Path) -> None:
    """A node without the programs gives an error with what it said."""
    with pytest.raises(NodeError, match=r"txt could not be followed: sh: tail: not found"):
        loglines.look(cast("Remote", Shell(answers=False)), str(log), "x", None, look_s=0.1)
