"""Indexes that break a rule of Raft while a process runs, and those that may."""

from __future__ import annotations

from harness.faults import FaultRecord, PlannedFault
from harness.indexes import Indexes, raft_invariants
from harness.service import NodeStatus
from harness.targets import Named
from harness.units import NS_PER_S
from harness.verdict import Verdict

PROMISE = "They stay."


def polled(*reports: tuple[int | None, int | None] | tuple[int, int, int] | None, lasting_s: float = 0.0) -> Indexes:
    """Returns the indexes of n1 in successive polls, one a second: committed, applied, last; None if it did not answer.

    Each poll ends on the second, and lasts `lasting_s`.
    """
    indexes = Indexes()
    for second, report in enumerate(reports):
        committed, applied, last = (report and (*report, None)[:3]) or (None, None, None)
        status = report and NodeStatus(
            node="n1", role="follower", committed_index=committed, applied_index=applied, last_index=last
        )
        indexes.note(status, "n1", int((second - lasting_s) * NS_PER_S), second * NS_PER_S)
    return indexes


def fault(node: str, start_s: float, end_s: float) -> FaultRecord:
    """Returns the record of a kill."""
    planned = PlannedFault(id=0, kind="kill", target=Named((node,)), start_s=start_s, end_s=end_s)
    start_ns, end_ns = int(start_s * NS_PER_S), int(end_s * NS_PER_S)
    return FaultRecord(planned=planned, targets=(node,), start_ns=start_ns, end_ns=end_ns, proof=None)


def test_indexes_that_rise_or_stay_are_valid() -> None:
    """Both indexes count. A report without an index is no report."""
    part = raft_invariants(polled((1, 0), (1, 1), None, (7, 7), (None, None)), PROMISE, [], None)
    assert part.verdict is Verdict.VALID
    assert part.reason == "No index went back while its process ran; 3 reports had one."
    assert raft_invariants(polled(None, (None, None)), PROMISE, [], None).verdict is Verdict.UNKNOWN


def test_an_index_that_goes_back_is_invalid() -> None:
    """The sentence has the node, both indexes and both times; the details have the others."""
    part = raft_invariants(polled((120, 90), (91, 90), (91, 89)), PROMISE, [fault("n2", 0.0, 9.0)], None)
    assert part.verdict is Verdict.INVALID
    assert part.reason == (
        "The committed index of n1 went back from 120 at 0.000 s to 91 at 1.000 s, and no fault was on the node. There are 2 "
        "such cases. They stay."
    )
    assert part.details["breaches"] == [
        "The committed index of n1 went back from 120 at 0.000 s to 91 at 1.000 s",
        "The applied index of n1 went back from 90 at 1.000 s to 89 at 2.000 s",
    ]


def test_a_process_that_may_have_started_again_is_not_held_to_it() -> None:
    """It did not answer in between, a fault was on its node, or Labrys restarted all nodes."""
    for indexes, faults, restarted_ns in (
        (polled((9, 9), None, (3, 3)), [], None),
        (polled((9, 9), (3, 3)), [fault("n1", 0.4, 0.6)], None),
        (polled((9, 9), (3, 3)), [], NS_PER_S // 2),
    ):
        assert raft_invariants(indexes, PROMISE, faults, restarted_ns).verdict is Verdict.VALID
    late = raft_invariants(polled((9, 9), (3, 3)), PROMISE, [fault("n1", 1.5, 2.0)], 2 * NS_PER_S)
    assert late.verdict is Verdict.INVALID


def test_a_kill_during_the_poll_before_counts() -> None:
    """The time of a poll is that of its last answer. The process may have answered before, and have started again since."""
    killed = [fault("n1", -0.5, -0.1)]
    assert raft_invariants(polled((9, 9), (3, 3)), PROMISE, killed, None).verdict is Verdict.INVALID
    assert raft_invariants(polled((9, 9), (3, 3), lasting_s=0.2), PROMISE, killed, None).verdict is Verdict.VALID


def test_a_process_applies_only_what_is_committed() -> None:
    """A node may read the applied index last, so one report alone shows nothing."""
    part = raft_invariants(polled((5, 8), (7, 8)), PROMISE, [], None)
    assert part.verdict is Verdict.INVALID
    assert part.reason.startswith(
        "n1 had applied entry 8 at 0.000 s, and its committed index was 7 at 1.000 s, and no fault"
    )
    assert raft_invariants(polled((5, 8), (8, 8)), PROMISE, [], None).verdict is Verdict.VALID


def test_a_log_keeps_what_is_committed() -> None:
    """A log may lose entries that are not committed. A node that says no last entry is not held to the rule."""
    part = raft_invariants(polled((5, 5, 9), (5, 5, -1)), PROMISE, [], None)
    assert part.reason.startswith(
        "The log of n1 lost committed entries: its committed index was 5 at 0.000 s, and its log ended at -1 at 1.000 s, and"
    )
    kept = raft_invariants(polled((5, 5, 9), (5, 5, 6)), PROMISE, [], None)
    assert kept.verdict is Verdict.VALID
    assert (
        kept.reason == "No index went back while its process ran, and no log lost a committed entry; 2 reports had one."
    )
    assert raft_invariants(polled((5, 5), (5, 5)), PROMISE, [], None).verdict is Verdict.VALID


def in_terms(*reports: tuple[int, str | None] | None, stores_term: bool = True) -> Indexes:
    """Returns what n1 reported in successive polls, one a second: its term and the leader; None if it did not answer."""
    indexes = Indexes(stores_term=stores_term)
    for second, report in enumerate(reports):
        status = report and NodeStatus(
            node="n1", role="follower", term=report[0], leader=report[1], committed_index=1, applied_index=1
        )
        indexes.note(status, "n1", second * NS_PER_S, second * NS_PER_S)
    return indexes


def test_a_node_stores_its_term_for_longer_than_its_process() -> None:
    """So a restart, a kill or a poll without an answer does not excuse a lower term."""
    part = raft_invariants(
        in_terms((2, "n3"), (3, None), None, (0, None), (0, None), (3, "n2")),
        PROMISE,
        [fault("n1", 0.4, 2.0)],
        NS_PER_S,
    )
    assert part.reason == (
        "n1 forgot its term: it knew the leader of term 2 at 0.000 s, and was in term 0 at 3.000 s, and no fault damaged its "
        "data. They stay."
    )
    assert part.verdict is Verdict.INVALID


def test_a_term_that_may_not_be_stored_is_not_held_against_a_node() -> None:
    """A candidate may report a term before it stores it, and the reports of some systems have another term."""
    for indexes in (
        in_terms((2, "n3"), (3, None), (2, "n3")),
        in_terms((2, "n3"), (0, None), stores_term=False),
        in_terms((2, "n3"), None, (2, None), (5, "n1")),
    ):
        assert raft_invariants(indexes, PROMISE, [], None).verdict is Verdict.VALID
    part = raft_invariants(in_terms((2, "n3")), PROMISE, [], None)
    assert part.reason == "No index went back while its process ran, and no node forgot its term; 1 report had one."


def test_a_node_with_damaged_files_may_forget_its_term() -> None:
    """A fault of such a kind that came later does not explain it."""
    forgot = in_terms((2, "n3"), (0, None))
    for start_s, verdict in ((0.5, Verdict.VALID), (1.5, Verdict.INVALID)):
        damage = [fault("n1", start_s, 2.0)]
        assert raft_invariants(forgot, PROMISE, damage, None, frozenset({"kill"})).verdict is verdict
    assert raft_invariants(forgot, PROMISE, [fault("n2", 0.5, 2.0)], None, {"kill"}).verdict is Verdict.INVALID
