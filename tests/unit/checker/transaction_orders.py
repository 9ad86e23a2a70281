"""Small histories of transactions, and models decided by definition: by every order of them, without any graph.

A serial order executes whole transactions one after the other. Snapshot isolation executes starts and commits: a transaction
reads what was committed at its start and its own writes. Of two transactions that write the same key, one commits before the
other starts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from harness.op import Operation, OpType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import Random

Mop = list[Any]
State = dict[Any, tuple[Any, ...]]


def transaction(
    process: int,
    type_: OpType,
    mops: Sequence[Mop],
    *,
    start: int,
    end: int | None,
    request: Sequence[Mop] | None = None,
    shows: bool = False,
) -> Operation:
    """Returns a transaction; the request of a read has no result.

    Without an answer, it has results of reads only if it shows them.
    """
    asked = [[f, key, None if f == "r" else value] for f, key, value in mops] if request is None else request
    return Operation(
        process=process,
        f="txn",
        value=asked,
        result=[list(mop) for mop in mops] if type_ is OpType.OK or (shows and type_ is OpType.INFO) else None,
        type=type_,
        start_ns=start,
        end_ns=end,
        invoke_index=start,
        complete_index=end,
        key=None,
    )


def random_history(random: Random, *, most: int, lists: bool, shows: bool = False) -> list[Operation]:
    """Returns transactions on two keys that a store of random strength answered.

    Args:
        random: Draws everything.
        most: The largest number of transactions.
        lists: Whether the values are lists, and not registers.
        shows: Whether transactions without an answer show results of reads; and there are more of them.
    """
    count = random.randint(3, most)
    written = dict.fromkeys("xy", 0)
    plans: list[list[Mop]] = []
    for _ in range(count):
        plan: list[Mop] = []
        for _ in range(random.randint(1, 3)):
            key = random.choice("xy")
            if random.random() < 0.5:
                plan.append(["r", key, None])
            else:
                written[key] += 1
                plan.append(["append" if lists else "w", key, written[key]])
        plans.append(plan)
    types = random.choices([OpType.OK, OpType.INFO, OpType.FAIL], [12, 8 if shows else 2, 1], k=count)
    spans = _spans(random, types)
    answers = _answered(random, plans, types, spans, lists=lists, shows=shows)
    transactions = [
        transaction(process, type_, answer, start=start, end=end, request=plan, shows=shows)
        for plan, answer, type_, (process, start, end) in zip(plans, answers, types, spans, strict=True)
    ]
    return sorted(transactions, key=lambda operation: operation.invoke_index)


def doubled(random: Random, operations: Sequence[Operation]) -> list[Operation]:
    """Returns the same transactions with some elements of a key made equal, so that they were written twice."""
    changed = list(operations)
    for _ in range(random.randint(1, 2)):
        of_key, before, after = random.choice("xy"), random.randint(1, 4), random.randint(1, 4)

        def named(value: Any, before: int = before, after: int = after) -> Any:
            if isinstance(value, list):
                return [named(member) for member in value]
            return after if value == before else value

        def renamed(mops: Any, of_key: str = of_key, named: Callable[[Any], Any] = named) -> Any:
            return mops and [[f, key, named(value) if key == of_key else value] for f, key, value in mops]

        changed = [
            replace(operation, value=renamed(operation.value), result=renamed(operation.result))
            for operation in changed
        ]
    return changed


def _spans(random: Random, types: Sequence[OpType]) -> list[tuple[int, int, int | None]]:
    """Returns a process, a start and an end for each transaction; starts ascend, and some overlap."""
    events: list[tuple[str, int]] = []
    waiting = list(range(len(types)))
    open_: list[int] = []
    while waiting or open_:
        if waiting and (not open_ or (len(open_) < 3 and random.random() < 0.5)):
            open_.append(waiting.pop(0))
            events.append(("start", open_[-1]))
        else:
            events.append(("end", open_.pop(random.randrange(len(open_)))))
    start = {number: at for at, (what, number) in enumerate(events) if what == "start"}
    end = {number: at for at, (what, number) in enumerate(events) if what == "end"}
    free: list[int] = []
    process: dict[int, int] = {}
    fresh = 0
    for what, number in events:
        if what == "end":
            if types[number] is not OpType.INFO:
                free.append(process[number])
        elif free and random.random() < 0.8:
            process[number] = free.pop(random.randrange(len(free)))
        else:
            process[number], fresh = fresh, fresh + 1
    return [(process[n], start[n], None if types[n] is OpType.INFO else end[n]) for n in range(len(types))]


def _answered(
    random: Random,
    plans: Sequence[Sequence[Mop]],
    types: Sequence[OpType],
    spans: Sequence[tuple[int, int, int | None]],
    *,
    lists: bool,
    shows: bool,
) -> list[list[Mop]]:
    """Executes the transactions in a random order on snapshots that may be old, and rarely corrupts a read."""
    slack = random.choice([0, 1, 1, 2])
    order = sorted(range(len(plans)), key=lambda number: spans[number][1] + random.random() * 4 * slack)
    history: list[State] = [{}]
    answers: list[list[Mop]] = [[] for _ in plans]
    for number in order:
        seen = dict(history[max(0, len(history) - 1 - random.randint(0, slack))])
        newest = dict(history[-1])
        applies = types[number] is OpType.OK or (
            types[number] is OpType.INFO and random.random() < (0.9 if shows else 0.6)
        )
        if types[number] is OpType.FAIL and random.random() < 0.2:
            applies = True
        for f, key, value in plans[number]:
            if f == "r":
                shown = seen.get(key, ())
                if shows and types[number] is OpType.INFO and random.random() < 0.3:
                    shown = random.choice([(1,), (2,), (2, 1), (1, 2)])
                elif random.random() < 0.04:
                    swapped = (*shown[:-2], *shown[:-3:-1])
                    shown = random.choice(
                        [shown[:-1], shown[1:], (*shown, 99), shown[::-1], swapped, shown + shown[-1:]]
                    )
                answers[number].append([f, key, (list(shown) or None) if lists else (shown[-1] if shown else None)])
            else:
                seen[key] = (*seen.get(key, ()), value)
                newest[key] = (*newest.get(key, ()), value)
                answers[number].append([f, key, value])
        if applies:
            history.append(newest)
    return answers


def is_serial(
    operations: Sequence[Operation],
    before: Callable[[Operation, Operation], bool],
    fits: Callable[[Sequence[Operation]], bool] | None = None,
) -> bool:
    """Returns whether an order of the transactions explains all answers.

    Args:
        operations: The transactions; some of those without an answer may be left out.
        before: Whether the first transaction must precede the second one.
        fits: What must hold of the order besides.
    """
    return any(_has_serial_order(some, before, fits) for some in _possible(operations))


def keeps_versions(before: Callable[[Operation, Operation], bool]) -> Callable[[Sequence[Operation]], bool]:
    """Returns what decides whether the versions of each register or list follow a partial order of the transactions.

    The version that a transaction leaves, or else reads first, is not after the one that a later transaction reads first, or
    else leaves.
    """

    def fits(order: Sequence[Operation]) -> bool:
        positions: dict[tuple[Any, Any], int] = {}
        for operation in order:
            for f, key, value in _mops(operation):
                if f != "r":
                    positions[key, value] = len(positions)
        spans = {id(operation): _versions(operation, positions) for operation in order}
        return all(
            spans[id(one)][key][1] <= spans[id(other)][key][0]
            for one in order
            for other in order
            if one is not other and before(one, other)
            for key in spans[id(one)].keys() & spans[id(other)].keys()
        )

    return fits


def _versions(operation: Operation, positions: Mapping[tuple[Any, Any], int]) -> dict[Any, tuple[int, int]]:
    """Returns for each key the first version that a transaction has, and the last one, as places; -1 is the initial version."""
    versions: dict[Any, tuple[int, int]] = {}
    last = {key: value for f, key, value in _mops(operation) if f != "r"}
    for f, key, value in _mops(operation):
        if key in versions or (f == "r" and operation.type is not OpType.OK):
            continue
        first = last[key] if f == "w" else (value or [None])[-1] if isinstance(value, list) else value
        versions[key] = (positions.get((key, first), -1), positions.get((key, last.get(key, first)), -1))
    return versions


def _possible(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    sure = [operation for operation in operations if operation.type is OpType.OK]
    perhaps = [operation for operation in operations if operation.type is OpType.INFO]
    for count in range(len(perhaps) + 1):
        for some in combinations(perhaps, count):
            yield [*sure, *some]


def _executed(operation: Operation, seen: State) -> State | None:
    """Returns the state after a transaction; None if its answers contradict the state."""
    state = dict(seen)
    known = operation.type is OpType.OK
    mops: Any = operation.value if operation.result is None else operation.result
    for f, key, value in mops:
        now = state.get(key, ())
        if f == "append":
            state[key] = (*now, value)
        elif f == "w":
            state[key] = (value,)
        elif (known or value is not None) and not _fits(value, now):
            return None
    return state


def _fits(value: Any, now: tuple[Any, ...]) -> bool:
    if isinstance(value, list):
        return tuple(value) == now
    return (value is None and not now) or now == (value,)


def _has_serial_order(
    operations: Sequence[Operation],
    before: Callable[[Operation, Operation], bool],
    fits: Callable[[Sequence[Operation]], bool] | None,
) -> bool:
    order: list[Operation] = []

    def search(left: list[Operation], state: State) -> bool:
        if not left:
            return fits is None or fits(order)
        for candidate in left:
            others = [other for other in left if other is not candidate]
            if any(before(other, candidate) for other in others):
                continue
            after = _executed(candidate, state)
            if after is None:
                continue
            order.append(candidate)
            if search(others, after):
                return True
            order.pop()
        return False

    return search(list(operations), {})


def is_replayed(order: Sequence[Operation]) -> bool:
    """Returns whether executing transactions one after the other gives all answers, in linear time."""
    state: dict[Any, Any] = {}
    for operation in order:
        for f, key, value in _mops(operation):
            if f == "append":
                state.setdefault(key, []).append(value)
            elif f == "w":
                state[key] = value
            elif operation.type is OpType.OK and (value or None) != (state.get(key) or None):
                return False
    return True


def is_read_committed(operations: Sequence[Operation], before: Callable[[Operation, Operation], bool]) -> bool:
    """Returns whether an order of whole transactions explains all first reads by states that some earlier one left.

    Each key of a transaction may be of another state. A read after own appends shows the last state with them. Other reads
    that are not the first of their key are not looked at.
    Source: N. Crooks and others, *Seeing is believing: a client-centric specification of database isolation*, PODC 2017.
    """
    return any(_has_committed_reads(some, before) for some in _possible(operations))


def _has_committed_reads(operations: Sequence[Operation], before: Callable[[Operation, Operation], bool]) -> bool:
    def search(left: list[Operation], states: list[State]) -> bool:
        if not left:
            return True
        for candidate in left:
            others = [other for other in left if other is not candidate]
            if any(before(other, candidate) for other in others) or not _reads_committed(candidate, states):
                continue
            if search(others, [*states, _committed(candidate, states[-1])]):
                return True
        return False

    return search(list(operations), [{}])


def _reads_committed(operation: Operation, states: Sequence[State]) -> bool:
    own: State = {}
    accessed = set()
    for f, key, value in _mops(operation) if operation.type is OpType.OK else ():
        if f != "r":
            own[key] = (*own.get(key, ()), value)
        elif key in own:
            if not _fits(value, states[-1].get(key, ()) + own[key]):
                return False
        elif key not in accessed and not any(_fits(value, state.get(key, ())) for state in states):
            return False
        accessed.add(key)
    return True


def is_snapshot_isolated(operations: Sequence[Operation], before: Callable[[Operation, Operation], bool]) -> bool:
    """Returns whether an order of starts and commits explains all answers; `before` orders a commit and a start."""
    return any(_has_snapshots(some, before) for some in _possible(operations))


def _has_snapshots(operations: Sequence[Operation], before: Callable[[Operation, Operation], bool]) -> bool:
    keys = {id(operation): {key for f, key, _ in _mops(operation) if f != "r"} for operation in operations}

    def search(waiting: list[Operation], begun: Mapping[int, set[int]], open_: list[Operation], state: State) -> bool:
        if not waiting and not open_:
            return True
        for candidate in waiting:
            uncommitted = [other for other in (*waiting, *open_) if other is not candidate]
            if any(before(other, candidate) for other in uncommitted) or _executed(candidate, state) is None:
                continue
            rest = [other for other in waiting if other is not candidate]
            if search(rest, {**begun, id(candidate): set()}, [*open_, candidate], state):
                return True
        for candidate in open_:
            if any(keys[id(candidate)] & keys[other] for other in begun[id(candidate)]):
                continue
            rest = [other for other in open_ if other is not candidate]
            after = {
                other: ({*some, id(candidate)} if other in {id(o) for o in rest} else some)
                for other, some in begun.items()
            }
            if search(waiting, after, rest, _committed(candidate, state)):
                return True
        return False

    return search(list(operations), {}, [], {})


def _mops(operation: Operation) -> Any:
    return operation.result if operation.type is OpType.OK else operation.value


def _committed(operation: Operation, state: State) -> State:
    after = dict(state)
    for f, key, value in _mops(operation):
        if f != "r":
            after[key] = (*after.get(key, ()), value) if f == "append" else (value,)
    return after


def any_order(one: Operation, other: Operation) -> bool:
    """Orders nothing."""
    del one, other
    return False


def session_order(one: Operation, other: Operation) -> bool:
    """Orders the transactions of a process that succeeded."""
    return (
        one.type is OpType.OK
        and other.type is OpType.OK
        and one.process == other.process
        and one.invoke_index < other.invoke_index
    )


def real_time(one: Operation, other: Operation) -> bool:
    """Orders a transaction that succeeded before another one began."""
    return one.type is OpType.OK and one.complete_index is not None and one.complete_index < other.invoke_index
