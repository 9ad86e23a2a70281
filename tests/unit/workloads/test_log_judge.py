"""The judge of logs: each rule by a small example, and all rules compared with a brute force."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from harness.errors import InputError
from harness.op import OpType
from harness.verdict import Verdict
from tests.unit.workloads.logs import Brute, Script, at_random, found, in_turn, judged, of_keys
from workloads.log import LogOptions, LogWorkload, reading

HISTORIES = 400
OK, FAIL, INFO = OpType.OK, OpType.FAIL, OpType.INFO
VALUES: dict[str, list[Any]] = {
    "unique": list(range(1, 9)),
    "repeated": [1, 2, 3, 1, 2, 3, 4, 4],
    "other": ["a", [1, 2], 1.5, {"k": [1]}, True, 10**18, [1], "[1,2]"],
}
ALWAYS = (
    *("lost", "stale", "changed", "unexpected", "valid", "invalid"),
    *("skipped", "repeated", "disordered", "outside"),
)


@pytest.mark.parametrize("answers", [True, False], ids=["offsets", "nulls"])
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_judge_finds_what_a_brute_force_finds(
    values: list[Any], answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judge and brute force agree on small histories, right and wrong; a correct log has no anomaly."""
    seen: Counter[str] = Counter()
    draws = [random.Random(f"{seed}/{answers}") for seed in range(HISTORIES)]
    faults = [draw.choice([0, 0.1, 0.3, 0.3]) for draw in draws]
    histories = [
        at_random(draws_of_history, values=values, answers=answers, faulty=faulty)
        for draws_of_history, faulty in zip(draws, faults, strict=True)
    ]
    columns = of_keys(histories)
    for seed, (_, rows) in enumerate(columns.rows_by_key()):
        if seed % 4 == 0:
            monkeypatch.setattr(reading, "_in_bulk", lambda _: None)
        else:
            monkeypatch.undo()
        faulty = faults[seed]
        judgement = LogWorkload().judge(columns.only(rows))
        brute = Brute(histories[seed])
        kinds, counts = brute.kinds, brute.counts
        assert faulty or not kinds, seed
        assert found(judgement) == kinds, seed
        assert +Counter(judgement.counts) == +counts, seed
        seen_at_all = counts["ok"] + counts["recovered"] + counts["stale"]
        tested = counts["acknowledged"] and seen_at_all and not counts["never-read"]
        following = LogWorkload(LogOptions(follow=True)).judge(columns.only(rows))
        assert found(following) == kinds | brute.of_reading, seed
        seen.update({kind for kind, _ in brute.of_reading})
        expected = Verdict.INVALID if kinds else Verdict.VALID if tested else Verdict.UNKNOWN
        assert judgement.verdict is expected
        if expected is Verdict.VALID:
            stated = f"{counts['acknowledged']} of {counts['acknowledged']} acknowledged appends"
            assert judgement.reason.startswith(stated)
        seen.update({kind for kind, _ in kinds})
        seen[str(expected)] += 1
    unique = values is not VALUES["repeated"]
    wanted = [*ALWAYS, *(["conflict"] if answers else []), *(["duplicated", "reordered"] if unique else [])]
    assert not {kind for kind in wanted if not seen[kind]}


def test_a_lost_append_is_named_with_the_read_that_lacks_it() -> None:
    """An acknowledged append that a later read of its offset lacks is lost, by a single read as by a range."""
    reads = {"offset 0": (0, None), "offsets 0 to 3": ([0, 3], [[1, 6]]), "offsets 0 to 0": ([0, 0], [])}
    for asked, read in reads.items():
        judgement = judged(in_turn(("append", 5, 0), ("append", 6, 1), ("read", *read)))
        assert found(judgement) == {("lost", "0")}
        (anomaly,) = judgement.anomalies
        assert anomaly.rows == (0, 2)
        assert anomaly.decisive == 2
        assert anomaly.explanation == (
            "5 at offset 0 is lost: process 0's append of 5 was acknowledged with offset 0 at 0.001 s, but process 2's read of "
            f"{asked}, which began at 0.004 s, has nothing at offset 0. No read that began later has it."
        )


def test_an_entry_that_was_read_once_must_stay() -> None:
    """It is lost even if its append was never acknowledged."""
    judgement = judged(in_turn(("append", 5, None, INFO), ("read", 0, 5), ("read", 0, None)))
    assert found(judgement) == {("lost", "0")}
    assert judgement.counts["recovered"] == 1


def test_a_stale_read_says_for_how_long() -> None:
    """The time lasts from the moment at which the entry was known to the start of the last read that lacks it."""
    judgement = judged(in_turn(("append", 5, 0), ("read", 0, None), ("read", [0, 9], []), ("read", 0, 5)))
    assert found(judgement) == {("stale", "0")}
    assert judgement.anomalies[0].rows == (0, 2, 3)
    assert "0.003 s after it was known" in judgement.anomalies[0].explanation
    assert judgement.figures["stale-latencies"]["1"] == pytest.approx(3)


def test_a_stale_read_is_counted_where_reads_need_not_be_linearizable() -> None:
    """A stale entry is then not an anomaly; an entry that never comes back is still lost."""
    stale = [("append", 5, 0), ("append", 6, 1), ("read", 0, None), ("read", 0, 5)]
    judgement = judged(in_turn(*stale, ("read", 1, 6)), linearizable=False)
    assert judgement.verdict is Verdict.VALID
    assert judgement.counts["stale"] == 1
    assert not judgement.anomalies
    assert judged(in_turn(*stale)).verdict is Verdict.INVALID
    judgement = judged(in_turn(*stale, ("read", 1, None)), linearizable=False)
    assert found(judgement) == {("lost", "1")}


def test_a_stale_entry_without_an_answer_is_no_acknowledged_append() -> None:
    """The reason counts acknowledged appends; an append without an answer can be stale as well."""
    unanswered = [
        ("append", 5, None, INFO),
        ("append", 6, 1),
        ("read", 0, 5),
        ("read", [0, 1], [[1, 6]]),
        ("read", 0, 5),
    ]
    judgement = judged(in_turn(*unanswered), linearizable=False)
    assert (judgement.counts["ok"], judgement.counts["stale"]) == (1, 1)
    assert judgement.reason == (
        "1 of 1 acknowledged appends were read at their offsets. 1 offset had a stale read before."
    )
    judgement = judged(in_turn(("append", 5, 0), ("read", 0, None), ("read", 0, 5)), linearizable=False)
    assert judgement.reason.startswith("1 of 1 acknowledged appends were read")


FOLLOWED = [("append", 7, 2), ("append", 8, 3), ("append", 9, 5)]


@pytest.mark.parametrize(
    ("kind", "first", "shown", "subject", "expected"),
    [
        ("repeated", 2, [[2, 7], [3, 8], [3, 8], [5, 9]], 3, "has offset 3 more than once."),
        ("repeated", 2, [[2, 7], [3, 8], [2, 7], [5, 9]], 2, "has offset 2 more than once."),
        ("disordered", 2, [[3, 8], [2, 7], [5, 9]], 2, "has offset 2 directly after a higher one."),
        ("outside", 3, [[2, 7], [3, 8], [5, 9]], 2, "has offset 2, which it does not cover."),
    ],
)  # fmt: skip
def test_a_watch_shows_each_event_once_in_order_and_none_from_before(
    kind: str, first: int, shown: list[Any], subject: int, expected: str
) -> None:
    """Each rule of reads that follow a log, where every entry is there; other reads may show entries in any way."""
    operations = in_turn(*FOLLOWED, ("read", [first, 9], shown))
    (anomaly,) = judged(operations, follow=True).anomalies
    assert (anomaly.kind, anomaly.subject) == (kind, subject)
    began = f"Process 3's read of offsets {first} to 9, which began at 0.006 s, "
    assert anomaly.explanation == began + expected
    assert judged(operations).verdict is Verdict.VALID


def test_a_watch_may_lag_and_must_not_skip() -> None:
    """A watch that ends early is right; one that has a later event skips, even if nobody knew the entry when it began."""
    script = Script()
    script.add("append", 7, 2, 1, 2)
    script.add("append", 8, 3, 3, 20)
    script.add("append", 9, 5, 4, 21)
    script.add("read", [2, 9], [[2, 7]], 5, 22)
    assert judged(script.operations, follow=True).verdict is Verdict.UNKNOWN  # nobody has read the others
    assert not judged(script.operations, follow=True).anomalies
    script.add("read", [2, 9], [[2, 7], [5, 9]], 6, 23)
    script.add("read", [2, 9], [[2, 7], [3, 8], [5, 9]], 30, 31)
    judgement = judged(script.operations, follow=True)
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject) == ("skipped", 3)
    assert judgement.reason == "The log is wrong: 1 skipped."
    assert "skips 8 at offset 3 and has a higher offset" in anomaly.explanation
    assert "skipped" not in judged(script.operations).counts
    assert judged(script.operations).verdict is Verdict.VALID


def test_a_read_that_overlaps_says_nothing_of_what_is_missing() -> None:
    """A read that began before the append was acknowledged may miss it."""
    script = Script()
    script.add("append", 5, 0, 1, 3)
    script.add("read", 0, None, 2, 4)
    script.add("read", 0, 5, 5, 6)
    assert script.judged().verdict is Verdict.VALID


@pytest.mark.parametrize("kind", [FAIL, INFO])
def test_a_read_without_an_answer_says_nothing(kind: OpType) -> None:
    """Such a read neither shows a loss nor tests anything."""
    judgement = judged(in_turn(("append", 5, 0), ("read", 0, None, kind)))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.counts["never-read"] == 1
    assert "nothing was tested" in judgement.reason


def test_two_values_at_one_offset_are_a_conflict() -> None:
    """Conflicts exist between two answers, an answer and a read, and two overlapping reads."""
    assert found(judged(in_turn(("append", 5, 0), ("append", 6, 0)))) == {("conflict", "0")}
    assert ("conflict", "0") in found(judged(in_turn(("append", 5, 0), ("append", 6, None), ("read", 0, 6))))
    script = Script()
    script.add("append", 5, None, 0, 1, kind=INFO)
    script.add("append", 6, None, 2, 3, kind=INFO)
    script.add("read", 0, 5, 4, 6)
    script.add("read", 0, 6, 5, 7)
    assert found(script.judged()) == {("conflict", "0")}


def test_a_value_that_changes_between_reads_is_named_changed() -> None:
    """The answers of the appends do not matter."""
    judgement = judged(
        in_turn(("append", 5, None, INFO), ("append", 6, None, INFO), ("read", 0, 5), ("read", [0, 1], [[0, 6]]))
    )
    assert found(judgement) == {("changed", "0")}
    assert judgement.anomalies[0].rows == (2, 3)


def test_a_value_at_two_offsets_is_duplicated() -> None:
    """A value at two offsets is duplicated, unless it was appended twice; a failed append does not count."""
    twice = ("read", [0, 1], [[0, 5], [1, 5]])
    assert found(judged(in_turn(("append", 5, 0), twice))) == {("duplicated", "5")}
    assert judged(in_turn(("append", 5, 0), ("append", 5, 1), twice)).verdict is Verdict.VALID
    assert judged(in_turn(("append", 5, 0), ("append", 5, None, INFO), twice)).verdict is Verdict.VALID
    assert found(judged(in_turn(("append", 5, 0), ("append", 5, None, FAIL), twice))) == {("duplicated", "5")}


def test_a_value_that_nobody_appended_is_unexpected() -> None:
    """The same holds for a failed append, and for an append that began after the read."""
    for operations, why in (
        ([("read", 0, 7)], "which nobody appended"),
        ([("append", 7, None, FAIL), ("read", 0, 7)], "the append of it by process 0 failed"),
        ([("read", 0, 7), ("append", 7, 0)], "its append began only at 0.002 s"),
    ):
        judgement = judged(in_turn(*operations))
        assert found(judgement) == {("unexpected", "7")}
        assert why in judgement.anomalies[0].explanation


def test_offsets_follow_real_time() -> None:
    """This includes an append without an answer, from the first read with its entry."""
    assert found(judged(in_turn(("append", 5, 8), ("append", 6, 3)))) == {("reordered", "3")}
    judgement = judged(
        in_turn(("append", 5, None, INFO), ("read", 8, 5), ("append", 6, None, INFO), ("read", [3, 3], [[3, 6]]))
    )
    assert found(judgement) == {("reordered", "3")}
    assert judgement.anomalies[0].rows == (0, 1, 2)
    script = Script()
    script.add("append", 5, 8, 0, 2)
    script.add("append", 6, 3, 1, 3)
    assert "reordered" not in {kind for kind, _ in found(script.judged())}


def test_offsets_need_not_be_dense() -> None:
    """An offset without an entry of a client is not a loss."""
    assert (
        judged(in_turn(("append", 5, 3), ("append", 6, 9), ("read", [0, 20], [[3, 5], [9, 6]]))).verdict
        is Verdict.VALID
    )


def test_a_log_with_an_append_that_nobody_read_is_not_valid() -> None:
    """A loss of it was not seen."""
    read, unread = [("append", 5, 0), ("read", 0, 5)], ("append", 6, 1)
    assert judged(in_turn(*read)).verdict is Verdict.VALID
    judgement = judged(in_turn(*read, unread))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.endswith("1 were never read, so a loss of them was not seen.")
    assert judged(in_turn(*read, unread, ("read", 1, 6))).verdict is Verdict.VALID


def test_an_append_without_an_offset_is_judged_by_reads() -> None:
    """It is lost if later reads cover every offset between its neighbours and lack it; otherwise it is unknown."""
    before, lost, after = ("append", 1, 0), ("append", 2, None), ("append", 3, 5)
    judgement = judged(in_turn(before, lost, after, ("read", [0, 3], [[0, 1]]), ("read", 4, None), ("read", 5, 3)))
    assert found(judgement) == {("lost", "2")}
    assert judgement.anomalies[0].rows == (1,)
    judgement = judged(in_turn(before, lost, after, ("read", [0, 3], [[0, 1]]), ("read", 5, 3)))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.counts["never-read"] == 1
    judgement = judged(in_turn(before, lost, ("read", [0, 1000], [[0, 1]])))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.counts["never-read"] == 1


def test_values_that_were_appended_more_than_once_are_named() -> None:
    """The reason has the number of repeated values."""
    judgement = judged(in_turn(("append", 1, None), ("append", 1, None), ("read", [0, 5], [[2, 1]])))
    assert judgement.verdict is Verdict.VALID
    assert "1 values were appended more than once; only answers" in judgement.reason


def test_what_was_never_read_is_unknown() -> None:
    """A history without operations, without reads, or with reads of other offsets tested nothing."""
    for operations in ([], [("append", 5, 0)], [("append", 5, 0), ("read", 7, None)], [("append", 5, None, FAIL)]):
        judgement = judged(in_turn(*operations))
        assert judgement.verdict is Verdict.UNKNOWN
        assert judgement.reason


def test_a_log_without_an_acknowledged_append_is_unknown() -> None:
    """Reads that agree on entries without an answer show no loss: nothing was promised. A contradiction still counts."""
    unanswered = [("append", 5, None, INFO), ("read", [0, 9], [[0, 5]])]
    judgement = judged(in_turn(*unanswered))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason == "None of 1 append was acknowledged, so no loss could be seen."
    assert judged(in_turn(*unanswered, ("read", [0, 9], []))).verdict is Verdict.INVALID
    assert judged(in_turn(*unanswered, ("append", 6, 1), ("read", 1, 6))).verdict is Verdict.VALID


def test_anomalies_are_bounded_and_counts_are_not() -> None:
    """Of thousands of anomalies, a hundred are reported, with all kinds."""
    values = range(3000)
    lost = judged(in_turn(*(("append", value, value) for value in values), ("read", [0, 3000], []), ("read", 3001, 9)))
    assert lost.counts["lost"] == len(values)
    kinds = Counter(anomaly.kind for anomaly in lost.anomalies)
    assert sum(kinds.values()) <= 100
    assert kinds["lost"] >= 30
    assert kinds["duplicated"] == 1


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (("write", 1, 1), "expected append or read"),
        (("append", None, 1), "expected an append of a value"),
        (("append", 1, "a"), "expected an offset or null"),
        (("append", 1, [1, 2]), "expected an offset or null"),
        (("read", "a", None), "expected a read of an offset"),
        (("read", [1, 2, 3], None), "expected a read of an offset"),
        (("read", None, None), "expected a read of an offset"),
        (("read", [0, 1], None), "expected [[offset, value], ...]"),
        (("read", [0, 1], [1, 2]), "expected [[offset, value], ...]"),
        (("read", [0, 1], {"a": 1}), "expected [[offset, value], ...]"),
        (("read", [0, 1], [[0, 1], [1]]), "found [1]"),
        (("read", [0, 1], [["0", 1]]), "found ['0', 1]"),
        (("read", [0, 1], [[0, None]]), "found [0, None]"),
        (("read", [0, 1], [[10**18, 1]]), "found [1000000000000000000, 1]"),
        (("read", [0, 1], "[[0,1]]"), "expected [[offset, value], ...]"),
    ],
)
def test_an_operation_of_another_shape_is_refused(operation: tuple[Any, ...], expected: str) -> None:
    """The error has the event and the expected form."""
    with pytest.raises(InputError) as error:
        judged(in_turn(("append", 5, 0), operation))
    assert str(error.value).startswith("event 2: ")
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("big", "low", "text"),
    [(10**17, -(10**17), -5), (10**30, -5, -6), (7 * 10**18, -(10**18), "a\u00e9\n"), (5, -(10**30), -6)],
)
def test_ranges_are_read_alike_in_bulk_and_one_by_one(big: int, low: int, text: int | str) -> None:
    """Large integers and values of other types in a range equal those elsewhere."""
    pairs: list[list[Any]] = [[0, -1], [1, big], [2, text], [3, 7], [4, low]]
    singles = [("append", value, offset) for offset, value in pairs]
    reads = [("read", [0, 4], pairs), *(("read", offset, value) for offset, value in pairs)]
    judgement = judged(in_turn(*singles, *reads, ("read", [3, 3], [[3, 7]]), ("read", [9, 3], [])))
    assert judgement.verdict is Verdict.VALID
    assert judgement.counts["ok"] == 5


@pytest.mark.parametrize(
    ("later", "linearizable", "expected"),
    [
        ([], True, Verdict.INVALID),
        ([], False, Verdict.INVALID),
        ([("append", 7, 2)], True, Verdict.INVALID),
        ([("append", 7, 2)], False, Verdict.UNKNOWN),
        ([("append", 7, 2), ("read", [0, 9], [[0, 5], [1, 6], [2, 7]])], False, Verdict.VALID),
        ([("append", 7, 2), ("read", [0, 9], [[1, 6], [2, 7]])], False, Verdict.INVALID),
        ([("append", 7, None, INFO)], False, Verdict.INVALID),
    ],
)
def test_an_old_read_before_the_last_append_shows_no_loss(
    later: list[tuple[Any, ...]], linearizable: bool, expected: Verdict
) -> None:
    """Reads that may be old prove a loss only after all appends; until then, the verdict is unknown."""
    before = (("append", 5, 0), ("append", 6, 1), ("read", [0, 9], [[1, 6]]))
    judgement = judged(in_turn(*before, *later), linearizable=linearizable)
    assert judgement.verdict is expected
    assert (expected is Verdict.UNKNOWN) == ("need not be lost" in judgement.reason)
