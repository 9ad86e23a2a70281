"""The text of `labrys plan`: a line for each fault, and a line for each stream of operations.

The streams come from a workload, which may be of another package. An operation of another form than usual is shown as JSON.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harness.console.plain import counted, name, one_line
from harness.targets import names_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from harness.faults import PlannedFault
    from harness.op import Value
    from nemesis.planfile import Plan

COLUMNS = ("fault", "kind", "target", "from", "to", "options")
TO_THE_RIGHT = ("fault", "from", "to")
MAX_OPERATIONS = 6
MAX_OPERATION = 60


def lines(reproduce: str, plan: Plan, streams: Value) -> Iterator[str]:
    """Yields the lines of a plan.

    Args:
        reproduce: The command that runs the test.
        plan: The plan.
        streams: The first operations, as a workload describes them.
    """
    yield f"reproduce  {reproduce}"
    limit = "" if plan.time_limit_s is None else f", {plan.time_limit_s:g} s of workload"
    yield f"plan       seed {plan.seed}, {counted(len(plan.nodes), 'node')}{limit}, {counted(len(plan.faults), 'fault')}"
    for left in plan.left_out:
        yield f"left out   {one_line(f'{left.kind}: {left.reason}')}"
    if plan.faults:
        yield ""
        yield from _columns([dict(zip(COLUMNS, COLUMNS, strict=True)), *map(_row, plan.faults)])
    yield ""
    yield "the first operations of each stream; a word such as last-seen is a value that only the run knows"
    for number, stream in enumerate(streams if isinstance(streams, list) else [streams]):
        yield f"stream {number}   {_stream(stream)}"


def _row(fault: PlannedFault) -> dict[str, str]:
    order = [f"order={_text(list(fault.order))}"] if fault.order else []
    options = [*order, *(f"{key}={_text(value)}" for key, value in fault.options.items())]
    waits = [f"waits up to {fault.wait_s:g} s for {fault.trigger}"] if fault.trigger else []
    return {
        "fault": str(fault.id),
        "kind": fault.called,
        "target": " ".join(names_of(fault.target)) or str(fault.target),
        "from": f"{fault.start_s:.1f} s",
        "to": f"{fault.end_s:.1f} s",
        "options": ", ".join([*options, *waits]),
    }


def _columns(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yields the rows with columns of the same width."""
    widths = {column: max(len(row[column]) for row in rows) for column in COLUMNS}
    for row in rows:
        cells = [
            f"{row[column]:>{width}}" if column in TO_THE_RIGHT else f"{row[column]:<{width}}"
            for column, width in widths.items()
        ]
        yield "  ".join(cells).rstrip()


def _stream(stream: Value) -> str:
    """Returns the first operations of a stream."""
    operations = stream.get("operations") if isinstance(stream, dict) else None
    if not isinstance(operations, list):
        return _text(stream)
    more = ["..."] if len(operations) > MAX_OPERATIONS else []
    return "; ".join([*map(_operation, operations[:MAX_OPERATIONS]), *more])


def _operation(operation: Value) -> str:
    """Returns an operation, e.g. `write h0 5`."""
    if not (isinstance(operation, dict) and isinstance(operation.get("f"), str)):
        return _text(operation)
    rest = (operation.get("key"), operation.get("value"))
    return name(
        " ".join([str(operation["f"]), *(_text(member) for member in rest if member is not None)]), MAX_OPERATION
    )


def _text(value: Value) -> str:
    return name(value if isinstance(value, str) else json.dumps(value, default=str), MAX_OPERATION)
