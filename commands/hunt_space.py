"""What the runs of a hunt draw from, and the command-line words of a drawn run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from click.core import ParameterSource

import clusters.options
import nemesis.choices
from commands import choosing, hunting
from commands.compose import settle
from commands.needs import planted_bugs
from commands.test import run_test
from harness.capabilities import LEADER as REPORTS_LEADER
from harness.capabilities import SIMULATED, Capabilities
from harness.console import options as opt
from harness.declare import hunted
from harness.errors import InputError
from nemesis.kinds import ALL_KINDS, WITHOUT, all_kinds, excluded, find_kind, impossible, parts_of
from nemesis.targets import ALL, BY_LEADER, LEADER, MAJORITY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from commands.needs import Lack, PlantedBug
    from nemesis.kinds import Kind

# What the runs of a simulated hunt draw besides the options of the system and the workload, by parameter name.
SIMULATED_SETTINGS: Final = {"nodes": hunting.SIMULATED_NODES, "fault_wait": hunting.SIMULATED_WAITS_S}


def prepare(
    ctx: click.Context, options: Mapping[str, Any], among: str | None
) -> tuple[dict[str, Any], hunting.Space, list[str]]:
    """Returns the options of a hunt, what its runs draw from, and a sentence for each option that a planted bug sets.

    Args:
        ctx: The context of `labrys hunt`.
        options: Its options by parameter name.
        among: The value of `--among`; None if it is not given.

    Raises:
        InputError: `among` has a name that is no kind, or a kind that the nodes do not support; or the user's options
            contradict what a planted bug needs.
    """
    given = bool(options["nemesis"] or options[nemesis.choices.PLAN_FILE])
    settings = {} if given else _settings(ctx, options)
    bugs = planted_bugs(ctx, options)
    fixed: dict[str, Any] = {}
    told = []
    for bug in bugs:
        settings = {name: [v for v in values if bug.fits(name, v)] or values for name, values in settings.items()}
        single = {name: values[0] for name, values in settings.items() if len(values) == 1}
        settings = {name: values for name, values in settings.items() if name not in single}
        drawn = {name: values[0] for name, values in settings.items()}
        fixed |= single
        for lack in bug.lacks({**options, **drawn, **fixed}):
            if lack.value is None or ctx.get_parameter_source(str(lack.name)) is not ParameterSource.DEFAULT:
                raise _contradiction(bug, lack, f"leave out {bug.flags[str(lack.name)]}, or give {lack.wanted}")
            settings.pop(str(lack.name), None)
            fixed[str(lack.name)] = lack.value
        told += [
            f"{bug.words} needs {bug.flags[name]} {value}, so each run has it"
            for name, value in fixed.items()
            if value != options[name]
        ]
    settled = {**options, **fixed}
    if given:
        _check_faults(ctx, settled, bugs)
        return settled, hunting.Space(), told
    return settled, _space(ctx, settled, among, settings, bugs), told


def _contradiction(bug: PlantedBug, lack: Lack, advice: str) -> InputError:
    return InputError(
        f"{bug.words} needs {lack.wanted}, and this hunt has {lack.found}, so it cannot find the bug; {advice}"
    )


def _check_faults(ctx: click.Context, options: Mapping[str, Any], bugs: Sequence[PlantedBug]) -> None:
    """Refuses given faults with which no run can show a planted bug.

    Raises:
        InputError: A bug needs another kind.
    """
    if not any(bug.needs.faults for bug in bugs):
        return
    with run_test.make_context("test", words_of(ctx, options, None), parent=ctx.find_root()) as test:
        values = dict(test.params)
        settled = settle(test, values)
        kinds = nemesis.choices.requested_kinds(values, nodes=settled.nodes, given=settled.given, roles=settled.roles)
    for bug in bugs:
        for lack in bug.lacks_faults(kinds):
            raise _contradiction(bug, lack, "leave out --nemesis and --plan, or name such a kind")


def _settings(ctx: click.Context, options: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Returns the values of the options that the user leaves open, by parameter name."""
    declared: dict[str, Sequence[Any]] = {
        name: values for each in getattr(ctx, "chosen", ()) for name, values in hunted(each.type.Options).items()
    }
    if options["cluster_kind"] == clusters.options.SIMULATED:
        declared |= SIMULATED_SETTINGS
    return {
        name: values for name, values in declared.items() if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    }


def _space(
    ctx: click.Context,
    options: Mapping[str, Any],
    among: str | None,
    settings: Mapping[str, Sequence[Any]],
    bugs: Sequence[PlantedBug],
) -> hunting.Space:
    """Returns what the runs draw from: kinds, their targets, and settings.

    Raises:
        InputError: `among` is not valid, or a bug needs a kind that is not among the kinds.
    """
    simulated = options["cluster_kind"] == clusters.options.SIMULATED
    can = _capabilities(options)
    possible = _possible(ctx, options, can)
    reports = not any(REPORTS_LEADER in each.missing for each in can.values())
    by_default = _by_default(possible, simulated=simulated)
    chosen = by_default if among is None else named(possible, among, by_default)
    kinds = {kind.name: kind for kind in chosen}
    needed = []
    for bug in bugs:
        able = bug.fitting([*kinds])
        if not able and among is None:
            able = bug.fitting([kind.name for kind in possible])
            kinds |= {kind.name: kind for kind in possible if kind.name in able}
        if bug.needs.faults and not able:
            (lack,) = bug.lacks_faults([*kinds])
            raise _contradiction(bug, lack, "leave out --among, or name such a kind" if among else "use other nodes")
        needed += [tuple(able)] if able else []
    return hunting.Space(
        kinds=tuple(kinds),
        rhythms=hunting.SIMULATED_RHYTHMS if simulated else hunting.RHYTHMS,
        rates=hunting.SIMULATED_RATES if simulated else hunting.RATES,
        targets={
            name: [
                target
                for target in ((ALL, LEADER, MAJORITY) if reports else (ALL, MAJORITY))
                if target in kind.fault.TARGETS and target != kind.target
            ]
            for name, kind in kinds.items()
            if kind.target not in BY_LEADER
        },
        settings=settings,
        needed=tuple(needed),
    )


def _possible(ctx: click.Context, options: Mapping[str, Any], can: Mapping[str, Capabilities]) -> Sequence[Kind]:
    """Returns the kinds that all nodes support and that need no names of nodes."""
    with run_test.make_context("test", words_of(ctx, options, None), parent=ctx.find_root()) as test:
        alone = len(settle(test, dict(test.params)).nodes) == 1
    lacking = impossible(can)
    return [
        kind
        for kind in all_kinds().values()
        if kind.name not in lacking and kind.target is not None and not (alone and "partition" in kind.name)
    ]


def _by_default(possible: Sequence[Kind], *, simulated: bool) -> Sequence[Kind]:
    """Returns the kinds that a hunt draws from without `--among`.

    These are the kinds of `all`, and those that aim at the leader. In the simulator, the kinds that damage files are included:
    `sim-raft` must survive them. Few real systems promise that. The other kinds differ from one of these only in how many nodes
    they hit.
    """
    return [kind for kind in possible if kind.in_all or kind.target in BY_LEADER or (simulated and kind.fault.DAMAGES)]


def _capabilities(options: Mapping[str, Any]) -> Mapping[str, Capabilities]:
    """Returns the capabilities of the nodes with the system. On real nodes, it opens the cluster for it."""
    if options["cluster_kind"] == clusters.options.SIMULATED:
        return {"n1": Capabilities(available=frozenset({SIMULATED}))}
    with clusters.options.open_cluster(options) as cluster:
        return nemesis.choices.supported(choosing.system_of(cluster, options), cluster.capabilities(), provable=True)


def named(possible: Sequence[Kind], among: str, by_default: Sequence[Kind]) -> Sequence[Kind]:
    """Returns the kinds with the names in a text, which has commas between them.

    `all` means the kinds of `by_default`, and `-KIND` beside it leaves one out.

    Raises:
        InputError: A name is not one of these kinds.
    """
    parts = parts_of(among)
    without = excluded(parts, by_default)
    kinds: dict[str, None] = {}
    for part in parts:
        if part == ALL_KINDS:
            kinds |= dict.fromkeys(kind.name for kind in by_default if kind.name not in without)
        elif not part.startswith(WITHOUT):
            kinds[find_kind(part).name] = None
    if not kinds:
        raise InputError("--among leaves no kind of fault to draw from")
    known = {kind.name: kind for kind in possible}
    for name in kinds:
        if name not in known:
            raise InputError(f"a hunt cannot draw {name}; --among takes: {', '.join(known)}")
    return [known[name] for name in kinds]


def words_of(ctx: click.Context, options: Mapping[str, Any], draw: hunting.Draw | None) -> list[str]:
    """Returns the command-line words of `labrys test` for a run of the hunt, or for all runs if `draw` is None."""
    own = {} if draw is None else {"seed": draw.seed, **drawn_options(ctx, draw)}
    values = {**options, **own}
    known = {option.name for option in opt.options_of(run_test)} | {
        option.name for each in getattr(ctx, "chosen", ()) for option in each.options
    }
    return opt.spelled_out([option for option in opt.options_of(ctx.command, ctx) if option.name in known], values)


def drawn_options(ctx: click.Context, draw: hunting.Draw) -> dict[str, Any]:
    """Returns the options that a run draws, without those that the user gives."""
    return {
        name: value for name, value in draw.options.items() if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    }
