"""A simulated disk. It holds the content of each file, and the content that survives a power loss."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from clusters.sim.damage import Edit, changed, edits, picked, reader, unable
from clusters.sim.host import DiskError, DiskFull
from harness.damage import How
from harness.world import Lost, Unsynced

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness.damage import Changed, Damaging
    from harness.world import Failing, Losing

DATA_DIRECTORY = "/data"
_PROBE = ".labrys-room"


class _File:
    """One file.

    Attributes:
        data: The current content; None if the file was deleted.
        durable: The content after a power loss; None: the file does not exist then.
        rewritten: Whether `data` differs from `durable` in more than bytes added at the end.
        failed: How many bytes a sync should have made durable when it failed. Only a new write of the file changes them.
    """

    __slots__ = ("data", "durable", "failed", "rewritten")

    def __init__(self) -> None:
        self.data: bytearray | None = bytearray()
        self.durable: bytearray | None = None
        self.rewritten = True
        self.failed = 0

    def synced(self) -> bytearray | None:
        """Returns what is durable after a sync."""
        if self.data is None or not self.failed:
            return None if self.data is None else bytearray(self.data)
        if self.failed >= len(self.data):
            return self.durable
        before = (self.durable or bytearray())[: self.failed]
        return before + bytes(self.failed - len(before)) + self.data[self.failed :]


class _Rule:
    """Calls that fail.

    Attributes:
        key: The number of the fault.
        failing: The calls.
        seen: How many of them there were.
    """

    __slots__ = ("failing", "key", "seen")

    def __init__(self, key: int, failing: Failing) -> None:
        self.key = key
        self.failing = failing
        self.seen = 0


class _Change:
    """A change that is not durable.

    Attributes:
        number: The number of its step.
        name: The file.
        content: The written bytes; None if it removes the file.
        begin: Where the bytes go; None: they replace the file.
    """

    __slots__ = ("begin", "content", "name", "number")

    def __init__(self, number: int, name: str, content: bytes | None, begin: int | None) -> None:
        self.number = number
        self.name = name
        self.content = content
        self.begin = begin

    def apply(self, data: bytearray | None, *, torn: bool = False) -> bytearray | None:
        """Returns the file after it. A torn write has the first half of its bytes; a replacement is there or not."""
        if self.content is None:
            return None
        if self.begin is None:
            return bytearray(self.content)
        after = bytearray() if data is None else data[: self.begin]
        after.extend(bytes(max(0, self.begin - len(after))))
        return after + (self.content[: len(self.content) // 2] if torn else self.content)


class SimDisk:
    """The disk of one node; see `clusters.sim.host.Disk`.

    Attributes:
        calls: The calls that can fail.
        full: Whether the disk is full. A full disk takes no further byte.
        errors: How many calls have failed by a rule.
        on_error: Is called before a call fails: with the key of the fault, the call, its number and the file.
        on_step: Is called after each step with its kind and the file. None: the disk notes no steps.
    """

    calls: tuple[str, ...] = ("read", "write", "fsync")

    def __init__(self, node: str) -> None:
        self._node = node
        self._files: dict[str, _File] = {}
        self.full = False
        self.errors = 0
        self.on_error: Callable[[int, str, int, str], None] | None = None
        self._rules: list[_Rule] = []
        self.on_step: Callable[[str, str], None] | None = None
        self._steps = 0
        self._changes: list[_Change] = []
        self._held: tuple[dict[str, _File], list[_Change]] | None = None
        self._kept: dict[str, bytes] = {}

    def names(self) -> list[str]:
        """Returns the names of all files, sorted."""
        return sorted(name for name, file in self._files.items() if file.data is not None)

    def read(self, name: str) -> bytes:
        """Returns the whole file."""
        self._check("read", name)
        return bytes(self._data(name))

    def append(self, name: str, content: bytes) -> None:
        """Adds bytes to the end of a file."""
        self._check("write", name)
        self._need_room(name, content)
        file = self._file(name)
        if file.data is None:
            file.data, file.rewritten = bytearray(), True
        begin = len(file.data)
        file.data += content
        self._step("write", name, content, begin)

    def write(self, name: str, content: bytes) -> None:
        """Replaces a whole file."""
        self._check("write", name)
        self._put(name, content)
        self._step("write", name, content)

    def truncate(self, name: str, size: int) -> None:
        """Cuts a file to a size."""
        data = self._data(name)
        if size < len(data):
            del data[max(size, 0) :]
            self._files[name].rewritten = True
            self._files[name].failed = min(self._files[name].failed, len(data))
            self._step("truncate", name, b"", len(data))

    def delete(self, name: str) -> None:
        """Removes a file."""
        file = self._files.get(name)
        if file is not None:
            file.data, file.rewritten = None, True
            self._step("remove", name, None)

    def sync(self, name: str) -> None:
        """Makes the file's content, or its absence, durable."""
        file = self._files.get(name)
        if file is None:
            return
        try:
            self._check("fsync", name)
        except DiskError:
            file.failed = len(file.data or b"")
            raise
        if file.data is None:
            del self._files[name]
        elif file.failed:
            file.durable, file.rewritten = file.synced(), False
        elif file.rewritten or file.durable is None:
            file.durable, file.rewritten = bytearray(file.data), False
        else:
            file.durable += file.data[len(file.durable) :]
        self._changes = [change for change in self._changes if change.name != name]
        self._step("sync", name)

    def fail(self, key: int, failing: Failing) -> None:
        """Lets calls fail from now on, until `mend` with the key of the fault."""
        self._rules.append(_Rule(key, failing))

    def mend(self, key: int | None) -> None:
        """Removes the rules of a fault; None: all rules."""
        self._rules = [rule for rule in self._rules if key not in {None, rule.key}]

    def _check(self, call: str, name: str) -> None:
        """Counts a call on a file, and lets it fail by a rule."""
        for rule in self._rules:
            if rule.failing.call != call or not fnmatchcase(name, rule.failing.pattern):
                continue
            rule.seen += 1
            if rule.failing.nth <= rule.seen < rule.failing.nth + rule.failing.times:
                self.errors += 1
                if self.on_error is not None:
                    self.on_error(rule.key, call, rule.seen, name)
                raise DiskError(rule.failing.error, "an error of the simulated disk", name)

    def wipe(self) -> None:
        """Removes all files. A power loss does not bring them back."""
        self._files.clear()
        self._changes.clear()
        self._held = None

    def unsynced(self) -> tuple[Unsynced, ...]:
        """Returns the changes that are not durable, the oldest first. The disk must note its steps."""
        return tuple(
            Unsynced(number=change.number, names=change.content is None, file=change.name) for change in self._changes
        )

    @property
    def steps(self) -> int:
        """Returns the number of steps that it noted."""
        return self._steps

    def hold(self) -> None:
        """Remembers the disk as it is now, for `go_back`."""
        files = {}
        for name, file in self._files.items():
            kept = files[name] = _File()
            kept.data = None if file.data is None else bytearray(file.data)
            kept.durable = None if file.durable is None else bytearray(file.durable)
            kept.rewritten = file.rewritten
            kept.failed = file.failed
        self._held = files, [*self._changes]

    def let_go(self) -> None:
        """Forgets what `hold` remembers."""
        self._held = None

    def go_back(self) -> None:
        """Makes the disk what it was at `hold`, because nothing after that happened. Does nothing without `hold`."""
        if self._held is not None:
            (self._files, self._changes), self._held = self._held, None

    def _step(self, call: str, name: str, content: bytes | None = None, begin: int | None = None) -> None:
        if self.on_step is None:
            return
        self._steps += 1
        if call != "sync":
            self._changes.append(_Change(self._steps, name, content, begin))
        self.on_step(call, name)

    def has_room(self) -> bool:
        """Tries to write a small file. Returns whether that works."""
        try:
            self._put(_PROBE, b"room")  # no step: it is no write of the process
        except DiskFull:
            return False
        del self._files[_PROBE]
        return True

    def lose_power(self, losing: Losing | None = None) -> Lost:
        """Resets each file to its durable content, with the changes that survive. Returns the loss.

        Args:
            losing: What is lost; it needs a disk that notes its steps. None: all that is not durable.
        """
        before = {name: file for name, file in self._files.items() if file.data is not None}
        self._survive(losing)
        changed = [file for file in before.values() if file.durable is None or file.durable != file.data]
        lost_bytes = sum(max(0, len(file.data or b"") - len(file.durable or b"")) for file in changed)
        for name, file in list(self._files.items()):
            if file.durable is None:
                del self._files[name]
            else:
                file.data, file.rewritten, file.failed = bytearray(file.durable), False, 0
        self._changes.clear()
        return Lost(files=len(before), changed=len(changed), bytes=lost_bytes)

    def _survive(self, losing: Losing | None) -> None:
        """Makes durable what a loss of power leaves of the changes."""
        if losing is None or losing.changes is None:
            return
        places = range(len(self._changes), 0, -1)
        left = [
            change for position, change in zip(places, self._changes, strict=True) if position not in losing.changes
        ]
        last = next((change for change in reversed(left) if change.content), None) if losing.torn else None
        for change in left:
            file = self._files[change.name]
            file.durable = change.apply(file.durable, torn=change is last)

    def lose_all(self) -> Lost:
        """Removes all files, as a new disk does. Returns the loss."""
        sizes = [len(file.data) for file in self._files.values() if file.data is not None]
        self.wipe()
        return Lost(files=len(sizes), changed=len(sizes), bytes=sum(sizes))

    def keep(self) -> int:
        """Remembers the durable content of each file, for a roll-back. Returns the number of files."""
        self._kept = {name: bytes(file.durable) for name, file in self._files.items() if file.durable is not None}
        return len(self._kept)

    def damage(self, damaging: Damaging) -> Changed:
        """Damages one file, and reads it back; see `harness.world.World.damage_file`."""
        matching = [name for name in self.names() if fnmatchcase(name, damaging.pattern)]
        able = [(name, planned) for name in matching if (planned := self._planned(name, damaging)) is not None]
        if not able:
            raise unable(self._node, damaging, DATA_DIRECTORY, matching=len(matching))
        name, (after, made) = able[picked(damaging.pick, len(able))]
        before = bytes(self._data(name))
        file = self._files[name]
        file.data, file.durable, file.rewritten, file.failed = after, bytearray(after), False, 0
        now = self._data(name)
        return changed(
            damaging,
            f"{DATA_DIRECTORY}/{name}",
            made,
            written_bytes=_written(before),
            before=reader(before),
            now=reader(now),
            sizes=(len(before), len(now)),
        )

    def _planned(self, name: str, damaging: Damaging) -> tuple[bytearray, list[Edit]] | None:
        """Returns a file after a damage, and what was written there; None if it cannot have it."""
        data = self._data(name)
        written = _written(data)
        kept = self._kept.get(name)
        if not written or (damaging.how is How.ROLL_BACK and (kept is None or kept == data)):
            return None
        if damaging.how is How.CUT:
            return data[: max(0, written - damaging.amount)], []
        if damaging.how is How.ROLL_BACK and not damaging.chunk_bytes:
            return bytearray(kept or b""), [Edit(0, kept or b"")]
        after = bytearray(data)
        earlier = None if kept is None else reader(kept)
        made = edits(damaging, written, reader(data), earlier)
        for edit in made:
            after[edit.at : edit.at + len(edit.content)] = edit.content
        return (after, made) if made else None

    def _put(self, name: str, content: bytes) -> None:
        self._need_room(name, content)
        file = self._file(name)
        file.data, file.rewritten, file.failed = bytearray(content), True, 0

    def _need_room(self, name: str, content: bytes) -> None:
        if self.full and content:
            raise DiskFull(name)

    def _data(self, name: str) -> bytearray:
        file = self._files.get(name)
        if file is None or file.data is None:
            raise FileNotFoundError(f"{self._node}: there is no file {name!r} on the simulated disk")
        return file.data

    def _file(self, name: str) -> _File:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _File()
        return file


def _written(data: Sequence[int]) -> int:
    """Returns the size up to the last byte that is not zero."""
    size = len(data)
    while size and not data[size - 1]:
        size -= 1
    return size
