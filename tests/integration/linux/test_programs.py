"""Programs that Labrys starts with asyncio, and tools of systems: both run in virtual time, and a seed repeats them."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from clusters.kit.answers import NoAnswer
from clusters.kit.client_program import ClientProgram, copied
from clusters.sim.linux.cluster import LinuxCluster
from harness.daemon import processes_of
from harness.errors import CommandFailed, CommandTimeout, InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

pytestmark = pytest.mark.integration
T = TypeVar("T")
PYTHON = (os.path.realpath(sys.executable), "-I", "-S", "-B", "-c")
ECHO = """
import sys, time
for line in sys.stdin:
    print(line.strip(), time.time(), flush=True)
print("over", flush=True)
sys.exit(3)
"""


def ran(main: Callable[[LinuxCluster], Coroutine[Any, Any, T]], seed: int = 1) -> tuple[T, str]:
    """Runs a coroutine in virtual time. Returns its result, and the digest of what the programs did."""
    cluster = LinuxCluster(["n1"], seed)
    try:
        with cluster.entered():
            return cluster.world.run(main(cluster)), cluster.world.execution().digest
    finally:
        cluster.close()


def test_a_program_reads_and_writes_lines_in_virtual_time() -> None:
    """Its lines come in the time of the run, its input ends, its last output and its status come; and a seed repeats it."""

    async def talk(_: LinuxCluster) -> list[Any]:
        started = await asyncio.create_subprocess_exec(*PYTHON, ECHO, stdin=PIPE, stdout=PIPE)
        assert started.stdin is not None
        assert started.stdout is not None
        said = []
        for word in (b"one\n", b"two\n"):
            started.stdin.write(word)
            await started.stdin.drain()
            said.append((await started.stdout.readline()).split())
            await asyncio.sleep(1)
        started.stdin.write_eof()
        return [said, await started.stdout.read(), await started.wait(), asyncio.get_running_loop().time()]

    (said, rest, status, now_s), digest = ran(talk)
    (one, first_s), (two, second_s) = said
    assert (one, two, rest, status) == (b"one", b"two", b"over\n", 3)
    assert 1.0 < float(second_s) - float(first_s) < 1.01
    assert 2.0 < now_s < 2.01
    again, same = ran(talk)
    assert (again, same) == ([said, rest, status, now_s], digest)


def test_a_program_can_be_killed_and_knows_nothing_of_this_process() -> None:
    """A kill ends it. It has the variables that it is given, and no others of Labrys; what cannot be had is refused."""

    async def act(_: LinuxCluster) -> tuple[int, float, bytes]:
        sleeping = await asyncio.create_subprocess_exec("/usr/bin/sleep", "100", stdin=PIPE, stdout=PIPE)
        await asyncio.sleep(1)
        sleeping.kill()
        status, now_s = await sleeping.wait(), asyncio.get_running_loop().time()
        variables = {**os.environ, "GIVEN": "yes"}
        shown = await asyncio.create_subprocess_exec("/usr/bin/env", stdin=PIPE, stdout=PIPE, env=variables)
        assert shown.stdout is not None
        with pytest.raises(NotImplementedError, match="expected a program in virtual time with pipes"):
            await asyncio.create_subprocess_exec("/usr/bin/true", stdin=PIPE, stdout=PIPE, cwd="/root")
        shell = await asyncio.create_subprocess_shell("hostname", stdin=PIPE, stdout=PIPE)
        assert shell.stdout is not None
        assert await shell.stdout.read() == b"control\n"
        return status, now_s, await shown.stdout.read()

    (status, now_s, shown), _ = ran(act)
    assert status == -9
    assert now_s < 1.1
    names = {line.partition(b"=")[0] for line in shown.splitlines()}
    assert b"GIVEN" in names
    assert b"VIRTUAL_ENV" not in names
    assert b"PYTEST_CURRENT_TEST" not in names


def test_a_tool_runs_in_the_time_of_the_run() -> None:
    """It sees the clock and the chance of the simulation; a failure and a time limit are those of a command."""

    async def act(cluster: LinuxCluster) -> list[Any]:
        processes, loop = processes_of(cluster, cluster.nodes[0]), asyncio.get_running_loop()
        date = "sleep 5; date +%s; head -c 4 /dev/urandom | od -An -tx4; echo wrong >&2"
        done = await asyncio.to_thread(processes.tool, date, 30.0)
        after_s = loop.time()
        with pytest.raises(CommandFailed, match="ended with status 7: no"):
            await asyncio.to_thread(processes.tool, "echo no >&2; exit 7", 30.0)
        with pytest.raises(CommandTimeout):
            await asyncio.to_thread(processes.tool, "sleep 100", 10.0)
        return [done.stdout.split(), done.stderr, after_s, loop.time()]

    outcome, digest = ran(act)
    (date, drawn), errors, after_s, end_s = outcome
    assert (date, errors) == ("1700000005", "wrong\n")
    assert 5.0 < after_s < 5.1
    assert 15.0 < end_s < 15.2
    assert ran(act) == (outcome, digest)
    assert ran(act, seed=2)[0][0] != [date, drawn]


MAIN = """
import json, sys

def main():
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "end":
            sys.exit(5)
        found = {"error": "no"} if request["do"] == "fail" else {"ok": request["do"]}
        print(json.dumps({"id": request["id"], **found}), flush=True)
"""


def test_a_client_program_answers_requests_until_it_ends(tmp_path: Path) -> None:
    """Answers have the number of their request; an error is an answer that is missing, and an end ends the run."""
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("")
    (tmp_path / "program" / "main.py").write_text(MAIN)

    async def act(_: LinuxCluster) -> list[Any]:
        program = ClientProgram(tmp_path / "program", ())
        answers = await asyncio.gather(*(program.ask({"do": word}) for word in ("one", "two")))
        with pytest.raises(NoAnswer, match="no"):
            await program.ask({"do": "fail"})
        with pytest.raises(InfrastructureError, match="ended with status 5"):
            await program.ask({"do": "end"})
        return answers

    (answers, digest) = ran(act)
    assert answers == ["one", "two"]
    assert ran(act) == (answers, digest)


def test_a_client_program_needs_its_library(tmp_path: Path) -> None:
    """The error names the package."""
    with pytest.raises(InfrastructureError, match="the package no_such_package is not installed"):
        copied(tmp_path, ("no_such_package",))
    assert Path(PYTHON[0]).exists()
