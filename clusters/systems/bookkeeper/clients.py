"""The client processes, which Labrys' clients use, and what they say of the logs that they write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import NoAnswer, NotDone, NotSent, RefusedByCode
from clusters.kit.confirmed import Confirmed
from clusters.kit.exchange import asked_once
from clusters.kit.waiting import wait_until_complete
from clusters.systems.bookkeeper.daemons import PLACEMENT, config_of, daemon
from clusters.systems.bookkeeper.log_client import ONLY_LOG
from clusters.systems.bookkeeper.outcomes import name_of
from clusters.systems.bookkeeper.process import PORT, Process
from harness.leaders import LEADER
from harness.service import NodeStatus, Service
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clusters.systems.bookkeeper.system import BookKeeperSystem
    from harness.daemon import Daemon
    from harness.node import Node

CLIENT: Final = "client"
CLIENT_CLASS: Final = "io.labrys.bookkeeper.Main"
TRIED_S: Final = 8.0
MOST_LOGS: Final = 100
MOST_CHARACTERS: Final = 100


class Clients(Service):
    """The client processes, which Labrys' clients use."""

    role = CLIENT

    def __init__(self, system: BookKeeperSystem, nodes: Sequence[Node]) -> None:
        super().__init__(system, nodes)
        self._bookkeeper = system
        self.confirmed = Confirmed()

    def daemon(self, node: Node) -> Daemon:
        """Returns the client process of a node."""
        options = self._bookkeeper.options
        settings = {
            **self._bookkeeper.shared(),
            "ensemblePlacementPolicy": PLACEMENT,
            "delayEnsembleChange": options.delay_ensemble_change,
            "labrysDigest": options.digest.upper(),
        }
        return daemon(
            self.system,
            CLIENT,
            [CLIENT_CLASS, node.address, str(PORT), self._bookkeeper.zookeeper_addresses(), config_of(CLIENT)],
            ports=(PORT,),
            settings=settings,
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Waits until each process has written an entry to a ledger of its own, and has read it."""
        await wait_until_complete(self, nodes, timeout_s, self._examine, system_name="BookKeeper's clients")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a status for each log that the process writes (`leader`) or recovers (`candidate`), as far as it knows.

        A log with a name is a group. A process with no log but these is also a `client`. The term of a log is the place of
        its last ledger in the list. A writer does not know that another process fenced its ledger until it appends again.
        """
        before = self.confirmed.known(node.name)
        status = await asked_once(Process(node), lambda process: process.ask("status"), timeout_s)
        if status is None:
            return ()
        statuses = [*_writes(node.name, status), *_recovers(node.name, status)]
        self.confirmed.note(node.name, before, statuses)
        if all(status.group is not None for status in statuses):
            statuses.insert(0, NodeStatus(node=node.name, role="client"))
        return statuses

    async def _examine(self, nodes: Sequence[Node]) -> tuple[Mapping[str, str], Sequence[Node]]:
        troubles = await asyncio.gather(*map(self._trouble, nodes))
        missing = {node.name: trouble for node, trouble in zip(nodes, troubles, strict=True) if trouble}
        return missing, [node for node in nodes if node.name in missing]

    async def _trouble(self, node: Node) -> str:
        """Returns what hinders the process of a node; empty if it can use ledgers."""
        options, process = self._bookkeeper.options, Process(node)
        try:
            async with asyncio.timeout(slowed(TRIED_S)):
                ledger = await process.ask(
                    "create", ensemble=options.ensemble, write=options.write_quorum, ack=options.ack_quorum
                )
                entry = await process.ask("append", ledger=ledger, body="ready")
                last = await process.ask("close", ledger=ledger)
                bodies = await process.ask("read", ledger=ledger, first=0, last=0)
        except RefusedByCode as error:
            return f"cannot use a ledger: {name_of(error.code)}"
        except (NotSent, NoAnswer, NotDone) as error:
            return f"cannot use a ledger: {error}"
        except TimeoutError:
            return f"does not answer in {slowed(TRIED_S):g} s"
        finally:
            await process.close()
        return "" if (entry, last, bodies) == (0, 0, ["ready"]) else "does not read what it wrote"


def _writes(node: str, status: Any) -> Iterator[NodeStatus]:
    for entry in _listed(status, "writes"):
        match entry:
            case [str(log), int(ledger), int(term), int(confirmed), int(sent)]:
                yield NodeStatus(
                    node=node,
                    role=LEADER,
                    term=term,
                    leader=node,
                    committed_index=confirmed,
                    last_index=sent,
                    details={"ledger": ledger},
                    group=_group(log),
                )


def _recovers(node: str, status: Any) -> Iterator[NodeStatus]:
    writes = {entry[0] for entry in _listed(status, "writes") if isinstance(entry, list) and entry}
    for entry in _listed(status, "recovers"):
        match entry:
            case [str(log), int(ledger)] if log not in writes:
                yield NodeStatus(node=node, role="candidate", details={"ledger": ledger}, group=_group(log))


def _listed(answer: Any, name: str) -> list[Any]:
    listed = answer.get(name) if isinstance(answer, dict) else None
    return listed[:MOST_LOGS] if isinstance(listed, list) else []


def _group(log: str) -> str | None:
    return None if log == ONLY_LOG else log[:MOST_CHARACTERS]
