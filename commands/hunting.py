"""Draws the runs of a hunt: the seed, the faults and the load of each, guided by the features of earlier runs.

A hunt is many simulated runs, each with its own seed. Each run draws the length of its faults, the pauses between them, and the
rate of requests. Some bugs need a restart within an election timeout, others a long partition or a time without writes.

- A blind hunt draws the kinds of faults evenly.
- A guided hunt prefers kinds that led to new features. Half of its runs take the kinds of an earlier run with a new feature,
  and change one of them. The other runs draw kinds, with larger weights for those with more new features.

A feature is new if no earlier run of the hunt had it. Features are: a kind of fault that took effect on a leader or on a
follower, two kinds at the same time, the number of leaders and terms, the distance between logs, and the errors of clients.

Algorithm: coverage-guided fuzzing (M. Zalewski, American Fuzzy Lop, 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from harness.leaders import LEADER
from harness.randomness import SEED_BITS, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from commands.trial import Trial
    from harness.watch import Sighting

MAX_KINDS = 4
MAX_KEPT = 64
DELAY = "packet-delay"
RHYTHMS = (  # --fault-on and --fault-off, in seconds
    ("0.5-3", "0.3-2"),
    ("0.1-0.4", "0.05-0.6"),  # a process is back before an election timeout is over
    ("0.4-1.2", "0.02-0.3"),  # one leader after another is hit
)
RATES = (2.0, 8.0, 20.0)  # requests per second to each node
DELAYS_MS = (20, 100, 400)  # of packet-delay, on average: the last one is longer than many elections


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One run of a hunt.

    Attributes:
        number: The number of the run, from 0.
        seed: Its seed.
        kinds: Its kinds of faults. If all runs of the hunt have given faults, this and the rest are empty or 0.
        fault_on: The length of its faults in seconds, e.g. `0.5-3`.
        fault_off: The pauses between faults of one kind, in seconds.
        rate: Requests per second to each node.
        delay_ms: The mean delay of packets, if `packet-delay` is among the kinds.
    """

    number: int
    seed: int
    kinds: tuple[str, ...] = ()
    fault_on: str = ""
    fault_off: str = ""
    rate: float = 0.0
    delay_ms: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """Returns the drawn options of `labrys test`; none if all runs of the hunt have given faults."""
        if not self.kinds:
            return {}
        drawn = {
            "nemesis": ",".join(self.kinds),
            "fault_on": self.fault_on,
            "fault_off": self.fault_off,
            "rate": self.rate,
        }
        if DELAY in self.kinds:
            drawn["fault_options"] = f"{DELAY}.delay_ms={self.delay_ms},{DELAY}.jitter_ms={self.delay_ms // 2}"
        return drawn


class Chooser:
    """Draws the runs of a hunt. The same root seed and the same features give the same runs.

    Attributes:
        seen: The features of all runs so far.
    """

    def __init__(self, kinds: Sequence[str], *, seed: int, guided: bool) -> None:
        """Makes it.

        Args:
            kinds: The kinds to draw from; empty if all runs have given faults, so that only seeds are drawn.
            seed: The root seed of the hunt.
            guided: Whether it prefers kinds that led to new features.
        """
        self._kinds = tuple(kinds)
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
        fault_on, fault_off = random.choice(RHYTHMS)
        rate = random.choice(RATES)
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
        return Draw(
            number=number,
            seed=seed,
            kinds=tuple(sorted(kinds)),
            fault_on=fault_on,
            fault_off=fault_off,
            rate=rate,
            delay_ms=random.choice(DELAYS_MS),
        )

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


def features_of(trial: Trial) -> tuple[str, ...]:
    """Returns the features of a run as short texts, sorted and without repetition."""
    return tuple(sorted(set(_features(trial))))


def _features(trial: Trial) -> Iterator[str]:
    sightings = trial.result.sightings
    effective = [record for record in trial.result.faults if record.proof is not None and record.proof.effective]
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
    applied = trial.result.positions.applied
    apart = [
        max(indexes) - min(indexes)
        for each in zip(*applied.values(), strict=True)
        if (indexes := [index for index in each if index is not None])
    ]
    yield f"logs apart {_size(max(apart, default=0))}"
    for code in {operation.error.partition(":")[0] for operation in trial.operations if operation.error}:
        yield f"error {code}"
    recovery = trial.result.recovery
    if recovery is None or recovery.restarted:
        yield "no recovery without a restart"


def _role_at(sightings: Sequence[Sighting], node: str, time_ns: int) -> str:
    """Returns the role of a node at its last sighting before a time."""
    before = [seen for seen in sightings if seen.node == node and seen.time_ns <= time_ns]
    return (before[-1].role or "silent") if before else "unseen"


def _size(number: int) -> int:
    """Returns the largest of 0, 1, 2, 4, 8, ... that is not above a number."""
    return 0 if number <= 0 else 1 << int(math.log2(number))
