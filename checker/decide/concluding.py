"""Makes the result of a key from the kernel's outcome, and checks it as far as that is quick.

Every answer is exact or `unknown`. A valid answer can include its linearization, which independent code replays. An invalid
answer can include a small part of the history that is invalid by itself. A brute force confirms it if it is small enough.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from checker.decide.deciding import Objects
from checker.explain.counterexample import reason
from checker.explain.faithful import there
from checker.explain.hardness import CAUSES, of_columns, of_objects
from checker.explain.sentences import Evidence, explain
from checker.near.necessary import ANALYZER as FLOW
from checker.near.necessary import lack
from checker.result import Analysis
from checker.search.allowance import Allowance
from checker.search.certificate import replay
from checker.search.configurations import MAX_SHOWN, configurations, final_paths
from checker.search.encode import encode
from checker.search.reach import reach
from checker.search.solving import positions, solve
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker._kernel import Outcome, Problem
    from checker.decide.deciding import CodedKey
    from checker.decide.hints import Hints
    from checker.decide.history import Excerpt
    from checker.explain.hardness import Why
    from checker.models.base import Model, State
    from checker.search.configurations import Known
    from checker.search.encode import Encoded
    from checker.search.solving import Limits
    from harness.op import Operation, Value

# A cross-check compares the verdict with that of `SECOND_OPINION`, or with `THIRD_OPINION` if that is the same algorithm.
SECOND_OPINION = "wgl"
THIRD_OPINION = "linear"
_CONFIGS_OPERATIONS = 20_000
_CONFIGS_S = 1.0


class Concluded:
    """The outcome for a key, before its result: this needs operations, which a history of arrays must read first.

    Attributes:
        outcome: The kernel's outcome.
        coded: The columns of the key.
        size: The number of operations of the key.
        hints: What is known about the system's own order.
    """

    def __init__(self, model: Model, coded: CodedKey, size: int, outcome: Outcome, hints: Hints | None) -> None:
        """Takes the outcome."""
        self.outcome, self.coded, self.size, self.hints = outcome, coded, size, hints
        self._model = model
        is_hard = outcome.cause in CAUSES and not isinstance(coded, Objects)
        self._why: Why | None = of_columns(coded.problem, coded.events, outcome) if is_hard else None

    @property
    def wanted(self) -> list[int]:
        """The positions of the operations that the result names."""
        outcome = self.outcome
        wanted = [i for config in outcome.configs[:MAX_SHOWN] for i in (*config.path, *config.pending)]
        if outcome.verdict != "valid":
            wanted += [*outcome.core, *([] if outcome.op is None else [outcome.op])]
        wanted += [config.last for config in outcome.configs[:MAX_SHOWN] if config.last is not None]
        return wanted + ([] if self._why is None else self._why.examples)

    def result(self, known: Known, *, certificate: bool = False) -> Analysis:
        """Returns the result, without a small part that explains it.

        Args:
            known: The operations of the key, at least those that are wanted.
            certificate: Whether to return the linearization of a valid key, whose columns must be from objects.

        Raises:
            Disagreement: The system's own order is legal, but the kernel finds none.
            CertificateError: The linearization is not one.
        """
        model, outcome, coded, hints = self._model, self.outcome, self.coded, self.hints
        verdict = Verdict(outcome.verdict)
        fields: dict[str, Any] = {}
        hardness = () if self._why is None else self._why.reasons(known.__getitem__)
        if isinstance(coded, Objects):
            hardness = of_objects(model, coded.encoded, outcome)
            if hints is not None:
                hints = hints.beside(verdict, outcome.analyzer, coded.operations)
                fields |= {"order_agrees": hints.agrees, "order_reason": hints.reason, "order_against": hints.against}
            if verdict is Verdict.VALID and certificate and outcome.order is not None:
                order = tuple(known[i] for i in positions(outcome.order))
                replay(model, coded.operations, order)
                fields["certificate"] = order
        result = Analysis(
            valid=verdict,
            model=model.name,
            analyzer=outcome.analyzer,
            operations=self.size,
            seconds=outcome.seconds,
            steps=outcome.steps,
            op=None if verdict is Verdict.VALID or outcome.op is None else known[outcome.op],
            cause=outcome.cause,
            hardness=hardness,
            kind=outcome.kind,
            configs=configurations(model, known, outcome.configs),
            **fields,
        )
        core = [known[i] for i in outcome.core] if verdict is not Verdict.VALID else []
        return replace(result, explanation=explain(result, model, Evidence(core=core, unsuited=outcome.unsuited)))


def explained(model: Model, result: Analysis, outcome: Outcome, excerpt: Excerpt, allowance: Allowance) -> Analysis:
    """Returns the result of an invalid key with a small part of it that is invalid by itself.

    Args:
        model: The model of the object.
        result: The result without it.
        outcome: The kernel's outcome for the columns of the excerpt.
        excerpt: The operations that show the violation, with their columns.
        allowance: The budget to make the part small.

    Raises:
        Disagreement: A brute force finds a legal order of the part.
    """
    assert excerpt.coded is not None  # noqa: S101 - see above
    encoded = excerpt.coded.encoded
    known = encoded.operations
    if outcome.op is None:
        return result
    op = known[outcome.op]
    analysis = replace(result, op=op)
    has_configs = bool(outcome.configs)
    configs = configurations(model, known, outcome.configs) if has_configs else _configurations_before(model, known, op)
    why = reason(model, encoded, outcome, allowance)
    analysis = replace(
        analysis,
        configs=configs,
        final_paths=final_paths(model, configs, op),
        counterexample=why.operations,
        culprit=why.culprit,
        kind=why.kind or outcome.kind,
    )
    evidence = Evidence(
        core=why.core if why.kind is not None else [known[i] for i in outcome.core],
        pattern=why.pattern,
        makers=excerpt.makers if excerpt.is_part else excerpt.operations,
        small=why.operations,
        refusals=why.refusals,
        final_states=partial(_final_states, model, known, op, part=excerpt.is_part),
        value=_lacking(model, encoded, outcome),
    )
    return replace(analysis, explanation=explain(analysis, model, evidence))


def _lacking(model: Model, encoded: Encoded, outcome: Outcome) -> Value:
    """Returns the value of a user's own model that was present too early, too often or never; nil if there is none."""
    if outcome.analyzer != FLOW or encoded.coder.step is None:
        return None
    lacking = lack(model, encoded)
    return None if lacking is None else lacking.value


def contradiction(model: Model, problem: Problem, verdict: Verdict, analyzer: str, limits: Limits) -> str | None:
    """Runs an algorithm other than `analyzer`, and returns a sentence if it contradicts the verdict; else None."""
    other = THIRD_OPINION if analyzer == SECOND_OPINION else SECOND_OPINION
    [outcome] = solve([problem], replace(limits, algorithm=other))
    second = Verdict(outcome.verdict)
    if Verdict.UNKNOWN in {verdict, second} or verdict is second:
        return None
    return f"model {model.name}: {analyzer} finds {verdict}, but {outcome.analyzer} finds {second}"


def _configurations_before(model: Model, known: Sequence[Operation], op: Operation) -> Any:
    """Returns the configurations before `op` returns, by a search; none if that would take long."""
    end = op.complete_index
    until = [other for other in known if end is not None and other.invoke_index <= end]
    if len(until) > _CONFIGS_OPERATIONS:
        return ()
    encoded = encode(model, until)
    [outcome] = solve([encoded.problem], Allowance.of(_CONFIGS_S).limits("linear"))
    if outcome.verdict != "invalid" or outcome.op is None or encoded.operations[outcome.op] != op:
        return ()
    return configurations(model, encoded.operations, outcome.configs)


def _final_states(model: Model, known: Sequence[Operation], op: Operation, *, part: bool) -> list[State]:
    """Returns all states in which the history can leave an object before `op` returns; none if they are unknown."""
    if part or len(known) > _CONFIGS_OPERATIONS:
        return []
    encoded = encode(model, known, by_table=True)
    failed = next((i for i, operation in enumerate(encoded.operations) if operation is op), None)
    if failed is None:
        return []
    reached = reach(encoded, there(encoded, failed), failed, Allowance.of(_CONFIGS_S))
    return [encoded.table.state(state) for state in reached.states] if reached is not None and reached.complete else []
