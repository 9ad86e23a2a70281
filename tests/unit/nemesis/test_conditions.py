"""The conditions of triggers: which line, status or operation fires them, and what their faults then know."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.sim.world import SimWorld
from harness.clock import Clock, run_virtual
from harness.errors import CommandTimeout, InputError
from harness.faults import PlannedFault, Sight
from harness.history import MemoryHistory
from harness.op import NEMESIS, OpType
from harness.service import NodeStatus, Service
from harness.targets import AtTrigger
from harness.traits import LogLine
from nemesis import loglines
from nemesis.errors import FaultError, PlanError
from nemesis.triggers import Subject, all_triggers, find_trigger, make_trigger, parse_trigger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.faults import Fired
    from harness.node import Node
    from nemesis.triggers import Condition

NAMES = ("n1", "n2", "n3")
LOG = "/var/log/node.log"
LINES = {"elected": LogLine(path=LOG, pattern="leads term [0-9]+", meaning="a node leads")}
SUBJECT = Subject(system="toy", log_lines=LINES, workload="register", functions=("read", "write"))


class Reports(Service):
    """A service whose nodes report what a script says of the time."""

    role = "node"

    def __init__(self, script: Callable[[str, float], NodeStatus | None]) -> None:
        self._script = script
        self._nodes = cast("Sequence[Node]", [SimpleNamespace(name=name) for name in NAMES])

    def daemon(self, node: Node) -> Any:
        """Describes no process."""
        raise NotImplementedError

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready."""

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Answers after a millisecond, or not in time."""
        found = self._script(node.name, asyncio.get_running_loop().time())
        await asyncio.sleep(timeout_s if found is None else 0.001)
        return () if found is None else (found,)


def status(node: str, role: str = "follower", term: int | None = 1, **more: Any) -> NodeStatus:
    """Returns the report of a node."""
    return NodeStatus(node=node, role=role, term=term, **more)


def fires(
    trigger: str,
    *,
    script: Callable[[str, float], NodeStatus | None] = lambda name, _: status(name),
    events: Sequence[tuple[float, OpType, Mapping[str, Any]]] = (),
    targets: Sequence[str] = NAMES,
    limit_s: float = 5.0,
) -> Fired | None:
    """Waits for a trigger, and lets events happen meanwhile."""
    service = Reports(script)
    system = SimpleNamespace(
        name="toy",
        front=lambda: service,
        services=lambda: (service,),
        log_lines=LINES,
        refusals=("not-leader",),
        answers=("mismatch",),
    )

    async def main() -> Fired | None:
        history = MemoryHistory()
        clock = Clock(asyncio.get_running_loop())

        async def happen() -> None:
            for at_s, op_type, more in events:
                await clock.sleep_until_s(at_s)
                values: dict[str, Any] = {"process": 1, "f": "write", "value": 5, "node": "n1", **more}
                history.append(time_ns=clock.now_ns(), op_type=op_type, **values)

        happening = asyncio.ensure_future(happen())
        field = SimpleNamespace(system=system)
        fired = await made(trigger, field, Sight(clock=clock, history=history), targets, limit_s).wait()
        happening.cancel()
        return fired

    return run_virtual(main())


def made(
    trigger: str, field: Any, sight: Sight, targets: Sequence[str], limit_s: float, *, role: str | None = None
) -> Condition:
    """Makes the condition of a trigger."""
    parsed = parse_trigger(trigger, limit_s)
    return find_trigger(parsed.name).condition(
        trigger=parsed,
        targets=targets,
        role=role,
        field=field,
        world=None,
        sight=sight,
    )


@given(
    st.sampled_from(
        [
            "log-line:elected",
            "log-line:elected:n2",
            "new-leader",
            "follower-behind:7",
            "ok-after-failure",
            "operation:read:3",
            "rare-message",
        ]
    ),
    st.floats(0.001, 3600),
)
def test_a_trigger_comes_back_from_its_form(text: str, limit_s: float) -> None:
    """The form of a trigger on the command line gives the same trigger again, with its defaults."""
    trigger = parse_trigger(text, limit_s)
    assert parse_trigger(str(trigger), limit_s) == trigger == make_trigger(trigger.name, limit_s, trigger.parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log-lin:elected", r"unknown trigger 'log-lin'\. Did you mean 'log-line'"),
        ("log-line", "the trigger log-line needs 'line', a short text"),
        ("new-leader:2", "'new-leader:2' has a value too many; its form is new-leader$"),
        ("log-line:a:b:c", "its form is log-line:LINE:ON$"),
        ("operation:read:0", "the option 'n' of the trigger operation takes a whole number from 1 to 1000000, not 0"),
        ("follower-behind:many", "takes a whole number from 1 to 1000000, not 'many'"),
    ],
)
def test_a_wrong_trigger_is_refused(text: str, message: str) -> None:
    """The message has the form or the accepted values."""
    with pytest.raises(PlanError, match=message):
        parse_trigger(text, 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("log-line:electd", r"the system toy names no log line 'electd'\. Did you mean 'elected'"),
        ("operation:wite", r"the workload register has no function 'wite'\. Did you mean 'write'"),
    ],
)
def test_a_trigger_must_fit_what_is_tested(text: str, message: str) -> None:
    """A line is one of the system, and a function one of the workload."""
    trigger = parse_trigger(text, 1.0)
    with pytest.raises(PlanError, match=message):
        find_trigger(trigger.name).condition.check(trigger, SUBJECT)
    for good in ("log-line:elected", "operation:read", "new-leader"):
        fitting = parse_trigger(good, 1.0)
        find_trigger(fitting.name).condition.check(fitting, SUBJECT)


def test_every_trigger_has_a_summary() -> None:
    """Each is one sentence for `labrys faults`."""
    for kind in all_triggers().values():
        assert kind.condition.SUMMARY.endswith(".")


def test_a_new_leader() -> None:
    """The leader at the beginning does not count, nor does an old claim; a leader of a later term does, within two polls."""

    def script(name: str, at_s: float) -> NodeStatus | None:
        if name == "n1":
            return status("n1", "leader", 3)
        if name == "n2" and at_s >= 2:
            return status("n2", "leader", 4)
        return status(name, term=3)

    fired = fires("new-leader", script=script)
    assert fired is not None
    assert fired.what == "when n2 reported that it leads in term 4, after n1"
    assert fired.node == "n2"
    assert fired.measured == {
        "node": "n2", "role": "leader", "term": 4, "applied_index": None, "committed_index": None,
    }  # fmt: skip
    assert 2.0 <= fired.time_ns / 1e9 < 2.1
    assert fires("new-leader", script=script, targets=("n1", "n3")) is None


def test_a_new_leader_of_a_system_without_terms_is_another_node() -> None:
    """The same leader is not new."""

    def script(name: str, at_s: float) -> NodeStatus | None:
        leads = name == ("n1" if at_s < 1 else "n3")
        return status(name, "leader" if leads else "follower", None)

    fired = fires("new-leader", script=script)
    assert fired is not None
    assert fired.what == "when n3 reported that it leads, after n1"
    assert fires("new-leader", script=lambda name, _: status(name, "leader" if name == "n1" else "f", None)) is None


def test_a_term_change() -> None:
    """The highest term at the beginning is the base, and a silent node delays nobody."""

    def script(name: str, at_s: float) -> NodeStatus | None:
        if name == "n1":
            return None
        return status(name, term=8 if name == "n3" and at_s > 1 else {"n2": 7, "n3": 5}[name])

    fired = fires("term-change", script=script)
    assert fired is not None
    assert fired.what == "when n3 reported term 8 after term 7"
    assert fired.time_ns / 1e9 < 1.1
    assert fires("term-change", script=lambda name, _: status(name, term={"n1": 1, "n2": 9, "n3": 4}[name])) is None


def test_a_follower_behind() -> None:
    """A follower counts from the number of entries on, the leader and an old status never."""

    def script(name: str, at_s: float) -> NodeStatus | None:
        if name == "n1":
            return status("n1", "leader", applied_index=0, committed_index=100)
        applied = 100 if name == "n3" or at_s < 1 else 89 if at_s > 2 else 91
        return status(name, applied_index=applied)

    fired = fires("follower-behind", script=script)
    assert fired is not None
    assert fired.what == "when n2 had applied 89 of 100 entries"
    assert 2.0 <= fired.time_ns / 1e9 < 2.2
    assert fires("follower-behind:12", script=script) is None

    def silent(name: str, at_s: float) -> NodeStatus | None:
        if name == "n1" and at_s < 1:
            return status("n1", "leader", applied_index=100)
        return None if name == "n1" or at_s < 3 else status(name, applied_index=10)

    assert fires("follower-behind", script=silent) is None


def test_applied_above_commit() -> None:
    """A node that has applied more than another one knows to be committed fires it."""

    def script(name: str, at_s: float) -> NodeStatus | None:
        return status(name, applied_index=7 if name == "n2" and at_s > 1 else 5, committed_index=5)

    fired = fires("applied-above-commit:2", script=script)
    assert fired is not None
    assert fired.what == "when n2 had applied 7 entries, and n1 knew of 5 committed ones"
    assert fires("applied-above-commit:3", script=script) is None
    assert fires("applied-above-commit") is None


def test_an_ok_after_failures() -> None:
    """Failures count in a row, answers end the row, refusals and events of faults do not count."""
    events: list[tuple[float, OpType, Mapping[str, Any]]] = [
        (1.0, OpType.INFO, {}),
        (1.1, OpType.FAIL, {"error": "mismatch: 4"}),
        (1.2, OpType.INFO, {}),
        (1.3, OpType.FAIL, {"error": "refused"}),
        (1.4, OpType.FAIL, {"error": "not-leader: n2"}),
        (1.5, OpType.INFO, {"process": NEMESIS}),
        (1.6, OpType.INVOKE, {"process": 2}),
        (1.7, OpType.OK, {"process": 3, "f": "read", "value": 4, "node": "n2", "via": "n3", "key": "k"}),
    ]
    fired = fires("ok-after-failure:2", events=events)
    assert fired is not None
    assert fired.what == "with the first ok after 2 failures: read 4 of key k by process 3 on n3"
    assert fired.measured == {"node": "n3", "index": 7, "process": 3}
    assert fired.node == "n3"
    assert 1.7 <= fired.time_ns / 1e9 < 1.71
    assert fires("ok-after-failure:3", events=events) is None
    assert fires("ok-after-failure", events=[(1.0, OpType.OK, {}), (1.1, OpType.FAIL, {"error": "mismatch"})]) is None


def test_the_nth_operation() -> None:
    """Only those of the function that succeed count."""
    events: list[tuple[float, OpType, Mapping[str, Any]]] = [
        (1.0, OpType.OK, {"f": "read"}),
        (1.1, OpType.OK, {"value": 1}),
        (1.2, OpType.FAIL, {"value": 2, "error": "refused"}),
        (1.3, OpType.OK, {"value": 3}),
    ]
    fired = fires("operation:write:2", events=events)
    assert fired is not None
    assert fired.what == "with ok 2 of write: write 3 by process 1 on n1"
    assert fires("operation:write:3", events=events) is None


def test_a_status_needs_a_service_that_reports_one() -> None:
    """Labrys refuses the trigger before the system starts."""
    mute = SimpleNamespace(reports=lambda: False)
    field = SimpleNamespace(system=SimpleNamespace(name="toy", services=lambda: (mute,)))
    trigger = parse_trigger("term-change", 1.0)
    with pytest.raises(InputError, match="the trigger term-change needs the status of nodes, and toy reports none"):
        find_trigger("term-change").condition.prepare(trigger, cast("Any", field), None)


def test_a_line_must_be_in_a_log_of_the_system() -> None:
    """A wrong path of a system is an error before the start, with the paths of its logs."""
    system = SimpleNamespace(name="toy", log_lines=LINES, log_files=lambda _: ("/var/log/other.log",))
    field = SimpleNamespace(system=system, nodes=(SimpleNamespace(name="n1"),))
    trigger = parse_trigger("log-line:elected", 1.0)
    with pytest.raises(
        InputError, match=r"is in /var/log/node\.log, which is no log of its processes: /var/log/other\.log"
    ):
        find_trigger("log-line").condition.prepare(trigger, cast("Any", field), None)


def test_a_line_of_a_node_that_the_run_does_not_have_is_refused() -> None:
    """The error lists the nodes. Without a named node, the trigger has no such parameter."""
    system = SimpleNamespace(name="toy", log_lines=LINES, log_files=lambda _: (LOG,))
    field = SimpleNamespace(system=system, nodes=(SimpleNamespace(name="n1"), SimpleNamespace(name="n2")))
    prepare = find_trigger("log-line").condition.prepare
    with pytest.raises(InputError, match=r"log-line:elected:n7 waits for a log line of n7, and the nodes are: n1, n2"):
        prepare(parse_trigger("log-line:elected:n7", 1.0), cast("Any", field), None)
    prepare(parse_trigger("log-line:elected:n2", 1.0), cast("Any", field), None)
    assert parse_trigger("log-line:elected", 1.0).parameters == {"line": "elected"}


def follows(
    looks: Callable[[str, loglines.Place | None], loglines.Look],
    monkeypatch: pytest.MonkeyPatch,
    trigger: str = "log-line:elected",
    role: str | None = None,
) -> Fired | None:
    """Waits two seconds for a line on two nodes of which `looks` says what each look sees."""

    def look(remote: Any, path: str, pattern: str, after: loglines.Place | None) -> loglines.Look:
        assert (path, pattern) == (LOG, "leads term [0-9]+")
        return looks(remote, after)

    async def each(names: Sequence[str], action: Callable[[Any], loglines.Look]) -> Any:
        (name,) = names
        await asyncio.sleep(0.3)
        try:
            return SimpleNamespace(done={name: action(SimpleNamespace(name=name))}, failed={})
        except CommandTimeout as error:
            return SimpleNamespace(done={}, failed={name: error})

    monkeypatch.setattr(loglines, "look", look)
    system = SimpleNamespace(
        name="toy", log_lines=LINES, log_files=lambda node, role: (LOG,) if node.name != "n3" and role is None else ()
    )
    field = SimpleNamespace(system=system, node=lambda name: SimpleNamespace(name=name), each=each)
    field.shell = lambda node: node.name

    async def main() -> Fired | None:
        sight = Sight(clock=Clock(asyncio.get_running_loop()), history=MemoryHistory())
        return await made(trigger, field, sight, NAMES, 2.0, role=role).wait()

    return run_virtual(main())


def test_a_fault_can_wait_for_a_line_of_another_node_and_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the log of the named node is followed, whatever role the fault has."""
    asked: list[str] = []

    def looks(node: str, _: loglines.Place | None) -> loglines.Look:
        asked.append(node)
        return loglines.Look(place=loglines.Place(inode=1, offset=2), line="leads term 3")

    fired = follows(looks, monkeypatch, "log-line:elected:n4", "client")
    assert asked == ["n4"]
    assert fired is not None
    assert fired.measured is not None
    assert fired.measured["node"] == "n4"


def test_a_line_of_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look goes on where the one before began; a node without the log is not asked; the record has the line as it is."""
    asked: list[tuple[str, loglines.Place | None]] = []

    def looks(node: str, after: loglines.Place | None) -> loglines.Look:
        asked.append((node, after))
        number = sum(name == node for name, _ in asked)
        line = "12:00  n2 \x1b[31mleads term 4" if node == "n2" and number == 3 else None
        return loglines.Look(place=loglines.Place(inode=1, offset=number), line=line)

    fired = follows(looks, monkeypatch)
    assert fired is not None
    assert fired.node == "n2"
    assert fired.measured["line"] == "12:00  n2 \x1b[31mleads term 4"
    assert "\x1b" not in fired.what
    assert fired.what.startswith("with a log line of n2: 12:00 n2 ")
    assert [after.offset if after else None for node, after in asked if node == "n2"] == [None, 1, 2]
    assert {node for node, _ in asked} == {"n1", "n2"}


def test_a_log_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trigger that could not see a log does not say that there was no line; a node that comes back is followed again."""
    turns = {"n1": 0, "n2": 0}

    def looks(node: str, after: loglines.Place | None) -> loglines.Look:
        turns[node] += 1
        if node == "n1" and turns["n1"] > 1:
            raise CommandTimeout("n1", "tail", 3.0)
        return loglines.Look(place=loglines.Place(inode=1, offset=0), line=None)

    with pytest.raises(FaultError, match="a log could not be read: n1"):
        follows(looks, monkeypatch)
    assert turns["n1"] > 2
    assert turns["n2"] > 2

    def recovers(node: str, after: loglines.Place | None) -> loglines.Look:
        turns[node] += 1
        if turns[node] % 2:
            raise CommandTimeout(node, "tail", 3.0)
        return loglines.Look(
            place=loglines.Place(inode=1, offset=0), line="n1 leads term 3" if turns[node] > 1 else None
        )

    turns.update(n1=0, n2=0)
    assert follows(recovers, monkeypatch) is not None


def test_a_line_of_a_simulated_node() -> None:
    """The world tells the line in the moment in which the process logs it; lines of other nodes and before do not count."""
    world = SimWorld(NAMES, 1)
    world.machines["n2"].log("leads term 1")

    async def main() -> tuple[str, str, int]:
        waiting = asyncio.ensure_future(world.log_line(frozenset({"n2"}), "leads term [0-9]+"))
        await asyncio.sleep(0)
        world.later(10, world.machines["n1"].log, ("leads term 2",))
        world.later(20, world.machines["n2"].log, ("follows",))
        world.later(30, world.machines["n2"].log, ("leads term 3",))
        world.later(30, world.machines["n2"].log, ("leads term 4",))
        return (*await waiting, world.now_ns)

    assert world.run(main()) == ("n2", "0.000000 leads term 3", 30)


def test_the_words_of_a_fault_without_its_trigger() -> None:
    """The planned fault names its trigger as on the command line."""
    trigger = make_trigger("log-line", 4.0, {"line": "elected"})
    fault = PlannedFault(id=0, kind="kill", target=AtTrigger(), start_s=1.0, end_s=9.0, trigger=trigger)
    assert (str(fault.trigger), fault.lasts_s) == ("log-line:elected", 4.0)
