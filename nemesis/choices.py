"""What can be chosen about faults, as options of the command line, and the plan that follows from them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from harness.documents import read_text, shown
from harness.errors import InputError
from harness.options import as_written
from harness.parameters import Completed, existing_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.capabilities import Capabilities
    from harness.op import Value
    from harness.options import Origin
    from nemesis.kinds import Choice
    from nemesis.planfile import Plan
    from nemesis.rhythm import Rhythm


def kinds_like(text: str) -> list[str]:
    """Returns what a list of kinds may become whose last one is not finished, for the completion of a shell."""
    from nemesis.kinds import ALL_KINDS, NO_KIND, all_kinds  # noqa: PLC0415 - only a shell asks

    before, comma, _ = text.rpartition(",")
    return [f"{before}{comma}{kind}" for kind in (*all_kinds(), *([] if comma else [ALL_KINDS, NO_KIND]))]


OPTIONS = (
    click.option(
        "--nemesis",
        type=Completed(kinds_like),
        default="",
        metavar="KIND[:TARGET],...",
        help="The kinds of faults, e.g. kill,pause:leader,kill:broker+minority; `labrys faults` lists them. "
        "`all` is every kind that heals and that the nodes can take.  [default: none]",
    ),
    click.option(
        "--fault-on",
        default="6-15",
        show_default=True,
        metavar="SECONDS,...",
        help="How many seconds a fault lasts; a kind can have its own range, e.g. 6-15,pause=0.2-2.",
    ),
    click.option(
        "--fault-off",
        default="4-12",
        show_default=True,
        metavar="SECONDS,...",
        help="How many seconds pass after a fault, in the same form.",
    ),
    click.option(
        "--fault-quiet",
        default="5-10",
        show_default=True,
        metavar="BEFORE-AFTER",
        help="Seconds without faults at the start and at the end of the workload; fewer for a simulated system that recovers "
        "fast.",
    ),
    click.option(
        "--fault-options",
        default="",
        metavar="KIND.OPTION=VALUE,...",
        help="Options of kinds, e.g. packet-loss.probability=0.5,partition-leader.side=alone; `labrys faults KIND` lists them.",
    ),
    click.option("--in-turn/--no-in-turn", default=False, help="Make one fault of each kind, one after the other."),
    click.option(
        "--keep-majority/--no-keep-majority", default=False, help="Always leave a majority of the nodes working."
    ),
    click.option(
        "--take-majority/--no-take-majority",
        default=False,
        help="Stop or cut off a majority of the nodes with each fault.",
    ),
    click.option(
        "--plan",
        "plan_file",
        type=existing_file(),
        help="Run the faults of this plan.json, with its seed and time limit, and draw none.",
    ),
)

PLAN_FILE = "plan_file"
# The parameters that a plan is drawn with. They say nothing where a plan is given.
DRAWING = frozenset(
    {"nemesis", "fault_on", "fault_off", "fault_quiet", "fault_options", "in_turn", "keep_majority", "take_majority"}
)


def parse_options(text: str) -> dict[str, dict[str, Value]]:
    """Reads options of kinds: `kind.option=value`, with commas between them. A value is JSON, or else a text.

    Returns:
        Kind, as it is named there, to option to value.

    Raises:
        InputError: A part has another form, or says an option twice.
    """
    options: dict[str, dict[str, Value]] = {}
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        name, equals, value = part.partition("=")
        kind, dot, option = name.strip().partition(".")
        if not (equals and dot and kind and option):
            raise InputError(
                f"expected KIND.OPTION=VALUE among the options of faults, e.g. packet-loss.probability=0.5; not {shown(part)}"
            )
        if option in options.setdefault(kind, {}):
            raise InputError(f"the option {kind}.{option} is given twice")
        try:
            options[kind][option] = json.loads(value)
        except (ValueError, RecursionError):
            options[kind][option] = value.strip()
    return options


def given_plan(
    options: Mapping[str, Any], nodes: Sequence[str], roles: Mapping[str, Sequence[str]] | None = None
) -> Plan | None:
    """Reads the plan from the file that the options name; None if they name none.

    Raises:
        InputError: The file cannot be read, or these nodes cannot have its plan.
    """
    from nemesis.planfile import MAX_BYTES, from_json  # noqa: PLC0415 - `--help` needs no fault

    path: Path | None = options[PLAN_FILE]
    if path is None:
        return None
    return from_json(read_text(path, MAX_BYTES), nodes=nodes, source=str(path), roles=roles)


def follow_plan(
    plan: Plan, options: dict[str, Any], *, given: Mapping[str, Origin], built_in: Mapping[str, Any]
) -> list[str]:
    """Makes the options follow a plan that is given: its seed, its time limit, and nothing that draws another plan.

    Args:
        plan: The plan.
        options: All options by parameter name; those that the plan decides are changed.
        given: Where values come from that are not built-in defaults, by parameter name.
        built_in: The built-in defaults by parameter name.

    Returns:
        A line for each option that overrides the plan, or that the plan leaves without effect.

    Raises:
        InputError: The command line asks for another plan as well.
    """
    path = options[PLAN_FILE]
    drawing = [name for name in given if name in DRAWING and options[name] != built_in[name]]
    typed = [given[name].words for name in drawing if given[name].typed]
    if typed:
        raise InputError(
            f"{given[PLAN_FILE].words} excludes {', '.join(typed)}: a plan says which faults there are, and when"
        )
    lines = [f"{given[name].words} is not used: {path} says which faults there are" for name in drawing]
    options.update({name: built_in[name] for name in DRAWING})
    for name, value, unit in (("seed", plan.seed, ""), ("time_limit", plan.time_limit_s, " s")):
        if value is None or value == options[name]:
            continue
        if name in given:
            said = as_written(value) + unit if unit else f"seed {value}"
            lines.append(f"{given[name].words} overrides {said} of {path}")
        else:
            options[name] = value
    return lines


def check(
    options: Mapping[str, Any],
    *,
    nodes: Sequence[str],
    seed: int,
    time_limit_s: float,
    given: Plan | None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Refuses what cannot be planned on nodes of these names, whatever they can do.

    Raises:
        InputError: There can be no such plan.
    """
    from nemesis.kinds import asks_for_all  # noqa: PLC0415 - `--help` needs no fault

    if given is None and asks_for_all(options["nemesis"]):
        _chosen(options, nodes, None, roles)  # which kinds share the time is known only with the nodes
    else:
        make_plan(options, nodes=nodes, seed=seed, time_limit_s=time_limit_s, given=given, roles=roles)


def make_plan(
    options: Mapping[str, Any],
    *,
    nodes: Sequence[str],
    seed: int,
    time_limit_s: float,
    capabilities: Mapping[str, Capabilities] | None = None,
    given: Plan | None = None,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Plan:
    """Draws the plan that the options ask for, or settles the one that is given.

    Args:
        options: The values of `OPTIONS` by parameter name.
        nodes: The names of all nodes.
        seed: The run's root seed.
        time_limit_s: How long the workload runs.
        capabilities: What the nodes can do, where it is known; then `all` leaves out what they cannot have.
        given: The plan that is carried out instead of a drawn one.
        roles: Role to the names of the nodes that run it; see `harness.system.System.roles`.

    Returns:
        The plan, with the run's own seed and time limit, and with what `all` left out.

    Raises:
        InputError: There can be no such plan.
    """
    from nemesis.kinds import LeftOut, asks_for_all, left_out  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.plan import draw_plan  # noqa: PLC0415
    from nemesis.planfile import Plan, check_end  # noqa: PLC0415

    if given is not None:
        check_end(given, time_limit_s, source=str(options[PLAN_FILE]))
        return replace(given, seed=seed, time_limit_s=time_limit_s)
    all_kinds = asks_for_all(options["nemesis"])
    left = left_out(capabilities) if all_kinds and capabilities else ()
    choices, each = _chosen(options, nodes, capabilities, roles)
    if all_kinds and not choices:
        told = "\n  ".join(f"{item.kind}: {item.reason}" for item in left)
        raise InputError(f"these nodes can take no kind of fault, so `all` leaves nothing to do:\n  {told}")
    faults = draw_plan(
        choices,
        nodes,
        seed=seed,
        time_limit_s=time_limit_s,
        rhythms=each,
        keep_majority=options["keep_majority"],
        take_majority=options["take_majority"],
        in_turn=options["in_turn"],
        roles=roles,
    )
    placed = {fault.kind for fault in faults}
    idle = [name for name in dict.fromkeys(choice.kind.name for choice in choices) if name not in placed]
    no_room = f"there is no room for it in {time_limit_s:g} s beside the other faults"
    left += tuple(LeftOut(kind=name, nodes=(), missing=no_room) for name in idle)
    return Plan(
        nodes=tuple(nodes),
        seed=seed,
        time_limit_s=time_limit_s,
        faults=faults,
        left_out=left,
        roles={role: tuple(names) for role, names in (roles or {}).items()},
    )


def _chosen(
    options: Mapping[str, Any],
    nodes: Sequence[str],
    capabilities: Mapping[str, Capabilities] | None,
    roles: Mapping[str, Sequence[str]] | None,
) -> tuple[tuple[Choice, ...], dict[str, Rhythm]]:
    """Returns the kinds that were asked for, and their rhythms."""
    from nemesis.kinds import choose_all  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.rhythm import rhythms  # noqa: PLC0415

    own = parse_options(options["fault_options"])
    choices = choose_all([options["nemesis"]], nodes, options=own, capabilities=capabilities, roles=roles)
    kinds = [choice.kind.name for choice in choices]
    return choices, rhythms(options["fault_on"], options["fault_off"], kinds, quiet=options["fault_quiet"])


def refuse_impossible(plan: Plan, capabilities: Mapping[str, Capabilities], nodes: Sequence[Any]) -> None:
    """Refuses a plan whose faults the nodes cannot take.

    Raises:
        InputError: It names each kind, node, and what the node lacks.
    """
    from nemesis.kinds import missing_capabilities  # noqa: PLC0415 - `--help` needs no fault

    lacking = missing_capabilities(plan.faults, capabilities, nodes)
    if lacking:
        raise InputError("these nodes cannot take the faults of the plan:\n  " + "\n  ".join(lacking))
