"""How often and since when each cause is seen, and its state: new, open, known, came back, or gone.

The trials of a cause are the runs of the lines in which it was seen: the cases of suites, or tests outside of suites. Two
simulated runs of one command are one trial, because the seed repeats the run. The state follows from the nights:

- *gone*: the runs since the last night with it lack it, and the probability that chance alone does this is at most 5 %.
- *came back*: it was gone in between, and the newest night has it again.
- *known*: an entry of the folder of known causes matches it.
- *new*: the newest night is the first one with it.
- *open*: an earlier night had it, and it is not gone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from harness.suites.proportions import chance_of_none, interval
from results.causes.known import of_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from results.causes.cases import Case, Trial
    from results.causes.grouping import Group
    from results.causes.known import Known
    from results.causes.reading import Seen
    from results.record.signatures import Blame, Ended

GONE: Final = 0.05  # the probability of chance from which on an absence says nothing
MAX_SHOWN: Final = 200

State = Literal["new", "came back", "open", "known", "gone"]
FAILING: Final = frozenset({"new", "came back"})
_ORDER: Final = {"new": 0, "came back": 1, "open": 2, "known": 3, "gone": 4}


class Sight(Struct, frozen=True, kw_only=True):
    """A run that shows a cause.

    Attributes:
        night: Its night, as a date.
        release: The version of the program; empty if it is unknown.
        seed: Its seed, as text.
        run: Its name: its store, its test and the time of its start.
    """

    night: str
    release: str
    seed: str
    run: str


class Cause(Struct, frozen=True, kw_only=True):
    """A cause: a group of runs that are not as expected.

    Attributes:
        name: The key of its first symptom, with the defect if an experiment showed one.
        state: Its state.
        ended: How its runs ended.
        sentence: What it shows, without values, names and times.
        defect: The defect whose repair cures its runs; null if no experiment showed one.
        decided: What the experiments did, as sentences, at most 200.
        blame: What unknown runs and those that broke off are put down to; null for others.
        why: The rule for `blame`.
        parts: The parts that are not valid in some run of it, the most frequent first.
        systems: The systems.
        lines: The cases of suites, or the tests.
        runs: The number of trials that show it.
        trials: The number of trials on these lines.
        low: The lower end of the confidence interval (95 %, Wilson) of its rate.
        high: The upper end.
        first: The first run that shows it.
        last: The last run that shows it.
        smallest: The smallest run that shows it.
        command: The command that runs the smallest run again.
        absent: The number of trials on later nights, which lack it.
        chance: The probability that chance alone keeps it from these trials; null without such trials.
        known: The name of the matching entry; null without one.
        link: Its link.
        expired: The name of a matching entry that has expired; null without one.
        signatures: The keys of its symptoms, for an entry of known causes.
    """

    name: str
    state: State
    ended: Ended
    sentence: str
    defect: str | None
    decided: list[str]
    blame: Blame | None
    why: str
    parts: list[str]
    systems: list[str]
    lines: list[str]
    runs: int
    trials: int
    low: float
    high: float
    first: Sight
    last: Sight
    smallest: Sight
    command: str
    absent: int
    chance: float | None
    known: str | None
    link: str | None
    expired: str | None
    signatures: list[str]

    @property
    def fails(self) -> bool:
        """Returns whether a suite with `--fail-on new` fails by it."""
        return self.state in FAILING


def causes_of(seen: Seen, groups: Sequence[Group], known: Sequence[Known], today: date) -> list[Cause]:
    """Returns the causes: what is new first, and then those with the most runs.

    Args:
        seen: All runs.
        groups: The groups of those that are not as expected.
        known: The known causes.
        today: The day on which known causes must not have expired.
    """
    by_line: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in seen.trials:
        by_line[trial.software, trial.line].append(trial)
    newest = max((trial.night for trial in seen.trials), default=today)
    causes = [_cause(group, by_line, known, newest=newest, today=today) for group in groups]
    return sorted(causes, key=lambda cause: (_ORDER[cause.state], -cause.runs, cause.name))


def _cause(
    group: Group,
    by_line: dict[tuple[str, str], list[Trial]],
    known: Sequence[Known],
    *,
    newest: date,
    today: date,
) -> Cause:
    cases = group.cases
    lines = sorted({(case.trial.software, case.trial.line) for case in cases})
    trials = [trial for line in lines for trial in by_line[line]]
    nights = _nights(trials, [case.trial for case in cases])
    hits, runs = sum(hits for _, hits, _ in nights), sum(count for _, _, count in nights)
    low, high = interval(hits, runs)
    entry = of_group(group, known)
    in_time = entry if entry is not None and entry.counts_on(today) else None
    absent, chance = _absence(nights)
    by_time = sorted(cases, key=lambda case: (case.trial.night, case.name))
    smallest = cases[0]
    return Cause(
        name=group.name,
        state=_state(nights, newest=newest, chance=chance, is_known=in_time is not None),
        ended=smallest.signature.ended,
        sentence=_sentence(cases),
        defect=group.cause,
        decided=[decision.why for decision in group.decided.values()][:MAX_SHOWN],
        blame=smallest.signature.blame,
        why=smallest.signature.why,
        parts=_by_number(part for case in cases for part in case.signature.parts)[:MAX_SHOWN],
        systems=_by_number(case.trial.system for case in cases)[:MAX_SHOWN],
        lines=_by_number(case.trial.line for case in cases)[:MAX_SHOWN],
        runs=hits,
        trials=runs,
        low=low,
        high=high,
        first=_sight(by_time[0]),
        last=_sight(by_time[-1]),
        smallest=_sight(smallest),
        command=smallest.trial.reproduce,
        absent=absent,
        chance=chance,
        known=None if in_time is None else in_time.name,
        link=None if in_time is None else in_time.link,
        expired=None if entry is None or in_time is not None else entry.name,
        signatures=list(group.keys)[:MAX_SHOWN],
    )


def _by_number(words: Iterable[str]) -> list[str]:
    counts = Counter(words)
    return sorted(counts, key=lambda word: (-counts[word], word))


def _sentence(cases: Sequence[Case]) -> str:
    """Returns the first sentence of the most frequent symptom; of equal ones, that of the smallest run."""
    keys = Counter(case.symptom.key for case in cases)
    shown = max(cases, key=lambda case: keys[case.symptom.key])
    return next(iter(shown.signature.sentences), shown.symptom.sentence)


def _sight(case: Case) -> Sight:
    trial = case.trial
    return Sight(night=str(trial.night), release=trial.release, seed=trial.seed, run=trial.name)


Night = tuple["date", int, int]


def _nights(trials: Iterable[Trial], hits: Iterable[Trial]) -> list[Night]:
    """Returns each night with its trials that show a cause, and with all trials. Equal runs count on their first night."""
    shown = {trial.identity for trial in hits}
    first: dict[tuple[str, ...], date] = {}
    for trial in trials:
        first[trial.identity] = min(trial.night, first.get(trial.identity, trial.night))
    runs = Counter(first.values())
    with_it = Counter(night for identity, night in first.items() if identity in shown)
    return [(night, with_it[night], runs[night]) for night in sorted(runs)]


def _absence(nights: Sequence[Night]) -> tuple[int, float | None]:
    """Returns the number of trials since the last night with a cause, and the probability that chance alone does this."""
    last = max(index for index, (_, hits, _) in enumerate(nights) if hits)
    hits, runs = sum(hits for _, hits, _ in nights[: last + 1]), sum(count for _, _, count in nights[: last + 1])
    absent = sum(count for _, _, count in nights[last + 1 :])
    return absent, chance_of_none(hits, runs, absent) if absent else None


def _state(nights: Sequence[Night], *, newest: date, chance: float | None, is_known: bool) -> State:
    if chance is not None and chance <= GONE:
        return "gone"
    with_it = [index for index, (_, hits, _) in enumerate(nights) if hits]
    is_newest = nights[with_it[-1]][0] == newest
    if is_newest and len(with_it) > 1 and _was_gone(nights[: with_it[-1]]):
        return "came back"
    if is_known:
        return "known"
    return "new" if is_newest and len(with_it) == 1 else "open"


def _was_gone(nights: Sequence[Night]) -> bool:
    _, chance = _absence(nights)
    return chance is not None and chance <= GONE
