"""The first difference of two logs of calls is found, and told by its program, its thread and its node."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from clusters.sim.linux.calls import AFTER, MAX_LINE, Difference, first_difference

LINES = [
    "             0 * start on n1: /usr/bin/env server #00000001",
    "    1000000060 n1/server/0 openat(0x1, 0x2, 0x3, 0x4) = 3 at 0x5 #00000002",
    "                 5 bytes: hello #00000003",
    "    1000001060 n1/server/0 read(0x3, 0x2, 0x5, 0x4) = 5 at 0x5 #00000004",
    "    1000002060 n2/server/7 futex(0x3, 0x2, 0x5, 0x4) = 0 at 0x5 #00000005",
]


def compared(one: list[str], other: list[str], before: int = 2) -> tuple[int, Difference | None]:
    """Compares two logs."""
    return first_difference(*(io.BytesIO(("\n".join(log) + "\n").encode()) for log in (one, other)), before=before)


def test_equal_logs_have_no_difference() -> None:
    """All their lines count."""
    assert compared(LINES, LINES) == (5, None)


def test_the_first_difference_has_the_lines_around_it() -> None:
    """A line without a thread, such as bytes, belongs to the next call."""
    other = [*LINES[:2], LINES[2].replace("hello", "jello"), *LINES[3:]]
    equal, difference = compared(LINES, other, before=1)
    assert equal == 2
    assert difference is not None
    assert (difference.before, difference.first, difference.second) == (LINES[1:2], LINES[2:5], other[2:5])
    assert difference.describe() == (
        "The first difference is in line 3, at 1.000001 s of virtual time, in thread 0 of server on n1."
    )


def test_each_log_may_have_another_thread_there() -> None:
    """Both are named, and the end of a log is a difference."""
    _, difference = compared(LINES[:4], [*LINES[:3], LINES[4]])
    assert difference is not None
    assert "in thread 0 of server on n1 in the first log, and at 1.000002 s" in difference.describe()
    assert difference.describe().endswith("in thread 7 of server on n2 in the second.")
    _, difference = compared(LINES[:4], LINES)
    assert difference is not None
    assert "at its end in the first log" in difference.describe()
    assert difference.first == []


def test_the_same_line_with_another_digest_says_so() -> None:
    """What differs came before it."""
    _, difference = compared(LINES, [*LINES[:4], LINES[4].replace("#00000005", "#00000006")])
    assert difference is not None
    assert "The line is the same, but not what came before" in difference.describe()


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_are_a_log(one: bytes, other: bytes) -> None:
    """A log may come from anyone: exactly different ones have a difference, which can be told."""
    _, difference = first_difference(io.BytesIO(one), io.BytesIO(other), before=3)
    assert (difference is None) == (one == other)
    if difference is not None:
        assert difference.describe().startswith("The first difference is in line ")


def test_a_long_line_does_not_fill_the_memory() -> None:
    """It counts as several lines."""
    equal, difference = first_difference(io.BytesIO(b"a" * 10**6), io.BytesIO(b"a" * 10**6 + b"b"), before=5)
    assert equal == 10**6 // MAX_LINE
    assert difference is not None
    assert max(map(len, [*difference.before, *difference.first, *difference.second])) <= MAX_LINE
    assert len(difference.first) <= AFTER
