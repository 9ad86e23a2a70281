"""The exhaustive search: against a plain search over whole clusters, on random protocols."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.sim.explore.form import FormError, digest
from clusters.sim.explore.found import Bounds
from clusters.sim.explore.history import Seen, asked, operations
from clusters.sim.explore.nodes import Kind, Nodes
from clusters.sim.explore.search import Search
from clusters.sim.host import Reply, Request
from harness.op import Invocation, Ok, OpType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clusters.sim.explore.found import Explored
    from clusters.sim.host import Host
    from harness.op import Operation

NAMES = ("a", "b", "c")
STATES, KINDS = 4, 3
MOST_STATES = 4000


class Table:
    """A random protocol: what a node in a state does with a message, or when its timer fires.

    With a hub, `a` and `b` send to `c` only, and nothing before it has sent something. So they are reactors. With twins, they
    also do the same, and `c` sends to both. With ages, states only grow, and messages of lower kinds have no effect any more.
    """

    def __init__(self, seed: int, *, hub: bool = False, twins: bool = False, ages: bool = False) -> None:
        random = Random(seed)

        def reaction(node: int, most: int = 2) -> tuple[int, list[tuple[int, int]]]:
            targets = (2,) if hub and node < 2 else range(3)
            sent = [(random.choice(targets), random.randrange(KINDS)) for _ in range(random.choice((0, 0, 1, 2)))]
            return random.randrange(STATES), sent[:most]

        self.on_message = {key: reaction(key[0]) for key in itertools.product(range(3), range(STATES), range(KINDS))}
        self.on_timer = {
            key: reaction(key[0], 0 if hub and key[0] < 2 else 2) for key in itertools.product(range(3), range(STATES))
        }
        if ages:
            self._make_ages()
        if twins:
            self._make_twins()
        self.wrong = {(random.randrange(STATES), random.randrange(STATES)) for _ in range(2)}

    def _make_ages(self) -> None:
        """Lets no state fall. In a state, messages of a kind below it have no effect."""
        for (node, state), (following, sent) in self.on_timer.items():
            self.on_timer[node, state] = max(state, following), sent
        for (node, state, kind), (following, sent) in self.on_message.items():
            reaction = (state, []) if kind < state else (max(state, following), sent)
            self.on_message[node, state, kind] = reaction

    def _make_twins(self) -> None:
        """Lets `b` do what `a` does, and `c` send to both."""

        def to_both(reaction: tuple[int, list[tuple[int, int]]]) -> tuple[int, list[tuple[int, int]]]:
            return reaction[0], [(to, kind) for _, kind in reaction[1] for to in (0, 1)]

        for state in range(STATES):
            for kind in range(KINDS):
                self.on_message[1, state, kind] = self.on_message[0, state, kind]
                self.on_message[2, state, kind] = to_both(self.on_message[2, state, kind])
            self.on_timer[1, state] = self.on_timer[0, state]
            self.on_timer[2, state] = to_both(self.on_timer[2, state])

    def conflict(self, first: int, second: int) -> bool:
        """Returns whether two nodes must not be in these states at the same time."""
        return 0 not in (first, second) and bool({(first, second), (second, first)} & self.wrong)


class TableProcess:
    """A process of a random protocol. It sends no message to itself."""

    def __init__(self, host: Host, table: Table) -> None:
        self.host = host
        self.table = table
        self.place = NAMES.index(host.name)
        self.state = 0

    def start(self) -> None:
        """Sets the timer."""
        self.wait()

    def wait(self) -> None:
        """Sets the timer again."""
        self.host.after(1, self.fire)

    def fire(self) -> None:
        """Does what the table has for the timer."""
        self.react(self.table.on_timer[self.place, self.state])
        self.wait()

    def receive(self, sender: str, message: Any) -> None:
        """Does what the table has for a message. A request is a message of kind 0, and its answer is the state before."""
        if isinstance(message, Request):
            self.host.send(sender, Reply(message.id, self.state))
            message = message.body
        self.react(self.table.on_message[self.place, self.state, message])

    def react(self, reaction: tuple[int, list[tuple[int, int]]]) -> None:
        """Takes a state and sends messages."""
        self.state, sent = reaction
        for to, message in sent:
            if to != self.place:
                self.host.send(NAMES[to], message)


def explored(table: Table, bounds: Bounds, *, reads: int = 0, alike: Sequence[int] = ()) -> Explored:
    """Returns the result of a search of a random protocol. Two reads in a row must not answer wrong states."""
    states: dict[int, int] = {}
    nodes = Nodes(NAMES, lambda name: lambda host: TableProcess(host, table), (0,) * reads)

    def judge(history: Sequence[Operation]) -> str | None:
        results = [operation.result for operation in history]
        return "wrong reads" if len(results) == 2 and tuple(results) in table.wrong else None

    search = Search(
        nodes,
        asked([Invocation("read")] * reads),
        bounds=bounds,
        outcome=lambda number, answer: Ok(answer),
        judge=judge,
        conflict=lambda first, second: "wrong" if table.conflict(states[first], states[second]) else None,
        matters=lambda number: states[number] != 0,
        alike=alike,
    )
    return search.run(
        lambda number, live: states.__setitem__(number, live.process.state), lambda *told: None, lambda *told: None
    )


Whole = tuple[tuple[int, ...], tuple[tuple[int, int, int], ...], int]
"""A state of a whole cluster: the state of each node, the messages under way (from, to, kind), and the timers used."""


def followers(table: Table, whole: Whole, timers: int) -> list[Whole]:
    """Returns the state after each event that can follow a state."""
    states, bag, used = whole
    possible: list[tuple[int, tuple[int, list[tuple[int, int]]], int | None]] = [
        (to, table.on_message[to, states[to], kind], bag.index((source, to, kind))) for source, to, kind in set(bag)
    ]
    if used < timers:
        possible += [(node, table.on_timer[node, states[node]], None) for node in range(3)]
    wholes: list[Whole] = []
    for index, (state, sent), taken in possible:
        left = list(bag) if taken is None else [*bag[:taken], *bag[taken + 1 :]]
        left += [(index, *message) for message in sent if message[0] != index]
        wholes.append(((*states[:index], state, *states[index + 1 :]), tuple(sorted(left)), used + (taken is None)))
    return wholes


def nearest(table: Table, timers: int) -> int | None:
    """Returns after how many events two nodes conflict first, by a plain search of whole clusters.

    None: they never do; -1: there are too many states.
    """
    layer: set[Whole] = {((0, 0, 0), (), 0)}
    seen, depth = set(layer), 0
    while layer:
        following = set()
        for whole in layer:
            if any(table.conflict(x, y) for x, y in itertools.permutations(whole[0], 2)):
                return depth
            following |= {after for after in followers(table, whole, timers) if after not in seen}
        seen |= following
        if len(seen) > MOST_STATES:
            return -1
        layer, depth = following, depth + 1
    return None


def orders(table: Table, timers: int) -> int | None:
    """Returns the number of orders of events until nothing more can happen, one by one; None if they have no end."""
    known: dict[Whole, int | None] = {}

    def after(whole: Whole) -> int | None:
        if whole not in known:
            known[whole] = None  # while its orders are counted, a return to it is an order without end
            counts = [after(following) for following in followers(table, whole, timers)]
            known[whole] = None if None in counts else sum(filter(None, counts)) if counts else 1
        return known[whole]

    return after(((0, 0, 0), (), 0))


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_search_finds_the_nearest_violation_or_none(seed: int, timers: int) -> None:
    """The reduced and the full search agree with a plain one on whether there is a violation, and after how many events."""
    table = Table(seed)
    expected = nearest(table, timers)
    if expected == -1:
        return
    for reduced in (True, False):
        result = explored(table, Bounds(timers=timers, reduced=reduced))
        if "copies of a message" in result.left:
            return
        assert not result.left
        assert (None if result.violation is None else len(result.violation.events)) == expected


@given(st.integers(0, 2**32), st.booleans(), st.integers(0, 2))
def test_the_reduced_search_agrees_with_the_full_one(seed: int, hub: bool, reads: int) -> None:
    """With several nodes that only answer, and with clients, too: the nearest violation, if any, is as near."""
    table = Table(seed, hub=hub)
    full, reduced = (
        explored(table, Bounds(timers=1, states=MOST_STATES, reduced=reduced), reads=reads) for reduced in (False, True)
    )
    if full.left or reduced.left:
        return
    lengths = [None if result.violation is None else len(result.violation.events) for result in (full, reduced)]
    assert lengths[0] == lengths[1]


@given(st.integers(0, 2**32), st.booleans(), st.integers(0, 2))
def test_late_messages_lose_no_violation(seed: int, hub: bool, reads: int) -> None:
    """Where many messages come too late, the nearest violation, if any, is as near."""
    table = Table(seed, hub=hub, ages=True)
    full, reduced = (
        explored(table, Bounds(timers=2, states=MOST_STATES, reduced=reduced), reads=reads) for reduced in (False, True)
    )
    if full.left or reduced.left:
        return
    lengths = [None if result.violation is None else len(result.violation.events) for result in (full, reduced)]
    assert lengths[0] == lengths[1]


@given(st.integers(0, 2**32), st.integers(0, 2), st.booleans())
def test_a_search_with_twins_agrees_with_the_full_one(seed: int, timers: int, ages: bool) -> None:
    """The nearest violation, if any, is as near, and no more states are visited than without symmetry."""
    table = Table(seed, hub=True, twins=True, ages=ages)
    bounds = Bounds(timers=timers, states=MOST_STATES)
    full, plain, twins = (
        explored(table, replace(bounds, reduced=reduced), alike=alike)
        for reduced, alike in ((False, ()), (True, ()), (True, (0, 1)))
    )
    if full.left or plain.left or twins.left:
        return
    assert twins.alike == 2
    lengths = [None if result.violation is None else len(result.violation.events) for result in (full, plain, twins)]
    assert lengths[0] == lengths[1] == lengths[2]


@given(st.integers(0, 2**32), st.booleans(), st.integers(0, 2))
def test_a_wrong_claim_of_symmetry_loses_no_violation(seed: int, hub: bool, reads: int) -> None:
    """Nodes that are called alike and are not: the search finds it out, or it does not matter within the bounds."""
    table = Table(seed, hub=hub)
    bounds = Bounds(timers=1, states=MOST_STATES)
    full, claimed = (
        explored(table, replace(bounds, reduced=reduced), reads=reads, alike=(0, 1)) for reduced in (False, True)
    )
    if full.left or claimed.left:
        return
    lengths = [None if result.violation is None else len(result.violation.events) for result in (full, claimed)]
    assert lengths[0] == lengths[1]


def test_twins_leave_out_states() -> None:
    """Over some protocols with two nodes that are alike, and without a violation, symmetry leaves out states."""
    tables = [Table(seed, hub=True, twins=True) for seed in range(30)]
    for table in tables:
        table.wrong = set()
    pairs = [
        [explored(table, Bounds(timers=1, states=MOST_STATES), alike=alike) for alike in ((0, 1), ())]
        for table in tables
    ]
    whole = [(twins.states, plain.states) for twins, plain in pairs if not (twins.left or plain.left)]
    assert 4 * sum(twins for twins, _ in whole) < 3 * sum(plain for _, plain in whole)


def test_the_reductions_leave_out_states() -> None:
    """Over some protocols without a violation, the reduced search visits fewer states and carries out fewer events."""
    tables = [Table(seed) for seed in range(30)]
    for table in tables:
        table.wrong = set()
    pairs = [
        tuple(explored(table, Bounds(timers=2, reduced=reduced)) for reduced in (True, False))
        for table in tables
        if nearest(table, 2) is None
    ]
    assert pairs
    assert 3 * sum(reduced.states for reduced, _ in pairs) < 2 * sum(full.states for _, full in pairs)
    assert 2 * sum(reduced.events for reduced, _ in pairs) < sum(full.events for _, full in pairs)
    assert all(reduced.states <= full.states and reduced.depth <= full.depth for reduced, full in pairs)


@given(st.integers(0, 2**32), st.integers(0, 2))
def test_orders_are_counted_exactly(seed: int, timers: int) -> None:
    """Without the reductions, the number is that of a plain count, also if the orders have no end. They lower it."""
    table = Table(seed)
    table.wrong = set()
    full, reduced = (
        explored(table, Bounds(timers=timers, states=MOST_STATES, reduced=reduced)) for reduced in (False, True)
    )
    if full.left or reduced.left:
        return
    assert full.orders == orders(table, timers)
    if full.orders is not None:
        assert reduced.orders is not None
        assert 1 <= reduced.orders <= full.orders


class Relay:
    """A process that sends to others at its start, passes each message on, and remembers what it got."""

    def __init__(self, host: Host, first: str, further: Mapping[str, str]) -> None:
        self.host, self.first, self.further = host, first, further
        self.got: list[str] = []

    def start(self) -> None:
        """Sends the first messages of `a`: each has the name of its receiver."""
        for name in self.first if self.host.name == "a" else ():
            self.host.send(name, name)

    def receive(self, sender: str, message: Any) -> None:
        """Remembers a message. The first one goes on to another node."""
        if message not in self.got:
            self.got.append(message)
        if self.host.name in self.further:
            self.host.send(self.further[self.host.name], message)


@pytest.mark.parametrize(
    ("first", "further", "full", "reduced"),
    [
        ("b", {}, 1, 1),
        ("bc", {}, 2, 2),  # two messages; a reduced order has one, which nobody learns of
        ("bc", {"b": "c"}, 3, 3),  # c gets its own message before b has one, after that, or last
        ("bc", {"b": "a", "c": "a"}, 6, 4),  # two nodes get a message each, and answer
        ("b", {"b": "a", "a": "b"}, None, None),  # a and b answer each other for ever
    ],
)
def test_orders_that_can_be_counted_by_hand(
    first: str, further: dict[str, str], full: int | None, reduced: int | None
) -> None:
    """Each event is a message that arrives. With the reductions, an order can end before all messages have arrived."""

    def found(*, reduces: bool) -> Explored:
        nodes = Nodes(NAMES, lambda name: lambda host: Relay(host, first, further), ())
        return Search(
            nodes, (), bounds=Bounds(timers=0, reduced=reduces), outcome=lambda number, answer: Ok(),
            judge=lambda found: None, conflict=lambda one, two: None, matters=lambda number: False,
        ).run(lambda number, live: None, lambda *told: None, lambda *told: None)  # fmt: skip

    assert [found(reduces=reduces).orders for reduces in (False, True)] == [full, reduced]


@pytest.mark.parametrize(("one_clock", "expected"), [(False, 8), (True, 2)])
def test_with_one_clock_the_timer_that_is_due_first_fires(one_clock: bool, expected: int) -> None:
    """A timer of a is due at 1, 2, 3; one of b at 2, 4. With three timers: a at 1, then a and b at 2 in both orders."""

    class Ticking:
        def __init__(self, host: Host) -> None:
            self.host, self.every, self.fired = host, {"a": 1, "b": 2}[host.name], list[int]()

        def start(self) -> None:
            self.host.after(self.every, self.fire)

        def fire(self) -> None:
            self.fired.append(self.host.monotonic_ns())
            self.start()

        def receive(self, sender: str, message: Any) -> None:
            """Nobody sends anything."""

    nodes = Nodes(("a", "b"), lambda name: Ticking, ())
    search = Search(
        nodes, (), bounds=Bounds(timers=3, reduced=False, one_clock=one_clock), outcome=lambda number, answer: Ok(),
        judge=lambda found: None, conflict=lambda one, two: None, matters=lambda number: False,
    )  # fmt: skip
    assert search.run(lambda number, live: None, lambda *told: None, lambda *told: None).orders == expected


def test_with_one_clock_a_message_arrives_at_the_time_of_the_last_timer() -> None:
    """Node a sends at 5, so b gets the message at 5 or later: its own timer fires at 7. Its clock never shows less."""

    class Noting:
        def __init__(self, host: Host) -> None:
            self.host, self.noted = host, list[int]()

        def start(self) -> None:
            self.host.after({"a": 5, "b": 7}[self.host.name], self.fire)

        def fire(self) -> None:
            if self.host.name == "a":
                self.host.send("b", "now")

        def receive(self, sender: str, message: Any) -> None:
            self.noted.append(self.host.monotonic_ns())

    seen = set()
    nodes = Nodes(("a", "b"), lambda name: Noting, ())
    Search(
        nodes, (), bounds=Bounds(timers=2, one_clock=True), outcome=lambda number, answer: Ok(),
        judge=lambda found: None, conflict=lambda one, two: None, matters=lambda number: False,
    ).run(lambda number, live: seen.update(live.process.noted), lambda *told: None, lambda *told: None)  # fmt: skip
    assert seen == {5, 7}


def test_a_duplicate_message_arrives_twice() -> None:
    """Without duplicates a node counts one message; with one duplicate, two."""

    class Counter:
        def __init__(self, host: Host) -> None:
            self.host, self.count = host, 0

        def start(self) -> None:
            if self.host.name == "a":
                self.host.send("b", "x")

        def receive(self, sender: str, message: Any) -> None:
            self.count += 1

    def depth(duplicates: int) -> int:
        nodes = Nodes(NAMES, lambda name: Counter, ())
        bounds = Bounds(timers=0, duplicates=duplicates)
        search = Search(
            nodes,
            (),
            bounds=bounds,
            outcome=lambda number, answer: Ok(),
            judge=lambda found: None,
            conflict=lambda one, two: None,
            matters=lambda number: False,
        )
        return search.run(lambda number, live: None, lambda *told: None, lambda *told: None).depth

    assert [depth(duplicates) for duplicates in (0, 1, 2)] == [1, 2, 3]


def test_a_process_that_raises_is_a_violation() -> None:
    """The violation has the exception, and the events up to it."""

    class Fragile:
        def __init__(self, host: Host) -> None:
            self.host = host

        def start(self) -> None:
            self.host.after(1, self.fall)

        def fall(self) -> None:
            raise RuntimeError("lost its footing")

        def receive(self, sender: str, message: Any) -> None:
            """Nobody sends anything."""

    nodes = Nodes(("a",), lambda name: Fragile, ())
    search = Search(
        nodes, (), bounds=Bounds(timers=1), outcome=lambda number, answer: Ok(), judge=lambda found: None,
        conflict=lambda one, two: None, matters=lambda number: False,
    )  # fmt: skip
    result = search.run(lambda number, live: None, lambda *told: None, lambda *told: None)
    assert result.violation is not None
    assert result.violation.reason == "the process of a dies: RuntimeError: lost its footing"
    assert [happened.event.kind for happened in result.violation.events] == [Kind.TIMER]


class Held:
    """An object with attributes."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__ |= attributes


def test_equal_objects_have_equal_forms() -> None:
    """Attributes, captured values, partial functions, sets and circles count; identity does not."""

    def made(captured: int) -> Held:
        held = Held(
            numbers=[1, 2], names={"x", "y", "z"}, call=lambda: captured, later=functools.partial(max, captured)
        )
        held.__dict__["itself"] = held
        return held

    assert digest(made(1), {}) == digest(made(1), {})
    assert digest(made(1), {}) != digest(made(2), {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, "1"], ["1", 1]),
        ([1, True], [1, 1]),
        ([[1], [1]], [[1, 1]]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (bytearray(b"a"), bytearray(b"b")),
        (Held(a=1), Held(b=1)),
        (Held.__init__, Held.__eq__),
        ([1].append, [2].append),
    ],
)
def test_different_objects_have_different_forms(one: Any, other: Any) -> None:
    """Types, nesting, the order of a dict, names of attributes."""
    assert digest(one, {}) != digest(other, {})


def test_a_shared_object_differs_from_two_equal_ones() -> None:
    """A change of the shared one shows in both places."""
    shared = [1]
    assert digest([shared, shared], {}) != digest([[1], [1]], {})


def test_an_object_without_a_form_is_an_error() -> None:
    """The state of a generator cannot be compared."""
    with pytest.raises(FormError, match="holds a generator, whose state cannot be compared"):
        digest((number for number in range(3)), {})


def test_a_history_has_the_order_of_its_operations() -> None:
    """An operation that ended before another was invoked has an earlier end; the others overlap."""
    wanted = asked([Invocation("write", 1), Invocation("read"), Invocation("read"), Invocation("write", 2)])
    assert [each.equals for each in wanted] == [None, None, 1, None]
    history = (Seen(0, "a", Ok(1)), Seen(0, "b", Ok(1)), Seen(0b1, "a", None), None)
    write, read, later = operations(history, wanted)
    assert write.end_ns is not None
    assert read.end_ns is not None
    assert read.start_ns < write.end_ns < later.start_ns < read.end_ns
    assert (later.type, later.end_ns) == (OpType.INFO, None)
