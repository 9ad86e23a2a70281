"""The time of a log's line is read in the formats of common programs, or it is none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.logs.time_stamps import stamp_of

NEAR = datetime(2026, 1, 31, 10, 11, 0, tzinfo=UTC)
NEAR_NS = int(NEAR.timestamp()) * 10**9
AT_NS = NEAR_NS + 12_345_000_000


@pytest.mark.parametrize(
    ("line", "expected_ns"),
    [
        ("2026-01-31T10:11:12.345Z INFO [main] starting", AT_NS),
        ("2026-01-31 10:11:12,345 WARN heartbeat", AT_NS),
        ("2026-01-31T12:11:12.345+02:00 x", AT_NS),
        ("2026-01-31 05:11:12.345 -0500 x", AT_NS),
        ("[2026-01-31 10:11:12.345] x", AT_NS),
        ('{"level":"info","ts":"2026-01-31T10:11:12.345Z","msg":"became leader"}', AT_NS),
        ('{"level":"info","ts":1769854272.345,"msg":"x"}', AT_NS),
        ("2026/01/31 10:11:12 raft: term 3", AT_NS - 345_000_000),
        ("1234:M 31 Jan 2026 10:11:12.345 * Ready to accept", AT_NS),
        ('10.0.0.1 - - [31/Jan/2026:10:11:12 +0000] "GET /"', AT_NS - 345_000_000),
        ("Jan 31 10:11:12 host store[5]: x", AT_NS - 345_000_000),
        ("I0131 10:11:12.345678       1 leader.go:5] x", AT_NS + 678_000),
        ("10:11:12.345 [main] INFO x", AT_NS),
        ("2026-01-31T10:11:12.123456789Z", NEAR_NS + 12_123_456_789),
    ],
)
def test_the_formats_of_common_programs(line: str, expected_ns: int) -> None:
    """Each gives the same time; a fraction of a second may be missing."""
    stamp = stamp_of(line, zone_s=0, near_ns=NEAR_NS)
    assert stamp is not None
    assert stamp.time_ns == expected_ns


def test_a_time_without_a_zone_is_in_the_zone_of_the_node() -> None:
    """A time with a zone is not."""
    bare = stamp_of("2026-01-31 12:11:12,345", zone_s=7200, near_ns=NEAR_NS)
    zoned = stamp_of("2026-01-31 10:11:12.345Z", zone_s=7200, near_ns=NEAR_NS)
    assert bare is not None
    assert zoned is not None
    assert (bare.time_ns, zoned.time_ns) == (AT_NS, AT_NS)


def test_a_time_without_a_year_or_a_day_is_the_nearest() -> None:
    """A run may pass midnight, and the end of a year."""
    new_year_ns = int(datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC).timestamp()) * 10**9
    for line in ("Dec 31 23:59:58 host x", "I1231 23:59:58.000 x", "23:59:58.000 x"):
        stamp = stamp_of(line, zone_s=0, near_ns=new_year_ns)
        assert stamp is not None
        assert stamp.time_ns == new_year_ns - 7 * 10**9


@pytest.mark.parametrize(
    "line",
    ["", "no time here", "2026-13-31T10:11:12Z", "2026-02-30 10:11:12", "25:00:00.1", "\tat io.netty(Thread.java:10)",
     "x" * 5000 + "10:11:12", "0000-00-00 00:00:00", "Feb 30 10:11:12 x", "2026-01-31T99:99:99Z"],
)  # fmt: skip
def test_a_time_that_does_not_exist_is_none(line: str) -> None:
    """Other lines, such as those of a stack trace, have no time either."""
    assert stamp_of(line, zone_s=0, near_ns=NEAR_NS) is None


@given(st.text(st.sampled_from('0123456789:-/.,TZ+ JanDec<["ts'), max_size=60), st.integers(-86_400, 86_400))
def test_any_text_is_read_without_an_error(text: str, zone_s: int) -> None:
    """A log is foreign text."""
    stamp_of(text, zone_s=zone_s, near_ns=NEAR_NS)
