"""A run of programs in virtual time is compared with the one that it repeats, and the first difference is found."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.sim.linux.world import LinuxWorld
from harness.errors import InputError
from tests.by_seed import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]
SMALL = ("--system", EXAMPLE, "--nodes", "1", "--rate", "5", "--time-limit", "1", "--seed", "1")
WORDS = ("test", "--cluster", "sim", *SMALL)
TOY = "tests.toy_register:ToyRegisters"


def folders(store: Path) -> list[Path]:
    """Returns the folders of all runs, in order."""
    return sorted(store.glob("*/2*"))


def repeatable(folder: Path) -> tuple[object, str]:
    """Returns the verdict and the reason of the part `repeatable`."""
    part = json.loads((folder / "results.json").read_text(encoding="utf-8"))["parts"]["repeatable"]
    return part["valid"], part["reason"]


def change(folder: Path, **members: str) -> None:
    """Changes the execution in a stored run."""
    path = folder / "results.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["execution"] |= members
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_replay_says_whether_the_programs_did_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It names the second of the first difference, and what has changed around the programs."""
    store = ("--store", str(tmp_path))
    cli.invoke([*WORDS, *store, "--calls"])
    cli.invoke(["replay", "latest", *store, "--calls"])
    one, other = folders(tmp_path)
    valid, reason = repeatable(other)
    assert valid is True
    assert f"The programs did the same as in {one.parent.name}/{one.name}, in each of " in reason
    assert reason in capsys.readouterr().out
    assert cli.invoke(["calls", "0", "1", *store]) == 0
    assert "Both logs have the same " in capsys.readouterr().out
    execution = json.loads((one / "results.json").read_text(encoding="utf-8"))["execution"]
    trace = execution["trace"]
    assert len(trace) == 8 * (execution["figures"]["time"] // 10**9)
    change(one, digest="0" * 32, trace=f"{0:08x}{trace[8:]}", kernel="5.0", controller="1" * 64)
    cli.invoke(["replay", str(one), *store])
    valid, reason = repeatable(folders(tmp_path)[-1])
    assert valid == "unknown"
    assert "equal for 0 s of virtual time, and different before 1 s" in reason
    assert "Labrys has another controller; the kernel was 5.0, and is " in reason


def test_the_first_difference_of_two_more_runs_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something of the machine that changes from run to run is shown where a program meets it."""
    numbers = itertools.count(10)
    original = LinuxWorld.__init__

    def leaking(world: LinuxWorld, *words: object, **more: object) -> None:
        original(world, *words, **more)  # type: ignore[arg-type]
        world.variables["REDISCLI_AUTH"] = str(next(numbers)) * next(numbers)

    monkeypatch.setattr(LinuxWorld, "__init__", leaking)
    store = ("--store", str(tmp_path))
    cli.invoke([*WORDS, *store])
    cli.invoke(["replay", "latest", *store])
    other = folders(tmp_path)[-1]
    valid, reason = repeatable(other)
    assert valid == "unknown"
    assert "The programs did not do the same as in" in reason
    assert "Two more runs differ, too. The first difference is in line " in reason
    assert "in thread 0 of env on n1." in reason
    assert (other / "calls-1.log").exists()
    capsys.readouterr()
    logs = [str(other / name) for name in ("calls-1.log", "calls-2.log")]
    assert cli.invoke(["calls", *logs, "--before", "2", *store]) == 1
    output = capsys.readouterr().out
    assert output.count("both    ") == 2
    assert "first   " in output
    assert "second  " in output
    assert output.splitlines()[-1] in reason


def test_runs_with_the_same_seed_are_compared_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them does the same, and an edited plan is compared with none."""
    store = ("--store", str(tmp_path))
    cli.invoke([*WORDS, *store, "--repeat", "2", "--same-seed"])
    captured = capsys.readouterr()
    assert (captured.out + captured.err).count("repeatable The programs did the same as in") == 1
    with pytest.raises(InputError, match="runs with the same seed are the same run"):
        cli.invoke(
            [
                "test",
                "--cluster",
                "sim",
                "--system",
                "tests.toy_register:ToyRegisters",
                "--repeat",
                "2",
                "--same-seed",
                *store,
            ]
        )


def test_a_log_of_calls_needs_programs(tmp_path: Path) -> None:
    """The error says what has such a log."""
    store = ("--store", str(tmp_path))
    with pytest.raises(InputError, match="--calls needs programs in virtual time"):
        cli.invoke(["test", "--cluster", "sim", "--system", TOY, "--calls", *store])
    with pytest.raises(InputError, match="is neither the folder of a run"):
        cli.invoke(["calls", "latest", "latest", *store])
