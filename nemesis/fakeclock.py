"""Gives each process of the system under test its own wall clock, on a node that shares this machine's clock.

The process loads libfaketime, which adds an offset to the wall clock. libfaketime reads the offset from a file at each reading
of the clock. Monotonic clocks stay as they are, so time-outs and sleeps keep their length, as on a machine whose clock somebody
sets. The clock of the machine never changes.

The process must start with libfaketime. So `prepare` writes its environment to `ENVIRONMENT` before the start, and every system
reads it from there (see `harness.system.System.start`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.daemon import ENVIRONMENT
from nemesis.errors import FaultError
from nemesis.undo import SHELL_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Remote

OFFSET = "/run/labrys/clock-offset"

# Succeeds if at most 0.03 s passed between two readings of the uptime, or after 25 tries.
_STEADY = (
    """{ tries=$((tries + 1)); [ $tries -ge 25 ] || awk -v a="$up" -v b="$later" 'BEGIN { exit !(b - a <= 0.03) }'; }"""
)

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


def _readings(date: str, samples: int, gap_s: float) -> str:
    """Returns a script that prints a clock's time at the uptime 0, `samples` times, with a pause before each reading but one.

    A command like `date` reads the clock. On a busy machine, long pauses between the readings make the result wrong, so the
    script then tries again.
    """
    return f"""for sample in $(seq {samples}); do
[ $sample = 1 ] || sleep {gap_s:.3f}
tries=0
while :; do
  read up rest < /proc/uptime; now=$({date} +%s.%N); read later rest < /proc/uptime
  {_STEADY} && break
done
awk -v now="$now" -v up="$up" -v later="$later" 'BEGIN {{ printf "%.3f\\n", now - (up + later) / 2 }}'
done"""


def at(role: str | None, roles: Sequence[str]) -> str:
    """Returns a shell function: `at OFFSET` sets clocks ahead by so many seconds. It replaces the offset atomically.

    Args:
        role: The role of the process whose clock it sets; None: all processes of the node.
        roles: The roles of the node's processes.
    """
    wanted = [each for each in roles if role in {None, each}]
    files = " ".join(f"{OFFSET}-{each}" for each in wanted) if len(roles) > 1 else OFFSET
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


def ahead_s(remote: Remote, pid: int | None, role: str, *, samples: int = 1, gap_s: float = 0.0) -> list[float]:
    """Returns how far a process' wall clock is ahead of the node's uptime, in several readings.

    A program with the environment of the process reads the clock.

    Args:
        remote: The shell on the node.
        pid: The process; None: the next process that starts.
        role: Its role.
        samples: The number of readings.
        gap_s: The pause between two readings.

    Raises:
        FaultError: libfaketime is not loaded into the process.
        NodeError: The process is gone, or the node cannot be reached.
    """
    source = f"{ENVIRONMENT} {ENVIRONMENT}-{role}" if pid is None else f"/proc/{pid}/environ"
    script = f"""set -e
settings=$(cat {source} 2>/dev/null | tr '\\0' '\\n' | grep -E '^(LD_PRELOAD|FAKETIME_[A-Z_]*)=[^[:space:]]*$') || settings=
{"" if pid is None else f"grep -q /libfaketime /proc/{pid}/maps || settings="}
[ -n "$settings" ] || {{ echo bare; exit; }}
{_readings("env $settings date", samples, gap_s)}
"""
    output = remote.run(script, timeout_s=SHELL_TIMEOUT_S).stdout
    if output.strip() == "bare":
        raise FaultError(f"{remote.node}: libfaketime is not in its process (pid {pid}), so its clock is the machine's")
    return [float(line) for line in output.split()]
