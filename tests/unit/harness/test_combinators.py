"""Generators that combine generators: whole sequences of operations, in virtual time."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.combinators import (
    concat,
    cycle,
    delay,
    each_process,
    each_worker,
    from_function,
    independent,
    limit,
    mix,
    on_workers,
    once,
    phases,
    poisson,
    repeat,
    reserve,
    sequence,
    sleep,
    stagger,
    synchronize,
    then,
    time_limit,
    until_ok,
)
from harness.combinators.choice import sooner
from harness.errors import InputError
from harness.generator import Asker, Later
from harness.load import ClosedLoop, OpenLoop
from harness.op import Fail, Info, Invocation, Ok, Op, OpType
from harness.testing import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.generator import Answer, Generator
    from harness.op import Outcome

READ, WRITE, CAS = Invocation("read"), Invocation("write", 1), Invocation("cas", [1, 2])


def invokes(ops: Sequence[Op]) -> list[tuple[int, int, str]]:
    """Returns time in milliseconds, process and function of each invoke."""
    return [(round(op.time_ns / 1e6), int(op.process), op.f) for op in ops if op.type is OpType.INVOKE]


def functions(ops: Sequence[Op]) -> list[str]:
    """Returns the functions in the order of their invokes."""
    return [f for _, _, f in invokes(ops)]


def workers(count: int) -> ClosedLoop:
    """Returns a closed loop."""
    return ClosedLoop(concurrency=count)


def ask(generator: Generator, worker: int = 0, *, now_ns: int = 0, of: int = 3) -> Answer:
    """Asks for one of `of` free workers."""
    return generator.ask(Asker(worker, worker, "n1", now_ns, idle=True, workers=frozenset(range(of))))


def test_limit_bounds_the_operations_of_all_workers_together() -> None:
    """Five reads by three workers of 10 ms each: three at once, then two."""
    assert invokes(simulate(limit(5, repeat(READ)))) == [
        (0, 0, "read"),
        (0, 1, "read"),
        (0, 2, "read"),
        (10, 0, "read"),
        (10, 1, "read"),
    ]


def test_once_is_once() -> None:
    """All workers together get one operation."""
    assert invokes(simulate(once(WRITE))) == [(0, 0, "write")]


def test_sequence_gives_each_operation_to_one_worker() -> None:
    """The workers get the operations in the order of their questions."""
    ops = simulate(sequence([READ, WRITE, CAS, READ]), load=workers(2))
    assert invokes(ops) == [(0, 0, "read"), (0, 1, "write"), (10, 0, "cas"), (10, 1, "read")]


def test_from_function_gets_the_asker() -> None:
    """The asker has worker, process, node, time and idleness."""
    seen: list[Asker] = []

    def note(asker: Asker) -> Answer:
        seen.append(asker)
        return READ if len(seen) <= 3 else None

    simulate(from_function(note), load=workers(2), nodes=2)
    assert [(asker.worker, asker.process, asker.node, asker.now_ns // 10**6, asker.idle) for asker in seen] == [
        (0, 0, "n1", 0, True),
        (1, 1, "n2", 0, False),
        (0, 0, "n1", 10, True),
        (1, 1, "n2", 10, False),
        (0, 0, "n1", 20, True),
    ]
    assert seen[0].workers == {0, 1}


def test_time_limit_counts_from_the_first_question_and_lets_operations_end() -> None:
    """Three reads of 10 ms begin within 25 ms, and the last one ends after the limit."""
    ops = simulate(concat(once(WRITE), time_limit(0.025, repeat(READ))), load=workers(1))
    assert invokes(ops) == [(0, 0, "write"), (10, 0, "read"), (20, 0, "read"), (30, 0, "read")]
    assert ops[-1].time_ns >= 40_000_000


def test_time_limit_ends_a_wait() -> None:
    """A worker that waits for an event, or for a time beyond the limit, continues at the limit."""
    waits_for_event = from_function(lambda _: Later())
    waits_too_long = from_function(lambda _: Later(10**12))
    for waiting in (waits_for_event, waits_too_long):
        ops = simulate(concat(time_limit(2.0, waiting), once(READ)), load=workers(1))
        assert invokes(ops) == [(2000, 0, "read")]


def test_until_ok_ends_after_the_first_success() -> None:
    """A fail or an info does not end it."""
    outcomes: list[Outcome] = [Fail("no"), Info("perhaps"), Fail("no"), Ok()]
    answers = iter(outcomes)
    ops = simulate(until_ok(repeat(WRITE)), load=workers(1), respond=lambda _, __: next(answers))
    assert [op.type for op in ops if op.type is not OpType.INVOKE] == ["fail", "info", "fail", "ok"]


def test_until_ok_counts_only_its_own_operations() -> None:
    """A success of another generator does not end it."""
    outcomes: list[Outcome] = [Fail("no"), Fail("no"), Ok()]
    writes = iter(outcomes)
    ops = simulate(
        reserve((1, limit(10, repeat(READ))), default=until_ok(repeat(WRITE))),
        load=workers(2),
        respond=lambda _, invocation: Ok() if invocation.f == "read" else next(writes),
    )
    assert Counter(functions(ops)) == {"read": 10, "write": 3}


def test_workers_of_concat_do_not_wait_for_each_other() -> None:
    """A fast worker does not wait for a slow one."""
    ops = simulate(
        concat(each_worker(lambda: once(WRITE)), limit(2, repeat(READ))),
        load=workers(2),
        latency_s=lambda process, _: 0.01 if process == 0 else 0.1,
    )
    assert invokes(ops) == [(0, 0, "write"), (0, 1, "write"), (10, 0, "read"), (20, 0, "read")]


def test_phases_wait_for_all_workers_and_their_answers() -> None:
    """The second phase begins after the slowest operation of the first."""
    ops = simulate(
        phases(limit(3, repeat(WRITE)), limit(3, repeat(READ))),
        latency_s=lambda process, _: 0.01 * (process + 1),
    )
    assert invokes(ops) == [
        (0, 0, "write"),
        (0, 1, "write"),
        (0, 2, "write"),
        (30, 0, "read"),
        (30, 1, "read"),
        (30, 2, "read"),
    ]


def test_phases_wait_for_a_worker_that_only_waits() -> None:
    """A worker that waits for its next operation has not ended its phase."""
    slow = reserve((1, limit(1, repeat(WRITE))), default=concat(sleep(1.0), once(CAS)))
    assert invokes(simulate(phases(slow, once(READ)), load=workers(2))) == [
        (0, 0, "write"),
        (1000, 1, "cas"),
        (1010, 0, "read"),
    ]


def test_phases_may_be_empty_for_some_or_all() -> None:
    """A phase may have operations for no worker, or for one."""
    ops = simulate(phases(limit(0, repeat(CAS)), on_workers({1}, once(WRITE)), limit(0, repeat(CAS)), once(READ)))
    assert [(time, f) for time, _, f in invokes(ops)] == [(0, "write"), (10, "read")]
    assert invokes(ops)[0][1] == 1


def test_phases_survive_a_process_that_ends() -> None:
    """After an info, the next phase begins with another process."""
    ops = simulate(phases(once(WRITE), once(READ)), load=workers(1), respond=lambda _, __: Info("perhaps"))
    assert invokes(ops) == [(0, 0, "write"), (10, 1, "read")]


def test_an_opened_barrier_wakes_all_waiting_workers() -> None:
    """They wake even if the opening worker gets no operation."""
    for barriers in (
        synchronize(synchronize(synchronize(limit(3, repeat(READ))))),
        concat(phases(limit(3, repeat(WRITE)), on_workers({0}, once(READ))), synchronize(once(CAS))),
        phases(phases(once(WRITE), limit(0, repeat(READ))), phases(limit(0, repeat(READ)), once(CAS))),
    ):
        ops = simulate(barriers, latency_s=lambda process, _: 0.01 * (process + 1))
        assert len(ops) >= 4


def test_then_is_two_phases() -> None:
    """The second begins when the first has ended for all workers."""
    ops = simulate(then(limit(2, repeat(WRITE)), once(READ)), latency_s=lambda process, _: 0.01 * (process + 1))
    assert invokes(ops) == [(0, 0, "write"), (0, 1, "write"), (20, 2, "read")]


def test_phases_work_in_an_open_loop() -> None:
    """Arrivals get no operation while a phase waits for its last answer."""
    ops = simulate(
        phases(limit(20, repeat(WRITE)), limit(20, repeat(READ))), load=OpenLoop(rate_per_node=100), latency_s=1.0
    )
    assert functions(ops) == ["write"] * 20 + ["read"] * 20
    last_write_answer = max(op.time_ns for op in ops if op.type is OpType.OK and op.f == "write")
    assert min(op.time_ns for op in ops if op.type is OpType.INVOKE and op.f == "read") >= last_write_answer


def test_synchronize_waits_for_all_workers() -> None:
    """It opens when all workers have asked and no operation is in flight, and stays open."""
    ops = simulate(
        concat(each_worker(lambda: once(WRITE)), synchronize(limit(4, repeat(READ)))),
        latency_s=lambda process, _: 0.01 * (process + 1),
    )
    assert [time for time, _, f in invokes(ops) if f == "read"] == [30, 30, 30, 40]


def test_sleep_lets_time_pass() -> None:
    """It delays the next phase."""
    ops = simulate(phases(once(WRITE), sleep(5.0), once(READ)))
    assert [(time, f) for time, _, f in invokes(ops)] == [(0, "write"), (5010, "read")]


def test_cycle_begins_again() -> None:
    """A fresh child follows each child that has ended."""
    ops = simulate(limit(5, cycle(lambda: sequence([WRITE, READ]))), load=workers(1))
    assert functions(ops) == ["write", "read", "write", "read", "write"]


def test_a_cycle_of_nothing_is_an_error() -> None:
    """Otherwise it would loop for ever."""
    with pytest.raises(InputError, match="a cycle must not be empty"):
        simulate(cycle(lambda: sequence([])))


def test_cycle_drops_finished_children() -> None:
    """So a long cycle needs little memory."""
    generator = cycle(lambda: once(READ))
    for _ in range(1000):
        for worker in range(3):
            assert ask(generator, worker) == READ
    assert len(generator._children) <= 4  # type: ignore[attr-defined]


def test_mix_draws_evenly_and_by_weight() -> None:
    """Over 8,000 operations, the shares are those of the weights."""
    parts = [repeat(READ), repeat(WRITE), repeat(CAS)]
    even = Counter(functions(simulate(limit(8000, mix(parts, seed=1, name="mix")), latency_s=0.001)))
    heavy = Counter(
        functions(simulate(limit(8000, mix(parts, seed=1, name="mix", weights=[2, 1, 1])), latency_s=0.001))
    )
    assert all(abs(even[f] - 8000 / 3) < 250 for f in ("read", "write", "cas"))
    assert abs(heavy["read"] - 4000) < 250


def test_mix_passes_over_a_child_that_waits() -> None:
    """In Jepsen, the mix waits for this child."""
    ops = simulate(
        mix([from_function(lambda _: Later(10**10)), limit(50, repeat(READ))], seed=1, name="mix"),
        load=workers(1),
        stop_s=2.0,
    )
    assert [time for time, _, _ in invokes(ops)] == [10 * number for number in range(50)]


def test_mix_waits_for_the_earliest_child() -> None:
    """If all children wait, the mix waits for the first one."""
    parts = [concat(sleep(seconds), once(Invocation(f"after-{seconds}"))) for seconds in (3, 1, 2)]
    ops = simulate(mix(parts, seed=1, name="mix"), load=workers(1), latency_s=0.0)
    assert invokes(ops) == [(1000, 0, "after-1"), (2000, 0, "after-2"), (3000, 0, "after-3")]


def test_mix_drops_children_that_have_ended() -> None:
    """A mix ends with its last child."""
    ops = simulate(mix([limit(2, repeat(READ)), limit(3, repeat(WRITE))], seed=1, name="mix"))
    assert Counter(functions(ops)) == {"read": 2, "write": 3}


def test_mix_draws_for_each_worker_on_its_own() -> None:
    """The operations of a worker do not depend on the speed of the others."""

    def by_worker(latency_s: float) -> list[str]:
        mixed = each_limit(20, mix([repeat(READ), repeat(WRITE)], seed=5, name="mix"))
        ops = simulate(mixed, latency_s=lambda process, _: latency_s if process else 0.01)
        return [op.f for op in ops if op.type is OpType.INVOKE and op.process == 0]

    assert by_worker(0.001) == by_worker(0.5)


def each_limit(count: int, child: Generator) -> Generator:
    """Gives each of three workers a number of operations of one shared generator."""
    return reserve((1, limit(count, child)), (1, limit(count, child)), default=limit(count, child))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], []])
def test_a_mix_with_wrong_weights_is_refused(weights: list[float]) -> None:
    """Each child needs one positive weight."""
    with pytest.raises(InputError, match="a weight above 0 for each"):
        mix([repeat(READ), repeat(WRITE)], seed=1, name="mix", weights=weights)


@settings(deadline=None)
@given(
    one=st.builds(Later, st.none() | st.integers(0, 9), st.booleans()),
    other=st.builds(Later, st.none() | st.integers(0, 9), st.booleans()),
)
def test_the_sooner_of_two_waits(one: Later, other: Later) -> None:
    """It has the earlier time, and an event if one of them waits for an event."""
    both = sooner(one, other)
    times = [later.at_ns for later in (one, other) if later.at_ns is not None]
    assert both.at_ns == min(times, default=None)
    for_event = any(later.at_ns is None or later.or_event for later in (one, other))
    assert (both.at_ns is None or both.or_event) == for_event


def gaps_s(ops: Sequence[Op]) -> list[float]:
    """Returns the seconds between invokes."""
    times = [op.time_ns / 1e9 for op in ops if op.type is OpType.INVOKE]
    return [after - before for before, after in itertools.pairwise(times)]


def test_stagger_draws_gaps_between_nothing_and_twice_the_mean() -> None:
    """The gaps are uniform, over all workers together, as in Jepsen."""
    gaps = gaps_s(simulate(limit(3000, stagger(0.1, repeat(READ), seed=3))))
    assert max(gaps) < 0.2 + 1e-6
    assert abs(sum(gaps) / len(gaps) - 0.1) < 0.005
    assert abs(sum(gap < 0.05 for gap in gaps) / len(gaps) - 0.25) < 0.03


def test_poisson_draws_exponential_gaps() -> None:
    """A share of 1/e of the gaps is longer than the mean."""
    gaps = gaps_s(simulate(limit(3000, poisson(10, repeat(READ), seed=3))))
    assert abs(sum(gaps) / len(gaps) - 0.1) < 0.006
    assert abs(sum(gap > 0.1 for gap in gaps) / len(gaps) - 0.3679) < 0.03


def test_delay_keeps_an_even_pace() -> None:
    """The gaps are equal, over all workers together."""
    ops = simulate(limit(5, delay(0.1, repeat(READ))))
    assert [time for time, _, _ in invokes(ops)] == [0, 100, 200, 300, 400]


def test_a_paced_generator_has_no_burst_after_a_delay() -> None:
    """After an operation of one second, one operation follows at once, and not ten."""
    latencies = iter([1.0] + [0.0] * 10)
    ops = simulate(limit(5, delay(0.1, repeat(READ))), load=workers(1), latency_s=lambda _, __: next(latencies))
    assert [time for time, _, _ in invokes(ops)] == [0, 1000, 1000, 1100, 1200]


@pytest.mark.parametrize("pace", [lambda child: stagger(0, child, seed=1), lambda child: delay(-1, child)])
def test_a_gap_of_zero_or_less_is_refused(pace: object) -> None:
    """A gap must be above 0."""
    with pytest.raises(InputError, match="must be above 0"):
        simulate(pace(repeat(READ)))  # type: ignore[operator]


def test_on_workers_serves_only_those() -> None:
    """For the other workers, it has ended at once."""
    ops = simulate(on_workers({1, 2}, limit(4, repeat(READ))))
    assert {process for _, process, _ in invokes(ops)} == {1, 2}


def test_synchronize_inside_of_on_workers_waits_for_those_only() -> None:
    """The barrier waits only for the workers of its generator."""
    generator = concat(on_workers({0, 1}, phases(limit(2, repeat(WRITE)), limit(2, repeat(READ)))))
    assert functions(simulate(generator)) == ["write", "write", "read", "read"]


def test_reserve_divides_the_workers() -> None:
    """One worker writes, two read, and two compare and set."""
    ops = simulate(
        limit(10, reserve((1, repeat(WRITE)), (2, repeat(READ)), default=repeat(CAS))), load=workers(5), nodes=5
    )
    assert {(process, f) for _, process, f in invokes(ops)} == {
        (0, "write"),
        (1, "read"),
        (2, "read"),
        (3, "cas"),
        (4, "cas"),
    }


def test_a_reserve_inside_of_another_divides_its_own_part() -> None:
    """It counts only its own workers."""
    inner = reserve((1, repeat(READ)), default=repeat(CAS))
    ops = simulate(limit(6, reserve((1, repeat(WRITE)), default=inner)))
    assert {(process, f) for _, process, f in invokes(ops)} == {(0, "write"), (1, "read"), (2, "cas")}


def test_a_reserve_of_too_many_workers_is_refused() -> None:
    """Otherwise a generator without workers would never run."""
    with pytest.raises(InputError, match="a reserve needs 4 workers and has only 3"):
        simulate(reserve((4, repeat(READ)), default=repeat(WRITE)))
    with pytest.raises(InputError, match="at least one worker"):
        reserve((0, repeat(READ)), default=repeat(WRITE))


def test_each_process_begins_again_with_another_process() -> None:
    """After an info, the next process has a fresh generator."""
    ops = simulate(
        limit(5, each_process(lambda: sequence([WRITE, READ]))),
        load=workers(1),
        respond=lambda process, _: Info("perhaps") if process == 0 else Ok(),
    )
    assert invokes(ops) == [(0, 0, "write"), (10, 1, "write"), (20, 1, "read")]


def test_each_worker_keeps_its_generator() -> None:
    """Its next process continues with the same generator."""
    ops = simulate(each_worker(lambda: sequence([WRITE, READ])), load=workers(1), respond=lambda _, __: Info("perhaps"))
    assert invokes(ops) == [(0, 0, "write"), (10, 1, "read")]


def test_each_copy_receives_its_own_events() -> None:
    """A success of one worker does not end the copy of another."""
    ops = simulate(
        each_worker(lambda: until_ok(limit(3, repeat(WRITE)))),
        load=workers(2),
        respond=lambda process, _: Ok() if process == 0 else Fail("no"),
    )
    assert Counter(process for _, process, _ in invokes(ops)) == {0: 1, 1: 3}


def test_independent_keys_have_their_workers_and_their_operations() -> None:
    """With four workers in groups of two, each key gets its operations from one group."""
    ops = simulate(
        independent([f"k{number}" for number in range(5)], 2, lambda _: limit(6, repeat(READ))), load=workers(4)
    )
    by_key: dict[str | None, set[int]] = {}
    for op in ops:
        if op.type is OpType.INVOKE:
            by_key.setdefault(op.key, set()).add(int(op.process) // 2)
    assert Counter(op.key for op in ops if op.type is OpType.INVOKE) == {f"k{number}": 6 for number in range(5)}
    assert all(len(groups) == 1 for groups in by_key.values())


def test_a_slow_worker_does_not_delay_its_group() -> None:
    """The fast worker takes the next key without waiting."""
    ops = simulate(
        independent(iter(["a", "b", "c"]), 2, lambda _: limit(3, repeat(READ))),
        load=workers(2),
        latency_s=lambda process, _: 0.01 if process == 0 else 0.045,
    )
    assert [(round(op.time_ns / 1e6), op.process, op.key) for op in ops if op.type is OpType.INVOKE] == [
        (0, 0, "a"),
        (0, 1, "a"),
        (10, 0, "a"),
        (20, 0, "b"),
        (30, 0, "b"),
        (40, 0, "b"),
        (45, 1, "c"),
        (50, 0, "c"),
        (60, 0, "c"),
    ]


def test_the_generator_of_a_key_receives_its_own_events() -> None:
    """A success on one key does not end another key."""
    ops = simulate(
        independent(["a", "b"], 1, lambda _: until_ok(limit(4, repeat(WRITE)))),
        load=workers(2),
        respond=lambda _, invocation: Ok() if invocation.key == "a" else Fail("no"),
    )
    assert Counter(op.key for op in ops if op.type is OpType.INVOKE) == {"a": 1, "b": 4}


def test_workers_get_equal_shares_with_fast_answers() -> None:
    """In Jepsen, one worker gets double at low latency (jepsen issue 611). Here the shares differ by at most one."""
    for latency_s in (0.0, 0.01):
        for count in (3, 5, 7):
            ops = simulate(limit(count * 200, repeat(READ)), load=workers(count), latency_s=latency_s)
            shares = Counter(process for _, process, _ in invokes(ops))
            assert max(shares.values()) - min(shares.values()) <= 1


def test_staggered_workers_get_equal_shares() -> None:
    """The worker that waited longest goes first, even if there is only one operation at a time."""
    ops = simulate(limit(600, stagger(0.1, repeat(READ), seed=1)), load=workers(5), latency_s=0.001)
    shares = Counter(process for _, process, _ in invokes(ops))
    assert max(shares.values()) - min(shares.values()) <= 1


def _grown(trees: st.SearchStrategy[Generator]) -> st.SearchStrategy[Generator]:
    """Returns a strategy that adds one level of combinators to trees."""
    pairs = st.tuples(trees, trees)
    return st.one_of(
        pairs.map(lambda pair: phases(*pair)),
        pairs.map(lambda pair: concat(*pair)),
        pairs.map(lambda pair: mix(pair, seed=1, name="m")),
        pairs.map(lambda pair: reserve((1, pair[0]), default=pair[1])),
        trees.map(lambda tree: stagger(0.02, tree, seed=2)),
        trees.map(lambda tree: time_limit(1.0, tree)),
        trees.map(lambda tree: on_workers({0, 2}, tree)),
        trees.map(lambda tree: concat(sleep(0.05), tree)),
        trees.map(until_ok),
        trees.map(synchronize),
    )


TREES: st.SearchStrategy[Generator] = st.recursive(
    st.sampled_from([READ, WRITE]).map(lambda invocation: limit(3, repeat(invocation))), _grown, max_leaves=10
)


@settings(deadline=None)
@given(tree=TREES, latencies=st.lists(st.sampled_from([0.0, 0.005, 0.03]), min_size=3, max_size=3))
def test_any_tree_of_generators_ends(tree: Generator, latencies: list[float]) -> None:
    """The run ends by itself, and each invoke has a completion."""
    ops = simulate(tree, latency_s=lambda process, _: latencies[process % 3])
    assert sum(op.type is OpType.INVOKE for op in ops) * 2 == len(ops)
