"""Draws the runs of a hunt: the seed, the faults, the load and the settings of each, guided by the features of earlier runs.

A hunt is many runs, each with its own seed. Each run draws the length of its faults, the pauses between them, their
targets and options, and the rate of requests. Some bugs need a restart within an election timeout, others a long partition or
a time without writes. A run also draws the settings of the system whose declaration (`harness.declare`) has values for hunts. A
setting can hide a bug: pre-votes prevent most elections, and a client that gives up at once sends a new leader nothing.

- A blind hunt draws the kinds of faults evenly.
- A guided hunt prefers kinds that led to new features. Half of its runs take the kinds of an earlier run with a new feature,
  and change one of them. The other runs draw kinds, with larger weights for those with more new features.

A feature is new if no earlier run of the hunt had it. Features are: a kind of fault that took effect on a leader or on a
follower, two kinds at the same time, the number of leaders and terms, the distance between logs, and the errors of clients.

Algorithms: coverage-guided fuzzing (M. Zalewski, American Fuzzy Lop, 2013); swarm testing, which draws the settings of each
test (A. Groce, C. Zhang, E. Eide, Y. Chen, J. Regehr, "Swarm testing", ISSTA 2012).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from harness.leaders import LEADER
from harness.randomness import SEED_BITS, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from harness.op import Operation, Value
    from harness.run import RunResult
    from harness.watch import Sighting

MAX_KINDS = 4
MAX_KEPT = 64
AIMED_SHARE = 0.5  # the share of kinds that do not have their default target, if there is another one
SIMULATED_RHYTHMS = (  # --fault-on and --fault-off, in seconds
    ("0.5-3", "0.3-2"),
    ("0.1-0.4", "0.05-0.6"),  # a process is back before an election timeout is over
    ("0.4-1.2", "0.02-0.3"),  # one leader after another is hit
)
SIMULATED_RATES = (2.0, 8.0, 20.0)  # requests per second to each node
SIMULATED_NODES = (3, 5)  # with three nodes, a mistake of one node more often has an effect
# A real process starts in seconds, and a real election takes seconds.
RHYTHMS = (
    ("6-15", "4-12"),
    ("0.5-3", "0.5-4"),
    ("2-6", "0.2-2"),
)
RATES = (5.0, 20.0, 60.0)
FAULT_OPTIONS: Mapping[str, Sequence[Mapping[str, float]]] = {  # for each kind, the choices of its options
    "packet-delay": (
        {"delay_ms": 20, "jitter_ms": 10},
        {"delay_ms": 100, "jitter_ms": 50},
        {"delay_ms": 400, "jitter_ms": 200},  # longer than many elections
    ),
    "packet-duplicate": ({"percent": 20}, {"percent": 80}),
    "packet-loss": ({"probability": 0.2}, {"probability": 0.8}),
    "packet-reorder": ({"delay_ms": 20}, {"delay_ms": 200}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The values that the runs of a hunt draw from. Without kinds, all runs have given faults and differ only in the seed.

    Attributes:
        kinds: The kinds of faults.
        rhythms: The lengths of faults, each with the pauses between them.
        rates: The requests per second to each node.
        targets: For a kind, the targets besides its default target.
        settings: For an option of the system, or the number of nodes, by parameter name, its values.
    """

    kinds: Sequence[str] = ()
    rhythms: Sequence[tuple[str, str]] = SIMULATED_RHYTHMS
    rates: Sequence[float] = SIMULATED_RATES
    targets: Mapping[str, Sequence[str]] = field(default_factory=dict)
    settings: Mapping[str, Sequence[Value]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One run of a hunt.

    Attributes:
        number: The number of the run, from 0.
        seed: Its seed.
        kinds: Its kinds of faults. If all runs of the hunt have given faults, this and the rest are empty or 0.
        targets: The targets of those kinds that do not have their default target.
        fault_options: The drawn options of its kinds.
        fault_on: The length of its faults in seconds, e.g. `0.5-3`.
        fault_off: The pauses between faults of one kind, in seconds.
        rate: Requests per second to each node.
        settings: The drawn options of the system, and the number of nodes, by parameter name.
    """

    number: int
    seed: int
    kinds: tuple[str, ...] = ()
    targets: Mapping[str, str] = field(default_factory=dict)
    fault_options: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    fault_on: str = ""
    fault_off: str = ""
    rate: float = 0.0
    settings: Mapping[str, Value] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, Any]:
        """Returns the drawn options of `labrys test`; none if all runs of the hunt have given faults."""
        if not self.kinds:
            return {}
        aims = (f"{kind}:{self.targets[kind]}" if kind in self.targets else kind for kind in self.kinds)
        options = [
            f"{kind}.{name}={value:g}" for kind, own in self.fault_options.items() for name, value in own.items()
        ]
        return {
            "nemesis": ",".join(aims),
            "fault_options": ",".join(options),
            "fault_on": self.fault_on,
            "fault_off": self.fault_off,
            "rate": self.rate,
            **self.settings,
        }


class Chooser:
    """Draws the runs of a hunt. The same root seed and the same features give the same runs.

    Attributes:
        seen: The features of all runs so far.
    """

    def __init__(self, space: Space, *, seed: int, guided: bool) -> None:
        """Makes it.

        Args:
            space: The values to draw from.
            seed: The root seed of the hunt.
            guided: Whether it prefers kinds that led to new features.
        """
        self._space = space
        self._kinds = tuple(space.kinds)
        self._seed = seed
        self._guided = guided
        self._number = 0
        self._kept: list[tuple[str, ...]] = []
        self._runs = dict.fromkeys(self._kinds, 0)
        self._new_features = dict.fromkeys(self._kinds, 0)
        self.seen: set[str] = set()

    def draw(self) -> Draw:
        """Draws the next run."""
        number, self._number = self._number, self._number + 1
        random = stream(self._seed, f"hunt/{number}")
        seed = random.getrandbits(SEED_BITS)
        if not self._kinds:
            return Draw(number=number, seed=seed)
        fault_on, fault_off = random.choice(self._space.rhythms)
        rate = random.choice(self._space.rates)
        kinds = self._draw_kinds(random)
        return Draw(
            number=number,
            seed=seed,
            kinds=kinds,
            targets={
                kind: random.choice(self._space.targets[kind])
                for kind in kinds
                if self._space.targets.get(kind) and random.random() < AIMED_SHARE
            },
            fault_options={kind: random.choice(FAULT_OPTIONS[kind]) for kind in kinds if kind in FAULT_OPTIONS},
            fault_on=fault_on,
            fault_off=fault_off,
            rate=rate,
            settings={name: random.choice(values) for name, values in self._space.settings.items()},
        )

    def _draw_kinds(self, random: Random) -> tuple[str, ...]:
        if self._guided and self._kept and random.random() < 0.5:
            kinds = [*random.choice(self._kept)]
            other = random.choices(self._kinds, self._weights())[0]
            if len(kinds) > 1 and random.random() < 0.5:
                kinds.remove(random.choice(kinds))
            elif len(kinds) == MAX_KINDS:
                kinds[random.randrange(MAX_KINDS)] = other
            kinds = [*dict.fromkeys([*kinds, other])][:MAX_KINDS]
        else:
            count = random.randint(1, min(MAX_KINDS, len(self._kinds)))
            weights = self._weights() if self._guided else None
            kinds = [*dict.fromkeys(random.choices(self._kinds, weights, k=count))]
        return tuple(sorted(kinds))

    def learn(self, draw: Draw, features: Sequence[str]) -> int:
        """Takes the features of a run, and returns the number of new ones."""
        new = [feature for feature in features if feature not in self.seen]
        self.seen.update(new)
        for kind in draw.kinds:
            self._runs[kind] += 1
            self._new_features[kind] += len(new)
        if new and draw.kinds:
            self._kept = [*self._kept, draw.kinds][-MAX_KEPT:]
        return len(new)

    def _weights(self) -> list[float]:
        """Returns the weight of each kind: its new features per run, each count plus one, so that no weight is 0."""
        return [(1 + self._new_features[kind]) / (1 + self._runs[kind]) for kind in self._kinds]


def features_of(result: RunResult, operations: Sequence[Operation]) -> tuple[str, ...]:
    """Returns the features of a run as short texts, sorted and without repetition."""
    return tuple(sorted(set(_features(result, operations))))


def _features(result: RunResult, operations: Sequence[Operation]) -> Iterator[str]:
    sightings = result.sightings
    effective = [record for record in result.faults if record.proof is not None and record.proof.effective]
    for record in effective:
        roles = {_role_at(sightings, node, record.start_ns) for node in record.targets}
        yield from (f"{record.planned.kind} at {role}" for role in roles)
    for one, other in combinations(effective, 2):
        if one.start_ns < other.end_ns and other.start_ns < one.end_ns:
            nodes = "the same node" if {*one.targets} & {*other.targets} else "other nodes"
            yield f"{' and '.join(sorted((one.planned.kind, other.planned.kind)))} on {nodes}"
    terms = [seen.term for seen in sightings if seen.term is not None]
    leaders = {(seen.node, seen.term) for seen in sightings if seen.role == LEADER}
    yield f"leaders {_size(len(leaders))}"
    if terms:
        yield f"terms {_size(max(terms) - min(terms))}"
    applied = result.positions.applied
    apart = [
        max(indexes) - min(indexes)
        for each in zip(*applied.values(), strict=True)
        if (indexes := [index for index in each if index is not None])
    ]
    yield f"logs apart {_size(max(apart, default=0))}"
    for code in {operation.error.partition(":")[0] for operation in operations if operation.error}:
        yield f"error {code}"
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
