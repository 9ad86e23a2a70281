"""Generators that combine generators: whole sequences of operations, in virtual time."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.combinators import (
    MIN_OPS_PER_STREAM,
    KeysInTurn,
    Stream,
    each_stream,
    independent,
    limit,
    mix,
    on_update,
    phases,
    reserve,
    sleep,
    stagger,
    time_limit,
    until_ok,
)
from harness.errors import InputError
from harness.generator import Asker, Later, first_operations
from harness.load import ClosedLoop, OpenLoop
from harness.op import Fail, Info, Invocation, Ok, Op, OpType
from harness.testing import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.combinators import Source
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
    return generator.ask(Asker(worker, worker, "n1", now_ns, workers=frozenset(range(of))))


def test_limit_bounds_the_operations_of_all_workers_together() -> None:
    """Five reads by three workers of 10 ms each: three at once, then two."""
    assert invokes(simulate(limit(5, READ))) == [
        (0, 0, "read"),
        (0, 1, "read"),
        (0, 2, "read"),
        (10, 0, "read"),
        (10, 1, "read"),
    ]


def test_a_function_gets_the_asker() -> None:
    """A function is a generator. The asker has worker, process, node and time."""
    seen: list[Asker] = []

    def note(asker: Asker) -> Answer:
        seen.append(asker)
        return READ if len(seen) <= 3 else None

    simulate(limit(9, note), load=workers(2), nodes=2)
    assert [(asker.worker, asker.process, asker.node, asker.now_ns // 10**6) for asker in seen] == [
        (0, 0, "n1", 0),
        (1, 1, "n2", 0),
        (0, 0, "n1", 10),
        (1, 1, "n2", 10),
        (0, 0, "n1", 20),
    ]
    assert seen[0].workers == {0, 1}


def test_time_limit_counts_from_the_first_question_and_lets_operations_end() -> None:
    """Three reads of 10 ms begin within 25 ms, and the last one ends after the limit."""
    ops = simulate(phases(limit(1, WRITE), time_limit(0.025, READ)), load=workers(1))
    assert invokes(ops) == [(0, 0, "write"), (10, 0, "read"), (20, 0, "read"), (30, 0, "read")]
    assert ops[-1].time_ns >= 40_000_000


def test_time_limit_ends_a_wait() -> None:
    """A worker that waits for an event, or for a time beyond the limit, continues at the limit."""
    for wait in (Later(), Later(10**12)):
        ops = simulate(phases(time_limit(2.0, functools.partial(_answer, wait)), limit(1, READ)), load=workers(1))
        assert invokes(ops) == [(2000, 0, "read")]


def _answer(answer: Answer, _: Asker) -> Answer:
    return answer


def test_phases_wait_for_all_workers_and_their_answers() -> None:
    """The second phase begins after the slowest operation of the first."""
    ops = simulate(
        phases(limit(3, WRITE), limit(3, READ)),
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
    slow = reserve((1, limit(1, WRITE)), default=phases(sleep(1.0), limit(1, CAS)))
    assert invokes(simulate(phases(slow, limit(1, READ)), load=workers(2))) == [
        (0, 0, "write"),
        (1000, 1, "cas"),
        (1010, 0, "read"),
    ]


def test_phases_may_be_empty_for_some_or_all() -> None:
    """A phase may have operations for no worker, or for one."""
    nothing = limit(0, CAS)
    second = reserve((1, nothing), (1, limit(1, WRITE)), default=nothing)
    ops = simulate(phases(nothing, second, nothing, limit(1, READ)))
    assert [(time, f) for time, _, f in invokes(ops)] == [(0, "write"), (10, "read")]
    assert invokes(ops)[0][1] == 1


def test_phases_survive_a_process_that_ends() -> None:
    """After an info, the next phase begins with another process."""
    ops = simulate(phases(limit(1, WRITE), limit(1, READ)), load=workers(1), respond=lambda _, __: Info("perhaps"))
    assert invokes(ops) == [(0, 0, "write"), (10, 1, "read")]


def test_phases_work_in_an_open_loop() -> None:
    """Arrivals get no operation while a phase waits for its last answer."""
    ops = simulate(phases(limit(20, WRITE), limit(20, READ)), load=OpenLoop(rate_per_node=100), latency_s=1.0)
    assert functions(ops) == ["write"] * 20 + ["read"] * 20
    last_write_answer = max(op.time_ns for op in ops if op.type is OpType.OK and op.f == "write")
    assert min(op.time_ns for op in ops if op.type is OpType.INVOKE and op.f == "read") >= last_write_answer


def test_sleep_lets_time_pass() -> None:
    """It delays the next phase."""
    ops = simulate(phases(limit(1, WRITE), sleep(5.0), limit(1, READ)))
    assert [(time, f) for time, _, f in invokes(ops)] == [(0, "write"), (5010, "read")]


def gaps_s(ops: Sequence[Op]) -> list[float]:
    """Returns the seconds between invokes."""
    times = [op.time_ns / 1e9 for op in ops if op.type is OpType.INVOKE]
    return [after - before for before, after in itertools.pairwise(times)]


def test_stagger_draws_gaps_between_nothing_and_twice_the_mean() -> None:
    """The gaps are uniform, over all workers together, as in Jepsen."""
    gaps = gaps_s(simulate(limit(3000, stagger(0.1, READ, seed=3))))
    assert max(gaps) < 0.2 + 1e-6
    assert abs(sum(gaps) / len(gaps) - 0.1) < 0.005
    assert abs(sum(gap < 0.05 for gap in gaps) / len(gaps) - 0.25) < 0.03


def test_a_stagger_has_no_burst_after_a_delay() -> None:
    """After an operation of one second, one operation follows at once, and not ten."""
    latencies = iter([1.0] + [0.0] * 10)
    ops = simulate(limit(5, stagger(0.1, READ, seed=1)), load=workers(1), latency_s=lambda _, __: next(latencies))
    times = [time for time, _, _ in invokes(ops)]
    assert times[:3] == [0, 1000, 1000]
    assert 1000 < times[3] < times[4]


@pytest.mark.parametrize("gap_s", [0, -1, float("nan")])
def test_a_gap_of_zero_or_less_is_refused(gap_s: float) -> None:
    """A gap must be above 0."""
    with pytest.raises(InputError, match="must be above 0"):
        stagger(gap_s, READ, seed=1)


def test_reserve_divides_the_workers() -> None:
    """One worker writes, two read, and two compare and set."""
    ops = simulate(limit(10, reserve((1, WRITE), (2, READ), default=CAS)), load=workers(5), nodes=5)
    assert {(process, f) for _, process, f in invokes(ops)} == {
        (0, "write"),
        (1, "read"),
        (2, "read"),
        (3, "cas"),
        (4, "cas"),
    }


def test_a_reserve_inside_of_another_divides_its_own_part() -> None:
    """It counts only its own workers."""
    inner = reserve((1, READ), default=CAS)
    ops = simulate(limit(6, reserve((1, WRITE), default=inner)))
    assert {(process, f) for _, process, f in invokes(ops)} == {(0, "write"), (1, "read"), (2, "cas")}


def test_a_reserve_of_too_many_workers_is_refused() -> None:
    """Otherwise a generator without workers would never run."""
    with pytest.raises(InputError, match="a reserve needs 4 workers and has only 3"):
        simulate(reserve((4, READ), default=WRITE))
    with pytest.raises(InputError, match="at least one worker"):
        reserve((0, READ), default=WRITE)


def test_workers_get_equal_shares_with_fast_answers() -> None:
    """In Jepsen, one worker gets double at low latency (jepsen issue 611). Here the shares differ by at most one."""
    for latency_s in (0.0, 0.01):
        for count in (3, 5, 7):
            ops = simulate(limit(count * 200, READ), load=workers(count), latency_s=latency_s)
            shares = Counter(process for _, process, _ in invokes(ops))
            assert max(shares.values()) - min(shares.values()) <= 1


def test_staggered_workers_get_equal_shares() -> None:
    """The worker that waited longest goes first, even if there is only one operation at a time."""
    ops = simulate(limit(600, stagger(0.1, READ, seed=1)), load=workers(5), latency_s=0.001)
    shares = Counter(process for _, process, _ in invokes(ops))
    assert max(shares.values()) - min(shares.values()) <= 1


def of_stream(make: Callable[[Stream], Source], count: int, *, streams: int = 3, number: int = 0) -> list[Invocation]:
    """Returns the first operations of a stream, with no answers."""
    generator = each_stream(make, seed=1, streams=streams)
    answers = [ask(generator, number, of=streams) for _ in range(count)]
    assert all(isinstance(answer, Invocation) for answer in answers)
    return answers  # type: ignore[return-value]


def writes(stream: Stream) -> Source:
    """Writes of values that no other operation of the run has, and reads."""
    return mix(stream, (1, lambda _: Invocation("write", stream.unique())), (1, READ))


@settings(deadline=None)
@given(turns=st.lists(st.integers(0, 2), max_size=60), seed=st.integers(0, 2**63 - 1))
def test_the_nth_operation_of_a_stream_depends_on_no_other_stream(turns: list[int], seed: int) -> None:
    """In any order of the workers, each stream has the operations that it has alone."""
    together = each_stream(writes, seed=seed, streams=3)
    asked: dict[int, list[Answer]] = {0: [], 1: [], 2: []}
    for worker in turns:
        asked[worker].append(ask(together, worker))
    for worker, answers in asked.items():
        alone = each_stream(writes, seed=seed, streams=3)
        assert answers == [ask(alone, worker) for _ in answers]


@settings(deadline=None)
@given(streams=st.integers(1, 12), count=st.integers(1, 40))
def test_unique_values_are_unique(streams: int, count: int) -> None:
    """No two operations of a run get the same value, and all values are above 0."""

    def make(stream: Stream) -> Source:
        return lambda _: Invocation("write", stream.unique())

    asked = [of_stream(make, count, streams=streams, number=number) for number in range(streams)]
    drawn = [operation.value for operations in asked for operation in operations]
    assert len(set(drawn)) == len(drawn) == streams * count
    assert min(drawn) > 0


def test_mix_draws_by_weight_and_by_share() -> None:
    """Over 8,000 operations, the shares are those of the weights; `rest` has the other operations."""
    for make in (
        lambda stream: mix(stream, (4, READ), (2, WRITE), (2, CAS)),
        lambda stream: mix(stream, (0.5, READ), (0.25, WRITE), rest=CAS),
    ):
        counts = Counter(operation.f for operation in of_stream(make, 8000))
        assert abs(counts["read"] - 4000) < 250
        assert abs(counts["write"] - 2000) < 200
        assert abs(counts["cas"] - 2000) < 200


def test_mix_waits_for_the_drawn_child() -> None:
    """It draws once for each operation, so a wait changes no later draw. In Jepsen too, the mix waits."""

    def make(stream: Stream, wait_ns: int) -> Source:
        return mix(stream, (1, lambda asker: Later(wait_ns) if asker.now_ns < wait_ns else READ), (1, WRITE))

    waiting = each_stream(lambda stream: make(stream, 10), seed=1, streams=1)
    answers = [ask(waiting, now_ns=now_ns, of=1) for now_ns in [0] * 20 + [10] * 100]
    assert Later(10) in answers[:20]
    assert answers[:20].count(Later(10)) == 20 - answers.index(Later(10))
    at_once = of_stream(lambda stream: make(stream, 0), 100, streams=1)
    assert [answer for answer in answers if answer != Later(10)][:100] == at_once


def test_mix_drops_children_that_have_ended() -> None:
    """A mix ends with its last child."""
    ended = each_stream(
        lambda stream: mix(stream, (0.9, limit(2, READ)), (0.1, limit(3, WRITE)), (0, CAS)), seed=1, streams=1
    )
    answers = [ask(ended, of=1) for _ in range(7)]
    assert Counter(answers) == {READ: 2, WRITE: 3, None: 2}
    assert answers[5:] == [None, None]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [0.0, 0.0], [float("nan"), 1.0], []])
def test_a_mix_with_wrong_weights_is_refused(weights: list[float]) -> None:
    """Weights are from 0, and one is above 0."""
    with pytest.raises(InputError, match="the weights of a mix are from 0"):
        mix(Stream(seed=1, number=0, streams=1), *((weight, READ) for weight in weights))


def test_a_phase_of_one_stream_waits_for_no_other() -> None:
    """In a stream, phases and reserves count its worker alone."""
    generator = each_stream(lambda _: phases(limit(1, WRITE), reserve((1, READ), default=CAS)), seed=1, streams=2)
    ops = simulate(limit(6, generator), load=workers(2), latency_s=lambda process, _: 1.0 if process else 0.01)
    assert invokes(ops)[:4] == [(0, 0, "write"), (0, 1, "write"), (10, 0, "read"), (20, 0, "read")]


def test_independent_gives_each_operation_its_key() -> None:
    """It chooses the key before the child draws, and the child can see it."""
    drawn: list[str | None] = []

    def make(stream: Stream) -> Source:
        def note(_: Asker) -> Invocation:
            drawn.append(stream.key)
            return Invocation("write", stream.below(10), phase="final")

        return independent(stream, lambda: stream.any_key("x", 3), note)

    operations = of_stream(make, 100)
    assert [operation.key for operation in operations] == drawn
    assert set(drawn) == {"x0", "x1", "x2"}
    assert {operation.phase for operation in operations} == {"final"}


def test_a_key_waits_with_its_child() -> None:
    """While the child has no operation, its key stays."""

    def make(stream: Stream, wait_ns: int) -> Source:
        child = phases(time_limit(1e-9, lambda _: Later(wait_ns)), READ) if wait_ns else READ
        return independent(stream, lambda: stream.any_key("x", 100), child)

    generator = each_stream(lambda stream: make(stream, 10), seed=1, streams=1)
    assert isinstance(ask(generator, of=1), Later)
    answers = [ask(generator, now_ns=20, of=1) for _ in range(11)][1:]
    assert answers == of_stream(lambda stream: make(stream, 0), 10, streams=1)


@settings(deadline=None)
@given(streams=st.integers(1, 60), ops_per_key=st.integers(1, 150))
def test_keys_in_turn_live_for_a_limited_number_of_operations(streams: int, ops_per_key: int) -> None:
    """Keys have at most that number of operations, come in order, and are not used again."""
    totals: Counter[str] = Counter()
    for number in range(streams):
        keys_of = KeysInTurn(Stream(seed=1, number=number, streams=streams), ops_per_key)
        keys = [keys_of() for _ in range(100)]
        totals.update(keys)
        visits = [int(key[1:]) for key, _ in itertools.groupby(keys)]
        assert visits == sorted(set(visits))
    assert max(totals.values()) <= ops_per_key


@settings(deadline=None)
@given(streams=st.integers(1, 60), ops_per_key=st.integers(1, 150))
def test_as_many_streams_as_a_key_allows_meet_there(streams: int, ops_per_key: int) -> None:
    """Groups have neighbours and equal sizes; two groups never share a key, and streams of a group overlap."""
    turns = [KeysInTurn(Stream(seed=1, number=number, streams=streams), ops_per_key) for number in range(streams)]
    sizes = Counter(turn.group for turn in turns)
    assert [turn.group for turn in turns] == sorted(turn.group for turn in turns)
    assert set(sizes) == set(range(turns[0].groups))
    assert max(sizes.values()) - min(sizes.values()) <= 1
    assert all(turn.share >= min(MIN_OPS_PER_STREAM, ops_per_key) for turn in turns)
    if streams * MIN_OPS_PER_STREAM <= ops_per_key:
        assert len(sizes) == 1
    keys = [{turn() for _ in range(50)} for turn in {turn.group: turn for turn in turns}.values()]
    assert sum(map(len, keys)) == len(set().union(*keys))


def test_a_stream_of_a_key_in_turn_knows_its_place() -> None:
    """The first operation of a stream on a key has the place 0."""
    turns = KeysInTurn(Stream(seed=1, number=0, streams=2), 10)
    places = [turns.place]
    for _ in range(12):
        turns()
        places.append(turns.place)
    assert places == [-1, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]


def test_on_update_hands_each_event_to_the_function_and_to_the_child() -> None:
    """Also the events of other generators."""
    seen: list[tuple[str, str]] = []
    told: list[str] = []
    inner = on_update(lambda event: told.append(event.f), limit(1, WRITE))
    outer = on_update(lambda event: seen.append((event.f, event.type)), inner)
    simulate(reserve((1, limit(1, READ)), default=outer), load=workers(2))
    assert sorted(seen) == [("read", "invoke"), ("read", "ok"), ("write", "invoke"), ("write", "ok")]
    assert sorted(told) == ["read", "read", "write", "write"]


def test_until_ok_repeats_each_operation_until_it_succeeds() -> None:
    """A failed operation comes after the others, at most so many times."""
    tries: Counter[str | None] = Counter()

    def respond(_: int, invocation: Invocation) -> Outcome:
        tries[invocation.key] += 1
        return Ok() if invocation.key == "a" or (invocation.key == "b" and tries["b"] == 3) else Fail("no")

    reads = [Invocation("read", None, key) for key in ("a", "b", "c")]
    ops = simulate(until_ok(reads, attempts=4), load=workers(1), respond=respond)
    assert [op.key for op in ops if op.type is OpType.INVOKE] == ["a", "b", "c", "b", "c", "b", "c", "c"]


def test_until_ok_counts_only_its_own_operations() -> None:
    """A success of another generator does not end it, and it continues after an info."""
    answers: list[Outcome] = [Info("perhaps"), Fail("no"), Ok()]
    own = iter(answers)
    ops = simulate(
        reserve((1, limit(10, READ)), default=until_ok([WRITE])),
        load=workers(2),
        respond=lambda _, invocation: Ok() if invocation.f == "read" else next(own),
    )
    assert Counter(functions(ops)) == {"read": 10, "write": 3}


def test_a_preview_shows_the_operations_without_a_run() -> None:
    """Each stream shows its first operations; one that ends or waits for answers has fewer, and a wait for a time passes."""

    def make(stream: Stream) -> Source:
        if stream.number == 1:
            return limit(1, READ)
        if stream.number == 2:
            return phases(limit(1, WRITE), sleep(5.0), CAS)
        return lambda asker: Invocation("cas", ["last-seen" if asker.preview else 0, stream.unique()])

    preview: Any = first_operations(each_stream(make, seed=1, streams=4), streams=4, count=2)
    assert [(stream["stream"], [operation["f"] for operation in stream["operations"]]) for stream in preview] == [
        (0, ["cas", "cas"]),
        (1, ["read"]),
        (2, ["write", "cas"]),
        (3, ["cas", "cas"]),
    ]
    assert preview[0]["operations"][1] == {"f": "cas", "key": None, "value": ["last-seen", 5]}
    staggered = stagger(1.0, each_stream(writes, seed=1, streams=1), seed=1)
    plain = each_stream(writes, seed=1, streams=1)
    assert first_operations(staggered, streams=1, count=9) == first_operations(plain, streams=1, count=9)
    waiting = each_stream(lambda _: lambda asker: Later(asker.now_ns + 1), seed=1, streams=1)
    assert first_operations(waiting, streams=1, count=3) == [{"stream": 0, "operations": []}]


def _grown(trees: st.SearchStrategy[Generator]) -> st.SearchStrategy[Generator]:
    """Returns a strategy that adds one level of combinators to trees."""
    pairs = st.tuples(trees, trees)
    return st.one_of(
        pairs.map(lambda pair: phases(*pair)),
        st.just(None).map(lambda _: each_stream(lambda stream: limit(3, writes(stream)), seed=1, streams=3)),
        pairs.map(lambda pair: reserve((1, pair[0]), default=pair[1])),
        trees.map(lambda tree: stagger(0.02, tree, seed=2)),
        trees.map(lambda tree: time_limit(1.0, tree)),
        trees.map(lambda tree: phases(sleep(0.05), tree)),
        trees.map(lambda tree: on_update(lambda _: None, tree)),
        st.just(None).map(lambda _: until_ok([READ, WRITE])),
    )


TREES: st.SearchStrategy[Generator] = st.recursive(
    st.sampled_from([READ, WRITE]).map(lambda invocation: limit(3, invocation)), _grown, max_leaves=10
)


@settings(deadline=None)
@given(tree=TREES, latencies=st.lists(st.sampled_from([0.0, 0.005, 0.03]), min_size=3, max_size=3))
def test_any_tree_of_generators_ends(tree: Generator, latencies: list[float]) -> None:
    """The run ends by itself, and each invoke has a completion."""
    ops = simulate(tree, latency_s=lambda process, _: latencies[process % 3])
    assert sum(op.type is OpType.INVOKE for op in ops) * 2 == len(ops)
