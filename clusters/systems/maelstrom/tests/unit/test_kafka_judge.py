"""The judge of the workload kafka: committed offsets that go back, and those that nobody committed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from checker.formats.columns import of_operations
from clusters.systems.maelstrom.workloads.kafka import KafkaOptions, KafkaWorkload
from harness.errors import InputError
from harness.generator import Asker
from harness.node import Node
from harness.op import Invocation, Op, Operation, OpType
from harness.verdict import Verdict
from tests.unit.workloads.histories import done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.judging import Judgement
    from harness.op import Value

NODE = Node(name="n0", address="10.0.0.1")
SENT = (done(0, 1, 0, "append", 7, 0), done(2, 3, 0, "append", 8, 1), done(4, 5, 0, "read", [0, 9], [[0, 7], [1, 8]]))


def judged(*operations: Operation, fresh: bool = True, strict: bool = True) -> Judgement:
    """Judges one log, after two sends and a poll."""
    workload = KafkaWorkload(KafkaOptions(fresh_commits=fresh, strict_commits=strict))
    return workload.judge(of_operations([*SENT, *operations]))


def test_lists_that_show_each_commit_are_valid() -> None:
    """A list at the same time as a commit may show it or not; a commit without an answer may show later, and a null is none."""
    judgement = judged(
        done(10, 11, 1, "list", None, None),
        done(12, 20, 1, "commit", 1, 1),
        done(13, 14, 2, "list", None, 1),
        done(15, 21, 3, "list", None, 1),
        done(30, None, 2, "commit", 5),
        done(31, 32, 3, "list", None, 1),
        done(33, 34, 3, "list", None, 5),
        done(35, 36, 3, "commit", 3, 3),
        done(37, 38, 1, "list", None, 5),
    )
    assert judgement.verdict is Verdict.VALID, judgement.reason
    assert {name: judgement.counts[name] for name in ("commits", "lists", "committed-back", "uncommitted")} == {
        "commits": 2, "lists": 6, "committed-back": 0, "uncommitted": 0,
    }  # fmt: skip


@pytest.mark.parametrize("shown", [0, None], ids=["lower", "none"])
def test_a_list_below_an_acknowledged_commit_is_named_with_it(shown: Value) -> None:
    """The explanation has both operations, also if the list has no offset at all."""
    judgement = judged(done(10, 11, 1, "commit", 1, 1), done(12, 13, 2, "list", None, shown))
    assert judgement.verdict is Verdict.INVALID
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows, anomaly.decisive) == ("committed-back", 1, (3, 4), 4)
    what = "no offset" if shown is None else "offset 0"
    assert anomaly.explanation == (
        "The committed offset went back: process 1 committed offset 1 (0.010 s to 0.011 s), "
        f"and later process 2 listed {what} (0.012 s to 0.013 s)."
    )


def test_what_maelstrom_does_not_look_at_is_a_warning() -> None:
    """Without strict commits, the log is valid, and the sentence of the part has the number and the first of them."""
    history = (done(10, 11, 1, "commit", 1, 1), done(12, 13, 2, "list", None, 0), done(14, 15, 2, "list", None, 9))
    judgement = judged(*history, strict=False)
    assert (judgement.verdict, judgement.anomalies) == (Verdict.VALID, [])
    assert judgement.basis.startswith("Warning: 1 list of committed offsets contradict")
    assert "the committed offset went back" in judgement.basis.lower()
    assert judgement.counts["committed-back"] == 1
    assert not KafkaOptions().strict_commits
    assert judged(*history).verdict is Verdict.INVALID
    assert judged(*history).basis == ""


def test_a_list_below_an_earlier_list_went_back() -> None:
    """Nobody knows the outcome of the commit, but the first list shows it."""
    judgement = judged(
        done(10, None, 1, "commit", 1), done(11, 12, 2, "list", None, 1), done(13, 14, 3, "list", None, None)
    )
    assert [(anomaly.kind, anomaly.rows) for anomaly in judgement.anomalies] == [("committed-back", (4, 5))]


def test_an_offset_that_nobody_committed_is_named_once() -> None:
    """A refused commit does not count, nor one that began later. What such a list shows says nothing about later lists."""
    judgement = judged(
        done(10, 11, 1, "commit", 9, kind=OpType.FAIL),
        done(12, 13, 1, "commit", 0, 0),
        done(14, 15, 2, "list", None, 1),
        done(16, 17, 1, "commit", 1, 1),
        done(18, 19, 2, "list", None, 1),
    )
    assert [(anomaly.kind, anomaly.subject, anomaly.rows) for anomaly in judgement.anomalies] == [
        ("uncommitted", 1, (5,))
    ]
    judgement = judged(
        done(12, 13, 1, "commit", 0, 0), done(14, 15, 2, "list", None, 8), done(18, 19, 2, "list", None, 0)
    )
    assert [(anomaly.kind, anomaly.rows) for anomaly in judgement.anomalies] == [("uncommitted", (4,))]


@pytest.mark.parametrize(
    ("committed", "shown", "is_false"),
    [(None, 0, True), (None, -1, False), (0, 1, True), (1, 2, False), (1, 5, False), (1, 6, True)],
)
def test_a_list_above_all_commits_is_wrong_only_if_it_skips_a_message(
    committed: int | None,
    shown: int,
    is_false: bool,
) -> None:
    """The log has messages at 0, 1 and, later, at 6. Later lists with less than such an offset did not go back either."""
    commits = [] if committed is None else [done(10, 11, 1, "commit", committed, committed)]
    judgement = judged(
        *commits,
        done(12, 13, 2, "list", None, shown),
        done(14, 15, 2, "list", None, committed),
        done(16, 17, 2, "append", 9, 6),
        done(18, 19, 2, "read", 6, 9),
    )
    assert [anomaly.kind for anomaly in judgement.anomalies] == ["uncommitted"] * is_false


def test_without_fresh_commits_only_lists_after_the_last_commit_show_a_loss() -> None:
    """The first list is too early for that, the second one is not."""
    stale = [done(10, 11, 1, "commit", 0, 0), done(12, 13, 2, "list", None, None), done(14, 15, 1, "commit", 1, 1)]
    assert judged(*stale).verdict is Verdict.INVALID
    assert judged(*stale, fresh=False).verdict is Verdict.VALID
    lost = judged(*stale, done(16, 17, 2, "list", None, 0), fresh=False)
    assert [anomaly.rows for anomaly in lost.anomalies] == [(5, 6)]


def test_what_could_not_be_checked_is_said() -> None:
    """Commits without a list, and a log with nothing else."""
    assert judged(done(10, 11, 1, "commit", 1, 1)).reason.endswith(
        "No list was answered, so 1 commit could not be checked."
    )
    judgement = KafkaWorkload().judge(of_operations([done(10, 11, 1, "list")]))
    assert judgement.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (done(10, 11, 1, "commit", "x", "x"), "event 10: expected an offset as the value of commit"),
        (done(10, 11, 1, "list", None, 10**18), "event 10: expected an offset or null as the result of list"),
        (done(10, 11, 1, "enqueue", 1), "has the functions append, read, commit, list, found"),
    ],
)
def test_operations_that_are_none_are_refused(wrong: Operation, expected: str) -> None:
    """The error has the event, and what was expected."""
    with pytest.raises(InputError, match=expected):
        judged(wrong)


def wrong_lists(operations: Sequence[Operation]) -> dict[str, set[int]]:
    """Applies the rules by comparing all pairs of operations. Returns the rows of the lists by kind."""
    commits = [operation for operation in operations if operation.f == "commit" and operation.type is not OpType.FAIL]
    lists = {
        row: operation
        for row, operation in enumerate(operations)
        if operation.f == "list" and operation.type is OpType.OK
    }
    high = {
        row
        for row, operation in lists.items()
        if operation.result is not None
        and not any(
            other.value >= operation.result and other.invoke_index < (operation.complete_index or 0)
            for other in commits
        )
    }
    messages = {operation.result for operation in operations if operation.f == "append" and operation.type is OpType.OK}
    begun = {
        row: max(
            (other.value for other in commits if other.invoke_index < (lists[row].complete_index or 0)), default=-1
        )
        for row in high
    }
    promised = {row for row in high if any(begun[row] < offset <= lists[row].result for offset in messages)}
    shown = [(commit.value, commit) for commit in commits if commit.type is OpType.OK]
    shown += [
        (operation.result, operation)
        for row, operation in lists.items()
        if row not in high and operation.result is not None
    ]
    back = {
        row
        for row, operation in lists.items()
        if row not in high
        and any(
            (other.complete_index or 0) < operation.invoke_index
            and offset > (-1 if operation.result is None else operation.result)
            for offset, other in shown
        )
    }
    return {"committed-back": back, "uncommitted": promised}


@pytest.mark.parametrize("seed", range(40))
def test_the_judge_finds_what_a_comparison_of_all_pairs_finds(seed: int) -> None:
    """Random intervals, outcomes and offsets."""
    draws = random.Random(seed)
    events = list(range(10, 90))
    draws.shuffle(events)
    operations = [*SENT, *(done(6 + at, 8 + at, 0, "append", 9 + at, 3) for at in range(draws.randrange(2)))]
    for process in range(draws.randrange(2, 30)):
        start, end = sorted((events.pop(), events.pop()))
        offset = draws.randrange(5)
        if draws.random() < 0.5:
            kind = draws.choice((OpType.OK, OpType.OK, OpType.FAIL))
            operations.append(
                done(start, None if draws.random() < 0.2 else end, process, "commit", offset, offset, kind=kind)
            )
        else:
            operations.append(done(start, end, process, "list", None, offset or None))
    operations.sort(key=lambda operation: operation.invoke_index)
    expected = wrong_lists(operations)
    judgement = KafkaWorkload(KafkaOptions(strict_commits=True)).judge(of_operations(operations))
    rows_of: dict[str, set[int]] = {"committed-back": set(), "uncommitted": set()}
    for anomaly in judgement.anomalies:
        if anomaly.kind in rows_of and anomaly.decisive is not None:
            rows_of[anomaly.kind].add(anomaly.decisive)
    assert rows_of == expected
    assert {kind: judgement.counts[kind] for kind in rows_of} == {kind: len(rows) for kind, rows in expected.items()}


def test_a_process_commits_what_it_has_read_and_lists_before() -> None:
    """Until a process has read an entry of a log, it lists where it would commit. The end lists each log with a commit."""
    workload = KafkaWorkload(KafkaOptions(keys=2, commit_share=0.98, list_share=0.0, read_share=0.0))
    generator = workload.generator(seed=1, streams=1)
    asker = Asker(worker=0, process=0, node="n0", now_ns=0, workers=frozenset((0,)))

    def asked() -> set[tuple[str, Value, str | None]]:
        drawn = [generator.ask(asker) for _ in range(40)]
        return {
            (invocation.f, invocation.value, invocation.key)
            for invocation in drawn
            if isinstance(invocation, Invocation) and invocation.f != "append"
        }

    assert asked() == {("list", None, "0"), ("list", None, "1")}
    read = Op(index=0, time_ns=0, type=OpType.INVOKE, process=0, f="read", value=[0, 9], key="1")
    events = [read, read._replace(type=OpType.OK, value=[[0, 7], [3, 8]])]
    for event in events:
        generator.update(event)
    assert asked() == {("list", None, "0"), ("commit", 3, "1")}
    events.append(read._replace(f="commit", value=3))
    final = workload.final_generator(history=events, node=NODE)
    made = []
    for _ in range(9):
        answer = final.ask(asker)
        if isinstance(answer, Invocation):
            made.append((answer.f, answer.key))
            for kind in (OpType.INVOKE, OpType.OK):
                value = [] if answer.f == "read" and kind is OpType.OK else answer.value
                final.update(read._replace(type=kind, f=answer.f, value=value, key=answer.key))
    assert made == [("read", "1"), ("list", "1")]


def test_the_shares_leave_room_for_sends() -> None:
    """Otherwise nothing is sent."""
    with pytest.raises(InputError, match="below 1 in all"):
        KafkaOptions(read_share=0.5, commit_share=0.3, list_share=0.2)
