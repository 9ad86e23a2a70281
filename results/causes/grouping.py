"""Puts runs that are not as expected into groups, one for each cause as far as symptoms and experiments tell.

1. Runs with the same key of their symptoms are a group, and groups whose symptoms are alike are joined.
2. Where the system runs in the simulator and its build has known defects that a rebuild can repair, symptoms leave doubt, and
   experiments decide. An experiment carries out a run of the group again, as it was and with one defect repaired. If the first
   is not as expected in the same part, and the second is not, then this defect is the cause of the run.
3. Of the runs of a group whose builds have the same defects, the smallest is decided, then the run that is least like those
   that are decided, until enough of them have one cause; else all. A run that is not decided goes to the decided run that it is
   most like, of those whose cause its own build has. If the defects of its build are unknown, as of an earlier night, it goes
   to one of the same case and release.
4. Groups with one cause become one group.

The groups depend only on the runs and on the results of experiments, not on the order of the runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from results.causes.symptoms import weight_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from results.causes.cases import Case
    from results.causes.symptoms import Symptom

ALIKE: Final = 0.75  # symptoms from this likeness on are of one group
SAME: Final = (
    3  # decided runs with one cause that settle a group; two of up to ten runs, or of builds with one known defect
)
SMALL: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The result of an experiment.

    Attributes:
        cause: The defect whose repair cures the run; None if none of those tried does.
        why: A sentence, with the runs that were carried out.
    """

    cause: str | None
    why: str


class Experiments(Protocol):
    """Decides the causes of runs by carrying them out again."""

    def decide(self, case: Case, first: Sequence[str]) -> Decided | None:
        """Returns the result for a run; None if the budget is used up.

        Args:
            case: The run.
            first: The repairs to try first, because they cure runs that are like it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs with one cause, as far as it is known.

    Attributes:
        cases: The runs, the smallest first.
        cause: The defect that experiments show; None if none decided.
        decided: The runs that experiments decided, by name.
        keys: The keys of the symptoms, the most frequent first.
    """

    cases: Sequence[Case]
    cause: str | None = None
    decided: Mapping[str, Decided] = field(default_factory=dict)

    @property
    def keys(self) -> Sequence[str]:
        """Returns the keys of its symptoms, the most frequent first."""
        counts: dict[str, int] = defaultdict(int)
        for case in self.cases:
            counts[case.symptom.key] += 1
        return sorted(counts, key=lambda key: (-counts[key], key))

    @property
    def name(self) -> str:
        """Returns the first key of its symptoms; with a cause, this too, because two causes can share a symptom."""
        return self.keys[0] if self.cause is None else f"{self.keys[0]} {self.cause}"


def grouped(cases: Iterable[Case], experiments: Experiments | None = None) -> list[Group]:
    """Returns the groups, that with the most runs first.

    Args:
        cases: The runs.
        experiments: Carries out experiments; None: symptoms alone decide.
    """
    groups = [Group(cases=alike) for alike in _by_symptoms(cases)]
    if experiments is not None:
        groups = _by_experiments(groups, experiments)
    return sorted(groups, key=lambda group: (-len(group.cases), group.name, group.cases[0].name))


def _smallest_first(cases: Iterable[Case]) -> list[Case]:
    return sorted(cases, key=lambda case: (case.trial.size, case.name))


def _by_symptoms(cases: Iterable[Case]) -> list[list[Case]]:
    """Returns the runs with alike symptoms: by keys, then by the likeness of the typical runs of two keys.

    Algorithm: prefix filtering (S. Chaudhuri, V. Ganti, R. Kaushik, "A primitive operator for similarity joins in data
    cleaning", ICDE 2006). Alike symptoms share one of the rarest traits of either, if these have more than the share of the
    weight that they may lack. So most keys are never compared.
    """
    by_key: dict[str, list[Case]] = defaultdict(list)
    for case in _smallest_first(cases):
        by_key[case.symptom.key].append(case)
    typical = {key: {case.symptom.traits: case for case in own[:SMALL]} for key, own in by_key.items()}
    numbers = Counter(trait for shown in typical.values() for traits in shown for trait in traits)
    joined: list[list[str]] = []
    having: dict[str, set[int]] = defaultdict(set)  # the numbers of the groups with a trait
    for key in sorted(by_key, key=lambda key: (-len(by_key[key]), key)):
        own = typical[key]
        rarest = {trait for case in own.values() for trait in _rarest(case.symptom, numbers)}
        near = sorted({number for trait in rarest for number in having[trait]})
        home = next((one for one in near if all(_alike(own, typical[other]) for other in joined[one])), len(joined))
        if home == len(joined):
            joined.append([])
        joined[home].append(key)
        for trait in {trait for traits in own for trait in traits}:
            having[trait].add(home)
    return [_smallest_first(case for key in keys for case in by_key[key]) for keys in joined]


def _rarest(symptom: Symptom, numbers: Mapping[str, int]) -> Iterator[str]:
    """Yields the rarest traits of a symptom, one of which each alike symptom has."""
    left = symptom.weight
    for trait in sorted(symptom.traits, key=lambda trait: (numbers[trait], trait)):
        if left < ALIKE * symptom.weight:
            return
        yield trait
        left -= weight_of(trait)


def _alike(ours: Mapping[frozenset[str], Case], theirs: Mapping[frozenset[str], Case]) -> bool:
    """Returns whether the runs of two keys are alike: they end alike, and their most alike smallest runs are."""
    one, two = next(iter(ours.values())), next(iter(theirs.values()))
    if one.signature.ended != two.signature.ended or one.trial.software != two.trial.software:
        return False
    return any(a.symptom.likeness(b.symptom) >= ALIKE for a in ours.values() for b in theirs.values())


def _by_experiments(groups: Sequence[Group], experiments: Experiments) -> list[Group]:
    causes: dict[tuple[str, str], list[Case]] = defaultdict(list)
    decided: dict[str, Decided] = {}
    divided: list[Group] = []
    for group in sorted(groups, key=lambda group: (-len(group.cases), group.name)):
        own = _decided(group, experiments, known=[cause for _, cause in causes])
        decided |= own
        shown = {name: decision.cause for name, decision in own.items() if decision.cause is not None}
        left = []
        for case in group.cases:
            cause = shown.get(case.name) if case.name in own else _nearest(case, group.cases, shown)
            if cause is None:
                left.append(case)
            else:
                causes[case.trial.software, cause].append(case)
        if left:
            divided.append(Group(cases=left, decided={name: own[name] for name in own if name not in shown}))
    for (_, cause), cases in causes.items():
        names = {case.name for case in cases}
        kept = {name: decision for name, decision in decided.items() if name in names}
        divided.append(Group(cases=_smallest_first(cases), cause=cause, decided=kept))
    return divided


def _decided(group: Group, experiments: Experiments, known: Sequence[str]) -> dict[str, Decided]:
    """Returns the results of the experiments that a group needs.

    Runs of builds with the same defects are decided together: a few of them if these have one cause, else all.
    """
    decisions: dict[str, Decided] = {}
    by_build: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for case in group.cases:
        if case.repairs:
            by_build[tuple(case.repairs)].append(case)
    for repairs in sorted(by_build, key=lambda repairs: (-len(by_build[repairs]), repairs)):
        cases = by_build[repairs]
        needed = SAME if len(cases) > SMALL and len(repairs) > 1 else SAME - 1
        open_cases, own = list(cases), dict[str, Decided]()
        while open_cases and not (len(own) >= needed and len({decision.cause for decision in own.values()}) == 1):
            case = _least_alike(open_cases, [member for member in cases if member.name in own])
            shown = [
                decision.cause
                for decision in reversed([*decisions.values(), *own.values()])
                if decision.cause is not None
            ]
            result = experiments.decide(
                case, [repair for repair in dict.fromkeys([*shown, *known]) if repair in repairs]
            )
            if result is None:
                return decisions | own
            own[case.name] = result
            open_cases.remove(case)
        decisions |= own
    return decisions


def _least_alike(cases: Sequence[Case], decided: Sequence[Case]) -> Case:
    """Returns the smallest run at first, and then the run that is least like those that are decided."""
    if not decided:
        return cases[0]
    return min(cases, key=lambda case: max(case.symptom.likeness(other.symptom) for other in decided))


def _nearest(case: Case, cases: Sequence[Case], causes: Mapping[str, str]) -> str | None:
    """Returns the cause of the decided run that a run is most like, of the causes that its own build has; None without one."""
    near = [other for other in cases if other.name in causes and _can_share(case, other, causes[other.name])]
    best = max(near, key=lambda other: case.symptom.likeness(other.symptom), default=None)
    return None if best is None else causes[best.name]


def _can_share(case: Case, other: Case, cause: str) -> bool:
    """Returns whether the build of a run has the defect of another, decided run."""
    if case.repairs is not None:
        return cause in case.repairs
    one, two = case.trial, other.trial
    return (one.software, one.line, one.release) == (two.software, two.line, two.release)
