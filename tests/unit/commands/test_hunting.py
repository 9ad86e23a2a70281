"""A hunt draws the same runs for the same seed, and prefers kinds that led to new features."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import cli
from commands.hunt import drawn_from
from commands.hunting import DELAY, MAX_KINDS, RATES, RHYTHMS, Chooser, features_of
from harness.errors import InputError
from tests.trials import TOY, trial

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("bridge", "kill", "packet-loss", "pause", "power-loss")


def drawn(chooser: Chooser, count: int) -> list[tuple[int, tuple[str, ...]]]:
    """Draws runs without features."""
    return [(draw.seed, draw.kinds) for draw in (chooser.draw() for _ in range(count))]


@pytest.mark.parametrize("guided", [True, False])
def test_the_same_seed_draws_the_same_runs(guided: bool) -> None:
    """Seeds and kinds follow from the root seed, and each run has another seed."""
    one, two, other = (drawn(Chooser(KINDS, seed=seed, guided=guided), 50) for seed in (1, 1, 2))
    assert one == two != other
    assert len({seed for seed, _ in one}) == 50
    assert all(1 <= len(kinds) <= MAX_KINDS and len({*kinds}) == len(kinds) for _, kinds in one)


def test_a_hunt_with_given_faults_draws_only_seeds() -> None:
    """No draw has kinds."""
    assert all(kinds == () for _, kinds in drawn(Chooser((), seed=1, guided=True), 5))


def test_each_run_draws_its_rhythm_and_its_load() -> None:
    """All rhythms and rates are drawn, and a delay for the one kind that takes it."""
    chooser = Chooser((*KINDS, DELAY), seed=1, guided=False)
    draws = [chooser.draw() for _ in range(60)]
    assert {(draw.options["fault_on"], draw.options["fault_off"]) for draw in draws} == set(RHYTHMS)
    assert {draw.options["rate"] for draw in draws} == set(RATES)
    assert all(("fault_options" in draw.options) == (DELAY in draw.kinds) for draw in draws)


@pytest.mark.parametrize(
    ("among", "sentence"), [("partition-fixed", "cannot draw partition-fixed"), ("kil", "unknown fault 'kil'")]
)
def test_kinds_to_draw_from_are_checked(among: str, sentence: str) -> None:
    """The hunt refuses a name that is no kind, and a kind that it cannot draw."""
    with pytest.raises(InputError, match=sentence):
        drawn_from(("kill", "pause"), among)


def test_kinds_with_new_features_are_drawn_more_often() -> None:
    """A guided hunt prefers them, and a blind hunt does not."""
    counts = {}
    for guided in (True, False):
        chooser, kinds = Chooser(KINDS, seed=3, guided=guided), Counter[str]()
        for number in range(400):
            draw = chooser.draw()
            kinds.update(draw.kinds)
            chooser.learn(draw, [f"feature {number}"] if "pause" in draw.kinds else ["old"])
        counts[guided] = kinds["pause"] / kinds.total()
    assert counts[True] > 1.3 * counts[False]


def test_a_feature_is_new_once() -> None:
    """It counts for the first run that has it."""
    chooser = Chooser(KINDS, seed=1, guided=True)
    assert [chooser.learn(chooser.draw(), ["a", "b"]), chooser.learn(chooser.draw(), ["b", "c"])] == [2, 1]


def test_the_features_of_a_run() -> None:
    """They include the kind with the role that it hit, and the number of leaders."""
    found = features_of(trial(*TOY, "--nemesis", "pause:n2", "--fault-on", "2-3", "--fault-off", "1-2"))
    assert {"pause at follower", "leaders 1", "terms 0"} <= {*found}
    assert found == tuple(sorted(found))


def test_an_invalid_run_is_replayed_and_made_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has a line, a report and exit code 1; its replay has the same history; a smaller run is invalid too."""
    power = ("--nemesis", "power-loss:n1,pause:n2", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")
    words = ["hunt", *TOY, *power, "--seed", "1", "--runs", "4", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 1
    output = capsys.readouterr().out
    assert "linearizable" in output
    assert "labrys test --seed" in output
    (report,) = [path for path in tmp_path.glob("*/*/report.html") if not path.parent.is_symlink()]
    found = report.parent
    again = [str(found), "--system", "tests.toy_register:ToyRegisters", "--store", str(tmp_path)]
    assert cli.invoke(["replay", *again, "--name", "again"]) == 1
    (other,) = [path for path in tmp_path.glob("again/*/history.jsonl") if not path.parent.is_symlink()]
    # The first line names the test.
    assert other.read_bytes().splitlines()[1:] == (found / "history.jsonl").read_bytes().splitlines()[1:]
    capsys.readouterr()
    assert cli.invoke(["shrink", *again, "--minutes", "0.3"]) == 1
    assert "shrunk.json" in capsys.readouterr().out
    assert len(json.loads((found / "shrunk.json").read_text())["faults"]) == 1


def test_a_hunt_without_a_system_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default system fits the default cluster."""
    words = ["hunt", "--seed", "2", "--runs", "1", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 0
    assert "1 run in " in capsys.readouterr().err
