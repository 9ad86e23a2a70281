"""Values with the tags of EDN itself: two spellings of one moment, or of one UUID, are one value."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker.checking import make_model
from checker.edn.reader import loads
from checker.edn.spellings import usual
from checker.edn.tokens import EdnError
from checker.edn.writer import dumps
from checker.formats.read import read_source
from checker.formats.source import Source
from checker.formats.values import PlainValues

FIRST = datetime(1, 1, 3)  # noqa: DTZ001 - hypothesis wants one without a zone
UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('#inst "2026-01-01T00:00:00Z"', '#inst "2026-01-01T00:00:00.000-00:00"'),
        ('#inst "2026-01-01T00:00:00Z"', '#inst "2026-01-01T01:30:00+01:30"'),
        ('#inst "2025-12-31T23:00:00.5-01:00"', '#inst "2026-01-01T00:00:00.500Z"'),
        ('#inst "2026"', '#inst "2026-01-01"'),
        ('#inst "2026-03-01T12"', '#inst "2026-03-01T12:00Z"'),
        (f'#uuid "{UUID}"', f'#uuid "{UUID.upper()}"'),
        ('#uuid "1-2-3-4-5"', '#uuid "00000001-0002-0003-0004-000000000005"'),
        ('#uuid "+1-2-3-4-0000000000005"', '#uuid "00000001-0002-0003-0004-000000000005"'),
        ('#uuid "923456789-a1-b1-c1234-1"', '#uuid "23456789-00a1-00b1-1234-000000000001"'),
    ],
)
def test_two_spellings_are_one_value(one: str, other: str) -> None:
    """In comparisons, as keys, in a set, and as the value of an operation; a UUID as Java's `UUID.fromString` reads it."""
    first, second = loads(one), loads(other)
    assert first == second
    assert hash(first) == hash(second)
    assert PlainValues().value(first) == PlainValues().value(second)
    assert PlainValues().text(first) == PlainValues().text(second)
    assert loads(f"{{{one} 1}}")[second] == 1
    with pytest.raises(EdnError, match="duplicate"):
        loads(f"#{{{one} {other}}}")
    assert loads(dumps(second)) == first
    assert dumps(second) == other  # nothing is written in another spelling


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('#inst "2026-01-01T00:00:00Z"', '#inst "2026-01-01T00:00:00.001Z"'),
        ('#inst "2026-04-31"', '#inst "2026-05-01"'),
        ('#inst "2026-01-01T00:00:60Z"', '#inst "2026-01-01T00:01:00Z"'),
        ('#inst "0000-01-01"', '#inst "0000"'),
        ('#inst "2026"', '#other "2026-01-01"'),
        ('#other "2026"', '#other "2026-01-01"'),
        ('#inst "2026"', '"2026"'),
        (f'#uuid "{UUID}"', f'#uuid "{UUID[:-1]}7"'),
        ('#uuid "A"', '#uuid "a"'),
        ('#uuid "1-2-3-4"', '#uuid "00000001-0002-0003-0004-000000000000"'),
        ('#uuid "1-2-3-4-"', '#uuid "00000001-0002-0003-0004-000000000000"'),
        ('#uuid "ffffffffffffffff-2-3-4-5"', '#uuid "ffffffff-0002-0003-0004-000000000005"'),
        (f'#uuid "{UUID.replace("-", "-0", 1)}"', f'#uuid "{UUID}"'),
    ],
)
def test_other_values_stay_apart(one: str, other: str) -> None:
    """Another moment, a text that is no moment, and another tag."""
    assert loads(one) != loads(other)
    assert PlainValues().value(loads(one)) != PlainValues().value(loads(other))


@given(
    moment=st.datetimes(min_value=FIRST, max_value=FIRST.replace(year=9999, month=12)),
    minutes=st.integers(-23 * 60 - 59, 23 * 60 + 59),
    digits=st.integers(6, 9),
)
def test_any_offset_is_the_same_moment(moment: datetime, minutes: int, digits: int) -> None:
    """The usual spelling is that of the moment in UTC, as Python computes it, and has no other usual spelling."""
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    text = there.strftime(f"%Y-%m-%dT%H:%M:%S.{there.microsecond:06d}{'0' * (digits - 6)}").rjust(26 + digits - 6, "0")
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    spelled = usual("inst", f"{text}{sign}{hours:02d}:{rest:02d}")
    assert datetime.fromisoformat(spelled) == moment.replace(tzinfo=UTC)
    assert usual("inst", spelled) == spelled


def test_a_register_has_the_moment_that_was_written() -> None:
    """A read in another spelling returned what was written; the initial value has spellings too."""
    text = (
        '{:process 0 :type :invoke :f :read :value nil}{:process 0 :type :ok :f :read :value #inst "2026"}\n'
        '{:process 0 :type :invoke :f :write :value #inst "2026-02-01T01:00:00+01:00"}'
        '{:process 0 :type :ok :f :write :value #inst "2026-02-01T00:00:00.000-00:00"}'
    )
    [history] = read_source(Source("h", io.BytesIO(text.encode())))
    register = make_model("register", '#inst "2026-01-01T00:00:00Z"', {})
    assert history.operations[0].result == register.initial
    assert history.operations[1].value == history.operations[1].result
