"""A run of programs in virtual time ends, also if they never stop to write, and Ctrl-C reaches it."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from clusters.pipes import program
from clusters.pipes.cluster import PipesCluster
from clusters.systems.maelstrom.options import MaelstromOptions
from clusters.systems.maelstrom.system import MaelstromSystem
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

# A node that answers `init`, and then does what argv[1] says; `spin` and those below it when it gets its own message.
NODE = """#!{python}
import json, os, signal, sys, time
def say(dest, **body): print(json.dumps({{"src": "n0", "dest": dest, "body": body}}), flush=True)
for line in sys.stdin:
    body = json.loads(line)["body"]
    if body["type"] == "init": say("c0", type="init_ok", in_reply_to=body["msg_id"])
    while sys.argv[1] == "flood": print("x")
    if sys.argv[1] == "timer": say("timer", type="wait", ms=0, msg_id=1)
    if body["type"] == "init" or sys.argv[1] == "itself": say("n0", type="again")
    if body["type"] == "init": continue
    while sys.argv[1] == "spin": pass
    while sys.argv[1] == "stderr": print("x", file=sys.stderr, flush=True)
    if sys.argv[1] == "wide":
        for _ in range(64): sys.stderr.buffer.write(b"x" * (1 << 20))
        print("\\nthe next line", file=sys.stderr, flush=True)
    if sys.argv[1] == "long":
        for number in range(100): print(number, "x" * 100, file=sys.stderr)
    if sys.argv[1] == "sleep": time.sleep(600)
    if sys.argv[1] == "stop": os.kill(os.getpid(), signal.SIGSTOP)
"""


LIMIT_S = 10.0  # less than Labrys waits until a program is quiet


def on_node(
    folder: Path, what: str, main: Callable[[MaelstromSystem], Coroutine[Any, Any, None]]
) -> tuple[MaelstromSystem, str]:
    """Starts one node in virtual time, and runs a coroutine. Returns the system, and the log of the node."""
    path = folder / "node.py"
    path.write_text(NODE.format(python=sys.executable))
    path.chmod(0o755)
    cluster = PipesCluster(["n0"], 6, virtual=True)
    system = MaelstromSystem(cluster, MaelstromOptions(bin=f"{path} {what}", latency=0.0), "echo")

    async def run() -> None:
        system.start(system.nodes[0])
        await main(system)

    try:
        cluster.world.run(run())
    finally:
        cluster.close()
    return system, "\n".join(cluster.world.machines["n0"].lines)


@pytest.mark.parametrize("what", ["flood", "timer"])
def test_a_program_that_stops_the_time_ends(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its log and the part `protocol` say why. The time then goes on."""
    monkeypatch.setattr(program, "MAX_IN_SECOND", 500)

    async def main(_: MaelstromSystem) -> None:
        await asyncio.sleep(10)

    system, log = on_node(tmp_path, what, main)
    expected = "wrote more than 500 lines in a second of virtual time; does each message cause another one?"
    (part,) = system.own_parts()
    assert part.verdict is Verdict.INVALID
    assert any(detail["kind"] == "crash" and expected in detail["why"] for detail in part.details["against_protocol"])
    assert f"FATAL the program {expected}" in log


@pytest.mark.parametrize("what", ["itself", "spin", "stderr", "sleep"])
def test_a_signal_reaches_a_run_in_which_little_time_passes(what: str, tmp_path: Path) -> None:
    """A message takes 10 µs, so the hour of virtual time would take days. It passes as real time if a program is not quiet.

    Labrys waits up to half a minute until a program is quiet, and longer for the next event, but not after a signal.
    """
    seen: list[float] = []
    begin_s = time.monotonic()

    async def main(_: MaelstromSystem) -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def on_signal() -> None:
            seen.append(time.monotonic())
            stop.set()

        loop.add_signal_handler(signal.SIGUSR1, on_signal)
        timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGUSR1])
        timer.start()
        try:
            await asyncio.wait_for(stop.wait(), 3600)
        finally:
            timer.join()
            loop.remove_signal_handler(signal.SIGUSR1)

    _, log = on_node(tmp_path, what, main)
    assert len(seen) == 1
    assert seen[0] - begin_s < LIMIT_S
    assert "FATAL" not in log


def test_a_program_that_has_stopped_itself_does_not_stop_the_time(tmp_path: Path) -> None:
    """It does nothing until another process lets it go on, as one that waits for input."""

    async def main(system: MaelstromSystem) -> None:
        await system.until_ready(system.nodes, 10)
        await asyncio.sleep(3600)

    begin_s = time.monotonic()
    _, log = on_node(tmp_path, "stop", main)
    assert time.monotonic() - begin_s < LIMIT_S
    assert "as fast as real time" not in log


def test_a_line_of_stderr_takes_little_memory(tmp_path: Path) -> None:
    """A program can write without an end of a line. The log has the beginning of the line, and the next one."""

    async def main(system: MaelstromSystem) -> None:
        await system.until_ready(system.nodes, 10)
        tracemalloc.start()
        await asyncio.sleep(1)

    try:
        _, log = on_node(tmp_path, "wide", main)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 16 << 20
    wide, following = log.splitlines()[-2:]
    assert wide.endswith(" " + "x" * program.MAX_LOG_LINE)
    assert following.endswith(" the next line")


@pytest.mark.parametrize(("limit", "value", "lines"), [("MAX_LOG_LINES", 20, 20), ("MAX_LOG", 1000, 10)])
def test_the_log_of_a_node_has_an_end(
    limit: str, value: int, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many lines, and after so many characters. A note says that the rest is lost."""
    monkeypatch.setattr(program, limit, value)

    async def main(system: MaelstromSystem) -> None:
        await system.until_ready(system.nodes, 10)
        await asyncio.sleep(1)

    _, log = on_node(tmp_path, "long", main)
    *kept, note = log.splitlines()[1:]
    assert len(kept) == lines
    assert "of stderr; the rest is lost" in note
