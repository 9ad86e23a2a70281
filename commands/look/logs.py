"""The command `labrys logs`."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING

import click

from commands.options.run_options import OutputOptions
from harness.console.parameters import MAX_RUN_S, Number
from harness.console.terminal import echo
from harness.declare import with_option
from harness.errors import InputError
from harness.units import NS_PER_S
from results.store.naming import RunCommand, RunName

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LINES = 1_000  # that are written at once


TIME = Number(-MAX_RUN_S, MAX_RUN_S)


@click.command("logs", cls=RunCommand)
@click.argument("run", type=RunName(), default="latest")
@click.option(
    "--from",
    "from_s",
    type=TIME,
    metavar="SECONDS",
    help="The first time.  [default: the first line]",
)
@click.option(
    "--to",
    "to_s",
    type=TIME,
    metavar="SECONDS",
    help="The last time.  [default: the last line]",
)
@click.option("--node", "nodes", multiple=True, metavar="NODE", help="Only the logs of this node; can be repeated.")
@with_option(OutputOptions, "store_dir")
def show_logs(run: str, from_s: float | None, to_s: float | None, nodes: Sequence[str], store_dir: Path) -> None:
    """Prints all logs of all nodes of RUN in one order.

    Times are seconds since the start of the workload, as in reports; lines before it have negative times (--from=-5). The time
    that a node wrote decides the order, corrected by the clock of the node as Labrys read it before the workload. A line
    without a time stands after the line before it in its file. What was not read is on standard error.
    """
    from harness.console.plain import name
    from results.logs.merged import merged_logs
    from results.logs.times import all_log_times
    from results.store.store import Store
    from results.stored.load import load_record

    if from_s is not None and to_s is not None and from_s > to_s:
        raise InputError(
            f"--from and --to: expected times that do not go back, found {from_s} s as the first and {to_s} s as the last"
        )
    stored_run = Store(store_dir).open_run(run)
    record = load_record(stored_run)
    times = all_log_times(record)
    known = {path.parent.name for path in merged_logs(stored_run, record, times).files}
    if not known:
        raise InputError(f"{stored_run.path} has no logs of nodes: expected files in {stored_run.nodes_dir}/NODE")
    for node in nodes:
        if node not in known:
            raise InputError(f"--node: expected one of {', '.join(map(name, sorted(known)))}, found {name(node)!r}")
    logs = merged_logs(stored_run, record, times, nodes)
    for note in times.notes:
        echo(note, err=True)
    several = len({path.name for path in logs.files}) > 1
    widths = [
        max(len(name(text)) for text in texts)
        for texts in zip(*((path.parent.name, path.name) for path in logs.files), strict=True)
    ]
    entries = logs.entries(
        -math.inf if from_s is None else from_s * NS_PER_S, math.inf if to_s is None else to_s * NS_PER_S
    )
    printed = 0
    while some := list(islice(entries, LINES)):
        lines = []
        for entry in some:
            time = "" if entry.time_ns is None else f"{entry.time_ns / NS_PER_S:.6f}"
            file = f"{name(entry.file):<{widths[1]}}  " if several else ""
            lines.append(f"{time:>13}  {name(entry.node):<{widths[0]}}  {file}{entry.text}")
        echo("\n".join(lines))
        printed += len(lines)
    if not printed:
        echo(_nothing(from_s, to_s), err=True)
    for note in logs.notes:
        echo(note, err=True)


def _nothing(from_s: float | None, to_s: float | None) -> str:
    """Returns that the logs have no line at all, or none in the wanted time."""
    if from_s is not None and to_s is not None:
        return f"The logs have no line between {from_s} s and {to_s} s."
    if from_s is not None:
        return f"The logs have no line at {from_s} s or later."
    return "The logs have no line." if to_s is None else f"The logs have no line at {to_s} s or earlier."
