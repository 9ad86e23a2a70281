"""Decides histories over independent keys: each key by itself, on all cores.

A history is linearizable iff its part on each object is (Herlihy and Wing, 1990), so this is exact.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from checker.decide.analysis import conclude, confirm
from checker.decide.hints import solve_by_hints
from checker.explain.counterexample import SHRINK_S
from checker.explain.effort import effort
from checker.keyed import EXPLAINED, KeyedAnalysis
from checker.models import Model
from checker.models import model as model_of
from checker.search.allowance import Allowance
from checker.search.encode import encode
from checker.search.solving import LEAST_S, Limits
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker._kernel import Cancellation
    from checker.formats.plain import Plain
    from harness.op import Operation


def check_keys(
    model: Model | str,
    operations: Iterable[Operation],
    *,
    algorithm: str = "auto",
    time_limit: float | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    certificate: bool = False,
    counterexample: bool = True,
    cross_check: bool = False,
    fail_fast: bool = False,
    explain: int = EXPLAINED,
    explain_s: float | None = None,
    empty: Verdict = Verdict.UNKNOWN,
    explain_model: bool = False,
    cancellation: Cancellation | None = None,
    plain: Plain | None = None,
) -> KeyedAnalysis:
    """Decides a history over independent keys; arguments are those of `checker.decide.analysis.analysis`.

    Args:
        model: The model of each object.
        operations: The history, with keys.
        algorithm: See `analysis`.
        time_limit: Seconds for all keys together.
        memory_limit: Bytes for all searches together.
        threads: None for all cores.
        certificate: See `analysis`.
        counterexample: Whether to look for a small part of invalid keys, and to explain them by it.
        cross_check: See `analysis`.
        fail_fast: Whether one invalid key is enough; other keys may then end as unknown.
        explain: The maximum number of invalid keys with a counterexample; those with the earliest violations.
        explain_s: Seconds for all counterexamples together; later keys get none. The first key always gets one. None: two
            seconds of processor time for each.
        empty: See `analysis`.
        explain_model: Whether to return the effort of the slowest key.
        cancellation: See `analysis`.
        plain: The same history as arrays, if there is one; then only operations of keys that are not linearizable become
            objects.
    """
    limits = Limits(
        algorithm=algorithm,
        time_limit_s=time_limit,
        memory_limit=memory_limit,
        threads=threads,
        cancellation=cancellation,
    )
    chosen = model_of(model) if isinstance(model, str) else model
    began = time.perf_counter()
    decided = None
    if plain is not None:
        from checker.decide.plain import decide_plain  # noqa: PLC0415 - loads numpy and pyarrow

        decided = decide_plain(chosen, plain, limits, cross_check=cross_check, fail_fast=fail_fast)
    groups = _by_key(operations) if decided is None else decided.operations
    total = sum(map(len, groups.values())) if plain is None else len(plain.operations)
    encoded = {key: encode(chosen, group) for key, group in groups.items()}
    known = {} if decided is None else decided.others
    # Objects show more of a violation than arrays do. A search that reached a limit would only reach it again.
    again = [key for key in groups if key not in known or known[key]["verdict"] == "invalid"]
    histories = [(groups[key], encoded[key]) for key in again]
    left = limits if decided is None else _left(limits, began)
    solved = solve_by_hints(chosen, histories, left, want_order=certificate, fail_fast=fail_fast)
    found = {key: outcome for key, (outcome, _) in zip(again, solved, strict=True)}
    by_key = {
        key: known[key] if key in known and (key not in found or found[key]["verdict"] != "invalid") else found[key]
        for key in groups
    }
    hints = dict.fromkeys(groups) | {key: own for key, (_, own) in zip(again, solved, strict=True)}
    slowest = max(by_key, key=lambda key: by_key[key]["seconds"], default=None) if explain_model else None
    search = effort(encoded[slowest], by_key[slowest], slowest) if explain_model and by_key else None
    invalid = [key for key, outcome in by_key.items() if outcome["verdict"] == "invalid"]
    first = sorted(invalid, key=lambda key: _failed_at(encoded[key].operations, by_key[key]["op"]))
    budget = Budget(first[:explain] if counterexample else [], explain_s)
    # In the order of their violations, so that the first ones are explained if time runs out.
    analyses = {
        key: conclude(
            chosen,
            groups[key],
            encoded[key],
            by_key[key],
            certificate=certificate,
            counterexample=budget.allows(key),
            allowance=budget.share(),
            hints=hints[key],
        )
        for key in [*first, *(key for key, outcome in by_key.items() if outcome["verdict"] != "invalid")]
    }
    analyses = {key: analyses[key] for key in by_key}
    if cross_check:
        for key, analysis in analyses.items():
            confirm(chosen, groups[key], encoded[key], analysis, limits)
    if decided is not None and plain is not None:
        analyses = {key: decided.valid.get(key) or analyses[key] for key in plain.columns.keys}
    verdict = worst(analysis.valid for analysis in analyses.values()) if analyses else empty
    deciding = first[0] if first else next((key for key, a in analyses.items() if a.valid is verdict), None)
    return KeyedAnalysis(
        valid=verdict,
        model=chosen.name,
        operations=total,
        seconds=time.perf_counter() - began,
        keys=analyses,
        worst_key=deciding,
        search=search,
    )


def _by_key(operations: Iterable[Operation]) -> dict[str | None, list[Operation]]:
    groups: dict[str | None, list[Operation]] = {}
    for op in operations:
        groups.setdefault(op.key, []).append(op)
    return groups


def _left(limits: Limits, began_s: float) -> Limits:
    """Returns the limits with the time that is left."""
    if limits.time_limit_s is None:
        return limits
    return replace(limits, time_limit_s=max(limits.time_limit_s - (time.perf_counter() - began_s), LEAST_S))


class Budget:
    """Chooses the invalid keys that get a counterexample, and the time for each."""

    def __init__(self, keys: Sequence[str | None], limit_s: float | None) -> None:
        """Starts now.

        Args:
            keys: The keys that may get a counterexample, in their order.
            limit_s: Seconds for all of them; None for no limit.
        """
        self._first = keys[:1]
        self._keys = frozenset(keys)
        self._end_s = math.inf if limit_s is None else time.monotonic() + limit_s

    def allows(self, key: str | None) -> bool:
        """Returns whether a key gets a counterexample."""
        return key in self._keys and (key in self._first or time.monotonic() < self._end_s)

    def share(self) -> Allowance:
        """Returns the budget of the next counterexample."""
        return Allowance.of(SHRINK_S, self._end_s)


def _failed_at(known: list[Operation], op: int | None) -> int:
    end = None if op is None else known[op].complete_index
    return 2**63 if end is None else end
