"""Bodies of messages with a size: what is sent is read, and a damaged body is no entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.kit.stored import entry_body
from clusters.systems.rocketmq.bodies import MOST, Sizes, entry_in, filled, parse_sizes
from clusters.systems.rocketmq.broker_options import RocketMQOptions
from clusters.systems.rocketmq.tests.unit.test_rocketmq import Group, ask
from harness.errors import InputError
from harness.op import ONLY_KEY, Ok

ENTRIES = st.builds(entry_body, st.just(ONLY_KEY) | st.text(max_size=5), st.integers() | st.text(max_size=20))


@given(ENTRIES, st.integers(0, 300), st.integers(0, 300))
def test_an_entry_comes_back_from_its_body(entry: bytes, least: int, more: int) -> None:
    """The body has a size in the range, unless the entry alone is longer or leaves no room."""
    body = filled(entry, Sizes(least=least, most=least + more))
    assert entry_in(body) == entry
    assert body == entry or least <= len(body) <= least + more
    assert filled(entry, Sizes(least=0, most=0)) == entry


@given(ENTRIES, st.data())
def test_a_damaged_body_is_no_entry(entry: bytes, data: st.DataObject) -> None:
    """A byte of the filler or of the entry changes, or bytes of another message follow: then the whole body comes back."""
    body = filled(entry, Sizes(least=500, most=500))  # longer than each of these entries
    offset = data.draw(st.integers(0, len(body) - 1).filter(lambda at: body[at] != ord("\n")))
    changed = body[:offset] + bytes([body[offset] ^ 1]) + body[offset + 1 :]
    assert entry_in(changed) == changed
    cut = body[: data.draw(st.integers(len(entry) + 2, len(body) - 1))]
    assert entry_in(cut) == cut
    joined = body + entry
    assert entry_in(joined) == joined


def test_sizes_differ_and_stay() -> None:
    """Different entries have different sizes, and one entry always has the same."""
    sizes = Sizes(least=100, most=65_536)
    lengths = [len(filled(entry_body(ONLY_KEY, value), sizes)) for value in range(200)]
    assert lengths == [len(filled(entry_body(ONLY_KEY, value), sizes)) for value in range(200)]
    assert len(set(lengths)) > 150
    assert min(lengths) < 5_000
    assert max(lengths) > 60_000


@pytest.mark.parametrize(("text", "least", "most"), [("0", 0, 0), ("300", 300, 300), ("100-65536", 100, 65_536)])
def test_a_size_is_a_number_or_a_range(text: str, least: int, most: int) -> None:
    """A number is the range with this number alone."""
    assert parse_sizes(text) == Sizes(least=least, most=most)


@pytest.mark.parametrize("text", ["", "-", "-5", "5-", "9-5", "1e3", "64K", "²", str(MOST + 1), "1-2-3", "9" * 5000])
def test_another_text_is_refused(text: str) -> None:
    """The error has the form and the option."""
    with pytest.raises(InputError, match="expected a number of bytes from 0 to 1000000, or a range such as 100-65536"):
        RocketMQOptions(body_bytes=text)


def test_a_client_reads_filled_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value comes out of its body. A body that lost its end is an element that nobody appended."""
    body = filled(entry_body("l0", 7), Sizes(least=90, most=90))
    [whole, cut] = ask(monkeypatch, Group(log=[body, body[:-1]]), ("read", 0), ("read", 1))
    assert whole == Ok(7)
    assert isinstance(cut, Ok)
    assert str(cut.value).startswith("not an entry of this test: ")
