"""The options of the runs of a hunt, and what they draw from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import clusters.options
import nemesis.choices
import nemesis.planning
from commands.hunt import draws
from commands.options import subjects
from commands.options.compose import settle
from commands.options.needs import planted_bugs
from commands.options.run_options import RUN
from commands.run.test import completed_options
from harness.capabilities import LEADER as REPORTS_LEADER
from harness.capabilities import SIMULATED_DISK, Capabilities
from harness.console.terminal import echo
from harness.errors import InputError
from harness.option_values import hunted
from harness.targets import ByLeader
from nemesis.asked import Asked, EveryKind, Request
from nemesis.choices import FaultOptions
from nemesis.kinds import all_called, excluded, too_few
from nemesis.lacking import impossible
from nemesis.targets import ALL, LEADER, MAJORITY, TRIGGER
from nemesis.triggers import find_trigger, for_hunts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import click

    from commands.options.compose import Settled
    from commands.options.needs import Lack, PlantedBug
    from commands.options.run_options import RunOptions, Sources
    from harness.console.sources import Origin
    from nemesis.kinds import Called, Kind

# What the runs of a simulated hunt draw besides the options of the system and the workload, by parameter name.
SIMULATED_SETTINGS: Final = {"nodes": draws.SIMULATED_NODES, draws.WAIT: draws.SIMULATED_WAITS_S}


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntOptions:
    """The options that the runs of a hunt share.

    Attributes:
        options: The options; those that a planted bug needs are set.
        sources: Where their values come from.
        origins: The sources of the values that the user gives to the hunt, by parameter name; a run draws the others.
    """

    options: RunOptions
    sources: Sources
    origins: Mapping[str, Origin]

    @classmethod
    def of(cls, root: click.Context, options: RunOptions, origins: Mapping[str, Origin]) -> HuntOptions:
        """Makes them. Options that a hunt does not have, such as thresholds, have the values of `labrys test`.

        Args:
            root: The context of the group of all commands.
            options: The options of the command.
            origins: The sources of the values that the user gives.
        """
        own = (*RUN, options.system.type.Options, options.workload.type.Options)
        names = {"store_dir", *(field.name for part in own for field in fields(part))}
        if options.faults.plan_file is not None:  # a plan takes the place of the defaults of a hunt
            names -= {*nemesis.choices.DRAWING, "time_limit"} - origins.keys()
        known = {name: value for name, value in options.values().items() if name in names and value is not None}
        known |= {name: value for name, value in asdict(options.place).items() if value}
        made, sources = completed_options(root, known)
        return cls(options=made, sources=sources, origins=origins)

    @property
    def are_faults_given(self) -> bool:
        """Returns whether the user gives the faults, so that all runs have them."""
        return bool(self.options.faults.nemesis or self.options.faults.plan_file)

    def drawn(self, draw: draws.Draw) -> dict[str, Any]:
        """Returns the options that a run draws, without those that the user gives."""
        return {name: value for name, value in draw.options.items() if name not in self.origins}

    def settled(self, draw: draws.Draw | None) -> Settled:
        """Returns the options of `labrys test` for a run of the hunt, or for all runs if `draw` is None."""
        return self._settled({} if draw is None else {"seed": draw.seed, **self.drawn(draw)})

    def _settled(self, changes: Mapping[str, Any]) -> Settled:
        return settle(self.options.having(changes), self.sources)

    def simulated(self) -> Callable[[draws.Draw], tuple[Settled, Mapping[str, Any]]]:
        """Returns a function that returns the options that simulated runs share, and what a run draws.

        The shared options are settled once for each number of nodes, without those that draw a plan. So a run whose faults do
        not fit into its time is refused when it begins, and the other runs go on.
        """
        usual = FaultOptions()
        drawing = {name: getattr(self.options.faults, name) for name in sorted(nemesis.choices.DRAWING)}
        open_values = {name: getattr(usual, name) for name in drawing}
        bases: dict[Any, Settled] = {}

        def options_of(draw: draws.Draw) -> tuple[Settled, Mapping[str, Any]]:
            own = {**drawing, **self.drawn(draw), "seed": draw.seed}
            nodes = own.get("nodes", self.options.cluster.nodes)
            if nodes not in bases:
                bases[nodes] = self._settled({**open_values, "nodes": nodes})
            return bases[nodes], own

        return options_of


def prepare(
    hunt: HuntOptions, among: Request | None, triggers: str | None = None
) -> tuple[HuntOptions, draws.Space, list[str]]:
    """Returns the options of a hunt, what its runs draw from, and a sentence for each option that a planted bug sets.

    Args:
        hunt: The options of the command.
        among: The value of `--among`; None if it is not given.
        triggers: The value of `--triggers`; None if it is not given.

    Raises:
        InputError: `among` has a name that is no kind, or a kind that the nodes do not support; `triggers` likewise; or the
            user's options contradict what a planted bug needs.
    """
    settings = {} if hunt.are_faults_given else _settings(hunt)
    bugs, values = planted_bugs(hunt.options), hunt.options.values()
    fixed: dict[str, Any] = {}
    told = []
    for bug in bugs:
        settings = {name: [v for v in values if bug.fits(name, v)] or values for name, values in settings.items()}
        single = {name: values[0] for name, values in settings.items() if len(values) == 1}
        settings = {name: values for name, values in settings.items() if name not in single}
        drawn = {name: values[0] for name, values in settings.items()}
        fixed |= single
        for lack in bug.lacks({**values, **drawn, **fixed}):
            if lack.value is None or str(lack.name) in hunt.origins:
                raise _contradiction(bug, lack, f"leave out {bug.flags[str(lack.name)]}, or give {lack.wanted}")
            settings.pop(str(lack.name), None)
            fixed[str(lack.name)] = lack.value
        told += [
            f"{bug.words} needs {bug.flags[name]} {value}, so each run has it"
            for name, value in fixed.items()
            if value != values[name]
        ]
    hunt = replace(hunt, options=hunt.options.having(fixed))
    if hunt.are_faults_given:
        _check_faults(hunt, bugs)
        return hunt, draws.Space(), told
    return hunt, _space(hunt, among, triggers, settings, bugs), told


def _contradiction(bug: PlantedBug, lack: Lack, advice: str) -> InputError:
    return InputError(
        f"{bug.words} needs {lack.wanted}, and this hunt has {lack.found}, so it cannot find the bug; {advice}"
    )


def _check_faults(hunt: HuntOptions, bugs: Sequence[PlantedBug]) -> None:
    """Refuses given faults with which no run can show a planted bug.

    Raises:
        InputError: A bug needs another kind.
    """
    if not any(bug.needs.faults for bug in bugs):
        return
    kinds = hunt.settled(None).requested_kinds()
    for bug in bugs:
        for lack in bug.lacks_faults(kinds):
            raise _contradiction(bug, lack, "leave out --nemesis and --plan, or name such a kind")


def _settings(hunt: HuntOptions) -> dict[str, Sequence[Any]]:
    """Returns the values of the options that the user leaves open, by parameter name."""
    declared: dict[str, Sequence[Any]] = {
        name: values
        for picked in (hunt.options.system, hunt.options.workload)
        for name, values in hunted(picked.type.Options).items()
    }
    if hunt.options.cluster.simulated and not subjects.by_programs(hunt.options):
        declared |= SIMULATED_SETTINGS
    able = subjects.thread_options(hunt.options)
    # They come last, so that a run draws the others as it did without them.
    declared |= {name: values for name, values in hunted(type(hunt.options.cluster)).items() if name in able}
    return {name: values for name, values in declared.items() if name not in hunt.origins}


def _space(
    hunt: HuntOptions,
    among: Request | None,
    triggers: str | None,
    settings: Mapping[str, Sequence[Any]],
    bugs: Sequence[PlantedBug],
) -> draws.Space:
    """Returns what the runs draw from: kinds, their targets, and settings.

    Raises:
        InputError: `among` or `triggers` is not valid, or a bug needs a kind that is not among the kinds.
    """
    simulated = hunt.options.cluster.simulated
    can = _capabilities(hunt.options)
    possible = _possible(hunt, can)
    reports = not any(REPORTS_LEADER in abilities.missing for abilities in can.values())
    by_default = _by_default(possible, simulated=simulated, released=bool(subjects.thread_options(hunt.options)))
    chosen = by_default if among is None else named(possible, among, by_default)
    kinds = {called.name: called for called in chosen}
    needed = []
    for bug in bugs:
        able = bug.fitting([*kinds])
        if not able and among is None:
            able = bug.fitting([called.name for called in possible])
            kinds |= {called.name: called for called in possible if called.name in able}
        if bug.needs.faults and not able:
            (lack,) = bug.lacks_faults([*kinds])
            raise _contradiction(bug, lack, "leave out --among, or name such a kind" if among else "use other nodes")
        needed += [tuple(able)] if able else []
    subject = replace(subjects.subject_of(hunt.options), reports=reports)
    drawn = for_hunts(triggers, subject, can) if triggers else ()
    return draws.Space(
        kinds=tuple(kinds),
        rhythms=draws.SIMULATED_RHYTHMS if simulated else draws.RHYTHMS,
        rates=draws.SIMULATED_RATES if simulated else draws.RATES,
        targets={
            name: [
                target
                for target in ((ALL, LEADER, MAJORITY) if reports else (ALL, MAJORITY))
                if target in called.kind.fault.TARGETS and target != called.target
            ]
            for name, called in kinds.items()
            if not isinstance(called.target, ByLeader)
        },
        settings=settings,
        needed=tuple(needed),
        triggers=tuple(drawn),
        limits_s=draws.SIMULATED_LIMITS_S if simulated else draws.LIMITS_S,
        naming=frozenset(trigger.name for trigger in drawn if find_trigger(trigger.name).condition.NAMES_NODE),
        aimed=frozenset(
            name
            for name, called in kinds.items()
            if TRIGGER in called.kind.fault.TARGETS and not isinstance(called.target, ByLeader)
        ),
    )


def _possible(hunt: HuntOptions, can: Mapping[str, Capabilities]) -> Sequence[Called]:
    """Returns the kinds that all nodes support and that need no names of nodes."""
    nodes = hunt.settled(None).nodes
    lacking = impossible(can)
    return [
        called
        for called in all_called().values()
        if called.name not in lacking and called.target is not None and not too_few(called.kind, nodes)
    ]


def _by_default(possible: Sequence[Called], *, simulated: bool, released: bool) -> Sequence[Called]:
    """Returns the kinds that a hunt draws from without `--among`.

    These are the kinds of `all`, and those that aim at the leader. In the simulator, the kinds that damage files are included:
    simulated systems must survive them. Those whose damage can look whole are not: few systems promise to notice it. Few
    released programs promise to survive the others, so a hunt leaves their disks alone. If the disks are full, some programs
    also exchange messages without end. The other kinds differ from one of these only in how many nodes they hit.
    """
    kept = [
        called
        for called in possible
        if (called.kind.in_all and not called.is_variant)
        or isinstance(called.target, ByLeader)
        or (simulated and called.kind.fault.DAMAGES and not called.kind.fault.SILENT)
    ]
    return [called for called in kept if not (simulated and released and _changes_disk(called.kind))]


def _changes_disk(kind: Kind) -> bool:
    effect = kind.simulated
    return effect is not None and SIMULATED_DISK in effect.NEEDS


def _capabilities(options: RunOptions) -> Mapping[str, Capabilities]:
    """Returns the capabilities of the nodes with the system. It builds the system and opens the cluster for it."""
    builder = subjects.builder_of(subjects.placed(options))
    artifact = None if builder is None else builder(lambda text: echo(f"· {text}", err=True))
    with clusters.options.open_cluster(
        options.cluster, options.place, options.seed, by_programs=subjects.by_programs(options)
    ) as cluster:
        return nemesis.planning.supported(
            subjects.system_of(cluster, options, artifact), cluster.capabilities(), provable=True
        )


def _without_target(asked: Asked) -> str:
    """Returns the name of a kind among those to draw from.

    Raises:
        InputError: It has a target, which each run draws.
    """
    if asked.aim is not None:
        raise InputError(f"--among names kinds without targets, which each run draws; leave {asked.aim} out of {asked}")
    return asked.kind


def named(possible: Sequence[Called], among: Request, by_default: Sequence[Called]) -> Sequence[Called]:
    """Returns the requested kinds.

    `all` means the kinds of `by_default`, and `-KIND` beside it leaves one out.

    Raises:
        InputError: A name is not one of these kinds.
    """
    without = excluded(among, by_default)
    kinds: dict[str, None] = {}
    for part in among.parts:
        if part == EveryKind():
            kinds |= dict.fromkeys(called.name for called in by_default if called.name not in without)
        elif isinstance(part, Asked):
            kinds[_without_target(part)] = None
    if not kinds:
        raise InputError("--among leaves no kind of fault to draw from")
    known = {called.name: called for called in possible}
    for name in kinds:
        if name not in known:
            raise InputError(f"a hunt cannot draw {name}; --among takes: {', '.join(known)}")
    return [known[name] for name in kinds]
