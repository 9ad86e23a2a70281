"""The core that a run shares with the programs of its nodes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from clusters.pipes.live import LiveWorld
from clusters.sim.cores import FOLDER, Core
from clusters.sim.world import SimWorld

if TYPE_CHECKING:
    from pathlib import Path

ALL = os.sched_getaffinity(0)
SHOW = "import os; print(*os.sched_getaffinity(0))"

pytestmark = [
    pytest.mark.skipif(len(ALL) == 1, reason="the machine has one core, which all share"),
    pytest.mark.usefixtures("own_locks"),
]


@pytest.fixture
def own_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Gives the test a cache of its own, so that it does not compete with other runs of this machine."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


async def _cores() -> set[int]:
    return os.sched_getaffinity(0)


def test_each_run_has_a_core_of_its_own_while_one_is_free() -> None:
    """A run without one uses all cores, and the next run takes the core of one that has ended."""

    def taken() -> tuple[Core, set[int]]:
        core = Core()
        return core, os.sched_getaffinity(0)

    pools = [ThreadPoolExecutor(1) for _ in range(len(ALL) + 1)]  # a thread has cores of its own
    try:
        taken_cores = [pool.submit(taken).result() for pool in pools]
        held = [cores for _, cores in taken_cores]
        assert set.union(*held[:-1]) == ALL
        assert all(len(cores) == 1 for cores in held[:-1])
        assert held[-1] == ALL, "no core is free for the last run"

        pools[0].submit(taken_cores[0][0].free).result()
        assert pools[0].submit(os.sched_getaffinity, 0).result() == ALL
        again, cores = pools[-1].submit(taken).result()
        assert cores == held[0]
        pools[-1].submit(again.free).result()
    finally:
        for pool, (core, _) in zip(pools, taken_cores, strict=True):
            pool.submit(core.free).result()
            pool.shutdown()


@pytest.mark.parametrize("number", ["", *map(str, ALL)])
def test_a_core_that_cannot_be_locked_is_not_taken(number: str, tmp_path: Path) -> None:
    """With one such core, a run takes another one. Without a folder for the locks, it has no core of its own."""
    folder = tmp_path / "labrys" / FOLDER
    folder.parent.mkdir()
    if number:
        (folder / number).mkdir(parents=True)
    else:
        folder.touch()
    core = Core()
    mine = os.sched_getaffinity(0)
    core.free()
    assert mine == ALL if not number else (len(mine) == 1 and int(number) not in mine)
    assert os.sched_getaffinity(0) == ALL


def test_a_run_shares_its_core_with_the_programs_that_it_starts() -> None:
    """The thread of the run has all cores again at its end."""
    world = SimWorld(["n1"], seed=1)

    async def main() -> tuple[set[int], str]:
        world.share_core()
        world.share_core()
        shown = subprocess.run([sys.executable, "-c", SHOW], capture_output=True, text=True, check=True)  # noqa: ASYNC221 - virtual time
        return await _cores(), shown.stdout

    mine, of_program = world.run(main())
    assert len(mine) == 1
    assert of_program.split() == [str(core) for core in mine]
    assert os.sched_getaffinity(0) == ALL


def test_the_core_is_free_after_a_run_that_fails() -> None:
    """An error leaves no thread on one core."""
    world = SimWorld(["n1"], seed=1)

    async def main() -> None:
        world.share_core()
        await asyncio.sleep(1)
        raise ValueError("planned")

    with pytest.raises(ValueError, match="planned"):
        world.run(main())
    assert os.sched_getaffinity(0) == ALL


def test_a_world_that_does_not_run_and_one_in_real_time_take_no_core() -> None:
    """Only in virtual time do the programs wait for each other."""
    SimWorld(["n1"], seed=1).share_core()
    assert os.sched_getaffinity(0) == ALL
    live = LiveWorld(["n1"], seed=1)

    async def main() -> set[int]:
        live.share_core()
        return await _cores()

    assert live.run(main()) == ALL
