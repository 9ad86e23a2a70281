"""The answer of a bisection as a document and as lines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.console.plain import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from commands.bisect.deciding import Decider
    from commands.bisect.search import Found
    from commands.bisect.state import State
    from commands.bisect.values import Axis

WORDS = {True: "bad", False: "good", None: "skipped"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a bisection.

    Attributes:
        axis: What was searched.
        found: The neighbours; None without an answer.
        why: Why there is none.
        bad_run: The command of a bad run of the bad neighbour.
    """

    axis: Axis
    found: Found | None
    why: str = ""
    bad_run: str | None = None


def document_of(answer: Answer, decider: Decider, state: State) -> dict[str, Any]:
    """Returns the answer as a document of JSON.

    Args:
        answer: The answer.
        decider: The decisions.
        state: The runs.
    """
    axis, bounds = answer.axis, answer.found
    ran = [run for run in state.runs if run.built]
    rare, frequent = decider.rates
    return {
        "over": axis.flag,
        "noun": axis.noun,
        "good": None if bounds is None else axis.points[bounds.good].name,
        "bad": None if bounds is None else axis.points[bounds.bad].name,
        "undecided_between": []
        if bounds is None
        else [point.name for point in axis.points[bounds.good + 1 : bounds.bad]],
        "backwards": axis.backwards,
        "why": answer.why,
        "confidence": _confidence(decider),
        "rates": {"good": rare, "bad": frequent} if decider.tests else None,
        "tests": decider.tests,
        "values": [
            {
                "value": decision.point.name,
                "verdict": WORDS[decision.bad],
                "how": decision.how,
                "error": decision.error,
                "seconds": round(decision.seconds, 1),
            }
            for decision in decider.decisions
        ],
        "runs": len(ran),
        "seconds": round(sum(run.seconds for run in state.runs), 1),
        "bad_run": answer.bad_run,
        "state": str(state.path),
    }


def _confidence(decider: Decider) -> float | None:
    """Returns the least probability that no decision is wrong; None if nothing bounds it.

    The sum of the errors bounds the probability of any error, however they depend on each other (C. E. Bonferroni, 1936).
    """
    errors = [decision.error for decision in decider.decisions if decision.bad is not None]
    if not errors or any(error is None for error in errors):
        return None
    return max(0.0, 1 - math.fsum(error for error in errors if error is not None))


def lines_of(document: Mapping[str, Any]) -> Iterator[str]:
    """Yields the answer as lines."""
    width = max((len(row["value"]) for row in document["values"]), default=0)
    for row in document["values"]:
        value, how = one_line(row["value"]).ljust(width), one_line(row["how"])
        yield f"{value}  {row['verdict']:7}  {how}  ({row['seconds']:g} s)"
    yield from map(one_line, _answer(document))
    if document["tests"]:
        rates = document["rates"]
        yield (
            f"rates      a value is bad from {rates['bad']:.2g} of its runs on, and good up to {rates['good']:.2g}; "
            f"{counted(document['tests'], 'test')}"
        )
    if document["good"] is not None:
        yield f"confidence {_confidence_words(document)}"
    yield f"took       {counted(document['runs'], 'run')}, {document['seconds']:g} s"
    if document["bad_run"]:
        yield f"bad run    {document['bad_run']}"
    yield f"state      {document['state']}"


def _answer(document: Mapping[str, Any]) -> Iterator[str]:
    what = document["noun"]
    if document["good"] is None:
        yield f"no answer  {document['why']}"
    elif document["undecided_between"]:
        between = ", ".join(document["undecided_between"])
        yield f"a range    {document['good']} is good and {document['bad']} is bad; between them, not decided: {between}"
    elif document["backwards"]:
        yield f"first good {what}: {document['good']}; the last bad one: {document['bad']}"
    else:
        yield f"first bad {what}: {document['bad']}; the last good one: {document['good']}"


def _confidence_words(document: Mapping[str, Any]) -> str:
    if document["confidence"] is None:
        return (
            "not stated: the seed alone calls a value good, and with another order of events a value can miss the bug. Try "
            "other seeds"
        )
    return (
        f"at least {document['confidence']:.1%}, if each value is good or bad in this sense, and the list changes once"
    )
