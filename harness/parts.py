"""The parts of a run's verdict that do not depend on the workload.

Each part is a pure function of the records of the run. Its reason is a sentence with numbers, and claims only observed facts. A
run that tested nothing is `unknown` and never `valid`, by the parts `faults-effective`, `progress` and `completed`. A part that
could not be produced is `unknown`. A part that a test cannot have is left out, and the reason of `completed` names it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from harness.about import MEMBER, About
from harness.blame import Plugin, blaming
from harness.console.plain import counted, counted_of
from harness.damaged_files import DAMAGED_FILES, damaged_files, damages, excused, refusal
from harness.ends import PROCESSES, processes
from harness.errors import LabrysError, headline
from harness.indexes import RAFT_INVARIANTS, raft_invariants
from harness.leaders import claims, rivals
from harness.op import FINAL_PHASE, OpType
from harness.outages import Serving
from harness.pace import RECOVERY
from harness.units import NS_PER_S
from harness.verdict import CONTROL_NODE, Part, Verdict
from harness.workload import Observed
from harness.world import world_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.faults import FaultRecord, PlannedFault
    from harness.op import Operation, Value
    from harness.pace import Pace
    from harness.recovery import Recovery
    from harness.replicas import Difference, Replicas
    from harness.run import RunResult, Test
    from harness.system import System
    from harness.watch import Sighting

MAX_EXAMPLES = 5
MAX_LOG_LINE = 400
EXCEPTION_ERROR = "exception"
REPLICAS_EQUAL = "replicas-equal"
AT_REST = "at rest"
RECOVERED = "recovered"
ONE_LEADER = "one-leader-per-term"
LOG_PATTERNS = "log-patterns"
OWN_PARTS = "own-parts"  # in place of those that the system did not make

# The parts that do not depend on the workload, nor on the meaning of the operations on a key.
OF_ANY_RUN = frozenset(
    {
        REPLICAS_EQUAL, RECOVERED, "faults-effective", "progress", "client-errors", LOG_PATTERNS, "completed",
        DAMAGED_FILES, PROCESSES, CONTROL_NODE, ONE_LEADER, RAFT_INVARIANTS, OWN_PARTS, "protocol", "repeatable",
    }
)  # fmt: skip


def faults_effective(faults: Sequence[FaultRecord], plan: Sequence[PlannedFault]) -> Part:
    """Returns the part `faults-effective`: whether each planned kind has a proven effect at least once, at each planned role.

    Args:
        faults: The record of each fault that began.
        plan: All planned faults.
    """
    name = "faults-effective"
    if not plan:
        return Part.of(name, held="No faults were planned.")
    effective = Counter(_name(fault.planned) for fault in faults if fault.proof is not None and fault.proof.effective)
    planned = Counter(map(_name, plan))
    details = {kind: {"planned": count, "effective": effective[kind]} for kind, count in sorted(planned.items())}
    idle = sorted(kind for kind in planned if not effective[kind])
    untested = None
    if idle:
        first = next((fault for fault in faults if _name(fault.planned) == idle[0]), None)
        proof = first.proof if first else None
        why = headline(
            (first.error if first else None) or (proof.reason if proof else _not_begun(idle[0], faults, plan))
        )
        untested = f"No {' and no '.join(idle)} has a proven effect: {why}"
    held = f"{counted_of(effective.total(), len(plan), 'planned fault', 'have')} a proven effect."
    return Part.of(name, details, held=held, untested=untested)


def _name(fault: PlannedFault) -> str:
    return fault.called


def _not_begun(name: str, faults: Sequence[FaultRecord], plan: Sequence[PlannedFault]) -> str:
    """Returns that no such fault began, and which fault ended after the first one was due: faults in turn wait for it."""
    due_s = min(fault.start_s for fault in plan if _name(fault) == name)
    last = max(faults, key=lambda fault: fault.end_ns, default=None)
    if last is None or last.planned.end_s > due_s or last.end_ns < due_s * NS_PER_S:
        return "it never began"
    late_s = last.end_ns / NS_PER_S - last.planned.end_s
    return f"it never began; {_name(last.planned)} ended {late_s:.1f} s later than planned, so a longer --time-limit may help"


def one_leader_per_term(sightings: Sequence[Sighting], promise: str, lane: str | None = None) -> Part:
    """Returns the extra part `one-leader-per-term`: whether two nodes led in one term by the reports.

    Args:
        sightings: What the nodes reported about themselves, and observers about the leader of a group.
        promise: The sentence of the service; see `Service.one_leader_per_term`.
        lane: The service and the group, if it is not the service that clients use; then the name of the part has it.
    """
    name = ONE_LEADER if lane is None else f"{ONE_LEADER} ({lane})"
    pairs = rivals(sightings)
    terms = {claim.term for claim in claims(sightings)}
    details: dict[str, Value] = {
        "promise": promise,
        "terms": len(terms),
        "rivals": [
            {"term": pair.term, "nodes": list(dict.fromkeys(claim.node for claim in pair.claims))}
            for pair in pairs[:MAX_EXAMPLES]
        ],
    }
    broken = about = None
    if pairs:
        first = pairs[0].claims
        about = About(
            from_ns=first[0].time_ns,
            to_ns=max(claim.last_ns for claim in first),
            nodes=tuple(dict.fromkeys(claim.node for claim in first)),
        )
        more = f" This is so in {len(pairs)} terms." if len(pairs) > 1 else ""
        broken = f"{pairs[0]}{more} {promise}"
    return Part.of(
        name,
        details,
        held=f"No two nodes led in one term by the reports; {counted(len(terms), 'term')} had a leader.",
        untested=None if terms else "No poll saw a leader with a term.",
        broken=broken,
        about=about,
        extra=True,
    )


def progress(
    operations: Sequence[Operation],
    faults: Sequence[FaultRecord],
    recovery: Recovery | None,
    serving: Serving | None = None,
) -> Part:
    """Returns the part `progress`: whether operations succeeded at all, during faults, and after the last fault.

    If each proven fault left no quorum up, nothing can succeed during faults. Then reads must show, after one of them, what was
    acknowledged before it; see `harness.outages`. Operations after a restart of all nodes do not count, because the restart may
    hide the consequences of the faults.

    Args:
        operations: The operations of the clients.
        faults: The record of each fault that began.
        recovery: The recovery of the system; None if the run ended before.
        serving: What clients use; None: no fault counts as an outage.
    """
    name = "progress"
    last_heal_ns = max((fault.end_ns for fault in faults), default=0)
    restarted = recovery is not None and recovery.restarted
    restarted_s = None if recovery is None else recovery.restarted_s
    restarted_ns = math.inf if restarted_s is None else restarted_s * NS_PER_S

    def is_late(operation: Operation) -> bool:
        return restarted and (operation.phase == FINAL_PHASE or operation.start_ns >= restarted_ns)

    total = during = after = 0
    for operation in operations:
        if operation.type is not OpType.OK:
            continue
        total += 1
        start_ns = operation.start_ns
        during += any(fault.start_ns <= start_ns < fault.end_ns for fault in faults)
        after += start_ns >= last_heal_ns and not is_late(operation)
    details = {"ok": total, "ok_during_faults": during, "ok_after_faults": after}
    outages = _outages(faults, serving) if total and not during else []
    seen = 0
    if serving is not None and outages:
        seen = serving.reads_after(outages, [each for each in operations if not is_late(each)])
        details["ok_reads_after_outages"] = seen
    left = f"{'The fault' if len(outages) == 1 else 'Each fault'} left no quorum up, so nothing could succeed during it"
    if not total:
        reason = "No operation succeeded, so nothing was tested."
    elif outages and not seen:
        what = "what was acknowledged before, so the faults tested nothing"
        reason = f"{left}; and no read after it shows {what}."
    elif faults and not during and not outages:
        reason = "No operation that was invoked while a fault was on succeeded, so the faults tested nothing."
    elif faults and not after:
        reason = "No operation succeeded after the last fault was healed, so its consequences were not observed."
    else:
        when = f", {during:,} of them while a fault was on and {after:,} after the last one" if faults else ""
        if outages:
            shown = f"{counted(seen, 'read')} after it {'shows' if seen == 1 else 'show'} what was acknowledged before"
            when = f", {after:,} of them after the last fault. {left}; {shown}"
        reason = f"{counted(total, 'operation')} succeeded{when}."
        return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)
    return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)


def _outages(faults: Sequence[FaultRecord], serving: Serving | None) -> list[FaultRecord]:
    """Returns the proven faults, if each of them left no quorum up; else none."""
    proven = [fault for fault in faults if fault.is_proven]
    return proven if serving is not None and all(serving.is_outage(fault) for fault in proven) else []


def recovered(recovery: Recovery | None, pace: Pace | None = None, *, refuses: str = "") -> Part:
    """Returns the part `recovered`: whether the system worked again within the deadline after healing.

    If the control node was behind, a missed deadline is unknown and not invalid.

    Args:
        recovery: The recovery of the system; None if the run ended before.
        pace: The measurements of the control node in the same stage; None if there are none.
        refuses: Why a system that did not work again keeps its promise; empty if it does not. See `harness.damaged_files`.
    """
    part = _recovered(recovery)
    if refuses and recovery is not None and recovery.error is not None and part.verdict is Verdict.INVALID:
        reason = f"The system did not work again, as it promises. {refuses}"
        return replace(part, verdict=Verdict.VALID, reason=reason)
    behind = pace.behind if pace is not None else None
    if part.verdict is not Verdict.INVALID or behind is None:
        return part
    reason = f"{part.reason} The control node was behind at that time, so this is not a finding: {behind}."
    return replace(part, verdict=Verdict.UNKNOWN, reason=reason)


def control_node(paces: Mapping[str, Pace]) -> Part:
    """Returns the extra part `control-node`: whether the control node kept up. Parts that depend on timing check it, too."""
    behind = [f"in the stage {stage}, {pace.behind}" for stage, pace in paces.items() if pace.behind]
    details = {stage: asdict(pace) for stage, pace in paces.items()}
    figures = "Latencies and availability of this run are not the system's."
    worst = max((pace.worst_lag_s for pace in paces.values()), default=0.0)
    return Part.of(
        CONTROL_NODE,
        details,
        held=f"The control node kept up; its event loop was late by {worst:.2f} s at most.",
        untested=f"The control node was behind: {'; '.join(behind)}. {figures}" if behind else None,
        extra=True,
    )


def _recovered(recovery: Recovery | None) -> Part:
    if recovery is None:
        reason = "The run ended before its recovery was observed."
        return Part(name=RECOVERED, verdict=Verdict.UNKNOWN, reason=reason)
    details = {
        "seconds": recovery.seconds,
        "from_s": recovery.from_s,
        "restarted": recovery.restarted,
        "restarted_s": recovery.restarted_s,
        "first_error": recovery.first_error,
        "error": recovery.error,
        "served": list(recovery.served),
        "quorum": recovery.quorum,
        "nodes": recovery.nodes,
        "out": dict(recovery.out),
        "unready": recovery.unready,
    }
    verdict, reason = _outcome(recovery)
    return Part(name=RECOVERED, verdict=verdict, reason=reason, details=details)


def _outcome(recovery: Recovery) -> tuple[Verdict, str]:
    """Returns whether a system recovered, and a sentence."""
    standing = _standing(recovery)
    if recovery.error is not None and not recovery.worked:
        why = f"No client got an answer during the workload, nor after it: {headline(recovery.error)}"
        return Verdict.UNKNOWN, why
    if recovery.error is not None:
        why = f"The system did not work again after healing, nor after a restart of every node: {headline(recovery.error)}"
        return Verdict.INVALID, why
    if recovery.restarted:
        why = headline(recovery.first_error or "it gave no reason")
        return Verdict.INVALID, f"The system worked again only after a restart of every node: {why}"
    if not recovery.asked:
        why = f"No operation of a client was sent after healing, so only the nodes say that they serve.{standing}"
        return Verdict.UNKNOWN, why
    after = "at the end of the workload; there was no fault to heal"
    if recovery.healed:
        after = f"again {recovery.seconds:.1f} s after everything was healed"
    where = f"clients at {counted_of(len(recovery.served), recovery.nodes, 'node')}"
    why = f"The system worked {after}: {where} got answers, and the quorum is {recovery.quorum}.{standing}"
    return Verdict.VALID, why


def _standing(recovery: Recovery) -> str:
    """Returns sentences with the nodes that stay out, and with what the system lacks by its own words."""
    out = "; ".join(f"{node} {reason}" for node, reason in recovery.out.items())
    unready = headline(recovery.unready or "")
    return (f" Nodes that stayed out: {out}." if out else "") + (f" By its own words: {unready}." if unready else "")


def replicas_equal(replicas: Replicas | None) -> Part:
    """Returns the part `replicas-equal`: whether replicas at the same applied index, or at rest, have the same state."""
    if replicas is None:
        reason = "The run ended before its replicas were compared."
        return Part(name=REPLICAS_EQUAL, verdict=Verdict.UNKNOWN, reason=reason)
    details: dict[str, Value] = {
        "applied": dict(replicas.applied),
        "compared": {
            AT_REST if index is None else str(index): list(nodes) for index, nodes in replicas.compared.items()
        },
        "differing_keys": replicas.differing_keys,
        "differing": [asdict(difference) for difference in replicas.differing],
    }
    apart, stayed_out = _apart(replicas)
    if replicas.from_ns is not None:
        unlike = (node for each in replicas.differing for node in (*each.values, *each.lacking))
        details[MEMBER] = About(
            from_ns=replicas.from_ns,
            to_ns=replicas.from_ns + round(replicas.seconds * NS_PER_S),
            nodes=tuple(dict.fromkeys(node.partition(" (state")[0] for node in unlike)) or tuple(replicas.applied),
        ).to_json()
    broken = None
    if replicas.differing:
        first = _difference(replicas.differing[0])
        where = f"after {replicas.seconds:.0f} s at rest" if replicas.unplaced else "at the same applied index"
        broken = f"Replicas differ {where} in {counted(replicas.differing_keys, 'key')}; {first}.{apart}{stayed_out}"
    same = "no key" if not replicas.keys else f"the same {counted(replicas.keys, 'key')}"
    where = "at rest" if replicas.largest is None else f"at applied index {replicas.largest}"
    held = f"{len(replicas.together)} replicas have {same} {where}.{apart}{stayed_out}"
    untested = held if apart else None
    if not replicas.together:
        lack = "answered" if replicas.unplaced else "were at the same applied index"
        untested = f"No two replicas {lack} in {replicas.seconds:.0f} s.{apart}{stayed_out}"
    return Part.of(REPLICAS_EQUAL, details, held=held, untested=untested, broken=broken)


def _apart(replicas: Replicas) -> tuple[str, str]:
    """Returns a sentence with the nodes outside the largest group, and one with those of them that had stayed out."""
    apart = {
        node: f"{node} ({'alone' if node in replicas.unplaced else 'no answer' if index is None else f'at index {index}'})"
        for node, index in replicas.applied.items()
        if node not in replicas.together
    }
    waited = ", ".join(text for node, text in apart.items() if node not in replicas.out)
    out = ", ".join(text for node, text in apart.items() if node in replicas.out)
    them = " with them" if replicas.together else ""
    return (
        f" Not compared{them}: {waited}." if waited else "",
        f" Not compared{them}, because it stayed out after healing: {out}." if out else "",
    )


def _difference(difference: Difference) -> str:
    clauses = [f"{node} has {value!r}" for node, value in difference.values.items()]
    clauses += [f"{node} lacks it" for node in difference.lacking]
    where = "" if difference.applied_index is None else f" at index {difference.applied_index}"
    return f"{difference.key}{where}: {', '.join(clauses)}"


def client_errors(operations: Iterable[Operation]) -> Part:
    """Returns the part `client-errors`: whether the clients handled every error."""
    codes: Counter[str] = Counter()
    untyped: list[str] = []
    for operation in operations:
        if operation.error is None:
            continue
        code = operation.error.partition(":")[0]
        codes[code] += 1
        if code == EXCEPTION_ERROR and len(untyped) < MAX_EXAMPLES:
            untyped.append(operation.error)
    details = {"codes": dict(codes.most_common()), "untyped": untyped}
    untested = None
    if untyped:
        untested = (
            f"{counted(codes[EXCEPTION_ERROR], 'operation')} ended with an exception that the client does not handle: "
            f"{untyped[0]}"
        )
    total = sum(codes.values())
    met = f"{counted(total, 'error')}, and handled {'it' if total == 1 else 'all of them'}" if total else "no error"
    return Part.of("client-errors", details, held=f"The clients met {met}.", untested=untested)


def log_patterns(logs: Mapping[str, Sequence[Path]], patterns: Sequence[str], nodes: Sequence[str]) -> Part:
    """Returns the part `log-patterns`: whether a log has lines that a healthy node never writes, even under faults.

    Args:
        logs: Node to its log files, without nodes whose logs could not be collected.
        patterns: Regular expressions of such lines, at least one.
        nodes: All nodes.
    """
    fatal = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    matches: list[dict[str, str | int]] = []
    files = 0
    for node, paths in logs.items():
        for path in paths:
            files += 1
            with path.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    if fatal.search(line):
                        matches.append(
                            {
                                "node": node,
                                "file": path.name,
                                "line": number,
                                "text": line.strip()[:MAX_LOG_LINE],
                            }
                        )
    lost = [node for node in nodes if node not in logs]
    silent = [node for node in nodes if node in logs and not logs[node]]
    details = {"files": files, "matches": matches[:MAX_EXAMPLES], "count": len(matches), "lost": lost, "silent": silent}
    broken = None
    if matches:
        first = matches[0]
        where = f"{first['file']}:{first['line']} of {first['node']}"
        broken = f"{counted(len(matches), 'fatal log line')}; the first in {where}: {first['text']}"
    held = f"No fatal line in {counted(files, 'log file')}."
    if silent:
        held += f" No log file was found on {', '.join(silent)}."
    untested = f"{held} The logs of {', '.join(lost)} could not be collected." if lost else None
    if not files:
        untested = "No node's log could be collected."
    return Part.of(LOG_PATTERNS, details, held=held, untested=untested, broken=broken)


def completed(
    *, interrupted: bool, error: str | None, seconds: float, planned_s: float, left_out: Mapping[str, str]
) -> Part:
    """Returns the part `completed`: whether the run went through all phases. Its reason also names the parts that are left out.

    Args:
        interrupted: Whether a person ended the run early.
        error: The error that broke the run off; None if there is none.
        seconds: The duration of the workload.
        planned_s: The planned duration.
        left_out: For each part that the test cannot have, the reason.
    """
    details = {"seconds": seconds, "planned_seconds": planned_s, "left_out": dict(left_out)}
    without = "; ".join(f"{part} ({why})" for part, why in left_out.items())
    also = f" Left out: {without}." if without else ""
    untested = None
    if error is not None:
        stop = "." if also and not error.endswith((".", "!", "?")) else ""
        untested = f"The run broke off: {error}{stop}{also}"
    elif interrupted:
        untested = f"The run was interrupted; its workload had run {seconds:.0f} s of {planned_s:.0f} s.{also}"
    return Part.of("completed", details, held=f"The run went through all of its phases.{also}", untested=untested)


def observed(result: RunResult) -> Observed:
    """Returns the observations so far, for the model or the judge of the workload."""
    return Observed(faults=tuple(result.faults), final_reads=result.final_reads, sightings=tuple(result.sightings))


def _leaders(system: System, result: RunResult, left_out: dict[str, str]) -> list[Part]:
    """Returns the parts about the leaders of the services that promise one in each term, and adds those that are left out."""
    promises = {service.role: service.one_leader_per_term for service in system.services()}
    if not any(promises.values()):
        left_out[ONE_LEADER] = f"{system.name} does not promise it"
    front = system.front().role
    found = []
    for lane, sightings in {front: result.sightings, **result.other_sightings}.items():
        promise = promises[lane.partition(" ")[0]]
        if promise and lane != front and all(seen.term is None for seen in sightings):
            left_out[f"{ONE_LEADER} ({lane})"] = f"no {lane} told a term"
        elif promise:
            found.append(one_leader_per_term(sightings, promise, None if lane == front else lane))
    return found


def of_run(
    test: Test, result: RunResult, operations: Sequence[Operation], *, workload: Sequence[Part] | None = None
) -> list[Part]:
    """Returns the parts of a run's verdict, those of the workload first.

    Args:
        test: The test.
        result: The outcome of the run.
        operations: The operations of the clients.
        workload: The parts of the workload, if `of_workload` has judged the same operations; None to judge them now.
    """
    names = [node.name for node in test.cluster.nodes]
    found = of_workload(test, operations, observed(result)) if workload is None else list(workload)
    left_out = {} if test.final_reads else {"final-reads": "the test does not ask for them"}
    if test.final_reads and getattr(test.workload, "final", None) == ():
        left_out["final-reads"] = f"{test.workload.name} has nothing to read"
    has_replicas = any(part.name == REPLICAS_EQUAL for part in found)  # the workload compared them by their answers
    front = test.system.front()
    if not (front.dumps_replicas or has_replicas):
        left_out[REPLICAS_EQUAL] = f"{test.system.name} does not dump its replicas"
    elif len(front.nodes) == 1:
        left_out[REPLICAS_EQUAL] = "there is one replica only"
    elif not has_replicas:
        found.append(replicas_equal(result.replicas))
    on_damage, hit = test.system.on_damage, damages(result.faults, test.damaging)
    refusing = excused(result.ended, on_damage, hit)
    found += [
        recovered(result.recovery, result.paces.get(RECOVERY), refuses=refusal(on_damage, hit, result.recovery)),
        faults_effective(result.faults, test.plan),
        progress(operations, result.faults, result.recovery, Serving.of(front, test.workload)),
        client_errors(operations),
    ]
    found += _of_system(test.system, OWN_PARTS, test.system.own_parts)
    found += _leaders(test.system, result, left_out)
    if front.raft_invariants:
        restarted_s = None if result.recovery is None else result.recovery.restarted_s
        restarted_ns = None if restarted_s is None else int(restarted_s * NS_PER_S)
        found.append(raft_invariants(result.indexes, front.raft_invariants, result.faults, restarted_ns))
    else:
        left_out[RAFT_INVARIANTS] = f"{test.system.name} does not promise it"
    matched = _of_system(test.system, LOG_PATTERNS, lambda: _log_patterns(test.system, result, names))
    if not matched:
        left_out[LOG_PATTERNS] = f"{test.system.name} defines no fatal log lines"
    found += matched
    damaged = damaged_files(test.system.name, on_damage, hit, result.recovery, refusing)
    found += [] if damaged is None else [damaged]
    ended = processes([end for end in result.ended if end not in refusing], result.faults)
    found += [] if ended is None else [ended]
    world = world_of(test.cluster)
    if world is not None and not world.real_time:
        left_out[CONTROL_NODE] = "virtual time waits for the control node, so it cannot be late"
    found.append(
        completed(
            interrupted=result.interrupted,
            error=result.error,
            seconds=result.workload_s,
            planned_s=test.time_limit_s,
            left_out=left_out,
        )
    )
    if result.paces:
        found.append(control_node(result.paces))
    return found


def _of_system(system: System, name: str, made: Callable[[], Sequence[Part]]) -> list[Part]:
    """Returns the parts that the code of the system makes; one unknown part of this name if it fails."""
    try:
        with blaming(Plugin(type(system), f"system {system.name}")):
            return list(made())
    except LabrysError as error:
        return [Part(name=name, verdict=Verdict.UNKNOWN, reason=f"The system did not judge the run: {error}")]


def _log_patterns(system: System, result: RunResult, nodes: Sequence[str]) -> list[Part]:
    patterns = system.fatal_log_patterns()
    return [log_patterns(result.logs, patterns, nodes)] if patterns else []


def of_workload(test: Test, operations: Sequence[Operation], observed: Observed) -> list[Part]:
    """Returns the parts of the workload; one unknown part if the operations cannot be judged, or a user's workload fails."""
    try:
        with blaming(Plugin(type(test.workload), f"workload {test.workload.name}")):
            return list(test.workload.check(operations, observed))
    except LabrysError as error:
        reason = f"The operations could not be judged: {error}"
        return [Part(name=test.workload.name, verdict=Verdict.UNKNOWN, reason=reason)]
