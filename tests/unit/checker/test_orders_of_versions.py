"""Registers are valid only with an order of their versions that keeps the model; no option is needed for what it implies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from checker.checking import Request, check_file
from checker.consistency import (
    CLASSES,
    MODELS,
    NONE,
    class_of,
    implied_orders,
    order_of,
    prohibited,
    searched,
)
from checker.deciders import Wanted
from checker.formats.columns import of_operations
from checker.formats.jepsen import write_history
from checker.judging.judged import Judged
from checker.presentation import as_text
from checker.transactions.judge import judge
from harness.op import OpType
from harness.pairing import events_of
from harness.verdict import Verdict
from tests.unit.checker.test_transaction_order import operations
from tests.unit.checker.transaction_orders import transaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.judging import Judgement
    from harness.op import Operation

KERNEL: Final = Path(__file__).parents[3] / "checker" / "kernel" / "src" / "transactions" / "ordering"
# One after the other, in one process.
SEQUENTIAL: Final = [
    transaction(0, OpType.OK, [mop], start=2 * number, end=2 * number + 1)
    for number, mop in enumerate((["w", "k", 1], ["w", "k", 2], ["r", "k", 1]))
]
# All of these overlap. A transaction sees both writers of x, and reads the first one.
VISIBLE: Final = ("wx2 wy2", "ry2 wx7 wz6", "rx2 rz6")
# The path a, b, c leads from both writers of x to a read of the first one.
PATH: Final = ("wx2 wa1", "ra1 wx7 wb1", "rb1 wc1", "rc1 rx2")
# Either order of x contradicts, because a transaction read each of them after the other one by y and z.
EITHER: Final = ("wx1 wy1", "wx2 wz2", "rx1 rz2", "rx2 ry1")


def judged(history: Sequence[Operation], model: str) -> Judgement:
    """Returns the judgement of registers without any option."""
    return judge(of_operations(history), workload="rw-register", model=model)


def contradicted(history: Sequence[Operation]) -> set[str]:
    """Returns the models that a history contradicts; it is valid under all others."""
    verdicts = {model.name: judged(history, model.name).verdict for model in MODELS}
    assert set(verdicts.values()) <= {Verdict.VALID, Verdict.INVALID}
    return {name for name, verdict in verdicts.items() if verdict is Verdict.INVALID}


def stronger(*names: str) -> set[str]:
    """Returns some models and all that imply one of them."""
    models = set(names)
    for _ in MODELS:
        models |= {model.name for model in MODELS if models & set(model.implies)}
    return models


def test_a_process_orders_what_it_wrote() -> None:
    """Sessions and real time order the writers; a model without them allows the stale read."""
    bad = {"strong-session-snapshot-isolation", "strong-session-serializable", "strong-snapshot-isolation"}
    assert contradicted(SEQUENTIAL) == bad | {"strict-serializable"}
    judgement = judged(SEQUENTIAL, "strong-session-serializable")
    assert judgement.counts == {"transactions": 3, "G2-item-process": 1}
    assert judgement.figures["implied-orders"] == [
        "writes-follow-reads",
        "process",
        "dependencies",
        "atomic-visibility",
    ]
    [anomaly] = judgement.anomalies
    assert "Of k, 1 precedes 2: T3 (process 0, events 0-1) and T2 are transactions of process 0, in this order." in (
        anomaly.explanation
    )


def test_a_transaction_sees_all_of_those_that_it_reads_from() -> None:
    """This holds from read atomic on, and for monotonic views if the read of the old version is the later one."""
    assert contradicted(operations(*VISIBLE)) == stronger("read-atomic", "consistent-view", "repeatable-read")
    late = (*VISIBLE[:2], "rz6 rx2")
    assert contradicted(operations(*late)) == stronger(
        "monotonic-atomic-view", "monotonic-view", "monotonic-snapshot-read"
    )
    judgement = judged(operations(*VISIBLE), "read-atomic")
    assert judgement.counts == {"transactions": 3, "fractured-read": 1}


def test_a_path_orders_the_versions() -> None:
    """Causality is enough; the words name the path."""
    bad = contradicted(operations(*PATH))
    assert bad == stronger("causal-cerone", "monotonic-view", "monotonic-snapshot-read", "repeatable-read")
    [anomaly] = judged(operations(*PATH), "serializable").anomalies
    assert "Of x, 2 precedes 7: T4 (process 0, event 0-100) wrote 1 to a, and T2 read a as 1." in (
        anomaly.explanation.replace("events 0", "event 0")
    )


def test_both_orders_may_contradict() -> None:
    """No order is forced, and none is possible: of x, either version comes first."""
    judgement = judged(operations(*EITHER), "read-atomic")
    assert judgement.verdict is Verdict.INVALID
    assert contradicted(operations(*EITHER)) >= stronger("read-atomic")


@pytest.mark.parametrize("write", ["wy1", "wy2"])
def test_a_value_that_was_written_twice_leaves_the_other_keys(write: str) -> None:
    """A cycle on other keys is still one; else the verdict is unknown, with both places."""
    history = operations("wy1", write, *PATH, "ry1")
    judgement = judged(history, "serializable")
    assert judgement.verdict is Verdict.INVALID
    assert ("Event 1, micro-operation 1 writes 1 to the key 'y' again, after event 0" in judgement.reason) is (
        write == "wy1"
    )
    for text in (judgement.reason, judgement.basis):  # the second one stands in the text of an invalid verdict
        assert ("So 1 read that may show several writes was left out." in text) is (write == "wy1")
    valid = judged(operations("wy1", write, *PATH[:3], "ry1"), "serializable")
    assert valid.verdict is (Verdict.UNKNOWN if write == "wy1" else Verdict.VALID)


# Each transaction reads what the one before it wrote to x, and the last one the first version of x and a later one of y.
OTHER_VALUES: Final = ("wx1 wy1", "rx1 wx2", "rx2 wy2", "ry2 rx1")


@pytest.mark.parametrize("doubled", [("wx9", "wx9", "rx9"), ("wx", "rx"), ("wx9", "wx9"), ("?wx9", "?wx9", "rx9")])
def test_the_other_values_of_a_key_are_evidence(doubled: tuple[str, ...]) -> None:
    """A cycle of the values of a key contradicts the model, whatever write a read of a doubled value of the key shows."""
    assert judged(operations(*OTHER_VALUES), "serializable").verdict is Verdict.INVALID
    judgement = judged(operations(*OTHER_VALUES, *doubled), "serializable")
    assert judgement.verdict is Verdict.INVALID
    [anomaly] = judgement.anomalies
    assert set(anomaly.rows) <= {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("history", "verdict", "reason"),
    [
        (("wx1 wy1", "wx1 wy2", "ry2"), Verdict.VALID, ""),  # nobody read the value
        (("!wx1", "wx1 wy2", "rx1 ry2"), Verdict.VALID, ""),  # a read is of what did not fail
        (("!wx1", "wx1 wy2", "rx1 ry"), Verdict.INVALID, ""),
        (("!wx1", "!wx1 wy2", "rx1"), Verdict.INVALID, ""),  # each write failed
        (("wx1 wx2", "wx1 wy2", "rx1 ry"), Verdict.INVALID, ""),  # nobody may read what was replaced
        (("wx1 rx1", "wx1 rx1 wy1", "ry1"), Verdict.VALID, ""),  # the own write
        (("wx1 rx2", "wx1 wx2", "rx2"), Verdict.INVALID, ""),
        (("wx", "wx1", "rx1"), Verdict.VALID, ""),
        (("rx wx", "rx wx"), Verdict.UNKNOWN, "writes nil to the key 'x', which is the initial value"),
        (("wx rx", "rx2", "wx2"), Verdict.VALID, ""),
        (("wx rx2", "wx2"), Verdict.INVALID, ""),
        (("wx1 wy1", "wx1 wy2", "rx1 ry2"), Verdict.UNKNOWN, "writes 1 to the key 'x' again, after event 0"),
    ],
)
def test_a_read_that_may_show_several_writes_is_left_out(
    history: tuple[str, ...], verdict: Verdict, reason: str
) -> None:
    """A read that shows one write counts, also of a doubled value; only without others is the verdict one of the whole."""
    judgement = judged(operations(*history), "serializable")
    assert (judgement.verdict, reason in judgement.reason) == (verdict, True), judgement.reason
    assert ("left out" in judgement.reason) is (verdict is Verdict.UNKNOWN)


def test_nil_is_a_value_like_others_beside_another_initial_value() -> None:
    """With `--initial 0`, a read of nil shows the write of nil, and a write of 0 is one of the initial value."""

    def of(*history: str) -> Judgement:
        return judge(of_operations(operations(*history)), workload="rw-register", model="serializable", initial="0")

    assert of("wx wy1", "rx ry1").verdict is Verdict.VALID
    assert of("wx wy1", "rx ry0").verdict is Verdict.INVALID
    assert of("wx0 wy1", "rx0 ry1").verdict is Verdict.UNKNOWN


IMPLIED: Final = "implied by strict-serializable: writes-follow-reads, realtime, dependencies, atomic-visibility"


@pytest.mark.parametrize(
    ("transactions", "setting", "verdict", "orders"),
    [
        (("wx1", "rx1"), None, Verdict.VALID, IMPLIED),
        (("wx1", "rx1"), "linearizable-keys=true", Verdict.VALID, f"{IMPLIED}; assumed: linearizable-keys"),
        (PATH, None, Verdict.INVALID, IMPLIED),
        (("wx1", "rx7"), None, Verdict.INVALID, "the initial version comes first"),
        (("wx1", "wx1", "rx1"), None, Verdict.UNKNOWN, IMPLIED),
    ],
)
def test_the_text_says_which_orders_a_verdict_used(
    tmp_path: Path, transactions: tuple[str, ...], setting: str | None, verdict: Verdict, orders: str
) -> None:
    """At the end of the line with the reason, whatever the verdict is; a report shows the same line."""
    result = checked(tmp_path / "h.edn", operations(*transactions), "rw-register", setting)
    assert result.verdict is verdict
    assert as_text([result]).splitlines()[1].endswith(f" Orders of versions used: {orders}.")
    assert result.part.reason.endswith(f" Orders of versions used: {orders}.")


def test_the_text_says_which_orders_of_lists_a_verdict_used(tmp_path: Path) -> None:
    """The lists that were read are one, and the assumed orders are others."""
    history = [transaction(0, OpType.OK, [["append", "x", 1]], start=0, end=1)]
    history.append(transaction(0, OpType.OK, [["r", "x", [1]]], start=2, end=3))
    result = checked(tmp_path / "h.edn", history, "list-append", "sequential-keys=true")
    assert result.verdict is Verdict.VALID
    assert as_text([result]).endswith("Orders of versions used: the lists that were read; assumed: sequential-keys.")


def checked(path: Path, history: Sequence[Operation], workload: str, setting: str | None) -> Judged:
    """Returns the result of `labrys check` for a history."""
    write_history(path, events_of(history))
    wanted = Wanted(workload=workload, settings=[] if setting is None else [setting])
    [result] = check_file(str(path), Request(wanted=wanted))
    assert isinstance(result, Judged)
    return result


def test_the_kernel_is_tested_with_the_models_of_the_checker() -> None:
    """The table of its test has what each model asks of the kernel."""
    lines = [
        " ".join(
            [model.name, order_of(model.name), *class_of(model.name), ",".join(searched(model.name)),
             ",".join(sorted(prohibited(model.name)))]
        )
        for model in MODELS
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    assert (KERNEL / "tests" / "models.txt").read_text(encoding="utf-8") == text, f"write this into models.txt:\n{text}"
    assert {class_of(model.name)[0] for model in MODELS} == set(CLASSES)
    assert all(class_of(model.name)[1] in {NONE, order_of(model.name)} for model in MODELS)
    assert implied_orders("read-uncommitted") == ("writes-follow-reads",)
