"""The kinds of faults by name, and what they need.

A kind is a class of faults with its actor for each world, and with a default target. On the command line, a kind can have
another target (`kill:minority`, `pause:n1+n3`, `kill:broker+leader`). Some kinds have variants, which are names with a target:
`leader-kill` is `kill:leader`. Kinds come by entry points of the group `labrys.faults`; those of Labrys are in
`nemesis.builtin`. An unknown name is an error with a suggestion. Labrys refuses a kind that a node does not support before the
run, and names the node and what it lacks. `all` leaves such a kind out, and the output names it.
"""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.capabilities import LEADER, SIMULATED, SIMULATED_CALLS
from harness.console import plugins
from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from harness.targets import NAME_SEPARATOR, ByLeader
from nemesis import targets as tgt
from nemesis import triggers
from nemesis.asked import AIM_SEPARATOR, ALL_KINDS, NO_KIND, WITHOUT, Asked, EveryKind, KindOptions, Request
from nemesis.errors import FaultError, PlanError
from nemesis.fault import Occupied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from harness.world import World
    from nemesis.actor import Actor, OnNodes
    from nemesis.fault import Fault
    from nemesis.simulated.effect import Effect
    from nemesis.targets import Target

PAGE = "docs/guide/new-fault.md"
# What no node but a simulated one has, with the reason.
NEVER_REAL: Mapping[str, str] = MappingProxyType(
    {SIMULATED_CALLS: "Labrys lets system calls fail in the simulator only"}
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Another name of a kind, with a target of its own.

    Attributes:
        name: The name, in requests and in old plans.
        target: The default target of this name; None: names of nodes are required.
        aliases: Its other names.
    """

    name: str
    target: Target | None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: Its name in plans, histories and reports.
        fault: The class of its faults.
        on_nodes: The actor that carries them out on real nodes; None: there is none, and a fault needs what no real node has.
        simulated: The actor in a simulated world; None: none, so the kind is refused there unless it needs no capability.
        target: Its default target; None: names of nodes are required.
        aliases: Its other names.
        variants: Its other names with a target of their own.
        in_all: Whether `all` includes it.
    """

    name: str
    fault: type[Fault]
    on_nodes: type[OnNodes] | None = None
    simulated: type[Effect] | None = None
    target: Target | None
    aliases: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    in_all: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.target, str):  # a plug-in is not checked by mypy
            raise PlanError(
                f"the kind of fault {shown(self.name)} has the text {shown(self.target)} as its target; take the one of "
                f"nemesis.targets that it means, e.g. nemesis.targets.RANDOM. {PAGE} has an example."
            )
        if hasattr(self.fault, "begin") or hasattr(self.fault, "SIMULATED"):  # as plug-ins for Labrys 0.2 have it
            raise PlanError(
                f"the class {self.fault.__name__} of the kind of fault {shown(self.name)} is data, and acts on no node; move "
                "`begin`, `prove`, `again` and `end` into a class below nemesis.actor.OnNodes, which reaches the fault by "
                "`self.fault`, and name the actors in the Kind: `on_nodes` in place of these methods, and `simulated` in place "
                f"of `SIMULATED`. {PAGE} has an example."
            )
        if self.on_nodes is None and self.fault.NEEDS.isdisjoint(NEVER_REAL):
            raise PlanError(
                f"the kind of fault {shown(self.name)} has no actor for real nodes; give `on_nodes`, a class below "
                f"nemesis.actor.OnNodes. {PAGE} has an example."
            )
        for name, option in self.fault.OPTIONS.items():
            other = self.fault.OPTIONS.get(option.drawn_with or name)
            if other is None or len(other.hunted) != len(option.hunted):
                raise PlanError(
                    f"the kind of fault {shown(self.name)} draws its option {name!r} with {option.drawn_with!r}, which must be "
                    f"another option with as many values"
                )

    def actor(self, fault: Fault, world: World | None) -> Actor:
        """Returns the actor that carries out a fault.

        Args:
            fault: The fault, of this kind.
            world: The simulated world; None: its nodes are real.

        Raises:
            FaultError: The kind has no actor there.
        """
        if world is not None and self.simulated is not None:
            return self.simulated(fault, world)
        if self.on_nodes is None:
            raise FaultError(f"fault {fault.name}: the kind {self.name} acts on no real node; use --cluster sim")
        return self.on_nodes(fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What a name in a request means.

    Attributes:
        name: The name of the kind or of its variant. Options, ranges of seconds and triggers belong to this name.
        kind: The kind.
        target: The default target; None: names of nodes are required.
    """

    name: str
    kind: Kind
    target: Target | None

    @property
    def is_variant(self) -> bool:
        """Returns whether it is the name of a variant."""
        return self.name != self.kind.name

    @property
    def meaning(self) -> str:
        """Returns the kind and the target that it stands for, e.g. `kill:leader`, or `kill:NODE+...`."""
        return f"{self.kind.name}{AIM_SEPARATOR}{self.target or 'NODE+...'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A requested kind.

    Attributes:
        name: The name that requests it; see `Called`.
        kind: The kind.
        target: Its target.
        options: Its options, with defaults.
        role: The role of the targeted processes; None: whole nodes.
        label: The name of its random stream: the text of the request.
        by_all: Whether only `all` requests it; then a plan may leave it out.
        beside: The same kind at further roles. Each of its faults begins and ends together with one at each of them.
    """

    name: str
    kind: Kind
    target: Target
    options: Mapping[str, Value] = field(default_factory=dict)
    role: str | None = None
    label: str
    by_all: bool = False
    beside: tuple[Choice, ...] = ()

    @property
    def occupied(self) -> Occupied:
        """Returns what its faults keep to themselves, without their nodes."""
        return Occupied(groups=self.kind.fault.GROUPS, role=self.role)

    @property
    def parts(self) -> tuple[Choice, ...]:
        """Returns this choice and those beside it: one for each role."""
        return (self, *self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A kind that `all` left out of a plan.

    Attributes:
        kind: Its name.
        nodes: The nodes that lack a capability for it; empty if there is another reason.
        missing: What they lack, with the reason of each node; or another reason.
    """

    kind: str
    nodes: tuple[str, ...]
    missing: str

    @property
    def reason(self) -> str:
        """Returns why it was left out, as a text."""
        if not self.nodes:
            return self.missing
        return f"{', '.join(self.nodes)} {'lacks' if len(self.nodes) == 1 else 'lack'} {self.missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The kinds of all installed packages.

    Attributes:
        kinds: The kinds by name, those of Labrys first.
        called: What each name of a kind or of a variant means: each kind, and then its variants.
        aliases: The name of each alias.
        packages: The packages that have each name or alias; a name with several packages is ambiguous.
        broken: For each entry point whose kinds cannot be loaded, a sentence about it.
    """

    kinds: Mapping[str, Kind]
    called: Mapping[str, Called]
    aliases: Mapping[str, str]
    packages: Mapping[str, tuple[str, ...]]
    broken: Mapping[str, str]


@functools.cache
def registry() -> Registry:
    """Loads the kinds of all installed packages; see `plugins.collect`.

    Raises:
        InputError: No package has kinds, because Labrys is not installed.
    """
    kinds: dict[str, Kind] = {}
    called: dict[str, Called] = {}
    aliases: dict[str, str] = {}
    packages: dict[str, tuple[str, ...]] = {}
    collection = plugins.collect(plugins.FAULTS, Kind, page=PAGE)
    for package, kind in collection.found:
        kinds.setdefault(kind.name, kind)
        names: tuple[Kind | Variant, ...] = (kind, *kind.variants)
        for one in names:
            called.setdefault(one.name, Called(name=one.name, kind=kind, target=one.target))
            for alias in one.aliases:
                aliases.setdefault(alias, one.name)
            for name in (one.name, *one.aliases):
                packages[name] = (*packages.get(name, ()), package)
    return Registry(kinds=kinds, called=called, aliases=aliases, packages=packages, broken=collection.broken)


def use(place: str) -> None:
    """Adds kinds that the user names by a place, `MODULE:NAME` or `FILE.py:NAME`, for the rest of the process.

    Raises:
        InputError: They cannot be loaded, or are no kinds.
    """
    plugins.add(plugins.FAULTS, place, Kind, page=PAGE)
    registry.cache_clear()


def all_kinds() -> Mapping[str, Kind]:
    """Returns the kinds by name."""
    return registry().kinds


def all_called() -> Mapping[str, Called]:
    """Returns what each name of a kind or of a variant means."""
    return registry().called


def find_kind(name: str) -> Kind:
    """Returns a kind by its name, an alias or a variant; see `find_called`."""
    return find_called(name).kind


def find_called(name: str) -> Called:
    """Returns what a name or an alias means.

    Raises:
        PlanError: There is no such kind, or several packages have one. The message has a suggestion, and the packages whose
            kinds cannot be loaded.
    """
    known = registry()
    owners = known.packages.get(name, ())
    if len(owners) > 1:
        raise PlanError(
            f"several packages have a kind of fault named {shown(name)}: {', '.join(owners)}; uninstall all but one"
        )
    called = known.called.get(known.aliases.get(name, name))
    if called is None:
        broken = "".join(f" Also, {sentence}." for sentence in known.broken.values())
        suggestion = did_you_mean(name, [*known.called, *known.aliases, ALL_KINDS, NO_KIND])
        own = " A kind in a file of your own needs --fault FILE.py:NAME."
        raise PlanError(f"unknown fault {shown(name)}. {suggestion}{own}{broken}")
    return called


def choose(asked: Asked, where: tgt.Layout, options: Mapping[str, Value] | None = None) -> Choice:
    """Finds the roles and the target of a requested kind.

    Args:
        asked: The kind.
        where: The nodes and their roles.
        options: The kind's options.

    Raises:
        PlanError: The kind, its target or an option is unusable.
    """
    called = find_called(asked.kind)
    kind = called.kind
    roles_hit, target = ((), None) if asked.aim is None else tgt.placed(asked.aim, where)
    settled = kind.fault.settle(kind.name, options or {})
    if roles_hit:  # a role may be in the plural
        asked = replace(asked, aim=tgt.Words((*roles_hit, *str(asked.aim).split(NAME_SEPARATOR)[len(roles_hit) :])))
    label = str(asked)
    parts = []
    for role in roles_hit or (None,):
        members = members_of(kind, role, where)
        if few := too_few(kind, members):
            raise PlanError(f"{kind.name} {few}" + (f" with the role {role}" if role else ""))
        wanted = called.target if target is None else target
        if wanted is None:
            example = f"{role}{NAME_SEPARATOR}{members[0]}" if role else members[0]
            raise PlanError(f"{called.name} needs the names of its nodes, e.g. {called.name}{AIM_SEPARATOR}{example}")
        kind.fault.check_target(called.name, wanted, members)
        parts.append(Choice(name=called.name, kind=kind, target=wanted, options=settled, role=role, label=label))
    first, *others = parts
    return replace(first, beside=tuple(others))


def members_of(kind: Kind, role: str | None, where: tgt.Layout) -> tuple[str, ...]:
    """Returns the candidate nodes of a fault.

    Raises:
        PlanError: There is no such role, or the kind cannot have a role as its target.
    """
    members = where.of(role)
    if role is not None and kind.fault.WHOLE_NODE is not None:
        raise PlanError(
            f"{kind.name} cannot be aimed at the role {role}: {kind.fault.WHOLE_NODE}. Aim it at nodes, e.g. "
            f"{kind.name}{AIM_SEPARATOR}{members[0]}"
        )
    return members


def too_few(kind: Kind, nodes: Sequence[str]) -> str:
    """Returns that a kind can have no effect on so few nodes, as a clause about the kind; empty if it can."""
    least, count = kind.fault.LEAST_NODES, len(nodes)
    return "" if count >= least else f"needs at least {least} nodes, and there {'is' if count == 1 else 'are'} {count}"


def choose_all(
    request: Request,
    where: tgt.Layout,
    *,
    options: KindOptions | None = None,
    capabilities: Mapping[str, Capabilities] | None = None,
) -> tuple[Choice, ...]:
    """Finds the roles and targets of all requested kinds.

    Args:
        request: The kinds. `all` means every kind, without those that the request leaves out.
        where: The nodes and their roles.
        options: Options by kind.
        capabilities: The capabilities of the nodes, if known. Then `all` leaves out the kinds that they do not support; see
            `left_out`.

    Raises:
        PlanError: A part is not possible here, a kind occurs twice, or options belong to a kind that is not requested.
    """
    options = options or KindOptions()
    without = excluded(request, of_all())
    choices: dict[str, Choice] = {}
    for part in request.parts:
        if isinstance(part, EveryKind):
            for sentence in registry().broken.values():
                logger.warning("%s", sentence)
            able = [kind for kind in of_all() if kind.name not in without and not too_few(kind, where.nodes)]
            for kind in (kind for kind in able if not _gaps(kind, capabilities or {})):
                choice = choose(Asked(kind=kind.name), where, options.of(kind.name))
                choices.setdefault(kind.name, replace(choice, by_all=True))
        elif isinstance(part, Asked):
            choice = choose(part, where, options.of(part.kind))
            if choice.label in choices and not request.every_kind:
                raise PlanError(f"--nemesis has the fault {choice.label!r} twice")
            choices[choice.label] = choice
    idle = sorted(options.given.keys() - {choice.name for choice in choices.values()})
    if idle:
        raise PlanError(f"there are options for {idle[0]}, but --nemesis does not have this kind")
    return tuple(choices.values())


def of_all() -> list[Kind]:
    """Returns the kinds that `all` includes on nodes that support every kind."""
    return [kind for kind in all_kinds().values() if kind.in_all]


def excluded(request: Request, included: Iterable[Kind | Called]) -> frozenset[str]:
    """Returns the names of the kinds that a request takes out of `all`.

    Args:
        request: The request.
        included: The kinds that `all` means there.

    Raises:
        PlanError: `all` does not include such a kind.
    """
    names = {kind.name for kind in included}
    for name in request.without:
        if name not in names:
            raise PlanError(
                f"'{WITHOUT}{name}' leaves out {name}, which `all` does not include; `labrys faults` lists them"
            )
    return frozenset(request.without)


def left_out(
    capabilities: Mapping[str, Capabilities], request: Request | None = None, nodes: Sequence[str] | None = None
) -> tuple[LeftOut, ...]:
    """Returns the kinds that `all` leaves out on these nodes, each with the nodes and what they lack.

    Args:
        capabilities: The capabilities of the nodes.
        request: The request; the result does not have the kinds that it leaves out itself.
        nodes: The names of all nodes; None: they are enough for each kind.
    """
    found = []
    without = excluded(request or Request(), of_all())
    for kind in of_all():
        few = "" if nodes is None or kind.name in without else too_few(kind, nodes)
        gaps = [] if few or kind.name in without else _gaps(kind, capabilities)
        if few:
            found.append(LeftOut(kind=kind.name, nodes=(), missing=f"it {few}"))
        if gaps:
            lack = {gap.node for gap in gaps}
            lacking = tuple(node for node in capabilities if node in lack)
            found.append(LeftOut(kind=kind.name, nodes=lacking, missing=_missing(gaps)))
    return tuple(found)


def impossible(capabilities: Mapping[str, Capabilities]) -> frozenset[str]:
    """Returns the names of kinds and variants that some of these nodes do not support."""
    return frozenset(
        called.name for called in all_called().values() if _gaps(called.kind, capabilities, target=called.target)
    )


def missing_capabilities(
    faults: Iterable[PlannedFault], capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()
) -> list[str]:
    """Returns what nodes lack for the faults of a run. If there is such a sentence, the run must not start.

    Args:
        faults: The faults.
        capabilities: The capabilities of each node, by its name.
        nodes: The nodes. If they have IPv6 addresses, packet faults need `ip6tables` too.

    Returns:
        A sentence for each kind that a node does not support, with the node and the missing capability.
    """
    faults = tuple(faults)
    needed = dict.fromkeys((fault.kind, fault.role is not None) for fault in faults)
    lines = [
        line for name, at_role in needed for line in _lacking(find_kind(name), capabilities, nodes, at_role=at_role)
    ]
    return list(dict.fromkeys([*lines, *triggers.lacking(faults, capabilities)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A capability that a kind needs and a node lacks, with the node's reason, and the same for the alternative."""

    capability: str
    node: str
    reason: str
    instead: str | None
    instead_reason: str


def _gaps(
    kind: Kind,
    capabilities: Mapping[str, Capabilities],
    nodes: Sequence[Node] = (),
    *,
    at_role: bool = False,
    target: Target | None = None,
) -> list[_Gap]:
    gaps = []
    needs = sorted(kind.fault.needs(nodes, at_role=at_role))
    simulated = [node for node, can in capabilities.items() if SIMULATED in can.available]
    if simulated and needs and kind.simulated is None:
        reason = (
            f"the kind {kind.name} has no effect in the simulator; docs/guide/new-fault.md describes how to add one"
        )
        gaps += [
            _Gap(capability="a simulated effect", node=node, reason=reason, instead=None, instead_reason="")
            for node in simulated
        ]
    effect_needs = kind.simulated.NEEDS if simulated and kind.simulated is not None else frozenset()
    for capability in sorted(
        effect_needs | kind.fault.OF_SYSTEM | ({LEADER} if isinstance(target or kind.target, ByLeader) else set())
    ):
        gaps += [
            _Gap(capability=capability, node=node, reason=can.missing[capability], instead=None, instead_reason="")
            for node, can in capabilities.items()
            if capability in can.missing
        ]
    for capability in needs:
        other = kind.fault.INSTEAD.get(capability)
        for node, can in capabilities.items():
            if SIMULATED not in can.available and can.available.isdisjoint({capability, other}):
                reason = can.missing.get(capability, NEVER_REAL.get(capability, "not found"))
                instead_reason = can.missing.get(other, "not found") if other else ""
                gaps.append(
                    _Gap(capability=capability, node=node, reason=reason, instead=other, instead_reason=instead_reason)
                )
    return gaps


def _lacking(
    kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = (), *, at_role: bool = False
) -> list[str]:
    return [
        f"{gap.node} lacks {gap.capability}, which {kind.name} needs: {gap.reason}"
        + (f"; it also lacks the alternative {gap.instead}: {gap.instead_reason}" if gap.instead else "")
        for gap in _gaps(kind, capabilities, nodes, at_role=at_role)
    ]


def _missing(gaps: Sequence[_Gap]) -> str:
    """Returns what nodes lack, with each reason once."""
    nodes_by_reason: dict[str, dict[str, list[str]]] = {}
    for gap in gaps:
        nodes_by_reason.setdefault(gap.capability, {}).setdefault(gap.reason, []).append(gap.node)
        if gap.instead:
            nodes_by_reason.setdefault(gap.instead, {}).setdefault(gap.instead_reason, []).append(gap.node)
    return " and ".join(f"{capability} ({_joined(reasons)})" for capability, reasons in nodes_by_reason.items())


def _joined(reasons: Mapping[str, Sequence[str]]) -> str:
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{', '.join(nodes)}: {reason}" for reason, nodes in reasons.items())
