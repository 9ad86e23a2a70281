"""Output of Vagrant and the Vagrantfile is parsed exactly, or is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusters.errors import ClusterError
from clusters.vagrant import Layout, parse_ssh_config, read_layout
from harness.errors import InputError

VAGRANTFILE = Path(__file__).parents[3] / "Vagrantfile"
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEEXAMPLEEXAMPLE"


def test_the_vagrantfile_says_where_nodes_are() -> None:
    """The constants of the project's Vagrantfile give the addresses of the nodes."""
    layout = read_layout(VAGRANTFILE, {})

    assert [node.name for node in layout.members()] == ["n1", "n2", "n3", "n4", "n5"]
    assert [node.address for node in layout.members()] == [f"192.168.56.{number}" for number in range(11, 16)]


def test_variables_replace_constants() -> None:
    """The environment variables in the Vagrantfile replace its constants."""
    assert read_layout(VAGRANTFILE, {"LABRYS_VM_SUBNET": "10.9.8", "LABRYS_VM_NODES": "3"}) == Layout(
        nodes=3, subnet="10.9.8"
    )


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"LABRYS_VM_SUBNET": "10.9"}, "SUBNET: expected three bytes such as 192.168.56, not '10.9'"),
        ({"LABRYS_VM_SUBNET": "10.9.300"}, "SUBNET: expected three bytes"),
        ({"LABRYS_VM_NODES": "0"}, "NODES: expected a number from 1 to 9, not '0'"),
        ({"LABRYS_VM_NODES": "five"}, "NODES: expected a number from 1 to 9, not 'five'"),
    ],
)
def test_variables_that_make_no_sense(variables: dict[str, str], complaint: str) -> None:
    """An impossible subnet or number of nodes is an error."""
    with pytest.raises(InputError, match=complaint):
        read_layout(VAGRANTFILE, variables)


def test_a_directory_without_our_vagrantfile(tmp_path: Path) -> None:
    """A missing or foreign Vagrantfile is an error with the expected content."""
    with pytest.raises(InputError, match="works where it lies"):
        read_layout(tmp_path / "Vagrantfile", {})
    (tmp_path / "Vagrantfile").write_text('Vagrant.configure("2") {}')
    with pytest.raises(InputError, match=r"expected a line SUBNET = ENV\.fetch"):
        read_layout(tmp_path / "Vagrantfile", {})


def entry(name: str, key: Path, port: str = "2222") -> str:
    """An entry in the format of `vagrant ssh-config`."""
    return (
        f"Host {name}\n  HostName 127.0.0.1\n  User vagrant\n  Port {port}\n  UserKnownHostsFile /dev/null\n"
        f'  StrictHostKeyChecking no\n  PasswordAuthentication no\n  IdentityFile "{key}"\n'
        "  IdentitiesOnly yes\n  LogLevel FATAL\n\n"
    )


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key under a path with a space."""
    path = tmp_path / "a directory" / "private_key"
    path.parent.mkdir()
    path.touch(mode=0o600)
    return path


def test_ssh_config_tells_how_nodes_are_reached(key: Path) -> None:
    """SSH uses the forwarded port, Vagrant's login and key, and our host key; faults use the cluster's address."""
    nodes = Layout(nodes=2, subnet="192.168.56").members()
    one, two = parse_ssh_config(entry("n1", key, "2200") + entry("n2", key, "2201"), nodes, host_key=HOST_KEY)

    assert (one.node, two.node) == tuple(nodes)
    assert (one.endpoint.host, one.endpoint.port, one.endpoint.user) == ("127.0.0.1", 2200, "vagrant")
    assert (two.endpoint.port, two.endpoint.key, two.endpoint.host_key) == (2201, key, HOST_KEY)


def test_ssh_config_that_lacks_a_node_or_is_none(key: Path) -> None:
    """A missing node, a bad port and a missing key are errors."""
    nodes = Layout(nodes=2, subnet="192.168.56").members()
    with pytest.raises(ClusterError, match="does not have n2"):
        parse_ssh_config(entry("n1", key), nodes, host_key=HOST_KEY)
    with pytest.raises(ClusterError, match="wrote something unexpected"):
        parse_ssh_config(entry("n1", key, "many") + entry("n2", key), nodes, host_key=HOST_KEY)
    with pytest.raises(ClusterError, match="wrote something unexpected"):
        parse_ssh_config("Host n1\nHost n2\n", nodes, host_key=HOST_KEY)
    key.unlink()
    with pytest.raises(ClusterError, match=r"n1: Vagrant's private key .* is of no use"):
        parse_ssh_config(entry("n1", key) + entry("n2", key), nodes, host_key=HOST_KEY)
