"""Waits until a system serves. If it does not, the error has what a person looks for first.

Below the reason of the system, the error names each node with the states of its processes, its own status and the end of its
logs. This holds for every system, since a system only tells whether it serves. Logs are foreign text: they are bounded, and
safe for a terminal.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.cluster import on_all, on_nodes
from harness.console.plain import one_line, plain
from harness.errors import InfrastructureError, InputError, LabrysError, sentence
from harness.service import described
from harness.services import statuses_of
from harness.slowness import slowed
from harness.tasks import answers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from harness.node import Node
    from harness.service import Service
    from harness.system import System

LINES: Final = 12
MAX_LINE: Final = 300
MAX_LOG_BYTES: Final = 16_384
MAX_LOGS: Final = 3
MAX_REASON: Final = 300
STATUS_TIMEOUT_S: Final = 2.0
TAIL_TIMEOUT_S: Final = 10.0
STATES: Final = {"T": "is stopped", "Z": "is dead"}


async def until_ready(system: System, timeout_s: float) -> None:
    """Waits until all services serve, one after the other, with one time limit for all.

    Raises:
        InfrastructureError: They do not; the message has the circumstances of each node.
    """
    left = Left(timeout_s)
    for service in system.services():
        await explained(system, service.nodes, served(service, service.nodes, left.seconds()))


async def bring_up(
    system: System,
    timeout_s: float,
    *,
    first: bool,
    wait: Callable[[Coroutine[Any, Any, None]], Awaitable[None]] | None = None,
) -> None:
    """Starts the services in their order, each after the one before it serves, with one time limit for all.

    Args:
        system: The system, with no process that runs.
        timeout_s: The time limit in seconds for all waits together.
        first: Whether this is the first start in the run. Then each service is initialised before it, and completed after it.
        wait: Awaits a coroutine that may be cancelled. A run passes a function that returns early after an interruption.

    Raises:
        InfrastructureError: A service did not start or does not serve; the message has the circumstances of each node.
    """
    left = Left(timeout_s)
    for service in system.services():

        async def serve(service: Service = service) -> None:
            await served(service, service.nodes, left.seconds())
            if first:
                await service.complete(left.seconds())

        def start(node: Node, service: Service = service) -> None:
            if first:
                service.initialise(node)
            system.start(node, service.role)

        await explained(system, service.nodes, asyncio.to_thread(on_all, service.nodes, start))
        attempt = explained(system, service.nodes, serve())
        await (attempt if wait is None else wait(attempt))


class Left:
    """The rest of a time limit that several waits share. The first wait gets the whole limit."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._end_s: float | None = None

    def seconds(self) -> float:
        """Returns the seconds that are left, at least 0."""
        now_s = asyncio.get_running_loop().time()
        if self._end_s is None:
            self._end_s = now_s + self._timeout_s
            return self._timeout_s
        return max(0.0, round(self._end_s - now_s, 1))


async def served(service: Service, nodes: Sequence[Node], limit_s: float) -> None:
    """Waits until a service serves at some nodes. A method that does not end at its time limit is ended soon after it.

    Raises:
        InfrastructureError: It did not end by itself.
    """
    await answers(f"until_ready of the system {service.system.name}", [service.until_ready(nodes, limit_s)], limit_s)


async def explained(system: System, nodes: Sequence[Node], attempt: Awaitable[object]) -> None:
    """Awaits an attempt to make the nodes serve, and adds their circumstances to its error."""
    try:
        await attempt
    except InputError:
        raise
    except LabrysError as error:
        # It stays the same error, with its notes and its exit code.
        error.args = (f"{sentence(error)}{await circumstances(system, nodes)}",)
        raise
    except OSError as error:
        raise InfrastructureError(f"{sentence(error)}{await circumstances(system, nodes)}") from error


async def circumstances(system: System, nodes: Sequence[Node]) -> str:
    """Returns a paragraph for each node: the states of its processes, its own status, and the end of its logs."""
    statuses = await asyncio.gather(*(_status(system, node) for node in nodes))
    processes = await asyncio.to_thread(on_nodes, nodes, lambda node: _processes(system, node))
    logs = await asyncio.to_thread(on_nodes, nodes, lambda node: _ends(system, node))
    text = ""
    for node, status in zip(nodes, statuses, strict=True):
        log = logs[node.name]
        text += f"\n--- {node.name}: {_said(processes[node.name])}; {status}"
        text += f"\n(its logs cannot be read: {_reason(log)})" if isinstance(log, Exception) else log
    return text


async def _status(system: System, node: Node) -> str:
    try:
        limit_s = slowed(STATUS_TIMEOUT_S)
        [statuses] = await answers(
            f"statuses of the system {system.name}", [statuses_of(system, node, limit_s)], limit_s
        )
    except Exception as error:  # noqa: BLE001 - a status that fails must not hide why the system does not serve
        return f"its status cannot be read: {_reason(error)}"
    return " and ".join(map(described, statuses)) if statuses else "it reports no status"


def _processes(system: System, node: Node) -> str:
    states = system.process_states(node)
    if not states:
        return "it has no processes"
    return ", ".join(
        f"process {one_line(role)} {'does not run' if state is None else STATES.get(state[1], 'runs')}"
        for role, state in states.items()
    )


def _said(processes: str | Exception) -> str:
    return f"its processes cannot be seen: {_reason(processes)}" if isinstance(processes, Exception) else processes


def _reason(error: BaseException) -> str:
    return one_line(sentence(error))[:MAX_REASON]


def _ends(system: System, node: Node) -> str:
    """Returns the ends of the first logs of a node that are not empty."""
    by_path: dict[str, str] = {}
    for path in system.log_files(node):
        if len(by_path) < MAX_LOGS and (lines := _end(system, node, path)):
            by_path[path] = "\n".join(plain(line)[:MAX_LINE] for line in lines)
    if not by_path:
        return "\n(it has no log)"
    return "".join(f"\nlast lines of {one_line(path)} on {node.name}:\n{lines}" for path, lines in by_path.items())


def _end(system: System, node: Node, path: str) -> list[str]:
    remote = system.cluster.remote(node)
    if not system.simulated:
        quoted = shlex.quote(path)
        script = f"[ ! -f {quoted} ] || tail -c {MAX_LOG_BYTES} {quoted} | tail -n {LINES}"
        return remote.run(script, check=False, timeout_s=TAIL_TIMEOUT_S).stdout.splitlines()[-LINES:]
    with tempfile.TemporaryDirectory(prefix="labrys-") as folder:  # a simulated node runs no command
        local = Path(folder, "log")
        try:
            remote.get(path, local)
        except FileNotFoundError:
            return []
        with local.open(encoding="utf-8", errors="replace") as lines:
            return [line.rstrip("\n") for line in deque(lines, LINES)]
