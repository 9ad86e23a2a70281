"""Builds a test from options: fills in missing options, and refuses impossible ones early."""

from __future__ import annotations

import contextlib
import functools
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import clusters.options
import harness.console.choices
import nemesis.planning
from commands.options import subjects
from commands.options.promised import promise_tested
from commands.options.run_options import reproduce_line
from commands.options.suite_case import SUITE_CASE
from harness import phases as ph
from harness.blame import Blamable, blaming
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.console.terminal import echo
from harness.errors import PluginError
from harness.phases import Phases
from harness.randomness import fresh_seed
from harness.suites.thresholds import Threshold, read_threshold, refuse_unknown_functions
from nemesis.targets import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from commands.options.run_options import RunOptions, Sources
    from harness.builds import Artifact
    from harness.capabilities import Capabilities
    from harness.cluster import Cluster
    from harness.op import Value
    from harness.system import System
    from harness.test import Test
    from nemesis.planfile import Plan
    from nemesis.targets import Layout
    from results.record.record import TestInfo

MAX_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Options that are complete and fit together, with what follows from them alone.

    Attributes:
        options: The options; the seed and all else that was missing is filled in.
        sources: Where their values come from.
        layout: The names of the nodes, and the nodes that run a process of each role.
        given: The plan from a file; None if the plan is drawn from the seed.
    """

    options: RunOptions
    sources: Sources
    layout: Layout
    given: Plan | None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Returns the names of the nodes."""
        return self.layout.nodes

    @property
    def reproduce(self) -> str:
        """Returns the command that runs the same test again."""
        return reproduce_line(self.options, self.sources)

    def seeded(self, seed: int) -> Settled:
        """Returns the same with another seed."""
        return replace(self, options=self.options.seeded(seed))

    def having(self, changes: Mapping[str, Any]) -> Settled:
        """Returns the same with other values, by parameter name; see `RunOptions.having`."""
        return replace(self, options=self.options.having(changes))

    def plan(self, capabilities: Mapping[str, Capabilities] | None = None) -> Plan:
        """Draws the plan, or completes the given one; see `nemesis.planning.make_plan`."""
        return nemesis.planning.make_plan(
            self.options.faults,
            where=self.layout,
            seed=self.options.seed,
            time_limit_s=self.options.load.time_limit,
            capabilities=capabilities,
            given=self.given,
        )

    def requested_kinds(self) -> tuple[str, ...]:
        """Returns the kinds of faults that the options ask for, whatever the nodes support."""
        return nemesis.planning.requested_kinds(self.options.faults, where=self.layout, given=self.given)


def settle(options: RunOptions, sources: Sources, *, assume_nodes: bool = False) -> Settled:
    """Does what `fitted` does, and prints its lines on standard error."""
    settled, lines = fitted(options, sources, assume_nodes=assume_nodes)
    for line in lines:
        echo(line, err=True)
    return settled


def fitted(options: RunOptions, sources: Sources, *, assume_nodes: bool = False) -> tuple[Settled, Sequence[str]]:
    """Fills in missing options, and refuses impossible ones, before a cluster is opened.

    Args:
        options: The options.
        sources: Where their values come from.
        assume_nodes: Whether to assume names of nodes instead of reading an inventory.

    Returns:
        The options; and a line for each option that has no effect, and for each option that overrides a plan.

    Raises:
        InputError: The options contradict each other.
    """
    with options.blaming():
        return _fitted(options, sources, assume_nodes=assume_nodes)


def _fitted(options: RunOptions, sources: Sources, *, assume_nodes: bool) -> tuple[Settled, Sequence[str]]:
    cluster, names, lines = clusters.options.settle_nodes(
        options.cluster, options.place, sources.origins, assume=assume_nodes
    )
    options = replace(options, cluster=cluster)
    subjects.check(options)
    options, more = subjects.without_threads(options)
    lines = [*lines, *more]
    thresholds_of(options)
    where = subjects.layout_of(options, names)
    given = nemesis.planning.given_plan(options.faults, where)
    if given is not None:
        faults, load, told = nemesis.planning.follow_plan(given, options.faults, options.load, given=sources.origins)
        options, lines = replace(options, faults=faults, load=load), lines + told
    if options.load.seed is None:
        options = options.seeded(fresh_seed())
    nemesis.planning.check_triggers(options.faults, given, subjects.subject_of(options))
    nemesis.planning.check(
        options.faults,
        where=where,
        seed=options.seed,
        time_limit_s=options.load.time_limit,
        given=given,
    )
    harness.console.choices.make_load(options.load, len(names))
    return Settled(options=options, sources=sources, layout=where, given=given), lines


def thresholds_of(options: RunOptions) -> tuple[Threshold, ...]:
    """Returns the thresholds that the options name.

    Raises:
        InputError: One names a function that the workload does not have, or the workload's options are not valid.
    """
    thresholds = tuple(read_threshold(text) for text in options.limits.threshold)
    if thresholds:
        workload = subjects.workload_of(options)
        refuse_unknown_functions(thresholds, workload.functions, workload.name)
    return thresholds


@functools.cache
def _own_version() -> str:
    """Returns Labrys's version. A search for the installed package takes milliseconds, and a hunt has many runs."""
    from importlib.metadata import version

    return version("labrys")


@contextlib.contextmanager
def composed(
    settled: Settled, phases: Phases | None = None, say: Callable[[str], object] = lambda _: None
) -> Iterator[tuple[Test, Plan]]:
    """Opens the cluster that the options name, builds what the system installs, and composes the test.

    Args:
        settled: The options.
        phases: Measures the phases `cluster` and `build`.
        say: Is called with sentences about a build.

    Yields:
        The test, and its plan.

    Raises:
        LabrysError: The cluster cannot be opened, the nodes cannot take the plan, or an option is not valid.
    """
    options, measured = settled.options, Phases() if phases is None else phases
    with options.blaming(), contextlib.ExitStack() as stack:
        with measured.during(ph.CLUSTER):
            opened = clusters.options.open_cluster(
                options.cluster, options.place, options.seed, by_programs=subjects.by_programs(options)
            )
            cluster = stack.enter_context(opened)
        artifact = None
        if (builder := subjects.builder_of(subjects.placed(options))) is not None:
            with measured.during(ph.BUILD):
                artifact = builder(say)
        yield compose(settled, cluster, artifact)


def compose(settled: Settled, cluster: Cluster, artifact: Artifact | None = None) -> tuple[Test, Plan]:
    """Composes a test on an open cluster. Returns the test, and its plan.

    Args:
        settled: The options.
        cluster: The cluster.
        artifact: What the system has built; None if it builds nothing.

    Raises:
        InputError: The nodes cannot take the plan, or an option is not valid.
    """
    with settled.options.blaming():
        return _composed(settled, cluster, subjects.system_of(cluster, settled.options, artifact))


def recomposed(settled: Settled, test: Test) -> Test:
    """Composes a test with other options on the cluster and the system of another one.

    Args:
        settled: The options. Those of the cluster and of the system are as in the other test.
        test: The other test.

    Raises:
        InputError: The nodes cannot take the plan, or an option is not valid.
    """
    with settled.options.blaming():
        return _composed(settled, test.cluster, test.system)[0]


def _composed(settled: Settled, cluster: Cluster, system: System) -> tuple[Test, Plan]:
    from harness.test import Test
    from nemesis.conductor import Conductor

    options = settled.options
    names = tuple(node.name for node in cluster.nodes)
    workload, load = subjects.workload_of(options), options.load
    provable = nemesis.planning.supported(system, cluster.capabilities(), provable=True)
    plan = replace(settled, layout=layout(names, settled.layout.roles)).plan(provable)
    able = nemesis.planning.supported(system, cluster.capabilities(), provable=False)
    nemesis.planning.refuse_impossible(plan, able, cluster.nodes)
    test = Test(
        seed=options.seed,
        cluster=cluster,
        system=system,
        workload=workload,
        nemesis=Conductor(cluster=cluster, system=system, seed=options.seed),
        plan=plan.faults,
        in_turn=plan.in_turn,
        load=harness.console.choices.make_load(load, len(names)),
        time_limit_s=load.time_limit,
        operation_timeout_s=load.operation_timeout,
        recovery_timeout_s=load.recovery_timeout,
        final_reads=load.final_reads,
        final_reads_timeout_s=load.final_reads_timeout,
        lead_timeout_s=load.lead_timeout,
        damaging=nemesis.planning.damaging(plan),
        start_seed=options.cluster.start_seed,
        versions=_versions_of(system),
    )
    return test, plan


def stored_options(values: Mapping[str, Any]) -> dict[str, Value]:
    """Returns the options of a test as the store has them: what JSON has as it is, and others as on the command line."""
    return {
        name: value if value is None or isinstance(value, bool | int | float | str | list | tuple) else str(value)
        for name, value in values.items()
        if name != SUITE_CASE
    }


def info_of(settled: Settled, test: Test, plan: Plan) -> TestInfo:
    """Returns the record of a test for the store."""
    from results.record.record import TestInfo

    options, system = settled.options, test.system
    artifact: Artifact | None = getattr(system, "artifact", None)
    built = None if artifact is None else artifact.provenance
    return TestInfo(
        name=name_of(options),
        seed=options.seed,
        reproduce=settled.reproduce,
        started_utc=datetime.now(UTC),
        system=system.name,
        workload=test.workload.name,
        nodes=tuple(node.name for node in test.cluster.nodes),
        answers=tuple(system.answers),
        refusals=tuple(system.refusals),
        log_texts=tuple(system.telling_log_texts),
        versions={
            "labrys": _own_version(),
            "python": platform.python_version(),
            **({} if built is None else {built.name: built.short}),
            **test.versions,  # last: a release says more than the digest of a build with the same name
        },
        artifact=built,
        options=stored_options(options.values()),
        left_out={left.kind: left.reason for left in plan.left_out},
        defaults=settled.sources.defaults,
        thresholds=thresholds_of(options),
        suite=options.output.suite_case,
        tested=promise_tested(
            options.system.type, options.system.options, options.workload.type, options.workload.options
        ),
    )


def _versions_of(system: System) -> dict[str, str]:
    """Returns the versions of the software under test.

    Raises:
        PluginError: The code of the system failed, or returned something else.
    """
    called = f"system {plain_name(system.name)}"
    with blaming(Blamable(type(system), called)):
        versions: object = system.versions()
    if not isinstance(versions, Mapping) or not all(
        isinstance(text, str) for pair in versions.items() for text in pair
    ):
        raise PluginError(
            f"{called}: versions returned {shown(repr(versions))}, not a mapping of names to versions; correct the system"
        )
    return dict(versions)


def name_of(options: RunOptions) -> str:
    """Returns the name of the test: the given one, or else system, workload and faults."""
    if options.output.test_name:
        return options.output.test_name
    kinds = str(options.faults.nemesis).replace(",", "+").replace(":", "-")
    faults = "edited-plan" if options.faults.plan_file else kinds
    name = f"{options.system.name}-{options.workload.name}-{faults or 'no-faults'}"
    # A folder of the store begins with a letter or a digit; the place of a system may begin with `/`.
    return re.sub(r"[^A-Za-z0-9._+-]", "_", name).lstrip("._+-")[:MAX_NAME]
