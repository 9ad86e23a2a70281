"""The log workload in a run: its streams, its generators, and the parts of its verdict."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.combinators import ATTEMPTS, limit, time_limit
from harness.declare import click_options
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.generator import Asker
from harness.history import pair
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Fail, Info, Invocation, Ok, Op, OpType
from harness.option_values import build
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.streams import described, drawn, in_turns
from workloads.log import LogOptions, LogWorkload
from workloads.log.whole import BEYOND, MAX_RANGES, RANGE, Offsets, WholeLogs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.generator import Generator
    from harness.op import Outcome

NODE = Node(name="n1", address="10.0.0.1")
SINGLE = LogOptions(read_share=0.9, range_share=0)
RANGED = LogOptions(read_share=0.9, range_share=1, range_length=5, recent=10)


class Logs:
    """Correct logs in memory; an operation takes effect and is answered at its end."""

    def __init__(self, *, offsets: bool = True, first: int = 0) -> None:
        self.logs: dict[str | None, dict[int, Any]] = {}
        self.offsets = offsets
        self.first = first

    def __call__(self, _: int, invocation: Invocation) -> Outcome:
        """Carries out an operation."""
        log = self.logs.setdefault(invocation.key, {})
        value = invocation.value
        if invocation.f == "append":
            offset = max(log, default=self.first - 1) + 1
            log[offset] = value
            return Ok(offset if self.offsets else None)
        if isinstance(value, int):
            return Ok(log.get(value))
        return Ok([[offset, entry] for offset, entry in log.items() if value[0] <= offset <= value[1]])


def draws(options: LogOptions, number: int, count: int, *, streams: int = 5, seed: int = 1) -> list[Invocation]:
    """Returns the first operations of a stream; reads have words for offsets that only the run knows."""
    return drawn(LogWorkload(options), number, count, streams=streams, seed=seed, preview=True)


def back_of(word: str) -> int:
    """Returns how far before the highest known offset a read begins."""
    return -int(word.removeprefix("highest") or 0)


def told(generator: Generator | Offsets, f: str, value: Any, result: Any, *, key: str | None = None) -> None:
    """Returns the events of a successful operation."""
    generator.update(Op(0, 0, OpType.INVOKE, 9, f, value, key))
    generator.update(Op(1, 1, OpType.OK, 9, f, result, key))


def reads(generator: Generator, count: int = 50) -> list[Invocation]:
    """Requests operations until there are some reads."""
    invocations: list[Invocation] = []
    while len(invocations) < count:
        answer = generator.ask(Asker(0, 0, "n1", 0, workers=frozenset({0})))
        assert isinstance(answer, Invocation)
        invocations += [answer] if answer.f == "read" else []
    return invocations


def test_the_nth_operation_depends_on_seed_stream_and_n_alone() -> None:
    """Together, in turns or alone, each stream gives the same operations; another seed or stream gives others."""
    options = LogOptions(keys=3)
    turns = in_turns(LogWorkload(options), [(step * step + step // 7) % 3 for step in range(600)], streams=5)
    for number, asked in turns.items():
        assert len(asked) > 50
        assert asked == drawn(LogWorkload(options), number, len(asked), streams=5)
    alone = [draws(options, number, 200) for number in range(2)]
    assert alone[0] != draws(options, 0, 200, seed=2)
    assert [draw.value for draw in alone[0] if draw.f == "read"] != [
        draw.value for draw in alone[1] if draw.f == "read"
    ]


@settings(deadline=None)
@given(streams=st.integers(1, 12), count=st.integers(1, 60), seed=st.integers(0, 2**63 - 1), keys=st.integers(1, 3))
def test_values_are_unique(streams: int, count: int, seed: int, keys: int) -> None:
    """No value is appended twice, to any log, by any stream."""
    appended = [
        draw.value
        for number in range(streams)
        for draw in draws(LogOptions(keys=keys), number, count, streams=streams, seed=seed)
        if draw.f == "append"
    ]
    assert len(set(appended)) == len(appended)
    assert all(value > 0 for value in appended)


def test_the_options_say_how_many_reads_there_are_and_of_what() -> None:
    """Shares, lengths, distances and keys are drawn evenly."""
    some = draws(LogOptions(read_share=0.5, range_share=0.25, range_length=3, recent=4, keys=2), 0, 8000)
    read = [draw.value for draw in some if draw.f == "read"]
    ranged = [value for value in read if isinstance(value, list)]
    assert len(read) / len(some) == pytest.approx(0.5, abs=0.03)
    assert len(ranged) / len(read) == pytest.approx(0.25, abs=0.03)
    assert {back_of(first) - back_of(last) + 1 for first, last in ranged} == {1, 2, 3}
    assert {back_of(value if isinstance(value, str) else value[0]) for value in read} == {0, 1, 2, 3}
    assert set(Counter(draw.key for draw in some)) == {"l0", "l1"}
    assert {draw.key for draw in draws(LogOptions(), 0, 50)} == {None}
    assert {draw.f for draw in draws(LogOptions(read_share=0), 0, 200)} == {"append"}


@pytest.mark.parametrize(
    "values",
    [{"read_share": 1}, {"read_share": -0.1}, {"range_share": 2}, {"range_length": 0}, {"recent": 0}, {"keys": 0}],
)
def test_options_that_test_nothing_are_refused(values: dict[str, Any]) -> None:
    """The command line and the dataclass both refuse them."""
    with pytest.raises(InputError, match=r"expected|read share"):
        build(LogOptions, values)


def test_what_a_verdict_depends_on_is_an_option_of_the_judge() -> None:
    """The judging options are `linearizable` and `follow`."""
    assert [option.name for option in click_options(LogOptions, judging=True)] == ["linearizable", "follow"]


def test_streams_are_described_the_same_for_the_same_seed() -> None:
    """Offsets that depend on the run are relative to the highest one."""
    workload = LogWorkload(LogOptions(read_share=0.8, range_length=4, recent=3))
    preview = described(workload, seed=3, streams=2, count=40)
    assert json.dumps(preview) == json.dumps(described(workload, seed=3, streams=2, count=40))
    values = [operation["value"] for operation in preview[0]["operations"] if operation["f"] == "read"]
    assert {"highest", "highest-1", "highest-2"} & {value for value in values if isinstance(value, str)}
    assert ["highest-1", "highest+2"] in values


def test_a_read_begins_near_the_highest_offset_that_is_known() -> None:
    """Offsets come from answers of appends, from reads of an offset with a value, and from ranges."""
    generator = LogWorkload(SINGLE).generator(seed=1, streams=1)
    assert {read.value for read in reads(generator)} == {0}
    for f, value, result, highest in (
        ("append", 7, 500, 500),
        ("read", 600, 7, 600),
        ("read", [590, 720], [[600, 7], [700, 8], [650, 9]], 700),
        ("append", 8, 20, 700),
        ("read", 900, None, 700),
        ("append", 8, None, 701),
        ("append", 8, None, 702),
        ("read", 701, 8, 702),
        ("read", 709, 8, 709),
    ):
        told(generator, f, value, result)
        assert {highest - read.value for read in reads(generator)} <= set(range(SINGLE.recent))


def test_a_range_may_end_above_what_is_known() -> None:
    """Reads also cover entries that are appended at that time."""
    generator = LogWorkload(RANGED).generator(seed=1, streams=1)
    told(generator, "append", 7, 500)
    some = reads(generator, 200)
    assert {read.value[1] - read.value[0] + 1 for read in some} == {1, 2, 3, 4, 5}
    assert max(read.value[1] for read in some) > 500


def test_reads_follow_a_log_whose_appends_answer_no_offset() -> None:
    """Reads and acknowledged appends determine the length, with any offsets of the system's own entries."""
    service = Logs(offsets=False, first=30)
    workload = LogWorkload(LogOptions(read_share=0.5))
    ops = simulate(time_limit(5, workload.generator(seed=4, streams=3)), respond=service)
    read = [op.value for op in ops if op.type is OpType.INVOKE and isinstance(op.value, list)]
    assert 0 <= max(service.logs[None]) - max(first for first, _ in read) < 40


@pytest.mark.parametrize("result", ["a", True, 1.5, -1, 10**18, {"a": 1}, [1], [["a", 1]], [[]], [[-1, 2]], [None]])
def test_an_answer_of_any_shape_does_no_harm(result: Any) -> None:
    """Results that are not offsets are ignored."""
    generator = LogWorkload(SINGLE).generator(seed=1, streams=1)
    told(generator, "append", 1, result)
    told(generator, "read", [0, 5], result)
    assert {read.value for read in reads(generator)} == {0}


def test_a_process_that_follows_a_log_goes_on_after_its_last_entry() -> None:
    """Another process, an empty read and a failed one do not move it; appends do not either."""
    generator = LogWorkload(LogOptions(read_share=0.9, follow=True, recent=1)).generator(seed=1, streams=1)
    told(generator, "append", 5, 30)
    firsts = []
    for answer in ([[30, 5], [33, 6]], [], [[35, 7]]):
        firsts += [read.value for read in reads(generator, 2)]
        generator.update(Op(0, 0, OpType.INVOKE, 0, "read", firsts[-1], None))
        generator.update(Op(1, 1, OpType.OK, 0, "read", answer, None))
        told(generator, "append", 9, 60)
    firsts += [read.value for read in reads(generator, 2)]
    assert [first for first, _ in firsts] == [30, 30, 34, 34, 34, 34, 36, 36]
    assert {last - first + 1 for first, last in firsts} == {RANGE}
    assert {tuple(draw.value) for draw in draws(LogOptions(follow=True), 0, 50) if draw.f == "read"} == {
        ("next", f"next+{RANGE - 1}")
    }


@pytest.mark.parametrize("service", [Logs(), Logs(offsets=False), Logs(first=7)])
def test_a_correct_log_is_valid_and_was_tested(service: Logs) -> None:
    """Final reads of limited length read all appends."""
    workload = LogWorkload(LogOptions(keys=2))
    ops = simulate(
        time_limit(5, workload.generator(seed=4, streams=5)), load=ClosedLoop(concurrency=5), respond=service
    )
    final = simulate(workload.final_generator(history=ops, node=NODE), load=ClosedLoop(concurrency=5), respond=service)
    begin = len(ops)
    later = [
        op._replace(index=op.index + begin, time_ns=op.time_ns + ops[-1].time_ns, process=int(op.process) + 100)
        for op in final
    ]
    operations = pair([*ops, *later])
    parts = {part.name: part for part in workload.check(operations, Observed(final_reads=FinalReads(through=("n1",))))}
    assert {name: part.verdict for name, part in parts.items()} == {"log": Verdict.VALID, "final-reads": Verdict.VALID}
    counts = parts["log"].details["counts"]
    assert counts["ok"] == counts["acknowledged"] > 500
    assert {op.phase for op in final} == {FINAL_PHASE}
    assert all(op.value[1] - op.value[0] == RANGE - 1 for op in final if op.type is OpType.INVOKE)


def invoked(generator: WholeLogs, *, answer: Any = None) -> list[Any]:
    """Runs a generator of final reads to its end. Returns its operations, in order."""
    ops = simulate(generator, respond=answer or (lambda _, __: Ok([])))
    return [(op.key, op.value[0]) if op.key else op.value[0] for op in ops if op.type is OpType.INVOKE]


def history_of(*results: Any, key: str | None = None) -> list[Op]:
    """Returns the events of appends with these answers."""
    return [
        Op(2 * index + half, 0, (OpType.INVOKE, OpType.OK)[half], 1, "append", result, key)
        for index, result in enumerate(results)
        for half in (0, 1)
    ]


def test_final_reads_cover_each_log_and_a_little_more() -> None:
    """Final reads have ranges of a thousand offsets, beyond the highest known one, also for a log without a known offset."""
    assert invoked(WholeLogs(history_of(RANGE - BEYOND - 1), [None])) == [0]
    assert invoked(WholeLogs(history_of(RANGE - BEYOND), [None])) == [0, RANGE]
    assert invoked(WholeLogs(history_of(None), [None])) == [0]
    history = [*history_of(5, key="a"), *history_of(1500, key="b")]
    assert invoked(WholeLogs(history, ["a", "b"])) == [("a", 0), ("b", 0), ("b", RANGE)]


def test_final_reads_go_on_where_a_log_is_longer_than_was_known() -> None:
    """Final reads continue until a read finds nothing near its end."""
    length = 2 * RANGE + 950

    def answer(_: int, invocation: Invocation) -> Outcome:
        first, last = invocation.value
        return Ok([[offset, offset] for offset in range(first, min(last, length) + 1)])

    assert invoked(WholeLogs(history_of(None), [None]), answer=answer) == [0, RANGE, 2 * RANGE, 3 * RANGE]


def test_final_reads_of_a_sparse_log_are_bounded() -> None:
    """If offsets are far apart, final reads cover only ranges with a known offset."""
    far = (MAX_RANGES + 5) * RANGE + 950
    assert invoked(WholeLogs(history_of(3, far, 5_000_000), [None])) == [0, 5_000_000, far - 950, far + 50]


def test_a_final_read_that_fails_is_asked_again_and_then_unknown() -> None:
    """A failed read is repeated a limited number of times; the part has the range."""
    generator = LogWorkload().final_generator(history=history_of(0), node=NODE)
    ops = simulate(limit(100, generator), respond=lambda _, __: Info("no-answer"))
    assert sum(op.type is OpType.INVOKE for op in ops) == ATTEMPTS
    operations = pair(ops)
    good = pair(
        simulate(WholeLogs(history_of(RANGE), [None]), respond=lambda _, i: Fail("no") if i.value[0] else Ok([]))
    )
    for some, reason in (
        (operations, "could not be read"),
        (good, "1 of 2 ranges of offsets could not be read after healing"),
    ):
        parts = {
            part.name: part for part in LogWorkload().check(some, Observed(final_reads=FinalReads(through=("n1",))))
        }
        assert parts["final-reads"].verdict is Verdict.UNKNOWN
        assert reason in parts["final-reads"].reason
    assert parts["final-reads"].details["unread_ranges"] == ["[1000, 1999]"]
    missing = FinalReads(missing="The run ended before its final reads.")
    final = LogWorkload().check(good, Observed(final_reads=missing))[1]
    assert (final.verdict, final.reason) == (Verdict.UNKNOWN, missing.missing)
    assert [part.name for part in LogWorkload().check(good, Observed())] == ["log"]


def test_operations_that_violate_are_named_in_the_part() -> None:
    """The part has the recorded operations, and the plot of the log."""
    history: Sequence[tuple[str, Any, Any]] = (("append", 5, 0), ("append", 6, 1), ("read", [0, 1], [[1, 6]]))
    events = [
        Op(
            2 * index + half,
            1000 * (2 * index + half),
            (OpType.INVOKE, OpType.OK)[half],
            1,
            f,
            (value, result)[half],
            node="n2",
        )
        for index, (f, value, result) in enumerate(history)
        for half in (0, 1)
    ]
    part = LogWorkload().check(pair(events), Observed())[0]
    assert part.verdict is Verdict.INVALID
    assert part.details["counterexample"]["kind"] == "lost"
    assert part.details["counterexample"]["subject"] == 0
    assert [operation["node"] for operation in part.details["counterexample"]["operations"]] == ["n2", "n2"]
    marks = {mark["name"]: mark["points"] for mark in part.details["plot"]["marks"]}
    assert marks == {"there": [[3e-6, 1]], "lost": [[1e-6, 0]]}
    json.dumps(part.details)
