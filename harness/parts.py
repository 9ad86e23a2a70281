"""The parts of a run's verdict that do not depend on the workload.

Each part is a pure function of the records of the run. Its reason is a sentence with numbers, and claims only observed facts. A
run that tested nothing is `unknown` and never `valid`, by the parts `faults-effective`, `progress` and `completed`. A part that
could not be produced is `unknown`. A part that a test cannot have is left out, and the reason of `completed` names it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from harness.blame import Blamable, blaming
from harness.console.plain import counted
from harness.damaged_files import DAMAGED_FILES, damaged_files, damages, excused, refusal
from harness.ends import PROCESSES, processes
from harness.errors import LabrysError
from harness.indexes import RAFT_INVARIANTS, raft_invariants
from harness.outages import Serving
from harness.pace import RECOVERY
from harness.reached import RECOVERED, control_node, faults_effective, progress, recovered
from harness.states import MAX_EXAMPLES, ONE_LEADER, REPLICAS_EQUAL, one_leader_per_term, replicas_equal
from harness.units import NS_PER_S
from harness.verdict import CONTROL_NODE, Part, Verdict
from harness.workload import Observed
from harness.world import world_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.op import Operation
    from harness.run import RunResult
    from harness.system import System
    from harness.test import Test

MAX_LOG_LINE = 400
EXCEPTION_ERROR = "exception"
LOG_PATTERNS = "log-patterns"
OWN_PARTS = "own-parts"  # in place of those that the system did not make

# The parts that do not depend on the workload, nor on the meaning of the operations on a key.
OF_ANY_RUN = frozenset(
    {
        REPLICAS_EQUAL, RECOVERED, "faults-effective", "progress", "client-errors", LOG_PATTERNS, "completed",
        DAMAGED_FILES, PROCESSES, CONTROL_NODE, ONE_LEADER, RAFT_INVARIANTS, OWN_PARTS, "protocol", "repeatable",
    }
)  # fmt: skip


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
    errors = f"{counted(total, 'error')}, and handled {'it' if total == 1 else 'all of them'}" if total else "no error"
    return Part.of("client-errors", details, held=f"The clients met {errors}.", untested=untested)


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
    sentence = f"No fatal line in {counted(files, 'log file')}."
    if silent:
        sentence += f" No log file was found on {', '.join(silent)}."
    untested = f"{sentence} The logs of {', '.join(lost)} could not be collected." if lost else None
    if not files:
        untested = "No node's log could be collected."
    return Part.of(LOG_PATTERNS, details, held=sentence, untested=untested, broken=broken)


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
    parts = []
    for lane, sightings in {front: result.sightings, **result.other_sightings}.items():
        promise = promises[lane.partition(" ")[0]]
        if promise and lane != front and all(seen.term is None for seen in sightings):
            left_out[f"{ONE_LEADER} ({lane})"] = f"no {lane} told a term"
        elif promise:
            parts.append(one_leader_per_term(sightings, promise, None if lane == front else lane))
    return parts


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
    parts = of_workload(test, operations, observed(result)) if workload is None else list(workload)
    left_out = {} if test.final_reads else {"final-reads": "the test does not ask for them"}
    if test.final_reads and getattr(test.workload, "final", None) == ():
        left_out["final-reads"] = f"{test.workload.name} has nothing to read"
    has_replicas = any(part.name == REPLICAS_EQUAL for part in parts)  # the workload compared them by their answers
    front = test.system.front()
    if not (front.dumps_replicas or has_replicas):
        left_out[REPLICAS_EQUAL] = f"{test.system.name} does not dump its replicas"
    elif len(front.nodes) == 1:
        left_out[REPLICAS_EQUAL] = "there is one replica only"
    elif not has_replicas:
        parts.append(replicas_equal(result.replicas))
    on_damage, hit = test.system.on_damage, damages(result.faults, test.damaging)
    refusing = excused(result.ended, on_damage, hit)
    parts += [
        recovered(result.recovery, result.paces.get(RECOVERY), refuses=refusal(on_damage, hit, result.recovery)),
        faults_effective(result.faults, test.plan),
        progress(operations, result.faults, result.recovery, Serving.of(front, test.workload)),
        client_errors(operations),
    ]
    parts += _of_system(test.system, OWN_PARTS, test.system.own_parts)
    parts += _leaders(test.system, result, left_out)
    if front.raft_invariants:
        restarted_s = None if result.recovery is None else result.recovery.restarted_s
        restarted_ns = None if restarted_s is None else int(restarted_s * NS_PER_S)
        parts.append(raft_invariants(result.indexes, front.raft_invariants, result.faults, restarted_ns, test.damaging))
    else:
        left_out[RAFT_INVARIANTS] = f"{test.system.name} does not promise it"
    matched = _of_system(test.system, LOG_PATTERNS, lambda: _log_patterns(test.system, result, names))
    if not matched:
        left_out[LOG_PATTERNS] = f"{test.system.name} defines no fatal log lines"
    parts += matched
    damaged = damaged_files(test.system.name, on_damage, hit, result.recovery, refusing)
    parts += [] if damaged is None else [damaged]
    ended = processes([end for end in result.ended if end not in refusing], result.faults)
    parts += [] if ended is None else [ended]
    world = world_of(test.cluster)
    if world is not None and not world.real_time:
        left_out[CONTROL_NODE] = "virtual time waits for the control node, so it cannot be late"
    parts.append(
        completed(
            interrupted=result.interrupted,
            error=result.error,
            seconds=result.workload_s,
            planned_s=test.time_limit_s,
            left_out=left_out,
        )
    )
    if result.paces:
        parts.append(control_node(result.paces))
    return parts


def _of_system(system: System, name: str, made: Callable[[], Sequence[Part]]) -> list[Part]:
    """Returns the parts that the code of the system makes; one unknown part of this name if it fails."""
    try:
        with blaming(Blamable(type(system), f"system {system.name}")):
            return list(made())
    except LabrysError as error:
        return [Part(name=name, verdict=Verdict.UNKNOWN, reason=f"The system did not judge the run: {error}")]


def _log_patterns(system: System, result: RunResult, nodes: Sequence[str]) -> list[Part]:
    patterns = system.fatal_log_patterns()
    return [log_patterns(result.logs, patterns, nodes)] if patterns else []


def of_workload(test: Test, operations: Sequence[Operation], observed: Observed) -> list[Part]:
    """Returns the parts of the workload; one unknown part if the operations cannot be judged, or a user's workload fails."""
    try:
        with blaming(Blamable(type(test.workload), f"workload {test.workload.name}")):
            return list(test.workload.check(operations, observed))
    except LabrysError as error:
        reason = f"The operations could not be judged: {error}"
        return [Part(name=test.workload.name, verdict=Verdict.UNKNOWN, reason=reason)]
