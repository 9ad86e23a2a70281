"""Waits until the nodes of a system serve together, for systems whose nodes report their status over the network.

The wait ends early if a process is gone, because it cannot succeed then. The error names the node.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from harness.cluster import on_nodes
from harness.errors import NotServing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from harness.node import Node
    from harness.service import Service

POLL_S = 0.05
ALIVE_CHECK_S = 2.0  # the interval of the SSH checks whether a silent node still has its process


async def wait_until_complete(
    service: Service,
    nodes: Sequence[Node],
    timeout_s: float,
    examine: Callable[[Sequence[Node]], Awaitable[tuple[Mapping[str, str], Sequence[Node]]]],
    *,
    system_name: str,
) -> None:
    """Waits until no node lacks anything.

    Args:
        service: The service.
        nodes: The nodes.
        timeout_s: The time limit in seconds.
        examine: Returns what each node lacks, and the nodes that do not answer.
        system_name: The system's name in the message.

    Raises:
        NotServing: A node lacks something at the deadline, or a process is gone.
    """
    missing = await _wait(service, nodes, timeout_s, examine, system_name)
    if missing:
        reasons = "; ".join(f"{name} {reason}" for name, reason in missing.items())
        raise NotServing(f"expected {system_name} to serve within {timeout_s:g} s, but {reasons}", missing)


async def _wait(
    service: Service,
    nodes: Sequence[Node],
    timeout_s: float,
    examine: Callable[[Sequence[Node]], Awaitable[tuple[Mapping[str, str], Sequence[Node]]]],
    system_name: str,
) -> Mapping[str, str]:
    """Waits until the nodes serve. Returns what each node lacks at the deadline, or when a process is gone; else empty."""
    now = asyncio.get_running_loop().time
    start_s = now()
    check_alive_s = start_s + ALIVE_CHECK_S
    while True:
        missing, silent = await examine(nodes)
        now_s = now()
        if not missing or now_s > start_s + timeout_s:
            return missing
        if now_s > check_alive_s:
            states = await asyncio.to_thread(
                on_nodes, silent, lambda node: service.system.process_state(node, service.role)
            )
            gone = [name for name, state in states.items() if state is None]  # an exception means that SSH failed
            if gone:
                return dict.fromkeys(gone, f"runs no process of {system_name} any more")
            check_alive_s = now() + ALIVE_CHECK_S
        await asyncio.sleep(POLL_S)
