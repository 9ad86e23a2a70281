"""The result of a check as data: for people, and as JSON. `checker.knossos` has it in the form of knossos' result maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.op import OpType
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harness.op import Operation, Value


EMPTY: Final = "empty"  # the cause of the unknown verdict for a history without operations


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A possible configuration of the object at a moment of the history.

    Attributes:
        model: The state, as the model describes it.
        last_op: The operation that took effect last, among those that returned.
        pending: The operations that have begun and not taken effect.
        state: The state, as the model holds it.
    """

    model: Mapping[str, Value]
    last_op: Operation | None
    pending: tuple[Operation, ...]
    state: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """A step of a path to a dead end.

    Attributes:
        op: The operation.
        model: The state after it, or None if it was impossible.
        message: Why it was impossible.
    """

    op: Operation
    model: Mapping[str, Value] | None
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardness:
    """One reason why a history is hard to decide.

    Attributes:
        reason: Its name, one of `checker.explain.hardness.REASONS`.
        sentence: What makes the history hard.
        advice: What to change in the workload.
        figures: The counts in the sentence, by name.
    """

    reason: str
    sentence: str
    advice: str
    figures: Mapping[str, int]

    @property
    def text(self) -> str:
        """Returns the reason and the advice in two sentences."""
        return f"{self.sentence} {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return {
            "reason": self.reason,
            "sentence": self.sentence,
            "advice": self.advice,
            "figures": dict(self.figures),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The result of the check of a history for linearizability.

    Attributes:
        valid: The verdict.
        model: The model's name.
        analyzer: The analyzer that decided.
        operations: The number of operations in the history.
        seconds: Wall time of the check.
        steps: Model steps of a search.
        op: Invalid: the operation at whose return no linearization is left. Unknown: the furthest return that was reached.
        previous_ok: The last operation that returned ok before `op` did.
        configs: The possible configurations before `op` returns, or at the end; at most ten.
        final_paths: The paths from there to dead ends; at most ten.
        cause: Unknown: `timeout`, `out-of-memory`, `cancelled`, `unsuited` for an algorithm that does not apply, or `empty`
            if there are no operations.
        hardness: Unknown: why the search reached a limit, the most important reason first; see `checker.explain.hardness`.
        kind: Invalid: the kind of contradiction, e.g. `stale`.
        counterexample: Invalid: a small part of the history that is not linearizable by itself.
        culprit: Invalid: the operation of the counterexample that is impossible, given the others. It is not always `op`,
            because the simplest counterexample may lie elsewhere.
        explanation: One or two sentences.
        certificate: Valid, on request: the operations in the order of a linearization.
        order_agrees: Whether the system's own order is legal; None if no operation carries one. See `checker.decide.hints`.
        order_reason: The reason, in one sentence; empty if no operation carries one.
        order_against: The operations that show that it is not legal; empty if none do so by themselves.
    """

    valid: Verdict
    model: str
    analyzer: str
    operations: int
    seconds: float
    steps: int = 0
    op: Operation | None = None
    previous_ok: Operation | None = None
    configs: tuple[Configuration, ...] = ()
    final_paths: tuple[tuple[PathStep, ...], ...] = ()
    cause: str | None = None
    hardness: tuple[Hardness, ...] = ()
    kind: str | None = None
    counterexample: tuple[Operation, ...] = ()
    culprit: Operation | None = None
    explanation: str = ""
    certificate: tuple[Operation, ...] | None = None
    order_agrees: Verdict | None = None
    order_reason: str = ""
    order_against: tuple[Operation, ...] = ()

    @property
    def rank(self) -> int | None:
        """Returns the number of operations in the counterexample; None if there is none."""
        return len(self.counterexample) or None

    def to_json(self) -> dict[str, Any]:
        """Returns the result as JSON values."""
        result: dict[str, Any] = {
            "valid": self.valid.as_json,
            "model": self.model,
            "analyzer": self.analyzer,
            "operations": self.operations,
            "seconds": self.seconds,
            "explanation": self.explanation,
        }
        if self.steps:
            result["steps"] = self.steps
        if self.valid is Verdict.UNKNOWN:
            result["cause"] = self.cause
            result["reached"] = operation_json(self.op)
            result["hardness"] = [finding.to_json() for finding in self.hardness]
        if self.valid is Verdict.INVALID:
            result["kind"] = self.kind
            result["op"] = operation_json(self.op)
            result["previous_ok"] = operation_json(self.previous_ok)
            result["counterexample"] = [operation_json(op) for op in self.counterexample]
            result["culprit"] = operation_json(self.culprit)
            result["final_paths"] = [[_step_json(step) for step in path] for path in self.final_paths]
        if self.configs:
            result["configs"] = [
                {
                    "model": dict(config.model),
                    "last_op": operation_json(config.last_op),
                    "pending": [operation_json(op) for op in config.pending],
                }
                for config in self.configs
            ]
        if self.certificate is not None:
            result["certificate"] = [op.invoke_index for op in self.certificate]
        if self.order_agrees is not None:
            result |= {"order_agrees": self.order_agrees.as_json, "order_reason": self.order_reason}
        return result


def operation_json(op: Operation | None) -> dict[str, Any] | None:
    """Returns an operation as JSON values, without null members except its value."""
    if op is None:
        return None
    fields: dict[str, Any] = {
        "process": op.process,
        "type": str(op.type),
        "f": op.f,
        "value": op.result if op.type is OpType.OK and op.result is not None else op.value,
        "argument": op.value,
        "index": op.complete_index if op.type is not OpType.INFO else op.invoke_index,
        "invoke_index": op.invoke_index,
        "complete_index": op.complete_index,
        "start_ns": op.start_ns,
        "end_ns": op.end_ns,
        "key": op.key,
        "node": op.node,
        "via": op.via,
        "error": op.error,
        "order": op.order,
    }
    kept = {"process", "type", "f", "value"}
    return {name: value for name, value in fields.items() if value is not None or name in kept}


def _step_json(step: PathStep) -> dict[str, Any]:
    model = {"message": step.message} if step.model is None else dict(step.model)
    return {"op": operation_json(step.op), "model": model}
