"""A hunt draws the same runs for the same seed, learns from what is new, and counts with an honest interval."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

import cli
from commands.hunt import drawn_from
from commands.hunting import DELAY, MOST_KINDS, RATES, RHYTHMS, Chooser, features_of
from harness.errors import InputError
from tests.trials import TOY, trial

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("bridge", "kill", "packet-loss", "pause", "power-loss")


def drawn(chooser: Chooser, count: int) -> list[tuple[int, tuple[str, ...]]]:
    """Draws runs that show nothing."""
    return [(draw.seed, draw.kinds) for draw in (chooser.draw() for _ in range(count))]


@pytest.mark.parametrize("guided", [True, False])
def test_the_same_seed_draws_the_same_runs(guided: bool) -> None:
    """Seeds and kinds follow from the root seed; another one gives others; seeds are never the same."""
    one, two, other = (drawn(Chooser(KINDS, seed=seed, guided=guided), 50) for seed in (1, 1, 2))
    assert one == two != other
    assert len({seed for seed, _ in one}) == 50
    assert all(1 <= len(kinds) <= MOST_KINDS and len({*kinds}) == len(kinds) for _, kinds in one)


def test_given_faults_are_left_alone() -> None:
    """A hunt that was given its faults draws seeds only."""
    assert all(kinds == () for _, kinds in drawn(Chooser((), seed=1, guided=True), 5))


def test_each_run_draws_its_rhythm_and_its_load() -> None:
    """Each rhythm and each rate comes; a delay is drawn for the one kind that takes it."""
    chooser = Chooser((*KINDS, DELAY), seed=1, guided=False)
    draws = [chooser.draw() for _ in range(60)]
    assert {(draw.options["fault_on"], draw.options["fault_off"]) for draw in draws} == set(RHYTHMS)
    assert {draw.options["rate"] for draw in draws} == set(RATES)
    assert all(("fault_options" in draw.options) == (DELAY in draw.kinds) for draw in draws)


@pytest.mark.parametrize(
    ("among", "sentence"), [("partition-fixed", "cannot draw partition-fixed"), ("kil", "unknown fault 'kil'")]
)
def test_kinds_to_draw_from_are_checked(among: str, sentence: str) -> None:
    """A name that is no kind, or none that a hunt can draw, is refused with what there is."""
    with pytest.raises(InputError, match=sentence):
        drawn_from(("kill", "pause"), among)


def test_what_brings_news_is_drawn_more_often() -> None:
    """Guided, the kind whose runs show something new comes more often than the others; blind, it does not."""
    counts = {}
    for guided in (True, False):
        chooser, kinds = Chooser(KINDS, seed=3, guided=guided), Counter[str]()
        for number in range(400):
            draw = chooser.draw()
            kinds.update(draw.kinds)
            chooser.told(draw, [f"news {number}"] if "pause" in draw.kinds else ["old"])
        counts[guided] = kinds["pause"] / kinds.total()
    assert counts[True] > 1.3 * counts[False]


def test_news_are_new_once() -> None:
    """A feature counts for the first run that shows it."""
    chooser = Chooser(KINDS, seed=1, guided=True)
    assert [chooser.told(chooser.draw(), ["a", "b"]), chooser.told(chooser.draw(), ["b", "c"])] == [2, 1]


def test_the_features_of_a_run() -> None:
    """They name the kind with the role that it hit, and how many leaders there were."""
    found = features_of(trial(*TOY, "--nemesis", "pause:n2", "--fault-on", "2-3", "--fault-off", "1-2"))
    assert {"pause at follower", "leaders 1", "terms 0"} <= {*found}
    assert found == tuple(sorted(found))


def test_a_find_is_told_replayed_and_made_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A find has a line, a report and exit code 1; its replay has the same history; a smaller run finds the same."""
    power = ("--nemesis", "power-loss:n1,pause:n2", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")
    words = ["hunt", *TOY, *power, "--seed", "1", "--runs", "4", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 1
    said = capsys.readouterr().out
    assert "linearizable" in said
    assert "labrys test --seed" in said
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
