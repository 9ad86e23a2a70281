"""The wait for recovery after healing.

A system has recovered if operations of clients succeed, at the quorum that it promises (`harness.served`). What the system
says about itself does not decide: it may say that it serves and refuse every request, and a cluster of five serves although two
nodes refuse their damaged files. Nodes that stay out are named, as far as the system names them. They count only if the system
promises that every node returns (`Service.every_node_returns`), and not for a node whose data a fault damaged.

The wait is bounded and does not abort a run. It is a finding if a system works again only after a restart of its nodes, or not
at all. `Recovery` records this, and a part of the verdict judges it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from harness import readiness
from harness.cluster import on_all
from harness.errors import LabrysError, NotServing, headline, sentence
from harness.slowness import slowed
from harness.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Mapping, Sequence

    from harness.clock import Clock
    from harness.node import Node
    from harness.served import Served
    from harness.service import Service
    from harness.system import System

REASON_S: Final = 1.0  # for what a system says about itself when its clients are not served
REST_S: Final = 5.0  # for the nodes that are left, when others stay out


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """The recovery of the system after healing.

    Attributes:
        seconds: The time from the last healing until clients were served, or until the end of the last wait.
        restarted: Whether all nodes were restarted, because the system did not work at the end of the first wait.
        first_error: The error at the end of the first wait; None if the system worked.
        error: The error at the end of the last wait; None if the system worked.
        quorum: At how many nodes clients had to be answered.
        nodes: The number of nodes with clients.
        from_s: The start of the first wait on the run's clock; None if it was not measured.
        restarted_s: The time of the restart on the run's clock; None if there was none.
        healed: Whether a fault had been healed.
        worked: Whether a client ever got an answer before the wait.
        asked: Whether operations of clients could be sent after healing. If not, only the nodes say that the system works.
        served: The nodes whose clients were answered.
        out: Each node that stays out, with the reason as a clause about the node.
        unready: What the system lacks by its own words, although it serves clients; None if it lacks nothing.
    """

    seconds: float
    restarted: bool
    first_error: str | None
    error: str | None
    quorum: int
    nodes: int
    from_s: float | None = None
    restarted_s: float | None = None
    healed: bool = True
    worked: bool = True
    asked: bool = True
    served: Sequence[str] = ()
    out: Mapping[str, str] = field(default_factory=dict, hash=False)
    unready: str | None = None


class Clients(Protocol):
    """The clients of a run after healing."""

    @property
    def healed_s(self) -> float | None:
        """Returns when the last fault was healed, on the run's clock; None if there was no fault."""
        ...

    @property
    def worked(self) -> bool:
        """Returns whether a client got an answer during the workload."""
        ...

    def so_far(self) -> Served:
        """Returns what operations since the last healing show, as far as they are from the end of the workload."""
        ...

    def unasked(self) -> Served:
        """Returns that nothing is shown yet."""
        ...

    async def ask(self, timeout_s: float) -> Served:
        """Lets clients go on with the workload until they are served, or the time is over; returns what this shows."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Standing:
    """What the services say about their nodes.

    Attributes:
        out: Each node that stays out, with the reason.
        unready: Why a service does not serve, if its error names no nodes or too many; None if each serves without `out`.
        broken: The promise of a service that every node returns, with what breaks it; None if none is broken.
    """

    out: Mapping[str, str]
    unready: str | None
    broken: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """One wait.

    Attributes:
        served: What the operations of clients show.
        standing: What the services say about their nodes.
        error: Why the system does not work, with the circumstances of each node; None if it works.
    """

    served: Served
    standing: _Standing
    error: str | None


async def recover(
    system: System,
    nodes: Sequence[Node],
    *,
    clients: Clients,
    timeout_s: float,
    clock: Clock,
    damaged: Collection[str] = (),
) -> Recovery:
    """Waits until clients are served. After the time limit, restarts all nodes and waits once more.

    Args:
        system: The system.
        nodes: All nodes.
        clients: The clients of the run.
        timeout_s: The time limit in seconds of each wait: of clients, and of nodes that are not back yet.
        clock: The run's clock.
        damaged: The names of nodes whose data a fault damaged for good.
    """
    start_s = clock.now_s()
    attempt = await _attempt(system, nodes, clients.so_far(), clients=clients, timeout_s=timeout_s, damaged=damaged)
    first_error, restarted_s = attempt.error, None
    if first_error is not None and clients.worked:  # what never worked is no finding of the faults
        restarted_s = clock.now_s()

        async def restart() -> None:
            await readiness.explained(system, nodes, asyncio.to_thread(on_all, nodes, system.kill))
            await readiness.bring_up(system, timeout_s, first=False)

        stuck = await _error(restart())
        attempt = await _attempt(
            system, nodes, clients.unasked(), clients=clients, timeout_s=timeout_s, damaged=damaged
        )
        if attempt.error is not None and stuck is not None:
            attempt = replace(attempt, error=stuck)
    served, standing = attempt.served, attempt.standing
    # If nobody could be asked, or a node had to come back, the end of the wait counts, and else the answer that showed it.
    by_answers = served.met_ns is not None and attempt.error is None
    until_s = served.met_ns / NS_PER_S if served.met_ns is not None and by_answers else clock.now_s()
    from_s = start_s if clients.healed_s is None else clients.healed_s
    return Recovery(
        seconds=max(0.0, until_s - from_s),
        restarted=restarted_s is not None,
        first_error=first_error,
        error=attempt.error,
        from_s=start_s,
        restarted_s=restarted_s,
        healed=clients.healed_s is not None,
        worked=clients.worked,
        asked=served.asked > 0,
        served=tuple(name for name in served.nodes if name in served.answering),
        quorum=served.quorum,
        nodes=len(served.nodes),
        out=standing.out,
        unready=standing.unready,
    )


async def _attempt(
    system: System,
    nodes: Sequence[Node],
    served: Served,
    *,
    clients: Clients,
    timeout_s: float,
    damaged: Collection[str],
) -> _Attempt:
    """Waits until clients are served, and then until each node is back; returns what is not so.

    Args:
        system: The system.
        nodes: All nodes.
        served: What is shown so far.
        clients: The clients of the run.
        timeout_s: The time limit in seconds of each wait.
        damaged: The names of nodes whose data a fault damaged for good.
    """
    if served.met_ns is None:
        served = await clients.ask(timeout_s)
    decides = not served.asked  # the nodes say it themselves, if nobody could be asked
    limit_s = slowed(REASON_S) if served.asked and served.met_ns is None else timeout_s
    standing = await _standing(system, limit_s, damaged)
    if decides:
        error = standing.unready or standing.broken
    elif served.met_ns is None:
        own = f"; by its own words, {headline(standing.unready)}" if standing.unready else ""
        error = f"within {timeout_s:g} s, {served.missing()}{own}"
    else:
        error = standing.broken
    if error is not None:
        error += await readiness.circumstances(system, nodes)
    return _Attempt(served=served, standing=standing, error=error)


async def _standing(system: System, timeout_s: float, damaged: Collection[str]) -> _Standing:
    """Waits until each service serves without the nodes that stay out, with one time limit for all."""
    out: dict[str, str] = {}
    unready: list[str] = []
    broken: list[str] = []
    left = readiness.Left(timeout_s)
    for service in system.services():
        left_out = await _left_out(service, left)
        for name, reason in left_out.out.items():
            out[name] = f"{out[name]}; it also {reason}" if name in out else reason
        if left_out.unready is not None:
            unready.append(left_out.unready)
        if service.every_node_returns and left_out.first_error is not None and not left_out.out.keys() - set(damaged):
            broken += [] if left_out.unready is None else [left_out.unready]
        elif service.every_node_returns and left_out.first_error is not None:
            broken.append(left_out.first_error)
    return _Standing(out=out, unready="; ".join(unready) or None, broken="; ".join(broken) or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeftOut:
    """How a service serves without some of its nodes.

    Attributes:
        out: The nodes without which it serves, each with the reason.
        first_error: The error of the wait for all nodes; None if all serve.
        unready: Why it does not serve at its quorum either; None if it does.
    """

    out: Mapping[str, str] = field(default_factory=dict)
    first_error: str | None = None
    unready: str | None = None


async def _left_out(service: Service, left: readiness.Left) -> _LeftOut:
    """Waits for all nodes of a service, and then for those that its errors do not name, down to its quorum."""
    out: dict[str, str] = {}
    first_error: str | None = None
    while True:
        rest = [node for node in service.nodes if node.name not in out]
        limit_s = left.seconds() if first_error is None else max(left.seconds(), slowed(REST_S))
        try:
            await readiness.served(service, rest, limit_s)
        except (LabrysError, OSError) as error:
            first_error = first_error or sentence(error)
            named = error.lacking if isinstance(error, NotServing) else {}
            new = {node.name: named[node.name] for node in rest if node.name in named}
            if not new or len(rest) - len(new) < service.quorum():
                return _LeftOut(first_error=first_error, unready=sentence(error))
            out |= new
        else:
            return _LeftOut(out=out, first_error=first_error)


async def _error(attempt: Awaitable[None]) -> str | None:
    try:
        await attempt
    except LabrysError as error:
        return str(error)
    return None
