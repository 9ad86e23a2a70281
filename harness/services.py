"""What the services of a system say together: their statuses on a node, and their nodes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.blame import without_exit
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.node import Node
    from harness.service import NodeStatus
    from harness.system import System


async def statuses_of(system: System, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
    """Asks the processes of all services on a node; the statuses have the role of their process if there are several services.

    Processes that do not answer in time are left out.
    """
    services = system.services()
    if len(services) == 1:
        return await without_exit(services[0].statuses(node, timeout_s))
    here = [service for service in services if node in service.nodes]
    statuses = await asyncio.gather(*(without_exit(service.statuses(node, timeout_s)) for service in here))
    return [
        replace(status, process=service.role) for service, some in zip(here, statuses, strict=True) for status in some
    ]


def nodes_by_role(system: System) -> dict[str, tuple[str, ...]]:
    """Returns the names of the nodes of each service, in the order of the services.

    Raises:
        InputError: Two services have one role, or not exactly one service serves clients.
    """
    services = system.services()
    by_role = {service.role: tuple(node.name for node in service.nodes) for service in services}
    if len(by_role) < len(services):
        raise InputError(f"two services of {system.name} have the same role; their roles are: {', '.join(by_role)}")
    fronts = [service.role for service in services if service.serves_clients]
    if len(fronts) != 1:
        raise InputError(
            f"expected one service of {system.name} for clients, not {' and '.join(fronts) or 'none'}; set "
            "serves_clients = False in each other one; see docs/guide/new-system.md"
        )
    return by_role
