"""The command `labrys plan`."""

from __future__ import annotations

import json
from typing import Any

import click

import harness.console.choices
import nemesis.choices
from commands import choosing
from commands.choosing import ENVIRONMENT_PREFIX, ChoosingCommand
from commands.compose import OUTPUT_FLAGS, RUN_OPTIONS, THRESHOLD_OPTION, reproduce_line, settle, with_options
from harness.console.parameters import Choice
from harness.console.terminal import echo

PREVIEW_OPERATIONS = 20


@click.command(
    "plan",
    cls=ChoosingCommand,
    ignored=OUTPUT_FLAGS,
    context_settings={"auto_envvar_prefix": f"{ENVIRONMENT_PREFIX}_TEST"},
)
@with_options((*RUN_OPTIONS, THRESHOLD_OPTION))
@click.option(
    "--format",
    "output",
    type=Choice(["text", "json"]),
    default="text",
    show_default=True,
    allow_from_autoenv=False,
    help="Output format. The defaults of `labrys test` do not set it.",
)
@click.pass_context
def show_plan(ctx: click.Context, /, **options: Any) -> None:
    """Prints the faults of a seed, and the first operations of each stream.

    The output is a table, or JSON with --format json. The same seed and options always give the same output, byte for byte. The
    command contacts no node, so `all` includes faults that the nodes may not support. The defaults are those of `labrys test`.
    """
    from commands.plan_table import lines
    from nemesis.planfile import to_json

    output = options.pop("output")
    settled = settle(ctx, options, assume_nodes=True)
    reproduce = reproduce_line(ctx, options)
    plan = nemesis.choices.make_plan(
        options,
        nodes=settled.nodes,
        seed=options["seed"],
        time_limit_s=options["time_limit"],
        given=settled.given,
        roles=settled.roles,
    )
    workload = choosing.workload_of(options)
    streams = harness.console.choices.make_load(options, len(settled.nodes)).streams(len(settled.nodes))
    preview = workload.describe_streams(seed=options["seed"], streams=streams, count=PREVIEW_OPERATIONS)
    if output == "text":
        for line in lines(reproduce, plan, preview):
            echo(line)
        return
    echo(json.dumps({"reproduce": reproduce, "plan": json.loads(to_json(plan)), "streams": preview}, indent=2))
