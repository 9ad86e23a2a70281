"""The targets of faults: nodes by number, by leadership or by name, and processes by role.

Drawing a plan turns a target that the seed decides into names. The start of the fault resolves a target that depends on the
leader, or on what fired the trigger of the fault. For a leader, the plan has an order of the nodes, drawn from the seed. So the
same seed and the same leader give the same nodes. Sizes are exact for even numbers of nodes too. With a role, only the nodes
with a process of that role count.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from harness.console.documents import shown
from harness.console.plain import counted
from harness.console.suggest import did_you_mean
from harness.targets import NAME_SEPARATOR, AllNodes, AtTrigger, ByLeader, Helix, Lead, Named, PlanTarget
from nemesis.errors import PlanError
from nemesis.grudges import majority, minority

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from random import Random


class Count(StrEnum):
    """How many nodes the seed draws for a target."""

    ONE = "one"
    RANDOM = "random"
    MINORITY = "minority"
    MAJORITY = "majority"


@dataclass(frozen=True, slots=True)
class Counted:
    """So many nodes, which the seed draws with the plan. A plan has their names in its place."""

    count: Count

    def __str__(self) -> str:
        """Returns its word."""
        return str(self.count)


Target: TypeAlias = PlanTarget | Counted


@dataclass(frozen=True, slots=True)
class Words:
    """Roles, and names of nodes or a target after them. Only the nodes of a run tell which is which."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        """Returns its form on the command line, e.g. `broker+n1`."""
        return NAME_SEPARATOR.join(self.words)


Aim: TypeAlias = Target | Words

ALL: Final = AllNodes()
HELIX: Final = Helix()
ONE: Final = Counted(Count.ONE)
RANDOM: Final = Counted(Count.RANDOM)
MINORITY: Final = Counted(Count.MINORITY)
MAJORITY: Final = Counted(Count.MAJORITY)
LEADER: Final = ByLeader(Lead.LEADER)
LEADER_MINORITY: Final = ByLeader(Lead.LEADER_MINORITY)
FOLLOWER: Final = ByLeader(Lead.FOLLOWER)
FOLLOWERS: Final = ByLeader(Lead.FOLLOWERS)
TRIGGER: Final = AtTrigger()

AT_START: Final[tuple[Target, ...]] = (LEADER, LEADER_MINORITY, FOLLOWER, FOLLOWERS, TRIGGER)
EVERY: Final[tuple[Target, ...]] = (ALL, ONE, RANDOM, MINORITY, MAJORITY, *AT_START)
WORDS: Final[Mapping[str, Target]] = {str(target): target for target in (*EVERY, HELIX)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The nodes, and the roles of their processes.

    Attributes:
        nodes: The names of all nodes, in order.
        roles: The names of the nodes of each role, in order; empty if the system's processes are not known.
    """

    nodes: tuple[str, ...]
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, role: str | None) -> tuple[str, ...]:
        """Returns the nodes that run a role; all nodes for None.

        Raises:
            PlanError: The role is unknown; the message names the known roles.
        """
        if role is None:
            return self.nodes
        if role not in self.roles:
            raise PlanError(f"unknown role {shown(role)}; {self.known()}")
        return self.roles[role]

    def known(self) -> str:
        """Returns the known roles as a text."""
        if not self.roles:
            return "the system names no roles"
        return "the roles are: " + "; ".join(f"{role} on {', '.join(names)}" for role, names in self.roles.items())

    def counted(self) -> Sequence[tuple[str | None, tuple[str, ...]]]:
        """Returns the sets of nodes for counting majorities: each role with its nodes; without roles, None with all nodes."""
        return list(self.roles.items()) or [(None, self.nodes)]


def layout(nodes: Sequence[str], roles: Mapping[str, Sequence[str]] | None = None) -> Layout:
    """Returns the layout of nodes and roles."""
    named = {role: tuple(node for node in nodes if node in set(names)) for role, names in (roles or {}).items()}
    return Layout(nodes=tuple(nodes), roles=named)


def _plurals(role: str) -> tuple[str, ...]:
    """Returns the plurals of a role's name, which are accepted too."""
    return (f"{role}s", f"{role}es", f"{role[:-1]}ies") if role.endswith("y") else (f"{role}s", f"{role}es")


def parse_aim(text: str) -> Aim:
    """Parses the text after a kind: a target, or words that only the nodes of a run give a meaning; see `placed`."""
    return WORDS.get(text) or Words(tuple(text.split(NAME_SEPARATOR)))


def placed(aim: Aim, where: Layout) -> tuple[tuple[str, ...], Target | None]:
    """Finds the roles and the target of an aim: a target, or roles and a target among the nodes of each role.

    Returns:
        The roles, empty without one; and the target, or None if there are only roles.

    Raises:
        PlanError: A word is neither, or is ambiguous. The message has a suggestion.
    """
    rest = list(aim.words) if isinstance(aim, Words) else str(aim).split(NAME_SEPARATOR)
    roles: list[str] = []
    while rest and (role := _role_called(rest[0], where)) is not None:
        if role in roles:
            raise PlanError(f"a target names the role {role} twice: {shown(str(aim))}")
        roles.append(role)
        rest = rest[1:]
    if not isinstance(aim, Words):
        return (), aim
    if not roles:
        return (), Named(check_names(rest, where.nodes, roles=where.roles))
    if not rest:
        return tuple(roles), None
    for name, role in itertools.product(rest, roles):
        if name in where.nodes and name not in where.roles[role]:
            raise PlanError(f"{name} runs no {role}; {', '.join(where.roles[role])} {_verb(where.roles[role])}")
    targets = [parse_target(NAME_SEPARATOR.join(rest), where.roles[role]) for role in roles]
    return tuple(roles), targets[0]


def _role_called(word: str, where: Layout) -> str | None:
    """Returns the role with this name or plural; None if there is none.

    Raises:
        PlanError: The word is also the name of a node, or a target.
    """
    role = next((role for role in where.roles if word == role or word in _plurals(role)), None)
    if role is not None and (word in where.nodes or word in WORDS):
        what = "the name of a node" if word in where.nodes else "a target"
        raise PlanError(f"{word!r} is {what}, and it means a role of the system too; rename one of them")
    return role


def _verb(names: Sequence[str]) -> str:
    return "does" if len(names) == 1 else "do"


def parse_target(text: str, nodes: Sequence[str]) -> Target:
    """Parses a target: a word, or node names joined by `+`.

    Raises:
        PlanError: It is neither. The message has a suggestion.
    """
    if text in WORDS:
        return WORDS[text]
    return Named(check_names(text.split(NAME_SEPARATOR), nodes))


def check_names(names: Sequence[str], nodes: Sequence[str], *, roles: Iterable[str] = ()) -> tuple[str, ...]:
    """Checks names of nodes, and returns them.

    Args:
        names: The given names.
        nodes: The possible nodes.
        roles: The roles that could be first in the text, for the suggestion.

    Raises:
        PlanError: A name is not a node, or occurs twice, or there is none. The message has a suggestion.
    """
    roles = tuple(roles)
    if not names:
        raise PlanError("a target names no node")
    for name in names:
        if name not in nodes and name in WORDS:
            raise PlanError(
                f"{name!r} stands alone: a target is names of nodes ({', '.join(nodes)}), or {name!r} without any other"
            )
        if name not in nodes:
            raise PlanError(f"unknown target {shown(name)}. {did_you_mean(name, [*WORDS, *roles, *nodes])}")
    if len(set(names)) != len(names):
        raise PlanError(f"a target names a node twice: {', '.join(names)}")
    return tuple(names)


def no_minority(nodes: Sequence[str]) -> str:
    """Returns that so few nodes have no minority, as a clause."""
    return f"{counted(len(nodes), 'node')} {'has' if len(nodes) == 1 else 'have'} no minority"


def draw(
    target: Counted | AllNodes | Helix | Named,
    nodes: Sequence[str],
    rng: Random,
    *,
    at_most: int | None = None,
    taken: AbstractSet[str] = frozenset(),
    ended_s: Mapping[str, float] | None = None,
) -> tuple[str, ...]:
    """Turns a target that the seed decides into names, in the nodes' order.

    Args:
        target: The target.
        nodes: All nodes, in order.
        rng: The fault's stream.
        at_most: The maximum number of nodes of `random`.
        taken: Nodes to draw only if the others are not enough. With them, `random` has fewer nodes, but at least one.
        ended_s: For each recently affected node, the time at which it is free. The draw always includes a node with the
            earliest time; nodes that are not here come before all others.

    Raises:
        PlanError: There are too few nodes for the target.
    """
    if isinstance(target, Named):
        return check_names(target.nodes, nodes)
    order = rng.sample(nodes, len(nodes))
    size = _size(target, nodes, rng, at_most)
    if size == 0:
        raise PlanError(f"{no_minority(nodes)}; choose the target '{ONE}' or '{ALL}'")
    free = [node for node in order if node not in taken]
    if target == RANDOM and free:
        size = min(size, len(free))
    chosen = [*free, *(node for node in order if node in taken)][:size]
    since = {node: (ended_s or {}).get(node, 0.0) for node in order}
    freshest = min(free or order, key=since.__getitem__)
    if all(since[node] > since[freshest] for node in chosen):
        chosen[-1] = freshest
    return _in_order(chosen, nodes)


def _size(target: Counted | AllNodes | Helix, nodes: Sequence[str], rng: Random, at_most: int | None) -> int:
    """Returns how many nodes a target has; `random` draws it."""
    if isinstance(target, AllNodes | Helix):
        return len(nodes)
    match target.count:
        case Count.ONE:
            return 1
        case Count.MINORITY:
            return minority(len(nodes))
        case Count.MAJORITY:
            return majority(len(nodes))
        case Count.RANDOM:
            return rng.randint(1, min(len(nodes), at_most or len(nodes)))
        case _:
            assert_never(target.count)


def resolve(
    target: PlanTarget,
    nodes: Sequence[str],
    *,
    order: Sequence[str] = (),
    leader: str | None = None,
    fired_on: str | None = None,
) -> tuple[str, ...]:
    """Turns a target in a plan into names: given names unchanged, a leader first, others in order.

    Args:
        target: The target.
        nodes: All nodes, in order.
        order: All nodes in the order of the plan; without one, in their own order.
        leader: The current leader; None if the target does not depend on it.
        fired_on: The node that the fault's trigger met; None if the target does not depend on it.

    Raises:
        PlanError: A target that depends on the leader or the trigger has none, or a name is no node.
    """
    match target:
        case Named(names):
            return check_names(names, nodes)
        case AllNodes() | Helix():
            return tuple(nodes)
        case AtTrigger():
            if fired_on is None or fired_on not in nodes:
                raise PlanError(
                    f"the target '{target}' needs the node of a trigger, one of {', '.join(nodes)}, not {fired_on}"
                )
            return (fired_on,)
        case ByLeader(lead):
            if leader is None:
                raise PlanError(f"the target '{target}' needs a leader, and no leader is known")
            return _by_leader(lead, leader, [node for node in order or nodes if node != leader], nodes)
        case _:
            assert_never(target)


def _by_leader(lead: Lead, leader: str, followers: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    match lead:
        case Lead.LEADER:
            return (leader,)
        case Lead.LEADER_MINORITY:
            return (leader, *_in_order(followers[: max(1, minority(len(nodes))) - 1], nodes))
        case Lead.FOLLOWER:
            return tuple(followers[:1])
        case Lead.FOLLOWERS:
            return _in_order(followers, nodes)
        case _:
            assert_never(lead)


def _in_order(names: Sequence[str], nodes: Sequence[str]) -> tuple[str, ...]:
    return tuple(node for node in nodes if node in names)
