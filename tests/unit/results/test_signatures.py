"""The signature of a run: what it showed, without the values, names and times of this one run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.console.members import read, written
from harness.suites.expectation import Expectation, SuiteCase
from harness.suites.thresholds import read_threshold
from harness.verdict import Part, Verdict
from results.record.signatures import MAX_CLASS, MAX_CLASSES, MAX_SENTENCE, Signature
from results.signatures.stripping import Stripper
from results.signatures.warnings import warning_classes
from results.store.store import Run
from results.stored.document import build
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord

NODES = ("n1", "n2", "n10")


def signature(made: RunRecord) -> dict[str, object] | None:
    """Returns the signature in the document of a run."""
    stored: dict[str, object] | None = build(made)["signature"]
    return stored


@given(
    st.tuples(st.integers(0, 10**12), st.integers(1, 99), st.floats(0, 1e4), st.sampled_from(NODES)),
    st.tuples(st.integers(0, 10**12), st.integers(1, 99), st.floats(0, 1e4), st.sampled_from(NODES)),
)
def test_values_names_and_times_make_no_difference(
    one: tuple[int, int, float, str], other: tuple[int, int, float, str]
) -> None:
    """Sentences that differ only in them have one form."""
    stripper = Stripper(NODES)
    first, second = (
        stripper.sentence(
            f"Key k{key}: Process {key} read {value} at {time:.3f} s on {node}, and {node}, n1 were cut off."
        )
        for value, key, time, node in (one, other)
    )
    assert first == second
    assert not any(letter.isdigit() for letter in first)


@given(st.text(max_size=6_000), st.lists(st.text(max_size=20), max_size=5))
def test_any_text_has_a_bounded_form_that_stays(text: str, nodes: list[str]) -> None:
    """A hostile text, or a hostile name of a node, gives a short text; a form is its own form."""
    stripper = Stripper(NODES)
    form = stripper.sentence(text)
    assert len(form) <= MAX_SENTENCE
    assert len(Stripper(nodes).line(text)) <= MAX_CLASS
    if len(form) < MAX_SENTENCE:
        assert stripper.sentence(form) == form


def test_a_run_as_expected_has_no_signature() -> None:
    """Neither has a negative control that is invalid as its suite expects."""
    assert signature(record(seed=7, operations=60)) is None
    stale = record(seed=11, operations=150, stale=True)
    case = SuiteCase(suite="s", case="c", line="c", expectation=Expectation(verdict=Verdict.INVALID))
    assert signature(replace(stale, test=replace(stale.test, suite=case))) is None


def test_an_invalid_run_tells_of_its_parts_and_its_nodes() -> None:
    """The node that answered is apart from the others, and no node has a name."""
    stored = signature(record(seed=11, operations=150, stale=True))
    assert stored is not None
    assert (stored["ended"], stored["parts"], stored["lost"]) == (
        "invalid", ["linearizable"], "A read missed an acknowledged write",
    )  # fmt: skip
    nodes = stored["nodes"]
    assert isinstance(nodes, list)
    assert sum(node["answered"] for node in nodes) == 1
    assert not any(name in str(stored) for name in ("n1", "n2", "n3", "n4", "n5"))


def test_two_seeds_of_one_violation_are_alike() -> None:
    """The sentences of two runs with a stale read are equal, though each value and time differs."""
    first, second = (signature(record(seed=seed, operations=400, stale=True)) for seed in (11, 12))
    assert first is not None
    assert second is not None
    assert first["lost"] == second["lost"]
    assert first["sentences"][-1] == second["sentences"][-1]  # type: ignore[index]


UNKNOWNS = [
    ("faults-effective", "No kill has a proven effect: it never began", "test"),
    ("progress", "No operation succeeded.", "system"),
    ("log-patterns", "No node's log could be collected.", "machine"),
    ("a-part-of-a-plug-in", "It did not look.", "test"),
]


@pytest.mark.parametrize(("name", "reason", "blame"), UNKNOWNS)
def test_an_unknown_run_is_put_down_to_one_of_three(name: str, reason: str, blame: str) -> None:
    """Its signature says which part lacks what, and whose part it is."""
    made = record(seed=7, operations=60)
    stored = signature(replace(made, parts=[*made.parts, Part(name=name, verdict=Verdict.UNKNOWN, reason=reason)]))
    assert stored is not None
    assert (stored["ended"], stored["parts"], stored["blame"]) == ("unknown", [name], blame)


def test_a_control_node_that_was_behind_comes_first() -> None:
    """Then the machine is the reason, whatever else is unknown."""
    made = record(seed=7, operations=60)
    parts = [
        Part(name="progress", verdict=Verdict.UNKNOWN, reason="No operation succeeded."),
        Part(name="control-node", verdict=Verdict.UNKNOWN, reason="It was behind.", extra=True),
    ]
    stored = signature(replace(made, parts=[*made.parts, *parts]))
    assert stored is not None
    assert stored["blame"] == "machine"


@pytest.mark.parametrize(
    ("error", "blame"),
    [
        ("n1: the connection to the node is lost", "machine"),
        ("the system does not serve: n2 knows no leader", "system"),
        ("system x: start failed: KeyError; correct the system", "test"),
    ],
)
def test_a_run_that_broke_off_has_a_signature(error: str, blame: str) -> None:
    """It has the phase, the class of the error, and the states of the nodes."""
    made = record(seed=7, operations=60)
    completed = Part(name="completed", verdict=Verdict.UNKNOWN, reason=f"The run broke off: {error}\n--- n1: dead")
    stored = signature(replace(made, parts=[completed]))
    assert stored is not None
    assert (stored["ended"], stored["parts"], stored["blame"]) == ("broken off", ["completed"], blame)
    assert stored["phase"] == "workload"
    assert "follower" in str(stored["sentences"])
    assert "dead" not in str(stored["sentences"])


def test_a_crossed_threshold_has_a_signature() -> None:
    """A valid run that crosses one is not as expected."""
    made = record(seed=7, operations=60)
    stored = signature(replace(made, test=replace(made.test, thresholds=(read_threshold("p99_ms < 0"),))))
    assert stored is not None
    assert (stored["ended"], stored["parts"]) == ("crossed", ["p99_ms"])


def test_a_signature_comes_back() -> None:
    """The document of a run satisfies its type, which other readers use."""
    stored = signature(record(seed=11, operations=150, stale=True))
    assert written(read(stored, Signature, "signature")) == stored


def test_warnings_become_classes(tmp_path: Path) -> None:
    """Lines that differ in times, names and values are one class; other lines are none; no link is followed."""
    run, nodes = Run(tmp_path), tmp_path / "nodes"
    for node, number in (("n1", 7), ("n2", 1234)):
        (nodes / node).mkdir(parents=True)
        (nodes / node / "node.log").write_text(
            f"2026-11-30 10:11:{number % 60:02d} WARN store - {node} has no space for {number}\nINFO all is well\n"
        )
    (nodes / "n1" / "secret.log").symlink_to("/etc/passwd")
    assert warning_classes(run, ("n1", "n2")) == {"WARN store - NODE has no space for #": 2}


def test_a_log_of_many_warnings_has_few_classes(tmp_path: Path) -> None:
    """A hostile log does not make a large document."""
    folder = tmp_path / "nodes" / "n1"
    folder.mkdir(parents=True)
    words = ["".join(chr(97 + int(digit)) for digit in str(number)) for number in range(100)]
    (folder / "node.log").write_text("".join(f"ERROR {word} {'x' * 9_000}\n" for word in words))
    classes = warning_classes(Run(tmp_path), ("n1",))
    assert len(classes) == MAX_CLASSES
    assert max(map(len, classes)) <= MAX_CLASS
