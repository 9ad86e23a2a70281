"""An inventory: a TOML file with the hosts of a cluster, and how SSH reaches each.

    name = "lab"                              # of the cluster; the default is the file's name
    user = "admin"                            # user, port, key, known_hosts and jump: for all hosts, or for one
    key = "~/.ssh/id_ed25519"
    known_hosts = "~/.ssh/known_hosts"

    [[hosts]]
    name = "n1"
    host = "n1.lab.example"                   # for SSH
    address = "10.20.0.11"                    # in the cluster's own network; the default is `host`
    host_key = "ssh-ed25519 AAAAC3Nz..."      # wins over known_hosts
    jump = "admin@gate.example:2222"          # the host that SSH goes through

If neither the host nor the file has a value, it comes from `~/.ssh/config`: HostName, User, Port, IdentityFile,
UserKnownHostsFile, ProxyJump and ProxyCommand. Labrys always checks host keys. It reports every mistake with its file and key
before it connects.
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
from harness.console.documents import read_toml, shown
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.node import Node
from harness.remote.fabric import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARED_KEYS = frozenset({"user", "port", "key", "known_hosts", "jump"})
TOP_KEYS = SHARED_KEYS | {"name", "hosts"}
HOST_KEYS = SHARED_KEYS | {"name", "host", "address", "host_key"}
# Nodes' names become names of directories, and parts of the systems' configuration.
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
        """Reads an inventory. It does not connect.

        Raises:
            InputError: The file cannot be used; the message names the key and what was expected.
        """
        return cls(*read_inventory(path))


class _Table:
    """A table of the file, with the shared values as defaults. Every error names the place of the value."""

    def __init__(self, path: Path, where: str, own: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
        self._path = path
        self._place = where
        self._own = own
        self._shared = shared
        self._defaults: Mapping[str, Any] = {}

    def fall_back(self, defaults: Mapping[str, Any]) -> None:
        """Sets the values of `~/.ssh/config`. They count where neither the host nor the file has a value."""
        self._defaults = defaults

    def refuse_unknown(self, known: frozenset[str]) -> None:
        for key in self._own:
            if key not in known:
                raise InputError(f"{self._path}: unknown key {self._place}{key}. {did_you_mean(key, known)}")

    def error(self, key: str, expected: str, got: object) -> InputError:
        where = self._place if key in self._own or key not in self._shared else ""
        actual = "nothing" if got is None else shown(got)
        return InputError(f"{self._path}: {where}{key}: expected {expected}, not {actual}")

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
        return key in self._own or key in self._shared or key in self._defaults

    def _get(self, key: str, default: object) -> object:
        return self._own.get(key, self._shared.get(key, self._defaults.get(key, default)))


def read_inventory(path: Path) -> tuple[str, Sequence[Machine]]:
    """Reads the cluster's name and its machines.

    Raises:
        InputError: The file cannot be used; the message names the key and what was expected.
    """
    try:
        content = read_toml(path)
    except InputError as error:
        error.add_note(
            "an inventory is a TOML file with a table [[hosts]] for each host; docs/guide/clusters.md has an example"
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
    """Returns whether the system's resolver accepts a text as a host. It cannot encode every text."""
    if not text.isprintable() or " " in text:
        return False
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return True


def _ssh_config() -> paramiko.SSHConfig:
    """Reads the user's configuration of SSH. Returns an empty one if there is none.

    Raises:
        InputError: It cannot be read or parsed.
    """
    path = os.path.expanduser(SSH_CONFIG)  # noqa: PTH111 - without a home the path stays as it is, and does not exist
    try:
        return paramiko.SSHConfig.from_path(path)
    except FileNotFoundError:
        return paramiko.SSHConfig()
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise InputError(f"{path}: expected a configuration of SSH; it cannot be read: {error}") from error


def _defaults(config: paramiko.SSHConfig, host: str) -> dict[str, Any]:
    """Returns a host's values in the configuration of SSH, by the keys of an inventory, with `hostname` and `proxy`."""
    values = config.lookup(host)
    defaults: dict[str, Any] = {"hostname": values["hostname"]}
    if "user" in values:
        defaults["user"] = values["user"]
    if "port" in values:
        defaults["port"] = int(values["port"]) if values["port"].isdecimal() else values["port"]
    if values.get("identityfile"):
        defaults["key"] = values["identityfile"][0]
    if "userknownhostsfile" in values:
        defaults["known_hosts"] = values["userknownhostsfile"].split()[0]
    if values.get("proxyjump", "none").lower() != "none":
        defaults["jump"] = values["proxyjump"]
    elif values.get("proxycommand") is not None:
        defaults["proxy"] = values["proxycommand"]
    return defaults


def _proxy(table: _Table, defaults: Mapping[str, Any], host: str, port: int) -> str | None:
    """Returns the command whose input and output are the connection; None if SSH connects directly.

    OpenSSH's client connects to the jump host, so the user's configuration, agent and known hosts apply there.
    """
    if not table.has("jump"):
        proxy: str | None = defaults.get("proxy")
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
    defaults = _defaults(config, host)
    table.fall_back(defaults)
    host = defaults["hostname"]
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
        if not os.path.isfile(known_hosts):  # noqa: PTH113 - returns False for a path that it cannot examine
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
            proxy=_proxy(table, defaults, host, port),
        ),
    )
