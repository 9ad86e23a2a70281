"""The search for a seed that finds something: which faults each run of a hunt has, and what was new in it.

A hunt is many simulated runs, each with a seed of its own. Each run draws how long its faults last, how soon they follow each
other, and how many requests clients send: some mistakes need a restart within an election timeout, others a long partition,
and others a moment without writes. Blind, each run draws its kinds of faults evenly. Guided, half of the runs take the kinds of
an earlier run that showed something new, and change one of them. The others draw kinds, those more often that brought something
new. What counts as new is a feature that no run of the hunt had before: a kind of fault that took effect on a leader or on a
follower, two kinds at the same time, the number of leaders and terms, how far logs were apart, and which errors clients met.
The idea is that of coverage-guided fuzzing (M. Zalewski, American Fuzzy Lop, 2013).
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

MOST_KINDS = 4
MOST_KEPT = 64
DELAY = "packet-delay"
RHYTHMS = (  # how long faults last and the pauses between those of one kind, both in seconds as `labrys test` takes them
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
        number: Which run it is, from 0.
        seed: Its seed.
        kinds: Its kinds of faults; empty where the hunt was given its faults.
        fault_on: How long its faults last; empty likewise, as the rest.
        fault_off: The pauses between those of one kind.
        rate: Requests per second to each node.
        delay_ms: How late packets are on average, where `packet-delay` is among the kinds.
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
        """Returns the options of `labrys test` that it draws; none where the hunt was given its faults."""
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
    """Draws the runs of a hunt. The same root seed and the same told features give the same runs.

    Attributes:
        seen: The features that runs had so far.
    """

    def __init__(self, kinds: Sequence[str], *, seed: int, guided: bool) -> None:
        """Makes it.

        Args:
            kinds: The kinds to choose from; none: the hunt was given its faults, and only seeds are drawn.
            seed: The root seed of the hunt.
            guided: Whether it learns from what is new.
        """
        self._kinds = tuple(kinds)
        self._seed = seed
        self._guided = guided
        self._number = 0
        self._kept: list[tuple[str, ...]] = []
        self._runs = dict.fromkeys(self._kinds, 0)
        self._news = dict.fromkeys(self._kinds, 0)
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
            elif len(kinds) == MOST_KINDS:
                kinds[random.randrange(MOST_KINDS)] = other
            kinds = [*dict.fromkeys([*kinds, other])][:MOST_KINDS]
        else:
            count = random.randint(1, min(MOST_KINDS, len(self._kinds)))
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

    def told(self, draw: Draw, features: Sequence[str]) -> int:
        """Takes notice of what a run had, and returns how much of it was new."""
        new = [feature for feature in features if feature not in self.seen]
        self.seen.update(new)
        for kind in draw.kinds:
            self._runs[kind] += 1
            self._news[kind] += len(new)
        if new and draw.kinds:
            self._kept = [*self._kept, draw.kinds][-MOST_KEPT:]
        return len(new)

    def _weights(self) -> list[float]:
        """Returns how likely each kind is: by the news of its runs, and none ever out of the question."""
        return [(1 + self._news[kind]) / (1 + self._runs[kind]) for kind in self._kinds]


def features_of(trial: Trial) -> tuple[str, ...]:
    """Returns what a run showed, as short texts without repetition, sorted."""
    return tuple(sorted(set(_features(trial))))


def _features(trial: Trial) -> Iterator[str]:
    sightings = trial.result.sightings
    shown = [record for record in trial.result.faults if record.proof is not None and record.proof.effective]
    for record in shown:
        roles = {_role_at(sightings, node, record.start_ns) for node in record.targets}
        yield from (f"{record.planned.kind} at {role}" for role in roles)
    for one, other in combinations(shown, 2):
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
        max(told) - min(told)
        for each in zip(*applied.values(), strict=True)
        if (told := [index for index in each if index is not None])
    ]
    yield f"logs apart {_size(max(apart, default=0))}"
    for code in {operation.error.partition(":")[0] for operation in trial.operations if operation.error}:
        yield f"error {code}"
    recovery = trial.result.recovery
    if recovery is None or recovery.restarted:
        yield "no recovery without a restart"


def _role_at(sightings: Sequence[Sighting], node: str, time_ns: int) -> str:
    """Returns the role in which a node was last seen before a time."""
    before = [seen for seen in sightings if seen.node == node and seen.time_ns <= time_ns]
    return (before[-1].role or "silent") if before else "unseen"


def _size(number: int) -> int:
    """Returns a number in the steps 0, 1, 2, 4, 8 and so on."""
    return 0 if number <= 0 else 1 << int(math.log2(number))
