"""The plan that follows from the options about faults, and what must be so before a run has it.

`labrys --help` needs no fault. So the modules of faults are imported where a plan is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from harness.capabilities import FAKETIME, JAVA, LEADER, TRANSFER
from harness.console.documents import read_text
from harness.console.sources import as_written
from harness.errors import InputError
from harness.faults import RARE_MESSAGE
from nemesis.asked import ByKind
from nemesis.choices import DEFAULT_WAIT_S, DRAWING, PLAN_FILE, FaultOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.console.choices import LoadOptions
    from harness.console.sources import Origin
    from harness.system import System
    from nemesis.chosen import Choice
    from nemesis.planfile import Plan
    from nemesis.rhythm import Rhythm
    from nemesis.targets import Layout
    from nemesis.triggers import Subject


def given_plan(options: FaultOptions, where: Layout) -> Plan | None:
    """Reads the plan from the file that the options name; None if they name no file.

    Raises:
        InputError: The file is unreadable, or its plan does not fit these nodes.
    """
    from nemesis.planfile import MAX_BYTES, from_json  # noqa: PLC0415 - `--help` needs no fault

    path = options.plan_file
    if path is None:
        return None
    return from_json(read_text(path, MAX_BYTES), where=where, source=str(path))


def follow_plan(
    plan: Plan, faults: FaultOptions, load: LoadOptions, *, given: Mapping[str, Origin]
) -> tuple[FaultOptions, LoadOptions, list[str]]:
    """Sets the seed and the time limit to those of a plan, and resets the options that draw a plan.

    Args:
        plan: The plan.
        faults: The options about faults.
        load: The options with the seed and the time limit.
        given: The origins of values that are not built-in defaults, by parameter name.

    Returns:
        The options, and a line for each option that overrides the plan, and for each option that has no effect with a plan.

    Raises:
        InputError: The command line also has options that draw a plan.
    """
    path, usual = faults.plan_file, FaultOptions()
    drawing = [name for name in given if name in DRAWING and getattr(faults, name) != getattr(usual, name)]
    typed = [given[name].words for name in drawing if given[name].typed]
    if typed:
        raise InputError(f"{given[PLAN_FILE].words} excludes {', '.join(typed)}: the faults come from the plan")
    lines = [f"{given[name].words} has no effect: the faults come from {path}" for name in drawing]
    if plan.seed not in {None, load.seed}:
        if "seed" in given:
            lines.append(f"{given['seed'].words} overrides seed {plan.seed} of {path}")
        else:
            load = replace(load, seed=plan.seed)
    if plan.time_limit_s is not None and plan.time_limit_s != load.time_limit:
        if "time_limit" in given:
            lines.append(f"{given['time_limit'].words} overrides {as_written(plan.time_limit_s)} s of {path}")
        else:
            load = replace(load, time_limit=plan.time_limit_s)
    return replace(usual, plan_file=path, fault=faults.fault), load, lines


def check(
    options: FaultOptions,
    *,
    where: Layout,
    seed: int,
    time_limit_s: float,
    given: Plan | None,
) -> None:
    """Refuses options that give no plan on nodes with these names, whatever the nodes support.

    Raises:
        InputError: There is no such plan.
    """
    if given is None and options.nemesis.every_kind:
        _chosen(options, where, None)  # the kinds that share the time depend on the nodes
    else:
        make_plan(options, where=where, seed=seed, time_limit_s=time_limit_s, given=given)


def check_triggers(options: FaultOptions, given: Plan | None, subject: Subject) -> None:
    """Refuses triggers that the tested system or the workload cannot fire.

    Args:
        options: The options about faults.
        given: The plan to run; None: the options draw one.
        subject: What the run tests.

    Raises:
        InputError: There is such a trigger; the message has a suggestion.
    """
    if given is None and not options.fault_trigger:
        return
    from nemesis.triggers import find_trigger  # noqa: PLC0415 - `--help` needs no fault

    triggers = (
        options.fault_trigger.values()
        if given is None
        else [fault.trigger for fault in given.faults if fault.trigger is not None]
    )
    for trigger in triggers:
        find_trigger(trigger.name).condition.check(trigger, subject)


def requested_kinds(options: FaultOptions, *, where: Layout, given: Plan | None) -> tuple[str, ...]:
    """Returns the kinds of faults that the options ask for, whatever the nodes support.

    Raises:
        InputError: The options are not valid.
    """
    if given is not None:
        return tuple(dict.fromkeys(fault.kind for fault in given.faults))
    choices, _ = _chosen(options, where, None)
    return tuple(dict.fromkeys(choice.kind.name for choice in choices))


def make_plan(
    options: FaultOptions,
    *,
    where: Layout,
    seed: int,
    time_limit_s: float,
    capabilities: Mapping[str, Capabilities] | None = None,
    given: Plan | None = None,
) -> Plan:
    """Draws the plan of the options, or completes the given plan.

    Args:
        options: The options about faults.
        where: The nodes, and the nodes of each role; see `harness.system.System.roles`.
        seed: The run's root seed.
        time_limit_s: The duration of the workload.
        capabilities: The capabilities of the nodes, if known; then `all` leaves out the kinds that they do not support.
        given: The plan to run instead of a drawn one.

    Returns:
        The plan, with the seed and the time limit of the run, and with the kinds that `all` left out.

    Raises:
        InputError: There is no such plan.
    """
    from nemesis.lacking import LeftOut, left_out  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.plan import draw_plan  # noqa: PLC0415
    from nemesis.planfile import Plan, check_end  # noqa: PLC0415

    if given is not None:
        check_end(given, time_limit_s, source=str(options.plan_file))
        return replace(given, seed=seed, time_limit_s=time_limit_s)
    all_kinds = options.nemesis.every_kind
    left = left_out(capabilities, options.nemesis, where.nodes) if all_kinds and capabilities else ()
    choices, by_kind = _chosen(options, where, capabilities)
    if all_kinds and not choices:
        reasons = "\n  ".join(f"{item.kind}: {item.reason}" for item in left)
        raise InputError(
            f"`all` includes no fault, because these nodes support none:\n  {reasons}"
            if left
            else "`all` includes no fault, because each one is left out"
        )
    faults = draw_plan(
        choices,
        where,
        seed=seed,
        time_limit_s=time_limit_s,
        rhythms=by_kind,
        keep_majority=options.keep_majority,
        take_majority=options.take_majority,
        in_turn=options.in_turn,
    )
    placed = {fault.kind for fault in faults}
    idle = [name for name in dict.fromkeys(choice.kind.name for choice in choices) if name not in placed]
    no_room = f"{time_limit_s:g} s are too short for it and the other faults"
    left += tuple(LeftOut(kind=name, nodes=(), missing=no_room) for name in idle)
    return Plan(
        layout=where,
        seed=seed,
        time_limit_s=time_limit_s,
        faults=faults,
        left_out=left,
        in_turn=options.in_turn,
    )


def _chosen(
    options: FaultOptions, where: Layout, capabilities: Mapping[str, Capabilities] | None
) -> tuple[tuple[Choice, ...], dict[str, Rhythm]]:
    """Returns the requested kinds, and their rhythms."""
    from nemesis.chosen import choose_all  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.rhythm import rhythms  # noqa: PLC0415
    from nemesis.triggers import check_target, make_trigger  # noqa: PLC0415

    choices = choose_all(options.nemesis, where, options=options.fault_options, capabilities=capabilities)
    kinds = [choice.name for choice in choices]
    wait_s: float = options.fault_wait
    triggers = options.fault_trigger.map(lambda trigger: replace(trigger, limit_s=wait_s or DEFAULT_WAIT_S))
    if wait_s and not triggers:
        triggers = ByKind(make_trigger(RARE_MESSAGE, wait_s))
    by_kind = rhythms(options.fault_on, options.fault_off, kinds, quiet=options.fault_quiet, triggers=triggers)
    for choice in choices:
        check_target(choice.name, choice.target, by_kind[choice.name].trigger)
    return choices, by_kind


def damaging(plan: Plan) -> frozenset[str]:
    """Returns the kinds of a plan that damage data for good."""
    from nemesis.kinds import find_kind  # noqa: PLC0415 - `--help` needs no kinds

    return frozenset(fault.kind for fault in plan.faults if find_kind(fault.kind).fault.DAMAGES)


def supported(
    system: System, capabilities: Mapping[str, Capabilities], *, provable: bool
) -> Mapping[str, Capabilities]:
    """Returns the capabilities of nodes with a system: without libfaketime if the system must not load it.

    Args:
        system: The system.
        capabilities: The capabilities of the nodes alone.
        provable: Whether to leave out what no proven fault can use, as `all` and a hunt do: libfaketime if the processes do not
            say their time, and a leader or its transfer if the service of the clients does not report or move one.
    """
    front = system.front()
    missing: dict[str, str] = dict(system.lacks)
    if not system.faketime:
        missing[FAKETIME] = f"the system {system.name} does not run with it (`faketime = False`)"
    elif provable and not system.simulated and not system.tells_time():
        missing[FAKETIME] = (
            f"the processes of {system.name} do not say their time, so another one could not be proven; "
            "docs/guide/new-system.md says how they can (`clock`)"
        )
    if not system.simulated and not system.runs_java():
        missing[JAVA] = f"no process of {system.name} is a JVM whose packages are known (`Daemon.java_packages`)"
    if provable and not front.reports():
        missing[LEADER] = f"the {front.role} of {system.name} does not report its leader (`statuses`)"
    if provable and not front.moves_leadership:
        missing[TRANSFER] = f"the {front.role} of {system.name} does not move its leadership (`lead`)"
    return {
        node: replace(can, available=can.available - set(missing), missing={**can.missing, **missing})
        for node, can in capabilities.items()
    }


def refuse_impossible(plan: Plan, capabilities: Mapping[str, Capabilities], nodes: Sequence[Any]) -> None:
    """Refuses a plan with faults that the nodes do not support.

    Raises:
        InputError: The message names each kind and node, and what the node lacks.
    """
    from nemesis.lacking import missing_capabilities  # noqa: PLC0415 - `--help` needs no fault

    lacking = missing_capabilities(plan.faults, capabilities, nodes)
    if lacking:
        raise InputError("these nodes do not support the faults of the plan:\n  " + "\n  ".join(lacking))
