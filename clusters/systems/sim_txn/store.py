"""The versions of all keys: in memory, and two files for each commit.

`commit-NUMBER-PART` and a copy are the record of a commit; the part is 0. Both are synced before anybody sees the commit. A
start repairs a damaged file from the other one. A commit with two damaged files is never passed over.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

from clusters.sim import files
from clusters.systems.sim_txn.messages import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.sim.host import Disk
    from harness.op import Value

_COMMIT: Final = "commit"
_COPY: Final = "-copy"
_DIGITS: Final = 9


class Store:
    """The commits of a node.

    Attributes:
        records: All commits, in their order; the first has the number 1.
    """

    def __init__(self, disk: Disk) -> None:
        self.records: list[Record] = []
        self._disk = disk
        self._numbers: dict[str, list[int]] = {}  # by key, the commits that wrote it
        self._values: dict[str, list[Value]] = {}

    def load(self) -> None:
        """Reads the disk.

        Raises:
            files.DamagedFileError: Both files of a commit are damaged, or a commit is not there.
            OSError: The disk is full, and a file needs a repair.
        """
        found: dict[int, list[list[Value]]] = {}
        for name in self._names():
            txn, written = self._whole(name)
            found.setdefault(int(name.split("-")[1]), []).append([txn, *written])
        for number in sorted(found):
            if number != len(self.records) + 1:
                raise files.DamagedFileError(f"commit {len(self.records) + 1} is not there, and commit {number} is")
            (txn, *_), *_ = found[number]
            self.apply(Record(txn, tuple((key, value) for _, *written in found[number] for key, value in written)))

    def save(self, number: int, record: Record, *, part: int = 0, sync: bool = True) -> None:
        """Writes the record of a commit to the disk.

        Raises:
            OSError: The disk is full; there is no record.
        """
        name = f"{_COMMIT}-{number:0{_DIGITS}}-{part}"
        content = [record.txn, [list(pair) for pair in record.written]]
        files.write(self._disk, name, content, sync=sync)
        try:
            files.write(self._disk, name + _COPY, content, sync=sync)
        except OSError:
            self._disk.delete(name)
            self._disk.sync(name)
            raise

    def forget(self) -> None:
        """Removes all commits, on the disk too."""
        for name in [each for each in self._disk.names() if each.startswith(f"{_COMMIT}-")]:
            self._disk.delete(name)
            self._disk.sync(name)
        self.records.clear()
        self._numbers.clear()
        self._values.clear()

    def apply(self, record: Record) -> None:
        """Makes a commit visible."""
        self.records.append(record)
        self.put(record, len(self.records))

    def put(self, record: Record, number: int) -> None:
        """Makes the writes of a commit visible as those of a number."""
        for key, value in record.written:
            self._numbers.setdefault(key, []).append(number)
            self._values.setdefault(key, []).append(value)

    def last(self, key: str) -> int:
        """Returns the last commit that wrote a key; 0 for none."""
        return self._numbers[key][-1] if key in self._numbers else 0

    def at(self, key: str, number: int) -> Value:
        """Returns the value of a key after a commit; None if no commit up to it wrote the key."""
        place = bisect_right(self._numbers.get(key, []), number)
        return self._values[key][place - 1] if place else None

    def _names(self) -> list[str]:
        names = (each.removesuffix(_COPY) for each in self._disk.names() if each.startswith(f"{_COMMIT}-"))
        return sorted(set(names))

    def _whole(self, name: str) -> Any:
        """Returns the content of a commit's file or of its copy, and repairs the other one if it is damaged or absent."""
        damaged, content = [], None
        for each in (name, name + _COPY):
            try:
                content = files.read(self._disk, each)
            except (files.DamagedFileError, FileNotFoundError):
                damaged.append(each)
        if content is None:
            raise files.DamagedFileError(f"both files {name} are damaged")
        for each in damaged:
            files.write(self._disk, each, content)
        return content

    def committed(self) -> Iterator[str]:
        """Yields the transactions of all commits."""
        return (record.txn for record in self.records)
