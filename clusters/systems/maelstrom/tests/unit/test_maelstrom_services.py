"""The services of Maelstrom, and the requests of its workloads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from clusters.sim.world import SimWorld
from clusters.systems.maelstrom.services import (
    STATES,
    TIMEOUT_NS,
    KeyValue,
    LinTso,
    LwwKv,
    RequestError,
    SeqKv,
    Services,
    Timeouts,
    Timer,
)
from clusters.systems.maelstrom.violations import OTHER, UNFIT, WARNINGS
from clusters.systems.maelstrom.vocabulary import VERBS, Other, Unfit
from clusters.systems.maelstrom.workloads.kafka import KafkaWorkload
from clusters.systems.maelstrom.workloads.named import LinKvWorkload, TxnListAppendWorkload, TxnRwRegisterWorkload
from harness.generator import Asker
from harness.node import Node
from harness.op import Invocation, Op, OpType
from harness.units import NS_PER_MS
from harness.verdict import Verdict
from workloads.register.workload import RegisterOptions

if TYPE_CHECKING:
    from workloads.base import BaseWorkload


def ask(service: Any, sender: str, kind: str, **body: Any) -> Any:
    """Sends a request; returns the value that was read, or the code of the error."""
    try:
        answer, _ = service.answer(sender, {"type": kind, **body})
    except RequestError as error:
        return f"error {error.code}"
    return answer.get("value", answer["type"])


def test_lin_kv_is_a_map_with_compare_and_set() -> None:
    """The answers and the codes are those of Maelstrom's table."""
    service = KeyValue()
    assert ask(service, "n0", "read", key=1) == "error 20"
    assert ask(service, "n0", "cas", key=1, **{"from": None, "to": 2}) == "error 20"
    assert ask(service, "n0", "cas", key=1, **{"from": 0, "to": 2}, create_if_not_exists=True) == "cas_ok"
    assert ask(service, "n1", "read", key=1) == 2
    assert ask(service, "n1", "cas", key=1, **{"from": 3, "to": 4}) == "error 22"
    assert ask(service, "n1", "write", key="1", value=[1]) == "write_ok"
    assert (ask(service, "n1", "read", key=1), ask(service, "n1", "read", key="1")) == (2, [1])
    assert ask(service, "n1", "write", key=2, value=1) == "write_ok"
    assert ask(service, "n1", "cas", key=2, **{"from": True, "to": 4}) == "error 22"
    assert ask(service, "n1", "write", key=2) == "error 12"
    assert ask(service, "n1", "remove", key=2) == "error 10"


def test_a_reader_of_seq_kv_never_goes_back() -> None:
    """Others may see old states, but not older than the last ones; the writer sees its own write."""
    service = SeqKv(1)
    seen: dict[str, list[int]] = {"n1": [], "n2": []}
    for value in range(300):
        assert ask(service, "n0", "write", key="k", value=value) == "write_ok"
        assert ask(service, "n0", "read", key="k") == value
        for name, values in seen.items():
            answer = ask(service, name, "read", key="k")
            if answer != "error 20":
                assert value - STATES < answer <= value
                values.append(answer)
    for values in seen.values():
        assert values == sorted(values)
        assert values != list(range(300)), "no read was old, so this is lin-kv"


def test_the_replicas_of_lww_kv_differ_and_agree_in_the_end() -> None:
    """A read may miss a write. After enough exchanges, all replicas have the last write."""
    service = LwwKv(1)
    read = []
    for value in range(100):
        ask(service, "n0", "write", key="k", value=value)
        read.append(ask(service, "n0", "read", key="k"))
    assert read != list(range(100))
    ask(service, "n0", "write", key="k", value="last")
    for _ in range(200):
        service.done()
    assert len({ask(service, "n0", "read", key="k") for _ in range(50)}) == 1


def test_lin_tso_gives_each_number_once() -> None:
    """From 0 on, in order."""
    service = LinTso()
    assert [service.answer("n0", {"type": "ts"})[0]["ts"] for _ in range(3)] == [0, 1, 2]
    assert ask(service, "n0", "tick") == "error 10"


@pytest.mark.parametrize("ms", [None, True, -1, "5", 1e12])
def test_timer_waits_for_a_number_of_milliseconds(ms: Any) -> None:
    """What is no number, or too large, is refused."""
    assert Timer().answer("n0", {"type": "wait", "ms": 1.5})[1] == 1.5 * NS_PER_MS
    assert ask(Timer(), "n0", "wait", ms=ms) == "error 12"


def test_a_transaction_must_come_back_as_it_was_asked() -> None:
    """Only the results of the reads may differ. Maelstrom takes other micro-operations, so such an answer is only odd."""
    verb = VERBS["txn-list-append"]["txn"]
    asked = Invocation("txn", [["r", 3, None], ["append", 4, 7]])
    assert verb.request(asked) == {"type": "txn", "txn": [["r", 3, None], ["append", 4, 7]]}
    fits = {"type": "txn_ok", "txn": [["r", 3, [1]], ["append", 4, 7]]}
    verb.check(asked, fits)
    assert verb.result(asked, fits) == [["r", 3, [1]], ["append", 4, 7]]
    # A program that holds its keys as texts answers with them. The history has the numbers.
    assert verb.result(asked, {"type": "txn_ok", "txn": [["r", "3", [1]], ["append", "4", 7]]}) == fits["txn"]
    for wrong in (
        [["append", 3, 1], ["append", 4, 7]],
        [["r", 3, [1]]],
        [["r", 3, [1]], ["append", 4, 8]],
        [["r", 5, [1]], ["append", 4, 7]],
        [["r", "5", [1]], ["append", 4, 7]],
        [],
        None,
    ):
        with pytest.raises(Other):
            verb.check(asked, {"type": "txn_ok", "txn": wrong})
    for none in (
        "nothing",
        [["r", 3, [1]], 7],
        [["r", 3], ["append", 4, 7]],
        [["pop", 3, 1]],
        [["r", 3, 1], ["w", 4, 7]],
    ):
        with pytest.raises(Unfit) as raised:
            verb.check(asked, {"type": "txn_ok", "txn": none})
        assert not isinstance(raised.value, Other)
    assert {OTHER, UNFIT} & WARNINGS == {OTHER}


@pytest.mark.parametrize(("workload", "member"), [("broadcast", "messages"), ("g-set", "value")])
def test_null_is_the_empty_list(workload: str, member: str) -> None:
    """A program in Go writes it, and the schemas of Maelstrom take it. A missing member does not fit."""
    verb = VERBS[workload]["read"]
    assert verb.result(Invocation("read"), {"type": "read_ok", member: None}) == []
    assert verb.result(Invocation("read"), {"type": "read_ok", member: [0]}) == [0]
    wrongs: list[dict[str, Any]] = [{}, {member: 0}, {member: ""}, {member: False}, {member: {}}]
    for wrong in wrongs:
        with pytest.raises(Unfit):
            verb.check(Invocation("read"), {"type": "read_ok", **wrong})


def test_a_poll_brings_pairs_of_offset_and_message() -> None:
    """Anything else does not fit."""
    verb = VERBS["kafka"]["read"]
    poll = Invocation("read", 3, "1")
    assert verb.request(poll) == {"type": "poll", "offsets": {"1": 3}}
    assert verb.result(poll, {"type": "poll_ok", "msgs": {"1": [[3, 9]]}}) == [[3, 9]]
    assert verb.result(poll, {"type": "poll_ok", "msgs": {}}) == []
    assert verb.result(poll, {"type": "poll_ok", "msgs": {"1": None}}) == []
    wrongs: list[Any] = [[], {"1": 0}, {"1": ""}, {"1": [3]}, {"1": [["3", 9]]}, {"1": 3}]
    for wrong in wrongs:
        with pytest.raises(Unfit):
            verb.check(poll, {"type": "poll_ok", "msgs": wrong})


def test_half_of_the_requests_that_time_out_take_effect() -> None:
    """The answer is error 0 after the time-out, and the service says how many there were. A timer never fails."""
    world = SimWorld(["n0"], 1)
    services = Services.of(world, 1.0)
    answers: list[tuple[Any, int]] = []

    def came(_: str, body: dict[str, Any]) -> None:
        answers.append((body.get("code", body["type"]), world.now_ns))

    for number in range(40):
        services.ask("lin-kv", "n0", {"type": "write", "key": number, "value": 1, "msg_id": number}, came)
    services.ask("timer", "n0", {"type": "wait", "ms": 1, "msg_id": 99}, came)
    world.pass_until(5.0)
    assert answers[0] == ("wait_ok", NS_PER_MS)
    assert len(answers) == 41
    assert all(code == 0 and at_ns >= TIMEOUT_NS for code, at_ns in answers[1:])
    part = services.timeouts.part()
    assert part is not None
    took = part.details["took_effect"]
    assert 8 < took < 32
    assert (part.verdict, part.details["had_no_effect"]) == (Verdict.VALID, 40 - took)
    services.timeouts = Timeouts(1, 0.0)
    seen: list[str] = []
    for number in range(40):
        ask_of = {"type": "read", "key": number, "msg_id": number}
        services.ask("lin-kv", "n0", ask_of, lambda _, body: seen.append(body["type"]))
    world.pass_until(10.0)
    assert seen.count("read_ok") == took


def test_time_outs_that_never_came_are_unknown() -> None:
    """A run that asked for time-outs and had none tested nothing of them. Without the option there is no such part."""
    part = Timeouts(1, 0.5).part()
    assert part is not None
    assert part.verdict is Verdict.UNKNOWN
    assert Timeouts(1, 0.0).part() is None


def test_a_list_of_committed_offsets_may_leave_out_the_key() -> None:
    """Anything but an object of offsets does not fit, nor does an offset that no history can hold."""
    commit, listed = VERBS["kafka"]["commit"], VERBS["kafka"]["list"]
    assert commit.request(Invocation("commit", 3, "1")) == {"type": "commit_offsets", "offsets": {"1": 3}}
    assert commit.result(Invocation("commit", 3, "1"), {"type": "commit_offsets_ok"}) == 3
    ask = Invocation("list", None, "1")
    assert listed.request(ask) == {"type": "list_committed_offsets", "keys": ["1"]}
    assert listed.result(ask, {"type": "list_committed_offsets_ok", "offsets": {"1": 3, "l2": 4}}) == 3
    assert listed.result(ask, {"type": "list_committed_offsets_ok", "offsets": {}}) is None
    wrongs: list[Any] = [[], None, {"1": "3"}, {"1": True}, {"1": 10**18}]
    for wrong in wrongs:
        with pytest.raises(Unfit):
            listed.check(ask, {"type": "list_committed_offsets_ok", "offsets": wrong})


@pytest.mark.parametrize("number", [None, 7, "seven", [7]])
def test_a_service_answers_whatever_number_a_request_has(number: Any) -> None:
    """As Maelstrom's services do. The answer goes to the sender in the request, which can be a client."""
    world = SimWorld(["n0"], 1)
    got: list[tuple[str, Any]] = []
    body = {"type": "ts"} if number is None else {"type": "ts", "msg_id": number}
    Services.of(world).ask("lin-tso", "c3", body, lambda service, answer: got.append((service, answer)))
    world.pass_until(1.0)
    assert got == [("lin-tso", {"type": "ts_ok", "ts": 0, "in_reply_to": number})]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (LinKvWorkload(RegisterOptions(hot_keys=3, ops_per_key=10)), r"[0-9]+"),
        (KafkaWorkload(), r"[0-3]"),
    ],
)
def test_keys_are_numbers_as_in_maelstrom(workload: BaseWorkload[Any], expected: str) -> None:
    """The history has the key that the program gets. Hot keys come first, and no two keys have one number."""
    generator = workload.generator(seed=1, streams=1)
    asker = Asker(worker=0, process=0, node="n0", now_ns=0, workers=frozenset((0,)))
    keys = {
        str(invocation.key)
        for invocation in (generator.ask(asker) for _ in range(200))
        if isinstance(invocation, Invocation)
    }
    assert all(re.fullmatch(expected, key) for key in keys)
    assert sorted(map(int, keys)) == list(range(len(keys)))
    read = VERBS[workload.name]["read"]
    sent = [read.request(Invocation("read", 0, key)) for key in sorted(keys, key=int)]
    assert [body.get("key", body.get("offsets")) for body in sent] == [
        int(key) if workload.name == "lin-kv" else {key: 0} for key in sorted(keys, key=int)
    ]


@pytest.mark.parametrize("workload", [TxnListAppendWorkload(), TxnRwRegisterWorkload()])
def test_keys_of_transactions_are_numbers_as_in_maelstrom(workload: BaseWorkload[Any]) -> None:
    """Also those of the final reads."""
    generator = workload.generator(seed=1, streams=1)
    asker = Asker(worker=0, process=0, node="n0", now_ns=0, workers=frozenset((0,)))
    drawn = [
        invocation for invocation in (generator.ask(asker) for _ in range(50)) if isinstance(invocation, Invocation)
    ]
    history = [
        Op(index=index, time_ns=index, type=OpType.INVOKE, process=0, f="txn", value=invocation.value)
        for index, invocation in enumerate(drawn)
    ]
    final = workload.final_generator(history=history, node=Node(name="n0", address="10.0.0.1")).ask(asker)
    assert isinstance(final, Invocation)
    for invocation in (*drawn, final):
        assert VERBS[workload.name]["txn"].request(invocation) == {"type": "txn", "txn": invocation.value}
        assert all(type(part[1]) is int for part in invocation.value)
