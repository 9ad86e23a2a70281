"""Measurements on nodes (packet counters, probes, listening sockets) and the conclusions from them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from harness.faults import PlannedFault, Proof
from harness.node import Node
from harness.targets import Named
from nemesis import grudges, packet_rules, pagecache
from nemesis.errors import FaultError
from nemesis.evidence import parse_listeners
from nemesis.faults.egress import Delay, Reorder
from nemesis.probes import Answer, Probe, parse_probes
from nemesis.real import shaping
from nemesis.real.egress import DelayOnNodes, ReorderOnNodes, Sample
from nemesis.real.partition import Evidence, in_the_end, judge

if TYPE_CHECKING:
    from nemesis.grudges import Grudge

NODES = ["n1", "n2", "n3"]
ALONE = grudges.split(NODES, ["n1"])
NOTHING: Grudge = {node: frozenset() for node in NODES}
PAIRS = [(a, b) for a in NODES for b in NODES if a != b]


def evidence(
    answers: dict[tuple[str, str], Answer] | None = None,
    *,
    grudge: Grudge = ALONE,
    counts: dict[tuple[str, str], int] | None = None,
    blurred: frozenset[str] = frozenset(),
    also_cut: Grudge = NOTHING,
) -> Evidence:
    """Returns the evidence of a perfect partition, with changes."""
    perfect = {(a, b): Answer.OPEN if b in grudges.talks(grudge, a) else Answer.SILENT for a, b in PAIRS}
    probes = {
        (a, b): Probe(source=a, target=b, answer=answer) for (a, b), answer in (perfect | (answers or {})).items()
    }
    seen = dict.fromkeys(PAIRS, 4) | (counts or {})
    return Evidence(
        probes=probes,
        dropped={(a, b): count for (a, b), count in seen.items() if a in grudge[b]},
        passed={(a, b): count for (a, b), count in seen.items() if a not in grudge[b]},
        counted=frozenset(NODES),
        blurred=blurred,
        also_cut=also_cut,
    )


def test_a_perfect_partition_is_effective() -> None:
    """All cut pairs are silent, all others answer, and all directions are counted."""
    proof = judge(ALONE, evidence(), {})
    assert proof.effective
    assert proof.reason == "All 4 cut pairs were silent (16 packets dropped), all 2 whole ones answered."


def test_a_one_way_cut_is_judged_by_its_counters() -> None:
    """TCP is silent both ways; the counters show the direction that works."""
    one_way = grudges.one_way(NODES, ["n1"])
    assert judge(one_way, evidence(grudge=one_way), {}).effective
    both_dead = evidence(grudge=one_way, counts={("n2", "n1"): 0})
    assert "counters counted no packet from n2 to n1" in judge(one_way, both_dead, {}).reason


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (evidence({("n2", "n1"): Answer.OPEN}), "Packets still passed from n2 to n1."),
        (evidence({("n2", "n1"): Answer.REFUSED}), "Packets still passed from n2 to n1."),
        (evidence({("n2", "n3"): Answer.SILENT}), "There was no answer from n2 to n3, which should not be cut."),
        (evidence(counts={("n1", "n3"): 0}), "The packet counters counted no packet from n1 to n3."),
        (evidence({("n1", "n2"): Answer.OPEN}, blurred=frozenset(NODES)), "Packets still passed from n1 to n2."),
    ],
)
def test_what_contradicts_the_grudge_is_named(seen: Evidence, reason: str) -> None:
    """A leak, a silent pair that is not cut, and a rule without a count each make the fault ineffective."""
    proof = judge(ALONE, seen, {})
    assert not proof.effective
    assert proof.reason == reason


@pytest.mark.parametrize(
    "seen",
    [
        evidence({("n2", "n3"): Answer.SILENT, ("n3", "n2"): Answer.SILENT}, blurred=frozenset({"n3"})),
        evidence({("n2", "n3"): Answer.SILENT}, also_cut=grudges.split(NODES, ["n2"])),
        evidence(counts={("n3", "n1"): 0}, also_cut=grudges.split(NODES, ["n3"])),
    ],
)
def test_what_another_fault_explains_is_no_contradiction(seen: Evidence) -> None:
    """Silence because of another fault proves nothing about this one."""
    assert judge(ALONE, seen, {}).effective


def test_without_any_probe_nothing_is_claimed() -> None:
    """A partition without measurements is not effective, and the reason has the problem."""
    blind = Evidence(probes={}, dropped={}, passed={}, counted=frozenset(), blurred=frozenset(), also_cut=NOTHING)
    proof = judge(ALONE, blind, {"n1": "probing failed: gone"})
    assert not proof.effective
    assert proof.reason == "No cut pair could be probed; n1: probing failed: gone."


def test_counters_are_read_from_both_families() -> None:
    """Addresses are normalized, rules without a target count accepted packets, and other lines are skipped."""
    text = """\
-N LABRYS-3
-A LABRYS-3 -s 10.0.0.1/32 -c 12 720 -j DROP
-A LABRYS-3 -s 10.0.0.2/32 -c 5 300
-A LABRYS-3 -s 10.0.0.3/32 -m statistic --mode random --probability 0.80000000019 -c 8 480 -j DROP
-A LABRYS-3 -s fd00::0:1/128 -c 1 80 -j DROP
-A LABRYS-3 -c 9 80 -j DROP
"""
    counters = packet_rules.parse_counters(text)
    assert [(c.source, c.drop, c.packets) for c in counters] == [
        ("10.0.0.1", True, 12),
        ("10.0.0.2", False, 5),
        ("10.0.0.3", True, 8),
        ("fd00::1", True, 1),
    ]


def test_rules_go_to_the_tables_of_their_family_and_are_hooked_in_last() -> None:
    """IPv4 and IPv6 nodes use their own program; a chain takes effect only when it is complete."""
    four, six = Node(name="n1", address="10.0.0.1"), Node(name="n2", address="fd00::2")
    script = packet_rules.insert(5, [packet_rules.Rule(sources=[four, six])]).splitlines()
    assert "iptables -w 5 -A LABRYS-5 -s 10.0.0.1 -j DROP" in script
    assert "ip6tables -w 5 -A LABRYS-5 -s fd00::2 -j DROP" in script
    for program in ("iptables", "ip6tables"):
        mine = [line for line in script if line.startswith(f"{program} ")]
        assert mine[-1] == f"{program} -w 5 -I LABRYS 1 -j LABRYS-5"


def test_a_name_is_no_address() -> None:
    """A host name is an error with a fix, since each node could resolve it differently."""
    with pytest.raises(FaultError, match=r"'db1\.example' is no IP address; put the address into the inventory"):
        packet_rules.tool(Node(name="n1", address="db1.example"))


def test_probes_are_told_apart() -> None:
    """Open and refused both mean that packets passed in both directions."""
    text = """\
n3 124
n2 0
n4 1 bash: connect: Connection refused bash: line 1: /dev/tcp/10.0.0.4/7000: Connection refused
n5 1 bash: connect: No route to host
n6 1 bash: connect: Connection timed out
"""
    probes = {probe.target: probe for probe in parse_probes("n1", text)}
    assert [probes[f"n{i}"].answer for i in range(2, 7)] == ["open", "silent", "refused", "error", "silent"]
    assert [probe.target for probe in probes.values() if probe.reached] == ["n2", "n4"]
    assert "No route" in probes["n5"].text


def test_a_look_tells_ports_and_the_processes_behind_them() -> None:
    """Ports are hexadecimal, states are letters; a port without a visible process still counts as a port."""
    listeners = parse_listeners("port 1B58 1234\nport 1F90 1235\nheld 1234 77 T\nheld 1234 78 S\n")
    assert listeners.ports == {7000, 8080}
    assert listeners.states == {77: "T", 78: "S"}


DISCIPLINES = """qdisc noqueue 0: dev lo root refcnt 2
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 7)
 backlog 0b 0p requeues 7
qdisc netem 1ab: dev eth1 root refcnt 2 limit 1000 delay 20ms reorder 25% 50% gap 1
 Sent 2320 bytes 40 pkt (dropped 0, overlimits 0 requeues 2)
 backlog 0b 0p requeues 2
"""


@pytest.mark.parametrize(("text", "count"), [(DISCIPLINES, "2"), (DISCIPLINES.replace("1ab:", "8001:"), "")])
def test_packets_ahead_are_those_of_our_discipline(text: str, count: str) -> None:
    """The script reads the statistics of the discipline with our handle, and no other."""
    script = f"tc() {{ printf '%s' '{text}'; }}\n{shaping._AHEAD}"
    assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip() == count


def sample(connect_ms: list[float], ahead: int) -> Sample:
    """Returns a sample of a kind that reorders."""
    return Sample(connect_ms=tuple(connect_ms), sent=200, arrived=200, damaged=0, ahead=ahead)


@pytest.mark.parametrize(
    ("during", "effective"),
    [
        (sample([21.0] * 16, 12), True),  # a sixteenth of the connections may overtake none
        (sample([1.0] * 13 + [21.0] * 3, 12), True),
        (sample([1.0] * 13 + [21.0] * 3, 0), False),  # a slow machine makes connections late without a fault
        (sample([1.0] * 16, 12), False),
        (sample([], 12), False),
    ],
)
def test_a_reorder_needs_packets_ahead_and_late_connections(during: Sample, effective: bool) -> None:
    """Noise in the times of connections is no proof."""
    options: dict[str, Any] = {"percent": 25.0, "delay_ms": 20.0}
    planned = PlannedFault(id=0, kind="packet-reorder", target=Named(("n1",)), start_s=0, end_s=9, options=options)
    field: Any = None
    actor = ReorderOnNodes(Reorder(planned=planned, targets=("n1",), field=field))
    assert actor.seen(sample([1.0] * 16, 0), during)[0] is effective


@pytest.mark.parametrize(
    ("jitter_ms", "during_ms", "effective"),
    [
        (0.0, [21.0] * 16, True),
        (0.0, [1.0] * 9 + [21.0] * 7, False),
        (40.0, [1.0] * 9 + [45.0] * 7, True),  # of a normal distribution of 20 ms with 40 ms, 69 % are late
        (40.0, [1.0] * 13 + [1021.0] * 3, False),  # connections that were made again
        (0.0, [], False),
    ],
)
def test_a_delay_needs_half_of_the_late_connections(
    jitter_ms: float, during_ms: list[float], *, effective: bool
) -> None:
    """The median of connections is no proof: with a large jitter, it is small by chance."""
    options: dict[str, Any] = {"delay_ms": 20.0, "jitter_ms": jitter_ms}
    planned = PlannedFault(id=0, kind="packet-delay", target=Named(("n1",)), start_s=0, end_s=9, options=options)
    field: Any = None
    actor = DelayOnNodes(Delay(planned=planned, targets=("n1",), field=field))
    assert actor.seen(sample([1.0] * 16, 0), sample(during_ms, 0))[0] is effective


def test_a_cache_is_cold_when_most_of_the_data_left_it() -> None:
    """What was never in memory cannot leave it, and what stays there is not read from disk."""
    cold, kept, empty = pagecache.parse("100 3\n50 1\n0 0\n2 3\n40 1\n0 0\n", 3)
    assert cold == pagecache.Cached(files=3, before_kb=400, after_kb=8)
    assert [cache.is_cold for cache in (cold, kept, empty)] == [True, False, False]


@pytest.mark.parametrize(
    ("total", "lasted_s", "silent"), [(70, 9.0, False), (40, 9.0, True), (40, 2.0, False), (0, 9.0, True)]
)
def test_a_cut_that_the_system_never_meets_says_so(total: int, lasted_s: float, *, silent: bool) -> None:
    """The probes had 40 packets dropped. A system that talks by other addresses, or not at all, had none."""
    for effective in (True, False):
        proof = Proof(effective=effective, reason="All 4 cut pairs were silent.", measured={"probes": {}})
        final = in_the_end(proof, {("n1", "n2"): total}, dropped_by_probes=40, lasted_s=lasted_s)
        assert final.effective is effective
        assert final.measured["dropped_after_probes"] == total - 40
        assert ("the system sent nothing across the cut in 9 s" in final.reason) is silent
