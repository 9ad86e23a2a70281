"""Whatever method of a user's system or workload fails, the command says which one, in which file and line, and what to do."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest

from benchmarks.fuzz.law import Commands, Outcome
from clusters.sim.system import SimNodes
from harness.errors import ExitCode
from workloads.base import BaseWorkload

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RIGHT = """
from __future__ import annotations
import asyncio
from clusters.sim.host import Reply
from clusters.sim.system import SimNodes
from harness.combinators import limit
from harness.declare import NoOptions
from harness.op import Invocation, Ok
from harness.service import NodeStatus, ReplicaState
from harness.verdict import Part, Verdict
from workloads.base import BaseWorkload

class Echo:
    def __init__(self, host): self.host = host
    def start(self): pass
    def receive(self, sender, message): self.host.send(sender, Reply(message.id, 1))

class Client:
    async def invoke(self, invocation):
        await asyncio.sleep(0.01)
        return Ok(1)
    async def close(self): pass

class RightSystem(SimNodes):
    name = "mine"
    serves = {"mine": "x"}
    moves_leadership = reads_need_leader = dumps_replicas = True
    def factory(self, node): return Echo
    async def until_ready(self, nodes, timeout_s): pass
    async def statuses(self, node, timeout_s):
        role = "leader" if node.name == "n1" else "follower"
        return (NodeStatus(node=node.name, role=role, term=1, leader="n1", applied_index=1),)
    async def replica(self, node, timeout_s): return ReplicaState(node=node.name, applied_index=1, state={})
    async def lead(self, node, timeout_s): return True
    def client(self, process, node, *, pinned=False): return Client()
    def why_not_explored(self, *, one_clock): return None
    def request_of(self, client, invocation): return 1
    def outcome_of(self, invocation, answer): return Ok(answer)

class RightWorkload(BaseWorkload):
    name = "mine"
    summary = "Mine."
    functions = {"read": "reads"}
    Options = NoOptions
    model = None
    def generator(self, *, seed, streams): return limit(10**6, Invocation("read", None, "k"))
    def parts(self, operations, observed): return [Part(name="mine", verdict=Verdict.VALID, reason="Fine.")]
    def clients(self, system): return system

class System(RightSystem):
    pass
class Workload(RightWorkload):
    pass
"""
CHOSEN = ("--nodes=3", "--system=mine.py:System", "--workload=mine.py:Workload")
COMMAND = (*CHOSEN, "--cluster=sim", "--seed=1", "--time-limit=45")
# Methods that the run below does not call, and why.
UNUSED = {
    "alike": "for labrys explore", "outcome_of": "for labrys explore", "request_of": "for labrys explore",
    "why_not_explored": "for labrys explore", "clock": "for real clocks", "runs_java": "for faults of Java",
    "tells_time": "for real clocks", "data_dir": "for faults of real files", "ports": "for faults of real packets",
    "leader_ports": "for faults of real packets", "process_state": "for users", "node_state": "for users",
    "renew": "for faults of real files", "client": "below", "reports": "has one service",
    "service": "for faults of several roles", "tool": "for the system itself",
}  # fmt: skip


def members(cls: type) -> list[str]:
    """Returns the methods and properties that a plug-in may define."""
    kinds = (property, classmethod, staticmethod)
    names = [name for name in dir(cls) if not name.startswith("_") or name == "__init__"]
    by_name = {name: inspect.getattr_static(cls, name) for name in names}
    return [name for name, member in by_name.items() if isinstance(member, kinds) or inspect.isfunction(member)]


FAILS = '        raise ValueError("no \x1b[31m luck")\n'


def failing(cls: type, name: str, fails: str = FAILS) -> str:
    """Returns the source of a member that fails, of the same kind as that of a class."""
    member = inspect.getattr_static(cls, name, None)
    if isinstance(member, property):
        return f"    @property\n    def {name}(self):\n{fails}"
    if isinstance(member, classmethod):
        words = "nodes=None, options=None, workload=None, workload_options=None, say=None"  # `roles` is checked for one
        return f"    @classmethod\n    def {name}(cls, {words}):\n{fails}"
    return f"    {'async ' if inspect.iscoroutinefunction(member) else ''}def {name}(self, *words, **named):\n{fails}"


# What methods return that must return something else: the value, and how it is named.
WRONG = {"None": "None", "7": r"an int \(7\)", "'x\\x1b[31m'": r"a str \(.*x.*\)"}


def due(cls: type, name: str) -> str:
    """Returns what a member must return; empty if Labrys does not use its result."""
    member = inspect.getattr_static(cls, name, None)
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    annotation = getattr(function, "__annotations__", {}).get("return", "None")
    return "" if annotation in {"None", "Any"} else annotation


def is_wrong(value: str, expected: str) -> bool:
    """Returns whether a value is of another type than a member must return."""
    kind = {"None": "None", "7": "int"}.get(value, "str")
    return kind not in {word.strip() for word in expected.split("|")}


def wrong_returns(cls: type, names: list[str]) -> list[tuple[str, str]]:
    """Returns members, each with one value that it must not return; `tests/unit/harness/test_returns.py` tries all values."""
    values_by_name = [
        (name, [value for value in WRONG if is_wrong(value, due(cls, name))]) for name in names if due(cls, name)
    ]
    return [(name, values[index % len(values)]) for index, (name, values) in enumerate(values_by_name)]


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    """The process that carries out commands in forks."""
    with Commands() as started:
        yield started


def returned(  # noqa: PLR0917 - as `ran`, with a value
    commands: Commands, folder: Path, kind: str, cls: type, name: str, value: str, *words: str
) -> tuple[Outcome, str]:
    """Runs a command with a plug-in whose method returns a wrong value. Returns the outcome, and the sentence that is right."""
    method = failing(cls, name, f"        return {value}\n")
    text = RIGHT.replace(f"class {kind}(Right{kind}):\n    pass\n", f"class {kind}(Right{kind}):\n{method}")
    (folder / "mine.py").write_text(text)
    first = next(line for line in method.splitlines() if line.strip())
    line = text[: text.index(f"class {kind}(Right{kind})")].count("\n") + 2 + method.splitlines().index(first)
    ended = commands.run(words, folder, cluster=True)
    assert "Traceback" not in ended.err + ended.out
    assert "\x1b" not in ended.err + ended.out
    expected = rf"(?:an awaitable of )?{re.escape(due(cls, name))}.*"
    location = rf"\(\S*mine\.py:{line}\)"
    return (
        ended,
        rf"{kind.lower()} \S+: {name} {location} returned {WRONG[value]}; expected {expected}; correct the {kind.lower()}",
    )


def ran(commands: Commands, folder: Path, kind: str, cls: type, name: str, *words: str) -> tuple[Outcome, str]:
    """Runs a command with a plug-in whose method fails. Returns the outcome, and the sentence that is right."""
    text = RIGHT.replace(f"class {kind}(Right{kind}):\n    pass\n", f"class {kind}(Right{kind}):\n{failing(cls, name)}")
    (folder / "mine.py").write_text(text)
    line = text[: text.index("raise ValueError")].count("\n") + 1
    ended = commands.run(words, folder, cluster=True)
    assert "Traceback" not in ended.err + ended.out
    assert "\x1b" not in ended.err + ended.out
    location = re.escape(f"mine.py:{line}")
    return (
        ended,
        rf"{kind.lower()} \S+: {name} \(\S*{location}\) failed: ValueError: no \S+ luck; correct the {kind.lower()}",
    )


def test_the_right_plug_in_is_valid(commands: Commands, tmp_path: Path) -> None:
    """Without a failing method, the run below has nothing to say."""
    (tmp_path / "mine.py").write_text(RIGHT)
    ended = commands.run(["test", *COMMAND, "--nemesis=kill,pause"], tmp_path, cluster=True)
    assert (ended.status, "failed" in ended.err + ended.out) == (ExitCode.VALID, False), ended.err


def test_a_system_may_be_named_by_an_absolute_path(commands: Commands, tmp_path: Path) -> None:
    """The name of the test comes from its place, and a folder of the store does not begin with the mark of a slash."""
    (tmp_path / "mine.py").write_text(RIGHT)
    location = f"{tmp_path / 'mine.py'}:System"
    words = [word if "--system" not in word else f"--system={location}" for word in COMMAND]
    ended = commands.run(["test", *words], tmp_path, cluster=True)
    assert ended.status == ExitCode.VALID, ended.err


@pytest.mark.parametrize("name", [name for name in members(SimNodes) if name not in UNUSED])
def test_a_system_that_fails_is_named(commands: Commands, tmp_path: Path, name: str) -> None:
    """An error before the workload ends the run with 255; a later one costs its part."""
    ended, right = ran(commands, tmp_path, "System", SimNodes, name, "test", *COMMAND, "--nemesis=kill,pause")
    told = [line for line in (ended.err + ended.out).splitlines() if re.search(right, line)]
    assert told, ended.err
    if ended.err.splitlines()[-1].startswith("labrys: "):
        assert ended.status == ExitCode.INTERNAL
        assert len([line for line in told if line.startswith("labrys: ")]) == 1
    else:
        assert ended.status in {ExitCode.VALID, ExitCode.UNKNOWN, ExitCode.INTERNAL}
        assert name == "resume" or ended.status != ExitCode.VALID


@pytest.mark.parametrize("method", ["client", "invoke", "close"])
def test_a_client_that_fails_is_named_in_its_operations(commands: Commands, tmp_path: Path, method: str) -> None:
    """An exception of a client is an answer of an operation, so the run goes on."""
    fails = f"def {method}(self, *words, **named):\n        raise ValueError('no luck')\n"
    if method == "client":
        text = RIGHT.replace("class System(RightSystem):\n    pass\n", f"class System(RightSystem):\n    {fails}")
    else:
        text = re.sub(rf"(    async )def {method}\(.*\n(        .*\n)*", rf"\1{fails}", RIGHT)
    (tmp_path / "mine.py").write_text(text)
    ended = commands.run(["test", *COMMAND], tmp_path, cluster=True)
    assert "Traceback" not in ended.err + ended.out
    (history,) = (tmp_path / "store").glob("*/2*/history.jsonl")
    location = rf"ValueError: no luck, in {method} \(\S*mine\.py:\d+\)"
    if method == "close":
        assert ended.status == ExitCode.VALID
        assert not re.search(location, history.read_text())
    else:
        assert ended.status == ExitCode.UNKNOWN
        assert re.search(location, history.read_text())


@pytest.mark.parametrize("name", [*members(BaseWorkload), "clients"])
def test_a_workload_that_fails_is_named(commands: Commands, tmp_path: Path, name: str) -> None:
    """Its check costs its part: the parts of Labrys are decided."""
    ended, right = ran(commands, tmp_path, "Workload", BaseWorkload, name, "test", *COMMAND)
    assert re.search(right, ended.err + ended.out), ended.err
    if name in {"check", "parts", "final_part"}:
        assert ended.status == ExitCode.UNKNOWN
        assert re.search(rf"(?m)^mine +\? unknown +The operations could not be judged: {right}", ended.out)
        assert re.search(r"(?m)^progress +✓ valid", ended.out)
    else:
        assert ended.status == ExitCode.INTERNAL


USED = [name for name in members(SimNodes) if name not in UNUSED]


@pytest.mark.parametrize(("name", "value"), wrong_returns(SimNodes, USED))
def test_a_system_that_returns_a_wrong_value_is_named(
    commands: Commands, tmp_path: Path, name: str, value: str
) -> None:
    """The sentence has the method, its place, what came and what was expected; no run is valid by it."""
    ended, right = returned(
        commands, tmp_path, "System", SimNodes, name, value, "test", *COMMAND, "--nemesis=kill,pause"
    )
    assert re.search(right, ended.err + ended.out), ended.err + ended.out
    assert ended.status in {ExitCode.UNKNOWN, ExitCode.INTERNAL}


@pytest.mark.parametrize(("name", "value"), wrong_returns(BaseWorkload, members(BaseWorkload)))
def test_a_workload_that_returns_a_wrong_value_is_named(
    commands: Commands, tmp_path: Path, name: str, value: str
) -> None:
    """Its check costs its part, and the other methods the run."""
    ended, right = returned(commands, tmp_path, "Workload", BaseWorkload, name, value, "test", *COMMAND)
    assert re.search(right, ended.err + ended.out), ended.err + ended.out
    assert ended.status == (ExitCode.UNKNOWN if name in {"check", "parts", "final_part"} else ExitCode.INTERNAL)


@pytest.mark.parametrize(
    ("name", "value"), wrong_returns(SimNodes, ["why_not_explored", "outcome_of", "factory", "alike"])
)
def test_labrys_explore_names_a_wrong_value(commands: Commands, tmp_path: Path, name: str, value: str) -> None:
    """It asks other methods than a run."""
    ended, right = returned(
        commands, tmp_path, "System", SimNodes, name, value, "explore", *CHOSEN, "--operations=read"
    )
    assert re.search(right, ended.err + ended.out), ended.err + ended.out


@pytest.mark.parametrize(("method", "value"), [("client", "None"), ("invoke", "7")])
def test_a_client_that_returns_a_wrong_value_is_named(
    commands: Commands, tmp_path: Path, method: str, value: str
) -> None:
    """The operation says it, as for an exception."""
    if method == "client":
        made = f"    def client(self, *words, **named):\n        return {value}\n"
        text = RIGHT.replace("class System(RightSystem):\n    pass\n", f"class System(RightSystem):\n{made}")
    else:
        text = RIGHT.replace("        return Ok(1)\n", f"        return {value}\n")
    (tmp_path / "mine.py").write_text(text)
    ended = commands.run(["test", *COMMAND], tmp_path, cluster=True)
    assert "Traceback" not in ended.err + ended.out
    assert ended.status == ExitCode.UNKNOWN, ended.err
    (history,) = (tmp_path / "store").glob("*/2*/history.jsonl")
    expected = "Ok, Fail or Info" if method == "invoke" else "Client"
    operations = history.read_text()
    assert re.search(rf"{method} \(\S*mine\.py:\d+\) returned .*; expected {expected}", operations), operations[:900]


@pytest.mark.parametrize("name", ["generator", "__init__"])
def test_labrys_plan_names_the_workload_that_fails(commands: Commands, tmp_path: Path, name: str) -> None:
    """The plan has its first operations."""
    ended, right = ran(commands, tmp_path, "Workload", BaseWorkload, name, "plan", *COMMAND)
    assert ended.status == ExitCode.INTERNAL
    assert re.fullmatch(f"labrys: {right}\n", ended.err)


def test_labrys_explore_names_a_message_to_nobody(commands: Commands, tmp_path: Path) -> None:
    """A client gets a Reply only."""
    (tmp_path / "mine.py").write_text(RIGHT.replace("Reply(message.id, 1)", "message"))
    ended = commands.run(["explore", *CHOSEN, "--operations=read"], tmp_path)
    sent = "n1 sent 'Request(id=0, body=1)' to 'client-0'; correct the system"
    assert (ended.status, ended.err) == (
        ExitCode.INTERNAL, f"labrys: expected a message to a node, or a Reply; {sent}\n"
    )  # fmt: skip


@pytest.mark.parametrize("name", ["why_not_explored", "request_of", "outcome_of", "factory", "alike"])
def test_labrys_explore_names_the_system_that_fails(commands: Commands, tmp_path: Path, name: str) -> None:
    """It asks other methods than a run."""
    ended, right = ran(commands, tmp_path, "System", SimNodes, name, "explore", *CHOSEN, "--operations=read")
    assert re.search(right, ended.err + ended.out), ended.err
