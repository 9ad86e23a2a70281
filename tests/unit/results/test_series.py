"""Series are exact aggregates: measured quantiles, rates that add up, and thinning that changes no picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from results.measure.op_outcomes import Codes
from results.measure.series import (
    MAX_BUCKETS,
    Points,
    bucket_s,
    latency_points,
    latency_table,
    quantile_lines,
    rate_lines,
    shades,
    thinned,
)

if TYPE_CHECKING:
    from results.record.record import RunRecord

POINTS = st.lists(st.tuples(st.floats(0, 100), st.floats(0.001, 1e5)), min_size=1, max_size=200)


def points(pairs: list[tuple[float, float]], kind: str = "ok") -> Points:
    """Returns points of reads."""
    times, latencies = zip(*pairs, strict=True)
    return Points(f="read", outcome=kind, time_s=np.array(times), latency_ms=np.array(latencies))


@given(POINTS, st.sampled_from([0.5, 1.0, 7.0]))
def test_quantiles_are_nearest_ranks(pairs: list[tuple[float, float]], width_s: float) -> None:
    """Each bucket's value is a latency of that bucket, equal to the result of a sort. Empty buckets have none."""
    for line, q in zip(quantile_lines([points(pairs)], width_s), (0.5, 0.95, 0.99, 1.0), strict=True):
        for middle, value in zip(line.time_s, line.value, strict=True):
            bucket = round(middle / width_s - 0.5)
            inside = sorted(latency for time, latency in pairs if time // width_s == bucket)
            if inside:
                assert value == inside[max(0, math.ceil(q * len(inside)) - 1)]
            else:
                assert math.isnan(value)


@given(POINTS, POINTS)
def test_rates_add_up(ok: list[tuple[float, float]], failed: list[tuple[float, float]]) -> None:
    """The area under all lines is the number of operations, and all lines have the same buckets."""
    lines = rate_lines([points(ok), points(failed, "fail")], 2.0)
    assert sum(float(line.value.sum()) * 2.0 for line in lines) == pytest.approx(len(ok) + len(failed))
    assert len({len(line.value) for line in lines}) == 1


def test_only_ok_operations_have_quantiles() -> None:
    """The latency of a time-out is a setting, not a measurement."""
    assert quantile_lines([points([(1, 2)], "info")], 1.0) == []
    assert latency_table([points([(1, 2)], "fail")]) == {}
    assert rate_lines([], 1.0) == []


@given(st.floats(0.001, 1e7))
def test_buckets_are_few(duration_s: float) -> None:
    """The number of buckets is bounded for any length of the run."""
    assert duration_s / bucket_s(duration_s) <= MAX_BUCKETS * 1.001


def test_latency_counts_from_when_it_was_wanted(valid_record: RunRecord) -> None:
    """In an open loop, the wait before the request counts."""
    operation = next(op for op in valid_record.operations if op.scheduled_ns is not None and op.end_ns is not None)
    (group,) = latency_points([operation], Codes())
    assert operation.end_ns is not None
    assert operation.scheduled_ns is not None
    assert group.latency_ms[0] == pytest.approx((operation.end_ns - operation.scheduled_ns) / 1e6)


def test_thinning_keeps_one_point_a_cell() -> None:
    """A hundred thousand points become few. Every extreme and every isolated point stays."""
    draw = np.random.default_rng(1)
    times, latencies = draw.uniform(0, 60, 100_000), draw.lognormal(1, 0.3, 100_000)
    times[7], latencies[7] = 30.0, 5000.0
    thin = thinned(Points(f="read", outcome="ok", time_s=times, latency_ms=latencies), span_s=60.0)
    assert thin.time_s.size < 30_000
    assert 5000.0 in thin.latency_ms
    assert set(thin.latency_ms) <= set(latencies)


def test_shades_tell_whether_an_effect_was_seen(stale_record: RunRecord) -> None:
    """The packet loss without effect is marked."""
    assert [(shade.kind, shade.effective) for shade in shades(stale_record.faults)][-1] == ("packet-loss", False)
