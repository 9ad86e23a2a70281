"""The suites of the repository: those of Labrys, and those in the folders of the systems."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cli
from commands.suite.contexts import known_options
from harness.errors import ExitCode
from harness.suites.suite import load_suite

ROOT = Path(__file__).parents[1]
PLACES = ("suites/*.toml", "clusters/systems/*/suites/*.toml")  # that .github/workflows/nightly.yml runs
SUITES = {path.stem: path for pattern in PLACES for path in sorted(ROOT.glob(pattern))}


def assert_can_be_planned(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Asserts that each case of a suite has options that are understood, and a plan with faults that there is room for."""
    suite = load_suite(SUITES[name], seed=1, known=known_options)
    assert suite.cases
    for case in suite.cases:
        with pytest.raises(SystemExit) as ended:
            cli.main(["plan", "--format", "json", *case.arguments()[1:]])
        out, err = capsys.readouterr()
        assert ended.value.code == ExitCode.VALID, err
        assert json.loads(out)["plan"]["faults"], case.name
