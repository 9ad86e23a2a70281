"""The words of causes: what decides a symptom, and what a page says."""

from __future__ import annotations

import pytest

from results.causes.grouping import grouped
from results.causes.reading import Seen
from results.causes.standing import causes_of
from results.causes.symptoms import symptom_of
from results.causes.texts import told
from results.record.signatures import NodeThen, Signature
from tests.unit.results.test_causes import FIRST, case


def test_the_role_of_the_node_that_answered_decides() -> None:
    """A stale read that a leader gave is not one that a follower gave; if the nodes disagree, this decides alone."""

    def stale(role: str, *parts: str) -> str:
        node = NodeThen(answered=True, role=role, term="", log="", hit=[], cut="")
        signature = Signature(
            ended="invalid", parts=["linearizable", *parts], sentences=["A read missed a write."], anomaly="stale",
            lost="A read missed a write", nodes=[node],
        )  # fmt: skip
        return symptom_of(signature, "s").sentence

    assert stale("follower") == "linearizable: stale, missed"
    assert stale("leader") == "linearizable: stale, missed; a leader answered"
    assert stale("leader", "replicas-equal", "one-leader-per-term") == "one-leader-per-term: stale"


@pytest.mark.parametrize(
    ("stripped", "words"),
    [
        ("A read missed a write after all node lost power. At #.", "A read missed a write after all nodes lost power."),
        ("Reads missed # key while # fault happened.", "Reads missed some keys while some faults happened."),
        ("NODE sees no leader in term #; NODE is cut; NODE is cut", "A node sees no leader in term …; a node is cut"),
        ("although there was # operation", "although there were some operations"),
        ("It serves, but NODE is cut; NODE is cut", "It serves, but a node is cut"),
        ("Process # read # of process #'s", "A process read … of a process's"),
    ],
)
def test_a_page_has_words_for_what_a_sentence_lacks(stripped: str, words: str) -> None:
    """Its first sentence names no `NODE` and no `#`, and says each clause once."""
    runs = [case(1, stripped)]
    [cause] = causes_of(Seen(trials=[runs[0].trial], cases=runs), grouped(runs), [], FIRST)
    assert told(cause) == words
