"""The members of `results.json` beside what was observed: the verdict, and what is measured from the record.

`results.record.record.Observations` has what was observed. `tools/results_schema.py` prints the schema of the reference from
these types and their docstrings. The types of measurements stand in `results.measure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - members are read by their annotations
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from harness.builds import Provenance  # noqa: TC001 - members are read by their annotations
from harness.console.members import Instant, Whole  # noqa: TC001 - likewise
from harness.faults import FaultRecord
from harness.watch import Sighting  # noqa: TC001 - likewise
from results.measure.availability import FaultAvailability, Window  # noqa: TC001 - likewise
from results.measure.leadership import Leadership  # noqa: TC001 - likewise
from results.record.record import Observations
from results.record.signatures import Signature, WarningClasses  # noqa: TC001 - likewise

Valid = bool | Literal["unknown"]


class StoredThreshold(Struct, frozen=True, kw_only=True):
    """A limit of `--threshold` or of the suite.

    Attributes:
        threshold: E.g. p99_ms < 200.
        measured: The number of the run; null if the run did not measure it.
        kept: Unknown if it is crossed and the control node was behind.
        crossed: A sentence if the run crossed it.
    """

    threshold: str
    measured: float | None
    kept: Valid
    crossed: str | None


class Counts(Struct, frozen=True, kw_only=True):
    """The operations by their outcome.

    Attributes:
        operations: All operations.
        ok: Those that ended ok.
        info: Those whose outcome is not known.
        fail: Those that ended with fail, without refusals.
        refused: Those that a node refused, with the name of the leader.
        by_f: The same for each function.
        errors: Error code (what precedes the first colon of an error) to count.
    """

    operations: Whole
    ok: Whole
    info: Whole
    fail: Whole
    refused: Whole
    by_f: dict[str, dict[str, Whole]]
    errors: dict[str, Whole]


class Quantiles(Struct, frozen=True, kw_only=True):
    """Quantiles of latencies in milliseconds, by nearest rank."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


class StoredPart(Struct, frozen=True, kw_only=True):
    """A named part of the verdict.

    Attributes:
        valid: Its verdict.
        reason: The reason, as a sentence.
        details: The part's own data.
        extra: Whether the verdict leaves it to the other parts where this one is "unknown".
    """

    valid: Valid
    reason: str
    details: dict[str, Any]
    extra: bool


class Led(Struct, frozen=True, kw_only=True):
    """The leaders in the two windows of `availability`."""

    during: Leadership
    after: Leadership | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFault(FaultRecord):
    """The record of a planned fault, with what is measured around it.

    Attributes:
        availability: Availability around it; null if it never began.
        leadership: The leaders in the two windows of `availability`.
    """

    availability: FaultAvailability | None
    leadership: Led | None


class RivalLeaders(Struct, frozen=True, kw_only=True):
    """A term in which more than one node reported that it led.

    Attributes:
        term: The term.
        sentence: Who said so, and when.
        claims: The reports of these nodes about themselves in this term.
    """

    term: int
    sentence: str
    claims: Sequence[Sighting]


class ServiceLeaders(Struct, frozen=True, kw_only=True):
    """The leaders of a service, or of a group of its nodes.

    Attributes:
        leadership: The leaders during the workload.
        rival_leaders: Terms in which more than one node reported that it led, at most 20.
    """

    leadership: Leadership
    rival_leaders: list[RivalLeaders]


class Violations(Struct, frozen=True, kw_only=True):
    """How many keys are invalid, and when the violation that was found in each happened.

    Attributes:
        total: All invalid keys.
        during_faults: Some fault whose effect was seen was on.
        after_faults: No fault was on, but one had been before.
        before_faults: No fault had been on yet.
    """

    total: Whole
    during_faults: Whole
    after_faults: Whole
    before_faults: Whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Results(Observations):
    """The verdict of one run, why, what was done to the system, and how it bore it.

    Times in seconds count from the workload's start unless said otherwise. Null always means: not observed.

    Attributes:
        format: The name of the format.
        version: Its version.
        valid: The verdict.
        reason: The sentence of the part that decided.
        test: The test's name.
        seed: The root seed; up to 63 bits, which is more than a double holds.
        reproduce: The command that runs the same again.
        thresholds: The limits of --threshold or of the suite, in their order.
        signature: What a run that is not as expected showed, without values, names and times; null for other runs.
        warnings: The classes of warnings and errors in the logs of the nodes, with their numbers of lines; null if nobody read
            the logs.
        started_utc: The time of its start.
        counts: The operations by their outcome.
        availability: How available the system was over the whole workload; null if nothing was asked.
        latency: For each function that was ever ok: quantiles (nearest rank) of its ok operations' latency in milliseconds,
            from when each was wanted. Reads after healing are left out.
        versions: The versions of Labrys and of the system under test.
        artifact: What the system built for the run; null if it builds nothing.
        promise: The sentences about the promise that the run tested; null if nobody asked.
        parts: The named parts of the verdict; the worst decides: false over "unknown" over true. An extra part that is
            "unknown" does not decide.
        faults: The faults, in the order of the plan.
        left_out: Kinds of faults that `--nemesis all` asks for and that are not in the plan, each with the reason: what which
            nodes lack, or that there was no room for it.
        defaults: The file of defaults and the options that it decided; null if it decided none.
        leadership: The leaders during the workload.
        rival_leaders: Terms in which more than one node reported that it led, at most 20.
        other_leaders: The leaders of the services that clients do not use, by role, and of groups of nodes, by role and group.
        violations: How many keys are invalid, and when the violation in each happened; null if no part counts them.
        counterexample: A small part of the history that shows the violation, from the first invalid part that gives one. It is
            usually an object with `key`, `explanation`, `operations`, `when` and `circumstances` (sentences: faults, leader,
            the node that answered). Violations during or after a fault come before others.
    """

    format: Literal["labrys-results"]
    version: Literal[3]
    valid: Valid
    reason: str
    test: str
    seed: int
    reproduce: str
    thresholds: list[StoredThreshold]
    signature: Signature | None
    warnings: WarningClasses | None
    started_utc: Instant
    counts: Counts
    availability: Window | None
    latency: dict[str, Quantiles]
    versions: Mapping[str, str]
    artifact: Provenance | None
    promise: str | None
    parts: dict[str, StoredPart]
    faults: Sequence[MeasuredFault]
    left_out: Mapping[str, str]
    defaults: Mapping[str, Any] | None
    leadership: Leadership
    rival_leaders: list[RivalLeaders]
    other_leaders: dict[str, ServiceLeaders]
    violations: Violations | None
    counterexample: dict[str, Any] | list[Any] | None
