"""The transactions of the workload list-append, and the parts of its verdict."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from harness.combinators import time_limit
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.history import pair
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Invocation, Ok, OpType, Outcome
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.streams import drawn, in_turns
from workloads.transactions import ListAppendOptions, ListAppendWorkload

NODE = Node(name="n1", address="10.0.0.1")


def test_the_nth_transaction_depends_on_seed_stream_and_n_alone() -> None:
    """The n-th transaction of a stream does not depend on other streams or on the number of transactions."""
    turns = in_turns(ListAppendWorkload(), [0, 1] * 200, streams=2)
    assert turns == {number: drawn(ListAppendWorkload(), number, 200, streams=2) for number in (0, 1)}
    assert drawn(ListAppendWorkload(), 0, 400, streams=2)[:200] == turns[0]
    assert turns[0] != turns[1]


def test_transactions_are_those_of_the_options() -> None:
    """The options determine the lengths, the share of reads, and when new keys take the place of all keys."""
    options = ListAppendOptions(keys=3, max_length=5, read_share=0.3, ops_per_key=1000)
    draws = [draw.value for draw in drawn(ListAppendWorkload(options), 0, 4000)]
    assert Counter(map(len, draws)).keys() == {1, 2, 3, 4, 5}
    mops = [mop for draw in draws for mop in draw]
    assert sum(mop[0] == "r" for mop in mops) / len(mops) == pytest.approx(0.3, abs=0.03)
    uses = Counter(mop[1] for draw in draws[:1000] for mop in draw)
    assert set(uses) == {"k0", "k1", "k2"}
    assert uses["k0"] / uses["k1"] == pytest.approx(2, rel=0.15)
    assert {mop[1] for draw in draws[1000:2000] for mop in draw} == {"k3", "k4", "k5"}


def test_an_element_is_appended_once() -> None:
    """No two appends of a run have the same element."""
    streams = in_turns(ListAppendWorkload(), [0, 1, 2] * 300, streams=3).values()
    elements = [mop[2] for stream in streams for one in stream for mop in one.value if mop[0] == "append"]
    assert len(set(elements)) == len(elements)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"read_share": 0.0}, "expected a share of reads between 0 and 1, not 0.0"),
        ({"read_share": 1.0}, "expected a share of reads between 0 and 1, not 1.0"),
        ({"keys": 0}, "keys: expected a number from 1 to 10,000, not 0"),
        ({"max_length": 101}, "max-length: expected a number from 1 to 100, not 101"),
        ({"consistency_model": "casual"}, "expected a consistency model, found casual"),
    ],
)
def test_options_that_test_nothing_are_refused(wrong: dict[str, Any], message: str) -> None:
    """The message says what was expected."""
    with pytest.raises(InputError, match=message):
        ListAppendOptions(**wrong)


def test_a_correct_system_is_valid_and_a_stale_one_is_not() -> None:
    """Every key is read after healing; reads of an old state are a cycle."""
    workload = ListAppendWorkload()
    for lag, verdict in ((0, Verdict.VALID), (3, Verdict.INVALID)):
        states: list[dict[str, list[int]]] = [{}]

        def respond(_: int, invocation: Invocation, lag: int = lag, states: list[Any] = states) -> Outcome:
            seen = {key: list(some) for key, some in states[max(0, len(states) - 1 - lag)].items()}
            newest = {key: list(some) for key, some in states[-1].items()}
            answer = []
            for f, key, value in invocation.value:
                if f == "append":
                    seen.setdefault(key, []).append(value)
                    newest.setdefault(key, []).append(value)
                answer.append([f, key, value if f == "append" else list(seen.get(key, []))])
            states.append(newest)
            return Ok(answer)

        load = ClosedLoop(concurrency=5)
        main = simulate(time_limit(2, workload.generator(seed=4, streams=5)), load=load, respond=respond)
        final = simulate(workload.final_generator(history=main, node=NODE), load=load, respond=respond)
        asked = {mop[1] for op in main if op.type is OpType.INVOKE for mop in op.value}
        assert {mop[1] for op in final for mop in op.value} == asked
        assert {op.phase for op in final} == {FINAL_PHASE}
        later = [
            op._replace(
                index=op.index + len(main), time_ns=op.time_ns + main[-1].time_ns, process=1000 + int(op.process)
            )
            for op in final
        ]
        parts = workload.check(pair([*main, *later]), Observed(final_reads=FinalReads(through=("n1",))))
        assert [(part.name, part.verdict) for part in parts] == [
            ("list-append", verdict),
            ("final-reads", Verdict.VALID),
        ]
