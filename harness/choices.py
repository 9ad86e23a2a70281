"""What can be chosen about the load and the times of a run, as options of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from harness.parameters import MAX_RUN_S, MAX_SEED, MAX_WAIT_S, Number, Whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.load import Load

OPTIONS = (
    click.option(
        "--load",
        "load_kind",
        type=click.Choice(["open", "closed"]),
        default="open",
        show_default=True,
        help="Whether requests arrive at a rate, or each worker waits for its answer.",
    ),
    click.option(
        "--rate",
        type=Number(0, 10_000_000, above=True),
        default=40.0,
        show_default=True,
        help="Open loop: arrivals per second at each node.",
    ),
    click.option(
        "--max-in-flight",
        type=Whole(1, 100_000),
        default=100,
        show_default=True,
        help="Open loop: the most operations in flight at each node.",
    ),
    click.option(
        "--concurrency",
        default="2n",
        show_default=True,
        help="Closed loop: workers, as a number or as a multiple of the nodes.",
    ),
    click.option(
        "--time-limit", type=Number(1, MAX_RUN_S), default=60.0, show_default=True, help="Seconds of workload."
    ),
    click.option(
        "--operation-timeout",
        type=Number(0.1, MAX_WAIT_S),
        default=5.0,
        show_default=True,
        help="Seconds until an operation is given up as indeterminate.",
    ),
    click.option(
        "--recovery-timeout",
        type=Number(1, MAX_WAIT_S),
        default=30.0,
        show_default=True,
        help="Seconds that the system has to work again after healing.",
    ),
    click.option(
        "--final-reads/--no-final-reads",
        default=True,
        show_default=True,
        help="Read every key through every node in the end.",
    ),
    click.option(
        "--final-reads-timeout",
        type=Number(1, MAX_WAIT_S),
        default=60.0,
        show_default=True,
        help="Seconds that the final reads through one node may take.",
    ),
    click.option(
        "--lead-timeout",
        type=Number(1, MAX_WAIT_S),
        default=15.0,
        show_default=True,
        help="Seconds that a node has to become the leader for its final reads, where it must lead.",
    ),
    click.option(
        "--seed", type=Whole(0, MAX_SEED), default=None, help="Repeats operations and faults.  [default: a fresh one]"
    ),
)


def make_load(options: Mapping[str, Any], nodes: int) -> Load:
    """Makes the load that the options name, on so many nodes.

    Raises:
        InputError: It cannot be what the options say.
    """
    from harness.load import ClosedLoop, OpenLoop, parse_concurrency  # noqa: PLC0415 - `--help` needs no load

    if options["load_kind"] == "closed":
        return ClosedLoop(concurrency=parse_concurrency(options["concurrency"], nodes))
    most = options["max_in_flight"]
    return OpenLoop(rate_per_node=options["rate"], max_in_flight=most, processes_per_node=min(4, most))
