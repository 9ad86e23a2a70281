"""Runs a suite: each case in a process of its own, and several at the same time if there is room.

A case that crashes, hangs or is killed affects no other case. The processes of cases are in groups of their own. So Ctrl-C
reaches only the suite, which passes it on to each case once, and waits until all of them have healed and removed their nodes.
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from commands.suite.folder import file_names, plain_name
from commands.suite.following import Following
from commands.suite.results import Ended, result_of
from commands.suite.summary import COLOURS
from harness.console import below
from harness.console.members import written
from harness.console.parameters import MAX_RUN_S, seconds_of
from harness.console.plain import counted, one_line, plain
from harness.errors import ExitCode, Terminated
from results.store.errors import StoreError
from results.words.formatting import seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from typing import IO

    from rich.console import Console

    from commands.suite.folder import SuiteFolder
    from commands.suite.jobs import Jobs
    from harness.op import Value
    from harness.suites.case import Case
    from harness.suites.case_result import CaseResult
    from harness.suites.suite import Suite

EXTRA_S = 900.0  # allowed per run beside its workload on usual nodes: set-up, recovery, final reads, checking


@dataclass(slots=True, kw_only=True)
class _Process:
    """The running process of a case.

    Attributes:
        case: The case.
        number: Its number among the cases that run.
        process: The process.
        log: Its standard error.
        began_s: The time of its start.
    """

    case: Case
    number: int
    process: subprocess.Popen[str]
    log: IO[str]
    began_s: float

    def wait(self, limit_s: float) -> Ended:
        """Waits for its end, and returns it. After the time limit, the process is asked to end."""
        with self.log:
            try:
                output, _ = self.process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                self.process.terminate()  # the run heals its nodes and takes its cluster down
                output, _ = self.process.communicate()
            self.log.seek(0)
            lines = [line.strip() for line in self.log if line.strip()]
        return Ended(code=self.process.returncode, output=output, lines=lines, seconds=time.monotonic() - self.began_s)


@dataclass(slots=True, kw_only=True)
class _Running:
    """The processes that run now.

    Attributes:
        processes: Each process by the name of its case, with the thread that waits for it.
        ended: The processes that ended, each with its end or the error of its thread.
    """

    processes: dict[str, tuple[_Process, threading.Thread]] = field(default_factory=dict)
    ended: queue.SimpleQueue[tuple[_Process, Ended | Exception]] = field(default_factory=queue.SimpleQueue)

    def cases(self) -> list[Case]:
        """Returns the cases that run."""
        return [process.case for process, _ in self.processes.values()]

    def add(self, process: _Process, limit_s: float) -> None:
        """Waits for a process in a thread."""
        thread = threading.Thread(target=self._wait, args=(process, limit_s), name="case", daemon=True)
        self.processes[process.case.name] = process, thread
        thread.start()

    def _wait(self, process: _Process, limit_s: float) -> None:
        try:
            self.ended.put((process, process.wait(limit_s)))
        except Exception as error:  # noqa: BLE001 - the thread of the suite raises it
            self.ended.put((process, error))

    def next_end(self) -> tuple[_Process, Ended]:
        """Waits until a process ends."""
        process, ended = self.ended.get()
        del self.processes[process.case.name]
        if isinstance(ended, Exception):
            raise ended
        return process, ended

    def end(self, number: signal.Signals) -> None:
        """Passes a signal on to all processes, and waits until they have ended. Later interruptions are passed on as well."""
        while True:
            try:
                for process, _ in self.processes.values():
                    process.process.send_signal(number)
                for _, thread in self.processes.values():
                    thread.join()
            except KeyboardInterrupt as again:
                number = _signal_of(again)
            else:
                return


def run_suite(
    suite: Suite,
    folder: SuiteFolder,
    *,
    store: Path,
    console: Console,
    exit_first: bool,
    before: Mapping[str, CaseResult],
    time_limit_s: float,
    config: Path | None,
    selected: Collection[str],
    jobs: Jobs,
) -> list[CaseResult]:
    """Runs the cases that have no result yet.

    Args:
        suite: The suite.
        folder: The folder for its results.
        store: The store for the runs.
        console: The console for a line for each case.
        exit_first: Whether to begin no other case after the first that fails.
        before: The results of an interrupted suite, by case.
        time_limit_s: The duration of the workload of a case without a time limit.
        config: The `labrys.toml` of the cases; None if they have none.
        selected: The names of the cases to run.
        jobs: How many cases run at the same time.

    Returns:
        The results of the cases that ran, in the order of the suite.

    Raises:
        KeyboardInterrupt: A person ended the suite; the folder has the results so far.
    """
    results = dict(before)
    names = file_names(suite)
    waiting = [case for case in suite.cases if case.name in selected and case.name not in results]
    total = len(waiting)
    several = jobs.at_once(waiting) > 1
    if several:
        console.print(f"jobs       up to {counted(jobs.at_once(waiting), 'case')} at the same time", style="dim")
    wanted = {*selected, *results}
    running = _Running()
    with folder.current(store), Following(console, named=several) as following:
        try:
            while waiting or running.processes:
                while (case := jobs.following(waiting, running.cases())) is not None:
                    waiting.remove(case)
                    number = total - len(waiting)
                    console.print(Text(f"[{number}/{total}] {plain(case.name)}", style="bold"))
                    own = ["--store", str(store), "--format", "json"]
                    own += ["--name", plain_name(f"{suite.name}-{names[case.name]}")]
                    own += ["--suite-case", json.dumps(written(suite.case_of(case)))]
                    command = [*(["--config", str(config)] if config else []), *case.arguments(), *own]
                    log = folder.path / f"{names[case.name]}.log"
                    now = [*(other.name for other in running.cases()), case.name]
                    folder.save(suite, results, selected=wanted, running=now)
                    with _interrupted_later():
                        running.add(_begin(case, number, command, log), limit_s(case, time_limit_s))
                    following.add(case.name, log)
                process, ended = running.next_end()
                following.remove(process.case.name)
                result = result_of(process.case, ended)
                _raise_if_interrupted(result)
                results[process.case.name] = result
                folder.save(suite, results, selected=wanted, running=[other.name for other in running.cases()])
                head = f"[{process.number}/{total}] {plain(process.case.name)}: " if several else "      "
                line = f"{head}{result.ended} ({seconds(result.seconds)}): {one_line(result.why)}"
                console.print(Text(line, style=COLOURS[result.passed]))
                if exit_first and not result.passed:
                    waiting.clear()
        except BaseException as error:
            running.end(_signal_of(error))
            with contextlib.suppress(StoreError):  # the first error counts
                folder.save(suite, results, selected=wanted)
            raise
    return [results[case.name] for case in suite.cases if case.name in results]


def _raise_if_interrupted(result: CaseResult) -> None:
    if result.exit_code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt


def _signal_of(error: BaseException) -> signal.Signals:
    """Returns the signal that ends the cases: the one that ended the suite."""
    by_keyboard = isinstance(error, KeyboardInterrupt) and not isinstance(error, Terminated)
    return signal.SIGINT if by_keyboard else signal.SIGTERM


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """Delays interruptions to the end of the context, so that no process starts without being in the list of those that run."""
    caught: list[int] = []
    usual = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    for number, handler in usual.items():
        if callable(handler):
            signal.signal(number, lambda signal_number, _: caught.append(signal_number))
    try:
        yield
    finally:
        for number, handler in usual.items():
            if callable(handler):
                signal.signal(number, handler)
    if caught:
        signal.raise_signal(caught[0])


def _begin(case: Case, number: int, command: Sequence[str], log_path: Path) -> _Process:
    """Starts the process of a case.

    Raises:
        StoreError: Its log could not be made.
    """
    try:
        log = below.open_new_text(log_path.parent, log_path)
    except OSError as error:
        raise StoreError(f"{log_path} could not be written: {error.strerror}") from error
    process = subprocess.Popen(
        # -P: a checkout in the working folder does not replace the installed modules.
        [sys.executable, "-P", "-m", "cli", *command],
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        process_group=0,
    )
    return _Process(case=case, number=number, process=process, log=log, began_s=time.monotonic())


def limit_s(case: Case, time_limit_s: float) -> float:
    """Returns the time limit of a case: its workloads, and time for all else; more on slow nodes."""
    slowness = case.options.get("slowness", 1)
    factor = slowness if isinstance(slowness, int | float) and slowness > 1 else 1
    return workload_s(case, time_limit_s) + case.runs * EXTRA_S * factor


def workload_s(case: Case, default_s: float) -> float:
    """Returns the sum of the durations of a case's workloads, from its time limit, its plan, or the default.

    A value that is not valid counts as missing here. The case's own command refuses it later, with the reason.
    """
    given: Value = case.options.get("time-limit")
    plan = case.options.get("plan")
    if given is None and plan is not None:
        try:
            document = json.loads(Path(str(plan)).read_text(encoding="utf-8"))
            given = document.get("plan", document)["time_limit_s"]
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            given = None
    with_units = seconds_of(given) if isinstance(given, str) else None
    try:
        seconds_given = float(given) if with_units is None else with_units
    except (TypeError, ValueError, OverflowError):
        return case.runs * default_s
    return case.runs * (seconds_given if 0 <= seconds_given <= MAX_RUN_S else default_s)
