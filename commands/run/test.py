"""The command `labrys test`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from commands.options import needs
from commands.options.choosing import ChoosingCommand
from commands.options.compose import settle
from commands.options.run_options import OUTPUT, RUN, RepeatOptions, RunOptions, Sources, ThresholdOptions
from commands.options.subjects import by_programs
from harness.console import sources as opt
from harness.console.plain import one_line
from harness.console.terminal import annotation, echo, open_console
from harness.declare import click_options, with_options
from harness.errors import InputError
from harness.option_values import build

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from commands.run.executions import Earlier
    from commands.run.repeating import Tally
    from commands.run.session import Session
    from harness.errors import ExitCode
    from harness.op import Value


@click.command("test", cls=ChoosingCommand)
@with_options(*RUN, ThresholdOptions, *OUTPUT, RepeatOptions)
@click.pass_context
def run_test(ctx: click.Context, /, **values: Any) -> None:
    """Runs a test, and checks its history.

    Standard output has the verdict, and standard error the progress. The exit code is 1 for an invalid verdict or a crossed
    --threshold, 2 for an unknown one, and 0 otherwise. If the control node was behind, a crossed threshold counts as unknown.

    With --repeat, the exit code is that of the worst run: 1 if a run is invalid, 255 if a run broke off, 2 if a run is unknown,
    and 0 otherwise. A run that crosses a threshold counts as an invalid one.
    """
    ctx.exit(run_tests(RunOptions.of(values), Sources.of(ctx), build(RepeatOptions, values)))


def completed_options(root: click.Context, known: Mapping[str, Any]) -> tuple[RunOptions, Sources]:
    """Returns the options of `labrys test` with known values, as if they were typed, and where the values come from.

    All other options have their values from the environment, the table [test] of `labrys.toml`, or their built-in default.

    Args:
        root: The context of the group of all commands.
        known: Values by parameter name, as click converts them.

    Raises:
        UsageError: A value of the environment or of `labrys.toml` is not valid.
        InputError: The system or the workload cannot be loaded, or `labrys.toml` is not valid.
    """
    ctx = run_test.completed(root, known)
    return RunOptions.of(ctx.params), Sources.of(ctx)


def run_tests(
    options: RunOptions, sources: Sources, repeated: RepeatOptions, *, earlier: Earlier | None = None
) -> ExitCode:
    """Carries out a test, once or many times, and returns the exit code of the worst run.

    Args:
        options: The options.
        sources: Where their values come from.
        repeated: How often.
        earlier: The run of programs in virtual time that the first run is to repeat; None: it repeats none.

    Raises:
        InputError: The options are not valid.
    """
    if repeated.repeat > 1:
        return _repeat(options, sources, repeated, earlier)
    if repeated.until_fail or repeated.same_seed:
        raise InputError("--until-fail and --same-seed need --repeat N with more than one run")
    return run_once(options, sources, summary=_summary_console(options), earlier=earlier)


def _summary_console(options: RunOptions) -> Console:
    """Returns the console of the verdict: standard output, unless another format needs it."""
    return open_console(stderr=options.output.output != "text")


def run_once(options: RunOptions, sources: Sources, *, summary: Console, earlier: Earlier | None = None) -> ExitCode:
    """Carries out a test, and returns the exit code of its verdict.

    Args:
        options: The options.
        sources: Where their values come from.
        summary: The console of the verdict. Progress goes to standard error.
        earlier: The run of programs in virtual time that this one is to repeat; None: it repeats none.

    Raises:
        InputError: The options are not valid.
    """
    from commands.run.confirming import confirmation
    from commands.run.session import compose_and_carry_out
    from harness.verdict import Verdict
    from results.live.terminal import print_summary
    from results.store.store import Store

    console = open_console()
    settled = settle(options, sources)
    needs.warn(settled)
    output, reproduce = settled.options.output, settled.reproduce
    console.print(f"reproduce  {reproduce}", style="dim", soft_wrap=True)
    session = compose_and_carry_out(settled, store=Store(output.store_dir), console=console, earlier=earlier)
    outcome, run, document = session.outcome, session.run, session.document
    print_summary(summary, document, report=run.report_html)
    print_repeated(summary, document)
    if outcome.alone is Verdict.INVALID and (real := confirmation(settled, run.path)) is not None:
        summary.print(f"confirm    this find on real nodes: {real.line}", style="dim", soft_wrap=True, markup=False)
        for sentence in real.changes:
            summary.print(f"           {sentence}", style="dim", soft_wrap=True, markup=False)
    if output.output == "json":
        echo(json.dumps({"run": str(run.path), **document}))
    elif output.output == "github" and outcome.alone is not Verdict.VALID:
        level = "error" if replace(outcome, error=None).alone is Verdict.INVALID else "warning"
        said = " ".join([*(f"Crossed the threshold {threshold}." for threshold in outcome.crossed), outcome.sentence])
        echo(annotation(level, f"labrys {document['test']}", f"{said} -- {reproduce}"))
    return outcome.exit_code


def print_repeated(console: Console, document: Mapping[str, Value]) -> None:
    """Prints whether a run of programs in virtual time did the same as an earlier one, if it was compared with one."""
    from rich.text import Text

    from commands.run.again import REPEATABLE

    if document.get("execution") is None or (part := document["parts"].get(REPEATABLE)) is None:
        return
    style = "dim" if part["valid"] is True else "bold yellow"
    console.print(Text(f"{REPEATABLE} {one_line(part['reason'])}", style=style), soft_wrap=True)


def _repeat(options: RunOptions, sources: Sources, repeated: RepeatOptions, earlier: Earlier | None) -> ExitCode:
    """Carries out a test many times, and returns the exit code of the worst run.

    Raises:
        InputError: The options are not valid, or `same_seed` would repeat one simulated run.
    """
    from datetime import UTC, datetime

    from commands.options.compose import name_of
    from commands.run import repeating
    from commands.run.executions import Earlier
    from commands.run.repeat_summary import print_run, print_tally
    from commands.run.session import compose_and_carry_out
    from harness.randomness import repeat_seed
    from harness.verdict import Verdict
    from results.repeats import RepeatFolder
    from results.store.store import Store
    from results.stored.load import load_record

    simulated = options.cluster.simulated
    if repeated.same_seed and simulated and not by_programs(options):
        raise InputError("in the simulator, runs with the same seed are the same run; leave out --same-seed")
    console = open_console()
    settled = settle(options, sources)
    options = settled.options
    needs.warn(settled)
    seed, name, output = options.seed, name_of(options), options.output
    whole = f"{settled.reproduce} {' '.join(opt.spelled_out(click_options(RepeatOptions), asdict(repeated)))}"
    console.print(f"reproduce  {whole}", style="dim", soft_wrap=True)
    folder = RepeatFolder.create(output.store_dir, name, datetime.now(UTC))
    quiet = simulated and not console.is_terminal  # such a run takes seconds, and prints its line at its end

    def carry_out(own: int) -> Session:
        nonlocal earlier
        shown = open_console(quiet=True) if quiet else console
        session = compose_and_carry_out(
            settled.seeded(own), store=Store(output.store_dir), console=shown, earlier=earlier
        )
        print_repeated(console, session.document)
        if repeated.same_seed and simulated and earlier is None:
            earlier = Earlier.of(session.run, load_record(session.run))
        return session

    def document_of(tally: Tally) -> dict[str, Value]:
        return repeating.document_of(tally, test=name, seed=seed, reproduce=whole, folder=str(folder.path))

    def on_run(tally: Tally) -> None:
        print_run(console, tally)
        folder.save(document_of(tally))

    tally = repeating.repeat(
        carry_out,
        (seed if repeated.same_seed else repeat_seed(seed, number) for number in range(1, repeated.repeat + 1)),
        asked=repeated.repeat,
        until_fail=repeated.until_fail,
        reproduce=lambda own: settled.seeded(own).reproduce,
        on_run=on_run,
    )
    folder.save(document_of(tally))
    print_tally(_summary_console(options), tally, page=folder.page)
    match output.output:
        case "json":
            echo(json.dumps(document_of(tally)))
        case "github":
            for run in tally.runs:
                if run.outcome.alone is not Verdict.VALID:
                    level = "warning" if run.outcome.alone is Verdict.UNKNOWN else "error"
                    crossed = (f"Crossed the threshold {threshold}." for threshold in run.outcome.crossed)
                    said = " ".join([*crossed, run.outcome.reason])
                    echo(annotation(level, f"labrys {name}", f"{said} -- {run.reproduce}"))
            echo(annotation("notice", f"labrys {name}", tally.describe()))
    return tally.exit_code
