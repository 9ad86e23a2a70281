"""The numbers of a run for thresholds, from the document of `results.json`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.thresholds import LATENCIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.op import Value

COUNTS = frozenset({"operations", "ok", "fail", "info"})
_RATE = (("counts", "ok"), ("timings", "workload"))


def measure(document: Mapping[str, Value], name: str, function: str | None = None) -> float | None:
    """Returns one measure of a run.

    Args:
        document: The document of `results.json`.
        name: A name of `harness.thresholds.MEASURES`.
        function: The function whose latency is wanted; None: the slowest.

    Returns:
        The number; None if the run did not measure it.
    """
    if name in LATENCIES:
        return _latency(document, name, function)
    if name in COUNTS:
        return _number(_part(document, "counts").get(name))
    return _OTHERS[name](document)


def _latency(document: Mapping[str, Value], name: str, function: str | None) -> float | None:
    table = _part(document, "latency")
    chosen = list(table) if function is None else [function]
    found = [value for each in chosen if (value := _number(_part(table, each).get(name))) is not None]
    return max(found, default=None)


def _answered(document: Mapping[str, Value]) -> float | None:
    windows = [_part(_part(fault, "availability"), "during") for fault in _faults(document)]
    asked = sum(_number(window.get("operations")) or 0 for window in windows)
    return sum(_number(window.get("answered")) or 0 for window in windows) / asked if asked else None


def _recovery(document: Mapping[str, Value]) -> float | None:
    """Returns the longest recovery; None if the system never gave sustained answers again after some fault."""
    windows = [after for fault in _faults(document) if (after := _part(_part(fault, "availability"), "after"))]
    times = [_number(window.get("sustained_ok_s")) for window in windows]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _share(document: Mapping[str, Value]) -> float | None:
    return _number(_part(document, "availability").get("share"))


def _gap(document: Mapping[str, Value]) -> float | None:
    return _number(_part(document, "availability").get("longest_gap_s"))


def _rate(document: Mapping[str, Value]) -> float | None:
    ok, workload_s = (_number(_part(document, part).get(name)) for part, name in _RATE)
    return None if ok is None or not workload_s else ok / workload_s


def _faults(document: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    faults = document.get("faults")
    return [fault for fault in faults if isinstance(fault, Mapping)] if isinstance(faults, list) else []


def _part(document: Mapping[str, Value], name: str) -> Mapping[str, Value]:
    value = document.get(name)
    return value if isinstance(value, Mapping) else {}


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


_OTHERS: Mapping[str, Callable[[Mapping[str, Value]], float | None]] = MappingProxyType(
    {
        "availability": _share,
        "longest_gap_s": _gap,
        "availability_during_faults": _answered,
        "recovery_s": _recovery,
        "ok_per_s": _rate,
    }
)
