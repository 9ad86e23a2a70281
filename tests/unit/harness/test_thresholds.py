"""Thresholds: the grammar, the measures, and crossed thresholds."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.suites.thresholds import MEASURES, measured, read_threshold, refuse_unknown_functions
from results.measure.measures import measure

# fmt: off
RUN: dict[str, Any] = {
    "counts": {
        "operations": 100, "ok": 90, "fail": 6, "info": 3, "refused": 1,
        "by_f": {
            "read": {"ok": 60, "fail": 0, "info": 1, "refused": 1},
            "write": {"ok": 30, "fail": 6, "info": 2, "refused": 0},
        },
    },
    "availability": {
        "share": 0.9, "longest_gap_s": 2.5,
        "by_f": {"read": {"share": 1.0, "longest_gap_s": 0.25}, "write": {"share": 0.8, "longest_gap_s": 5.5}},
    },
    "latency": {"read": {"p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.0}, "write": {"p99_ms": 30.0}},
    "timings": {"workload": 30.0},
    "parts": {
        "protocol": {"details": {"between_nodes": 250}},
        "broadcast": {"details": {"figures": {"": {"stable-latencies": {"0.5": 40.0, "1": 90.0}}}}},
        "completed": {"details": None},
    },
    "faults": [
        {
            "availability": {
                "during": {"operations": 10, "answered": 4}, "after": {"sustained_ok_s": 1.5},
                "by_f": {"write": {"during": {"operations": 5, "answered": 1}, "after": {"sustained_ok_s": 7}}},
            }
        },
        {"availability": {"during": {"operations": 10, "answered": 8}, "after": {"sustained_ok_s": 0.5}}},
        {"availability": None},
    ],
}
# fmt: on


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("p99_ms < 200", None),
        ("p99_ms<20", "p99_ms < 20: it is 30"),
        ("read.p99_ms <= 3", None),
        ("read.p99_ms < 3", "read.p99_ms < 3: it is 3"),
        ("availability > 0.9", "availability > 0.9: it is 0.9"),
        ("availability >= 0.9", None),
        ("availability_during_faults == 0.6", None),
        ("recovery_s < 1", "recovery_s < 1: it is 1.5"),
        ("longest_gap_s < 2.5", "longest_gap_s < 2.5: it is 2.5"),
        ("ok_per_s >= 3", None),
        ("info != 3", "info != 3: it is 3"),
        ("refused == 1", None),
        ("messages_per_op < 2.5", "messages_per_op < 2.5: it is 2.5"),
        ("stable_p50_ms < 40", "stable_p50_ms < 40: it is 40"),
        ("stable_max_ms <= 90", None),
        ("cas.p99_ms < 9", "cas.p99_ms < 9: the run did not measure cas.p99_ms"),
    ],
)
def test_a_threshold_compares_a_measure_with_a_number(text: str, sentence: str | None) -> None:
    """Its sentence has the measured number."""
    (only,) = measured([read_threshold(text)], lambda name, function: measure(RUN, name, function))
    assert only.crossed == sentence


def test_a_function_that_the_workload_does_not_have_is_refused() -> None:
    """No run could keep such a threshold; the error has the functions that the workload has."""
    known = ("read", "write")
    refuse_unknown_functions([read_threshold("read.p99_ms < 3"), read_threshold("p99_ms < 3")], known, "register")
    with pytest.raises(InputError, match="'raed', and the workload register has the functions read, write"):
        refuse_unknown_functions([read_threshold("raed.p99_ms < 3")], known, "register")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("longest_gap_s < 3", None),
        ("write.longest_gap_s < 3", "write.longest_gap_s < 3: it is 5.5"),
        ("read.longest_gap_s < 3", None),
        ("write.availability > 0.8", "write.availability > 0.8: it is 0.8"),
        ("write.availability_during_faults == 0.2", None),
        ("write.recovery_s < 2", "write.recovery_s < 2: it is 7"),
        ("write.fail == 6", None),
        ("read.refused == 0", "read.refused == 0: it is 1"),
        ("read.operations == 62", None),
        ("write.ok_per_s == 1", None),
        ("cas.availability > 0", "cas.availability > 0: the run did not measure cas.availability"),
    ],
)
def test_every_measure_can_be_that_of_one_function(text: str, sentence: str | None) -> None:
    """Answered reads do not hide that no write was answered."""
    (only,) = measured([read_threshold(text)], lambda name, function: measure(RUN, name, function))
    assert only.crossed == sentence


def test_a_run_without_measurements_crosses_every_threshold() -> None:
    """`results.json` has each measure, and a document without it crosses the threshold."""
    for name in MEASURES:
        assert measure(RUN, name) is not None, name
        empties: tuple[dict[str, Any], ...] = (
            {},
            {"faults": [], "latency": {}, "counts": None, "availability": None, "timings": []},
        )
        for empty in empties:
            (only,) = measured([read_threshold(f"{name} >= 0")], partial(measure, empty))
            assert only.crossed, name


def test_a_system_that_never_recovered_has_no_time_of_recovery() -> None:
    """It recovered from some faults only."""
    never = {"faults": [*RUN["faults"][:2], {"availability": {"during": {}, "after": {"sustained_ok_s": None}}}]}
    assert measure(never, "recovery_s") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p99 < 200", "Did you mean 'p99_ms'"),
        ("p99_ms < x", "expected a threshold such as"),
        ("p99_ms", "expected a threshold such as"),
        ("p99_ms =< 3", "expected a threshold such as"),
        ("1 < p99_ms < 3", "expected a threshold such as"),
        ("__import__('os') < 3", "expected a threshold such as"),
        ("p99_ms < 1e999", "expected a threshold such as"),
        ("", "expected a threshold such as"),
    ],
)
def test_a_malformed_threshold_is_refused(text: str, message: str) -> None:
    """The error has the nearest measure, or an example."""
    with pytest.raises(InputError, match=message):
        read_threshold(text)


@given(text=st.text(max_size=60))
def test_any_text_is_a_threshold_or_an_input_error(text: str) -> None:
    """No text raises another error."""
    with contextlib.suppress(InputError):
        assert read_threshold(text).measure in MEASURES
