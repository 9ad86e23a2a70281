"""The command `labrys suite`."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.options.run_options import OutputOptions
from commands.suite.contexts import check_cases, known_options
from commands.suite.shards import ShardText, cases_of
from harness.console import sources as opt
from harness.console import system_suites
from harness.console.parameters import MAX_SEED, Choice, SuiteFile, Whole, existing_folder, folder
from harness.console.plain import counted
from harness.console.plain import name as plain_name
from harness.console.selection import read_selection
from harness.console.terminal import echo, open_console
from harness.declare import with_option
from harness.errors import ExitCode, InputError
from harness.randomness import fresh_seed
from results.causes.known import KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from commands.suite.contexts import Checked
    from commands.suite.shards import Shard
    from harness.suites.case import Case
    from harness.suites.case_result import CaseResult
    from harness.suites.suite import Suite

MAX_SHOWN = 5
MAX_JOBS = 1000


class SuiteCommand(opt.DefaultsCommand):
    """A command whose help ends with the names of the suites that installed systems have."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the names."""
        with formatter.section("Suites of the installed systems"), formatter.indentation():
            formatter.write_text(", ".join(system_suites.suites()))


@click.command("suite", cls=SuiteCommand)
@click.argument("file", type=SuiteFile(exists=True, path_type=Path))
@click.option(
    "--seed",
    type=Whole(0, MAX_SEED),
    default=None,
    help="The seed from which each case draws its own seed.  [default: random, or that of the run to resume or repeat]",
)
@click.option("--exit-first", is_flag=True, help="Begin no other case after the first one that fails.")
@click.option(
    "--jobs",
    type=Whole(1, MAX_JOBS),
    default=None,
    metavar="N",
    help="Run up to N cases at the same time.  [default: as many as the cores and the memory allow]",
)
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
@click.option(
    "--shard", type=ShardText(), default=None, metavar="I/N",
    help="Run the I-th of N parts of the cases, with the same --seed on each of N machines.",
)  # fmt: skip
@click.option(
    "--last-failed",
    is_flag=True,
    help="Run the cases that were not as expected in the newest run of this suite in the store.",
)
@click.option("--dry-run", is_flag=True, help="List the cases with their commands, and run nothing.")
@click.option(
    "--fail-on", type=Choice(["any", "new"]), default="any", show_default=True,
    help="any: a case that is not as expected. new: a cause that is new in the store, or came back.",
)  # fmt: skip
@click.option(
    "--known", type=folder(), metavar="FOLDER", default=KNOWN, show_default=True,
    help="The folder of known causes, for --fail-on new.",
)  # fmt: skip
@with_option(OutputOptions, "store_dir")
@with_option(OutputOptions, "output")
@click.pass_context
def run_whole_suite(
    ctx: click.Context,
    *,
    file: Path,
    seed: int | None,
    exit_first: bool,
    jobs: int | None,
    resume: Path | None,
    only: str | None,
    shard: Shard | None,
    last_failed: bool,
    dry_run: bool,
    fail_on: str,
    known: Path,
    store_dir: Path,
    output: str,
) -> None:
    """Runs each test of FILE, and prints a summary.

    FILE is a suite, the name of a suite of an installed system, or a folder of regressions: each file of the folder is a
    suite, with its plans beside it.

    The exit code is the worst of all cases. Exit codes, the worst first: 1 an unexpected verdict or a crossed threshold,
    255 a case that broke off, 2 an unknown verdict, 0 all cases as expected. With --fail-on new, causes count, and not cases.
    """
    _check_shard(shard, seed=seed, continues=resume is not None or last_failed)
    chosen = _choose(file, seed=seed, resume=resume, only=only, last_failed=last_failed, store=store_dir)
    if not chosen.cases:
        ctx.exit(ExitCode.VALID)
    checked = check_cases(ctx, file, chosen.cases)
    chosen = _part_of(chosen, shard, checked)
    config = ctx.find_root().params.get("config")
    for line in checked.lines(config):
        echo(line, err=True)
    if dry_run:
        _list(chosen, checked, output)
        return
    from commands.suite.cases import run_suite
    from commands.suite.folder import SuiteFolder
    from commands.suite.jobs import Jobs
    from commands.suite.rates import with_rates
    from harness.suites.case_result import exit_code

    suite, console = chosen.suite, open_console()
    folder = SuiteFolder.create(store_dir, suite, datetime.now(UTC)) if resume is None else SuiteFolder(resume)
    before = {} if resume is None else folder.finished(suite)
    if resume is not None:
        for line in folder.changes(suite).lines():
            echo(line, err=True)
    again = ["labrys", "suite", str(file), "--seed", str(suite.seed)]
    if not last_failed:
        words = shlex.join([*again, *([] if only is None else ["--only", only]), *_shard_words(shard)])
        console.print(f"reproduce  {words}", style="dim", soft_wrap=True)
    selected = {case.name for case in chosen.cases}
    try:
        results = run_suite(
            suite,
            folder,
            store=store_dir,
            console=console,
            exit_first=exit_first,
            before=before,
            time_limit_s=checked.time_limit_s,
            config=config,
            selected=selected,
            jobs=Jobs(places=checked.places, most=jobs),
        )
    except KeyboardInterrupt:
        echo(f"interrupted; `{shlex.join([*again, '--resume', str(folder.path)])}` continues the suite", err=True)
        raise
    if rated := with_rates(suite, folder, store_dir, results):
        results = rated
        folder.save(suite, {result.case.name: result for result in results}, selected={*selected, *before})
    _print(suite, folder.path, results, counts=(len({*selected, *before}), len(suite.cases)), output=output)
    ctx.exit(exit_code(results) if fail_on == "any" else _by_causes(store_dir, results, known, console))


def _shard_words(shard: Shard | None) -> list[str]:
    return [] if shard is None else ["--shard", str(shard)]


def _check_shard(shard: Shard | None, *, seed: int | None, continues: bool) -> None:
    """Refuses a part of a suite without a seed, and one of an earlier run.

    Raises:
        UsageError: The cases of an earlier run are selected.
        InputError: There is no seed.
    """
    if shard is not None and continues:
        raise click.UsageError("--shard cannot go with --resume or --last-failed, which select cases of an earlier run")
    if shard is not None and seed is None:
        raise InputError("--shard needs --seed, the same on each machine, so that all parts are one night")


def _part_of(chosen: _Choice, shard: Shard | None, checked: Checked) -> _Choice:
    """Returns the cases of a part; all without one.

    Raises:
        InputError: There are fewer cases than parts, so this part has none.
    """
    from commands.suite.cases import workload_s

    if shard is None:
        return chosen
    cases = cases_of(shard, chosen.cases, checked.places, lambda case: workload_s(case, checked.time_limit_s))
    if not cases:
        raise InputError(f"--shard {shard}: there are only {counted(len(chosen.cases), 'case')}, so this part has none")
    echo(f"shard      {shard}: {len(cases)} of {counted(len(chosen.cases), 'case')}", err=True)
    return _Choice(suite=chosen.suite, cases=cases)


def _by_causes(store: Path, results: Sequence[CaseResult], known: Path, console: Console) -> ExitCode:
    """Prints the causes of the cases that are not as expected, and returns the exit code by those that are new."""
    from commands.suite.new_causes import causes_of_suite, exit_code, lines_of

    causes = causes_of_suite(store, results, known)
    for line in lines_of(causes):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    new = sum(cause.fails for cause in causes)
    console.print(f"{counted(len(causes), 'cause')}, {new} of them new or back")
    return exit_code(causes, results)


def _print(suite: Suite, folder: Path, results: Sequence[CaseResult], *, counts: tuple[int, int], output: str) -> None:
    """Prints the summary, and the standard output of the command."""
    from commands.suite.summary import github_lines, print_summary, summary_json

    print_summary(open_console(), results, counts)
    match output:
        case "json":
            echo(json.dumps(summary_json(suite.name, suite.seed, folder, results, counts), indent=2))
        case "github":
            for line in github_lines(suite.name, results, counts):
                echo(line)
        case _:
            echo(folder / "junit.xml")


def _list(chosen: _Choice, checked: Checked, output: str) -> None:
    """Lists the cases of a dry run."""
    from commands.suite.cases import workload_s
    from commands.suite.summary import cases_json, print_cases

    if output == "json":
        echo(json.dumps(cases_json(chosen.cases), indent=2))
        return
    console = open_console(stderr=False)
    workloads_s = sum(workload_s(case, checked.time_limit_s) for case in chosen.cases)
    print_cases(console, chosen.cases, chosen.suite.seed, workloads_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What to run.

    Attributes:
        suite: The suite.
        cases: The selected cases; none if the run before had no case that failed.
    """

    suite: Suite
    cases: Sequence[Case]


def _choose(
    file: Path, *, seed: int | None, resume: Path | None, only: str | None, last_failed: bool, store: Path
) -> _Choice:
    """Reads the suite, and selects its cases.

    Raises:
        UsageError: The options exclude each other.
        InputError: The suite or the run before cannot be read, or no case is selected.
    """
    from commands.suite.folder import SuiteFolder, newest_folder, seed_of
    from harness.suites.suite import load_suite

    if resume is not None and last_failed:
        raise click.UsageError("--resume and --last-failed name two different runs to continue from; give one of them")
    earlier = None if resume is None else SuiteFolder(resume)
    if last_failed:
        earlier = newest_folder(store, load_suite(file, seed=0, known=known_options).name)
    if seed is None:
        seed = fresh_seed() if earlier is None else seed_of(earlier.path)
    suite = load_suite(file, seed=seed, known=known_options)
    cases = _selected(suite, only)
    if earlier is not None and last_failed:
        cases = _failed(earlier.path, suite, earlier.not_as_expected(), cases)
    elif earlier is not None and only is None:
        selection = earlier.selection(suite)
        cases = [case for case in cases if case.name in selection]
        if not cases:
            raise InputError(
                f"{file} has none of the cases that {earlier.path} selected; start a new run without --resume"
            )
    return _Choice(suite=suite, cases=cases)


def _failed(folder: Path, suite: Suite, names: frozenset[str], cases: Sequence[Case]) -> Sequence[Case]:
    """Returns those of the cases that were not as expected in an earlier run, and prints their number.

    Raises:
        InputError: There are such cases, and none of them can run.
    """
    if not names:
        echo(f"{folder}: all cases were as expected; nothing to run", err=True)
        return []
    gone = sorted(names - {case.name for case in suite.cases})
    if gone:
        echo(f"the suite's file no longer has {', '.join(map(plain_name, gone[:MAX_SHOWN]))}", err=True)
    matching = [case for case in cases if case.name in names]
    if not matching:
        first = ", ".join(map(plain_name, sorted(names)[:MAX_SHOWN]))
        raise InputError(f"of the cases that were not as expected in {folder}, none is selected; the first are {first}")
    echo(f"repeats    {len(matching)} of {counted(len(names), 'failed case')} of {folder}", err=True)
    return matching


def _selected(suite: Suite, only: str | None) -> Sequence[Case]:
    """Returns the cases that an expression selects; all if there is no expression. The name of a case selects this case alone.

    Raises:
        InputError: The expression is not valid, or selects no case.
    """
    if only is None:
        return suite.cases
    exact = [case for case in suite.cases if case.name == only]
    if exact:
        return exact
    selects = read_selection(only)
    cases = [case for case in suite.cases if selects(case.name)]
    if not cases:
        first = ", ".join(plain_name(case.name) for case in suite.cases[:MAX_SHOWN])
        raise InputError(
            f"--only {plain_name(only)!r} matches none of the {len(suite.cases)} cases; the first are {first}"
        )
    return cases
