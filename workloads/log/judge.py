"""Checks one log against the guarantees of a log.

An operation precedes another if it ended before the other began. An entry is known at its offset from the first proof on: an
append with that offset was acknowledged, or a read with the entry ended. The anomalies, with causes that systems had:

- `lost`: a read that began after an entry was known covers its offset and lacks it, and no later read has it. Or an append was
  acknowledged without an offset, and later reads cover every offset between its neighbours without its value. Causes: an
  unclean election, or a new leader that truncates a committed entry. If reads need not be linearizable, the last read that
  covers the offset must have begun after the last append ended, as a final read does. Without such a read, the verdict is
  unknown.
- `stale`: the same as lost, but a later read has the entry. It is stale from the moment at which it was known until the last
  read that lacks it began. Causes: a follower that lags answers, or a deposed leader. The judge always counts stale entries,
  but they are invalid only if reads must be linearizable.
- `conflict`: two acknowledged appends have one offset; or an answer and a read, or two overlapping reads, have two values at
  one offset. Causes: replicas diverged after a truncation, or two leaders assign the same index.
- `changed`: a read has one value at an offset, and a later read has another. Cause: a reader saw an entry before it was
  committed, and another entry replaced it.
- `duplicated`: a value is at more offsets than there are appends of it that may have happened. Cause: a client repeats an
  append after a time-out.
- `unexpected`: a read has a value, and every append of it failed or had not begun. Causes: the system refuses an append and
  commits it later, or a file is damaged.
- `reordered`: an append began after an entry was known, and its own entry is at a lower offset. Cause: an old leader
  assigns offsets that a new leader has passed.

These are wrong only where reads follow the log, as a watch or a consumer does. Then a read shows entries in the order of the
log, each once, from its first offset on. It may end early, but it leaves out no entry:

- `skipped`: a read lacks an entry that it covers, and has a higher one. The entry was not known when the read began, or it is
  lost or stale. Cause: a watch drops events.
- `repeated`: a read has an offset twice. Cause: a watch that catches up, or that is begun again, sends an event twice.
- `disordered`: a read has an offset directly after a higher one, and does not repeat it. Cause: a watch sends new events before
  old ones.
- `outside`: a read has an offset that it does not cover. Cause: a watch sends events older than its start.

The judge also counts `missed`, entries that the last read of their offset lacks, if this read shows no loss; `recovered`,
appends without an answer that a read has; `never-read`, acknowledged appends that no read has and no later read covers; and
`ok`, acknowledged appends that reads have, and that are neither lost, missed, stale nor in conflict.

The judge is exact for values with one append. For a repeated value, only an answer shows which append an entry belongs to. So
`reordered` ignores an append of such a value without an offset. The append is not lost if the value is at any offset.
`duplicated` compares the number of offsets with the number of appends. The reason has the number of such values.

A range read need not be atomic. The judge assumes that nothing removes entries on purpose, such as retention or compaction. It
finds each anomaly with arrays in near-linear time; only the reported ones become Python objects.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from checker.formats.columns import FAIL, INFO, NEVER, OK
from checker.judging import UNPROMISED, UNTESTED
from checker.judging.rules import broken_by, judged
from harness.console.plain import counted
from workloads.log.anomalies import last_of, rules_of
from workloads.log.facts import facts_of
from workloads.log.figures import figures_of, picture
from workloads.log.findings import findings_of
from workloads.log.reading import read_log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Anomaly, Judgement
    from workloads.log.facts import Facts
    from workloads.log.findings import Findings


def judge_log(history: Columns, *, linearizable: bool, follow: bool, whole_from: int = -1) -> Judgement:
    """Decides the operations of one log.

    Args:
        history: The operations.
        linearizable: Whether stale reads are invalid.
        follow: Whether reads follow the log.
        whole_from: See `workloads.log.findings.findings_of`.

    Raises:
        InputError: The workload has no such operation.
    """
    facts = facts_of(read_log(history))
    findings = findings_of(facts, linearizable=linearizable, follow=follow, whole_from=whole_from)
    counts = _counts(facts, findings)
    rules = rules_of(facts, findings, linearizable=linearizable)
    wrong = ", ".join(f"{counts[rule.kind]} {rule.kind}" for rule in broken_by(rules, counts))
    untested = _untested(facts, counts, len(findings.missed))
    repeated = int(np.count_nonzero(facts.values.tried > 1))
    more = ""
    if repeated:
        more = f" {repeated} values were appended more than once; only answers say which entry belongs to which append."
    return judged(
        rules,
        counts,
        held=f"{_read(counts)}{more}",
        untested=None if untested is None else f"{untested}{more}",
        broken=f"The log is wrong: {wrong}.{more}",
        last=last_of(facts, findings),
        figures=figures_of(facts, findings),
        plot=picture(facts, findings),
        cause=UNTESTED if counts["acknowledged"] else UNPROMISED,
    )


def judge_log_within(
    history: Columns, rows: Int64s, *, linearizable: bool, follow: bool, whole_from: int = -1
) -> Judgement:
    """Decides the appends and reads among other operations; see `judge_log`.

    Args:
        history: All operations.
        rows: The rows of the appends and reads, ascending.
        linearizable: Whether stale reads are invalid.
        follow: Whether reads follow the log.
        whole_from: See `workloads.log.findings.findings_of`.

    Returns:
        The judgement; its anomalies have rows of the whole history.

    Raises:
        InputError: A row is no operation of a log.
    """
    judged = judge_log(history.only(rows), linearizable=linearizable, follow=follow, whole_from=whole_from)

    def moved(anomaly: Anomaly) -> Anomaly:
        return replace(
            anomaly,
            rows=tuple(int(rows[row]) for row in anomaly.rows),
            decisive=None if anomaly.decisive is None else int(rows[anomaly.decisive]),
        )

    last = {kind: moved(anomaly) for kind, anomaly in judged.last.items()}
    return replace(judged, anomalies=[*map(moved, judged.anomalies)], last=last)


def _untested(facts: Facts, counts: Mapping[str, int], missed: int) -> str | None:
    """Returns why a loss may be unseen; None if it is not. `missed`: the number of entries that may be only late."""
    acknowledged = counts["acknowledged"]
    if not counts["ok"] and not counts["recovered"] and not counts["stale"]:
        return (
            f"No read has anything that was appended, so nothing was tested: {acknowledged} of {len(facts.log.append)} "
            f"appends were acknowledged, and {len(facts.log.read)} reads succeeded."
        )
    if not acknowledged:
        return f"None of {counted(len(facts.log.append), 'append')} was acknowledged, so no loss could be seen."
    if missed:
        return (
            f"At {counted(missed, 'offset')}, the last read lacks an entry that was known before it began. Reads may be old, "
            "and this one began too early to have it for certain, so the entry need not be lost."
        )
    return _read(counts) if counts["never-read"] else None


def _read(counts: Mapping[str, int]) -> str:
    """Returns how many acknowledged appends were read; none of them is lost or in conflict."""
    acknowledged, unread = counts["acknowledged"], counts["never-read"]
    stale = f" {counted(counts['stale'], 'offset')} had a stale read before." if counts["stale"] else ""
    left = f" {unread} were never read, so a loss of them was not seen." if unread else ""
    return f"{acknowledged - unread} of {acknowledged} acknowledged appends were read at their offsets.{stale}{left}"


def _counts(facts: Facts, findings: Findings) -> dict[str, int]:
    log, values, index = facts.log, facts.values, facts.appends.place
    kind = log.history.type[log.append]
    acknowledged = kind == OK
    at = index[acknowledged & (index >= 0)]
    bad = findings.missing | facts.places.conflict
    read = facts.places.seen[at] >= 0
    unplaced = np.flatnonzero(acknowledged & (index < 0))
    anywhere = values.offsets[facts.appends.value[unplaced]] > 0
    nowhere = ~anywhere & ~facts.appends.vanished[unplaced]
    recovered = np.clip(values.offsets - values.acknowledged, 0, values.tried - values.acknowledged)
    return {
        "acknowledged": int(np.count_nonzero(acknowledged)),
        "failed": int(np.count_nonzero(kind == FAIL)),
        "unanswered": int(np.count_nonzero(kind == INFO)),
        "ok": int(np.count_nonzero(read & ~bad[at]) + np.count_nonzero(anywhere)),
        "recovered": int(recovered[values.read != NEVER].sum()),
        "never-read": int(np.count_nonzero(~read & ~bad[at]) + np.count_nonzero(nowhere)),
        "missed": len(findings.missed),
        **findings.totals(),
    }
