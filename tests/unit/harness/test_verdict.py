"""Verdicts, and the composition of several into one."""

from __future__ import annotations

import itertools

import pytest

from harness.errors import ExitCode
from harness.verdict import Verdict, worst


def test_invalid_beats_unknown_beats_valid() -> None:
    """This holds for all triples."""
    for verdicts in itertools.product(Verdict, repeat=3):
        if Verdict.INVALID in verdicts:
            expected = Verdict.INVALID
        elif Verdict.UNKNOWN in verdicts:
            expected = Verdict.UNKNOWN
        else:
            expected = Verdict.VALID
        assert worst(verdicts) is expected


def test_nothing_to_decide_is_unknown() -> None:
    """A run without parts does not pass."""
    assert worst([]) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("verdict", "json", "code"),
    [
        (Verdict.VALID, True, ExitCode.VALID),
        (Verdict.INVALID, False, ExitCode.INVALID),
        (Verdict.UNKNOWN, "unknown", ExitCode.UNKNOWN),
    ],
)
def test_a_verdict_has_one_json_form_and_one_exit_code(verdict: Verdict, json: bool | str, code: ExitCode) -> None:
    """They are those of results.json and of Jepsen."""
    assert verdict.as_json == json
    assert Verdict.from_json(json) is verdict
    assert verdict.exit_code == code


@pytest.mark.parametrize("value", [None, 1, 0, "valid", "", [], {}])
def test_nothing_else_is_a_verdict(value: object) -> None:
    """Other JSON gives None."""
    assert Verdict.from_json(value) is None
