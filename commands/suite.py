"""The command `labrys suite`."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from commands import choosing
from commands.compose import STORE_OPTION
from commands.test import run_test
from harness import options as opt
from harness import plugins
from harness.parameters import MAX_SEED, Whole, existing_file, existing_folder
from harness.randomness import fresh_seed
from harness.terminal import echo, open_console

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@click.command("suite", cls=opt.ToldCommand)
@click.argument("file", type=existing_file())
@click.option(
    "--seed", type=Whole(0, MAX_SEED), default=None, help="The root of all cases' seeds.  [default: a fresh one]"
)
@click.option("--exit-first", is_flag=True, help="Stop at the first case that is not as expected.")
@click.option(
    "--resume",
    type=existing_folder(),
    help="Go on with a suite that was interrupted, from its folder.",
)
@STORE_OPTION
@click.pass_context
def run_whole_suite(
    ctx: click.Context, *, file: Path, seed: int | None, exit_first: bool, resume: Path | None, store_dir: Path
) -> None:
    """Runs the matrix of tests in FILE, and sums it up.

    The exit code is 1 if a verdict is definite and not the expected one, else 255 if a case broke, else 2 if one is unknown,
    else 0.
    """
    from commands.suites import SuiteFolder, print_table, run_suite, seed_of
    from harness.suite import exit_code, load_suite

    if seed is None:
        seed = fresh_seed() if resume is None else seed_of(resume)
    suite = load_suite(file, seed=seed, known=known_options)
    folder = SuiteFolder.create(store_dir, suite, datetime.now(UTC)) if resume is None else SuiteFolder(resume)
    before = {} if resume is None else folder.done(suite)
    console = open_console()
    again = shlex.join(["labrys", "suite", str(file), "--seed", str(seed)])
    console.print(f"reproduce  {again}", style="dim", soft_wrap=True)
    usual = run_test.make_context("test", [], parent=ctx.parent).params["time_limit"]
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
        )
    except KeyboardInterrupt:
        echo(f"interrupted; `{again} --resume {folder.path}` goes on", err=True)
        raise
    print_table(console, results)
    echo(folder.path / "junit.xml")
    ctx.exit(exit_code(results))


def known_options(options: Mapping[str, object]) -> frozenset[str]:
    """Returns the long names of the options that a case can have, which depend on its system and its workload.

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
    return frozenset(opt.long_name(option) for option in (*common, *chosen))
