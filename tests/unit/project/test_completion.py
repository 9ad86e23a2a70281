"""What a shell offers for an unfinished command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.shell_completion import BashComplete

import cli
from results.store import Store

if TYPE_CHECKING:
    from pathlib import Path


def offered(line: str) -> list[str]:
    """Returns what is offered for the last word of a line."""
    *words, last = line.split(" ")
    return [item.value for item in BashComplete(cli.labrys, {}, "labrys", cli.COMPLETION).get_completions(words, last)]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Works in a folder with a suite and a store of two runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "nightly.toml").touch()
    for stamp in ("20260729T101112.123Z", "20260730T101112.123Z"):
        folder = tmp_path / "store" / "dledger-kill" / stamp
        folder.mkdir(parents=True)
    assert len(Store(tmp_path / "store").runs()) == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ch", {"check"}),
        ("test --nem", {"--nemesis"}),
        ("test --read-m", {"--read-mode"}),
        ("test --system etc", set()),
        ("test --system dled", {"dledger", "dledger-log"}),
        ("test --workload reg", {"register"}),
        ("test --nemesis leadership", {"leadership-transfer"}),
        ("test --nemesis kill,leadership", {"kill,leadership-transfer"}),
        ("test --nemesis al", {"all"}),
        ("plan --nemesis bri", {"bridge"}),
        ("check --model reg", {"register"}),
        ("check --algorithm zo", {"zones"}),
        ("faults disk", {"disk-full"}),
        ("suite suites/n", {"suites/nightly.toml"}),
        ("suite s", {"suites/nightly.toml"}),
        ("report la", {"latest"}),
        ("expl", {"explain"}),
        ("explain la", {"latest"}),
        ("test --until", {"--until-fail"}),
        ("replay dledger-kill/2026073", {"dledger-kill/20260730T101112.123Z"}),
        ("report --store nowhere dled", set()),
    ],
)
def test_a_shell_completes_what_is_known(line: str, expected: set[str]) -> None:
    """Commands, options, kinds, plug-ins, suites and runs."""
    found = set(offered(line))
    assert found == expected or (not expected and not {word for word in found if word != line.rpartition(" ")[2]})


def test_a_history_is_a_file() -> None:
    """The shell itself completes files."""
    item = BashComplete(cli.labrys, {}, "labrys", cli.COMPLETION).get_completions(["check"], "sto")
    assert [each.type for each in item] == ["file"]
