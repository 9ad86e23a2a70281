"""Shows the progress of a run on standard error.

On a terminal, one line at the bottom is redrawn a few times a second. Elsewhere, as in a CI log, a plain line comes every few
seconds. A separate thread reads the new events of the history, so the run never waits for a terminal.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from harness.console.plain import message, name, plain
from harness.errors import LabrysError
from harness.fault_events import fault_event
from harness.op import NEMESIS, Op, OpType
from results.measure.op_outcomes import REFUSED, Codes, outcome
from results.words.formatting import in_term

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from rich.console import Console

    from harness.clock import Clock
    from harness.watch import Watch
    from results.store.store import Run

LIVE_INTERVAL_S = 0.25
PLAIN_INTERVAL_S = 5.0
LIVE_FILE_INTERVAL_S = 1.0
COLOURS = {OpType.OK: "green", OpType.FAIL: "yellow", OpType.INFO: "magenta"}


def announce_phase(console: Console, text: str) -> None:
    """Prints the beginning of a phase."""
    console.print(Text(f"· {plain(text)}", style="bold"))


class Progress:
    """A `harness.run.Observer` that prints. Use it as a context manager around the run.

    Args:
        console: The console for the output, on standard error.
        ops: The history's events; the list grows during the run.
        time_limit_s: The planned duration of the workload.
        codes: The meaning of error codes; refusals count apart.
        folder: The run's folder. During the run, its `live.json` gets phase and leader, for the live view. None: no file.

    Attributes:
        counts: The number of ended operations by outcome, so far.
    """

    def __init__(
        self,
        *,
        console: Console,
        ops: Sequence[Op],
        time_limit_s: float,
        codes: Codes,
        folder: Run | None = None,
    ) -> None:
        self._console = console
        self._ops = ops
        self._time_limit_s = time_limit_s
        self._seen = 0
        self._codes = codes
        self.counts: Counter[str] = Counter()
        self._faults: dict[int, str] = {}
        self._watch: Watch | None = None
        self._clock: Clock | None = None
        self._phase = ""
        self._over = threading.Event()
        self._folder = folder
        self._written = ""
        self._threads = [
            threading.Thread(target=target, name="progress", daemon=True) for target in (self._print, self._write_live)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def phase(self, text: str) -> None:
        """Prints the new phase."""
        self._phase = text
        self._watch = self._clock = None
        announce_phase(self._console, text)

    def workload_began(self, watch: Watch, clock: Clock) -> None:
        """Starts counting."""
        self._watch, self._clock = watch, clock

    def problem(self, text: str) -> None:
        """Prints a problem."""
        self._console.print(Text(f"! {message(text)}", style="yellow"))

    def line(self) -> Text:
        """Returns the line with the state of the workload."""
        self._count()
        clock, watch = self._clock, self._watch
        if clock is None or watch is None:
            return Text(self._phase, style="dim")
        text = Text(f"{min(clock.now_s(), self._time_limit_s):5.0f} of {self._time_limit_s:.0f} s")
        for type_, colour in COLOURS.items():
            text.append(f"   {self.counts[type_]} {type_}", style=colour)
        if self.counts[REFUSED]:
            text.append(f"   {self.counts[REFUSED]} {REFUSED}", style="dim")
        leader = watch.leader()
        if leader is not None:
            leading, term = leader
            text.append(f"   leader {plain(leading)}" + in_term(term))
        for fault in self._faults.values():
            text.append(f"   {name(fault)}", style="red")
        return text

    def _count(self) -> None:
        while self._seen < len(self._ops):
            op = self._ops[self._seen]
            self._seen += 1
            if op.process != NEMESIS:
                self.counts[outcome(op.type, op.error, self._codes)] += 1
            elif (event := fault_event(op.f, op.value)) is not None:
                if event.begins:
                    self._faults[event.fault] = event.kind
                else:
                    self._faults.pop(event.fault, None)

    def _print(self) -> None:
        if not self._console.is_terminal:
            while not self._over.wait(PLAIN_INTERVAL_S):
                if self._clock is not None:
                    self._console.print(self.line())
            return
        with Live(
            console=self._console, transient=True, get_renderable=self.line, refresh_per_second=1 / LIVE_INTERVAL_S
        ):
            self._over.wait()

    def _write_live(self) -> None:
        """Keeps `live.json` up to date until the run is over."""
        if self._folder is None:
            return
        with contextlib.suppress(
            LabrysError, OSError
        ):  # the run itself reports a full disk, and nothing depends on this file
            while not self._over.wait(LIVE_FILE_INTERVAL_S):
                leader, term = (self._watch.leader() if self._watch else None) or (None, None)
                text = json.dumps({"phase": self._phase, "leader": leader, "term": term})
                if text != self._written:
                    self._written = text
                    self._folder.write_text(self._folder.live_json, text)
        self._folder.live_json.unlink(missing_ok=True)
