"""An inventory: a TOML file with the hosts of a cluster, and the way to each.

    name = "lab"                              # of the cluster; the file's name without it
    user = "admin"                            # these may be given for all hosts or for one
    key = "~/.ssh/id_ed25519"
    known_hosts = "~/.ssh/known_hosts"

    [[hosts]]
    name = "n1"
    host = "n1.lab.example"                   # for SSH
    address = "10.20.0.11"                    # in the cluster's own network; `host` without it
    host_key = "ssh-ed25519 AAAAC3Nz..."      # goes before known_hosts
    jump = "admin@gate.example:2222"          # the host that SSH goes through

Values that neither a host nor the file gives come from `~/.ssh/config`: HostName, User, Port, IdentityFile, UserKnownHostsFile,
ProxyJump and ProxyCommand. Host keys are always checked. Every mistake is an error with its file and key, before any
connection.
"""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import paramiko

from clusters.machines import Machine, MachineCluster, why_unusable
from harness.documents import read_toml, shown
from harness.errors import InputError
from harness.node import Node
from harness.remote.fabric import Endpoint
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARED_KEYS = frozenset({"user", "port", "key", "known_hosts", "jump"})
TOP_KEYS = SHARED_KEYS | {"name", "hosts"}
HOST_KEYS = SHARED_KEYS | {"name", "host", "address", "host_key"}
# Names become names of directories, and parts of what systems are configured with.
NODE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
MAX_HOSTS = 99
DEFAULT_USER = "root"
DEFAULT_PORT = 22
DEFAULT_KNOWN_HOSTS = "~/.ssh/known_hosts"
SSH_CONFIG = "~/.ssh/config"
JUMP = re.compile(r"(?!-)[^\s,]+")
HOST_KEY = re.compile(r"[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}( .*)?")


class SshCluster(MachineCluster):
    """The hosts of an inventory."""

    @classmethod
    def from_inventory(cls, path: Path) -> SshCluster:
        """Reads an inventory; nothing is connected yet.

        Raises:
            InputError: The file cannot be used; the message names the key and what was expected.
        """
        return cls(*read_inventory(path))


class _Table:
    """A table of the file, and the shared values behind it; every refusal names the place the value stands at."""

    def __init__(self, path: Path, place: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self._path = path
        self._place = place
        self._own = own
        self._shared = shared
        self._usual: Mapping[str, Any] = {}

    def fall_back(self, usual: Mapping[str, Any]) -> None:
        """Takes what the host and the file do not give from `~/.ssh/config`."""
        self._usual = usual

    def refuse_unknown(self, known: frozenset[str]) -> None:
        for key in self._own:
            if key not in known:
                raise InputError(f"{self._path}: unknown key {self._place}{key}. {did_you_mean(key, known)}")

    def error(self, key: str, expected: str, got: object) -> InputError:
        place = self._place if key in self._own or key not in self._shared else ""
        found = "nothing" if got is None else shown(got)
        return InputError(f"{self._path}: {place}{key}: expected {expected}, not {found}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(key, "a text", value)
        return value

    def port(self, key: str, default: int) -> int:
        value = self._get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65535:
            raise self.error(key, "a number from 1 to 65535", value)
        return value

    def path(self, key: str, default: str | None = None) -> Path:
        text = self.text(key, default)
        try:
            return self._path.parent / Path(text).expanduser()
        except RuntimeError:
            raise self.error(key, "a path of a user of this machine", text) from None

    def has(self, key: str) -> bool:
        return key in self._own or key in self._shared or key in self._usual

    def _get(self, key: str, default: object) -> object:
        return self._own.get(key, self._shared.get(key, self._usual.get(key, default)))


def read_inventory(path: Path) -> tuple[str, Sequence[Machine]]:
    """Reads the cluster's name and its machines.

    Raises:
        InputError: The file cannot be used; the message names the key and what was expected.
    """
    try:
        content = read_toml(path)
    except InputError as error:
        error.add_note(
            "an inventory is a TOML file with a table [[hosts]] for each host; docs/clusters.md has an example"
        )
        raise
    top = _Table(path, "", content, {})
    top.refuse_unknown(TOP_KEYS)
    hosts = content.get("hosts")
    if not isinstance(hosts, list) or not hosts or not all(isinstance(host, dict) for host in hosts):
        raise top.error("hosts", "at least one table [[hosts]]", hosts)
    if len(hosts) > MAX_HOSTS:
        raise top.error("hosts", f"at most {MAX_HOSTS} tables", len(hosts))
    shared = {key: value for key, value in content.items() if key in SHARED_KEYS}
    tables = [_Table(path, f"hosts[{index}].", host, shared) for index, host in enumerate(hosts)]
    config = _ssh_config()
    machines = [_machine(table, config) for table in tables]
    for what in ("name", "address"):
        values = [getattr(machine.node, what) for machine in machines]
        for index, value in enumerate(values):
            if value in values[:index]:
                raise tables[index].error(
                    what, f"a value that differs from that of hosts[{values.index(value)}]", value
                )
    return top.text("name", path.stem), machines


def _is_host(text: str) -> bool:
    """Says whether the system's resolver will take a text as a host: not every text can be encoded for it."""
    if not text.isprintable() or " " in text:
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def _ssh_config() -> paramiko.SSHConfig:
    """Reads the user's configuration of SSH; an empty one where there is none.

    Raises:
        InputError: It cannot be read, or not be understood.
    """
    path = os.path.expanduser(SSH_CONFIG)  # noqa: PTH111 - without a home it stays as it is, and is not found
    try:
        return paramiko.SSHConfig.from_path(path)
    except FileNotFoundError:
        return paramiko.SSHConfig()
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise InputError(f"{path}: expected a configuration of SSH; it cannot be read: {error}") from error


def _usual(config: paramiko.SSHConfig, host: str) -> dict[str, Any]:
    """Returns what the configuration of SSH says of a host, by the keys of an inventory, with `hostname` and `proxy`."""
    said = config.lookup(host)
    usual: dict[str, Any] = {"hostname": said["hostname"]}
    if "user" in said:
        usual["user"] = said["user"]
    if "port" in said:
        usual["port"] = int(said["port"]) if said["port"].isdecimal() else said["port"]
    if said.get("identityfile"):
        usual["key"] = said["identityfile"][0]
    if "userknownhostsfile" in said:
        usual["known_hosts"] = said["userknownhostsfile"].split()[0]
    if said.get("proxyjump", "none").lower() != "none":
        usual["jump"] = said["proxyjump"]
    elif said.get("proxycommand") is not None:
        usual["proxy"] = said["proxycommand"]
    return usual


def _proxy(table: _Table, usual: Mapping[str, Any], host: str, port: int) -> str | None:
    """Returns the command whose input and output are the connection, where SSH goes through another host.

    OpenSSH's own client makes the way to the jump host, so the user's configuration, agent and known hosts hold for it.
    """
    if not table.has("jump"):
        proxy: str | None = usual.get("proxy")
        return proxy
    jumps = table.text("jump").split(",")
    if not all(JUMP.fullmatch(jump) for jump in jumps):
        raise table.error("jump", "hosts as [USER@]HOST[:PORT], with commas between", ",".join(jumps))
    *before, last = jumps
    through = ["-J", ",".join(before)] if before else []
    user_host, colon, jump_port = last.rpartition(":")
    if colon and jump_port.isdecimal():
        last, through = user_host, [*through, "-p", jump_port]
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return shlex.join(["ssh", "-o", "BatchMode=yes", *through, "-W", target, last])


def _machine(table: _Table, config: paramiko.SSHConfig) -> Machine:
    table.refuse_unknown(HOST_KEYS)
    name, host = table.text("name"), table.text("host")
    if not NODE_NAME.fullmatch(name):
        raise table.error("name", "up to 63 letters, digits, hyphens, dots and underscores, a letter first", name)
    if not _is_host(host):
        raise table.error("host", "a host's name or address", host)
    usual = _usual(config, host)
    table.fall_back(usual)
    host = usual["hostname"]
    given = table.text("address", host)
    try:
        address = str(ipaddress.ip_address(given))
    except ValueError:
        raise table.error("address", "the node's IP address in the cluster's network", given) from None
    port, key = table.port("port", DEFAULT_PORT), table.path("key")
    unusable = why_unusable(key)
    if unusable:
        raise table.error("key", f"a private key of yours ({unusable})", str(key))
    host_key = table.text("host_key") if table.has("host_key") else None
    known_hosts = None
    if host_key is None:
        known_hosts = table.path("known_hosts", DEFAULT_KNOWN_HOSTS)
        if not os.path.isfile(known_hosts):  # noqa: PTH113 - says no to what it cannot look at
            hint = f"`ssh-keyscan -p {port} {host}` shows the key, which can also be given as host_key"
            raise table.error("known_hosts", f"a file with the host's key ({hint})", str(known_hosts))
    elif not HOST_KEY.fullmatch(host_key):
        raise table.error("host_key", "a public key such as 'ssh-ed25519 AAAA...'", host_key)
    return Machine(
        node=Node(name=name, address=address),
        endpoint=Endpoint(
            host=host,
            port=port,
            user=table.text("user", DEFAULT_USER),
            key=key,
            known_hosts=known_hosts,
            host_key=host_key,
            proxy=_proxy(table, usual, host, port),
        ),
    )
