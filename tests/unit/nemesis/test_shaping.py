"""Rules of the switch: one for each link from a node, with a seed of its own, and counters from its beginning on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

from clusters.local.switching import _words
from harness.faults import PlannedFault
from harness.node import Node
from harness.switch import Bandwidth, Rule
from harness.targets import Named
from harness.world import Disturbance
from nemesis.builtin import KINDS
from nemesis.real.egress import CorruptOnNodes, DelayOnNodes, DuplicateOnNodes, RateOnNodes, ReorderOnNodes
from nemesis.real.shaping import AtSwitch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harness.world import Pair
    from nemesis.real.egress import EgressOnNodes

N1 = Node(name="n1", address="10.0.0.1")
LINKS = {("n1", "control"), ("n1", "n2")}


class Noted:
    """A switch that keeps its rules, and has counted what a test says."""

    is_on = True

    def __init__(self) -> None:
        self.rules: dict[Pair, Rule] = {}
        self.counted: dict[Pair, Counter[str]] = {link: Counter() for link in [*LINKS, ("n2", "n1")]}

    def ports(self) -> tuple[str, ...]:
        """The names."""
        return ("control", "n1", "n2")

    def set(self, rules: dict[Pair, Rule]) -> None:
        """Keeps them."""
        self.rules |= rules

    def clear(self, links: Iterable[Pair]) -> None:
        """Forgets them."""
        for link in links:
            self.rules.pop(link, None)

    def counts(self) -> dict[Pair, Counter[str]]:
        """What was counted."""
        return self.counted


def shaper(switch: Noted, seed: int, name: str = "3-packet-delay") -> AtSwitch:
    """The rules of a fault in a run with this seed."""
    field: Any = type("Field", (), {"seed": seed})()
    return AtSwitch(field, name, cast("Any", switch), lambda drawn: Rule(seed=drawn))


def seeds(seed: int, name: str = "3-packet-delay") -> dict[Pair, int]:
    """The seeds of the rules of a fault."""
    switch = Noted()
    shaper(switch, seed, name).set(N1)
    return {link: rule.seed for link, rule in switch.rules.items()}


def test_each_link_from_the_node_has_a_seed_that_the_run_decides() -> None:
    """The same run gives the same seeds; other links, faults and runs give others."""
    assert set(seeds(1)) == LINKS
    assert seeds(1) == seeds(1)
    assert len({*seeds(1).values(), *seeds(2).values(), *seeds(1, "4-packet-delay").values()}) == 6


def test_only_the_links_to_named_nodes_have_rules() -> None:
    """The links to other nodes and to this machine have none."""
    switch = Noted()
    field: Any = type("Field", (), {"seed": 1})()
    mine = AtSwitch(field, "3-packet-delay", cast("Any", switch), lambda drawn: Rule(seed=drawn), ["n2"])
    mine.set(N1)
    assert set(switch.rules) == {("n1", "n2")}
    mine.remove(N1)
    assert switch.rules == {}


def test_counters_are_those_of_the_node_since_the_rules_began() -> None:
    """Earlier counts and other links do not count, and the longest wait is no sum."""
    switch = Noted()
    switch.counted["n1", "n2"].update(delayed=5, held_max_us=7)
    mine = shaper(switch, 1)
    mine.set(N1)
    switch.counted["n1", "n2"].update(delayed=2, ahead=1, held_max_us=9)
    switch.counted["n1", "control"].update(delayed=1)
    switch.counted["n2", "n1"].update(delayed=100)
    assert mine.counted(N1) == {"delayed": 3, "ahead": 1}
    assert mine.ahead(N1) == 1
    mine.remove(N1)
    assert switch.rules == {}


def rule_of(kind: type[EgressOnNodes], **options: float) -> Rule:
    """The rule of a fault of this kind."""
    planned = PlannedFault(id=0, kind="x", target=Named(("n1",)), start_s=0, end_s=9, options=options)
    fault = next(kind_of_fault.fault for kind_of_fault in KINDS if kind_of_fault.on_nodes is kind)
    return kind(fault(planned=planned, targets=("n1",), field=cast("Any", None))).rule(7)


def test_each_kind_asks_for_what_its_options_say() -> None:
    """The rule of the switch has the numbers of the options, in its units."""
    assert rule_of(DelayOnNodes, delay_ms=20, jitter_ms=5.5) == Rule(
        seed=7, disturbance=Disturbance(delay_ns=20_000_000, jitter_ns=5_500_000)
    )
    assert rule_of(DuplicateOnNodes, percent=30) == Rule(seed=7, disturbance=Disturbance(duplicate=0.3))
    assert rule_of(CorruptOnNodes, percent=5) == Rule(seed=7, disturbance=Disturbance(damage=0.05))
    assert rule_of(ReorderOnNodes, percent=25, delay_ms=20) == Rule(
        seed=7, disturbance=Disturbance(delay_ns=20_000_000, hurry=0.25)
    )
    limit = Bandwidth(bits_per_s=64_000, burst_bytes=16_384, patience_ns=50_000_000)
    assert rule_of(RateOnNodes, kbit=64, latency_ms=50) == Rule(seed=7, bandwidth=limit)


def test_a_rule_in_the_words_of_the_protocol() -> None:
    """Shares are in millionths, times in microseconds; what is not asked for is not said."""
    disturbance = Disturbance(lose=0.25, duplicate=1e-6, damage=1.0, delay_ns=1_500, jitter_ns=2_000, hurry=0.5)
    limit = Bandwidth(bits_per_s=8, burst_bytes=9, patience_ns=10_000)
    assert _words(Rule(seed=3, cut=True)) == "seed=3 cut=1"
    assert _words(Rule(seed=3, disturbance=disturbance, bandwidth=limit)) == (
        "seed=3 cut=0 lose=250000 duplicate=1 damage=1000000 hurry=500000 delay_us=1 jitter_us=2 "
        "bits_per_s=8 burst_bytes=9 patience_us=10"
    )
