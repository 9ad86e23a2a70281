"""How the process ends: its exit code, whatever happens to its streams, and whatever signal comes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import pytest

from harness.console.process import end_with
from harness.errors import ExitCode, InputError, LabrysError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[3]
LABRYS = (sys.executable, "-m", "cli")
DEADLINE_S = 60.0
TOGETHER = 4
VALID = "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 1}\n"
INVALID = VALID + "{:process 1 :type :invoke :f :read}\n{:process 1 :type :ok :f :read :value 2}\n"
WARNED = VALID.replace("{", "{:time 5 ", 1).replace("}\n{", "}\n{:time 5 ") + (
    "{:process 1 :time 3 :type :invoke :f :read}\n{:process 1 :time 4 :type :ok :f :read :value 1}\n"
)


class Command(NamedTuple):
    """A command line, its exit code where nothing is lost, and which streams it writes to."""

    line: str
    code: int
    out: bool = False
    err: bool = False


COMMANDS = (
    Command("check valid.edn", ExitCode.VALID, out=True),
    Command("check invalid.edn", ExitCode.INVALID, out=True),
    Command("check --format json valid.edn warned.edn", ExitCode.VALID, out=True, err=True),
    Command("check empty.edn", ExitCode.UNKNOWN, out=True),
    Command("check nosuch", ExitCode.BAD_ARGUMENTS, err=True),
    Command("plan --nemesis kill", ExitCode.VALID, out=True),
    Command("test --nemesis nosuch", ExitCode.BAD_ARGUMENTS, err=True),
    Command("analyze --help", ExitCode.VALID, out=True),
    Command("doctor --nosuch", ExitCode.BAD_ARGUMENTS, err=True),
    Command("cluster status nosuchcluster", ExitCode.BAD_ARGUMENTS, err=True),
    Command("report", ExitCode.BAD_ARGUMENTS, err=True),
    Command("replay", ExitCode.BAD_ARGUMENTS, err=True),
    Command("suite suite.toml", ExitCode.BAD_ARGUMENTS, err=True),
    Command("chek", ExitCode.BAD_ARGUMENTS, err=True),
)
LEFT = "the reader has left"
STREAMS = {
    "all is well": "",
    "stdin and stdout closed": "<&- >&-",
    "stdin and stderr closed": "<&- 2>&-",
    "stdout full": ">/dev/full",
    "stderr full": "2>/dev/full",
    "all closed": "<&- >&- 2>&-",
    LEFT: None,
}
NO_OUT = {"stdin and stdout closed", "stdout full", "all closed", LEFT}
NO_ERR = {"stdin and stderr closed", "stderr full", "all closed"}
# A command that writes to standard error alone does not notice what becomes of its standard output.
CASES = [(command, name) for command in COMMANDS for name in STREAMS if command.out or name not in NO_OUT - NO_ERR]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "valid.edn").write_text(VALID)
    (folder / "invalid.edn").write_text(INVALID)
    (folder / "warned.edn").write_text(WARNED)
    (folder / "empty.edn").write_text("[]")
    (folder / "suite.toml").write_text("[[test]]\nname = 'a'\nrate = []\n")
    return folder


def environment(**more: str) -> Mapping[str, str]:
    """The variables of a command."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run(place: Path, line: str, streams: str | None, program: Sequence[str] = LABRYS, **more: str) -> Ended:
    """Runs a command line with its streams as a shell redirects them; None: stdout is a pipe that nobody reads any more."""
    arguments = ["sh", "-c", f'exec "$@" {streams or ""}', "sh", *program, *line.split()]
    read, write = os.pipe()
    os.close(read)
    try:
        ended = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=write if streams is None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=place,
            env=environment(**more),
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
    finally:
        os.close(write)
    return Ended(ended.returncode, ended.stdout or "", ended.stderr)


@pytest.fixture(scope="module")
def ended(place: Path) -> Mapping[tuple[Command, str], Ended]:
    """How each command ends with each kind of streams."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        return dict(zip(CASES, pool.map(lambda case: run(place, case[0].line, STREAMS[case[1]]), CASES), strict=True))


@pytest.mark.parametrize(("command", "name"), CASES, ids=[f"{command.line}: {name}" for command, name in CASES])
def test_every_exit_code_is_true(ended: Mapping[tuple[Command, str], Ended], command: Command, name: str) -> None:
    """A lost output turns 0 into 255 and leaves every other code, and it is said on the stream that is left.

    A reader that has left loses nothing, so the code stays, and nothing is said.
    """
    code, out, err = ended[command, name]
    if name == LEFT:
        assert (code, bool(err), "could not be written" in err) == (command.code, command.err, False)
        return
    no_out, no_err = name in NO_OUT and command.out, name in NO_ERR and command.err
    lost = no_out or no_err
    assert code == (ExitCode.INTERNAL if lost and command.code == ExitCode.VALID else command.code)
    assert "Traceback" not in out + err
    if name == "all closed":
        assert (out, err) == ("", "")
    elif no_out:
        assert "labrys: standard output could not be written" in err
    elif no_err and not command.out:
        assert out.strip(), "the error goes to standard output where nothing else stands"
    elif no_err:
        assert out.endswith("}\n"), "a document is not spoilt"
    else:
        assert (bool(out), bool(err)) == (command.out, command.err)


@pytest.mark.parametrize("word", ["bash_source", "zsh_source", "fish_source", "nosuch_source", "bash_nosuch"])
def test_completion(place: Path, word: str) -> None:
    """A shell gets its script; what is asked wrongly is a bad argument, and a script that is lost is no success."""
    known = word.endswith("h_source") and not word.startswith("nosuch")
    assert run(place, "", "", _LABRYS_COMPLETE=word).code == (ExitCode.VALID if known else ExitCode.BAD_ARGUMENTS)
    if word == "zsh_source":
        assert run(place, "", ">/dev/full", _LABRYS_COMPLETE=word).code == ExitCode.INTERNAL


@pytest.mark.parametrize(("file", "code"), [("valid.edn", ExitCode.VALID), ("invalid.edn", ExitCode.INVALID)])
def test_nothing_is_said_after_head(place: Path, file: str, code: int) -> None:
    """`head` leaves after its first line. The command says nothing, and keeps its code."""
    script = 'set -o pipefail; "$@" 2>err.txt | head -1 >/dev/null; echo "${PIPESTATUS[0]}"'
    ended = subprocess.run(
        ["bash", "-c", script, "bash", *LABRYS, "check", *[file] * 3000],
        cwd=place, env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert (int(ended.stdout), (place / "err.txt").read_text()) == (code, "")


def test_standard_input_that_is_closed(place: Path) -> None:
    """The command says so."""
    code, _, err = run(place, "check -", "<&-")
    assert (code, err) == (ExitCode.BAD_ARGUMENTS, "labrys: -: cannot be read: standard input is closed\n")


@pytest.mark.parametrize(
    "program",
    [
        LABRYS,
        (sys.executable, "-c", "from harness.console.process import main; main()"),
        (sys.executable, str(ROOT / "cli.py")),
    ],
    ids=["module", "script", "file"],
)
def test_a_failed_import_is_no_verdict(place: Path, tmp_path: Path, program: Sequence[str]) -> None:
    """Whatever way the command is started; Python's own exit code would be 1."""
    (tmp_path / "click.py").write_text("raise ImportError('click is broken')")
    path = f"{tmp_path}:{ROOT}"
    code, out, err = run(place, "check valid.edn", "", program, PYTHONPATH=path)
    assert (code, out) == (ExitCode.INTERNAL, "")
    assert "click is broken" in err
    assert run(place, "check valid.edn", "2>&-", program, PYTHONPATH=path).code == ExitCode.INTERNAL
    assert run(place, "check invalid.edn", "", program).code == ExitCode.INVALID


def test_the_installed_script_is_the_guarded_one() -> None:
    """The script of the package imports nothing that can fail before its exit code is ours."""
    assert 'labrys = "harness.console.process:main"' in (ROOT / "pyproject.toml").read_text()


@contextlib.contextmanager
def started(place: Path, *arguments: str, before: str = ":") -> Iterator[subprocess.Popen[bytes]]:
    """Starts a command that waits, after a shell's, and gives it as soon as it handles signals."""
    process = subprocess.Popen(
        ["sh", "-c", f'{before}; exec "$@"', "sh", *LABRYS, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=place, env=environment(),
    )  # fmt: skip
    try:
        deadline_s = time.monotonic() + DEADLINE_S
        while not _catches(process.pid, signal.SIGTERM):
            assert time.monotonic() < deadline_s, "it never handled signals"
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.communicate()


def _catches(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    (caught,) = (line.split()[1] for line in status if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_a_command_as_ctrl_c_does(place: Path, number: signal.Signals) -> None:
    """The exit code is 130, without a traceback; a server that is ended has done what it was asked."""
    with started(place, "check", "-") as waiting:
        waiting.send_signal(number)
        _, err = waiting.communicate(timeout=DEADLINE_S)
        assert (waiting.returncode, b"Traceback" in err) == (ExitCode.INTERRUPTED, False)
    with started(place, "serve", "--port", "0") as server:
        assert server.stderr is not None
        assert b"Ctrl-C ends it" in server.stderr.readline()
        server.send_signal(number)
        _, err = server.communicate(timeout=DEADLINE_S)
        assert (server.returncode, b"Traceback" in err) == (ExitCode.VALID, False)


WAITS = """
import queue, threading
from harness.console import process

def command():
    for _ in range(3):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    {wait}
    return 0

process.end_with(command)
"""


@pytest.mark.parametrize(
    "wait",
    ["queue.SimpleQueue().get()", "threading.Event().wait()", "__import__('subprocess').run(['sleep', '60'])"],
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_to_a_stopped_command_ends_it(tmp_path: Path, wait: str, number: signal.Signals) -> None:
    """As Ctrl-Z and then `kill %1`: another thread may get the signal, and the main thread waits all the same."""
    program = tmp_path / "waits.py"
    program.write_text(WAITS.format(wait=wait))
    for _ in range(3):
        with subprocess.Popen([sys.executable, str(program)], env=environment(), cwd=ROOT) as waiting:
            try:
                _when_it_waits(waiting.pid)
                for sent in (signal.SIGSTOP, number, signal.SIGCONT):
                    waiting.send_signal(sent)
                    time.sleep(0.02)
                assert waiting.wait(DEADLINE_S) == ExitCode.INTERRUPTED
            finally:
                waiting.kill()


def _when_it_waits(pid: int) -> None:
    """Returns when all threads of a process that has at least four sleep."""
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
        if len(states) > 3 and set(states) == {"S"}:
            return
        assert time.monotonic() < deadline_s, "it never waited"
        time.sleep(0.05)


LAST_WORD = """
import os, signal, sys
from harness.console import process

class Late:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.{name}):
        kill(pid, number)

sys.kept = Late()  # the interpreter drops it after its handlers of signals
process.end_with(lambda: {code})
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.parametrize("code", [ExitCode.VALID, ExitCode.INVALID, ExitCode.INTERRUPTED])
def test_a_signal_after_the_last_word_changes_no_exit_code(tmp_path: Path, name: str, code: int) -> None:
    """A second Ctrl-C often comes when the interpreter already ends; the exit code stays."""
    program = tmp_path / "late.py"
    program.write_text(LAST_WORD.format(name=name, code=int(code)))
    ended = subprocess.run([sys.executable, str(program)], env=environment(), check=False)
    assert ended.returncode == code


INSIDE = """
from harness.console import process

def command():
    exec("import os, signal; os.kill(os.getpid(), signal.{name}); [None for _ in range(1000)]")
    return 0

process.end_with(command)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_inside_of_code_that_is_text_ends_a_module_with_its_code(tmp_path: Path, name: str) -> None:
    """The code of a dataclass is such a text, so this happens during imports; Python would end itself with SIGINT."""
    (tmp_path / "inside.py").write_text(INSIDE.format(name=name))
    path = f"{tmp_path}:{ROOT}"
    done = subprocess.run(
        [sys.executable, "-m", "inside"],
        env=environment(PYTHONPATH=path),
        timeout=DEADLINE_S,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (ExitCode.INTERRUPTED, b"")


LOST = """
import os, signal, time
from harness.console import process

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000): pass  # the handler raises here, where Python ignores what is raised

def command():
    deaf = Deaf()
    del deaf
    time.sleep(30)
    return 0

process.end_with(command)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_that_cannot_be_raised_is_not_lost(place: Path, name: str) -> None:
    """Python ignores what is raised in a destructor; the signal comes again after it."""
    ended = subprocess.run(
        [sys.executable, "-c", LOST.format(name=name)],
        capture_output=True, cwd=place, env=environment(), timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (ExitCode.INTERRUPTED, b"")


def test_a_signal_that_the_parent_ignores_stays_ignored(place: Path) -> None:
    """As `nohup` asks."""
    with started(place, "check", "-", before="trap '' HUP") as waiting:
        waiting.send_signal(signal.SIGHUP)
        out, _ = waiting.communicate(INVALID.encode(), timeout=DEADLINE_S)
        assert (waiting.returncode, b"invalid" in out) == (ExitCode.INVALID, True)


def test_under_nohup_these_tests_start_programs_that_take_sighup() -> None:
    """A test process that ignores SIGHUP goes on after one, and its children end by one."""
    script = (
        "import os, signal, subprocess, conftest\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "print(subprocess.run(['sh', '-c', 'kill -HUP $$; echo went on'], check=False).returncode)"
    )
    code, out, err = run(ROOT, "", "", ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-c", script])
    assert (code, out) == (0, f"{-signal.SIGHUP}\n"), err


LATE = {
    "a failing handler": "import atexit; atexit.register(lambda: 1 / 0)",
    "a late print": "import atexit; atexit.register(print, 'late', flush=True)",
    "a late signal": "import atexit, os; atexit.register(lambda: os.kill(os.getpid(), 15))",
    "a failing thread": "import threading; threading.Thread(target=lambda: 1 / 0).start()",
    "a printing thread": "import threading; threading.Thread(target=print, args=['x' * 100_000]).start()",
    "daemons that never stop printing": (
        "import sys, threading\n"
        "def talk():\n"
        "    while True:\n"
        "        print('x' * 50, file=sys.stderr)\n"
        "for _ in range(3):\n"
        "    threading.Thread(target=talk, daemon=True).start()\n"
        "import time\n"
        "time.sleep(0.2)"
    ),
}


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("code", [0, 1])
def test_what_comes_after_the_verdict_changes_no_code(place: Path, late: str, code: int) -> None:
    """Neither handlers at exit, nor threads, nor signals, with or without a stream to write to."""
    script = f"from harness.console.process import end_with\n{LATE[late]}\nend_with(lambda: {code})"
    threads = code or (
        ExitCode.INTERNAL if {"thread", "daemons"} & set(late.split()) else 0
    )  # their output is lost before the end, or not
    assert run(place, "", "", [sys.executable, "-c", script]).code == code
    assert run(place, "", ">&- 2>/dev/full", [sys.executable, "-c", script]).code in {code, threads}


class Panic(BaseException):
    """As the kernel raises it."""


class MuteError(LabrysError):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        """Fails, as for an integer with too many digits."""
        raise ValueError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SystemExit(1), ExitCode.INTERNAL),
        (SystemExit("no"), ExitCode.INTERNAL),
        (SystemExit(), ExitCode.VALID),
        (BrokenPipeError(), ExitCode.INTERNAL),
        (EOFError(), ExitCode.INTERNAL),
        (MemoryError(), ExitCode.INTERNAL),
        (RecursionError(), ExitCode.INTERNAL),
        (Panic("at lib.rs"), ExitCode.INTERNAL),
        (MuteError(), ExitCode.INTERNAL),
        (InputError("\ud800"), ExitCode.BAD_ARGUMENTS),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
    ids=repr,
)
def test_no_error_is_a_verdict(capsys: pytest.CaptureFixture[str], error: BaseException, code: int) -> None:
    """Whatever is raised, by whomever, 1 is not its exit code."""

    def fail() -> NoReturn:
        raise error

    with pytest.raises(SystemExit) as left:
        end_with(fail)
    assert left.value.code == code
    assert capsys.readouterr().out == ""


def test_a_signal_while_a_class_is_made_is_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    """Up to Python 3.11 it comes as a RuntimeError from it; a RuntimeError of its own is a mistake of ours."""

    class Named:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def interrupted() -> NoReturn:
        type("Owner", (), {"named": Named()})
        raise AssertionError

    def mistaken() -> NoReturn:
        raise RuntimeError

    for command, code in ((interrupted, ExitCode.INTERRUPTED), (mistaken, ExitCode.INTERNAL)):
        with pytest.raises(SystemExit) as left:
            end_with(command)
        assert left.value.code == code
    assert "KeyboardInterrupt" not in capsys.readouterr().err


@pytest.mark.parametrize("code", [-9, 256, 257, 2**40])
def test_a_code_that_no_process_can_have(code: int) -> None:
    """256 would leave as 0, and 257 as 1."""
    with pytest.raises(SystemExit) as left:
        end_with(lambda: code)
    assert left.value.code == ExitCode.INTERNAL


def test_a_reader_that_does_not_read_cannot_hold_up_the_end() -> None:
    """SIGTERM ends a command that waits for its reader, at once."""
    script = "from harness.console.process import end_with\nend_with(lambda: int(bool(print('x' * 1_000_000))))"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdout.read(1) == b"x"
        stuck.terminate()
        assert stuck.wait(timeout=DEADLINE_S) == ExitCode.INTERRUPTED
