"""What is done to a node through its shell: probing and healing; and clusters that come from an inventory or from Vagrant."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters import vagrant as vagrant_module
from clusters.capabilities import probe
from clusters.errors import ClusterError
from clusters.heal import heal
from clusters.hosts import examine_hosts
from clusters.local import namespaces
from clusters.ssh import SshCluster
from clusters.vagrant import VagrantCluster
from harness import capabilities as cap
from harness.cluster import on_all
from harness.console import plugins
from harness.errors import InfrastructureError, NodeError
from harness.remote.fabric import FabricRemote
from tests.documents import is_proven
from tests.examples import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.local import LocalCluster

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
LOOK = "iptables-save | grep -v '^#'; ip6tables-save | grep -v '^#'; ip -br link; tc qdisc show; losetup -a; ls /tmp"


@pytest.fixture
def remote(cluster: LocalCluster) -> FabricRemote:
    """The shell on n4."""
    return cluster.remote(cluster.nodes[3])


def test_a_probe_answers_for_every_capability(cluster: LocalCluster) -> None:
    """On every node, each capability works or is missing with a reason; a shared clock is never the node's own."""
    for can in cluster.capabilities().values():
        assert can.available | set(can.missing) == set(cap.NAMES)
        assert not can.available & set(can.missing)
        assert can.available >= {cap.IPTABLES, cap.ROOT}
        assert "shares" in can.missing[cap.CLOCK]
        assert all(can.missing.values())


def test_a_probe_is_right(remote: FabricRemote) -> None:
    """An available capability can be used, and a missing one cannot."""
    can = probe(remote, own_clock=False)
    attempts = {
        cap.IPTABLES_STATISTIC: "iptables -A OUTPUT -d 192.0.2.9 -m statistic --mode nth --every 2 --packet 0 -j DROP && "
        "iptables -D OUTPUT 1",
        cap.NETEM: "tc qdisc add dev eth0 root netem delay 1ms && tc qdisc del dev eth0 root",
        cap.TBF: "tc qdisc add dev eth0 root tbf rate 1gbit burst 1mb latency 50ms && tc qdisc del dev eth0 root",
        cap.FAKETIME: "ls /usr/lib/*/faketime/libfaketime.so.1",
    }
    for name, command in attempts.items():
        assert (remote.run(command, check=False).status == 0) == (name in can.available), name


def test_a_probe_leaves_nothing(remote: FabricRemote) -> None:
    """A probe leaves the node unchanged, and the remains of an interrupted probe do not disturb the next one."""
    before = remote.run(LOOK).stdout
    first = probe(remote, own_clock=False)
    assert remote.run(LOOK).stdout == before

    remote.run(
        "iptables -N LABRYS-PROBE; iptables -A LABRYS-PROBE -j DROP; ip link add labrys-probe type veth peer name labrys-peer"
    )
    assert probe(remote, own_clock=False) == first
    assert remote.run(LOOK).stdout == before


def test_a_login_without_rights_can_do_nothing(cluster: LocalCluster) -> None:
    """If commands do not run as root, every capability is missing, and the reason has the node's output."""
    root = cluster.remote(cluster.nodes[3])
    root.run("useradd -m -p '*' plain && chmod 644 /etc/ssh/labrys_authorized_keys")
    endpoint = dataclasses.replace(cluster.endpoint(cluster.nodes[3]), user="plain")
    remote = FabricRemote("n4", endpoint, entering=cluster.entered)
    try:
        can = probe(remote, own_clock=True)
    finally:
        remote.close()
        root.run("userdel -rf plain", check=False)

    assert not can.available
    assert "no command runs as root there" in can.missing[cap.ROOT]
    assert "sudo" in can.missing[cap.ROOT]


def test_healing_removes_ours_and_nothing_else(remote: FabricRemote) -> None:
    """Healing removes our chains, noted faults and shapers (IPv4 and IPv6). Other rules stay. A second call finds nothing."""
    remote.run("iptables -A INPUT -s 192.0.2.50 -j ACCEPT")
    before = remote.run(LOOK).stdout
    remote.run(
        "set -e\nfor T in iptables ip6tables; do\n"
        "$T -N LABRYS; $T -N LABRYS-3; $T -A LABRYS -j LABRYS-3; $T -A LABRYS-3 -p udp -j DROP\n"
        "$T -I INPUT -j LABRYS; $T -I INPUT -j LABRYS; $T -A OUTPUT -j LABRYS; done\n"
        "tc qdisc add dev eth0 root tbf rate 1gbit burst 1mb latency 50ms\n"
        "mkdir -p /run/labrys/undo; echo 'rm /srv/broken' >/run/labrys/undo/fault-1; touch /srv/broken"
    )
    healed = heal(remote, ours=True)
    try:
        assert "tbf on eth0" in healed
        assert "fault-1" in healed
        assert len([line for line in healed if "chain LABRYS" in line]) == 4
        assert remote.run(LOOK).stdout == before
        assert remote.run("ls /srv/broken /run/labrys/undo/fault-1", check=False).status != 0
        assert heal(remote, ours=True) == []
    finally:
        remote.run("iptables -D INPUT -s 192.0.2.50 -j ACCEPT")


def test_what_cannot_be_healed_is_an_error(remote: FabricRemote) -> None:
    """A note that fails is an error with its output, and stays; shapers of foreign machines stay."""
    remote.run(
        "mkdir -p /run/labrys/undo; echo 'echo still busy >&2; exit 1' >/run/labrys/undo/fault-2; "
        "tc qdisc add dev eth0 root tbf rate 1gbit burst 1mb latency 50ms"
    )
    try:
        with pytest.raises(ClusterError, match="n4: cannot be healed of fault-2: still busy"):
            heal(remote, ours=False)
        assert "tbf" in remote.run("ls /run/labrys/undo/fault-2 && tc qdisc show dev eth0").stdout
    finally:
        remote.run("rm /run/labrys/undo/fault-2; tc qdisc del dev eth0 root")


def test_an_inventory_is_a_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    """Hosts of an inventory: login by its keys, commands as root, and checks of their host keys."""
    directory = cluster.endpoint(cluster.nodes[0]).key.parent
    lines = [f'user = "root"\nkey = "{directory / "id"}"\nknown_hosts = "{directory / "known_hosts"}"\n']
    lines += [f'[[hosts]]\nname = "{node.name}"\nhost = "{node.address}"\n' for node in cluster.nodes[:2]]
    (tmp_path / "lab.toml").write_text("\n".join(lines))

    made = SshCluster.from_inventory(tmp_path / "lab.toml")
    try:
        with cluster.entered(), made.entered():
            assert made.name == "lab"
            answers = on_all(made.nodes, lambda node: made.remote(node).run("hostname; id -un").stdout.split())
            assert answers == {"n1": ["n1", "root"], "n2": ["n2", "root"]}
            assert cap.IPTABLES in made.capabilities()["n1"].available
    finally:
        made.close()


def test_hosts_behind_a_jump_host_are_looked_at(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SSH goes through another host by `~/.ssh/config`; one host has a wrong key, and the doctor shows a fix."""
    directory = cluster.endpoint(cluster.nodes[0]).key.parent
    gate, far, other = cluster.nodes[:3]
    own = f"IdentityFile {directory / 'id'}\nUserKnownHostsFile {directory / 'known_hosts'}\nUser root\n"
    (tmp_path / "gate").write_text(f"Host gate\nHostName {gate.address}\n{own}")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        f"Host db-1.east\nHostName {far.address}\nProxyCommand ssh -F {tmp_path / 'gate'} -W %h:%p gate\n{own}"
        f"Host db-2.east\nHostName {other.address}\n{own}"
    )
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    wrong = " ".join((tmp_path / "other.pub").read_text().split()[:2])
    (tmp_path / "lab.toml").write_text(
        f'[[hosts]]\nname = "db-1.east"\nhost = "db-1.east"\naddress = "{far.address}"\n'
        f'[[hosts]]\nname = "db-2.east"\nhost = "db-2.east"\naddress = "{other.address}"\n'
        f'host_key = "{wrong}"\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    with cluster.entered(), contextlib.closing(SshCluster.from_inventory(tmp_path / "lab.toml")) as made:
        assert made.remote(made.nodes[0]).run("hostname").stdout == f"{far.name}\n"
        findings, usable = examine_hosts(made, plugins.load(plugins.SYSTEMS, DEFAULT).programs)
        assert cap.IPTABLES in made.probed(usable)["db-1.east"].available
        assert made.remote(made.nodes[0]).run("who am i; echo $SSH_CONNECTION").stdout.split()[0] == gate.address
    assert [node.name for node in usable] == ["db-1.east"]
    (problem,) = [finding for finding in findings if not finding.ok]
    assert (problem.what, problem.detail.startswith("db-2.east: ")) == ("SSH", True)
    assert f"`ssh-keyscan {other.address}`" in problem.fix


# Local nodes have the programs of this machine. Without sudo on it, this replaces sudo: its interpreter belongs to root.
SUDO = """#!/usr/local/bin/sudo-python -IS
import os, sys
os.setgid(0)
os.setuid(0)
os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
command = sys.argv[sys.argv.index("-n") + 1:]
os.execvp(command[0], command)
"""


@pytest.fixture
def plain_user(cluster: LocalCluster) -> Iterator[str]:
    """An ordinary user on three nodes who can become root by `sudo`."""
    nodes = cluster.nodes[:3]
    make = "useradd -m -p '*' plain && chmod 644 /etc/ssh/labrys_authorized_keys && "
    undo = "userdel -rf plain; rm -f "
    if namespaces.find_program("sudo"):
        file = "/etc/sudoers.d/plain"
        make += f"echo 'plain ALL=(ALL) NOPASSWD: ALL' >{file} && chmod 440 {file}"
    else:
        file = "/usr/local/bin/sudo /usr/local/bin/sudo-python"
        make += (
            "install -m 4755 $(readlink -f /usr/bin/python3) /usr/local/bin/sudo-python && "
            f"printf %s {shlex.quote(SUDO)} >/usr/local/bin/sudo && chmod 755 /usr/local/bin/sudo"
        )
    with cluster.entered():
        on_all(nodes, lambda node: cluster.remote(node).run(make))
        yield "plain"
        on_all(nodes, lambda node: cluster.remote(node).run(f"{undo}{file}", check=False))


def test_a_run_on_hosts_of_an_inventory_as_a_user_with_sudo(
    cluster: LocalCluster, plain_user: str, tmp_path: Path
) -> None:
    """With hyphens and dots in the hosts' names, faults, logs and the leader have these names."""
    directory = cluster.endpoint(cluster.nodes[0]).key.parent
    names = ["db-1.east", "db-2.east", "db_2.east"]
    lines = [
        f'user = "{plain_user}"\nkey = "{directory / "id"}"\nknown_hosts = "{directory / "known_hosts"}"\n',
        *(
            f'[[hosts]]\nname = "{name}"\nhost = "{node.address}"\n'
            for name, node in zip(names, cluster.nodes[:3], strict=True)
        ),
    ]
    (tmp_path / "lab.toml").write_text("\n".join(lines))
    asked = [
        "--cluster", "ssh", "--inventory", str(tmp_path / "lab.toml"), "--store", str(tmp_path / "store"), "--seed", "7",
        "--nemesis", "partition-leader,kill", "--in-turn", "--time-limit", "8", "--fault-on", "2", "--fault-off", "1",
        "--fault-quiet", "1", "--rate", "5", "--format", "json",
    ]  # fmt: skip
    with cluster.entered():
        done = subprocess.run(
            [sys.executable, "-m", "cli", "test", *asked], capture_output=True, text=True, timeout=200, check=False
        )
    document = json.loads(done.stdout)
    parts = {name: part["valid"] for name, part in document["parts"].items()}
    assert parts["linearizable"] is True, done.stderr
    # A busy machine may send too few packets in two seconds to prove a partition.
    assert "kill" in {fault["planned"]["kind"] for fault in document["faults"] if is_proven(fault)}, done.stderr
    assert [fault["error"] for fault in document["faults"]] == [None] * len(document["faults"])
    leaders = [seen["leader"] for seen in document["sightings"] if seen["leader"]]
    assert leaders, done.stderr
    assert set(leaders) <= set(names)
    assert {target for fault in document["faults"] for target in fault["targets"]} <= set(names)
    logs = {path.parent.name for path in Path(document["run"]).glob("nodes/*/*.log")}
    assert logs == set(names)


@pytest.fixture
def vagrant_directory(cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with our Vagrantfile, and a `vagrant` that knows the local nodes as its machines."""
    endpoint = cluster.endpoint(cluster.nodes[0])
    entries = "".join(
        f"Host {node.name}\n  HostName {node.address}\n  User root\n  Port 22\n  UserKnownHostsFile /dev/null\n"
        f'  StrictHostKeyChecking no\n  IdentityFile "{endpoint.key}"\n  IdentitiesOnly yes\n\n'
        for node in cluster.nodes
    )
    (tmp_path / "ssh-config").write_text(entries)
    shutil.copy(ROOT / "Vagrantfile", tmp_path)
    (tmp_path / ".vagrant" / "labrys").mkdir(parents=True)
    host_key = (endpoint.key.parent / "known_hosts").read_text().splitlines()[0].partition(" ")[2]
    (tmp_path / ".vagrant" / "labrys" / "host_key.pub").write_text(host_key + "\n")
    _program(tmp_path, monkeypatch, f'[ "$*" = "ssh-config n1 n2 n3 n4 n5" ] && cat {tmp_path}/ssh-config')
    monkeypatch.setenv("LABRYS_VM_SUBNET", cluster.nodes[0].address.rpartition(".")[0])
    return tmp_path


def _program(directory: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = directory / "bin" / "vagrant"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_vagrant_machines_are_a_cluster(cluster: LocalCluster, vagrant_directory: Path) -> None:
    """What Vagrant says about its machines becomes five nodes, at the addresses of the Vagrantfile, which they really have."""
    with cluster.entered():
        made = VagrantCluster.from_directory(vagrant_directory)
        try:
            assert made.nodes == cluster.nodes
            assert made.remote(made.nodes[4]).run("hostname").stdout == "n5\n"
        finally:
            made.close()


def test_machines_with_other_addresses_are_refused(
    cluster: LocalCluster, vagrant_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that has another address than faults would act on is an error that names both."""
    monkeypatch.setenv("LABRYS_VM_SUBNET", "192.168.99")
    with (
        cluster.entered(),
        pytest.raises(NodeError, match=r"expected the address 192\.168\.99\.11, but it has .*10\.55\."),
    ):
        VagrantCluster.from_directory(vagrant_directory)


def test_vagrant_that_fails_or_hangs(vagrant_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that does not run, and a Vagrant that gives no answer, are errors with its words, in bounded time."""
    _program(vagrant_directory, monkeypatch, "echo 'n3 is not created' >&2; exit 1")
    with pytest.raises(ClusterError, match=r"do all nodes run .*n3 is not created"):
        VagrantCluster.from_directory(vagrant_directory)

    _program(vagrant_directory, monkeypatch, "exec sleep 30")
    monkeypatch.setattr(vagrant_module, "VAGRANT_TIMEOUT_S", 0.3)
    with pytest.raises(InfrastructureError, match=r"gave no answer in 0\.3 s"):
        VagrantCluster.from_directory(vagrant_directory)


@pytest.mark.skipif(not namespaces.find_program("vagrant"), reason="vagrant is not installed on this machine")
def test_the_vagrantfile_is_valid(tmp_path: Path) -> None:
    """Vagrant accepts the Vagrantfile, whatever its provider."""
    shutil.copy(ROOT / "Vagrantfile", tmp_path)
    shutil.copytree(ROOT / "clusters" / "provision", tmp_path / "clusters" / "provision")
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "VAGRANT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
