"""The progress of a running test, from the new lines of its history.

Another process writes the file; this module only reads, without locks or waiting. It reads an incomplete line the next time.
Bad content must not end the view. So it counts and passes over a line that `harness.event_lines` refuses, as all readers do.
A run writes further data, such as its leader, to `live.json`, and a suite to its `suite.json`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.console import below
from harness.event_lines import FORMAT, MAX_LINE_BYTES, decode_event, decode_object
from harness.fault_events import fault_event
from harness.op import NEMESIS, OpType
from harness.units import NS_PER_MS, NS_PER_S
from results.measure.op_outcomes import OUTCOMES, Codes, outcome
from results.store.store import read_head
from results.store.suites import State, read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from harness.op import Op, Process, Value
    from results.store.store import Run, Store

MAX_SECONDS = 900
MAX_OPEN = 100_000
RECENT = 400
MAX_TEXT = 200
MAX_REFUSALS = 100
_COLUMNS = {kind: index for index, kind in enumerate(OUTCOMES)}


@dataclass(slots=True)
class Tail:
    """Follows one history file. Used from one thread at a time.

    Attributes:
        path: The file.
        codes: The meaning of error codes; refusals are counted apart.
        at: The number of bytes read so far.
        counts: The number of ended operations, by outcome.
        rates: Second to the number of operations that ended in it, by outcome; the last `MAX_SECONDS`.
        faults: The active faults, by their id: kind and targets.
        past: The number of healed faults.
        strange: The number of lines that are not events.
        last_ns: The latest time in the history.
    """

    path: Path
    codes: Codes = field(default_factory=Codes)
    at: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COLUMNS, 0))
    rates: dict[int, list[int]] = field(default_factory=dict)
    faults: dict[int, tuple[str, list[str]]] = field(default_factory=dict)
    past: int = 0
    strange: int = 0
    last_ns: int = 0
    _passing: bool = False  # the bytes up to the next newline belong to a line that is too long
    _open: dict[Process, int] = field(default_factory=dict)
    _recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def read(self) -> None:
        """Reads what was appended since the last call, at most `MAX_LINE_BYTES`."""
        try:
            with below.open_file(self.path.parent, self.path) as file:
                file.seek(self.at)
                data = file.read(MAX_LINE_BYTES)
        except OSError:
            return
        *lines, rest = data.split(b"\n")
        if not lines and len(data) == MAX_LINE_BYTES:
            self.strange += not self._passing
            self._passing = True
            self.at += len(data)
            return
        self.at += len(data) - len(rest)
        if lines and self._passing:
            self._passing = False
            del lines[0]
        for line in lines:
            try:
                self._add(decode_object(line))
            except ValueError:
                self.strange += 1

    def _add(self, fields: dict[str, Any]) -> None:
        """Counts an event; the header of a history counts as none.

        Raises:
            ValueError: It is neither.
        """
        if fields.get("format") == FORMAT:
            return
        op = decode_event(fields, fields.get("index", -1))  # a line that was passed over leaves a gap
        self.last_ns = max(self.last_ns, op.time_ns)
        if op.process == NEMESIS:
            self._add_fault(op)
        elif op.type is not OpType.INVOKE:
            self._add_completion(op.time_ns, outcome(op.type, op.error, self.codes), op.process)
        elif len(self._open) < MAX_OPEN:
            self._open[op.process] = op.time_ns if op.scheduled_ns is None else op.scheduled_ns

    def _add_completion(self, time_ns: int, kind: str, process: Process) -> None:
        self.counts[kind] += 1
        row = self.rates.setdefault(time_ns // NS_PER_S, [0] * len(_COLUMNS))
        row[_COLUMNS[kind]] += 1
        if len(self.rates) > MAX_SECONDS:
            del self.rates[min(self.rates)]
        wanted_ns = self._open.pop(process, None)
        if wanted_ns is not None and kind == OpType.OK:
            self._recent_ms.append((time_ns - wanted_ns) / NS_PER_MS)

    def _add_fault(self, op: Op) -> None:
        event = fault_event(op.f, op.value)
        if event is None:
            return
        if event.begins:
            self.faults[event.fault] = (event.kind[:80], [target[:80] for target in event.targets[:20]])
        elif self.faults.pop(event.fault, None) is not None:
            self.past += 1

    def state(self) -> dict[str, Value]:
        """Returns the data of the live page, as JSON values."""
        recent = np.sort(np.asarray(self._recent_ms)) if self._recent_ms else None
        return {
            "seconds": self.last_ns / NS_PER_S,
            "counts": dict(self.counts),
            "open": len(self._open),
            "rates": [[second, *row] for second, row in sorted(self.rates.items())],
            "faults": [{"kind": kind, "targets": targets} for kind, targets in self.faults.values()],
            "past": self.past,
            "strange": self.strange,
            "p50_ms": None if recent is None else round(float(recent[recent.size // 2]), 2),
            "p99_ms": None if recent is None else round(float(recent[int(recent.size * 0.99)]), 2),
        }


def run_state(run: Run) -> dict[str, Value]:
    """Returns the fields of the run's `live.json`: its phase, its leader and the leader's term; None for missing ones."""
    document = read_head(run.live_json, ("phase", "leader", "term"))
    term = document.get("term")
    return {
        **{
            key: document[key][:MAX_TEXT] if isinstance(document.get(key), str) else None for key in ("phase", "leader")
        },
        "term": term if type(term) is int else None,
    }


def refusals_of(run: Run) -> Codes:
    """Returns the codes of refusals that a run's `test.json` names; none if it is missing or damaged."""
    codes = read_head(run.test_json, ("refusals",)).get("refusals")
    if not isinstance(codes, list):
        return Codes()
    return Codes(refusals=frozenset(code for code in codes[:MAX_REFUSALS] if isinstance(code, str)))


def suite_state(store: Store) -> Value:
    """Returns the state of the running suite: its name, and each case with its state; None if there is none."""
    folder = store.current_suite()
    suite = None if folder is None else read_suite(folder, running=True)
    if suite is None or suite.problem:
        return None
    return {
        "name": suite.name,
        "done": suite.count(State.PASSED, State.FAILED),
        "total": suite.selected,
        "cases": [{"name": case.name, "state": str(case.state)} for case in suite.cases],
    }
