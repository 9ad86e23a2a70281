"""The log of commits of a node, the versions of all keys, and the node's vote: in memory, and in two files each.

`commit-NUMBER-PART` and a copy are a record; the part is 0. Both are synced before anybody hears of the record. A start repairs
a damaged file from the other one. A record with two damaged files is never passed over.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

from clusters.sim import files
from clusters.sim.host import DiskFull
from clusters.systems.sim_txn.messages import Record

if TYPE_CHECKING:
    from clusters.sim.host import Disk
    from harness.op import Value

_COMMIT: Final = "commit"
_COPY: Final = "-copy"
_DIGITS: Final = 9
_VOTE: Final = "vote"
_NEWEST: Final = "newest"


class Store:
    """The records of a node.

    Attributes:
        records: All records, in their order; the first has the number 1.
        term: The newest term that the node knows.
        voted: The node that it voted for in this term; None for none.
    """

    def __init__(self, disk: Disk) -> None:
        self.records: list[Record] = []
        self.term = 0
        self.voted: str | None = None
        self._disk = disk
        self._numbers: dict[str, list[int]] = {}  # by key, the commits that wrote it
        self._values: dict[str, list[Value]] = {}

    def load(self) -> None:
        """Reads the disk.

        Raises:
            files.DamagedFileError: Both files of a commit are damaged, or a commit is not there.
            OSError: The disk is full, and a file needs a repair.
        """
        kept = files.read_promises(self._disk, _VOTE).get(_NEWEST)
        if kept is not None:
            _, self.term, self.voted = kept
        by_number: dict[int, list[list[Value]]] = {}
        for name in self._names():
            by_number.setdefault(int(name.split("-")[1]), []).append(self._whole(name))
        for number in sorted(by_number):
            if number != len(self.records) + 1:
                raise files.DamagedFileError(f"commit {len(self.records) + 1} is not there, and commit {number} is")
            (txn, term, _), *_ = by_number[number]
            written = tuple((key, value) for _, _, pairs in by_number[number] for key, value in pairs)
            self.apply(Record(txn, written, term))

    def vote(self, term: int, voted: str | None) -> None:
        """Keeps the term and the vote, on the disk first.

        Raises:
            OSError: The disk is full; both are as before.
        """
        if (term, voted) != (self.term, self.voted):
            files.write_promise(self._disk, _VOTE, _NEWEST, [2 * term + (voted is not None), term, voted])
            self.term, self.voted = term, voted

    def save(self, number: int, record: Record, *, part: int = 0, sync: bool = True, trusts: bool = False) -> None:
        """Writes a record to the disk, as `files.write` does.

        Raises:
            OSError: The disk is full; there is no record.
        """
        name = f"{_COMMIT}-{number:0{_DIGITS}}-{part}"
        content = [record.txn, record.term, [list(pair) for pair in record.written]]
        files.write(self._disk, name, content, sync=sync, trusts=trusts)
        try:
            files.write(self._disk, name + _COPY, content, sync=sync, trusts=trusts)
        except DiskFull:
            self._disk.delete(name)
            self._disk.sync(name)
            raise

    def cut(self, kept: int) -> None:
        """Removes all records after a number, on the disk too."""
        for name in reversed([other for other in self._disk.names() if other.startswith(f"{_COMMIT}-")]):
            if int(name.split("-")[1]) > kept:
                self._disk.delete(name)
                self._disk.sync(name)
        for record in self.records[kept:]:
            for key, _ in record.written:
                left = bisect_right(self._numbers[key], kept)
                del self._numbers[key][left:], self._values[key][left:]
        del self.records[kept:]

    def apply(self, record: Record) -> None:
        """Adds a record, and its versions."""
        self.records.append(record)
        self.put(record, len(self.records))

    def put(self, record: Record, number: int) -> None:
        """Adds the versions of a record with a number."""
        for key, value in record.written:
            self._numbers.setdefault(key, []).append(number)
            self._values.setdefault(key, []).append(value)

    def last(self, key: str) -> int:
        """Returns the number of the last record that wrote a key; 0 for none."""
        return self._numbers[key][-1] if self._numbers.get(key) else 0

    def at(self, key: str, number: int) -> Value:
        """Returns the value of a key after a record; None if no record up to it wrote the key."""
        index = bisect_right(self._numbers.get(key, []), number)
        return self._values[key][index - 1] if index else None

    def _names(self) -> list[str]:
        names = (name.removesuffix(_COPY) for name in self._disk.names() if name.startswith(f"{_COMMIT}-"))
        return sorted(set(names))

    def _whole(self, name: str) -> Any:
        """Returns the content of a commit's file or of its copy, and repairs the other one if it is damaged or absent."""
        damaged, content = [], None
        for file in (name, name + _COPY):
            try:
                content = files.read(self._disk, file)
            except (files.DamagedFileError, FileNotFoundError):
                damaged.append(file)
        if content is None:
            raise files.DamagedFileError(f"both files {name} are damaged")
        for file in damaged:
            files.write(self._disk, file, content)
        return content

    def last_record(self) -> tuple[int, int]:
        """Returns the number of the last record, and its term; zeros for none."""
        return len(self.records), self.records[-1].term if self.records else 0

    def term_at(self, number: int) -> int:
        """Returns the term of a record; 0 for the number 0."""
        return self.records[number - 1].term if number else 0
