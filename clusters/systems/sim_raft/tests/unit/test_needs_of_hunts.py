"""A hunt gives its runs what a planted bug needs, or refuses options that contradict it. A test warns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import cli
from clusters.systems.sim_raft.bugs import TABLE, Bug
from commands.hunt.draws import MAX_KINDS, Behaviour, Chooser
from harness.errors import InputError
from nemesis.kinds import find_kind
from tests.catches.hunts import Hunt
from tests.examples import SIMULATED

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")
SHORT = ("--cluster", "sim", "--system", SIMULATED, "--seed", "1", "--time-limit", "4", "--fault-quiet", "1-1",
         "--fault-on", "0.5-1", "--fault-off", "0.5-1", "--rate", "3")  # fmt: skip


@pytest.mark.parametrize("bug", TABLE)
@pytest.mark.parametrize("guided", [True, False])
def test_each_run_of_a_hunt_can_show_the_bug(bug: Bug, guided: bool) -> None:
    """Its options and its faults fit, also after a guided change."""
    hunt, needs = Hunt.of(bug, seed=1), TABLE[bug].needs
    shared = hunt.shared.options.values()
    chooser = Chooser(hunt.space, seed=1, guided=guided)
    classes = {find_kind(kind).fault for kind in needs.faults}
    for number in range(60):
        draw = chooser.draw()
        values = {name: shared[name] for name in (*needs.options, *needs.at_least)}
        values |= {name: value for name, value in draw.settings.items() if name in values}
        assert all(str(values[name]) in map(str, fits) for name, fits in needs.options.items())
        assert all(int(str(values[name])) >= least for name, least in needs.at_least.items())
        assert not classes or classes & {find_kind(kind).fault for kind in draw.kinds}
        assert len(draw.kinds) <= MAX_KINDS
        chooser.learn(draw, Behaviour(features=frozenset({str(number)})))


@pytest.mark.parametrize(
    ("bug", "sets"), [("lease-too-long", "--reads lease"), ("half-of-even-is-majority", "--nodes 4")]
)
def test_a_hunt_sets_what_a_bug_needs(bug: str, sets: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so, finds the bug, and the reproduce line has the option."""
    words = ["hunt", "--bug", bug, "--seed", "1", "--runs", "20", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 1
    out, err = capsys.readouterr()
    assert f"--bug {bug} needs {sets}, so each run has it" in err
    assert sets in out.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "wanted", "given"),
    [
        ("--bug lease-too-long --reads log", "--reads lease", "--reads log"),
        ("--bug read-without-quorum --reads log", "--reads lease or read-index", "--reads log"),
        ("--bug half-of-even-is-majority --nodes 5", "--nodes 2, 4, 6 or 8", "--nodes 5"),
        ("--bug vote-counted-twice --nodes 3", "--nodes 4 or more", "--nodes 3"),
        ("--bug old-snapshot-installed --snapshot-entries 0", "--snapshot-entries 1 or more", "--snapshot-entries 0"),
        ("--bug retry-applied-twice --attempts 1", "--attempts 2 or more", "--attempts 1"),
        ("--bug follower-reads --workload lock", "--workload register, set, log or counter", "--workload lock"),
        (
            "--bug checksum-not-verified --among kill,pause",
            "a fault of the kind file-bitflip, file-copy or file-rollback",
            "the faults kill, pause",
        ),
        ("--bug transfer-unchecked --nemesis kill", "a fault of the kind leadership-transfer", "the faults kill"),
    ],
)
def test_a_hunt_refuses_options_that_hide_the_bug(words: str, wanted: str, given: str) -> None:
    """The error says what the bug needs, and what the options have."""
    with pytest.raises(InputError) as refused:
        cli.invoke(["hunt", *words.split(), "--runs", "1", "--jobs", "1"])
    assert f"needs {wanted}, and this hunt has {given}, so it cannot find the bug; leave out " in str(refused.value)


def test_a_variable_that_hides_the_bug_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hunt overrides only built-in defaults."""
    monkeypatch.setenv("LABRYS_HUNT_READS", "log")
    with pytest.raises(InputError, match="needs --reads lease, and this hunt has --reads log"):
        cli.invoke(["hunt", "--bug", "lease-too-long", "--runs", "1", "--jobs", "1"])


def test_a_kind_with_another_target_is_enough(tmp_path: Path) -> None:
    """A bug that needs `kill` also takes `leader-kill`."""
    words = ["--bug", "vote-not-persisted", "--among", "leader-kill", "--runs", "1", "--jobs", "1", "--seed", "1"]
    assert cli.invoke(["hunt", *words, "--store", str(tmp_path)]) in {0, 1, 2}


def test_a_hunt_without_a_find_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line names the bug that was not found."""
    words = ["--bug", "vote-of-old-term", "--among", "pause", "--runs", "1", "--jobs", "1", "--seed", "1"]
    assert cli.invoke(["hunt", *words, "--store", str(tmp_path)]) in {0, 2}
    assert "no run shows --bug vote-of-old-term" in capsys.readouterr().err


@pytest.mark.parametrize("repeat", [(), ("--repeat", "2")])
def test_a_test_that_cannot_show_its_bug_warns(
    repeat: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line has everything that the run lacks, once."""
    words = ("--bug", "lease-on-wall-clock", "--nemesis", "pause", *repeat)
    assert cli.invoke(["test", *SHORT, *words, "--store", str(tmp_path)]) in {0, 2}
    sentence = (
        "! this run cannot show --bug lease-on-wall-clock: the bug needs --reads lease and a fault of the kind clock-skew or "
        "clock-strobe; this run has --reads read-index and the faults pause"
    )
    assert capsys.readouterr().err.splitlines().count(sentence) == 1


@pytest.mark.parametrize(
    "words", ["--bug half-is-majority", "--bug lease-on-wall-clock --reads lease --nemesis all", ""]
)
def test_a_test_that_can_show_its_bug_does_not_warn(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither does one of the correct version."""
    short = [*SHORT, "--time-limit", "60", "--rate", "1"] if "all" in words else SHORT
    assert cli.invoke(["test", *short, *words.split(), "--store", str(tmp_path)]) in {0, 1, 2}
    assert "cannot show" not in capsys.readouterr().err
