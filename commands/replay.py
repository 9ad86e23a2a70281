"""The command `labrys replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import clusters.options
import nemesis.choices
from commands import choosing
from commands.compose import OUTPUT_OPTIONS, PLACES, REPEAT_OPTIONS, with_options
from commands.test import run_test
from harness.console import options as opt
from harness.console import plugins
from harness.console.parameters import Choice, PluginName
from harness.console.plain import message, name
from harness.console.terminal import echo
from harness.errors import InputError
from harness.verdict import Verdict
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from nemesis.planfile import Plan
    from results.store.record import RunRecord
    from results.store.store import Run

MAX_PLAN_BYTES = 64 << 20
TIME_LIMIT = "--time-limit"


SYSTEM_OPTION = click.option(
    "--system",
    choosing.SYSTEM,
    type=PluginName(plugins.SYSTEMS),
    metavar=plugins.METAVAR,
    help="The system, if the run names a module or a file of your own; labrys never loads what a run names.",
)
WORKLOAD_OPTION = click.option(
    "--workload",
    choosing.WORKLOAD,
    type=PluginName(plugins.WORKLOADS),
    metavar=plugins.METAVAR,
    help="The workload, if the run names a module or a file of your own.",
)


@click.command("replay", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@click.option(
    "--targets",
    type=Choice(["role", "name"]),
    default="role",
    show_default=True,
    help="role: a fault on the leader hits the leader of the new run. name: it hits the same node again.",
)
@SYSTEM_OPTION
@WORKLOAD_OPTION
@nemesis.choices.FAULT_OPTION
@with_options((clusters.options.INVENTORY_OPTION, *OUTPUT_OPTIONS, *REPEAT_OPTIONS))
@click.pass_context
def replay_run(ctx: click.Context, /, run: str, targets: str, store_dir: Path, **more: Any) -> None:
    """Runs the plan of RUN again, with its seed and options.

    RUN is the folder of a run, or a run in the store: `latest`, `<test>`, `<test>/<time>`, or an index. The options come from
    the test.json of the run, and the faults from its plan.json, which you can edit. A replay never takes --config, --inventory,
    --cluster-name or --store from the run. With --repeat, all runs have the same plan.
    """
    repeated = more["repeat"] > 1
    words, _ = recalled(ctx, run, store_dir=store_dir, targets=targets, more=more, always_plan=repeated)
    with run_test.make_context("test", words, parent=ctx.find_root()) as test:
        run_test.invoke(test)


def recalled(
    ctx: click.Context, run: str, *, store_dir: Path, targets: str, more: dict[str, Any], always_plan: bool = False
) -> tuple[list[str], Run]:
    """Returns the words of `labrys test` that carry out the plan of a run again, and the run.

    If seed and options do not draw the plan, it is written into the run's folder, and the words name it.

    Args:
        ctx: The context of the command.
        run: The run, as on the command line.
        store_dir: The store.
        targets: `role` or `name`: whether a fault on the leader hits the new leader or the same node again.
        more: The other options of the command, such as the system and the workload; the test's name is added.
        always_plan: Whether to write the plan in any case.

    Raises:
        InputError: The run cannot be read, or its options or its plan are not valid.
    """
    from dataclasses import replace

    from nemesis.planfile import by_name, from_json, to_json
    from results.store.load import load_record
    from results.store.store import Store, is_test_name

    replaced = {name: more[name] for name in (choosing.SYSTEM, choosing.WORKLOAD) if more[name] is not None}
    found = Store(store_dir).open_run(run)
    record = load_record(found)
    try:
        text = found.read_bytes(found.plan_json, MAX_PLAN_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{found.path} has no plan to replay: {error}") from error
    known = {**record.test.options, "seed": record.test.seed, **replaced}
    options = [*opt.options_of(run_test), *_chosen(known, replaced, str(found.test_json))]
    known["nodes"] = len(record.test.nodes) if known.get("cluster_kind", "local") in clusters.options.COUNTED else None
    if known["nodes"] is None:
        options = [option for option in options if option.name != "nodes"]
        del known["nodes"]
    values, missing = opt.recorded(options, known, places=PLACES, source=str(found.test_json))
    plan = from_json(
        text,
        nodes=record.test.nodes,
        source=str(found.plan_json),
        roles=choosing.roles_of(values, record.test.nodes),
    )
    faults = by_name(plan.faults, record.faults) if targets == "name" else plan.faults
    edited = _edited(plan, record)
    if plan.time_limit_s is not None and TIME_LIMIT in missing:
        values["time_limit"] = plan.time_limit_s
        missing.remove(TIME_LIMIT)
    given = opt.origins(ctx)
    for line in _notices(known, values, missing, given, str(found.test_json)):
        echo(message(line), err=True)
    own = [option for option in opt.options_of(ctx.command) if option.name in given and option.name in PLACES]
    if more.get("test_name") is None and not edited and is_test_name(found.test_name):
        own += [option for option in opt.options_of(ctx.command) if option.name == "test_name"]
        more["test_name"] = found.test_name
    planned = replace(plan, faults=faults, seed=record.test.seed, time_limit_s=values["time_limit"])
    if not always_plan and _drawn_again(planned, values):
        words = opt.spelled_out(options, values)
    else:
        path = found.path / f"replay-by-{targets}.json"
        found.write_text(path, to_json(planned))
        drawn = [option for option in options if option.name not in nemesis.choices.DRAWING]
        words = [*opt.spelled_out(drawn, values), "--plan", str(_nearest(path))]
    words += [*opt.spelled_out(own, {**more, "store_dir": None}), "--store", str(store_dir)]
    return words, found


def _edited(plan: Plan, record: RunRecord) -> bool:
    """Returns whether the plan differs from the faults of the run.

    An interrupted run has only the first faults, and so may a run with faults in turn that ended late.
    """
    carried_out = [fault.planned for fault in record.faults]
    completed = any(part.name == "completed" and part.verdict is Verdict.VALID for part in record.parts)
    all_began = completed and not plan.in_turn
    return any(fault not in plan.faults for fault in carried_out) or (all_began and len(carried_out) < len(plan.faults))


def _drawn_again(plan: Plan, values: Mapping[str, Any]) -> bool:
    """Returns whether seed and options draw this same plan, so that no plan file is needed."""
    from nemesis.kinds import asks_for_all

    try:
        drawn = nemesis.choices.make_plan(
            values,
            nodes=plan.nodes,
            seed=plan.seed or 0,
            time_limit_s=values["time_limit"],
            roles=choosing.roles_of(values, plan.nodes),
        )
    except InputError:
        return False
    return (drawn.faults, drawn.in_turn) == (plan.faults, plan.in_turn) and not asks_for_all(values["nemesis"])


def _nearest(path: Path) -> Path:
    """Returns a path relative to the working folder, if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _chosen(known: Mapping[str, Any], replaced: Mapping[str, str], source: str) -> list[click.Option]:
    """Returns the options of the run's system and workload.

    Raises:
        InputError: One of them is not installed, or has a place, e.g. MODULE:CLASS, that is not on the command line.
    """
    usual = {str(option.name): option.default for option in opt.options_of(run_test)}  # for runs of earlier versions
    options: list[click.Option] = []
    for parameter, group in ((choosing.SYSTEM, plugins.SYSTEMS), (choosing.WORKLOAD, plugins.WORKLOADS)):
        try:
            on_command_line = parameter in replaced
            name = str(known.get(parameter, usual[parameter]))
            options += choosing.chosen(group, name, by_place=on_command_line).options
        except InputError as error:
            raise InputError(f"{source}: {error}") from error
    return options


def _notices(
    known: Mapping[str, Any], values: Mapping[str, Any], missing: Sequence[str], given: Collection[str], source: str
) -> Iterator[str]:
    """Yields a line for each value that a replay does not take from its run, and what to give instead."""
    if missing:
        yield f"{source} lacks {', '.join(missing)}; the replay uses built-in defaults"
    if values["cluster_kind"] == "ssh" and "inventory" not in given:
        yield "the run was on --cluster ssh; give --inventory FILE, because labrys never takes hosts from a run"
    if known.get("cluster_name") is not None and "cluster_name" not in given:
        yield (
            f"the run was on the cluster {name(str(known['cluster_name']))!r}; give --cluster-name to use a running cluster"
        )
