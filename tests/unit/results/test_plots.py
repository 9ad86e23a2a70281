"""Plots are the same bytes for the same data, small for any size of data, and usable in light and dark themes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from results.measure.series import Line, Points, Shade
from results.page.plots import inlined, latency_points_svg, latency_quantiles, latency_quantiles_svg, rate_svg
from results.page.report import plots_of

if TYPE_CHECKING:
    from results.record.record import RunRecord


@pytest.fixture(scope="module")
def drawn(stale_record: RunRecord) -> dict[str, tuple[str, str]]:
    """The plots of a run."""
    return plots_of(stale_record)


def test_all_plots_are_drawn(drawn: dict[str, tuple[str, str]]) -> None:
    """Points, quantiles and rate, each of them well-formed XML with a title."""
    assert list(drawn) == ["latency-points", "latency-quantiles", "rate"]
    for title, svg in drawn.values():
        assert title
        ET.fromstring(svg)  # noqa: S314 - our own drawing


def test_equal_data_gives_equal_bytes(drawn: dict[str, tuple[str, str]], stale_record: RunRecord) -> None:
    """No date, no random ids, no version of a library."""
    assert plots_of(stale_record) == drawn
    for _, svg in drawn.values():
        assert "matplotlib.org" not in svg.lower()
        assert "<dc:date>" not in svg


def test_faults_are_named_in_every_plot(drawn: dict[str, tuple[str, str]]) -> None:
    """The labels of the shading are in the plot."""
    for _, svg in drawn.values():
        assert "partition-random-halves" in svg
        assert "packet-loss" in svg


def test_an_inlined_plot_takes_the_colours_of_its_page(drawn: dict[str, tuple[str, str]]) -> None:
    """Every colour is a variable, every id has the plot's own prefix and is defined, and no width is fixed."""
    for name, (_, svg) in drawn.items():
        element = inlined(svg, prefix=name, title="a title")
        assert not re.search(r"#[0-9a-f]{6}\b", element)
        assert 'role="img" aria-label="a title"' in element
        defined = set(re.findall(r'\bid="([^"]+)"', element))
        assert all(identity.startswith(f"{name}-") for identity in defined)
        assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', element)) <= defined
        assert not re.search(r"<svg [^>]*width=", element)


def test_a_run_without_operations_has_no_plots(stale_record: RunRecord) -> None:
    """No operations give no plot, and the lowest layer accepts that."""
    assert latency_points_svg([], [])
    assert latency_quantiles_svg([], [Shade(kind="kill", start_s=1, end_s=2)])
    assert rate_svg([], [])


def test_the_size_of_a_plot_is_bounded() -> None:
    """Two hundred thousand operations make a file of less than 2 MB."""
    draw = np.random.default_rng(1)
    many = Points(
        f="read", outcome="ok", time_s=draw.uniform(0, 600, 200_000), latency_ms=draw.lognormal(1, 1, 200_000)
    )
    assert len(latency_points_svg([many], [])) < 2_000_000


def test_a_dot_is_drawn_for_every_lonely_operation() -> None:
    """Points in different pixels are all drawn."""
    times = np.arange(0.0, 50.0)
    svg = latency_points_svg([Points(f="read", outcome="info", time_s=times, latency_ms=np.full(50, 3.0))], [])
    assert svg.count("h0") == 50


@pytest.mark.parametrize(("low_ms", "high_ms"), [(8000.0, 16_000.0), (1.0, 3.0), (2.0, 90.0), (0.1, 50_000.0)])
def test_a_log_scale_tells_its_range(low_ms: float, high_ms: float) -> None:
    """At least two ticks are visible, even on a small part of a decade."""
    line = Line(f="read", name="p50", time_s=np.array([0.5, 1.5, 2.5]), value=np.array([low_ms, high_ms, low_ms]))
    figure = latency_quantiles([line], [])
    low, high = figure.axes[-1].get_ylim()
    assert sum(low <= tick <= high for tick in figure.axes[-1].get_yticks()) >= 2
