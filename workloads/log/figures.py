"""Further figures of a log, and the plot of its entries over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import OK
from checker.judging.marks import Marks, plot

if TYPE_CHECKING:
    from checker.formats.columns import Int64s
    from checker.judging.marks import Tone
    from harness.op import Value
    from workloads.log.arrays import Bools
    from workloads.log.facts import Facts
    from workloads.log.findings import Findings

QUANTILES: Final = (0, 0.5, 0.95, 0.99, 1)
WORST_STALE: Final = 8
_MS: Final = 1_000_000


def figures_of(facts: Facts, findings: Findings) -> dict[str, Value]:
    """Returns the times for which entries were stale, in milliseconds: quantiles and the worst ones; empty without any."""
    if not len(findings.stale):
        return {}
    for_ms = (facts.log.history.start_ns[facts.places.missed[findings.stale]] - findings.known_ns[findings.stale]) / _MS
    ordered = np.sort(for_ms)
    worst = np.argsort(-for_ms, kind="stable")[:WORST_STALE]
    return {
        "stale-latencies": {
            f"{quantile:g}": round(float(ordered[min(len(ordered) - 1, int(len(ordered) * quantile))]), 3)
            for quantile in QUANTILES
        },
        "worst-stale": [
            {
                "offset": int(facts.claims.distinct[findings.stale[index]]),
                "stale-latency": round(float(for_ms[index]), 3),
            }
            for index in worst.tolist()
        ],
    }


def picture(facts: Facts, findings: Findings) -> dict[str, Value] | None:
    """Returns the plot's data: each entry at the time when it became known, and stale ones while reads missed them.

    Of many entries the plot shows some, evenly spaced by their offsets.

    Returns:
        The data; None if no offset is known.
    """
    size = len(facts.claims.distinct)
    if not size:
        return None
    answered = np.zeros(size, np.bool_)
    at = facts.appends.place
    kind = facts.log.history.type[facts.log.append]
    answered[at[(at >= 0) & (kind == OK)]] = True
    wrong = np.zeros(size, np.bool_)
    for places in (findings.lost, findings.stale, findings.conflict, findings.changed):
        wrong[places] = True
    unexpected = facts.values.unexpected[findings.value] & ~wrong
    read = facts.places.seen >= 0
    plain = ~wrong & ~unexpected

    def marks(name: str, tone: Tone, chosen: Bools) -> Marks:
        places = np.flatnonzero(chosen)
        return Marks(name=name, tone=tone, time_ns=findings.known_ns[places], height=facts.claims.distinct[places])

    def these(places: Int64s) -> Bools:
        chosen = np.zeros(size, np.bool_)
        chosen[places] = True
        return chosen

    return plot(
        "Entries over time",
        "offset",
        [
            marks("there", "good", plain & read & answered),
            marks("recovered", "odd", plain & read & ~answered),
            marks("never read", "odd", plain & ~read),
            Marks(
                name="stale, from and until",
                tone="bad",
                time_ns=findings.known_ns[findings.stale],
                height=facts.claims.distinct[findings.stale],
                until_ns=facts.log.history.start_ns[facts.places.missed[findings.stale]],
            ),
            marks("lost", "bad", these(findings.lost)),
            marks("conflict", "bad", these(findings.conflict)),
            marks("changed", "bad", these(findings.changed)),
            marks("unexpected", "bad", unexpected),
        ],
    )
