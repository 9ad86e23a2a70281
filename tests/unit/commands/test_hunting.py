"""A hunt draws the same runs for the same seed, and changes runs that showed something new and were eventful."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

import cli
from clusters.sim.cluster import SimCluster
from commands.hunt.draws import (
    MAX_KINDS,
    SIMULATED_LIMITS_S,
    SIMULATED_RATES,
    SIMULATED_RHYTHMS,
    Behaviour,
    Chooser,
    Draw,
    Space,
    behaviour_of,
)
from commands.hunt.runs import BROKEN, INVALID, REFUSED, UNKNOWN, VALID, HuntRun, on_nodes
from commands.hunt.space import named
from commands.run.confirming import on_local_nodes
from harness.capabilities import Capabilities
from harness.errors import InfrastructureError, InputError
from harness.faults import Trigger
from harness.outcome import RunOutcome
from harness.verdict import Part, Verdict
from nemesis.asked import ByKind, KindOptions
from nemesis.errors import PlanError
from nemesis.kinds import find_called, find_kind
from nemesis.parsing import request_of
from nemesis.targets import ALL, LEADER, MAJORITY, TRIGGER
from nemesis.triggers import Subject, for_hunts
from tests.by_seed import EXAMPLE
from tests.catches.hunts import Hunt
from tests.examples import DEFAULT
from tests.toy_register import ToyRegisters
from tests.trials import TOY, settled_by, trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from commands.hunt.runs import CarryOut
    from commands.run.session import Session
    from harness.op import Value

pytestmark = pytest.mark.usefixtures("without_plots")
NEW_LEADER, RARE = (Trigger(name=name, limit_s=0.0) for name in ("new-leader", "rare-message"))
KINDS = ("bridge", "kill", "packet-loss", "pause", "power-loss")
SPACE = Space(kinds=KINDS)


def test_a_run_of_a_hunt_asks_for_the_versions_before_it_enters_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system downloads its packages for that. Programs in virtual time have no network, and nor has the thread of the run."""
    order: list[str] = []

    def versions(_: ToyRegisters) -> dict[str, str]:
        order.append("versions")
        return {}

    @contextmanager
    def entered(_: SimCluster) -> Iterator[None]:
        order.append("entered")
        yield

    monkeypatch.setattr(ToyRegisters, "versions", versions)
    monkeypatch.setattr(SimCluster, "entered", entered)
    trial(*TOY)
    assert order == ["versions", "entered"]


def drawn(chooser: Chooser, count: int) -> list[tuple[int, tuple[str, ...]]]:
    """Draws runs without features."""
    return [(draw.seed, draw.kinds) for draw in (chooser.draw() for _ in range(count))]


@pytest.mark.parametrize("guided", [True, False])
def test_the_same_seed_draws_the_same_runs(guided: bool) -> None:
    """Seeds and kinds follow from the root seed, and each run has another seed."""
    one, two, other = (drawn(Chooser(SPACE, seed=seed, guided=guided), 50) for seed in (1, 1, 2))
    assert one == two != other
    assert len({seed for seed, _ in one}) == 50
    assert all(1 <= len(kinds) <= MAX_KINDS and len({*kinds}) == len(kinds) for _, kinds in one)


def test_a_hunt_with_given_faults_draws_only_seeds() -> None:
    """No draw has kinds."""
    assert all(kinds == () for _, kinds in drawn(Chooser(Space(), seed=1, guided=True), 5))


def test_runs_of_a_start_share_its_seed_and_their_settings() -> None:
    """Also runs that are changes of earlier ones. Each has its own seed, and starts differ."""
    space = replace(SPACE, settings={"batch": range(1000)})
    chooser = Chooser(space, seed=1, guided=True, copies=4)
    draws = []
    for number in range(40):
        draws.append(chooser.draw())
        chooser.learn(draws[-1], Behaviour(features=frozenset({str(number)}), eventful=1.0))
    starts = [(draw.options["start_seed"], draw.options["batch"]) for draw in draws]
    assert all(len(set(starts[place : place + 4])) == 1 for place in range(0, 40, 4))
    assert len({seed for seed, _ in starts}) == 10
    assert len({batch for _, batch in starts}) > 5
    assert len({draw.seed for draw in draws}) == 40
    assert Chooser(Space(), seed=1, guided=True, copies=2).draw().options.keys() == {"start_seed"}
    assert "start_seed" not in Chooser(space, seed=1, guided=True).draw().options


def test_each_run_draws_its_rhythm_and_its_load() -> None:
    """All rhythms and rates are drawn, and options for the kinds that take them."""
    chooser = Chooser(Space(kinds=(*KINDS, "packet-delay")), seed=1, guided=False)
    draws = [chooser.draw() for _ in range(60)]
    assert {(draw.fault_on, draw.fault_off) for draw in draws} == set(SIMULATED_RHYTHMS)
    assert all(draw.options["fault_on"] == ByKind(draw.fault_on) for draw in draws)
    assert {draw.options["rate"] for draw in draws} == set(SIMULATED_RATES)
    for draw in draws:
        assert draw.fault_options.keys() == {*draw.kinds} & {"packet-delay", "packet-loss"}
        assert draw.options["fault_options"] == KindOptions(draw.fault_options)
    delays = {
        (delay["delay_ms"], delay["jitter_ms"]) for draw in draws if (delay := draw.fault_options.get("packet-delay"))
    }
    assert delays == {(20, 10), (100, 50), (400, 200)}, "the jitter is drawn with the delay"


def test_each_run_draws_its_targets_and_settings() -> None:
    """Kinds have their default target or another one; every value of a setting is drawn."""
    space = Space(kinds=KINDS, targets={"power-loss": [ALL], "kill": [ALL, LEADER]}, settings={"batch": (1, 16)})
    chooser = Chooser(space, seed=1, guided=False)
    options = [chooser.draw().options for _ in range(100)]
    aims = {str(asked) for option in options for asked in option["nemesis"].parts}
    assert aims == {*KINDS, "power-loss:all", "kill:all", "kill:leader"}
    assert {option["batch"] for option in options} == {1, 16}


def test_a_hunt_draws_the_settings_that_are_left_open() -> None:
    """The system and the workload declare values. A setting of the command line is not drawn."""
    drawn_from_all = Hunt((), seed=1).space
    of_system, of_workload = {"pre_vote", "snapshot_entries", "patience_ms"}, {"hot_share"}
    assert set(drawn_from_all.settings) == {*of_system, *of_workload, "nodes", "fault_wait"}
    assert drawn_from_all.targets["power-loss"] == [ALL, LEADER, MAJORITY]
    assert drawn_from_all.targets["packet-delay"] == [ALL, LEADER, MAJORITY]
    assert "leader-kill" not in drawn_from_all.targets
    given = ("--patience-ms", "5", "--nodes", "4", "--fault-wait", "0", "--hot-share", "0.5")
    assert set(Hunt(given, seed=1).space.settings) == {"pre_vote", "snapshot_entries"}


def test_a_hunt_in_a_java_system_draws_where_threads_stop() -> None:
    """They are the last settings, so that a run draws the others as it did without them."""
    settings = Hunt(("--system", DEFAULT), seed=1).space.settings
    assert [*settings][-3:] == ["preempt", "page_faults", "stalls"]


def test_a_hunt_on_one_node_draws_no_fault_between_nodes() -> None:
    """Such faults have no effect there, so nearly all its runs were unknown."""
    space = Hunt(("--nodes", "1"), seed=1).space
    assert {"kill", "pause", "power-loss", "clock-skew"} <= set(space.kinds)
    assert not [kind for kind in space.kinds if find_kind(kind).fault.LEAST_NODES > 1]
    assert "bridge" in Hunt(("--nodes", "3"), seed=1).space.kinds


@pytest.mark.parametrize(
    ("among", "names"),
    [("all", "kill pause"), ("all,-pause", "kill"), ("all,-pause,crash", "kill crash"), ("crash,kill", "crash kill")],
)
def test_the_kinds_to_draw_from_can_leave_some_out(among: str, names: str) -> None:
    """`all` means the kinds that a hunt draws by default, and `-KIND` beside it leaves one out."""
    possible = [find_called(name) for name in ("kill", "pause", "crash")]
    assert " ".join(called.name for called in named(possible, request_of(among), possible[:2])) == names


@pytest.mark.parametrize(
    ("among", "sentence"),
    [
        ("partition-fixed", "cannot draw partition-fixed"),
        ("kil", "unknown fault 'kil'"),
        ("all,-kill,-pause", "leaves no kind"),
        ("kill,-pause", "leaves a kind out of `all`"),
    ],
)
def test_kinds_to_draw_from_are_checked(among: str, sentence: str) -> None:
    """The hunt refuses a name that is no kind, and a kind that it cannot draw."""
    with pytest.raises(InputError, match=sentence):
        named(
            [find_called("kill"), find_called("pause")], request_of(among), [find_called("kill"), find_called("pause")]
        )


def test_kinds_with_new_features_are_drawn_more_often() -> None:
    """A guided hunt prefers them, and a blind hunt does not."""
    counts = {}
    for guided in (True, False):
        chooser, kinds = Chooser(SPACE, seed=3, guided=guided), Counter[str]()
        for number in range(400):
            draw = chooser.draw()
            kinds.update(draw.kinds)
            feature = f"feature {number}" if "pause" in draw.kinds else "old"
            chooser.learn(draw, Behaviour(features=frozenset({feature})))
        counts[guided] = kinds["pause"] / kinds.total()
    assert counts[True] > 1.3 * counts[False]


def test_eventful_runs_are_changed_more_often() -> None:
    """All runs show something new. The kinds of eventful ones, and their settings, come back."""
    chooser = Chooser(replace(SPACE, settings={"batch": (1, 2, 3, 4)}), seed=3, guided=True)
    draws = []
    for number in range(400):
        draw = chooser.draw()
        draws.append(draw)
        eventful = float("pause" in draw.kinds and draw.settings["batch"] == 3)
        chooser.learn(draw, Behaviour(features=frozenset({str(number)}), eventful=eventful))
    both = sum("pause" in draw.kinds and draw.settings["batch"] == 3 for draw in draws[200:])
    assert both > 2 * 200 * 0.44 / 4, (
        "in a blind hunt, 44 % of the runs have the kind, and a quarter of these the value"
    )


def test_a_change_keeps_the_rest() -> None:
    """Number and seed are new, and one value at most is another one."""
    space = replace(SPACE, targets={"kill": [ALL, LEADER]}, settings={"batch": (1, 16)})
    chooser, blind = Chooser(space, seed=5, guided=True), Chooser(space, seed=5, guided=False)
    first = chooser.draw()
    blind.draw()
    chooser.learn(first, Behaviour(features=frozenset({"a"})))
    changed = 0
    for _ in range(100):
        draw, fresh = chooser.draw(), blind.draw()
        assert (draw.number, draw.seed) == (fresh.number, fresh.seed)
        if draw == fresh:
            continue
        changed += 1
        rhythms = (draw.fault_on, draw.fault_off) != (first.fault_on, first.fault_off)
        kinds = (draw.kinds, draw.targets) != (first.kinds, first.targets)
        assert rhythms + kinds + (draw.rate != first.rate) + (draw.settings != first.settings) <= 1
        assert len({*draw.kinds} ^ {*first.kinds}) <= 2
        assert 1 <= len(draw.kinds) <= MAX_KINDS
    assert 30 < changed < 70


def test_triggers_change_no_other_draw() -> None:
    """A run has the seed, kinds, options, rhythm, rate and settings that it has without triggers; only targets may differ."""
    settings: dict[str, Sequence[Value]] = {"batch": (1, 16), "fault_wait": (0.0, 0.5)}
    plain = replace(SPACE, targets={"kill": [ALL, LEADER]}, settings=settings)
    space = replace(plain, triggers=(NEW_LEADER, RARE), naming=frozenset({"new-leader"}), aimed=frozenset({"kill"}))
    chooser, without = Chooser(space, seed=7, guided=False), Chooser(plain, seed=7, guided=False)
    aimed = triggered = 0
    for _ in range(100):
        draw, other = chooser.draw(), without.draw()
        assert replace(draw, triggers={}, limit_s=0.0, targets=other.targets) == other
        assert draw.triggers.keys() <= {*draw.kinds}
        assert len(draw.triggers) <= 1
        by_trigger = {kind for kind, target in draw.targets.items() if target == TRIGGER}
        assert all(kind == "kill" and draw.triggers[kind] == NEW_LEADER for kind in by_trigger)
        assert draw.options["fault_wait"] in (SIMULATED_LIMITS_S if draw.triggers else (0.0, 0.5))
        waits = draw.settings["fault_wait"] == 0.5
        assert (draw.options.get("fault_trigger", ByKind()).usual == RARE) == (waits and bool(draw.triggers))
        triggered, aimed = triggered + bool(draw.triggers), aimed + bool(by_trigger)
    assert 30 < triggered < 70
    assert aimed > 1


def test_a_changed_run_has_triggers_of_its_own_kinds() -> None:
    """A target is that of a trigger only while the kind has a trigger that names a node."""
    space = replace(SPACE, triggers=(NEW_LEADER,), naming=frozenset({"new-leader"}), aimed=frozenset({"kill", "pause"}))
    chooser = Chooser(space, seed=5, guided=True)
    for number in range(200):
        draw = chooser.draw()
        chooser.learn(draw, Behaviour(features=frozenset({str(number)})))
        assert draw.triggers.keys() <= {*draw.kinds}
        assert {kind for kind, target in draw.targets.items() if target == TRIGGER} <= draw.triggers.keys()


def test_a_hunt_draws_the_triggers_that_can_fire() -> None:
    """`all` has each one that the simulated system can fire, with its named lines and the functions of the workload."""
    space = Hunt((), seed=1, triggers="all").space
    lines = [f"log-line:{line}" for line in ("elected", "snapshot", "install", "start")]
    functions = [f"operation:{f}:1" for f in ("cas", "read", "write")]
    triggers = {*map(str, space.triggers)}
    assert triggers == {
        *lines,
        *functions,
        *(
            "new-leader",
            "term-change",
            "follower-behind:10",
            "applied-above-commit:1",
            "ok-after-failure:1",
            "rare-message",
        ),
    }
    assert space.naming == {trigger.name for trigger in space.triggers} - {"rare-message"}
    assert {"kill", "pause", "partition-random-node"} <= space.aimed
    drawn_from = Hunt((), seed=1, triggers="log-line:snapshot,operation:write:3").space.triggers
    assert [*map(str, drawn_from)] == ["log-line:snapshot", "operation:write:3"]
    assert not Hunt((), seed=1).space.triggers


def test_runs_of_a_hunt_begin_faults_with_triggers() -> None:
    """Faults begin with what their plan names. As without triggers, the faults of few runs do not fit into their time."""
    hunt = Hunt((), seed=3, triggers="all")
    fired, refused = [], 0
    for _ in range(20):
        draw, trial = hunt.next()
        if trial is None:
            refused += 1
            continue
        faults = [record for record in trial.result.faults if record.planned.trigger is not None]
        if draw.triggers:
            assert {str(record.planned.trigger) for record in faults} <= {
                "rare-message",
                *map(str, draw.triggers.values()),
            }
        fired += [
            record.planned.trigger.name for record in faults if record.fired is not None and record.planned.trigger
        ]
    assert len({*fired}) > 3
    assert refused < 8


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--triggers", "nope"), "unknown trigger 'nope'"),
        (("--triggers", "log-line:nope"), "names no log line 'nope'"),
        (("--triggers", "operation:dequeue"), "has no function 'dequeue'"),
        (("--triggers", "log-line", "--system", "tests.toy_register:ToyRegisters"), "needs 'line'"),
        (("--triggers", ","), "no trigger to draw from"),
        (("--triggers", "all", "--nemesis", "kill"), "--triggers cannot go with --nemesis"),
        (("--triggers", "all", "--fault-trigger", "new-leader"), "--triggers cannot go with --fault-trigger"),
    ],
)
def test_triggers_to_draw_from_are_checked(words: Sequence[str], sentence: str) -> None:
    """The hunt refuses a trigger that cannot fire, and triggers beside given faults."""
    with pytest.raises(InputError, match=sentence):
        cli.invoke(["hunt", "--runs", "1", "--jobs", "1", *words])


def test_triggers_that_the_nodes_lack_are_refused_by_name_and_left_out_of_all() -> None:
    """Real nodes show no messages, and a service without a status has no leader that a trigger could wait for."""
    subject = Subject(system="toy", log_lines={}, workload="set", functions=("add",), reports=False)
    real = {"n1": Capabilities(available=frozenset())}
    assert [*map(str, for_hunts("all", subject, real))] == ["ok-after-failure:1", "operation:add:1"]
    with pytest.raises(PlanError, match="n1 does not show Labrys its messages"):
        for_hunts("rare-message", subject, real)


def test_a_hunt_of_one_kind_changes_the_rest() -> None:
    """There is no other kind to add."""
    chooser = Chooser(Space(kinds=("kill",), targets={"kill": [ALL]}), seed=5, guided=True)
    for number in range(50):
        draw = chooser.draw()
        assert draw.kinds == ("kill",)
        chooser.learn(draw, Behaviour(features=frozenset({str(number)})))


def test_a_feature_is_new_once() -> None:
    """It counts for the first run that has it."""
    chooser = Chooser(SPACE, seed=1, guided=True)
    shown = [Behaviour(features=frozenset(names)) for names in ("ab", "bc")]
    assert [chooser.learn(chooser.draw(), behaviour) for behaviour in shown] == [2, 1]


def test_the_features_of_a_run() -> None:
    """They include the kind with the role that it hit, and the number of leaders."""
    paused = trial(*TOY, "--nemesis", "pause:n2", "--fault-on", "2-3", "--fault-off", "1-2")
    features = behaviour_of(paused.result, paused.operations).features
    assert {"pause at follower", "leaders 1", "terms 0"} <= {*features}


def test_an_invalid_run_is_replayed_and_made_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It has a line, a report and exit code 1; its replay has the same history; a smaller run is invalid too."""
    power = ("--nemesis", "power-loss:n1,pause:n2", "--fault-on", "1-2", "--fault-off", "1-2", "--forgets")
    words = ["hunt", *TOY, *power, "--seed", "1", "--runs", "4", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 1
    output = capsys.readouterr().out
    assert "linearizable" in output
    assert "labrys test --seed" in output
    (report,) = [path for path in tmp_path.glob("*/*/report.html") if not path.parent.is_symlink()]
    folder = report.parent
    again = [str(folder), "--system", "tests.toy_register:ToyRegisters", "--store", str(tmp_path)]
    assert cli.invoke(["replay", *again, "--name", "again"]) == 1
    (other,) = [path for path in tmp_path.glob("again/*/history.jsonl") if not path.parent.is_symlink()]
    # The first line names the test.
    assert other.read_bytes().splitlines()[1:] == (folder / "history.jsonl").read_bytes().splitlines()[1:]
    capsys.readouterr()
    assert cli.invoke(["shrink", *again, "--minutes", "0.3"]) == 1
    assert "shrunk.json" in capsys.readouterr().out
    assert len(json.loads((folder / "shrunk.json").read_text())["faults"]) == 1


def test_a_hunt_without_a_system_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default system fits the default cluster."""
    words = ["hunt", "--seed", "2", "--runs", "1", "--jobs", "1", "--store", str(tmp_path)]
    assert cli.invoke(words) == 0
    assert "1 run in " in capsys.readouterr().err


def test_a_run_that_breaks_off_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its line has the command that repeats it. Three such runs in a row end the hunt."""
    words = [
        *TOY,
        "--system",
        "tests.toy_register:Leaderless",
        "--nemesis",
        "pause:n2",
        "--fault-on",
        "1",
        "--fault-off",
        "1",
    ]
    with pytest.raises(InfrastructureError, match="3 runs in a row broke off, so the hunt ends"):
        cli.invoke(["hunt", *words, "--seed", "1", "--jobs", "1", "--store", str(tmp_path)])
    output = " ".join(capsys.readouterr().err.split())
    assert output.count("broke off:") == 3
    assert output.count("labrys test --seed") == 3


def test_runs_that_break_off_do_not_mask_a_find(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hunt ends after three of them in a row. It prints the invalid run and why a run is unknown; its exit code is 1."""
    bad = RunOutcome.of([Part(name="recovered", verdict=Verdict.INVALID, reason="No.")])
    broken = RunOutcome(judged=None, error="no node")
    vain = RunOutcome.of([Part(name="progress", verdict=Verdict.UNKNOWN, reason="Nothing.")])
    outcomes = [bad, vain, broken, broken, broken, RunOutcome(judged=Verdict.VALID)]

    @contextmanager
    def carrying_out(*_: object, **__: object) -> Iterator[CarryOut]:
        yield lambda draws: (HuntRun(draw=draw, outcome=outcomes[draw.number], report="r") for draw in draws)

    monkeypatch.setattr("commands.hunt.command.in_simulator", carrying_out)
    words = [*TOY, "--nemesis", "pause:n2", "--fault-on", "1", "--fault-off", "1"]
    assert cli.invoke(["hunt", *words, "--seed", "1", "--runs", "6", "--finds", "2"]) == 1
    output = capsys.readouterr()
    assert "5 runs in " in output.err
    assert "unknown runs by part: progress 1\n  progress in 1 run: Nothing.\n    labrys test --seed" in output.err
    assert "\trecovered\tlabrys test --seed" in output.out


def test_a_hunt_tells_its_most_frequent_reasons_of_unknown_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Reasons that differ in numbers alone are one, and a valid part has none."""

    def outcome(number: int) -> RunOutcome:
        reason = "No operation in 3 s." if number == 3 else f"Kill {number} is not proven."
        parts = [
            Part(name="recovered", verdict=Verdict.VALID, reason="Yes."),
            Part(name="x", verdict=Verdict.UNKNOWN, reason=reason),
        ]
        return RunOutcome.of(parts)

    @contextmanager
    def carrying_out(*_: object, **__: object) -> Iterator[CarryOut]:
        yield lambda draws: (HuntRun(draw=draw, outcome=outcome(draw.number)) for draw in draws)

    monkeypatch.setattr("commands.hunt.command.in_simulator", carrying_out)
    words = [*TOY, "--nemesis", "pause:n2", "--fault-on", "1", "--fault-off", "1"]
    assert cli.invoke(["hunt", *words, "--seed", "1", "--runs", "6"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if line.startswith("  x in ")] == [
        "  x in 5 runs: Kill 0 is not proven.",
        "  x in 1 run: No operation in 3 s.",
    ]


def test_a_hunt_says_how_many_reasons_it_does_not_tell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It tells five of them."""

    @contextmanager
    def carrying_out(*_: object, **__: object) -> Iterator[CarryOut]:
        def run(draw: Draw) -> HuntRun:
            part = Part(name="x", verdict=Verdict.UNKNOWN, reason=f"No {'abcdefg'[draw.number]}.")
            return HuntRun(draw=draw, outcome=RunOutcome.of([part]))

        yield lambda draws: map(run, draws)

    monkeypatch.setattr("commands.hunt.command.in_simulator", carrying_out)
    words = [*TOY, "--nemesis", "pause:n2", "--fault-on", "1", "--fault-off", "1"]
    assert cli.invoke(["hunt", *words, "--seed", "1", "--runs", "7"]) == 2
    output = capsys.readouterr().err
    assert output.count("  x in 1 run: No ") == 5
    assert "  2 other reasons\n" in output


def test_a_hunt_on_real_nodes_has_one_run_at_a_time() -> None:
    """It refuses `--jobs`."""
    with pytest.raises(InputError, match="--jobs is for the simulator"):
        cli.invoke(["hunt", "--cluster", "local", "--system", DEFAULT, "--jobs", "2"])
    with pytest.raises(InputError, match="--spark is for the simulator"):
        cli.invoke(["hunt", "--cluster", "local", "--system", DEFAULT, "--spark", "spark://host:7077"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--jobs", "2"), "give one of them"),
        (("--workload", "workloads.register.workload:RegisterWorkload"), "a workload of an installed package"),
    ],
)
def test_what_executors_cannot_do_is_refused(words: Sequence[str], sentence: str) -> None:
    """Before Spark starts."""
    with pytest.raises(InputError, match=sentence):
        cli.invoke(["hunt", *words, "--spark", "spark://host:7077"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--spark", "spark://host:7077"), "--copies is for the processes of this machine"),
        (("--start-seed", "1", "--cluster", "sim", "--system", EXAMPLE), "--copies draws the seed of each start"),
        ((), "--copies needs programs in virtual time"),
    ],
)
def test_copies_are_refused_where_no_run_can_share_a_start(words: Sequence[str], sentence: str) -> None:
    """The error says what to give."""
    with pytest.raises(InputError, match=sentence):
        cli.invoke(["hunt", *words, "--copies", "2"])


def test_a_start_of_its_own_needs_programs() -> None:
    """For other nodes, the option has no effect, and a line says so; the command for real nodes does not have it."""
    with settled_by(*TOY, "--start-seed", "1") as settled:
        assert settled.options.cluster.start_seed is None
    with settled_by("--cluster", "sim", "--system", EXAMPLE, "--start-seed", "1") as settled:
        assert settled.options.cluster.start_seed == 1
        assert on_local_nodes(settled.options).cluster.start_seed is None


def session(verdict: Verdict, *, error: str | None = None) -> Session:
    """Returns a run on real nodes with a verdict."""
    finished = trial(*TOY)
    outcome = SimpleNamespace(
        outcome=RunOutcome.of([Part(name="linearizable", verdict=verdict, reason="Because.")], error=error),
        run=SimpleNamespace(report_html="r/report.html"),
        result=finished.result,
        operations=finished.operations,
    )
    return cast("Session", outcome)


def test_the_outcomes_of_runs_on_real_nodes() -> None:
    """An invalid verdict counts although the run broke off; an error or an interruption is no verdict."""
    outcomes: list[Session | BaseException] = [
        session(Verdict.VALID),
        session(Verdict.INVALID, error="the disk is full"),
        session(Verdict.UNKNOWN, error="the disk is full"),
        InfrastructureError("no node"),
        InputError("no plan"),
        KeyboardInterrupt(),
    ]
    remaining = iter(outcomes)

    def carry_out(_: Draw) -> Session:
        found = next(remaining)
        if isinstance(found, BaseException):
            raise found
        return found

    draws = [Draw(number=number, seed=number) for number in range(len(outcomes))]
    runs = [*on_nodes(carry_out)(draws)]
    assert [run.ended for run in runs] == [VALID, INVALID, BROKEN, BROKEN, REFUSED, UNKNOWN]
    assert [run.outcome.reason for run in runs[1:5]] == ["Because.", "the disk is full", "no node", "no plan"]
    assert [run.outcome.interrupted for run in runs] == [False] * 5 + [True]
    assert (runs[1].outcome.invalid, runs[1].report) == (("linearizable",), "r/report.html")
    assert "leaders 1" in runs[0].behaviour.features
