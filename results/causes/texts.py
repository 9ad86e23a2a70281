"""The page of causes as text for a terminal, as Markdown, and as JSON. What comes from stores is escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from harness.console.members import written
from harness.console.plain import counted, one_line
from results.causes.standing import Cause  # noqa: TC001 - members are read by their annotations
from results.words.markdown import quoted
from results.words.rates import rate_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from results.causes.reading import Seen

FORMAT: Final = "labrys-causes"
VERSION: Final = 1
MAX_NAMED: Final = 3
MAX_UNREAD: Final = 20
MAX_COMMAND: Final = 2_000

# The words for what a stripped sentence lacks.
_WORDS: Final = (
    (re.compile(r"\bProcess #"), "A process"),
    (re.compile(r"\bprocess #"), "a process"),
    (re.compile(r"\b(all|other) node\b"), r"\1 nodes"),
    (re.compile(r"(?<![\w#])# (fault|key|node|replica|read|write|value|line|message|operation)s?\b"), r"some \1s"),
    (re.compile(r"\bwas some\b"), "were some"),
    (re.compile(r"^NODE\b"), "A node"),
    (re.compile(r"\bNODE\b"), "a node"),
    (re.compile(r"#"), "…"),
)


class Page(Struct, frozen=True, kw_only=True):
    """The causes of the runs of some stores.

    Attributes:
        format: The name of the format.
        version: Its version.
        stores: The stores.
        nights: The nights with runs, as dates.
        runs: The number of runs.
        unexpected: The number of runs that are not as expected.
        running: The number of runs that still run, which are left out.
        unread: For each run that could not be read, the reason, at most 20.
        left_out: The number of runs that could not be read.
        computed: The number of signatures that were computed, because the runs are of an earlier version or broke off.
        experiments: What the experiments took, as a sentence.
        causes: The causes.
    """

    format: str
    version: int
    stores: list[str]
    nights: list[str]
    runs: int
    unexpected: int
    running: int
    unread: dict[str, str]
    left_out: int
    computed: int
    experiments: str
    causes: list[Cause]


def page_of(stores: list[str], seen: Seen, causes: list[Cause], experiments: str) -> Page:
    """Returns the page of causes."""
    return Page(
        format=FORMAT,
        version=VERSION,
        stores=stores,
        nights=sorted({str(trial.night) for trial in seen.trials}),
        runs=len(seen.trials),
        unexpected=len(seen.cases),
        running=seen.running,
        unread=dict(list(seen.unread.items())[:MAX_UNREAD]),
        left_out=len(seen.unread),
        computed=seen.computed,
        experiments=experiments,
        causes=causes,
    )


def json_of(page: Page) -> dict[str, Any]:
    """Returns the page as JSON."""
    document: dict[str, Any] = written(page)
    return document


def head_of(page: Page) -> Iterator[str]:
    """Yields the sentences before the causes."""
    nights = counted(len(page.nights), "night")
    yield (
        f"{counted(page.runs, 'run')} of {nights}; {page.unexpected:,} not as expected, of "
        f"{counted(len(page.causes), 'cause')}."
    )
    if page.experiments:
        yield page.experiments
    if page.computed:
        yield f"{counted(page.computed, 'signature')} computed now, because the runs lack them."
    if page.running:
        yield f"{counted(page.running, 'run')} left out: still running."
    if page.left_out:
        name, why = next(iter(page.unread.items()))
        first = f"{one_line(name)}: {one_line(why)}"
        yield f"{counted(page.left_out, 'run')} left out; the first: {first}"


def told(cause: Cause) -> str:
    """Returns the first sentence of a cause for people: with words for its nodes and numbers, and each clause once."""
    sentence, full_stop, _ = one_line(cause.sentence).partition(". ")
    for stripped, words in _WORDS:
        sentence = stripped.sub(words, sentence)
    clauses: list[str] = []
    for clause in sentence.split("; "):
        if not any(earlier.endswith(clause) for earlier in clauses):
            clauses.append(clause)
    return "; ".join(clauses) + full_stop.strip()


def rate_of(cause: Cause) -> str:
    """Returns the rate of a cause with its confidence interval."""
    return rate_text(cause.runs, cause.trials)


def state_of(cause: Cause) -> str:
    """Returns the state of a cause with its reason."""
    if cause.known is not None:
        return f"{cause.state}: known/{cause.known}.toml, {cause.link}"
    if cause.chance is not None:
        lacking = f"{counted(cause.absent, 'later run')} without it"
        return f"{cause.state}: {lacking}, by chance with a probability of {_probability(cause.chance)}"
    return f"{cause.state}; known/{cause.expired}.toml has expired" if cause.expired is not None else cause.state


def _probability(chance: float) -> str:
    return f"{chance:.2g}" if chance >= 1e-4 else "less than 0.0001"


def named(words: list[str]) -> str:
    """Returns the first words, and how many more there are."""
    shown = ", ".join(map(one_line, words[:MAX_NAMED]))
    return f"{shown} and {len(words) - MAX_NAMED} more" if len(words) > MAX_NAMED else shown


def seen_of(cause: Cause) -> str:
    """Returns when a cause was first and last seen."""
    sights = [
        f"{word} {seen.night}{f' in {one_line(seen.release)}' if seen.release else ''} with seed {one_line(seen.seed)}"
        for word, seen in (("first", cause.first), ("last", cause.last))
    ]
    return "; ".join(sights[: 1 if cause.first == cause.last else 2])


def facts_of(cause: Cause) -> Iterator[tuple[str, str]]:
    """Yields the words and the facts of a cause, beside its sentence and its state."""
    yield "rate", rate_of(cause)
    yield "in", f"{named(cause.systems)}: {named(cause.lines)}"
    yield "seen", seen_of(cause)
    if cause.blame is not None:
        yield "put down to", f"the {cause.blame}: {cause.why}"
    if cause.defect is not None:
        yield "defect", f"{cause.defect}: without it, the run is as expected"
    if cause.command:
        yield "run again", one_line(cause.command)
    yield "signatures", ", ".join(cause.signatures[:MAX_NAMED])


def text_of(page: Page) -> Iterator[str]:
    """Yields the lines for a terminal."""
    yield from head_of(page)
    for number, cause in enumerate(page.causes, 1):
        yield ""
        yield f"{number}. {state_of(cause)}"
        yield f"   {told(cause)}"
        for word, fact in facts_of(cause):
            yield f"   {word + ':':<12} {fact}"


def markdown_of(page: Page) -> Iterator[str]:
    """Yields the lines as Markdown."""
    yield "# Causes"
    yield ""
    for sentence in head_of(page):
        own, colon, foreign = sentence.partition(": ")
        yield f"- {own}{colon}{quoted(foreign, MAX_COMMAND)}" if colon else f"- {own}"
    if page.causes:
        yield ""
        yield "| state | what it shows | in | runs | seen | run again |"
        yield "|---|---|---|---|---|---|"
    for cause in page.causes:
        shown = quoted(told(cause))
        if cause.blame is not None:
            shown = f"{shown} Put down to the {cause.blame}: {cause.why}."
        if cause.defect is not None:
            shown = f"{shown} Defect: {quoted(cause.defect)}."
        yield (
            f"| {_state(cause)} | {shown} | {quoted(f'{named(cause.systems)}: {named(cause.lines)}')} | {rate_of(cause)} "
            f"| {quoted(seen_of(cause))} | {quoted(one_line(cause.command), MAX_COMMAND)} |"
        )


def _state(cause: Cause) -> str:
    """Returns the state; what follows it is foreign, such as a link."""
    state, colon, why = state_of(cause).partition(": ")
    return f"{state}{colon}{quoted(why)}" if colon else state
