"""Which verdict on transactions the definition of a model demands; the tests and `python -m benchmarks definitions` use it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from harness.verdict import Verdict
from tests.unit.checker.transaction_definitions import (
    has_no_cycle,
    has_rival_lists,
    has_unordered_appends,
    is_monotonic_atomic,
    is_monotonic_view,
    is_read_uncommitted,
    is_snapshot_read,
    is_update_serializable,
    is_visible,
)
from tests.unit.checker.transaction_orders import (
    any_order,
    is_read_committed,
    is_serial,
    is_snapshot_isolated,
    real_time,
    session_order,
)
from tests.unit.checker.transaction_positions import as_lists

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checker.judging import Judgement
    from harness.op import Operation

    Decide = Callable[[Sequence[Operation]], bool]

# Models that are decided for lists and for registers.
BY_ORDERS: Final[dict[str, Decide]] = {
    "serializable": partial(is_serial, before=any_order),
    "strong-session-serializable": partial(is_serial, before=session_order),
    "strict-serializable": partial(is_serial, before=real_time),
    "snapshot-isolation": partial(is_snapshot_isolated, before=any_order),
    "strong-session-snapshot-isolation": partial(is_snapshot_isolated, before=session_order),
    "strong-snapshot-isolation": partial(is_snapshot_isolated, before=real_time),
}
# What holds of the versions of registers in each execution of a model.
SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "serializable": ("writes-follow-reads", "atomic-visibility"),
    "strong-session-serializable": ("writes-follow-reads", "sequential-keys", "atomic-visibility"),
    "strict-serializable": ("writes-follow-reads", "sequential-keys", "linearizable-keys", "atomic-visibility"),
    "snapshot-isolation": ("writes-follow-reads", "atomic-visibility"),
    "strong-session-snapshot-isolation": ("writes-follow-reads", "sequential-keys", "atomic-visibility"),
    "strong-snapshot-isolation": ("writes-follow-reads", "sequential-keys", "linearizable-keys", "atomic-visibility"),
}
# Models that are decided for lists.
WEAK: Final[dict[str, Decide]] = {
    "read-uncommitted": partial(is_read_uncommitted, before=any_order),
    "strong-session-read-uncommitted": partial(is_read_uncommitted, before=session_order),
    "strong-read-uncommitted": partial(is_read_uncommitted, before=real_time),
    "read-committed": partial(is_read_committed, before=any_order),
    "strong-session-read-committed": partial(is_read_committed, before=session_order),
    "strong-read-committed": partial(is_read_committed, before=real_time),
    "monotonic-atomic-view": is_monotonic_atomic,
    "read-atomic": is_visible,
    "causal-cerone": partial(is_visible, transitive=True),
    "prefix": partial(is_visible, prefix=True),
    "update-atomic": partial(is_visible, apart=True),
    "parallel-snapshot-isolation": partial(is_visible, transitive=True, apart=True),
    "snapshot-isolation": partial(is_visible, prefix=True, apart=True),
    "consistent-view": partial(has_no_cycle, most=1),
    "forward-consistent-view": partial(has_no_cycle, most=1),
    "repeatable-read": partial(has_no_cycle, most=99),
    "monotonic-view": is_monotonic_view,
    "monotonic-snapshot-read": is_snapshot_read,
    "update-serializable": is_update_serializable,
}


def _of_registers(operations: Sequence[Operation], decide: Decide) -> bool:
    return decide(as_lists(operations))


# Models that are decided for registers with the system's own order.
POSITIONED: Final[dict[str, Decide]] = {
    model: partial(_of_registers, decide=decide) for model, decide in (BY_ORDERS | WEAK).items()
}
# These say nothing of transactions that contradict themselves, or their definitions do not.
WITHOUT_INTERNAL: Final = frozenset(
    {
        *(name for name in WEAK if name.endswith("read-committed")),
        "monotonic-atomic-view",
        "consistent-view",
        "forward-consistent-view",
        "repeatable-read",
        "monotonic-view",
        "monotonic-snapshot-read",
        "update-serializable",
    }
)
# If no read shows the order of some appends, Labrys does not search the orders of several keys under these.
UNORDERED: Final = frozenset(
    {
        "parallel-snapshot-isolation",
        "consistent-view",
        "forward-consistent-view",
        "monotonic-view",
        "update-serializable",
    }
)
LEFT_OUT: Final = "left out"
EXACT: Final = "exact"
NO_FALSE_ALARM: Final = "no false alarm"
NOT_WRONG: Final = "valid and invalid are right"


def demanded(operations: Sequence[Operation], judgement: Judgement, model: str) -> str:
    """Returns what is demanded of the verdict on lists under one of `WEAK`: `EXACT`, `NO_FALSE_ALARM` or `LEFT_OUT`."""
    if model in WITHOUT_INTERNAL and "internal" in judgement.figures["allowed-anomaly-types"]:
        return LEFT_OUT
    if model.endswith("uncommitted") and has_rival_lists(operations):
        return LEFT_OUT  # either list may be the order, and Labrys takes the first
    return NO_FALSE_ALARM if model in UNORDERED and has_unordered_appends(operations) else EXACT


def demanded_of_registers(operations: Sequence[Operation], judgement: Judgement, model: str) -> str:
    """Returns the same for registers with the system's own order."""
    return demanded(as_lists(operations), judgement, model)


def contradicts(judgement: Judgement, *, legal: bool, demand: str) -> bool:
    """Returns whether a verdict is not as its definition demands."""
    is_invalid = judgement.verdict is Verdict.INVALID
    if demand == NOT_WRONG:
        return judgement.verdict is not Verdict.UNKNOWN and is_invalid is legal
    return demand != LEFT_OUT and (is_invalid is legal if demand == EXACT else legal and is_invalid)
