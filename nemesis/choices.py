"""The command line's options about faults, and the plan that follows from them."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path  # noqa: TC003 - `harness.declare` reads the types
from typing import TYPE_CHECKING, Any, ClassVar, Final

from harness.capabilities import FAKETIME, JAVA, LEADER, TRANSFER
from harness.console import plugins
from harness.console.documents import read_text, shown
from harness.console.parameters import Completed, PluginName, Seconds
from harness.console.sources import as_written
from harness.declare import Topic, option, with_option
from harness.errors import InputError
from harness.faults import RARE_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from harness.capabilities import Capabilities
    from harness.console.choices import LoadOptions
    from harness.console.sources import Origin
    from harness.op import Value
    from harness.system import System
    from nemesis.kinds import Choice
    from nemesis.planfile import Plan
    from nemesis.rhythm import Rhythm
    from nemesis.triggers import Subject


MAX_WAIT_S = 3600.0
DEFAULT_WAIT_S = 10.0  # for a trigger without --fault-wait


class _OwnKinds(PluginName):
    """A place with kinds of faults of the user's own. Its conversion adds them to the kinds of this process."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Returns the place."""
        from nemesis.kinds import use  # noqa: PLC0415 - few commands have such a place

        place = super().convert(value, param, ctx)
        try:
            use(place)
        except InputError as error:
            self.fail(str(error), param, ctx)
        return place


def kinds_like(text: str) -> list[str]:
    """Returns the completions of a list of kinds whose last kind is incomplete."""
    from nemesis.kinds import ALL_KINDS, NO_KIND, WITHOUT, all_kinds, of_all  # noqa: PLC0415 - only completion needs it

    before, comma, _ = text.rpartition(",")
    without = [f"{WITHOUT}{kind.name}" for kind in of_all() if comma]
    return [f"{before}{comma}{kind}" for kind in (*all_kinds(), *without, *([] if comma else [ALL_KINDS, NO_KIND]))]


def triggers_like(text: str) -> list[str]:
    """Returns the completions of a list of triggers whose last trigger is incomplete, with its kind of fault or without."""
    from nemesis.triggers import SEPARATOR, all_triggers  # noqa: PLC0415 - only completion needs it

    before, comma, last = text.rpartition(",")
    kind, equals, _ = last.rpartition("=")
    found = [f"{name}{SEPARATOR if each.condition.OPTIONS else ''}" for name, each in all_triggers().items()]
    return [f"{before}{comma}{kind}{equals}{trigger}" for trigger in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """The faults of a run."""

    TOPIC: ClassVar = Topic.FAULTS

    nemesis: str = option(
        "",
        "The kinds of faults, e.g. kill,pause:leader,kill:broker+minority; `labrys faults` lists them. "
        "`all` is every kind that heals and that the nodes support; all,-crash leaves one out.  [default: none]",
        kind=Completed(kinds_like),
        metavar="KIND[:TARGET],...",
        main=True,
    )
    fault: str | None = option(
        None,
        "A kind of fault of your own, or a list of kinds; --nemesis, --among and plans then know their names.",
        kind=_OwnKinds(plugins.FAULTS),
        metavar=f"{plugins.IN_MODULE}|{plugins.IN_FILE}",
    )
    fault_on: str = option(
        "6-15",
        "The duration of a fault in seconds; a kind can have its own range, e.g. 6-15,pause=0.2-2.",
        metavar="SECONDS,...",
        main=True,
    )
    fault_off: str = option(
        "4-12", "The seconds between two faults, in the same form.", metavar="SECONDS,...", main=True
    )
    fault_quiet: str = option(
        "5-10",
        "The seconds without faults at the start and at the end of the workload.",
        metavar="BEFORE-AFTER",
        main=True,
    )
    fault_wait: float = option(
        0.0,
        "The longest time in seconds for which each fault waits for its trigger. Without --fault-trigger, in the "
        "simulator: for a rare message between nodes, e.g. a vote; it begins with the message, or after this time. 0: no wait, "
        f"or {DEFAULT_WAIT_S:g} s with --fault-trigger.",
        kind=Seconds(0, MAX_WAIT_S),
    )
    fault_trigger: str = option(
        "",
        "The conditions with which faults begin, e.g. log-line:elected, or kill=log-line:snapshot,pause=new-leader. The "
        "target `trigger` is the node that fired it: --nemesis kill:trigger. `labrys faults` lists triggers.  [default: none]",
        kind=Completed(triggers_like),
        metavar="[KIND=]TRIGGER[:VALUE],...",
        main=True,
    )
    fault_options: str = option(
        "",
        "Options of kinds, e.g. packet-loss.probability=0.5,partition-leader.side=alone; `labrys faults KIND` lists them.",
        metavar="KIND.OPTION=VALUE,...",
    )
    in_turn: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Inject one fault of each kind, one after the other.",
        shown=False,
    )
    keep_majority: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Leave a majority of the nodes working at all times.",
        shown=False,
    )
    take_majority: bool = option(
        False,  # noqa: FBT003 - it takes no keyword
        "Hit a majority of the nodes with each fault.",
        shown=False,
    )
    plan_file: Path | None = option(
        None,
        "Run the faults of this plan.json, with its seed and time limit, instead of drawing faults.",
        flag="--plan",
        main=True,
    )


FAULT_OPTION = with_option(FaultOptions, "fault")
PLAN_FILE: Final = "plan_file"
# The options for drawing a plan. They have no effect with a plan from a file.
DRAWING: Final = frozenset(field.name for field in fields(FaultOptions)) - {PLAN_FILE, "fault"}


def parse_options(text: str) -> dict[str, dict[str, Value]]:
    """Reads options of kinds: `kind.option=value`, with commas between them. A value is JSON, or a text if it is not JSON.

    Returns:
        The value of each option of each kind. A kind has the name that the text gives it.

    Raises:
        InputError: A part has another form, or repeats an option.
    """
    options: dict[str, dict[str, Value]] = {}
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        name, equals, value = part.partition("=")
        kind, dot, option = name.strip().partition(".")
        if not (equals and dot and kind and option):
            raise InputError(
                f"expected KIND.OPTION=VALUE in --fault-options, e.g. packet-loss.probability=0.5; found {shown(part)}"
            )
        if option in options.setdefault(kind, {}):
            raise InputError(f"the option {kind}.{option} is given twice")
        try:
            options[kind][option] = json.loads(value)
        except (ValueError, RecursionError):
            options[kind][option] = value.strip()
    return options


def given_plan(
    options: FaultOptions, nodes: Sequence[str], roles: Mapping[str, Sequence[str]] | None = None
) -> Plan | None:
    """Reads the plan from the file that the options name; None if they name no file.

    Raises:
        InputError: The file is unreadable, or its plan does not fit these nodes.
    """
    from nemesis.planfile import MAX_BYTES, from_json  # noqa: PLC0415 - `--help` needs no fault

    path = options.plan_file
    if path is None:
        return None
    return from_json(read_text(path, MAX_BYTES), nodes=nodes, source=str(path), roles=roles)


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
    nodes: Sequence[str],
    seed: int,
    time_limit_s: float,
    given: Plan | None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Refuses options that give no plan on nodes with these names, whatever the nodes support.

    Raises:
        InputError: There is no such plan.
    """
    from nemesis.kinds import asks_for_all  # noqa: PLC0415 - `--help` needs no fault

    if given is None and asks_for_all(options.nemesis):
        _chosen(options, nodes, None, roles)  # the kinds that share the time depend on the nodes
    else:
        make_plan(options, nodes=nodes, seed=seed, time_limit_s=time_limit_s, given=given, roles=roles)


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
    from nemesis.kinds import all_kinds  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.rhythm import triggers_of  # noqa: PLC0415
    from nemesis.triggers import find_trigger  # noqa: PLC0415

    triggers = (
        triggers_of(options.fault_trigger, all_kinds(), DEFAULT_WAIT_S).values()
        if given is None
        else [fault.trigger for fault in given.faults if fault.trigger is not None]
    )
    for trigger in triggers:
        find_trigger(trigger.name).condition.check(trigger, subject)


def requested_kinds(
    options: FaultOptions,
    *,
    nodes: Sequence[str],
    given: Plan | None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> tuple[str, ...]:
    """Returns the kinds of faults that the options ask for, whatever the nodes support.

    Raises:
        InputError: The options are not valid.
    """
    if given is not None:
        return tuple(dict.fromkeys(fault.kind for fault in given.faults))
    choices, _ = _chosen(options, nodes, None, roles)
    return tuple(dict.fromkeys(choice.kind.name for choice in choices))


def make_plan(
    options: FaultOptions,
    *,
    nodes: Sequence[str],
    seed: int,
    time_limit_s: float,
    capabilities: Mapping[str, Capabilities] | None = None,
    given: Plan | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Plan:
    """Draws the plan of the options, or completes the given plan.

    Args:
        options: The options about faults.
        nodes: The names of all nodes.
        seed: The run's root seed.
        time_limit_s: The duration of the workload.
        capabilities: The capabilities of the nodes, if known; then `all` leaves out the kinds that they do not support.
        given: The plan to run instead of a drawn one.
        roles: Role to the names of the nodes that run it; see `harness.system.System.roles`.

    Returns:
        The plan, with the seed and the time limit of the run, and with the kinds that `all` left out.

    Raises:
        InputError: There is no such plan.
    """
    from nemesis.kinds import LeftOut, asks_for_all, left_out  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.plan import draw_plan  # noqa: PLC0415
    from nemesis.planfile import Plan, check_end  # noqa: PLC0415

    if given is not None:
        check_end(given, time_limit_s, source=str(options.plan_file))
        return replace(given, seed=seed, time_limit_s=time_limit_s)
    all_kinds = asks_for_all(options.nemesis)
    left = left_out(capabilities, options.nemesis, nodes) if all_kinds and capabilities else ()
    choices, each = _chosen(options, nodes, capabilities, roles)
    if all_kinds and not choices:
        reasons = "\n  ".join(f"{item.kind}: {item.reason}" for item in left)
        raise InputError(
            f"`all` includes no fault, because these nodes support none:\n  {reasons}"
            if left
            else "`all` includes no fault, because each one is left out"
        )
    faults = draw_plan(
        choices,
        nodes,
        seed=seed,
        time_limit_s=time_limit_s,
        rhythms=each,
        keep_majority=options.keep_majority,
        take_majority=options.take_majority,
        in_turn=options.in_turn,
        roles=roles,
    )
    placed = {fault.kind for fault in faults}
    idle = [name for name in dict.fromkeys(choice.kind.name for choice in choices) if name not in placed]
    no_room = f"{time_limit_s:g} s are too short for it and the other faults"
    left += tuple(LeftOut(kind=name, nodes=(), missing=no_room) for name in idle)
    return Plan(
        nodes=tuple(nodes),
        seed=seed,
        time_limit_s=time_limit_s,
        faults=faults,
        left_out=left,
        in_turn=options.in_turn,
        roles={role: tuple(names) for role, names in (roles or {}).items()},
    )


def _chosen(
    options: FaultOptions,
    nodes: Sequence[str],
    capabilities: Mapping[str, Capabilities] | None,
    roles: Mapping[str, Sequence[str]] | None,
) -> tuple[tuple[Choice, ...], dict[str, Rhythm]]:
    """Returns the requested kinds, and their rhythms."""
    from nemesis.kinds import choose_all  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.rhythm import EVERY_KIND, rhythms, triggers_of  # noqa: PLC0415
    from nemesis.triggers import check_target, make_trigger  # noqa: PLC0415

    own = parse_options(options.fault_options)
    choices = choose_all([options.nemesis], nodes, options=own, capabilities=capabilities, roles=roles)
    kinds = [choice.kind.name for choice in choices]
    wait_s: float = options.fault_wait
    triggers = triggers_of(options.fault_trigger, kinds, wait_s or DEFAULT_WAIT_S)
    if wait_s and not triggers:
        triggers = {EVERY_KIND: make_trigger(RARE_MESSAGE, wait_s)}
    each = rhythms(options.fault_on, options.fault_off, kinds, quiet=options.fault_quiet, triggers=triggers)
    for choice in choices:
        check_target(choice.kind.name, choice.target, each[choice.kind.name].trigger)
    return choices, each


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
    from nemesis.kinds import missing_capabilities  # noqa: PLC0415 - `--help` needs no fault

    lacking = missing_capabilities(plan.faults, capabilities, nodes)
    if lacking:
        raise InputError("these nodes do not support the faults of the plan:\n  " + "\n  ".join(lacking))
