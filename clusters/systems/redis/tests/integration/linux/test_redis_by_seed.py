"""Redis as it is released, in virtual time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import cli
from tests.by_seed import (
    SHORT,
    assert_a_seed_repeats,
    assert_an_empty_disk_is_prepared,
    assert_an_error_of_a_sync_is_proven,
    assert_calls_need_no_stop,
    invoked,
)
from tests.documents import is_proven

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("without_plots")]

SYSTEM = ("--system", "redis")
FAULTS = (*SYSTEM, "--nemesis", "kill,partition-random-halves")


def test_a_seed_repeats_the_execution(tmp_path: Path) -> None:
    """Two runs of a seed do the same, and another seed does something else."""
    assert_a_seed_repeats(tmp_path, *FAULTS, seeds=("1", "1", "2"))


def test_calls_need_no_stop(tmp_path: Path) -> None:
    """The programs answer some calls themselves, and do the same as if each of these calls stops."""
    assert_calls_need_no_stop(tmp_path, *FAULTS, least=0.001)


@pytest.mark.parametrize(("fsync", "loses"), [("everysec", True), ("always", False)])
def test_a_power_loss_takes_what_was_not_synced(fsync: str, loses: bool, tmp_path: Path) -> None:
    """Redis acknowledges before it syncs, unless it syncs each write."""
    words = (*SYSTEM, "--fsync", fsync, "--nemesis", "power-loss:all", "--rate", "20", "--time-limit", "12")
    rhythm = ("--fault-on", "1-2", "--fault-off", "1-2", "--fault-quiet", "1-2")
    code, results = invoked(tmp_path, *words, *rhythm, "--seed", "1")
    assert (code == 1) is loses
    (power, *_) = results["faults"]
    assert is_proven(power)
    assert bool(re.search(r"[1-9]\d* bytes in all", power["proof"]["reason"])) is loses


@pytest.mark.parametrize(
    ("kind", "shown"),
    [("file-bitflip", "differ by a bit"), pytest.param("file-truncate", "was cut from", marks=pytest.mark.night)],
)
def test_damaged_files_are_proven(kind: str, shown: str, tmp_path: Path) -> None:
    """What a fault has damaged is read again."""
    _, results = invoked(tmp_path, *SYSTEM, *SHORT, "--nemesis", kind, "--seed", "1")
    (damaged, *_) = results["faults"]
    assert is_proven(damaged)
    assert shown in damaged["proof"]["reason"]
    assert "/var/lib/labrys/redis/" in damaged["proof"]["reason"]


def test_an_error_of_a_sync_is_proven(tmp_path: Path) -> None:
    """The controller names the call that failed, and the program ends."""
    assert_an_error_of_a_sync_is_proven(
        tmp_path,
        *SYSTEM,
        "--fsync",
        "always",
        file="*.aof",
        shown=r"fdatasync 3 of \S+\.aof by redis-server returned EIO",
        says="",
    )


def test_an_empty_disk_comes_with_a_new_process(tmp_path: Path) -> None:
    """`wipe` removes the data of the processes that do not run, and of no other ones."""
    assert_an_empty_disk_is_prepared(tmp_path, *SYSTEM)


def test_lines_of_a_log_have_the_time_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`labrys logs` prints the lines of a time."""
    invoked(tmp_path, *SYSTEM, "--nemesis", "leader-kill", *SHORT, "--seed", "3")
    capsys.readouterr()
    (folder,) = tmp_path.glob("*/2*")
    assert cli.invoke(["logs", str(folder), "--from", "0", "--to", "8", "--store", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert "Connecting to MASTER" in output or "MASTER MODE enabled" in output
