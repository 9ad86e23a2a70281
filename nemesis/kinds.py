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
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.capabilities import LEADER, SIMULATED, SIMULATED_CALLS
from harness.console import plugins
from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from harness.faults import ROLE
from nemesis import options as opt
from nemesis import targets as tgt
from nemesis import triggers
from nemesis.errors import PlanError
from nemesis.fault import Occupied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault

ALL_KINDS = "all"
NO_KIND = "none"
WITHOUT = "-"
TARGET_SEPARATOR = ":"
PAGE = "docs/guide/new-fault.md"
# What no node but a simulated one has, with the reason.
NEVER_REAL: Mapping[str, str] = MappingProxyType(
    {SIMULATED_CALLS: "Labrys lets system calls fail in the simulator only"}
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault.

    Attributes:
        name: Its name in plans, histories and reports.
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
        options: Its options, with defaults.
        role: The role of the targeted processes; None: whole nodes.
        label: The name of its random stream: the text of the request.
        by_all: Whether only `all` requests it; then a plan may leave it out.
        beside: The same kind at further roles. Each of its faults begins and ends together with one at each of them.
    """

    kind: Kind
    target: str | tuple[str, ...]
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
        aliases: The name of each alias.
        packages: The packages that have each name or alias; a name with several packages is ambiguous.
        broken: For each entry point whose kinds cannot be loaded, a sentence about it.
    """

    kinds: Mapping[str, Kind]
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
    aliases: dict[str, str] = {}
    packages: dict[str, tuple[str, ...]] = {}
    collection = plugins.collect(plugins.FAULTS, Kind, page=PAGE)
    for package, kind in collection.found:
        for name in (kind.name, *kind.aliases):
            packages[name] = (*packages.get(name, ()), package)
        kinds.setdefault(kind.name, kind)
        for alias in kind.aliases:
            aliases.setdefault(alias, kind.name)
    return Registry(kinds=kinds, aliases=aliases, packages=packages, broken=collection.broken)


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


def find_kind(name: str) -> Kind:
    """Returns a kind by its name or an alias.

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
    kind = known.kinds.get(known.aliases.get(name, name))
    if kind is None:
        broken = "".join(f" Also, {sentence}." for sentence in known.broken.values())
        suggestion = did_you_mean(name, [*known.kinds, *known.aliases, ALL_KINDS, NO_KIND])
        own = " A kind in a file of your own needs --fault FILE.py:NAME."
        raise PlanError(f"unknown fault {shown(name)}. {suggestion}{own}{broken}")
    return kind


def choose(
    text: str,
    nodes: Sequence[str],
    options: Mapping[str, Value] | None = None,
    *,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Choice:
    """Parses one kind in the form of the command line: `kind` or `kind:target`. A target can be roles, or begin with them.

    Args:
        text: The text.
        nodes: The names of all nodes.
        options: The kind's options.
        roles: The names of the nodes of each role.

    Raises:
        PlanError: The kind, its target or an option is unusable.
    """
    where = tgt.layout(nodes, roles)
    name, separator, aim = text.partition(TARGET_SEPARATOR)
    kind = find_kind(name.strip())
    roles_hit, target = tgt.parse_aim(aim.strip(), where) if separator else ((), None)
    settled = opt.settle(kind.name, kind.fault.OPTIONS, options or {})
    words = [*roles_hit, *aim.strip().split(tgt.NAME_SEPARATOR)[len(roles_hit) :]]
    label = f"{kind.name}{separator}{tgt.NAME_SEPARATOR.join(words)}"
    parts = []
    for role in roles_hit or (None,):
        members = members_of(kind, role, where)
        if few := too_few(kind, members):
            raise PlanError(f"{kind.name} {few}" + (f" with the role {role}" if role else ""))
        wanted = kind.target if target is None else target
        if wanted is None:
            asked = f"{role}{tgt.NAME_SEPARATOR}{members[0]}" if role else members[0]
            raise PlanError(f"{kind.name} needs the names of its nodes, e.g. {kind.name}{TARGET_SEPARATOR}{asked}")
        wanted = kind.fault.check_target(kind.name, wanted, members)
        parts.append(Choice(kind=kind, target=wanted, options=settled, role=role, label=label))
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
            f"{kind.name}{TARGET_SEPARATOR}{members[0]}"
        )
    return members


def too_few(kind: Kind, nodes: Sequence[str]) -> str:
    """Returns that a kind can have no effect on so few nodes, as a clause about the kind; empty if it can."""
    least, count = kind.fault.LEAST_NODES, len(nodes)
    return "" if count >= least else f"needs at least {least} nodes, and there {'is' if count == 1 else 'are'} {count}"


def choose_all(
    texts: Iterable[str],
    nodes: Sequence[str],
    *,
    options: Mapping[str, Mapping[str, Value]] | None = None,
    capabilities: Mapping[str, Capabilities] | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Choice, ...]:
    """Parses several kinds. Each text has one or more, with commas between them.

    `all` means every kind, and `-KIND` beside it leaves a kind out. `none` alone means no faults.

    Args:
        texts: The texts.
        nodes: The names of all nodes.
        options: Options by kind name or alias.
        capabilities: The capabilities of the nodes, if known. Then `all` leaves out the kinds that they do not support; see
            `left_out`.
        roles: The names of the nodes of each role.

    Raises:
        PlanError: A part is not valid, a kind occurs twice, or options belong to a kind that is not requested.
    """
    wanted = [part for text in texts for part in parts_of(text)]
    if NO_KIND in wanted:
        if len(wanted) > 1:
            raise PlanError(f"{NO_KIND!r} among the faults excludes all others, and there are {', '.join(wanted)}")
        wanted = []
    given = {find_kind(name).name: values for name, values in (options or {}).items()}
    without = excluded(wanted, of_all())
    choices: dict[str, Choice] = {}
    for text in (part for part in wanted if not part.startswith(WITHOUT)):
        if text == ALL_KINDS:
            for sentence in registry().broken.values():
                logger.warning("%s", sentence)
            able = [kind for kind in of_all() if kind.name not in without and not too_few(kind, nodes)]
            able = [kind for kind in able if not _gaps(kind, capabilities or {})]
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
    """Returns whether `all` is among the kinds in a text."""
    return ALL_KINDS in parts_of(text)


def parts_of(text: str) -> list[str]:
    """Returns the parts of a text with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def of_all() -> list[Kind]:
    """Returns the kinds that `all` includes on nodes that support every kind."""
    return [kind for kind in all_kinds().values() if kind.in_all]


def excluded(wanted: Sequence[str], included: Iterable[Kind]) -> frozenset[str]:
    """Returns the names of the kinds that parts like `-clock-skew` take out of `all`.

    Args:
        wanted: All parts of a request.
        included: The kinds that `all` means there.

    Raises:
        PlanError: `all` is not among the parts, or a part names no kind, or a kind that `all` does not include.
    """
    found = set()
    names = {kind.name for kind in included}
    for text in (part for part in wanted if part.startswith(WITHOUT)):
        if ALL_KINDS not in wanted:
            raise PlanError(f"{shown(text)} leaves a kind out of `all`, and `all` is not there; e.g. all,{text}")
        kind = find_kind(text.removeprefix(WITHOUT).strip())
        if kind.name not in names:
            raise PlanError(
                f"{shown(text)} leaves out {kind.name}, which `all` does not include; `labrys faults` lists them"
            )
        found.add(kind.name)
    return frozenset(found)


def left_out(
    capabilities: Mapping[str, Capabilities], text: str = ALL_KINDS, nodes: Sequence[str] | None = None
) -> tuple[LeftOut, ...]:
    """Returns the kinds that `all` leaves out on these nodes, each with the nodes and what they lack.

    Args:
        capabilities: The capabilities of the nodes.
        text: The request; the result does not have the kinds that it leaves out itself.
        nodes: The names of all nodes; None: they are enough for each kind.
    """
    found = []
    without = excluded(parts_of(text), of_all())
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
    """Returns the kinds that some of these nodes do not support."""
    return frozenset(kind.name for kind in all_kinds().values() if _gaps(kind, capabilities))


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
    needed = dict.fromkeys((fault.kind, ROLE in fault.options) for fault in faults)
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
    kind: Kind, capabilities: Mapping[str, Capabilities], nodes: Sequence[Node] = (), *, at_role: bool = False
) -> list[_Gap]:
    gaps = []
    needs = sorted(kind.fault.needs(nodes, at_role=at_role))
    simulated = [node for node, can in capabilities.items() if SIMULATED in can.available]
    if simulated and needs and kind.fault.SIMULATED is None:
        reason = (
            f"the kind {kind.name} has no effect in the simulator; docs/guide/new-fault.md describes how to add one"
        )
        gaps += [
            _Gap(capability="a simulated effect", node=node, reason=reason, instead=None, instead_reason="")
            for node in simulated
        ]
    effect_needs = kind.fault.SIMULATED.NEEDS if simulated and kind.fault.SIMULATED is not None else frozenset()
    for capability in sorted(
        effect_needs | kind.fault.OF_SYSTEM | ({LEADER} if kind.target in tgt.BY_LEADER else set())
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
