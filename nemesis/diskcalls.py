"""Waits on a real node until a running process has made a step of its disk, and lets it stand still there.

A tracer of Labrys follows the process (`nemesis/tracer`). It is built on this machine, and copied to the nodes. It gives the
process a filter (seccomp), so that only calls stop which can be steps of the kind. The filter stays, and so does the tracer, up
to the end of the process: if the tracer is killed, the kernel kills the process. If the process cannot have a filter, each of
its calls stops, and the tracer ends after its time limit.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.builds import Build
from harness.errors import NodeError
from harness.traits import Program
from nemesis.errors import FaultError

if TYPE_CHECKING:
    from harness.builds import Artifact
    from harness.remote import Remote

BINARY: Final = "labrys-tracer"
LOOK_S: Final = 2.0  # how long one command waits for the step; the heal of a run waits for it at most
BEGIN_S: Final = 10.0
OVERHEAD_S: Final = 10.0
HOLD_S: Final = 5  # how long a process stands still that no fault ends
TRACER: Final = Build(
    name=BINARY,
    version="0.1.0",  # of tracer/Cargo.toml
    sources=Path(__file__).parent / "tracer",
    files=("Cargo.toml", "Cargo.lock", "src/**/*.rs"),
    command=("cargo", "build", "--release", "--locked", "--target-dir", "target"),
    product=f"target/release/{BINARY}",
    tools=(
        Program(name="cargo", package="cargo", purpose="building the tracer of disk-step", build_only=True),
        Program(name="cc", package="gcc", purpose="building the tracer of disk-step", build_only=True),
    ),
)
_STANDS: Final = re.compile(r"stands (?P<pid>\d{1,10}) (?P<n>\d{1,18}) (?P<call>[a-z]{1,10}) (?P<file>.*)")
_ENDED: Final = re.compile(r"ended (?P<seen>\d{1,18})")

# $1 is the output of the tracer, the others are its command line. It prints the output and the pid of the tracer.
_BEGIN: Final = f"""mkdir -p /run/labrys && out=$(mktemp /run/labrys/steps.XXXXXXXX) || exit
setsid "$@" </dev/null >"$out" 2>&1 &
tracer=$!
for turn in $(seq {int(BEGIN_S * 50)}); do
  grep -q '^follows$' "$out" && {{ echo "$out $tracer"; exit 0; }}
  kill -0 "$tracer" 2>/dev/null || break
  sleep 0.02
done
kill "$tracer" 2>/dev/null; head -c 2000 "$out" >&2; rm -f "$out"; exit 1"""
_LOOK: Final = f"""for turn in $(seq {int(LOOK_S * 100)}); do
  grep -a -m 1 -E '^(stands|ended) ' "$1" && exit 0
  sleep 0.01
done
kill -0 "$2" 2>/dev/null || grep -a -m 1 -E '^(stands|ended) ' "$1" || echo gone"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A process that a tracer follows.

    Attributes:
        output: The file of the node with the output of the tracer.
        tracer: The pid of the tracer on the node; nobody may kill it.
    """

    output: str
    tracer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """A process that stands still right after a step.

    Attributes:
        pid: Its pid on the node; it may be a child of the process of the system.
        number: The number of the step among those that count.
        call: Its kind.
        file: The file in the data directory.
    """

    pid: int
    number: int
    call: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that has ended before the step. `seen` is the number of its steps that counted."""

    seen: int


def tracer() -> Artifact:
    """Returns the tracer, which is built if it is not in the cache.

    Raises:
        InfrastructureError: A tool is missing, or the build failed.
    """
    return TRACER.artifact(lambda _: None)


def follow(
    remote: Remote, program: str, *, pid: int, folder: str, call: str, pattern: str, nth: int, limit_s: float
) -> Followed:
    """Lets the tracer follow a process. Returns as soon as no call of it is missed.

    Args:
        remote: The shell on the node.
        program: The path of the tracer there.
        pid: The process.
        folder: Its data directory.
        call: The kind of the steps that count, or `any`.
        pattern: A pattern of names of files, or of paths in the folder.
        nth: The number of the step.
        limit_s: How long the tracer follows at most.

    Raises:
        FaultError: The process cannot be traced.
    """
    words = [program, str(pid), folder, call, pattern, str(nth), str(int(limit_s) + 1), str(HOLD_S)]
    done = remote.run(_called(_BEGIN, *words), timeout_s=BEGIN_S + OVERHEAD_S, check=False)
    output, _, tracer_pid = done.stdout.strip().partition(" ")
    if done.status != 0 or not tracer_pid.isdecimal():
        raise FaultError(
            f"the trigger disk-step cannot follow process {pid} of {remote.node}: {done.stderr.strip() or 'it has ended'}"
        )
    return Followed(output=output, tracer=int(tracer_pid))


def look(remote: Remote, followed: Followed) -> Stands | Ended | None:
    """Waits for the step for a moment. Returns None if there was none.

    Raises:
        NodeError: The output of the tracer has another form, or the tracer is gone.
    """
    words = followed.output, str(followed.tracer)
    line = remote.run(_called(_LOOK, *words), timeout_s=LOOK_S + OVERHEAD_S).stdout.strip()
    if not line:
        return None
    if match := _STANDS.fullmatch(line):
        return Stands(pid=int(match["pid"]), number=int(match["n"]), call=match["call"], file=match["file"])
    if match := _ENDED.fullmatch(line):
        return Ended(seen=int(match["seen"]))
    raise NodeError(
        remote.node, f"expected `stands`, `ended` or nothing from the tracer of disk-step, not {line[:200]!r}"
    )


def forget(remote: Remote, followed: Followed) -> None:
    """Removes the output of a tracer, which counts no steps after its time limit."""
    remote.run(f"rm -f {shlex.quote(followed.output)}", timeout_s=OVERHEAD_S)


def _called(script: str, *arguments: str) -> str:
    return f"sh -c {shlex.quote(script)} sh {shlex.join(arguments)}"
