"""Says a verdict in one or two sentences, with processes, values and times.

The near-linear analyzers know which operations contradict each other and how; the search knows how the object may stand before
the operation that cannot be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from harness.op import OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checker.models.base import Model
    from checker.result import Analysis
    from harness.op import Operation, Value

VALID: Final = "All {operations} operations fit into one order that real time allows."
_NS_PER_S: Final = 1_000_000_000
_SHOWN: Final = 60
_STATES: Final = 3
_PENDING: Final = 4
_WITHOUT_VALUE: Final = frozenset({"acquire", "release"})
_SPEAKING: Final = frozenset({"owner", "locked?"})  # states whose value alone says nothing


def explain(result: Analysis, model: Model, core: Sequence[Operation], unsuited: str | None) -> str:
    """Returns the explanation of a result; `core` is what the analyzer named."""
    if result.valid is Verdict.VALID:
        return VALID.format(operations=result.operations)
    if result.valid is Verdict.UNKNOWN:
        return _unknown(result, unsuited)
    if result.op is None:
        return "No order of the operations is possible."
    tell = _BY_KIND.get(result.kind or "")
    sentence = tell(core) if tell is not None and core else None
    return sentence or _by_search(result, model)


def operation_text(op: Operation) -> str:
    """Returns an operation in words, e.g. `process 3's read of 7 (4.210 s to 4.215 s)`."""
    if op.type is OpType.OK and op.result is not None and op.result != op.value:
        what = _show(op.result) if op.value is None else f"{_show(op.value)}, which returned {_show(op.result)},"
    else:
        what = _show(op.value)
    name = op.f if op.value is None and op.result is None and op.f in _WITHOUT_VALUE else f"{op.f} of {what}"
    return f"process {op.process}'s {name} ({_when(op)})"


def _show(value: Value) -> str:
    if value is None:
        return "nil"
    text = str(list(value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _at(time_ns: int | None, index: int | None) -> str:
    return f"event {index}" if not time_ns else f"{time_ns / _NS_PER_S:.3f} s"


def _when(op: Operation) -> str:
    timed = bool(op.end_ns or op.start_ns)
    start = f"{op.start_ns / _NS_PER_S:.3f} s" if timed else f"event {op.invoke_index}"
    if op.type is OpType.INFO:
        return f"from {start}, it never returned"
    end = f"{(op.end_ns or 0) / _NS_PER_S:.3f} s" if timed else f"event {op.complete_index}"
    return f"{start} to {end}"


def _began(op: Operation) -> str:
    return f"event {op.invoke_index}" if not (op.end_ns or op.start_ns) else f"{op.start_ns / _NS_PER_S:.3f} s"


def _ended(op: Operation) -> str:
    return _at(op.end_ns, op.complete_index)


def _seen(op: Operation) -> Value:
    return op.result if op.result is not None else op.value


def _phantom(core: Sequence[Operation]) -> str:
    seen = core[-1]
    return f"{_upper(seen)} saw something that no operation before its end can have made."


def _future(core: Sequence[Operation]) -> str | None:
    if len(core) < 2:
        return None
    made, seen = core[0], core[-1]
    return (
        f"{_upper(seen)} ended at {_ended(seen)} and already saw what {operation_text(made)} made, which began only at "
        f"{_began(made)}."
    )


def _stale(core: Sequence[Operation]) -> str | None:
    pairs = _real_time_pairs(core)
    if not pairs:
        return None
    (a, b), *others = pairs
    text = f"{_upper(a)} had ended before {operation_text(b)} began"
    if b.f == "read" and not any(_makes(op, _seen(b)) for op in core):  # what it saw is what was there at first
        return f"{text}, which saw {_show(_seen(b))} as if nothing had been written yet."
    if others:
        c, d = others[0]
        if (c, d) != (a, b):
            text += f", and {operation_text(c)} before {operation_text(d)} began"
    return f"{text}: so what the first of them saw or wrote was gone already, and yet it was seen again."


def _real_time_pairs(core: Sequence[Operation]) -> list[tuple[Operation, Operation]]:
    """Returns the pairs of a contradiction of two values: one's end before the other's start, both ways."""
    pairs = []
    for first in core:
        for second in core:
            ended = first.complete_index if first.type is not OpType.INFO else None
            if ended is not None and ended < second.invoke_index and str(_seen(first)) != str(_seen(second)):
                pairs.append((first, second))
    pairs.sort(key=lambda pair: -pair[1].invoke_index)
    return pairs


def _makes(op: Operation, value: Value) -> bool:
    made = op.value[1] if op.f == "cas" else op.value
    return op.f != "read" and made == value


def _lost_update(core: Sequence[Operation]) -> str | None:
    swaps = [op for op in core if op.f == "cas"]
    if len(swaps) < 2:
        return None
    return f"{_upper(swaps[0])} and {operation_text(swaps[1])} both took effect on the same write: an update was lost."


def _cycle(core: Sequence[Operation]) -> str:
    named = ", ".join(operation_text(op) for op in core[:_PENDING])
    return f"Each of these needs another of them before it, and none has a beginning: {named}."


def _overtaken(core: Sequence[Operation]) -> str | None:
    """Tells of a read that began after a compare-and-set had taken away the value that it saw."""
    for read in core:
        for swap in core:
            took = swap.f == "cas" and swap.type is OpType.OK and swap.value[0] == _seen(read)
            if took and read.f == "read" and (swap.complete_index or 0) < read.invoke_index:
                return (
                    f"{_upper(read)} is stale: process {swap.process}'s cas had replaced {_show(_seen(read))} by "
                    f"{_show(swap.value[1])} at {_ended(swap)}, before the read began."
                )
    return None


def _order(core: Sequence[Operation]) -> str | None:
    if len(core) < 2:
        return None
    overtaken = _overtaken(core)
    if overtaken is not None:
        return overtaken
    named = "; ".join(operation_text(op) for op in core[: _PENDING + 2])
    return f"What was seen forces an order that real time forbids: {named}."


def _fork(core: Sequence[Operation]) -> str:
    one, other = core[-2:] if len(core) > 1 else (core[0], core[0])
    return f"{_upper(one)} and {operation_text(other)} cannot both have seen states of one object."


def _duplicate(core: Sequence[Operation]) -> str:
    named = " and ".join(operation_text(op) for op in core[-2:])
    return f"The same thing came out twice: {named}."


def _lost(core: Sequence[Operation]) -> str:
    last = f", although {operation_text(core[-1])} got what came later" if len(core) > 1 else ""
    return f"{_upper(core[0])} was lost: nothing can have taken it out{last}."


def _too_high(core: Sequence[Operation]) -> str:
    return f"{_upper(core[-1])} is more than all increments that had begun can make."


def _too_low(core: Sequence[Operation]) -> str:
    if len(core) < 2:
        return f"{_upper(core[-1])} is less than the count can have been."
    return f"{_upper(core[-1])} misses increments: {operation_text(core[0])} had ended before it began."


def _overlap(core: Sequence[Operation]) -> str:
    return (
        f"{_upper(core[0])} and {operation_text(core[1])} both held the lock: it was not released in between."
        if len(core) > 1
        else f"{_upper(core[0])} cannot have got the lock."
    )


def _not_empty(core: Sequence[Operation]) -> str:
    named = ", ".join(operation_text(op) for op in core[1:2])
    return f"{_upper(core[0])} found nothing, but all the time something was there: {named} had ended before."


_BY_KIND: Final[Mapping[str, Callable[[Sequence[Operation]], str | None]]] = {
    "phantom": _phantom,
    "future": _future,
    "stale": _stale,
    "lost-update": _lost_update,
    "cycle": _cycle,
    "order": _order,
    "fork": _fork,
    "duplicate": _duplicate,
    "lost": _lost,
    "too-high": _too_high,
    "too-low": _too_low,
    "overlap": _overlap,
    "not-empty": _not_empty,
}


def _upper(op: Operation) -> str:
    text = operation_text(op)
    return text[0].upper() + text[1:]


def _by_search(result: Analysis, model: Model) -> str:
    assert result.op is not None  # noqa: S101 - the caller asked
    text = f"{_upper(result.op)} is not possible"
    states = sorted({_state_text(config.model) for config in result.configs})
    if not states:
        return f"{text}: no order of the operations up to its return is legal for a {model.name}."
    shown = " or ".join(states[:_STATES])
    more = f" or {len(states) - _STATES} others" if len(states) > _STATES else ""
    pending = sorted({op.invoke_index: op for config in result.configs for op in config.pending}.items())
    open_now = [operation_text(op) for _, op in pending if op is not result.op]
    others = ""
    if open_now:
        rest = f" and {len(open_now) - _PENDING} others" if len(open_now) > _PENDING else ""
        others = f", and no order of what was open then ({'; '.join(open_now[:_PENDING])}{rest}) leads to it"
    return f"{text}: before it the object can only have been {shown}{more}{others}."


def _state_text(state: Mapping[str, Value]) -> str:
    [(name, value), *others] = state.items() or [("", None)]
    if others:
        return _show(dict(state))
    return f"{name.removesuffix('?')}: {_show(value)}" if name in _SPEAKING else _show(value)


def _unknown(result: Analysis, unsuited: str | None) -> str:
    reached = "" if result.op is None else f"; it got as far as {operation_text(result.op)}"
    reasons = {
        "timeout": "The time limit ended the search",
        "out-of-memory": "The memory limit ended the search",
        "cancelled": "The search was cancelled",
        "unsuited": f"The algorithm that was asked for does not apply: {unsuited}",
    }
    return f"{reasons.get(result.cause or '', 'The search ended')}{reached}."
