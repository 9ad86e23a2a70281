"""What the options of a run test: its workload, its system, and what the system builds."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from clusters.options import MACHINES, OWN, PIPES, PROGRAMS, SIMULATED
from clusters.sim.threads import Threads
from commands.options.choosing import loadable
from harness.blame import blaming
from harness.console import plugins
from harness.console.plain import name as plain_name
from harness.errors import InputError
from harness.option_values import shrinking
from harness.system import System
from nemesis.targets import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from commands.options.run_options import Picked, RunOptions
    from harness.builds import Artifact
    from harness.cluster import Cluster
    from harness.workload import Workload
    from nemesis.targets import Layout
    from nemesis.triggers import Subject

OF_PROGRAMS: Final = frozenset(
    {"trace_all", "all_stop"}
)  # the options of threads that only programs in virtual time have
START_SEED: Final = "start_seed"
PROGRAM_THREADS: Final = OF_PROGRAMS | {"preempt", "stalls"}


def workload_of(options: RunOptions) -> Workload:
    """Makes the workload that the options name.

    Raises:
        InputError: Its options are not valid.
    """
    workload: Workload = options.workload.type(options.workload.options)
    return workload


def placed(options: RunOptions) -> Picked:
    """Returns the system, with the class for the kind of cluster: in the simulator, some systems have another one."""
    return placed_in(options.system, options.cluster.cluster_kind, options.cluster.carrier)


def placed_in(system: Picked, cluster_kind: str, carrier: str | None = None) -> Picked:
    """Returns the system with the class for a kind of cluster; see `placed`."""
    if cluster_kind != SIMULATED or not issubclass(system.type, System) or carrier == PROGRAMS:
        return system
    with blaming(system.plugin):
        inside = system.type.in_simulator()
    return system if inside is None else replace(system, type=inside)


def by_programs(options: RunOptions) -> bool:
    """Returns whether the processes of the system are Linux programs in virtual time."""
    return options.cluster.cluster_kind == SIMULATED and not placed(options).type.simulated


def thread_options(options: RunOptions) -> frozenset[str]:
    """Returns the names of the options of simulated threads that have an effect."""
    if by_programs(options) or options.cluster.carried:
        return PROGRAM_THREADS
    return frozenset(asdict(Threads())) - OF_PROGRAMS if placed(options).type.threaded else frozenset()


def without_threads(options: RunOptions) -> tuple[RunOptions, Sequence[str]]:
    """Returns the options without those of simulated threads and of starts that have no effect, and a line for each of them."""
    able = thread_options(options) | ({START_SEED} if by_programs(options) else set())
    changed = {
        name: value
        for name, value in {**asdict(Threads()), START_SEED: None}.items()
        if name not in able and getattr(options.cluster, name) != value
    }
    system = plain_name(options.system.name)
    return options.having(changed), [
        f"--{name.replace('_', '-')} has no effect: {_why_not(name, options, system)}" for name in changed
    ]


def _why_not(name: str, options: RunOptions, system: str) -> str:
    if name == START_SEED:
        return "only programs with --cluster sim start by a seed of their own"
    if name in OF_PROGRAMS:
        return (
            f"the processes of {system} are no programs in virtual time with --cluster {options.cluster.cluster_kind}"
        )
    if by_programs(options):
        return "Labrys does not see how programs write into mapped files"
    return f"the threads of {system} are not simulated with --cluster {options.cluster.cluster_kind}"


def goals_of(options: RunOptions) -> dict[str, float]:
    """Returns the options that `labrys shrink` makes smaller, each with the value of the smallest run."""
    types = (options.system.type, options.workload.type)
    return {name: goal for part in types for name, goal in shrinking(part.Options).items()}


def layout_of(options: RunOptions, nodes: Sequence[str]) -> Layout:
    """Returns the nodes, and the nodes of each role of the system's processes.

    Raises:
        InputError: The system's options are not valid, or it cannot run on these nodes.
    """
    system, workload = placed(options), options.workload
    if system.type.__abstractmethods__:
        lacking = ", ".join(sorted(system.type.__abstractmethods__))
        raise InputError(f"the system {plain_name(system.name)} lacks {lacking}; see docs/guide/new-system.md")
    return layout(nodes, system.type.roles(nodes, system.options, workload.type.name, workload.options))


def builder_of(system: Picked) -> Callable[[Callable[[str], object]], Artifact | None] | None:
    """Returns a function that builds the artifact of a system; None if the system builds nothing.

    Its argument is called with sentences about what goes on; see `System.build`.
    """
    with blaming(system.plugin):
        if not system.type.builds():
            return None

    def build(say: Callable[[str], object]) -> Artifact | None:
        with blaming(system.plugin):
            artifact: Artifact | None = system.type.build(system.options, say)
        return artifact

    return build


def subject_of(options: RunOptions) -> Subject:
    """Returns what the options test, as far as triggers of faults depend on it."""
    from nemesis.triggers import Subject

    system, workload = placed(options).type, options.workload.type
    return Subject(
        system=system.name, log_lines=system.log_lines, workload=workload.name, functions=tuple(workload.functions)
    )


def system_of(cluster: Cluster, options: RunOptions, artifact: Artifact | None = None) -> System:
    """Makes the system that the options name, on this cluster.

    Args:
        cluster: The cluster.
        options: The options of the run.
        artifact: What the system has built for these options; None if it builds nothing.

    Raises:
        InputError: Its options are not valid.
    """
    workload = options.workload
    system: System = placed(options).type.made(cluster, options.system.options, workload.type.name, workload.options)
    if artifact is not None:
        system.artifact = artifact
    return system


def check_cluster(system: Picked, kind: str, carrier: str | None = None) -> None:
    """Refuses a kind of cluster, or a carrier, on which the system cannot run.

    Raises:
        InputError: They do not fit together.
    """
    label = f"the system {plain_name(system.name)}"
    placed_type = placed_in(system, kind, carrier).type
    only = str(getattr(placed_type, "only_on", ""))
    where = {SIMULATED: "in the simulator", PIPES: "as programs with pipes"}
    if only and kind != only:
        raise InputError(f"{label} runs {where[only]} only: give --cluster {only}, not --cluster {kind}")
    if carrier == OWN and not placed_type.simulated:
        raise InputError(f"{label} has no carrier of its own in the simulator: leave out --carrier {OWN}")
    if carrier == PROGRAMS and placed_type.simulated and kind != PIPES:
        raise InputError(f"{label} is no program, but code of the simulator: leave out --carrier {PROGRAMS}")
    if kind == SIMULATED and not only and not placed_type.simulated:
        if not placed_type.not_by_seed:
            return
        why = f": {placed_type.not_by_seed}"
    elif kind == PIPES and not only:
        why = f": it runs on machines, and --cluster {kind} has none"
    else:
        return
    others = [choice.name for choice in loadable() if _runs_on(choice.type, kind)]
    raise InputError(
        f"{label} does not run {where[kind]}{why}. Give --cluster local, vagrant or ssh. Systems for --cluster {kind}: "
        f"{', '.join(others) or 'none is installed'}"
    )


def places_of(type_: type) -> list[str]:
    """Returns where a system runs, each as options of `labrys test`."""
    if not issubclass(type_, System):
        return []
    if type_.only_on:
        return [f"--cluster {type_.only_on}"]
    places = [f"--cluster {kind}" for kind in MACHINES]
    if type_.simulator_class:
        places.append(f"--cluster {SIMULATED}")
    if not type_.not_by_seed:
        places.append(
            f"--cluster {SIMULATED} --carrier {PROGRAMS}" if type_.simulator_class else f"--cluster {SIMULATED}"
        )
    return places


def _runs_on(type_: type, kind: str) -> bool:
    if not issubclass(type_, System):
        return False
    by_seed = kind == SIMULATED and not type_.only_on and (bool(type_.simulator_class) or not type_.not_by_seed)
    return type_.only_on == kind or by_seed


def check(options: RunOptions) -> None:
    """Checks that system, workload and cluster fit together.

    Raises:
        InputError: They do not.
    """
    workload: str = options.workload.type.name
    serves = getattr(options.system.type, "serves", {})
    if workload not in serves:
        others = [
            choice.name
            for choice in loadable()
            if choice.group == plugins.SYSTEMS and workload in getattr(choice.type, "serves", {})
        ]
        which = (
            f"systems that serve {workload}: {', '.join(others)}"
            if others
            else f"no installed system serves {workload}"
        )
        raise InputError(
            f"the system {plain_name(options.system.name)} serves {', '.join(serves) or 'no workload'}, not "
            f"{plain_name(workload)}; {which}"
        )
    check_cluster(options.system, options.cluster.cluster_kind, options.cluster.carrier)
    if options.output.calls and not by_programs(options):
        raise InputError(
            f"--calls needs programs in virtual time: --cluster {SIMULATED} and a system that runs there as "
            "`labrys systems` says, or --carrier programs"
        )
    workload_of(options)
