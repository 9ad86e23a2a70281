"""The base class of faults: drawing into a plan, checks before a run, start, proof, and healing.

Class methods work only on names, and determine the plan. An instance works on one cluster, from just before its fault begins
until it is healed. Every fault keeps three rules. It leaves a note on the node before the effect (see `undo`). `prove` measures
the effect by other means than those that caused it. `end` verifies that the effect is healed.
"""

from __future__ import annotations

import abc
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import ROOT
from harness.errors import LabrysError
from harness.faults import ROLE
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import FaultError, PlanError
from nemesis.grudges import minority, union
from nemesis.probes import FALLBACK_PORT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from random import Random
    from typing import TypeVar

    from harness.faults import Begun, PlannedFault, Proof
    from harness.node import Node
    from harness.op import Value
    from nemesis.field import Field, Outcomes
    from nemesis.grudges import Grudge
    from nemesis.simulated.effect import Effect
    from nemesis.targets import Layout

    T = TypeVar("T")

# What two faults may not hold on one node at the same time.
PROCESS = "process"
DISK = "disk"
CLOCK = "clock"
EGRESS = "egress"
INGRESS = "ingress"
LEADERSHIP = "leadership"

_COMMAND = re.compile(r"`([^`]{60})[^`]+`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The input for drawing one fault.

    Attributes:
        nodes: The candidate nodes, in order: all, or those with a role.
        rng: The kind's stream.
        target: The requested spec or names.
        options: The settled options.
        at_most: How many nodes may be hit, where the kind chooses.
        pool: The only nodes that may be hit.
        held: Nodes that other faults hold then; they are taken only where there are not enough others.
        worn: Nodes that other kinds hold or held lately, with the time at which they are to let go; one that was let go of
            before all others, or is not among them, is always taken.
    """

    nodes: tuple[str, ...]
    rng: Random
    target: str | tuple[str, ...]
    options: Mapping[str, Value]
    at_most: int
    pool: tuple[str, ...]
    held: frozenset[str] = frozenset()
    worn: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What a fault takes away while it is on, as far as a plan can know.

    Attributes:
        down: Nodes that cannot take part.
        grudge: Links that are cut.
    """

    down: frozenset[str] = frozenset()
    grudge: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Fault(abc.ABC):
    """One fault on one cluster.

    Attributes:
        SUMMARY: The effect, in one line.
        PROOF: The proof of its effect, in one line.
        NEEDS: The capabilities it needs on every node, whatever their addresses.
        INSTEAD: Capability to an alternative that a node may have instead.
        GROUPS: The things that it affects on its nodes; two faults of one group never share a node.
        DISABLES: Whether its targets cannot take part in a quorum during the fault.
        DAMAGES: Whether the damage is permanent; then it hits at most a minority.
        PREPARES: Whether the system's data must be on a volume of Labrys from the start of the run.
        TARGETS: The possible target specs; names are always possible if this is not empty.
        SIMULATED: What it does in a simulated world; None: nothing, so it is refused there, unless it needs nothing of nodes. A
            class below another one inherits its effect, and names its own if it does something else.
        WHOLE_NODE: The reason why its target cannot be a role, as a clause; None: it can be a role.
        OPTIONS: The options it knows, beside those that a plan adds.
        role: The role of the processes that this fault is aimed at; None: it is aimed at nodes as they are.
    """

    SUMMARY: ClassVar[str]
    PROOF: ClassVar[str]
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT})
    INSTEAD: ClassVar[Mapping[str, str]] = {}
    GROUPS: ClassVar[frozenset[str]] = frozenset()
    DISABLES: ClassVar[bool] = False
    DAMAGES: ClassVar[bool] = False
    PREPARES: ClassVar[bool] = False
    TARGETS: ClassVar[tuple[str, ...]] = (*tgt.COUNTED, *tgt.BY_LEADER)
    SIMULATED: ClassVar[type[Effect] | None] = None
    WHOLE_NODE: ClassVar[str | None] = "it acts on whole nodes"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {}

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        self.planned = planned
        self.targets = targets
        self.field = field
        self.options = {**planned.options, **opt.settle(planned.kind, self.OPTIONS, opt.own(planned.options))}
        self.role: str | None = planned.options.get(ROLE)
        self.problems: dict[str, str] = {}

    @classmethod
    def needs(cls, nodes: Sequence[Node], *, at_role: bool = False) -> frozenset[str]:  # noqa: ARG003
        """Returns the capabilities that every node needs, by the nodes' addresses and whether it is aimed at a role."""
        return cls.NEEDS

    @classmethod
    def draw(cls, drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
        """Draws one fault: names, or a target that depends on the leader with an order of the nodes in the options.

        Raises:
            PlanError: The cluster cannot have such a fault.
        """
        return draw_nodes(drawing)

    @classmethod
    def impact(cls, nodes: Sequence[str], targets: tuple[str, ...], options: Mapping[str, Value]) -> Impact:  # noqa: ARG003
        """Returns what the fault takes away from the cluster while it is on."""
        return Impact(down=frozenset(targets) if cls.DISABLES else frozenset())

    @classmethod
    def check_target(cls, kind: str, target: str | Sequence[str], nodes: Sequence[str]) -> str | tuple[str, ...]:
        """Returns a target as a plan may hold it.

        Raises:
            PlanError: The kind cannot be aimed so.
        """
        if isinstance(target, str):
            if target not in cls.TARGETS:
                known = f"Possible are: {', '.join(cls.TARGETS)}, or names of nodes." if cls.TARGETS else "It has none."
                raise PlanError(f"{kind} cannot be aimed at {target!r}. {known}")
            return target
        return tgt.check_names(target, nodes)

    @property
    def id(self) -> int:
        """Returns the id in the plan."""
        return self.planned.id

    @property
    def name(self) -> str:
        """Returns the fault's name for messages and for what it leaves on nodes."""
        return f"{self.planned.id}-{self.planned.kind}"

    @property
    def members(self) -> tuple[str, ...]:
        """Returns the candidate nodes: those with its role, or all."""
        return self.field.layout.of(self.role)

    def roles_on(self, node: Node) -> tuple[str, ...]:
        """Returns the roles of the processes on a node that this fault is about, in the order of their start."""
        return tuple(each for each in self.field.roles_on(node) if self.role in {None, each})

    def labels(self, node: Node) -> dict[str, str]:
        """Returns the processes of a node that this fault affects.

        Returns:
            What each is called in messages and measurements, to its role: the node's name where there is only one process.
        """
        roles = self.roles_on(node)
        return {node.name: roles[0]} if len(roles) == 1 else {f"{node.name} ({role})": role for role in roles}

    def port(self) -> int:
        """Returns the TCP port that probes of this fault ask."""
        return next(iter(self.field.system.ports(self.role)), FALLBACK_PORT)

    @abc.abstractmethod
    async def begin(self) -> Begun:
        """Breaks the targets."""

    @abc.abstractmethod
    async def prove(self) -> Proof:
        """Measures the effect."""

    @abc.abstractmethod
    async def end(self) -> Proof | None:
        """Heals, verifies that, and may return a proof over the whole duration. Can be called again after an error."""

    def cut(self) -> Grudge | None:
        """Returns the links that this fault cuts at the moment; None for faults of another sort."""
        return None

    def blurs(self) -> frozenset[str]:
        """Returns the nodes whose packets may be lost or late because of this fault, so that a probe proves nothing there."""
        return frozenset()

    def also_cut(self) -> Grudge:
        """Returns what the other faults cut at the moment, for packets like those of this fault's probes."""
        cuts = (other.cut() for other in self._in_the_way())
        return union(self.field.names, [cut for cut in cuts if cut is not None])

    def blurred(self) -> frozenset[str]:
        """Returns the nodes where packets like those of this fault's probes may be lost or late because of the other faults."""
        return frozenset().union(*(other.blurs() for other in self._in_the_way()))

    def _in_the_way(self) -> list[Fault]:
        """Returns the other faults without those that are about other processes than the one that is probed."""
        port = self.port()
        others = self.field.others(self)
        return [other for other in others if other.role is None or port in self.field.system.ports(other.role)]

    async def act(self, nodes: Sequence[str], action: Callable[[Node], T], what: str) -> Outcomes[T]:
        """Runs a blocking action on nodes at once, and keeps the failures as problems of this fault.

        Raises:
            FaultError: It failed on every node.
        """
        outcomes = await self.field.each(nodes, action)
        for node, error in outcomes.failed.items():
            self.problems[node] = f"{what} failed: {brief(error)}"
        if outcomes.failed and not outcomes.done:
            raise FaultError(f"fault {self.name}: {what} failed on every node: {sentence(outcomes.failed)}")
        return outcomes


def draw_nodes(drawing: Drawing) -> tuple[str | tuple[str, ...], dict[str, Value]]:
    """Draws a target of nodes: names in the end, or one that depends on the leader, with an order."""
    if isinstance(drawing.target, str) and tgt.by_leader(drawing.target):
        order = drawing.rng.sample(drawing.nodes, len(drawing.nodes))
        return drawing.target, {**drawing.options, opt.ORDER: order}
    nodes = drawing.nodes
    if drawing.pool != drawing.nodes and drawing.target == tgt.MINORITY:
        return drawing.pool, dict(drawing.options)
    if drawing.pool != drawing.nodes and isinstance(drawing.target, str):
        nodes = drawing.pool
    names = tgt.draw(drawing.target, nodes, drawing.rng, at_most=drawing.at_most, held=drawing.held, worn=drawing.worn)
    return names, dict(drawing.options)


def damage_pool(where: Layout, role: str | None, rng: Random, named: Sequence[str]) -> tuple[str, ...]:
    """Draws the nodes that faults may damage for good: those named, filled up as far as `too_damaged` allows.

    Args:
        where: The nodes and their roles.
        role: The role whose processes are damaged; None: all processes of a node.
        rng: The stream of draws.
        named: Nodes that were asked for by name.

    Raises:
        PlanError: There is no minority, or more than one was named.
    """
    nodes = where.of(role)
    chosen: set[str] = set()
    order = [node for node in rng.sample(where.nodes, len(where.nodes)) if node in nodes]
    for node in [*named, *order]:
        if too_damaged(where, {role: chosen | {node}}) is None:
            chosen.add(node)
    refused = sorted(set(named) - chosen)
    if refused:
        raise PlanError(str(too_damaged(where, {role: {*named}})))
    if not chosen:
        raise PlanError(f"{len(nodes)} nodes have no minority, and only files of a minority may be damaged")
    return tuple(node for node in nodes if node in chosen)


def too_damaged(where: Layout, damaged: Mapping[str | None, AbstractSet[str]]) -> str | None:
    """Says why files may not be damaged on these nodes; None if they may: of each role, on a minority of its nodes at most.

    Args:
        where: The nodes and their roles.
        damaged: Role to the nodes where its process' files are damaged; those under None have them damaged for all.
    """
    everywhere = damaged.get(None, frozenset())
    for role, nodes in where.counted():
        hit = {node for node in nodes if node in everywhere or node in damaged.get(role, ())}
        most = minority(len(nodes))
        if len(hit) > most:
            whose = f" of the role {role}" if len(where.roles) > 1 else ""
            return (
                f"the plan damages files on {', '.join(sorted(hit))}; at most {most} of {len(nodes)} nodes{whose} "
                "may be damaged"
            )
    return None


def meet(one: AbstractSet[str], role: str | None, other: AbstractSet[str], other_role: str | None) -> bool:
    """Says whether two faults may not share a node: they hold the same thing of one process, or of the whole node.

    Args:
        one: The groups of the first.
        role: The role it is aimed at; None if it is aimed at whole nodes.
        other: The groups of the second.
        other_role: Its role likewise.
    """
    return bool(one & other) and (role == other_role or None in {role, other_role})


def sentence(failed: Mapping[str, Exception]) -> str:
    """Puts the errors of several nodes into one line."""
    return "; ".join(f"{node}: {brief(error)}" for node, error in failed.items())


def brief(error: Exception) -> str:
    """Returns an error in one line, with the beginning of a command instead of the whole script."""
    text = " ".join(str(error).split())
    if not isinstance(error, LabrysError):
        text = f"{type(error).__name__}: {text}"
    return _COMMAND.sub(r"`\1...`", text)
