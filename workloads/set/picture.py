"""The plot of a set's elements over time. The height of an element is its position in the order of adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from checker.judging.marks import Marks, plot
from workloads.set.facts import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.formats.columns import Columns, Int64s
    from checker.judging.marks import Tone
    from harness.op import Value
    from workloads.set.facts import Bools, Facts


def picture(history: Columns, facts: Facts, classes: Mapping[str, Bools]) -> dict[str, Value]:
    """Returns the plot's data: each element at the time when it became known, and stale ones while reads missed them.

    An unconfirmed element is at the start of its add. An unexpected element is at its first read, at the height of the elements
    that were added at that time.
    """
    order = _by_add(history, facts)
    height = np.zeros(len(facts.add), np.int64)
    height[order] = np.arange(len(order))
    reads_ns = history.start_ns[facts.reads]

    def known(kind: str, name: str, tone: Tone) -> Marks:
        numbers = order[classes[kind][order]]
        times_ns = history.end_ns[facts.known_row[numbers]]
        return Marks(name=name, tone=tone, time_ns=times_ns, height=height[numbers])

    unconfirmed = order[classes["unconfirmed"][order]]
    stale = order[classes["stale"][order]]
    unexpected = np.flatnonzero(classes["unexpected"])
    read = np.sort(facts.reads[facts.first_present[unexpected]])
    return plot(
        "Elements over time",
        "element, by the order of adds",
        [
            known("ok", "there", "good"),
            known("recovered", "recovered", "odd"),
            Marks(
                name="unconfirmed", tone="quiet", time_ns=history.start_ns[facts.add[unconfirmed]],
                height=height[unconfirmed],
            ),
            known("never-read", "never read", "odd"),
            Marks(
                name="stale, from and until", tone="bad", time_ns=reads_ns[facts.first_missed[stale]],
                height=height[stale], until_ns=reads_ns[facts.last_absent[stale]],
            ),
            known("lost", "lost", "bad"),
            Marks(
                name="unexpected", tone="bad", time_ns=history.end_ns[read],
                height=np.searchsorted(facts.add_start[order], history.end[read]),
            ),
        ],
    )  # fmt: skip


def _by_add(history: Columns, facts: Facts) -> Int64s:
    """Returns the elements with an add that may have happened, in the order of their adds' starts."""
    tried = np.flatnonzero(facts.add != NONE)
    of_row = np.full(len(history), NONE)
    of_row[facts.add[tried]] = tried
    order: Int64s = of_row[of_row != NONE]
    began = facts.add_start[order]
    return order if (np.diff(began) > 0).all() else order[np.argsort(began)]
