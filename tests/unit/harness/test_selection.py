"""`--only` selects as pytest's `-k` does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.console.selection import read_selection
from harness.errors import InputError

NAMES = ("partitions[nemesis=bridge]#1", "partitions[nemesis=kill]", "snapshots[nemesis=kill,pause]", "control")


@pytest.mark.parametrize(
    ("text", "selected"),
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
def test_an_expression_selects_names_that_have_its_words(text: str, selected: set[int]) -> None:
    """`not` binds more than `and`, and `and` more than `or`."""
    selects = read_selection(text)
    assert {index for index, name in enumerate(NAMES) if selects(name)} == selected


@pytest.mark.parametrize("text", ["", "and", "kill and", "kill pause", "(kill", "kill)", "not", "()", "( " * 500])
def test_a_malformed_expression_is_refused(text: str) -> None:
    """The error names the expression."""
    with pytest.raises(InputError, match="expression"):
        read_selection(text)


@given(words=st.lists(st.sampled_from(["and", "or", "not", "(", ")", "kill", "x"]), max_size=30))
def test_any_words_are_an_expression_or_an_error(words: list[str]) -> None:
    """An expression has the meaning of Python's own operators."""
    try:
        selects = read_selection(" ".join(words))
    except InputError:
        return
    as_python = " ".join({"kill": "True", "x": "False"}.get(word, word) for word in words)
    assert selects("kill") is bool(eval(as_python))  # noqa: S307 - only the seven words above
