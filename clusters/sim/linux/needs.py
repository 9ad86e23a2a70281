"""Tries what programs in virtual time need of this machine, for `labrys doctor`. It changes nothing that stays.

Each right is tried as the controller uses it, in a process of its own. A container may allow one right and refuse another, so
being root says little.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.doctor import Finding
from clusters.sim.linux.building import CARGO, CC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MACHINE: Final = "x86_64"
RUST: Final = (1, 85)  # `rust-version` of controller/Cargo.toml
TIMEOUT_S: Final = 30.0
FILES_BYTES: Final = 1 << 30  # that the files of a small cluster take
TRIED_BYTES: Final = 64 << 20
NO_RIGHT: Final = (
    "as root; in a container: with --privileged, or the capabilities SYS_ADMIN and SYS_PTRACE and no seccomp profile"
)

# A filter of system calls that hands each call with number 39, getpid, to the tracer; see seccomp(2) and bpf(4).
SECCOMP = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 39), (0x06, 0, 0, 0x7FF00000), (0x06, 0, 0, 0x7FFF0000)]
filter = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(filter, len(filter))
program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
if libc.prctl(38, 1, 0, 0, 0) < 0 or libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) < 0:
    raise SystemExit("prctl: " + __import__("os").strerror(ctypes.get_errno()))
if libc.getpid() >= 0:
    raise SystemExit("the filter has no effect")
"""
SEIZE: Final = 0x4206  # PTRACE_SEIZE
EXITKILL: Final = 0x100000  # PTRACE_O_EXITKILL
SPACES: Final = ("--mount", "--pid", "--net", "--uts", "--ipc", "--fork")


def examine_for_programs(find: Callable[[str], str | None]) -> list[Finding]:
    """Tries what programs in virtual time need of this machine.

    Args:
        find: Returns the path of a program; see `clusters.local.namespaces.find_program`.
    """
    return [
        _processor(platform.machine()),
        _right("ptrace", "stops threads at system calls", _try_ptrace()),
        _right("seccomp", "chooses the calls at which threads stop", _run([sys.executable, "-c", SECCOMP])),
        _right("namespaces", "programs have processes, mounts and a network of their own", _try_namespaces(find)),
        _right("/proc in a namespace", "programs see their own processes", _try_namespaces(find, "--mount-proc")),
        _space(_memory(), _try_files(find)),
        _cargo(find),
        _compiler(find),
    ]


def _processor(machine: str) -> Finding:
    ok = machine == MACHINE
    return Finding(
        what="processor",
        ok=ok,
        needed=False,
        detail=f"{machine}, whose system calls the controller knows"
        if ok
        else f"{machine}; the controller knows the system calls, registers and clock of {MACHINE} only",
        fix="" if ok else f"a machine with {MACHINE}; other systems of --cluster sim run here",
    )


def _right(what: str, purpose: str, error: str | None) -> Finding:
    detail = purpose if error is None else f"{purpose}; it failed: {error}"
    return Finding(what=what, ok=error is None, needed=False, detail=detail, fix="" if error is None else NO_RIGHT)


def _run(command: Sequence[str], *, given: str | None = None) -> str | None:
    """Carries out a command. Returns its error; None if it succeeded."""
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"it ended with status {done.returncode}"


def _try_ptrace() -> str | None:
    """Traces a process as the controller does. Returns the error; None if it works."""
    libc = ctypes.CDLL(None, use_errno=True)
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as traced:
        try:
            if libc.ptrace(SEIZE, traced.pid, None, ctypes.c_void_p(EXITKILL)) < 0:
                return os.strerror(ctypes.get_errno())
            return None
        finally:
            traced.kill()


def _try_namespaces(find: Callable[[str], str | None], *more: str) -> str | None:
    """Enters the namespaces of the controller. Returns the error; None if it works."""
    unshare = find("unshare")
    if unshare is None:
        return "unshare is not on PATH (apt-get install util-linux)"
    return _run([unshare, *SPACES, *more, "/bin/true"])


def _try_files(find: Callable[[str], str | None]) -> str | None:
    """Writes a large file in a file system in memory. Returns the error; None if it works."""
    unshare = find("unshare")
    if unshare is None:
        return "unshare is not on PATH (apt-get install util-linux)"
    with tempfile.TemporaryDirectory(prefix="labrys-") as folder:
        script = f'mount -t tmpfs -o size=8g,mode=755 labrys "$0" && head -c {TRIED_BYTES} /dev/zero > "$0/file"'
        return _run([unshare, "--mount", "/bin/sh", "-c", script, folder])


def _memory() -> int | None:
    """Returns how many bytes of memory programs can get here; None if the kernel does not say it."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    free = [] if match is None else [int(match[1]) << 10]
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            sizes = [int(Path("/sys/fs/cgroup", name).read_text()) for name in (limit, used)]
        except (OSError, ValueError):  # this kind of group is not there, or has no limit
            continue
        free.append(sizes[0] - sizes[1])
    return min(free, default=None)


def _space(memory: int | None, error: str | None) -> Finding:
    what, purpose = "files in memory", "the files of all nodes are in memory, at most 8 GiB for each folder of data"
    if error is not None:
        return _right(what, purpose, error)
    if memory is None:
        return Finding(what=what, ok=True, needed=False, detail=f"{purpose}; the free memory is unknown")
    ok = memory >= FILES_BYTES
    return Finding(
        what=what,
        ok=ok,
        needed=False,
        detail=f"{purpose}; {memory / (1 << 30):.1f} GiB are free",
        fix="" if ok else f"{FILES_BYTES >> 30} GiB of free memory, and more for large data",
    )


def _cargo(find: Callable[[str], str | None]) -> Finding:
    path = find(CARGO.name)
    detail, fix = f"not on PATH; for {CARGO.purpose}", f"apt-get install {CARGO.package}, or rustup.rs for a newer one"
    if path is None:
        return Finding(what=CARGO.name, ok=False, needed=False, detail=detail, fix=fix)
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        match = re.match(r"cargo (\d+)\.(\d+)", done.stdout)
    except (OSError, subprocess.TimeoutExpired):
        match = None
    version = None if match is None else (int(match[1]), int(match[2]))
    ok = version is not None and version >= RUST
    least = ".".join(map(str, RUST))
    shown = "of an unknown version" if version is None else ".".join(map(str, version))
    detail = f"{path}; for {CARGO.purpose}" if ok else f"{path} is {shown}, not {least} or later; for {CARGO.purpose}"
    return Finding(what=CARGO.name, ok=ok, needed=False, detail=detail, fix="" if ok else fix)


def _compiler(find: Callable[[str], str | None]) -> Finding:
    path, fix = find(CC.name), f"apt-get install {CC.package} libc6-dev"
    if path is None:
        detail = f"not on PATH; for {CC.purpose}"
        return Finding(what=CC.name, ok=False, needed=False, detail=detail, fix=fix)
    folder = Path(tempfile.mkdtemp(prefix="labrys-"))
    try:
        error = _run([path, "-xc", "-", "-o", str(folder / "program")], given="int main(void) { return 0; }")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    detail = f"{path}; for {CC.purpose}" + ("" if error is None else f"; it failed: {error}")
    return Finding(what=CC.name, ok=error is None, needed=False, detail=detail, fix="" if error is None else fix)
