"""The switch of a local cluster: builds it, starts it between the nodes, talks to it, and ends it.

The bridge joins the nodes as long as no switch is on. The switch takes the nodes' devices out of the bridge, and gives them
back at its end; see `switch/src/main.rs`. `switch/src/protocol.rs` describes what it is told. It ends when its input ends, or
when this process does, so also after a `kill -9`. If it is killed itself, `rejoin` gives the devices back.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusters.errors import ClusterError
from clusters.local import namespaces
from harness.builds import Build
from harness.children import own_environment
from harness.slowness import slowed
from harness.switch import CONTROL, ConnectionNote, Happened, Passed, Seen, SwitchEnded
from harness.traits import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clusters.local.state import State
    from harness.switch import Awaited, Rule
    from harness.world import Pair

SOURCES: Final = Path(__file__).parent / "switch"
BINARY: Final = "labrys-switch"
VERSION: Final = "0.1.0"  # of switch/Cargo.toml
PURPOSE: Final = "building the switch of local clusters"
VERSION_ARGUMENTS: Final = ("--version",)
BRIDGE: Final = "bridge"
TUN: Final = Path("/dev/net/tun")
ANSWER_TIMEOUT_S: Final = 5.0
MAX_ANSWER: Final = 1 << 20
MILLIONTHS: Final = 1_000_000
NS_PER_US: Final = 1000
NOTE_STEP_NS: Final = 100_000_000  # of switch/src/flows.rs

logger = logging.getLogger(__name__)


def _build() -> Build:
    return Build(
        name="switch",
        version=VERSION,
        sources=SOURCES,
        files=("Cargo.toml", "Cargo.lock", "src/**/*.rs"),
        command=("cargo", "build", "--release", "--locked", "--target-dir", "target"),
        product=f"target/release/{BINARY}",
        tools=(
            Program(
                name="cargo", package="cargo", version_arguments=VERSION_ARGUMENTS, purpose=PURPOSE, build_only=True
            ),
            Program(name="cc", package="gcc", version_arguments=VERSION_ARGUMENTS, purpose=PURPOSE, build_only=True),
        ),
    )


def lacking() -> str:
    """Returns why this machine can have no switch; empty if it can. It builds nothing."""
    if not TUN.exists():
        return f"this machine has no {TUN}"
    missing = _build().lacking_tools()
    return f"this machine lacks {', '.join(missing)}, for {PURPOSE}" if missing else ""


class LocalSwitch:
    """The switch of one local cluster; see `harness.switch.Switch`."""

    def __init__(self, state: State) -> None:
        self.recording: Path | None = None
        self.noted: Sequence[ConnectionNote] | None = None
        self._state = state
        self._lock = threading.RLock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._waits = 0

    @property
    def is_on(self) -> bool:
        """Returns whether it has been started, and not stopped."""
        return self._process is not None

    def ports(self) -> tuple[str, ...]:
        """Returns the names of its ports."""
        return (CONTROL, *self._nodes())

    def start(self) -> None:
        """Starts it; see `harness.switch.Switch`."""
        with self._lock:
            if self._process is not None:
                return
            program = _build().artifact(logger.info).path / BINARY
            command = [str(program), str(os.getpid()), BRIDGE, CONTROL, *self._nodes()]
            with namespaces.entered(self._state.control):
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=own_environment(), cwd="/",
                    start_new_session=True,
                )  # fmt: skip
            self._rest = b""
            self.noted = None
            said = self._read()
            if said != "ready":
                self._end()
                raise ClusterError(f"the switch of the cluster {self._state.name!r} does not start: it said {said!r}")

    def set(self, rules: Mapping[Pair, Rule]) -> None:
        """Sets rules; see `harness.switch.Switch`."""
        with self._lock:
            for (source, target), rule in rules.items():
                self._ask(f"set {source} {target} {_words(rule)}")

    def clear(self, links: Iterable[Pair] | None = None) -> None:
        """Takes rules; see `harness.switch.Switch`."""
        with self._lock:
            for request in ["clear"] if links is None else [f"clear {source} {target}" for source, target in links]:
                self._ask(request)

    def wait_for(self, awaited: Awaited) -> int:
        """Begins to wait for a packet; see `harness.switch.Switch`."""
        links = ",".join(f"{source}>{target}" for source, target in awaited.links)
        has = f" has={awaited.has.hex()}" if awaited.has else ""
        with self._lock:
            self._waits += 1
            self._ask(
                f"watch {self._waits} nth={awaited.nth} port={awaited.port} least={awaited.least_bytes} "
                f"hold_us={awaited.hold_ns // NS_PER_US}{has} links={links}"
            )
            return self._waits

    def seen(self, wait: int) -> Seen:
        """Returns what came of a wait; see `harness.switch.Switch`."""
        with self._lock:
            said = json.loads(self._ask(f"watched {wait}"))
        passed = None
        if "source" in said:
            passed = Passed(
                link=(said["source"], said["target"]),
                ports=(said["source_port"], said["target_port"]),
                bytes=said["bytes"],
                ago_ns=said["ago_us"] * NS_PER_US,
            )
        return Seen(count=said["count"], held=said["held"], passed=passed)

    def end_wait(self, wait: int) -> None:
        """Ends a wait; see `harness.switch.Switch`."""
        with self._lock:
            self._ask(f"unwatch {wait}")

    def counts(self) -> dict[Pair, dict[str, int]]:
        """Returns the counters; see `harness.switch.Switch`."""
        with self._lock:
            said = self._counted()
        return {(link.partition(" ")[0], link.partition(" ")[2]): counts for link, counts in said["links"].items()}

    def _counted(self) -> dict[str, Any]:
        answer = self._ask("count")
        counted: dict[str, Any] = json.loads(answer)
        return counted

    def stop(self) -> None:
        """Stops it; see `harness.switch.Switch`."""
        with self._lock:
            if self._process is None:
                return
            try:
                missed = {port: count for port, count in self._counted()["missed"].items() if count}
                if missed:
                    logger.warning("the switch had no room for frames of %s", missed)
                self._record()
                self.noted = self._connections()
                self._ask("quit")
            finally:
                self._end()

    def _connections(self) -> list[ConnectionNote]:
        said = json.loads(self._ask("connections"))
        if said["dropped"]:
            logger.warning("the switch had no room for %d notes about connections", said["dropped"])
        return [
            ConnectionNote(time_ns=step * NOTE_STEP_NS, source=source, target=target, what=Happened(what), count=count)
            for step, source, target, what, count in said["notes"]
        ]

    def _record(self) -> None:
        """Writes the last packets. Without room for them, the run goes on without them, and says so."""
        path, self.recording = self.recording, None
        if path is None:
            return
        try:
            count = self._ask(f"record {path.resolve()}")
        except ClusterError as error:
            logger.warning("the packets were not recorded: %s", error)
        else:
            logger.info("the switch recorded the last %s packets", count)

    def _nodes(self) -> list[str]:
        return [node.name for node in self._state.members()]

    def _ask(self, request: str) -> str:
        """Sends a request, and returns what follows `ok`."""
        process = self._process
        if process is None or process.stdin is None:
            raise ClusterError(f"the switch of the cluster {self._state.name!r} is not on")
        try:
            process.stdin.write(f"{request}\n".encode())
            process.stdin.flush()
        except OSError as error:
            raise self._ended() from error
        answer = self._read()
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise ClusterError(f"the switch answered {answer[:200]!r} to {request!r}")
        return rest

    def _read(self) -> str:
        """Returns the next line that the switch writes."""
        process = self._process
        if process is None or process.stdout is None:
            raise ClusterError(f"the switch of the cluster {self._state.name!r} is not on")
        deadline_s = time.monotonic() + slowed(ANSWER_TIMEOUT_S)
        while b"\n" not in self._rest:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([process.stdout], [], [], left_s)[0]:
                raise ClusterError(f"the switch does not answer within {slowed(ANSWER_TIMEOUT_S):g} s")
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self._ended()
            self._rest += chunk
            if len(self._rest) > MAX_ANSWER:
                raise ClusterError(f"an answer of the switch has more than {MAX_ANSWER} bytes")
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    def _ended(self) -> SwitchEnded:
        status = None if self._process is None else self._process.wait(namespaces.EMPTY_TIMEOUT_S)
        return SwitchEnded(
            f"the switch of the cluster {self._state.name!r} ended before the run (status {status}), so the nodes had no "
            "network from then on"
        )

    def _end(self) -> None:
        """Closes its input, waits for its end, and sees to it that the nodes have their network."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        with contextlib.suppress(OSError):  # it has ended, and what it did not read does not matter any more
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(slowed(ANSWER_TIMEOUT_S))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        rejoin(self._state)


def rejoin(state: State) -> None:
    """Gives the devices of all nodes back to the bridge, whatever a killed switch left. Idempotent.

    Raises:
        ClusterError: A device cannot be given back.
    """
    names = [node.name for node in state.members()]
    namespaces.ip_batch([f"link set {name} master {BRIDGE}" for name in names], namespace=state.control)
    with namespaces.entered(state.control):
        for name in names:
            for value in (
                Path(f"/proc/sys/net/ipv4/conf/{name}/arp_ignore"),
                Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6"),
            ):
                if value.exists():
                    value.write_text("0")


def _words(rule: Rule) -> str:
    """Returns a rule in the words of the protocol."""
    numbers: dict[str, int] = {"seed": rule.seed, "cut": int(rule.cut)}
    if rule.disturbance is not None:
        asked = rule.disturbance
        shares = {"lose": asked.lose, "duplicate": asked.duplicate, "damage": asked.damage, "hurry": asked.hurry}
        numbers |= {name: round(share * MILLIONTHS) for name, share in shares.items()}
        numbers |= {"delay_us": asked.delay_ns // NS_PER_US, "jitter_us": asked.jitter_ns // NS_PER_US}
    if rule.bandwidth is not None:
        numbers |= {"bits_per_s": rule.bandwidth.bits_per_s, "burst_bytes": rule.bandwidth.burst_bytes}
        numbers["patience_us"] = rule.bandwidth.patience_ns // NS_PER_US
    return " ".join(f"{name}={number}" for name, number in numbers.items())
