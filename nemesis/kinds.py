"""The kinds of faults by name.

A kind is a class of faults with its actor for each world, and with a default target. On the command line, a kind can have
another target (`kill:minority`, `pause:n1+n3`, `kill:broker+leader`). Some kinds have variants, which are names with a target:
`leader-kill` is `kill:leader`. Kinds come by entry points of the group `labrys.faults`; those of Labrys are in
`nemesis.builtin`. An unknown name is an error with a suggestion.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.capabilities import SIMULATED_CALLS, SIMULATED_KERNEL, SIMULATED_SPEED
from harness.console import plugins
from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from nemesis.asked import AIM_SEPARATOR, ALL_KINDS, NO_KIND, WITHOUT, Request
from nemesis.errors import FaultError, PlanError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.world import World
    from nemesis.actor import Actor, OnNodes
    from nemesis.fault import Fault
    from nemesis.simulated.effect import Effect
    from nemesis.targets import Layout, Target

PAGE = "docs/guide/new-fault.md"
# What no node but a simulated one has, with the reason.
NEVER_REAL: Mapping[str, str] = MappingProxyType(
    {
        SIMULATED_CALLS: "Labrys lets system calls fail in the simulator only",
        SIMULATED_KERNEL: "Labrys changes the speed of disks in the simulator only",
        SIMULATED_SPEED: "Labrys changes the speed of clocks in the simulator only",
    }
)


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


def use(location: str) -> None:
    """Adds kinds that the user names by a place, `MODULE:NAME` or `FILE.py:NAME`, for the rest of the process.

    Raises:
        InputError: They cannot be loaded, or are no kinds.
    """
    plugins.add(plugins.FAULTS, location, Kind, page=PAGE)
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


def members_of(kind: Kind, role: str | None, where: Layout) -> tuple[str, ...]:
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
