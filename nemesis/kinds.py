"""The kinds of faults by name, and what they need.

A kind is a class of faults with a default target: `leader-kill` is `kill` of the leader. On the command line, a kind can have
another target (`kill:minority`, `pause:n1+n3`, `kill:broker+leader`). Kinds come by entry points of the group `labrys.faults`;
those of Labrys are in `nemesis.builtin`. An unknown name is an error with a suggestion. Labrys refuses a kind that a node does
not support before the run, and names the node and what it lacks. `all` leaves such a kind out, and the output names it.
"""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness import plugins
from harness.capabilities import SIMULATED
from harness.documents import shown
from harness.errors import InputError
from harness.faults import ROLE
from harness.plain import name as plain_name
from harness.suggest import did_you_mean
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault

ALL_KINDS = "all"
NO_KIND = "none"
TARGET_SEPARATOR = ":"
OWN = "labrys"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: As in plans, histories and reports.
        fault: The class of its faults.
        target: Its default target; None: a target is required.
        aliases: Its other names.
        in_all: Whether `all` includes it.
    """

    name: str
    fault: type[Fault]
    target: str | None
    aliases: tuple[str, ...] = ()
    in_all: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A requested kind.

    Attributes:
        kind: The kind.
        target: Its target: a spec or names.
        options: Its options, settled.
        role: The role of the processes it is aimed at; None: nodes as they are.
        label: The name of its random stream: the text of the request.
        by_all: Whether only `all` asks for it; then a plan may leave it out.
    """

    kind: Kind
    target: str | tuple[str, ...]
    options: Mapping[str, Value] = field(default_factory=dict)
    role: str | None = None
    label: str
    by_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A kind that `all` left out of a plan.

    Attributes:
        kind: Its name.
        nodes: The nodes that lack something for it; empty if the reason is another one.
        missing: What they lack, with the reason from each node; or another reason.
    """

    kind: str
    nodes: tuple[str, ...]
    missing: str

    @property
    def reason(self) -> str:
        """Returns why it was left out, in words."""
        if not self.nodes:
            return self.missing
        return f"{', '.join(self.nodes)} {'lacks' if len(self.nodes) == 1 else 'lack'} {self.missing}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The kinds that installed packages have.

    Attributes:
        kinds: Name to kind, those of Labrys first.
        aliases: Other name to name.
        packages: Every name, of kinds and other ones, to the packages that have it; more than one cannot be told apart.
        broken: Name of an entry point whose kinds cannot be loaded, to a sentence about it.
    """

    kinds: Mapping[str, Kind]
    aliases: Mapping[str, str]
    packages: Mapping[str, tuple[str, ...]]
    broken: Mapping[str, str]


@functools.cache
def registry() -> Registry:
    """Loads the kinds of all installed packages; what cannot be loaded is named and hinders nothing else.

    The object of an entry point is a `Kind`, several, or a function that returns one or several.

    Raises:
        InputError: No package has any, since Labrys is not installed.
    """
    kinds: dict[str, Kind] = {}
    aliases: dict[str, str] = {}
    packages: dict[str, tuple[str, ...]] = {}
    broken: dict[str, str] = {}
    points = sorted(plugins.plugins(plugins.FAULTS).values(), key=lambda point: (point.package != OWN, point.name))
    for point in points:
        try:
            found = _load(point)
        except InputError as error:
            broken[point.name] = str(error)
            continue
        package = str(point.package)
        for kind in found:
            for name in (kind.name, *kind.aliases):
                packages[name] = (*packages.get(name, ()), package)
            kinds.setdefault(kind.name, kind)
            for alias in kind.aliases:
                aliases.setdefault(alias, kind.name)
    return Registry(kinds=kinds, aliases=aliases, packages=packages, broken=broken)


def _load(point: plugins.Plugin) -> tuple[Kind, ...]:
    """Returns the kinds of an entry point.

    Raises:
        InputError: It cannot be loaded, or is something else; the message names package and place.
    """
    found = point.load()
    where = f"the kinds of faults {plain_name(point.name)} of the package {plain_name(str(point.package))}"
    try:
        found = found() if callable(found) else found
        found = (found,) if isinstance(found, Kind) else tuple(found)
    except Exception as error:
        raise InputError(
            f"{where} cannot be loaded from {plain_name(point.place)}: {type(error).__name__}: {plain_name(str(error))}"
        ) from error
    for kind in found:
        if not isinstance(kind, Kind):
            raise InputError(
                f"{where} hold something that is no nemesis.kinds.Kind: {shown(repr(kind))}; see docs/new-fault.md"
            )
    return found


def all_kinds() -> Mapping[str, Kind]:
    """Returns the kinds by name."""
    return registry().kinds


def find_kind(name: str) -> Kind:
    """Returns a kind by its name or an alias.

    Raises:
        PlanError: There is none, with a suggestion and the packages whose kinds cannot be loaded; or several packages have one
            of this name.
    """
    known = registry()
    owners = known.packages.get(name, ())
    if len(owners) > 1:
        raise PlanError(
            f"several packages have a kind of fault named {shown(name)}: {', '.join(owners)}; uninstall all but one"
        )
    kind = known.kinds.get(known.aliases.get(name, name))
    if kind is None:
        broken = "".join(f" Also, {sentence}." for sentence in known.broken.values())
        suggestion = did_you_mean(name, [*known.kinds, *known.aliases, ALL_KINDS, NO_KIND])
        raise PlanError(f"unknown fault {shown(name)}. {suggestion}{broken}")
    return kind


def choose(
    text: str,
    nodes: Sequence[str],
    options: Mapping[str, Value] | None = None,
    *,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Choice:
    """Reads one kind as on the command line: `kind` or `kind:target`, where a target may be a role or begin with one.

    Args:
        text: The text.
        nodes: The names of all nodes.
        options: The kind's options.
        roles: Role to the names of the nodes that run it.

    Raises:
        PlanError: The kind, its target or an option cannot be used.
    """
    where = tgt.layout(nodes, roles)
    name, separator, aim = text.partition(TARGET_SEPARATOR)
    kind = find_kind(name.strip())
    role, target = tgt.parse_aim(aim.strip(), where) if separator else (None, None)
    members = members_of(kind, role, where)
    if target is None:
        target = kind.target
    if target is None:
        asked = f"{role}{tgt.NAME_SEPARATOR}{members[0]}" if role else members[0]
        raise PlanError(f"{kind.name} needs the names of its nodes, e.g. {kind.name}{TARGET_SEPARATOR}{asked}")
    target = kind.fault.check_target(kind.name, target, members)
    settled = opt.settle(kind.name, kind.fault.OPTIONS, options or {})
    if role:
        named = aim.strip().partition(tgt.NAME_SEPARATOR)[2]
        label = f"{kind.name}{TARGET_SEPARATOR}{role}{tgt.NAME_SEPARATOR if named else ''}{named}"
    else:
        label = f"{kind.name}{separator}{aim.strip()}"
    return Choice(kind=kind, target=target, options=settled, role=role, label=label)


def members_of(kind: Kind, role: str | None, where: tgt.Layout) -> tuple[str, ...]:
    """Returns the nodes that a fault of a kind is about.

    Raises:
        PlanError: There is no such role, or the kind cannot be aimed at one.
    """
    members = where.of(role)
    if role is not None and kind.fault.WHOLE_NODE is not None:
        raise PlanError(
            f"{kind.name} cannot be aimed at the role {role}: {kind.fault.WHOLE_NODE}. Aim it at nodes, e.g. "
            f"{kind.name}{TARGET_SEPARATOR}{members[0]}"
        )
    return members


def choose_all(
    texts: Iterable[str],
    nodes: Sequence[str],
    *,
    options: Mapping[str, Mapping[str, Value]] | None = None,
    capabilities: Mapping[str, Capabilities] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Choice, ...]:
    """Reads several kinds; each text may hold some, with commas between them.

    `all` means every kind. `none` alone means no faults.

    Args:
        texts: The texts.
        nodes: The names of all nodes.
        options: Options by kind name or alias.
        capabilities: Where they are known, `all` leaves out what these nodes cannot have; see `left_out`.
        roles: Role to the names of the nodes that run it.

    Raises:
        PlanError: A part is not valid, a kind comes twice, or options belong to a kind that is not requested.
    """
    wanted = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    if NO_KIND in wanted:
        if len(wanted) > 1:
            raise PlanError(f"{NO_KIND!r} among the faults excludes all others, and there are {', '.join(wanted)}")
        wanted = []
    given = {find_kind(name).name: values for name, values in (options or {}).items()}
    choices: dict[str, Choice] = {}
    for text in wanted:
        if text == ALL_KINDS:
            for sentence in registry().broken.values():
                logger.warning("%s", sentence)
            able = [kind for kind in all_kinds().values() if kind.in_all and not _gaps(kind, capabilities or {})]
            for kind in able:
                choices.setdefault(
                    kind.name, replace(choose(kind.name, nodes, given.get(kind.name), roles=roles), by_all=True)
                )
            continue
        own = given.get(find_kind(text.partition(TARGET_SEPARATOR)[0].strip()).name)
        choice = choose(text, nodes, own, roles=roles)
        if choice.label in choices and ALL_KINDS not in wanted:
            raise PlanError(f"--nemesis has the fault {choice.label!r} twice")
        choices[choice.label] = choice
    idle = sorted(given.keys() - {choice.kind.name for choice in choices.values()})
    if idle:
        raise PlanError(f"there are options for {idle[0]}, but --nemesis does not have this kind")
    return tuple(choices.values())


def asks_for_all(text: str) -> bool:
    """Says whether `all` is among the kinds that a text asks for."""
    return ALL_KINDS in (part.strip() for part in text.split(","))


def left_out(capabilities: Mapping[str, Capabilities]) -> tuple[LeftOut, ...]:
    """Returns the kinds that `all` leaves out on these nodes, each with the nodes and what they lack."""
    found = []
    for kind in all_kinds().values():
        gaps = _gaps(kind, capabilities) if kind.in_all else []
        if gaps:
            lack = {gap.node for gap in gaps}
            nodes = tuple(node for node in capabilities if node in lack)
            found.append(LeftOut(kind=kind.name, nodes=nodes, missing=_missing(gaps)))
    return tuple(found)


def missing_capabilities(
    faults: Iterable[PlannedFault], capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = ()
) -> list[str]:
    """Says what nodes lack for the faults of a run; a run with such a sentence must not start.

    Args:
        faults: The faults.
        capabilities: What each node can do, by its name.
        nodes: The nodes; where they have IPv6 addresses, packet faults need `ip6tables` too.

    Returns:
        A sentence for each kind and node that do not go together, naming the node and the missing thing.
    """
    aimed = dict.fromkeys((fault.kind, ROLE in fault.options) for fault in faults)
    lines = (
        line for name, at_role in aimed for line in _lacking(find_kind(name), capabilities, nodes, at_role=at_role)
    )
    return list(dict.fromkeys(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """A capability that a kind needs and a node lacks, with the reason from the node, and the same for the alternative."""

    capability: str
    node: str
    said: str
    instead: str | None
    instead_said: str


def _gaps(
    kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = (), *, at_role: bool = False
) -> list[_Gap]:
    gaps = []
    needs = sorted(kind.fault.needs(nodes, at_role=at_role))
    simulated = [node for node, can in capabilities.items() if SIMULATED in can.available]
    if simulated and needs and kind.fault.SIMULATED is None:
        said = f"the kind {kind.name} has no effect in the simulator; docs/new-fault.md describes how to add one"
        gaps += [
            _Gap(capability="a simulated effect", node=node, said=said, instead=None, instead_said="")
            for node in simulated
        ]
    for capability in needs:
        other = kind.fault.INSTEAD.get(capability)
        for node, can in capabilities.items():
            if SIMULATED not in can.available and can.available.isdisjoint({capability, other}):
                said = can.missing.get(capability, "not found")
                instead_said = can.missing.get(other, "not found") if other else ""
                gaps.append(_Gap(capability=capability, node=node, said=said, instead=other, instead_said=instead_said))
    return gaps


def _lacking(
    kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = (), *, at_role: bool = False
) -> list[str]:
    return [
        f"{gap.node} lacks {gap.capability}, which {kind.name} needs: {gap.said}"
        + (f"; it also lacks the alternative {gap.instead}: {gap.instead_said}" if gap.instead else "")
        for gap in _gaps(kind, capabilities, nodes, at_role=at_role)
    ]


def _missing(gaps: Sequence[_Gap]) -> str:
    """Returns what nodes lack, with equal reasons joined."""
    told: dict[str, dict[str, list[str]]] = {}
    for gap in gaps:
        told.setdefault(gap.capability, {}).setdefault(gap.said, []).append(gap.node)
        if gap.instead:
            told.setdefault(gap.instead, {}).setdefault(gap.instead_said, []).append(gap.node)
    return " and ".join(f"{capability} ({_said(reasons)})" for capability, reasons in told.items())


def _said(reasons: Mapping[str, Sequence[str]]) -> str:
    if len(reasons) == 1:
        return next(iter(reasons))
    return "; ".join(f"{', '.join(nodes)}: {said}" for said, nodes in reasons.items())
