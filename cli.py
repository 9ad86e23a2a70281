"""The `labrys` command: parses, composes a test from the rooms, prints, and sets the exit code.

Only click and the standard library are imported here at the top (and the rooms' own tables of options, which do the same); a
command's own imports happen when it is asked for, so that `labrys --help` and `labrys check` on a small file start at once.
Verdicts and machine output go to standard output, everything else to standard error. Exit codes: 0 valid, 1 invalid, 2
unknown, 254 bad arguments, 255 an error of the tool or of the machines, 130 interrupted.
"""

from __future__ import annotations

if __name__ == "__main__":
    import harness.process

    harness.process.main()  # imports this module by its name, so that an import that fails has an exit code of ours

import importlib
import io
import json
import logging
import os
import platform
import re
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

import clusters.options
import harness.choices
import nemesis.choices
import workloads.options
from harness import options as opt
from harness import process
from harness.config import DEFAULTS_OF, as_defaults, load_config, refuse_unread
from harness.errors import ExitCode, InputError
from harness.parameters import MAX_SEED, Whole, existing_file, existing_folder, folder
from harness.plain import message, name
from harness.randomness import fresh_seed
from harness.terminal import PlainFormatter, echo, open_console

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from harness.cluster import Cluster
    from harness.op import Value
    from harness.run import Test
    from nemesis.planfile import Plan
    from results.record import TestInfo

    Command = TypeVar("Command", bound="Callable[..., Any]")

COMMANDS = {
    "analyze": "results.pipeline.command:analyze",
    "check": "checker.command:check",
    "cluster": "clusters.command:cluster",
    "doctor": "clusters.command:doctor",
    "report": "results.command:report",
    "serve": "results.command:serve",
}
COMPLETION = "_LABRYS_COMPLETE"
CONFIG_FILE = "labrys.toml"
ENVIRONMENT_PREFIX = "LABRYS"
PREVIEW_OPERATIONS = 20
MAX_NAME = 100
MAX_PLAN_BYTES = 64 << 20


class LazyGroup(opt.Group):
    """A group whose commands are imported when they are asked for, with defaults from `labrys.toml`."""

    command_class = opt.ToldCommand

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands."""
        return sorted({*super().list_commands(ctx), *COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a command; None if there is none of this name."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            command = super().get_command(ctx, cmd_name)
        else:
            module, _, attribute = place.partition(":")
            command = getattr(importlib.import_module(module), attribute)
        if command is not None and not ctx.resilient_parsing:
            self._apply_defaults(ctx, command, cmd_name)
        return command

    def _apply_defaults(self, ctx: click.Context, command: click.Command, name: str) -> None:
        """Gives a command the defaults of the environment and of `labrys.toml`, each under its option's long name."""
        refuse_unread(os.environ, ENVIRONMENT_PREFIX)
        source = DEFAULTS_OF.get(name, name)
        own = opt.options_of(command)
        for option in own:
            option.envvar = opt.variable(f"{ENVIRONMENT_PREFIX}_{source}", option)
        path: Path | None = ctx.params.get("config")
        if path is None:
            return
        named = ctx.get_parameter_source("config") in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
        table = load_config(path, self.list_commands(ctx), named=named).get(source, {})
        known = own if source == name else opt.options_of(self.commands[source])
        defaults = as_defaults(
            path, source, table, {opt.long_name(option): (str(option.name), option.multiple) for option in known}
        )
        taken = {option.name for option in own}
        ctx.default_map = {name: {key: value for key, value in defaults.items() if key in taken}}


def _config_file(_ctx: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    return value or (Path(CONFIG_FILE) if os.path.isfile(CONFIG_FILE) else None)  # noqa: PTH113 - says no to what it cannot look at


@click.group(
    cls=LazyGroup,
    context_settings={"auto_envvar_prefix": ENVIRONMENT_PREFIX, "help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 valid, 1 invalid, 2 unknown, 254 bad arguments, 255 error of the tool, 130 interrupted.",
)
@click.version_option(package_name="labrys")
@click.option(
    "--config",
    type=existing_file(),
    callback=_config_file,
    is_eager=True,
    help=f"Defaults for options, a table for each command; [test] is also that of plan.  "
    f"[default: {CONFIG_FILE}, if there is one]",
)
def labrys(config: Path | None) -> None:
    """Finds consistency bugs in replicated systems.

    Drives a cluster of real nodes with concurrent clients, breaks it while they work, records every operation, and decides
    whether the history is linearizable.
    """


# What decides a run, in the order of `--help`; the reproduce line repeats it.
RUN_OPTIONS = (
    *clusters.options.OPTIONS,
    *workloads.options.OPTIONS,
    *nemesis.choices.OPTIONS,
    *harness.choices.OPTIONS,
)

STORE_OPTION = click.option(
    "--store",
    "store_dir",
    type=folder(),
    default=Path("store"),
    show_default=True,
    help="Where runs are kept.",
)

# What says only where things are and go.
OUTPUT_OPTIONS = (
    *clusters.options.PLACE_OPTIONS,
    click.option("--name", "test_name", default=None, help="The test's folder in the store.  [default: made from what runs]"),
    STORE_OPTION,
    click.option("--format", "output", type=click.Choice(["text", "json", "github"]), default="text", show_default=True,
                 help="What is written to standard output."),
)  # fmt: skip
NOT_REPRODUCED = frozenset({"seed", "cluster_name", "keep_cluster", "test_name", "store_dir", "output"})

# What a replay never takes from the run that it replays: its folder may come from anyone.
PLACES = (NOT_REPRODUCED - {"seed"}) | {"inventory", nemesis.choices.PLAN_FILE}


def _with(options: Iterable[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(list(options)):
            command = option(command)
        return command

    return decorate


@labrys.command("test")
@_with((*RUN_OPTIONS, *OUTPUT_OPTIONS))
@click.pass_context
def run_test(ctx: click.Context, /, **options: Any) -> None:
    """Runs a test once, and judges it."""
    from harness.plain import one_line
    from harness.verdict import Verdict
    from results.reading import verdict_from
    from results.session import carry_out
    from results.store import Store
    from results.terminal import print_summary

    console = open_console()
    given = _settle(ctx, options)[1]
    reproduce = _reproduce_line(ctx, options)
    console.print(f"reproduce  {reproduce}", style="dim", soft_wrap=True)
    with clusters.options.open_cluster(options) as cluster:
        test, info, plan = _compose(options, cluster, given, reproduce, defaults=opt.from_file(ctx))
        for kind, why in info.left_out.items():
            console.print(f"left out   {one_line(f'{kind}: {why}')}", soft_wrap=True)
        session = carry_out(test, info, plan=plan, store=Store(options["store_dir"]), console=console)
    run, document = session.run, session.document
    verdict = verdict_from(document["valid"])
    print_summary(console, document, report=run.report_html)
    if options["output"] == "json":
        echo(json.dumps({"run": str(run.path), **document}))
    elif options["output"] == "github" and verdict is not Verdict.VALID:
        level = "error" if verdict is Verdict.INVALID else "warning"
        echo(f"::{level} title=labrys {info.name}::{document['reason']} -- {reproduce}".replace("\n", "%0A"))
    if session.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)
    if session.error is not None and verdict is not Verdict.INVALID:  # a definite failure is never masked
        ctx.exit(ExitCode.INTERNAL)
    ctx.exit(verdict.exit_code)


def _settle(
    ctx: click.Context, options: dict[str, Any], *, assume_nodes: bool = False
) -> tuple[tuple[str, ...], Plan | None]:
    """Settles what the options leave open, and refuses what cannot be before anything is opened.

    A line on standard error tells each option that has no effect, and each that overrides a plan.

    Returns:
        The names of the nodes, and the plan that is given.
    """
    origins = opt.origins(ctx)
    names, lines = clusters.options.settle_nodes(options, origins, assume=assume_nodes)
    given = nemesis.choices.given_plan(options, names)
    if given is not None:
        lines += nemesis.choices.follow_plan(given, options, given=origins, built_in=opt.built_in(ctx.command))
    for line in lines:
        echo(line, err=True)
    if options["seed"] is None:
        options["seed"] = fresh_seed()
    nemesis.choices.check(options, nodes=names, seed=options["seed"], time_limit_s=options["time_limit"], given=given)
    workloads.options.make_workload(options)
    harness.choices.make_load(options, len(names))
    return names, given


def _compose(
    options: Mapping[str, Any],
    cluster: Cluster,
    given: Plan | None,
    reproduce: str,
    *,
    defaults: Mapping[str, Value] | None,
) -> tuple[Test, TestInfo, str]:
    """Puts a test together from the rooms, or refuses it before anything is done."""
    from importlib.metadata import version

    from harness.run import Test
    from nemesis.conductor import Conductor
    from nemesis.planfile import to_json
    from results.record import TestInfo

    names = [node.name for node in cluster.nodes]
    seed, time_limit_s = options["seed"], options["time_limit"]
    system = clusters.options.make_system(cluster, options)
    workload = workloads.options.make_workload(options)
    plan = nemesis.choices.make_plan(
        options, nodes=names, seed=seed, time_limit_s=time_limit_s, capabilities=cluster.capabilities(), given=given
    )
    nemesis.choices.refuse_impossible(plan, cluster.capabilities(), cluster.nodes)
    test = Test(
        seed=seed,
        cluster=cluster,
        system=system,
        workload=workload,
        nemesis=Conductor(cluster=cluster, system=system),
        plan=plan.faults,
        load=harness.choices.make_load(options, len(names)),
        time_limit_s=time_limit_s,
        operation_timeout_s=options["operation_timeout"],
        recovery_timeout_s=options["recovery_timeout"],
        final_reads=options["final_reads"],
    )
    info = TestInfo(
        name=options["test_name"] or _test_name(options),
        seed=seed,
        reproduce=reproduce,
        started_utc=datetime.now(UTC),
        system=system.name,
        workload=workload.name,
        nodes=names,
        refusals=tuple(system.refusals),
        versions={"labrys": version("labrys"), "python": platform.python_version(), **system.versions()},
        options={name: str(value) if isinstance(value, Path) else value for name, value in options.items()},
        left_out={left.kind: left.reason for left in plan.left_out},
        defaults=defaults,
    )
    return test, info, to_json(plan)


def _test_name(options: Mapping[str, Any]) -> str:
    faults = "edited-plan" if options["plan_file"] else options["nemesis"].replace(",", "+").replace(":", "-")
    name = f"{options['system_name']}-{options['workload_name']}-{faults or 'no-faults'}"
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name)[:MAX_NAME]


@labrys.command("plan", context_settings={"auto_envvar_prefix": f"{ENVIRONMENT_PREFIX}_TEST"})
@_with(RUN_OPTIONS)
@click.pass_context
def show_plan(ctx: click.Context, /, **options: Any) -> None:
    """Prints what a seed would do: its faults, and the first operations of each stream.

    The output is the same, byte for byte, whenever seed and options are. Nothing is started: `all` stands for every kind,
    whatever nodes could take. Defaults are those of `labrys test`.
    """
    from nemesis.planfile import to_json

    names, given = _settle(ctx, options, assume_nodes=True)
    reproduce = _reproduce_line(ctx, options)
    plan = nemesis.choices.make_plan(
        options, nodes=names, seed=options["seed"], time_limit_s=options["time_limit"], given=given
    )
    workload = workloads.options.make_workload(options)
    streams = harness.choices.make_load(options, len(names)).streams(len(names))
    preview = workload.describe_streams(seed=options["seed"], streams=streams, count=PREVIEW_OPERATIONS)
    echo(json.dumps({"reproduce": reproduce, "plan": json.loads(to_json(plan)), "streams": preview}, indent=2))


@labrys.command("replay")
@click.argument("run", default="latest")
@click.option(
    "--targets",
    type=click.Choice(["role", "name"]),
    default="role",
    show_default=True,
    help="Whether a fault that was aimed at the leader is aimed at the leader again, or at the node that it hit.",
)
@_with((clusters.options.INVENTORY_OPTION, *OUTPUT_OPTIONS))
@click.pass_context
def replay_run(ctx: click.Context, /, run: str, targets: str, store_dir: Path, **_: Any) -> None:
    """Carries out the plan of RUN again, with its seed and options.

    RUN is a run's folder, or within the store `latest`, `<test>`, `<test>/<time>`, or an index. The run says what is tested:
    the options in its test.json, each held to the type and range of its flag, and the faults in its plan.json. You say where:
    --config, --inventory, --cluster-name and --store are never taken from the run.
    """
    from dataclasses import replace

    from nemesis.planfile import by_name, from_json, to_json
    from results.load import load_record
    from results.store import Store

    found = Store(store_dir).open_run(run)
    record = load_record(found)
    try:
        plan = from_json(
            found.read_bytes(found.plan_json, MAX_PLAN_BYTES).decode("utf-8"),
            nodes=record.test.nodes,
            source=str(found.plan_json),
        )
    except UnicodeDecodeError as error:
        raise InputError(f"{found.path} has no plan that could be replayed: {error}") from error
    path = found.path / f"replay-by-{targets}.json"
    faults = by_name(plan.faults, record.faults) if targets == "name" else plan.faults
    options = opt.options_of(run_test)
    known = {**record.test.options, "seed": record.test.seed}
    if plan.time_limit_s is not None:
        known.setdefault("time_limit", plan.time_limit_s)
    known["nodes"] = len(record.test.nodes) if known.get("cluster_kind", "local") == "local" else None
    if known["nodes"] is None:
        options = [option for option in options if option.name != "nodes"]
        del known["nodes"]
    values, missing = opt.recorded(options, known, places=PLACES, source=str(found.test_json))
    given = opt.origins(ctx)
    for line in _untaken(known, values, missing, given, str(found.test_json)):
        echo(message(line), err=True)
    limit_s = values["time_limit"]
    found.write_text(path, to_json(replace(plan, faults=faults, seed=record.test.seed, time_limit_s=limit_s)))
    own = [option for option in opt.options_of(ctx.command) if option.name in given and option.name in PLACES]
    drawn = [option for option in options if option.name not in nemesis.choices.DRAWING]
    words = [*opt.spelled_out(drawn, values), *opt.spelled_out(own, {**ctx.params, "store_dir": None})]
    words += ["--plan", str(path), "--store", str(store_dir)]
    root = ctx.find_root()
    labrys.get_command(root, "test")  # brings the defaults of its table
    with run_test.make_context("test", words, parent=root) as test:
        run_test.invoke(test)


def _untaken(
    known: Mapping[str, Any], values: Mapping[str, Any], missing: Sequence[str], given: Collection[str], source: str
) -> Iterator[str]:
    """Says what a replay does not take from its run, and what the person has to give instead."""
    if missing:
        yield f"{source} says nothing of {', '.join(missing)}; built-in defaults are used"
    if values["cluster_kind"] == "ssh" and "inventory" not in given:
        yield "the run was on --cluster ssh; give --inventory FILE, since hosts are never taken from a run"
    if known.get("cluster_name") is not None and "cluster_name" not in given:
        yield (
            f"the run was on the cluster {name(str(known['cluster_name']))!r}; give --cluster-name to use one that is up"
        )


@labrys.command("suite")
@click.argument("file", type=existing_file())
@click.option(
    "--seed", type=Whole(0, MAX_SEED), default=None, help="The root of all cases' seeds.  [default: a fresh one]"
)
@click.option("--exit-first", is_flag=True, help="Stop at the first case that is not as expected.")
@click.option(
    "--resume",
    type=existing_folder(),
    help="Go on with a suite that was interrupted, from its folder.",
)
@STORE_OPTION
@click.pass_context
def run_whole_suite(
    ctx: click.Context, *, file: Path, seed: int | None, exit_first: bool, resume: Path | None, store_dir: Path
) -> None:
    """Runs the matrix of tests in FILE, and sums it up.

    The exit code is 1 if a verdict is definite and not the expected one, else 255 if a case broke, else 2 if one is unknown,
    else 0.
    """
    from harness.suite import exit_code, load_suite
    from results.suites import SuiteFolder, print_table, run_suite, seed_of

    known = {opt.long_name(option) for option in opt.options_of(run_test)}
    if seed is None:
        seed = fresh_seed() if resume is None else seed_of(resume)
    suite = load_suite(file, seed=seed, known=known)
    folder = SuiteFolder.create(store_dir, suite, datetime.now(UTC)) if resume is None else SuiteFolder(resume)
    before = {} if resume is None else folder.done(suite)
    console = open_console()
    again = shlex.join(["labrys", "suite", str(file), "--seed", str(seed)])
    console.print(f"reproduce  {again}", style="dim", soft_wrap=True)
    if ctx.parent is not None:
        labrys.get_command(ctx.parent, "test")  # brings the defaults of its table
    usual = run_test.make_context("test", [], parent=ctx.parent).params["time_limit"]
    try:
        results = run_suite(
            suite,
            folder,
            store=store_dir,
            console=console,
            exit_first=exit_first,
            before=before,
            time_limit_s=usual,
            config=ctx.find_root().params.get("config"),
        )
    except KeyboardInterrupt:
        echo(f"interrupted; `{again} --resume {folder.path}` goes on", err=True)
        raise
    print_table(console, results)
    echo(folder.path / "junit.xml")
    ctx.exit(exit_code(results))


def _reproduce_line(ctx: click.Context, options: Mapping[str, Any]) -> str:
    """Returns the command that runs the same again, after all options are settled."""
    planned = options[nemesis.choices.PLAN_FILE] is not None
    without = NOT_REPRODUCED | (nemesis.choices.DRAWING if planned else frozenset())
    words = opt.command_line(ctx, options, without=without, always={"time_limit"} if planned else ())
    return shlex.join(["labrys", "test", "--seed", str(options["seed"]), *words])


def invoke(arguments: list[str]) -> int:
    """Carries out a command line.

    `labrys.main` of click would do the same, but it ends the process with 1 where a pipe breaks.

    Returns:
        The exit code.

    Raises:
        InputError: The arguments cannot be understood.
    """
    asked = os.environ.get(COMPLETION)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PlainFormatter())
    try:
        if asked:
            return _complete(asked)
        with labrys.make_context("labrys", list(arguments)) as ctx:
            labrys.invoke(ctx)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.ClickException as error:
        told = io.StringIO()
        error.show(told)
        process.say(told.getvalue().rstrip())
        return ExitCode.BAD_ARGUMENTS
    return ExitCode.VALID


def _complete(asked: str) -> int:
    """Does what a shell asks of its completion, e.g. `bash_source`."""
    from click.shell_completion import shell_complete

    if shell_complete(labrys, {}, "labrys", COMPLETION, asked):
        raise InputError(f"{COMPLETION}: expected e.g. bash_source, zsh_source or fish_source, found {asked!r}")
    return ExitCode.VALID


def main(arguments: list[str] | None = None) -> None:
    """Carries out a command line, and ends the process with the exit code that says how it went."""
    process.end_with(lambda: invoke(sys.argv[1:] if arguments is None else arguments))
