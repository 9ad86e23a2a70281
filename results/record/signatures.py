"""The signature of a run that is not as expected: what it showed, without the values, names and times of this one run.

Two runs that meet one defect have similar signatures, whatever their seeds are. `results.signatures` makes them, and
`results.json` has them. A file may come from anyone, so each text and each list has a maximum size.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from harness.console.members import Whole

MAX_LISTED: Final = 64
MAX_SENTENCE: Final = 400
MAX_CLASS: Final = 160
MAX_CLASSES: Final = 60  # of warning lines in a run
SILENT: Final = "silent"  # the role of a node that did not answer

Sentence = Annotated[str, Meta(max_length=MAX_SENTENCE)]
Word = Annotated[str, Meta(max_length=MAX_CLASS)]
Words = Annotated[list[Word], Meta(max_length=MAX_LISTED)]
WarningClasses = Annotated[dict[Word, Whole], Meta(max_length=MAX_CLASSES)]

Ended = Literal["invalid", "unknown", "broken off", "crossed", "valid"]
Blame = Literal["test", "machine", "system"]


class NodeThen(Struct, frozen=True, kw_only=True, order=True):
    """A node at the first violation, without its name.

    Attributes:
        answered: Whether it answered the decisive operation, or is one of the nodes that the violation is about.
        role: The role that it reported in the last poll before; `silent` if it did not answer; empty if nobody asked.
        term: `newest` if no node reported a higher term then, else `older`; empty if it reported none.
        log: `level` if no node had applied more entries in that poll, else `behind`; empty if it is unknown.
        hit: The kinds of proven faults that hit it then, or had ended up to two seconds before.
        cut: `off` if it heard no majority of the nodes then, `partly` if it did not hear some; empty if it heard all.
    """

    answered: bool
    role: Word
    term: Literal["", "newest", "older"]
    log: Literal["", "level", "behind"]
    hit: Words
    cut: Literal["", "partly", "off"]


class Signature(Struct, frozen=True, kw_only=True):
    """What a run that is not as expected showed.

    Attributes:
        ended: How it ended; `crossed` if only a threshold is crossed, and `valid` if the suite expects another verdict.
        parts: The parts that decide it and are not valid, or the thresholds that it crossed, in the order of the verdict.
        sentences: The first sentence, and those of these parts, without values, names and times.
        anomaly: The kind of the counterexample, such as `stale`; empty if there is none.
        lost: The first words of the first sentence, before its faults; empty if there is none.
        when: Whether the violation was `during`, `after` or `before` faults; empty if it is unknown.
        leaders: The number of nodes that reported that they led, in the polls around the violation; null if nobody asked.
        nodes: The different states of nodes at the first violation.
        plan: The kinds of faults of the plan, in the order of their starts, if a file gives the plan; else null.
        phase: The phase that a run broke off in; empty for other runs.
        blame: What an unknown run, or one that broke off, is put down to; null for other runs.
        why: The rule for `blame`, as a sentence; empty for other runs.
    """

    ended: Ended
    parts: Words
    sentences: Annotated[list[Sentence], Meta(max_length=MAX_LISTED)]
    anomaly: Word = ""
    lost: Sentence = ""
    when: Word = ""
    leaders: Whole | None = None
    nodes: Annotated[list[NodeThen], Meta(max_length=MAX_LISTED)] = []
    plan: Words | None = None
    phase: Word = ""
    blame: Blame | None = None
    why: Sentence = ""
