"""Plans as JSON: printed, stored, edited by hand, read back, and replayed.

What is written is byte-identical for the same plan. What is read may have been edited by anyone, so it is checked as a
whole before any node is touched: unknown keys, kinds, targets and options are errors with a suggestion, times must make
sense, two faults may not hold the same thing on one node, and at most a minority of nodes may be damaged for good.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from harness.faults import PlannedFault
from harness.suggest import did_you_mean
from nemesis import targets as tgt
from nemesis.errors import PlanError
from nemesis.fault import without_order
from nemesis.grudges import minority
from nemesis.kinds import find_kind
from nemesis.options import ORDER, settle
from nemesis.plan import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from harness.faults import FaultRecord
    from harness.op import Value

FORMAT = "labrys-plan"
VERSION = 1
MAX_CHARACTERS = 10_000_000
_TOP = ("format", "version", "nodes", "seed", "time_limit_s", "faults")
_FAULT = ("id", "kind", "target", "start_s", "end_s", "options")
_NEEDED = ("kind", "target", "start_s", "end_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan as a file holds it.

    Attributes:
        nodes: The nodes it was drawn for, in order.
        seed: The root seed it was drawn from; None if it was written by hand.
        time_limit_s: How long its workload runs; None if it does not say.
        faults: The faults, in the order of their start.
    """

    nodes: tuple[str, ...]
    seed: int | None
    time_limit_s: float | None
    faults: tuple[PlannedFault, ...]


def to_json(plan: Plan) -> str:
    """Returns the plan as JSON text, one line for each fault."""
    head = {"format": FORMAT, "version": VERSION, "nodes": list(plan.nodes)}
    head |= {"seed": plan.seed, "time_limit_s": plan.time_limit_s}
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
        "options": {name: fault.options[name] for name in sorted(fault.options)},
    }


def from_json(text: str, *, nodes: Sequence[str], source: str) -> Plan:
    """Reads a plan and checks that it can be carried out on these nodes.

    Ids may be missing or have gaps (a fault was taken out by hand); the faults get dense ones in the order of their start.

    Args:
        text: The JSON text.
        nodes: The names of the cluster's nodes, in order.
        source: Where the text is from, for messages.

    Raises:
        PlanError: Something cannot be used; the sentence says what and where.
    """
    top = _parse(text, source)
    _keys(top, _TOP, ("faults",), f"{source}")
    if top.get("format", FORMAT) != FORMAT or top.get("version", VERSION) != VERSION:
        raise PlanError(
            f"{source}: expected format {FORMAT!r} version {VERSION}, not {top.get('format')!r} version {top.get('version')!r}"
        )
    seed, time_limit_s = top.get("seed"), top.get("time_limit_s")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise PlanError(f"{source}: the seed must be a whole number or null, not {seed!r}")
    if time_limit_s is not None:
        time_limit_s = _seconds(time_limit_s, f"{source}: time_limit_s")
    if not isinstance(top["faults"], list):
        raise PlanError(f"{source}: faults must be a list")
    faults = number(_fault(item, nodes, f"{source}: faults[{index}]") for index, item in enumerate(top["faults"]))
    _check_together(faults, nodes, source)
    return Plan(nodes=tuple(nodes), seed=seed, time_limit_s=time_limit_s, faults=faults)


def by_name(faults: Iterable[PlannedFault], records: Iterable[FaultRecord]) -> tuple[PlannedFault, ...]:
    """Returns the plan with every role replaced by the nodes that were hit when it was carried out.

    Args:
        faults: The plan.
        records: What became of it.
    """
    hit = {record.planned.id: tuple(record.targets) for record in records}
    return tuple(
        replace(fault, target=hit[fault.id]) if tgt.is_role(fault.target) and hit.get(fault.id) else fault
        for fault in faults
    )


def _parse(text: str, source: str) -> dict[str, Any]:
    if len(text) > MAX_CHARACTERS:
        raise PlanError(f"{source}: {len(text)} characters are no plan; at most {MAX_CHARACTERS} are read")
    try:
        top = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{source}: not JSON: {error}") from error
    if isinstance(top, dict) and "faults" not in top:
        top = top.get("plan", top)  # what `labrys plan` prints has the plan inside
    if not isinstance(top, dict):
        raise PlanError(f"{source}: expected an object with the key 'faults' at the top")
    return top


def _fault(item: Any, nodes: Sequence[str], where: str) -> PlannedFault:
    if not isinstance(item, dict):
        raise PlanError(f"{where}: expected an object with the keys {', '.join(_NEEDED)}")
    _keys(item, _FAULT, _NEEDED, where)
    start_s = _seconds(item["start_s"], f"{where}: start_s")
    end_s = _seconds(item["end_s"], f"{where}: end_s")
    if end_s <= start_s:
        raise PlanError(f"{where}: it ends at {end_s:g} s, which is not after its start at {start_s:g} s")
    options = item.get("options", {})
    if not isinstance(item["kind"], str) or not isinstance(options, dict):
        raise PlanError(f"{where}: the kind must be a text and the options an object")
    try:
        return _checked(item["kind"], _target(item["target"], nodes), options, nodes, start_s=start_s, end_s=end_s)
    except PlanError as error:
        raise PlanError(f"{where}: {error}") from error


def _checked(
    name: str,
    given: str | tuple[str, ...],
    options: dict[str, Value],
    nodes: Sequence[str],
    *,
    start_s: float,
    end_s: float,
) -> PlannedFault:
    """Returns the fault, after every check that needs no look at the cluster."""
    kind = find_kind(name)
    if isinstance(given, str) and given not in (*tgt.ROLES, tgt.ALL):
        raise PlanError(f"{kind.name} in a plan is aimed at nodes by name, at a role, or at 'all', not at {given!r}")
    target = kind.fault.check_target(kind.name, given, nodes)
    order = options.get(ORDER, list(nodes))
    if not isinstance(order, list) or sorted(map(str, order)) != sorted(nodes):
        raise PlanError(f"the option 'order' must name every node once: {', '.join(nodes)}")
    settled = settle(kind.name, kind.fault.OPTIONS, without_order(options))
    if ORDER in options or tgt.is_role(target):
        settled[ORDER] = order
    leader = nodes[0] if tgt.is_role(target) else None  # any will do to see whether the fault is possible
    kind.fault.impact(nodes, tgt.resolve(target, nodes, order=order, leader=leader), settled)
    return PlannedFault(id=0, kind=kind.name, target=target, start_s=start_s, end_s=end_s, options=settled)


def _target(given: Any, nodes: Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(given, str):
        return tgt.parse_target(given, nodes)
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        return tgt.check_names(given, nodes)
    raise PlanError(f"a target is a text or a list of node names, not {given!r}")


def _keys(item: Mapping[str, Any], known: Sequence[str], needed: Sequence[str], where: str) -> None:
    for key in item:
        if key not in known:
            raise PlanError(f"{where}: unknown key {key!r}. {did_you_mean(key, known)}")
    for key in needed:
        if key not in item:
            raise PlanError(f"{where}: the key {key!r} is missing")


def _seconds(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise PlanError(f"{where} must be a number of seconds, 0 or more, not {value!r}")
    return float(value)


def _check_together(faults: Sequence[PlannedFault], nodes: Sequence[str], source: str) -> None:
    for index, fault in enumerate(faults):
        for later in faults[index + 1 :]:
            shared = _shared(fault, later) if later.start_s < fault.end_s else []
            if shared:
                raise PlanError(
                    f"{source}: {fault.kind} from {fault.start_s:g} to {fault.end_s:g} s and {later.kind} from "
                    f"{later.start_s:g} s both hold {', '.join(shared)}; let one end before the other begins"
                )
    damaged = sorted({node for fault in faults if find_kind(fault.kind).fault.DAMAGES for node in fault.target})
    if len(damaged) > minority(len(nodes)):
        raise PlanError(
            f"{source}: files are damaged on {', '.join(damaged)}; at most {minority(len(nodes))} of {len(nodes)} nodes may be"
        )


def _shared(one: PlannedFault, other: PlannedFault) -> list[str]:
    if not find_kind(one.kind).fault.GROUPS & find_kind(other.kind).fault.GROUPS:
        return []
    if tgt.ALL in (one.target, other.target):
        return ["all nodes"]
    if isinstance(one.target, str) or isinstance(other.target, str):
        return []
    return sorted(set(one.target) & set(other.target))
