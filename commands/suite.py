"""The command `labrys suite`."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands import choosing
from commands.compose import FORMAT_OPTION, REPEAT_FLAGS, STORE_OPTION
from commands.test import run_test
from harness import options as opt
from harness import plugins
from harness.errors import InputError
from harness.parameters import MAX_SEED, SuiteFile, Whole, existing_folder
from harness.plain import name as plain_name
from harness.randomness import fresh_seed
from harness.selection import read_selection
from harness.terminal import echo, open_console

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.suite import Case, Suite

MAX_SHOWN = 5


@click.command("suite", cls=opt.DefaultsCommand)
@click.argument("file", type=SuiteFile(exists=True, path_type=Path))
@click.option(
    "--seed",
    type=Whole(0, MAX_SEED),
    default=None,
    help="The seed from which each case draws its own seed.  [default: random]",
)
@click.option("--exit-first", is_flag=True, help="Stop at the first case that fails.")
@click.option(
    "--resume",
    type=existing_folder(),
    help="Continue the interrupted suite in this folder.",
)
@click.option(
    "--only",
    metavar="EXPRESSION",
    help="Run the cases whose names match, e.g. 'kill and not (bridge or pause)'.",
)
@click.option("--dry-run", is_flag=True, help="List the cases with their commands, and run nothing.")
@STORE_OPTION
@FORMAT_OPTION
@click.pass_context
def run_whole_suite(
    ctx: click.Context,
    *,
    file: Path,
    seed: int | None,
    exit_first: bool,
    resume: Path | None,
    only: str | None,
    dry_run: bool,
    store_dir: Path,
    output: str,
) -> None:
    """Runs each test of FILE, and prints a summary.

    FILE is a suite, or a folder of regressions: each file of the folder is a suite, with its plans beside it.

    The exit code is the worst of all cases. Exit codes, the worst first: 1 an unexpected verdict or a crossed threshold,
    255 a case that broke off, 2 an unknown verdict, 0 all cases as expected.
    """
    from commands.suite_summary import cases_json, github_lines, print_cases, print_summary, summary_json
    from commands.suites import SuiteFolder, run_suite, seed_of, workload_s
    from harness.suite import exit_code, load_suite

    if seed is None:
        seed = fresh_seed() if resume is None else seed_of(resume)
    suite = load_suite(file, seed=seed, known=known_options)
    usual = run_test.make_context("test", [], parent=ctx.parent).params["time_limit"]
    cases = _selected(suite, only)
    _check_cases(ctx, cases)
    console = open_console(stderr=not dry_run or output != "text")
    if dry_run:
        if output == "json":
            echo(json.dumps(cases_json(cases), indent=2))
        else:
            print_cases(console, cases, seed, sum(workload_s(case, usual) for case in cases))
        return
    folder = SuiteFolder.create(store_dir, suite, datetime.now(UTC)) if resume is None else SuiteFolder(resume)
    before = {} if resume is None else folder.finished(suite)
    again = shlex.join(["labrys", "suite", str(file), "--seed", str(seed), *([] if only is None else ["--only", only])])
    console.print(f"reproduce  {again}", style="dim", soft_wrap=True)
    try:
        results = run_suite(
            suite,
            folder,
            store=store_dir,
            console=console,
            exit_first=exit_first,
            before=before,
            time_limit_s=usual,
            config=ctx.find_root().params.get("config"),
            chosen={case.name for case in cases},
        )
    except KeyboardInterrupt:
        echo(f"interrupted; `{again} --resume {folder.path}` continues the suite", err=True)
        raise
    print_summary(console, results)
    match output:
        case "json":
            echo(json.dumps(summary_json(suite.name, seed, folder.path, results), indent=2))
        case "github":
            for line in github_lines(suite.name, results):
                echo(line)
        case _:
            echo(folder.path / "junit.xml")
    ctx.exit(exit_code(results))


def _selected(suite: Suite, only: str | None) -> Sequence[Case]:
    """Returns the cases that an expression selects; all if there is no expression.

    Raises:
        InputError: The expression is not valid, or selects no case.
    """
    if only is None:
        return suite.cases
    selects = read_selection(only)
    cases = [case for case in suite.cases if selects(case.name)]
    if not cases:
        first = ", ".join(plain_name(case.name) for case in suite.cases[:MAX_SHOWN])
        raise InputError(
            f"--only {plain_name(only)!r} matches none of the {len(suite.cases)} cases; the first are {first}"
        )
    return cases


def _check_cases(ctx: click.Context, cases: Sequence[Case]) -> None:
    """Checks the command line of each case before the first case runs.

    Raises:
        InputError: `labrys test` refuses the command line of a case; the message names the case.
    """
    for case in cases:
        try:
            run_test.make_context("test", case.arguments()[1:], parent=ctx.parent)
        except click.UsageError as error:
            text = f"{error.format_message()} {opt.source_of(error)}".rstrip()
            raise InputError(f"the case {plain_name(case.name)}: {text}") from error


def known_options(options: Mapping[str, object]) -> frozenset[str]:
    """Returns the long names of the options that a case can have; they depend on its system and its workload.

    Args:
        options: The case's options by long name.

    Raises:
        InputError: Its system or its workload cannot be loaded.
    """
    common = opt.options_of(run_test)
    usual = {str(option.name): option.default for option in common}
    system = options.get("system", usual[choosing.SYSTEM])
    workload = options.get("workload", usual[choosing.WORKLOAD])
    chosen = [
        option
        for group, name in ((plugins.SYSTEMS, system), (plugins.WORKLOADS, workload))
        for option in choosing.chosen(group, str(name), by_place=True).options
    ]
    return frozenset(opt.long_name(option) for option in (*common, *chosen)) - REPEAT_FLAGS
