"""Explains contradictions: a sentence for each kind that the analyzers and patterns find.

A sentence follows the operations in time, and names the decisive one. It claims only what is known: if the operations that made
a value are not known, it does not claim that no operation ever did something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from checker.identity import identity, same
from checker.near.patterns import FUTURE, LOST_UPDATE, PHANTOM, STALE
from checker.words import began, did, ended, listed, sentence, value_text, what
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from checker.near.patterns import Pattern
    from checker.words import Instant
    from harness.op import Operation, Value

    Parts: TypeAlias = list[str | Instant]

_NAMED: Final = 6
_ERROR_CHARACTERS: Final = 40
MAKERS: Final = frozenset({"write", "put", "append", "add", "enqueue"})
_MADE: Final = {
    "fifo-queue": "enqueued",
    "unordered-queue": "enqueued",
    "set": "added",
    "grow-set": "added",
    "list": "appended",
    "kv": "put or appended",
}
_MANY: Final = frozenset({"set", "grow-set", "list"})
_LISTS: Final = frozenset({"list", "kv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """A contradiction to explain.

    Attributes:
        model: The model's name.
        kind: The kind of contradiction; None if it has none.
        core: The operations that the analyzer names, in its order.
        pattern: The pattern of a register; None if it is none.
        makers: All operations of the object that write or add a value that one of these operations observed, with failed ones,
            and perhaps others; None if some are not available.
    """

    model: str
    kind: str | None
    core: Sequence[Operation]
    pattern: Pattern | None = None
    makers: Sequence[Operation] | None = None


def sentences(contradiction: Contradiction) -> str | None:
    """Returns the sentences of a contradiction; None if its kind has none, or its operations do not show it."""
    if contradiction.pattern is not None:
        return _BY_PATTERN[contradiction.pattern.kind](contradiction, contradiction.pattern)
    words = _BY_KIND.get(contradiction.kind or "")
    return words(contradiction) if words is not None and contradiction.core else None


def made(op: Operation) -> Value:
    """Returns the value that an operation writes or adds; None if it does not."""
    if op.f == "cas":
        return op.value[1] if isinstance(op.value, list | tuple) and len(op.value) == 2 else None
    return op.value if op.f in MAKERS else None


def seen(op: Operation) -> Value:
    """Returns the value that an operation observed."""
    if op.f == "cas":
        return op.value[0]
    return op.result if op.result is not None or op.value is None else op.value


def observed(op: Operation) -> list[Value]:
    """Returns the values that an operation observed, with the members of a list; none if it returned nothing."""
    if op.f in MAKERS or (op.type is not OpType.OK and op.f != "cas"):
        return []
    value = op.value if op.f == "contains" else seen(op)
    return [value, *value] if isinstance(value, list | tuple) else [value]


def _makers(contradiction: Contradiction, value: Value) -> list[Operation]:
    """Returns the operations of the object that write or add a value, with failed ones; none if they are not known."""
    form = identity(value)
    return [op for op in contradiction.makers or () if (op.f in MAKERS or op.f == "cas") and identity(made(op)) == form]


def _ended_seeing(op: Operation) -> Parts:
    return [did(op), " at ", ended(op)]


def _began_seeing(op: Operation) -> Parts:
    return [f"{what(op)} began at ", began(op), " and succeeded"] if op.f == "cas" else [did(op), " at ", began(op)]


def _phantom(contradiction: Contradiction) -> str:
    core = contradiction.core
    if len(core) == 2 and core[0].f == "cas" and core[0].type is OpType.INFO:
        swap, saw = core
        return sentence(
            *_ended_seeing(saw), f", which only {what(swap)} can have made", *_not_made(contradiction, swap, seen(swap))
        )
    return sentence(*_ended_seeing(core[-1]), *_not_made(contradiction, core[-1], _missing(contradiction, core[-1])))


def _unmade_pattern(contradiction: Contradiction, pattern: Pattern) -> str:
    """Explains a value that no operation had written by then; a later one may have."""
    if pattern.against is not None and contradiction.makers is None:
        return sentence(*_ended_seeing(pattern.saw), ", but ", *_first_began([pattern.against]), ".")
    return sentence(*_ended_seeing(pattern.saw), *_not_made(contradiction, pattern.saw, seen(pattern.saw)))


def _missing(contradiction: Contradiction, saw: Operation) -> Value:
    """Returns the value that was never written: the observed value, or the first such member of a list."""
    value = saw.value if saw.f == "contains" else seen(saw)
    if (
        contradiction.model in _MANY
        and saw.f == "read"
        and isinstance(value, list | tuple)
        and contradiction.makers is not None
    ):
        end = saw.complete_index or 0
        known = {
            identity(made(op))
            for op in contradiction.makers
            if op.f in MAKERS and op.type is not OpType.FAIL and op.invoke_index < end
        }
        return next((member for member in value if identity(member) not in known), value)
    return value


def _not_made(contradiction: Contradiction, saw: Operation, value: Value) -> Parts:
    """Returns the reason why a value cannot exist: no operation ever wrote it, its writes failed, or they began later."""
    verb, shown = _MADE.get(contradiction.model, "wrote"), value_text(value)
    if contradiction.model == "kv":
        return [", but the puts and appends that had begun by then cannot make it."]
    end = saw.complete_index
    makers = _makers(contradiction, value)
    others = [op for op in makers if op.type is not OpType.FAIL]
    unclear = end is None or any(op.invoke_index < end for op in others)
    if contradiction.makers is None or unclear:
        return [f", but no operation that {verb} {shown} can have taken effect by then."]
    failed = [op for op in makers if op.type is OpType.FAIL and end is not None and op.invoke_index < end]
    if not failed:
        return [", but ", *_first_began(others), "."] if others else [f", but no process ever {verb} {shown}."]
    first = min(failed, key=lambda op: (op.f == "cas", op.invoke_index))  # a failed cas is mostly normal
    error = (first.error or "").partition(":")[0][:_ERROR_CHARACTERS]
    why = f" ({error})" if error else ""
    more = f", {len(failed) - 1} more of that value failed too" if len(failed) > 1 else ""
    rest: Parts = [*_first_began(others), "."] if others else [f"no other operation {verb} {shown}."]
    return [f", but {what(first)} failed at ", ended(first), f"{why}{more}, and ", *rest]


def _first_began(makers: Sequence[Operation]) -> Parts:
    first = min(makers, key=lambda op: op.invoke_index)
    which = f"{what(first)}, the first of {len(makers)} of that value," if len(makers) > 1 else what(first)
    return [f"{which} began only at ", began(first)]


def _future(contradiction: Contradiction) -> str | None:
    if len(contradiction.core) < 2:
        return None
    maker, saw = (
        contradiction.core[0],
        contradiction.core[1] if contradiction.model in _LISTS else contradiction.core[-1],
    )
    return sentence(*_ended_seeing(saw), ", but ", *_first_began([maker]), ".")


def _stale_pattern(contradiction: Contradiction, pattern: Pattern) -> str:
    saw, source, known, against = pattern.saw, pattern.source, pattern.known, pattern.against
    assert against is not None  # noqa: S101 - a pattern of this kind has one
    shown = value_text(seen(saw))
    if against.f == "read":
        return _seen_again(pattern, shown)
    parts: Parts = [*_began_seeing(saw), f", but {what(against)} had completed at ", ended(against), ". "]
    before = f", before that {against.f} began."
    if source is None or known is None:
        parts.append(_initially(shown))
    elif known is not source:
        parts += [f"{_upper(did(known))} at ", ended(known), before]
    elif (count := _writes_until(contradiction, saw)) > 1:
        parts += [
            f"The last of the {count} operations that wrote {shown} until then had completed at ",
            ended(source),
            before,
        ]
    else:
        parts += [f"{_upper(what(source))} had completed at ", ended(source), before]
    return sentence(*parts)


def _writes_until(contradiction: Contradiction, saw: Operation) -> int:
    """Returns how many operations wrote the value that an operation observed, and began before that one ended."""
    end = saw.complete_index or 0
    return sum(op.type is not OpType.FAIL and op.invoke_index < end for op in _makers(contradiction, seen(saw)))


def _initially(shown: str) -> str:
    return f"By then no process had written {shown}; it is the initial value."


def _seen_again(pattern: Pattern, shown: str) -> str:
    """Explains a value that the register held, that another value replaced, and that was read again."""
    saw, source, known, against = pattern.saw, pattern.source, pattern.known, pattern.against
    assert against is not None  # noqa: S101 - the caller has checked it
    then: Parts = [*_ended_seeing(against), ", but ", *_began_seeing(saw)]
    if source is None or known is None:
        return sentence(*then, ". ", _initially(shown))
    if known is source:
        return sentence(
            f"{what(source)} completed at ", ended(source), ", ", *then, f". No process wrote {shown} in between."
        )
    return sentence(*_ended_seeing(known), ", ", *then, f" again. Only {what(source)} can have made it, once.")


def _lost_update_pattern(_found: Contradiction, pattern: Pattern) -> str:
    assert pattern.against is not None  # noqa: S101 - a pattern of this kind has one
    shown = value_text(seen(pattern.saw))
    parts: Parts = [*_ended_seeing(pattern.against), ", and ", *_ended_seeing(pattern.saw)]
    source = pattern.source
    if source is None:
        return sentence(*parts, f", but {shown} is the initial value, and no process wrote it.")
    when: Parts = [] if source.type is not OpType.OK else [" at ", ended(source)]
    return sentence(*parts, f", but {shown} was written only once, by process {source.process}", *when, ".")


def _stale(contradiction: Contradiction) -> str | None:
    """Explains two values, each of which the object held before the other."""
    if len(contradiction.core) < 4:
        return None
    a, b, c, d = contradiction.core[:4]
    if not (_before(a, b) and _before(c, d)):
        return None
    return sentence(
        f"{what(a)} completed at ", ended(a), f", before {what(b)} began at ", began(b),
        f", but {what(c)} completed at ", ended(c), f", before {what(d)} began at ", began(d),
        ". So neither of the two values can have come first.",
    )  # fmt: skip


def _before(one: Operation, other: Operation) -> bool:
    """Returns whether an operation ended before another one began."""
    if one.type is OpType.INFO or one.complete_index is None:
        return False
    return one.complete_index < other.invoke_index


def _lost_update(contradiction: Contradiction) -> str | None:
    swaps = [op for op in contradiction.core if op.f == "cas"]
    for index, one in enumerate(swaps):
        for other in swaps[index + 1 :]:
            if same(seen(one), seen(other)):
                shown = value_text(seen(one))
                return sentence(f"{what(one)} and {what(other)} both took effect, but {shown} was there only once.")
    return None


def _cycle(contradiction: Contradiction) -> str:
    if len(contradiction.core) == 1:
        return sentence(f"{what(contradiction.core[0])} saw what only it can have made itself.")
    text = "Each of these operations saw the value of another of them, so none can have come first: "
    return sentence(text, *listed(contradiction.core, _NAMED), ".")


def _order(contradiction: Contradiction) -> str | None:
    core = contradiction.core
    if len(core) < 2:
        return None
    if contradiction.model == "fifo-queue":
        return _overtaken(core)
    if (replaced := _replaced(core)) is not None:
        return replaced
    if contradiction.model in _LISTS:
        core = core[:2]
    first, last = core[0], core[-1]
    if not _before(last, first):
        return None
    between: Parts = [] if len(core) == 2 else [" Between them: ", *listed(core[1:-1], _NAMED), "."]
    return sentence(
        f"By the values that were seen, {what(first)} took effect before {what(last)}, but the latter completed at ",
        ended(last), ", before the former began at ", began(first), ".", *between,
    )  # fmt: skip


def _replaced(core: Sequence[Operation]) -> str | None:
    """Explains a read that began after a compare-and-set had replaced the value that it returned; values are unique here."""
    for read in core:
        for swap in core:
            took = swap.f == "cas" and read.f == "read" and same(seen(swap), seen(read))
            if took and _before(swap, read):
                return sentence(*_began_seeing(read), f", but {what(swap)} had completed at ", ended(swap), ".")
    return None


def _overtaken(core: Sequence[Operation]) -> str | None:
    """Explains two elements that left a queue in the wrong order."""
    if len(core) != 4:
        return None
    first_in, second_in, second_out, first_out = core
    return sentence(
        f"{what(first_in)} had completed at ", ended(first_in), f", before {what(second_in)} began at ",
        began(second_in), ", but ", *_ended_seeing(second_out), f", before {what(first_out)} began at ",
        began(first_out), ".",
    )  # fmt: skip


def _fork(contradiction: Contradiction) -> str:
    core = contradiction.core
    one, other = core[-2:] if len(core) > 1 else (core[0], core[0])
    rule = (
        "one of two lists begins with the other"
        if contradiction.model in _LISTS
        else "one of two sets contains the other"
    )
    where = "of one list" if contradiction.model in _LISTS else "where nothing was removed"
    return sentence(*_ended_seeing(one), ", and ", *_ended_seeing(other), f". But of two reads {where} {rule}.")


def _duplicate(contradiction: Contradiction) -> str | None:
    core = contradiction.core
    if contradiction.model == "counter" and len(core) == 2:
        return sentence(f"{what(core[0])} and {what(core[1])} cannot both have found the same count.")
    if contradiction.model in _LISTS and len(core) == 2:
        return sentence(*_ended_seeing(core[1]), f", but {what(core[0])} is in it twice.")
    if len(core) != 3:
        return None
    source, first, second = core
    return sentence(
        *_ended_seeing(first), f", and {did(second)} again at ", ended(second),
        f", but it was enqueued only once, by process {source.process}.",
    )  # fmt: skip


def _lost(contradiction: Contradiction) -> str:
    core = contradiction.core
    if len(core) < 3:
        return sentence(*_ended_seeing(core[0]), ", but an element is missing, and no operation had removed it.")
    first, second, out = core
    return sentence(
        f"{what(first)} had completed at ", ended(first), f", before {what(second)} began at ", began(second),
        ", but ", *_ended_seeing(out), f", and by then no operation can have dequeued {value_text(first.value)}.",
    )  # fmt: skip


def _not_reached(contradiction: Contradiction) -> str:
    saw = contradiction.core[-1]
    return sentence(*_ended_seeing(saw), f", but by then the counter cannot have stood at {value_text(seen(saw))}.")


def _too_low(contradiction: Contradiction) -> str:
    if len(contradiction.core) < 2:
        return _not_reached(contradiction)
    missed, saw = contradiction.core[0], contradiction.core[-1]
    return sentence(
        f"{what(saw)} began at ", began(saw), f", but {what(missed)} had completed at ", ended(missed),
        ", and the count leaves no room for it.",
    )  # fmt: skip


def _overlap(contradiction: Contradiction) -> str:
    core = contradiction.core
    holders = [op for op in core if op.f == "acquire"]
    if len(holders) < 2:
        return sentence(f"{what(core[0])} completed at ", ended(core[0]), ", but the lock was not free.")
    one, other = holders[:2]
    release = next((op for op in core if op.f == "release" and op.process == one.process), None)
    until: Parts = (
        [" and never released it"] if release is None else [" and began to release it only at ", began(release)]
    )
    return sentence(*_ended_seeing(one), *until, ", but ", *_ended_seeing(other), " too.")


def _not_empty(contradiction: Contradiction) -> str:
    empty, *elements = contradiction.core
    parts: Parts = [*_ended_seeing(empty), ", but all that time something was in the queue"]
    for op in elements[:_NAMED]:
        moment: Parts = ["completed at ", ended(op)] if op.f == "enqueue" else ["began only at ", began(op)]
        parts += ["; " if op is not elements[0] else ": ", f"{what(op)} ", *moment]
    return sentence(*parts, ".")


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


_BY_PATTERN: Final[Mapping[str, Callable[[Contradiction, Pattern], str]]] = {
    PHANTOM: _unmade_pattern,
    FUTURE: _unmade_pattern,
    STALE: _stale_pattern,
    LOST_UPDATE: _lost_update_pattern,
}
_BY_KIND: Final[Mapping[str, Callable[[Contradiction], str | None]]] = {
    PHANTOM: _phantom,
    FUTURE: _future,
    STALE: _stale,
    LOST_UPDATE: _lost_update,
    "cycle": _cycle,
    "order": _order,
    "fork": _fork,
    "duplicate": _duplicate,
    "lost": _lost,
    "too-high": _not_reached,
    "too-low": _too_low,
    "overlap": _overlap,
    "not-empty": _not_empty,
}
