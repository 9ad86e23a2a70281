"""Writes large histories of registers, whose answers come in another order than the commits of the store.

Half of the micro-operations are blind writes, so no read shows the order of most versions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from random import Random

PROCESSES: Final = 10
MAX_LENGTH: Final = 4
STALE: Final = 50  # how many commits a replica lags behind at most

Mops = list[list[Any]]


@dataclass(slots=True)
class _Open:
    """A transaction that began.

    Attributes:
        request: Its micro-operations.
        began: How many transactions had committed then.
        commits_at: The step at which it takes effect.
        ends_at: The step at which its answer comes.
        answer: Its answer, after it took effect; None also if it failed.
    """

    request: Mops
    began: int
    commits_at: int
    ends_at: int
    answer: Mops | None = None


@dataclass(slots=True)
class Store:
    """A store of registers, which commits while a transaction is open.

    Attributes:
        random: Draws everything.
        keys: How many keys are used at one time.
        writes_per_key: After so many writes a key is replaced by a new one; 0: never.
        on_snapshots: Whether a transaction reads what was committed when it began, and fails if another one wrote one of its
            keys since: snapshot isolation. Else it is serial.
        stale: Whether a transaction that only reads sees an old state: serializable, but not in real time.
    """

    random: Random
    keys: int
    writes_per_key: int = 0
    on_snapshots: bool = False
    stale: bool = False
    _values: dict[int, list[tuple[int, int]]] = field(default_factory=dict, init=False)
    _writes: dict[int, int] = field(default_factory=dict, init=False)
    _active: list[int] = field(default_factory=list, init=False)
    _fresh: int = field(default=0, init=False)
    _commits: int = field(default=0, init=False)

    def events(self, count: int) -> Iterator[str]:
        """Yields the lines of a history of some transactions as JSON Lines."""
        self._active, self._fresh = list(range(self.keys)), self.keys
        open_: dict[int, _Open] = {}
        begun = at = 0
        while begun < count or open_:
            at += 1
            for transaction in [transaction for transaction in open_.values() if transaction.commits_at == at]:
                transaction.answer = self._committed(transaction)
            for process in [process for process, transaction in open_.items() if transaction.ends_at == at]:
                done = open_.pop(process)
                yield event("fail" if done.answer is None else "ok", process, done.answer or done.request, at)
            free = [process for process in range(PROCESSES) if process not in open_]
            if free and begun < count and self.random.random() < 0.7:
                begun += 1
                commits_at = at + self.random.randint(1, 12)
                process = self.random.choice(free)
                open_[process] = _Open(
                    self._drawn(), self._commits, commits_at, commits_at + self.random.randint(1, 12)
                )
                yield event("invoke", process, open_[process].request, at)

    def _drawn(self) -> Mops:
        mops: Mops = []
        for _ in range(self.random.randint(1, MAX_LENGTH)):
            index = self.random.randrange(self.keys)
            key = self._active[index]
            if self.random.random() < 0.5:
                mops.append(["r", key, None])
                continue
            self._writes[key] = self._writes.get(key, 0) + 1
            mops.append(["w", key, self._writes[key]])
            if self._writes[key] == self.writes_per_key:
                self._active[index], self._fresh = self._fresh, self._fresh + 1
        return mops

    def _committed(self, transaction: _Open) -> Mops | None:
        """Returns the answer; None if the transaction fails."""
        writes = {key for f, key, _ in transaction.request if f == "w"}
        seen = transaction.began if self.on_snapshots else self._commits
        if self.on_snapshots and any(self._at(key, self._commits) != self._at(key, seen) for key in writes):
            return None
        if self.stale and not writes:
            seen = max(0, seen - self.random.randrange(STALE))
        own: dict[int, int] = {}
        answer: Mops = []
        for f, key, value in transaction.request:
            if f == "w":
                own[key] = value
            answer.append([f, key, own.get(key, self._at(key, seen)) if f == "r" else value])
        self._commits += bool(own)
        for key, value in own.items():
            self._values.setdefault(key, []).append((self._commits, value))
        return answer

    def _at(self, key: int, commits: int) -> int | None:
        """Returns the value of a key after some commits."""
        return next((value for number, value in reversed(self._values.get(key, [])) if number <= commits), None)


def skewed(lines: Iterator[str], after: int) -> Iterator[str]:
    """Yields a history with a write skew after some lines: two transactions each miss the write of the other one.

    Both read from a third one, and no read shows the order of the versions.
    """
    for number, line in enumerate(lines):
        if number == after:
            at = json.loads(line)["time"]
            first = [["w", -1, 1], ["w", -2, 1]]
            yield from (event(type_, PROCESSES, first, at) for type_ in ("invoke", "ok"))
            for type_, value in (("invoke", None), ("ok", 1)):
                pair = ([["r", -1, value], ["w", -2, 2]], [["r", -2, value], ["w", -1, 2]])
                yield from (event(type_, PROCESSES + index, mops, at) for index, mops in enumerate(pair))
        yield line


def written(path: Path, lines: Iterator[str]) -> Path:
    """Writes lines to a file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def event(type_: str, process: int, value: Mops, at: int) -> str:
    """Returns an event as a line of JSON."""
    return (
        json.dumps({"type": type_, "process": process, "f": "txn", "value": value, "time": at}, separators=(",", ":"))
        + "\n"
    )
