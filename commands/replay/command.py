"""The command `labrys replay`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import clusters.options
import nemesis.choices
import nemesis.planning
from clusters.options import ClusterOptions
from clusters.sim.threads import Threads
from commands.options import choosing, subjects
from commands.options.choosing import NameOptions
from commands.options.promised import PROMISES, kept, promise_of, values_of
from commands.options.run_options import OUTPUT, PLACES, RepeatOptions, RunOptions, Sources
from commands.run.test import run_test, run_tests
from harness.console import plugins
from harness.console import sources as opt
from harness.console.documents import shown
from harness.console.parameters import Choice, PluginName
from harness.console.plain import message, name
from harness.console.terminal import echo, near
from harness.declare import option, with_option, with_options
from harness.errors import ExitCode, InputError
from harness.option_values import build
from harness.verdict import Verdict
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from commands.options.choosing import Chosen
    from commands.run.executions import Earlier
    from harness.op import Value
    from nemesis.planfile import Plan
    from nemesis.targets import Layout
    from results.record.record import RunRecord
    from results.store.store import Run

MAX_PLAN_BYTES = 64 << 20
TIME_LIMIT = "--time-limit"
PROGRAM = "bin"  # the option of a system whose nodes run a program of the user


@dataclass(frozen=True, slots=True, kw_only=True)
class ByPlace:
    """The system and the workload of a run that names a module or a file."""

    system_name: str | None = option(
        None,
        "The system, if the run names a module or a file of your own; labrys never loads what a run names.",
        flag="--system",
        kind=PluginName(plugins.SYSTEMS),
        metavar=plugins.METAVAR,
    )
    workload_name: str | None = option(
        None,
        "The workload, if the run names a module or a file of your own.",
        flag="--workload",
        kind=PluginName(plugins.WORKLOADS),
        metavar=plugins.METAVAR,
    )
    bin: str | None = option(
        None,
        "The program, with arguments as in a shell, if the run starts one; labrys starts no program that a run names.",
        metavar="COMMAND",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """The replay of one node alone."""

    node: str | None = option(
        None,
        "Feed the recorded messages of this node to the program of --bin alone, for programs with pipes.",
        metavar="NODE",
    )
    until: float | None = option(
        None, "With --node: leave out messages later than so many seconds from the start.", low=0, high=1e9
    )
    wait: float = option(10.0, "With --node: seconds to wait for a line of the program.", low=0, high=86_400)


OF_NODE = frozenset({*(field.name for field in fields(NodeOptions)), PROGRAM, "store_dir"})


@click.command("replay", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@click.option(
    "--targets",
    type=Choice(["role", "name"]),
    default="role",
    show_default=True,
    help="role: a fault on the leader hits the leader of the new run. name: it hits the same node again.",
)
@with_options(NodeOptions)
@with_options(ByPlace)
@nemesis.choices.FAULT_OPTION
@with_option(ClusterOptions, "inventory")
@click.option(
    "--cluster",
    "cluster_kind",
    type=Choice(clusters.options.CLUSTERS),
    default=None,
    help="Run the plan on another kind of cluster, e.g. that of a simulated run on real nodes.  [default: that of RUN]",
)
@with_options(*OUTPUT, RepeatOptions)
@click.pass_context
def replay_run(ctx: click.Context, /, run: str, targets: str, store_dir: Path, **more: Any) -> None:
    """Runs the plan of RUN again, with its seed and options.

    RUN is the folder of a run, or a run in the store: `latest`, `<test>`, `<test>/<time>`, or an index. The options come from
    the test.json of the run, and the faults from its plan.json, which you can edit. A replay never takes --config, --inventory,
    --cluster-name or --store from the run. With --repeat, all runs have the same plan.

    With --cluster, a simulated run of software for real nodes is replayed there. Its faults change where real nodes need it,
    and the command says how.

    With --node, a run of programs with pipes feeds the recorded messages of this node to the program of --bin alone, without a
    run. So options of a run, such as --targets and --repeat, are errors then. It stops at the first line that differs from the
    recorded one, and the exit code is then 1. If no line was compared, it is 2.
    """
    alone = build(NodeOptions, more)
    if alone.node is not None:
        _refuse_others(ctx)
        ctx.exit(_of_node(run, alone, store_dir, str(more[PROGRAM] or "")))
    for lonely in ("until", "wait"):
        if ctx.get_parameter_source(lonely) is ParameterSource.COMMANDLINE:
            raise InputError(f"--{lonely} needs --node, the node whose messages the program gets")
    always = more["repeat"] > 1
    (options, sources), repeated, earlier_run = recalled(
        ctx, run, store_dir=store_dir, targets=targets, more=more, always_plan=always
    )
    opt.tell_defaults(sources.defaults)
    ctx.exit(run_tests(options, sources, repeated, earlier=_earlier(earlier_run, options, targets)))


def _earlier(run: Run, options: RunOptions, targets: str) -> Earlier | None:
    """Returns the replayed run, if the new one is to do the same; None, with a line, if it had programs and is to differ."""
    from commands.run.executions import Earlier
    from results.stored.load import load_record

    record = load_record(run)
    earlier = Earlier.of(run, record)
    if earlier is None or not subjects.by_programs(options):
        return None
    plan = _plan_of(run, subjects.layout_of(options, record.test.nodes), _plan_text(run))
    if targets == "name" or _edited(plan, record):
        why = "--targets name changes the plan" if targets == "name" else "its plan was edited"
        echo(f"replay     what the programs do is not compared with the run: {why}", err=True)
        return None
    return earlier


def _plan_of(run: Run, where: Layout, text: str) -> Plan:
    """Returns the plan of a run from its text.

    Raises:
        InputError: It is not valid.
    """
    from nemesis.planfile import from_json

    return from_json(text, where=where, source=str(run.plan_json))


def _plan_text(run: Run) -> str:
    """Returns the text of the plan in the folder of a run.

    Raises:
        InputError: There is none.
    """
    try:
        return run.read_bytes(run.plan_json, MAX_PLAN_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{run.path} has no plan to replay: {error}") from error


def _refuse_others(ctx: click.Context) -> None:
    """Refuses options of a run, since --node replays none.

    Raises:
        InputError: The command line has one.
    """
    given = [
        f"--{opt.long_name(parameter)}"
        for parameter in opt.options_of(ctx.command, ctx)
        if parameter.name not in OF_NODE
        and ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise InputError(
            f"{given[0]} has no meaning with --node: the messages of one node are fed to a program, without a run and without "
            f"faults; leave out {', '.join(given)}"
        )


def _of_node(run: str, options: NodeOptions, store_dir: Path, program: str) -> ExitCode:
    """Feeds the recorded messages of one node to a program, and prints whether it says the same."""
    from commands.replay.node import end_of, recorded_lines, replayed
    from harness.console.program import command_of
    from results.store.store import Store
    from results.stored.load import load_record

    stored_run = Store(store_dir).open_run(run)
    record = load_record(stored_run)
    node = options.node or ""
    lines = recorded_lines(stored_run, record, node)
    result = replayed(
        lines,
        command_of(program),
        seed=record.test.seed,
        node=node,
        until_s=options.until,
        wait_s=options.wait,
    )
    for sentence in [*result.sentences(node), *filter(None, [end_of(stored_run, node)])]:
        echo(sentence)
    return result.code


def recalled(
    ctx: click.Context,
    run: str,
    *,
    store_dir: Path,
    targets: str,
    more: dict[str, Any],
    always_plan: bool = False,
    without: str | None = None,
) -> tuple[tuple[RunOptions, Sources], RepeatOptions, Run]:
    """Returns the options of `labrys test` that carry out the plan of a run again, how often it runs, and the run.

    If seed and options do not draw the plan, it is written into the run's folder, and the options name it.

    Args:
        ctx: The context of the command.
        run: The run, as on the command line.
        store_dir: The store.
        targets: `role` or `name`: whether a fault on the leader hits the new leader or the same node again.
        more: The other options of the command, such as the system and the workload; the test's name is added.
        always_plan: Whether to write the plan in any case.
        without: The long name of an option whose recorded value is not taken, since the command gives others.

    Raises:
        InputError: The run cannot be read, or its options or its plan are not valid.
    """
    from dataclasses import replace

    from nemesis.planfile import by_name, to_json
    from results.store.store import Store, is_test_name
    from results.stored.load import load_record

    replaced = {name: more[name] for name in (choosing.SYSTEM, choosing.WORKLOAD) if more[name] is not None}
    stored_run = Store(store_dir).open_run(run)
    record = load_record(stored_run)
    text = _plan_text(stored_run)  # a run without a plan is refused before anything else
    known = _known(record, replaced, more, str(stored_run.test_json))
    system, workload = _chosen(known, replaced, str(stored_run.test_json))
    options = [*opt.options_of(run_test), *system.options, *workload.options]
    known["nodes"] = len(record.test.nodes) if known.get("cluster_kind", "local") in clusters.options.COUNTED else None
    if known["nodes"] is None:
        options = [option for option in options if option.name != "nodes"]
        del known["nodes"]
    known.setdefault(PROMISES, kept(known, _promised(system, workload, known)))
    places = {*PLACES, *(str(option.name) for option in options if opt.long_name(option) == without)}
    values, missing = opt.recorded(options, known, places=places, source=str(stored_run.test_json))
    recorded = RunOptions.of(values)
    plan = _plan_of(stored_run, subjects.layout_of(recorded, record.test.nodes), text)
    faults = by_name(plan.faults, record.faults) if targets == "name" else plan.faults
    edited = _edited(plan, record)
    if plan.time_limit_s is not None and TIME_LIMIT in missing:
        values["time_limit"] = plan.time_limit_s
        recorded = recorded.having({"time_limit": plan.time_limit_s})
        missing.remove(TIME_LIMIT)
    origins = opt.origins(ctx)
    for line in _notices(known, recorded, missing, origins, str(stored_run.test_json)):
        echo(message(line), err=True)
    given = {name: value for name, value in values.items() if value not in (None, ())}
    planned = replace(plan, faults=faults, seed=record.test.seed, time_limit_s=values["time_limit"])
    if record.test.options.get("cluster_kind") == clusters.options.SIMULATED and not recorded.cluster.simulated:
        planned = _for_real_nodes(planned)
        given["time_limit"] = planned.time_limit_s
    if always_plan or not _drawn_again(planned, recorded):
        path = stored_run.path / f"replay-by-{targets}.json"
        stored_run.write_text(path, to_json(planned))
        given = {name: value for name, value in given.items() if name not in nemesis.choices.DRAWING}
        given[nemesis.choices.PLAN_FILE] = near(path)
    given |= {name: value for name, value in more.items() if name in origins and name in PLACES and value is not None}
    if more.get("test_name") is None and not edited and is_test_name(stored_run.test_name):
        given["test_name"] = stored_run.test_name
    test = run_test.completed(ctx.find_root(), {**given, "store_dir": store_dir})
    return (RunOptions.of(test.params), Sources.of(test)), build(RepeatOptions, test.params), stored_run


def _known(record: RunRecord, replaced: Mapping[str, str], more: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the values of the run's options, with those that the command line replaces.

    Raises:
        InputError: The run names a program, and the command line does not.
    """
    known: dict[str, Any] = {**record.test.options, "seed": record.test.seed, **replaced}
    if more.get("cluster_kind") is not None:
        known |= {"cluster_kind": more["cluster_kind"], "carrier": None, **asdict(Threads())}
    if PROGRAM in known:
        known[PROGRAM] = _program(known[PROGRAM], more.get(PROGRAM), source)
    return known


def _for_real_nodes(plan: Plan) -> Plan:
    """Returns the plan of a simulated run as real nodes can carry it out, and prints what changes."""
    from nemesis.real_nodes import changed_plan

    changed, sentences = changed_plan(plan)
    for sentence in sentences:
        echo(f"replay     {sentence}", err=True)
    return changed


def _promised(system: Chosen, workload: Chosen, known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the options of the workload that ask for the promise of the system with recorded options."""
    own = {field.name for field in fields(system.type.Options)}
    try:
        options = build(system.type.Options, {name: value for name, value in known.items() if name in own})
    except (InputError, ValueError, TypeError):
        return {}  # a value is refused where the record is read
    return values_of(promise_of(system.type, options, workload.type.name), workload.type)


def _program(recorded: Value, given: str | None, source: str) -> str:
    """Returns the program that the command line names.

    Raises:
        InputError: It names none. A run may come from anyone, so its program is not started.
    """
    if given is None:
        raise InputError(
            f"{source} names the program {shown(recorded)}. labrys starts no program that a run names; give --bin COMMAND"
        )
    return given


def _edited(plan: Plan, record: RunRecord) -> bool:
    """Returns whether the plan differs from the faults of the run.

    An interrupted run has only the first faults, and so may a run with faults in turn that ended late.
    """
    carried_out = [fault.planned for fault in record.faults]
    completed = any(part.name == "completed" and part.verdict is Verdict.VALID for part in record.parts)
    all_began = completed and not plan.in_turn
    return any(fault not in plan.faults for fault in carried_out) or (all_began and len(carried_out) < len(plan.faults))


def _drawn_again(plan: Plan, options: RunOptions) -> bool:
    """Returns whether seed and options draw this same plan, so that no plan file is needed."""
    try:
        drawn = nemesis.planning.make_plan(
            options.faults,
            where=plan.layout,
            seed=plan.seed or 0,
            time_limit_s=options.load.time_limit,
        )
    except InputError:
        return False
    return (drawn.faults, drawn.in_turn) == (plan.faults, plan.in_turn) and not options.faults.nemesis.every_kind


def _chosen(known: Mapping[str, Any], replaced: Mapping[str, str], source: str) -> list[Chosen]:
    """Returns the run's system and workload.

    Raises:
        InputError: One of them is not installed, or has a place, e.g. MODULE:CLASS, that is not on the command line.
    """
    usual = asdict(NameOptions())  # for runs of earlier versions
    choices = []
    for parameter, group in ((choosing.SYSTEM, plugins.SYSTEMS), (choosing.WORKLOAD, plugins.WORKLOADS)):
        try:
            on_command_line = parameter in replaced
            name = str(known.get(parameter, usual[parameter]))
            choices.append(choosing.chosen(group, name, by_place=on_command_line))
        except InputError as error:
            raise InputError(f"{source}: {error}") from error
    return choices


def _notices(
    known: Mapping[str, Any], recorded: RunOptions, missing: Sequence[str], given: Collection[str], source: str
) -> Iterator[str]:
    """Yields a line for each value that a replay does not take from its run, and what to give instead."""
    if missing:
        yield f"{source} lacks {', '.join(missing)}; the replay uses built-in defaults"
    if recorded.cluster.cluster_kind == "ssh" and "inventory" not in given:
        yield "the run was on --cluster ssh; give --inventory FILE, because labrys never takes hosts from a run"
    if known.get("cluster_name") is not None and "cluster_name" not in given:
        yield (
            f"the run was on the cluster {name(str(known['cluster_name']))!r}; give --cluster-name to use a running cluster"
        )
