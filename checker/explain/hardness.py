"""Explains why a search ended without a verdict: what makes the history hard, and how to change the workload.

There is no search here: each reason is a count over the history, in O(n log n).

At one moment, a search distinguishes which open operations have taken effect. Operations of one class are equal, so `k` open
ones count as `log2(k + 1)` bits, and the bits of the classes add up. Operations that only observe change no state, and do not
count. Operations that never returned count from their invoke to the end. So there are three general reasons: operations that
never returned (`crashed`), operations that overlap (`overlap`), and a model that distinguishes more states than those bits
explain (`states`). With few bits and few states, the history is too long for its limits (`length`).

A built-in model has an analyzer that needs no search. If a history breaks the condition of the analyzer, this reason comes
first: without the operations that break it, the analyzer decides, however many operations overlap or crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from checker.models.opcodes import (
    ACQUIRE,
    ADD,
    APPEND,
    CAS,
    CAS_FAIL,
    DEQUEUE,
    DEQUEUE_ANY,
    DEQUEUE_EMPTY,
    ENQUEUE,
    FETCH_ADD,
    INCREMENT,
    INFINITE,
    OBSERVERS,
    PUT,
    READ_SET,
    RELEASE,
    REMOVE,
    TXN,
    WRITE,
)
from checker.near.necessary import unseen
from checker.result import Hardness
from checker.search.allowance import Allowance
from checker.search.solving import solve
from checker.words import value_text
from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Outcome, Problem
    from checker.models import Model
    from checker.search.encode import Encoded, Events
    from harness.op import Operation, Value

CAUSES: Final = frozenset({"timeout", "out-of-memory"})
_NEAR_S: Final = 0.5
_MOST: Final = 3  # the maximum number of reasons
_FEW_BITS: Final = 6.0  # a search visits 2^6 configurations for each operation very fast
_BUSY: Final = 0.75  # a share of the peak
_NAMED: Final = 4
_FUNCTIONS: Final[Mapping[int, str]] = {
    WRITE: "write",
    CAS: "cas",
    ACQUIRE: "acquire",
    RELEASE: "release",
    ENQUEUE: "enqueue",
    DEQUEUE: "dequeue",
    DEQUEUE_ANY: "dequeue",
    ADD: "add",
    REMOVE: "remove",
    INCREMENT: "add",
    FETCH_ADD: "fetch-add",
    APPEND: "append",
    PUT: "put",
    TXN: "txn",
}
_VERBS: Final[Mapping[str, str]] = {
    "register": "written",
    "fifo-queue": "enqueued",
    "unordered-queue": "enqueued",
    "sequence": "appended or put",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A reason without its sentence.

    Attributes:
        reason: One of `REASONS`.
        figures: Counts by name.
        example: The position of the operation in the sentence; None if there is none.
        functions: The number of operations of each function, the most frequent first.
    """

    reason: str
    figures: Mapping[str, int]
    example: int | None = None
    functions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A history whose search ended without a verdict.

    Attributes:
        problem: The history for the kernel.
        events: The history by classes.
        functions: By class, its function.
        changes: By class, whether its operations may change the state.
        own: Whether the model is a user's own.
        states: The number of states of the model; None if it was not counted.
        furthest: The position of the furthest return that the search reached; None if it is unknown.
        hinted: Whether operations carry an order.
    """

    problem: Problem
    events: Events
    functions: Sequence[str]
    changes: Sequence[bool]
    own: bool = False
    states: int | None = None
    furthest: int | None = None
    hinted: bool = False


def of_objects(model: Model, encoded: Encoded, outcome: Outcome) -> tuple[Hardness, ...]:
    """Returns why a search ended, the most important reason first; nothing if it did not reach a limit.

    Args:
        model: The model of the object.
        encoded: The history.
        outcome: The kernel's outcome for it.
    """
    if outcome.cause not in CAUSES:
        return ()
    coder = encoded.coder
    own = coder.step is not None
    events = encoded.events
    calls = [coder.call(code) for code in events.classes] if own else []
    ended = Ended(
        problem=encoded.problem,
        events=events,
        functions=[call.f for call in calls] if own else functions_of(events),
        changes=[not model.observes(call) for call in calls] if own else changes_of(events),
        own=own,
        states=coder.states,
        furthest=outcome.op,
        hinted=any(op.order is not None for op in encoded.operations),
    )
    return Why(ended).reasons(encoded.operations.__getitem__)


def of_columns(problem: Problem, events: Events, outcome: Outcome) -> Why:
    """Returns why a search of a built-in model reached a limit.

    Args:
        problem: The history for the kernel.
        events: The history by classes.
        outcome: The kernel's outcome for it.
    """
    ended = Ended(
        problem=problem,
        events=events,
        functions=functions_of(events),
        changes=changes_of(events),
        furthest=outcome.op,
    )
    return Why(ended)


class Why:
    """Why a search ended, before the sentences: these need operations, which a history of columns must read first."""

    def __init__(self, ended: Ended) -> None:
        """Finds the reasons."""
        self._ended = ended
        self._findings = findings(ended)

    @property
    def examples(self) -> list[int]:
        """Returns the positions of the operations in the sentences."""
        return [finding.example for finding in self._findings if finding.example is not None]

    def reasons(self, operation: Callable[[int], Operation]) -> tuple[Hardness, ...]:
        """Returns the reasons, the most important first; `operation` returns the operation at a position."""
        return tuple(_hardness(finding, self._ended, operation) for finding in self._findings)


def functions_of(events: Events) -> list[str]:
    """Returns the function of each class of a built-in model."""
    return [_FUNCTIONS.get(code.f, "operation") for code in events.classes]


def changes_of(events: Events) -> list[bool]:
    """Returns whether each class of a built-in model may change the state."""
    return [code.f not in OBSERVERS for code in events.classes]


def findings(ended: Ended) -> list[Finding]:
    """Returns the reasons why a history is hard, the most important first."""
    load = _Load(ended)
    candidates = [_broken_condition(ended)]
    # Several searches share the states, and one may have reached further than the one that answered: all operations count.
    operations = len(ended.events.members)
    if ended.states is not None and log2(max(ended.states, 1)) > load.bits + log2(operations + 1):
        candidates.append(Finding(reason="states", figures={"states": ended.states, "operations": operations}))
    by_bits = sorted(((load.crashed_bits, load.crashed), (load.open_bits, load.overlap)), key=lambda entry: -entry[0])
    candidates += [make() for bits, make in by_bits if bits >= _FEW_BITS]
    known = [finding for finding in candidates if finding is not None]
    if not known:
        known.append(Finding(reason="length", figures={"operations": operations, "reached": load.operations}))
    return known[:_MOST]


class _Load:
    """The open operations that a search must distinguish.

    Bits are counted until the furthest return that the search reached; overlaps are counted over the whole history.

    Attributes:
        operations: The number of operations that began until then.
        crashed_bits: The bits of the operations that never returned.
        open_bits: The maximum number of bits of the other operations at one moment.
    """

    def __init__(self, ended: Ended) -> None:
        events = ended.events
        members, ends = events.members, events.ends
        last = INFINITE if ended.furthest is None else ends[ended.furthest]
        idle = unseen(events)
        counted = [changes and index not in idle for index, changes in enumerate(ended.changes)]
        begun = [i for i, start in enumerate(events.starts) if start <= last]
        self._functions = ended.functions
        self.operations = len(begun)
        crashed = Counter(members[i] for i in begun if ends[i] == INFINITE and counted[members[i]])
        self._crashed = crashed
        self.crashed_bits = sum(log2(count + 1) for count in crashed.values())
        moving = [i for i, member in enumerate(members) if ends[i] != INFINITE and ended.changes[member]]
        self._starts = sorted(moving, key=events.starts.__getitem__)
        self._ends = sorted(moving, key=ends.__getitem__)
        self._events = events
        self._open: list[int] = []  # the number of open operations at each start
        self.open_bits = self._swept(last)

    @property
    def bits(self) -> float:
        """The bits of all operations at the hardest moment."""
        return self.crashed_bits + self.open_bits

    def _swept(self, last: int) -> float:
        """Counts the open operations, and returns the maximum number of bits at one moment until `last`."""
        starts, ends, members = self._events.starts, self._events.ends, self._events.members
        count: Counter[int] = Counter()
        bits = most = 0.0
        closed = 0
        for opened, i in enumerate(self._starts, 1):
            while ends[self._ends[closed]] < starts[i]:
                member = members[self._ends[closed]]
                bits -= log2((count[member] + 1) / count[member])
                count[member] -= 1
                closed += 1
            member = members[i]
            count[member] += 1
            bits += log2((count[member] + 1) / count[member])
            self._open.append(opened - closed)
            if starts[i] <= last:
                most = max(most, bits)
        return most

    def crashed(self) -> Finding:
        """Returns the reason that operations never returned."""
        by_function: Counter[str] = Counter()
        for member, count in self._crashed.items():
            by_function[self._functions[member]] += count
        figures = {"operations": self._crashed.total(), "classes": len(self._crashed)}
        return Finding(reason="crashed", figures=figures, functions=dict(by_function.most_common()))

    def overlap(self) -> Finding:
        """Returns the reason that operations overlap."""
        most = max(self._open)
        level = max(int(_BUSY * most), 1)
        busy = [i for i, count in zip(self._starts, self._open, strict=True) if count >= level]
        by_function = Counter(self._functions[self._events.members[i]] for i in busy)
        figures = {"at_once": most, "level": level, "operations": len(busy)}
        return Finding(reason="overlap", figures=figures, functions=dict(by_function.most_common()))


def _broken_condition(ended: Ended) -> Finding | None:
    """Returns the condition of the near-linear analyzer that a history breaks; None if there is no such analyzer."""
    if ended.own:
        return None
    [outcome] = solve([ended.problem], Allowance.of(_NEAR_S).limits("zones"))
    find = _CONDITIONS.get(outcome.unsuited or "")
    return None if find is None else find(ended)


def _repeated(ended: Ended) -> Finding | None:
    """Finds the value that the most operations write or add."""
    events = ended.events
    made: Counter[Any] = Counter()
    example: dict[Any, int] = {}
    for i, member in enumerate(events.members):
        code = events.classes[member]
        if code.f in {WRITE, CAS, ENQUEUE, APPEND, PUT}:
            value = code.items or (code.b if code.f == CAS else code.a)
            made[value] += 1
            example.setdefault(value, i)
    if not made:
        return None
    for value in events.initial if events.family == "register" else ():
        made[value] += value in made
    value, times = made.most_common(1)[0]
    figures = {"times": times, "values": sum(count > 1 for count in made.values())}
    return Finding(reason="repeated-values", figures=figures, example=example[value])


def _unequal(ended: Ended) -> Finding:
    return Finding(
        reason="unequal-increments",
        figures={"amounts": len({code.a for code in ended.events.classes if code.f in {INCREMENT, FETCH_ADD}})},
    )


def _empties(ended: Ended) -> Finding:
    f = [ended.events.classes[member].f for member in ended.events.members]
    return Finding(
        reason="empty-and-crashed", figures={"empty": f.count(DEQUEUE_EMPTY), "crashed": f.count(DEQUEUE_ANY)}
    )


def _observed(ended: Ended) -> Finding:
    f = [ended.events.classes[member].f for member in ended.events.members]
    return Finding(reason="failed-cas", figures={"operations": f.count(CAS_FAIL)})


def _whole_reads(ended: Ended) -> Finding | None:
    events = ended.events
    f = [events.classes[member].f for member in events.members]
    reads, removes = f.count(READ_SET), f.count(REMOVE)
    if not reads or not removes:
        return None
    elements = {code.a for code in events.classes if code.f in {ADD, REMOVE}}
    return Finding(reason="whole-reads", figures={"reads": reads, "removes": removes, "elements": len(elements)})


def _beginning(ended: Ended) -> Finding:
    return Finding(reason="initial-state", figures={"elements": len(ended.events.initial)})


def _no_turns(ended: Ended) -> Finding:
    return Finding(reason="no-turns", figures={"operations": len(ended.events.members)})


_Find: TypeAlias = Callable[[Ended], Finding | None]
# By the kernel's reason why an analyzer does not apply.
_CONDITIONS: Final[Mapping[str, _Find]] = {
    "a value is written twice, or the initial value is written": _repeated,
    "an element is enqueued twice": _repeated,
    "the same is appended or put twice, and it is not clear who saw which": _repeated,
    "increments are not all equal": _unequal,
    "something was found empty, and a dequeue crashed": _empties,
    "a failed cas is taken as an observation": _observed,
    "there is something at the beginning": _beginning,
    "a process does not acquire and release by turns": _no_turns,
    "no near-linear analyzer": _whole_reads,
}


def _hardness(finding: Finding, ended: Ended, operation: Callable[[int], Operation]) -> Hardness:
    sentence, advice = REASONS[finding.reason]
    words: dict[str, str] = {name: f"{count:,}" for name, count in finding.figures.items()}
    words["functions"] = _listed(finding.functions)
    words["verb"] = _VERBS.get(ended.events.family, "made")
    words["value"] = "" if finding.example is None else value_text(_value(operation(finding.example)))
    hint = "" if ended.hinted else "; or record the `order` that the system gives to operations"
    return Hardness(
        reason=finding.reason,
        sentence=sentence.format(**words),
        advice=advice.format(hint=hint),
        figures=finding.figures,
    )


def _value(op: Operation) -> Value:
    return op.value[1] if op.f == "cas" and isinstance(op.value, list | tuple) else op.value


def _listed(functions: Mapping[str, int]) -> str:
    named = [f"{count:,} of {one_line(function)}" for function, count in list(functions.items())[:_NAMED]]
    more = sum(list(functions.values())[_NAMED:])
    return ", ".join([*named, *([f"{more:,} others"] if more else [])])


# By name: why a history is hard, and what to change in the workload.
REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "repeated-values": (
        "The value {value} is {verb} {times} times. Values that are {verb} more than once: {values}.",
        "Let each operation use a new value: then no search is needed.",
    ),
    "unequal-increments": (
        "The increments have {amounts} different amounts, so a count does not tell which of them it includes.",
        "Let all increments have the same amount: then no search is needed.",
    ),
    "whole-reads": (
        "{reads} reads of the whole set and {removes} removes connect {elements} elements.",
        "Read single elements with contains: then each element is decided separately.",
    ),
    "empty-and-crashed": (
        "{empty} dequeues found the queue empty, and {crashed} dequeues never returned.",
        "Let no dequeue crash, or stop dequeuing before the queue is empty: then no search is needed.",
    ),
    "initial-state": (
        "The object begins with {elements} elements.",
        "Let it begin empty, and let the history put the elements there: then no search is needed.",
    ),
    "failed-cas": (
        "{operations} failed compare-and-sets count as reads of another value.",
        "Leave them out with --failed-cas drop: then unique values need no search.",
    ),
    "no-turns": (
        "Among {operations} operations, some process does not acquire and release by turns.",
        "Let each process release the lock before it acquires it again: then no search is needed.",
    ),
    "crashed": (
        "{operations} operations that may change the state never returned, and may take effect at any later time: {functions}.",
        "Let fewer operations crash (longer client timeouts, shorter faults), or use fewer operations per key{hint}.",
    ),
    "overlap": (
        "Up to {at_once} operations that may change the state overlap, and at least {level} when these begin: {functions}.",
        "Use fewer processes per key{hint}.",
    ),
    "states": (
        "The model reached {states} states within {operations} operations, more than the open operations explain.",
        "Let the model's state remember less, or let more operations read the state{hint}.",
    ),
    "length": (
        "The history is long for its limits: the search reached {reached} of {operations} operations.",
        "Use a longer --time-limit, or fewer operations per key.",
    ),
}
