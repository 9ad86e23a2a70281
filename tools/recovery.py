"""Prints how long systems are away after faults, and draws it: `python -m tools.recovery STORE PICTURE [OPTION...]`.

The runs come from a suite, e.g. `labrys suite suites/leader-loss.toml --store STORE`. Each fault is a measurement; faults with
the same times are one. With names of options of the system, e.g. `route_interval_s`, runs with other values have other rows.
The name `case` stands for the case of the suite.

A *gap* is the time between two answers to changes, or between two answers to reads. A client that waits through a failover is
answered after it. So for a gap, an operation belongs to the moment of its answer. Changes are *sustained* from the first
answered change on that begins two seconds in which at least 95 % of the changes are answered. There, an operation belongs to
the moment at which it was wanted; see `results.measure.availability`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from math import ceil, inf, isfinite
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.units import NS_PER_S
from results.measure.op_outcomes import Codes, answered
from results.page.plots import FAINT, GRID, INK, PAPER, svg
from results.record.forms import MeasuredFault, Results
from results.store.store import Run, Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

BEFORE_S, AFTER_S, REST_S = 2.0, 16.0, 30.0
SHOWN_S = 0.3  # shorter gaps are those between operations
READS = frozenset({"read", "state", "replica", "next"})
CHANGES_COLOUR, READS_COLOUR = "#c2483d", "#e0a458"
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One fault, or several with the same times.

    Attributes:
        system: The system, with the options that tell its runs apart.
        kind: The kind of the fault, with its role; of several faults, joined by ` and `.
        changes: The gaps of changes, an array of shape (gaps, 2): starts and ends in seconds since the start of the fault.
        reads: The same of reads.
        sustained_s: The seconds from the start of the fault until changes were sustained; None: not before the next fault, nor
            before the end of the run.
        effective: Whether the proofs say that the faults took effect.
    """

    system: str
    kind: str
    changes: np.ndarray
    reads: np.ndarray
    sustained_s: float | None
    effective: bool

    @property
    def after_s(self) -> float:
        """The seconds after the start of the fault in which gaps were looked for."""
        return float(self.changes[-1, 1])


def losses(run: Run, options: Sequence[str] = ()) -> list[Loss]:
    """Reads the faults of a run; none if it has no results, and none of a fault that the run ends too soon after.

    Args:
        run: The run.
        options: The options of the system whose values tell runs apart.
    """
    if not run.has(run.results_json):
        return []
    results = msgspec.json.decode(run.read_bytes(run.results_json, MOST_BYTES), type=Results)
    test = json.loads(run.read_bytes(run.test_json, MOST_BYTES))
    if results.availability is None:
        return []
    table = pq.read_table(run.operations_parquet, columns=["f", "type", "error", "end_ns"])
    codes = Codes(answers=frozenset(test["answers"]), refusals=frozenset(test["refusals"]))
    times: dict[bool, list[float]] = {True: [], False: []}
    for op in table.to_pylist():
        if answered(op["type"], op["error"], codes):
            times[op["f"] in READS].append(op["end_ns"] / NS_PER_S)
    run_losses = []
    turns = together(results.faults)
    for several, later in zip(turns, [*turns[1:], None], strict=True):
        start_s = min(fault.start_ns for fault in several) / NS_PER_S
        lasts_s = max(fault.end_ns for fault in several) / NS_PER_S - start_s
        end_s = results.availability.end_s if later is None else min(fault.start_ns for fault in later) / NS_PER_S
        after_s = min(end_s - start_s, lasts_s + REST_S)
        if after_s < AFTER_S:
            continue
        run_losses.append(
            Loss(
                system=system_of(test, options),
                kind=" and ".join(fault.planned.called for fault in several),
                changes=_gaps([time_s - start_s for time_s in times[False]], after_s),
                reads=_gaps([time_s - start_s for time_s in times[True]], after_s),
                sustained_s=sustained_s(several),
                effective=all(fault.is_proven for fault in several),
            )
        )
    return run_losses


def together(faults: Sequence[MeasuredFault]) -> list[list[MeasuredFault]]:
    """Returns the faults in the order of their planned start, those with the same planned times together."""
    by_time: defaultdict[tuple[float, float], list[MeasuredFault]] = defaultdict(list)
    for fault in faults:
        by_time[fault.planned.start_s, fault.planned.end_s].append(fault)
    return [by_time[times] for times in sorted(by_time)]


def sustained_s(faults: Sequence[MeasuredFault]) -> float | None:
    """Returns the seconds from the start of the faults until changes were sustained; None if they were not."""
    sustained = [_sustained_s(fault) for fault in faults]
    return max((value for value in sustained if value is not None), default=None) if None not in sustained else None


def _sustained_s(fault: MeasuredFault) -> float | None:
    around = fault.availability
    if around is None:
        return None
    sustained: list[float | None] = []
    for windows in (windows for f, windows in around.by_f.items() if f not in READS):
        if windows.during.sustained_ok_s is not None:
            sustained.append(windows.during.sustained_ok_s)
        else:
            after_s = windows.after.sustained_ok_s if windows.after else None
            sustained.append(None if after_s is None else (fault.end_ns - fault.start_ns) / NS_PER_S + after_s)
    return max((value for value in sustained if value is not None), default=None) if None not in sustained else None


def system_of(test: Mapping[str, object], names: Sequence[str] = ()) -> str:
    """Returns the system of a run with its library of consensus, if it has a choice, and with the values of some options."""
    suite, options = test.get("suite"), test["options"]
    case = suite["case"].partition("[")[0] if isinstance(suite, dict) else "no suite"
    known = {**options, "case": case} if isinstance(options, dict) else {"case": case}
    system = f"{test['system']} on {known['consensus']}" if known.get("consensus") else str(test["system"])
    return ", ".join([system, *(f"{name.replace('_', '-')} {known.get(name)}" for name in names)])


def _gaps(times_s: list[float], after_s: float) -> np.ndarray:
    inside = np.sort(np.array([time_s for time_s in times_s if -BEFORE_S <= time_s <= after_s]))
    edges = np.concatenate(([-BEFORE_S], inside, [after_s]))
    return np.stack((edges[:-1], edges[1:]), axis=1)


def longest_s(gaps: np.ndarray) -> float:
    """Returns the length of the longest gap in seconds."""
    return float((gaps[:, 1] - gaps[:, 0]).max())


def table(losses_of: Sequence[Loss]) -> str:
    """Returns the longest gaps, and the times until changes were sustained, as a Markdown table.

    A cell has the median, the 90th percentile (the value that 90 % do not exceed) and the maximum of several faults.
    """
    rows = [
        "| system | fault | faults | no change answered | changes sustained after | no read answered |",
        "|---|---|---|---|---|---|",
    ]
    for (system, kind), several in sorted(_grouped(losses_of).items()):
        cells = [
            _words([longest_s(loss.changes) for loss in several]),
            _words([inf if loss.sustained_s is None else loss.sustained_s for loss in several]),
            _words([longest_s(loss.reads) for loss in several]),
        ]
        rows.append(f"| `{system}` | `{kind}` | {len(several)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _words(times_s: Sequence[float]) -> str:
    ordered = sorted(times_s)
    shown = [median_low(ordered), ordered[ceil(0.9 * len(ordered)) - 1], ordered[-1]]
    words = [f"{time_s:.1f} s" if isfinite(time_s) else "never" for time_s in shown]
    return words[0] if len(ordered) == 1 else " / ".join(words)


def _grouped(losses: Sequence[Loss]) -> Mapping[tuple[str, str], list[Loss]]:
    grouped: defaultdict[tuple[str, str], list[Loss]] = defaultdict(list)
    for loss in losses:
        grouped[loss.system, loss.kind].append(loss)
    return grouped


def picture(losses: Sequence[Loss]) -> Figure:
    """Draws a column for each kind of fault, and a row for each run, with its gaps."""
    grouped = _grouped(losses)
    kinds = sorted({kind for _, kind in grouped})
    systems = sorted({system for system, _ in grouped})
    most = {system: max(len(grouped.get((system, kind), ())) for kind in kinds) for system in systems}
    figure = Figure(figsize=(10.5, 0.5 + sum(0.16 * most[system] + 0.14 for system in systems)), facecolor=PAPER)
    figure.set_gid("recovery")
    columns = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind in zip(columns, kinds, strict=True):
        _column(axes, kind, [(system, most[system], grouped.get((system, kind), [])) for system in systems])
    patches = [
        Patch(color=CHANGES_COLOUR, label="no change answered"),
        Patch(color=READS_COLOUR, label="no read answered"),
    ]
    figure.legend(handles=patches, loc="lower right", ncols=2, fontsize=8, frameon=False, labelcolor=INK)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    return figure


def _column(axes: Axes, kind: str, rows: Sequence[tuple[str, int, Sequence[Loss]]]) -> None:
    y = 0.0
    places = []
    for system, most, several in rows:
        for number, loss in enumerate(several):
            axes.broken_barh([(-BEFORE_S, BEFORE_S + loss.after_s)], (y + number, 0.86), facecolor=GRID, linewidth=0)
            for gaps, colour, top in ((loss.changes, CHANGES_COLOUR, 0.0), (loss.reads, READS_COLOUR, 0.43)):
                shown = [(start, end - start) for start, end in gaps.tolist() if end - start >= SHOWN_S]
                axes.broken_barh(shown, (y + number + top, 0.43), facecolor=colour, linewidth=0)
        places.append((y + most / 2, system))
        y += most + 0.9
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlim(-BEFORE_S, max(loss.after_s for _, _, several in rows for loss in several))
    axes.set_ylim(y, -0.5)
    axes.set_yticks([position for position, _ in places], [system for _, system in places], fontsize=8)
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    axes.set_xlabel("seconds since the fault", fontsize=8, color=FAINT)
    axes.set_title(kind, loc="left", fontsize=9, color=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main(store: str, target: str, *options: str) -> None:
    """Prints the table of all runs in a store, and writes the picture."""
    all_losses = [loss for run in Store(Path(store)).runs() for loss in losses(run, options)]
    for loss in all_losses:
        if not loss.effective:
            print(f"left out: {loss.system} with {loss.kind}, whose fault was not proved", file=sys.stderr)
    proved = [loss for loss in all_losses if loss.effective]
    print(table(proved))
    Path(target).write_text(svg(picture(proved)))


if __name__ == "__main__":
    main(*sys.argv[1:])
