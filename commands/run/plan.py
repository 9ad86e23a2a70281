"""The command `labrys plan`."""

from __future__ import annotations

import json
from typing import Any

import click

import harness.console.choices
from commands.options import subjects
from commands.options.choosing import ChoosingCommand
from commands.options.compose import settle
from commands.options.run_options import OUTPUT, RUN, RepeatOptions, RunOptions, Sources, ThresholdOptions, flags_of
from harness.console.parameters import Choice
from harness.console.sources import ENVIRONMENT_PREFIX
from harness.console.terminal import echo
from harness.declare import with_options
from harness.generator import first_operations

PREVIEW_OPERATIONS = 20


@click.command(
    "plan",
    cls=ChoosingCommand,
    ignored=flags_of(*OUTPUT, RepeatOptions),
    context_settings={"auto_envvar_prefix": f"{ENVIRONMENT_PREFIX}_TEST"},
)
@with_options(*RUN, ThresholdOptions)
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
def show_plan(ctx: click.Context, /, **values: Any) -> None:
    """Prints the faults of a seed, and the first operations of each stream.

    The output is a table, or JSON with --format json. The same seed and options always give the same output, byte for byte. The
    command contacts no node, so `all` includes faults that the nodes may not support. The defaults are those of `labrys test`.
    """
    from commands.run.plan_table import lines
    from nemesis.planfile import to_json

    output = values.pop("output")
    settled = settle(RunOptions.of(values), Sources.of(ctx), assume_nodes=True)
    options, plan = settled.options, settled.plan()
    workload = subjects.workload_of(options)
    streams = harness.console.choices.make_load(options.load, len(settled.nodes)).streams(len(settled.nodes))
    generator = workload.generator(seed=options.seed, streams=streams)
    preview = first_operations(generator, streams=streams, count=PREVIEW_OPERATIONS)
    if output == "text":
        for line in lines(settled.reproduce, plan, preview):
            echo(line)
        return
    echo(json.dumps({"reproduce": settled.reproduce, "plan": json.loads(to_json(plan)), "streams": preview}, indent=2))
