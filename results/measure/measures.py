"""The numbers of a run for thresholds, from the document of `results.json`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.suites.thresholds import LATENCIES
from results.measure.op_outcomes import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Value

    Document = Mapping[str, Value]


def measure(document: Document, name: str, function: str | None = None) -> float | None:
    """Returns one measure of a run.

    Args:
        document: The document of `results.json`.
        name: A name of `harness.suites.thresholds.MEASURES`.
        function: The function that is measured; None: all functions together, and for a latency the slowest function.

    Returns:
        The number; None if the run did not measure it.
    """
    if name in LATENCIES:
        return _latency(document, name, function)
    if name in OUTCOMES:
        return _number(_counts(document, function).get(name))
    return _OTHERS[name](document, function)


def _latency(document: Document, name: str, function: str | None) -> float | None:
    table = _part(document, "latency")
    chosen = list(table) if function is None else [function]
    found = [value for each in chosen if (value := _number(_part(table, each).get(name))) is not None]
    return max(found, default=None)


def _counts(document: Document, function: str | None) -> Document:
    return _of(_part(document, "counts"), function)


def _operations(document: Document, function: str | None) -> float | None:
    counts = _counts(document, function)
    found = [_number(counts.get(each)) for each in OUTCOMES]
    return sum(number for number in found if number is not None) if None not in found else None


def _answered(document: Document, function: str | None) -> float | None:
    windows = _windows(document, function, "during")
    asked = sum(_number(window.get("operations")) or 0 for window in windows)
    return sum(_number(window.get("answered")) or 0 for window in windows) / asked if asked else None


def _recovery(document: Document, function: str | None) -> float | None:
    """Returns the longest recovery; None if the system never gave sustained answers again after some fault."""
    times = [_number(window.get("sustained_ok_s")) for window in _windows(document, function, "after") if window]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _share(document: Document, function: str | None) -> float | None:
    return _number(_of(_part(document, "availability"), function).get("share"))


def _gap(document: Document, function: str | None) -> float | None:
    return _number(_of(_part(document, "availability"), function).get("longest_gap_s"))


def _rate(document: Document, function: str | None) -> float | None:
    ok, workload_s = _number(_counts(document, function).get("ok")), _number(_part(document, "timings").get("workload"))
    return None if ok is None or not workload_s else ok / workload_s


def _messages(document: Document, function: str | None) -> float | None:
    """Returns the messages between nodes for each operation of any function."""
    between = _number(_part(_part(_part(document, "parts"), "protocol"), "details").get("between_nodes"))
    operations = _operations(document, None)
    return between / operations if function is None and between is not None and operations else None


def _stable(quantile: str) -> Callable[[Document, str | None], float | None]:
    """Returns a measure of the worst set of a run: a quantile of its stable latencies."""

    def measured(document: Document, function: str | None) -> float | None:  # noqa: ARG001 - of the whole set
        figures = [
            _part(figure, "stable-latencies")
            for name in _part(document, "parts")
            for figure in _part(_part(_part(_part(document, "parts"), name), "details"), "figures").values()
            if isinstance(figure, Mapping)
        ]
        return max((found for each in figures if (found := _number(each.get(quantile))) is not None), default=None)

    return measured


def _windows(document: Document, function: str | None, part: str) -> list[Document]:
    """Returns the windows during or after each fault."""
    faults = document.get("faults")
    measured = [_part(fault, "availability") for fault in faults or () if isinstance(fault, Mapping)]
    return [_part(_of(each, function), part) for each in measured]


def _of(measured: Document, function: str | None) -> Document:
    """Returns the part of a function in a document that has its own numbers for each function."""
    return measured if function is None else _part(_part(measured, "by_f"), function)


def _part(document: Document, name: str) -> Document:
    value = document.get(name)
    return value if isinstance(value, Mapping) else {}


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_OTHERS: Mapping[str, Callable[[Document, str | None], float | None]] = MappingProxyType(
    {
        "operations": _operations,
        "availability": _share,
        "longest_gap_s": _gap,
        "availability_during_faults": _answered,
        "recovery_s": _recovery,
        "ok_per_s": _rate,
        "messages_per_op": _messages,
        "stable_p50_ms": _stable("0.5"),
        "stable_max_ms": _stable("1"),
    }
)
