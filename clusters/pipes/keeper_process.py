"""The process that starts the programs of a run, and ends them with it; `clusters.pipes.keeper` is its other end.

It runs as a script with few imports, because each run waits for it. For each program it forks a guard, and the guard forks
the program. Both are subreapers (prctl(2)): what a program starts and leaves becomes a child of its guard, or of this process
if there is no guard any more. So all of it can be found, also what has left its session. It ends when

- the other end closes the lifeline of the program, or
- the harness has died: the kernel then closes all lifelines. A process that the harness has forked can hold them open, so the
  number of the parent tells too.

Then it removes the folder of the run.

A guard writes lines for the harness: `started PID GUARD` or `failed ERRNO PLACE`, then `ended STATUS`, negative for a signal.
The program stays a zombie until then, so no other process gets its number.
"""

import array
import contextlib
import ctypes
import json
import os
import select
import shutil
import socket
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
SIGKILL, SIGPIPE, SIGXFSZ, SIG_DFL = 9, 13, 25, 0
LOOK_S = 1.0
# A request has stdin, stdout and stderr of the program, the pipe for lines, the lifeline, and the request itself.
FILES = 6
LINES = 3  # the place of the pipe for lines
MAX_FAILURE = 100
_libc = ctypes.CDLL(None)


def main() -> None:
    """Starts programs until the harness closes its end of the socket, or dies."""
    harness = os.getppid()
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    requests = socket.socket(fileno=int(sys.argv[1]))
    while os.getppid() == harness:
        if select.select([requests], [], [], LOOK_S)[0]:
            files = _received(requests)
            if len(files) < FILES:
                break
            try:
                is_guard = os.fork() == 0
            except OSError as error:  # too many processes
                is_guard = False
                _tell(files[LINES], b"failed %d guard" % (error.errno or 0))
            if is_guard:
                requests.close()
                _guard(files)
            for descriptor in files:
                os.close(descriptor)
        _reap()
    _end_all()
    shutil.rmtree(sys.argv[2], ignore_errors=True)


def _received(requests: socket.socket) -> list[int]:
    """Returns the descriptors of a request; none if the other end is closed."""
    files = array.array("i")
    _, ancillary, _, _ = requests.recvmsg(1, socket.CMSG_LEN(FILES * files.itemsize))
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
    for descriptor in files:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - no program gets it
    return files.tolist()


def _guard(files: list[int]) -> None:
    """Starts a program, and waits until its lifeline is closed; then ends it with all that it has started."""
    keeper = os.getppid()
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    *pipes, lines, lifeline, request = files
    try:
        reading, writing = os.pipe()  # the start closes it, or says why there is none
        program = os.fork()
        if program == 0:
            _become(pipes, request, writing)
        ended = os.pidfd_open(program)
    except OSError as error:
        _tell(lines, b"failed %d guard" % (error.errno or 0))
        _end_all()
        os._exit(0)
    for descriptor in (*pipes, request, writing):
        os.close(descriptor)
    failure = os.read(reading, MAX_FAILURE)
    if failure:
        _tell(lines, b"failed " + failure)
        os._exit(0)
    _tell(lines, b"started %d %d" % (program, os.getpid()))
    waiting = [lifeline, ended]
    while os.getppid() == keeper:
        ready = select.select(waiting, [], [], LOOK_S)[0]
        if ended in ready:
            waiting = [lifeline]
            state = os.waitid(os.P_PID, program, os.WEXITED | os.WNOWAIT)
            if state is not None:
                _tell(lines, b"ended %d" % (state.si_status if state.si_code == os.CLD_EXITED else -state.si_status))
        if lifeline in ready:
            break
        _reap(program)
    _end_all()
    os._exit(0)


def _become(pipes: list[int], request: int, failure: int) -> None:
    """Becomes the program, or says why not."""
    step = b"folder"
    try:
        guard = os.getppid()
        _libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
        with open(request, "rb") as file:
            asked = json.loads(file.read())
        os.setsid()
        os.chdir(asked["directory"])
        step = b"program"
        for number, descriptor in enumerate(pipes):
            os.dup2(descriptor, number)
        for signal in (SIGPIPE, SIGXFSZ):  # Python ignores them, and a program would inherit that
            _libc.signal(signal, SIG_DFL)
        if os.getppid() == guard:  # else it has ended before the signal was asked for
            os.execve(asked["command"][0], asked["command"], asked["environment"])  # noqa: S606 - a shell would add nothing
    except OSError as error:
        os.write(failure, b"%d %s" % (error.errno or 0, step))
    finally:
        os._exit(1)


def _tell(lines: int, text: bytes) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more
        os.write(lines, text + b"\n")


def _children() -> list[int]:
    with open("/proc/thread-self/children", encoding="ascii") as file:  # noqa: PTH123 - a module less to import
        return [int(word) for word in file.read().split()]


def _reap(kept: int = 0) -> None:
    """Takes the children that have ended, without one."""
    for pid in _children():
        if pid != kept:
            os.waitpid(pid, os.WNOHANG)


def _end_all() -> None:
    """Ends all children, and the children that they leave, until there are none."""
    while pids := _children():
        for pid in pids:
            with contextlib.suppress(PermissionError):  # a program of another user
                os.kill(pid, SIGKILL)
        os.waitpid(pids[0], 0)


main()
