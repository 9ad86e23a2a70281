"""Shaped packets on nodes whose kernel lacks the queueing disciplines: the switch does the same, and the receivers see it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.capabilities import NETEM, TBF
from tests.integration.nemesis.bench import planned

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


@pytest.fixture
def switched(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The nodes, on any machine as on one without queueing disciplines; afterwards the bridge joins them again."""
    capabilities = {
        name: replace(can, available=can.available - {NETEM, TBF}, missing={NETEM: "hidden", TBF: "hidden"})
        for name, can in bench.cluster.capabilities().items()
    }
    monkeypatch.setattr(bench.cluster, "capabilities", lambda: capabilities)
    yield bench
    bench.cluster.switch.stop()


@pytest.mark.parametrize(
    ("kind", "options", "counter"),
    [
        ("packet-delay", {"delay_ms": 60, "jitter_ms": 10}, "delayed"),
        ("packet-duplicate", {"percent": 50}, "duplicated"),
        ("packet-reorder", {"percent": 25, "delay_ms": 30}, "ahead"),
        ("packet-corrupt", {"percent": 10}, "damaged"),
        ("packet-rate", {"kbit": 1000}, "limited"),
    ],
)
def test_the_receivers_and_the_switch_see_each_kind(
    switched: Bench, kind: str, options: dict[str, Any], counter: str
) -> None:
    """The counters of the receiving kernels show the effect, and those of the switch agree."""
    begun, proof, _ = switched.through(planned(kind, ["n3"], **options))
    assert begun.details is not None
    assert begun.details["discipline"] == "rules of the switch"
    assert proof.effective, proof.reason
    assert proof.measured["n3"]["switch"][counter] > 0
