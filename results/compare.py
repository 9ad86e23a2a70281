"""Several runs side by side: what differs in their options, verdicts, latencies and recoveries."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING

from harness.verdict import Verdict
from results.spoken import UNSEEN, one_value, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.op import Value
    from results.store import Run

MAX_BYTES = 64 << 20


def comparison(runs: Sequence[Run]) -> Mapping[str, Value]:
    """Returns a table: its columns are runs, its rows are named lists of texts, each with whether its texts differ."""
    columns = [(_read(run.results_json), _read(run.test_json)) for run in runs]
    rows: list[dict[str, Value]] = []

    def add(name: str, texts: Sequence[str]) -> None:
        rows.append({"name": name, "texts": list(texts), "differs": len(set(texts)) > 1})

    add("verdict", [str(Verdict.from_json(results.get("valid")) or "none") for results, _ in columns])
    add("reason", [str(results.get("reason", UNSEEN)) for results, _ in columns])
    for name in _names(columns, 1, "versions"):
        add(f"version of {name}", [str(_part(test, "versions").get(name, UNSEEN)) for _, test in columns])
    for name in _names(columns, 1, "options"):
        add(f"--{name}", [one_value(_part(test, "options").get(name)) for _, test in columns])
    add("operations", [f"{_number(_part(results, 'counts').get('operations')):,.0f}" for results, _ in columns])
    for name in _names(columns, 0, "latency"):
        for quantile in ("p50_ms", "p99_ms", "max_ms"):
            texts = [_ms(_part(_part(results, "latency"), name).get(quantile)) for results, _ in columns]
            add(f"{name} {quantile.removesuffix('_ms')}", texts)
    add("faults seen to take effect", [_effective(results) for results, _ in columns])
    add("availability", [_share(_part(results, "availability")) for results, _ in columns])
    add("answered while faults were on", [_answered(results) for results, _ in columns])
    add("median time to sustained ok after healing", [_recovery(results) for results, _ in columns])
    for name in _names(columns, 0, "parts"):
        parts = [_part(_part(results, "parts"), name) for results, _ in columns]
        texts = [str(Verdict.from_json(part.get("valid")) or UNSEEN) for part in parts]
        add(f"part {name}", texts)
    return {"runs": list(runs), "rows": rows}


def _read(path: Path) -> Mapping[str, Value]:
    try:
        if path.stat().st_size > MAX_BYTES:
            return {}
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _part(document: Mapping[str, Value], name: str) -> Mapping[str, Value]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _names(columns: Sequence[tuple[Mapping[str, Value], Mapping[str, Value]]], side: int, name: str) -> list[str]:
    return list(dict.fromkeys(key for column in columns for key in _part(column[side], name)))


def _number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0.0


def _ms(value: Value) -> str:
    return f"{value:.1f} ms" if isinstance(value, int | float) else UNSEEN


def _faults(results: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    faults = results.get("faults")
    return [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []


def _effective(results: Mapping[str, Value]) -> str:
    faults = _faults(results)
    return f"{sum(fault.get('effective') is True for fault in faults)} of {len(faults)}"


def _answered(results: Mapping[str, Value]) -> str:
    windows = [_part(_part(fault, "availability"), "during") for fault in _faults(results)]
    asked = sum(_number(window.get("operations")) for window in windows)
    return percent(sum(_number(window.get("answered")) for window in windows), asked)


def _share(measured: Mapping[str, Value]) -> str:
    return percent(_number(measured.get("answered")), _number(measured.get("operations")))


def _recovery(results: Mapping[str, Value]) -> str:
    windows = [_part(_part(fault, "availability"), "after") for fault in _faults(results)]
    times = [window.get("sustained_ok_s") for window in windows]
    seen = [time for time in times if isinstance(time, int | float)]
    return seconds(median(seen)) if seen else UNSEEN
