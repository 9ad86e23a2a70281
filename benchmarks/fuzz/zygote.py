"""Runs commands of `labrys` one after the other, each in a fork of a process with all modules imported.

A fork costs milliseconds, and a new interpreter half a second. The system bounds the fork's memory, processor time and files.
Its output goes to files. A command of a file opens no cluster and runs no case of a suite: it is refused or ends there.

The protocol has one line of JSON on standard input for each request, and one on standard output for its answer; see `main`.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import cli
import clusters.options
import commands.suite.cases
import results.page.report
from benchmarks.fuzz.nodes import MARKER
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MEMORY_BYTES = 3 << 29
FILE_BYTES = 1 << 28
CPU_S = 30
WALL_S = 180.0
# A run on a cluster takes messages from the programs of its nodes, up to 50,000 lines in a second of each. A virtual one is
# carried out twice.
CLUSTER_FILE_BYTES = 1 << 30
CLUSTER_CPU_S = 180
CLUSTER_WALL_S = 900.0
ESCAPED = 99  # `cli.main` raised an exception other than SystemExit
_MODULES = (
    "commands.check.command",
    "checker.checking",
    "checker.presentation",
    "checker.decide.arrays",
    "checker.decide.tables",
    "commands.setup.clusters",
    "clusters.ssh",
    "nemesis.planfile",
    "commands.look.report",
    "results.stored.document",
    "results.stored.load",
    "results.publish",
    "results.page.report",
    "results.stored.junit",
    "results.live.terminal",
    "workloads.register",
    "commands.run.session",
    "clusters.sim.system",
    "harness.run",
    "nemesis.conductor",
    "pyarrow.parquet",
)


def _no_cluster(*_: object) -> NoReturn:
    raise InputError("the fuzzer opens no cluster")


def _no_cases(*_arguments: Any, **_options: Any) -> list[Any]:
    return []


def _no_plots(_record: Any) -> dict[str, tuple[str, str]]:
    return {}


def main() -> None:
    """Answers each request `{"arguments", "folder", "plots", "cluster"}` with `{"status", "seconds", "out", "err"}`.

    `status` is the exit code, or a negative signal; `out` and `err` are files.
    """
    open_cluster = clusters.options.open_cluster
    commands.suite.cases.run_suite = _no_cases
    for name in _MODULES:
        __import__(name)
    plots: Callable[[Any], dict[str, tuple[str, str]]] = results.page.report.plots_of
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        results.page.report.plots_of = plots if request["plots"] else _no_plots  # type: ignore[assignment]
        clusters.options.open_cluster = open_cluster if request["cluster"] else _no_cluster  # type: ignore[assignment]
        sys.stdout.write(json.dumps(_run(request["arguments"], folder, cluster=request["cluster"])) + "\n")
        sys.stdout.flush()


def _run(arguments: Sequence[str], folder: Path, *, cluster: bool) -> Mapping[str, Any]:
    out, err = folder / ".out", folder / ".err"
    child = os.fork()
    if child == 0:
        _carry_out(arguments, folder, out, err, cluster=cluster)
    deadline_s = time.monotonic() + (CLUSTER_WALL_S if cluster else WALL_S)
    pause_s = 0.001
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline_s:
            os.kill(child, signal.SIGKILL)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, 0.05)
    seconds = usage.ru_utime + usage.ru_stime
    return {"status": os.waitstatus_to_exitcode(status), "seconds": seconds, "out": str(out), "err": str(err)}


def _carry_out(arguments: Sequence[str], folder: Path, out: Path, err: Path, *, cluster: bool) -> NoReturn:
    try:
        os.chdir(folder)
        os.environ[MARKER] = str(folder)
        os.environ["TMPDIR"] = str(folder / "tmp")
        tempfile.tempdir = None  # it is the one of the variable from now on
        (folder / "tmp").mkdir(exist_ok=True)
        for number, path, flags in (
            (0, os.devnull, os.O_RDONLY),
            (1, out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            (2, err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ):
            os.dup2(os.open(path, flags, 0o600), number)
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        room = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        cpu_s, file_bytes = (CLUSTER_CPU_S, CLUSTER_FILE_BYTES) if cluster else (CPU_S, FILE_BYTES)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - until the process ends
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        try:
            cli.main(list(arguments))
        except SystemExit as left:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(left.code if isinstance(left.code, int) else ESCAPED)
    except BaseException:  # noqa: BLE001 - any exception is a finding
        import traceback  # noqa: PLC0415 - needed only here

        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    os._exit(ESCAPED)


if __name__ == "__main__":
    main()
