"""Cuts links between real nodes.

Every node gets a chain that drops the packets of the nodes in its grudge, and counts the packets of all others. So the counters
of the chain cover every pair and direction. The proof uses probes and counters. Probes must fail on every pair with a cut
direction, and succeed on every other pair. This detects tables that count but do not drop. The counters must have counted the
packets of the probes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.plain import capital
from harness.faults import Begun, Proof
from harness.slowness import slowed
from nemesis import packet_rules
from nemesis.errors import FaultError
from nemesis.grudges import talks, union
from nemesis.probes import Probe, probe_from
from nemesis.real.ruled import RulesOnNodes
from nemesis.topology import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.node import Node
    from harness.op import Value
    from nemesis.fault import Fault
    from nemesis.faults.partition import Partition
    from nemesis.grudges import Grudge

PROBE_TIMEOUT_S = 0.7
SECOND_PROBE_TIMEOUT_S = 2.5
HEALED_TIMEOUT_S = 10.0
TELLING_S = 4.0  # a system with a leader sends heartbeats or repeats packets in a shorter time


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measurements of a partition. A pair is (from, to).

    Attributes:
        probes: The TCP probe of each pair.
        dropped: The number of packets that the receiver dropped, by pair.
        passed: The number of packets that the receiver accepted, by pair.
        counted: The nodes with readable counters.
        blurred: The nodes where a silent probe proves nothing, because of another fault.
        also_cut: The links that other partitions cut at the same time.
    """

    probes: Mapping[tuple[str, str], Probe]
    dropped: Mapping[tuple[str, str], int]
    passed: Mapping[tuple[str, str], int]
    counted: frozenset[str]
    blurred: frozenset[str]
    also_cut: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A moment of the probes: how many packets the rules had dropped until then, and the time of the loop."""

    dropped: int
    at_s: float


class PartitionOnNodes(RulesOnNodes):
    """All partitions."""

    fault: Partition

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self._probed = Probed(dropped=0, at_s=0.0)
        self._probed_again: tuple[Probed, Probed] | None = None  # before and after the second probes

    async def begin(self) -> Begun:
        """Inserts the rules on all nodes in parallel.

        Raises:
            FaultError: The target is a role without ports, or the rules cannot be inserted on any node.
        """
        if self.role is not None and not self.field.system.ports(self.role):
            raise FaultError(
                f"fault {self.name}: the role {self.role} has no ports, so its packets cannot be identified"
            )
        await self.insert({name: self._rules(name) for name in self.fault.members})
        topology = await asyncio.to_thread(describe, self.fault.grudge)  # its first use imports a large library
        grudge: dict[str, Value] = {node: sorted(dropped) for node, dropped in self.fault.grudge.items()}
        details: dict[str, Value] = {"grudge": grudge, "topology": topology, "problems": dict(self.problems)}
        if self.role is not None:
            details["ports"] = list(self.field.system.ports(self.role))
        return Begun(targets=self.targets, details=details)

    def _rules(self, name: str) -> list[packet_rules.Rule]:
        """Returns the rules of a node: for all packets of the others, or only for those to and from the ports of a role."""
        others = [node for node in self.field.nodes if node.name in self.fault.members and node.name != name]
        dropped = [node for node in others if node.name in self.fault.grudge[name]]
        accepted = [node for node in others if node.name not in self.fault.grudge[name]]
        matches = [""]
        if self.role is not None:
            ports = self.field.system.ports(self.role)
            matches = [f"-p tcp -m tcp --{end} {port}" for port in ports for end in ("dport", "sport")]
        return [
            packet_rules.Rule(sources=sources, match=match, drop=drop)
            for sources, drop in ((dropped, True), (accepted, False))
            for match in matches
        ]

    async def prove(self) -> Proof:
        """Probes every pair, reads the counters, and compares both with the grudge."""
        proof, self._probed = await self._look()
        return proof

    async def again(self) -> Proof | None:
        """Probes every pair again. The counters before tell what the system sent across the cut since the first probes."""
        counted = await self.act(self.fault.members, self.read_counters, "reading packet counters")
        before = self._moment(self._by_pair(counted.done)[0])
        proof, after = await self._look()
        self._probed_again = before, after
        return proof

    def _moment(self, dropped: Mapping[tuple[str, str], int]) -> Probed:
        return Probed(dropped=sum(dropped.values()), at_s=asyncio.get_running_loop().time())

    async def _look(self) -> tuple[Proof, Probed]:
        """Returns the proof by probes and counters now, and the end of the probes."""
        probes = await self._probe_all(PROBE_TIMEOUT_S)
        also_cut = self.fault.also_cut()
        blurred = self.fault.blurred()
        whole = union(self.fault.members, [self.fault.grudge, also_cut])
        unanswered = {
            (a, b)
            for (a, b), probe in probes.items()
            if not probe.reached and b in talks(whole, a) and not {a, b} & blurred
        }
        if unanswered:  # TCP repeats a lost packet only after a second, so probe these again with a longer time-out
            probes |= await self._probe_all(SECOND_PROBE_TIMEOUT_S, unanswered)
        counted = await self.act(self.fault.members, self.read_counters, "reading packet counters")
        dropped, passed = self._by_pair(counted.done)
        evidence = Evidence(
            probes=probes,
            dropped=dropped,
            passed=passed,
            counted=frozenset(counted.done),
            blurred=blurred | self.fault.blurred(),
            also_cut=union(self.field.names, [also_cut, self.fault.also_cut()]),
        )
        return judge(self.fault.grudge, evidence, self.problems), self._moment(dropped)

    async def _probe_all(
        self, timeout_s: float, pairs: set[tuple[str, str]] | None = None
    ) -> dict[tuple[str, str], Probe]:
        port = self.fault.port()
        wanted = (
            pairs if pairs is not None else {(a, b) for a in self.fault.members for b in self.fault.members if a != b}
        )

        def ask(node: Node) -> list[Probe]:
            targets = [other for other in self.field.nodes if (node.name, other.name) in wanted]
            return probe_from(self.field.shell(node), targets, port=port, timeout_s=timeout_s)

        answers = await self.act(sorted({a for a, _ in wanted}), ask, "probing")
        return {(probe.source, probe.target): probe for probes in answers.done.values() for probe in probes}

    def _by_pair(
        self, counted: Mapping[str, list[packet_rules.Counter]]
    ) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]]:
        names = {packet_rules.normal(node): node.name for node in self.field.nodes}
        dropped: dict[tuple[str, str], int] = {}
        passed: dict[tuple[str, str], int] = {}
        for receiver, counters in counted.items():
            for counter in counters:
                side = dropped if counter.drop else passed
                pair = names.get(counter.source, counter.source), receiver
                side[pair] = side.get(pair, 0) + counter.packets
        return dropped, passed

    async def end(self) -> Proof | None:
        """Reads the counters a last time, removes the rules, and probes until every healed pair answers.

        Raises:
            FaultError: A node still has the rules, or a pair still does not answer.
        """
        last = await self.remove(self.fault.members)
        ended_s = asyncio.get_running_loop().time()
        await self._verify_healed()
        return self._final_proof(last, ended_s)

    async def _verify_healed(self) -> None:
        cut = {(a, b) for a in self.fault.members for b in self.fault.members if b not in talks(self.fault.grudge, a)}
        others = self.fault.also_cut()
        waiting = {(a, b) for a, b in cut if b in talks(others, a) and not {a, b} & self.fault.blurred()}

        async def answered() -> bool:
            probes = await self._probe_all(SECOND_PROBE_TIMEOUT_S, waiting)
            others = self.fault.also_cut()
            waiting.difference_update(
                pair
                for pair in tuple(waiting)
                if (pair in probes and probes[pair].reached)
                or pair[1] not in talks(others, pair[0])
                or set(pair) & self.fault.blurred()
            )
            return not waiting

        if waiting and not await self.field.until(answered, slowed(HEALED_TIMEOUT_S)):
            pairs = ", ".join(f"{a} to {b}" for a, b in sorted(waiting))
            raise FaultError(
                f"fault {self.name}: its rules are removed, but {slowed(HEALED_TIMEOUT_S):g} s later, {pairs} "
                "still does not answer"
            )

    def _final_proof(self, last: Mapping[str, list[packet_rules.Counter]], ended_s: float) -> Proof | None:
        dropped, _ = self._by_pair(last)
        by_probes, lasted_s = self._probed.dropped, ended_s - self._probed.at_s
        if self._probed_again is not None:
            before, after = self._probed_again
            by_probes += after.dropped - before.dropped
            lasted_s -= after.at_s - before.at_s
        if self.fault.proof is None:
            total = sum(dropped.values())
            return Proof(
                effective=total > 0,
                reason=f"{total} packets were dropped; the fault ended before probes could be made.",
                measured={"dropped": _pairs(dropped)},
            )
        return in_the_end(self.fault.proof, dropped, dropped_by_probes=by_probes, lasted_s=lasted_s)


def in_the_end(
    proof: Proof, dropped: Mapping[tuple[str, str], int], *, dropped_by_probes: int, lasted_s: float
) -> Proof:
    """Returns the proof over the whole duration, with the packets of the system that the rules dropped outside of the probes.

    The probes show that the links are cut, which is the fault. It is still effective if the system sent nothing across them,
    e.g. because the leader is the bridge between two halves. But then the proof says so.

    Args:
        proof: The proof by the probes.
        dropped: The number of packets that the rules dropped until the end, by pair.
        dropped_by_probes: The number until the end of the first probes, and during the second ones.
        lasted_s: The time of the others. A system need not send anything in a short time.
    """
    total = sum(dropped.values())
    later = total - dropped_by_probes
    unnoticed = later <= 0 and lasted_s >= TELLING_S
    text = f"In all {total} packets were dropped, {max(later, 0)} of them outside of the probes."
    if unnoticed:
        text += f" So the system sent nothing across the cut in {lasted_s:.0f} s."
    return Proof(
        effective=proof.effective,
        reason=f"{proof.reason} {text}",
        measured={**proof.measured, "dropped": _pairs(dropped), "dropped_total": total, "dropped_after_probes": later},
    )


def judge(grudge: Grudge, evidence: Evidence, problems: Mapping[str, str]) -> Proof:
    """Returns the proof: compares the measurements with the grudge.

    It considers only the probed pairs. A silent probe proves nothing about an uncut pair if another fault blurs its packets, or
    if another partition cuts it. A connection always proves that a pair is not cut.
    """
    cut = {pair: probe for pair, probe in evidence.probes.items() if pair[1] not in talks(grudge, pair[0])}
    whole = {
        (a, b): probe
        for (a, b), probe in evidence.probes.items()
        if (a, b) not in cut and b in talks(evidence.also_cut, a) and not {a, b} & evidence.blurred
    }
    leaks = [pair for pair, probe in cut.items() if probe.reached]
    closed = [pair for pair, probe in whole.items() if not probe.reached]
    unseen = _unseen(grudge, evidence)
    parts = []
    if leaks:
        parts.append(f"packets still passed from {_list(leaks)}")
    if closed:
        parts.append(f"there was no answer from {_list(closed)}, which should not be cut")
    if unseen:
        parts.append(f"the packet counters counted no packet from {_list(unseen)}")
    if not cut:
        parts.append("no cut pair could be probed")
    effective = not parts
    if effective:
        total = sum(evidence.dropped.values())
        parts.append(
            f"all {len(cut)} cut pairs were silent ({total} packets dropped), all {len(whole)} whole ones answered"
        )
    parts += [f"{node}: {text}" for node, text in problems.items()]
    return Proof(
        effective=effective,
        reason=f"{capital('; '.join(parts))}.",
        measured={
            "probes": {f"{a} to {b}": probe.answer.value for (a, b), probe in sorted(evidence.probes.items())},
            "dropped": _pairs(evidence.dropped),
            "passed": _pairs(evidence.passed),
        },
    )


def _unseen(grudge: Grudge, evidence: Evidence) -> list[tuple[str, str]]:
    """Returns the probed directions whose packets the receiver's rules should have counted, and did not."""
    unseen = []
    for a, b in evidence.probes:
        if {a, b} & evidence.blurred or a in evidence.also_cut[b] or b not in evidence.counted:
            continue
        counts = evidence.dropped if a in grudge[b] else evidence.passed
        if not counts.get((a, b)):
            unseen.append((a, b))
    return unseen


def _list(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{a} to {b}" for a, b in sorted(pairs))


def _pairs(counts: Mapping[tuple[str, str], int]) -> dict[str, Value]:
    return {f"{a} to {b}": packets for (a, b), packets in sorted(counts.items())}
