"""Chooses the route of each key of a run, and what to find out about those that are not valid.

This is the one choice of both runners. The rules:

- Keys whose operations carry the system's own order go whole to the checker at once, if they fit into memory. So do those that
  columns cannot represent (`is_general`).
- Keys that columns do not find valid (`is_doubtful`), and whole ones that are refuted (`REFUTED`), are read again. Each invalid
  key gets an explanation, and the `explained` keys with the earliest violations get a counterexample (`chosen`).

The rules about a verdict or about counts take those of one key, or a column of many.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from checker.decide.excerpts import OBJECTS as LONGEST_WHOLE
from harness.verdict import Verdict
from results.pipeline.decide.kernel import ANSWER, TO_GENERAL
from results.pipeline.decide.rows import OBJECTS, Target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from results.pipeline.decide.asked import Asked

_NEVER: Final = 2**63
_KNOWN: Final = sorted({field.name for field in fields(Target)} & {*ANSWER.names})
# What is known about a key that whole operations refute: members of `kernel.ANSWER`, with their columns of `schema.VERDICTS`.
REFUTED: Final = {"verdict": "verdict", "kind": "kind", "engine": "engine", "op_end": "op_complete_index"}


def needs_objects(orders: Any, operations: Any, asked: Asked) -> Any:
    """Returns whether a key goes whole to the checker because of the order of its operations.

    Args:
        orders: How many of its operations have an order.
        operations: The number of its operations.
        asked: What is asked about it.
    """
    return (orders > 0) & (operations <= asked.most)


def is_general(verdict: Any) -> Any:
    """Returns whether columns leave a key to the checker of whole operations."""
    return verdict == TO_GENERAL


def is_doubtful(verdict: Any) -> Any:
    """Returns whether columns find a key invalid or unknown, so that it is read again."""
    return (verdict == str(Verdict.INVALID)) | (verdict == str(Verdict.UNKNOWN))


def is_refuted(verdict: Any) -> Any:
    """Returns whether whole operations refute a key, so that it may be read again for a counterexample."""
    return verdict == str(Verdict.INVALID)


def refuted(target: Target, row: Mapping[str, Any]) -> Target:
    """Returns a key with the verdict of its whole operations, a row of `schema.VERDICTS`."""
    known = {name: row[column] for name, column in REFUTED.items()}
    return answered(target, {**dict.fromkeys(ANSWER.names), **known})


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
    invalid = [pair for pair in bad if pair[0].verdict == Verdict.INVALID]
    others = [pair for pair in bad if pair[0].verdict != Verdict.INVALID]
    invalid.sort(key=lambda pair: _order(pair[0]))
    for index, (target, tied) in enumerate([*invalid, *others]):
        shrink = index < min(explained, len(invalid))
        if target.engine == OBJECTS and not shrink:
            continue
        # The simplest counterexample of a short key may lie outside its part, and `labrys check` looks for it there.
        fits = bool(target.part) and target.operations <= min(LONGEST_WHOLE, most)
        part = None if fits else target.part
        size = target.operations if part is None else len(part)
        searched = index < len(invalid) and (tied or target.kind == "search")
        whole = (shrink or searched) and 1 <= size <= most
        wanted: Sequence[int] | None = None
        if not whole or part is not None:
            named = [*target.core, *([] if target.op_start is None else [target.op_start])]
            wanted = list(dict.fromkeys([*named, *((part or ()) if whole else ())]))
        yield replace(target, part=part, wanted=wanted, whole=whole, shrink=shrink)


def _order(target: Target) -> tuple[int, bool, str]:
    return _NEVER if target.op_end is None else target.op_end, target.key is not None, target.key or ""
