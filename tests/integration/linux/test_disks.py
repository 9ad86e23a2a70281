"""The disks of programs in virtual time: full as on a real file system, and with a known loss at each loss of power."""

from __future__ import annotations

import contextlib
import errno
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
from clusters.sim.linux.steps import step_of
from harness.errors import InfrastructureError
from harness.world import ANY_STEP, SYNCING, Failing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.integration
HERE = Path(__file__).parent
EXPECTED = HERE / "full.txt"
SECOND_NS = 1_000_000_000
DATA = "/var/lib/data"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")
SIZE = 64 << 20


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the program of `full.c`."""
    path = tmp_path_factory.mktemp("full") / "full"
    subprocess.run(["cc", "-O1", "-o", path, HERE / "full.c"], check=True)
    return path


class Disk:
    """A node with a volume, and programs on it one after the other."""

    def __init__(self, run: Controller) -> None:
        self.run = run
        run.path_of("n1", DATA).mkdir()
        self.data = run.add_volume("n1", DATA, remembers=True)

    def output(self, *arguments: str) -> str:
        """Runs a program to its end. Returns what it prints."""
        self.run.start("n1", arguments, folder=DATA, output="/root/output")
        (exited,) = self.run.wait(self.run.now_ns + 10 * SECOND_NS)
        assert (exited.kind, exited.number) == ("exited", 0)
        output = self.run.path_of("n1", "/root/output")
        text = output.read_text()
        output.unlink()
        return text

    def lose_power(self, code: str, *, at_s: float = 5.0) -> dict[str, bytes]:
        """Starts a program in Python that does not end, and takes its power. Returns the files then."""
        number = self.run.start("n1", [*PYTHON, code], folder=DATA, output="/root/output")
        assert self.run.wait(self.run.now_ns + int(at_s * SECOND_NS)) == []
        self.run.lose_power(number)
        self.run.lose("n1", DATA)
        return {path.name: path.read_bytes() for path in self.data.iterdir()}


@contextlib.contextmanager
def disk(folder: Path, *, shown: Sequence[Path] = (), seed: int = 1) -> Iterator[Disk]:
    """Returns a disk that no other program uses."""
    root = folder / f"root-{seed}"
    root.mkdir()
    parts = Parts(
        seed=seed,
        root=root,
        nodes={"n1": "10.0.0.1", "us": "10.0.0.9"},
        variables={"PATH": "/usr/bin:/bin"},
        shown=[Path("/usr"), *shown],
    )
    run = Controller(controller(lambda _: None), parts)
    try:
        yield Disk(run)
    finally:
        run.stop()


def test_a_full_disk_refuses_what_a_real_one_refuses(program: Path, tmp_path: Path) -> None:
    """A write, a reservation, and a store into a hole of a mapped file, but no load from there; and it is free afterwards."""
    with disk(tmp_path, shown=[program]) as full:
        full.output(str(program), DATA, "begin")
        assert full.run.takes("n1")
        full.run.fill("n1", full=True)
        assert not full.run.takes("n1")
        assert full.output(str(program), DATA, "look").splitlines() == EXPECTED.read_text().splitlines()
        full.run.fill("n1", full=False)
        assert full.run.takes("n1")


NATIVE = """set -e
truncate -s {size} "$0/image" && mkfs.ext4 -q -b 4096 -m 0 -F "$0/image"
mkdir "$0/mounted" && mount -o loop "$0/image" "$0/mounted"
"$1" "$0/mounted" begin > /dev/null
for size in 1M 4k; do dd if=/dev/zero of="$0/mounted/filler-$size" bs=$size 2>/dev/null || sync; done
"$1" "$0/mounted" look
"""


def test_a_real_disk_refuses_this(program: Path, tmp_path: Path) -> None:
    """What the test above expects is what ext4 does."""
    script = NATIVE.format(size=SIZE)
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, tmp_path, program], capture_output=True, text=True, check=False
    )
    if not tried.stdout:
        pytest.skip(f"this machine cannot mount a file: {tried.stderr.strip()}")
    assert tried.stdout.splitlines() == EXPECTED.read_text().splitlines()


MAPPED = """
import mmap, os, time
file = os.open("mapped", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4 * 4096)
memory = mmap.mmap(file, 4 * 4096)
memory[0:6] = memory[4096:4102] = b"synced"
memory.flush(0, 4096)
memory[0:3] = memory[8192:8195] = b"not"
{more}
time.sleep(100)
"""
LIBC = "import ctypes; ctypes.CDLL(None)"
SYNCED, NOT_SYNCED = b"synced" + bytes(4090), bytes(4096)


def test_a_page_that_was_not_synced_may_be_lost(tmp_path: Path) -> None:
    """Each by itself: of a seed that lets nothing survive none, and of others some."""
    seen = set()
    for seed in range(1, 13):
        with disk(tmp_path, seed=seed) as lost:
            mapped = lost.lose_power(MAPPED.format(more=""))["mapped"]
        pages = [mapped[index : index + 4096] for index in range(0, len(mapped), 4096)]
        assert pages[0] in {SYNCED, b"notced" + bytes(4090)}
        assert pages[1] in {NOT_SYNCED, SYNCED}
        seen.add(tuple(bytes(page[:6]) for page in pages[:3]))
    assert (b"synced", bytes(6), bytes(6)) in seen
    assert len(seen) > 2


@pytest.mark.parametrize(
    ("more", "is_durable"),
    [
        ("os.fsync(file)", True),
        ("os.fdatasync(file)", True),
        ("os.sync()", True),
        ("os.fsync(os.open('other', os.O_CREAT | os.O_RDWR))", False),
        (f"{LIBC}.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(16384), 7)", False),
        (f"{LIBC}.msync(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory))), 16384, 1)", False),
    ],
    ids=["fsync", "fdatasync", "sync", "fsync of another file", "sync_file_range", "msync with MS_ASYNC"],
)
def test_only_a_sync_makes_pages_durable(more: str, is_durable: bool, tmp_path: Path) -> None:
    """Of four seeds, one lets nothing survive."""
    whole = set()
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as lost:
            mapped = lost.lose_power(MAPPED.format(more=more))["mapped"]
        whole.add((mapped[:6], mapped[4096:4102], mapped[8192:8195]) == (b"notced", b"synced", b"not"))
    assert (False not in whole) is is_durable


def test_a_mapping_that_nobody_saw_ends_the_run(tmp_path: Path) -> None:
    """It was made for reading, and can be written later. The error names the file."""
    code = """
import ctypes, mmap, os, time
file = os.open("late", os.O_CREAT | os.O_RDWR)
os.ftruncate(file, 4096)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, 4096, 1, mmap.MAP_SHARED, file, ctypes.c_long(0))
assert libc.mprotect(ctypes.c_void_p(address), 4096, 3) == 0
time.sleep(100)
"""
    with (
        disk(tmp_path) as lost,
        pytest.raises(InfrastructureError, match=r"write .*/late through memory that they mapped for reading"),
    ):
        lost.lose_power(code)


def test_a_damaged_file_stays_damaged(tmp_path: Path) -> None:
    """A later loss of power does not bring the old bytes back. Of four seeds, one lets nothing survive."""
    code = """
import os, time
file = os.open("log", os.O_CREAT | os.O_RDWR)
os.write(file, b"old")
os.fsync(file)
os.pwrite(file, b"new", 0)
time.sleep(100)
"""
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as damaged:
            run = damaged.run
            number = run.start("n1", [*PYTHON, code], folder=DATA, output="/root/output")
            assert run.wait(SECOND_NS) == []
            run.kill(number)
            run.wait(2 * SECOND_NS)
            (damaged.data / "log").write_bytes(b"damage")
            run.settle("n1", DATA, "log")
            assert damaged.lose_power("import time; time.sleep(100)") == {"log": b"damage"}


CALLS = """
import os
def told(call, *arguments):
    try:
        call(*arguments)
        return "done"
    except OSError as error:
        return error.strerror
file = os.open("wal.log", os.O_CREAT | os.O_RDWR)
other = os.open("other", os.O_CREAT | os.O_RDWR)
for _ in range(3):
    print("write", told(os.write, file, b"four"), told(os.pwrite, other, b"four", 0), told(os.write, other, b"four"))
    print("read", told(os.pread, file, 4, 0), told(os.read, other, 4), told(os.read, file, 4))
    print("fsync", told(os.fdatasync, file), told(os.fsync, other), told(os.fsync, file))
    print("open", told(os.open, "wal.log", os.O_RDONLY), told(os.open, "new.log", os.O_CREAT | os.O_WRONLY))
    print("rename", told(os.rename, "wal.log", "a.log"), told(os.rename, "a.log", "wal.log"))
print(os.fstat(file).st_size)
"""
WORKS = "write {0} read {0} fsync {0} open done done rename done done".format("done done done").split()
EIO, ENOSPC = "Input/output error", "No space left on device"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # The lines with an error, and the names of the calls that failed with their numbers.
        (("write", "*.log", 2, errno.ENOSPC), ([f"write {ENOSPC} done done"], ["write 2 wal.log"])),
        (("write", "other", 4, errno.EIO), ([f"write done done {EIO}"], ["write 4 other"])),
        (("read", "wal*", 3, errno.EIO), ([f"read {EIO} done done"], ["pread64 3 wal.log"])),
        (("fsync", "w?l.log", 2, errno.EIO), ([f"fsync done done {EIO}"], ["fsync 2 wal.log"])),
        (("fsync", "*", 7, errno.EIO), ([f"fsync {EIO} done done"], ["fdatasync 7 wal.log"])),
        (("open", "new.log", 3, errno.ENOSPC), ([f"open done {ENOSPC}"], ["openat 3 new.log"])),
        # What was not renamed is not there.
        (("rename", "a.log", 3, errno.EIO), ([f"rename {EIO} No such file or directory"], ["rename 3 a.log"])),
        (("rename", "b.log", 1, errno.EIO), ([], [])),
    ],
)
def test_the_nth_call_on_a_file_fails(
    rule: tuple[str, str, int, int], expected: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    """It has no effect, calls before and after it work, and the controller names it."""
    call, pattern, nth, error = rule
    with disk(tmp_path) as failing:
        run = failing.run
        run.fail(7, "n1", DATA, Failing(call=call, pattern=pattern, nth=nth, times=1, error=error))
        *lines, size = failing.output(*PYTHON, CALLS).splitlines()
        failed = [f"{call.call} {call.number} {call.file}" for call in run.failed(7)]
        assert ([line for line in lines if EIO in line or ENOSPC in line], failed) == expected
        assert all(call.program.startswith("/usr/bin/python3") for call in run.failed(7))
        assert int(size) == (8 if call == "write" and pattern == "*.log" else 12)
        run.mend(7)
        assert failing.output(*PYTHON, CALLS.replace("os.O_CREAT", "os.O_TRUNC | os.O_CREAT")).split()[:-1] == WORKS * 3


GATE = """
import ctypes, mmap, os, time
file = os.open("wal", os.O_CREAT | os.O_RDWR)
os.write(file, b"o" * 12288)
os.fsync(file)
os.pwrite(file, b"1" * 8192, 0)
os.pwrite(file, b"1" * 100, 12288)
try:
    os.fsync(file)
    raise SystemExit("it works")
except OSError:
    pass
assert os.pread(file, 1, 0) == b"1"
os.pwrite(file, b"2", 4096)
{more}
os.fsync(file)
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("more", "again"),
    [("", b""), ("os.pwrite(file, b'1' * 4096, 0)", b"1"), ("mmap.mmap(file, 4096)[0:1] = b'3'", b"3")],
    ids=["no change", "the same bytes", "a store"],
)
def test_a_sync_that_failed_makes_nothing_durable(more: str, again: bytes, tmp_path: Path) -> None:
    """A later sync passes over its pages, but for those that change again, which it writes whole.

    The size is in the inode, which the later sync writes.
    """
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as failing:
            failing.run.fail(7, "n1", DATA, Failing(call="fsync", pattern="wal", nth=2, times=1, error=errno.EIO))
            wal = failing.lose_power(GATE.format(more=more))["wal"]
        first = again + b"1" * 4095 if again else b"o" * 4096
        assert wal == first + b"2" + b"1" * 4095 + b"o" * 4096 + bytes(100)


MEMORY_GATE = """
import errno, mmap, os, time
file = os.open("registers", os.O_CREAT | os.O_RDWR)
os.write(file, b"o" * 12288)
os.fsync(file)
memory = mmap.mmap(file, 12288)
memory[0:4096] = memory[8192:12288] = b"1" * 4096
try:
    memory.flush(0, 8192)
    raise SystemExit("it works")
except OSError as error:
    assert error.errno == errno.EIO
assert os.pread(file, 1, 0) == b"1"
memory[4096] = ord("2")
{more}
memory.flush()
time.sleep(100)
"""


@pytest.mark.parametrize(("more", "first"), [("", b"o"), ("os.pwrite(file, b'1' * 4096, 0)", b"1")])
def test_an_msync_that_failed_makes_nothing_durable(more: str, first: bytes, tmp_path: Path) -> None:
    """A later msync works, and passes over its pages, but for those that change again."""
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as failing:
            rule = Failing(call="msync", pattern="reg*", nth=1, times=1, error=errno.EIO)
            failing.run.fail(7, "n1", DATA, rule)
            registers = failing.lose_power(MEMORY_GATE.format(more=more))["registers"]
            assert [f"{call.call} {call.number} {call.file}" for call in failing.run.failed(7)] == ["msync 1 registers"]
        assert registers == first * 4096 + b"2" + b"o" * 4095 + b"1" * 4096


ALL_GATE = """
import ctypes, errno, os, time
syncfs = ctypes.CDLL(None, use_errno=True).syncfs
for name in "wal.new", "other":
    with open(name, "wb") as file:
        file.write(b"o" * 4096)
        file.flush()
        os.fsync(file.fileno())
os.rename("wal.new", "wal")
wal, other = os.open("wal", os.O_RDWR), os.open("other", os.O_RDWR)
os.pwrite(wal, b"1" * 8192, 0)
os.pwrite(other, b"1" * 4096, 0)
assert syncfs(os.open("/tmp", os.O_RDONLY)) == 0
{call}
os.sync()
assert syncfs(wal) == 0
time.sleep(100)
"""
CALLED = {
    "syncfs 1 wal": "assert (syncfs(other), ctypes.get_errno()) == (-1, errno.EIO)",
    "sync 1 wal": "os.sync()",
}


@pytest.mark.parametrize("failed", CALLED)
def test_a_sync_of_all_that_failed_leaves_out_files(failed: str, tmp_path: Path) -> None:
    """The others are durable, and so are names. `sync` tells of no error, and `syncfs` of another disk has none."""
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as failing:
            failing.run.fail(7, "n1", DATA, Failing(call="sync", pattern="wal", nth=1, times=1, error=errno.EIO))
            files = failing.lose_power(ALL_GATE.format(call=CALLED[failed]))
            assert [f"{call.call} {call.number} {call.file}" for call in failing.run.failed(7)] == [failed]
        assert files == {"wal": b"o" * 4096 + bytes(4096), "other": b"1" * 4096}


def test_a_sync_that_failed_is_forgotten_by_later_losses(tmp_path: Path) -> None:
    """What a loss left is durable."""
    code = """
import os, time
file = os.open("wal", os.O_CREAT | os.O_RDWR)
os.pwrite(file, b"new", 0)
try:
    os.fsync(file)
except OSError:
    os.ftruncate(file, 0)
    os.pwrite(file, b"NEW", 0)
    os.fsync(file)
time.sleep(100)
"""
    for seed in range(1, 5):
        with disk(tmp_path, seed=seed) as failing:
            failing.run.fail(7, "n1", DATA, Failing(call="fsync", pattern="*", nth=1, times=1, error=errno.EIO))
            assert failing.lose_power(code)["wal"] == b"NEW"
            failing.run.wait(failing.run.now_ns + 1)  # for the end of the program
            assert failing.lose_power("import time; time.sleep(100)")["wal"] == b"NEW"


STEPS = """
import os, time
log = os.open("log", os.O_CREAT | os.O_WRONLY)
for number in range(1, 4):
    os.write(log, b"%d" % number)
os.fsync(log)
os.write(log, b"4")
os.rename("log", "renamed")
time.sleep(100)
"""
# The calls of the program, with how many changes are not durable after each.
MADE = [
    *(("create", 1), ("write", 2), ("write", 3), ("write", 4)),
    *((SYNCING, 4), ("sync", 0), ("write", 1), ("rename", 2)),
]
COUNTED = [index for index, (call, _) in enumerate(MADE) if call != SYNCING]  # the steps of the kind `any`


def test_the_disk_notes_each_step(tmp_path: Path) -> None:
    """Each change of a file, and each sync, with what is not durable after it."""
    with disk(tmp_path) as noted:
        noted.run.note_steps()
        noted.lose_power(STEPS, at_s=1.0)
        steps = [step_of(line) for line in noted.run.steps()]
    assert [(step.call, len(step.unsynced)) for step in steps] == MADE
    assert [step.file for step in steps] == ["log"] * 7 + ["renamed"]
    assert [change.names for change in steps[-1].unsynced] == [False, True]


@pytest.mark.parametrize(
    ("call", "nth", "lost", "expected"),
    [
        (ANY_STEP, 3, "none", {"log": b"12"}),
        (ANY_STEP, 3, "all", {}),  # its name was not durable either
        (ANY_STEP, 4, "{2}", {"log": b"1\0" + b"3"}),  # the second write
        (SYNCING, 1, "none", {"log": b"123"}),
        (SYNCING, 1, "all", {}),
        (ANY_STEP, 5, "all", {"log": b"123"}),
        (ANY_STEP, 6, "all", {"log": b"123"}),
        (ANY_STEP, 7, "none", {"renamed": b"1234"}),
        (ANY_STEP, 7, "{0}", {"renamed": b"123"}),
        (ANY_STEP, 7, "{1}", {"log": b"1234"}),
    ],
)
def test_a_program_stands_still_after_a_step_and_loses_what_is_chosen(
    tmp_path: Path, call: str, nth: int, lost: str, expected: dict[str, bytes]
) -> None:
    """Nothing of what the program does next has happened. Numbers in braces are places of changes from the oldest one."""
    with disk(tmp_path) as chosen:
        chosen.run.note_steps()
        chosen.run.want(7, ["n1"], call=call, pattern="*", nth=nth)
        number = chosen.run.start("n1", [*PYTHON, STEPS], folder=DATA, output="/root/output")
        (stands,) = chosen.run.wait(chosen.run.now_ns + SECOND_NS)
        assert (stands.kind, stands.id, stands.number) == ("stands", 7, number)
        index = COUNTED[nth - 1] if call == ANY_STEP else MADE.index((SYNCING, 4))
        assert step_of(stands.step).call == MADE[index][0]
        assert chosen.run.wait(chosen.run.now_ns + SECOND_NS) == []
        assert len(chosen.run.steps()) == index + 1
        chosen.run.lose_power(number)
        changes = chosen.run.unsynced("n1")
        chosen.run.lose("n1", DATA, lost.format(*changes))
        assert {path.name: path.read_bytes() for path in chosen.data.iterdir()} == expected


def test_a_program_goes_on_after_a_step(tmp_path: Path) -> None:
    """If nobody takes its power, it does what it would have done."""
    with disk(tmp_path) as going:
        going.run.note_steps()
        going.run.want(1, ["n1"], call="sync", pattern="*", nth=1)
        number = going.run.start("n1", [*PYTHON, STEPS], folder=DATA, output="/root/output")
        (stands,) = going.run.wait(going.run.now_ns + SECOND_NS)
        assert stands.kind == "stands"
        going.run.resume(number)
        assert going.run.wait(going.run.now_ns + SECOND_NS) == []
        assert (going.data / "renamed").read_bytes() == b"1234"


LAPS = """
import os, time
log = os.open("log", os.O_CREAT | os.O_WRONLY)
times = []
for number in range(40):
    times.append(time.monotonic())
    time.sleep(0.02)
os.fsync(log)
print(max(later - earlier for earlier, later in zip(times, times[1:])), times[-1] - times[0])
"""


@pytest.mark.parametrize(
    ("node", "wall", "dropped", "stalls"),
    [("n1", False, False, True), ("n1", True, False, False), ("n1", False, True, False), ("us", False, False, False)],
)
def test_a_thread_stalls_once_at_a_call_until_its_time_is_over(
    tmp_path: Path, node: str, *, wall: bool, dropped: bool, stalls: bool
) -> None:
    """If the wait for the step has ended before, it does not, nor does one of another node.

    This program never reads the wall clock in its loop.
    """
    with disk(tmp_path) as stalling:
        stalling.run.note_steps()
        stalling.run.want(1, ["n1"], call="sync", pattern="*", nth=2)
        stalling.run.stall(1, node, after_ns=SECOND_NS // 5, wall=wall, nth=7, length_ns=SECOND_NS // 2)
        if dropped:
            stalling.run.drop(1)
        longest_s, whole_s = map(float, stalling.output(*PYTHON, LAPS).split())
    assert (longest_s > 0.5) == stalls
    assert whole_s == pytest.approx(0.78 + 0.5 * stalls, abs=0.05)


def test_a_thread_stalls_at_a_read_of_the_wall_clock(tmp_path: Path) -> None:
    """Other calls do not count then."""
    reads = LAPS.replace("    time.sleep(0.02)", "    time.time() if number % 10 == 5 else time.sleep(0.02)")
    with disk(tmp_path) as stalling:
        stalling.run.note_steps()
        stalling.run.want(1, ["n1"], call="sync", pattern="*", nth=2)
        stalling.run.stall(1, "n1", after_ns=SECOND_NS // 4, wall=True, nth=2, length_ns=SECOND_NS // 2)
        longest_s, whole_s = map(float, stalling.output(*PYTHON, reads).split())
    assert longest_s > 0.5
    assert whole_s == pytest.approx(0.78 - 4 * 0.02 + 0.5, abs=0.05)


SYNCS = """
import os, time
file = os.open("file", os.O_CREAT | os.O_WRONLY)
for number in range(4):
    os.write(file, b"x")
    began = time.monotonic()
    os.fsync(file)
    print(time.monotonic() - began)
    time.sleep(1)
"""


def test_a_slow_disk_makes_syncs_slow_and_says_how_long_they_took(tmp_path: Path) -> None:
    """What began before the end of the rule takes its time; what begins after it is as fast as before."""
    with disk(tmp_path) as node:
        node.run.slow(7, "n1", 400_000_000)
        node.run.start("n1", [*PYTHON, SYNCS], folder=DATA, output="/root/output")
        node.run.wait(node.run.now_ns + int(1.6 * SECOND_NS))
        syncs = node.run.slowed(7)["n1"]
        node.run.mend(7)
        assert node.run.slowed(7) == {}
        (exited,) = node.run.wait(node.run.now_ns + 30 * SECOND_NS)
        assert exited.number == 0
        times_s = [float(line) for line in node.run.path_of("n1", "/root/output").read_text().split()]
        node.run.slow(8, "n1", 400_000_000)
        before_ns = [syncs.before_ns, node.run.slowed(8)["n1"].before_ns]  # without those that a rule slowed down
    slow = [time_s for time_s in times_s if time_s >= 0.1]
    assert slow == times_s[: syncs.count]
    assert 1 <= syncs.count <= 3
    assert max(slow) >= syncs.longest_ns / SECOND_NS >= 0.1
    assert max(times_s[syncs.count :]) < 0.1
    assert before_ns[0] == 0
    assert before_ns[1] / SECOND_NS == pytest.approx(max(times_s[syncs.count :]), abs=1e-3)
