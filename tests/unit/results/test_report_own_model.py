"""The report of a run with a user's own model: the model's own terms, and nothing specific to registers."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from checker.linearizable import linearizability
from checker.models import Call, Inconsistent, Model
from harness.errors import InputError
from harness.op import Operation, OpType
from harness.verdict import Part, Verdict, reason_of
from results.page.report import render
from results.record.counterexample import counterexamples_of
from results.stored.document import build
from tests.own_models import Broken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.record.record import RunRecord


class HighWater(Model):
    """A mark that only increases. Its functions have the names of a register's."""

    name = "high-water"
    initial = 0

    def step(self, state: int, op: Call) -> int | Inconsistent:
        """See `Model`."""
        if op.f == "write":
            return max(state, int(op.argument))
        return state if not op.ok or op.result == state else Inconsistent(f"the mark stands at {state}")

    def observes(self, op: Call) -> bool:
        """See `Model`."""
        return op.f == "read"


def marks(operations: Sequence[Operation], *, wrong: bool) -> list[Operation]:
    """Returns the operations of another run as those of marks, one for each key, numbered in the order of their middles.

    If `wrong`, one read in the last third sees the mark's value before a completed write.
    """
    random = Random("marks")
    state: dict[str | None, int] = {}
    made = []
    for number, op in enumerate(sorted(operations, key=lambda op: op.start_ns + (op.end_ns or op.start_ns))):
        now = state.get(op.key, 0)
        ok = op.type is OpType.OK
        if op.f == "read":
            made.append(replace(op, result=now if ok else None, order=number if ok else None))
            continue
        value = random.randrange(number + 1)
        made.append(replace(op, f="write", value=value, result=value if ok else None, order=number if ok else None))
        if ok:
            state[op.key] = max(now, value)
    made.sort(key=lambda op: op.invoke_index)
    if not wrong:
        return made
    raised = [op for op in made if op.f == "write" and op.type is OpType.OK and op.key == "k0"]
    for index in range(2 * len(made) // 3, len(made)):
        read = made[index]
        known = [op.value for op in raised if (op.complete_index or 0) < read.invoke_index]
        lower = [value for value in known if value < max(known)]
        if read.f == "read" and read.type is OpType.OK and read.key == "k0" and lower:
            made[index] = replace(read, result=max(lower))
            return made
    raise AssertionError("the run is too short for a wrong read")


def of_marks(record: RunRecord, *, wrong: bool) -> RunRecord:
    """Returns the record of a run with the verdict of `HighWater`."""
    operations = marks([op for op in record.operations if op.type is not OpType.INFO], wrong=wrong)
    parts = [*linearizability(HighWater(), operations, record.faults), *record.parts[1:]]
    return replace(record, operations=operations, parts=parts, test=replace(record.test, workload="high-water"))


def page_of(record: RunRecord) -> str:
    """Returns a run's report."""
    return render(record, build(record), drawn={}, logs=[])


def test_the_report_of_an_own_model_has_its_words(valid_record: RunRecord) -> None:
    """The message is the model's reason, its operations are drawn, and registers are not mentioned."""
    record = of_marks(valid_record, wrong=True)
    assert {part.name: part.verdict for part in record.parts[:2]} == {
        "linearizable": Verdict.INVALID, "order-agrees": Verdict.INVALID,
    }  # fmt: skip
    [example, *_] = counterexamples_of(record, reason_of(record.parts))
    assert example.culprit is not None
    assert example.culprit.f == "read"
    page = page_of(record)
    assert "the mark stands at" in page[: page.index('id="timeline"')]
    drawn = page[page.index('class="example"') : page.index("</svg>", page.index('class="example"'))]
    assert f"read → {example.culprit.result}" in drawn
    assert "write " in drawn
    assert "must hold" not in page
    assert "<b>order-agrees</b></td>" in page
    assert "&#34;model&#34;: &#34;high-water&#34;" in page


@pytest.mark.parametrize(("model", "register"), [("cas-register", True), (None, False), ("sum", False)])
def test_only_of_registers_it_says_what_they_must_hold(
    valid_record: RunRecord, stale_record: RunRecord, model: str | None, register: bool
) -> None:
    """For another object, the same operations have a different contradiction, or none."""
    examples = counterexamples_of(stale_record, "")
    details = {"counterexample": {"operations": []}, **({} if model is None else {"model": model})}
    part = Part(name="linearizable", verdict=Verdict.INVALID, reason="Bad.", details=details, counterexamples=examples)
    record = replace(stale_record, parts=[part, *valid_record.parts[1:]])
    assert ("the register must hold" in page_of(record)) is register


def test_the_report_of_a_right_run_has_no_counterexample(valid_record: RunRecord) -> None:
    """Both parts are valid, and have the number of operations with an order."""
    record = of_marks(valid_record, wrong=False)
    page = page_of(record)
    assert 'class="verdict valid"' in page
    assert 'class="example"' not in page
    assert "The system&#39;s own order is a legal one on all keys whose operations carry one" in page


def test_a_report_names_an_extra_part_that_is_not_decided(valid_record: RunRecord) -> None:
    """The run is valid, the part is shown as unknown, and a sentence explains that the others decide."""
    record = of_marks(valid_record, wrong=False)
    order = replace(record.parts[1], verdict=Verdict.UNKNOWN, reason="The budget ended.")
    page = page_of(replace(record, parts=[record.parts[0], order, *record.parts[2:]]))
    assert 'class="verdict valid"' in page
    assert "Not decided, so the other parts decide: order-agrees." in page
    assert "The budget ended." in page


def test_a_mistake_of_an_own_model_is_an_error_of_the_input(valid_record: RunRecord) -> None:
    """The error names the model, the function and the line, and the run's part has it."""
    with pytest.raises(InputError, match=r"model broken: step \(.*own_models.py:\d+\) failed: ZeroDivisionError"):
        linearizability(Broken(), valid_record.operations)
