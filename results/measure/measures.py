"""The numbers of a run for thresholds, from the document of `results.json`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.suites.thresholds import LATENCIES
from harness.units import NS_PER_S
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


def why_missing(document: Document, name: str, function: str | None = None) -> str:
    """Returns why a run did not measure something, as a clause; empty if the document does not say it.

    Args:
        document: The document of `results.json`.
        name: A name of `harness.suites.thresholds.MEASURES` that `measure` has no number for.
        function: The function that is measured; None: all functions.
    """
    asked = "operation" if function is None else function
    if name in LATENCIES:
        return f"no {asked} ended ok"
    if name in {"recovery_s", "availability_during_faults"}:
        return _without_windows(document, name, function, asked)
    if name in {"stable_p50_ms", "stable_max_ms"}:
        return "the workload is no set, or no element of it was stable"
    if name == "messages_per_op":
        return (
            "only programs with pipes have messages that Labrys carries, and it is a number of all functions together"
        )
    return ""


def _without_windows(document: Document, name: str, function: str | None, asked: str) -> str:
    faults = [fault for fault in document.get("faults") or () if isinstance(fault, Mapping)]
    if not faults:
        return "there was no fault"
    if name == "availability_during_faults":
        return f"no {asked} was wanted while a fault was on"
    workload_s = _number(_part(document, "timings").get("workload"))
    for fault in faults:
        window = _part(_of(_part(fault, "availability"), function), "after")
        kind = _part(fault, "planned").get("kind")
        if window and _number(window.get("sustained_ok_s")) is None:
            until = f"{_number(window.get('end_s')):.1f} s" if _number(window.get("end_s")) is not None else "its end"
            if not _number(window.get("operations")):
                return f"no {asked} was wanted between the end of the {kind} and {until}"
            return (
                f"after the {kind}, 95 % of the operations were at no time answered for 2 s, until {until}; "
                "the next fault or the end of the workload may have come too early"
            )
    ended = "" if workload_s is None else f", which ended at {workload_s:.1f} s"
    last = faults[-1]
    kind = _part(last, "planned").get("kind")
    at_ns = _number(last.get("end_ns"))
    healed = "" if at_ns is None else f" at {at_ns / NS_PER_S:.1f} s"
    return f"the {kind} was healed{healed}, and no operation of the workload{ended}, came after it"


def _latency(document: Document, name: str, function: str | None) -> float | None:
    table = _part(document, "latency")
    chosen = list(table) if function is None else [function]
    values = [value for f in chosen if (value := _number(_part(table, f).get(name))) is not None]
    return max(values, default=None)


def _counts(document: Document, function: str | None) -> Document:
    return _of(_part(document, "counts"), function)


def _operations(document: Document, function: str | None) -> float | None:
    counts = _counts(document, function)
    numbers = [_number(counts.get(outcome)) for outcome in OUTCOMES]
    return sum(number for number in numbers if number is not None) if None not in numbers else None


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
        return max((value for figure in figures if (value := _number(figure.get(quantile))) is not None), default=None)

    return measured


def _windows(document: Document, function: str | None, part: str) -> list[Document]:
    """Returns the windows during or after each fault."""
    faults = document.get("faults")
    measured = [_part(fault, "availability") for fault in faults or () if isinstance(fault, Mapping)]
    return [_part(_of(row, function), part) for row in measured]


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
