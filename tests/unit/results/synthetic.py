"""A synthetic but realistic run: a leader-based register on five nodes, an open load, faults, elections, errors.

Operations take effect at one instant inside their interval, so the history is linearizable unless a stale read is planted.
`stored` fills a store with such runs.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from harness.builds import Provenance
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import Operation, OpType
from harness.parts import client_errors
from harness.phases import Phase
from harness.randomness import stream
from harness.reached import faults_effective, progress
from harness.targets import ByLeader, Lead, Named
from harness.units import NS_PER_S as S
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from results.record.record import RunRecord, TestInfo

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

NODES = ("n1", "n2", "n3", "n4", "n5")
STARTED = datetime(2026, 7, 29, 10, 11, 12, 345_000, tzinfo=UTC)
TIMEOUT_S = 2.0
ELECTION_S = 1.7


@dataclass(slots=True)
class World:
    """The state of the synthetic system."""

    draw: random.Random
    faults: Sequence[FaultRecord]
    registers: dict[str, int | None] = field(default_factory=dict)
    overwritten: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    changes: list[tuple[float, str, int]] = field(default_factory=lambda: [(0.0, "n3", 1)])

    def leader(self, at_s: float) -> tuple[str, int] | None:
        """Returns the leader and its term; None during an election."""
        since_s, name, term = next(change for change in reversed(self.changes) if change[0] <= at_s)
        return (name, term) if at_s >= since_s + (ELECTION_S if term > 1 else 0) else None

    def cut(self, node: str, at_s: float) -> FaultRecord | None:
        """Returns the fault that keeps `node` from the majority."""
        for fault in self.faults:
            if fault.start_ns <= at_s * S < fault.end_ns and node in fault.targets:
                return fault
        return None


def fault_plan(duration_s: float) -> list[FaultRecord]:
    """Returns partitions, a kill, a pause, and one packet loss that had no effect, spread over the run."""
    kinds = ("partition-random-halves", "kill", "pause", "partition-leader", "packet-loss")
    targets = (("n3", "n5"), ("n1",), ("n4",), ("n1",), ("n2", "n4"))
    length_s, every_s = duration_s / 12, duration_s / (len(kinds) + 0.7)
    return [
        _fault(index, kind, hit, 0.6 * every_s + index * every_s, length_s)
        for index, (kind, hit) in enumerate(zip(kinds, targets, strict=True))
    ]


def _fault(index: int, kind: str, hit: tuple[str, ...], start_s: float, length_s: float) -> FaultRecord:
    others = [node for node in NODES if node not in hit]
    details: dict[str, Any] = {}
    proof = Proof(
        effective=True, reason=f"{' and '.join(hit)}: the process was gone within 0.1 s; its new pid is another."
    )
    if kind.startswith("partition"):
        details["grudge"] = {node: list(others) if node in hit else list(hit) for node in NODES}
        dropped = 312 * len(hit) + 7 * index
        proof = Proof(
            effective=True,
            reason=f"{dropped} packets were dropped; all {2 * len(hit) * len(others)} forbidden probes failed, no other did.",
            measured={"dropped": dropped},
        )
    elif kind == "pause":
        proof = Proof(effective=True, reason="n4: state T for 4.8 s.", measured={"n4": "T"})
    elif kind == "packet-loss":
        proof = Proof(
            effective=False, reason="0 of 200 probes were lost where 80 % were expected.", measured={"lost": 0}
        )
    return FaultRecord(
        planned=PlannedFault(
            id=index,
            kind=kind,
            target=ByLeader(Lead.LEADER) if kind == "partition-leader" else Named(hit),
            start_s=round(start_s, 3),
            end_s=round(start_s + length_s, 3),
        ),
        targets=hit,
        start_ns=int((start_s + 0.04) * S),
        end_ns=int((start_s + length_s + 0.21) * S),
        proof=proof,
        details=details,
        error="iptables: statistic match is not available on n2" if kind == "packet-loss" else None,
    )


def simulate(
    *, seed: int, operations: int, duration_s: float, stale: bool, pool: int
) -> tuple[list[Operation], list[FaultRecord], World]:
    """Simulates the run and returns its operations in the order of their invokes."""
    draw = stream(seed, "synthetic")
    faults = fault_plan(duration_s)
    world = World(draw=draw, faults=faults)
    for fault in faults:
        leads = world.leader(fault.start_ns / S)
        if leads is not None and leads[0] in fault.targets and fault.planned.kind != "packet-loss":
            new = draw.choice([node for node in NODES if node not in fault.targets])
            world.changes.append((fault.start_ns / S + 0.3, new, leads[1] + 1))
    rate = operations / duration_s / len(NODES)
    arrivals = sorted(
        (at_s, node)
        for node in NODES
        for at_s in _arrivals(stream(seed, f"load/{node}"), rate, duration_s)
    )  # fmt: skip
    free: dict[str, list[int]] = {node: list(range(i * pool, (i + 1) * pool)) for i, node in enumerate(NODES)}
    busy: list[tuple[float, str, int]] = []
    done: list[tuple[float, Operation, float]] = []
    counter, crashed = 0, len(NODES) * pool
    for at_s, node in arrivals:
        while busy and busy[0][0] <= at_s:
            _, owner, process = heapq.heappop(busy)
            heapq.heappush(free[owner], process)
        if not free[node]:
            continue
        process = heapq.heappop(free[node])
        counter += 1
        operation, apply_s = _operation(world, at_s, node, process, counter)
        end_s = (operation.end_ns or 0) / S
        if operation.type is OpType.INFO:
            crashed += 1
            heapq.heappush(busy, (end_s, node, crashed))
        else:
            heapq.heappush(busy, (end_s, node, process))
        done.append((apply_s, operation, at_s))
    final = [_applied(world, operation) for _, operation, _ in sorted(done, key=lambda entry: entry[0])]
    if stale:
        final = _plant_stale_read(final, faults)
    kept = faults if stale else faults[:-1]  # the fault without effect belongs to the invalid run
    nemesis = [
        (at_ns, -1, 2 * fault.planned.id + n)
        for fault in kept
        for n, at_ns in enumerate((fault.start_ns, fault.end_ns))
    ]
    events = sorted(
        nemesis
        + [(op.start_ns, 0, i) for i, op in enumerate(final)]
        + [(op.end_ns or 0, 1, i) for i, op in enumerate(final)]
    )
    position = {(kind, i): index for index, (_, kind, i) in enumerate(events)}
    indexed = [replace(op, invoke_index=position[0, i], complete_index=position[1, i]) for i, op in enumerate(final)]
    return sorted(indexed, key=lambda op: op.invoke_index), kept, world


def _arrivals(draw: random.Random, rate: float, duration_s: float) -> list[float]:
    times: list[float] = []
    at_s = 0.0
    while True:
        at_s += draw.expovariate(rate)
        if at_s >= duration_s:
            return times
        times.append(at_s)


def _operation(world: World, at_s: float, node: str, process: int, counter: int) -> tuple[Operation, float]:
    draw = world.draw
    f = draw.choices(("read", "write", "cas"), (5, 3, 2))[0]
    key = f"k{draw.choice((0, 0, 0, 1, 1, 2, counter // 400 + 3))}"
    value = {"read": None, "write": counter, "cas": [-1, counter]}[f]
    start_s = at_s + draw.expovariate(4000)
    latency_s = math.exp(draw.gauss(-5.6, 0.45))
    kind, error = OpType.OK, None
    fault, leads = world.cut(node, start_s), world.leader(start_s)
    if fault is not None and fault.planned.kind != "packet-loss":
        if draw.random() < 0.6:
            kind, error, latency_s = OpType.INFO, "timeout: no answer within 2 s", TIMEOUT_S + draw.random() * 0.01
        else:
            kind, error = OpType.FAIL, "no-leader"
    elif leads is None:
        kind, error = (
            (OpType.FAIL, "not-leader: the hint is unreachable") if draw.random() < 0.8 else (OpType.INFO, "timeout")
        )
        latency_s = TIMEOUT_S if kind is OpType.INFO else latency_s
    operation = Operation(
        process=process, f=f, value=value, result=None, type=kind, start_ns=int(start_s * S),
        end_ns=int((start_s + latency_s) * S), invoke_index=0, complete_index=0, key=key, node=node, error=error,
        scheduled_ns=int(at_s * S),
    )  # fmt: skip
    return operation, start_s + latency_s * draw.uniform(0.2, 0.9)


def _applied(world: World, operation: Operation) -> Operation:
    key = operation.key or ""
    now = world.registers.get(key)
    if operation.type is OpType.FAIL or (operation.type is OpType.INFO and world.draw.random() < 0.7):
        return operation
    done = operation.type is OpType.OK
    if operation.f == "read":
        return replace(operation, result=now) if done else operation
    if operation.f == "write":
        world.registers[key] = operation.value
        return replace(operation, result=operation.value) if done else operation
    matches = world.draw.random() < 0.8
    pair = [now if matches else -2, operation.value[1]]
    if not matches:
        return replace(
            operation,
            value=pair,
            type=OpType.FAIL if done else operation.type,
            error="mismatch" if done else operation.error,
        )
    world.registers[key] = pair[1]
    return replace(operation, value=pair, result=pair if done else None)


def _plant_stale_read(operations: list[Operation], faults: Sequence[FaultRecord]) -> list[Operation]:
    """Makes n3, which the first fault cuts off, answer a read with the value before an acknowledged write."""
    since_ns = faults[0].start_ns + 2 * S
    writes = [op for op in operations if op.f == "write" and op.key == "k0" and op.type is OpType.OK]
    number = next(i for i, write in enumerate(writes) if write.start_ns > since_ns)
    source, last = writes[number - 1], writes[number]
    for later, read in enumerate(operations):
        if (
            read.node == "n3"
            and read.f == "read"
            and read.key == "k0"
            and read.start_ns > (last.end_ns or 0) + 4_000_000
        ):
            operations[later] = replace(
                read, type=OpType.OK, result=source.value, error=None, end_ns=read.start_ns + 3_141_592
            )
            return operations
    raise AssertionError("the run is too short for a stale read")


def counterexample(operations: Sequence[Operation]) -> dict[str, Any]:
    """Returns the planted stale read and the two writes that contradict it, in the checker's form."""
    values = {op.value: op for op in operations if op.f == "write" and op.key == "k0" and op.type is OpType.OK}
    last: Operation | None = None
    for op in sorted((op for op in operations if op.key == "k0"), key=lambda op: op.end_ns or 0):
        if op.f == "write" and op.type is OpType.OK:
            last = op
        if op.f == "read" and op.type is OpType.OK and last is not None and op.result in values:
            source = values[op.result]
            if source is not last and (source.end_ns or 0) < last.start_ns and (last.end_ns or 0) < op.start_ns:
                text = (
                    f"Process {op.process} read {op.result} from k0 on {op.node}, from {op.start_ns / S:.6f} s to "
                    f"{(op.end_ns or 0) / S:.6f} s, but process {last.process}'s write of {last.value} had completed at "
                    f"{(last.end_ns or 0) / S:.6f} s, and the write of {op.result} before that: the read is stale."
                )
                return {"key": "k0", "explanation": text, "operations": [_as_json(o) for o in (source, last, op)]}
    raise AssertionError("no stale read")


def _as_json(op: Operation) -> dict[str, Any]:
    names = (
        "process",
        "f",
        "value",
        "result",
        "start_ns",
        "end_ns",
        "key",
        "node",
        "error",
        "invoke_index",
        "complete_index",
    )
    return {"type": str(op.type), **{name: getattr(op, name) for name in names}}


def sightings(world: World, faults: Sequence[FaultRecord], duration_s: float) -> list[Sighting]:
    """Returns the sightings of a watch that polls once a second."""
    seen: list[Sighting] = []
    last: dict[str, tuple[Any, ...]] = {}
    places: dict[str, int] = {}
    for second in range(int(duration_s)):
        for node in NODES:
            leads, cut = world.leader(second), world.cut(node, second)
            if cut is not None and cut.planned.kind in {"kill", "pause"}:
                role, term, leader = None, None, None
            elif leads is None:
                role, term, leader = "candidate", world.changes[-1][2], None
            elif cut is not None and cut.planned.kind.startswith("partition"):
                role, term, leader = "candidate", leads[1], None
            else:
                role, term, leader = ("leader" if leads[0] == node else "follower"), leads[1], leads[0]
            time_ns = second * S + 3_000_000
            if last.get(node) == (role, term, leader):
                seen[places[node]] = replace(seen[places[node]], until_ns=time_ns)
                continue
            last[node], places[node] = (role, term, leader), len(seen)
            seen.append(Sighting(time_ns=time_ns, node=node, role=role, term=term, leader=leader, until_ns=time_ns))
    return seen


def phases(duration_s: float) -> list[Phase]:
    """The phases of a run; the judgement overlaps the comparison of the replicas."""
    end_s = 3.2 + duration_s
    return [
        Phase(name="start", start_s=0.0, end_s=3.2),
        Phase(name="workload", start_s=3.2, end_s=end_s),
        *(
            Phase(name="final reads", node=node, start_s=end_s + number, end_s=end_s + number + 1)
            for number, node in enumerate(NODES)
        ),
        Phase(name="compare replicas", start_s=end_s + 5, end_s=end_s + 6),
        Phase(name="judge", start_s=end_s + 5, end_s=end_s + 5.5),
    ]


def record(
    *, seed: int = 7, operations: int = 3000, duration_s: float = 60.0, stale: bool = False, pool: int = 8
) -> RunRecord:
    """Returns a whole synthetic run. `pool` is the limit of operations in flight for a node's clients."""
    done, faults, world = simulate(seed=seed, operations=operations, duration_s=duration_s, stale=stale, pool=pool)
    linearizable = Part(
        name="linearizable",
        verdict=Verdict.VALID,
        reason=f"All {len(done)} operations on {len({op.key for op in done})} keys are linearizable.",
    )
    if stale:
        example = counterexample(done)
        linearizable = Part(
            name="linearizable",
            verdict=Verdict.INVALID,
            reason=example["explanation"],
            details={"model": "cas-register", "counterexample": example},
        )
    parts = [
        linearizable,
        Part(
            name="replicas-equal",
            verdict=Verdict.VALID,
            reason="5 replicas hold the same 12 keys at the same applied index.",
        ),
        Part(
            name="recovered",
            verdict=Verdict.VALID,
            reason="The system worked again 1.4 s after everything was healed.",
            details={"seconds": 1.4},
        ),
        faults_effective(faults, [fault.planned for fault in faults]),
        progress(done, faults, None),
        client_errors(done),
    ]
    name = "dledger-register-unsafe" if stale else "dledger-register"
    root_seed = seed * 1_234_567_890_123_456_789 % 2**63
    nemesis = "partition-random-halves,kill,pause,partition-leader,packet-loss"
    info = TestInfo(
        name=name,
        seed=root_seed,
        reproduce=f"labrys test --seed {root_seed} --cluster local --system dledger --workload register "
        f"--nemesis {nemesis} --time-limit {duration_s:g}" + (" --read-mode unsafe" if stale else ""),
        started_utc=STARTED + timedelta(minutes=seed),
        system="dledger",
        workload="register",
        nodes=NODES,
        versions={"labrys": "0.1.0", "dledger": "0.4.0", "java": "17.0.12", "python": "3.11.7", "linux": "6.1.0"},
        artifact=Provenance(
            name="dledger-node",
            version="0.4.0",
            digest="3f2a9c12ab34" * 5 + "d00d",
            commit="0a1b2c3d",
            made="built with mvn 3.8.7",
        ),
        options={
            "time-limit": duration_s,
            "rate": round(operations / duration_s / 5, 1),
            "read-mode": "unsafe" if stale else "read-index",
            "routing": "mixed",
            "values": "unique",
        },
    )
    return RunRecord(
        test=info,
        duration_s=duration_s + 24.1,
        parts=parts,
        faults=faults,
        operations=done,
        sightings=sightings(world, faults, duration_s),
        timings={"ready": 3.2, "workload": duration_s, "check": 0.41},
        phases=phases(duration_s),
        problems=["n2: the log /var/log/dledger/gc.log could not be fetched: no such file"] if stale else [],
    )
