"""A comparison of runs: their verdicts, options, latencies and recoveries side by side, the differences apart."""

from __future__ import annotations

import json
from itertools import islice
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.console.plain import counted, name
from harness.errors import InputError
from harness.verdict import Verdict
from results.measure.op_outcomes import OUTCOMES
from results.store.store import summarize
from results.words.formatting import DASH, one_value, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from harness.op import Value
    from results.store.store import Run

QUANTILES = ("p50_ms", "p99_ms", "max_ms")
MAX_BYTES = 4 << 20
MAX_NAMES = 100
MAX_CHARACTERS = 600
# Options of `test.json` whose flag has another name.
_TYPED = MappingProxyType(
    {
        "cluster_kind": "cluster",
        "load_kind": "load",
        "output": "format",
        "plan_file": "plan",
        "store_dir": "store",
        "system_name": "system",
        "test_name": "name",
        "workload_name": "workload",
    }
)


def comparison(runs: Sequence[Run]) -> Mapping[str, Value]:
    """Returns a table: a column for each run, and named rows of texts, each with whether its texts differ.

    Only the texts of a run stay in memory while the next run is read. A file that is too large or unreadable is named in a row
    of its own.
    """
    columns = [_column(run) for run in runs]
    names = sorted(dict.fromkeys(entry for column in columns for entry in column), key=lambda entry: entry[0])
    rows: list[Value] = []
    for entry in names:
        texts = [column.get(entry, DASH) for column in columns]
        shown = [name(text, MAX_CHARACTERS) for text in texts]
        rows.append({"name": name(entry[1]), "texts": shown, "differs": len(set(texts)) > 1})
    return {"runs": list(runs), "rows": rows}


def _column(run: Run) -> dict[tuple[int, str], str]:
    """Returns the texts of one run, by the number of a group of rows and the row's name."""
    problems: list[str] = []
    results, test = _read(run, run.results_json, problems), _read(run, run.test_json, problems)
    column: dict[tuple[int, str], str] = {}
    group = 0

    def add(texts: Mapping[str, str]) -> None:
        nonlocal group
        group += 1
        column.update({(group, row): text for row, text in texts.items()})

    def listed(document: Mapping[str, Value], member: str) -> list[tuple[str, Value]]:
        members = _part(document, member)
        if len(members) > MAX_NAMES:
            problems.append(f"of {len(members)} {member} the first {MAX_NAMES} are compared")
        return list(islice(members.items(), MAX_NAMES))

    summary = summarize(run)
    add({"verdict": "none" if summary.shown is None else summary.shown.words})
    add({"crossed thresholds": "; ".join(summary.crossed)} if summary.crossed else {})
    add({"reason": str(results.get("reason", DASH))})
    parts = [(part, _part(_part(results, "parts"), part)) for part, _ in listed(results, "parts")]
    add({f"part {part}": str(Verdict.from_json(document.get("valid")) or DASH) for part, document in parts})
    add({f"version of {component}": str(version) for component, version in listed(test, "versions")})
    add({flag(option): one_value(value) for option, value in listed(test, "options")})
    add({"operations": f"{_number(_part(results, 'counts').get('operations')):,.0f}"})
    add({f"operations that ended {outcome}": text for outcome, text in _outcomes(results).items()})
    latency = [(f, _part(_part(results, "latency"), f)) for f, _ in listed(results, "latency")]
    add({f"{f} {q.removesuffix('_ms')}": _ms(quantiles.get(q)) for f, quantiles in latency for q in QUANTILES})
    add({"faults with a proven effect": _effective(results)})
    measured = _part(results, "availability")
    add({"availability": _share(measured), "longest gap": _gap(measured)})
    by_f = [(f, _part(_part(measured, "by_f"), f)) for f, _ in listed(measured, "by_f")]
    add(
        {f"availability of {f}": _share(own) for f, own in by_f} | {f"longest gap of {f}": _gap(own) for f, own in by_f}
    )
    add({"answered while faults were on": _answered(results)})
    add({"median time to sustained ok after healing": _recovery(results)})
    add({"not compared": "; ".join(problems)} if problems else {})
    return column


def flag(option: str) -> str:
    """Returns an option of `test.json` as a flag, e.g. `--read-mode`."""
    return f"--{_TYPED.get(option, option).replace('_', '-')}"


def _read(run: Run, path: Path, problems: list[str]) -> Mapping[str, Value]:
    """Returns the object in a JSON file of a run; if there is none, an empty mapping, and adds a problem."""
    try:
        value = json.loads(run.read_bytes(path, MAX_BYTES)) if run.has(path) else {}
    except InputError as error:
        problems.append(str(error))
        return {}
    except (ValueError, RecursionError) as error:
        problems.append(f"{path.name} is not JSON: {error}")
        return {}
    return value if isinstance(value, dict) else {}


def _part(document: Mapping[str, Value], name: str) -> Mapping[str, Value]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0.0


def _ms(value: Value) -> str:
    return f"{value:.1f} ms" if isinstance(value, int | float) else DASH


def _faults(results: Mapping[str, Value]) -> list[Mapping[str, Value]]:
    faults = results.get("faults")
    return [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []


def _effective(results: Mapping[str, Value]) -> str:
    faults = _faults(results)
    return (
        f"{sum(_part(fault, 'proof').get('effective') is True for fault in faults)} of {counted(len(faults), 'fault')}"
    )


def _answered(results: Mapping[str, Value]) -> str:
    windows = [_part(_part(fault, "availability"), "during") for fault in _faults(results)]
    asked = sum(_number(window.get("operations")) for window in windows)
    return percent(sum(_number(window.get("answered")) for window in windows), asked)


def _share(measured: Mapping[str, Value]) -> str:
    return percent(_number(measured.get("answered")), _number(measured.get("operations")))


def _gap(measured: Mapping[str, Value]) -> str:
    gap_s = measured.get("longest_gap_s")
    return seconds(gap_s) if isinstance(gap_s, int | float) else DASH


def _outcomes(results: Mapping[str, Value]) -> dict[str, str]:
    """Returns the number of operations with each outcome."""
    counts = _part(results, "counts")
    return {outcome: f"{_number(counts[outcome]):,.0f}" for outcome in OUTCOMES if outcome in counts}


def _recovery(results: Mapping[str, Value]) -> str:
    windows = [_part(_part(fault, "availability"), "after") for fault in _faults(results)]
    times = [window.get("sustained_ok_s") for window in windows]
    seen = [time for time in times if isinstance(time, int | float)]
    return seconds(median(seen)) if seen else DASH
