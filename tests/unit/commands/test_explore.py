"""`labrys explore`: bugs that no hunt finds, the correct version, the output, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

import cli
from tests.examples import DEFAULT, SIMULATED

RAFT = ("explore", "--system", SIMULATED, "--no-pre-vote", "--operations", "read")

# A candidate repeats its request at the heartbeat interval, so a long one leaves fewer timers to visit.
SLOW_HEARTBEATS = ("--heartbeat-ms", "400", "--election-ms", "800")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command. Returns its exit code, its output, and its progress or error."""

    def code_and_output(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capsys.readouterr()

    return code_and_output


@pytest.mark.parametrize(("bug", "events"), [("vote-not-persisted", 7), ("term-not-persisted", 7)])
def test_a_bug_that_no_hunt_finds_is_found(run: Run, bug: str, events: int) -> None:
    """A forgotten vote needs a restart within one election."""
    code, output, _ = run(*RAFT, "--restarts", "1", "--bug", bug, "--format", "json")
    document = json.loads(output)
    assert code == 1
    assert document["verdict"] == "invalid"
    assert document["violation"]["reason"].endswith("both lead term 1")
    assert len(document["violation"]["events"]) == events


def test_a_correct_system_has_no_violation(run: Run) -> None:
    """The search says that it visited everything, or that it gave up."""
    code, output, _ = run(*RAFT, "--timers", "1")
    assert code == 0
    assert "no violation: every state within the bounds was visited" in output
    code, output, _ = run(*RAFT, "--timers", "1", "--states", "50")
    assert code == 2
    assert "no violation: it gave up after" in output


def test_a_system_with_several_roles_is_visited(run: Run) -> None:
    """One append to the bookkeeper, at either client node: with a takeover or without."""
    code, output, _ = run(
        "explore",
        "--system",
        "sim-bookkeeper",
        "--workload",
        "log",
        "--nodes",
        "6",
        "--timers",
        "0",
        "--operations",
        "append 1",
    )
    assert code == 0
    assert "no violation: every state within the bounds was visited" in output
    assert "308 states visited" in output
    assert output.endswith("\n1,296 orders\n")


def test_the_document_has_the_number_of_orders(run: Run) -> None:
    """Without the rules, each order is complete. A search that gives up counts none."""
    options = ("--system", "sim-bookkeeper", "--workload", "log", "--nodes", "6", "--timers", "0", "--format", "json")
    _, output, _ = run("explore", *options, "--protocol", "terms", "--operations", "append 1", "--not-reduced")
    assert json.loads(output)["orders"] == 148_803_480_094
    _, output, _ = run("explore", *options, "--operations", "append 1", "--states", "20")
    assert json.loads(output)["orders"] is None


def test_a_violation_is_told_in_order(run: Run) -> None:
    """The text has each event, and what the nodes log."""
    code, output, _ = run(*RAFT, *SLOW_HEARTBEATS, "--timers", "5", "--bug", "vote-of-old-term")
    assert code == 1
    assert "violation after 8 events: n1 and n2 both lead term 2" in output
    assert "   1  n1  its next timer fires" in output
    assert "n1 logs: leads term 2" in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--system", DEFAULT), f"the system {DEFAULT} runs on machines"),
        (("--reads", "lease"), "in a search, clocks have any speed"),
        (("--operations", "jump 1"), "expected one of read, write, cas, found"),
        (("--operations", "write x"), "--operations: write: is not JSON"),
        (("--operations", "write"), f"{SIMULATED} has no write of null"),
        (("--workload", "bank"), "bank"),
    ],
)
def test_what_cannot_be_explored_is_refused(run: Run, arguments: tuple[str, ...], expected: str) -> None:
    """The error says what was expected."""
    code, output, error = run("explore", *arguments)
    assert (code, output) == (254, "")
    assert expected in error


BOOKKEEPER = ("--system", "sim-bookkeeper", "--workload", "log", "--nodes", "6", "--timers", "0")


@pytest.mark.parametrize(("bug", "code"), [("fence-not-journalled", 1), ("none", 0)])
def test_a_search_begins_after_given_events(run: Run, bug: str, code: int) -> None:
    """n1 has the entry of the old writer, and a recovery fences n2 and n3. Then a bookie restarts, and forgets its fence."""
    exit_code, output, _ = run(
        "explore", *BOOKKEEPER, "--restarts", "1", "--bug", bug, "--operations", "append 1; append 2; read 0",
        "--after", "client-0 > n4; n4 > n1; client-1 > n5; settle n5,n6,n2,n3",
    )  # fmt: skip
    assert exit_code == code
    assert ("violation after 26 events: log: 1 at offset 0 is lost" in output) == (code == 1)
    assert ("no violation: every state within the bounds was visited" in output) == (code == 0)


def test_two_entries_of_an_offset_do_not_conflict_if_none_is_known_as_committed(run: Run) -> None:
    """With term-ids, n1 has the entry 0 of term 1, and n2 the entry 0 of term 2. A bookie does not say what is committed."""
    code, output, _ = run(
        "explore", *BOOKKEEPER, "--protocol", "term-ids", "--read-all", "--operations", "append 1; append 2",
        "--after", "client-0 > n4; n4 > n1; client-1 > n5; settle n5,n6,n2,n3",
    )  # fmt: skip
    assert code == 0
    assert "no violation: every state within the bounds was visited" in output


@pytest.mark.night
@pytest.mark.parametrize(("protocol", "states"), [("ledgers", "169,285"), ("terms", "70,241"), ("term-ids", "49,039")])
def test_every_order_of_two_appends_is_visited(run: Run, protocol: str, states: str) -> None:
    """Three bookies, two client nodes, two entries: there is no violation."""
    code, output, _ = run(
        "explore", *BOOKKEEPER, "--protocol", protocol, "--read-all", "--operations", "append 1; append 2"
    )
    assert code == 0
    assert "no violation: every state within the bounds was visited" in output
    assert f"{states} states visited" in output


@pytest.mark.night
def test_the_counterexample_of_the_proposal_is_the_nearest_violation(run: Run) -> None:
    """Without truncation, an entry of the old writer stays on n1, beside an acknowledged one on n2 and n3."""
    code, output, _ = run(
        "explore", *BOOKKEEPER, "--protocol", "terms", "--no-truncate", "--read-all", "--operations",
        "append 1; append 2; read 0",
    )  # fmt: skip
    assert code == 1
    assert "violation after 24 events: log: Offset 0 has two entries" in output


def test_the_counterexample_is_told_as_the_document_tells_it(run: Run) -> None:
    """All bookies have entry 0. Entry 1 of the old writer is on n1 only. The new writer hears n2 and n3 about it."""
    code, output, _ = run(
        "explore", *BOOKKEEPER, "--protocol", "terms", "--no-truncate", "--no-guarantee-write-quorum", "--operations",
        'append "A"; append "B"; append "C"; read 1', "--read-all", "--after",
        "client-0 > n4; settle n4,n1,n2,n3; client-1 > n4; n4 > n1; client-2 > n5; settle n5,n6,n2,n3",
    )  # fmt: skip
    assert code == 1
    assert "entry 1 diverges: n1 has append B, and n2 and n3 have append C" in output
    assert "n5 answers client-3: Answer(code='ok', value='B', writer=None)" in output


# Entry 0 is everywhere, and the entries 1 and 2 on n1 only. n4 recovers the ledger without n1, and its close is under way. n5
# recovers it with n1, and writes both entries again.
TWO_RECOVERIES = (
    "client-0 > n4; settle n4,n6,n1,n2,n3; client-1 > n4; n4 > n1; client-2 > n4; n4 > n1; lose; client-3 > n4; settle n4,n6; "
    "settle n4,n2,n3; n4 ~ n6; client-4 > n5; settle n5,n6; settle n5,n1,n2; n5 ~ n6; lose"
)


@pytest.mark.parametrize(("bug", "code"), [("recoveries-confirm", 1), ("none", 0)])
def test_two_recoveries_of_a_ledger_are_visited(run: Run, bug: str, code: int) -> None:
    """The close of n4 comes first, and a reader is told of an entry that n5 wrote. BookKeeper 4.17.3 does this."""
    exit_code, output, _ = run(
        "explore", "--system", "sim-bookkeeper", "--workload", "ledger", "--nodes", "6", "--timers", "0", "--bug", bug,
        "--operations", "append 1; append 2; append 3; recover; recover; confirmed", "--after", TWO_RECOVERIES,
    )  # fmt: skip
    assert exit_code == code
    assert ("violation after 70 events: ledger: An entry was confirmed beyond the end" in output) == (code == 1)
    assert ("no violation: every state within the bounds was visited" in output) == (code == 0)


def test_figure_eight_is_found_after_an_opening(run: Run) -> None:
    """Old leaders of terms 1 and 2 campaign for the terms 3 and 4, and have not heard an answer when the search begins."""
    first = "n1 timer; n1 > n2; n1 > n3; n2 > n1; client-0 > n1; n1 x n2"
    second = "n3 timer; n3 > n2; n2 > n3; client-1 > n3"
    third = "n1 restart; n1 timer; n1 timer; n3 restart; n3 timer; n3 timer; lose; n1 timer; n3 timer"
    code, output, _ = run(
        "explore", "--system", SIMULATED, "--no-pre-vote", *SLOW_HEARTBEATS, "--operations", "write 1; write 2",
        "--bug", "old-term-committed-by-count", "--timers", "0", "--restarts", "1", "--after", f"{first};{second};{third}",
    )  # fmt: skip
    assert code == 1
    assert "n3 and n1 have committed different entries at 1: write 2 of term 2 and write 1 of term 1" in output


# n1 leads, and n2 confirms its lease. Then n3 hears nothing, and campaigns.
CONFIRMED_LEASE = (
    "n1 timer; n1 > n2; n1 > n3; n2 > n1; n3 > n1; settle n1,n2,n3; n2 timer; n3 timer; n1 timer; n1 timer; n1 > n2; "
    "n2 > n1; lose; n3 timer"
)


@pytest.mark.parametrize(("bug", "code"), [("restarted-voter-breaks-lease", 1), ("none", 0)])
def test_a_broken_lease_is_found_if_all_nodes_have_one_clock(run: Run, bug: str, code: int) -> None:
    """A voter confirms a lease, restarts, and votes for another node, which acknowledges a write. The old leader misses it."""
    exit_code, output, _ = run(
        "explore", "--system", SIMULATED, "--no-pre-vote", "--reads", "lease", *SLOW_HEARTBEATS, "--one-clock",
        "--bug", bug, "--operations", "write 1; read", "--timers", "0", "--restarts", "1", "--after", CONFIRMED_LEASE,
    )  # fmt: skip
    assert exit_code == code
    assert ("violation after 25 events: linearizable: Process 1 read nil" in output) == (code == 1)
    assert ("no violation: every state within the bounds was visited" in output) == (code == 0)


# An old leader of five nodes has commands that only n2 has. n3 leads and replaces them, and the old leader leads again.
STALE_MATCH = (
    "n1 timer; settle n1,n2,n3,n4,n5; client-0 > n1; n1 > n2; n2 > n1; client-1 > n1; n1 > n2; n2 > n1; client-2 > n1; "
    "n1 > n2; n2 > n1; lose; n4 restart; n5 restart; n3 timer; n3 > n4; n4 > n3; n3 > n5; n5 > n3; settle n1,n2,n3,n4,n5; "
    "n3 restart; n4 restart; n1 timer; n1 timer; n1 timer; n1 > n3; n3 > n1; n1 > n4; n4 > n1; n1 > n3; n3 > n1; "
    "client-3 > n1; n1 > n3; n3 > n1; n4 restart; n5 restart; n2 timer; n2 timer; lose; n2 timer"
)
# n3 gets a snapshot, and acknowledges a later entry that n2 does not have. A second copy of the snapshot is under way.
LATE_SNAPSHOT = (
    "n1 timer; settle n1,n2,n3; client-0 > n1; n1 > n2; n2 > n1; lose; n1 timer; n1 timer; n1 timer; n1 timer; n1 ~ n3; "
    "n1 > n3; n3 > n1; client-1 > n1; n1 > n3; n3 > n1; lose; n2 timer; n2 timer"
)
# A recovery repeats the entry that ends it. The second copies are under way when a later entry is acknowledged.
LATE_TRUNCATION = (
    "client-0 > n5; n5 > n6; n6 > n5; n5 > n1; n5 > n2; n1 > n5; n2 > n5; n5 > n1; n1 > n5; n5 > n2; n2 > n5; n5 timer; "
    "n5 > n1; n5 ~ n1; n5 > n2; n5 ~ n2; n5 > n3; n5 > n3; n5 > n3; n5 ~ n3; settle n1,n2,n3,n5,n6"
)


@pytest.mark.parametrize(
    ("bug", "more", "after", "expected"),
    [
        (
            "match-of-old-term",
            ("--nodes", "5", "--operations", "write 1; write 2; write 3; write 4; write 5"),
            STALE_MATCH,
            "n2 and n1 have committed different entries at 4: write 5 of term 4 and write 4 of term 3",
        ),
        (
            "old-snapshot-installed",
            ("--snapshot-entries", "1", "--restarts", "1", "--operations", "write 1; write 2; read"),
            LATE_SNAPSHOT,
            "Process 2 read 1 at 0.004 s, but process 1's write of 2 had completed",
        ),
        ("truncates-again", (), LATE_TRUNCATION, "log: 1 at offset 1 is lost"),
    ],
)
def test_a_bug_that_no_hunt_finds_is_found_after_an_opening(
    run: Run, bug: str, more: Sequence[str], after: str, expected: str
) -> None:
    """Without the bug, every state within the same bounds is visited, and there is no violation."""
    raft = ("--system", SIMULATED, "--no-pre-vote", *SLOW_HEARTBEATS, "--timers", "0", *more)
    words = raft if more else (*BOOKKEEPER, "--protocol", "terms", "--operations", "append 1; read 1")
    for planted in (bug, "none"):
        code, output, _ = run("explore", *words, "--bug", planted, "--after", after)
        assert code == (1 if planted == bug else 0)
        assert (expected in output) == (planted == bug)
        assert ("no violation: every state within the bounds was visited" in output) == (planted == "none")


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("n1 jumps", "--after: expected events, e.g."),
        ("n9 timer", "expected one of n1, n2, n3 in"),
        ("n1 > n2", "no message is under way at"),
        ("client-7 > n1", "expected client-0 to client-0 in"),
        ("client-0 > n1; client-0 > n2", "client-0 has asked before"),
        ("n1 timer; n1 timer", "a timer of another node is due before 'n1 timer'"),
    ],
)
def test_an_impossible_opening_is_refused(run: Run, after: str, expected: str) -> None:
    """The error names the event."""
    code, output, error = run(*RAFT, "--one-clock", "--after", after)
    assert (code, output) == (254, "")
    assert expected in error
