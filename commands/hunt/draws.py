"""Draws the runs of a hunt: the seed, the faults, the load and the settings of each, guided by the features of earlier runs.

A hunt is many runs, each with its own seed. Each run draws the length of its faults, the pauses between them, their
targets and options, and the rate of requests. Some bugs need a restart within an election timeout, others a long partition or
a time without writes. A run also draws those settings of the system and the workload whose declaration (`harness.declare`) has
values for hunts. A setting can hide a bug: pre-votes prevent most elections, and a client that gives up at once sends a new
leader nothing. If the hunt has triggers, half of the runs have a kind that waits for a drawn one, and may hit the node that it
names.

- A blind hunt draws everything evenly.
- A guided hunt keeps the runs that had a new feature. Half of its runs are such a run with one change: a kind of fault more,
  less or another one, other targets or triggers, or another rhythm, rate or setting. Of some kept runs, it changes the most
  eventful one. The other runs are drawn as in a blind hunt.

A feature is new if no earlier run of the hunt had it. Features are: a kind of fault that took effect on a leader or on a
follower, the number of leaders and terms, the distance between logs, the longest time without an answer, and the errors of
clients.

A run is eventful if it had many leaders and many indeterminate operations. 1,872 blind runs of a simulated Raft with eight
planted bugs had 42 finds. The 1,024 runs without an indeterminate operation had two of them, and the 385 runs with one leader
or none had none. The 427 runs with four or more of both had 30.

Algorithms: coverage-guided fuzzing (M. Zalewski, American Fuzzy Lop, 2013); tournament selection (D. E. Goldberg, K. Deb, FOGA
1991); swarm testing, which draws the settings of each test (A. Groce, C. Zhang, E. Eide, Y. Chen, J. Regehr, "Swarm testing",
ISSTA 2012).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from harness.faults import RARE_MESSAGE, Trigger
from harness.leaders import LEADER
from harness.op import OpType
from harness.randomness import SEED_BITS, stream
from nemesis.asked import Asked, ByKind, KindOptions, Request, Span
from nemesis.kinds import find_kind
from nemesis.options import draw as draw_options
from nemesis.targets import TRIGGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from harness.op import Operation, Value
    from harness.run import RunResult
    from harness.watch import Sighting
    from nemesis.targets import Target

WAIT = "fault_wait"  # the parameter of --fault-wait
MAX_KINDS = 4
CHANGED_SHARE = 0.5  # the share of runs that are changes of earlier ones
CANDIDATES = 4  # kept runs, the most eventful of which is changed
GAP_NS = 100_000_000
AIMED_SHARE = 0.5  # the share of kinds that do not have their default target, if there is another one
TRIGGERED_SHARE = 0.5  # the share of runs with a trigger, if runs draw triggers
SIMULATED_RHYTHMS = (  # --fault-on and --fault-off
    (Span(0.5, 3.0), Span(0.3, 2.0)),
    (Span(0.03, 0.4), Span(0.05, 0.6)),  # a process is back before an election timeout is over
    (Span(0.4, 1.2), Span(0.02, 0.3)),  # one leader after another is hit
)
SIMULATED_RATES = (2.0, 8.0, 20.0)  # requests per second to each node
SIMULATED_WAITS_S = (0.0, 0.5)  # --fault-wait
SIMULATED_LIMITS_S = (0.5, 2.0)  # --fault-wait of runs with a trigger, if it would be 0
SIMULATED_NODES = (3, 5)  # with three nodes, a mistake of one node more often has an effect
# A real process starts in seconds, and a real election takes seconds.
RHYTHMS = (
    (Span(6.0, 15.0), Span(4.0, 12.0)),
    (Span(0.5, 3.0), Span(0.5, 4.0)),
    (Span(2.0, 6.0), Span(0.2, 2.0)),
)
RATES = (5.0, 20.0, 60.0)
LIMITS_S = (3.0, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The values that the runs of a hunt draw from. Without kinds, all runs have given faults and differ only in the seed.

    Attributes:
        kinds: The kinds of faults.
        rhythms: The lengths of faults, each with the pauses between them.
        rates: The requests per second to each node.
        targets: For a kind, the targets besides its default target.
        settings: For a further option of the run, e.g. of the system, by parameter name, its values.
        needed: Groups of kinds, because of a planted bug. Each run has a kind of each group.
        triggers: The conditions with which faults can begin; without one, runs draw none.
        limits_s: The longest times for which a fault waits for its trigger, if the run does not wait for rare messages.
        naming: The names of those triggers that name a node.
        aimed: The kinds that can hit the node of their trigger.
    """

    kinds: Sequence[str] = ()
    rhythms: Sequence[tuple[Span, Span]] = SIMULATED_RHYTHMS
    rates: Sequence[float] = SIMULATED_RATES
    targets: Mapping[str, Sequence[Target]] = field(default_factory=dict)
    settings: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    needed: Sequence[Sequence[str]] = ()
    triggers: Sequence[Trigger] = ()
    limits_s: Sequence[float] = SIMULATED_LIMITS_S
    naming: frozenset[str] = frozenset()
    aimed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One run of a hunt.

    Attributes:
        number: The number of the run, from 0.
        seed: Its seed.
        kinds: Its kinds of faults. If all runs of the hunt have given faults, this and the rest are empty or 0.
        targets: The targets of those kinds that do not have their default target.
        fault_options: The drawn options of its kinds.
        fault_on: The length of its faults.
        fault_off: The pauses between faults of one kind.
        rate: Requests per second to each node.
        settings: The other drawn options of the run, by parameter name.
        triggers: The trigger of the kind that has one.
        limit_s: The longest time in seconds for which a fault waits for its trigger.
        start_seed: The seed of the start of its nodes, which it shares with other runs; None: it has its own start.
    """

    number: int
    seed: int
    kinds: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    fault_options: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    fault_on: Span = SIMULATED_RHYTHMS[0][0]
    fault_off: Span = SIMULATED_RHYTHMS[0][1]
    rate: float = 0.0
    settings: Mapping[str, Value] = field(default_factory=dict)
    triggers: Mapping[str, Trigger] = field(default_factory=dict)
    limit_s: float = 0.0
    start_seed: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Returns the drawn values of options, by parameter name; if all runs have given faults, at most that of the start."""
        start = {} if self.start_seed is None else {"start_seed": self.start_seed}
        if not self.kinds:
            return start
        return {
            **start,
            "nemesis": Request(tuple(Asked(kind=kind, aim=self.targets.get(kind)) for kind in self.kinds)),
            "fault_options": KindOptions(self.fault_options),
            "fault_on": ByKind(self.fault_on),
            "fault_off": ByKind(self.fault_off),
            "rate": self.rate,
            **self.settings,
            **self._trigger_options(),
        }

    def _trigger_options(self) -> dict[str, Any]:
        """Returns the options of the triggers. The kinds without one still wait for rare messages if the run does."""
        if not self.triggers:
            return {}
        wait_s = self.settings.get(WAIT)
        every = Trigger(name=RARE_MESSAGE, limit_s=0.0) if wait_s else None
        return {"fault_trigger": ByKind(every, self.triggers), WAIT: wait_s or self.limit_s}


class Chooser:
    """Draws the runs of a hunt. The same root seed and the same features give the same runs."""

    def __init__(self, space: Space, *, seed: int, guided: bool, copies: int = 1) -> None:
        """Makes it.

        Args:
            space: The values to draw from.
            seed: The root seed of the hunt.
            guided: Whether half of the runs are changes of runs with new features.
            copies: How many runs share a start, and with it their settings.
        """
        self._copies = copies
        self._space = space
        self._kinds = tuple(space.kinds)
        self._seed = seed
        self._guided = guided
        self._number = 0
        # The runs with a new feature: how eventful they were, their numbers, and their draws.
        self._kept: list[tuple[float, int, Draw]] = []
        self._seen: set[str] = set()

    @property
    def seen(self) -> int:
        """Returns the number of features of all runs so far."""
        return len(self._seen)

    def draw(self) -> Draw:
        """Draws the next run."""
        number, self._number = self._number, self._number + 1
        random = stream(self._seed, f"hunt/{number}")
        start = self._start(number)
        seed = random.getrandbits(SEED_BITS)
        if not self._kinds:
            return replace(start, seed=seed)
        fresh = self._fresh(random, replace(start, seed=seed))
        # With a stream of its own, so that runs draw the rest as without triggers.
        fresh = self._with_triggers(fresh, stream(self._seed, f"hunt/{number}/triggers"))
        if not self._guided or not self._kept or random.random() >= CHANGED_SHARE:
            return fresh
        _, _, kept = max(random.sample(self._kept, min(CANDIDATES, len(self._kept))))
        return self._changed(kept, fresh, random)

    def _start(self, number: int) -> Draw:
        """Returns what a run shares with the others of its start."""
        draw = Draw(number=number, seed=0)
        if self._copies == 1:
            return draw
        random = stream(self._seed, f"hunt/start/{number // self._copies}")
        return replace(draw, start_seed=random.getrandbits(SEED_BITS), settings=self._settings(random))

    def _settings(self, random: Random) -> Mapping[str, Value]:
        return {name: random.choice(values) for name, values in self._space.settings.items()}

    def _fresh(self, random: Random, start: Draw) -> Draw:
        fault_on, fault_off = random.choice(self._space.rhythms)
        rate = random.choice(self._space.rates)
        count = random.randint(1, min(MAX_KINDS, len(self._kinds)))
        kinds = self._with_needed([*dict.fromkeys(random.choices(self._kinds, k=count))], random)
        return replace(
            self._with_kinds(start, kinds, random),
            fault_on=fault_on,
            fault_off=fault_off,
            rate=rate,
            settings=self._settings(random) if self._copies == 1 else start.settings,
        )

    def _with_needed(self, kinds: list[str], random: Random) -> list[str]:
        """Returns kinds with one of each group that the runs need. If there are too many kinds, another one goes."""
        for group in self._space.needed:
            if any(kind in group for kind in kinds):
                continue
            others = [kind for kind in kinds if not any(kind in needed for needed in self._space.needed)]
            if len(kinds) >= MAX_KINDS and others:
                kinds.remove(random.choice(others))
            kinds.append(random.choice(group))
        return kinds

    def _with_kinds(self, draw: Draw, kinds: Iterable[str], random: Random) -> Draw:
        """Returns a draw with other kinds. Kinds that it had before keep their targets, options and triggers."""
        kinds = tuple(sorted(kinds))
        targets = {kind: target for kind, target in draw.targets.items() if kind in kinds}
        targets |= {
            kind: random.choice(self._space.targets[kind])
            for kind in kinds
            if kind not in draw.kinds and self._space.targets.get(kind) and random.random() < AIMED_SHARE
        }
        drawn = {kind: draw.fault_options.get(kind) or _options(kind, random) for kind in kinds}
        options = {kind: values for kind, values in drawn.items() if values}
        triggers = {kind: trigger for kind, trigger in draw.triggers.items() if kind in kinds}
        return replace(draw, kinds=kinds, targets=targets, fault_options=options, triggers=triggers)

    def _with_triggers(self, draw: Draw, random: Random) -> Draw:
        """Returns a draw with another trigger or without one, if runs draw triggers. The kind may hit the node of its trigger.

        One kind at most has a trigger: a fault whose trigger never fires does nothing, and such a run would test little.
        """
        space = self._space
        if not space.triggers:
            return draw
        triggers: dict[str, Trigger] = {}
        targets = {kind: target for kind, target in draw.targets.items() if target != TRIGGER}
        if random.random() < TRIGGERED_SHARE:
            kind, trigger = random.choice(draw.kinds), random.choice(space.triggers)
            triggers = {kind: trigger}
            if trigger.name in space.naming and kind in space.aimed and random.random() < AIMED_SHARE:
                targets[kind] = TRIGGER
        return replace(draw, triggers=triggers, targets=targets, limit_s=random.choice(space.limits_s))

    def _changed(self, kept: Draw, fresh: Draw, random: Random) -> Draw:
        """Returns a kept run with one change, and with the number and the seed of a fresh one."""
        base = replace(kept, number=fresh.number, seed=fresh.seed, start_seed=fresh.start_seed)
        triggers = ("triggers",) if self._space.triggers else ()
        settings: tuple[str, ...] = (*base.settings,)
        if self._copies > 1:
            base, settings = replace(base, settings=fresh.settings), ()
        what = random.choice(("kinds", "kinds", "rhythm", "rate", *triggers, *settings))
        if what == "rhythm":
            return replace(base, fault_on=fresh.fault_on, fault_off=fresh.fault_off)
        if what == "rate":
            return replace(base, rate=fresh.rate)
        if what == "triggers":
            return self._with_triggers(base, random)
        if what in base.settings:
            return replace(base, settings={**base.settings, what: fresh.settings[what]})
        kinds, others = [*base.kinds], [kind for kind in self._kinds if kind not in base.kinds]
        less, more = len(kinds) > 1, bool(others) and len(kinds) < MAX_KINDS
        steps = [("less", less), ("more", more), ("another", bool(others)), ("aims", True)]
        step = random.choice([name for name, possible in steps if possible])
        if step == "aims":  # other targets and options of the same kinds
            drawn = self._with_kinds(replace(base, kinds=(), targets={}, fault_options={}), kinds, random)
            return self._with_triggers(drawn, random)
        if step != "more":
            kinds.remove(random.choice(kinds))
        if step != "less":
            kinds.append(random.choice(others))
        return self._with_kinds(base, self._with_needed(kinds, random), random)

    def learn(self, draw: Draw, behaviour: Behaviour) -> int:
        """Takes what a run showed, and returns the number of new features."""
        new = len(behaviour.features - self._seen)
        self._seen |= behaviour.features
        if new and draw.kinds:
            self._kept.append((behaviour.eventful, draw.number, draw))
        return new


def _options(kind: str, random: Random) -> Mapping[str, Value]:
    return draw_options(find_kind(kind).fault.OPTIONS, random)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What a run showed to a hunt.

    Attributes:
        features: Its features, as short texts.
        eventful: How eventful it was: the number of leaders, times the logarithm of the number of indeterminate operations.
    """

    features: frozenset[str] = frozenset()
    eventful: float = 0.0


def behaviour_of(result: RunResult, operations: Sequence[Operation]) -> Behaviour:
    """Returns what a run showed."""
    indeterminate = sum(operation.type is OpType.INFO for operation in operations)
    return Behaviour(
        features=frozenset(_features(result, operations)),
        eventful=len(_leaders(result)) * math.log2(1 + indeterminate),
    )


def _leaders(result: RunResult) -> set[tuple[str, int | None]]:
    return {(seen.node, seen.term) for seen in result.sightings if seen.role == LEADER}


def _features(result: RunResult, operations: Sequence[Operation]) -> Iterator[str]:
    sightings = result.sightings
    effective = [record for record in result.faults if record.proof is not None and record.proof.effective]
    for record in effective:
        roles = {_role_at(sightings, node, record.start_ns) for node in record.targets}
        yield from (f"{record.planned.kind} at {role}" for role in roles)
    terms = [seen.term for seen in sightings if seen.term is not None]
    yield f"leaders {_size(len(_leaders(result)))}"
    if terms:
        yield f"terms {_size(max(terms) - min(terms))}"
    applied = result.positions.applied
    apart = [
        max(indexes) - min(indexes)
        for at_poll in zip(*applied.values(), strict=True)
        if (indexes := [index for index in at_poll if index is not None])
    ]
    yield f"logs apart {_size(max(apart, default=0))}"
    for code in {operation.error.partition(":")[0] for operation in operations if operation.error}:
        yield f"error {code}"
    answered_ns = sorted(
        operation.end_ns for operation in operations if operation.type is OpType.OK and operation.end_ns
    )
    gaps_ns = [after - before for before, after in pairwise(answered_ns)]
    yield f"no answer for {_size(max(gaps_ns, default=0) // GAP_NS)} of 100 ms"
    recovery = result.recovery
    if recovery is None or recovery.restarted:
        yield "no recovery without a restart"


def _role_at(sightings: Sequence[Sighting], node: str, time_ns: int) -> str:
    """Returns the role of a node at its last sighting before a time."""
    before = [seen for seen in sightings if seen.node == node and seen.time_ns <= time_ns]
    return (before[-1].role or "silent") if before else "unseen"


def _size(number: int) -> int:
    """Returns the largest of 0, 1, 2, 4, 8, ... that is not above a number."""
    return 0 if number <= 0 else 1 << int(math.log2(number))
