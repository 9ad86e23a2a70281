"""The options of the command line that set the load and the time limits of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from harness.console.parameters import MAX_RUN_S, MAX_SEED, MAX_WAIT_S, Choice, Seconds
from harness.declare import Topic, option

if TYPE_CHECKING:
    from harness.load import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The load of a run, its time limits, and its seed."""

    TOPIC: ClassVar = Topic.LOAD

    load_kind: str = option(
        "open",
        "open: requests arrive at a rate. closed: each worker waits for its answer before it sends the next request.",
        flag="--load",
        kind=Choice(["open", "closed"]),
    )
    rate: float = option(
        40.0, "Open loop: requests per second to each node.", low=0, high=10_000_000, above=True, main=True
    )
    max_in_flight: int = option(
        100, "Open loop: the maximum number of operations in flight to each node.", low=1, high=100_000
    )
    concurrency: str = option(
        "2n", "Closed loop: the number of workers, e.g. 10, or 2n for two for each node.", main=True
    )
    time_limit: float = option(
        60.0,
        "The duration of the workload in seconds, or with units, e.g. 90s, 5m or 1h30m.",
        kind=Seconds(1, MAX_RUN_S),
        main=True,
    )
    operation_timeout: float = option(
        5.0,
        "The time limit in seconds for one operation; after it, the result is indeterminate (info).",
        kind=Seconds(0.1, MAX_WAIT_S),
    )
    recovery_timeout: float = option(
        30.0,
        "The time limit in seconds for the system to recover after all faults are healed.",
        kind=Seconds(1, MAX_WAIT_S),
        topic=Topic.END,
    )
    final_reads: bool = option(True, "At the end, read every key through every node.", topic=Topic.END)  # noqa: FBT003 - no keyword
    final_reads_timeout: float = option(
        60.0,
        "The time limit in seconds for the final reads through one node.",
        kind=Seconds(1, MAX_WAIT_S),
        topic=Topic.END,
    )
    lead_timeout: float = option(
        15.0,
        "The time limit in seconds for a node to become the leader, if its final reads need that.",
        kind=Seconds(1, MAX_WAIT_S),
        topic=Topic.END,
    )
    seed: int | None = option(
        None,
        "The seed; the same seed gives the same operations and faults.  [default: random]",
        low=0,
        high=MAX_SEED,
        main=True,
    )


def make_load(options: LoadOptions, nodes: int) -> Load:
    """Makes the load that the options name, for a number of nodes.

    Raises:
        InputError: The options are not valid.
    """
    from harness.load import ClosedLoop, OpenLoop, parse_concurrency  # noqa: PLC0415 - `--help` needs no load

    if options.load_kind == "closed":
        return ClosedLoop(concurrency=parse_concurrency(options.concurrency, nodes))
    return OpenLoop(
        rate_per_node=options.rate,
        max_in_flight=options.max_in_flight,
        processes_per_node=min(4, options.max_in_flight),
    )
