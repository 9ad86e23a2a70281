"""Messages per second through the router of programs with pipes, in real and in virtual time.

Two programs throw balls to each other as fast as the router carries them; each ball is a message. A message counts when it has
been read from a program, checked, written into a transcript, sent through the network, and written to the other program.

The peer is a bare loop in the same run: it carries the same lines between the same programs, with two reads and two writes, and
looks at nothing. All rows take turns, and each figure is the best of some. Maelstrom says of itself that it carries over 60,000
messages a second on a Xeon with 48 processors (its README). That is no measurement of here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.pipes.cluster import PipesCluster
from clusters.systems.maelstrom.options import MaelstromOptions
from clusters.systems.maelstrom.system import MaelstromSystem

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES: Final = ("n0", "n1")
PROGRAM: Final = Path(__file__).with_name("balls.py")
FEW, MANY = 1, 100  # balls of each program
WARM_S: Final = 0.2
READY_S: Final = 10.0
CHUNK: Final = 1 << 16
# In virtual time, a ball takes so many milliseconds, so a second has fewer lines than a program may write.
LATENCY_MS: Final = {FEW: 1.0, MANY: 10.0}


def routed(balls: int, seconds: float, *, virtual: bool) -> tuple[float, float]:
    """Returns the messages per second through the router, and the share of the time in which this process computed.

    Args:
        balls: The number of balls of each program.
        seconds: How long it measures at least.
        virtual: Whether in virtual time.
    """
    cluster = PipesCluster(NAMES, 1, virtual=virtual)
    latency = LATENCY_MS[balls] if virtual else 0.0
    options = MaelstromOptions(bin=f"{sys.executable} {PROGRAM} {balls}", latency=latency)
    system = MaelstromSystem(cluster, options, "echo")
    carried = spent_s = computed_s = 0.0

    async def main() -> None:
        nonlocal carried, spent_s, computed_s
        for node in system.nodes:
            system.start(node)
        await system.until_ready(system.nodes, READY_S)
        await asyncio.sleep(WARM_S)
        before, began_s, began_cpu_s = _messages(system), time.perf_counter(), time.process_time()
        while time.perf_counter() < began_s + seconds:  # noqa: ASYNC110 - in virtual time too, it is real time that counts
            await asyncio.sleep(WARM_S)
        spent_s, computed_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
        carried = _messages(system) - before

    try:
        cluster.world.run(main())
    finally:
        cluster.close()
    return carried / spent_s, computed_s / spent_s


def _messages(system: MaelstromSystem) -> int:
    """Returns how many messages the programs have written so far."""
    (part,) = system.own_parts()
    count = part.details["messages"]
    if not isinstance(count, int):
        raise TypeError(f"expected the number of messages, not {count!r}")
    return count


def bare(balls: int, seconds: float) -> tuple[float, float]:
    """Returns the same for a loop that copies the lines and looks at nothing."""
    programs = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(balls)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        for _ in NAMES
    ]
    carried = 0
    try:
        out, into = [], []
        for name, program in zip(NAMES, programs, strict=True):
            if program.stdin is None or program.stdout is None:
                raise RuntimeError("a program has no pipes")
            out.append(program.stdout.fileno())
            into.append(program.stdin.fileno())
            body = {"type": "init", "msg_id": 1, "node_id": name, "node_ids": NAMES}
            os.write(into[-1], json.dumps({"src": "c0", "dest": name, "body": body}).encode() + b"\n")
        poll = select.poll()
        for descriptor in out:
            poll.register(descriptor, select.POLLIN)
        begin_s = time.perf_counter() + WARM_S
        began_cpu_s = time.process_time()
        began = False
        while (now_s := time.perf_counter()) < begin_s + seconds:
            if not began and now_s >= begin_s:
                began, carried, begin_s, began_cpu_s = True, 0, now_s, time.process_time()
            for descriptor, _ in poll.poll(100):
                data = os.read(descriptor, CHUNK)
                carried += data.count(b"\n")
                os.write(into[1 - out.index(descriptor)], data)
        spent_s = time.perf_counter() - begin_s
        return carried / spent_s, (time.process_time() - began_cpu_s) / spent_s
    finally:
        for program in programs:
            program.kill()
            program.wait()
            for pipe in (program.stdin, program.stdout):
                if pipe is not None:
                    pipe.close()


def main() -> int:
    """Prints the table; returns 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each row is measured")
    parser.add_argument("--repeats", type=int, default=3, help="how often each row is measured")
    given = parser.parse_args()
    rows: dict[str, tuple[int, Callable[[int], tuple[float, float]]]] = {}
    for balls in (FEW, MANY):
        rows[f"bare loop (peer), {2 * balls} in flight"] = (balls, lambda n: bare(n, given.seconds))
        rows[f"real time, {2 * balls} in flight"] = (balls, lambda n: routed(n, given.seconds, virtual=False))
        rows[f"virtual time, {2 * balls} in flight"] = (balls, lambda n: routed(n, given.seconds, virtual=True))
    best: dict[str, tuple[float, float]] = {}
    for _ in range(given.repeats):
        for name, (balls, measured) in rows.items():
            best[name] = max(best.get(name, (0.0, 0.0)), measured(balls))
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors, best of {given.repeats}\n")
    print("| what | messages/s | of the peer's speed | this process computed |")
    print("|---|---:|---:|---:|")
    for name, (speed, computed) in best.items():
        peer = best[f"bare loop (peer), {2 * rows[name][0]} in flight"][0]
        print(f"| {name} | {speed:,.0f} | {speed / peer:.2f} | {computed:.0%} of the time |")
    print(
        "\nMaelstrom quotes over 60,000 messages/s for itself, on 48 processors (its README); that was not measured here."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
