"""Results in the form of knossos' maps, for tools that read these.

As in knossos, a pending operation is shown as its invocation, with the value of its completion. An operation that took effect,
and the one that failed, are shown as completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checker.edn.values import EdnMap, Keyword
from checker.edn.writer import keywordized
from harness.op import OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.result import Analysis, PathStep
    from harness.op import Operation


def result_map(analysis: Analysis) -> Mapping[Any, Any]:
    """Returns knossos' result map of an analysis."""
    result: dict[str, Any] = {
        "valid?": Keyword("unknown") if analysis.valid is Verdict.UNKNOWN else analysis.valid is Verdict.VALID
    }
    if analysis.analyzer == "wgl" and analysis.valid is Verdict.VALID:
        if analysis.configs:
            result["model"] = keywordized(dict(analysis.configs[0].model))
    elif analysis.analyzer != "wgl":
        result["configs"] = tuple(
            _map(
                {
                    "model": keywordized(dict(config.model)),
                    "last-op": completion(config.last_op),
                    "pending": tuple(invocation(op) for op in config.pending),
                }
            )
            for config in analysis.configs
        )
    if analysis.valid is Verdict.INVALID:
        failing = analysis.op
        result["final-paths"] = tuple(tuple(_step(step, failing) for step in path) for path in analysis.final_paths)
        result["previous-ok"] = completion(analysis.previous_ok)
        if analysis.configs and analysis.analyzer != "wgl":
            result["last-op"] = completion(analysis.configs[0].last_op)
        result["op"] = completion(failing)
        result["explanation"] = analysis.explanation
    if analysis.valid is Verdict.UNKNOWN:
        result["cause"] = Keyword(analysis.cause or "unknown")
        if analysis.op is not None:
            result["op"] = completion(analysis.op)
        result["explanation"] = analysis.explanation
    if analysis.order_agrees is not None:
        agrees = analysis.order_agrees
        result["order-agrees"] = Keyword("unknown") if agrees is Verdict.UNKNOWN else agrees is Verdict.VALID
        result["order-reason"] = analysis.order_reason
    result["analyzer"] = Keyword(analysis.analyzer)
    return _map(result)


def completion(op: Operation | None) -> Mapping[Any, Any] | None:
    """Returns the completion of an operation; its invocation if it did not return."""
    if op is None:
        return None
    if op.type is OpType.INFO:
        return invocation(op)
    return _event(op, str(op.type), op.complete_index, op.end_ns)


def invocation(op: Operation) -> Mapping[Any, Any]:
    """Returns the invocation of an operation, with the value of its completion."""
    return _event(op, "invoke", op.invoke_index, op.start_ns)


def _event(op: Operation, kind: str, index: int | None, time_ns: int | None) -> Mapping[Any, Any]:
    value = op.result if op.type is OpType.OK and op.result is not None else op.value
    fields: dict[str, Any] = {
        "process": op.process,
        "type": Keyword(kind),
        "f": Keyword(op.f),
        "value": value,
        "index": index,
    }
    if time_ns is not None and (op.start_ns or op.end_ns):  # in a history without times, all times are 0
        fields["time"] = time_ns
    if op.error is not None and kind != "invoke":
        fields["error"] = op.error
    return _map(fields)


def _step(step: PathStep, failing: Operation | None) -> Mapping[Any, Any]:
    shown = completion(step.op) if step.op is failing else invocation(step.op)
    model = _map({"msg": step.message}) if step.model is None else keywordized(dict(step.model))
    return _map({"op": shown, "model": model})


def _map(fields: Mapping[str, Any]) -> Mapping[Any, Any]:
    return EdnMap([(Keyword(name), value) for name, value in fields.items()])
