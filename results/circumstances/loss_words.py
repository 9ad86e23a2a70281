"""What each kind of violation means for a user, in the words of the system.

A judge or a model names the kind; this module has the clause, for one case and for several. A kind that is not here has no
first sentence, and the explanation begins the report. `tests/unit/results/test_losses.py` walks the kinds of all judges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from checker.consistency import ANOMALIES

if TYPE_CHECKING:
    from collections.abc import Mapping


class Words(NamedTuple):
    """The clause for a kind.

    Attributes:
        one: For one case.
        several: For several, with the field `n`; empty: the clause for one, whatever the number.
        gone: Whether something is gone that was acknowledged, so that the last of it tells when.
        by_then: Whether it may be about all that happened before, and not only since its own operations began.
    """

    one: str
    several: str = ""
    gone: bool = False
    by_then: bool = False

    def of(self, count: int) -> str:
        """Returns the clause for a number of cases."""
        return self.several.format(n=f"{count:,}") if count > 1 and self.several else self.one


_LOG: Final[Mapping[str, Words]] = {
    "lost": Words("an entry of the log is gone", "{n} entries of the log are gone", gone=True),
    "stale": Words("a read missed an entry that was known before", "reads missed {n} entries that were known before"),
    "conflict": Words(
        "an offset of the log has two entries", "{n} offsets of the log have two entries each", gone=True
    ),
    "changed": Words("an entry of the log changed", "{n} entries of the log changed"),
    "duplicated": Words(
        "a value is in the log more often than it was appended", "{n} values are in the log more often than appended"
    ),
    "unexpected": Words(
        "the log has a value that nobody had appended",
        "the log has {n} values that nobody had appended",
        by_then=True,
    ),
    "reordered": Words("entries of the log are in another order than their appends"),
    "skipped": Words("a read of the log left an entry out", "reads of the log left {n} entries out"),
    "repeated": Words("a read of the log returned an entry twice"),
    "disordered": Words("a read of the log returned entries in the wrong order"),
    "outside": Words("a read of the log returned an entry that it does not cover"),
}
_OF_JUDGES: Final[Mapping[str, Mapping[str, Words]]] = {
    "set": {
        "lost": Words("an element of the set is gone", "{n} elements of the set are gone", gone=True),
        "stale": Words(
            "a read missed an element that was known before", "reads missed {n} elements that were known before"
        ),
        "unexpected": Words(
            "a read returned an element that nobody had added",
            "reads returned {n} elements that nobody had added",
            by_then=True,
        ),
        "duplicated": Words("a read returned an element twice", "reads returned {n} elements twice"),
        "out-of-order": Words("a read missed an element, and returned a later one"),
        "incomparable": Words("two reads saw two adds in different orders"),
    },
    "log": _LOG,
    "queue": {
        "lost": Words(
            "an acknowledged element never came out of the queue",
            "{n} acknowledged elements never came out of the queue",
            gone=True,
        ),
        "duplicated": Words(
            "an element came out of the queue more often than it was put in",
            "{n} elements came out of the queue more often than they were put in",
        ),
        "unexpected": Words(
            "an element came out of the queue that nobody had put in",
            "{n} elements came out of the queue that nobody had put in",
            by_then=True,
        ),
        "reordered": Words("elements came out of the queue in the wrong order"),
    },
    "lock": {
        "two-holders": Words("two clients held the lock at the same time"),
        "token-not-growing": Words("a later holder of the lock got a smaller token"),
        "token-twice": Words("two holders of the lock got the same token"),
        "released-by-other": Words("a client released a lock that it did not hold"),
        "late-write": Words("the resource took a write of an earlier holder of the lock after one of a later holder"),
    },
    "counter": {
        "out-of-bounds": Words("a read of the counter returned a sum that no order of the adds gives", by_then=True)
    },
    "ledger": {
        **_LOG,
        "ends-differ": Words("a closed ledger has two ends"),
        "beyond-end": Words(
            "an acknowledged entry is beyond the end of its closed ledger",
            "{n} acknowledged entries are beyond the end of their closed ledger",
            gone=True,
        ),
        "confirmed-beyond-end": Words("a confirmed entry is beyond the end of its closed ledger"),
        "under-replicated": Words(
            "an entry of a closed ledger has too few copies", "{n} entries of closed ledgers have too few copies"
        ),
        "misplaced": Words("an entry of a closed ledger is only on bookies that its metadata do not name"),
    },
    "kafka": {
        **_LOG,
        "committed-back": Words("a committed offset went back"),
        "uncommitted": Words("an offset counts as committed that nobody had committed"),
    },
    "unique-ids": {"given-twice": Words("an id was given twice", "{n} ids were given twice")},
    "echo": {"other-value": Words("an answer is not the echo of its request")},
}
_SETS: Final = _OF_JUDGES["set"]
_REGISTER: Final[Mapping[str, Words]] = {
    "phantom": Words("a read returned a value that nobody had written", by_then=True),
    "future": Words("a read returned a value before anybody wrote it"),
    "lost-update": Words("two compare-and-sets replaced the same value, so an acknowledged update is lost"),
}
_QUEUE: Final[Mapping[str, Words]] = {
    "phantom": Words("an element came out of the queue that nobody had put in", by_then=True),
    "future": Words("an element came out of the queue before anybody put it in"),
    "duplicate": Words("an element came out of the queue more often than it was put in"),
    "order": Words("elements came out of the queue in the wrong order"),
    "lost": Words("an acknowledged element did not come out of the queue in its turn"),
    "not-empty": Words("a client found the queue empty, and it was not"),
}
_LOCK: Final[Mapping[str, Words]] = {"overlap": Words("two clients held the lock at the same time")}
_OF_MODELS: Final[Mapping[str, Mapping[str, Words]]] = {
    "register": _REGISTER,
    "cas-register": _REGISTER,
    "fifo-queue": _QUEUE,
    "unordered-queue": _QUEUE,
    "mutex": _LOCK,
    "owner-mutex": _LOCK,
    "counter": {
        "too-low": Words("a read of the counter lacks an acknowledged add"),
        "too-high": Words("a read of the counter is higher than all adds give"),
    },
    "set": {
        "lost": Words("an element of the set is gone"),
        "phantom": Words("a read returned an element that nobody had added", by_then=True),
    },
    "grow-set": {"phantom": Words("a read returned an element that nobody had added", by_then=True)},
}
_LACKING: Final[Mapping[str, str]] = {
    "set": "a read missed an acknowledged element",
    "grow-set": "a read missed an acknowledged element",
    "list": "a read missed an acknowledged element",
    "counter": _OF_MODELS["counter"]["too-low"].one,
}
# Judges of programs that have another name than the workload whose kinds they use.
_ALSO: Final[Mapping[str, Mapping[str, Words]]] = {"broadcast": _SETS, "g-set": _SETS}


def lacking(model: str) -> str:
    """Returns the clause for an answer that lacks an acknowledged operation, if the kind of the violation has no words."""
    return _LACKING.get(model, "an answer lacks an acknowledged operation")


def words_of(judge: str, model: str | None, kind: str | None) -> Words | None:
    """Returns the words for a kind; None if there are none.

    Args:
        judge: The name of the part of the verdict.
        model: The name of the model that the part has checked; None if a judge has decided.
        kind: The kind of the violation.
    """
    if kind is None:
        return None
    if model is not None:
        return _OF_MODELS.get(model, {}).get(kind)
    words = {**_ALSO, **_OF_JUDGES}.get(judge, {}).get(kind)
    anomaly = kind.removesuffix("-process").removesuffix("-realtime")
    return (
        Words(f"transactions are not isolated: {ANOMALIES[anomaly]}")
        if words is None and anomaly in ANOMALIES
        else words
    )
