"""For any columns, the kernel refuses them with a message, or all of its algorithms agree."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checker import _kernel

FAMILIES = {
    "register": range(4),
    "mutex": (4, 5),
    "owner-mutex": (4, 5),
    "multi-register": (20,),
    "set": range(10, 14),
    "grow-set": (10, 12, 13),
    "counter": range(14, 17),
    "fifo-queue": range(6, 10),
    "unordered-queue": range(6, 10),
    "sequence": range(17, 20),
    "noop": (22,),
}
ALGORITHMS = ("auto", "near", "search", "linear", "wgl", "competition")
NEVER = 2**63 - 1
EXTREME = (-(2**63), 1 - 2**63, -1, 2**62, NEVER - 1, NEVER)

small = st.integers(0, 2)
number = st.one_of(small, small, small, st.sampled_from(EXTREME))


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    """Draws columns of one family that may be malformed: wrong opcodes, lengths, bounds, extreme numbers."""
    family = draw(st.sampled_from(sorted(FAMILIES)))
    opcode = st.one_of(*[st.sampled_from(FAMILIES[family])] * 9, st.integers(0, 255))
    f = draw(st.lists(opcode, max_size=6))
    spans = [
        (start, draw(st.one_of(st.just(NEVER), st.integers(start, start + 4).map(lambda end: min(end, NEVER)), number)))
        for start in draw(st.lists(st.one_of(st.integers(0, 6), number), min_size=len(f), max_size=len(f)))
    ]
    lists = draw(st.lists(st.lists(number, max_size=3), min_size=len(f), max_size=len(f)))
    given: dict[str, Any] = {
        "family": family,
        "f": f,
        "a": draw(st.lists(number, min_size=len(f), max_size=len(f))),
        "b": draw(st.lists(number, min_size=len(f), max_size=len(f))),
        "s": [start for start, _ in spans],
        "e": [end for _, end in spans],
        "initial": draw(st.one_of(st.just([0]), st.just([]), st.lists(number, max_size=3))),
        "offsets": [sum(map(len, lists[:i])) for i in range(len(lists) + 1)],
        "flat": [element for inner in lists for element in inner],
    }
    if draw(st.integers(0, 9)) == 0:
        broken = draw(st.sampled_from(["a", "b", "s", "e", "offsets", "flat"]))
        given[broken] = draw(st.lists(number, max_size=7))
    return given


def solved(problem: _kernel.Problem, algorithm: str) -> _kernel.Outcome:
    """Decides one problem."""
    [outcome] = _kernel.solve(
        [problem],
        algorithm=algorithm,
        time_limit_s=60,
        processor_limit_s=None,
        memory_limit=1 << 30,
        threads=1,
        want_order=False,
        fail_fast=False,
    )
    return outcome


@pytest.mark.parametrize("examples", [150, pytest.param(6000, marks=pytest.mark.night)])
def test_algorithms_agree_about_any_columns(examples: int) -> None:
    """The verdicts of all algorithms are equal, and no panic escapes."""
    settings(max_examples=examples)(agree)()


@given(columns())
@example(
    {
        "family": "fifo-queue",
        "f": [8],
        "a": [0],
        "b": [0],
        "s": [0],
        "e": [0],
        "initial": [],
        "offsets": [0, 0],
        "flat": [],
    }
)
def agree(given: dict[str, Any]) -> None:
    """Asserts that the kernel refuses columns, or that its algorithms agree about them."""
    whole: dict[str, Any] = {name: array("q", given[name]) for name in ("a", "b", "s", "e", "offsets", "flat")}
    try:
        problem = _kernel.Problem(given["family"], bytes(given["f"]), **whole, initial=given["initial"])
    except ValueError as refused:
        refusal = str(refused)
    else:
        refusal = ""
        _assert_agreement(problem)
    assert not refusal or len(refusal) > 10


def _assert_agreement(problem: _kernel.Problem) -> None:
    outcomes = {algorithm: solved(problem, algorithm) for algorithm in ALGORITHMS}
    if outcomes["near"].cause == "unsuited":
        del outcomes["near"]
    assert len({outcome.verdict for outcome in outcomes.values()}) == 1, outcomes
    assert {outcome.verdict for outcome in outcomes.values()} <= {"valid", "invalid"}
    assert len({outcome.op for name, outcome in outcomes.items() if name != "competition"}) == 1, outcomes


@pytest.mark.parametrize(
    ("family", "f", "a", "b", "e", "message"),
    [
        ("fifo-queue", 8, 0, 0, 0, "expected what a dequeue that returned at 0 took"),
        ("unordered-queue", 8, 0, 0, 5, "expected what a dequeue that returned at 5 took"),
        ("set", 12, 1, 2, 0, "expected 1 .there. or 0 .not there., found 2"),
        ("mutex", 4, -1, 0, 0, "-1 is no process"),
        ("counter", 14, NEVER, 0, 0, "expected counts of at most 64 bits"),
        ("register", 9, 0, 0, 0, "opcode 9 does not belong to Register"),
        ("register", 0, 0, 0, -1, "it ends at -1 but starts at 0"),
    ],
)
def test_columns_that_mean_nothing_are_refused(  # noqa: PLR0917 - a row of a table
    family: str, f: int, a: int, b: int, e: int, message: str
) -> None:
    """The message has the operation, the expected and the actual content."""
    initial = {"unordered-queue": [0], "mutex": [0], "counter": [1], "register": [0]}.get(family, [])
    with pytest.raises(ValueError, match=message):
        _kernel.Problem(
            family, bytes([f]), array("q", [a]), array("q", [b]), array("q", [0]), array("q", [e]), initial=initial
        )


@pytest.mark.parametrize("column", ["a", "s", "offsets"])
@pytest.mark.parametrize("wrong", [[0.5], b"\0", "text", 7, [2**70]], ids=repr)
def test_what_is_no_column_is_refused(column: str, wrong: Any) -> None:
    """Only buffers of integers of the right size are accepted."""
    one = array("q", [0])
    given: dict[str, Any] = {
        "f": b"\0",
        "a": one,
        "b": one,
        "s": one,
        "e": one,
        "offsets": array("q", [0, 0]),
        "flat": b"",
    }
    with pytest.raises((TypeError, ValueError, BufferError)):
        _kernel.Problem("register", **{**given, column: wrong}, initial=[0])
