"""`--only` chooses as pytest's `-k` does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.selection import read_selection

NAMES = ("partitions[nemesis=bridge]#1", "partitions[nemesis=kill]", "snapshots[nemesis=kill,pause]", "control")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("kill", {1, 2}),
        ("KILL", {1, 2}),
        ("nemesis=kill", {1, 2}),
        ("partitions and kill", {1}),
        ("partitions or control", {0, 1, 3}),
        ("not kill", {0, 3}),
        ("not (kill or bridge)", {3}),
        ("not not control", {3}),
        ("control or partitions and not kill", {0, 3}),
        ("(control or partitions) and not kill", {0, 3}),
        ("#1", {0}),
        ("zzz", set()),
    ],
)
def test_an_expression_chooses_names_that_have_its_words(text: str, chosen: set[int]) -> None:
    """`and` binds more than `or`, and `not` more than both."""
    chooses = read_selection(text)
    assert {place for place, name in enumerate(NAMES) if chooses(name)} == chosen


@pytest.mark.parametrize("text", ["", "and", "kill and", "kill pause", "(kill", "kill)", "not", "()", "( " * 500])
def test_what_is_no_expression_is_refused(text: str) -> None:
    """However deep its brackets are."""
    with pytest.raises(InputError, match="expression"):
        read_selection(text)


@given(words=st.lists(st.sampled_from(["and", "or", "not", "(", ")", "kill", "x"]), max_size=30))
def test_any_words_are_an_expression_or_a_sentence(words: list[str]) -> None:
    """Where they are one, it means what Python's own operators mean."""
    try:
        chooses = read_selection(" ".join(words))
    except InputError:
        return
    as_python = " ".join({"kill": "True", "x": "False"}.get(word, word) for word in words)
    assert chooses("kill") is bool(eval(as_python))  # noqa: S307 - of the seven words above
