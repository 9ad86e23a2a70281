"""A run of programs in virtual time ends, also if they never stop to write, and Ctrl-C reaches it."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
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

# A node that answers `init`, and then does what argv[1] says.
NODE = """#!{python}
import json, sys
def say(dest, **body): print(json.dumps({{"src": "n0", "dest": dest, "body": body}}), flush=True)
for line in sys.stdin:
    body = json.loads(line)["body"]
    if body["type"] == "init": say("c0", type="init_ok", in_reply_to=body["msg_id"])
    while sys.argv[1] == "flood": print("x")
    if sys.argv[1] == "timer": say("timer", type="wait", ms=0, msg_id=1)
    if sys.argv[1] == "itself": say("n0", type="again")
"""


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
    assert any(each["kind"] == "crash" and expected in each["why"] for each in part.details["against_protocol"])
    assert f"FATAL the program {expected}" in log


def test_a_signal_reaches_a_run_in_which_little_time_passes(tmp_path: Path) -> None:
    """A message takes 10 µs, so the hour of virtual time would take days."""
    seen: list[float] = []

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

    _, log = on_node(tmp_path, "itself", main)
    assert len(seen) == 1
    assert "FATAL" not in log
