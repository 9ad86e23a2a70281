"""A remote shell over SSH, on fabric and paramiko, for many threads and unreliable links.

It handles these limits of the libraries. Each point was measured against OpenSSH:

- Opening a connection is not thread-safe, so the first thread opens it under a lock.
- By default, sshd allows ten sessions on a connection, and counts those that it still closes. So a semaphore allows eight, and
  a refused session is tried again.
- By default, opening a channel on a dead link waits an hour, and keepalives need no answer. So channels have their own
  time-out, and TCP ends a connection to a dead peer (`TCP_USER_TIMEOUT`).
- Nagle's algorithm costs 40 ms for each command, so it is off.
- A status of -1 is a lost connection or an ended channel, and the transport shows which. A signal has another status, because
  the shell on the node turns it into 128 + its number.
- A time-out on this side ends the wait, and not the remote process. So a command runs under `timeout` in its own process group,
  which is killed at the deadline even if the connection is lost.

A command that starts a background process must redirect its output, because the session ends only when its output is closed.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import shlex
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import fabric
import paramiko

from harness.errors import CommandFailed, CommandTimeout, NodeError, NodeUnreachable
from harness.remote import files
from harness.remote.exchange import MAX_OUTPUT_BYTES, exchange
from harness.remote.protocol import DEFAULT_TIMEOUT_S, Result
from harness.slowness import slowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

CONNECT_TIMEOUT_S = 3.0
LOOPBACK = "127.0.0.1"
CHANNEL_TIMEOUT_S = 5.0
DEAD_PEER_MS = 6000
KEEPALIVE_S = 2
SESSIONS = 8
SESSION_WAIT_S = 120.0
GRACE_S = 10.0
COPY_TIMEOUT_S = 120.0
STALLED_COPY_S = 20.0
KILLED_STATUS = 128 + 9
STAGING_DIR = "/tmp"  # noqa: S108 - on the node, under an unguessable name
NO_SUCH_FILE_STATUS = 44
REFUSED_S = 0.05
MIN_TIMEOUT_S = 0.001  # for `timeout`, 0 is no deadline
FRESH_S = 2.0
PROHIBITED = 1  # SSH_OPEN_ADMINISTRATIVELY_PROHIBITED, RFC 4254 5.1
# paramiko's text for a refusal without a reason: it keeps one reason for a connection, and another thread took it.
REFUSED_TOO = "Unable to open channel."
LOST = (paramiko.SSHException, OSError, EOFError)

# This module raises what paramiko logs. Without a handler, Python would print it.
LOGGER = logging.getLogger("harness.remote.ssh")
LOGGER.addHandler(logging.NullHandler())
LOGGER.setLevel(logging.WARNING)  # below it, paramiko logs each channel of SFTP: a thousand lines in the log of a run

# $1 is the deadline in seconds, $2 the command line. `timeout` kills its own process group, itself included.
WRAPPER = 'timeout -s KILL "$1" sh -c "$2"; exit $?'


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The SSH endpoint of a node.

    Attributes:
        host: The name or address for SSH.
        port: The port.
        user: The login; commands go through `sudo -n` unless it is root.
        key: The file of the private key.
        known_hosts: The file with the node's host key. Without this and `host_key`, any key is accepted.
        host_key: The node's host key itself, as `ssh-ed25519 AAAA...`; it replaces `known_hosts`.
        proxy: A command whose input and output are the connection, e.g. `ssh -W host:22 gate`; None for a direct one.
    """

    host: str
    port: int
    user: str
    key: Path
    known_hosts: Path | None = None
    host_key: str | None = None
    proxy: str | None = None

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Failure:
    """An attempt to connect that failed."""

    began_s: float
    ended_s: float
    message: str


class FabricRemote:
    """A shell on one node.

    Attributes:
        node: The node's name.
    """

    def __init__(
        self,
        node: str,
        endpoint: Endpoint,
        *,
        entering: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """Makes a shell that connects on first use.

        Args:
            node: The node's name, for errors.
            endpoint: Its SSH endpoint.
            entering: Returns a context for the connecting thread, e.g. a network namespace that reaches the endpoint.
        """
        self.node = node
        self._endpoint = endpoint
        self._place = entering
        self._opening = threading.Lock()
        self._sessions = threading.BoundedSemaphore(SESSIONS)
        self._connection: fabric.Connection | None = None
        self._last_failure: _Failure | None = None
        self._sudo = "" if endpoint.user == "root" else "sudo -n "

    def run(
        self, command: str, *, timeout_s: float = DEFAULT_TIMEOUT_S, check: bool = True, stdin: str | None = None
    ) -> Result:
        """Runs a command line; see `harness.remote.Remote.run`."""
        limit_s = slowed(timeout_s)
        wrapped = (
            f"{self._sudo}sh -c {shlex.quote(WRAPPER)} sh {max(limit_s, MIN_TIMEOUT_S):.3f} {shlex.quote(command)}"
        )
        with self._session(command) as connection:
            began_s = time.monotonic()
            try:
                channel = self._channel(connection)
                done = exchange(channel, wrapped, stdin=(stdin or "").encode(), limit_s=limit_s + slowed(GRACE_S))
            except LOST as error:
                raise self._lost(command, error) from error
            took_s = time.monotonic() - began_s
            if done.status == -1 and not done.expired and not done.flooded and not _alive(connection):
                raise self._lost(command, "it was lost before the command ended")
        if done.flooded:
            raise NodeError(
                self.node, f"`{command}` wrote more than {MAX_OUTPUT_BYTES} bytes; fetch files with `get` instead"
            )
        if done.expired:
            raise self._lost(
                command, f"{slowed(GRACE_S):g} s after its deadline of {limit_s:g} s, there is still no answer"
            )
        if done.status == KILLED_STATUS and took_s >= limit_s:
            raise CommandTimeout(self.node, command, limit_s)
        if done.held:
            raise NodeError(
                self.node,
                f"`{command}` ended with status {done.status}, but a process it started holds its output open; "
                "redirect the output of background processes",
            )
        stdout, stderr = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
        if check and done.status != 0:
            raise CommandFailed(self.node, command, done.status, stderr)
        return Result(node=self.node, command=command, status=done.status, stdout=stdout, stderr=stderr)

    def put(self, local: Path, remote: str, *, mode: int = 0o644) -> None:
        """Copies a local file to the node; see `harness.remote.Remote.put`."""
        with local.open("rb") as content:
            self._replace(files.chunks(content), remote, mode)

    def write(self, remote: str, content: str, *, mode: int = 0o644) -> None:
        """Writes a text file on the node; see `harness.remote.Remote.write`."""
        self._replace([content.encode()], remote, mode)

    def get(self, remote: str, local: Path) -> None:
        """Copies a file of the node here; see `harness.remote.Remote.get`."""
        if not self._sudo:
            self._download(remote, remote, local)
            return
        staged = self._staged_name()
        source, user = shlex.quote(remote), shlex.quote(self._endpoint.user)
        copied = self.run(
            f"[ -e {source} ] || exit {NO_SUCH_FILE_STATUS}; install -m 600 -o {user} {source} {staged}",
            check=False,
            timeout_s=COPY_TIMEOUT_S,
        )
        if copied.status == NO_SUCH_FILE_STATUS:
            raise FileNotFoundError(f"{self.node}: there is no file {remote}")
        if copied.status != 0:
            raise CommandFailed(self.node, copied.command, copied.status, copied.stderr)
        try:
            self._download(staged, remote, local)
        finally:
            self.run(f"rm -f {staged}")

    def dial(self, port: int) -> paramiko.Channel:
        """Connects to a TCP port of the node's loopback interface; see `harness.remote.Remote.dial`."""
        what = f"connecting to port {port}"
        with self._session(what) as connection:
            try:
                channel: paramiko.Channel = connection.transport.open_channel(
                    "direct-tcpip", (LOOPBACK, port), (LOOPBACK, 0), timeout=slowed(CHANNEL_TIMEOUT_S)
                )
            except paramiko.ChannelException as error:
                raise NodeError(self.node, f"{what} failed: {error.text}") from error
            except LOST as error:
                raise self._lost(what, error) from error
        return channel

    def close(self) -> None:
        """Closes the connection. A later call opens it again."""
        with self._opening:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _replace(self, content: files.Content, remote: str, mode: int) -> None:
        """Uploads to a temporary file and renames it, so that readers see the old file or the new one."""
        if not self._sudo:
            self._upload(content, remote, mode)
            return
        staged = self._staged_name()
        self._upload(content, staged, 0o600)
        target, beside = shlex.quote(remote), shlex.quote(f"{remote}.labrys-{secrets.token_hex(8)}")
        self.run(
            f"install -m {mode:o} {staged} {beside} && mv -f {beside} {target}; s=$?; rm -f {staged} {beside}; exit $s",
            timeout_s=COPY_TIMEOUT_S,
        )

    def _upload(self, content: files.Content, remote: str, mode: int) -> None:
        try:
            with self._sftp(f"writing {remote}") as sftp:
                files.replace(sftp, content, remote, mode=mode)
        except FileNotFoundError as error:
            raise NodeError(self.node, f"writing {remote}: its directory does not exist") from error

    def _download(self, source: str, called: str, local: Path) -> None:
        with self._sftp(f"reading {called}") as sftp:
            files.fetch(sftp, source, local)

    def _staged_name(self) -> str:
        return f"{STAGING_DIR}/labrys-{secrets.token_hex(8)}"

    @contextlib.contextmanager
    def _sftp(self, what: str) -> Iterator[paramiko.SFTPClient]:
        with self._session(what) as connection:
            try:
                channel = self._channel(connection)
                channel.settimeout(slowed(STALLED_COPY_S))
                channel.invoke_subsystem("sftp")
                with paramiko.SFTPClient(channel) as sftp:
                    yield sftp
            except FileNotFoundError as error:
                raise FileNotFoundError(f"{self.node}: {what}: there is no such file") from error
            except PermissionError as error:
                raise NodeError(self.node, f"{what}: permission denied for {self._endpoint.user}") from error
            except TimeoutError as error:
                raise self._lost(what, f"no data arrived for {slowed(STALLED_COPY_S):g} s") from error
            except (paramiko.SSHException, EOFError) as error:
                raise self._lost(what, error) from error
            except (OSError, paramiko.SFTPError) as error:
                if _alive(connection):
                    raise NodeError(self.node, f"{what} failed: {error}") from error
                raise self._lost(what, error) from error

    @contextlib.contextmanager
    def _session(self, what: str) -> Iterator[fabric.Connection]:
        """Yields an open connection, and holds one of its sessions meanwhile."""
        asked_s = time.monotonic()
        if not self._sessions.acquire(timeout=slowed(SESSION_WAIT_S)):
            raise NodeError(
                self.node,
                f"`{what}` was not started: all {SESSIONS} sessions have been busy for {slowed(SESSION_WAIT_S):g} s",
            )
        try:
            yield self._open(asked_s)
        finally:
            self._sessions.release()

    def _channel(self, connection: fabric.Connection) -> paramiko.Channel:
        """Opens a channel. A refusal has no effect, so it tries again until sshd has closed another channel."""
        deadline_s = time.monotonic() + slowed(SESSION_WAIT_S)
        while True:
            try:
                channel: paramiko.Channel = connection.transport.open_session(timeout=slowed(CHANNEL_TIMEOUT_S))
            except paramiko.SSHException as error:
                code, text = (
                    (error.code, error.text) if isinstance(error, paramiko.ChannelException) else (None, str(error))
                )
                if code is None and not (text == REFUSED_TOO and _alive(connection)):
                    raise
                if code == PROHIBITED or time.monotonic() > deadline_s:
                    raise NodeError(self.node, f"{self._endpoint} grants no session: {text}") from error
                time.sleep(REFUSED_S)
            else:
                return channel

    def _open(self, asked_s: float) -> fabric.Connection:
        with self._opening:
            if self._connection is not None and _alive(self._connection):
                return self._connection
            failure = self._last_failure
            if failure is not None and failure.began_s >= asked_s and time.monotonic() < failure.ended_s + FRESH_S:
                # Another thread failed while this one waited. A second try would only wait for the same time-out.
                raise NodeUnreachable(self.node, failure.message)
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            began_s = time.monotonic()
            try:
                with self._place():
                    self._connection = self._connect()
            except LOST as error:
                message = self._explain(error)
                self._last_failure = _Failure(began_s=began_s, ended_s=time.monotonic(), message=message)
                raise NodeUnreachable(self.node, message) from error
            return self._connection

    def _connect(self) -> fabric.Connection:
        endpoint = self._endpoint
        connection = fabric.Connection(
            endpoint.host,
            user=endpoint.user,
            port=endpoint.port,
            connect_timeout=slowed(CONNECT_TIMEOUT_S),
            gateway=endpoint.proxy,
            config=fabric.Config(overrides={"load_ssh_configs": False}),
            connect_kwargs={
                "key_filename": str(endpoint.key),
                "allow_agent": False,
                "look_for_keys": False,
                "channel_timeout": slowed(CHANNEL_TIMEOUT_S),
                "banner_timeout": slowed(CHANNEL_TIMEOUT_S),
                "auth_timeout": slowed(CHANNEL_TIMEOUT_S),
            },
        )
        connection.client.set_log_channel(LOGGER.name)
        try:
            self._trust(connection.client)
            connection.open()
        except BaseException:
            connection.client.close()
            raise
        transport = connection.transport
        if isinstance(transport.sock, socket.socket):  # a proxy is a process without a socket here
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(slowed(DEAD_PEER_MS)))
        transport.set_keepalive(KEEPALIVE_S)
        return connection

    def _trust(self, client: paramiko.SSHClient) -> None:
        """Lets the client accept only the node's own host key, if it is known."""
        endpoint = self._endpoint
        if endpoint.host_key is not None:
            name = endpoint.host if endpoint.port == 22 else f"[{endpoint.host}]:{endpoint.port}"
            entry = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {endpoint.host_key}")
            if entry is None or entry.key is None:
                raise paramiko.SSHException(f"{endpoint.host_key!r} is not a host key")
            client.get_host_keys().add(name, entry.key.get_name(), entry.key)
        elif endpoint.known_hosts is not None:
            client.load_host_keys(str(endpoint.known_hosts))
        else:
            return
        client.set_missing_host_key_policy(paramiko.RejectPolicy())

    def _explain(self, error: Exception) -> str:
        endpoint = self._endpoint
        if isinstance(error, paramiko.AuthenticationException):
            return f"{endpoint} does not accept the key {endpoint.key}: {error}; is it in authorized_keys there?"
        if isinstance(error, paramiko.BadHostKeyException):
            pinned = endpoint.known_hosts if endpoint.host_key is None else "the pinned key"
            return f"{endpoint} shows another host key than {pinned}: {error}; is it still the same machine?"
        return f"{endpoint} cannot be reached over SSH: {error}"

    def _lost(self, what: str, why: object) -> NodeUnreachable:
        return NodeUnreachable(
            self.node, f"`{what}`: the SSH connection does not answer, so its effect is unknown: {why}"
        )


def _alive(connection: fabric.Connection) -> bool:
    transport = connection.transport
    return transport is not None and transport.is_active()
