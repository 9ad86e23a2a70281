"""Partitions on real nodes: cut, proof, and healing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.faults import PlannedFault
from harness.healing import CHAIN
from nemesis.conductor import Conductor
from tests.integration.nemesis.bench import ORDER, Echo, Versatile, planned

if TYPE_CHECKING:
    from harness.faults import Proof
    from tests.integration.nemesis.bench import Bench

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("fault", "cut"),
    [
        (planned("partition-random-halves", ["n2", "n4"]), 12),
        (planned("partition-random-node", ["n3"]), 8),
        (planned("partition-random-node", "leader", order=ORDER), 8),
        (planned("partition-halves", ["n1", "n2"]), 12),
        (planned("partition-majorities-ring", ORDER), 10),
        (planned("bridge", ORDER), 8),
        (planned("partition-leader", "leader", order=ORDER, side="minority"), 12),
        (planned("partition-leader", "leader", order=ORDER, side="majority"), 12),
        (planned("partition-one-way", ["n5"]), 8),
        (planned("partition-fixed", "all", components=[["n1", "n2"], ["n3", "n4"]]), 16),
        (planned("partition-fixed", "all", grudge={"n1": ["n2"]}), 2),
    ],
    ids=lambda value: f"{value.kind}-{value.target}" if isinstance(value, PlannedFault) else "",
)
def test_a_partition_cuts_what_it_says_and_nothing_else(bench: Bench, fault: PlannedFault, cut: int) -> None:
    """All pairs are probed: cut pairs are silent, the others answer, and the counters agree."""
    begun, proof, ended = bench.through(fault)
    assert proof.effective, proof.reason
    answers = list(proof.measured["probes"].values())
    assert len(answers) == 20
    assert answers.count("silent") == cut
    assert answers.count("open") == 20 - cut
    assert f"All {cut} cut pairs were silent" in proof.reason
    assert begun.details["topology"]["sentence"]
    assert ended is not None
    assert ended.measured["dropped_total"] >= cut // 2


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("exit 0", "packets still passed from n1 to n2"),
        (
            'case "$*" in *-S*) exec /usr/sbin/iptables "$@";; *DROP) exit 0;; esac; exec /usr/sbin/iptables "$@"',
            "still passed",
        ),
    ],
    ids=["does-nothing", "drops-nothing"],
)
def test_packet_tables_that_lie_are_found_out(bench: Bench, program: str, reason: str) -> None:
    """If the program reports success but drops nothing, the fault is not effective."""
    for node in bench.cluster.nodes:
        bench.cluster.remote(node).write("/usr/local/sbin/iptables", f"#!/bin/sh\n{program}\n", mode=0o755)
        assert bench.shell(node.name, "command -v iptables").strip() == "/usr/local/sbin/iptables"
    try:
        _, proof, _ = bench.through(planned("partition-halves", ["n1"]))
    finally:
        for node in bench.cluster.nodes:
            bench.shell(node.name, "rm /usr/local/sbin/iptables")
    assert not proof.effective
    assert reason.lower() in proof.reason.lower()


def test_nodes_with_ipv6_addresses_are_cut_by_ip6tables(bench: Bench) -> None:
    """The same proof works over IPv6; IPv4 between the nodes is not affected."""
    addresses = {node.name: f"fd00:5::{index}" for index, node in enumerate(bench.cluster.nodes, 1)}
    for name, address in addresses.items():
        bench.shell(name, f"sysctl -qw net.ipv6.conf.eth0.disable_ipv6=0; ip -6 addr add {address}/64 dev eth0 nodad")
    cluster = Versatile(bench.cluster, addresses)
    fault = planned("partition-random-node", ["n2"])

    async def work() -> tuple[Proof, str, str]:
        conductor = Conductor(cluster=cluster, system=Echo(cluster))
        await conductor.begin(fault)
        try:
            rules = bench.shell("n1", "ip6tables -S"), bench.shell("n1", "iptables -S")
            proof = await conductor.prove(fault)
        finally:
            await conductor.end(fault)
        return proof, *rules

    proof, six, four = bench.run(work())
    assert proof.effective, proof.reason
    assert f"-A {CHAIN}-3 -s fd00:5::2/128 -j DROP" in six
    assert f"{CHAIN}-3" not in four
    bench.assert_clean()
