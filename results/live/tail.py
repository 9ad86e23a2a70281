"""The progress of a running test, from the new lines of its history.

Another process writes the file; this module only reads, without locks or waiting. It reads an incomplete line the next time. It
counts and skips a malformed line, because bad content must not end the view. A run writes further data, such as its leader, to
`live.json`, and a suite to its `suite.json`.
"""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from harness.console import below
from harness.event_lines import FORMAT
from harness.fault_events import fault_event
from harness.op import NEMESIS, OpType
from harness.units import NS_PER_MS, NS_PER_S
from results.measure.op_outcomes import OUTCOMES, Codes, outcome
from results.store.store import read_head
from results.store.suites import State, read_suite

if TYPE_CHECKING:
    from pathlib import Path

    from harness.op import Value
    from results.store.store import Run, Store

MAX_READ = 8 << 20
MAX_SECONDS = 900
MAX_OPEN = 100_000
RECENT = 400
MAX_TEXT = 200
MAX_REFUSALS = 100
_COLUMNS = {kind: place for place, kind in enumerate(OUTCOMES)}


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
    _open: dict[int, int] = field(default_factory=dict)
    _recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def read(self) -> None:
        """Reads what was appended since the last call, at most `MAX_READ` bytes."""
        try:
            with below.open_file(self.path.parent, self.path) as file:
                file.seek(self.at)
                data = file.read(MAX_READ)
        except OSError:
            return
        whole = data.rfind(b"\n") + 1
        self.at += whole
        for line in data[:whole].splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            if not isinstance(event, dict) or not self._add(event):
                self.strange += 1

    def _add(self, event: dict[str, Value]) -> bool:
        """Counts an event; returns False if it is none."""
        if event.get("format") == FORMAT:
            return True
        time_ns, kind, process = event.get("time"), event.get("type"), event.get("process")
        if not isinstance(time_ns, int) or time_ns < 0 or not isinstance(kind, str):
            return False
        self.last_ns = max(self.last_ns, time_ns)
        if process == NEMESIS:
            return self._add_fault(event)
        if not isinstance(process, int) or kind not in set(OpType):
            return False
        if kind != OpType.INVOKE:
            error = event.get("error")
            known = error if isinstance(error, str) else None
            self._add_completion(time_ns, outcome(kind, known, self.codes), process)
        elif len(self._open) < MAX_OPEN:
            scheduled = event.get("scheduled")
            self._open[process] = scheduled if isinstance(scheduled, int) else time_ns
        return True

    def _add_completion(self, time_ns: int, kind: str, process: int) -> None:
        self.counts[kind] += 1
        row = self.rates.setdefault(time_ns // NS_PER_S, [0] * len(_COLUMNS))
        row[_COLUMNS[kind]] += 1
        if len(self.rates) > MAX_SECONDS:
            del self.rates[min(self.rates)]
        wanted_ns = self._open.pop(process, None)
        if wanted_ns is not None and kind == OpType.OK:
            self._recent_ms.append((time_ns - wanted_ns) / NS_PER_MS)

    def _add_fault(self, event: dict[str, Value]) -> bool:
        f, value = event.get("f"), event.get("value")
        found = fault_event(f, value)
        if found is None:
            return isinstance(f, str) and isinstance(value, dict)
        if found.begins:
            self.faults[found.fault] = (found.kind[:80], [target[:80] for target in found.targets[:20]])
        elif self.faults.pop(found.fault, None) is not None:
            self.past += 1
        return True

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
        "term": term if isinstance(term, int) else None,
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
