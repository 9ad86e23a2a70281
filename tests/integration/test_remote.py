"""The guarantees of a remote shell, on real sshds: deadlines, many commands, big files, dead links, wrong keys."""

from __future__ import annotations

import dataclasses
import hashlib
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import paramiko
import pytest

from clusters.local import LocalCluster, keys, namespaces
from harness.errors import CommandFailed, CommandTimeout, InfrastructureError, NodeError, NodeUnreachable
from harness.remote import exchange
from harness.remote.fabric import Endpoint, FabricRemote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.fixture
def remote(cluster: LocalCluster) -> FabricRemote:
    """The shell on n1."""
    return cluster.remote(cluster.nodes[0])


@pytest.fixture
def endpoint(cluster: LocalCluster) -> Endpoint:
    """The endpoint of n1; a new remote must enter the cluster's network."""
    return cluster.endpoint(cluster.nodes[0])


def test_a_result_tells_what_the_command_did(remote: FabricRemote) -> None:
    """Status, both outputs, node and command come back unchanged, also if they are not text."""
    result = remote.run("echo räksmörgås; printf '\\377' >&2; exit 3", check=False)

    assert (result.node, result.status, result.stdout, result.stderr) == (
        "n1",
        3,
        "räksmörgås\n",
        "\N{REPLACEMENT CHARACTER}",
    )


def test_a_failure_names_node_command_status_and_stderr(remote: FabricRemote) -> None:
    """A status other than 0 is an error with node, command, status and output."""
    with pytest.raises(CommandFailed) as caught:
        remote.run("echo it broke >&2; exit 7")

    assert str(caught.value) == "n1: `echo it broke >&2; exit 7` ended with status 7: it broke"


def test_a_signal_is_a_status(remote: FabricRemote) -> None:
    """A command that a signal ended has the status 128 plus the signal's number; this is not a lost connection."""
    assert remote.run("kill -9 $$", check=False).status == 137
    assert remote.run("kill -TERM $$", check=False).status == 143


@pytest.mark.parametrize("command", ["sleep 4321", "trap '' TERM INT HUP; sleep 4321 & sleep 4321 | cat"])
def test_a_command_past_its_deadline_is_gone(remote: FabricRemote, command: str) -> None:
    """At the deadline there is an error, and no process of the command is left, even if it ignores signals."""
    began_s = time.monotonic()
    with pytest.raises(CommandTimeout) as caught:
        remote.run(command, timeout_s=0.5)

    assert time.monotonic() - began_s < 3
    assert caught.value.node == "n1"
    assert not remote.run("pgrep -fx 'sleep 4321'", check=False).stdout


def test_a_deadline_holds_while_the_command_floods(remote: FabricRemote) -> None:
    """Too much output ends the command with an error, without much time or memory."""
    began_s = time.monotonic()
    with pytest.raises(NodeError, match="wrote more than"):
        remote.run("cat /dev/zero", timeout_s=30)

    assert time.monotonic() - began_s < 15


def test_output_takes_linear_time(remote: FabricRemote) -> None:
    """16 MB of output arrive whole, in seconds."""
    began_s = time.monotonic()

    assert len(remote.run("head -c 16000000 /dev/zero").stdout) == 16_000_000
    assert time.monotonic() - began_s < 10


def test_a_background_process_must_not_hold_the_output(remote: FabricRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon with redirected output continues; one that keeps the session open is an error with a fix."""
    remote.run("setsid nohup sleep 20 </dev/null >/dev/null 2>&1 &")
    remote.run(
        "for turn in $(seq 100); do pkill -fx 'sleep 20' && exit 0; sleep 0.05; done; exit 1"
    )  # it is `nohup` first

    monkeypatch.setattr(exchange, "HELD_S", 1.0)
    with pytest.raises(NodeError, match="redirect the output"):
        remote.run("sleep 21 &")
    remote.run("pkill -fx 'sleep 21'")


def test_input_is_what_was_given(remote: FabricRemote) -> None:
    """All of the input arrives; by default it is empty; a command need not read it."""
    content = "ä\n" * 300_000

    assert remote.run("sha256sum", stdin=content).stdout.split()[0] == hashlib.sha256(content.encode()).hexdigest()
    assert not remote.run("cat", timeout_s=5).stdout
    assert remote.run("exec <&-; echo done", stdin=content).stdout == "done\n"


def test_32_commands_at_once(remote: FabricRemote) -> None:
    """More commands than sshd's limit of sessions all run, each with its own answer."""
    remote.close()
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda number: remote.run(f"sleep 0.1; echo {number}").stdout, range(32)))

    assert answers == [f"{number}\n" for number in range(32)]


def test_a_refusal_without_its_reason_is_asked_for_again(remote: FabricRemote, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two sessions are refused at once, paramiko gives the reason to only one; both commands still run."""
    opened = paramiko.Transport.open_session
    refusals = [paramiko.ChannelException(2, "Connect failed"), paramiko.SSHException("Unable to open channel.")]

    def refuse_first(transport: paramiko.Transport, **options: Any) -> paramiko.Channel:
        if refusals:
            raise refusals.pop()
        return opened(transport, **options)

    monkeypatch.setattr(paramiko.Transport, "open_session", refuse_first)
    assert remote.run("echo 1").stdout == "1\n"
    assert not refusals


def test_a_thread_from_outside_reaches_nodes(cluster: LocalCluster) -> None:
    """A remote works in threads that never entered the cluster's network, even if they make the connection."""
    other = LocalCluster.attach(cluster.name)
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(other.remote(other.nodes[1]).run, "hostname").result(10).stdout == "n2\n"
    finally:
        other.close()


def test_20_megabytes_there_and_back(remote: FabricRemote, tmp_path: Path) -> None:
    """A big file is the same after put and get."""
    content = hashlib.shake_256(b"labrys").digest(20_000_000)
    (tmp_path / "there").write_bytes(content)

    remote.put(tmp_path / "there", "/srv/big", mode=0o640)
    assert remote.run("stat -c '%a %s' /srv/big; sha256sum </srv/big").stdout.split()[:3] == [
        "640",
        "20000000",
        hashlib.sha256(content).hexdigest(),
    ]
    remote.get("/srv/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content
    remote.run("rm /srv/big")


def test_a_file_is_replaced_in_one_step(remote: FabricRemote) -> None:
    """A process with the old file open keeps it; no temporary file stays; others can never read a secret."""
    remote.run("mkdir -p /srv/one")
    remote.write("/srv/one/file", "old")
    remote.run("ln /srv/one/file /srv/one/kept")
    remote.write("/srv/one/file", "new", mode=0o600)

    seen = remote.run(
        "cat /srv/one/kept /srv/one/file; echo; ls /srv/one; stat -c %a /srv/one/file; rm -r /srv/one"
    ).stdout
    assert seen.split() == ["oldnew", "file", "kept", "600"]


def test_a_full_disk_leaves_the_old_file(remote: FabricRemote, tmp_path: Path) -> None:
    """A file that does not fit is an error; the old one stays, and no partial file does."""
    (tmp_path / "big").write_bytes(bytes(2_000_000))
    remote.run("mkdir /srv/full && mount -t tmpfs -o size=1m full /srv/full && echo old >/srv/full/file")
    try:
        with pytest.raises(NodeError, match="writing /srv/full/file failed"):
            remote.put(tmp_path / "big", "/srv/full/file")

        assert remote.run("cat /srv/full/file; ls /srv/full").stdout.split() == ["old", "file"]
    finally:
        remote.run("umount /srv/full && rmdir /srv/full")


def test_missing_files_and_directories(remote: FabricRemote, tmp_path: Path) -> None:
    """The errors distinguish a missing file from a missing directory, and the node from this machine."""
    with pytest.raises(FileNotFoundError, match="n1: reading /srv/nothing"):
        remote.get("/srv/nothing", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(NodeError, match="its directory does not exist"):
        remote.write("/srv/nowhere/file", "text")
    with pytest.raises(InfrastructureError, match="cannot be written on this machine"):
        remote.get("/etc/passwd", tmp_path / "nowhere" / "passwd")


def test_a_log_that_grows_is_fetched(remote: FabricRemote, tmp_path: Path) -> None:
    """A file that grows during the copy arrives with at least its earlier content."""
    remote.run(
        "rm -f /srv/log; seq 200000 >/srv/log; setsid sh -c 'seq 3000000 >>/srv/log' </dev/null >/dev/null 2>&1 &"
    )

    remote.get("/srv/log", tmp_path / "log")
    assert (tmp_path / "log").read_text().splitlines()[:200000] == [str(number) for number in range(1, 200001)]
    remote.run("pkill -f 'seq 3000000'; rm -f /srv/log", check=False)


@pytest.fixture
def cut_node(cluster: LocalCluster) -> Iterator[FabricRemote]:
    """A connected shell on n5, whose link is then cut between the control namespace and the node."""
    remote = FabricRemote("n5", cluster.endpoint(cluster.nodes[4]), entering=cluster.entered)
    remote.run("true")
    yield remote
    _link(cluster, "up")
    remote.close()
    cluster.remote(cluster.nodes[4]).close()  # the cut also ended the connection of other tests


def _link(cluster: LocalCluster, state: str) -> None:
    subprocess.run(["ip", "-n", cluster._state.control, "link", "set", "n5", state], check=True, timeout=10)


def test_a_dead_link_is_an_error_in_bounded_time(cluster: LocalCluster, cut_node: FabricRemote) -> None:
    """A command in flight, others on the old connection, and many that must connect: all end soon.

    When the link is back, the same shell works again.
    """
    newcomer = FabricRemote("n5", cluster.endpoint(cluster.nodes[4]), entering=cluster.entered)

    def attempt(action: Callable[..., object], *arguments: str) -> Exception | None:
        try:
            action(*arguments)
        except Exception as error:  # noqa: BLE001 - looked at below
            return error
        return None

    with ThreadPoolExecutor(32) as pool:
        in_flight = pool.submit(attempt, cut_node.run, "sleep 25; echo unheard")
        time.sleep(0.3)
        _link(cluster, "down")
        began_s = time.monotonic()
        outcomes = [
            in_flight,
            pool.submit(attempt, cut_node.run, "true"),
            pool.submit(attempt, cut_node.write, "/srv/cut", "text"),
            *(pool.submit(attempt, newcomer.run, "true") for _ in range(24)),
        ]
        results = [outcome.result(60) for outcome in outcomes]
    assert time.monotonic() - began_s < 20
    assert {type(error) for error in results} == {NodeUnreachable}
    assert all("n5: " in str(error) for error in results)

    _link(cluster, "up")
    deadline_s = time.monotonic() + 20
    while attempt(cut_node.run, "true") is not None:
        assert time.monotonic() < deadline_s


def test_a_wrong_key_is_refused(cluster: LocalCluster, endpoint: Endpoint, tmp_path: Path) -> None:
    """A key that the node does not know is an error with the login and the key."""
    keys.write_key_pair(tmp_path / "other")
    remote = FabricRemote("n1", _with(endpoint, key=tmp_path / "other"), entering=cluster.entered)

    with pytest.raises(NodeUnreachable, match=r"root@.*:22 does not accept the key .*/other"):
        remote.run("true")


def test_a_host_key_is_checked(cluster: LocalCluster, endpoint: Endpoint, tmp_path: Path) -> None:
    """A node with a wrong or unknown host key gets no command."""
    other = keys.write_key_pair(tmp_path / "other")
    (tmp_path / "empty").touch()
    known = (cluster._state.directory / "known_hosts").read_text().splitlines()[0].partition(" ")[2]

    with pytest.raises(NodeUnreachable, match="shows another host key than the pinned key"):
        FabricRemote("n1", _with(endpoint, host_key=other), entering=cluster.entered).run("true")
    with pytest.raises(NodeUnreachable, match="not found in known_hosts"):
        FabricRemote("n1", _with(endpoint, known_hosts=tmp_path / "empty"), entering=cluster.entered).run("true")
    pinned = FabricRemote("n1", _with(endpoint, host_key=known, known_hosts=None), entering=cluster.entered)
    assert pinned.run("hostname").stdout == "n1\n"
    pinned.close()


@pytest.mark.skipif(
    not namespaces.find_program("sudo"), reason="local nodes have the programs of this machine, and it has no sudo"
)
def test_a_login_that_is_not_root(cluster: LocalCluster, endpoint: Endpoint, tmp_path: Path) -> None:
    """Through sudo, commands run as root, are ended at their deadline, and files of root's are written and read."""
    root = cluster.remote(cluster.nodes[0])
    root.run(
        "useradd -m -p '*' tester && chmod 644 /etc/ssh/labrys_authorized_keys && "
        "printf 'tester ALL=(ALL) NOPASSWD: ALL\n' >/etc/sudoers.d/tester && chmod 440 /etc/sudoers.d/tester"
    )
    remote = FabricRemote("n1", _with(endpoint, user="tester"), entering=cluster.entered)
    try:
        assert remote.run("id -un").stdout == "root\n"
        with pytest.raises(CommandTimeout):
            remote.run("sleep 4322", timeout_s=0.5)
        assert not root.run("pgrep -fx 'sleep 4322'", check=False).stdout
        remote.write("/root/secret", "for root only", mode=0o600)
        assert root.run("stat -c '%U %a' /root/secret").stdout == "root 600\n"
        remote.get("/root/secret", tmp_path / "secret")
        assert (tmp_path / "secret").read_text() == "for root only"
        with pytest.raises(FileNotFoundError, match="/root/nothing"):
            remote.get("/root/nothing", tmp_path / "nothing")
        assert not root.run("ls /tmp | grep labrys-", check=False).stdout
        root.run("rm /etc/sudoers.d/tester")
        with pytest.raises(CommandFailed, match="sudo"):
            remote.run("id")
    finally:
        remote.close()
        root.run("rm -f /root/secret /etc/sudoers.d/tester; userdel -rf tester", check=False)


def _with(endpoint: Endpoint, **changes: object) -> Endpoint:
    return dataclasses.replace(endpoint, **changes)  # type: ignore[arg-type]  # each value fits its field
