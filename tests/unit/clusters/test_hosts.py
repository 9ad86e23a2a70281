"""Hosts of an inventory: each problem has a fix, and provisioning reports its progress."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest

from clusters.doctor import as_lines
from clusters.hosts import MIN_FREE_KB, examine_hosts
from clusters.provisioning import SCRIPT, provision_host
from harness.errors import NodeError, NodeUnreachable
from harness.node import Node
from harness.remote import Result
from harness.remote.fabric import Endpoint
from harness.traits import Program

JAVA = Program(name="java", package="openjdk-17-jre-headless", purpose="running it", least_version=17)


class Host:
    """A host with the same answer to every command, or with none."""

    def __init__(self, node: str, answer: str | Exception, status: int = 0) -> None:
        self.node, self.answer, self.status = node, answer, status
        self.stdin: str | None = None

    def run(self, command: str, *, timeout_s: float = 5, check: bool = True, stdin: str | None = None) -> Result:
        """Answers."""
        if isinstance(self.answer, Exception):
            raise self.answer
        self.stdin = stdin
        said = self.answer.replace("NOW", f"{time.time():.3f}")
        return Result(node=self.node, command=command, status=self.status, stdout=said, stderr="")


def said(*, clock: str = "NOW", user: int = 0, disk: int = MIN_FREE_KB, java: str | None = "openjdk version 17") -> str:
    """The output of the script."""
    program = "" if java is None else f"program\tjava\t{java}\n"
    return f"clock\t{clock}\nuser\t{user}\ndisk\t{disk}\n{program}"


def unreachable(cause: Exception) -> NodeUnreachable:
    """An error of the shell with its cause."""
    error = NodeUnreachable("n1", "no way in")
    error.__cause__ = cause
    return error


def examined(*answers: str | Exception | tuple[str, int]) -> tuple[list[str], list[str]]:
    """The doctor's lines about hosts n1, n2, ..., and the names of those that can be used."""
    nodes = [Node(name=f"n{number}", address=f"10.0.0.{number}") for number in range(1, len(answers) + 1)]
    shells = {
        node.name: Host(node.name, *(answer if isinstance(answer, tuple) else (answer,)))
        for node, answer in zip(nodes, answers, strict=True)
    }
    endpoint = Endpoint(host="db-1.lab", port=2222, user="carol", key=Path("/k"), known_hosts=Path("/known"))
    cluster: Any = SimpleNamespace(
        nodes=nodes, endpoints=dict.fromkeys(shells, endpoint), remote=lambda node: shells[node.name]
    )
    findings, usable = examine_hosts(cluster, [JAVA])
    return as_lines(findings), [node.name for node in usable]


def test_hosts_that_lack_nothing() -> None:
    """There is one line for each check."""
    lines, usable = examined(said(), said())
    assert [line.split()[:2] for line in lines] == [["ok", what] for what in ("SSH", "sudo", "clock", "disk", "java")]
    assert all("2 of 2 hosts" in line for line in lines)
    assert usable == ["n1", "n2"]


@pytest.mark.parametrize(
    ("answer", "what", "fix"),
    [
        (unreachable(paramiko.AuthenticationException("no")), "SSH", "`ssh-copy-id -i /k -p 2222 carol@db-1.lab`"),
        (
            unreachable(paramiko.SSHException("Server 'x' not found in known_hosts")),
            "SSH",
            "`ssh-keyscan -p 2222 db-1.lab >>/known`, and compare",
        ),
        (
            unreachable(
                paramiko.BadHostKeyException("h", paramiko.RSAKey.generate(1024), paramiko.RSAKey.generate(1024))
            ),
            "SSH",
            "`ssh-keygen -R '[db-1.lab]:2222' -f /known`",
        ),
        (unreachable(ConnectionRefusedError("refused")), "SSH", "`ssh -p 2222 carol@db-1.lab true` shows why"),
        ("rubbish", "SSH", "`ssh -p 2222 carol@db-1.lab` shows the output of its shell"),
        (("", 1), "sudo", "`echo 'carol ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/labrys`"),
        (said(user=1000), "sudo", "NOPASSWD"),
        (said(clock="100.0"), "clock", "`timedatectl set-ntp true`"),
        (said(disk=2048), "disk", "remove files"),
        (said(java=None), "java", "`apt-get install openjdk-17-jre-headless` on the host"),
        (said(java="openjdk version 11"), "java", "labrys cluster provision"),
    ],
)
def test_each_thing_that_a_host_lacks_has_a_fix(answer: Any, what: str, fix: str) -> None:
    """The other hosts are still examined."""
    lines, usable = examined(answer, said())
    (line,) = [line for line in lines if not line.startswith("ok")]
    assert line.split()[1] == what
    assert fix in line.partition(" -> ")[2]
    assert "n2" in usable
    assert ("n1" in usable) == (what not in {"SSH", "sudo"})


def test_provisioning_tells_how_far_a_host_is() -> None:
    """The script goes to the host's shell, and the report has the installed packages, if there are any."""
    told: list[str] = []
    host: Any = Host("n1", "installed: faketime sudo\n")
    assert provision_host(host, report=lambda node, text: told.append(f"{node} {text}")) == ["faketime", "sudo"]
    assert host.stdin == SCRIPT.read_text()
    host.answer = "installed:\n"
    assert provision_host(host, report=lambda node, text: told.append(f"{node} {text}")) == []
    assert told == ["n1 begins", "n1 installed faketime, sudo", "n1 begins", "n1 lacked nothing"]
    host.answer = NodeError("n1", "apt failed")
    with pytest.raises(NodeError, match="apt failed"):
        provision_host(host, report=lambda *_: None)


def test_the_script_installs_only_what_is_missing(tmp_path: Path) -> None:
    """With all programs present, the script installs nothing, and the machine's keys and names stay unchanged."""
    for name in ("iptables", "tc", "java", "faketime", "sudo", "ps", "losetup", "mkfs.ext4"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "apt-get").chmod(0o755)
    run = ["sh", str(SCRIPT)]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (0, "installed:\n"), done.stderr
    wrong = subprocess.run([*run, "one"], env=environment, capture_output=True, text=True, check=False, timeout=20)
    assert wrong.returncode == 254
