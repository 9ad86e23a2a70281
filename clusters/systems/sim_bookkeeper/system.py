"""The simulated BookKeeper as a system under test."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from clusters.kit.confirmed import Confirmed
from clusters.sim import asking
from clusters.sim.cluster import LOG_FILE
from clusters.sim.system import STATUS_TIMEOUT_S, SimSystem
from clusters.systems.sim_bookkeeper import ledger_client, messages, telling
from clusters.systems.sim_bookkeeper.bookie import FENCE_LINE, Bookie
from clusters.systems.sim_bookkeeper.bookie import ROLE as BOOKIE
from clusters.systems.sim_bookkeeper.client import SimBookkeeperClient, request_of
from clusters.systems.sim_bookkeeper.layout import Layout, first_meta
from clusters.systems.sim_bookkeeper.ledger_client import SimLedgerClient
from clusters.systems.sim_bookkeeper.metadata import ROLE as METADATA
from clusters.systems.sim_bookkeeper.metadata import MetadataStore
from clusters.systems.sim_bookkeeper.node import ROLE as CLIENT
from clusters.systems.sim_bookkeeper.node import ClientNode
from clusters.systems.sim_bookkeeper.options import LEAST_NODES, Protocol, SimBookkeeperOptions
from clusters.systems.sim_bookkeeper.outcomes import NOT_WRITER, outcome
from clusters.systems.sim_bookkeeper.promises import promises
from harness.console.documents import shown
from harness.errors import InputError
from harness.leaders import LEADER
from harness.op import ONLY_KEY
from harness.promise import Handling, OnDamage
from harness.service import NodeStatus, first_status
from harness.traits import LogLine, Tier
from harness.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.cluster import SimCluster
    from clusters.sim.host import Factory, Host, Process
    from clusters.systems.sim_bookkeeper.ledger_messages import LedgerRequest
    from harness.client import RoutedClient
    from harness.node import Node
    from harness.node_states import NodeState
    from harness.op import Invocation, Outcome, Value
    from harness.promise import Promise
    from harness.verdict import Part

LEDGER: Final = "ledger"


class SimBookkeeper(SimSystem):
    """Nodes of Labrys' own BookKeeper in the simulator: bookies, two client nodes, and a metadata store."""

    name = "sim-bookkeeper"
    summary = "The BookKeeper of Labrys for the simulator, with fences or terms, correct or with one planted bug."
    tier = Tier.BENCH
    Options = SimBookkeeperOptions
    options: SimBookkeeperOptions
    serves: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "log": "append adds an entry to the last ledger of the key, and returns its offset; the writer answers read",
            "ledger": "append adds an entry to the one ledger of the key; read and confirmed ask the bookies; inspect asks all "
            "bookies and the metadata store",
        }
    )
    on_damage = OnDamage(
        handling=Handling.REFUSES,
        sentence="A bookie verifies the checksums of its files. A damaged entry counts neither as there nor as absent.",
        source="Labrys, sim-bookkeeper, clusters/systems/sim_bookkeeper/README.md",
    )
    log_lines: ClassVar[Mapping[str, LogLine]] = MappingProxyType(
        {
            "writes": LogLine(
                path=LOG_FILE, pattern=r" writes .* in term ", meaning="a client node becomes the writer"
            ),
            "stopped": LogLine(
                path=LOG_FILE, pattern=r" is no longer the writer ", meaning="a writer learns that it was fenced"
            ),
            "start": LogLine(path=LOG_FILE, pattern=r" start [0-9]+$", meaning="a process starts"),
        }
    )
    # A process ends by a failed write or sync. It writes all files again when it starts.
    lacks: ClassVar[Mapping[str, str]] = MappingProxyType({})
    refusals = (NOT_WRITER,)
    usual_nodes = LEAST_NODES
    every_node_returns = "A simulated bookie that starts again serves the entries on its disk."

    def __init__(self, cluster: SimCluster, options: SimBookkeeperOptions, workload: str) -> None:
        super().__init__(cluster, options, workload)
        self._layout = Layout.of([node.name for node in cluster.nodes], options.ack_quorum, options.ensemble)
        self._writers: dict[str, str] = {}
        self._confirmed = Confirmed()
        if workload == LEDGER and options.protocol is not Protocol.LEDGERS:
            raise InputError(
                f"sim-bookkeeper has the workload ledger with --protocol ledgers only, found {options.protocol}: with the "
                "others, a ledger never ends"
            )

    @classmethod
    def promises(cls, options: SimBookkeeperOptions) -> Mapping[str, Promise]:  # noqa: ARG003 - they change no promise
        """Returns what it promises to each workload."""
        return promises()

    def factory(self, node: Node) -> Factory:
        """Returns the function that makes the process of a node."""
        options, layout = self.options, self._layout
        first = first_meta(layout, options.protocol)

        def make(host: Host) -> Process:
            if node.name in layout.bookies:
                return Bookie(host, options, tells_fences=self.workload == LEDGER)
            if node.name == layout.metadata:
                return MetadataStore(host, options, first)
            return ClientNode(host, options, layout, first)

        return make

    def client(self, process: int, node: Node, *, pinned: bool = False) -> RoutedClient:
        """Returns the client of a process. A pinned one stays at its own node, or at a client node that stands for it."""
        clients = self._layout.clients
        index = [other.name for other in self.cluster.nodes].index(node.name)
        own = node.name if node.name in clients else clients[index % len(clients)]
        if self.workload == LEDGER:
            return SimLedgerClient(
                connection=self.connect(process),
                node=node,
                home=own,
                layout=self._layout,
                options=self.options,
                writers=self._writers,
                fences=self._fences,
                final=pinned,
            )
        return SimBookkeeperClient(
            connection=self.connect(process),
            node=node,
            clients=clients,
            home=own if pinned else None,
            options=self.options,
        )

    def alike(self) -> Sequence[str]:
        """Returns the bookies, if all are in each ensemble, and reads prefer none of them."""
        every = self._layout.ensemble == self._layout.bookies
        return self._layout.bookies if every and self.options.read_all else ()

    def why_not_explored(self, *, one_clock: bool) -> str | None:  # noqa: ARG002
        """Returns None: no node relies on clocks."""
        return None

    def request_of(self, client: str, invocation: Invocation) -> messages.Append | messages.Query | LedgerRequest:  # noqa: ARG002
        """Returns the request of a client's only operation. An append to a log takes over, and a read does not."""
        request = (
            ledger_client.request_of(invocation)
            if self.workload == LEDGER
            else request_of(invocation, takes_over=invocation.f == "append")
        )
        if request is None:
            raise InputError(
                f"sim-bookkeeper has no {invocation.f} of {shown(json.dumps(invocation.value), quoted=False)}"
            )
        return request

    def outcome_of(self, invocation: Invocation, answer: Any) -> Outcome:
        """Returns the outcome of an operation from an answer, by the table of the client."""
        if self.workload == LEDGER:
            return ledger_client.outcome_of(invocation, answer)
        return outcome(answer, is_read=invocation.f == "read")

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Returns a node's status, and one for each ledger that it writes; none if it does not answer in time."""
        status = await self.ask_for(node, asking.AskStatus(), messages.Status, timeout_s)
        if status is None:
            return ()
        own_status = NodeStatus(
            node=node.name,
            role=status.role,
            term=status.term,
            leader=status.leader,
            committed_index=status.confirmed,
        )
        before = self._confirmed.known(node.name)
        ledgers = [
            NodeStatus(
                node=node.name,
                role=LEADER,
                term=1,
                leader=node.name,
                committed_index=confirmed,
                last_index=sent,
                details={"ledger": key},
                group=key,
            )
            for key, confirmed, sent in status.ledgers
        ]
        self._confirmed.note(node.name, before, ledgers)
        return (own_status, *ledgers)

    def own_parts(self) -> Sequence[Part]:
        """Returns the part about the last confirmed entries that writers of ledgers report."""
        return (self._confirmed.part(),) if self.workload == LEDGER else ()

    def _fences(self, key: str) -> list[list[Value]]:
        """Returns the first requests to fence a ledger in the logs of the bookies: bookie, milliseconds ago, client node."""
        fences: list[list[Value]] = []
        for bookie in self._layout.bookies:
            for line in self.world.machines[bookie].lines:
                time_s, _, text = line.partition(" ")
                if text.startswith(f"{FENCE_LINE} {key} from "):
                    ago_ms = self.world.now_ns // NS_PER_MS - round(float(time_s) * 1000)
                    fences.append([bookie, max(0, ago_ms), text.rpartition(" ")[2]])
                    break
        return fences

    def node_state(self, node: Node, key: str | None) -> NodeState:
        """Returns the state of a node: a bookie's entries, or a client node's part. An entry has its segment as the term."""
        basic = super().node_state(node, key)
        process, own = self.world.machines[node.name].process, ONLY_KEY if key is None else key
        match process:
            case Bookie():
                entries = tuple(process.held(own))
                # With term-ids, two entries of a bookie can have one offset, so a confirmed offset says nothing.
                committed = None if self.options.protocol is Protocol.TERM_IDS else process.confirmed(own)
                last = max((entry.index for entry in entries), default=None)
                told = telling.of_bookie(process.promise(own))
                state = replace(basic, role=BOOKIE, term=process.term(own), last=last, value=told or None)
                return replace(state, committed=committed, entries=entries)
            case ClientNode() if own in process.ledgers:
                ledger = process.ledgers[own]
                role = CLIENT if ledger.writer is None else LEADER
                state = replace(basic, role=role, value=telling.of_log(ledger))
                return (
                    state
                    if ledger.writer is None
                    else replace(state, last=ledger.writer.next - 1, committed=ledger.writer.lac)
                )
            case ClientNode() if own in process.logs:
                log = process.logs[own]
                writer = log.writer
                state = replace(basic, role=process.role(), term=log.meta.term, value=telling.of_log(log))
                return (
                    state
                    if writer is None
                    else replace(state, term=writer.term, last=writer.next - 1, committed=writer.lac)
                )
            case MetadataStore():
                meta = process.meta(own)
                term = None if self.workload == LEDGER else meta.term
                return replace(basic, role=METADATA, term=term, value=telling.of_meta(meta))
        return basic

    async def lacking(self, nodes: Sequence[Node]) -> Mapping[str, str]:
        """Returns which nodes do not answer. There need not be a writer, since the next client may take over."""
        statuses = await asyncio.gather(*(first_status(self, node, STATUS_TIMEOUT_S) for node in nodes))
        silent = [node.name for node, status in zip(nodes, statuses, strict=True) if status is None]
        return dict.fromkeys(silent, "does not answer")
