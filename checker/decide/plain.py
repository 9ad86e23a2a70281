"""Decides histories that were read as arrays, without a Python object for each operation of a key that is linearizable."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from checker.decide.analysis import contradiction
from checker.decide.coding import Coded
from checker.decide.deciding import decide_all
from checker.errors import Disagreement, Unsuited
from checker.explain.sentences import Evidence, explain
from checker.models import NativeModel
from checker.result import Analysis
from harness.errors import LabrysError
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from checker._kernel import Outcome
    from checker.formats.plain import Plain
    from checker.models import Model
    from checker.search.solving import Limits
    from harness.op import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The result for a history that was read as arrays.

    Attributes:
        valid: The results of keys that are linearizable, if they name no operation.
        others: The outcomes of the other keys.
        operations: The operations of the other keys.
    """

    valid: Mapping[str | None, Analysis]
    others: Mapping[str | None, Outcome]
    operations: Mapping[str | None, Sequence[Operation]]


def decide_plain(model: Model, plain: Plain, limits: Limits, *, cross_check: bool, fail_fast: bool) -> Decided | None:
    """Decides each key of a history from arrays; None if only objects can represent it.

    Args:
        model: The model of each object.
        plain: The history.
        limits: The limits of the check.
        cross_check: Whether to run a second algorithm on the keys that are linearizable.
        fail_fast: See `checker.decide.independent.check_keys`.

    Raises:
        Disagreement: Two algorithms disagree.
        KernelError: The native part failed.
    """
    columns, operations = plain.columns, plain.operations
    # Only objects are checked against the system's own order.
    if not isinstance(model, NativeModel) or operations.has_order:
        return None
    try:
        coded = Coded(model, plain.names, len(columns))
        coded.add(columns)
        arrays = coded.finish()
    except (Unsuited, LabrysError, MemoryError):
        return None
    outcomes = decide_all(arrays, limits, fail_fast=fail_fast)
    valid, others, objects = {}, {}, {}
    for place, (key, outcome) in enumerate(zip(columns.keys, outcomes, strict=True)):
        if outcome["verdict"] != "valid" or outcome["configs"]:
            others[key] = outcome
            objects[key] = operations.at(np.flatnonzero(columns.key == place))
            continue
        result = Analysis(
            valid=Verdict.VALID,
            model=model.name,
            analyzer=outcome["analyzer"],
            operations=int(coded.by_key[place]),
            seconds=outcome["seconds"],
            steps=outcome["steps"],
        )
        valid[key] = replace(result, explanation=explain(result, model, Evidence(core=[])))
        if cross_check:
            message = contradiction(model, arrays[place].problem, Verdict.VALID, outcome["analyzer"], limits)
            if message is not None:
                raise Disagreement(message, operations.at(np.flatnonzero(columns.key == place)))
    return Decided(valid=valid, others=others, operations=objects)
