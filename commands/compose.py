"""Builds a test from options: fills in missing options, and refuses impossible ones early."""

from __future__ import annotations

import functools
import platform
import re
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import clusters.options
import harness.console.choices
import nemesis.choices
from commands import choosing
from commands.suite_case import SUITE_CASE, SUITE_CASE_OPTION
from harness.console import options as opt
from harness.console.parameters import Choice, ThresholdText, Whole, folder
from harness.console.terminal import echo
from harness.randomness import fresh_seed
from harness.suites.thresholds import Threshold, read_threshold, refuse_unknown_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.op import Value
    from harness.run import Test
    from nemesis.planfile import Plan
    from results.store.record import TestInfo

    Command = TypeVar("Command", bound="Callable[..., Any]")

MAX_NAME = 100

# The options that determine a run, in the order of `--help` and of the reproduce line. Those of system and workload follow.
RUN_OPTIONS = (
    *clusters.options.OPTIONS,
    *choosing.OPTIONS,
    *nemesis.choices.OPTIONS,
    *harness.console.choices.OPTIONS,
)

STORE_OPTION = click.option(
    "--store",
    "store_dir",
    type=folder(),
    default=Path("store"),
    show_default=True,
    help="The folder with all runs.",
)

FORMAT_OPTION = click.option(
    "--format",
    "output",
    type=Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="Format of standard output; github writes annotations for GitHub Actions.",
)

# The options that do not determine a run: the place of the cluster, and the output.
OUTPUT_OPTIONS = (
    *clusters.options.PLACE_OPTIONS,
    click.option("--name", "test_name", default=None,
                 help="The name of the test, and of its folder in the store.  [default: system, workload and faults]"),
    STORE_OPTION,
    FORMAT_OPTION,
    SUITE_CASE_OPTION,
)  # fmt: skip

# It determines no operation and no fault, but the outcome.
THRESHOLD_OPTION = click.option(
    "--threshold",
    "threshold",
    type=ThresholdText(),
    multiple=True,
    default=(),
    metavar="LIMIT",
    help="A limit for a number of the run, e.g. 'p99_ms < 200' or 'read.p99_ms < 50'; can be repeated. docs/suites.md "
    "lists the numbers.",
)

# The options that repeat a test. A single run does not depend on them.
REPEAT_OPTIONS = (
    click.option("--repeat", type=Whole(1, 100_000), default=1, show_default=True,
                 help="The number of runs. The first run has --seed; Labrys draws the other seeds from it."),
    click.option("--until-fail", is_flag=True, help="With --repeat: stop after the first invalid run."),
    click.option("--same-seed", is_flag=True,
                 help="With --repeat, on real nodes: all runs have --seed."),
)  # fmt: skip
REPEATING = frozenset({"repeat", "until_fail", "same_seed"})
REPEAT_FLAGS = frozenset({"repeat", "until-fail", "same-seed"})
OUTPUT_FLAGS = frozenset({"cluster-name", "keep-cluster", "name", "store", "format", "suite-case"}) | REPEAT_FLAGS
# The options of a suite or of a repeated test, not of the run itself.
AROUND = REPEATING | {SUITE_CASE}
NOT_REPRODUCED = frozenset({"seed", "cluster_name", "keep_cluster", "test_name", "store_dir", "output"}) | AROUND

# A replay never takes these options from the replayed run, because its folder may come from anyone.
PLACES = (NOT_REPRODUCED - {"seed"}) | {"inventory", "fault", nemesis.choices.PLAN_FILE}


def with_options(options: Iterable[Callable[[Command], Command]]) -> Callable[[Command], Command]:
    """Returns a decorator that gives a command some options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(list(options)):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Values that follow from the options alone.

    Attributes:
        nodes: The names of the nodes.
        roles: For each role, the names of the nodes that run a process of it.
        given: The plan from a file; None if the plan is drawn from the seed.
    """

    nodes: tuple[str, ...]
    roles: Mapping[str, Sequence[str]]
    given: Plan | None


def settle(ctx: click.Context, options: dict[str, Any], *, assume_nodes: bool = False) -> Settled:
    """Fills in missing options, and refuses impossible ones, before a cluster is opened.

    Prints a line on standard error for each option that has no effect, and for each option that overrides a plan.

    Args:
        ctx: The context of `labrys test` or `labrys plan`.
        options: The options by parameter name; missing ones are filled in here.
        assume_nodes: Whether to assume names of nodes instead of reading an inventory.

    Raises:
        InputError: The options contradict each other.
    """
    origins = opt.origins(ctx)
    names, lines = clusters.options.settle_nodes(options, origins, assume=assume_nodes)
    choosing.check(options)
    thresholds_of(options)
    roles = choosing.roles_of(options, names)
    given = nemesis.choices.given_plan(options, names, roles)
    if given is not None:
        lines += nemesis.choices.follow_plan(given, options, given=origins, built_in=opt.built_in(ctx))
    for line in lines:
        echo(line, err=True)
    if options["seed"] is None:
        options["seed"] = fresh_seed()
    nemesis.choices.check(
        options, nodes=names, seed=options["seed"], time_limit_s=options["time_limit"], given=given, roles=roles
    )
    harness.console.choices.make_load(options, len(names))
    return Settled(nodes=names, roles=roles, given=given)


def thresholds_of(options: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Returns the thresholds that the options name.

    Raises:
        InputError: One names a function that the workload does not have, or the workload's options are not valid.
    """
    thresholds = tuple(read_threshold(text) for text in options["threshold"])
    if thresholds:
        workload = choosing.workload_of(options)
        refuse_unknown_functions(thresholds, workload.functions, workload.name)
    return thresholds


@functools.cache
def _own_version() -> str:
    """Returns Labrys's version. A search for the installed package takes milliseconds, and a hunt has many runs."""
    from importlib.metadata import version

    return version("labrys")


def compose(
    options: Mapping[str, Any],
    cluster: Cluster,
    settled: Settled,
    reproduce: str,
    *,
    defaults: Mapping[str, Value] | None,
    artifact: Artifact | None = None,
) -> tuple[Test, TestInfo, str]:
    """Composes a test on an open cluster.

    Args:
        options: The settled options.
        cluster: The cluster.
        settled: The values that follow from the options.
        reproduce: The command that runs the same test again.
        defaults: The options that `labrys.toml` sets; None if it sets none.
        artifact: What the system has built; None if it builds nothing.

    Returns:
        The test, its record for the store, and the plan as text for `plan.json`.

    Raises:
        InputError: The nodes cannot take the plan, or an option is not valid.
    """
    from harness.run import Test
    from nemesis.conductor import Conductor
    from nemesis.planfile import to_json
    from results.store.record import TestInfo

    names = [node.name for node in cluster.nodes]
    seed, time_limit_s = options["seed"], options["time_limit"]
    system = choosing.system_of(cluster, options, artifact)
    built = None if artifact is None else artifact.provenance
    workload = choosing.workload_of(options)
    plan = nemesis.choices.make_plan(
        options,
        nodes=names,
        seed=seed,
        time_limit_s=time_limit_s,
        capabilities=nemesis.choices.supported(system, cluster.capabilities(), provable=True),
        given=settled.given,
        roles=settled.roles,
    )
    able = nemesis.choices.supported(system, cluster.capabilities(), provable=False)
    nemesis.choices.refuse_impossible(plan, able, cluster.nodes)
    test = Test(
        seed=seed,
        cluster=cluster,
        system=system,
        workload=workload,
        nemesis=Conductor(cluster=cluster, system=system),
        plan=plan.faults,
        in_turn=plan.in_turn,
        load=harness.console.choices.make_load(options, len(names)),
        time_limit_s=time_limit_s,
        operation_timeout_s=options["operation_timeout"],
        recovery_timeout_s=options["recovery_timeout"],
        final_reads=options["final_reads"],
        final_reads_timeout_s=options["final_reads_timeout"],
        lead_timeout_s=options["lead_timeout"],
    )
    info = TestInfo(
        name=name_of(options),
        seed=seed,
        reproduce=reproduce,
        started_utc=datetime.now(UTC),
        system=system.name,
        workload=workload.name,
        nodes=names,
        answers=tuple(system.answers),
        refusals=tuple(system.refusals),
        log_texts=tuple(system.telling_log_texts),
        versions={
            "labrys": _own_version(),
            "python": platform.python_version(),
            **system.versions(),
            **({} if built is None else {built.name: built.short}),
        },
        artifact=built,
        options={
            name: str(value) if isinstance(value, Path) else value
            for name, value in options.items()
            if name not in AROUND
        },
        left_out={left.kind: left.reason for left in plan.left_out},
        defaults=defaults,
        thresholds=thresholds_of(options),
        suite=options.get(SUITE_CASE),
    )
    return test, info, to_json(plan)


def name_of(options: Mapping[str, Any]) -> str:
    """Returns the name of the test: the given one, or else system, workload and faults."""
    if options["test_name"]:
        given: str = options["test_name"]
        return given
    faults = "edited-plan" if options["plan_file"] else options["nemesis"].replace(",", "+").replace(":", "-")
    name = f"{options[choosing.SYSTEM]}-{options[choosing.WORKLOAD]}-{faults or 'no-faults'}"
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name)[:MAX_NAME]


def reproduce_line(ctx: click.Context, options: Mapping[str, Any]) -> str:
    """Returns the command that runs the same test again. All options must be settled."""
    planned = options[nemesis.choices.PLAN_FILE] is not None
    without = NOT_REPRODUCED | (nemesis.choices.DRAWING if planned else frozenset())
    words = opt.command_line(ctx, options, without=without, always={"time_limit"} if planned else ())
    return shlex.join(["labrys", "test", "--seed", str(options["seed"]), *words])
