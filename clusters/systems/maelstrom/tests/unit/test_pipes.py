"""Programs with pipes: real processes, real time, and Maelstrom's protocol."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from clusters.pipes.cluster import PipesCluster
from clusters.systems.maelstrom import topologies
from clusters.systems.maelstrom.options import MaelstromOptions, Topology
from clusters.systems.maelstrom.outcomes import CODES, of_error
from clusters.systems.maelstrom.system import MaelstromSystem
from clusters.systems.maelstrom.vocabulary import VERBS, Unfit
from harness.errors import InfrastructureError, InputError
from harness.op import Fail, Info, Invocation, Ok
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

# A node that does one thing against the protocol when it is asked to echo: argv[1] is a format of what it writes.
NODE = """#!{python}
import json, sys
say = lambda text: print(text, flush=True)
if "early" in sys.argv: say(json.dumps({{"src": "n0", "dest": "timer", "body": {{"type": "wait"}}}}))
if "gone" in sys.argv:
    print("no license", file=sys.stderr, flush=True)
    sys.exit(4)
for line in sys.stdin:
    message = json.loads(line)
    body = message["body"]
    if "in_reply_to" in body: continue
    reply = lambda **more: say(json.dumps({{"src": "n0", "dest": message["src"], "body": {{
        "type": body["type"] + "_ok", "in_reply_to": body["msg_id"], **more}}}}))
    if body["type"] == "init":
        if "mute" not in sys.argv: reply()
        continue
    if body["type"] == "topology":
        if "leaves" in sys.argv: sys.exit(5)
        continue
    reply(**({{"echo": body["echo"]}} if "echo" in body else {{}}))
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what == "twice": reply(echo=body["echo"])
    if what == "unasked": reply(echo=1, in_reply_to=77)
    if what == "nowhere": say(json.dumps({{"src": "n0", "dest": "n7", "body": {{"type": "hello"}}}}))
    if what == "malformed": say("{{not json")
    if what == "foreign": say(json.dumps({{"src": "c0", "dest": "n0", "body": {{"type": "topology"}}}}))
    if what == "nobody": say(json.dumps({{"src": "n9", "dest": "n0", "body": {{"type": "hello"}}}}))
    if what == "codeless": say(json.dumps({{"src": "n0", "dest": "c0", "body": {{"type": "error", "in_reply_to": 1}}}}))
    if what == "talks": say(json.dumps({{"src": "n0", "dest": "c1", "body": {{"type": "news"}}}}))
    if what == "crash":
        print("cannot go on", file=sys.stderr, flush=True)
        sys.exit(3)
"""
VIOLATIONS = {
    "nowhere": "unknown-receiver",
    "nobody": "unknown-sender",
    "malformed": "malformed",
    "crash": "crash",
}
WARNINGS = {
    "twice": "second-answer",
    "unasked": "unasked-answer",
    "talks": "unasked-answer",
    "foreign": "foreign-sender",
    "early": "before-init",
}


def on_node(
    folder: Path,
    arguments: str,
    main: Callable[[MaelstromSystem], Coroutine[Any, Any, None]],
    *,
    workload: str = "echo",
    limit_s: float = 10.0,
    strict: bool = False,
) -> MaelstromSystem:
    """Starts one node, and runs a coroutine with its system."""
    program = folder / "node.py"
    program.write_text(NODE.format(python=sys.executable))
    program.chmod(0o755)
    cluster = PipesCluster(["n0"], 6)
    system = MaelstromSystem(cluster, MaelstromOptions(bin=f"{program} {arguments}", strict=strict), workload)

    async def run() -> None:
        await asyncio.to_thread(system.start, system.nodes[0])
        await system.until_ready(system.nodes, limit_s)
        await main(system)

    try:
        cluster.world.run(run())
    finally:
        cluster.close()
    return system


async def echoed(system: MaelstromSystem) -> None:
    """Asks for an echo, and waits for what comes after it."""
    assert await system.client(0, system.nodes[0]).invoke(Invocation("echo", "hi")) == Ok("hi")
    for _ in range(200):
        details = system.own_parts()[0].details
        if details["counts"] or details["warnings"]:
            break
        await asyncio.sleep(0.01)


def test_a_program_answers_its_clients(tmp_path: Path) -> None:
    """A program that keeps to the protocol is valid, and its stderr is the log of the node."""

    async def main(system: MaelstromSystem) -> None:
        assert await system.client(0, system.nodes[0]).invoke(Invocation("echo", [1, None])) == Ok([1, None])

    (part,) = on_node(tmp_path, "", main).own_parts()
    assert (part.name, part.verdict, part.details["messages"]) == ("protocol", Verdict.VALID, 2)


@pytest.mark.parametrize("what", VIOLATIONS)
def test_each_violation_is_named_with_its_line(what: str, tmp_path: Path) -> None:
    """The part has the kind, the node and the message; a crash has the last lines of stderr."""
    (part,) = on_node(tmp_path, what, echoed).own_parts()
    assert part.verdict is Verdict.INVALID
    assert (part.details["counts"], part.details["warnings"]) == ({VIOLATIONS[what]: 1}, {})
    (violation,) = part.details["against_protocol"]
    assert violation["node"] == "n0"
    if what == "crash":
        assert "ended with status 3; its stderr ends with: cannot go on" in part.reason
    else:
        assert violation["message"] in part.reason
        assert f"in line {violation['line']} of its stdout" in part.reason


@pytest.mark.parametrize("what", WARNINGS)
def test_what_maelstrom_lets_pass_is_a_warning(what: str, tmp_path: Path) -> None:
    """The part stays valid, and has the count and the first message."""
    (part,) = on_node(tmp_path, what, echoed).own_parts()
    assert part.verdict is Verdict.VALID
    assert (part.details["counts"], part.details["warnings"]) == ({}, {WARNINGS[what]: 1})
    (violation,) = part.details["warned"]
    assert f"1 warning (1 {WARNINGS[what]})" in part.reason
    assert violation["message"] in part.reason


def test_with_strict_a_warning_is_a_violation(tmp_path: Path) -> None:
    """For those who want a program to do only what the protocol has."""
    (part,) = on_node(tmp_path, "twice", echoed, strict=True).own_parts()
    assert part.verdict is Verdict.INVALID
    assert (part.details["counts"], part.details["warnings"]) == ({"second-answer": 1}, {})


def test_an_answer_that_does_not_fit_is_a_violation(tmp_path: Path) -> None:
    """The node answers `generate` with no id, so the operation has no result."""

    async def main(system: MaelstromSystem) -> None:
        outcome = await system.client(0, system.nodes[0]).invoke(Invocation("generate"))
        assert isinstance(outcome, Fail)

    (part,) = on_node(tmp_path, "", main, workload="unique-ids").own_parts()
    assert part.details["counts"] == {"unfit-answer": 1}


@pytest.mark.parametrize(
    ("what", "workload", "expected"),
    [
        ("mute", "echo", r"programs were ready within 1 s: n0 did not answer init with init_ok\. They broke no rule"),
        (
            "",
            "broadcast",
            r"ready within 1 s: n0 answered init, but not topology with topology_ok\. They broke no rule",
        ),
        (
            "gone",
            "echo",
            r"n0 ended with status 4, 0\.\d s after its start and before it had answered init .*\. n0 .*ends with: no license",
        ),
        (
            "leaves",
            "broadcast",
            r"n0 ended with status 5, 0\.\d s after its start and after it had answered init with init_ok\.",
        ),
    ],
)
def test_the_error_about_a_program_that_is_not_ready_says_what_it_did(
    what: str, workload: str, expected: str, tmp_path: Path
) -> None:
    """It names the node, and does not say of a program that answered `init` that it did not."""
    with pytest.raises(InfrastructureError, match=expected):
        on_node(tmp_path, what, echoed, workload=workload, limit_s=1.0)


def test_kill_and_pause_act_on_the_real_process(tmp_path: Path) -> None:
    """The states come from the kernel; a request to a dead node fails, and one to a paused node waits."""

    async def main(system: MaelstromSystem) -> None:
        (node,) = system.nodes
        client = system.client(0, node)
        running = system.process_states(node)["node"]
        assert running is not None
        assert running[1] in "RS"
        await asyncio.to_thread(system.pause, node)
        stopped = system.process_states(node)["node"]
        assert stopped == (running[0], "T")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.invoke(Invocation("echo", 1)), 0.1)
        await asyncio.to_thread(system.resume, node)
        assert await client.invoke(Invocation("echo", 2)) == Ok(2)
        await asyncio.to_thread(system.kill, node)
        assert system.process_states(node)["node"] is None
        assert isinstance(await client.invoke(Invocation("echo", 3)), Fail)
        await asyncio.to_thread(system.start, node)
        await system.until_ready(system.nodes, 10)
        again = system.process_states(node)["node"]
        assert again is not None
        assert again[0] != running[0]
        assert await client.invoke(Invocation("echo", 4)) == Ok(4)

    (part,) = on_node(tmp_path, "", main).own_parts()
    assert part.verdict is Verdict.VALID, part.reason


def test_a_new_disk_of_a_node_has_no_files(tmp_path: Path) -> None:
    """All in the folder of the program is gone, and links do not lead out of it."""
    cluster = PipesCluster(["n0", "n1"], 6)
    try:
        kept, folder = tmp_path / "kept", cluster.directory("n0")
        kept.mkdir()
        (kept / "file").write_text("other")
        (folder / "link").symlink_to(kept)
        (folder / "deep").mkdir()
        (folder / "deep" / "log").write_text("12345")
        (cluster.directory("n1") / "log").write_text("1")
        lost = cluster.world.wipe_files("n0")
        assert (lost.files, lost.changed) == (2, 2)
        assert list(folder.iterdir()) == []
        assert (kept / "file").read_text() == "other"
        assert (cluster.directory("n1") / "log").exists()
    finally:
        cluster.close()


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("", "needs --bin COMMAND"),
        ("./nothing", "there is no such file"),
        ("nothing-of-this-name", "PATH has no such program"),
        ("'a", "is not a command of a shell"),
    ],
)
def test_a_command_that_names_no_program_is_refused(command: str, error: str) -> None:
    """The error says what is wrong with --bin."""
    with pytest.raises(InputError, match=error):
        MaelstromOptions(bin=command).command()


def test_definite_errors_fail_and_the_others_are_indeterminate() -> None:
    """The table of Maelstrom; a code of the program's own is indeterminate, and a read fails in any case."""
    for code, (name, definite) in CODES.items():
        outcome = of_error({"code": code, "text": "why"}, is_read=False)
        assert outcome == (Fail if definite else Info)(f"{name}: why")
        assert isinstance(of_error({"code": code}, is_read=True), Fail)
    assert of_error({"code": 1000}, is_read=False) == Info("error-1000")
    assert of_error({"text": "why"}, is_read=False) == of_error({"code": "11", "text": "why"}, is_read=False)
    assert of_error({"code": True}, is_read=False) == Info("error-without-code")


def test_an_answer_must_fit_its_request() -> None:
    """A verb refuses another type and a missing member, and takes an error."""
    verb = VERBS["g-counter"]["read"]
    read = Invocation("read")
    verb.check(read, {"type": "read_ok", "value": 3})
    verb.check(read, {"type": "error", "code": 11})
    for body in ({"type": "add_ok"}, {"type": "read_ok"}, {"type": "read_ok", "value": True}, {}):
        with pytest.raises(Unfit):
            verb.check(read, body)


@pytest.mark.parametrize("topology", list(Topology))
@pytest.mark.parametrize("count", [1, 2, 5, 9, 25])
def test_all_nodes_of_a_topology_reach_each_other(topology: Topology, count: int) -> None:
    """Neighbours are mutual, no node is its own neighbour, and there is a way between any two."""
    names = [f"n{index}" for index in range(count)]
    near = topologies.of(topology, names)
    assert all(name in near[other] for name in names for other in near[name])
    assert all(name not in near[name] for name in names)
    reached, waiting = {"n0"}, ["n0"]
    while waiting:
        new = [name for name in near[waiting.pop()] if name not in reached]
        reached.update(new)
        waiting += new
    assert reached == set(names)
