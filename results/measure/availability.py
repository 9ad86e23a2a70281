"""The availability of the system: over the whole run, during each fault, and after its healing.

The time of an operation is its scheduled time in an open loop, and its invoke in a closed loop. So an operation that was
scheduled during a fault counts for the fault, with its latency, even if its answer came long after. And a stuck closed loop
cannot hide a gap by sending less. `results.measure.op_outcomes` decides which operations were *answered*, and which were
refused. A refusal is neither an answer nor an outage, so it is counted apart, and shares leave it out. So a healthy cluster
shows 100 %.

If a run has clients that follow the leader, only these measure the availability of the system. A client that stays at its node
measures this node alone. Each function is also measured alone, because answered reads hide that no write is answered.

Times are seconds since the start of the window. A missing time is None, never zero.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping  # noqa: TC003 - a window is read and written by its annotations
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from harness.units import NS_PER_S
from results.measure.op_outcomes import REFUSED, answered, error_code, outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.faults import FaultRecord
    from harness.op import Operation
    from results.measure.op_outcomes import Codes

SUSTAINED_S = 2.0
SUSTAINED_RATIO = 0.95
BEFORE_S = 10.0
_SPAN_NS = int(SUSTAINED_S * NS_PER_S)


class Window(Struct, frozen=True, kw_only=True):
    """Availability within one stretch of time; `results.json` has its members.

    An operation belongs to the moment at which it was wanted: its scheduled time in an open loop, else its invoke.

    Attributes:
        measured_by: Whose operations count: clients that follow the leader, where the run has such clients. Only over the whole
            workload.
        share: Answered operations as a share of operations; None if every node refused. Only over the whole workload.
        start_s: Its start, since the start of the workload.
        end_s: Its end.
        operations: The number of operations whose time lies in it, without refusals.
        answered: How many of them were answered.
        refused: The number of operations that a node refused, with the name of another node.
        first_ok_s: The time of the first answered operation, since the start of the window.
        sustained_ok_s: The time of the first answered operation that begins two seconds in which at least 95 % of the
            operations were answered. The two seconds must lie in the window.
        longest_gap_s: The longest stretch without an answered operation, between two of them or up to the window's edges.
        errors: Error code (what precedes the first colon of an error) to count, refusals included.
        by_f: The same for the operations of each function alone. Only over the whole workload.
    """

    measured_by: Literal["clients that follow the leader", "all clients"] | UnsetType = UNSET
    share: Annotated[float, Meta(ge=0, le=1)] | UnsetType | None = UNSET
    start_s: float
    end_s: float
    operations: int
    answered: int
    refused: int
    first_ok_s: float | None
    sustained_ok_s: float | None
    longest_gap_s: float
    errors: Mapping[str, int]
    by_f: Mapping[str, Window] | UnsetType = UNSET

    @property
    def rate(self) -> float:
        """Returns the answered operations per second."""
        return self.answered / (self.end_s - self.start_s) if self.end_s > self.start_s else 0.0


class Windows(Struct, frozen=True, kw_only=True):
    """The windows during a fault and after it.

    Attributes:
        during: While the fault was on, at most to the last operation: what outlasts the workload was not measured.
        after: From its healing to the next fault's start, or to the last operation; None without an operation in this time.
    """

    during: Window
    after: Window | None


class FaultAvailability(Struct, frozen=True, kw_only=True):
    """Availability around one fault; `results.json` has its members.

    Attributes:
        during: While it was on, at most to the last operation.
        after: From its healing to the next fault's start, or to the last operation; None without an operation in this time.
        rate_before: Answered operations per second in the last 10 s before it, without any fault on; None if another fault was
            on when it began, or if it began with the workload.
        rate_share: The rate during the fault as a share of the rate before; None if nothing was answered before.
        overlaps: Ids of other faults that were on during `during` or `after`, so that the numbers measure them too.
        nodes: The same two windows for the clients that stay at each node.
        by_f: The same two windows for the operations of each function alone, of the clients that measure the system.
    """

    during: Window
    after: Window | None
    rate_before: Annotated[float, Meta(ge=0)] | None
    rate_share: Annotated[float, Meta(ge=0)] | None
    overlaps: list[int]
    nodes: Mapping[str, Windows]
    by_f: Mapping[str, Windows]


class _Measured:
    """Operations in the order of their times, without refusals, which are counted apart."""

    def __init__(self, operations: Sequence[Operation], codes: Codes) -> None:
        ordered = sorted(operations, key=wanted_ns)
        kept = [op for op in ordered if outcome(op.type, op.error, codes) != REFUSED]
        self.times = [wanted_ns(op) for op in kept]
        self.good = [answered(op.type, op.error, codes) for op in kept]
        self.sums = [0]
        for good in self.good:
            self.sums.append(self.sums[-1] + good)
        self._all_times = [wanted_ns(operation) for operation in ordered]
        codes_of = [error_code(operation.error) for operation in ordered]
        self._codes = list(dict.fromkeys(codes_of))
        places = {code: index for index, code in enumerate(self._codes)}
        self._all_codes = np.array([places[code] for code in codes_of], dtype=np.int64)
        self._good_ns = np.array([ns for ns, good in zip(self.times, self.good, strict=True) if good], dtype=np.int64)
        self._gaps_ns = np.diff(self._good_ns)
        self._sustained = [index for index in range(len(kept)) if self._is_sustained(index)]
        self.end_ns = self._all_times[-1] + 1 if ordered else 0

    def window(self, start_ns: int, end_ns: int) -> Window:
        first, last = bisect_left(self.times, start_ns), bisect_left(self.times, end_ns)
        codes = self._all_codes[bisect_left(self._all_times, start_ns) : bisect_left(self._all_times, end_ns)]
        good, until = np.searchsorted(self._good_ns, (start_ns, end_ns))
        first_ns = int(self._good_ns[good]) if good < until else end_ns
        last_ns = int(self._good_ns[until - 1]) if good < until else end_ns
        within_ns = int(self._gaps_ns[good : until - 1].max()) if until - good > 1 else 0
        gap_ns = max(first_ns - start_ns, within_ns, end_ns - last_ns)
        numbers = np.bincount(codes, minlength=len(self._codes))
        appeared = dict.fromkeys(codes[np.sort(np.unique(codes, return_index=True)[1])].tolist())
        errors = Counter({code: int(numbers[index]) for index in appeared if (code := self._codes[index]) is not None})
        return Window(
            start_s=start_ns / NS_PER_S,
            end_s=end_ns / NS_PER_S,
            operations=last - first,
            answered=int(until - good),
            refused=len(codes) - (last - first),
            first_ok_s=(first_ns - start_ns) / NS_PER_S if good < until else None,
            sustained_ok_s=self._sustained_s(first, last, start_ns, end_ns),
            longest_gap_s=gap_ns / NS_PER_S,
            errors=dict(errors.most_common()),
        )

    def _is_sustained(self, index: int) -> bool:
        """Returns whether this operation was answered, and most operations in the two seconds from it on."""
        until = bisect_right(self.times, self.times[index] + _SPAN_NS, lo=index)
        answered_then = self.sums[until] - self.sums[index]
        return self.good[index] and answered_then >= SUSTAINED_RATIO * (until - index)

    def _sustained_s(self, first: int, last: int, start_ns: int, end_ns: int) -> float | None:
        first_good = bisect_left(self._sustained, first)
        if first_good == len(self._sustained) or self._sustained[first_good] >= last:
            return None
        at_ns = self.times[self._sustained[first_good]]
        return None if at_ns + _SPAN_NS > end_ns else (at_ns - start_ns) / NS_PER_S


def wanted_ns(operation: Operation) -> int:
    """Returns the time of an operation: its scheduled time, or else its invoke."""
    return operation.start_ns if operation.scheduled_ns is None else operation.scheduled_ns


def measuring(operations: Sequence[Operation]) -> list[Operation]:
    """Returns the operations that measure the system: those of clients that follow the leader, or all without such clients."""
    following = [operation for operation in operations if operation.via is not None]
    return following or list(operations)


def _by_function(operations: Sequence[Operation], codes: Codes) -> dict[str, _Measured]:
    """Returns the operations of each function, sorted by the function."""
    by_function: dict[str, list[Operation]] = {}
    for operation in operations:
        by_function.setdefault(operation.f, []).append(operation)
    return {f: _Measured(by_function[f], codes) for f in sorted(by_function)}


def around(
    faults: Sequence[FaultRecord], operations: Sequence[Operation], codes: Codes
) -> list[FaultAvailability | None]:
    """Measures the availability around each fault.

    Args:
        faults: The faults, in any order.
        operations: Client operations; those of the final phase, after recovery, are left out.
        codes: The meaning of error codes.

    Returns:
        The availability around each fault, in their order; None for a fault that never began, or began after the workload.
    """
    main = [operation for operation in operations if operation.phase is None]
    system = _Measured(measuring(main), codes)
    by_function = _by_function(measuring(main), codes)
    staying = [operation for operation in main if operation.via is None and operation.node is not None]
    at_node: dict[str, list[Operation]] = {}
    for operation in staying:
        at_node.setdefault(str(operation.node), []).append(operation)
    by_node = {name: _Measured(at_node[name], codes) for name in sorted(at_node)}
    horizon_ns = max((wanted_ns(operation) for operation in main), default=-1) + 1

    def one(fault: FaultRecord) -> FaultAvailability | None:
        start_ns, end_ns = fault.start_ns, min(fault.end_ns, horizon_ns)
        if end_ns <= start_ns:
            return None
        next_ns = min((other.start_ns for other in faults if other.start_ns >= fault.end_ns), default=horizon_ns)
        until_ns = min(next_ns, horizon_ns)

        def around_it(measured: _Measured) -> Windows:
            after = measured.window(end_ns, until_ns) if until_ns > end_ns else None
            return Windows(during=measured.window(start_ns, end_ns), after=after)

        windows = around_it(system)
        watched_ns = max(until_ns, fault.end_ns)
        overlaps = [
            other.planned.id
            for other in faults
            if other.start_ns < watched_ns and other.end_ns > start_ns and other is not fault
        ]
        before = stretch_before(fault, faults)
        rate_before = None if before is None else system.window(*before).rate
        return FaultAvailability(
            during=windows.during,
            after=windows.after,
            rate_before=rate_before,
            rate_share=windows.during.rate / rate_before if rate_before else None,
            overlaps=overlaps,
            nodes={name: around_it(measured) for name, measured in by_node.items()},
            by_f={f: around_it(measured) for f, measured in by_function.items()},
        )

    return [one(fault) for fault in faults]


def stretch_before(fault: FaultRecord, faults: Sequence[FaultRecord]) -> tuple[int, int] | None:
    """Returns the stretch for the rate before a fault: at most ten seconds, without any fault on.

    Returns:
        Its start and end in nanoseconds; None if another fault was on at the start of the fault, or nothing came before it.
    """
    start_ns = fault.start_ns
    others = [other for other in faults if other is not fault and other.end_ns > other.start_ns]
    if any(other.start_ns <= start_ns < other.end_ns for other in others):
        return None
    healed_ns = max((other.end_ns for other in others if other.end_ns <= start_ns), default=0)
    begin_ns = max(healed_ns, start_ns - int(BEFORE_S * NS_PER_S), 0)
    return (begin_ns, start_ns) if begin_ns < start_ns else None


def overall(operations: Sequence[Operation], codes: Codes) -> Window | None:
    """Measures the whole workload, from its start to the last operation; None without operations.

    Args:
        operations: Client operations; those of the final phase are left out.
        codes: The meaning of error codes.

    Returns:
        The window of all functions together, with that of each function.
    """
    main = [operation for operation in operations if operation.phase is None]
    if not main:
        return None
    system = _Measured(measuring(main), codes)
    following = any(operation.via is not None for operation in operations)

    def whole(measured: _Measured) -> Window:
        window = measured.window(0, system.end_ns)
        return replace(window, share=window.answered / window.operations if window.operations else None)

    return replace(
        whole(system),
        measured_by="clients that follow the leader" if following else "all clients",
        by_f={f: whole(measured) for f, measured in _by_function(measuring(main), codes).items()},
    )
