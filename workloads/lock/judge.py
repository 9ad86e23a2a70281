"""Checks one lock.

A process has one operation at a time on a lock. It *certainly holds* the lock from the end of its acquire (ok) to the beginning
of its next operation. The result of that operation does not matter, because a release may take effect at once. Without a next
operation, the process holds the lock for ever. But if the system may free the locks of a dead client, it holds the lock only at
the end of the acquire. With a lease, it holds the lock until the lease may have ended, counted from the invoke. A process
without an answer certainly holds nothing. The anomalies, and how systems get them:

- `two-holders`: an acquire ended while another process certainly held the lock. For example, a lease ends too early, or a new
  leader does not know the holder.
- `token-not-growing`: an acquire ended before another began, and the later acquire has a smaller token. For example, a counter
  of tokens starts again after a failure.
- `token-twice`: two acquires have the same token. A process that acquires a lock that it holds may get the same token again.
  For example, a system uses a counter before it stores it.
- `late-write`: a resource took a write of a holder after a write of a later holder: one whose acquire began after the acquire
  of the first had ended. For example, a client pauses for longer than its lease, and the resource checks no fencing token.
- `released-by-other`: a process released with success a lock that it had not acquired, or had released as often as acquired.
  A release with a token of some acquire does not count: it may be meant for the holder of the token. For example, a release
  does not check the holder.

Why not linearizability: suppose that each process acquires and releases in turns, that only its last operation may lack an
answer, and that there are no leases. Then a history is linearizable by the model `owner-mutex` if and only if no two processes
certainly hold the lock at the same time. A search finds more in three cases: a failed release leaves the lock held; a process
acquires twice; a dead process still holds the lock. A correct system may do each of these, with a lease, a reentrant lock, or a
session. For other systems, use `labrys check --model owner-mutex`. This judge needs only a few sorts, and it checks tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import FAIL, INFO, INTEGER, NEVER, NOTHING, OK, OTHER
from checker.values import decode_value
from harness.console.documents import shown
from harness.errors import InputError
from harness.units import NS_PER_S

if TYPE_CHECKING:
    import numpy.typing as npt

    from checker.formats.columns import ColumnOfValues, Columns, Int64s

    Bools = npt.NDArray[np.bool_]

_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Operations that contradict a rule, each with another one that shows it.

    Attributes:
        rows: The rows of the operations, ascending.
        others: For each operation, the row of the other one; -1 if there is none.
    """

    rows: Int64s
    others: Int64s


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts about a lock.

    Attributes:
        acquired: The number of successful acquires.
        released: The number of successful releases.
        contended: The number of answered acquires during which another process certainly held the lock.
        tokens: The number of acquires with a token.
        held: The row of each acquire after which its process certainly held the lock, in the order of their ends.
        until: For each of them, the event at which the certain hold ends.
        two_holders: Acquires of a lock that another process held, with the acquire of that process.
        not_growing: Acquires with a smaller token than an earlier acquire, with that acquire.
        twice: Acquires with the token of another acquire, with that acquire.
        by_other: Releases by a process that held nothing.
        writes: The writes to the resource; None if there are none.
    """

    acquired: int
    released: int
    contended: int
    tokens: int
    held: Int64s
    until: Int64s
    two_holders: Pairs
    not_growing: Pairs
    twice: Pairs
    by_other: Pairs
    writes: Writes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes of the holders to the resource.

    Attributes:
        taken: The number of writes that the resource took.
        refused: The number of writes that it refused.
        late: Writes that it took after one of a later holder, with that write.
        hold: For each row, the acquire of the hold to which it belongs; -1 if there is none.
    """

    taken: int
    refused: int
    late: Pairs
    hold: Int64s


def find(history: Columns, *, lease_s: float | None, sessions: bool) -> Facts:
    """Finds all contradictions to the rules.

    Raises:
        InputError: A lock has no such operation.
    """
    acquire, write = _functions(history)
    got = acquire & (history.type == OK)
    # The operations of each process in order; `same` marks those that are not the first of their process. The lock itself
    # sees no write, so a holder that writes still holds it.
    order = np.argsort(history.process, kind="stable")
    writes = _writes(history, order, got, write) if write.any() else None
    order = order[~write[order]]
    same = np.zeros(len(order), bool)
    same[1:] = history.process[order][1:] == history.process[order][:-1]
    until = _ends_of_holds(history, order, same, sessions=sessions)
    if lease_s is not None:
        until = np.minimum(until, _ends_of_leases(history, lease_s))
    rows = np.flatnonzero(got & (until > history.end))
    holds = rows[np.argsort(history.end[rows], kind="stable")]
    tokens = _tokens(history, np.flatnonzero(got))
    fresh = _fresh(history, order, same, got, tokens)
    return Facts(
        acquired=int(got.sum()),
        released=int((~acquire & ~write & (history.type == OK)).sum()),
        contended=_contended(history, acquire, holds, until),
        tokens=len(fresh),
        held=holds,
        until=until[holds],
        two_holders=_two_holders(history, holds, until),
        not_growing=_not_growing(history, fresh, tokens),
        twice=_twice(fresh, tokens),
        by_other=_by_other(history, order, same, acquire=acquire, got=got, tokens=tokens),
        writes=writes,
    )


def _functions(history: Columns) -> tuple[Bools, Bools]:
    """Returns which rows are acquires, and which are writes; all others are releases."""
    places = [history.functions.index(f) if f in history.functions else -1 for f in ("acquire", "release", "write")]
    wrong = np.flatnonzero(~np.isin(history.function, places))
    if len(wrong):
        row = int(wrong[0])
        function = shown(history.functions[history.function[row]])
        raise InputError(
            f"event {history.start[row]}: expected the function acquire, release or write, found {function}"
        )
    return history.function == places[0], history.function == places[2]


def _ends_of_holds(history: Columns, order: Int64s, same: Bools, *, sessions: bool) -> Int64s:
    """Returns, for each row, the event at which its process begins its next operation, or may be dead."""
    following = np.append(same[1:], np.zeros(min(1, len(same)), bool))
    until = np.minimum(history.end, NEVER - 1) + 1 if sessions else np.full(len(history), NEVER)
    until[order[following]] = history.start[order[same]]
    return until


def _ends_of_leases(history: Columns, lease_s: float) -> Int64s:
    """Returns, for each row, the first event at which the lease of its operation may have ended; `NEVER` if there is none.

    In a foreign history, times can go back. This only makes a lease shorter, which is safe.
    """
    answered = history.end_ns >= 0
    ended = answered & (history.type != INFO)
    event = np.concatenate([history.start, history.end[ended]])
    time_ns = np.concatenate([history.start_ns, history.end_ns[ended]])
    order = np.argsort(event, kind="stable")
    latest_ns = np.maximum.accumulate(time_ns[order])
    # A large start plus a large lease must not overflow.
    limit_ns = history.start_ns + np.minimum(round(lease_s * NS_PER_S), NEVER - history.start_ns)
    first = np.searchsorted(latest_ns, limit_ns, side="left")
    ends: Int64s = np.append(event[order], NEVER)[first]
    return ends


def _tokens(history: Columns, rows: Int64s) -> Tokens:
    """Returns the tokens of the acquires, by row.

    Raises:
        InputError: A token is not an integer of 64 bits.
    """
    token, known = _integers(history, history.result, rows)
    wrong = rows[~known[rows] & (history.result.kind[rows] != NOTHING)]
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"event {history.start[row]}: expected an acquire to answer a fencing token, an integer of 64 bits, or null"
        )
    return Tokens(token=token, known=known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The token of each row's acquire.

    Attributes:
        token: The token; 0 if there is none.
        known: Whether there is one.
    """

    token: Int64s
    known: Bools


def _integers(history: Columns, values: ColumnOfValues, rows: Int64s) -> tuple[Int64s, Bools]:
    """Returns the integers in some rows of a column, and which of these rows have an integer."""
    token = np.zeros(len(history), np.int64)
    known = np.zeros(len(history), bool)
    plain = rows[values.kind[rows] == INTEGER]
    token[plain], known[plain] = values.first[plain], True
    for row in rows[values.kind[rows] == OTHER].tolist():
        # Columns store integers from 10^18 on as texts.
        value = decode_value(history.texts[values.first[row]])
        if type(value) is int and abs(value) <= NEVER:
            token[row], known[row] = value, True
    return token, known


def _fresh(history: Columns, order: Int64s, same: Bools, got: Bools, tokens: Tokens) -> Int64s:
    """Returns the acquires whose tokens are compared, in the order of the history.

    It leaves out an acquire right after another one of the same process with the same token: a reentrant lock.
    """
    known, token = tokens.known, tokens.token
    again = np.zeros(len(history), bool)
    now, before = order[same], order[np.flatnonzero(same) - 1]
    again[now] = got[now] & got[before] & known[now] & known[before] & (token[now] == token[before])
    return np.flatnonzero(got & known & ~again)


def _two_holders(history: Columns, holds: Int64s, until: Int64s) -> Pairs:
    begin = history.end[holds]
    latest = np.maximum.accumulate(until[holds])
    late = np.flatnonzero(latest[:-1] > begin[1:]) + 1
    # The first position with the latest end is that of the other holder.
    other = np.searchsorted(latest, latest[late - 1], side="left")
    return _sorted(holds[late], holds[other])


def _contended(history: Columns, acquire: Bools, holds: Int64s, until: Int64s) -> int:
    """Returns the number of answered acquires during which another process held the lock."""
    if not len(holds):
        return 0
    answered = np.flatnonzero(acquire & (history.type != INFO))
    latest = np.append(-1, np.maximum.accumulate(until[holds]))
    # Earlier holds of the same process end at the latest when the acquire begins.
    earlier = np.searchsorted(history.end[holds], history.end[answered], side="left")
    return int((latest[earlier] > history.start[answered]).sum())


def _not_growing(history: Columns, rows: Int64s, tokens: Tokens) -> Pairs:
    if not len(rows):
        return Pairs(rows=_NONE, others=_NONE)
    by_end = rows[np.argsort(history.end[rows], kind="stable")]
    greatest = np.maximum.accumulate(tokens.token[by_end])
    earlier = np.searchsorted(history.end[by_end], history.start[rows], side="left")
    some = np.flatnonzero(earlier)
    wrong = some[greatest[earlier[some] - 1] > tokens.token[rows[some]]]
    other = np.searchsorted(greatest, greatest[earlier[wrong] - 1], side="left")
    return Pairs(rows=rows[wrong], others=by_end[other])


def _twice(rows: Int64s, tokens: Tokens) -> Pairs:
    by_token = rows[np.argsort(tokens.token[rows], kind="stable")]
    equal = np.flatnonzero(tokens.token[by_token][1:] == tokens.token[by_token][:-1]) + 1
    return _sorted(by_token[equal], by_token[equal - 1])


def _by_other(history: Columns, order: Int64s, same: Bools, *, acquire: Bools, got: Bools, tokens: Tokens) -> Pairs:
    """Finds the releases by processes that certainly held nothing."""
    released = ~acquire & (history.type == OK)
    # The number of holds of each process after each operation; it can be negative.
    left = np.cumsum(got[order].astype(np.int64) - released[order])
    starts = np.flatnonzero(~same)
    number = np.cumsum(~same) - 1
    left -= np.append(0, left)[starts][number]
    # A release that makes it lower than ever before had no hold. The offset separates the running minima of the processes.
    below = number * (2 * len(order) + 2)
    lowest = np.minimum(np.minimum.accumulate(left - below) + below, 0)
    lowest_before = np.where(same, np.append(0, lowest[:-1]), 0)
    rows = np.sort(order[left < lowest_before])
    value, named = _integers(history, history.value, rows)
    elsewhere = np.isin(value[rows], tokens.token[tokens.known]) | bool((acquire & (history.type == INFO)).any())
    odd = (history.value.kind[rows] != NOTHING) & ~named[rows]
    rows = rows[~(odd | (named[rows] & elsewhere))]
    return Pairs(rows=rows, others=np.full(len(rows), -1))


def _writes(history: Columns, order: Int64s, got: Bools, write: Bools) -> Writes:
    """Finds the writes that the resource took too late. It numbers the writes that it takes.

    Raises:
        InputError: A write has no number, or its process has not acquired the lock.
    """
    # The last acquire of the same process up to each operation.
    positions = np.arange(len(order))
    latest = np.maximum.accumulate(np.where(got[order], positions, -1))
    processes = history.process[order]
    hold = np.full(len(history), -1)
    own = (latest >= 0) & (processes[latest] == processes)
    hold[order[own]] = order[latest[own]]
    taken = np.flatnonzero(write & (history.type == OK))
    number, known = _integers(history, history.result, taken)
    for wrong, expected in (
        (taken[~known[taken]], "a write to answer its number at the resource, an integer of 64 bits"),
        (taken[hold[taken] < 0], "an acquire of the same process before its write"),
    ):
        if len(wrong):
            raise InputError(f"event {history.start[int(wrong[0])]}: expected {expected}")
    taken = taken[np.argsort(number[taken], kind="stable")]
    began = np.maximum.accumulate(history.start[hold[taken]])
    late = np.flatnonzero(began[:-1] > history.end[hold[taken]][1:]) + 1
    # The first write of the holder that acquired the lock last.
    other = np.searchsorted(began, began[late - 1], side="left")
    return Writes(
        taken=len(taken),
        refused=int((write & (history.type == FAIL)).sum()),
        late=_sorted(taken[late], taken[other]),
        hold=hold,
    )


def _sorted(rows: Int64s, others: Int64s) -> Pairs:
    order = np.argsort(rows, kind="stable")
    return Pairs(rows=rows[order], others=others[order])
