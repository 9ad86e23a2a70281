"""The harness's own cost per operation: generator, interpreter, history file; with clients that answer at once.

The peer is a bare asyncio loop in the same run. Its workers call the same client and write two lines of JSON per operation,
without generator, time-outs, process numbers or failures. The ratio shows the cost of these. All work is in one thread, so CPU
time is measured. All rows take turns, and each figure is the best of five.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.combinators import limit
from harness.history import HistoryWriter, MemoryHistory, pair, read_history
from harness.interpreter import drive
from harness.load import ClosedLoop, OpenLoop
from harness.node import Node
from harness.op import Invocation, Ok
from workloads.register import RegisterOptions, RegisterWorkload, Values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from harness.generator import Generator
    from harness.history import Recorder
    from harness.load import Load
    from harness.op import Outcome

OPERATIONS = 50_000
REPEATS = 5
WORKERS = 10
NODES = [Node(name=f"n{number}", address=f"192.0.2.{number}") for number in range(1, 6)]
READ = Invocation("read", None, "h0")


class AtOnce:
    """A client that answers at once, without yielding to others."""

    def __init__(self, process: int, node: Node) -> None:  # noqa: ARG002 - all processes are alike
        self.node = node

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Succeeds."""
        return Ok(invocation.value)

    async def close(self) -> None:
        """Does nothing."""


class GivesWay(AtOnce):
    """A client that waits for one turn of the loop, like one with a socket."""

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Succeeds after a turn."""
        await asyncio.sleep(0)
        return Ok(invocation.value)


async def bare(client: type[AtOnce], path: Path) -> None:
    """Runs the operations without the harness."""
    done = 0
    with path.open("w", encoding="ascii") as file:

        async def work(worker: int) -> None:
            nonlocal done
            working = client(worker, NODES[0])
            while done < OPERATIONS:
                done += 1
                for kind in ("invoke", "ok"):
                    event = {"index": done, "time": time.monotonic_ns(), "type": kind, "process": worker, "f": "read"}
                    file.write(json.dumps(event) + "\n")
                    if kind == "invoke":
                        await working.invoke(READ)
                await asyncio.sleep(0)

        await asyncio.gather(*(work(worker) for worker in range(WORKERS)))


async def harnessed(generator: Generator, client: type[AtOnce], load: Load, history: Recorder) -> None:
    """Runs the operations with the harness."""
    result = await drive(
        generator=limit(OPERATIONS, generator),
        clients=client,
        nodes=NODES,
        load=load,
        seed=1,
        clock=Clock(asyncio.get_running_loop()),
        history=history,
        timeout_s=5.0,
        stop=asyncio.Event(),
    )
    if result.operations != OPERATIONS:
        raise RuntimeError(f"expected {OPERATIONS} operations, {result.operations} were done")


def cpu_s(work: Callable[[Path], object]) -> float:
    """Returns the CPU seconds of a piece of work in a new directory."""
    with tempfile.TemporaryDirectory() as directory:
        began = time.process_time()
        work(Path(directory) / "history.jsonl")
        return time.process_time() - began


def best(rows: Mapping[str, Callable[[Path], object]]) -> dict[str, float]:
    """Returns the smallest CPU seconds of each row. The rows take turns."""
    least = dict.fromkeys(rows, float("inf"))
    for _ in range(REPEATS):
        for name, work in rows.items():
            least[name] = min(least[name], cpu_s(work))
    return least


def reads() -> Generator:
    """Returns the cheapest generator."""
    return limit(OPERATIONS, READ)


def registers(options: RegisterOptions | None = None) -> Generator:
    """Returns a realistic generator."""
    return RegisterWorkload(options).generator(seed=1, streams=WORKERS)


def to_file(make: Callable[[], Generator], client: type[AtOnce], load: Load) -> Callable[[Path], None]:
    """Returns a function that writes a history file."""

    def work(path: Path) -> None:
        history = HistoryWriter(path, {})
        asyncio.run(harnessed(make(), client, load, history))
        history.close()

    return work


def main() -> int:
    """Prints the tables."""
    closed, opened = ClosedLoop(concurrency=WORKERS), OpenLoop(rate_per_node=1e7)
    small = RegisterOptions(values=Values.SMALL)
    rows: dict[str, Callable[[Path], object]] = {
        "bare loop, client at once (peer)": lambda path: asyncio.run(bare(AtOnce, path)),
        "bare loop, client gives way (peer)": lambda path: asyncio.run(bare(GivesWay, path)),
        "closed loop, reads, client at once": to_file(reads, AtOnce, closed),
        "closed loop, reads, client gives way": to_file(reads, GivesWay, closed),
        "closed loop, register workload, unique": to_file(registers, GivesWay, closed),
        "closed loop, register workload, small": to_file(lambda: registers(small), GivesWay, closed),
        "closed loop, register, history in memory": lambda _: asyncio.run(
            harnessed(registers(), GivesWay, closed, MemoryHistory())
        ),
        "open loop, register workload, unique": to_file(registers, GivesWay, opened),
    }
    print(f"{OPERATIONS} operations, {WORKERS} workers or {len(NODES)} nodes, Python {sys.version.split()[0]}\n")
    print("| what | operations/s | us/operation | of the peer's speed |")
    print("|---|---:|---:|---:|")
    seconds = best(rows)
    for name, row_s in seconds.items():
        peer = "at once" if "at once" in name else "gives way"
        share = seconds[f"bare loop, client {peer} (peer)"] / row_s
        print(f"| {name} | {OPERATIONS / row_s:,.0f} | {row_s / OPERATIONS * 1e6:.1f} | {share:.2f} |")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.jsonl"
        to_file(registers, GivesWay, closed)(path)
        ops = read_history(path).ops
        parts = best({"reading": lambda _: read_history(path), "pairing": lambda _: pair(ops)})
    print("\n| of a history | events/s |\n|---|---:|")
    for name, part_s in parts.items():
        print(f"| {name} | {len(ops) / part_s:,.0f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
