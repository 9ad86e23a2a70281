"""Writes plans as JSON, and reads plans that may have been edited by hand.

The same plan always gives the same bytes. `from_json` checks a plan as a whole before a run changes any node. Unknown keys,
kinds, targets and options are errors with a suggestion. The nodes must be those of the cluster, and times must be consistent.
Two faults of one group must not share a node. Permanent damage can affect at most a minority of the nodes.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from harness.console.documents import parse_json, shown
from harness.console.parameters import MAX_RUN_S, MAX_SEED
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.faults import RARE_MESSAGE, ROLE, PlannedFault
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.fault import Occupied, too_damaged
from nemesis.kinds import LeftOut, find_kind, members_of
from nemesis.options import ORDER, own, settle
from nemesis.plan import number
from nemesis.triggers import check_target, make_trigger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.faults import FaultRecord, Trigger
    from harness.op import Value

FORMAT = "labrys-plan"
VERSION = 2
WITH_WAITS = 1  # plans of this version have a wait for a rare message, and no other triggers
MAX_BYTES = 10_000_000
MAX_FAULTS = 100_000
LEAST_S = 1.0
LEAST_LIMIT_S = 0.001
_TOP = ("format", "version", "nodes", "roles", "seed", "time_limit_s", "in_turn", "left_out", "faults")
_FAULT = ("id", "kind", "target", "start_s", "end_s", "trigger", "options")
_TRIGGER = ("name", "limit_s", "parameters")
_NEEDED = ("kind", "target", "start_s", "end_s")
# These stand for nodes without names. No name of a node begins with an asterisk.
_SOME = "*some"
_EVERY = "*every"
_LEFT_OUT = ("kind", "nodes", "missing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan.

    Attributes:
        nodes: The nodes of the plan, in order.
        seed: The root seed that it was drawn from; None if it was written by hand.
        time_limit_s: The duration of the workload; None if the file has none.
        faults: The faults, in the order of their start.
        left_out: The kinds that `all` left out when the plan was drawn.
        roles: The names of the nodes of each role. A file has them only if a fault has a role as its target.
        in_turn: Whether a fault waits for the end of the one before it, if that one ends late.
    """

    nodes: tuple[str, ...]
    seed: int | None
    time_limit_s: float | None
    faults: tuple[PlannedFault, ...]
    left_out: tuple[LeftOut, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    in_turn: bool = False


def to_json(plan: Plan) -> str:
    """Returns the plan as JSON text, with one line for each fault."""
    head: dict[str, Value] = {"format": FORMAT, "version": VERSION, "nodes": list(plan.nodes)}
    if any(ROLE in fault.options for fault in plan.faults):
        head["roles"] = {role: list(names) for role, names in plan.roles.items()}
    head |= {"seed": plan.seed, "time_limit_s": plan.time_limit_s}
    if plan.in_turn:
        head["in_turn"] = True
    if plan.left_out:
        head["left_out"] = [
            {"kind": left.kind, "nodes": list(left.nodes), "missing": left.missing} for left in plan.left_out
        ]
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in head.items()]
    faults = ",\n".join(f"    {json.dumps(fault_json(fault))}" for fault in plan.faults)
    body = f"[\n{faults}\n  ]" if faults else "[]"
    return "\n".join(["{", *lines, f'  "faults": {body}', "}\n"])


def fault_json(fault: PlannedFault) -> dict[str, Value]:
    """Returns one fault as JSON-like data."""
    return {
        "id": fault.id,
        "kind": fault.kind,
        "target": fault.target if isinstance(fault.target, str) else list(fault.target),
        "start_s": fault.start_s,
        "end_s": fault.end_s,
        **({} if fault.trigger is None else {"trigger": fault.trigger.to_json()}),
        "options": {name: fault.options[name] for name in sorted(fault.options)},
    }


def from_json(
    text: str, *, nodes: Sequence[str], source: str, roles: Mapping[str, Sequence[str]] | None = None
) -> Plan:
    """Reads a plan, and checks that it is possible on these nodes.

    Ids can be missing or have gaps, for example if a user removed a fault. The faults get dense ids in the order of their
    start.

    Args:
        text: The JSON text.
        nodes: The names of the cluster's nodes, in order.
        source: The name of the file, for messages.
        roles: The names of the nodes of each role; None: those in the plan.

    Raises:
        PlanError: A part of the plan is not valid; the message names the part and its place.
    """
    top = _parse(text, source)
    _keys(top, _TOP, ("faults",), f"{source}")
    form, version = top.get("format", FORMAT), top.get("version", VERSION)
    if form != FORMAT or version not in (VERSION, WITH_WAITS):
        raise PlanError(
            f"{source}: expected format {FORMAT!r} version {WITH_WAITS} or {VERSION}, not {shown(form)} version "
            f"{shown(version)}"
        )
    seed, time_limit_s = top.get("seed"), top.get("time_limit_s")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED):
        raise PlanError(f"{source}: the seed must be a whole number from 0 to {MAX_SEED}, or null, not {shown(seed)}")
    if time_limit_s is not None:
        time_limit_s = _seconds(time_limit_s, f"{source}: time_limit_s", least_s=LEAST_S)
    in_turn = top.get("in_turn", False)
    if not isinstance(in_turn, bool):
        raise PlanError(f"{source}: in_turn must be true or false, not {shown(in_turn)}")
    _check_nodes(top.get("nodes"), nodes, source)
    own_roles = _roles(top.get("roles", {}), nodes, source)
    where = tgt.layout(nodes, own_roles if roles is None else roles)
    if not isinstance(top["faults"], list):
        raise PlanError(f"{source}: faults must be a list")
    if len(top["faults"]) > MAX_FAULTS:
        raise PlanError(f"{source}: {len(top['faults'])} faults are too many; a plan has at most {MAX_FAULTS}")
    items = _with_triggers(top["faults"], source) if version == WITH_WAITS else top["faults"]
    faults = number(_fault(item, where, f"{source}: faults[{index}]") for index, item in enumerate(items))
    _check_together(faults, where, source)
    if in_turn:
        _check_turns(faults, source)
    left_out = _left_out(top.get("left_out", []), source)
    return Plan(
        nodes=tuple(nodes),
        seed=seed,
        time_limit_s=time_limit_s,
        faults=faults,
        left_out=left_out,
        roles=where.roles,
        in_turn=in_turn,
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
    """Replaces every target that the start of a fault resolves by the nodes that were affected in the run.

    Args:
        faults: The plan.
        records: The records of the plan's faults in the run.
    """
    hit = {record.planned.id: tuple(record.targets) for record in records}
    return tuple(
        replace(fault, target=hit[fault.id]) if tgt.at_start(fault.target) and hit.get(fault.id) else fault
        for fault in faults
    )


def _parse(text: str, source: str) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        raise PlanError(f"{source}: {len(text)} characters are no plan; at most {MAX_BYTES} are read")
    try:
        top = parse_json(text, source)
    except InputError as error:
        raise PlanError(str(error)) from error
    if isinstance(top, dict) and "faults" not in top:
        top = top.get("plan", top)  # the output of `labrys plan --format json` has the plan under this key
    if not isinstance(top, dict):
        raise PlanError(f"{source}: expected an object with the key 'faults' at the top")
    return top


def _fault(item: Any, layout: tgt.Layout, where: str) -> PlannedFault:
    if not isinstance(item, dict):
        raise PlanError(f"{where}: expected an object with the keys {', '.join(_NEEDED)}")
    _keys(item, _FAULT, _NEEDED, where)
    start_s = _seconds(item["start_s"], f"{where}: start_s")
    end_s = _seconds(item["end_s"], f"{where}: end_s")
    if end_s <= start_s:
        raise PlanError(f"{where}: it ends at {end_s:g} s, which is not after its start at {start_s:g} s")
    trigger = _trigger(item.get("trigger"), f"{where}: trigger")
    if trigger is not None and trigger.limit_s >= end_s - start_s:
        raise PlanError(
            f"{where}: it waits for {trigger.limit_s:g} s, which must be less than its {end_s - start_s:g} s in all"
        )
    options = item.get("options", {})
    if not isinstance(item["kind"], str) or not isinstance(options, dict):
        raise PlanError(f"{where}: the kind must be a text and the options an object")
    try:
        role, target = _aim(item["target"], options.get(ROLE), layout)
        checked = _checked(item["kind"], target, role, options, layout, start_s=start_s, end_s=end_s)
        check_target(checked.kind, checked.target, trigger)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error
    return replace(checked, trigger=trigger)


def _with_triggers(items: Sequence[Any], source: str) -> list[Any]:
    """Returns the faults of version 1, with the trigger `rare-message` in place of each wait."""
    found = []
    for index, item in enumerate(items):
        where = f"{source}: faults[{index}]"
        if not isinstance(item, dict) or "wait_s" not in item:
            found.append(item)
            continue
        wait_s = _seconds(item["wait_s"], f"{where}: wait_s")
        rest = {key: value for key, value in item.items() if key != "wait_s"}
        found.append(rest | ({"trigger": {"name": RARE_MESSAGE, "limit_s": wait_s}} if wait_s else {}))
    return found


def _trigger(given: Any, where: str) -> Trigger | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise PlanError(f"{where}: expected an object with the keys {', '.join(_TRIGGER)}, or null, not {shown(given)}")
    _keys(given, _TRIGGER, ("name", "limit_s"), where)
    name, parameters = given["name"], given.get("parameters", {})
    if not isinstance(name, str) or not isinstance(parameters, dict):
        raise PlanError(f"{where}: the name must be a text and the parameters an object")
    limit_s = _seconds(given["limit_s"], f"{where}: limit_s", least_s=LEAST_LIMIT_S)
    try:
        return make_trigger(name, limit_s, parameters)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error


def _checked(
    name: str,
    given: str | tuple[str, ...],
    role: str | None,
    options: dict[str, Value],
    where: tgt.Layout,
    *,
    start_s: float,
    end_s: float,
) -> PlannedFault:
    """Checks a fault as far as possible without the cluster, and returns it."""
    kind = find_kind(name)
    nodes = members_of(kind, role, where)
    if isinstance(given, str) and given not in (*tgt.AT_START, tgt.ALL):
        raise PlanError(
            f"{kind.name} in a plan is aimed at nodes by name, at 'all', or at one of {', '.join(tgt.AT_START)}, "
            f"not at {given!r}"
        )
    target = kind.fault.check_target(kind.name, given, nodes)
    order = options.get(ORDER, list(nodes))
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(nodes):
        raise PlanError(f"the option 'order' must name every node once: {', '.join(nodes)}")
    settled = settle(kind.name, kind.fault.OPTIONS, own(options))
    if ORDER in options or tgt.by_leader(target):
        settled[ORDER] = order
    if role is not None:
        settled[ROLE] = role
    some = nodes[0]  # any node serves to check that the fault is possible
    kind.fault.impact(nodes, tgt.resolve(target, nodes, order=order, leader=some, met=some), settled)
    return PlannedFault(id=0, kind=kind.name, target=target, start_s=start_s, end_s=end_s, options=settled)


def _aim(given: Any, role: Any, where: tgt.Layout) -> tuple[str | None, str | tuple[str, ...]]:
    """Returns the role and the target of a fault. `given` is a text as on the command line, or a list of nodes with a role."""
    if role is not None and not isinstance(role, str):
        raise PlanError(f"a role is a text, not {shown(role)}")
    if role is None and isinstance(given, str):
        roles, target = tgt.parse_aim(given, where)
        if len(roles) > 1:
            raise PlanError(f"{shown(given)} names several roles; write a fault for each, with the same times")
        role = next(iter(roles), None)
        if target is None:
            raise PlanError(
                f"{shown(given)} names a role without nodes; write e.g. {role}{tgt.NAME_SEPARATOR}{tgt.ALL}"
            )
        return role, target
    return role, _target(given, where.of(role))


def _target(given: Any, nodes: Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(given, str):
        return tgt.parse_target(given, nodes)
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        specs = [name for name in given if name in tgt.WORDS and name not in nodes]
        if specs and len(given) > 1:
            raise PlanError(f'a list holds node names; write "target": "{specs[0]}" alone')
        return specs[0] if specs else tgt.check_names(given, nodes)
    raise PlanError(f"a target is a text or a list of node names, not {shown(given)}")


def _keys(item: Mapping[str, Any], known: Sequence[str], needed: Sequence[str], where: str) -> None:
    for key in item:
        if key not in known:
            raise PlanError(f"{where}: unknown key {shown(key)}. {did_you_mean(key, known)}")
    for key in needed:
        if key not in item:
            raise PlanError(f"{where}: the key {key!r} is missing")


def _seconds(value: Any, where: str, *, least_s: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least_s <= value <= MAX_RUN_S:
        raise PlanError(
            f"{where} must be a number of seconds, {least_s:g} or more and at most {MAX_RUN_S:g}, not {shown(value)}"
        )
    return float(value)


def _check_nodes(given: Any, nodes: Sequence[str], source: str) -> None:
    if given is None:
        return
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise PlanError(f"{source}: nodes must be a list of names, not {shown(given)}")
    if given != list(nodes):
        raise PlanError(
            f"{source}: the plan is for the nodes {', '.join(given)}, and the cluster has {', '.join(nodes)}, in this order. "
            "Run it on the nodes of the plan (--nodes sets the size of a local cluster), or draw a plan for these nodes."
        )


def _roles(given: Any, nodes: Sequence[str], source: str) -> dict[str, tuple[str, ...]]:
    known = isinstance(given, dict) and all(
        isinstance(names, list) and names and all(name in nodes for name in names) for names in given.values()
    )
    if not known:
        raise PlanError(f"{source}: roles must be an object of lists of node names, not {shown(given)}")
    return {role: tuple(names) for role, names in given.items()}


def _left_out(given: Any, source: str) -> tuple[LeftOut, ...]:
    if not isinstance(given, list):
        raise PlanError(f"{source}: left_out must be a list of objects with the keys {', '.join(_LEFT_OUT)}")
    found: dict[str, LeftOut] = {}
    for index, item in enumerate(given):
        where = f"{source}: left_out[{index}]"
        if not isinstance(item, dict):
            raise PlanError(f"{where}: expected an object with the keys {', '.join(_LEFT_OUT)}")
        _keys(item, _LEFT_OUT, _LEFT_OUT, where)
        kind, names, missing = (item[key] for key in _LEFT_OUT)
        if not isinstance(kind, str) or not isinstance(missing, str):
            raise PlanError(f"{where}: the kind and what is missing must be texts")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise PlanError(f"{where}: nodes must be a list of names, not {shown(names)}")
        try:
            name = find_kind(kind).name
        except PlanError as error:
            raise PlanError(f"{where}: {error}") from error
        if name in found:
            raise PlanError(f"{where}: {name} was left out twice")
        found[name] = LeftOut(kind=name, nodes=tuple(names), missing=missing)
    return tuple(found.values())


def _check_together(faults: Sequence[PlannedFault], where: tgt.Layout, source: str) -> None:
    # For each group, role and node, the fault with the latest end.
    holders: dict[tuple[str, str | None, str], PlannedFault] = {}
    for later in faults:
        groups, role = find_kind(later.kind).fault.GROUPS, later.options.get(ROLE)
        names = () if isinstance(later.target, str) else later.target
        rivals = [_SOME] if later.target == tgt.ALL else [_EVERY, *names]
        roles = {None, role} if role else {None, *where.roles}
        for fault in (holders[held] for held in itertools.product(groups, roles, rivals) if held in holders):
            shared = _shared(fault, later, where) if later.start_s < fault.end_s else []
            if shared:
                raise PlanError(
                    f"{source}: {fault.kind} from {fault.start_s:g} to {fault.end_s:g} s and {later.kind} from "
                    f"{later.start_s:g} s both hold {', '.join(shared)}; let one end before the other begins"
                )
        own_names = [_SOME, *([_EVERY] if later.target == tgt.ALL else names)]
        for held in itertools.product(groups, (role,), own_names):
            if held not in holders or holders[held].end_s < later.end_s:
                holders[held] = later
    damaged: dict[str | None, set[str]] = {}
    for fault in faults:
        if find_kind(fault.kind).fault.DAMAGES:
            damaged.setdefault(fault.options.get(ROLE), set()).update(fault.target)
    refusal = too_damaged(where, damaged)
    if refusal:
        raise PlanError(f"{source}: {refusal}")


def _check_turns(faults: Sequence[PlannedFault], source: str) -> None:
    for fault, later in itertools.pairwise(faults):
        if later.start_s < fault.end_s and not later.goes_with(fault):
            raise PlanError(
                f"{source}: {fault.kind} ends at {fault.end_s:g} s and {later.kind} begins at {later.start_s:g} s, but the "
                "plan has in_turn; let one end before the other begins, or remove in_turn"
            )


def _shared(one: PlannedFault, other: PlannedFault, where: tgt.Layout) -> list[str]:
    own, others = _occupied(one, where), _occupied(other, where)
    if tgt.ALL in {one.target, other.target} and own.role == others.role and own.meets(others):
        return ["all nodes"]
    return sorted(own.shared(others))


def _occupied(fault: PlannedFault, where: tgt.Layout) -> Occupied:
    role = fault.options.get(ROLE)
    names = where.of(role) if fault.target == tgt.ALL else () if tgt.at_start(fault.target) else fault.target
    return Occupied(groups=find_kind(fault.kind).fault.GROUPS, role=role, nodes=frozenset(names))
