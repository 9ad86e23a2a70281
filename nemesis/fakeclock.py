"""Gives each process of the system under test its own wall clock, on a node that shares this machine's clock.

The process loads libfaketime, which adds an offset to the wall clock. libfaketime reads the offset from a file at each reading
of the clock. Monotonic clocks stay as they are, so time-outs and sleeps keep their length, as on a machine whose clock somebody
sets. The clock of the machine never changes.

The process must start with libfaketime. So `prepare` writes its environment to `ENVIRONMENT` before the start, and every system
reads it from there (see `harness.system.System.start`).
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from harness.daemon import ENVIRONMENT
from nemesis.binaries import looking_at, unreachable
from nemesis.errors import FaultError
from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Remote

OFFSET = "/run/labrys/clock-offset"

# libfaketime's fix for monotonic clocks makes timed waits of a JVM end at once. Without it their clock is right.
_PREPARE = f"""set -e
for library in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1; do
  [ -e "$library" ] && break
done
mkdir -p {ENVIRONMENT.rsplit("/", 1)[0]}
echo +0 > {OFFSET}
cat > {ENVIRONMENT} <<END
LD_PRELOAD=$library
FAKETIME_TIMESTAMP_FILE={OFFSET}
FAKETIME_NO_CACHE=1
FAKETIME_DONT_FAKE_MONOTONIC=1
FAKETIME_FORCE_MONOTONIC_FIX=0
END
rm -f {ENVIRONMENT}-* {OFFSET}-*
[ -e "$library" ]
"""


def at(role: str | None, roles: Sequence[str]) -> str:
    """Returns a shell function: `at OFFSET` sets clocks ahead by so many seconds. It replaces the offset atomically.

    Args:
        role: The role of the process whose clock it sets; None: all processes of the node.
        roles: The roles of the node's processes.
    """
    wanted = [other for other in roles if role in {None, other}]
    files = " ".join(f"{OFFSET}-{other}" for other in wanted) if len(roles) > 1 else OFFSET
    return f"""at() {{
  for file in {files}; do
    [ -e $file ] || {{ echo "no process here was started with a clock of its own" >&2; exit 1; }}
    printf '%+.3f\\n' "$1" > $file.new && mv $file.new $file || return
  done
}}"""


def prepare(remote: Remote, roles: Sequence[str]) -> None:
    """Prepares the node so that each process that starts later has its own clock, at first with the offset 0.

    Args:
        remote: The shell on the node.
        roles: The roles of its processes.

    Raises:
        NodeError: libfaketime is not installed on the node, or the node cannot be reached.
    """
    script = _PREPARE
    if len(roles) > 1:
        for role in roles:
            script += (
                f"echo +0 > {OFFSET}-{role}\necho FAKETIME_TIMESTAMP_FILE={OFFSET}-{role} > {ENVIRONMENT}-{role}\n"
            )
    remote.run(script, timeout_s=SHELL_TIMEOUT_S)


def check_program(remote: Remote, program: str) -> str | None:
    """Returns why libfaketime cannot reach a program of the node, as the end of a sentence; None if nothing is known.

    Args:
        remote: The shell on the node.
        program: Its name on the node's PATH, or its absolute path.
    """
    look = looking_at('"$path"')
    script = f'path=$(command -v {shlex.quote(program)}) && [ -f "$path" ] || exit 0\n{look}'
    return unreachable(remote.run(script, timeout_s=SHELL_TIMEOUT_S).stdout)


def check_process(remote: Remote, pid: int) -> None:
    """Checks that libfaketime is in the memory of a process, and that its program reads the clock by libfaketime.

    This does not prove that its clock is another one; only the process itself does (see `harness.system.System.clock`).

    Raises:
        FaultError: libfaketime does not reach the process.
        NodeError: The process is gone, or the node cannot be reached.
    """
    script = f"grep -q /libfaketime /proc/{pid}/maps && echo loaded || echo bare\n{looking_at(f'/proc/{pid}/exe')}"
    memory, _, program = remote.run(script, timeout_s=SHELL_TIMEOUT_S).stdout.partition("\n")
    reason = unreachable(program)
    if reason is not None:
        raise FaultError(f"the process (pid {pid}) {reason}, so its clock is the machine's")
    if memory != "loaded":
        raise FaultError(f"libfaketime is not in its process (pid {pid}), so its clock is the machine's")


def offset_s(remote: Remote, role: str) -> float:
    """Returns the offset that libfaketime gives to the process of a role, in seconds.

    Raises:
        FaultError: No process of the node was started with a clock of its own.
    """
    script = f"cat {OFFSET}-{role} 2>/dev/null || cat {OFFSET}"
    answer = remote.run(script, timeout_s=SHELL_TIMEOUT_S, check=False)
    try:
        return float(answer.stdout)
    except ValueError:
        raise FaultError(f"{remote.node}: no process was started with a clock of its own") from None
