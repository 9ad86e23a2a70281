"""Compares what programs in virtual time did in two runs of one seed, and finds where they differ first.

A stored run has the digest of all that its programs did, and a digest at the end of each virtual second. So a comparison says
in which second two runs differ first. It cannot say by which call: for that, two runs need a log of calls. If a run differs
from an earlier one, and nothing around it has changed, Labrys carries out two more runs with such logs, and compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clusters.sim.linux.calls import first_difference
from commands.run.again import REPEATABLE
from commands.run.trial import Unobserved, carried_out
from harness.console.plain import name, one_line
from harness.errors import LabrysError
from harness.units import NS_PER_S
from harness.verdict import Part, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from commands.options.compose import Settled
    from harness.run import RunResult
    from harness.world import Execution
    from results.record.record import RunRecord
    from results.store.store import Run

SECOND_DIGITS: Final = 8  # of a trace
CALL_FILES: Final = ("calls-1.log", "calls-2.log")
SHOWN: Final = 60  # characters of a version or a processor
TIMES: Final = "time"  # the virtual time among the figures of an execution


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A run that another one is to repeat.

    Attributes:
        label: What messages call it.
        seed: Its seed.
        execution: What its programs did.
        versions: The versions of Labrys, Python and the system.
    """

    label: str
    seed: int
    execution: Execution
    versions: Mapping[str, str]

    @classmethod
    def of(cls, run: Run, record: RunRecord) -> Earlier | None:
        """Returns a stored run; None if it had no programs in virtual time."""
        if record.execution is None:
            return None
        return cls(
            label=f"{run.test_name}/{run.stamp}",
            seed=record.test.seed,
            execution=record.execution,
            versions=record.test.versions,
        )


def compared(earlier: Earlier, settled: Settled, versions: Mapping[str, str], result: RunResult, folder: Run) -> Part:
    """Returns the part `repeatable` of a run that is to repeat an earlier one.

    Args:
        earlier: The earlier run.
        settled: The options of the run.
        versions: The versions of the run.
        result: What the run left.
        folder: The folder of the run, for the logs of two more runs, if these differ.
    """
    now = result.execution
    if now is None:
        return _part(Verdict.UNKNOWN, f"This run left no digest to compare with that of {earlier.label}.")
    if now.digest == earlier.execution.digest:
        calls = now.figures.get("calls", 0)
        return _part(Verdict.VALID, f"The programs did the same as in {earlier.label}, in each of {calls:,} calls.")
    text = f"The programs did not do the same as in {earlier.label}: {where(earlier.execution, now)}."
    changes = changed(earlier, now, versions)
    if changes:
        return _part(Verdict.UNKNOWN, f"{text} What changed around them: {'; '.join(changes)}.")
    return _part(
        Verdict.UNKNOWN,
        f"{text} The controller, the kernel, the processor and all versions are the same. {_two_more(settled, now, folder)}",
    )


def where(one: Execution, other: Execution) -> str:
    """Returns in which second of virtual time two different executions differ first."""
    first, second = (_seconds(execution.trace) for execution in (one, other))
    if not first or not second:
        return "nobody can say where, because one of them has no digests of its seconds"
    for number, (mine, others) in enumerate(zip(first, second, strict=False)):
        if mine != others:
            return f"equal for {number} s of virtual time, and different before {number + 1} s"
    ends = [execution.figures.get(TIMES, 0) / NS_PER_S for execution in (one, other)]
    same_s = min(len(first), len(second))
    return f"equal for {same_s} s of virtual time, and different later; they end at {ends[0]:.3f} s and {ends[1]:.3f} s"


def changed(earlier: Earlier, now: Execution, versions: Mapping[str, str]) -> list[str]:
    """Returns a clause for each thing around two executions that differs."""
    before = earlier.execution
    clauses = [] if before.controller == now.controller else ["Labrys has another controller"]
    pairs = {
        "the kernel": (before.kernel, now.kernel),
        "the processor": (before.processor, now.processor),
        **{
            f"the version of {name(component)}": (
                earlier.versions.get(component, "none"),
                versions.get(component, "none"),
            )
            for component in sorted({*earlier.versions, *versions})
        },
    }
    clauses += [
        f"{what} was {name(one, SHOWN)}, and is {name(other, SHOWN)}"
        for what, (one, other) in pairs.items()
        if one != other
    ]
    return clauses


def _two_more(settled: Settled, now: Execution, folder: Run) -> str:
    """Carries out two more runs with logs of calls. Returns what they show, and keeps the logs if they differ."""
    logs = [folder.path / file for file in CALL_FILES]
    try:
        digests = [_digest(settled, log) for log in logs]
    except LabrysError as error:
        return f"Two more runs with logs of calls did not come to their end: {one_line(str(error))}."
    try:
        said = first_of(*logs)
    finally:
        if digests[0] == digests[1]:
            for log in logs:
                log.unlink()
    if digests[0] != digests[1]:
        return f"Two more runs differ, too. {said} `labrys calls {' '.join(map(str, logs))}` shows it."
    if digests[0] == now.digest:
        return "Two more runs did the same as this one. So something has changed that no version tells, e.g. a library."
    return "Two more runs did the same, but not the same as this one. So something on this machine changed meanwhile."


def _digest(settled: Settled, log: Path) -> str:
    with carried_out(settled, lambda _: Unobserved(), calls=log) as (_, result, _):
        if result.execution is None:
            raise LabrysError(result.error or "a run was interrupted")
        return result.execution.digest


def first_of(one: Path, other: Path) -> str:
    """Returns a sentence about the first difference of two logs of calls."""
    with one.open("rb") as first, other.open("rb") as second:
        equal, difference = first_difference(first, second, before=0)
    return f"All {equal:,} lines of their logs are equal." if difference is None else difference.describe()


def _seconds(trace: str) -> list[str]:
    return [trace[index : index + SECOND_DIGITS] for index in range(0, len(trace), SECOND_DIGITS)]


def _part(verdict: Verdict, reason: str) -> Part:
    return Part(name=REPEATABLE, verdict=verdict, reason=reason, extra=True)
