"""The client against a store in this process: each outcome, and a run that must be linearizable."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest
from labrys_kv_store.client import CLIENTS, KvStoreRegisters
from labrys_kv_store.server import make_server

from clusters.kit import conformance
from harness.clock import Clock
from harness.combinators import limit
from harness.history import MemoryHistory, pair
from harness.interpreter import drive
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import Fail, Info, Invocation, Ok
from harness.verdict import Verdict, worst
from harness.workload import Observed
from workloads.register import RegisterWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from harness.op import Operation, Outcome

PRIMARY = "127.0.0.1"


@contextlib.contextmanager
def store(nodes: int = 3) -> Iterator[tuple[list[Node], int]]:
    """Runs a server for each node on loopback; yields the nodes and their port."""
    first = make_server(PRIMARY, 0, primary=PRIMARY)
    port = int(first.server_address[1])
    servers = [first, *(make_server(f"127.0.0.{number}", port, primary=PRIMARY) for number in range(2, nodes + 1))]
    threads = [threading.Thread(target=server.serve_forever, daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield [Node(name=f"n{number}", address=f"127.0.0.{number}") for number in range(1, nodes + 1)], port
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def ask(node: Node, port: int, f: str, value: object = None) -> Outcome:
    """Carries out one operation."""
    return asyncio.run(KvStoreRegisters(node, port).invoke(Invocation(f, value, "k")))


@pytest.mark.parametrize(("workload", "law"), conformance.cases(CLIENTS), ids=conformance.name)
def test_clients_keep_the_laws(workload: str, law: conformance.Law) -> None:
    """Whichever node answers."""
    with store() as (nodes, port):
        asyncio.run(law(conformance.Bench(nodes=nodes, client=lambda _process, node: CLIENTS[workload](node, port))))


def test_each_operation_has_its_answer() -> None:
    """The primary answers itself, and the other nodes forward."""
    with store() as (nodes, port):
        assert ask(nodes[1], port, "read") == Ok(None)
        assert ask(nodes[0], port, "write", 1) == Ok(1)
        assert ask(nodes[2], port, "cas", [1, 2]) == Ok([1, 2])
        assert ask(nodes[0], port, "cas", [1, 3]) == Fail("cas-mismatch: it does not hold 1")
        assert ask(nodes[1], port, "read") == Ok(2)


def test_only_a_write_that_never_happens_fails() -> None:
    """If the connection to the node or to the primary fails, the write was not sent."""
    with store(nodes=1) as (_, port):
        outcome = ask(Node(name="n9", address="127.0.0.9"), port, "write", 1)
        assert isinstance(outcome, Fail)
    alone = make_server("127.0.0.2", 0, primary="127.0.0.3")
    threading.Thread(target=alone.serve_forever, daemon=True).start()
    outcome = ask(Node(name="n2", address="127.0.0.2"), int(alone.server_address[1]), "write", 1)
    alone.shutdown()
    assert isinstance(outcome, Fail)
    assert outcome.error.startswith("no-primary: ")
    assert set(KvStoreRegisters.never_happened) == {"503"}


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n{"])
def test_a_write_without_a_whole_answer_may_have_happened(answer: bytes) -> None:
    """A node that was killed closes the connection, before its answer or in the middle of it."""

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

    with socket.create_server((PRIMARY, 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        node, port = Node(name="n1", address=PRIMARY), int(listener.getsockname()[1])
        assert isinstance(ask(node, port, "write", 1), Info)
        assert isinstance(ask(node, port, "read"), Fail)
        thread.join(10)


def test_a_run_without_faults_is_linearizable() -> None:
    """Six workers carry out 300 operations, and the workload judges them as in `labrys test`."""
    workload = RegisterWorkload()
    with store() as (nodes, port):
        operations = asyncio.run(carry_out(workload, nodes, port))
    assert len(operations) == 300
    parts = workload.check(operations, Observed())
    assert worst(part.verdict for part in parts) is Verdict.VALID, parts


async def carry_out(workload: RegisterWorkload, nodes: list[Node], port: int) -> Sequence[Operation]:
    """Drives the clients in real time, and returns their operations."""
    history = MemoryHistory()
    await drive(
        generator=limit(300, workload.generator(seed=1, streams=6)),
        clients=lambda process, node: KvStoreRegisters(node, port),
        nodes=nodes,
        load=ClosedLoop(concurrency=6),
        seed=1,
        clock=Clock(asyncio.get_running_loop()),
        history=history,
        timeout_s=20.0,
        stop=asyncio.Event(),
    )
    return pair(history.ops)
