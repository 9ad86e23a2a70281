"""BookKeeper's client side: what an answer of a client process means, and how logs are made of ledgers."""

from __future__ import annotations

import asyncio
import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from clusters.systems.bookkeeper import process as module
from clusters.systems.bookkeeper.chains import Chains
from clusters.systems.bookkeeper.fences import Fences
from clusters.systems.bookkeeper.ledger_client import BookKeeperLedgers
from clusters.systems.bookkeeper.log_client import BookKeeperLogs
from clusters.systems.bookkeeper.options import BookKeeperOptions
from clusters.systems.bookkeeper.reads import BEYOND
from clusters.systems.bookkeeper.system import BookKeeperSystem
from harness.errors import InputError
from harness.node import Node
from harness.op import ONLY_KEY, Fail, Info, Invocation, Ok
from workloads.ledger.inspection import inspection_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Outcome

FENCED, CLOSED = -101, -11


class KnownFences(Fences):
    """Fences that are known without a bookie."""

    def __init__(self) -> None: ...

    async def of(self, _: int) -> tuple[list[list[str | int]], list[str]]:
        """Returns one fence, and a bookie whose log could not be read."""
        return [["n1", 12, "n4"]], ["n2"]


class Ledgers:
    """Ledgers in memory, as a client process serves them. Two addresses are two processes."""

    def __init__(self) -> None:
        self.entries: list[list[str]] = []
        self.closed: set[int] = set()
        self.lists: dict[str, tuple[int, str]] = {}
        self.answer: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None  # in place of the own answer

    def carry_out(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the answer to a request."""
        instead = self.answer(request)
        if instead is not None:
            return instead
        ledger = request.get("ledger", 0)
        if request["do"] == "append" and ledger in self.closed:
            return {"code": FENCED, "error": "fenced"}
        return {"ok": getattr(self, request["do"])(request, ledger)}

    def create(self, *_: object) -> int:
        """Creates a ledger."""
        self.entries.append([])
        return len(self.entries) - 1

    def append(self, request: dict[str, Any], ledger: int) -> int:
        """Appends an entry."""
        self.entries[ledger].append(request["body"])
        return len(self.entries[ledger]) - 1

    def recover(self, _: object, ledger: int) -> int:
        """Ends a ledger."""
        self.closed.add(ledger)
        return len(self.entries[ledger]) - 1

    close = recover

    def confirmed(self, _: object, ledger: int) -> int:
        """Returns the last confirmed entry."""
        return len(self.entries[ledger]) - 1

    def read(self, request: dict[str, Any], ledger: int) -> list[str]:
        """Returns a range of entries."""
        return self.entries[ledger][request["first"] : request["last"] + 1]

    def get(self, request: dict[str, Any], _: int) -> dict[str, Any]:
        """Returns a list."""
        version, text = self.lists.get(request["name"], (-1, ""))
        return {"version": version, "text": text}

    def put(self, request: dict[str, Any], _: int) -> int:
        """Changes a list by compare-and-set."""
        version, _old = self.lists.get(request["name"], (-1, ""))
        if version != request["version"]:
            return -1
        self.lists[request["name"]] = version + 1, request["text"]
        return version + 1


def run(monkeypatch: pytest.MonkeyPatch, ledgers: Ledgers, play: Callable[[list[Node]], Any]) -> Any:
    """Runs a coroutine with two nodes whose client processes serve the ledgers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            answer = ledgers.carry_out(json.loads(line))
            if "raw" in answer:
                writer.write(answer["raw"])
                break
            writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def all_of_it() -> Any:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            monkeypatch.setattr(module, "PORT", server.sockets[0].getsockname()[1])
            return await play([Node(name="n4", address="127.0.0.1"), Node(name="n5", address="127.0.0.1")])

    return asyncio.run(all_of_it())


def log_client(
    nodes: list[Node], chains: Chains, node: int = 0, *, take_over: float = 0, final: bool = False
) -> BookKeeperLogs:
    """A client of logs."""
    return BookKeeperLogs(
        node=nodes[node],
        nodes=nodes,
        bookies={"b3": "n3"},
        chains=chains,
        take_over=take_over,
        draws=random.Random(1),
        final=final,
    )


def test_a_log_goes_on_in_a_new_ledger_after_a_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offset tells the place of the ledger and the entry, and a read covers both ledgers."""
    ledgers = Ledgers()

    async def play(nodes: list[Node]) -> list[Outcome]:
        chains = Chains(BookKeeperOptions())
        first, second = log_client(nodes, chains), log_client(nodes, chains, 1, take_over=1)
        outcomes = [
            await first.invoke(Invocation("append", 7)),
            await first.invoke(Invocation("append", 8)),
            await second.invoke(Invocation("append", 9)),
            await first.invoke(Invocation("append", 10)),
        ]
        assert first.via == "n5"  # it knows the new writer
        outcomes += [await first.invoke(Invocation("read", value)) for value in ([1, 2000], 1000)]
        assert first.via is None
        for client in (first, second):
            await client.close()
        return outcomes

    offsets = [Ok(0, order=0), Ok(1, order=1), Ok(1000, order=1000), Ok(1001, order=1001)]
    assert run(monkeypatch, ledgers, play) == [*offsets, Ok([[1, 8], [1000, 9], [1001, 10]]), Ok(9)]
    assert ledgers.closed == {0}


def test_a_writer_begins_the_next_ledger_when_one_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two entries in each ledger, the third append goes to the second ledger; the first is closed."""
    ledgers = Ledgers()

    async def play(nodes: list[Node]) -> list[Outcome]:
        client = log_client(nodes, Chains(BookKeeperOptions(ledger_entries=2)))
        return [await client.invoke(Invocation("append", value)) for value in range(3)]

    assert [outcome.value for outcome in run(monkeypatch, ledgers, play)] == [0, 1, 1000]
    assert ledgers.closed == {0}


def test_an_append_is_a_fail_only_before_it_was_given_to_bookkeeper(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the take-over is a fail; each code and each lost answer of the append itself is info."""
    cases: list[tuple[str, dict[str, Any], type[Outcome], str]] = [
        ("create", {"code": -6, "error": "x"}, Fail, "not-enough-bookies"),
        ("get", {"raw": b""}, Fail, "no-answer"),
        ("put", {"ok": -1}, Fail, "list-changed"),
        ("append", {"code": FENCED, "error": "x"}, Info, "ledger-fenced"),
        ("append", {"code": CLOSED, "error": "x"}, Info, "ledger-closed"),
        ("append", {"code": -999, "error": "x"}, Info, "code-999"),
        ("append", {"refused": "no-handle", "error": "x"}, Fail, "no-handle"),
        ("append", {"raw": b"}{\n"}, Info, "no-answer"),
        ("append", {"raw": b""}, Info, "no-answer"),
        ("append", {"ok": -5}, Info, "no-answer"),
        ("append", {"error": "an error without a code"}, Info, "no-answer"),
    ]
    for at, answer, kind, code in cases:
        ledgers = Ledgers()
        ledgers.answer = lambda request, at=at, answer=answer: answer if request["do"] == at else None  # type: ignore[misc]

        async def play(nodes: list[Node]) -> Outcome:
            client = log_client(nodes, Chains(BookKeeperOptions()))
            return await client.invoke(Invocation("append", 7))

        outcome = run(monkeypatch, ledgers, play)
        assert isinstance(outcome, kind), (at, answer, outcome)
        assert isinstance(outcome, (Fail, Info))
        assert outcome.error.startswith(f"{code}: "), outcome


@pytest.mark.parametrize(
    ("of_second", "read"),
    [
        ([["b1", "x", 0, True], ["b2", "x", 0, True]], [[0, 7], [1, 8]]),
        ([["b1", None, -13, True], ["b2", "x", 0, True]], [[0, 7], [1, 8]]),
        ([["b1", None, -8, True], ["b2", "x", 0, True]], [[0, 7], [1, 8]]),
        ([["b1", None, -13, True], ["b2", None, -7, True]], [[0, 7]]),
        ([["b1", "y", 0, True], ["b2", "x", 0, True]], [[0, 7], [1, 8], [1, 9]]),
        ([["b1", None, -13, True], ["b2", None, -8, True]], "bookie-not-available"),
        ([["b1", None, -13, True], ["b3", "x", 0, False]], [[0, 7]]),
        ([["b1", "x", 0, True], ["b3", "y", 0, False]], [[0, 7], [1, 8], [1, 9]]),
        ([["b1", "x", 0, True], ["b3", None, -8, False]], [[0, 7], [1, 8]]),
        ([["b1", None]], "no-answer"),
    ],
    ids=[
        "equal",
        "one lacks it",
        "one is silent",
        "all lack it",
        "different",
        "maybe there",
        "only at another bookie",
        "different at another bookie",
        "another bookie is silent",
        "unreadable",
    ],
)
def test_a_final_read_takes_each_entry_from_all_its_bookies(
    monkeypatch: pytest.MonkeyPatch, of_second: list[list[Any]], read: Any
) -> None:
    """It first recovers the ledger. An entry is missing only if all bookies say so, and two values are both returned."""
    ledgers = Ledgers()
    bodies = {name: json.dumps({"key": None, "value": value}) for name, value in (("x", 8), ("y", 9))}
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        asked.append(request["do"])
        if request["do"] != "copies":
            return None
        copies = [[0, "b1", ledgers.entries[0][0], 0, True]]
        copies += [[1, *[bodies.get(part, part) for part in copy]] for copy in of_second]
        return {"ok": copies}

    ledgers.answer = answer

    async def play(nodes: list[Node]) -> Outcome:
        chains = Chains(BookKeeperOptions())
        writer = log_client(nodes, chains)
        for value in (7, 8):
            await writer.invoke(Invocation("append", value))
        asked.clear()
        return await log_client(nodes, chains, 1, final=True).invoke(Invocation("read", [0, 999]))

    outcome = run(monkeypatch, ledgers, play)
    assert asked == ["get", "recover", "copies"]
    if isinstance(read, str):
        assert isinstance(outcome, Fail)
        assert outcome.error.startswith(f"{read}: ")
    else:
        assert outcome == Ok(read)


def test_an_inspection_has_the_metadata_the_copies_on_all_bookies_and_the_fences(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bookies have the names of their nodes. Entry 2 is after the last one, and nobody has entry 3."""
    ledgers = Ledgers()
    asked: list[Any] = []
    fragments = [{"0": ["b1", "b2"]}, {"0": ["b1", "b2"], "1": ["b1", "b3"]}]

    def answer(request: dict[str, Any]) -> dict[str, Any] | None:
        if request["do"] == "metadata":
            ensembles = fragments[min(1, sum(name == "metadata" for name in asked))]
            asked.append("metadata")
            return {"ok": {"state": "CLOSED", "writeQuorum": 2, "ackQuorum": 1, "last": 1, "ensembles": ensembles}}
        if request["do"] != "copies":
            return None
        asked.append((request["last"], request["bookies"]))
        x, y = ledgers.entries[0]
        here, missing = ["b1", x, 0, True], ["b2", None, -13, True]
        second = [[1, "b1", y, 0, True], [1, "b3", None, -8, True]]
        return {
            "ok": [[0, *here], [0, *missing], [0, "b3", x, 0, False], *second, [2, "b2", x, 0, True], [3, *missing]]
        }

    ledgers.answer = answer

    async def play(nodes: list[Node]) -> list[Outcome]:
        bookies = {f"b{number}": f"n{number}" for number in (1, 2, 3)}
        chains = Chains(BookKeeperOptions())
        client = BookKeeperLedgers(
            node=nodes[0], nodes=nodes, bookies=bookies, chains=chains, fences=KnownFences(), final=True
        )
        for value in (7, 8):
            await client.invoke(Invocation("append", value, "l0"))
        return [await client.invoke(Invocation("inspect", None, "l0")) for _ in range(2)]

    changed, inspected = run(monkeypatch, ledgers, play)
    assert changed == Fail("no-answer: the metadata of the ledger changed meanwhile")
    assert asked[1] == (1 + BEYOND, ["b1", "b2", "b3"])
    assert inspected.value == {
        "ledger": 0,
        "state": "CLOSED",
        "write": 2,
        "ack": 1,
        "last": 1,
        "fragments": [[0, ["n1", "n2"]], [1, ["n1", "n3"]]],
        "entries": [[0, [[7, ["n1", "n3"]]], []], [1, [[8, ["n1"]]], ["n3"]], [2, [[7, ["n2"]]], []]],
        "fences": [["n1", 12, "n4"]],
        "unread": ["n2"],
    }
    assert inspection_of(inspected.value) is not None


def test_a_ledger_has_one_writer_which_goes_on_to_append_after_a_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sees whether bookies refuse these appends."""
    ledgers = Ledgers()

    async def play(nodes: list[Node]) -> list[Outcome]:
        chains = Chains(BookKeeperOptions())
        writer = BookKeeperLedgers(
            node=nodes[0], nodes=nodes, bookies={}, chains=chains, fences=KnownFences(), final=False
        )
        other = BookKeeperLedgers(
            node=nodes[1], nodes=nodes, bookies={}, chains=chains, fences=KnownFences(), final=False
        )
        asked = [
            (other, "confirmed", None), (writer, "append", 7), (other, "append", 8), (other, "confirmed", None),
            (other, "recover", None), (writer, "append", 9), (other, "read", [0, 9]),
        ]  # fmt: skip
        return [await client.invoke(Invocation(f, value, "l0")) for client, f, value in asked]

    none, *rest, refused, read = run(monkeypatch, ledgers, play)
    assert none.error.startswith("no-ledger: ")
    assert rest == [Ok(0, order=0), Ok(1, order=1), Ok(1), Ok(1)]
    assert refused.error.startswith("ledger-fenced: ")
    assert read == Ok([[0, 7], [1, 8]])


def test_the_list_of_a_single_ledger_is_asked_for_until_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first append asks, too. Afterwards, no client of the run asks again."""
    ledgers = Ledgers()
    asked: list[str] = []

    def answer(request: dict[str, Any]) -> None:
        asked.append(request["do"])

    ledgers.answer = answer

    async def play(nodes: list[Node]) -> None:
        chains = Chains(BookKeeperOptions())
        one, other = (
            BookKeeperLedgers(node=node, nodes=nodes, bookies={}, chains=chains, fences=KnownFences(), final=False)
            for node in nodes[:2]
        )
        await one.invoke(Invocation("confirmed", None, "l0"))
        await one.invoke(Invocation("append", 7, "l0"))
        for client in (one, other):
            await client.invoke(Invocation("confirmed", None, "l0"))
            await client.invoke(Invocation("recover", None, "l0"))

    run(monkeypatch, ledgers, play)
    assert asked[:5] == ["get", "get", "create", "put", "append"]
    assert asked[5:] == ["get", "confirmed", "recover", "confirmed", "recover"]


def test_a_list_that_no_client_wrote_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read fails then, instead of returning fewer entries."""
    for text in ("", "[]", '{"ledgers": []}', '{"ledgers": ["0"], "writer": "n4"}', "[" * 100_000):
        ledgers = Ledgers()
        ledgers.lists[ONLY_KEY] = (0, text)

        async def play(nodes: list[Node]) -> Outcome:
            return await log_client(nodes, Chains(BookKeeperOptions())).invoke(Invocation("read", [0, 9]))

        outcome = run(monkeypatch, ledgers, play)
        assert isinstance(outcome, Fail)
        assert outcome.error.startswith("no-answer: expected the list of a log"), outcome


def test_quorums_and_nodes_that_do_not_go_together_are_refused() -> None:
    """Each error names what to change."""
    with pytest.raises(InputError, match="--ensemble >= --write-quorum >= --ack-quorum, found 3, 2 and 3"):
        BookKeeperOptions(write_quorum=2, ack_quorum=3)
    with pytest.raises(InputError, match="expected at least 5 nodes, 3 for the bookies"):
        BookKeeperSystem.roles(["n1", "n2", "n3"], BookKeeperOptions(), "log")
    roles = BookKeeperSystem.roles([f"n{number}" for number in range(1, 8)], BookKeeperOptions(zookeepers="3"), "log")
    assert roles == {
        "zookeeper": ("n1", "n2", "n3"),
        "bookie": ("n1", "n2", "n3", "n4", "n5"),
        "client": ("n6", "n7"),
    }
