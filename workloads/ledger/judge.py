"""Checks one ledger against the guarantees of BookKeeper.

Appends and reads are those of a log, so `workloads.log.judge` finds what is lost, changed, in conflict, duplicated, unexpected
or reordered. A read returns confirmed entries only, and need not have the last ones. So an entry is lost only if a read lacks
it that began after a recovery or a close was answered; an entry that earlier reads lack is `missed`. An operation precedes
another if it ended before the other began. A ledger ends once: its first close or recovery fixes the last entry for ever. The
further anomalies:

- `ends-differ`: two recoveries or closes tell different last entries. BookKeeper: two recoveries at once that do not fence each
  other.
- `beyond-end`: an append is acknowledged with an entry above the last one. BookKeeper: recovery reads that do not fence
  (issue 2614), or a fence that meets the first add of a ledger (issue 4701).
- `confirmed-beyond-end`: an entry above the last one was confirmed.
- `under-replicated`: fewer bookies than the ack quorum have a committed entry, of those that the metadata name for it.
  BookKeeper: an add that is complete on the old bookies while the ensemble changes (issues 4097 and 4651), or bookies that
  lost data.
- `misplaced`: no bookie that the metadata name for a committed entry has it, and another one does.

A ledger without an acknowledged append is unknown by itself. It promised nothing, so it hides the verdict of no other ledger.

The judge also counts `confirmed-back`, answers below one that ended before the question began. They are not invalid: a bookie
can have a confirmation that others lack, and the next question can be answered by those.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from checker.formats.columns import GREAT, INTEGER, NEVER, OK, OTHER
from checker.judging import Anomaly
from checker.judging.rules import Rule, joined
from checker.values import decode_value
from checker.words import Instant, sentence
from harness.console.documents import shown
from harness.console.plain import name as plain_name
from harness.errors import InputError
from harness.verdict import Verdict
from workloads.ledger.inspection import Inspection, inspection_of
from workloads.log.judge import judge_log_within
from workloads.log.reading import rows_by_function

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checker.formats.columns import Columns, Int64s
    from checker.judging import Judgement

    Scarce = tuple[
        int, int, int, Sequence[str]
    ]  # row, entry, the number of its bookies that have it, and others that do

ENDS: Final = ("recover", "close")
INSPECT: Final = "inspect"
SCARCE: Final = "under-replicated"  # also a function of older histories
FUNCTIONS: Final = ("append", "read", "confirmed", INSPECT, SCARCE, *ENDS)
OF_VALUES: Final = ("duplicated", "unexpected")  # anomalies whose subject is a value, and not an entry
MISPLACED: Final = "misplaced"
MOST_NAMES: Final = 20
MOST_ENTRIES: Final = 3  # of an anomaly
KINDS: Final = ("ends-differ", "beyond-end", "confirmed-beyond-end", SCARCE, MISPLACED)


def judge_ledger(history: Columns) -> Judgement:
    """Decides the operations of one ledger.

    Args:
        history: The operations.

    Raises:
        InputError: The workload has no such operation, or an answer is no id of an entry.
    """
    by_function = rows_by_function(history, FUNCTIONS, "a ledger has")
    of_log = np.sort(np.concatenate([by_function["append"], by_function["read"]]))
    ends = _answered(history, np.sort(np.concatenate([by_function[name] for name in ENDS])))
    ended = int(history.end[ends].min(initial=NEVER))
    logged = judge_log_within(history, of_log, linearizable=False, follow=False, whole_from=ended)
    confirmed = _answered(history, by_function["confirmed"])
    inspections = _inspections(history, by_function[INSPECT])
    own = [
        *_ends_differ(history, ends),
        *_beyond_end(history, ends, _answered(history, by_function["append"])),
        *_confirmed_beyond_end(history, ends, confirmed),
        *_under_replicated(history, ends, _counted(history, by_function[SCARCE], inspections), by_function["append"]),
    ]
    counts = {kind: len(_of_kind(own, kind)) for kind in KINDS}
    figures = {
        "recoveries": len(ends),
        "questions": len(confirmed),
        "confirmed-back": _back(history, confirmed),
        "counts-of-copies": len(inspections) + int(np.count_nonzero(history.type[by_function[SCARCE]] == OK)),
    }
    wrong = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    agree = f"{len(ends)} recoveries and closes agree about the last entry."
    judgement = joined(
        [Rule(kind=kind, anomalies=partial(_of_kind, own, kind)) for kind in KINDS],
        {**figures, **counts},
        logged,
        broken=f"The ledger is wrong: {wrong}.",
        more=agree if logged.verdict is Verdict.VALID else "",
        told=own,  # one kind of copies may be told before or after the other
        last=_last_beyond_end(history, own),
    )
    return replace(judgement, anomalies=_told(history, judgement.anomalies, ends, inspections))


def _of_kind(anomalies: Sequence[Anomaly], kind: str) -> list[Anomaly]:
    return [anomaly for anomaly in anomalies if anomaly.kind == kind]


def _answered(history: Columns, rows: Int64s) -> Int64s:
    """Returns the rows with an answer, which is the id of an entry or -1.

    Raises:
        InputError: An answer is none of them.
    """
    answered: Int64s = rows[history.type[rows] == OK]
    ids = history.result.first[answered]
    bad = np.flatnonzero((history.result.kind[answered] != INTEGER) | (ids < -1))
    if len(bad):
        row = int(answered[bad[0]])
        name = history.functions[int(history.function[row])]
        raise InputError(f"event {history.end[row]}: expected the id of an entry as the result of {shown(name)}")
    return answered


def _ends_differ(history: Columns, ends: Int64s) -> Iterator[Anomaly]:
    if not len(ends):
        return
    first = _first_to_end(history, ends)
    for row in ends[history.result.first[ends] != history.result.first[first]].tolist():
        yield Anomaly(
            kind="ends-differ",
            subject=int(history.result.first[row]),
            explanation=sentence(
                "the ledger has two ends: ", *_did(history, first), ", and ", *_did(history, row), "."
            ),
            rows=(first, row),
            decisive=row,
        )


def _beyond_end(history: Columns, ends: Int64s, appends: Int64s) -> Iterator[Anomaly]:
    if not len(ends):
        return
    first = _first_to_end(history, ends)
    last = int(history.result.first[first])
    for row in appends[history.result.first[appends] > last].tolist():
        after = history.start[row] > history.end[first]
        before = history.end[row] < history.start[first]
        when = "after it" if after else "before it, so the entry is lost" if before else "at the same time"
        yield Anomaly(
            kind="beyond-end",
            subject=int(history.result.first[row]),
            explanation=sentence(
                "an entry is acknowledged beyond the end of its ledger: ",
                *_did(history, first),
                f", and process {history.process[row]} appended entry {history.result.first[row]} {when}, acknowledged at ",
                _at(history, row),
                ".",
            ),
            rows=(first, row),
            decisive=row,
        )


def _last_beyond_end(history: Columns, anomalies: Sequence[Anomaly]) -> dict[str, Anomaly]:
    """Returns the anomaly of the entry beyond the end that was acknowledged last, by its kind."""
    beyond = [anomaly for anomaly in anomalies if anomaly.kind == "beyond-end" and anomaly.decisive is not None]
    if not beyond:
        return {}
    last = max(beyond, key=lambda anomaly: history.end[anomaly.decisive])
    return {last.kind: replace(last, rows=(int(last.rows[-1]), int(last.rows[0])))}


def _confirmed_beyond_end(history: Columns, ends: Int64s, confirmed: Int64s) -> Iterator[Anomaly]:
    if not len(ends):
        return
    first = _first_to_end(history, ends)
    for row in confirmed[history.result.first[confirmed] > history.result.first[first]].tolist():
        yield Anomaly(
            kind="confirmed-beyond-end",
            subject=int(history.result.first[row]),
            explanation=sentence(
                "an entry was confirmed beyond the end of its ledger: ",
                *_did(history, first),
                ", and ",
                *_did(history, row),
                ".",
            ),
            rows=(first, row),
            decisive=row,
        )


def _inspections(history: Columns, rows: Int64s) -> dict[int, Inspection]:
    """Returns the inspections by their rows.

    Raises:
        InputError: A result is none.
    """
    by_row: dict[int, Inspection] = {}
    for row in rows[history.type[rows] == OK].tolist():
        is_text = history.result.kind[row] == OTHER
        inspection = inspection_of(decode_value(history.texts[int(history.result.first[row])])) if is_text else None
        if inspection is None:
            raise InputError(
                f"event {history.end[row]}: expected a map with ledger, state, last, write, ack, fragments, entries, fences, "
                f"unread as the result of {INSPECT}; docs/reference/judges.md has its form"
            )
        by_row[row] = inspection
    return by_row


def _told(
    history: Columns, anomalies: Sequence[Anomaly], ends: Int64s, inspections: Mapping[int, Inspection]
) -> list[Anomaly]:
    """Returns anomalies whose explanations also name the fragment of the entry, its copies, the recovery and the fences."""
    if not inspections:
        return [*anomalies]
    told: list[Anomaly] = []
    for anomaly in anomalies:
        row = next((candidate for candidate in anomaly.rows if candidate in inspections), next(iter(inspections)))
        inspection = inspections[row]
        entries = inspection.entries_with(anomaly.subject) if anomaly.kind in OF_VALUES else [anomaly.subject]
        if anomaly.kind == "ends-differ":  # the entry that only one of both ends has
            entries = [max(int(history.result.first[number]) for number in anomaly.rows)]
        parts: list[str | Instant] = []
        if len(ends) and not {*ends.tolist()} & {*anomaly.rows}:
            parts += [*_did(history, _first_to_end(history, ends)), ". "]
        for entry in entries[:MOST_ENTRIES]:
            parts += [" " if entry != entries[0] else "", *inspection.told(max(0, entry), _at(history, row))]
        told.append(replace(anomaly, explanation=f"{anomaly.explanation} {sentence(*parts)}".rstrip()))
    return told


def _counted(history: Columns, counts: Int64s, inspections: Mapping[int, Inspection]) -> list[Scarce]:
    """Returns the entries with too few copies, as inspections and the counts of older histories have them."""
    older = [(row, *scarce) for row in counts[history.type[counts] == OK].tolist() for scarce in _scarce(history, row)]
    return [*older, *((row, *scarce) for row, inspection in inspections.items() for scarce in inspection.scarce())]


def _under_replicated(history: Columns, ends: Int64s, told: Sequence[Scarce], appends: Int64s) -> Iterator[Anomaly]:
    """Yields each committed entry with too few copies once, or at the wrong bookies only; the acknowledged ones first."""
    if not len(ends):
        return
    first = _first_to_end(history, ends)
    last = int(history.result.first[first])
    acknowledged = appends[history.type[appends] == OK]
    by_entry = dict(zip(history.result.first[acknowledged].tolist(), acknowledged.tolist(), strict=True))
    scarce_entries: dict[int, tuple[int, int, Sequence[str]]] = {}
    for row, entry, bookies, elsewhere in told:
        if entry <= last:
            scarce_entries.setdefault(entry, (row, bookies, elsewhere))
    for entry, (row, bookies, elsewhere) in sorted(
        scarce_entries.items(), key=lambda item: (item[0] not in by_entry, item[0])
    ):
        by = [by_entry[entry]] if entry in by_entry else []
        known: list[str | Instant] = []
        for append in by:
            known += [f"process {history.process[append]} appended it, acknowledged at ", _at(history, append), "; "]
        others = " No bookie that the metadata do not name for it has it."
        if history.functions[int(history.function[row])] == INSPECT:
            others = ""  # the sentences about the inspection say it
        elif elsewhere:
            have = "has" if len(elsewhere) == 1 else "have"
            others = (
                f" {', '.join(elsewhere)} {have} it, and the metadata do not name {'it' if have == 'has' else 'them'}."
            )
        yield Anomaly(
            kind=MISPLACED if elsewhere and not bookies else SCARCE,
            subject=entry,
            explanation=sentence(
                f"entry {entry} has too few copies: ",
                *known,
                *_did(history, first),
                f"; and process {history.process[row]} found it on {bookies} of its bookies at ",
                _at(history, row),
                ", fewer than the ack quorum.",
                others,
            ),
            rows=(*by, first, row),
            decisive=row,
        )


def _scarce(history: Columns, row: int) -> Iterator[tuple[int, int, Sequence[str]]]:
    """Yields the entries of a count of copies, each with the number of its bookies, and the other bookies that have it.

    Histories of older versions have only the number.

    Raises:
        InputError: The result is no list of such pairs.
    """
    is_list = history.result.kind[row] == OTHER
    value = decode_value(history.texts[int(history.result.first[row])]) if is_list else None
    for pair in value if isinstance(value, list) else [value]:
        match pair:
            case [int(entry), int(bookies), *rest] if 0 <= entry < GREAT and 0 <= bookies < GREAT and _are_names(rest):
                yield entry, bookies, [plain_name(name) for names in rest for name in names[:MOST_NAMES]]
            case _:
                raise InputError(
                    f"event {history.end[row]}: expected [[id, bookies, [other, ...]], ...] as the result "
                    f"of {SCARCE}, found {shown(pair)}"
                )


def _are_names(rest: list[Any]) -> bool:
    return len(rest) <= 1 and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in rest
    )


def _back(history: Columns, confirmed: Int64s) -> int:
    """Returns the number of answers that are lower than one that ended before the question began."""
    ended = confirmed[np.argsort(history.end[confirmed], kind="stable")]
    highest = np.concatenate([[-1], np.maximum.accumulate(history.result.first[ended])])
    before = np.searchsorted(history.end[ended], history.start[confirmed])
    return int(np.count_nonzero(history.result.first[confirmed] < highest[before]))


def _first_to_end(history: Columns, rows: Int64s) -> int:
    return int(rows[int(np.argmin(history.end[rows]))])


def _did(history: Columns, row: int) -> tuple[str | Instant, ...]:
    name = history.functions[int(history.function[row])]
    verb = {"recover": "recovered the ledger to", "close": "closed the ledger with"}.get(name, "was told")
    entry = int(history.result.first[row])
    what = (
        "no entry" if entry < 0 else f"the last entry {entry}" if name in ENDS else f"the last confirmed entry {entry}"
    )
    return f"process {history.process[row]} {verb} {what} at ", _at(history, row)


def _at(history: Columns, row: int) -> Instant:
    return Instant(time_ns=int(history.end_ns[row]), index=int(history.end[row]))
