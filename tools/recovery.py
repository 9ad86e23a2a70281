"""Prints how long systems are away after the loss of their leader, and draws it: `python -m tools.recovery STORE PICTURE`.

The runs come from `labrys suite suites/leader-loss.toml --store STORE`, once for each seed. A *gap* is the time between two
answers to changes, or between two answers to reads. A client that waits through a failover is answered after it. So here an
operation belongs to the moment of its answer; in `results.measure.availability` it belongs to that at which it was wanted.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from harness.units import NS_PER_S
from results.measure.op_outcomes import Codes, answered
from results.page.plots import FAINT, GRID, INK, PAPER, svg
from results.store.forms import Results
from results.store.store import Run, Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

BEFORE_S, AFTER_S, MOST_AFTER_S = 2.0, 16.0, 40.0
SHOWN_S = 0.3  # shorter gaps are those between operations
READS = frozenset({"read", "state", "replica", "next"})
CHANGES_COLOUR, READS_COLOUR = "#c2483d", "#e0a458"
MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One loss of a leader.

    Attributes:
        system: The system, with its version.
        kind: The kind of the fault.
        changes: The gaps of changes, an array of shape (gaps, 2): starts and ends in seconds since the start of the fault.
        reads: The same of reads.
        effective: Whether the proof says that the fault took effect.
    """

    system: str
    kind: str
    changes: np.ndarray
    reads: np.ndarray
    effective: bool

    @property
    def after_s(self) -> float:
        """The seconds after the start of the fault in which gaps were looked for."""
        return float(self.changes[-1, 1])


def loss(run: Run) -> Loss | None:
    """Reads a run with one fault; None if it has no results, ended too early, or has another number of faults."""
    if not run.has(run.results_json):
        return None
    results = msgspec.json.decode(run.read_bytes(run.results_json, MOST_BYTES), type=Results)
    test = json.loads(run.read_bytes(run.test_json, MOST_BYTES))
    if len(results.faults) != 1:
        return None
    fault = results.faults[0]
    if results.availability is None or results.availability.end_s < fault.start_s + AFTER_S:
        return None
    after_s = min(results.availability.end_s - fault.start_s, MOST_AFTER_S)
    table = pq.read_table(run.operations_parquet, columns=["f", "type", "error", "end_ns"])
    codes = Codes(answers=frozenset(test["answers"]), refusals=frozenset(test["refusals"]))
    times: dict[bool, list[float]] = {True: [], False: []}
    for op in table.to_pylist():
        if answered(op["type"], op["error"], codes):
            times[op["f"] in READS].append(op["end_ns"] / NS_PER_S - fault.start_s)
    return Loss(
        system=_system(test),
        kind=fault.kind,
        changes=_gaps(times[False], after_s),
        reads=_gaps(times[True], after_s),
        effective=fault.effective,
    )


def _system(test: Mapping[str, object]) -> str:
    options = test["options"]
    consensus = options.get("consensus") if isinstance(options, dict) else None
    return f"{test['system']} on {consensus}" if consensus else str(test["system"])


def _gaps(times_s: list[float], after_s: float) -> np.ndarray:
    inside = np.sort(np.array([each for each in times_s if -BEFORE_S <= each <= after_s]))
    edges = np.concatenate(([-BEFORE_S], inside, [after_s]))
    return np.stack((edges[:-1], edges[1:]), axis=1)


def longest_s(gaps: np.ndarray) -> float:
    """Returns the length of the longest gap in seconds."""
    return float((gaps[:, 1] - gaps[:, 0]).max())


def table(losses: Sequence[Loss]) -> str:
    """Returns the longest gaps as a Markdown table; of several runs, the median and the maximum."""
    rows = ["| system | fault | runs | no change answered | no read answered |", "|---|---|---|---|---|"]
    for (system, kind), several in sorted(_grouped(losses).items()):
        cells = [
            _words([longest_s(each.changes) for each in several]),
            _words([longest_s(each.reads) for each in several]),
        ]
        rows.append(f"| `{system}` | `{kind}` | {len(several)} | {cells[0]} | {cells[1]} |")
    return "\n".join(rows)


def _words(lengths_s: Sequence[float]) -> str:
    return f"{max(lengths_s):.1f} s" if len(lengths_s) == 1 else f"{median(lengths_s):.1f} to {max(lengths_s):.1f} s"


def _grouped(losses: Sequence[Loss]) -> Mapping[tuple[str, str], list[Loss]]:
    found: defaultdict[tuple[str, str], list[Loss]] = defaultdict(list)
    for each in losses:
        found[each.system, each.kind].append(each)
    return found


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
        for number, each in enumerate(several):
            axes.broken_barh([(-BEFORE_S, BEFORE_S + each.after_s)], (y + number, 0.86), facecolor=GRID, linewidth=0)
            for gaps, colour, top in ((each.changes, CHANGES_COLOUR, 0.0), (each.reads, READS_COLOUR, 0.43)):
                shown = [(start, end - start) for start, end in gaps.tolist() if end - start >= SHOWN_S]
                axes.broken_barh(shown, (y + number + top, 0.43), facecolor=colour, linewidth=0)
        places.append((y + most / 2, system))
        y += most + 0.9
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlim(-BEFORE_S, max(each.after_s for _, _, several in rows for each in several))
    axes.set_ylim(y, -0.5)
    axes.set_yticks([place for place, _ in places], [system for _, system in places], fontsize=8)
    axes.tick_params(length=0, labelcolor=INK, labelsize=8)
    axes.set_xlabel("seconds since the fault", fontsize=8, color=FAINT)
    axes.set_title(kind, loc="left", fontsize=9, color=INK)
    for spine in axes.spines.values():
        spine.set_visible(False)


def main(store: str, place: str) -> None:
    """Prints the table of all runs in a store, and writes the picture."""
    found = [each for run in Store(Path(store)).runs() if (each := loss(run)) is not None]
    for each in found:
        if not each.effective:
            print(f"left out: {each.system} with {each.kind}, whose fault was not proved", file=sys.stderr)
    proved = [each for each in found if each.effective]
    print(table(proved))
    Path(place).write_text(svg(picture(proved)))


if __name__ == "__main__":
    main(*sys.argv[1:])
