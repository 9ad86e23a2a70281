"""The command `labrys calls`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from commands.options.run_options import OutputOptions
from harness.console.parameters import Whole
from harness.console.plain import one_line
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import ExitCode, InputError
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from typing import BinaryIO

MOST_BEFORE = 10_000


@click.command("calls", cls=RunCommand)
@click.argument("one", type=RunName())
@click.argument("other", type=RunName())
@click.option(
    "--before",
    type=Whole(0, MOST_BEFORE),
    metavar="LINES",
    default=10,
    show_default=True,
    help="The number of equal lines that are printed before the difference.",
)
@with_option(OutputOptions, "store_dir")
@click.pass_context
def compare_calls(ctx: click.Context, /, one: str, other: str, before: int, store_dir: Path) -> None:
    """Prints the first difference of the logs of calls of two runs.

    ONE and OTHER are runs of programs in virtual time with --calls, or files with such a log. A line has the virtual time in
    nanoseconds, the node, the program and the number of its thread, a call with its result, and a part of the digest of all
    before. The exit code is 0 if the logs are equal, and 1 if they differ.
    """
    from clusters.sim.linux.calls import first_difference

    with _opened(one, store_dir) as first, _opened(other, store_dir) as second:
        equal, difference = first_difference(first, second, before=before)
    if difference is None:
        echo(f"Both logs have the same {equal:,} lines.")
        return
    for line in difference.before:
        echo(f"both    {one_line(line)}")
    for label, lines in (("first", difference.first), ("second", difference.second)):
        for line in lines or ("its end",):
            echo(f"{label:<7} {one_line(line)}")
    echo(difference.describe())
    ctx.exit(ExitCode.INVALID)


def _opened(text: str, store_dir: Path) -> BinaryIO:
    """Opens the log of calls of a run, or a file.

    Raises:
        InputError: There is none.
    """
    from harness.console.below import open_file
    from results.store.store import Store

    path = Path(text)
    try:
        if path.is_file():
            return open_file(path.parent, path)
        run = Store(store_dir).open_run(text)
        if not run.has(run.calls_log):
            raise InputError(f"{run.path} has no log of calls; carry it out again with `labrys replay {text} --calls`")
        return open_file(run.path, run.calls_log)
    except OSError as error:
        raise InputError(f"{text}: the log of calls cannot be read: {error.strerror or error}") from error
