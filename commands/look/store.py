"""The commands `labrys store`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from commands.options.run_options import OutputOptions
from harness.console.parameters import Seconds, Whole, existing_folder, folder
from harness.console.plain import counted, one_line
from harness.console.sources import Group
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import InputError
from harness.verdict import Verdict
from results.causes.known import KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from click import Context, Parameter

    from results.store.pruning import Plan, Rule

MAX_AGE_S: Final = 3650 * 86_400.0
BYTES_PER_MB: Final = 1_000_000
MAX_BYTES: Final = 10**18
_SIZE: Final = re.compile(r"(?P<number>\d{1,15}(?:\.\d{1,6})?) ?(?P<unit>[kMGT]?)B?")
_UNITS: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Size(click.ParamType[int]):
    """A number of bytes, with a decimal unit such as `500M` or `20G`."""

    name = "size"

    def convert(self, value: Any, param: Parameter | None, ctx: Context | None) -> int:
        """Returns the bytes.

        Raises:
            click.BadParameter: It is no such number, or out of range.
        """
        form = _SIZE.fullmatch(str(value))
        size = -1 if form is None else int(float(form["number"]) * _UNITS[form["unit"]])
        if not 0 <= size <= MAX_BYTES:
            self.fail(f"expected a size such as 500M or 20G, not {value!r}", param, ctx)
        return size


@click.group("store", cls=Group)
def store() -> None:
    """Keeps the store of runs small."""


@store.command()
@click.argument("stores", nargs=-1, type=existing_folder(), metavar="[STORE]...")
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
@click.option(
    "--keep-size", type=Size(), metavar="SIZE", default=None,
    help="Also remove the oldest runs until the stores have at most SIZE, e.g. 20G.",
)  # fmt: skip
@click.option("--any-verdict", is_flag=True, help="Also remove runs that are invalid, unknown, or without a verdict.")
@click.option(
    "--known", type=folder(), metavar="FOLDER", default=KNOWN, show_default=True,
    help="The folder of known causes.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List the runs, and remove nothing.")
@with_option(OutputOptions, "store_dir")
def prune(
    *,
    stores: Sequence[Path],
    older_than: float | None,
    keep: int | None,
    keep_size: int | None,
    known: Path,
    store_dir: Path,
    any_verdict: bool,
    dry_run: bool,
) -> None:
    """Removes the folders of runs that are no longer needed.

    STORE... are stores, such as those of several nights; without them, it is that of --store.

    Give --older-than, --keep, or both; with both, a run goes only if both allow it. --keep-size goes on with the oldest runs.
    Invalid and unknown runs stay without --any-verdict. Some runs stay in any case: the newest run of each test, runs that
    `labrys shrink` made smaller, the smallest run of each cause of `labrys triage`, and all runs of a cause that is not gone.
    So do the folders of suites and of bisections.
    """
    from results.causes.needed import needed
    from results.store.pruning import Rule, planned
    from results.store.store import Store

    if older_than is None and keep is None and keep_size is None:
        raise InputError(
            "labrys store prune needs --older-than TIME, such as 14d, --keep N, or --keep-size SIZE, such as 20G"
        )
    by_age = 0.0 if older_than is None and keep is not None else older_than
    rule = Rule(older_than_s=by_age, keep=keep or 1, any_verdict=any_verdict, keep_bytes=keep_size)
    folders = [*stores] or [store_dir]
    plan = planned([Store(path) for path in folders], rule, datetime.now(UTC), partial(needed, folders, known))
    _carry_out(plan, rule, dry_run=dry_run)


def _carry_out(plan: Plan, rule: Rule, *, dry_run: bool) -> None:
    """Removes the runs of a plan, and says what went, and what stays and why."""
    from results.store.pruning import remove

    removed = freed = 0
    for entry in plan.goes:
        verdict = Verdict.from_json(entry.valid)
        why = "" if dry_run else remove(entry.run)
        stays = f"  stays: {why}" if why else ""
        echo(one_line(f"{entry.run.path} {verdict or 'no verdict'} {_shown(entry.size)}{stays}"))
        if not why:
            removed, freed = removed + 1, freed + entry.size
    echo(f"{counted(removed, 'run')} {'would be removed' if dry_run else 'removed'}, {_shown(freed)}", err=True)
    for reason, number in sorted(plan.kept.items(), key=lambda item: (-item[1], item[0])):
        echo(f"{counted(number, 'run')} kept: {reason}", err=True)
    if plan.size is not None and rule.keep_bytes is not None and plan.size - freed > rule.keep_bytes:
        left = _shown(plan.size - freed)
        echo(f"{left} are left, more than {_shown(rule.keep_bytes)}: the other runs are needed", err=True)


def _shown(size: int) -> str:
    return f"{size / BYTES_PER_MB:,.1f} MB"
