"""Lost and shaped packets, and refusals if the kernel lacks support."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.capabilities import SWITCH
from nemesis.errors import FaultError
from nemesis.lacking import missing_capabilities
from tests.integration.nemesis.bench import planned

if TYPE_CHECKING:
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("probability", [0.3, 0.8])
def test_packet_loss_is_measured_from_outside(bench: Bench, probability: float) -> None:
    """About the requested share of datagrams to the targets is lost; afterwards none."""
    _, proof, ended = bench.through(planned("packet-loss", ["n2", "n5"], probability=probability))
    assert proof.effective, proof.reason
    assert set(proof.measured["delivery"]) == {"n2", "n5"}
    for delivery in proof.measured["delivery"].values():
        assert delivery["sent"] == 600
        assert abs(delivery["lost"] - probability) < 0.12
    assert ended is not None
    assert 0.2 * 1200 < ended.measured["dropped_total"] < ended.measured["seen_total"]


def test_loss_that_is_not_what_was_asked_for_is_not_claimed(bench: Bench) -> None:
    """The arrivals reveal a statistic match that drops too few packets."""
    lie = "#!/bin/sh\nexec /usr/sbin/iptables $(echo \"$*\" | sed 's/--probability [0-9.]*/--probability 0.1/')\n"
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/iptables", lie, mode=0o755)
    try:
        _, proof, _ = bench.through(planned("packet-loss", ["n1"], probability=0.8))
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm /usr/local/sbin/iptables")
    assert not proof.effective
    assert "expected 80%" in proof.reason


def test_a_narrow_link_drops_a_burst(bench: Bench) -> None:
    """With a rate of one megabit, only a part of a burst of large datagrams arrives."""
    _, proof, _ = bench.through(planned("packet-rate", ["n4"], kbit=1000))
    assert proof.effective, proof.reason
    assert "qdisc noqueue" in bench.shell("n4", "tc qdisc show dev eth0")


def test_a_delay_is_refused_without_netem_and_without_a_switch(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """On any kernel, a fault is either refused with a reason or effective."""
    able = {
        name: replace(can, available=can.available - {SWITCH}, missing={**can.missing, SWITCH: "no tun"})
        for name, can in bench.cluster.capabilities().items()
    }
    monkeypatch.setattr(bench.cluster, "capabilities", lambda: able)
    sentences = missing_capabilities(
        [planned("packet-delay", "all")], bench.cluster.capabilities(), bench.cluster.nodes
    )
    fault = planned("packet-delay", ["n3"], delay_ms=60, jitter_ms=10)
    if sentences:
        assert all("netem, which packet-delay needs" in sentence for sentence in sentences)

        async def work() -> None:
            with pytest.raises(FaultError, match="lacks netem"):
                await bench.conductor().begin(fault)

        bench.run(work())
    else:
        _, proof, _ = bench.through(fault)
        assert proof.effective, proof.reason
