"""Chooses what to find out about the keys of a run that are not valid.

The rule: each invalid key gets an explanation, and the `explained` keys with the earliest violations get a counterexample.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from checker.decide.excerpts import OBJECTS as LONGEST_WHOLE
from harness.verdict import Verdict
from results.pipeline.decide.kernel import ANSWER
from results.pipeline.decide.rows import OBJECTS, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NEVER: Final = 2**63
_KNOWN: Final = sorted({field.name for field in fields(Target)} & {*ANSWER.names})


def answered(target: Target, answer: Mapping[str, Any]) -> Target:
    """Returns a key with the answer of columns, a row of `kernel.ANSWER`."""
    known = {name: answer[name] for name in _KNOWN}
    return replace(target, **known | {"core": answer["core"] or ()}, whole=False)


def chosen(bad: Sequence[tuple[Target, bool]], *, most: int, explained: int) -> Iterator[Target]:
    """Yields the keys of a run to read again: for their words, and for a counterexample.

    Args:
        bad: The keys of a run that are invalid or unknown, each with whether invokes do not identify its operations.
        most: How many operations of a key fit into memory as objects.
        explained: For how many invalid keys a counterexample is searched.
    """
    invalid = [each for each in bad if each[0].verdict == Verdict.INVALID]
    others = [each for each in bad if each[0].verdict != Verdict.INVALID]
    invalid.sort(key=lambda each: _order(each[0]))
    for place, (target, tied) in enumerate([*invalid, *others]):
        shrink = place < min(explained, len(invalid))
        if target.engine == OBJECTS and not shrink:
            continue
        # The simplest counterexample of a short key may lie outside its part, and `labrys check` looks for it there.
        fits = bool(target.part) and target.operations <= min(LONGEST_WHOLE, most)
        part = None if fits else target.part
        size = target.operations if part is None else len(part)
        searched = place < len(invalid) and (tied or target.kind == "search")
        whole = (shrink or searched) and 1 <= size <= most
        wanted: Sequence[int] | None = None
        if not whole or part is not None:
            named = [*target.core, *([] if target.op_start is None else [target.op_start])]
            wanted = list(dict.fromkeys([*named, *((part or ()) if whole else ())]))
        yield replace(target, part=part, wanted=wanted, whole=whole, shrink=shrink)


def _order(target: Target) -> tuple[int, bool, str]:
    return _NEVER if target.op_end is None else target.op_end, target.key is not None, target.key or ""
