"""The kit of judges: from the rules of an object, and how often each is broken, to its judgement.

A judge finds the facts, and says for each rule which anomalies break it and how. The verdict, the reason and the choice of the
first anomalies are the same for all judges:

- invalid if a deciding rule is broken;
- else unknown if something was not tested;
- else valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING

from checker.judging import MAX_ANOMALIES, UNTESTED, Judgement
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from checker.judging import Anomaly
    from harness.op import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Something that a correct object never shows.

    Attributes:
        kind: The kind of its anomalies; the counts of the object have how often it is broken.
        anomalies: Makes the anomalies, the first ones first. It is called only if they are shown, and may make them lazily.
        decides: Whether an object that breaks it is invalid. If not, its anomalies are only counted.
        sentence: What is wrong, with `{number}` for how often.
    """

    kind: str
    anomalies: Callable[[], Iterable[Anomaly]]
    decides: bool = True
    sentence: str = ""


def broken_by(rules: Sequence[Rule], counts: Mapping[str, int]) -> list[Rule]:
    """Returns the deciding rules that are broken."""
    return [rule for rule in rules if rule.decides and counts[rule.kind]]


def said(rules: Sequence[Rule], counts: Mapping[str, int]) -> str:
    """Returns the sentences of rules with their numbers."""
    return " ".join(rule.sentence.format(number=counts[rule.kind]) for rule in rules)


def shown(rules: Sequence[Rule]) -> list[Anomaly]:
    """Returns the first anomalies of rules, `MAX_ANOMALIES` at most: the same share of each rule, in their order."""
    share = MAX_ANOMALIES // max(1, len(rules))
    return [anomaly for rule in rules for anomaly in islice(rule.anomalies(), share)]


def judged(
    rules: Sequence[Rule],
    counts: Mapping[str, int],
    *,
    held: str,
    untested: str | None = None,
    broken: str | None = None,
    last: Mapping[str, Anomaly] | None = None,
    figures: Mapping[str, Value] | None = None,
    plot: Mapping[str, Value] | None = None,
    cause: str = UNTESTED,
    basis: str = "",
) -> Judgement:
    """Returns the judgement of an object by its rules.

    Args:
        rules: The rules, in the order in which their anomalies are told.
        counts: The counts of the object, with one for the kind of each rule.
        held: The reason if no deciding rule is broken and all was tested, as a sentence.
        untested: What was not tested, as a sentence; None: all was.
        broken: The reason if a deciding rule is broken; None: the sentences of the broken rules.
        last: See `Judgement`.
        figures: See `Judgement`.
        plot: See `Judgement`.
        cause: Why the verdict is unknown, if it is.
        basis: See `Judgement`.
    """
    wrong = broken_by(rules, counts)
    if wrong:
        verdict, reason = Verdict.INVALID, said(wrong, counts) if broken is None else broken
    elif untested is not None:
        verdict, reason = Verdict.UNKNOWN, untested
    else:
        verdict, reason = Verdict.VALID, held
    return Judgement(
        verdict=verdict,
        reason=reason,
        counts=counts,
        anomalies=shown(wrong),
        last=last or {},
        figures=figures or {},
        plot=plot,
        cause=cause,
        basis=basis,
    )


def joined(
    rules: Sequence[Rule],
    counts: Mapping[str, int],
    inner: Judgement,
    *,
    broken: str,
    more: str = "",
    told: Iterable[Anomaly] | None = None,
    last: Mapping[str, Anomaly] | None = None,
    cause: str | None = None,
    basis: str = "",
) -> Judgement:
    """Returns the judgement of an object by further rules, and by the judgement of some of its operations.

    It is invalid if a deciding rule is broken; else it has the verdict of these operations. The anomalies of the rules come
    first.

    Args:
        rules: The further rules.
        counts: The further counts, with one for the kind of each rule.
        inner: The judgement of some operations; its anomalies have rows of the whole object.
        broken: The reason if a deciding rule is broken; the reason of `inner` follows if that is invalid too.
        more: A sentence after the reason of `inner` if no deciding rule is broken; empty for none.
        told: The anomalies of the broken rules, the first ones first; None: in the order of the rules.
        last: Further members of `Judgement.last`.
        cause: Why the verdict is unknown, if it is; None: as `inner` says.
        basis: See `Judgement`.
    """
    wrong = broken_by(rules, counts)
    verdict, reason = inner.verdict, f"{inner.reason} {more}".rstrip()
    if wrong:
        reason = f"{broken} {inner.reason}" if verdict is Verdict.INVALID else broken
        verdict = Verdict.INVALID
    anomalies = chain.from_iterable(rule.anomalies() for rule in wrong) if told is None else told
    return replace(
        inner,
        verdict=verdict,
        reason=reason,
        counts={**inner.counts, **counts},
        anomalies=[*islice(chain(anomalies, inner.anomalies), MAX_ANOMALIES)],
        last={**inner.last, **(last or {})},
        cause=inner.cause if cause is None else cause,
        basis=basis,
    )
