"""The command `labrys hunt`."""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import clusters.options
import nemesis.choices
from commands import choosing
from commands.choosing import ChoosingCommand
from commands.compose import RUN_OPTIONS, STORE_OPTION, reproduce_line, settle, with_options
from commands.test import run_test
from harness import options as opt
from harness.errors import ExitCode, InputError
from harness.parameters import Number, Whole
from harness.plain import counted
from harness.randomness import fresh_seed
from harness.terminal import echo, open_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from commands.compose import Settled
    from commands.hunting import Chooser, Draw, Space

# The defaults of a hunt: a simulated system, and short runs with short faults.
DEFAULTS: Mapping[str, Any] = {
    choosing.SYSTEM: "sim-raft",
    "cluster_kind": clusters.options.SIMULATED,
    "fault_on": "0.5-3",
    "fault_off": "0.3-2",
    "fault_quiet": "1-3",
    "rate": 5.0,
    "time_limit": 12.0,
}
ROUND = 32  # runs that are drawn together, whatever the number of processes
PROGRESS_S = 5.0  # between two lines of progress
VALID, INVALID, UNKNOWN, REFUSED = "valid", "invalid", "unknown", "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntRun:
    """The outcome of one run of a hunt, small enough to pass between processes.

    Attributes:
        draw: The run.
        verdict: The verdict of the run, or `REFUSED` if its seed gives no plan.
        blamed: The names of the invalid parts.
        reason: The reason of the first invalid part, or of the refusal.
        features: The features of the run; see `commands.hunting.features_of`.
        operations: The number of operations.
    """

    draw: Draw
    verdict: str
    blamed: tuple[str, ...] = ()
    reason: str = ""
    features: tuple[str, ...] = ()
    operations: int = 0


@click.command("hunt", cls=ChoosingCommand)
@with_options(RUN_OPTIONS)
@click.option("--runs", type=Whole(1, 10_000_000), default=1000, show_default=True, help="The maximum number of runs.")
@click.option(
    "--minutes", type=Number(0, 100_000, above=True), default=10.0, show_default=True, help="The time limit in minutes."
)
@click.option(
    "--finds", type=Whole(1, 1_000_000), default=1, show_default=True, help="Stop after this many invalid runs."
)
@click.option(
    "--jobs",
    type=Whole(1, 1024),
    default=None,
    help="The number of processes that run at the same time.  [default: the number of processors]",
)
@click.option(
    "--guided/--blind",
    default=True,
    show_default=True,
    help="Prefer kinds of faults that showed something new in earlier runs, or draw all kinds evenly.",
)
@click.option(
    "--among", metavar="KIND,...", default=None, help="Draw only these kinds.  [default: all kinds of the simulator]"
)
@STORE_OPTION
@click.pass_context
def hunt(ctx: click.Context, /, **options: Any) -> None:
    """Runs many seeds in the simulator, and stops at the first invalid run.

    Without --nemesis, each run draws its kinds of faults, with their targets and options. It also draws --fault-on,
    --fault-off, --rate, and some options of the system, unless you give them. With --nemesis, runs differ only in the seed,
    and the output has the share of invalid runs with its confidence interval. At the end, the command runs the first
    invalid run again as `labrys test`, and stores it. Exit codes: 0 no run is invalid, 1 a run is invalid, 2 no run is valid.
    """
    from commands.hunting import Chooser, Space
    from harness.proportions import interval

    own = {name: options.pop(name) for name in ("runs", "minutes", "finds", "jobs", "among", "guided", "store_dir")}
    if options["cluster_kind"] != clusters.options.SIMULATED:
        raise InputError(
            f"`labrys hunt` runs in the simulator, not on --cluster {options['cluster_kind']}; "
            "`labrys suite` repeats runs on real nodes"
        )
    if options["seed"] is None:
        options["seed"] = fresh_seed()
    seed = options["seed"]
    choosing.check(options)
    console = open_console()
    given = bool(options["nemesis"] or options[nemesis.choices.PLAN_FILE])
    if given and own["among"]:
        raise InputError("--among cannot go with --nemesis or --plan, which set the faults of every run")
    space = Space() if given else space_of(ctx, options, own["among"])
    chooser = Chooser(space, seed=seed, guided=own["guided"])
    began_s = time.monotonic()
    tried = _run_all(ctx, options, chooser, own, console)
    found = [each for each in tried if each.verdict == INVALID]
    seconds = time.monotonic() - began_s
    valid, unknown, refused = (sum(each.verdict == word for each in tried) for word in (VALID, UNKNOWN, REFUSED))
    judged = len(tried) - refused
    console.print(
        f"{counted(len(tried), 'run')} in {seconds:.1f} s, {len(tried) * 60 / seconds:.0f} a minute: {len(found)} invalid, "
        f"{valid} valid, {unknown} unknown, {refused} without time for their faults"
    )
    if given:
        low, high = interval(len(found), judged)
        console.print(f"{len(found)} of {judged} runs are invalid: {low:.1%} to {high:.1%} with 95 % confidence")
    for each in found:
        echo(f"{each.draw.seed}\t{','.join(each.blamed)}\t{_reproduce_line(ctx, options, each.draw)}")
    if found:
        first = found[0]
        console.print(f"run {first.draw.number + 1} is invalid: {first.reason}", soft_wrap=True)
        _run_again(ctx, options, first.draw, own["store_dir"])
        ctx.exit(ExitCode.INVALID)
    ctx.exit(ExitCode.VALID if valid else ExitCode.UNKNOWN)


for _parameter in hunt.params:
    if _parameter.name in DEFAULTS:
        _parameter.default = DEFAULTS[_parameter.name]


def space_of(ctx: click.Context, options: Mapping[str, Any], among: str | None) -> Space:
    """Returns what the runs of a hunt draw from: kinds, their targets, and the settings that the user leaves open."""
    from commands.hunting import Space
    from harness.declare import hunted
    from nemesis.kinds import find_kind
    from nemesis.targets import ALL, BY_LEADER, LEADER, MAJORITY

    kinds = drawn_from(simulated_kinds(ctx, options), among)
    known = {name: find_kind(name) for name in kinds}
    settings = {
        name: values
        for each in getattr(ctx, "chosen", ())
        for name, values in hunted(each.type.Options).items()
        if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    }
    return Space(
        kinds=kinds,
        targets={
            name: [
                target for target in (ALL, LEADER, MAJORITY) if target in kind.fault.TARGETS and target != kind.target
            ]
            for name, kind in known.items()
            if kind.target not in BY_LEADER
        },
        settings=settings,
    )


def simulated_kinds(ctx: click.Context, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the kinds of faults that a hunt draws from by default.

    Each kind has a simulated effect, and needs no names of nodes. A kind that is not in `all` is included if it aims at the
    leader or damages files. The other kinds that are not in `all` differ from one in `all` only in how many nodes they hit.
    """
    from harness.capabilities import SIMULATED, Capabilities
    from nemesis.kinds import all_kinds, left_out
    from nemesis.targets import BY_LEADER

    lacking = {left.kind for left in left_out({"n1": Capabilities(available=frozenset({SIMULATED}))})}
    _, settled = _settled(_words(ctx, options, None), ctx)
    alone = len(settled.nodes) == 1
    return tuple(
        kind.name
        for kind in all_kinds().values()
        if kind.name not in lacking
        and kind.target is not None
        and (kind.in_all or kind.target in BY_LEADER or kind.fault.DAMAGES)
        and not (alone and "partition" in kind.name)
    )


def drawn_from(known: Sequence[str], among: str | None) -> tuple[str, ...]:
    """Returns the kinds that a hunt draws from.

    Args:
        known: The kinds of the simulator.
        among: The value of `--among`; None if it is not given.

    Raises:
        InputError: A name is not one of these kinds.
    """
    from nemesis.kinds import find_kind

    if among is None:
        return tuple(known)
    names = [find_kind(name.strip()).name for name in among.split(",")]
    for name in names:
        if name not in known:
            raise InputError(f"a hunt cannot draw {name}; --among takes: {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _words(ctx: click.Context, options: Mapping[str, Any], draw: Draw | None) -> list[str]:
    """Returns the command-line words of `labrys test` for a run of the hunt, or for all runs if `draw` is None."""
    own = {} if draw is None else {"seed": draw.seed, **_drawn(ctx, draw)}
    values = {**options, **own}
    known = {option.name for option in opt.options_of(run_test)} | {
        option.name for each in getattr(ctx, "chosen", ()) for option in each.options
    }
    return opt.spelled_out([option for option in opt.options_of(ctx.command, ctx) if option.name in known], values)


def _drawn(ctx: click.Context, draw: Draw) -> dict[str, Any]:
    """Returns the options that a run draws, without those that the hunt has in another way."""
    return {
        name: value for name, value in draw.options.items() if ctx.get_parameter_source(name) is ParameterSource.DEFAULT
    }


def _settled(words: Sequence[str], ctx: click.Context) -> tuple[dict[str, Any], Settled]:
    with run_test.make_context("test", list(words), parent=ctx.find_root()) as test:
        options = dict(test.params)
        return options, settle(test, options)


def _reproduce_line(ctx: click.Context, options: Mapping[str, Any], draw: Draw) -> str:
    """Returns the command that carries out one run of the hunt."""
    with run_test.make_context("test", _words(ctx, options, draw), parent=ctx.find_root()) as test:
        values = dict(test.params)
        settle(test, values)
        return reproduce_line(test, values)


def _run_again(ctx: click.Context, options: Mapping[str, Any], draw: Draw, store: Path) -> None:
    """Carries out a run again as `labrys test` does, with a folder in the store; ends the command with its verdict."""
    words = [*_words(ctx, options, draw), "--store", str(store)]
    with run_test.make_context("test", words, parent=ctx.find_root()) as test:
        run_test.invoke(test)


def _run_all(
    ctx: click.Context, options: Mapping[str, Any], chooser: Chooser, own: Mapping[str, Any], console: Console
) -> list[HuntRun]:
    """Carries out runs until the budget is used up, or enough runs are invalid.

    Runs are drawn in rounds, so that a draw does not depend on the speed of other runs.
    """
    jobs = own["jobs"] or len(os.sched_getaffinity(0))
    drawing = {name: options[name] for name in nemesis.choices.DRAWING}
    words = tuple(_words(ctx, {**options, **dict.fromkeys(drawing)}, None))
    until_s = time.monotonic() + own["minutes"] * 60
    shown_s = time.monotonic()
    tried: list[HuntRun] = []
    with _carrying_out(jobs) as carry_out:
        while len(tried) < own["runs"]:
            draws = [chooser.draw() for _ in range(min(ROUND, own["runs"] - len(tried)))]
            given = [{**drawing, **_drawn(ctx, draw)} for draw in draws]
            for each in carry_out(functools.partial(carried_out, words), draws, given):
                tried.append(each)
                chooser.learn(each.draw, each.features)
                enough = sum(each.verdict == INVALID for each in tried) >= own["finds"]
                if enough or time.monotonic() >= until_s:
                    return tried
                if time.monotonic() - shown_s > PROGRESS_S:
                    shown_s = time.monotonic()
                    console.print(f"· {len(tried)} runs, {len(chooser.seen)} features seen", style="dim")
    return tried


@contextlib.contextmanager
def _carrying_out(jobs: int) -> Iterator[Callable[..., Iterator[HuntRun]]]:
    """Yields a function like `map`, which carries out runs and yields their outcomes in order; one job needs no pool."""
    if jobs == 1:
        yield map
        return
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@functools.cache
def _base(words: tuple[str, ...]) -> tuple[Mapping[str, Any], Settled]:
    """Returns the options that all runs of a hunt share. The cache saves parsing them again for each run."""
    import cli

    with cli.labrys.make_context("labrys", ["test"]) as root:
        return _settled(words, root)


def carried_out(words: tuple[str, ...], draw: Draw, given: Mapping[str, Any]) -> HuntRun:
    """Carries out one run, in a process of the pool.

    Args:
        words: The command-line words of `labrys test` that all runs of the hunt share.
        draw: The run.
        given: The options of this run by parameter name, and those that determine its plan.
    """
    from commands.hunting import features_of
    from commands.trial import attempt

    options, settled = _base(words)
    try:
        trial = attempt({**options, **given}, settled, seed=draw.seed)
    except InputError as refused:
        return HuntRun(draw=draw, verdict=REFUSED, reason=str(refused))
    blamed = trial.blamed
    return HuntRun(
        draw=draw,
        verdict=str(trial.verdict),
        blamed=blamed,
        reason=next((part.reason for part in trial.parts if part.name in blamed), ""),
        features=features_of(trial),
        operations=len(trial.operations),
    )
