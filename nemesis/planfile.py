"""Writes plans as JSON, and reads plans that may have been edited by hand.

The same plan always gives the same bytes. `from_json` checks a plan as a whole before a run changes any node. Unknown keys,
kinds, targets and options are errors with a suggestion. The nodes must be those of the cluster, and times must be consistent.
Two faults of one group must not share a node. Permanent damage can affect at most a minority of the nodes.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct, to_builtins

from harness.console.documents import parse_json, shown
from harness.console.members import read
from harness.console.parameters import MAX_RUN_S, MAX_SEED
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.faults import PlannedFault
from harness.targets import NAME_SEPARATOR, AtTrigger, ByLeader, Named
from harness.targets import to_json as target_json
from nemesis import targets as tgt
from nemesis.conflicts import check_together, check_turns
from nemesis.errors import PlanError
from nemesis.fault import Hit
from nemesis.kinds import find_kind, members_of
from nemesis.lacking import LeftOut
from nemesis.plan import number
from nemesis.triggers import check_target, make_trigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.faults import FaultRecord, Trigger
    from harness.targets import PlanTarget

FORMAT: Final = "labrys-plan"
VERSION: Final = 3
MAX_BYTES: Final = 10_000_000
MAX_FAULTS: Final = 100_000

Seconds = Annotated[float, Meta(ge=0, le=MAX_RUN_S)]


class StoredTrigger(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The condition with which a fault begins; see `harness.faults.Trigger`."""

    name: str
    limit_s: Annotated[float, Meta(ge=0.001, le=MAX_RUN_S)]
    parameters: dict[str, Any] = {}


class StoredFault(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault; see `harness.faults.PlannedFault`."""

    id: int | None = None
    kind: str
    target: str | list[str]
    start_s: Seconds
    end_s: Seconds
    trigger: StoredTrigger | None = None
    role: str | None = None
    order: list[str] = []
    options: dict[str, Any] = {}


class StoredLeftOut(Struct, frozen=True, kw_only=True):
    """A kind that `all` left out; see `nemesis.lacking.LeftOut`."""

    kind: str
    nodes: list[str]
    missing: str


class StoredHead(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan without its faults; see `Plan`."""

    format: str | None = None
    version: int | None = None
    nodes: list[str] | None = None
    roles: dict[str, list[str]] = {}
    seed: Annotated[int, Meta(ge=0, le=MAX_SEED)] | None = None
    time_limit_s: Annotated[float, Meta(ge=1, le=MAX_RUN_S)] | None = None
    in_turn: bool = False
    left_out: list[StoredLeftOut] = []


class StoredPlan(StoredHead, frozen=True, kw_only=True, omit_defaults=True):
    """A plan; see `Plan`."""

    faults: Annotated[list[StoredFault], Meta(max_length=MAX_FAULTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan.

    Attributes:
        layout: The nodes of the plan, and the nodes of each role. A file has the roles only if a fault is aimed at one.
        seed: The root seed that it was drawn from; None if it was written by hand.
        time_limit_s: The duration of the workload; None if the file has none.
        faults: The faults, in the order of their start.
        left_out: The kinds that `all` left out when the plan was drawn.
        in_turn: Whether a fault waits for the end of the one before it, if that one ends late.
    """

    layout: tgt.Layout
    seed: int | None
    time_limit_s: float | None
    faults: tuple[PlannedFault, ...]
    left_out: tuple[LeftOut, ...] = ()
    in_turn: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        """Returns the names of the nodes, in order."""
        return self.layout.nodes


def to_json(plan: Plan) -> str:
    """Returns the plan as JSON text, with one line for each fault."""
    at_role = any(fault.role is not None for fault in plan.faults)
    head = StoredHead(
        format=FORMAT,
        version=VERSION,
        nodes=list(plan.nodes),
        roles={role: list(names) for role, names in plan.layout.roles.items()} if at_role else {},
        seed=plan.seed,
        time_limit_s=plan.time_limit_s,
        in_turn=plan.in_turn,
        left_out=[
            StoredLeftOut(kind=left.kind, nodes=list(left.nodes), missing=left.missing) for left in plan.left_out
        ],
    )
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in to_builtins(head).items()]
    faults = ",\n".join(f"    {json.dumps(to_builtins(_stored(fault)))}" for fault in plan.faults)
    body = f"[\n{faults}\n  ]" if faults else "[]"
    return "\n".join(["{", *lines, f'  "faults": {body}', "}\n"])


def _stored(fault: PlannedFault) -> StoredFault:
    trigger = fault.trigger
    return StoredFault(
        id=fault.id,
        kind=fault.kind,
        target=target_json(fault.target),
        start_s=fault.start_s,
        end_s=fault.end_s,
        trigger=None
        if trigger is None
        else StoredTrigger(name=trigger.name, limit_s=trigger.limit_s, parameters=dict(trigger.parameters)),
        role=fault.role,
        order=list(fault.order),
        options={name: fault.options[name] for name in sorted(fault.options)},
    )


def from_json(text: str, *, where: tgt.Layout, source: str) -> Plan:
    """Reads a plan, and checks that it is possible on these nodes.

    Ids can be missing or have gaps, for example if a user removed a fault. The faults get dense ids in the order of their
    start.

    Args:
        text: The JSON text.
        where: The nodes of the cluster, and the nodes of each role; without roles, those in the plan count.
        source: The name of the file, for messages.

    Raises:
        PlanError: A part of the plan is not valid; the message names the part and its place.
    """
    try:
        return _plan(_parse(text, source), where)
    except InputError as error:
        raise PlanError(f"{source}: {str(error).removeprefix(f'{source}: ')}") from error


def _plan(top: Any, where: tgt.Layout) -> Plan:
    """Returns the plan of a document."""
    stored = read(top, StoredPlan, "")
    _check_nodes(stored.nodes, where.nodes)
    own = _own_layout(stored.roles, where.nodes)
    where = where if where.roles else own
    faults = number(_fault(fault, where, f"faults[{index}]") for index, fault in enumerate(stored.faults))
    check_together(faults, where)
    if stored.in_turn:
        check_turns(faults)
    return Plan(
        layout=where,
        seed=stored.seed,
        time_limit_s=stored.time_limit_s,
        faults=faults,
        left_out=_left_out(stored.left_out),
        in_turn=stored.in_turn,
    )


def check_end(plan: Plan, time_limit_s: float, *, source: str) -> None:
    """Refuses a plan with a fault that ends after its run.

    Args:
        plan: The plan.
        time_limit_s: The duration of the workload.
        source: The name of the plan's file, for the message.

    Raises:
        PlanError: There is such a fault; the message has both times.
    """
    late = max(plan.faults, key=lambda fault: fault.end_s, default=None)
    if late is not None and late.end_s > time_limit_s:
        raise PlanError(
            f"{source}: {late.kind} from {late.start_s:g} to {late.end_s:g} s ends after the run, which ends at "
            f"{time_limit_s:g} s. End the fault earlier, or give --time-limit {math.ceil(late.end_s)}."
        )


def by_name(faults: Iterable[PlannedFault], records: Iterable[FaultRecord]) -> tuple[PlannedFault, ...]:
    """Replaces every target that the start of a fault decides by the nodes that were affected in the run.

    Args:
        faults: The plan.
        records: The records of the plan's faults in the run.
    """
    hit = {record.planned.id: tuple(record.targets) for record in records}
    return tuple(
        replace(fault, target=Named(hit[fault.id]))
        if isinstance(fault.target, ByLeader | AtTrigger) and hit.get(fault.id)
        else fault
        for fault in faults
    )


def _parse(text: str, source: str) -> Any:
    """Returns the document in a text, with known keys only."""
    if len(text) > MAX_BYTES:
        raise PlanError(f"{len(text)} characters are no plan; at most {MAX_BYTES} are read")
    top = parse_json(text, source)
    if isinstance(top, dict) and "faults" not in top:
        top = top.get("plan", top)  # the output of `labrys plan --format json` has the plan under this key
    if not isinstance(top, dict):
        raise PlanError("expected an object with the key 'faults' at the top")
    form, version = top.get("format", FORMAT), top.get("version", VERSION)
    if form != FORMAT or version != VERSION:
        raise PlanError(f"expected format {FORMAT!r} version {VERSION}, found {shown(form)} version {shown(version)}")
    _check_keys(top, StoredPlan, "")
    for key, form in (("faults", StoredFault), ("left_out", StoredLeftOut)):
        items = top.get(key)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            _check_keys(item, form, f"{key}[{index}]: ")
            if isinstance(item, dict):
                _check_keys(item.get("trigger"), StoredTrigger, f"{key}[{index}].trigger: ")
    return top


def _check_keys(item: Any, form: type[Struct], where: str) -> None:
    """Refuses keys that a form does not have, as they may be misspelled. What is no object has none."""
    for key in item if isinstance(item, dict) else ():
        if key not in form.__struct_fields__:
            raise PlanError(f"{where}unknown key {shown(key)}. {did_you_mean(key, form.__struct_fields__)}")


def _fault(stored: StoredFault, layout: tgt.Layout, where: str) -> PlannedFault:
    if stored.end_s <= stored.start_s:
        raise PlanError(f"{where}: it ends at {stored.end_s:g} s, which is not after its start at {stored.start_s:g} s")
    trigger = _trigger(stored.trigger, f"{where}.trigger")
    if trigger is not None and trigger.limit_s >= stored.end_s - stored.start_s:
        raise PlanError(
            f"{where}: it waits for {trigger.limit_s:g} s, which must be less than its "
            f"{stored.end_s - stored.start_s:g} s in all"
        )
    try:
        role, target = _aim(stored, layout)
        return _checked(stored, trigger, role, target, layout)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error


def _trigger(stored: StoredTrigger | None, where: str) -> Trigger | None:
    if stored is None:
        return None
    try:
        return make_trigger(stored.name, stored.limit_s, stored.parameters)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error


def _checked(
    stored: StoredFault, trigger: Trigger | None, role: str | None, given: tgt.Target, where: tgt.Layout
) -> PlannedFault:
    """Checks a fault as far as possible without the cluster, and returns it."""
    kind = find_kind(stored.kind)
    nodes = members_of(kind, role, where)
    target = _of_plan(kind.name, given)
    kind.fault.check_target(kind.name, target, nodes)
    check_target(kind.name, target, trigger)
    order = tuple(stored.order) or (nodes if isinstance(target, ByLeader) else ())
    if order and sorted(order) != sorted(nodes):
        raise PlanError(f"its order must name every node once: {', '.join(nodes)}")
    options = kind.fault.settle(kind.name, stored.options)
    some = nodes[0]  # any node serves to check that the fault is possible
    targets = tgt.resolve(target, nodes, order=order, leader=some, fired_on=some)
    kind.fault.impact(Hit(nodes=nodes, targets=targets, order=order or nodes), options)
    return PlannedFault(
        id=0,
        kind=kind.name,
        target=target,
        start_s=stored.start_s,
        end_s=stored.end_s,
        trigger=trigger,
        role=role,
        order=order,
        options=options,
    )


def _of_plan(kind: str, target: tgt.Target) -> PlanTarget:
    """Returns a target of a plan.

    Raises:
        PlanError: The seed would have to draw it.
    """
    if isinstance(target, tgt.Counted):
        raise PlanError(
            f"{kind} in a plan is aimed at nodes by name, at 'all', or at one of {', '.join(map(str, tgt.AT_START))}, "
            f"not at '{target}'"
        )
    return target


def _aim(stored: StoredFault, where: tgt.Layout) -> tuple[str | None, tgt.Target]:
    """Returns the role and the target of a fault. The target is a text as on the command line, or a list of nodes."""
    given, role = stored.target, stored.role
    if role is None and isinstance(given, str):
        roles, target = tgt.placed(tgt.parse_aim(given), where)
        if len(roles) > 1:
            raise PlanError(f"{shown(given)} names several roles; write a fault for each, with the same times")
        role = next(iter(roles), None)
        if target is None:
            raise PlanError(f"{shown(given)} names a role without nodes; write e.g. {role}{NAME_SEPARATOR}{tgt.ALL}")
        return role, target
    return role, _target(given, where.of(role))


def _target(given: str | list[str], nodes: Sequence[str]) -> tgt.Target:
    if isinstance(given, str):
        return tgt.parse_target(given, nodes)
    words = [name for name in given if name in tgt.WORDS and name not in nodes]
    if words and len(given) > 1:
        raise PlanError(f'a list holds node names; write "target": "{words[0]}" alone')
    return tgt.WORDS[words[0]] if words else Named(tgt.check_names(given, nodes))


def _check_nodes(given: Sequence[str] | None, nodes: Sequence[str]) -> None:
    if given is not None and list(given) != list(nodes):
        raise PlanError(
            f"the plan is for the nodes {', '.join(given)}, and the cluster has {', '.join(nodes)}, in this order. "
            "Run it on the nodes of the plan (--nodes sets the size of a local cluster), or draw a plan for these nodes."
        )


def _own_layout(roles: Mapping[str, Sequence[str]], nodes: Sequence[str]) -> tgt.Layout:
    """Returns the layout with the roles of a plan."""
    for role, names in roles.items():
        if not names or not set(names) <= set(nodes):
            raise PlanError(f"roles.{role}: expected names of nodes among {', '.join(nodes)}, found {shown(names)}")
    return tgt.layout(nodes, roles)


def _left_out(stored: Sequence[StoredLeftOut]) -> tuple[LeftOut, ...]:
    kinds: dict[str, LeftOut] = {}
    for index, left in enumerate(stored):
        where = f"left_out[{index}]"
        try:
            name = find_kind(left.kind).name
        except PlanError as error:
            raise PlanError(f"{where}: {error}") from error
        if name in kinds:
            raise PlanError(f"{where}: {name} was left out twice")
        kinds[name] = LeftOut(kind=name, nodes=tuple(left.nodes), missing=left.missing)
    return tuple(kinds.values())
