"""The command `labrys test`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

import clusters.options
from commands.choosing import ChoosingCommand
from commands.compose import (
    OUTPUT_OPTIONS,
    REPEAT_OPTIONS,
    REPEATING,
    RUN_OPTIONS,
    reproduce_line,
    settle,
    with_options,
)
from harness import options as opt
from harness.errors import ExitCode, InputError
from harness.terminal import annotation, echo, open_console

if TYPE_CHECKING:
    from commands.repeating import Tally
    from commands.session import Session


@click.command("test", cls=ChoosingCommand)
@with_options((*RUN_OPTIONS, *OUTPUT_OPTIONS, *REPEAT_OPTIONS))
@click.pass_context
def run_test(ctx: click.Context, /, **options: Any) -> None:
    """Runs a test, and checks its history.

    With --repeat, the exit code is that of the worst run: 1 if a run is invalid, 255 if a run broke off, 2 if a run is unknown,
    and 0 otherwise.
    """
    repeating = {name: options.pop(name) for name in REPEATING}
    if repeating["repeat"] > 1:
        _repeat(ctx, options, **repeating)
        return
    if repeating["until_fail"] or repeating["same_seed"]:
        raise InputError("--until-fail and --same-seed need --repeat N with more than one run")
    from commands.session import compose_and_carry_out
    from harness.verdict import Verdict
    from results.reading import verdict_from
    from results.store import Store
    from results.terminal import print_summary

    console = open_console()
    settled = settle(ctx, options)
    reproduce = reproduce_line(ctx, options)
    console.print(f"reproduce  {reproduce}", style="dim", soft_wrap=True)
    session = compose_and_carry_out(
        options, settled, reproduce, defaults=opt.from_file(ctx), store=Store(options["store_dir"]), console=console
    )
    run, document = session.run, session.document
    verdict = verdict_from(document["valid"])
    print_summary(console, document, report=run.report_html)
    if options["output"] == "json":
        echo(json.dumps({"run": str(run.path), **document}))
    elif options["output"] == "github" and verdict is not Verdict.VALID:
        level = "error" if verdict is Verdict.INVALID else "warning"
        echo(annotation(level, f"labrys {document['test']}", f"{document['reason']} -- {reproduce}"))
    if session.interrupted:
        ctx.exit(ExitCode.INTERRUPTED)
    if session.error is not None and verdict is not Verdict.INVALID:  # a definite failure is never masked
        ctx.exit(ExitCode.INTERNAL)
    ctx.exit(verdict.exit_code)


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
    from results.repeats import RepeatFolder
    from results.store import Store

    simulated = options["cluster_kind"] == clusters.options.SIMULATED
    if same_seed and simulated:
        raise InputError("in the simulator, runs with the same seed are the same run; leave out --same-seed")
    console = open_console()
    settled = settle(ctx, options)
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
    print_tally(console, tally, page=folder.page)
    match options["output"]:
        case "json":
            echo(
                json.dumps(repeating.document_of(tally, test=name, seed=seed, reproduce=whole, folder=str(folder.path)))
            )
        case "github":
            for run in tally.runs:
                if run.verdict is not Verdict.VALID:
                    level = "warning" if run.verdict is Verdict.UNKNOWN else "error"
                    echo(annotation(level, f"labrys {name}", f"{run.reason} -- {run.reproduce}"))
            echo(annotation("notice", f"labrys {name}", tally.describe()))
        case _:
            echo(folder.page)
    ctx.exit(tally.exit_code)
