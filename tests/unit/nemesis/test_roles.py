"""Faults with roles as targets: syntax, drawing, plans, and conflicts."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.capabilities import NAMES, Capabilities
from harness.clock import run_virtual
from harness.daemon import Daemon
from harness.declare import NoOptions
from harness.faults import Begun, PlannedFault, Proof
from harness.node import Node
from harness.service import NodeStatus, Service
from harness.system import System
from harness.targets import from_json as target_of
from harness.targets import names_of
from nemesis.actor import OnNodes
from nemesis.chosen import choose, choose_all
from nemesis.conductor import Conductor
from nemesis.errors import FaultError, PlanError
from nemesis.fault import Fault, Occupied
from nemesis.kinds import Kind
from nemesis.parsing import asked_of, request_of
from nemesis.plan import draw_plan
from nemesis.planfile import Plan, from_json, to_json
from nemesis.targets import ALL, LEADER, layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.cluster import Cluster

NODES = ("n1", "n2", "n3", "n4", "n5")
ROLES = {"controller": ("n1", "n2", "n3"), "broker": ("n2", "n3", "n4", "n5"), "namesrv": ("n1",)}
WHERE = layout(NODES, ROLES)
ABLE = Capabilities(available=frozenset(NAMES))


@pytest.mark.parametrize(
    ("text", "role", "target", "label"),
    [
        ("kill:broker", "broker", "random", "kill:broker"),
        ("kill:brokers", "broker", "random", "kill:broker"),
        ("partition:brokers", "broker", "random", "partition-random-halves:broker"),
        ("power-loss:namesrv", "namesrv", "one", "power-loss:namesrv"),
        ("leader-kill:controllers", "controller", "leader", "leader-kill:controller"),
        ("pause:controller+leader", "controller", "leader", "pause:controller+leader"),
        ("kill:broker+minority", "broker", "minority", "kill:broker+minority"),
        ("kill:controller+leader+minority", "controller", "leader+minority", "kill:controller+leader+minority"),
        ("kill:brokers+n5+n2", "broker", "n5+n2", "kill:broker+n5+n2"),
        ("kill:leader+minority", None, "leader+minority", "kill:leader+minority"),
        ("kill:n1+n2", None, "n1+n2", "kill:n1+n2"),
        ("kill", None, "random", "kill"),
        ("leadership-transfer:controller", "controller", "follower", "leadership-transfer:controller"),
    ],
)
def test_what_can_be_said(text: str, role: str | None, target: str, label: str) -> None:
    """A target is a role, a role with a target among its nodes, or a target; plurals of roles work."""
    choice = choose(asked_of(text), WHERE)
    assert (choice.role, str(choice.target), choice.label) == (role, target, label)


def test_several_roles_are_one_choice_with_parts() -> None:
    """Each part has the same target, among the nodes of its role, and the label has the singular of each role."""
    choice = choose(asked_of("leader-kill:brokers+controllers+leader+minority"), WHERE)
    assert choice.label == "leader-kill:broker+controller+leader+minority"
    assert [(part.role, str(part.target)) for part in choice.parts] == [
        ("broker", "leader+minority"),
        ("controller", "leader+minority"),
    ]
    bare = choose(asked_of("kill:controller+namesrv+broker"), WHERE)
    assert [(part.role, str(part.target)) for part in bare.parts] == [
        (role, "random") for role in ("controller", "namesrv", "broker")
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill:boker", "unknown target 'boker'. Did you mean 'broker'?"),
        ("kill:queen", "Known are: all, broker, controller, "),
        ("kill:broker+n1", "n1 runs no broker; n2, n3, n4, n5 do"),
        ("kill:namesrv+n2+n1", "n2 runs no namesrv; n1 does"),
        ("kill:broker+brokers", "a target names the role broker twice: 'broker+brokers'"),
        ("kill:broker+minority+controller", "'minority' stands alone"),
        ("kill:broker+controller+n4", "n4 runs no controller; n1, n2, n3 do"),
        ("kill:broker+controller+queen", "unknown target 'queen'"),
        ("packet-loss:broker+controller", "packet-loss cannot be aimed at the role broker"),
        ("kill:n1+broker", "unknown target 'broker'"),
        ("fixed-kill:controller", "needs the names of its nodes, e.g. fixed-kill:controller+n1"),
        ("packet-loss:broker", "packet-loss cannot be aimed at the role broker: it drops a part of all"),
        ("packet-delay:broker+n2", "whichever process sends it. Aim it at nodes, e.g. packet-delay:n2"),
        ("partition-leader:controller+minority", "cannot be aimed at 'minority'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_names_the_way_out(text: str, message: str) -> None:
    """An unknown role, a node without it, and a kind that acts on whole nodes are errors."""
    with pytest.raises(PlanError) as raised:
        choose(asked_of(text), WHERE)
    assert message in str(raised.value)


def test_a_word_with_two_meanings_is_refused() -> None:
    """`store` is ambiguous: a node and a role."""
    with pytest.raises(PlanError, match="'store' is the name of a node, and it means a role of the system too"):
        choose(asked_of("kill:store"), layout(["store", "n2"], {"store": ["n2"]}))
    with pytest.raises(PlanError, match="'leader' is a target, and it means a role"):
        choose(asked_of("kill:leader"), layout(NODES, {"leader": NODES}))


def drawn(text: str, **options: Any) -> tuple[PlannedFault, ...]:
    """Draws a plan of ten minutes."""
    return draw_plan(choose_all(request_of(text), WHERE), WHERE, **{"seed": 3, "time_limit_s": 600.0, **options})


def test_faults_at_a_role_hit_its_nodes_and_say_so() -> None:
    """Sizes count the nodes with the role, and the plan has the role."""
    plan = drawn("kill:broker,pause:controller+minority,bridge:broker,partition:controller")
    assert {fault.role for fault in plan} == {"broker", "controller"}
    for fault in plan:
        assert set(names_of(fault.target)) <= set(WHERE.of(fault.role))
    assert {len(names_of(fault.target)) for fault in plan if fault.kind == "pause"} == {1}
    assert {len(names_of(fault.target)) for fault in plan if fault.kind == "bridge"} == {4}
    assert {len(names_of(fault.target)) for fault in plan if fault.kind == "partition-random-halves"} == {1}
    assert {len(names_of(fault.target)) for fault in plan if fault.kind == "kill"} == {1, 2, 3, 4}


@pytest.mark.parametrize("in_turn", [False, True])
def test_faults_at_several_roles_begin_and_end_together(in_turn: bool) -> None:
    """Each role has a fault of its own, with the size that its own nodes give, and the plan comes back from its file."""
    plan = drawn("kill:broker+controller+majority,bridge:broker", in_turn=in_turn)
    kills = [fault for fault in plan if fault.kind == "kill"]
    assert len(kills) == 2 if in_turn else len(kills) > 20
    for one, other in zip(kills[::2], kills[1::2], strict=True):
        assert one.goes_with(other)
        sizes = {fault.role: len(names_of(fault.target)) for fault in (one, other)}
        assert sizes == {"broker": 3, "controller": 2}
        assert all(set(names_of(fault.target)) <= set(WHERE.of(fault.role)) for fault in (one, other))
    whole = Plan(layout=WHERE, seed=3, time_limit_s=600.0, faults=plan, in_turn=in_turn)
    assert from_json(to_json(whole), where=WHERE, source="plan.json") == whole


def test_faults_at_several_roles_wait_until_each_role_is_free() -> None:
    """A pause of the controllers delays the kills of both, and never one alone."""
    plan = drawn("kill:broker+controller+all,pause:controller+all")
    kills = [fault for fault in plan if fault.kind == "kill"]
    assert {fault.role for fault in kills} == {"broker", "controller"}
    assert all(one.goes_with(other) for one, other in zip(kills[::2], kills[1::2], strict=True))
    assert not overlaps([fault for fault in plan if fault.role == "controller"], "kill", "pause")


def test_the_majority_is_kept_at_each_of_several_roles() -> None:
    """Both faults of a pair hit a minority of the nodes of their roles."""
    plan = drawn("kill:broker+controller", keep_majority=True)
    assert {(fault.role, len(names_of(fault.target))) for fault in plan} == {("broker", 1), ("controller", 1)}
    with pytest.raises(
        PlanError, match="kill:broker\\+controller\\+majority always takes the majority away from 4 nodes"
    ):
        drawn("kill:broker+controller+majority", keep_majority=True)


def test_an_order_of_a_role_has_its_nodes_only() -> None:
    """The other nodes on the side of a role's leader run the role too."""
    for fault in drawn("kill:controller+leader+minority"):
        assert sorted(fault.order) == sorted(ROLES["controller"])


def test_a_plan_without_roles_is_what_it_was() -> None:
    """Roles of a system do not change the draws of faults on whole nodes."""
    bare, where = layout(NODES), layout(NODES, {"node": NODES})
    plain = draw_plan(choose_all(request_of("kill,pause"), bare), bare, seed=8, time_limit_s=300.0)
    named = draw_plan(choose_all(request_of("kill,pause"), where), where, seed=8, time_limit_s=300.0)
    assert plain == named


def overlaps(plan: Sequence[PlannedFault], one: str, other: str) -> bool:
    """Returns whether faults of two kinds affect a node at the same time."""
    return any(
        a.start_s < b.end_s and b.start_s < a.end_s and set(names_of(a.target)) & set(names_of(b.target))
        for a in plan
        if a.kind == one
        for b in plan
        if b.kind == other
    )


def test_two_roles_of_a_node_do_not_exclude_each_other() -> None:
    """A node's broker can be paused while its controller is dead; two faults of one process never overlap."""
    assert overlaps(drawn("kill:controller,pause:broker"), "kill", "pause")
    assert not overlaps(drawn("kill:broker,pause:broker"), "kill", "pause")
    assert not overlaps(drawn("kill:controller,pause"), "kill", "pause")


@given(
    st.integers(0, 2**32),
    st.sampled_from(["kill:broker,pause,crash:controller", "disk-full:broker,power-loss,kill:broker"]),
)
def test_faults_that_hold_the_same_never_share_a_node(seed: int, text: str) -> None:
    """Every drawn plan can be read again."""
    plan = drawn(text, seed=seed)
    kinds = {choice.kind.name: choice.kind.fault for choice in choose_all(request_of(text), WHERE)}
    for index, one in enumerate(plan):
        for other in plan[index + 1 :]:
            if other.start_s < one.end_s:
                first, second = (
                    Occupied(groups=kinds[fault.kind].GROUPS, role=fault.role, nodes=frozenset(names_of(fault.target)))
                    for fault in (one, other)
                )
                assert not first.shared(second)


def test_the_majority_of_each_role_is_kept() -> None:
    """A kill of brokers keeps two of three controllers, and a majority of the brokers."""
    with pytest.raises(PlanError, match="always takes the majority away from 1 nodes, and it must be kept"):
        drawn("kill:namesrv", keep_majority=True)
    for fault in drawn("kill:broker,pause:controller", keep_majority=True):
        assert len(names_of(fault.target)) == 1
    whole = drawn("kill", keep_majority=True)
    assert not any("n1" in names_of(fault.target) for fault in whole)  # it runs the only name server
    assert all(len(set(names_of(fault.target)) & set(ROLES["controller"])) <= 1 for fault in whole)
    for fault in drawn("kill:broker", take_majority=True):
        assert len(names_of(fault.target)) >= 2


def test_files_are_damaged_on_a_minority_of_each_role() -> None:
    """A role with three nodes keeps two undamaged copies."""
    plan = drawn("file-truncate:broker,file-bitflip:controller,file-bitflip:broker")
    hit: dict[str | None, set[str]] = {}
    for fault in plan:
        hit.setdefault(fault.role, set()).update(names_of(fault.target))
    assert {role: len(nodes) for role, nodes in hit.items()} == {"broker": 1, "controller": 1}
    with pytest.raises(
        PlanError, match="the plan damages files on n2, n3; at most 1 of 4 nodes of the role broker may be"
    ):
        drawn("file-truncate:broker+n2+n3")


def test_a_plan_comes_back_from_its_file() -> None:
    """Roles are written and read, and the file is the same again."""
    faults = drawn("kill:broker,pause:controller+leader,bridge:broker,disk-full")
    plan = Plan(layout=WHERE, seed=3, time_limit_s=600.0, faults=faults)
    text = to_json(plan)
    again = from_json(text, where=WHERE, source="plan.json")
    assert again == plan
    assert from_json(text, where=layout(NODES), source="plan.json") == plan  # the file has its own roles
    assert to_json(again) == text
    assert '"role": "broker"' in text


def test_a_plan_without_faults_at_roles_says_nothing_of_roles() -> None:
    """A file without roles works on any cluster with these nodes."""
    plan = Plan(layout=WHERE, seed=3, time_limit_s=60.0, faults=drawn("kill", time_limit_s=60.0))
    assert "role" not in to_json(plan)
    assert from_json(to_json(plan), where=layout(NODES), source="plan.json").faults == plan.faults


def entry(**changes: Any) -> str:
    """Returns a plan with one fault."""
    fault = {"kind": "kill", "target": ["n2"], "start_s": 5, "end_s": 9, "role": "broker", **changes}
    return json.dumps({"faults": [fault]})


def test_a_role_may_stand_in_the_target_of_a_file() -> None:
    """A target in a plan has the form of the command line."""
    read = from_json(entry(target="controllers+leader", role=None), where=WHERE, source="plan.json")
    (fault,) = read.faults
    assert (fault.target, fault.role, fault.order) == (LEADER, "controller", ("n1", "n2", "n3"))
    read = from_json(entry(target="all"), where=WHERE, source="plan.json")
    assert (read.faults[0].target, read.faults[0].role) == (ALL, "broker")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (entry(role="proxy"), "unknown role 'proxy'; the roles are: controller on n1, n2, n3; broker on n2, "),
        (entry(target=["n1"]), "unknown target 'n1'"),
        (entry(role=7), "faults[0].role: expected a text or null, found 7"),
        (entry(target="broker", role=None), "names a role without nodes; write e.g. broker+all"),
        (entry(target="leader", order=list(NODES)), "must name every node once: n2, n3, n4, n5"),
        (entry(target="broker+controller+all", role=None), "names several roles; write a fault for each, with the same times"),
        (entry(kind="packet-loss"), "packet-loss cannot be aimed at the role broker"),
        (entry(kind="file-truncate", target=["n2", "n3"]), "at most 1 of 4 nodes of the role broker may be"),
        (
            json.dumps({"faults": [
                {"kind": "kill", "target": ["n2"], "start_s": 5, "end_s": 9, "role": "broker"},
                {"kind": "pause", "target": ["n2", "n3"], "start_s": 8, "end_s": 12},
            ]}),
            "kill from 5 to 9 s and pause from 8 s both hold n2",
        ),
        (
            json.dumps({"faults": [
                {"kind": "kill", "target": "all", "start_s": 5, "end_s": 9, "role": "broker"},
                {"kind": "pause", "target": ["n1", "n5"], "start_s": 8, "end_s": 12},
            ]}),
            "both hold n5",
        ),
        (json.dumps({"roles": ["broker"], "faults": []}), "roles: expected an object, found ['broker']"),
        (json.dumps({"roles": {"broker": ["n9"]}, "faults": []}), "roles.broker: expected names of nodes among n1, n2, n3, "),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_carried_out_is_refused(text: str, message: str) -> None:
    """The error has the known roles, before any node is changed."""
    with pytest.raises(PlanError) as raised:
        from_json(text, where=WHERE, source="plan.json")
    assert message in str(raised.value)


def test_two_roles_of_a_node_may_be_hit_together_by_a_file() -> None:
    """Faults on two roles can share a node, since they affect two processes."""
    both = [
        {"kind": "kill", "target": "all", "start_s": 5, "end_s": 9, "role": "broker"},
        {"kind": "pause", "target": "all", "start_s": 6, "end_s": 9, "role": "controller"},
    ]
    assert len(from_json(json.dumps({"faults": both}), where=WHERE, source="plan.json").faults) == 2


def test_without_roles_none_can_be_aimed_at() -> None:
    """The error has this reason."""
    with pytest.raises(PlanError, match="unknown role 'broker'; the system names no roles"):
        from_json(entry(), where=layout(NODES), source="plan.json")


class Half(Service):
    """A service in memory on each node, with a leader of its own."""

    def __init__(self, system: System, role: str, port: int, leader: str) -> None:
        super().__init__(system)
        self.role = role
        self.serves_clients = role == "front"
        self.port = port
        self.leader = leader

    def daemon(self, node: Node) -> Daemon:
        """Returns the process."""
        role = self.role
        return Daemon(
            role=role, argv=(role,), pattern=f"^{role}", ports=(self.port,), data_dir=f"/{role}", log_files=("/log",)
        )

    async def until_ready(self, nodes: Sequence[Node], timeout_s: float) -> None:
        """Is ready at once."""

    async def statuses(self, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        """Answers after a while."""
        await asyncio.sleep(0.1)
        return [NodeStatus(node=node.name, role="leader" if node.name == self.leader else "follower")]


class Two(System):
    """A system with two services: n1 leads the fronts, and n2 the backs."""

    name = "two"

    def services(self) -> Sequence[Service]:
        """Returns both services."""
        return (Half(self, "front", 1, "n1"), Half(self, "back", 2, "n2"))

    def install(self, node: Node) -> None:
        """Has nothing to install."""

    def client(self, process: int, node: Node, *, pinned: bool = False) -> Any:
        """Has no clients."""
        raise NotImplementedError


class Held(Fault):
    """A fault in the group of processes, without an effect."""

    GROUPS = frozenset({"process"})
    NEEDS = frozenset()
    WHOLE_NODE = None


class Idle(OnNodes):
    """Carries it out: does nothing."""

    async def begin(self) -> Begun:
        """Does nothing."""
        return Begun(targets=self.targets, details={"members": list(self.fault.members), "port": self.fault.port()})

    async def prove(self) -> Proof:
        """Returns a proof without an effect."""
        return Proof(effective=False, reason="not looked at")

    async def end(self) -> None:
        """Ends."""
        self.field.over.add(self.fault.id)


def planned(number: int, target: str | Sequence[str], role: str | None = None) -> PlannedFault:
    """Returns a plan's entry."""
    return PlannedFault(id=number, kind="held", target=target_of(target), start_s=0.0, end_s=5.0, role=role)


@pytest.fixture
def conductor(monkeypatch: pytest.MonkeyPatch) -> Conductor:
    """A nemesis on two nodes that knows one kind."""
    kind = Kind(name="held", fault=Held, on_nodes=Idle, target=None)
    monkeypatch.setattr("nemesis.conductor.find_kind", lambda name: kind)
    monkeypatch.setattr("nemesis.lacking.find_kind", lambda name: kind)
    nodes = (Node(name="n1", address="10.0.0.1"), Node(name="n2", address="10.0.0.2"))
    cluster = SimpleNamespace(nodes=nodes, capabilities=lambda: dict.fromkeys(("n1", "n2"), ABLE))
    return Conductor(cluster=cast("Cluster", cluster), system=Two(cast("Cluster", cluster), NoOptions(), "none"))


def test_each_role_has_a_leader_of_its_own(conductor: Conductor) -> None:
    """A node with two processes can lead with only one of them."""

    async def hit() -> list[Begun]:
        return [
            await conductor.begin(planned(1, "leader", "back")),
            await conductor.begin(planned(2, "leader", "front")),
        ]

    back, front = run_virtual(hit())
    assert (back.targets, back.details) == (("n2",), {"members": ["n1", "n2"], "port": 2})
    assert (front.targets, front.details["port"]) == (("n1",), 1)


def test_processes_are_held_one_by_one(conductor: Conductor) -> None:
    """Faults on two roles of a node can overlap; a third one on the whole node has no free target."""

    async def hit() -> Begun:
        await conductor.begin(planned(1, ["n1"], "front"))
        await conductor.begin(planned(2, ["n1"], "back"))
        with pytest.raises(FaultError, match="3-held has no target left: 2-held already affects n1"):
            await conductor.begin(planned(3, ["n1"]))
        with pytest.raises(FaultError, match="4-held has no target left: 1-held already affects n1"):
            await conductor.begin(planned(4, ["n1"], "front"))
        await conductor.end(planned(1, ["n1"], "front"))
        return await conductor.begin(planned(5, ["n1"], "front"))

    assert run_virtual(hit()).targets == ("n1",)


def test_a_role_without_a_leader_is_named(conductor: Conductor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault on the leading back needs a leader among the backs. The error has what each back said last."""

    async def one(self: Half, node: Node, timeout_s: float) -> Sequence[NodeStatus]:
        if self.role == "front":
            return [NodeStatus(node=node.name, role="leader")]
        if node.name == "n2":
            return [NodeStatus(node=node.name, role="follower", term=3, leader="n1")]
        return []

    monkeypatch.setattr(Half, "statuses", one)
    expected = "1-held needs a leader, and within 3 s no back reported that it leads: "
    with pytest.raises(FaultError, match=expected) as raised:
        run_virtual(conductor.begin(planned(1, "leader", "back")))
    said = str(raised.value).partition(expected)[2].split("; ")
    assert "n2 reports follower in term 3, sees n1" in said
    assert len(said) > 1
    assert all(sentence.endswith(" does not answer") for sentence in said if not sentence.startswith("n2"))
