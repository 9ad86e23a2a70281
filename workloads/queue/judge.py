"""Checks one queue.

The anomalies, with `a < b` for "a ended before b began":

- `lost`: an enqueue was acknowledged, a successful drain began after it had ended, and the value never came out; the drain left
  the queue empty. An operation without an answer excuses the value if it began before that drain ended, since it may have taken
  it: a dequeue excuses one value, and a drain any number. For example, a leader fails before its followers have the value.
- `unexpected`: a value came out that no enqueue had put in: there was none, all of them failed, or they began later. For
  example, the system refuses an enqueue and commits it later.
- `duplicated`: a value came out more often than there are enqueues of it that may have happened. For example, a producer
  repeats a request, or a consumer fails before its acknowledgement.
- `reordered`: a value came out after a value that was put in after it: `put(a) < put(b)` and `take(b) < take(a)`, or b comes
  before a in the answer of one drain. The judge compares only values that were put in once and came out once. For
  example, the system delivers a value again after later ones.

If a value is put in several times, its copies cannot be distinguished. The counts are then lower bounds, valid for any choice
of copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import FAIL, NEVER, OK
from workloads.queue.elements import flow_of
from workloads.queue.matching import overtaken, served
from workloads.queue.options import Order

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import Columns, Int64s
    from workloads.queue.elements import Flow

    Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a queue. Puts and takes are positions in `flow.put` and `flow.take`.

    Attributes:
        flow: The values that went in and out.
        acknowledged: The number of acknowledged enqueues.
        ok: The number of values that came out and had been put in.
        recovered: The number of them whose enqueue has no answer.
        unexpected: Takes of values that had not been put in.
        duplicated: Takes of values that had already come out.
        lost: Puts whose value is lost.
        deciding: For each lost put, the row of the drain that shows it.
        perhaps_taken: The number of missing values that dequeues without an answer excuse.
        perhaps_drained: The number of missing values that drains without an answer excuse.
        not_drained: The number of missing values without a later successful drain.
        overtaken: Puts whose value came out after the value of a later put.
        overtaking: For each of them, the later put.
        compared: The number of values whose order was compared; None if the order does not matter.
    """

    flow: Flow
    acknowledged: int
    ok: int
    recovered: int
    unexpected: Int64s
    duplicated: Int64s
    lost: Int64s
    deciding: Int64s
    perhaps_taken: int
    perhaps_drained: int
    not_drained: int
    overtaken: Int64s
    overtaking: Int64s
    compared: int | None


def find(history: Columns, order: Order) -> Facts:
    """Finds all contradictions to the rules.

    Raises:
        InputError: A queue has no such operation.
    """
    flow = flow_of(history)
    possible = history.type[flow.put] != FAIL
    acknowledged = history.type[flow.put] == OK
    puts = np.bincount(flow.put_value[possible], minlength=flow.numbers)
    sure = np.bincount(flow.put_value[acknowledged], minlength=flow.numbers)
    unexpected, duplicated = _wrong_takes(history, flow, possible, puts)
    ok = ~(unexpected | duplicated)
    came = np.bincount(flow.take_value[ok], minlength=flow.numbers)
    missing, drain = _missing(history, flow, acknowledged, sure - came)
    lost, perhaps_taken, perhaps_drained, not_drained = _lost(history, flow, drain)
    compared = None
    overtaken_puts = overtaking = np.zeros(0, np.int64)
    if order is not Order.NONE:
        once = (puts == 1) & (np.bincount(flow.take_value, minlength=flow.numbers) == 1) & (came == 1)
        compared = int(once.sum())
        overtaken_puts, overtaking = _reordered(history, flow, possible & once[flow.put_value], order)
    return Facts(
        flow=flow,
        acknowledged=int(acknowledged.sum()),
        ok=int(ok.sum()),
        recovered=int(np.maximum(came - sure, 0).sum()),
        unexpected=np.flatnonzero(unexpected),
        duplicated=np.flatnonzero(duplicated),
        lost=missing[lost],
        deciding=drain[lost],
        perhaps_taken=perhaps_taken,
        perhaps_drained=perhaps_drained,
        not_drained=not_drained,
        overtaken=overtaken_puts,
        overtaking=overtaking,
        compared=compared,
    )


def _wrong_takes(history: Columns, flow: Flow, possible: Bools, puts: Int64s) -> tuple[Bools, Bools]:
    """Returns which takes are unexpected, and which are duplicated."""
    first_put = np.full(flow.numbers, NEVER)
    # In reverse order, so that the first enqueue of a value is written last.
    first_put[flow.put_value[possible][::-1]] = history.start[flow.put[possible]][::-1]
    ends = history.end[flow.take]
    unexpected: Bools = ends < first_put[flow.take_value]
    duplicated = np.zeros(len(unexpected), bool)
    came = np.bincount(flow.take_value[~unexpected], minlength=flow.numbers)
    hard = (came > 1) | ((puts > 1) & (came > 0))
    takes = np.flatnonzero(hard[flow.take_value] & ~unexpected)
    some = np.flatnonzero(hard[flow.put_value] & possible)
    # The takes of each value by their ends, each with the number of its enqueues that had begun by then.
    value = np.concatenate([flow.put_value[some], flow.take_value[takes]])
    time = np.concatenate([history.start[flow.put[some]], ends[takes]])
    order = np.lexsort((time, value))
    is_put = order < len(some)
    begun = np.cumsum(is_put)
    earlier = np.concatenate([[0], np.cumsum(puts * hard)])[value[order]]
    sorted_takes = takes[order[~is_put] - len(some)]
    got = served((begun - earlier)[~is_put], flow.take_value[sorted_takes])
    duplicated[sorted_takes[~got]] = True
    return unexpected, duplicated


def _missing(history: Columns, flow: Flow, acknowledged: Bools, short: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the puts whose value is missing, and for each the row of the drain that shows it; -1 if there is none.

    This is the first drain to end of those that began after the put had ended. Of several puts of one value, the function
    chooses those with the latest drains.
    """
    puts = np.flatnonzero(acknowledged & (short > 0)[flow.put_value])
    drains = flow.drains
    index = np.searchsorted(history.start[drains], history.end[flow.put[puts]], side="right")
    ends = history.end[drains]
    earliest = np.append(np.minimum.accumulate(ends[::-1])[::-1], NEVER)
    deadline = earliest[index]
    # The last position with this running minimum is the drain with this end.
    rows = np.append(drains, -1)[np.searchsorted(earliest[:-1], deadline, side="right") - (deadline < NEVER)]
    value = flow.put_value[puts]
    order = np.lexsort((-deadline, value))
    sorted_value = value[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_value, sorted_value, side="left")
    chosen = np.sort(order[rank < short[sorted_value]])
    return puts[chosen], rows[chosen]


def _lost(history: Columns, flow: Flow, drain: Int64s) -> tuple[Int64s, int, int, int]:
    """Returns the lost puts, and how many missing ones a dequeue, a drain, and the lack of a drain excuse."""
    drained = np.flatnonzero(drain >= 0)
    deadline = history.end[drain[drained]]
    earliest = history.start[flow.lost_drains].min(initial=NEVER)
    by_drain = earliest < deadline
    claims = drained[~by_drain]
    deadline = deadline[~by_drain]
    order = np.argsort(deadline, kind="stable")
    supply = np.searchsorted(history.start[flow.lost_dequeues], deadline[order], side="left")
    got = served(supply, np.zeros(len(order), np.int64))
    lost = np.sort(claims[order[~got]])
    return lost, int(got.sum()), int(by_drain.sum()), len(drain) - len(drained)


def _reordered(history: Columns, flow: Flow, chosen: Bools, order: Order) -> tuple[Int64s, Int64s]:
    """Returns the chosen puts that were overtaken, and for each a put that overtook it."""
    puts = np.flatnonzero(chosen)
    take_of = np.zeros(flow.numbers, np.int64)
    take_of[flow.take_value] = np.arange(len(flow.take))
    takes = take_of[flow.put_value[puts]]
    rows, out = flow.put[puts], flow.take[takes]
    producer = history.process[rows] if order is Order.PRODUCER else np.zeros(len(rows), np.int64)
    by_producer = np.argsort(producer, kind="stable") if order is Order.PRODUCER else np.arange(len(rows))
    # The values of one drain came out in the order of its answer.
    index = flow.place[takes]
    in_drains = np.flatnonzero(np.isin(out, flow.drains))
    by_drain = in_drains[np.lexsort((producer[in_drains], out[in_drains]))]
    same = np.zeros(len(by_drain), np.int64)
    same[1:] = (np.diff(out[by_drain]) != 0) | (np.diff(producer[by_drain]) != 0)
    start, end = history.start, history.end
    searches = (
        (by_producer, producer[by_producer], start[out[by_producer]], end[out[by_producer]]),
        (by_drain, np.cumsum(same), index[by_drain], index[by_drain]),
    )
    pairs: list[tuple[Int64s, Int64s]] = []
    for sequence, group, out_begin, out_end in searches:
        late, early = overtaken(group, start[rows[sequence]], end[rows[sequence]], out_begin, out_end)
        pairs.append((puts[sequence[late]], puts[sequence[early]]))
    behind, first = np.unique(np.concatenate([late for late, _ in pairs]), return_index=True)
    return behind, np.concatenate([early for _, early in pairs])[first]
