"""The base class of faults: drawing into a plan, checks before a run, and what one fault is while it is on.

Class methods work only on names, and determine the plan. An instance is one fault on one cluster, from just before its begin
until it is healed: its targets and options, what it cuts, and what went wrong. It is the same in all worlds, and changes no
node: an actor does (`nemesis.actor`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import ROOT
from harness.console.plain import listed
from harness.errors import LabrysError
from harness.faults import Proof
from harness.targets import AtTrigger, ByLeader, Named
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.grudges import talks, union
from nemesis.probes import FALLBACK_PORT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random
    from typing import TypeVar

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from harness.targets import PlanTarget
    from nemesis.field import Field
    from nemesis.grudges import Grudge
    from nemesis.targets import Target

    T = TypeVar("T")

# The groups of faults. Two faults of one group never affect a node at the same time.
PROCESS = "process"
DISK = "disk"
CLOCK = "clock"
EGRESS = "egress"
INGRESS = "ingress"
LEADERSHIP = "leadership"

MOST_NAMED = 4  # nodes in the words for an effect

_COMMAND = re.compile(r"`([^`]{60})[^`]+`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The input for drawing one fault.

    Attributes:
        nodes: The candidate nodes, in order: all, or those with a role.
        rng: The kind's stream.
        target: The requested target.
        options: The options, with defaults.
        at_most: The maximum number of targets, if the kind chooses the number.
        pool: The only nodes that the fault may affect.
        held: Nodes that other faults affect at that time. The kind draws them only if there are not enough others.
        worn: Nodes that other kinds affect, or affected recently, with the end of the last fault. A draw always includes a node
            that is not here, or the one whose last fault ended first.
    """

    nodes: tuple[str, ...]
    rng: Random
    target: Target
    options: Mapping[str, Value]
    at_most: int
    pool: tuple[str, ...]
    held: frozenset[str] = frozenset()
    worn: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What one fault of a plan is: its target and its options.

    Attributes:
        target: Named nodes, or a target that its start decides.
        options: Its options.
        order: The candidate nodes in a drawn order, if the nodes that it hits depend on more than the target.
    """

    target: PlanTarget
    options: Mapping[str, Value]
    order: tuple[str, ...] = ()

    def with_usual(self, usual: Mapping[str, Value]) -> Drawn:
        """Returns the same with drawn values of options. A given value wins."""
        return replace(self, options={**usual, **self.options})


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The nodes of one fault when it begins.

    Attributes:
        nodes: The candidate nodes, in order: all, or those with a role.
        targets: The nodes that it hits.
        order: The candidate nodes in the order of the plan.
    """

    nodes: Sequence[str]
    targets: tuple[str, ...]
    order: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """The effect of a fault on the quorum, as far as a plan can know it.

    Attributes:
        down: Nodes that cannot take part.
        grudge: The cut links.
    """

    down: frozenset[str] = frozenset()
    grudge: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupied:
    """What a fault keeps to itself while it is on. Two faults that meet must not share a node.

    Attributes:
        groups: The groups of its kind.
        role: The role of its processes; None if it affects whole nodes.
        nodes: Its nodes, as far as their names are known.
    """

    groups: frozenset[str]
    role: str | None
    nodes: frozenset[str] = frozenset()

    def meets(self, other: Occupied) -> bool:
        """Returns whether both have a common group, and affect the same process or whole nodes."""
        return bool(self.groups & other.groups) and (self.role == other.role or None in {self.role, other.role})

    def shared(self, other: Occupied) -> frozenset[str]:
        """Returns the nodes that both keep, if they meet."""
        return self.nodes & other.nodes if self.meets(other) else frozenset()


class Fault:
    """One fault on one cluster.

    Attributes:
        SUMMARY: The effect, in one line.
        PROOF: The proof of its effect, in one line.
        EFFECT: What happened to its targets, as a clause in the past tense, with the fields `nodes` and `were`; empty: reports
            name the kind.
        NEEDS: The capabilities that it needs on every node.
        OF_SYSTEM: The capabilities of the system that it needs, beside a leader for a target that depends on it.
        INSTEAD: For a capability, an alternative one that suffices.
        GROUPS: Its groups. Two faults of one group never share a node.
        DISABLES: Whether its targets cannot take part in a quorum during the fault.
        DAMAGES: Whether the damage is permanent; then it hits at most a minority.
        SILENT: Whether the damaged content can look whole to the process, because it was so once. Then a hunt draws the kind
            only if the user names it.
        PREPARES: Whether the system's data must be on a volume of Labrys from the start of the run.
        LEAST_NODES: The fewest nodes with which it can have an effect. A fault between nodes needs two.
        TARGETS: The possible targets; names are always possible if this is not empty.
        ON_REQUEST: Further targets, which only a user asks for; a hunt never draws them.
        WHOLE_NODE: The reason why its target cannot be a role, as a clause; None: it can be a role.
        OPTIONS: Its options.
        role: The role of the targeted processes; None: the fault affects whole nodes.
        in_force: Whether the effect on packets can be in place, so that probes of other faults allow for it.
        proof: The proof so far; None before the first measurement.
    """

    SUMMARY: ClassVar[str]
    PROOF: ClassVar[str]
    EFFECT: ClassVar[str] = ""
    NEEDS: ClassVar[frozenset[str]] = frozenset({ROOT})
    OF_SYSTEM: ClassVar[frozenset[str]] = frozenset()
    INSTEAD: ClassVar[Mapping[str, str]] = {}
    GROUPS: ClassVar[frozenset[str]] = frozenset()
    DISABLES: ClassVar[bool] = False
    DAMAGES: ClassVar[bool] = False
    SILENT: ClassVar[bool] = False
    PREPARES: ClassVar[bool] = False
    LEAST_NODES: ClassVar[int] = 1
    TARGETS: ClassVar[tuple[Target, ...]] = tgt.EVERY
    ON_REQUEST: ClassVar[tuple[Target, ...]] = ()
    WHOLE_NODE: ClassVar[str | None] = "it acts on whole nodes"
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {}

    def __init__(self, *, planned: PlannedFault, targets: tuple[str, ...], field: Field) -> None:
        self.planned = planned
        self.targets = targets
        self.field = field
        self.options = self.settle(planned.kind, planned.options)
        self.role = planned.role
        self.problems: dict[str, str] = {}
        self.in_force = False
        self.proof: Proof | None = None

    @classmethod
    def needs(cls, nodes: Sequence[Node], *, at_role: bool = False) -> frozenset[str]:  # noqa: ARG003
        """Returns the capabilities that every node needs, by the nodes' addresses, and whether the target is a role."""
        return cls.NEEDS

    @classmethod
    def settle(cls, kind: str, options: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the options with the defaults of those that are not given.

        Raises:
            PlanError: An option is unknown or has an impossible value, or some options do not go together.
        """
        settled = opt.settle(kind, cls.OPTIONS, options)
        cls.check_options(kind, settled)
        return settled

    @classmethod
    def check_options(cls, kind: str, options: Mapping[str, Value]) -> None:
        """Refuses options that do not go together.

        Raises:
            PlanError: There are such options; the message has those to give.
        """

    @classmethod
    def draw(cls, drawing: Drawing) -> Drawn:
        """Draws one fault: names, or a target that its start decides; for a leader with an order of the nodes.

        Raises:
            PlanError: The fault is impossible on this cluster.
        """
        return draw_nodes(drawing)

    @classmethod
    def impact(cls, hit: Hit, options: Mapping[str, Value]) -> Impact:  # noqa: ARG003
        """Returns the fault's effect on the quorum while it is on."""
        return Impact(down=frozenset(hit.targets) if cls.DISABLES else frozenset())

    @classmethod
    def check_target(cls, kind: str, target: Target, nodes: Sequence[str]) -> None:
        """Checks a target.

        Raises:
            PlanError: The kind cannot have this target.
        """
        if isinstance(target, Named):
            tgt.check_names(target.nodes, nodes)
        elif target not in (*cls.TARGETS, *cls.ON_REQUEST):
            possible = ", ".join(map(str, (*cls.TARGETS, *cls.ON_REQUEST)))
            known = f"Possible are: {possible}, or names of nodes." if possible else "It has none."
            raise PlanError(f"{kind} cannot be aimed at '{target}'. {known}")

    @property
    def id(self) -> int:
        """Returns the id in the plan."""
        return self.planned.id

    @property
    def name(self) -> str:
        """Returns the fault's name for messages, and for its notes on nodes."""
        return f"{self.planned.id}-{self.planned.kind}"

    @property
    def occupied(self) -> Occupied:
        """Returns what it keeps to itself."""
        return Occupied(groups=self.GROUPS, role=self.role, nodes=frozenset(self.targets))

    @property
    def hit(self) -> Hit:
        """Returns its nodes."""
        return Hit(nodes=self.members, targets=self.targets, order=self.planned.order or self.members)

    @property
    def members(self) -> tuple[str, ...]:
        """Returns the candidate nodes: those with the fault's role, or all."""
        return self.field.layout.of(self.role)

    def roles_on(self, node: Node) -> tuple[str, ...]:
        """Returns the roles of the processes on a node that this fault affects, in the order of their start."""
        return tuple(role for role in self.field.roles_on(node) if self.role in {None, role})

    def labels(self, node: Node) -> dict[str, str]:
        """Returns the processes of a node that this fault affects.

        Returns:
            The role of each process, by its label in messages and measurements. A single process has the node's name as label.
        """
        roles = self.roles_on(node)
        return {node.name: roles[0]} if len(roles) == 1 else {f"{node.name} ({role})": role for role in roles}

    def port(self) -> int:
        """Returns the TCP port for the probes of this fault."""
        return next(iter(self.field.system.ports(self.role)), FALLBACK_PORT)

    def effect(self, hit: Sequence[str]) -> str:
        """Returns what happened to nodes as a clause, e.g. `all nodes lost power`; empty if the kind has no words for it.

        Args:
            hit: The nodes that it hit.
        """
        struck = [name for name in hit if name not in self.problems]
        if not struck or not self.EFFECT:
            return ""
        if len(struck) > 1 and set(struck) >= set(self.members):
            nodes = "all nodes" if self.role is None else f"the {self.role} processes of all their nodes"
        else:
            few = listed(struck, "and") if len(struck) <= MOST_NAMED else f"{len(struck)} nodes"
            of_role = f"the {self.role} process{'es' if len(struck) > 1 else ''} of "
            nodes = few if self.role is None else f"{of_role}{few}"
        return self.EFFECT.format(nodes=nodes, were="were" if len(struck) > 1 else "was")

    def cut(self) -> Grudge | None:
        """Returns the links that this fault cuts at the moment; None if it is not a partition."""
        return None

    def blurs(self) -> frozenset[str]:
        """Returns the nodes whose packets can be lost or late because of this fault. A silent probe there proves nothing."""
        return frozenset()

    def also_cut(self) -> Grudge:
        """Returns the links that other faults cut at the moment for this fault's probes."""
        cuts = (other.cut() for other in self._others_on_port())
        return union(self.field.names, [cut for cut in cuts if cut is not None])

    def blurred(self) -> frozenset[str]:
        """Returns the nodes where other faults can lose or delay this fault's probes."""
        return frozenset().union(*(other.blurs() for other in self._others_on_port()))

    @classmethod
    def on_switch(cls, options: Mapping[str, Value]) -> bool:  # noqa: ARG003
        """Returns whether these options need the switch between real nodes, whatever their kernels can do."""
        return False

    def ends(self, name: str) -> list[str]:
        """Returns the nodes at the other ends of a target's links."""
        return [other for other in self.field.names if other != name]

    def peers(self, name: str) -> list[str]:
        """Returns up to two nodes whose probes can reach a node, if possible without those that faults disturb."""
        cut, blurred = self.also_cut(), self.blurred()
        free = [other for other in self.ends(name) if other in talks(cut, name)]
        return [other for other in free if other not in blurred and other not in self.targets][:2] or free[:1]

    def shown(self, bad: Mapping[str, str], good: Mapping[str, str], measured: Mapping[str, Value]) -> Proof:
        """Returns a proof: effective if at least one target shows the effect, and none contradicts it.

        Args:
            bad: For each target without the effect, the contradiction as a clause about it.
            good: For each target with the effect, the effect as a clause about it.
            measured: The measurements.
        """
        texts = [f"{target} {text}" for target, text in bad.items()]
        texts += [f"{target}: {text}" for target, text in self.problems.items()]
        texts += [f"{target} {text}" for target, text in good.items()]
        reason = f"{'; '.join(texts) or 'no node was examined'}."
        return Proof(effective=bool(good) and not bad, reason=reason, measured=measured)

    def _others_on_port(self) -> list[Fault]:
        """Returns the other faults that can affect this fault's probes: those of whole nodes, or of the probed process."""
        port = self.port()
        others = self.field.others(self)
        return [other for other in others if other.role is None or port in self.field.system.ports(other.role)]


def instead_of(kind: type[Fault], capabilities: Mapping[str, Capabilities]) -> frozenset[str]:
    """Returns the alternative capabilities that a kind of fault uses, because a node lacks those in whose place they are."""
    return frozenset(
        other
        for capability, other in kind.INSTEAD.items()
        if any(capability not in can.available for can in capabilities.values())
    )


def draw_nodes(drawing: Drawing) -> Drawn:
    """Draws a target: names of nodes, or a target that its start decides. For a leader it draws an order."""
    target = drawing.target
    if isinstance(target, AtTrigger):
        return Drawn(target=target, options=drawing.options)
    if isinstance(target, ByLeader):
        order = drawing.rng.sample(drawing.nodes, len(drawing.nodes))
        return Drawn(target=target, options=drawing.options, order=tuple(order))
    nodes = drawing.nodes
    if drawing.pool != drawing.nodes and target == tgt.MINORITY:
        return Drawn(target=Named(drawing.pool), options=drawing.options)
    if drawing.pool != drawing.nodes and not isinstance(target, Named):
        nodes = drawing.pool
    names = tgt.draw(target, nodes, drawing.rng, at_most=drawing.at_most, taken=drawing.held, ended_s=drawing.worn)
    return Drawn(target=Named(names), options=drawing.options)


def sentence(failed: Mapping[str, Exception]) -> str:
    """Returns the errors of several nodes in one line."""
    return "; ".join(f"{node}: {brief(error)}" for node, error in failed.items())


def brief(error: Exception) -> str:
    """Returns an error in one line. It shortens a command to its first 60 characters."""
    text = " ".join(str(error).split())
    if not isinstance(error, LabrysError):
        text = f"{type(error).__name__}: {text}"
    return _COMMAND.sub(r"`\1...`", text)
