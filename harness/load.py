"""The load on the system: a closed loop, whose workers wait for answers, or an open loop at a fixed rate.

In a closed loop, each worker waits for its answer before the next request, so a stuck node gets almost no requests. In an open
loop, requests arrive at each node as a Poisson process, independent of earlier requests. So a stuck node keeps getting
requests, and the latency from the scheduled time includes the waiting.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

from harness.console.documents import shown
from harness.errors import InputError

MAX_WORKERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoop:
    """A fixed number of workers, each with one operation at a time. Worker `k` is at node `k mod n`.

    Attributes:
        concurrency: The number of workers.
    """

    concurrency: int

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise InputError(f"a closed loop needs at least one worker, not {self.concurrency}")

    def streams(self, nodes: int) -> int:  # noqa: ARG002 - the other load needs it
        """Returns the number of op streams that ask the generator: one for each worker."""
        return self.concurrency


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoop:
    """Poisson arrivals at each node, which do not wait for answers.

    Attributes:
        rate_per_node: Arrivals per second at each node, on average.
        max_in_flight: The maximum number of operations in flight at one node; further arrivals are counted as shed.
        processes_per_node: The number of processes of a node at the start. They take turns, and the pool grows if necessary.
    """

    rate_per_node: float
    max_in_flight: int = 100
    processes_per_node: int = 4

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate_per_node) and self.rate_per_node > 0):
            raise InputError(f"an open loop needs a rate above 0 per second and node, not {self.rate_per_node:g}")
        if not 1 <= self.processes_per_node <= self.max_in_flight:
            raise InputError(
                f"an open loop needs 1 <= processes per node <= max in flight, not {self.processes_per_node} and "
                f"{self.max_in_flight}"
            )

    def streams(self, nodes: int) -> int:
        """Returns the number of op streams that ask the generator: one for each node."""
        return nodes


Load: TypeAlias = ClosedLoop | OpenLoop


def parse_concurrency(text: str, nodes: int) -> int:
    """Reads a number of workers: `10`, or `2n` for twice the number of nodes.

    Raises:
        InputError: The text has another form, or the number is below one.
    """
    match = re.fullmatch(r"([0-9]{1,6})(n?)", text.strip())
    workers = int(match[1]) * (nodes if match[2] else 1) if match else 0
    if not 1 <= workers <= MAX_WORKERS:
        raise InputError(
            f"expected a concurrency of 1 to {MAX_WORKERS} workers, e.g. 10, or 2n for two for each node; found {shown(text)}"
        )
    return workers
