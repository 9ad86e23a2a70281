"""The controller of Linux programs: programs see what the kernel shows them, nothing of the host, and the same in each run."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clusters.kit.jvm import JVM_FLAGS
from clusters.sim.linux.building import controller
from clusters.sim.linux.driving import Controller, Parts
from clusters.sim.linux.seen import JVM_WORK, VARIABLES, seen
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clusters.sim.linux.driving import Figures

pytestmark = pytest.mark.integration
HERE = Path(__file__).parent
SECOND_NS = 1_000_000_000
PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")
NODES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "us": "10.0.0.9"}


@pytest.fixture(scope="module")
def binary() -> Path:
    """Returns the controller."""
    return controller(lambda _: None)


def compiled(source: str, folder: Path) -> Path:
    """Returns a program in C."""
    program = folder / Path(source).stem
    subprocess.run(["cc", "-O1", "-pthread", "-o", program, HERE / source], check=True)
    return program


def java_program(
    name: str, words: Sequence[str], variables: Mapping[str, str], folder: Path
) -> tuple[list[str], list[Path]]:
    """Compiles a program in Java. Returns its command line, and what it must see besides `/usr`."""
    subprocess.run(["javac", "-d", folder, HERE / f"{name}.java"], check=True)
    own = folder / f"{name}.class"
    os.utime(own, (0, 0))  # a file that is older than the run has its own time
    settings = [f"{key}={value}" for key, value in {**VARIABLES, **variables}.items()]
    program = str(Path(shutil.which("java") or "").resolve())
    shown = [*(path for path in seen()[0] if not path.is_relative_to("/usr")), own]
    return ["/usr/bin/env", *settings, program, *JVM_FLAGS, "-cp", str(folder), name, *words], shown


def simulated(
    binary: Path,
    folder: Path,
    arguments: Sequence[str],
    *,
    seed: int = 1,
    shown: Sequence[Path] = (),
    preempt: float = 0.0,
    stalls: float = 0.0,
    look_us: int | None = None,
    all_stop: bool = False,
) -> tuple[str, int, Figures]:
    """Runs a program alone. Returns what it prints, its exit code, and what the run left."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    parts = Parts(
        seed=seed,
        root=root,
        nodes=NODES,
        variables={"PATH": "/usr/bin:/bin"},
        shown=[Path("/usr"), *shown],
        preempt=preempt,
        stalls=stalls,
        look_us=look_us,
        all_stop=all_stop,
    )
    run = Controller(binary, parts)
    try:
        run.start("n1", arguments, folder="/root", output="/root/output")
        ((exited),) = run.wait(300 * SECOND_NS)
        assert exited.kind == "exited"
        return run.path_of("n1", "/root/output").read_text(), exited.number >> 8, run.figures()
    finally:
        run.stop()


def test_a_program_sees_what_the_kernel_shows_it(binary: Path, tmp_path: Path) -> None:
    """Pipes, threads, epoll, timers, sockets, children and files answer as natively, each error included."""
    program = compiled("calls.c", tmp_path)
    natively = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    inside, code, _ = simulated(binary, tmp_path, [str(program)], shown=[program])
    assert inside.splitlines() == natively.splitlines()
    assert code == 0
    preempted, _, ended = simulated(binary, tmp_path, [str(program)], shown=[program], preempt=0.3)
    assert preempted == inside
    assert ended.calls["futex"] > 0


def test_a_wait_for_a_lock_of_a_file_lets_others_run(binary: Path, tmp_path: Path) -> None:
    """It ends when the lock is given back, when the last descriptor is closed, with the process that has it, or by a signal."""
    program = compiled("locks.c", tmp_path)
    natively = subprocess.run([program], check=True, capture_output=True, text=True, cwd=tmp_path, timeout=60).stdout
    inside, code, ended = simulated(binary, tmp_path, [str(program)], shown=[program])
    assert inside.splitlines() == natively.splitlines()
    assert code == 0
    assert ended.figures["time"] > SECOND_NS


def test_processes_share_memory_and_send_signals(binary: Path, tmp_path: Path) -> None:
    """A signal ends a wait, or the call is made again; timers send some; locks in shared memory work across processes."""
    program = compiled("signals.c", tmp_path)
    natively = subprocess.run([program], check=True, capture_output=True, text=True, cwd=tmp_path, timeout=60).stdout
    inside, code, ended = simulated(binary, tmp_path, [str(program)], shown=[program])
    assert inside.splitlines() == natively.splitlines()
    assert code == 0
    again, _, repeated = simulated(binary, tmp_path, [str(program)], shown=[program])
    assert (again, repeated.digest) == (inside, ended.digest)
    preempted, _, _ = simulated(binary, tmp_path, [str(program)], shown=[program], preempt=0.3)
    assert preempted == inside


def test_a_signal_to_all_processes_ends_the_run(binary: Path, tmp_path: Path) -> None:
    """All nodes share the ids of processes, so those of others would get it too."""
    with pytest.raises(InfrastructureError, match=r"python3 on n1 sends a signal to all processes"):
        simulated(binary, tmp_path, [*PYTHON, "import os; os.kill(-1, 10)"])


def test_an_exec_with_several_threads_ends_the_run(binary: Path, tmp_path: Path) -> None:
    """The kernel would wait for the end of the other threads, which stand still. The error names the program."""
    script = "import os, threading, time; threading.Thread(target=time.sleep, args=[9]).start(); os.execv('/bin/true', ['x'])"
    with pytest.raises(InfrastructureError, match=r"python3 on n1 executes another program while it has 2 threads"):
        simulated(binary, tmp_path, [*PYTHON, script])


NIGHTLY = ((41, 140), (141, 240), (241, 340))
RANGES = [(1, 40), *(pytest.param(first, last, marks=pytest.mark.night) for first, last in NIGHTLY)]


@pytest.mark.parametrize(("first", "last"), RANGES)
def test_drawn_calls_return_what_the_kernel_returns(binary: Path, tmp_path: Path, first: int, last: int) -> None:
    """The same program makes the same calls natively: each result, error and byte is the same."""
    program = compiled("drawn.c", tmp_path)
    words = [str(program), str(first), str(last)]
    natively = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path, timeout=300).stdout
    inside, code, _ = simulated(binary, tmp_path, words, shown=[program])
    assert code == 0
    for here, there in zip(natively.splitlines(), inside.splitlines(), strict=True):
        assert there == here


LOOK = """
date; sleep 100; date; head -c 16 /dev/urandom | od -An -tx1; echo $$; uname -n; cat /proc/meminfo /proc/stat /proc/loadavg
cat /proc/self/stat /proc/self/io /proc/self/mountinfo /proc/cgroups /proc/cpuinfo /sys/devices/system/cpu/online /etc/hosts
ls -a / /tmp /etc /proc/sys/kernel/random/boot_id; stat -c '%n %i %h %Y %d' / /tmp /proc /etc/hosts; df / | tail -1
stat -c '%n %i %h %Y %d' /proc/sys/vm/overcommit_memory /dev/null /usr; ls -i /proc/self /proc/sys/vm; cat /proc/self/maps
nproc; exit 3
"""
# All that `/proc`, `/sys`, `/dev` and `/etc` have, each by its path, and some by other ways.
SWEEP = """
import ctypes, os, resource, stat
def shown(path):
    try:
        found = os.lstat(path)
        print(path, oct(found.st_mode), found.st_ino, found.st_nlink, found.st_size, found.st_dev, found.st_mtime)
        if stat.S_ISLNK(found.st_mode):
            print(path, "->", os.readlink(path))
        elif stat.S_ISDIR(found.st_mode):
            with os.scandir(path) as entries:
                names = [(entry.name, entry.inode()) for entry in entries]
            print(path, names)
            for name, _ in names:
                shown(path + "/" + name)
        elif path not in {"/dev/zero", "/dev/full", "/proc/self/clear_refs"}:
            with open(path, "rb", buffering=0) as file:
                print(path, file.read(100_000))
    except OSError as error:
        print(path, error.strerror)
for top in ("/proc", "/sys", "/dev", "/etc"):
    shown(top)
os.chdir("/proc/self")
for path in ("io", "../self/io", "/proc//self/./io", "task/../io"):
    print(path, open(path).read())
folder = os.open("/proc/self/fdinfo", os.O_RDONLY)
print(os.read(os.open("0", os.O_RDONLY, dir_fd=folder), 1000))
print(os.getpriority(os.PRIO_PROCESS, 0), oct(os.umask(0)), os.getgroups(), os.sysconf("SC_PHYS_PAGES"), os.getloadavg())
print([resource.getrlimit(each) for each in range(16)], resource.getrusage(resource.RUSAGE_SELF), os.times())
uuids = [open("/proc/sys/kernel/random/uuid").read() for _ in range(2)]
assert uuids[0] != uuids[1], uuids
print(uuids)
area = ctypes.create_string_buffer(256)
MOUNT_ID, STATX = 0x1000, 332
for path in (b"/", b"/proc", b"/usr", b"/dev/null", b"/proc/self/io"):
    assert ctypes.CDLL(None).syscall(STATX, -100, path, 0, MOUNT_ID | 0x7ff, area) == 0
    print(path, area.raw)
"""


@contextlib.contextmanager
def another_host(folder: Path) -> Iterator[None]:
    """Changes what this machine counts, such as processes and namespaces, and what its processes inherit, such as limits."""
    (folder / "something new").write_text("on the host")
    sleeping = ["unshare", "--mount", "--net", "--uts", "--ipc", "sleep", "60"]
    limits = [
        (kind, resource.getrlimit(kind))
        for kind in (resource.RLIMIT_MEMLOCK, resource.RLIMIT_NPROC, resource.RLIMIT_CORE)
    ]
    groups, mask, priority = os.getgroups(), os.umask(0o077), os.getpriority(os.PRIO_PROCESS, 0)
    others = [subprocess.Popen(sleeping) for _ in range(3)]
    memory = [os.memfd_create("new") for _ in range(5)]
    try:
        os.setgroups([12345])
        os.setpriority(os.PRIO_PROCESS, 0, min(19, priority + 3))
        for kind, (_, most) in limits:
            resource.setrlimit(kind, (1000, most))
        subprocess.run(["sleep", "1.1"], check=True)
        yield
    finally:
        for kind, limit in limits:
            resource.setrlimit(kind, limit)
        os.setgroups(groups)
        os.umask(mask)
        os.setpriority(os.PRIO_PROCESS, 0, priority)
        for descriptor in memory:
            os.close(descriptor)
        for other in others:
            other.kill()
            other.wait()


def test_nothing_of_the_host_is_visible_and_time_is_virtual(binary: Path, tmp_path: Path) -> None:
    """Clocks, random bytes, ids, inode numbers and all that /proc counts are those of the seed, whatever the host does."""
    arguments = ["/usr/bin/sh", "-c", LOOK]
    text, code, ended = simulated(binary, tmp_path, arguments)
    assert code == 3
    lines = text.splitlines()
    assert lines[0] == "Tue Nov 14 22:13:20 UTC 2023"
    assert lines[1] == "Tue Nov 14 22:15:00 UTC 2023"
    assert lines[3:5] == ["2", "n1"]
    assert "10.0.0.2 n2" in lines
    assert lines[-1] == "1"
    with another_host(tmp_path):
        again, _, other = simulated(binary, tmp_path, arguments)
    assert again.splitlines() == lines
    assert other.digest == ended.digest
    another, _, different = simulated(binary, tmp_path, arguments, seed=2)
    assert another.splitlines()[2] != lines[2]
    assert different.digest != ended.digest


def test_no_file_of_the_kernel_shows_the_host(binary: Path, tmp_path: Path) -> None:
    """Whatever a program reads below /proc, /sys, /dev and /etc, by any path, is the same whatever the host does."""
    arguments = ["/usr/bin/python3", "-I", "-S", "-c", SWEEP]
    text, code, ended = simulated(binary, tmp_path, arguments)
    assert code == 0, text[-2000:]
    assert len(text.splitlines()) > 500
    (tmp_path / "other").mkdir()
    with another_host(tmp_path):
        again, _, other = simulated(binary, tmp_path / "other", arguments)
    assert again.splitlines() == text.splitlines()
    assert other.digest == ended.digest
    hidden = [str(tmp_path), str(binary), "ext4", "overlay"]
    assert [word for word in hidden if word in text] == []


def test_every_call_can_be_in_the_digest(binary: Path, tmp_path: Path) -> None:
    """With preemption, another seed gives another schedule, and the same seed the same one."""
    program = compiled("calls.c", tmp_path)
    digests = [
        simulated(binary, tmp_path, [str(program)], shown=[program], seed=seed, preempt=0.5)[2].digest
        for seed in (5, 5, 6)
    ]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_a_loop_that_waits_for_another_thread_takes_time(binary: Path, tmp_path: Path) -> None:
    """It makes no call, so the controller finds it by its registers. The place where it sleeps is the same in each run."""
    program = compiled("spin.c", tmp_path)
    (text, code, ended), again = (
        simulated(binary, tmp_path, [str(program)], shown=[program], preempt=0.1) for _ in range(2)
    )
    assert code == 0
    assert 2000 <= int(text.removesuffix(" ms\n")) <= 2010
    assert 100 < ended.figures["loops"] < 1000
    assert again[2].digest == ended.digest


@pytest.mark.parametrize(("words", "variables"), [(["objects"], JVM_WORK), ([], {})], ids=["objects", "nothing"])
def test_a_loop_of_a_jvm_takes_time(binary: Path, tmp_path: Path, words: list[str], variables: dict[str, str]) -> None:
    """No round of it is like another.

    The first loop makes objects: the JVM says when it has made many, at the same places in each run. In the second one, the
    interpreter counts until the loop is compiled.
    """
    words, shown = java_program("Waits", words, variables, tmp_path)
    (text, code, ended), again = (
        simulated(binary, tmp_path, words, shown=shown, look_us=look_us) for look_us in (None, 2000)
    )
    assert code == 0
    assert 2000 <= int(text.split()[-2]) <= 2020
    assert again[2].digest == ended.digest


def test_when_the_controller_looks_at_a_computing_thread_has_no_effect(binary: Path, tmp_path: Path) -> None:
    """A thread that counts in memory does not wait, one that saves its flags is not stepped for good; a wait has one place."""
    program = compiled("computes.c", tmp_path)
    words = [str(program), "2000000"]
    runs = [simulated(binary, tmp_path, words, shown=[program], look_us=look_us) for look_us in (400_000, 600, 1900)]
    seldom, *often = runs
    times = [int(line.split()[-2]) for line in seldom[0].splitlines()[2:]]
    assert 200 <= times[0] <= 205
    assert 400 <= times[1] <= 410
    for printed, code, figures in often:
        assert (printed, code) == (seldom[0], 0)
        assert figures.digest == seldom[2].digest


def test_the_c_library_takes_no_code_of_newer_processors(binary: Path, tmp_path: Path) -> None:
    """Where it looks for libraries does not depend on the model of the processor."""
    log = tmp_path / "calls.log"
    (tmp_path / "root").mkdir()
    parts = Parts(
        seed=1, root=tmp_path / "root", nodes=NODES, variables=VARIABLES, shown=[Path("/usr")], log=log, trace_all=True
    )
    run = Controller(binary, parts)
    try:
        run.start("n1", [*PYTHON, "pass"], folder="/root", output="/root/output")
        run.wait(300 * SECOND_NS)
        run.figures()
    finally:
        run.stop()
    opened = [line for line in log.read_text().splitlines() if " opens " in line]
    assert any("x86-64-v2" in line for line in opened)
    assert [line for line in opened if "x86-64-v3" in line or "haswell" in line] == []


SYNCS = """
import os, threading, time
file = os.open("/root/file", os.O_CREAT | os.O_WRONLY)
meanwhile = []
def others():
    while True:
        for _ in range(4):
            os.sched_yield()
        os.stat("/")  # so that the next yield is short again
        meanwhile.append(time.monotonic())
threading.Thread(target=others, daemon=True).start()
spans = []
for _ in range(200):
    os.write(file, b"x")
    begin = time.monotonic()
    os.fsync(file)
    spans.append((begin, time.monotonic()))
print(sum(end - begin for begin, end in spans) / len(spans))
print(sum(any(begin < time < end for time in meanwhile) for begin, end in spans))
"""


def test_a_sync_takes_time_in_which_other_threads_run(binary: Path, tmp_path: Path) -> None:
    """Its mean is 1 ms where nobody says another one."""
    text, code, _ = simulated(binary, tmp_path, [*PYTHON, SYNCS])
    assert code == 0
    mean_s, with_others = map(float, text.split())
    assert 0.0008 < mean_s < 0.0012
    assert with_others > 150


GAPS = """
import time
times = [time.monotonic() for _ in range(20_000)]
print(sum(after - before >= 1e-3 for before, after in zip(times, times[1:])))
"""


@pytest.mark.parametrize(("stalls", "least", "most"), [(0.0, 0, 0), (50.0, 3, 30)])
def test_a_thread_stalls_as_often_as_it_is_told(
    binary: Path, tmp_path: Path, stalls: float, least: int, most: int
) -> None:
    """A read of the clock is a place for it, too, although it makes no call. In a stall, the time for the next one goes on."""
    text, code, ended = simulated(binary, tmp_path, [*PYTHON, GAPS], stalls=stalls)
    assert code == 0
    assert least <= int(text) <= most
    assert ended.figures["stalls"] >= int(text)


SERVER = (
    "import socket; s = socket.create_server(('0.0.0.0', 80)); c, _ = s.accept(); c.sendall(c.recv(9)[::-1]); c.recv(1)"
)


def test_this_process_is_a_node(binary: Path, tmp_path: Path) -> None:
    """It connects over the simulated network, whose cuts hold what is sent until they are healed."""
    root = tmp_path / "root"
    root.mkdir()
    variables = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0"}
    run = Controller(binary, Parts(seed=3, root=root, nodes=NODES, variables=variables, shown=[Path("/usr")]))
    try:
        server = run.start("n1", ["/usr/bin/python3", "-I", "-S", "-c", SERVER], folder="/root", output="/root/output")
        assert run.wait(SECOND_NS) == []
        refused = run.connect("10.0.0.2", 80)
        (event,) = run.wait(None)
        assert (event.kind, event.id) == ("failed", refused)
        connection = run.connect("10.0.0.1", 80)
        (event,) = run.wait(None)
        assert (event.kind, event.id) == ("connected", connection)
        run.cut(1, "us", "n1")
        run.send(connection, b"hello")
        assert run.wait(run.now_ns + SECOND_NS) == []
        assert run.dropped(1) == {("us", "n1"): 1}
        run.mend(1)
        (event,) = run.wait(None)
        assert (event.kind, event.content) == ("bytes", b"olleh")
        run.kill(server)
        kinds = {event.kind for event in run.wait(run.now_ns + SECOND_NS)}
        assert kinds & {"ended", "reset", "exited"}
        run.figures()
    finally:
        run.stop()


PEER = """
import socket, sys, time
def said(text): print(text, flush=True)
c = socket.create_connection((sys.argv[1], 80))
said(c.recv(9))
c.settimeout(3)
try:
    said(c.recv(9))
except TimeoutError:
    said("heard nothing")
try:
    socket.create_connection((sys.argv[1], 80), timeout=3)
except OSError as error:
    said(type(error).__name__)
c.settimeout(60)
c.sendall(b"are you there?")
try:
    said(c.recv(9))
except OSError as error:
    said(type(error).__name__)
"""
GREETER = """
import socket
server = socket.create_server(("0.0.0.0", 80))
connections = [server.accept()[0] for _ in range(2)]
for connection in connections:
    connection.sendall(b"hello")
connections[0].recv(1)
"""


@pytest.mark.parametrize(
    ("how", "heard"),
    [
        ("power", ["b'hello'", "heard nothing", "TimeoutError", "ConnectionResetError"]),
        ("kill", ["b'hello'", "b''", "ConnectionRefusedError", "b''"]),
        (
            "power, beside another program",
            ["b'hello'", "heard nothing", "ConnectionRefusedError", "ConnectionResetError"],
        ),
    ],
)
def test_nobody_hears_of_a_power_loss(binary: Path, tmp_path: Path, how: str, heard: list[str]) -> None:
    """A node without power answers nothing, and after its restart with a reset. A kill is heard of at once."""
    root = tmp_path / "root"
    root.mkdir()
    run = Controller(
        binary, Parts(seed=3, root=root, nodes=NODES, variables={"PATH": "/usr/bin"}, shown=[Path("/usr")])
    )
    try:
        server = run.start("n1", [*PYTHON, GREETER], folder="/root", output="/root/output")
        if how.endswith("program"):
            run.start("n1", ["/usr/bin/sleep", "1000"], folder="/root", output="/root/output")
        run.wait(SECOND_NS)
        run.start("n2", [*PYTHON, PEER, "10.0.0.1"], folder="/root", output="/root/output")
        mine = run.connect("10.0.0.1", 80)
        kinds = [event.kind for _ in range(2) for event in run.wait(2 * SECOND_NS)]
        assert kinds == ["connected", "bytes"]
        (run.kill if how == "kill" else run.lose_power)(server)
        events = [event for event in run.wait(run.now_ns + 1) if event.kind != "exited"]
        events += [event for event in run.wait(10 * SECOND_NS) if event.kind != "exited"]
        assert {event.kind for event in events if event.id == mine} == ({"ended"} if how == "kill" else set())
        run.start("n1", ["/usr/bin/sleep", "1000"], folder="/root", output="/root/output")
        while (events := run.wait(run.now_ns + 60 * SECOND_NS)) and all(event.kind != "exited" for event in events):
            pass
        assert run.path_of("n2", "/root/output").read_text().splitlines() == heard
        run.lose_power(server)  # it has ended, so nothing happens
        run.figures()
    finally:
        run.stop()


def test_an_unknown_call_ends_the_run_with_its_number(binary: Path, tmp_path: Path) -> None:
    """A guess would be a wrong simulation."""
    root = tmp_path / "root"
    root.mkdir()
    run = Controller(binary, Parts(seed=3, root=root, nodes=NODES, shown=[Path("/usr")]))
    try:
        script = "import ctypes; ctypes.CDLL(None).syscall(999)"
        run.start("n1", ["/usr/bin/python3", "-I", "-S", "-c", script], folder="/root", output="/root/output")
        with pytest.raises(
            InfrastructureError, match="on n1 makes the system call 999, which the simulation does not know"
        ):
            run.wait(300 * SECOND_NS)
    finally:
        run.stop()


DRIFTING = """
import select, signal, time
def clocks(): return time.monotonic_ns(), time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
began = clocks()
time.sleep(2)
select.select([], [], [], 2)
signal.sigtimedwait([signal.SIGUSR1], 2)
signal.setitimer(signal.ITIMER_REAL, 2)
signal.sigwait([signal.SIGALRM])
print(*(now - then for now, then in zip(clocks(), began)))
"""


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_waits_follow_the_clock_of_a_node_that_drifts(binary: Path, tmp_path: Path, speed: float) -> None:
    """Each wait takes its time on the node's own clock, also if the speed changes while it goes on."""
    code = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])" + DRIFTING
    parts = Parts(seed=1, root=tmp_path, nodes=NODES, variables={"PATH": "/usr/bin:/bin"}, shown=[Path("/usr")])
    run = Controller(binary, parts)
    try:
        run.start("n1", [*PYTHON, code], folder="/root", output="/root/output")
        assert run.wait(SECOND_NS) == []  # within the first wait
        run.set_speed("n1", round(speed * 1_000_000))
        (exited,) = run.wait(60 * SECOND_NS)
        assert exited.number == 0
        passed = [int(word) for word in run.path_of("n1", "/root/output").read_text().split()]
        assert all(8 <= time_ns / SECOND_NS < 8.2 for time_ns in passed)
        assert run.now_ns / SECOND_NS == pytest.approx(1 + 7 / speed, abs=0.3)
        ahead_s = (run.now_ns - SECOND_NS) * (speed - 1) / SECOND_NS
        assert run.ahead_ns("n1") / SECOND_NS == pytest.approx(ahead_s, abs=0.01)
        assert run.ahead_ns("us") == 0
    finally:
        run.stop()


def test_a_clock_keeps_what_it_gained_when_its_speed_is_right_again(binary: Path, tmp_path: Path) -> None:
    """Its monotonic clock never goes back, and the wall clock can be set right."""
    code = "import time\nfor _ in range(5): print(time.monotonic(), time.time(), flush=True); time.sleep(1)"
    parts = Parts(seed=1, root=tmp_path, nodes=NODES, variables={"PATH": "/usr/bin:/bin"}, shown=[Path("/usr")])
    run = Controller(binary, parts)
    try:
        run.set_speed("n1", 3_000_000)
        run.start("n1", [*PYTHON, code], folder="/root", output="/root/output")
        assert run.wait(SECOND_NS) == []
        run.set_speed("n1", 1_000_000)
        run.set_clock("n1", 0)
        assert run.ahead_ns("n1") == 0
        (exited,) = run.wait(60 * SECOND_NS)
        assert exited.number == 0
        lines = [
            [float(word) for word in line.split()]
            for line in run.path_of("n1", "/root/output").read_text().splitlines()
        ]
        gaps = [after[0] - before[0] for before, after in pairwise(lines)]
        assert all(1 <= gap < 1.1 for gap in gaps)
        lead_s = (run.monotonic_ns("n1") - run.monotonic_ns("us")) / SECOND_NS
        assert lead_s == pytest.approx(2, abs=0.01)
        assert lines[-1][1] - lines[0][1] == pytest.approx(4 - lead_s, abs=0.2)
    finally:
        run.stop()
