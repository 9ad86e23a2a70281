"""Replays a linearization with independent code: the model in Python, and one running maximum for real time.

So a valid verdict with an order does not depend on the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.errors import CertificateError
from checker.models.base import Inconsistent
from harness.op import OpType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checker.models.base import Model
    from harness.op import Operation


def replay(model: Model, operations: Sequence[Operation], order: Sequence[Operation]) -> None:
    """Checks in one pass that an order of the same objects as in `operations` is a linearization of them.

    Raises:
        CertificateError: It is not; the message has the reason.
    """
    # Equal operations are still different operations, so objects are compared by identity.
    known = set(map(id, operations))
    done: set[int] = set()
    state = model.initial
    latest: Operation | None = None
    for op in order:
        if id(op) not in known:
            raise CertificateError(f"the order has an operation of event {op.invoke_index} that is not in the history")
        if id(op) in done:
            raise CertificateError(f"the order has the operation of event {op.invoke_index} twice")
        done.add(id(op))
        end = op.complete_index if op.type is not OpType.INFO else None
        if latest is not None and end is not None and end < latest.invoke_index:
            raise CertificateError(
                f"event {end} ends an operation that the order puts after the operation that event {latest.invoke_index} begins"
            )
        if latest is None or op.invoke_index > latest.invoke_index:
            latest = op
        state = model.step(state, model.call(op))
        if isinstance(state, Inconsistent):
            raise CertificateError(f"the operation of event {op.invoke_index} is not possible there: {state.message}")
    for op in operations:
        needed = op.type is OpType.OK or (op.type is OpType.FAIL and op.f in model.keeps_failed)
        if needed and id(op) not in done and not model.silent(model.call(op)):
            raise CertificateError(f"the order leaves out the operation of event {op.invoke_index}, which happened")
