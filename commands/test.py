"""The command `labrys test`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

import clusters.options
from commands import needs
from commands.choosing import ChoosingCommand
from commands.compose import (
    OUTPUT_OPTIONS,
    REPEAT_OPTIONS,
    REPEATING,
    RUN_OPTIONS,
    THRESHOLD_OPTION,
    reproduce_line,
    settle,
    with_options,
)
from harness.console import options as opt
from harness.console.terminal import annotation, echo, open_console
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from commands.repeating import Tally
    from commands.session import Session


@click.command("test", cls=ChoosingCommand)
@with_options((*RUN_OPTIONS, THRESHOLD_OPTION, *OUTPUT_OPTIONS, *REPEAT_OPTIONS))
@click.pass_context
def run_test(ctx: click.Context, /, **options: Any) -> None:
    """Runs a test, and checks its history.

    Standard output has the verdict, and standard error the progress. The exit code is 1 for an invalid verdict or a crossed
    --threshold, 2 for an unknown one, and 0 otherwise. If the control node was behind, a crossed threshold counts as unknown.

    With --repeat, the exit code is that of the worst run: 1 if a run is invalid, 255 if a run broke off, 2 if a run is unknown,
    and 0 otherwise. A run that crosses a threshold counts as an invalid one.
    """
    repeating = {name: options.pop(name) for name in REPEATING}
    if repeating["repeat"] > 1:
        _repeat(ctx, options, **repeating)
        return
    if repeating["until_fail"] or repeating["same_seed"]:
        raise InputError("--until-fail and --same-seed need --repeat N with more than one run")
    run_once(ctx, options, summary=_summary_console(options))


def _summary_console(options: Mapping[str, Any]) -> Console:
    """Returns the console of the verdict: standard output, unless another format needs it."""
    return open_console(stderr=options["output"] != "text")


def run_once(ctx: click.Context, options: dict[str, Any], *, summary: Console) -> NoReturn:
    """Carries out a test, and ends the command with its verdict.

    Args:
        ctx: The context of `labrys test`.
        options: Its options by parameter name, without those that repeat a test.
        summary: The console of the verdict. Progress goes to standard error.

    Raises:
        Exit: Always, with the exit code.
    """
    from commands.session import compose_and_carry_out
    from harness.verdict import Verdict
    from results.live.terminal import print_summary
    from results.store.store import Store

    console = open_console()
    settled = settle(ctx, options)
    needs.warn(ctx, options, settled)
    reproduce = reproduce_line(ctx, options)
    console.print(f"reproduce  {reproduce}", style="dim", soft_wrap=True)
    session = compose_and_carry_out(
        options, settled, reproduce, defaults=opt.from_file(ctx), store=Store(options["store_dir"]), console=console
    )
    outcome, run, document = session.outcome, session.run, session.document
    print_summary(summary, document, report=run.report_html)
    if options["output"] == "json":
        echo(json.dumps({"run": str(run.path), **document}))
    elif options["output"] == "github" and outcome.alone is not Verdict.VALID:
        level = "error" if replace(outcome, error=None).alone is Verdict.INVALID else "warning"
        said = " ".join([*(f"Crossed the threshold {each}." for each in outcome.crossed), outcome.sentence])
        echo(annotation(level, f"labrys {document['test']}", f"{said} -- {reproduce}"))
    ctx.exit(outcome.exit_code)


def _repeat(ctx: click.Context, options: dict[str, Any], *, repeat: int, until_fail: bool, same_seed: bool) -> None:
    """Carries out a test many times, and ends the command with the worst verdict.

    Raises:
        InputError: The options are not valid, or `same_seed` would repeat one simulated run.
    """
    from datetime import UTC, datetime

    from commands import repeating
    from commands.compose import name_of
    from commands.repeat_summary import print_run, print_tally
    from commands.session import compose_and_carry_out
    from harness.randomness import repeat_seed
    from harness.verdict import Verdict
    from results.store.repeats import RepeatFolder
    from results.store.store import Store

    simulated = options["cluster_kind"] == clusters.options.SIMULATED
    if same_seed and simulated:
        raise InputError("in the simulator, runs with the same seed are the same run; leave out --same-seed")
    console = open_console()
    settled = settle(ctx, options)
    needs.warn(ctx, options, settled)
    seed, name = options["seed"], name_of(options)
    words = [f"--repeat {repeat}", *(["--until-fail"] if until_fail else []), *(["--same-seed"] if same_seed else [])]
    whole = f"{reproduce_line(ctx, options)} {' '.join(words)}"
    console.print(f"reproduce  {whole}", style="dim", soft_wrap=True)
    folder = RepeatFolder.create(options["store_dir"], name, datetime.now(UTC))
    quiet = simulated and not console.is_terminal  # such a run takes seconds, and prints its line at its end

    def line_of(own: int) -> str:
        return reproduce_line(ctx, {**options, "seed": own})

    def carry_out(own: int) -> Session:
        return compose_and_carry_out(
            {**options, "seed": own}, settled, line_of(own), defaults=opt.from_file(ctx),
            store=Store(options["store_dir"]), console=open_console(quiet=True) if quiet else console,
        )  # fmt: skip

    def save(tally: Tally) -> None:
        folder.save(repeating.document_of(tally, test=name, seed=seed, reproduce=whole, folder=str(folder.path)))

    def on_run(tally: Tally) -> None:
        print_run(console, tally)
        save(tally)

    seeds = (seed if same_seed else repeat_seed(seed, number) for number in range(1, repeat + 1))
    tally = repeating.repeat(carry_out, seeds, asked=repeat, until_fail=until_fail, reproduce=line_of, on_run=on_run)
    save(tally)
    print_tally(_summary_console(options), tally, page=folder.page)
    match options["output"]:
        case "json":
            echo(
                json.dumps(repeating.document_of(tally, test=name, seed=seed, reproduce=whole, folder=str(folder.path)))
            )
        case "github":
            for run in tally.runs:
                if run.outcome.alone is not Verdict.VALID:
                    level = "warning" if run.outcome.alone is Verdict.UNKNOWN else "error"
                    crossed = (f"Crossed the threshold {each}." for each in run.outcome.crossed)
                    said = " ".join([*crossed, run.outcome.reason])
                    echo(annotation(level, f"labrys {name}", f"{said} -- {run.reproduce}"))
            echo(annotation("notice", f"labrys {name}", tally.describe()))
    ctx.exit(tally.exit_code)
