"""The commands `labrys store`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from commands.options.run_options import OutputOptions
from harness.console.parameters import Seconds, Whole
from harness.console.plain import counted, one_line
from harness.console.sources import Group
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import InputError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

MAX_AGE_S = 3650 * 86_400.0
BYTES_PER_MB = 1_000_000


@click.group("store", cls=Group)
def store() -> None:
    """Keeps the store of runs small."""


@store.command()
@click.option(
    "--older-than",
    type=Seconds(0, MAX_AGE_S),
    metavar="TIME",
    default=None,
    help="Remove runs that began so long ago, e.g. 14d or 36h.",
)
@click.option(
    "--keep", type=Whole(1, 1_000_000), metavar="N", default=None, help="Keep the newest N runs of each test."
)
@click.option("--any-verdict", is_flag=True, help="Also remove runs that are invalid, unknown, or without a verdict.")
@click.option("--dry-run", is_flag=True, help="List the runs, and remove nothing.")
@with_option(OutputOptions, "store_dir")
def prune(older_than: float | None, keep: int | None, store_dir: Path, *, any_verdict: bool, dry_run: bool) -> None:
    """Removes the folders of runs that are no longer needed.

    Give --older-than, --keep, or both; with both, a run goes only if both allow it. Invalid and unknown runs stay without
    --any-verdict. The newest run of each test stays in any case. So do runs that `labrys shrink` made smaller, and the folders
    of suites and of bisections.
    """
    from results.store.pruning import Rule, doomed, remove
    from results.store.store import Store

    if older_than is None and keep is None:
        raise InputError("labrys store prune needs --older-than TIME, such as 14d, or --keep N, or both")
    rule = Rule(older_than_s=older_than or 0.0, keep=keep or 1, any_verdict=any_verdict)
    removed = size = 0
    for each in doomed(Store(store_dir), rule, datetime.now(UTC)):
        verdict = Verdict.from_json(each.valid)
        if not dry_run:
            remove(each.run)
        echo(one_line(f"{each.run.path} {verdict or 'no verdict'} {each.size / BYTES_PER_MB:.1f} MB"))
        removed, size = removed + 1, size + each.size
    what = "would be removed" if dry_run else "removed"
    echo(f"{counted(removed, 'run')} {what}, {size / BYTES_PER_MB:.1f} MB", err=True)
