"""A transcript has a limit, and says exactly what it leaves out; nobody takes what is left out for a lost message."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from clusters.pipes import transcript
from clusters.pipes.cluster import PipesCluster
from clusters.pipes.transcript import IN, OUT, Transcript
from commands.run.again import compared
from harness.units import NS_PER_S
from results.logs.transcripts import LeftOut, left_out_of, lines_of
from tests.unit.results.test_messages import N0, N1, near

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KEPT = 100  # bytes; a line has its time and its arrow too


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the limit small."""
    monkeypatch.setattr(transcript, "MAX_BYTES", KEPT)


def written(path: Path, lines: Sequence[bytes]) -> Path:
    """Returns the file of a transcript with one line each second."""
    made = Transcript()
    for second, line in enumerate(lines):
        made.add(second * NS_PER_S, OUT, line)
    made.copy(path)
    made.close()
    return path


def test_all_after_the_limit_is_left_out_and_counted(tmp_path: Path) -> None:
    """Also a later line that would have had room: a transcript has no gaps. The file stays small, whatever a program writes."""
    path = written(tmp_path / "messages.log", [b"a" * 50, b"b" * 50, b"c", *[b"d" * 10_000] * 100])
    assert path.stat().st_size < KEPT + 200
    with path.open("rb") as file:
        assert [line.text for line in lines_of(file, most_bytes=1 << 20, most_line=1 << 20)] == [b"a" * 50]
        left = 62 + 13 + 7 * 10_012 + 90 * 10_013 + 3 * 10_014
        assert left_out_of(file) == LeftOut(what=f"102 lines, {left} bytes", from_s=1.0)


def test_a_transcript_within_the_limit_says_nothing(tmp_path: Path) -> None:
    """A program cannot say it in place of Labrys either: each of its lines has a time."""
    note = b"(Labrys left out 1 line, 1 bytes, from 0.000000 s on; SHA-256 " + b"0" * 64 + b")"
    with written(tmp_path / "messages.log", [note[:40]]).open("rb") as file:
        assert left_out_of(file) is None
    assert left_out_of(BytesIO(b"0.000000 < " + note + b"\n")) is None
    assert left_out_of(BytesIO(b"0.000000 < x\n" + note + b"\n")) == LeftOut(what="1 line, 1 bytes", from_s=0.0)
    assert left_out_of(BytesIO(b"")) is None


def test_a_first_line_without_room_is_told(tmp_path: Path) -> None:
    """The file then has the sentence alone."""
    with written(tmp_path / "messages.log", [b"x" * 1000]).open("rb") as file:
        assert left_out_of(file) == LeftOut(what="1 line, 1012 bytes", from_s=0.0)


@pytest.mark.parametrize("other", ["equal", "other"])
def test_runs_that_differ_in_what_is_left_out_differ(other: str, tmp_path: Path) -> None:
    """So the limit changes no verdict of `repeatable`; the sentence is no message that is counted."""
    long = b"y" * 200
    one = written(tmp_path / "one", [b"same", long])
    two = written(tmp_path / "two", [b"same", long if other == "equal" else long.replace(b"y", b"z")])
    equal, difference = compared({"n1": one}, {"n1": two})
    assert equal == 1
    assert (difference is None) == (other == "equal")


def test_a_message_to_a_node_without_a_transcript_is_not_called_lost(tmp_path: Path) -> None:
    """The transcript of n2 ends before the message could arrive, and that of n1 long after it."""
    note = "(Labrys left out 9 lines, 99 bytes, from {}.000000 s on; SHA-256 " + "0" * 64 + ")\n"
    files = {"n0": N0, "n1": N1.replace("3.020000", "3.030000") + note.format(9), "n2": note.format(3)}
    assert near(tmp_path, files)[1:3] == [
        'n0 → n1  gossip {"values": [7]}  (arrived at 2.030000 s)',
        'n0 → n2  gossip {"values": [7]}  (nothing is kept of n2 at this time, so it may have arrived)',
    ]


def test_a_run_tells_it_as_a_problem() -> None:
    """`harness.run` adds these sentences to the problems of the run, which the terminal, the report and results.json have."""
    cluster = PipesCluster(["n0", "n1"], seed=1, virtual=True)
    try:
        cluster.transcript("n0").add(0, IN, b"short")
        assert cluster.left_out() == []
        cluster.transcript("n1").add(2 * NS_PER_S, OUT, b"z" * 200)
        (sentence,) = cluster.left_out()
        assert sentence.startswith("messages.log of n1 leaves out 1 line, 212 bytes, from 2.000000 s on: Labrys keeps ")
    finally:
        cluster.close()
