"""What a shell offers for an unfinished command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

import cli
from results.store.store import Store
from tests.examples import SIMULATED


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
        folder = tmp_path / "store" / "my-store-kill" / stamp
        folder.mkdir(parents=True)
    assert len(Store(tmp_path / "store").runs()) == 2


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ch", {"check"}),
        ("test --nem", {"--nemesis"}),
        ("test --read-m", {"--read-mode"}),
        ("test --system cons", set()),
        ("test --system post", {"postgres"}),
        ("test --workload reg", {"register"}),
        ("test --nemesis leadership", {"leadership-transfer"}),
        ("test --nemesis kill,leadership", {"kill,leadership-transfer"}),
        ("test --nemesis al", {"all"}),
        ("plan --nemesis bri", {"bridge"}),
        ("check --model reg", {"register"}),
        ("check --algorithm zo", {"zones"}),
        ("faults disk", {"disk-full", "disk-error", "disk-slow", "disk-step"}),
        ("suite suites/n", {"suites/nightly.toml"}),
        ("suite s", {"suites/nightly.toml", f"{SIMULATED}-never-settle"}),
        ("suite gossip", {"gossip-glomers"}),
        ("report la", {"latest"}),
        ("expla", {"explain"}),
        ("explain la", {"latest"}),
        ("test --until", {"--until-fail"}),
        ("replay my-store-kill/2026073", {"my-store-kill/20260730T101112.123Z"}),
        ("report --store nowhere my-s", set()),
    ],
)
def test_a_shell_completes_what_is_known(line: str, expected: set[str]) -> None:
    """Commands, options, kinds, plug-ins, suites and runs."""
    words = set(offered(line))
    assert words == expected or (not expected and not {word for word in words if word != line.rpartition(" ")[2]})


def test_a_history_is_a_file() -> None:
    """The shell itself completes files."""
    item = BashComplete(cli.labrys, {}, "labrys", cli.COMPLETION).get_completions(["check"], "sto")
    assert [completion.type for completion in item] == ["file"]


@pytest.mark.parametrize("option", ["--system", "--workload", "--fault"])
def test_code_of_the_user_s_is_a_file(option: str) -> None:
    """If no name of a plug-in begins with the word, the shell completes files."""
    item = BashComplete(cli.labrys, {}, "labrys", cli.COMPLETION).get_completions(["test", option], "own/fil")
    assert [(completion.type, completion.value) for completion in item] == [("file", "own/fil")]


@pytest.mark.skipif(shutil.which("fish") is None, reason="this machine has no fish")
def test_fish_completes_words_with_commas() -> None:
    """Its own script runs in it."""
    script = f'{cli.COMPLETION}=fish_source labrys | source; complete -C "labrys test --nemesis kill,pau"'
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["fish", "-c", script], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("kill,pause\n", "")


def test_the_script_for_fish_keeps_commas(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It splits a completion once, into its kind and its text."""
    monkeypatch.setenv(cli.COMPLETION, "fish_source")
    assert cli.invoke([]) == 0
    assert 'string split --max 1 "," $completion' in capsys.readouterr().out
