"""A bisection finds where an ordered list changes from good to bad, states its error, and goes on after an interruption."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import cli
from commands.bisect.deciding import MAX_NEITHER, Decider, NoTimeError, Runs, shows
from commands.bisect.search import Found, most_decisions, search
from commands.bisect.state import PastRun, Search, State
from commands.bisect.values import Point, release_order
from commands.run.in_time import Deadline
from harness.errors import InputError
from harness.outcome import RunOutcome
from harness.randomness import stream
from harness.verdict import Part, Verdict
from tests.trials import TOY

pytestmark = pytest.mark.usefixtures("without_plots")

POINTS = tuple(Point(name=f"1.{number}", changes={}) for number in range(9))
PARTS = ("linearizable",)
_NOW = datetime(2026, 12, 1, tzinfo=UTC)


def outcome(verdict: Verdict, error: str | None = None) -> RunOutcome:
    """Returns the outcome of a run with one part."""
    return RunOutcome.of([Part(name="linearizable", verdict=verdict, reason="because")], error=error)


def searched() -> Search:
    """Returns what the tests search."""
    names = [point.name for point in POINTS]
    return Search(
        run="labrys test", over="--release", points=names, parts=[*PARTS], error=0.05, rates=None, seed_alone=False
    )


class Releases:
    """Releases that have a bug from one of them on, and fail with a rate.

    Attributes:
        runs: The number of runs that were carried out.
    """

    def __init__(self, first_bad: int, *, rate: float, seed: int = 1, breaks_off: str = "", most: int = 10_000) -> None:
        self.runs = 0
        self._first_bad, self._rate, self._breaks_off, self._most = first_bad, rate, breaks_off, most
        self._seed = seed

    def carry_out(self, point: Point, seed: int) -> RunOutcome | None:
        """Returns the outcome of a run; None after the last run, as if a person pressed Ctrl-C."""
        self.runs += 1
        if self.runs > self._most:
            return None
        if point.name == self._breaks_off:
            return RunOutcome(judged=None, error="no leader")
        draws = stream(self._seed, f"{point.name}/{seed}/{self.runs if seed == 0 else 0}")
        fails = POINTS.index(point) >= self._first_bad and draws.random() < self._rate
        return outcome(Verdict.INVALID if fails else Verdict.VALID)


def answer(releases: Releases, state: State, *, simulated: bool) -> tuple[Found | None, Decider]:
    """Carries out a bisection. Returns its answer, and its decisions."""
    runs = Runs(
        carry_out=releases.carry_out,
        parts=PARTS,
        state=state,
        deadline=Deadline(time.monotonic() + 600),
        say=lambda _: None,
    )
    decider = Decider(
        runs, seed=0, simulated=simulated, seed_alone=False, error=0.05 / most_decisions(len(POINTS)), rates=None
    )
    if not decider.is_bad(POINTS[-1], last=True) or decider.is_bad(POINTS[0]) is not False:
        return None, decider
    return search(len(POINTS), lambda place: decider.is_bad(POINTS[place])), decider


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes no state."""
    monkeypatch.setattr(State, "save", lambda _: None)


def test_a_search_finds_each_change_with_few_decisions() -> None:
    """Whatever the length and the change, it takes no more decisions than it says."""
    for values in range(2, 40):
        for first_bad in range(1, values):
            asked: list[int] = []

            def is_bad(place: int, asked: list[int] = asked, first_bad: int = first_bad) -> bool:
                asked.append(place)
                return place >= first_bad

            assert search(values, is_bad) == Found(good=first_bad - 1, bad=first_bad)
            assert len(asked) + 2 <= most_decisions(values)


def test_values_that_cannot_be_decided_leave_a_range() -> None:
    """A skipped value matters only if it is next to the change."""
    assert search(9, lambda place: None if place == 4 else place >= 2) == Found(good=1, bad=2)
    assert search(9, lambda place: None if place in {3, 4} else place >= 4) == Found(good=2, bad=5)


def test_releases_are_in_the_order_of_versions() -> None:
    """Numbers count as numbers, and a candidate comes before its release."""
    releases = ["3.10.0", "3.9.4", "3.9.10", "3.9.10-rc1", "0.4.0", "0.3.1.2", "3.4"]
    assert sorted(releases, key=release_order) == [
        "0.3.1.2", "0.4.0", "3.4", "3.9.4", "3.9.10-rc1", "3.9.10", "3.10.0",
    ]  # fmt: skip


def test_only_a_decided_run_is_good_or_bad() -> None:
    """A run that broke off, or that leaves a part open, is neither. An error does not mask an invalid part."""
    assert shows(outcome(Verdict.INVALID), PARTS)[0] is True
    assert shows(outcome(Verdict.INVALID, "broke off"), PARTS)[0] is True
    assert shows(outcome(Verdict.VALID), PARTS)[0] is False
    for neither in (outcome(Verdict.UNKNOWN), outcome(Verdict.VALID, "broke off"), RunOutcome(judged=None, error="x")):
        assert shows(neither, PARTS)[0] is None
        assert shows(neither, ())[0] is None
    assert shows(outcome(Verdict.INVALID), ("recovered",)) == (None, "it does not decide recovered")
    assert shows(outcome(Verdict.INVALID), ())[0] is True


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("simulated", [True, False])
def test_wrong_answers_are_as_rare_as_stated(simulated: bool) -> None:
    """Of 120 bisections with a rate of 40 %, at most 5 % are wrong, and most have an answer with a confidence."""
    wrong = answers = 0
    for seed in range(120):
        first_bad = 1 + seed % 8
        found, decider = answer(
            Releases(first_bad, rate=0.4, seed=seed), State(Path("none"), searched(), []), simulated=simulated
        )
        if found is not None and all(each.error is not None for each in decider.decisions):
            answers += 1
            wrong += found.bad != first_bad
    assert answers > 105
    assert wrong <= 6


@pytest.mark.usefixtures("in_memory")
def test_a_value_whose_runs_break_off_is_skipped() -> None:
    """Its neighbours are decided, and it is in the range of the answer."""
    found, decider = answer(
        Releases(5, rate=1.0, breaks_off="1.4"), State(Path("none"), searched(), []), simulated=False
    )
    assert found == Found(good=3, bad=5)
    (skipped,) = [each for each in decider.decisions if each.bad is None]
    assert f"{MAX_NEITHER} runs in a row are neither good nor bad; the last: no leader" in skipped.how


def test_an_interrupted_bisection_goes_on_where_it_was(tmp_path: Path) -> None:
    """With the runs of its state, it carries out only the missing ones, and the answer is the same."""
    whole = State.create(tmp_path, "whole", searched(), _NOW)
    expected, _ = answer(Releases(6, rate=0.7), whole, simulated=True)
    assert expected is not None
    cut = State.create(tmp_path, "cut", searched(), _NOW)
    with pytest.raises(NoTimeError):
        answer(Releases(6, rate=0.7, most=10), cut, simulated=True)
    again = State.read(cut.path, searched())
    assert len(again.runs) == 10
    rest = Releases(6, rate=0.7)
    found, _ = answer(rest, again, simulated=True)
    assert found == expected
    assert rest.runs == len(whole.runs) - 10
    assert [run.seed for run in again.runs] == [run.seed for run in whole.runs]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda found: "{", "is not JSON"),
        (lambda found: json.dumps({**found, "version": 2}), "expected 1|version"),
        (lambda found: json.dumps({**found, "runs": [{**found["runs"][0], "seed": "1; rm -rf /"}]}), "seed"),
        (lambda found: json.dumps({**found, "runs": [{**found["runs"][0], "bad": "yes"}]}), "bad"),
        (lambda found: json.dumps({**found, "runs": [{**found["runs"][0], "point": "9.9"}]}), "values of its search"),
        (lambda found: json.dumps({**found, "search": {**found["search"], "error": 0.01}}), "its error differs"),
        (lambda found: "[" * 100_000, "is not JSON|nesting"),
    ],
)
def test_a_damaged_state_is_refused(change, error: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """The error names the file and what is wrong; nothing runs."""
    state = State.create(tmp_path, "damaged", searched(), _NOW)
    state.add(PastRun(point="1.8", seed="0", bad=True, why="linearizable", seconds=1.0))
    state.path.write_text(change(json.loads(state.path.read_text())))
    with pytest.raises(InputError, match=error) as raised:
        State.read(state.path, searched())
    assert str(state.path) in str(raised.value)


def test_a_state_with_other_runs_is_refused(tmp_path: Path) -> None:
    """The runs of a search follow from each other, so a run in another place is not of this search."""
    state = State.create(tmp_path, "other", searched(), _NOW)
    state.add(PastRun(point="1.3", seed="0", bad=True, why="linearizable", seconds=1.0))
    with pytest.raises(InputError, match=r"expected a run of 1\.8 with the seed 0 as run 1, found one of '1\.3'"):
        answer(Releases(3, rate=1.0), State.read(state.path, searched()), simulated=True)


def test_a_bisection_of_a_simulated_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The option that plants the bug is found. An interrupted search has code 2 or 130, and a resumed one ends it."""
    store = ("--store", str(tmp_path))
    forgets = ("--nemesis", "power-loss:n1", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")
    assert cli.invoke(["test", *TOY, *forgets, "--seed", "1", *store, "--name", "found"]) == 1
    words = ["bisect", "found/latest", *store, "--system", TOY[TOY.index("--system") + 1], "--format", "json"]
    over = ["--over", "forgets", "--value", "false", "--value", "true"]
    capsys.readouterr()
    assert cli.invoke([*words, *over, "--seed-alone"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert (alone["good"], alone["bad"], alone["runs"], alone["confidence"]) == ("false", "true", 2, None)
    assert "--forgets" in alone["bad_run"]
    assert cli.invoke([*words, *over, "--rates", "0.1", "0.6"]) == 0
    tested = json.loads(capsys.readouterr().out)
    assert tested["confidence"] >= 0.95
    assert tested["tests"] == 1
    state = Path(tested["state"])
    document = json.loads(state.read_text())
    state.write_text(json.dumps({**document, "runs": document["runs"][:2]}))
    assert cli.invoke([*words, *over, "--rates", "0.1", "0.6", "--resume", str(state), "--minutes", "0.00001"]) == 2
    assert "give more --minutes" in json.loads(capsys.readouterr().out)["why"]
    assert cli.invoke([*words, *over, "--rates", "0.1", "0.6", "--resume", str(state)]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == tested["runs"]
    assert cli.invoke([*words, "--over", "forgets", "--value", "true", "--value", "false", "--seed-alone"]) == 2
    assert json.loads(capsys.readouterr().out)["why"] == "false is not bad: the seed does not show the bug"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "needs a RUN, or --suite-case"),
        (["latest", "--suite-case", "suites/smoke.toml", "x"], "and not both"),
        (["--suite-case", "suites/smoke.toml", "x"], "has no case x; the first cases are"),
        (["latest", "--rates", "0.5", "0.1"], "expected 0 < GOOD < BAD < 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: list[str], error: str, tmp_path: Path) -> None:
    """Before any run."""
    with pytest.raises(InputError, match=error):
        cli.invoke(["bisect", *words, "--store", str(tmp_path)])
