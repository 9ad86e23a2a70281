"""A remote shell over SSH, on fabric and paramiko, fit for many threads and dead links.

What the libraries leave open is closed here, each point measured against OpenSSH:

- opening a connection is not thread-safe, so it happens under a lock, by whoever comes first;
- sshd grants ten sessions on a connection, so a semaphore admits eight;
- opening a channel on a dead link waits an hour by default, and keepalives are sent but their answers are not counted; so
  channels get a time-out of their own, and TCP itself gives a dead peer up (`TCP_USER_TIMEOUT`);
- Nagle's algorithm costs 40 ms a command, so it is off;
- a status of -1 means a signal or a lost connection, and the transport tells which;
- the library's time-out ends the wait, not the remote process; so a command runs under `timeout`, which ends its process group.
"""

from __future__ import annotations

import contextlib
import io
import secrets
import shlex
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fabric
import invoke
import paramiko

from harness.errors import CommandFailed, CommandTimeout, NodeError, NodeUnreachable
from harness.remote.protocol import DEFAULT_TIMEOUT_S, Result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONNECT_TIMEOUT_S = 3.0
CHANNEL_TIMEOUT_S = 5.0
DEAD_PEER_MS = 6000
KEEPALIVE_S = 2
SESSIONS = 8
KILL_AFTER_S = 2
GRACE_S = 5.0
TIMED_OUT_STATUSES = frozenset({124, 137})
STAGING_DIR = "/tmp"  # noqa: S108 - on the node, under an unguessable name
LOST = (paramiko.SSHException, OSError, EOFError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """How a node is reached.

    Attributes:
        host: Name or address for SSH.
        port: Its port.
        user: The login; commands go through `sudo -n` unless it is root.
        key: The private key's file.
        known_hosts: The file with the node's host key. Without one the key is taken as it comes, for this process only.
    """

    host: str
    port: int
    user: str
    key: Path
    known_hosts: Path | None = None


class FabricRemote:
    """A shell on one node.

    Attributes:
        node: The node's name.
    """

    def __init__(self, node: str, endpoint: Endpoint) -> None:
        self.node = node
        self._endpoint = endpoint
        self._opening = threading.Lock()
        self._sessions = threading.BoundedSemaphore(SESSIONS)
        self._connection: fabric.Connection | None = None
        self._sudo = "" if endpoint.user == "root" else "sudo -n "

    def run(
        self, command: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, check: bool = True, stdin: str | None = None
    ) -> Result:
        """Runs a command line; see `harness.remote.Remote.run`."""
        wrapped = f"{self._sudo}timeout -k {KILL_AFTER_S} {timeout_s:g} sh -c {shlex.quote(command)}"
        began_s = time.monotonic()
        with self._session() as connection:
            try:
                done = connection.run(
                    wrapped,
                    hide=True,
                    warn=True,
                    in_stream=io.StringIO(stdin) if stdin is not None else False,
                    timeout=timeout_s + KILL_AFTER_S + GRACE_S,
                )
            except invoke.exceptions.CommandTimedOut as error:
                # `timeout` on the node has ended the process, or the node hangs: nothing more is known.
                raise CommandTimeout(self.node, command, timeout_s) from error
            except LOST as error:
                raise self._lost(command, error) from error
            if done.exited == -1 and not self._alive(connection):
                raise self._lost(command, "the connection was lost before it ended")
        if done.exited in TIMED_OUT_STATUSES and time.monotonic() - began_s >= timeout_s:
            raise CommandTimeout(self.node, command, timeout_s)
        if check and done.exited != 0:
            raise CommandFailed(self.node, command, done.exited, done.stderr)
        return Result(node=self.node, command=command, status=done.exited, stdout=done.stdout, stderr=done.stderr)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a local file to the node; see `harness.remote.Remote.put`."""
        with local.open("rb") as content:
            self._place(content, remote, mode)

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> None:
        """Writes a text file on the node; see `harness.remote.Remote.write`."""
        self._place(io.BytesIO(content.encode()), remote, mode)

    def get(self, remote: str, local: Path) -> None:
        """Copies a file of the node here; see `harness.remote.Remote.get`."""
        source = remote
        if self._sudo:
            source = f"{STAGING_DIR}/labrys-{secrets.token_hex(8)}"
            copied = self.run(
                f"[ -e {shlex.quote(remote)} ] || exit 44; "
                f"install -m 600 -o {shlex.quote(self._endpoint.user)} {shlex.quote(remote)} {source}",
                check=False,
                timeout_s=120,
            )
            if copied.status == 44:
                raise FileNotFoundError(f"{self.node}: there is no file {remote}")
            if copied.status != 0:
                raise CommandFailed(self.node, copied.command, copied.status, copied.stderr)
        try:
            with self._sftp(f"get {remote}") as sftp:
                sftp.get(source, str(local))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{self.node}: there is no file {remote}") from error
        finally:
            if self._sudo:
                self.run(f"rm -f {source}")

    def close(self) -> None:
        """Closes the connection. A later call opens it again."""
        with self._opening:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _place(self, content: Any, remote: str, mode: int) -> None:
        """Uploads to a temporary file and renames it, so that readers see the old file or the new one."""
        suffix = secrets.token_hex(8)
        temporary = f"{STAGING_DIR}/labrys-{suffix}" if self._sudo else f"{remote}.labrys-{suffix}"
        with self._sftp(f"put {remote}") as sftp:
            sftp.putfo(content, temporary)
            sftp.chmod(temporary, mode)
            if not self._sudo:
                sftp.posix_rename(temporary, remote)
        if self._sudo:
            beside = f"{remote}.labrys-{suffix}"
            self.run(
                f"install -m {mode:o} {temporary} {shlex.quote(beside)} && rm -f {temporary} && "
                f"mv -f {shlex.quote(beside)} {shlex.quote(remote)}"
            )

    @contextlib.contextmanager
    def _sftp(self, what: str) -> Iterator[paramiko.SFTPClient]:
        with self._session() as connection:
            try:
                sftp = paramiko.SFTPClient.from_transport(connection.transport)
                if sftp is None:
                    raise self._lost(what, "the node opened no SFTP session")
                with sftp:
                    yield sftp
            except FileNotFoundError:
                raise
            except PermissionError as error:
                raise NodeError(self.node, f"{what}: permission denied for {self._endpoint.user}") from error
            except LOST as error:
                if self._alive(connection):
                    raise NodeError(self.node, f"{what} failed: {error}") from error
                raise self._lost(what, error) from error

    @contextlib.contextmanager
    def _session(self) -> Iterator[fabric.Connection]:
        """Gives a place among the connection's sessions, on an open connection."""
        with self._sessions:
            yield self._open()

    def _open(self) -> fabric.Connection:
        with self._opening:
            if self._connection is not None and self._alive(self._connection):
                return self._connection
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            connection = self._connect()
            self._connection = connection
            return connection

    def _connect(self) -> fabric.Connection:
        endpoint = self._endpoint
        connection = fabric.Connection(
            endpoint.host,
            user=endpoint.user,
            port=endpoint.port,
            connect_timeout=CONNECT_TIMEOUT_S,
            config=fabric.Config(overrides={"load_ssh_configs": False}),
            connect_kwargs={
                "key_filename": str(endpoint.key),
                "allow_agent": False,
                "look_for_keys": False,
                "channel_timeout": CHANNEL_TIMEOUT_S,
                "banner_timeout": CHANNEL_TIMEOUT_S,
                "auth_timeout": CHANNEL_TIMEOUT_S,
            },
        )
        where = f"{endpoint.user}@{endpoint.host}:{endpoint.port}"
        if endpoint.known_hosts is not None:
            connection.client.load_host_keys(str(endpoint.known_hosts))
            connection.client.set_missing_host_key_policy(paramiko.RejectPolicy())
        try:
            connection.open()
        except paramiko.AuthenticationException as error:
            raise NodeUnreachable(
                self.node, f"{where} does not accept the key {endpoint.key}: {error}; is it in authorized_keys there?"
            ) from error
        except paramiko.BadHostKeyException as error:
            raise NodeUnreachable(
                self.node, f"{where} shows another host key than {endpoint.known_hosts} has: {error}"
            ) from error
        except LOST as error:
            raise NodeUnreachable(self.node, f"{where} cannot be reached over SSH: {error}") from error
        transport = connection.transport
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_PEER_MS)
        transport.set_keepalive(KEEPALIVE_S)
        return connection

    def _alive(self, connection: fabric.Connection) -> bool:
        transport = connection.transport
        return transport is not None and transport.is_active()

    def _lost(self, what: str, why: object) -> NodeUnreachable:
        return NodeUnreachable(
            self.node, f"`{what}`: the SSH connection does not answer, so its effect is unknown: {why}"
        )
