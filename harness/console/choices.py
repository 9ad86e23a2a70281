"""The options of the command line that set the load and the time limits of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harness.console.parameters import MAX_RUN_S, MAX_SEED, MAX_WAIT_S, Choice, Number, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.load import Load

OPTIONS = (
    click.option(
        "--load",
        "load_kind",
        type=Choice(["open", "closed"]),
        default="open",
        show_default=True,
        help="open: requests arrive at a rate. closed: each worker waits for its answer before it sends the next request.",
    ),
    click.option(
        "--rate",
        type=Number(0, 10_000_000, above=True),
        default=40.0,
        show_default=True,
        help="Open loop: requests per second to each node.",
    ),
    click.option(
        "--max-in-flight",
        type=Whole(1, 100_000),
        default=100,
        show_default=True,
        help="Open loop: the maximum number of operations in flight to each node.",
    ),
    click.option(
        "--concurrency",
        default="2n",
        show_default=True,
        help="Closed loop: the number of workers, e.g. 10, or 2n for two for each node.",
    ),
    click.option(
        "--time-limit",
        type=Number(1, MAX_RUN_S),
        default=60.0,
        show_default=True,
        help="The duration of the workload in seconds.",
    ),
    click.option(
        "--operation-timeout",
        type=Number(0.1, MAX_WAIT_S),
        default=5.0,
        show_default=True,
        help="The time limit in seconds for one operation; after it, the result is indeterminate (info).",
    ),
    click.option(
        "--recovery-timeout",
        type=Number(1, MAX_WAIT_S),
        default=30.0,
        show_default=True,
        help="The time limit in seconds for the system to recover after all faults are healed.",
    ),
    click.option(
        "--final-reads/--no-final-reads",
        default=True,
        show_default=True,
        help="At the end, read every key through every node.",
    ),
    click.option(
        "--final-reads-timeout",
        type=Number(1, MAX_WAIT_S),
        default=60.0,
        show_default=True,
        help="The time limit in seconds for the final reads through one node.",
    ),
    click.option(
        "--lead-timeout",
        type=Number(1, MAX_WAIT_S),
        default=15.0,
        show_default=True,
        help="The time limit in seconds for a node to become the leader, if its final reads need that.",
    ),
    click.option(
        "--seed",
        type=Whole(0, MAX_SEED),
        default=None,
        help="The seed; the same seed gives the same operations and faults.  [default: random]",
    ),
)


def make_load(options: Mapping[str, Any], nodes: int) -> Load:
    """Makes the load that the options name, for a number of nodes.

    Raises:
        InputError: The options are not valid.
    """
    from harness.load import ClosedLoop, OpenLoop, parse_concurrency  # noqa: PLC0415 - `--help` needs no load

    if options["load_kind"] == "closed":
        return ClosedLoop(concurrency=parse_concurrency(options["concurrency"], nodes))
    max_in_flight = options["max_in_flight"]
    return OpenLoop(
        rate_per_node=options["rate"], max_in_flight=max_in_flight, processes_per_node=min(4, max_in_flight)
    )
