"""Weak models of transactions over lists, decided by definition: by every order, visible set and cycle.

Each function says whether an execution explains the answers, as its source defines the model. The histories are those of
`transaction_orders`. Nothing here is shared with the kernel.
"""

from __future__ import annotations

from itertools import chain, combinations, pairwise, permutations, product
from typing import TYPE_CHECKING, Any

from harness.op import Operation, OpType
from tests.unit.checker.transaction_orders import is_read_committed, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from tests.unit.checker.transaction_orders import Mop

    Before = Callable[[Operation, Operation], bool]

Elements = tuple[Any, ...]


def possible(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Yields the transactions that happened: those that succeeded, and some of those without an answer."""
    sure = [operation for operation in operations if operation.type is OpType.OK]
    perhaps = [operation for operation in operations if operation.type is OpType.INFO]
    for some in chain.from_iterable(combinations(perhaps, count) for count in range(len(perhaps) + 1)):
        yield [*sure, *some]


def mops_of(operation: Operation) -> Any:
    """Returns the micro-operations; only those of a transaction that succeeded have the results of reads."""
    return operation.result if operation.type is OpType.OK else operation.value


def weak_history(random: Random, *, most: int) -> list[Operation]:
    """Returns transactions on three keys whose reads see some of the transactions before them, each key by itself.

    So their reads may be fractured, without causes or in different orders; in some histories these are rare.

    Args:
        random: Draws everything.
        most: The largest number of transactions.
    """
    count, keys = random.randint(3, most), "xyz"[: random.choice([2, 2, 3])]
    types = random.choices([OpType.OK, OpType.INFO], [12, 1], k=count)
    plans: list[list[Mop]] = []
    written = dict.fromkeys(keys, 0)
    for _ in range(count):
        plan: list[Mop] = []
        for _ in range(random.randint(1, 3)):
            key = random.choice(keys)
            if random.random() < 0.55:
                plan.append(["r", key, None])
            else:
                written[key] += 1
                plan.append(["append", key, written[key]])
        plans.append(plan)
    age = random.choice([0.2, 0.5, 0.8])
    lists: dict[Any, list[Elements]] = {key: [()] for key in keys}
    transactions = []
    for number, plan in enumerate(plans):
        own: dict[Any, Elements] = {}
        first: dict[Any, Elements] = {}
        answer: list[Mop] = []
        for f, key, value in plan:
            if f != "r":
                own[key] = (*own.get(key, ()), value)
                answer.append([f, key, value])
                continue
            states = lists[key]
            back = random.randrange(len(states)) if random.random() < age else 0
            seen = states[-1] if own.get(key) else first.setdefault(key, states[-1 - back])
            answer.append([f, key, [*seen, *own.get(key, ())]])
        for key, some in own.items():
            lists[key].append(lists[key][-1] + some)
        end = None if types[number] is OpType.INFO else 2 * number + 3
        transactions.append(transaction(number, types[number], answer, start=2 * number, end=end, request=plan))
    return transactions


def appends_of(operation: Operation) -> dict[Any, Elements]:
    """Returns the appended elements by key."""
    appended: dict[Any, Elements] = {}
    for f, key, value in mops_of(operation):
        if f != "r":
            appended[key] = (*appended.get(key, ()), value)
    return appended


def reads_of(operation: Operation) -> list[tuple[Any, Elements, Elements]]:
    """Returns each read with a result: the key, the list, and what the transaction appended to the key before."""
    own: dict[Any, Elements] = {}
    reads = []
    for f, key, value in mops_of(operation):
        if f != "r":
            own[key] = (*own.get(key, ()), value)
        elif operation.type is OpType.OK:
            reads.append((key, tuple(value or ()), own.get(key, ())))
    return reads


def list_after(order: Sequence[Operation], key: Any) -> Elements:
    """Returns the list of a key after some transactions, one after the other."""
    return tuple(chain.from_iterable(appends_of(operation).get(key, ()) for operation in order))


def is_read_uncommitted(operations: Sequence[Operation], before: Before) -> bool:
    """Returns whether all transactions append to all keys in one order, as the longest list of each key shows it.

    No list has an element twice, or one that nobody appended. A list may have elements of failed transactions, which count
    nothing. Source: PL-1 of A. Adya, *Weak consistency*, MIT, 1999, section 3.1: the write dependencies have no cycle.
    """
    everything = {pair for operation in operations for some in _all_appends(operation).values() for pair in some}
    lists = [[(key, element) for element in value] for operation in operations for key, value, _ in reads_of(operation)]
    if any(len(set(value)) < len(value) or not set(value) <= everything for value in lists):
        return False
    return any(
        all(not before(other, one) for one, other in combinations(order, 2)) and _appends_in(order, operations)
        for some in possible(operations)
        for order in permutations(some)
    )


def _all_appends(operation: Operation) -> dict[Any, Elements]:
    """Returns elements with their keys, which makes those of different keys different."""
    return {key: tuple((key, element) for element in some) for key, some in appends_of(operation).items()}


def _appends_in(order: Sequence[Operation], operations: Sequence[Operation]) -> bool:
    positions = {
        pair: at for at, operation in enumerate(order) for some in _all_appends(operation).values() for pair in some
    }
    for key in {key for operation in operations for key, _, _ in reads_of(operation)}:
        longest = longest_list(operations, key)
        lost = [element for element in longest if (key, element) not in positions]
        failed = [
            element
            for operation in operations
            if operation.type is OpType.FAIL
            for element in appends_of(operation).get(key, ())
        ]
        if not set(lost) <= set(failed):
            return False  # the list shows that the transaction happened
        at = [positions[key, element] for element in longest if (key, element) in positions]
        unread = [where for (of, element), where in positions.items() if of == key and element not in longest]
        if any(one > other for one, other in pairwise(at)) or (at and unread and min(unread) < at[-1]):
            return False
    return True


def longest_list(operations: Sequence[Operation], key: Any) -> Elements:
    """Returns the longest list that was read of a key, the first of several."""
    lists = [value for operation in operations for read, value, _ in reads_of(operation) if read == key]
    return max(lists, key=len, default=())


def has_rival_lists(operations: Sequence[Operation]) -> bool:
    """Returns whether two longest lists of a key differ, so that either may be the order."""
    lists = {(key, value) for operation in operations for key, value, _ in reads_of(operation)}
    return any(
        key == other and value != another and len(value) == len(another) == len(longest_list(operations, key))
        for (key, value), (other, another) in combinations(lists, 2)
    )


def is_visible(
    operations: Sequence[Operation], *, transitive: bool = False, prefix: bool = False, apart: bool = False
) -> bool:
    """Returns whether an order of the transactions, and for each the earlier ones that it sees, explain all answers.

    A transaction sees all of another one or nothing. It reads what the last visible transaction that appended to the key left
    there.

    Args:
        operations: The transactions.
        transitive: What a visible transaction sees is visible: causal consistency.
        prefix: All transactions up to a visible one are visible: prefix consistency.
        apart: Of two transactions that append to one key, one sees the other: update atomic alone, parallel snapshot isolation
            with `transitive`, and snapshot isolation with `prefix`.

    Source: A. Cerone, G. Bernardi, A. Gotsman, *A framework for transactional consistency models with atomic visibility*,
    CONCUR 2015.
    """

    def search(left: list[Operation], order: list[Operation], seen: list[frozenset[int]]) -> bool:
        if not left:
            return True
        for candidate in left:
            rest = [other for other in left if other is not candidate]
            for visible in _sets(len(order), prefix=prefix):
                if transitive and not all(seen[index] <= visible for index in visible):
                    continue
                if apart and any(
                    index not in visible and appends_of(order[index]).keys() & appends_of(candidate).keys()
                    for index in range(len(order))
                ):
                    continue
                if _sees(candidate, order, visible) and search(rest, [*order, candidate], [*seen, visible]):
                    return True
                if candidate.type is not OpType.OK and not apart:
                    break  # it reads nothing, so to see more does not help
        return False

    return any(search(some, [], []) for some in possible(operations))


def _sets(count: int, *, prefix: bool) -> Iterator[frozenset[int]]:
    if prefix:
        yield from (frozenset(range(size)) for size in range(count + 1))
        return
    for size in range(count + 1):
        yield from map(frozenset, combinations(range(count), size))


def _sees(operation: Operation, order: Sequence[Operation], visible: frozenset[int]) -> bool:
    first: dict[Any, Elements] = {}
    for key, value, own in reads_of(operation):
        base = first.setdefault(key, value) if not own else first.get(key)
        if own and base is not None and value != base + own:
            return False
        if own:
            if value != list_after(order, key) + own:
                return False
            continue
        writers = [index for index in visible if key in appends_of(order[index])]
        if value != base or value != list_after(order[: max(writers, default=-1) + 1], key):
            return False
    return True


def is_monotonic_atomic(operations: Sequence[Operation]) -> bool:
    """Returns whether an order of the transactions, and a growing set of visible ones within each, explain all reads.

    Source: P. Bailis and others, *Highly available transactions: virtues and limitations*, VLDB 2014, section 5.1.2: once a
    transaction saw some effect of another one, it sees all its effects.
    """

    def sees(operation: Operation, order: Sequence[Operation]) -> bool:
        needed: set[int] = set()
        for key, value, own in reads_of(operation):
            if own:
                if value != list_after(order, key) + own:
                    return False
                continue
            places = [index for index in range(-1, len(order)) if index < 0 or key in appends_of(order[index])]
            fitting = [index for index in places if value == list_after(order[: index + 1], key)]
            if not fitting or any(index > fitting[0] for index in needed if key in appends_of(order[index])):
                return False
            needed |= {index for index in fitting if index >= 0}
        return True

    def search(left: list[Operation], order: list[Operation]) -> bool:
        return not left or any(
            sees(candidate, order) and search([other for other in left if other is not candidate], [*order, candidate])
            for candidate in left
        )

    return any(search(some, []) for some in possible(operations))


def has_no_cycle(operations: Sequence[Operation], *, most: int) -> bool:
    """Returns whether the history is read committed, and each cycle of dependencies has many anti-dependencies.

    Args:
        operations: The transactions.
        most: The largest number of anti-dependencies of a forbidden cycle.

    Source: PL-2+ (at most one, section 4.2) and PL-2.99 (any number, section 3.2) of A. Adya, *Weak consistency*, MIT, 1999.
    """
    if not is_read_committed(operations, lambda _one, _other: False):
        return False
    return any(
        not _has_cycle(kinds, most) for some in possible(operations) for kinds in _dependencies(some, operations)
    )


Kinds = dict[tuple[int, int], set[str]]


def _dependencies(some: Sequence[Operation], operations: Sequence[Operation]) -> Iterator[Kinds]:
    """Yields the dependencies between transactions, for each order of the appends that no read shows."""
    for orders in _orders(some, operations):
        yield _kinds(some, orders)


def _orders(some: Sequence[Operation], operations: Sequence[Operation]) -> Iterator[dict[Any, list[int]]]:
    """Yields the transactions that append to each key, in each order that the reads allow."""
    read = {key for operation in operations for key, _, _ in reads_of(operation)}
    keys = sorted(read.union(*map(appends_of, some)))
    chains = []
    for key in keys:
        longest = longest_list(operations, key)
        of_elem = {element: at for at, operation in enumerate(some) for element in appends_of(operation).get(key, ())}
        if not set(longest) <= of_elem.keys():
            return  # a read shows a transaction that is not among them
        known = list(dict.fromkeys(of_elem[element] for element in longest))
        unread = sorted(set(of_elem.values()) - set(known))
        chains.append([[*known, *more] for more in permutations(unread)])
    for orders in product(*chains):
        yield dict(zip(keys, orders, strict=True))


def _kinds(some: Sequence[Operation], orders: dict[Any, list[int]]) -> Kinds:
    kinds: Kinds = {}
    for key, order in orders.items():
        for pair, kind in _of_key(some, key, order):
            if pair[0] != pair[1]:
                kinds.setdefault(pair, set()).add(kind)
    return kinds


def _of_key(some: Sequence[Operation], key: Any, order: Sequence[int]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields the dependencies of one key whose writers are in an order."""
    for pair in pairwise(order):
        yield pair, "ww"
    for reader, operation in enumerate(some):
        for of, value, own in reads_of(operation):
            if of != key or own:
                continue
            seen = [at for at in order if value and value[-1] in appends_of(some[at])[key]]
            for at in seen:
                yield (at, reader), "wr"
            later = order[order.index(seen[0]) + 1 if seen else 0 :]
            for at in later[:1]:
                yield (reader, at), "rw"


def _has_cycle(kinds: Kinds, most: int) -> bool:
    """Returns whether a cycle without repeated transactions has at most some number of anti-dependencies."""
    nodes = sorted({node for pair in kinds for node in pair})
    for size in range(2, len(nodes) + 1):
        for some in permutations(nodes, size):
            hops = [kinds.get(pair) for pair in pairwise([*some, some[0]])]
            if all(hops) and sum(hop == {"rw"} for hop in hops) <= most:
                return True
    return False


def has_unordered_appends(operations: Sequence[Operation]) -> bool:
    """Returns whether no read shows the order of some transactions that append to a key and may have happened."""
    writers: dict[Any, set[int]] = {}
    for operation in operations:
        for key, some in appends_of(operation).items() if operation.type is not OpType.FAIL else ():
            if not set(some) <= set(longest_list(operations, key)):
                writers.setdefault(key, set()).add(id(operation))
    return any(len(writer) > 1 for writer in writers.values())


def is_snapshot_read(operations: Sequence[Operation]) -> bool:
    """Returns whether the history is read committed, and an order of all reads and commits explains each read.

    A transaction is its reads and then its commit. Reads after own appends are not looked at here.
    Source: PL-MSR of A. Adya, *Weak consistency*, MIT, 1999, section 4.2.
    """
    return is_read_committed(operations, lambda _one, _other: False) and any(map(_is_ordered, possible(operations)))


def _is_ordered(operations: Sequence[Operation]) -> bool:
    def search(places: tuple[int, ...], state: dict[Any, Elements]) -> bool:
        if all(position > len(mops_of(operation)) for position, operation in zip(places, operations, strict=True)):
            return True
        for at, operation in enumerate(operations):
            position, after = places[at], state
            if position == len(mops_of(operation)):
                after = state | {key: state.get(key, ()) + some for key, some in appends_of(operation).items()}
            elif position > len(mops_of(operation)) or not _fits_state(operation, position, state):
                continue
            if search((*places[:at], position + 1, *places[at + 1 :]), after):
                return True
        return False

    return search((0,) * len(operations), {})


def _fits_state(operation: Operation, position: int, state: dict[Any, Elements]) -> bool:
    """Returns whether a micro-operation is no read, or one after an own append, or reads a state."""
    f, key, value = mops_of(operation)[position]
    own = any(mop[0] != "r" and mop[1] == key for mop in mops_of(operation)[:position])
    return f != "r" or operation.type is not OpType.OK or own or tuple(value or ()) == state.get(key, ())


def is_monotonic_view(operations: Sequence[Operation]) -> bool:
    """Returns whether the history is read committed, and no read misses what its transaction depends on by an earlier read.

    Source: PL-2L of A. Adya, *Weak consistency*, MIT, 1999, section 4.2.
    """
    return is_read_committed(operations, lambda _one, _other: False) and any(
        not any(_misses(some, orders, reader) for reader in range(len(some)))
        for some in possible(operations)
        for orders in _orders(some, operations)
    )


def _misses(some: Sequence[Operation], orders: dict[Any, list[int]], reader: int) -> bool:
    kinds = _kinds(some, orders)
    seen: set[int] = set()  # what the transaction depends on by the reads so far
    for key, value, own in reads_of(some[reader]):
        if own:
            continue
        order = orders[key]
        writers = [at for at in order if value and value[-1] in appends_of(some[at])[key]]
        later = order[order.index(writers[0]) + 1 if writers else 0 :]
        if seen & (set(later) - {reader}):
            return True
        new = list(writers)
        while new:
            node = new.pop()
            seen.add(node)
            new += [one for (one, other), hop in kinds.items() if other == node and hop - {"rw"} and one not in seen]
    return False


def is_update_serializable(operations: Sequence[Operation]) -> bool:
    """Returns whether the history is read committed, and those that append, with each one that does not, have no cycle.

    Source: PL-3U of A. Adya, *Weak consistency*, MIT, 1999, section 4.3.
    """
    return is_read_committed(operations, lambda _one, _other: False) and any(
        not any(
            _has_cycle({pair: hop for pair, hop in kinds.items() if readers.isdisjoint(set(pair) - {one})}, len(some))
            for one in (-1, *readers)
        )
        for some in possible(operations)
        for readers in [{at for at, operation in enumerate(some) if not appends_of(operation)}]
        for kinds in _dependencies(some, operations)
    )
