"""A process that ended by itself is named with its status and its last lines, and decides no verdict."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from harness.daemon import Daemon, ends
from harness.ends import MAX_LINE, MAX_LINES, End, Ended, ends_since, last_lines, processes, shell_status
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.targets import Named
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict, verdict_of

if TYPE_CHECKING:
    from harness.remote import Remote

KV = Daemon(role="kv", argv=("kv",), pattern="^kv", ports=(1,), data_dir="/d", log_files=("/l/kv.log",))


class Shell:
    """A shell with a given answer."""

    node = "n1"

    def __init__(self, stdout: str) -> None:
        self.stdout = stdout

    def run(self, command: str, **_: Any) -> Any:
        """Answers."""
        assert "/run/labrys/ended-kv" in command
        return SimpleNamespace(status=0, stdout=self.stdout, stderr="")


def told(stdout: str) -> list[End]:
    """Returns the ends that a node's answer tells."""
    return ends(cast("Remote", Shell(stdout)), [KV])


def test_a_node_tells_how_its_processes_ended() -> None:
    """Each end has the time since the node's start, the status of the shell, and lines of the log."""
    answer = "100.50\n= kv\n139 90.25\n> one\n> two\n1 99.00\n"
    assert told(answer) == [
        End(role="kv", ago_s=10.25, status=139, lines=("one", "two")),
        End(role="kv", ago_s=1.5, status=1),
    ]
    assert ends(cast("Remote", Shell("")), []) == []


@pytest.mark.parametrize("answer", ["", "x\n= kv\n1 2\n", "1.0\nnonsense\n> a\n", "1.0\n= kv\n999999 1\n1 1e99\n> a\n"])
def test_an_answer_in_another_form_tells_nothing(answer: str) -> None:
    """A node may answer anything."""
    assert told(answer) == []


def test_lines_of_a_log_are_foreign_text() -> None:
    """They are few, short, and without control characters."""
    lines = last_lines(b"\n".join([b"x" * 5000, b"", *(b"line %d \x1b[2J\xff" % index for index in range(20))]))
    assert len(lines) == MAX_LINES
    assert lines[-1].startswith("line 19 \\x1b[2J")
    assert len(last_lines(b"x" * 5000)[0]) < 2 * MAX_LINE


def test_a_status_of_waitpid_is_that_of_a_shell() -> None:
    """The controller of programs by seed has those of waitpid."""
    for command in ("exit 7", "kill -SEGV $$", "kill -KILL $$"):
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", command], {})
        _, status = os.waitpid(pid, 0)
        expected = {"exit 7": 7, "kill -SEGV $$": 128 + signal.SIGSEGV, "kill -KILL $$": 128 + signal.SIGKILL}[command]
        assert shell_status(status) == expected


def ended(status: int = 139, time_s: float = 3.5, **more: Any) -> Ended:
    """Returns the end of a process."""
    return Ended(**{"node": "n1", "role": "kv", "time_ns": int(time_s * NS_PER_S), "status": status, **more})


def part_of(*ends_: Ended, faults: Any = ()) -> Part:
    """Returns the part about some ends."""
    part = processes(ends_, faults)
    assert part is not None
    return part


def test_the_part_names_the_first_end() -> None:
    """Its role, node, time, status, and last lines; the other ends are counted, and in the details."""
    part = part_of(ended(1, 9.0), ended(lines=("assertion failed",)))
    assert part.reason == (
        "The process kv of n1 ended by itself by the signal SIGSEGV at 3.500 s; no fault ended it. "
        "In all, 2 processes ended so. The last lines of its log: assertion failed"
    )
    listed = cast("list[dict[str, Any]]", part.details["ended"])
    assert [end["how"] for end in listed] == ["by the signal SIGSEGV", "with status 1"]
    assert "ended by itself with status 255 at" in part_of(ended(255)).reason  # no signal has the number 127
    assert part_of(ended(128 + 60)).reason.endswith("by the signal 60 at 3.500 s; no fault ended it. Its log is empty.")


def test_the_part_decides_nothing() -> None:
    """A system may end a process on purpose, so a valid run stays valid; without ends there is no part."""
    valid = Part(name="linearizable", verdict=Verdict.VALID, reason="")
    assert verdict_of([valid, part_of(ended())]) is Verdict.VALID
    assert processes([], []) is None


def test_a_fault_at_the_time_is_named() -> None:
    """A full disk may be why a program ends; a fault of another node or another time is not."""
    faults = [
        FaultRecord(
            planned=PlannedFault(id=number, kind=kind, target=Named((node,)), start_s=1, end_s=end_s),
            targets=(node,), start_ns=NS_PER_S, end_ns=end_s * NS_PER_S, proof=Proof(effective=True, reason="Seen."),
        )
        for number, (kind, node, end_s) in enumerate([("disk-full", "n1", 5), ("pause", "n2", 5), ("kill", "n1", 2)])
    ]  # fmt: skip
    assert " at 3.500 s while disk-full was on; no fault ended it." in part_of(ended(), faults=faults).reason


def test_ends_before_the_workload_do_not_count() -> None:
    """A node still has those of earlier runs."""
    found = list(ends_since(0.0, 10.0, "n1", [End("kv", 12.0, 1), End("kv", 4.0, 2, ("a",))]))
    assert found == [Ended(node="n1", role="kv", time_ns=6 * NS_PER_S, status=2, lines=("a",))]
