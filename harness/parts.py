"""The parts of a run's verdict that do not depend on the workload.

Each part is a pure function of what was recorded, says one sentence with numbers, and claims no more than was seen. A run
that tested nothing is `unknown` with the reason, never `valid`: that is what `faults-effective`, `progress` and `completed`
are for.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from harness.errors import headline
from harness.op import FINAL_PHASE, OpType
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from harness.faults import FaultRecord
    from harness.op import Operation
    from harness.recovery import Recovery, Replicas

MAX_EXAMPLES = 5
MAX_LOG_LINE = 400
EXCEPTION_ERROR = "exception"


def faults_effective(faults: Sequence[FaultRecord]) -> Part:
    """Says whether every kind of fault that the run asked for was seen to take effect at least once."""
    name = "faults-effective"
    if not faults:
        return Part(name=name, verdict=Verdict.VALID, reason="No faults were planned.")
    effective: Counter[str] = Counter()
    planned: Counter[str] = Counter()
    for fault in faults:
        planned[fault.planned.kind] += 1
        effective[fault.planned.kind] += int(fault.proof is not None and fault.proof.effective)
    details = {kind: {"planned": count, "effective": effective[kind]} for kind, count in sorted(planned.items())}
    idle = sorted(kind for kind in planned if not effective[kind])
    if idle:
        first = next(fault for fault in faults if fault.planned.kind == idle[0])
        why = headline(first.error or (first.proof.reason if first.proof else "it never began"))
        reason = f"No {' and no '.join(idle)} was seen to take effect: {why}"
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    total = f"{sum(effective.values())} of {len(faults)}"
    return Part(name=name, verdict=Verdict.VALID, reason=f"{total} faults were seen to take effect.", details=details)


def progress(operations: Iterable[Operation], faults: Sequence[FaultRecord], recovery: Recovery | None) -> Part:
    """Says whether clients got answers at all, while faults were on, and after the last one was healed.

    After a restart of every node the final reads say nothing of what the faults have left, so they count only without one.
    """
    name = "progress"
    last_heal_ns = max((fault.end_ns for fault in faults), default=0)
    restarted = recovery is not None and recovery.restarted
    total = during = after = 0
    for operation in operations:
        if operation.type is not OpType.OK:
            continue
        total += 1
        start_ns = operation.start_ns
        during += any(fault.start_ns <= start_ns < fault.end_ns for fault in faults)
        after += start_ns >= last_heal_ns and not (restarted and operation.phase == FINAL_PHASE)
    details = {"ok": total, "ok_during_faults": during, "ok_after_faults": after}
    if not total:
        reason = "No operation succeeded, so nothing was tested."
    elif faults and not during:
        reason = "No operation that was invoked while a fault was on succeeded, so the faults tested nothing."
    elif faults and not after:
        reason = "No operation succeeded after the last fault was healed, so its consequences were not observed."
    else:
        seen = f", {during} of them while a fault was on and {after} after the last one" if faults else ""
        return Part(name=name, verdict=Verdict.VALID, reason=f"{total} operations succeeded{seen}.", details=details)
    return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)


def recovered(recovery: Recovery | None) -> Part:
    """Says whether the system worked again within the deadline after everything was healed."""
    name = "recovered"
    if recovery is None:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason="The run ended before its recovery was observed.")
    details = {
        "seconds": recovery.seconds,
        "restarted": recovery.restarted,
        "first_error": recovery.first_error,
        "error": recovery.error,
    }
    if recovery.error is not None:
        reason = f"The system did not work again after healing, nor after a restart of every node: {headline(recovery.error)}"
        return Part(name=name, verdict=Verdict.INVALID, reason=reason, details=details)
    if recovery.restarted:
        why = headline(recovery.first_error or "it gave no reason")
        reason = f"The system worked again only after a restart of every node: {why}"
        return Part(name=name, verdict=Verdict.INVALID, reason=reason, details=details)
    reason = f"The system worked again {recovery.seconds:.1f} s after everything was healed."
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)


def replicas_equal(replicas: Replicas | None) -> Part:
    """Says whether all replicas held the same state at the same log position, with clients at rest."""
    name = "replicas-equal"
    if replicas is None:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason="The run ended before its replicas were compared.")
    if not replicas.supported:
        return Part(name=name, verdict=Verdict.VALID, reason="This system has no replicas that can be dumped.")
    details = {"applied": dict(replicas.applied), "differing": list(replicas.differing)}
    if replicas.differing:
        example = replicas.differing[0]
        values = ", ".join(f"{node} holds {value!r}" for node, value in example["values"].items())
        reason = (
            f"Replicas differ at the same applied index in {len(replicas.differing)} keys; {example['key']}: {values}."
        )
        return Part(name=name, verdict=Verdict.INVALID, reason=reason, details=details)
    if not replicas.settled:
        positions = ", ".join(
            f"{node} {'no answer' if index is None else index}" for node, index in replicas.applied.items()
        )
        reason = f"The replicas did not reach one applied index in {replicas.seconds:.0f} s: {positions}."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    reason = f"{len(replicas.applied)} replicas hold the same {replicas.keys} keys at the same applied index."
    return Part(name=name, verdict=Verdict.VALID, reason=reason, details=details)


def client_errors(operations: Iterable[Operation]) -> Part:
    """Says whether every error that clients met was one they know how to type."""
    name = "client-errors"
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
    if untyped:
        reason = (
            f"{codes[EXCEPTION_ERROR]} operations ended in an exception that the client does not type: {untyped[0]}"
        )
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    total = sum(codes.values())
    return Part(name=name, verdict=Verdict.VALID, reason=f"All {total} errors are of known kinds.", details=details)


def log_patterns(logs: Mapping[str, Sequence[Path]], patterns: Sequence[str]) -> Part:
    """Searches the collected node logs for lines that a healthy node never writes, whatever faults it met."""
    name = "log-patterns"
    if not patterns:
        return Part(name=name, verdict=Verdict.VALID, reason="The system names no fatal log lines.")
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
    details = {"files": files, "matches": matches[:MAX_EXAMPLES], "count": len(matches)}
    if matches:
        first = matches[0]
        where = f"{first['file']}:{first['line']} of {first['node']}"
        reason = f"{len(matches)} fatal log lines; the first in {where}: {first['text']}"
        return Part(name=name, verdict=Verdict.INVALID, reason=reason, details=details)
    if not files:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason="No node's log could be collected.", details=details)
    return Part(name=name, verdict=Verdict.VALID, reason=f"No fatal line in {files} log files.", details=details)


def completed(*, interrupted: bool, error: str | None, seconds: float, planned_s: float) -> Part:
    """Says whether the run went through all of its phases."""
    name = "completed"
    details = {"seconds": seconds, "planned_seconds": planned_s}
    if error is not None:
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=f"The run broke off: {error}", details=details)
    if interrupted:
        reason = f"The run was interrupted; its workload had run {seconds:.0f} s of {planned_s:.0f} s."
        return Part(name=name, verdict=Verdict.UNKNOWN, reason=reason, details=details)
    return Part(name=name, verdict=Verdict.VALID, reason="The run went through all of its phases.", details=details)
