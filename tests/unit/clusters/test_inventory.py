"""Inventories: valid ones are read exactly, and errors have the file, the key and the expected value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.ssh import read_inventory
from harness.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEXAMPLEEXAMPLEEXAMPLE"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a private key and known hosts, and without a configuration of SSH."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "id").write_text("private")
    (tmp_path / "id").chmod(0o600)
    (tmp_path / "known_hosts").write_text("")
    return tmp_path


def write(directory: Path, text: str) -> Path:
    """Writes the inventory."""
    path = directory / "lab.toml"
    path.write_text(text)
    return path


def test_an_inventory_means_what_it_says(directory: Path) -> None:
    """Shared values apply to all hosts, a host's own values win, and paths are relative to the file."""
    path = write(
        directory,
        f"""
        name = "rack"
        user = "admin"
        key = "id"
        known_hosts = "known_hosts"
        [[hosts]]
        name = "n1"
        host = "192.0.2.1"
        [[hosts]]
        name = "n2"
        host = "n2.example"
        address = "2001:db8:0::2"
        user = "root"
        port = 2222
        host_key = "{HOST_KEY}"
        """,
    )
    name, (one, two) = read_inventory(path)

    assert name == "rack"
    assert (one.node.name, one.node.address) == ("n1", "192.0.2.1")
    assert (one.endpoint.host, one.endpoint.port, one.endpoint.user) == ("192.0.2.1", 22, "admin")
    assert (one.endpoint.key, one.endpoint.known_hosts) == (directory / "id", directory / "known_hosts")
    assert (two.node.address, two.endpoint.host, two.endpoint.user) == ("2001:db8::2", "n2.example", "root")
    assert (two.endpoint.port, two.endpoint.host_key, two.endpoint.known_hosts) == (2222, HOST_KEY, None)


GOOD = 'key = "id"\nknown_hosts = "known_hosts"\n'
HOST = '[[hosts]]\nname = "n1"\nhost = "192.0.2.1"\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name = ", "lab.toml: cannot be read as TOML"),
        ("port = 1e400\n" + GOOD + HOST, "lab.toml: port: expected a finite number"),
        (
            "key = '~nosuchuser/k'\n" + HOST,
            "lab.toml: key: expected a path of a user of this machine, not '~nosuchuser/k'",
        ),
        (
            GOOD + HOST.replace("192.0.2.1", "a..b"),
            "lab.toml: hosts[0].host: expected a host's name or address, not 'a..b'",
        ),
        (GOOD + HOST.replace("192.0.2.1", "a" * 64), "lab.toml: hosts[0].host: expected a host's name or address"),
        (GOOD + HOST.replace("192.0.2.1", "a b"), "lab.toml: hosts[0].host: expected a host's name or address"),
        ("user = 1979-05-27\n" + GOOD + HOST, "lab.toml: user: expected a text, a number, true or false"),
        ("", "hosts: expected at least one table [[hosts]], not nothing"),
        ("hosts = []", "hosts: expected at least one table [[hosts]], not []"),
        ("hosts = 3", "hosts: expected at least one table [[hosts]], not 3"),
        ("hosts = [1]", "hosts: expected at least one table [[hosts]], not [1]"),
        (GOOD + "usr = 'x'\n" + HOST, "unknown key usr. Did you mean 'user'?"),
        (GOOD + HOST + "adress = '192.0.2.1'", "unknown key hosts[0].adress. Did you mean 'address'?"),
        (GOOD + HOST + "x = 1", "unknown key hosts[0].x. Known are: address, host,"),
        (GOOD + "[[hosts]]\nhost = '192.0.2.1'", "hosts[0].name: expected a text, not nothing"),
        (GOOD + "[[hosts]]\nname = 7\nhost = '192.0.2.1'", "hosts[0].name: expected a text, not 7"),
        (GOOD + "[[hosts]]\nname = '../n1'\nhost = '192.0.2.1'", "hosts[0].name: expected up to 63 letters, digits"),
        (GOOD + "[[hosts]]\nname = 'n1'\nhost = ''", "hosts[0].host: expected a text, not ''"),
        (
            GOOD + "[[hosts]]\nname = 'n1'\nhost = 'n1.example'",
            "hosts[0].address: expected the node's IP address in the cluster's network, not 'n1.example'",
        ),
        (GOOD + HOST + "port = 0", "hosts[0].port: expected a number from 1 to 65535, not 0"),
        (GOOD + HOST + "port = true", "hosts[0].port: expected a number from 1 to 65535, not True"),
        ("port = '22'\n" + GOOD + HOST, "lab.toml: port: expected a number from 1 to 65535, not '22'"),
        (GOOD + HOST + "host_key = 'rubbish'", "hosts[0].host_key: expected a public key such as"),
        (HOST, "hosts[0].key: expected a text, not nothing"),
        ("key = 'nowhere'\n" + HOST, "lab.toml: key: expected a private key of yours (it cannot be read: No such file"),
        (
            "key = 'id'\nknown_hosts = 'nowhere'\n" + HOST,
            "known_hosts: expected a file with the host's key (`ssh-keyscan -p 22",
        ),
        (GOOD + HOST + HOST, "hosts[1].name: expected a value that differs from that of hosts[0], not 'n1'"),
        (
            GOOD + HOST + HOST.replace("n1", "n2"),
            "hosts[1].address: expected a value that differs from that of hosts[0], not '192.0.2.1'",
        ),
        (GOOD + HOST * 100, "hosts: expected at most 99 tables, not 100"),
    ],
)
def test_a_broken_inventory_names_file_key_and_expectation(directory: Path, text: str, complaint: str) -> None:
    """Every mistake is an input error with its place and the expected value."""
    path = write(directory, text)
    with pytest.raises(InputError) as caught:
        read_inventory(path)

    assert str(path) in str(caught.value)
    assert complaint in str(caught.value)


def configure(directory: Path, text: str) -> None:
    """Writes ~/.ssh/config."""
    (directory / ".ssh").mkdir()
    (directory / ".ssh" / "config").write_text(text)


def test_what_the_inventory_does_not_give_comes_from_the_configuration_of_ssh(directory: Path) -> None:
    """The configuration gives alias, user, port, key, known hosts and jump host; the inventory wins over it."""
    (directory / "theirs").write_text("")
    configure(
        directory,
        f"""
        Host db-*
            HostName %h.lab.example
            User carol
            Port 2200
            IdentityFile {directory}/id
            UserKnownHostsFile {directory}/theirs
            ProxyJump gate.example
        """,
    )
    hosts = """
        [[hosts]]
        name = "db-1.east"
        host = "db-1"
        address = "10.0.0.1"
        [[hosts]]
        name = "db-2.east"
        host = "db-2"
        address = "10.0.0.2"
        user = "dave"
        port = 22
        known_hosts = "known_hosts"
        jump = "eve@first.example,frank@second.example:2222"
        """
    _, (one, two) = read_inventory(write(directory, hosts))
    assert (one.node.name, one.node.address) == ("db-1.east", "10.0.0.1")
    assert (one.endpoint.host, one.endpoint.port, one.endpoint.user) == ("db-1.lab.example", 2200, "carol")
    assert (one.endpoint.key, one.endpoint.known_hosts) == (directory / "id", directory / "theirs")
    assert one.endpoint.proxy == "ssh -o BatchMode=yes -W db-1.lab.example:2200 gate.example"
    assert (two.endpoint.port, two.endpoint.user) == (22, "dave")
    assert two.endpoint.known_hosts == directory / "known_hosts"
    assert two.endpoint.proxy == (
        "ssh -o BatchMode=yes -J eve@first.example -p 2222 -W db-2.lab.example:22 frank@second.example"
    )


def test_a_proxy_command_is_taken_and_none_is_none(directory: Path) -> None:
    """ProxyJump none and ProxyCommand none connect directly."""
    configure(directory, "Host a\n ProxyCommand nc %h %p\nHost b\n ProxyJump none\nHost c\n ProxyCommand none\n")
    hosts = "".join(
        f'[[hosts]]\nname = "{name}"\nhost = "{name}"\naddress = "10.0.0.{number}"\n'
        for number, name in enumerate("abc", 1)
    )
    _, machines = read_inventory(write(directory, GOOD + hosts))
    assert [machine.endpoint.proxy for machine in machines] == ["nc a 22", None, None]


@pytest.mark.parametrize("jump", ["-oProxyCommand=x", "a b", "", "a,,b"])
def test_a_jump_that_is_no_host_is_refused(directory: Path, jump: str) -> None:
    """An option of ssh is not accepted as a host."""
    with pytest.raises(InputError, match=r"jump: expected"):
        read_inventory(write(directory, f"jump = '{jump}'\n" + GOOD + HOST))


def test_a_key_that_others_can_read_is_refused(directory: Path) -> None:
    """A private key that others can read is an error with a fix."""
    (directory / "id").chmod(0o640)
    with pytest.raises(InputError, match=r"others can read it, mode 640; `chmod 600` helps"):
        read_inventory(write(directory, GOOD + HOST))


def test_an_inventory_that_is_not_there_or_no_text(directory: Path) -> None:
    """A missing file, and one that is not text, are errors with the file's name."""
    with pytest.raises(InputError, match=r"nothing\.toml: cannot be read"):
        read_inventory(directory / "nothing.toml")
    (directory / "lab.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"lab\.toml: expected UTF-8 text"):
        read_inventory(directory / "lab.toml")
