"""Makes the members of Elle's result map of a judgement of transactions: anomalies with their cycles, and the models that fall.

Each example of an anomaly is a map. That of a cycle has `:cycle`, the transactions in their order and the first one again, and
`:steps`, with the `:type` and the `:key` of each edge. That of another anomaly has `:ops`. All have `:type` and `:explanation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from checker.edn.values import EdnMap, Keyword
from checker.formats.jepsen import micro_operations
from checker.knossos import completion
from checker.words import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.judging.judged import Judged
    from harness.counterexample import Counterexample
    from harness.op import Operation, Value

_NAMES: Final = {"strict-serializable": "strong-serializable"}  # models that Elle prints by another name


def members(result: Judged) -> list[tuple[Any, Any]]:
    """Returns the members of Elle's map; none for the result of a judge of something else."""
    figures = result.part.details["figures"].get("")
    if not figures or "anomaly-types" not in figures:
        return []
    examples: dict[str, list[EdnMap]] = {}
    told = result.part.details.get("counterexamples", [])
    for anomaly, example in zip(told, result.part.counterexamples, strict=True):
        examples.setdefault(anomaly["kind"], []).append(_example(anomaly, example))
    names = [(name, tuple(map(Keyword, figures[name]))) for name in ("anomaly-types", "allowed-anomaly-types")]
    models = [(name, {Keyword(_NAMES.get(model, model)) for model in figures[name]}) for name in ("not", "also-not")]
    return [
        *((Keyword(name), value) for name, value in (*names, *models)),
        (Keyword("anomalies"), EdnMap((Keyword(kind), tuple(some)) for kind, some in examples.items())),
        *(
            [(Keyword("lacking-edges"), tuple(map(Keyword, figures["lacking-edges"])))]
            if "lacking-edges" in figures
            else []
        ),
    ]


def transaction(operation: Operation) -> Mapping[Any, Any]:
    """Returns the completion of a transaction, with the functions of its micro-operations as keywords."""
    completed = dict((completion(operation) or {}).items())
    completed[Keyword("value")] = micro_operations(completed[Keyword("value")])
    return EdnMap(completed.items())


def _example(told: Mapping[str, Value], example: Counterexample) -> EdnMap:
    by_index = {operation.invoke_index: operation for operation in example.operations}
    entries: list[tuple[Any, Any]] = [(Keyword("type"), Keyword(str(told["kind"])))]
    edges = [(by_index[first], by_index[second], why) for first, second, why in example.edges]
    is_cycle = bool(edges) and all(one[1] is other[0] for one, other in zip(edges, [*edges[1:], edges[0]], strict=True))
    if is_cycle:
        around = [*(first for first, _, _ in edges), edges[0][0]]
        entries.append((Keyword("cycle"), tuple(map(transaction, around))))
        entries.append((Keyword("steps"), tuple(_step(*edge) for edge in edges)))
    else:
        entries.append((Keyword("ops"), tuple(map(transaction, example.operations))))
    entries.append((Keyword("explanation"), told["explanation"]))
    return EdnMap(entries)


def _step(first: Operation, second: Operation, why: str) -> EdnMap:
    kind, _, text = why.partition(" ")
    entries: list[tuple[Any, Any]] = [(Keyword("type"), Keyword(kind))]
    keys = (
        [mop[1] for operation in (first, second) for mop in operation.value if value_text(mop[1]) == text]
        if text
        else []
    )
    if keys:
        entries.append((Keyword("key"), keys[0]))
    if kind == "process":
        entries.append((Keyword("process"), first.process))
    return EdnMap(entries)
