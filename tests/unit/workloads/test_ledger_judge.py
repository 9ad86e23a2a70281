"""The judge of ledgers: their one end, and what was acknowledged or confirmed beyond it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.formats.columns import of_operations
from checker.judging import UNPROMISED, part_of
from harness.errors import InputError
from harness.final_reads import FinalReads
from harness.op import FINAL_PHASE, Operation, OpType
from harness.verdict import Verdict
from tests.unit.workloads.logs import in_turn
from workloads.ledger import LedgerWorkload

if TYPE_CHECKING:
    from checker.formats.columns import Columns
    from checker.judging import Judgement
    from harness.verdict import Part

OWN = ("ends-differ", "beyond-end", "confirmed-beyond-end", "under-replicated", "misplaced")


def judged(operations: list[Operation]) -> Judgement:
    """Judges one ledger."""
    return LedgerWorkload().judge(of_operations(operations))


def keyed(**operations: list[Operation]) -> Columns:
    """Returns the operations of several ledgers, one ledger after the other."""
    named = [replace(operation, key=key) for key, its in operations.items() for operation in its]
    moved = [
        replace(operation, invoke_index=2 * at, complete_index=None if operation.complete_index is None else 2 * at + 1)
        for at, operation in enumerate(named)
    ]
    return of_operations(moved)


APPENDED = (("append", 7, 0), ("append", 8, 1), ("read", [0, 9], [[0, 7], [1, 8]]))


def test_a_ledger_that_ends_once_is_valid() -> None:
    """Two recoveries that agree, a read of all entries, and a refused append after the end."""
    judgement = judged(in_turn(*APPENDED, ("recover", None, 1), ("append", 9, None, OpType.INFO), ("recover", None, 1)))
    assert judgement.verdict is Verdict.VALID, judgement.reason
    assert judgement.counts["recoveries"] == 2


def test_two_ends_are_named_with_both_recoveries() -> None:
    """The first recovery ended with entry 1, a later one with entry 0."""
    judgement = judged(in_turn(*APPENDED, ("recover", None, 1), ("close", None, 0)))
    assert judgement.verdict is Verdict.INVALID
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows) == ("ends-differ", 0, (3, 4))
    assert "recovered the ledger to the last entry 1" in anomaly.explanation
    assert "closed the ledger with the last entry 0" in anomaly.explanation


@pytest.mark.parametrize(
    ("calls", "words"),
    [
        ([*APPENDED, ("recover", None, 1), ("append", 9, 2)], "after it"),
        ([*APPENDED, ("append", 9, 2), ("recover", None, 1)], "so the entry is lost"),
    ],
    ids=["later", "lost"],
)
def test_an_acknowledged_entry_beyond_the_end_is_found(calls: list[tuple[str, Any, Any]], words: str) -> None:
    """An append that is acknowledged after the end, and one before it that the recovery lost."""
    judgement = judged(in_turn(*calls))
    assert {anomaly.kind for anomaly in judgement.anomalies} >= {"beyond-end"}
    (anomaly,) = [candidate for candidate in judgement.anomalies if candidate.kind == "beyond-end"]
    assert words in anomaly.explanation
    assert anomaly.subject == 2


def test_a_confirmation_beyond_the_end_is_found_and_one_that_goes_back_is_counted() -> None:
    """Confirmed entries 5 and then 1, of a ledger that ends with 1."""
    calls = (*APPENDED, ("confirmed", None, 5), ("confirmed", None, 1), ("recover", None, 1))
    judgement = judged(in_turn(*calls))
    assert [anomaly.kind for anomaly in judgement.anomalies] == ["confirmed-beyond-end"]
    assert judgement.counts["confirmed-back"] == 1
    assert judged(in_turn(*APPENDED, *calls[4:])).verdict is Verdict.VALID


def test_a_committed_entry_with_too_few_copies_is_found() -> None:
    """Entry 1 is on one bookie, and no append of entry 0 was acknowledged; entry 5 is beyond the end."""
    calls = (
        ("append", 7, None, OpType.INFO),
        ("append", 8, 1),
        ("read", [0, 9], [[0, 7], [1, 8]]),
        ("recover", None, 1),
    )
    judgement = judged(in_turn(*calls, ("under-replicated", None, [[0, 0], [1, 1], [5, 0]])))
    assert judgement.verdict is Verdict.INVALID
    assert judgement.counts["under-replicated"] == 2
    assert [(anomaly.kind, anomaly.subject, anomaly.rows) for anomaly in judgement.anomalies] == [
        ("under-replicated", 1, (1, 3, 4)),
        ("under-replicated", 0, (3, 4)),
    ]
    assert "found it on 1 of its bookies" in judgement.anomalies[0].explanation
    assert "No bookie that the metadata do not name for it has it" in judgement.anomalies[0].explanation
    whole = judged(in_turn(*APPENDED, ("recover", None, 1), ("under-replicated", None, [])))
    assert (whole.verdict, whole.counts["counts-of-copies"]) == (Verdict.VALID, 1)


def test_an_entry_that_only_other_bookies_have_is_misplaced() -> None:
    """Copies of other bookies explain an entry with too few copies, and do not count as copies."""
    counted = ("under-replicated", None, [[0, 0, ["n3", "n4"]], [1, 1, ["n3"]], [2, 0, ["n3"]]])
    judgement = judged(in_turn(*APPENDED, ("recover", None, 1), counted))
    assert judgement.verdict is Verdict.INVALID
    assert (judgement.counts["misplaced"], judgement.counts["under-replicated"]) == (1, 1)
    misplaced, scarce = judgement.anomalies
    assert (misplaced.kind, misplaced.subject, misplaced.rows) == ("misplaced", 0, (0, 3, 4))
    assert "n3, n4 have it, and the metadata do not name them" in misplaced.explanation
    assert (scarce.kind, scarce.subject) == ("under-replicated", 1)
    assert "n3 has it, and the metadata do not name it" in scarce.explanation


def inspected(last: int, *entries: list[Any], **changes: Any) -> dict[str, Any]:
    """Returns the inspection of a closed ledger, whose ensemble changed at entry 1."""
    return {
        "ledger": 12,
        "state": "CLOSED",
        "last": last,
        "write": 2,
        "ack": 2,
        "fragments": [[0, ["n1", "n2", "n3"]], [1, ["n1", "n4", "n3"]]],
        "entries": [*entries],
        "fences": [],
        "unread": [],
        **changes,
    }


WHOLE = ([0, [[7, ["n1", "n2"]]], []], [1, [[8, ["n4", "n3"]]], []])


def test_an_inspection_says_where_an_entry_belongs_who_has_it_and_who_was_fenced() -> None:
    """Entry 1 belongs on n4 and n3, but n2, which was replaced, has it. n1 was fenced first, n4 never."""
    entries = [WHOLE[0], [1, [[8, ["n2", "n3"]]], []]]
    told = inspected(1, *entries, fences=[["n3", 1, "n6"], ["n1", 4, "n5"]], unread=["n2"])
    judgement = judged(in_turn(*APPENDED, ("recover", None, 1), ("inspect", None, told)))
    assert (judgement.verdict, judgement.counts["counts-of-copies"]) == (Verdict.INVALID, 1)
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows) == ("under-replicated", 1, (1, 3, 4))
    assert anomaly.explanation.endswith(
        "found it on 1 of its bookies at 0.009 s, fewer than the ack quorum. "
        "At 0.009 s, the metadata of ledger 12 say CLOSED with the last entry 1. "
        "The fragment from entry 1 on has the bookies n1, n4 and n3, "
        "and the one before it, from entry 0 on, n1, n2 and n3; entry 1 belongs on n4 and n3: n2 and n3 have 8, n4 lacks "
        "it. Fenced: n1 by n5 at 0.005 s, n3 by n6 at 0.008 s; no request to fence the ledger reached n4; the fences of n2 "
        "could not be read."
    ), anomaly.explanation
    assert (
        judged(in_turn(*APPENDED, ("recover", None, 1), ("inspect", None, inspected(1, *WHOLE)))).verdict
        is Verdict.VALID
    )


@pytest.mark.parametrize(
    ("calls", "found", "words"),
    [
        (
            [*APPENDED, ("recover", None, 0), ("append", 9, 2)],
            inspected(0, WHOLE[0], [2, [[9, ["n3", "n1"]]], []]),
            "entry 2 belongs on n3 and n1: n3 and n1 have 9. No request to fence the ledger reached n1, n4 and n3",
        ),
        (
            [*APPENDED[:2], ("recover", None, 1), ("read", [0, 9], [[0, 7]])],
            inspected(1, WHOLE[0], [1, [], ["n4"]]),
            "recovered the ledger to the last entry 1 at 0.005 s.",
        ),
        (
            [*APPENDED, ("recover", None, 1), ("read", [0, 9], [[0, 7], [1, 9], [1, 8]])],
            inspected(1, WHOLE[0], [1, [[8, ["n3"]], [9, ["n4"]]], []]),
            "entry 1 belongs on n4 and n3: n3 has 8, n4 has 9.",
        ),
        (
            [*APPENDED, ("recover", None, 1), ("recover", None, 0)],
            inspected(1, *WHOLE),
            "entry 1 belongs on n4 and n3: n4 and n3 have 8.",
        ),
        (
            [*APPENDED, ("confirmed", None, 2), ("recover", None, 1)],
            inspected(1, *WHOLE),
            "entry 2 belongs on n3 and n1: n3 and n1 lack it.",
        ),
        (
            [*APPENDED, ("recover", None, 1), ("read", [0, 9], [[0, 7], [1, 8], [2, 5]])],
            inspected(1, *WHOLE, [2, [[5, ["n1"]]], []]),
            "entry 2 belongs on n3 and n1: n1 has 5, n3 lacks it.",
        ),
    ],
    ids=["beyond-end", "lost", "conflict", "ends-differ", "confirmed-beyond-end", "unexpected"],
)
def test_each_explanation_names_the_fragment_the_copies_and_the_fences(
    calls: list[tuple[str, Any, Any]], found: dict[str, Any], words: str
) -> None:
    """Also those of the anomalies of a log, which name the first recovery too."""
    judgement = judged(in_turn(*calls, ("inspect", None, found)))
    assert judgement.verdict is Verdict.INVALID
    assert [anomaly for anomaly in judgement.anomalies if words in anomaly.explanation], judgement.anomalies


def test_an_entry_is_lost_only_in_a_read_after_the_end() -> None:
    """Before a recovery, a read of a correct ledger need not have the last entry: it is not confirmed yet."""
    operations = [("append", 7, 0), ("append", 8, 1), ("read", [0, 9], [[0, 7]])]
    judgement = judged(in_turn(*operations))
    assert judgement.verdict is Verdict.UNKNOWN
    assert (judgement.counts["missed"], judgement.counts["lost"]) == (1, 0)
    ended = judged(in_turn(*operations, ("recover", None, 1)))
    assert (ended.counts["missed"], ended.counts["lost"]) == (1, 0)
    read = judged(in_turn(*operations, ("recover", None, 1), ("read", [0, 9], [[0, 7]])))
    assert (read.verdict, read.counts["lost"]) == (Verdict.INVALID, 1)


def test_anomalies_of_the_log_name_rows_of_the_whole_history() -> None:
    """The lost entry is in row 1, and the read that lacks it in row 3; the rows before are of other functions."""
    judgement = judged(in_turn(("confirmed", None, -1), ("append", 7, 0), ("recover", None, 0), ("read", [0, 9], [])))
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.rows, anomaly.decisive) == ("lost", (1, 3), 3)


def test_nothing_that_was_read_is_unknown() -> None:
    """A recovery alone does not show that an acknowledged entry is there."""
    assert judged(in_turn(("append", 7, 0), ("recover", None, 0))).verdict is Verdict.UNKNOWN


FAILED = in_turn(
    ("append", 9, None, OpType.FAIL), ("recover", None, None, OpType.FAIL), ("read", [0, 9], None, OpType.FAIL)
)


def test_a_ledger_without_a_promise_hides_no_verdict() -> None:
    """The run is as the other ledger says: valid, invalid, or unknown because nobody read it; alone, it is unknown."""
    wrong = in_turn(*APPENDED, ("recover", None, 0))
    for operations, verdict, unknown in [
        (in_turn(*APPENDED), Verdict.VALID, None),
        (wrong, Verdict.INVALID, None),
        (in_turn(("append", 7, 0)), Verdict.UNKNOWN, ["made"]),
        ([], Verdict.UNKNOWN, ["never"]),
    ]:
        part = part_of(LedgerWorkload(), keyed(made=operations, never=FAILED))
        assert (part.verdict, part.details.get("unknown_keys")) == (verdict, unknown), part.reason
        assert part.details["nothing_promised"] == 1
    assert part.details["cause"] == UNPROMISED
    assert part_of(LedgerWorkload(), keyed(made=in_turn(*APPENDED), never=FAILED)).reason.startswith(
        "1 of 2 keys is valid, and the others have no promise to break: 2 acknowledged"
    )


def test_only_a_promised_ledger_must_be_read_after_healing() -> None:
    """No final read of a ledger that nobody created can succeed; one of a ledger with an acknowledged append must."""
    final = [replace(operation, phase=FINAL_PHASE) for operation in in_turn(("read", [0, 9], [[0, 7]]))]
    made = [*in_turn(("append", 7, 0)), *final]
    never = [*FAILED[:2], replace(FAILED[2], phase=FINAL_PHASE)]

    def read(**operations: list[Operation]) -> Part:
        named = [replace(operation, key=key) for key, its in operations.items() for operation in its]
        return LedgerWorkload().final_part(named, FinalReads())

    assert read(made=made, never=never).verdict is Verdict.VALID
    assert read(made=[*made[:1], *never], never=never).details["unread"] == ["made"]
    assert read(never=never).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("write", 1, None), "a ledger has the functions append, read"),
        (("recover", None, "x"), "expected the id of an entry as the result of"),
        (("under-replicated", None, [[1]]), "expected .* as the result of under-replicated"),
        (("under-replicated", None, [[1, 0, [3]]]), "expected .* as the result of under-replicated"),
        (("under-replicated", None, [[1, 0, [], []]]), "expected .* as the result of under-replicated"),
        (("under-replicated", None, 3), "expected .* as the result of under-replicated"),
        (("inspect", None, None), "expected a map with ledger, state, last"),
        (("inspect", None, [1]), "expected a map with ledger, state, last"),
        (("inspect", None, inspected(1, [0, [[7, []]], []])), "expected a map with ledger, state, last"),
        (("inspect", None, inspected(1, fragments=[])), "expected a map with ledger, state, last"),
        (("inspect", None, inspected(1, fragments=[[0, []]])), "expected a map with ledger, state, last"),
        (("inspect", None, inspected(1, fences=[["n1", -1, None]])), "expected a map with ledger, state, last"),
        (("inspect", None, inspected(1, ledger="12")), "expected a map with ledger, state"),
        (("inspect", None, inspected(1, write=0)), "expected a map with ledger, state, last"),
        (("append", 3, -2), "expected the id of an entry|offset"),
    ],
)
def test_a_foreign_operation_is_refused(call: tuple[str, Any, Any], words: str) -> None:
    """The error names what was expected."""
    with pytest.raises(InputError, match=words):
        judged(in_turn(call))


def test_the_judge_finds_what_the_rules_say() -> None:
    """On random histories, right and wrong, each own anomaly is found if and only if its rule is broken."""
    seen: set[str] = set()
    for seed in range(400):
        source = random.Random(seed)
        calls: list[tuple[str, Any, Any]] = []
        entries = 0
        last = source.randrange(-1, 4)
        for _ in range(source.randrange(3, 12)):
            f = source.choice(["append", "append", "confirmed", "recover", "close", "under-replicated"])
            if f == "append":
                calls.append((f, 100 + entries, entries))
                entries += 1
            elif f == "confirmed":
                calls.append((f, None, source.randrange(-1, max(entries, 1))))
            elif f == "under-replicated":
                told = [source.randrange(6), source.randrange(2), ["n3"]] if source.random() < 0.3 else None
                calls.append((f, None, [told] if told else []))
            else:
                calls.append((f, None, last if source.random() < 0.8 else last + 1))
        ends = [result for f, _, result in calls if f in {"recover", "close"}]
        expected: set[str] = set()
        if ends:
            expected |= {"ends-differ"} if len(set(ends)) > 1 else set()
            expected |= {"beyond-end"} if any(f == "append" and r > ends[0] for f, _, r in calls) else set()
            expected |= (
                {"confirmed-beyond-end"} if any(f == "confirmed" and r > ends[0] for f, _, r in calls) else set()
            )
            scarce: dict[int, int] = {}
            for entry, copies, _others in (
                scarce for f, _, told in calls if f == "under-replicated" for scarce in told
            ):
                scarce.setdefault(entry, copies)
            named = [copies for entry, copies in scarce.items() if entry <= ends[0]]
            expected |= {("under-replicated" if copies else "misplaced") for copies in named}
        counts = judged(in_turn(*calls)).counts
        assert {kind for kind in OWN if counts[kind]} == expected, seed
        seen |= expected or {"none"}
    assert seen == {*OWN, "none"}
