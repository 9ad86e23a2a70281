"""The operations of the register workload depend only on the seed and the options."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.option_values import build
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.register.workload import SMALL_DOMAIN, RegisterOptions, RegisterWorkload, Values, parse_mix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.op import Invocation

UNIQUE, SMALL = RegisterOptions(), RegisterOptions(values=Values.SMALL)


def draws(options: RegisterOptions, number: int, count: int, *, streams: int = 5, seed: int = 1) -> list[Invocation]:
    """Returns the first operations of a stream, as `labrys plan` shows them."""
    return drawn(RegisterWorkload(options), number, count, streams=streams, seed=seed, preview=True)


@pytest.mark.parametrize("options", [UNIQUE, SMALL])
def test_the_nth_operation_depends_on_seed_stream_and_n_alone(options: RegisterOptions) -> None:
    """Together, in turns or alone, each stream gives the same operations."""
    turns = in_turns(RegisterWorkload(options), [(step * step + step // 7) % 3 for step in range(600)], streams=5)
    for number, asked in turns.items():
        assert len(asked) > 50
        assert asked == drawn(RegisterWorkload(options), number, len(asked), streams=5)


def test_another_seed_gives_other_operations() -> None:
    """Another stream also gives other operations."""
    assert draws(UNIQUE, 0, 50, seed=1) != draws(UNIQUE, 0, 50, seed=2)
    assert [draw.f for draw in draws(UNIQUE, 0, 50)] != [draw.f for draw in draws(UNIQUE, 1, 50)]


@settings(deadline=None)
@given(streams=st.integers(1, 12), count=st.integers(1, 60), seed=st.integers(0, 2**63 - 1))
def test_unique_values_are_unique(streams: int, count: int, seed: int) -> None:
    """No value is written twice, on any key, by any stream, and none is 0 or null."""
    written = [
        draw.value[1] if draw.f == "cas" else draw.value
        for number in range(streams)
        for draw in draws(UNIQUE, number, count, streams=streams, seed=seed)
        if draw.f != "read"
    ]
    assert len(set(written)) == len(written)
    assert all(value is not None and value > 0 for value in written)


def test_small_values_are_all_of_the_domain() -> None:
    """Written and expected values are distributed evenly."""
    some = [draw for draw in draws(SMALL, 0, 8000) if draw.f == "cas"]
    for counts in (Counter(draw.value[1] for draw in some), Counter(draw.value[0] for draw in some)):
        assert set(counts) == set(range(SMALL_DOMAIN))
        assert max(counts.values()) < 1.25 * min(counts.values())


def test_the_mix_is_that_of_the_options() -> None:
    """Over 8000 operations, the shares agree with the mix."""
    options = RegisterOptions(mix="5:2:1")
    counts = Counter(draw.f for draw in draws(options, 0, 8000))
    assert counts["read"] / 8000 == pytest.approx(5 / 8, abs=0.02)
    assert counts["write"] / 8000 == pytest.approx(2 / 8, abs=0.02)


def test_hot_keys_have_their_share_all_the_time() -> None:
    """Hot keys are used evenly, from the beginning to the end."""
    options = RegisterOptions(hot_keys=3, hot_share=0.3)
    keys = [str(draw.key) for draw in draws(options, 0, 9000)]
    for part in (keys[:3000], keys[6000:]):
        counts = Counter(key for key in part if key.startswith("h"))
        assert set(counts) == {"h0", "h1", "h2"}
        assert sum(counts.values()) / 3000 == pytest.approx(0.3, abs=0.03)
        assert max(counts.values()) < 1.3 * min(counts.values())


@pytest.mark.parametrize(
    ("options", "prefix"),
    [(RegisterOptions(hot_keys=0), "k"), (RegisterOptions(hot_share=0), "k"), (RegisterOptions(hot_share=1), "h")],
)
def test_there_may_be_only_one_sort_of_keys(options: RegisterOptions, prefix: str) -> None:
    """With the extreme shares, there are no hot keys, or only hot keys."""
    assert {str(draw.key)[0] for draw in draws(options, 0, 500)} == {prefix}


@settings(deadline=None)
@given(streams=st.integers(1, 60), ops_per_key=st.integers(1, 150))
def test_other_keys_live_for_a_limited_number_of_operations(streams: int, ops_per_key: int) -> None:
    """Keys have at most the number of operations in the options, come in order, and are not used again."""
    options = RegisterOptions(hot_keys=0, ops_per_key=ops_per_key)
    totals: Counter[str] = Counter()
    for number in range(streams):
        keys = [str(draw.key) for draw in draws(options, number, 100, streams=streams)]
        totals.update(keys)
        visits = [int(key[1:]) for key, _ in itertools.groupby(keys)]
        assert visits == sorted(set(visits))
    assert max(totals.values()) <= ops_per_key


def test_a_preview_is_the_same_byte_for_byte() -> None:
    """`labrys plan` prints the operations; values that only the run knows have a name."""
    workload = RegisterWorkload()
    first, second = (json.dumps(described(workload, seed=3, streams=4, count=30)) for _ in range(2))
    assert first == second
    preview = json.loads(first)
    assert [stream["stream"] for stream in preview] == [0, 1, 2, 3]
    operations = [operation for stream in preview for operation in stream["operations"]]
    assert len(operations) == 120
    assert all(op["value"][0] == "last-seen" for op in operations if op["f"] == "cas")
    assert all(op["value"] is None for op in operations if op["f"] == "read")


def test_a_preview_is_what_will_be_asked() -> None:
    """The description has the stream's operations in the same order."""
    preview = described(RegisterWorkload(SMALL), seed=3, streams=4, count=30)
    for stream in preview:
        asked = drawn(RegisterWorkload(SMALL), stream["stream"], 30, streams=4, seed=3)
        expected: Sequence[object] = [{"f": draw.f, "key": draw.key, "value": draw.value} for draw in asked]
        assert stream["operations"] == expected


@pytest.mark.parametrize("text", ["", "2:1", "1:2:3:4", "a:b:c", "-1:1:1", "1:nan:1", "1e9:1:1"])
def test_a_mix_that_is_none_is_refused(text: str) -> None:
    """The error has the expected form."""
    with pytest.raises(InputError, match=r"e\.g\. 2:1:1"):
        parse_mix(text)


@pytest.mark.parametrize(
    "options",
    [
        {"mix": "0:1:1"},
        {"mix": "2:0:0"},
        {"mix": "2:0:1"},
        {"mix": "-1:1:1"},
        {"mix": "2:1:nan"},
        {"hot_share": 1.5},
        {"hot_keys": -1},
        {"ops_per_key": 0},
    ],
)
def test_options_that_would_test_nothing_are_refused(options: dict[str, float | str]) -> None:
    """A mix without reads, without changes, or with another form is an error."""
    with pytest.raises(InputError):
        RegisterOptions(**options)  # type: ignore[arg-type]


def test_options_come_from_the_command_line() -> None:
    """The options have the names of their parameters."""
    values = {"values": "small", "mix": "3:2:1", "hot_keys": 1, "hot_share": 0.25, "ops_per_key": 60, "other": 1}
    options = build(RegisterOptions, values)
    assert options == RegisterOptions(values=Values.SMALL, mix="3:2:1", hot_keys=1, hot_share=0.25, ops_per_key=60)
    assert options.values is Values.SMALL
