"""The members of `results.json`: each type describes one of them for the writer, the readers and the schema.

`tools/results_schema.py` prints `docs/reference/results.schema.json` from these types and their docstrings. The types of
measurements stand in `results.measure`. Members that earlier versions lack have a default, or are unset.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from harness.builds import Provenance  # noqa: TC001 - members are read by their annotations
from harness.console.members import Duration, Integer, Seconds, Whole  # noqa: TC001 - members are read by their annotations
from harness.phases import Phase  # noqa: TC001 - likewise
from harness.world import Execution  # noqa: TC001 - likewise
from results.measure.availability import FaultAvailability, Window  # noqa: TC001 - likewise
from results.measure.leadership import Leadership  # noqa: TC001 - likewise

Valid = bool | Literal["unknown"]
Instant = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
ZoneS = Annotated[int, Meta(ge=-86_400, le=86_400)]


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
        extra: Whether the verdict leaves it to the other parts where this one is "unknown". Missing in documents of earlier
            versions: false.
    """

    valid: Valid
    reason: str
    details: dict[str, Any]
    extra: bool = False


class StoredProof(Struct, frozen=True, kw_only=True):
    """The measurement of a fault while it was on.

    Attributes:
        reason: One sentence, with the numbers.
        measured: Data for the sentence.
    """

    reason: str
    measured: dict[str, Any]


class Led(Struct, frozen=True, kw_only=True):
    """The leaders in the two windows of `availability`."""

    during: Leadership
    after: Leadership | None


class StoredFired(Struct, frozen=True, kw_only=True):
    """What fired the trigger of a fault.

    Attributes:
        time_s: When Labrys saw it.
        what: The line, status, message or operation, in words that follow: it began.
        measured: Data for the words, such as the latency of a line.
    """

    time_s: Seconds
    what: str
    measured: dict[str, Any]


class StoredTrigger(Struct, frozen=True, kw_only=True):
    """The condition with which a planned fault begins.

    Attributes:
        name: As `labrys faults` lists it.
        limit_s: The longest time from the planned start for which the fault waits for the condition.
        parameters: The parameters of the condition.
    """

    name: str
    limit_s: Seconds
    parameters: dict[str, Any] | UnsetType = UNSET


class StoredPlan(Struct, frozen=True, kw_only=True):
    """The entry of a fault in the plan.

    Attributes:
        target: A word such as `leader`, or names of nodes.
        start_s: Its planned start.
        end_s: Its planned end.
        trigger: The condition with which it begins, at start_s or later; null: it begins at start_s. Files of earlier versions
            have wait_s, or neither.
        wait_s: In files of earlier versions: the longest time from start_s for which it waits for a rare message.
        options: The options of its kind.
    """

    target: str | list[str]
    start_s: Seconds
    end_s: Seconds
    trigger: StoredTrigger | UnsetType | None = UNSET
    wait_s: Seconds | UnsetType = UNSET
    options: dict[str, Any]


class StoredFault(Struct, frozen=True, kw_only=True):
    """A fault that began, or should have begun.

    Attributes:
        id: Its number in the plan.
        kind: Its kind, as `labrys faults` lists it.
        targets: The nodes that were hit.
        start_s: When it began to take effect at the earliest.
        end_s: When it was healed at the latest.
        effective: True only if the effect was seen.
        proof: The measurement; null if it never began.
        availability: Availability around it; null if it never began.
        leadership: The leaders in the two windows of `availability`.
        error: What went wrong with beginning, proving or healing it.
        details: Its own data, e.g. the pids that were killed.
        fired: What fired its trigger; null if it has none, or if the trigger never fired. Files of earlier versions lack it.
        effect: What happened to the nodes as a clause, if the effect was seen; empty if nobody says it. Files of earlier
            versions lack it.
        planned: Its entry in the plan.
    """

    id: Whole
    kind: str
    targets: list[str]
    start_s: Seconds
    end_s: Seconds
    effective: bool
    proof: StoredProof | None
    availability: FaultAvailability | None
    leadership: Led | None
    error: str | None
    details: dict[str, Any]
    fired: StoredFired | UnsetType | None = UNSET
    effect: str = ""
    planned: StoredPlan


class LeftOut(Struct, frozen=True, kw_only=True):
    """A kind of faults that `--nemesis all` asks for and that is not in the plan.

    Attributes:
        kind: The kind.
        reason: What which nodes lack, or that there was no room for it.
    """

    kind: str
    reason: str


class Defaults(Struct, frozen=True, kw_only=True):
    """The file of defaults, and the options that it decided."""

    file: str
    options: dict[str, Any]


class StoredSighting(Struct, frozen=True, kw_only=True):
    """What a node said about itself.

    Attributes:
        time_s: The first poll that saw it.
        node: The node.
        role: Its role. Null: it did not answer.
        term: Its term, if it told one.
        leader: The node that it believed to lead, if any.
        until_s: The last poll in a row that saw the same. Null: only the first is known. Absent in files of earlier versions.
    """

    time_s: Seconds
    node: str
    role: str | None
    term: Integer | None
    leader: str | None
    until_s: Seconds | UnsetType | None = UNSET


class Sightings(Struct, frozen=True, kw_only=True):
    """The member of a service that a reader needs."""

    sightings: list[StoredSighting]


class RivalLeaders(Struct, frozen=True, kw_only=True):
    """A term in which more than one node reported that it led.

    Attributes:
        term: The term.
        sentence: Who said so, and when.
        claims: The reports of these nodes about themselves in this term.
    """

    term: int
    sentence: str
    claims: list[StoredSighting]


class StoredService(Struct, frozen=True, kw_only=True):
    """The leaders of a service, or of a group of its nodes.

    Attributes:
        leadership: The leaders during the workload.
        rival_leaders: Terms in which more than one node reported that it led, at most 20.
        sightings: What its nodes said about themselves.
    """

    leadership: Leadership
    rival_leaders: list[RivalLeaders]
    sightings: list[StoredSighting]


class StoredPositions(Struct, frozen=True, kw_only=True):
    """How far each node had applied the log, poll by poll, of at most 5,000 polls that are evenly spread.

    Attributes:
        time_s: When each poll had its answers, ascending.
        applied: Node to its applied index in each of these polls. Null: it told none.
    """

    time_s: list[Seconds]
    applied: dict[str, list[Integer | None]]

    def __post_init__(self) -> None:
        for node, indexes in self.applied.items():
            if len(indexes) != len(self.time_s):
                raise ValueError(
                    f"expected {len(self.time_s)} applied indexes of {node}, as many as times, found {len(indexes)}"
                )


class StoredClock(Struct, frozen=True, kw_only=True):
    """The clock of a node.

    Attributes:
        offset_s: How far it is ahead of the control node's.
        uncertain_s: How far the offset may be wrong in either direction.
        zone_s: The time zone of its logs, in seconds east of UTC.
    """

    offset_s: Seconds
    uncertain_s: Seconds
    zone_s: ZoneS


class StoredClocks(Struct, frozen=True, kw_only=True):
    """The clocks of the nodes when the workload began, for the times of their logs.

    Attributes:
        began: The control node's time at the start of the workload.
        nodes: The clock of each node that told it.
        unknown: Each node without a clock, with the reason.
    """

    began: Instant
    nodes: dict[str, StoredClock]
    unknown: dict[str, str]


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


class StoredPromise(Struct, frozen=True, kw_only=True):
    """Which promise a run tested, and who makes it.

    Attributes:
        tested: The sentences of the report's first lines.
        sentence: The promise; null if the system does not say what it promises.
        source: Who makes it; null likewise.
        others: Options of the workload that ask for something else, as on the command line.
    """

    tested: str
    sentence: str | None
    source: str | None
    others: list[str]


class Results(Struct, frozen=True, kw_only=True):
    """The verdict of one run, why, what was done to the system, and how it bore it.

    Times in seconds count from the workload's start unless said otherwise. Null always means: not observed.

    Attributes:
        format: The name of the format.
        version: In version 1, `fail` of `counts` included the refusals, and there was no `by_f` of availability.
        valid: The verdict.
        reason: The sentence of the part that decided.
        test: The test's name.
        seed: The root seed; up to 63 bits, which is more than a double holds.
        reproduce: The command that runs the same again.
        thresholds: The limits of --threshold or of the suite, in their order. Missing in documents of earlier versions.
        started: The time of its start.
        duration_s: From the run's start to its verdict.
        counts: The operations by their outcome.
        availability: How available the system was over the whole workload; null if nothing was asked.
        latency: For each function that was ever ok: quantiles (nearest rank) of its ok operations' latency in milliseconds,
            from when each was wanted. Reads after healing are left out.
        versions: The versions of Labrys and of the system under test.
        artifact: What the system built for the run; null if it builds nothing. Missing in documents of earlier versions.
        promise: Which promise the run tested, and who makes it. Missing in documents of earlier versions.
        timings: Stage of the run to seconds.
        phases: The phases of the run, in the order of their starts. Phases can overlap. Missing in documents of earlier
            versions.
        problems: What went wrong beside the test itself.
        parts: The named parts of the verdict; the worst decides: false over "unknown" over true. An extra part that is
            "unknown" does not decide.
        faults: The faults, in the order of the plan.
        left_out: Kinds of faults that `--nemesis all` asks for and that are not in the plan, with the reason. Missing in
            documents of earlier versions.
        defaults: The file of defaults and the options that it decided; null if it decided none. Missing in documents of earlier
            versions.
        leadership: The leaders during the workload.
        rival_leaders: Terms in which more than one node reported that it led, at most 20. Absent in files of earlier versions.
        sightings: What nodes said about themselves until the replicas were compared; changes only, in the order of time.
        other_services: The leaders of the services that clients do not use, by role, and of groups of nodes, by role and group.
            Absent in files of earlier versions.
        positions: How far each node had applied the log. Absent in files of earlier versions.
        clocks: The clocks of the nodes; null if they were not read. Absent in files of earlier versions.
        execution: What the programs of a simulated world did; absent if there are none.
        violations: How many keys are invalid, and when the violation in each happened; null if no part counts them.
        counterexample: A small part of the history that shows the violation, from the first invalid part that gives one. It is
            usually an object with `key`, `explanation`, `operations`, `when` and `circumstances` (sentences: faults, leader,
            the node that answered). Violations during or after a fault come before others.
    """

    format: Literal["labrys-results"]
    version: Literal[2]
    valid: Valid
    reason: str
    test: str
    seed: int
    reproduce: str
    thresholds: list[StoredThreshold] | UnsetType = UNSET
    started: Instant
    duration_s: Duration
    counts: Counts
    availability: Window | None
    latency: dict[str, Quantiles]
    versions: dict[str, str]
    artifact: Provenance | UnsetType | None = UNSET
    promise: StoredPromise | UnsetType | None = UNSET
    timings: dict[str, Duration]
    phases: list[Phase] | UnsetType = UNSET
    problems: list[str]
    parts: dict[str, StoredPart]
    faults: list[StoredFault]
    left_out: list[LeftOut] | UnsetType = UNSET
    defaults: Defaults | UnsetType | None = UNSET
    leadership: Leadership
    rival_leaders: list[RivalLeaders] | UnsetType = UNSET
    sightings: list[StoredSighting]
    other_services: dict[str, StoredService] | UnsetType = UNSET
    positions: StoredPositions | UnsetType = UNSET
    clocks: StoredClocks | UnsetType | None = UNSET
    execution: Execution | UnsetType = UNSET
    violations: Violations | None
    counterexample: dict[str, Any] | list[Any] | None
