"""The virtual machines of the Vagrantfile.

Vagrant knows the way for SSH, which may be a forwarded port on loopback. The addresses in the network of the cluster, on which
faults act, come from the Vagrantfile: it counts them up from a constant. Labrys asks each machine once for its address before
it relies on it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko

from clusters.errors import ClusterError
from clusters.machines import Machine, MachineCluster, why_unusable
from harness.cluster import on_all
from harness.errors import InfrastructureError, InputError, NodeError
from harness.node import Node
from harness.remote.fabric import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLUSTER_NAME = "vagrant"
VAGRANT_TIMEOUT_S = 60.0
CHECK_TIMEOUT_S = 10.0
# SUBNET = ENV.fetch("LABRYS_VM_SUBNET", "192.168.56") and NODES = Integer(ENV.fetch("LABRYS_VM_NODES", "5"))
CONSTANT = r'^{} = .*ENV\.fetch\("(?P<variable>\w+)", "(?P<default>[0-9.]+)"\)'
FIRST_HOST = 10
HOST_KEY_FILE = ".vagrant/labrys/host_key.pub"
MAX_NODES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What the Vagrantfile says about its nodes.

    Attributes:
        nodes: How many there are, n1 and up.
        subnet: The first three bytes of their addresses; nK is at SUBNET.1K.
    """

    nodes: int
    subnet: str

    def members(self) -> list[Node]:
        """Returns the nodes."""
        return [
            Node(name=f"n{number}", address=f"{self.subnet}.{FIRST_HOST + number}")
            for number in range(1, self.nodes + 1)
        ]


class VagrantCluster(MachineCluster):
    """The nodes among the machines of a Vagrantfile."""

    @classmethod
    def from_directory(cls, directory: Path) -> VagrantCluster:
        """Asks Vagrant for the nodes, and each of them for its address.

        Raises:
            InputError: There is no Vagrantfile of ours in the directory.
            InfrastructureError: Vagrant is missing or fails, a node does not run, or has another address than it should.
        """
        nodes = read_layout(directory / "Vagrantfile", os.environ).members()
        written = _ssh_config(directory, nodes)
        cluster = cls(CLUSTER_NAME, parse_ssh_config(written, nodes, host_key=_host_key(directory)))
        try:
            on_all(cluster.nodes, cluster._check_address)
        except BaseException:
            cluster.close()
            raise
        return cluster

    def _check_address(self, node: Node) -> None:
        has = self.remote(node).run("ip -o addr show | awk '{print $4}'", timeout_s=CHECK_TIMEOUT_S).stdout.split()
        addresses = [address.partition("/")[0] for address in has]
        if node.address not in addresses:
            raise NodeError(
                node.name,
                f"expected the address {node.address}, but it has {', '.join(addresses)}; was it made with another "
                "SUBNET? `vagrant reload` applies the Vagrantfile",
            )


def read_layout(vagrantfile: Path, environment: Mapping[str, str]) -> Layout:
    """Reads the Vagrantfile's constants, and the variables that may replace them.

    Raises:
        InputError: The file cannot be read, lacks a constant, or a value cannot be used.
    """
    try:
        text = vagrantfile.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{vagrantfile}: cannot be read: {error}; --cluster vagrant works where it lies") from error
    subnet, nodes = (_constant(vagrantfile, text, name, environment) for name in ("SUBNET", "NODES"))
    try:
        ipaddress.IPv4Network(f"{subnet}.0/24")
    except ValueError:
        raise InputError(f"{vagrantfile}: SUBNET: expected three bytes such as 192.168.56, not {subnet!r}") from None
    if not re.fullmatch(r"[0-9]{1,3}", nodes) or not 1 <= int(nodes) <= MAX_NODES:
        raise InputError(f"{vagrantfile}: NODES: expected a number from 1 to {MAX_NODES}, not {nodes!r}")
    return Layout(nodes=int(nodes), subnet=subnet)


def _constant(vagrantfile: Path, text: str, name: str, environment: Mapping[str, str]) -> str:
    line = re.search(CONSTANT.format(name), text, re.MULTILINE)
    if line is None:
        raise InputError(f'{vagrantfile}: expected a line {name} = ENV.fetch("VARIABLE", "default")')
    return environment.get(line["variable"], line["default"])


def parse_ssh_config(text: str, nodes: Sequence[Node], *, host_key: str) -> list[Machine]:
    """Reads what `vagrant ssh-config` wrote about the nodes.

    Args:
        text: In the format of OpenSSH's client configuration.
        nodes: The nodes that it has to name.
        host_key: The public key that all of them show.

    Raises:
        ClusterError: It lacks a node, or cannot be understood.
    """
    try:
        config = paramiko.SSHConfig.from_text(text)
        named = config.get_hostnames()
        missing = [node.name for node in nodes if node.name not in named]
        if missing:
            raise ClusterError(f"`vagrant ssh-config` does not have {', '.join(missing)}")
        return [_machine(node, config.lookup(node.name), host_key) for node in nodes]
    except (paramiko.SSHException, paramiko.ConfigParseError, KeyError, ValueError) as error:
        raise ClusterError(f"`vagrant ssh-config` wrote something unexpected: {error!r}") from error


def _machine(node: Node, entry: Mapping[str, str | list[str]], host_key: str) -> Machine:
    key = Path(entry["identityfile"][0])
    unusable = why_unusable(key)
    if unusable:
        raise ClusterError(f"{node.name}: Vagrant's private key {key} is of no use: {unusable}")
    return Machine(
        node=node,
        endpoint=Endpoint(
            host=str(entry["hostname"]),
            port=int(str(entry["port"])),
            user=str(entry["user"]),
            key=key,
            host_key=host_key,
        ),
    )


def _host_key(directory: Path) -> str:
    path = directory / HOST_KEY_FILE
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ClusterError(
            f"{path}, the key that provisioned nodes show, cannot be read: {error}; `vagrant up --provision` makes it"
        ) from error


def _ssh_config(directory: Path, nodes: Sequence[Node]) -> str:
    vagrant = shutil.which("vagrant")
    if vagrant is None:
        raise InfrastructureError("--cluster vagrant needs vagrant, which is not on PATH; `apt-get install vagrant`")
    try:
        done = subprocess.run(
            [vagrant, "ssh-config", *(node.name for node in nodes)],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=VAGRANT_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"`vagrant ssh-config` gave no answer in {VAGRANT_TIMEOUT_S:g} s") from error
    except OSError as error:
        raise InfrastructureError(f"`vagrant ssh-config` could not run: {error}") from error
    if done.returncode != 0:
        raise ClusterError(
            f"`vagrant ssh-config` failed; do all nodes run (`vagrant up`)? Its output: {done.stderr.strip()}"
        )
    return done.stdout
