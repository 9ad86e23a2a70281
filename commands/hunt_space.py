"""What the runs of a hunt draw from, and the command-line words of a drawn run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from click.core import ParameterSource

import clusters.options
from commands import hunting
from commands.compose import settle
from commands.test import run_test
from harness import options as opt
from harness.capabilities import SIMULATED, Capabilities
from harness.declare import hunted
from harness.errors import InputError
from nemesis.kinds import all_kinds, find_kind, impossible
from nemesis.targets import ALL, BY_LEADER, LEADER, MAJORITY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import click

    from nemesis.kinds import Kind

# What the runs of a simulated hunt draw besides the options of the system and the workload, by parameter name.
SIMULATED_SETTINGS: Final = {"nodes": hunting.SIMULATED_NODES, "fault_wait": hunting.SIMULATED_WAITS_S}


def space_of(ctx: click.Context, options: Mapping[str, Any], among: str | None) -> hunting.Space:
    """Returns what the runs of a hunt draw from: kinds, their targets, and the settings that the user leaves open.

    Args:
        ctx: The context of `labrys hunt`.
        options: Its options by parameter name.
        among: The value of `--among`; None if it is not given.

    Raises:
        InputError: `among` has a name that is no kind, or a kind that the nodes do not support.
    """
    simulated = options["cluster_kind"] == clusters.options.SIMULATED
    possible = _possible(ctx, options)
    kinds = _by_default(possible, simulated=simulated) if among is None else named(possible, among)
    settings: dict[str, Sequence[Any]] = {
        name: values
        for each in getattr(ctx, "chosen", ())
        for name, values in hunted(each.type.Options).items()
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    }
    if simulated:
        settings |= {
            name: values
            for name, values in SIMULATED_SETTINGS.items()
            if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
        }
    return hunting.Space(
        kinds=tuple(kind.name for kind in kinds),
        rhythms=hunting.SIMULATED_RHYTHMS if simulated else hunting.RHYTHMS,
        rates=hunting.SIMULATED_RATES if simulated else hunting.RATES,
        targets={
            kind.name: [
                target for target in (ALL, LEADER, MAJORITY) if target in kind.fault.TARGETS and target != kind.target
            ]
            for kind in kinds
            if kind.target not in BY_LEADER
        },
        settings=settings,
    )


def _possible(ctx: click.Context, options: Mapping[str, Any]) -> Sequence[Kind]:
    """Returns the kinds that all nodes support and that need no names of nodes."""
    with run_test.make_context("test", words_of(ctx, options, None), parent=ctx.find_root()) as test:
        alone = len(settle(test, dict(test.params)).nodes) == 1
    lacking = impossible(_capabilities(options))
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
    """Returns the capabilities of the nodes. On real nodes, it opens the cluster for it."""
    if options["cluster_kind"] == clusters.options.SIMULATED:
        return {"n1": Capabilities(available=frozenset({SIMULATED}))}
    with clusters.options.open_cluster(options) as cluster:
        return cluster.capabilities()


def named(possible: Sequence[Kind], among: str) -> Sequence[Kind]:
    """Returns the kinds with the names in a text, which has commas between them.

    Raises:
        InputError: A name is not one of these kinds.
    """
    kinds = dict.fromkeys(find_kind(name.strip()).name for name in among.split(","))
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
