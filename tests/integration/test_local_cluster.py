"""A local cluster: fast start, isolated nodes, and complete removal, also after its process was killed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import cli
from clusters.errors import ClusterError, ClusterExists, NoSuchCluster
from clusters.local import LocalCluster, list_clusters, namespaces, take_down
from clusters.local import cluster as cluster_module
from clusters.local import state as state_module
from harness.cluster import on_all
from harness.errors import InfrastructureError, InputError
from harness.node_clocks import read_clocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture
def name() -> Iterator[str]:
    """A name for this test; its cluster is removed at the end."""
    own = f"t{os.getpid()}-{secrets.token_hex(3)}"
    yield own
    take_down(own)


def host() -> dict[str, str]:
    """The state of the host that a cluster could change: links, addresses, routes, packet rules."""
    commands = {
        "links": "ip -o link",
        "addresses": "ip -o addr",
        "routes": "ip route",
        "rules": "iptables-save; ip6tables-save",
    }
    outputs = {
        what: subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=20).stdout
        for what, command in commands.items()
    }
    # Counters, times and lifetimes change by themselves.
    outputs["rules"] = "\n".join(line for line in outputs["rules"].splitlines() if line.startswith("-A"))
    outputs["addresses"] = "\n".join(line.split(" valid_lft")[0] for line in outputs["addresses"].splitlines())
    return outputs


def traces(name: str) -> dict[str, list[str]]:
    """The remains of a cluster: namespaces, mounts, processes, files, loop devices."""
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if f"/run/labrys/{name}/" in (entry / "cmdline").read_text().replace("\0", " "):
                    processes.append(entry.name)
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    by_kind = {
        "namespaces": [entry.name for entry in namespaces.NETNS_DIR.glob(f"labrys-{name}-*")],
        "mounts": mounts,
        "processes": processes,
        "files": [str(path) for path in [state_module.STATE_ROOT / name] if path.exists()],
    }
    return {what: left for what, left in by_kind.items() if left}


def marker_processes(marker: str) -> list[str]:
    """The processes `sleep MARKER` on this machine, nodes included."""
    done = subprocess.run(["pgrep", "-fx", f"sleep {marker}"], capture_output=True, text=True, timeout=10, check=False)
    return done.stdout.split()


def await_markers(marker: str, count: int) -> None:
    """Waits until this number of processes `sleep MARKER` run, since a shell needs some time for its exec."""
    deadline_s = time.monotonic() + 10
    while len(marker_processes(marker)) != count:
        assert time.monotonic() < deadline_s, (
            f"{marker_processes(marker)} instead of {count} processes `sleep {marker}`"
        )
        time.sleep(0.05)


def run_python(script: str, *arguments: str, wait: bool = True) -> subprocess.Popen[str]:
    """Starts a script in a process that can be killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if wait:
        process.wait(60)
    return process


def labrys(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in this process, which is faster than a new one."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
        cli.main(list(arguments))
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def test_five_nodes_answer_in_five_seconds(name: str) -> None:
    """Five nodes answer SSH in under 5 s, under their own names, which resolve on every node; nothing is left afterwards."""
    before = host()
    began_s = time.monotonic()
    with LocalCluster.up(name) as made:
        assert time.monotonic() - began_s < 5
        assert [node.name for node in made.nodes] == ["n1", "n2", "n3", "n4", "n5"]
        names = "hostname; " + "; ".join(f"getent hosts {node.name}" for node in made.nodes)
        expected = [part for node in made.nodes for part in (node.address, node.name)]
        for node, answer in on_all(made.nodes, lambda node: made.remote(node).run(names).stdout.split()).items():
            assert answer == [node, *expected]
        assert host() == before
        assert traces(name)
    assert not traces(name)
    assert host() == before


def test_nodes_are_apart(cluster: LocalCluster) -> None:
    """A node has its own processes, files, packet rules, host name and shared memory; the host sees none of them."""
    one, two = (cluster.remote(node) for node in cluster.nodes[:2])
    one.run(
        "echo mine >/srv/mine; echo mine >/dev/shm/mine; echo mine >/tmp/mine; iptables -A INPUT -s 192.0.2.77 -j DROP"
    )
    one.run("setsid nohup sleep 7654 </dev/null >/dev/null 2>&1 &")
    try:
        for path in ("/srv/mine", "/dev/shm/mine", "/tmp/mine"):  # noqa: S108 - on the node
            assert one.run(f"cat {path}").stdout == "mine\n"
            assert two.run(f"cat {path}", check=False).status != 0
            assert not Path(path).exists()
        assert "192.0.2.77" not in two.run("iptables -S").stdout + host()["rules"]
        assert two.run("pgrep -fx 'sleep 7654'", check=False).status == 1
        assert one.run("cat /proc/1/comm").stdout == "sshd\n"
    finally:
        one.run(
            "rm -f /srv/mine /dev/shm/mine /tmp/mine; iptables -D INPUT -s 192.0.2.77 -j DROP; pkill -fx 'sleep 7654'"
        )


def test_nodes_reach_each_other_and_are_reached_from_inside(cluster: LocalCluster) -> None:
    """A node reaches another one's address, and so does a client inside `entered()`."""
    at = cluster.nodes[2].address
    assert cluster.remote(cluster.nodes[0]).run(f"bash -c 'head -c 7 </dev/tcp/{at}/22'").stdout == "SSH-2.0"
    with cluster.entered(), socket.create_connection((at, 22), timeout=3) as connection:
        assert connection.recv(7) == b"SSH-2.0"


def test_nodes_tell_their_clocks(cluster: LocalCluster) -> None:
    """The nodes share the clock of this machine, so an offset is not more than its uncertainty."""
    clocks, unknown = read_clocks(cluster, cluster.nodes)
    assert unknown == {}
    assert list(clocks) == [node.name for node in cluster.nodes]
    assert all(clock.ahead_ns == 0 for clock in clocks.values()), clocks


def test_processes_of_nodes_end_with_the_cluster(name: str) -> None:
    """`down` ends a process that ignores signals and left its session, and leaves no zombie."""
    marker = f"9{os.getpid()}.5"
    made = LocalCluster.up(name, nodes=2)
    own = [str(first.pid) for first in made._first_processes.values()]
    for node in made.nodes:
        made.remote(node).run(
            f"setsid nohup sh -c \"trap '' HUP TERM INT; sleep {marker}\" </dev/null >/dev/null 2>&1 &"
        )
    await_markers(marker, 2)
    made.down()

    assert not marker_processes(marker)
    assert not traces(name)
    assert not [pid for pid in own if Path(f"/proc/{pid}").exists()]
    made.down()


def test_other_children_are_left_alone(name: str) -> None:
    """Taking a cluster down does not take the exit status of a child that is not a node."""
    child = subprocess.Popen(["sh", "-c", "exit 7"])
    time.sleep(0.1)
    LocalCluster.up(name, nodes=1).down()

    assert child.wait(5) == 7


def test_an_exception_takes_the_cluster_down(name: str) -> None:
    """After an error inside the context nothing is left, and the error is raised."""
    with pytest.raises(ZeroDivisionError), LocalCluster.up(name, nodes=1):
        raise ZeroDivisionError

    assert not traces(name)


HOLD = """
    import sys, time
    from clusters.local import LocalCluster
    with LocalCluster.up(sys.argv[1], nodes=2) as made:
        made.remote(made.nodes[0]).run(f"setsid nohup sleep {sys.argv[2]} </dev/null >/dev/null 2>&1 &")
        print("up", flush=True)
        time.sleep(60)
"""


def test_ctrl_c_takes_the_cluster_down(name: str) -> None:
    """SIGINT during the use of the cluster leaves nothing."""
    marker = f"8{os.getpid()}.5"
    process = run_python(HOLD, name, marker, wait=False)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)

    assert process.wait(20) != 0
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert not traces(name)
    assert not marker_processes(marker)


def test_down_cleans_up_after_kill_9(name: str) -> None:
    """`labrys cluster down` removes the cluster of a killed process, and reports it; a second call finds nothing."""
    marker = f"7{os.getpid()}.5"
    process = run_python(HOLD, name, marker, wait=False)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    await_markers(marker, 1)
    process.kill()
    process.communicate()
    assert set(traces(name)) == {"namespaces", "mounts", "processes", "files"}
    assert marker_processes(marker)

    assert "taken down" in labrys("cluster", "down", name).stderr
    assert not traces(name)
    assert not marker_processes(marker)
    again = labrys("cluster", "down", name)
    assert again.returncode == 254
    assert f"there is no local cluster {name}. " in again.stderr


# Ends itself with a signal at the Nth change of the machine, while it makes or removes a cluster.
STRICKEN = """
    import os, sys
    from clusters.local import LocalCluster, take_down
    name, phase, number, signal = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    seen = 0
    def audit(event, arguments):
        global seen
        if armed and event in ("subprocess.Popen", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "open"):
            if event == "open" and not (str(arguments[0]).startswith("/run/") and arguments[2] & os.O_CREAT):
                return
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal)
    armed = False
    sys.addaudithook(audit)
    armed = phase == "up"
    made = LocalCluster.up(name, nodes=2)
    armed = phase == "down"
    made.down()
    print(seen)
"""


def _steps(name: str, phase: str) -> int:
    process = run_python(STRICKEN, name, phase, "-1", "0")
    return int(process.communicate()[0])


@pytest.mark.parametrize("phase", ["up", "down"])
def test_kill_9_at_any_step(name: str, phase: str) -> None:
    """After SIGKILL at any step of making or removing, `down` removes the rest, and the name is free again."""
    steps = _steps(name, phase)
    codes = []
    for number in range(1, steps + 1, max(1, steps // 7)):
        process = run_python(STRICKEN, name, phase, str(number), str(int(signal.SIGKILL)))
        codes.append(process.returncode)
        take_down(name)
        assert not traces(name), f"killed at step {number} of {steps}"
    assert set(codes) == {-signal.SIGKILL}
    with LocalCluster.up(name, nodes=1):
        pass


def test_ctrl_c_at_any_step_of_making(name: str) -> None:
    """After SIGINT at any step of making a cluster, nothing is left, even without `down`."""
    steps = _steps(name, "up")
    for number in range(2, steps + 1, max(1, steps // 5)):
        process = run_python(STRICKEN, name, "up", str(number), str(int(signal.SIGINT)))
        assert "KeyboardInterrupt" in process.communicate()[1]
        assert not traces(name), f"interrupted at step {number} of {steps}"


def test_clusters_side_by_side(name: str) -> None:
    """Concurrent clusters have separate networks, and the removal of one leaves the others."""
    names = [f"{name}-{letter}" for letter in "abc"]
    try:
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(lambda one: LocalCluster.up(one, nodes=2), names))
        assert len({node.address for one in made for node in one.nodes}) == 6
        for one in made:
            one.remote(one.nodes[0]).run(f"echo {one.name} >/srv/name")
        made[0].down()
        assert not traces(names[0])
        assert [one.remote(one.nodes[0]).run("cat /srv/name").stdout.strip() for one in made[1:]] == names[1:]
        assert {one.name for one in list_clusters()} >= set(names[1:])
        for one in made[1:]:
            one.down()
    finally:
        for one_name in names:
            take_down(one_name)


def test_a_name_is_taken_once(name: str) -> None:
    """A second cluster of a name is refused, and an old object cannot remove a new cluster of the name."""
    old = LocalCluster.up(name, nodes=1)
    with pytest.raises(ClusterExists, match=f"labrys cluster down {name}"):
        LocalCluster.up(name, nodes=1)
    assert old.remote(old.nodes[0]).run("hostname").stdout == "n1\n"
    LocalCluster.attach(name).down()
    new = LocalCluster.up(name, nodes=1)
    first = old._first_processes["n1"].pid
    old.down()
    assert not Path(f"/proc/{first}").exists()

    assert new.remote(new.nodes[0]).run("hostname").stdout == "n1\n"
    new.down()
    with pytest.raises(NoSuchCluster, match="there is no cluster"):
        LocalCluster.attach(name)


@pytest.mark.parametrize("wrong", ["", "Upper", "a/b", "../x", "a b", "-a", "a" * 40, "a\n"])
def test_a_name_that_cannot_be(wrong: str) -> None:
    """A name that cannot be part of a path or namespace is an error, for making and for removing."""
    with pytest.raises(InputError, match="a cluster's name has"):
        LocalCluster.up(wrong)
    with pytest.raises(InputError, match="a cluster's name has"):
        take_down(wrong)


def test_a_node_that_does_not_come_up(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a node's first process ends, there is an error at once, with its output, and nothing is left."""
    (tmp_path / "node.sh").write_text("echo 'no such overlay' >&2; exit 1")
    monkeypatch.setattr(cluster_module, "NODE_SCRIPT", tmp_path / "node.sh")
    began_s = time.monotonic()
    with pytest.raises(ClusterError, match="n1 ended at its start; it wrote: no such overlay"):
        LocalCluster.up(name, nodes=1)

    assert time.monotonic() - began_s < 5
    assert not traces(name)


def test_a_node_that_keeps_silent(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a node does not answer, there is an error at the deadline, with its output, and nothing is left."""
    (tmp_path / "node.sh").write_text("echo 'still thinking'; exec sleep 60")
    monkeypatch.setattr(cluster_module, "NODE_SCRIPT", tmp_path / "node.sh")
    monkeypatch.setattr(cluster_module, "READY_TIMEOUT_S", 0.5)
    with pytest.raises(ClusterError, match=r"n1 does not answer SSH after 0.5 s(.|\n)*still thinking"):
        LocalCluster.up(name, nodes=1)

    assert not traces(name)


def test_a_missing_program_is_named_with_its_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sshd and iptables, one message has both and how to install them; nothing is begun."""
    real = namespaces.find_program
    monkeypatch.setattr(
        namespaces, "find_program", lambda program: None if program in {"sshd", "iptables"} else real(program)
    )
    with pytest.raises(InfrastructureError, match=r"lacks sshd, iptables, .*`apt-get install iptables openssh-server`"):
        LocalCluster.up(name)

    assert not traces(name)


def test_a_full_disk(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the state cannot be written, there is a clear error, and nothing is left."""
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "small", str(small)], check=True, timeout=10)
    try:
        (small / "filler").write_bytes(bytes(4096))
        monkeypatch.setattr(state_module, "STATE_ROOT", small)
        monkeypatch.setattr(state_module, "LOCK_FILE", small / ".lock")
        with pytest.raises(ClusterError, match="cannot be written: No space left"):
            LocalCluster.up(name)
        assert sorted(entry.name for entry in small.iterdir()) == [".lock", "filler"]
    finally:
        subprocess.run(["umount", str(small)], check=True, timeout=10)


AS_NOBODY = """
    import os, sys
    import cli, commands.setup.clusters, clusters.doctor, clusters.local, harness.cluster, paramiko, fabric
    import harness.builds, harness.packages, tools.default_system
    tools.default_system.system()
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize("arguments", [["up"], ["status"], ["down"]])
def test_without_root(name: str, arguments: list[str]) -> None:
    """Without root, there is an error with a fix, and nothing is begun."""
    process = run_python(AS_NOBODY, "cluster", *arguments, name)
    _, stderr = process.communicate()

    assert process.returncode == 255
    assert stderr.startswith("labrys: ")
    assert "sudo" in stderr
    assert stderr.count("\n") == 1
    assert not traces(name)


def test_doctor_without_root() -> None:
    """Without root, the doctor examines what it can, and shows that root is missing."""
    process = run_python(AS_NOBODY, "doctor", "--format", "json")
    document = json.loads(process.communicate()[0])

    assert process.returncode == 255
    root = next(finding for finding in document["machine"] if finding["what"] == "root")
    assert not root["ok"]
    assert "sudo" in root["fix"]
    rights = {finding["what"]: finding["ok"] for finding in document["programs_in_virtual_time"]}
    assert not rights["namespaces"]
    assert rights["ptrace"]
    assert document["nodes"] == []
    assert "root" in document["nodes_error"]


def test_doctor_looks_at_a_node(name: str) -> None:
    """With root, the doctor makes a node, reports its capabilities, and removes it."""
    done = labrys("doctor")

    assert done.returncode == 0, done.stdout
    assert " iptables-statistic " in done.stdout
    assert "  ok       ptrace " in done.stdout
    assert "shares this machine's clock" in done.stdout
    assert not [one.name for one in list_clusters() if one.name.startswith("doctor-") and not _is_running(one.name)]


def _is_running(doctor: str) -> bool:
    return Path("/proc", doctor.removeprefix("doctor-")).exists()


def test_the_command_line(name: str) -> None:
    """Up, status, shell, heal and down work, with results on standard output and right exit codes."""
    up = subprocess.run(  # a process of its own, which the nodes outlive
        [sys.executable, "-m", "cli", "cluster", "up", name, "--nodes", "2"],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert up.returncode == 0, up.stderr
    assert [line.split()[0] for line in up.stdout.splitlines()] == ["n1", "n2"]
    twice = labrys("cluster", "up", name)
    assert (twice.returncode, twice.stdout) == (254, "")
    shell = subprocess.run(
        [sys.executable, "-m", "cli", "cluster", "shell", "n2", name],
        cwd=ROOT, input="hostname; exit 3\n", capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (shell.returncode, shell.stdout) == (3, "n2\n")
    assert "Did you mean 'n2'?" in labrys("cluster", "shell", "n22", name).stderr

    made = LocalCluster.attach(name)
    made.remote(made.nodes[1]).run(
        "iptables -N LABRYS && iptables -A INPUT -j LABRYS && iptables -A LABRYS -s 192.0.2.1 -j DROP"
    )
    assert labrys("cluster", "heal", name).stdout == "n1 had nothing to heal\nn2 iptables chain LABRYS\n"
    status = labrys("cluster", "status", name, "--format", "json")
    assert [(row["node"], row["error"]) for row in json.loads(status.stdout)] == [("n1", None), ("n2", None)]
    namespaces.remove(made._state.namespace(made.nodes[0]))
    broken = labrys("cluster", "status", name)
    assert broken.returncode == 255
    assert f"{name} n2 {made.nodes[1].address} answers" in broken.stdout
    made.close()
    assert labrys("cluster", "down", name).returncode == 0
    assert not traces(name)


def test_time_of_many(name: str, record_property: Callable[[str, object], None]) -> None:
    """Nine nodes are also up in under 5 s."""
    began_s = time.monotonic()
    with LocalCluster.up(name, nodes=9):
        took_s = time.monotonic() - began_s
        record_property("up_s", took_s)
        assert took_s < 5
