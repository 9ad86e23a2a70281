"""Shrinking makes a run smaller step by step, and each result is still invalid."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import cli
from commands.options.run_options import RunOptions
from commands.options.subjects import goals_of
from commands.shrink.by_chance import Chance, confirmed
from commands.shrink.regressions import toml_lines
from commands.shrink.steps import MIN_FAULT_S, Candidate, shrink, shrinkable, steps
from harness.errors import InputError
from harness.faults import RARE_MESSAGE, PlannedFault, Trigger
from harness.randomness import stream
from harness.targets import AtTrigger, Named, names_of
from tests.examples import SIMULATED
from tests.trials import TOY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("without_plots")


def fault(index: int, kind: str, *targets: str) -> PlannedFault:
    """Returns a fault of 4 s that begins at 5 s times its place, plus 1 s."""
    return PlannedFault(
        id=index, kind=kind, target=Named(tuple(targets)), start_s=5.0 * index + 1, end_s=5.0 * index + 5
    )


WHOLE = Candidate(
    faults=(fault(0, "kill", "n1", "n2"), fault(1, "pause", "n3"), fault(2, "partition-random-halves", "n1", "n2")),
    time_limit_s=30.0,
    options={"rate": 40.0, "max_in_flight": 100, "hot_keys": 4, "hot_share": 0.5},
    goals={"hot_keys": 1, "hot_share": 1},
)


def test_only_what_matters_is_left() -> None:
    """If a pause of n3 alone has the finding, the result has a short pause in a short run and nothing else."""
    best = shrink(
        WHOLE, lambda candidate: any(fault.kind == "pause" for fault in candidate.faults), enough=lambda _: False
    )
    (left,) = best.faults
    assert (left.kind, left.target, left.id) == ("pause", Named(("n3",)), 0)
    assert left.end_s - left.start_s < 2 * MIN_FAULT_S
    assert left.start_s < 1
    assert best.time_limit_s < 2
    assert best.options == {"rate": 0.625, "max_in_flight": 1, "hot_keys": 1, "hot_share": 1.0}


def test_a_wait_for_a_message_is_left_out_or_gets_shorter() -> None:
    """If the finding needs no wait, the result has none. Otherwise each step leaves some time for the fault."""
    waits = replace(
        WHOLE, faults=tuple(replace(fault, trigger=Trigger(name=RARE_MESSAGE, limit_s=2.0)) for fault in WHOLE.faults)
    )
    (left,) = shrink(
        waits, lambda candidate: any(fault.kind == "pause" for fault in candidate.faults), enough=lambda _: False
    ).faults
    assert left.trigger is None
    needs_it = shrink(waits, lambda candidate: any(fault.wait_s for fault in candidate.faults), enough=lambda _: False)
    assert all(0 < fault.wait_s < 2.0 and fault.lasts_s >= MIN_FAULT_S for fault in needs_it.faults)


def test_a_fault_at_the_node_of_its_trigger_keeps_the_trigger() -> None:
    """Without its trigger, such a fault would have no target. Each step is a plan that can be read again."""
    trigger = Trigger(name="log-line", limit_s=2.0, parameters={"line": "elected"})
    whole = replace(
        WHOLE,
        faults=tuple(
            replace(planned, trigger=trigger, target=AtTrigger()) for planned in WHOLE.faults if planned.kind == "kill"
        ),
    )
    best = shrink(whole, lambda candidate: bool(candidate.faults), enough=lambda _: False)
    assert {str(fault.trigger) for fault in best.faults} == {"log-line:elected"}
    assert all(0 < fault.wait_s < 2.0 for fault in best.faults)


def test_another_seed_can_be_smaller() -> None:
    """With the first seed, nothing can be left out. A step keeps the first of the other seeds with the finding."""

    def has_finding(candidate: Candidate) -> bool:
        return candidate == WHOLE or (candidate.seed == 7 and any(fault.kind == "pause" for fault in candidate.faults))

    assert shrink(WHOLE, has_finding, enough=lambda _: False) == WHOLE
    best = shrink(WHOLE, has_finding, enough=lambda _: False, seeds=(5, 7, 9))
    assert [fault.kind for fault in best.faults] == ["pause"]
    assert best.seed == 7


def test_targets_are_left_out_one_by_one() -> None:
    """If the finding needs a kill of n2, the result does not kill n1."""

    def needs_n2(candidate: Candidate) -> bool:
        return any(fault.kind == "kill" and "n2" in names_of(fault.target) for fault in candidate.faults)

    (left,) = shrink(WHOLE, needs_n2, enough=lambda _: False).faults
    assert left.target == Named(("n2",))


def test_a_run_that_cannot_be_smaller_stays_the_same() -> None:
    """If no smaller run has the finding, each step is tried once."""
    tried: list[Candidate] = []

    def never(candidate: Candidate) -> bool:
        tried.append(candidate)
        return False

    assert shrink(WHOLE, never, enough=lambda _: False) == WHOLE
    assert len(tried) == len({repr(candidate) for candidate in tried}) == len({repr(step) for step in steps(WHOLE)})


def test_a_budget_ends_the_search() -> None:
    """The result is the smallest candidate so far."""
    assert shrink(WHOLE, lambda _: True, enough=lambda _: True) == WHOLE


def test_fewer_clients_and_keys_are_tried_one_by_one() -> None:
    """If the finding needs two workers and three keys, the result has these."""
    whole = replace(WHOLE, faults=(), options={"concurrency": 10, "keys": 12})
    best = shrink(
        whole,
        lambda candidate: candidate.options["concurrency"] >= 2 and candidate.options["keys"] >= 3,
        enough=lambda _: False,
    )
    assert best.options == {"concurrency": 2, "keys": 3}


def test_the_load_and_the_objects_can_be_made_smaller() -> None:
    """A closed loop has workers, an open loop has a rate, and a workload declares its numbers of objects."""
    register = {"system_name": SIMULATED, "workload_name": "register"}
    assert goals_of(RunOptions.of(register)) == {"hot_keys": 1, "hot_share": 1}
    assert goals_of(RunOptions.of(register | {"workload_name": "lock"})) == {"locks": 1}
    options = {"load_kind": "open", "rate": 5.0, "max_in_flight": 100, "hot_keys": 2, "hot_share": 0.5, "nodes": 5}
    assert shrinkable(options, goals_of(RunOptions.of(register)), workers=0) == {
        "rate": 5.0,
        "max_in_flight": 100,
        "hot_keys": 2,
        "hot_share": 0.5,
    }
    assert shrinkable({"load_kind": "closed", "locks": 3}, {"locks": 1}, workers=10) == {"concurrency": 10, "locks": 3}


def by_chance(part: float, stream_name: str) -> tuple[Chance, bool, bool]:
    """Begins with a run that is invalid in 80 % of its runs, and decides a candidate that is invalid in `part` of them."""
    random = stream(5, stream_name)
    chance = Chance()
    assert chance.begin(lambda: random.random() < 0.8, enough=lambda: False)
    return chance, chance.decides(lambda: random.random() < part, enough=lambda: False), chance.tried == 1


def test_chance_is_decided_by_a_sequential_test() -> None:
    """It takes most candidates that are invalid as often, few that are seldom invalid, and needs few runs."""
    often = [by_chance(0.8, f"often/{number}") for number in range(200)]
    seldom = [by_chance(0.05, f"seldom/{number}") for number in range(200)]
    assert sum(taken for _, taken, _ in often) > 185
    assert sum(taken for _, taken, _ in seldom) < 12
    assert sum(chance.runs for chance, _, _ in often) / 200 < 10
    assert "A sequential test decided 1 steps" in often[0][0].describe()


def test_a_run_that_is_never_invalid_again_is_not_made_smaller() -> None:
    """The search ends after twelve runs, or earlier if the time is over."""
    chance = Chance()
    assert not chance.begin(lambda: False, enough=lambda: False)
    assert chance.runs_before == 12
    assert not Chance().begin(lambda: True, enough=lambda: True)


def test_an_undecided_step_is_not_taken() -> None:
    """The description names the end of the time."""
    chance = Chance(hits_before=3, runs_before=3)
    assert not chance.decides(lambda: True, enough=lambda: True)
    assert "ended before 1 step was decided" in chance.describe()


def test_a_step_that_was_taken_by_luck_is_undone() -> None:
    """The candidate before it is the result. If the time is over, the smallest candidate is the result."""
    taken = [replace(WHOLE, time_limit_s=limit_s) for limit_s in (30.0, 20.0, 10.0)]

    def last(finds: Callable[[Candidate], bool], *, enough: bool = False) -> tuple[float, str]:
        best, text = confirmed(taken, finds, frequent=0.5, enough=lambda _: enough)
        return best.time_limit_s, text

    assert last(lambda _: True)[0] == 10
    limit_s, text = last(lambda candidate: candidate.time_limit_s > 15)
    assert limit_s == 20
    assert text.startswith("Too few further runs were invalid after the last 1 steps, so they were undone.")
    assert "5 of 5 further runs: 57% to 100%" in text
    assert last(lambda _: False)[0] == 30
    text = last(lambda _: True, enough=True)[1]
    assert text == "The result was invalid in 0 of 0 further runs; then the time was over."


def invalid_run(store: Path, *words: str) -> list[str]:
    """Carries out an invalid simulated run, and returns the words that shrink it."""
    forgets = ("--nemesis", "power-loss:n1,pause:n2", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")
    assert cli.invoke(["test", *TOY, *forgets, *words, "--seed", "1", "--store", str(store), "--name", "found"]) == 1
    return ["shrink", "found", "--system", "tests.toy_register:ToyRegisters", "--store", str(store)]


def rewrite(store: Path, **members: object) -> None:
    """Changes members of the stored results."""
    path = store / "found" / "latest" / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **members}))


@pytest.mark.parametrize(("valid", "word"), [(True, "valid"), ("unknown", "unknown"), (None, "has no verdict")])
def test_a_run_that_is_not_invalid_is_refused_at_once(valid: object, word: str, tmp_path: Path) -> None:
    """Its stored verdict decides, so no run is carried out. The error says what to do."""
    words = invalid_run(tmp_path)
    rewrite(tmp_path, valid=valid)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=f"{word}.*`labrys replay RUN --repeat 10`.*`labrys hunt`"):
        cli.invoke(words)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_time_that_is_too_short_for_one_run_is_refused(tmp_path: Path) -> None:
    """The stored length of the run decides."""
    words = invalid_run(tmp_path)
    rewrite(tmp_path, duration_s=90.0)
    with pytest.raises(InputError, match="takes about 90 s, and --minutes leaves 60 s for the search"):
        cli.invoke([*words, "--minutes", "1"])


def test_the_end_of_the_time_ends_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that takes longer than expected has no verdict, and the search ends. Nobody interrupted it."""
    words = invalid_run(tmp_path, "--time-limit", "60", "--rate", "20")
    rewrite(tmp_path, duration_s=0.01)
    for by_chance in ((), ("--any-seed",)):
        capsys.readouterr()
        assert cli.invoke([*words, "--minutes", "0.002", *by_chance]) == 2
        assert "the time was over before it was invalid again; give more --minutes" in capsys.readouterr().err


def test_a_step_without_time_for_its_run_is_passed_over() -> None:
    """Shorter runs are still tried."""
    best = shrink(
        WHOLE, lambda candidate: len(candidate.faults) > 1, enough=lambda candidate: candidate.time_limit_s > 20
    )
    assert best.time_limit_s <= 20
    assert len(best.faults) == 2


def test_a_run_without_a_verdict_does_not_count() -> None:
    """The end of the time can end a run. It is neither invalid nor not invalid."""
    chance = Chance()
    answers = iter([True, None])
    assert chance.begin(lambda: next(answers), enough=lambda: False)
    assert (chance.hits_before, chance.runs_before) == (1, 1)
    assert not chance.decides(lambda: None, enough=lambda: False)
    assert (chance.undecided, chance.runs) == (1, 1)
    assert "0 of 0 further runs" in confirmed([WHOLE], lambda _: None, frequent=0.5, enough=lambda _: False)[1]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["--rate", "5", "--cluster", "sim"], ["rate = 5", 'cluster = "sim"']),
        (["--forgets", "--no-final-reads"], ["forgets = true", "final-reads = false"]),
        (["--values", "inf", "--name", 'a"b'], ['values = "inf"', 'name = "a\\"b"']),
    ],
)
def test_options_become_lines_of_toml(words: list[str], lines: list[str]) -> None:
    """A suite file has the same options as the command line."""
    assert [*toml_lines(words)] == lines


def test_steps_stay_within_the_run() -> None:
    """Each fault of a step has targets, a positive duration, and ends within the run; ids are consecutive."""
    for step in (*steps(WHOLE), *steps(replace(WHOLE, options={}))):
        assert [fault.id for fault in step.faults] == list(range(len(step.faults)))
        assert all(names_of(fault.target) and fault.start_s < fault.end_s <= step.time_limit_s for fault in step.faults)
