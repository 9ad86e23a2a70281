"""What can be chosen about faults, as options of the command line, and the plan that follows from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.capabilities import Capabilities
    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.planfile import Plan


OPTIONS = (
    click.option(
        "--nemesis",
        default="",
        metavar="KIND[:TARGET],...",
        help="The faults, e.g. kill,pause:leader,partition-random-halves; "
        "`all` is every kind that the nodes can take and that heals, and `none` is none.",
    ),
    click.option(
        "--fault-on",
        default="6-15",
        show_default=True,
        metavar="SECONDS,...",
        help="How long a fault lasts, in seconds; a kind may have a range of its own, e.g. 6-15,pause=0.2-2.",
    ),
    click.option(
        "--fault-off",
        default="4-12",
        show_default=True,
        metavar="SECONDS,...",
        help="The pause after a fault, likewise.",
    ),
    click.option(
        "--fault-options",
        default="",
        metavar="KIND.OPTION=VALUE,...",
        help="Options of kinds, e.g. packet-loss.probability=0.5,partition-leader.side=alone; see docs/faults.md.",
    ),
    click.option("--in-turn", is_flag=True, help="Each kind once, one after the other."),
    click.option("--keep-majority", is_flag=True, help="Never take the majority away."),
    click.option("--take-majority", is_flag=True, help="Take the majority away with each fault."),
    click.option(
        "--plan",
        "plan_file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Carry out this plan of faults instead of drawing one.",
    ),
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
                f"expected KIND.OPTION=VALUE among the options of faults, e.g. packet-loss.probability=0.5; not {part!r}"
            )
        if option in options.setdefault(kind, {}):
            raise InputError(f"the option {kind}.{option} is given twice")
        try:
            options[kind][option] = json.loads(value)
        except (ValueError, RecursionError):
            options[kind][option] = value.strip()
    return options


# What a plan is drawn from; a plan that is given already needs none of it.
DRAWING = frozenset(
    {
        "--nemesis",
        "--fault-on",
        "--fault-off",
        "--fault-options",
        "--in-turn",
        "--keep-majority",
        "--take-majority",
        "--plan",
    }
)


def make_plan(
    options: Mapping[str, Any],
    *,
    nodes: Sequence[str],
    seed: int,
    time_limit_s: float,
    capabilities: Mapping[str, Capabilities] | None = None,
) -> Plan:
    """Draws the plan that the options ask for, or reads it from the file that they name.

    Args:
        options: The values of `OPTIONS` by parameter name.
        nodes: The names of all nodes.
        seed: The run's root seed.
        time_limit_s: How long the workload runs.
        capabilities: What the nodes can do, where it is known; then `all` leaves out what they cannot have.

    Raises:
        InputError: There can be no such plan.
    """
    from nemesis.kinds import ALL_KINDS, choose_all  # noqa: PLC0415 - `--help` needs no fault
    from nemesis.plan import draw_plan  # noqa: PLC0415
    from nemesis.planfile import Plan, from_json  # noqa: PLC0415
    from nemesis.rhythm import rhythms  # noqa: PLC0415

    path: Path | None = options["plan_file"]
    if path is not None:
        if options["nemesis"] or options["fault_options"]:
            raise InputError(
                "--plan excludes --nemesis and --fault-options: a plan says which faults there are, and how"
            )
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: the plan cannot be read: {error}") from error
        return from_json(text, nodes=nodes, source=str(path))
    faults: tuple[PlannedFault, ...] = ()
    own = parse_options(options["fault_options"])
    choices = choose_all([options["nemesis"]], nodes, options=own, capabilities=capabilities)
    each = rhythms(options["fault_on"], options["fault_off"], [choice.kind.name for choice in choices])
    if choices:
        faults = draw_plan(
            choices,
            nodes,
            seed=seed,
            time_limit_s=time_limit_s,
            rhythms=each,
            keep_majority=options["keep_majority"],
            take_majority=options["take_majority"],
            each_at_least_once=options["in_turn"] or ALL_KINDS not in options["nemesis"].split(","),
            in_turn=options["in_turn"],
        )
    return Plan(nodes=tuple(nodes), seed=seed, time_limit_s=time_limit_s, faults=faults)


def refuse_impossible(plan: Plan, capabilities: Mapping[str, Capabilities], nodes: Sequence[Any]) -> None:
    """Refuses a plan whose faults the nodes cannot take.

    Raises:
        InputError: It names each kind, node, and what the node lacks.
    """
    from nemesis.kinds import missing_capabilities  # noqa: PLC0415 - `--help` needs no fault

    lacking = missing_capabilities((fault.kind for fault in plan.faults), capabilities, nodes)
    if lacking:
        raise InputError("these nodes cannot take the faults of the plan:\n  " + "\n  ".join(lacking))
