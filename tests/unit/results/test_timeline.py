"""The timeline has every operation exactly, in lanes without overlap, or names what it omits."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from harness.op import Operation, OpType
from harness.switch import ConnectionNote, Happened
from harness.watch import Sighting
from results.measure.op_outcomes import OUTCOMES, REFUSED, Codes
from results.page import timeline as module
from results.page.timeline import embedded, timeline

if TYPE_CHECKING:
    import pytest

    from harness.op import Value
    from results.record.record import RunRecord


def of(record: RunRecord, **changes: Any) -> dict[str, Any]:
    """Returns the timeline of a run."""
    whole: dict[str, Any] = {
        "operations": record.operations,
        "faults": record.faults,
        "sightings": record.sightings,
        "nodes": record.test.nodes,
        "codes": Codes(),
    }
    return timeline(**{**whole, **changes})


def test_every_operation_is_in_it(stale_record: RunRecord) -> None:
    """The columns restore starts, lengths, types and values."""
    data = of(stale_record)
    operations = stale_record.operations
    assert [op.start_ns // 1000 for op in operations] == list(accumulate(data["s"]))
    assert [op.invoke_index for op in operations] == data["i"]
    assert [str(op.type) for op in operations] == [("ok", "info", "fail")[kind] for kind in data["t"]]
    assert [op.key for op in operations] == [data["keys"][key] for key in data["k"]]
    assert [op.node for op in operations] == [data["nodes"][data["lanes"][lane]] for lane in data["l"]]
    reads = [
        (op, value) for op, value in zip(operations, data["v"], strict=True) if op.f == "read" and op.type is OpType.OK
    ]
    assert all(op.result == value for op, value in reads)


def test_what_happened_to_connections_has_a_row_only_if_somebody_saw_it(
    stale_record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times are in microseconds, nodes are places; of too many notes, those about trouble stay."""
    assert of(stale_record)["connections"] is None
    assert of(stale_record, connections=[])["connections"] == []
    end_ns = of(stale_record)["end"] * 1000
    notes = [
        ConnectionNote(time_ns=time_ns, source="n1", target=target, what=what, count=2)
        for time_ns, target, what in [
            (100_000_000, "n2", Happened.OPENED),
            (200_000_000, "n3", Happened.STALLED),
            (200_000_000, "n77", Happened.RESET),
            (end_ns + 1, "n2", Happened.RESET),
        ]
    ]
    rows = of(stale_record, connections=notes)["connections"]
    assert rows == [[100_000, 0, 1, "opened", 2], [200_000, 0, 2, "stalled", 2]]
    monkeypatch.setattr(module, "MAX_NOTES", 1)
    assert of(stale_record, connections=notes)["connections"] == rows[1:]


LIVES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 1000), st.integers(0, 300), st.sampled_from(["n1", "n2", None])),
    max_size=60,
)


@given(LIVES)
def test_lanes_never_collide(lives: list[tuple[int, int, int, str | None]]) -> None:
    """A process stays in one lane of its node, and no two processes share a lane at the same time."""
    free: dict[int, tuple[int, str | None]] = {}
    operations: list[Operation] = []
    for process, start, length, node in sorted(lives, key=lambda life: life[1]):
        if free.get(process, (-1, node))[0] >= start or free.get(process, (0, node))[1] != node:
            continue
        free[process] = (start + length, node)
        operations.append(
            Operation(
                process=process,
                f="read",
                value=None,
                result=None,
                type=OpType.OK,
                start_ns=start,
                end_ns=start + length,
                invoke_index=len(operations),
                complete_index=None,
                node=node,
            )
        )
    data = timeline(operations=operations, faults=(), sightings=(), nodes=("n1", "n2"), codes=Codes())
    lanes: dict[int, dict[int, tuple[int, int]]] = {}
    for op, lane in zip(operations, data["l"], strict=True):
        place = data["lanes"][lane]
        assert (None if place is None else data["nodes"][place]) == op.node
        assert isinstance(op.process, int)
        first, last = lanes.setdefault(lane, {}).get(op.process, (op.start_ns, 0))
        lanes[lane][op.process] = (first, max(last, op.last_ns))
    assert all(len({lane for lane, own in lanes.items() if process in own}) == 1 for process in free)
    for own in lanes.values():
        for (_, end), (start, _) in pairwise(sorted(own.values())):
            assert end < start


def test_a_refusal_has_a_type_of_its_own(stale_record: RunRecord) -> None:
    """A refusal is drawn apart from failures if its code is one with which a node names another."""
    named = replace(stale_record.operations[0], type=OpType.FAIL, error="not-leader: n3 leads")
    data = timeline(operations=[named], faults=(), sightings=(), nodes=("n1",), codes=Codes(refusals={"not-leader"}))
    assert data["t"] == [OUTCOMES.index(REFUSED)]
    assert of(stale_record)["t"].count(OUTCOMES.index(REFUSED)) == 0


def test_nothing_in_the_data_can_end_its_element() -> None:
    """A value that looks like markup stays data, and is read back unchanged."""
    data = {"x": "</script><!--<script>\u2028 & \ud800"}
    text = embedded(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


def test_a_long_run_shows_the_stretch_around_the_counterexample(
    stale_record: RunRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeline also has the number of all operations."""
    monkeypatch.setattr(module, "MAX_OPERATIONS", 100)
    marked = stale_record.operations[700].invoke_index
    data = of(stale_record, marked=[marked], culprit=marked)
    assert len(data["s"]) == 100
    assert data["total"] == len(stale_record.operations)
    assert data["i"][data["culprit"]] == marked
    first_fault = min(fault.start_ns for fault in stale_record.faults)
    around = of(stale_record)
    assert around["s"][0] * 1000 < first_fault < (sum(around["s"]) + 1) * 1000


def test_an_operation_without_an_end_is_drawn_from_its_start(stale_record: RunRecord) -> None:
    """Its length is -1, which no real operation has."""
    data = of(stale_record, operations=[replace(stale_record.operations[0], end_ns=None, type=OpType.INFO)])
    assert data["d"] == [-1]


def test_long_values_are_cut(stale_record: RunRecord) -> None:
    """A value of a megabyte does not make the page gigabytes large."""
    data = of(
        stale_record, operations=[replace(stale_record.operations[0], f="write", value="x" * 10**6, type=OpType.INFO)]
    )
    assert len(data["v"][0]) < 100


SEEN = st.lists(
    st.tuples(st.sampled_from(["n1", "n2"]), st.sampled_from(["leader", "follower", None]), st.integers(1, 3)),
    min_size=1,
    max_size=30,
)


@given(SEEN)
def test_a_bar_never_covers_a_poll_that_saw_something_else(polls: list[tuple[str, Any, int]]) -> None:
    """Neither the bar of a node's role nor that of the leader has gaps. Each poll that saw it is covered."""
    roles: dict[str, tuple[Any, int | None]] = {"n1": (None, None), "n2": (None, None)}
    states: list[dict[str, tuple[Any, int | None]]] = []
    sightings: list[Sighting] = []
    places: dict[str, int] = {}
    for poll, (node, role, term) in enumerate(polls):
        roles = {**roles, node: (role, None if role is None else term)}
        states.append(roles)
        for name, (now, at) in roles.items():
            place = places.get(name)
            if place is not None and (sightings[place].role, sightings[place].term) == (now, at):
                sightings[place] = replace(sightings[place], until_ns=poll * 1000)
                continue
            places[name] = len(sightings)
            sightings.append(Sighting(time_ns=poll * 1000, node=name, role=now, term=at, until_ns=poll * 1000))
    data = timeline(operations=(), faults=(), sightings=sightings, nodes=("n1", "n2"), codes=Codes())
    covered = 0
    for first, last, node, role, term in data["roles"]:
        for poll in range(first, last + 1):
            covered += 1
            assert states[poll][("n1", "n2")[node]] == (role, term)
    assert covered == 2 * len(polls)
    covered = 0
    for first, last, node, term in data["leaders"][0]["led"]:
        for poll in range(first, last + 1):
            covered += 1
            leads = {at for role, at in states[poll].values() if role == "leader" and at is not None}
            assert term == max(leads, default=None)
            assert node is None or states[poll][("n1", "n2")[node]] == ("leader", term)
    assert covered == len(polls)


def test_the_axis_goes_on_as_long_as_the_watch(stale_record: RunRecord) -> None:
    """Leaders during healing and final reads are shown too. In a long run, only the shown stretch counts."""
    late = Sighting(time_ns=0, node="n1", role="leader", term=1, until_ns=900_000_000_000)
    assert of(stale_record, sightings=[late])["end"] == 900_000_000


def test_bars_of_earlier_files_end_with_the_watch() -> None:
    """A sighting that lasts until the next one of its node draws the leader without a gap, and not longer."""
    seen = [
        Sighting(time_ns=0, node="n1", role="leader", term=1, until_ns=5000),
        Sighting(time_ns=5000, node="n1", role="follower", term=2, until_ns=9000),
    ]
    data = timeline(operations=(), faults=(), sightings=seen, nodes=("n1",), codes=Codes())
    assert data["leaders"] == [{"of": "leader", "led": [[0, 5, 0, 1], [5, 9, None, None]]}]


def test_other_services_have_rows_if_a_reader_needs_them() -> None:
    """Nobody leads bookies. Of many groups, only one whose leader changed has a row."""

    def seen(role: str, *nodes: str) -> list[Sighting]:
        return [Sighting(time_ns=at, node=node, role=role, term=at, until_ns=9) for at, node in enumerate(nodes)]

    def rows(others: dict[str, list[Sighting]]) -> list[str]:
        data = timeline(
            operations=(), faults=(), sightings=(), other_sightings=others, nodes=("n1", "n2"), codes=Codes()
        )
        return [each["of"] for each in data["leaders"]]

    groups = {f"client l{number}": seen("leader", "n1") for number in range(4)}
    assert rows({"bookie": seen("writable", "n1"), "broker": seen("leader", "n1")}) == ["broker"]
    assert rows({**groups, "client l4": seen("leader", "n1", "n2")}) == ["client l4"]
    assert rows(dict(list(groups.items())[:3])) == ["client l0", "client l1", "client l2"]


def test_a_value_that_the_verdict_is_about_has_its_operations() -> None:
    """The operations with it in argument or result, at any depth. A result that differs is beside the argument."""

    def operation(place: int, f: str, value: Value, result: Value) -> Operation:
        return Operation(
            process=place, f=f, value=value, result=result, type=OpType.OK, start_ns=place, end_ns=place,
            invoke_index=2 * place, complete_index=2 * place + 1, node="n1",
        )  # fmt: skip

    operations = [
        operation(0, "append", 7, 12),
        operation(1, "append", 12, 13),
        operation(2, "read", [12, 13], [[12, 7], [13, 12]]),
        operation(3, "add", "x", "x"),
        operation(4, "read", None, ["x", 7]),
        operation(5, "read", 99, [77]),
    ]
    data = timeline(
        operations=operations, faults=(), sightings=(), nodes=("n1",), codes=Codes(), subjects=[7, "x", True]
    )
    assert data["subjects"] == [["7", [0, 2, 4]], ["x", [3, 4]], ["true", []]]
    assert data["a"] == [7, 12, [12, 13], None, None, 99]
