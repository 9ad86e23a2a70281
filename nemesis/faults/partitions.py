"""The kinds of partitions, with their grudges.

A partition's kind, target and options determine its grudge. The target is the smaller side, the order along a ring, or the
leader.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from harness.targets import Named
from nemesis import grudges
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.fault import Drawn, draw_nodes
from nemesis.faults.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.op import Value
    from nemesis.fault import Drawing, Hit
    from nemesis.grudges import Grudge

ALONE, MINORITY, MAJORITY = SIDES = ("alone", "minority", "majority")


class Split(Partition):
    """A cut between the target and the rest."""

    EFFECT: ClassVar[str] = "{nodes} {were} cut off from the others"

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:  # noqa: ARG003
        """Returns the cut between the target and the rest."""
        return grudges.split(hit.nodes, hit.targets)


class RandomNode(Split):
    """`partition-random-node`."""

    SUMMARY: ClassVar[str] = "Cuts one node off from all others."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.ONE, tgt.LEADER, tgt.FOLLOWER, tgt.TRIGGER)


class RandomHalves(Split):
    """`partition-random-halves`."""

    SUMMARY: ClassVar[str] = "Splits the nodes into two random halves."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.RANDOM,)

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the smaller half."""
        if isinstance(drawing.target, Named):
            return Drawn(target=drawing.target, options=drawing.options)
        small, _ = grudges.halves(drawing.rng.sample(drawing.nodes, len(drawing.nodes)))
        return Drawn(target=Named(tuple(node for node in drawing.nodes if node in small)), options=drawing.options)


class Halves(Split):
    """`partition-halves`."""

    SUMMARY: ClassVar[str] = "Splits the nodes into their first and their second half."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.ALL,)

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Returns the first half of the nodes in their order."""
        given = drawing.target
        target = given if isinstance(given, Named) else Named(grudges.halves(drawing.nodes)[0])
        return Drawn(target=target, options=drawing.options)


class _Ordered(Partition):
    """A partition whose target is an order of all nodes."""

    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.RANDOM,)
    LEAST_NODES: ClassVar[int] = 3

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws an order of all nodes."""
        if isinstance(drawing.target, Named):
            return Drawn(target=drawing.target, options=drawing.options)
        order = drawing.rng.sample(drawing.nodes, len(drawing.nodes))
        return Drawn(target=Named(tuple(order)), options=drawing.options)

    @classmethod
    def check_target(cls, kind: str, target: tgt.Target, nodes: Sequence[str]) -> None:
        """Checks a target: the word `random`, or all nodes in an order."""
        super().check_target(kind, target, nodes)
        if isinstance(target, Named) and len(target.nodes) != len(nodes):
            raise PlanError(
                f"{kind} needs all {len(nodes)} nodes in an order as its target, and {len(target.nodes)} are named"
            )


class Ring(_Ordered):
    """`partition-majorities-ring`."""

    SUMMARY: ClassVar[str] = "Lets each node reach a majority, and no two nodes the same majority."

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:  # noqa: ARG003
        """Returns the ring along the target's order."""
        return grudges.majorities_ring(hit.targets)


class Bridge(_Ordered):
    """`bridge`."""

    SUMMARY: ClassVar[str] = "Splits the nodes into two halves that only one node can both reach."

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:  # noqa: ARG003
        """Returns the bridge: the target's first half, the bridging node, the rest."""
        return grudges.bridge(hit.targets)


class Leader(Partition):
    """`partition-leader`."""

    EFFECT: ClassVar[str] = "{nodes} {were} cut off from other nodes"
    SUMMARY: ClassVar[str] = "Cuts the leader off: alone, with a minority, or with a majority."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.LEADER,)
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "side": opt.choice(None, SIDES, "The side that the leader is on; drawn for each fault if not given.")
    }

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws the side, and the order of the nodes, which determines the other nodes on the leader's side."""
        order = drawing.rng.sample(drawing.nodes, len(drawing.nodes))
        side = drawing.rng.choice(SIDES)
        target = drawing.target if isinstance(drawing.target, Named) else tgt.LEADER
        return Drawn(target=target, options={"side": side, **drawing.options}, order=tuple(order))

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:
        """Returns the cut between the leader's side and the rest."""
        (leader, *_) = hit.targets
        others = [node for node in hit.order if node != leader]
        count = len(hit.nodes)
        size = {ALONE: 1, MINORITY: grudges.minority(count), MAJORITY: grudges.majority(count)}
        return grudges.split(hit.nodes, [leader, *others[: max(1, size[options.get("side", ALONE)]) - 1]])


class OneWay(Partition):
    """`partition-one-way`."""

    EFFECT: ClassVar[str] = "{nodes} could not send to other nodes"
    SUMMARY: ClassVar[str] = "Drops all packets from the target; the target still receives packets."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = tuple(target for target in tgt.EVERY if target != tgt.ALL)

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws nodes, never all of them."""
        return draw_nodes(replace(drawing, at_most=min(drawing.at_most, len(drawing.nodes) - 1)))

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:  # noqa: ARG003
        """Returns the grudge of all other nodes against the target."""
        return grudges.one_way(hit.nodes, hit.targets)


class Fixed(Partition):
    """`partition-fixed`."""

    SUMMARY: ClassVar[str] = "Splits the nodes as the options say: by sides, components, or a grudge."
    TARGETS: ClassVar[tuple[tgt.Target, ...]] = (tgt.ALL,)
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "components": opt.groups("Groups of nodes that reach only each other; a node in no group is alone."),
        "grudge": opt.mapping("Node to the nodes whose packets it drops; a node that is not in it drops none."),
    }

    @classmethod
    def grudge_of(cls, hit: Hit, options: Mapping[str, Value]) -> Grudge:
        """Returns the grudge from the options, or the cut between the target and the rest."""
        nodes, targets = hit.nodes, hit.targets
        components, grudge = options.get("components"), options.get("grudge")
        if components is not None and grudge is not None:
            raise PlanError("partition-fixed takes components or a grudge, not both")
        if components is not None:
            named = [tgt.check_names(component, nodes) for component in components]
            placed = {node for component in named for node in component}
            return _in_order(grudges.complete([*named, *((node,) for node in nodes if node not in placed)]), nodes)
        if grudge is not None:
            for names in ([*grudge], *grudge.values()):
                unknown = [name for name in names if name not in nodes]
                if unknown:
                    raise PlanError(f"the grudge names {unknown[0]!r}, and the nodes are {', '.join(nodes)}")
            return {node: frozenset(grudge.get(node, ())) - {node} for node in nodes}
        if len(targets) == len(nodes):
            raise PlanError(
                "partition-fixed lacks the nodes to cut off: name one side's nodes, or components, or a grudge"
            )
        return grudges.split(nodes, targets)


def _in_order(grudge: Grudge, nodes: Sequence[str]) -> Grudge:
    return {node: grudge[node] for node in nodes}
