"""Cases at the same time: which may run together, what the terminal shows, and how an interruption ends all of them."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict
from datetime import UTC, datetime
from io import StringIO
from typing import TYPE_CHECKING

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from commands.options.choosing import NameOptions
from commands.options.run_options import RunOptions
from commands.suite.cases import run_suite
from commands.suite.folder import SuiteFolder
from commands.suite.jobs import CLUSTER_BYTES, SIMULATED_BYTES, Jobs, Machine, Place, place_of
from commands.suite.shards import Shard, ShardText, cases_of
from harness.errors import Terminated
from harness.suites.case import Case
from harness.suites.suite import Suite
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from harness.suites.case_result import CaseResult

SIMULATED, LOCAL, SHARED = Place.SIMULATED, Place.LOCAL, Place.SHARED
TIGHT = Machine(cores=2, free_bytes=4 * CLUSTER_BYTES)


def case(name: str) -> Case:
    """Returns a case."""
    return Case(reproduce="", name=name, test=name, options={}, seed=1, expect=Verdict.VALID)


@pytest.mark.parametrize(
    ("machine", "rooms"),
    [
        (TIGHT, (2, 1, 1)),
        (Machine(cores=8, free_bytes=2 * CLUSTER_BYTES), (8, 2, 1)),
        (Machine(cores=8, free_bytes=2 * SIMULATED_BYTES), (2, 1, 1)),
        (Machine(cores=1, free_bytes=0), (1, 1, 1)),
        (Machine(cores=8, free_bytes=None), (8, 4, 1)),
    ],
)
def test_the_room_of_a_machine(machine: Machine, rooms: tuple[int, int, int]) -> None:
    """Cores and memory bound it, and one case always fits. Shared machines have room for one."""
    assert (machine.room(SIMULATED), machine.room(LOCAL), machine.room(SHARED)) == rooms


def test_this_machine_has_a_core_and_some_memory() -> None:
    """The numbers are those of the operating system."""
    machine = Machine.this()
    assert machine.cores == len(os.sched_getaffinity(0))
    assert machine.free_bytes is not None
    assert machine.free_bytes > 0


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"cluster_kind": "sim", "cluster_name": None}, SIMULATED),
        ({"cluster_kind": "local", "cluster_name": None}, LOCAL),
        ({"cluster_kind": "local", "cluster_name": "mine"}, SHARED),
        ({"cluster_kind": "ssh", "cluster_name": None}, SHARED),
        ({"cluster_kind": "vagrant", "cluster_name": None}, SHARED),
    ],
)
def test_the_place_of_a_case(options: dict[str, str | None], place: Place) -> None:
    """A local cluster with a name may be that of another case."""
    assert place_of(RunOptions.of({**asdict(NameOptions()), **options})) is place


@given(
    st.lists(st.sampled_from(Place), max_size=12),
    st.integers(1, 4) | st.none(),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_cases_that_run_together_fit(places: list[Place], most: int | None, cores: int, random: object) -> None:
    """All are of one place, at most as many as fit; each case runs once, and no case waits while nothing runs."""
    cases = [case(f"{number}") for number in range(len(places))]
    jobs = Jobs(
        places={each.name: place for each, place in zip(cases, places, strict=True)},
        most=most,
        machine=Machine(cores=cores, free_bytes=None),
    )
    waiting, running, ran, most_seen = [*cases], list[Case](), list[str](), 0
    while waiting or running:
        while (following := jobs.following(waiting, running)) is not None:
            waiting.remove(following)
            running.append(following)
        assert running
        (kind,) = {jobs.places[each.name] for each in running}
        assert len(running) <= (1 if kind is SHARED else most or jobs.machine.room(kind))
        most_seen = max(most_seen, len(running))
        ran.append(running.pop(random.randrange(len(running))).name)  # type: ignore[attr-defined]
    assert sorted(ran) == sorted(own_case.name for own_case in cases)
    assert most_seen == jobs.at_once(cases)


def run(tmp_path: Path, names: Sequence[str], jobs: Jobs, out: StringIO) -> list[CaseResult]:
    """Runs a suite of cases with these names."""
    suite = Suite(name="s", seed=1, cases=[case(name) for name in names])
    folder = SuiteFolder.create(tmp_path / "store", suite, datetime(2026, 7, 29, tzinfo=UTC))
    return run_suite(
        suite, folder, store=tmp_path / "store", console=Console(file=out, width=200), exit_first=False, before={},
        time_limit_s=60, config=None, selected=set(names), jobs=jobs,
    )  # fmt: skip


def make_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Makes a shell script the command of each case; $name is the name of the case."""
    command = tmp_path / "command"
    find = "name=$(echo \"$*\" | sed 's/.*--name s-\\([a-z]*\\).*/\\1/')"
    command.write_text(f"#!/bin/sh\n{find}\ncd {tmp_path}\n{lines}\n")
    command.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(command))


def both(*names: str) -> Jobs:
    """Returns two simulated cases at the same time."""
    return Jobs(places=dict.fromkeys(names, SIMULATED), most=2)


def test_cases_run_at_the_same_time_and_each_line_names_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each case waits for a file of the other one, so they end only together; no line mixes two of them."""
    other = '[ "$name" = a ] && other=b || other=a'
    waits = f"touch $name.up; {other}; until [ -e $other.up ]; do sleep 0.01; done"
    make_command(tmp_path, monkeypatch, f"""{waits}; echo '{{"valid": true, "reason": "Good.", "parts": {{}}}}'""")
    out = StringIO()
    results = run(tmp_path, ["a", "b"], both("a", "b"), out)
    assert [(result.case.name, result.passed) for result in results] == [("a", True), ("b", True)]
    lines = out.getvalue().splitlines()
    assert lines[:3] == ["jobs       up to 2 cases at the same time", "[1/2] a", "[2/2] b"]
    ends = sorted(line.split(" (")[0] + line.rpartition(")")[2] for line in lines[3:])
    assert ends == ["[1/2] a: valid: Good.", "[2/2] b: valid: Good."]
    document = json.loads(next((tmp_path / "store").glob("suites/s/*/suite.json")).read_text())
    assert document["running"] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_all_cases_and_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Each case gets the signal once, cleans up, and has ended when the suite ends."""
    name = number.name.removeprefix("SIG")
    trap = f"trap 'echo {name} >>$name.signals; sleep 0.2; touch $name.clean; exit 130' {name}"
    make_command(tmp_path, monkeypatch, f"{trap}; touch $name.up; while :; do sleep 0.01; done")

    def interrupt() -> None:
        while not all((tmp_path / f"{name}.up").exists() for name in "ab"):
            over.wait(0.01)
        os.kill(os.getpid(), number)

    over = threading.Event()
    thread = threading.Thread(target=interrupt)
    # A worker of pytest ignores SIGINT, and so would the cases.
    handlers: dict[signal.Signals, Callable[..., object]] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: raise_terminated,
    }
    usual = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, ["a", "b", "c"], both("a", "b", "c"), StringIO())
    finally:
        for each, handler in usual.items():
            signal.signal(each, handler)
        thread.join()
    assert [(tmp_path / f"{name}.clean").exists() for name in "abc"] == [True, True, False]
    assert [(tmp_path / f"{name}.signals").read_text() for name in "ab"] == [f"{name}\n"] * 2
    document = json.loads(next((tmp_path / "store").glob("suites/s/*/suite.json")).read_text())
    assert (document["running"], document["results"]) == ([], {})


def raise_terminated(*_: object) -> None:
    """Raises what a SIGTERM raises in a command."""
    raise Terminated


def test_each_case_is_in_one_shard_and_the_shards_take_alike_times() -> None:
    """The cases of each place are shared out, whatever the number of shards; a longer case goes first."""
    cases = [case(f"c{number}") for number in range(17)]
    places = {
        case_of_suite.name: Place.SIMULATED if number % 3 else Place.LOCAL for number, case_of_suite in enumerate(cases)
    }
    lengths = {case_of_suite.name: float(10 * (number % 4 + 1)) for number, case_of_suite in enumerate(cases)}
    for of in (1, 2, 3, 5):
        parts = [
            cases_of(Shard(number=number, of=of), cases, places, lambda each: lengths[each.name])
            for number in range(1, of + 1)
        ]
        assert sorted(each.name for part in parts for each in part) == sorted(own_case.name for own_case in cases)
        for where in (Place.SIMULATED, Place.LOCAL):
            times = [sum(lengths[each.name] for each in part if places[each.name] is where) for part in parts]
            assert max(times) - min(times) <= 40


@pytest.mark.parametrize("text", ["0/3", "4/3", "1/0", "1", "1/2/3", "-1/2", "1/1001", "x/y", "1/3\n"])
def test_a_shard_that_is_none_is_refused(text: str) -> None:
    """The error says what a shard looks like."""
    with pytest.raises(click.UsageError, match="such as 2/5"):
        ShardText().convert(text, None, None)
