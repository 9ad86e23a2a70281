"""Checks one log of Maelstrom's workload kafka, and its committed offset.

Sends and polls are those of a log, so `workloads.log.judge` decides them. A commit says that a client has processed all
messages up to an offset (Maelstrom's doc/workloads.md). That stays so, thus commits only raise the committed offset. Maelstrom
itself does not check it, so a breach is only a warning unless commits are strict. An operation precedes another if it ended
before the other began. The further anomalies:

- `committed-back`: a list has a lower offset than an acknowledged commit, or another list, that preceded it. A list without
  the offset is lower than all. If commits need not be fresh, only a list that began after the last commit ended shows this.
- `uncommitted`: a list has a higher offset than all commits that began before it ended, without those that failed, and the
  log has a message above those commits up to this offset. A client that begins after the listed offset never gets that
  message. Without such a message, the list promises nothing false: e.g. 0 where the offsets begin at 1. Lists above all commits
  are left out of `committed-back`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from checker.formats.columns import FAIL, INTEGER, NEVER, NOTHING, OK
from checker.judging import UNTESTED, Anomaly
from checker.judging.rules import Rule, joined
from checker.words import Instant, sentence
from harness.console.plain import counted
from harness.errors import InputError
from workloads.log.judge import judge_log_within
from workloads.log.reading import APPEND, READ, read_log, rows_by_function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judgement

COMMIT: Final = "commit"
LIST: Final = "list"
BACK: Final = "committed-back"
UNCOMMITTED: Final = "uncommitted"
FUNCTIONS: Final = (APPEND, READ, COMMIT, LIST)
_NONE: Final = -(2**62)  # below all offsets


def judge_kafka(history: Columns, *, linearizable: bool, follow: bool, fresh: bool, strict: bool = True) -> Judgement:
    """Decides the operations of one log.

    Args:
        history: The operations.
        linearizable: Whether stale reads are invalid.
        follow: Whether reads follow the log.
        fresh: Whether each list must show the commits that preceded it.
        strict: Whether a list that contradicts the commits is invalid. If not, a sentence warns of it.

    Raises:
        InputError: The workload has no such operation, or an offset is none.
    """
    by_function = rows_by_function(history, FUNCTIONS, "the workload kafka has")
    of_log = np.sort(np.concatenate([by_function[APPEND], by_function[READ]]))
    logged = judge_log_within(history, of_log, linearizable=linearizable, follow=follow)
    commits = by_function[COMMIT]
    _require(history, commits[history.value.kind[commits] != INTEGER], "an offset as the value of commit")
    commits = commits[history.type[commits] != FAIL]
    lists = by_function[LIST]
    lists = lists[history.type[lists] == OK]
    kind = history.result.kind[lists]
    _require(history, lists[(kind != INTEGER) & (kind != NOTHING)], "an offset or null as the result of list")
    above, highest = _above(history, commits, lists)
    too_high = _promised(history, of_log, above, highest)
    backs = _backs(history, commits, np.setdiff1d(lists, above), fresh=fresh)
    rules = [
        Rule(kind=UNCOMMITTED, anomalies=lambda: _explained_high(history, too_high), decides=strict),
        Rule(kind=BACK, anomalies=lambda: _explained_back(history, backs), decides=strict),
    ]
    first = next((anomaly.explanation for rule in rules for anomaly in rule.anomalies()), "")
    warning = unchecked = ""
    if first and not strict:
        count = counted(len(too_high) + len(backs), "list")
        warning = (
            f"Warning: {count} of committed offsets contradict commits. With --strict-commits, this is invalid. The first: "
            f"{first}"
        )
    if len(commits) and not len(lists):
        unchecked = f"No list was answered, so {counted(len(commits), 'commit')} could not be checked."
    acknowledged = int(np.count_nonzero(history.type[commits] == OK))
    return joined(
        rules,
        {"commits": acknowledged, "lists": len(lists), BACK: len(backs), UNCOMMITTED: len(too_high)},
        logged,
        broken=first,
        more=unchecked,
        cause=UNTESTED,  # also without an acknowledged message: a commit promises something
        basis=warning,
    )


def _require(history: Columns, wrong: Int64s, expected: str) -> None:
    if len(wrong):
        raise InputError(f"event {history.start[int(wrong[0])]}: expected {expected}")


def _listed(history: Columns, lists: Int64s) -> Int64s:
    """Returns the offsets of lists; `_NONE` for a list without one."""
    return np.where(history.result.kind[lists] == NOTHING, _NONE, history.result.first[lists])


def _above(history: Columns, commits: Int64s, lists: Int64s) -> tuple[Int64s, Int64s]:
    """Returns the lists with an offset above all commits that may have preceded it, and the highest of these for each."""
    begun = commits[np.argsort(history.start[commits], kind="stable")]
    highest = np.concatenate([[_NONE], np.maximum.accumulate(history.value.first[begun])])
    before = np.searchsorted(history.start[begun], history.end[lists])
    is_above = _listed(history, lists) > highest[before]
    return lists[is_above], highest[before][is_above]


def _promised(history: Columns, of_log: Int64s, above: Int64s, highest: Int64s) -> Int64s:
    """Returns those lists up to whose offset the log has a message that no commit covers.

    Args:
        history: The operations.
        of_log: The rows of the sends and polls.
        above: The rows of lists above all commits.
        highest: For each of them, the highest offset of a commit that may have preceded it.
    """
    if not len(above):
        return above
    log = read_log(history.only(of_log))
    offsets = np.sort(np.concatenate([log.answer[log.answered], log.entry_offset]))
    until = np.searchsorted(offsets, _listed(history, above), side="right")
    promised: Int64s = above[until > np.searchsorted(offsets, highest, side="right")]
    return promised


def _backs(history: Columns, commits: Int64s, lists: Int64s, *, fresh: bool) -> list[tuple[int, int]]:
    """Returns lists with an offset that is too low, each after the commit or the list that showed a higher one."""
    acknowledged = commits[history.type[commits] == OK]
    shows = np.concatenate([acknowledged, lists])
    offset = np.concatenate([history.value.first[acknowledged], _listed(history, lists)])
    order = np.argsort(history.end[shows], kind="stable")
    shows, offset = shows[order], offset[order]
    highest = np.concatenate([[_NONE], np.maximum.accumulate(offset)])
    before = np.searchsorted(history.end[shows], history.start[lists])
    low = _listed(history, lists) < highest[before]
    if not fresh:
        ends = history.end[commits]
        low &= history.start[lists] > ends[ends < NEVER].max(initial=-1)
    first = np.searchsorted(highest[1:], highest[before[low]])
    return list(zip(shows[first].tolist(), lists[low].tolist(), strict=True))


def _explained_high(history: Columns, lists: Int64s) -> Iterator[Anomaly]:
    for row in lists.tolist():
        yield Anomaly(
            kind=UNCOMMITTED,
            subject=int(history.result.first[row]),
            explanation=sentence(
                *_did(history, row),
                ", and no commit of this offset or of a higher one had begun, except those that failed. The log has a message "
                "between.",
            ),
            rows=(row,),
            decisive=row,
        )


def _explained_back(history: Columns, pairs: list[tuple[int, int]]) -> Iterator[Anomaly]:
    for earlier, row in pairs:
        yield Anomaly(
            kind=BACK,
            subject=_offset(history, earlier),
            explanation=sentence(
                "the committed offset went back: ", *_did(history, earlier), ", and later ", *_did(history, row), "."
            ),
            rows=(earlier, row),
            decisive=row,
        )


def _offset(history: Columns, row: int) -> int:
    values = history.value if history.functions[int(history.function[row])] == COMMIT else history.result
    return int(values.first[row])


def _did(history: Columns, row: int) -> tuple[str | Instant, ...]:
    verb = "committed" if history.functions[int(history.function[row])] == COMMIT else "listed"
    is_none = verb == "listed" and history.result.kind[row] == NOTHING
    offset = "no offset" if is_none else f"offset {_offset(history, row)}"
    at = Instant(time_ns=int(history.end_ns[row]), index=int(history.end[row]))
    began = Instant(time_ns=int(history.start_ns[row]), index=int(history.start[row]))
    return f"process {history.process[row]} {verb} {offset} (", began, " to ", at, ")"
