"""The requested kinds of faults, with their roles, targets and options on these nodes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from harness.targets import NAME_SEPARATOR
from nemesis import targets as tgt
from nemesis.asked import AIM_SEPARATOR, Asked, EveryKind, KindOptions, Request
from nemesis.errors import PlanError
from nemesis.fault import Occupied
from nemesis.kinds import (
    Kind,
    excluded,
    find_called,
    members_of,
    of_all,
    registry,
    too_few,
)
from nemesis.lacking import gaps_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.capabilities import Capabilities
    from harness.op import Value
    from nemesis.targets import Target

logger = logging.getLogger(__name__)


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
            for kind in (kind for kind in able if not gaps_of(kind, capabilities or {})):
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
