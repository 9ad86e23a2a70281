"""A wall clock of its own for each process of the system under test, on a node that shares this machine's clock.

libfaketime is loaded into the process and adds an offset to whatever the wall clock says; the offset lies in a file that is
read again with each look at the clock. Clocks that only go ahead are left alone: time-outs and sleeps last as long as ever, as
they would where somebody sets a machine's clock. The clock of the machine is never touched.

The process must have been started so: before the start of the system its environment is left in `ENVIRONMENT`, from which every
system takes it (see `harness.system.System.start`).
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

# Says whether little time has passed between two readings of the uptime, or too often much has.
STEADY = (
    """{ tries=$((tries + 1)); [ $tries -ge 25 ] || awk -v a="$up" -v b="$later" 'BEGIN { exit !(b - a <= 0.03) }'; }"""
)

# The monotonic fix of libfaketime lets timed waits of a JVM end at once; its own clock for them is right without.
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


def base(date: str) -> str:
    """Returns a script that sets $base to what a clock says at an uptime of 0, read with a command like `date`.

    On a busy machine much may pass between two looks; it looks again then.
    """
    return f"""tries=0
while :; do
  read up rest < /proc/uptime; now=$({date} +%s.%N); read later rest < /proc/uptime
  {STEADY} && break
done
base=$(awk -v now="$now" -v up="$up" -v later="$later" 'BEGIN {{ printf "%.3f", now - (up + later) / 2 }}')"""


def readings(date: str, samples: int) -> str:
    """Returns a script that says some times what a clock says at an uptime of 0."""
    return f"""for sample in $(seq {samples}); do
{base(date)}
echo "$base"
done"""


def at(role: str | None, roles: Sequence[str]) -> str:
    """Returns a shell function: `at OFFSET` lets clocks be ahead by so many seconds; a reader never sees half a number.

    Args:
        role: The process whose clock it is; None: all processes of the node.
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
    """Lets the processes that are started next have clocks of their own, which are right at first.

    Args:
        remote: The shell on the node.
        roles: The roles of its processes. Several have a clock each.

    Raises:
        NodeError: libfaketime is not installed there, or the node cannot be reached.
    """
    script = _PREPARE
    if len(roles) > 1:
        for role in roles:
            script += (
                f"echo +0 > {OFFSET}-{role}\necho FAKETIME_TIMESTAMP_FILE={OFFSET}-{role} > {ENVIRONMENT}-{role}\n"
            )
    remote.run(script, timeout_s=SHELL_TIMEOUT_S)


def ahead_s(remote: Remote, pid: int | None, role: str, *, samples: int = 1) -> list[float]:
    """Returns how far a process' wall clock is ahead of the node's uptime, in some readings one after the other.

    The clock is read by a program that runs in the environment of the process itself.

    Args:
        remote: The shell on the node.
        pid: The process; None: whichever is started next.
        role: Its role.
        samples: How many readings.

    Raises:
        FaultError: libfaketime is not loaded into the process.
        NodeError: The process is gone, or the node cannot be reached.
    """
    source = f"{ENVIRONMENT} {ENVIRONMENT}-{role}" if pid is None else f"/proc/{pid}/environ"
    script = f"""set -e
settings=$(cat {source} 2>/dev/null | tr '\\0' '\\n' | grep -E '^(LD_PRELOAD|FAKETIME_[A-Z_]*)=[^[:space:]]*$') || settings=
{"" if pid is None else f"grep -q /libfaketime /proc/{pid}/maps || settings="}
[ -n "$settings" ] || {{ echo bare; exit; }}
{readings("env $settings date", samples)}
"""
    said = remote.run(script, timeout_s=SHELL_TIMEOUT_S).stdout
    if said.strip() == "bare":
        raise FaultError(f"{remote.node}: libfaketime is not in its process (pid {pid}), so its clock is the machine's")
    return [float(line) for line in said.split()]
