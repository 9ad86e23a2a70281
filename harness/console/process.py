"""Ends the process of a command with the right exit code, even if its output is lost.

Invariants:

- Exit code 1 means an invalid verdict. An unhandled exception, a failed import, and a library that calls `sys.exit` all end
  with 255, and never with Python's own 1.
- Lost output raises no exception where it is written, so a command always reaches its verdict. At the end, lost output turns 0
  into 255, and the other stream reports the loss. Every other code stays, so that nothing hides a definite failure.
- A reader that closes its pipe, as `head` does, has read what it wanted. This is no loss: the code stays, without a message.
- A daemon thread that still writes does not change the exit code.
- SIGTERM and SIGHUP end a command as Ctrl-C does. A signal that the parent ignores, as with `nohup`, stays ignored. A signal
  that arrives while Python cannot raise an exception, in a callback of its own, is sent again. One that another thread gets
  ends the wait of the main thread (`harness.console.wakeups`).

This module and its imports need only the standard library, so that it can report any other failed import.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import select
import signal
import sys
import threading
import traceback
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from harness.console.plain import message, plain
from harness.console.wakeups import wake_main_thread
from harness.errors import ExitCode, LabrysError, Terminated, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import ReadableBuffer

COMMAND_MODULE = "cli"  # by name, because no room may import it
LARGEST_CODE = 255
NO_MEMORY = "labrys: the memory does not suffice; give this process more, or a smaller input"
AGAIN_S = 0.05


class _Output(io.RawIOBase):
    """A standard stream that never raises. It records its first failure, and drops all later output.

    Attributes:
        failure: The reason why output is lost; None if none is lost.
        left: Whether the reader has closed its pipe; then later output is dropped.
        written: The number of written bytes.
    """

    def __init__(self, fd: int | None) -> None:
        super().__init__()
        self.failure: str | None = None
        self.left = False
        self.written = 0
        self._fd = fd
        self._again = b""  # bytes that were written before a signal, and that the caller will write again

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._fd is not None and os.isatty(self._fd)

    def fileno(self) -> int:
        if self._fd is None:
            raise io.UnsupportedOperation("the stream is closed")
        return self._fd

    def write(self, data: ReadableBuffer, /) -> int:
        size = memoryview(data).nbytes
        if self.failure is not None or self.left or not size:
            return size
        if self._fd is None:
            self.failure = "it is closed"
            return size
        again, self._again = self._again, b""
        if again and bytes(memoryview(data)[: len(again)]) == again:
            return len(again)
        counts: list[int] = []
        try:
            _write(self._fd, data, counts)
        except BrokenPipeError:
            self.left = True
            return size
        except OSError as error:
            self.failure = error.strerror or str(error)
            return size
        except KeyboardInterrupt:
            if counts:
                self.written += counts[0]
                self._again = bytes(memoryview(data)[: counts[0]])
            else:
                self.failure = "the command was interrupted"  # a reader that does not read must not delay the end
            raise
        self.written += counts[0]
        return counts[0]


def _write(fd: int, data: ReadableBuffer, counts: list[int]) -> None:
    """Writes some bytes and appends their number to `counts`; waits for the reader even if the stream does not block."""
    while not counts:
        try:
            # One call, so that no signal comes between the write and its count.
            counts.extend(map(os.write, [fd], [data]))
        except BlockingIOError:
            select.select([], [fd], [])


def main() -> NoReturn:
    """Carries out the command line of this process, and ends the process."""
    end_with(lambda: int(importlib.import_module(COMMAND_MODULE).invoke(sys.argv[1:])))


def end_with(command: Callable[[], int]) -> NoReturn:
    """Runs a command, reports its error, and ends the process.

    If the standard streams belong to something else, as in tests, this function does not touch them.

    Args:
        command: Returns the exit code, or raises.

    Raises:
        SystemExit: Always, with the exit code.
    """
    own = sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
    code = int(ExitCode.INTERRUPTED)
    # A signal may interrupt the report of an error; then the exit code is that of an interruption.
    with contextlib.suppress(KeyboardInterrupt):
        if own:
            _keep_streams()
            sys.unraisablehook = _resend_signal
            wake_main_thread(_ENDING)
        _on_signals(_ENDING)
        code = _carry_out(command)
    if own:
        _on_signals(dict.fromkeys(_ENDING, _leaving(code)))
    with contextlib.suppress(KeyboardInterrupt):
        if _report_losses(code) and code == ExitCode.VALID:
            code = int(ExitCode.INTERNAL)
    _forget_interruption()
    sys.exit(code)


def _forget_interruption() -> None:
    """Makes Python keep the exit code after an interruption.

    If an interruption leaves code that `exec` gets as text, as that of a dataclass during an import, `python -m` ends with
    SIGINT whatever happens later (`unhandled_keyboard_interrupt` in Python's `pythonrun.c`). The next such code undoes this.
    """
    exec("")  # noqa: S102


def say(text: str) -> None:
    """Prints a text on standard error; on standard output if standard error is lost and standard output is empty."""
    with contextlib.suppress(Exception):  # a stream of the caller may be closed
        _print(sys.stderr, text)
    out, err = _output(sys.stdout), _output(sys.stderr)
    if out is None or err is None or (err.failure is None and not err.left):
        return
    sys.stdout.flush()
    if not out.written and out.failure is None and not out.left:
        _print(sys.stdout, text)


def _print(stream: TextIO, text: str) -> None:
    stream.write(f"{plain(text)}\n")
    stream.flush()


def _carry_out(command: Callable[[], int]) -> int:
    try:
        code = _interruptible(command)
    except LabrysError as error:
        say(message("\n  ".join([f"labrys: {sentence(error)}", *getattr(error, "__notes__", ())])))
        return int(error.exit_code)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        if end.code in {None, 0}:
            return ExitCode.VALID
        say(
            f"labrys: expected a verdict or an error at the end of the command, but a module called sys.exit({end.code!r})"
        )
        return ExitCode.INTERNAL
    except BaseException as error:  # noqa: BLE001 - a panic of the Rust kernel is no Exception
        say(NO_MEMORY if isinstance(error, MemoryError) else in_full(error))
        return ExitCode.INTERNAL
    return code if 0 <= code <= LARGEST_CODE else ExitCode.INTERNAL


def _interruptible(command: Callable[[], int]) -> int:
    """Carries out a command, and raises an interruption that Python 3.11 hides.

    If a signal arrives while Python makes a class, e.g. during an import, its exception is the cause of a RuntimeError.
    """
    try:
        return command()
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def in_full(error: BaseException) -> str:
    """Returns the traceback of a bug in Labrys."""
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001 - memory may be short
        return f"labrys: {type(error).__name__}"


def _report_losses(code: int) -> bool:
    """Writes the buffered output, and reports lost output; returns whether output is lost."""
    reasons = {}
    for name, stream in (("standard output", sys.stdout), ("standard error", sys.stderr)):
        output = _output(stream)
        if output is not None:
            stream.flush()
            if output.failure is not None:
                reasons[name] = output.failure
    then = "the exit code is 255 instead of 0" if code == ExitCode.VALID else f"the exit code stays {code}"
    for name, reason in reasons.items():
        say(f"labrys: {name} could not be written, and output is lost: {reason}; {then}")
    return bool(reasons)


def _keep_streams() -> None:
    """Replaces the standard streams by streams that never raise."""
    atexit.register(_leave_streams)  # the first to register runs as the last, after threads that are no daemons
    for fd in range(3):
        _fill(fd)
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.flush()
        kept = io.TextIOWrapper(
            io.BufferedWriter(_Output(None if stream is None else stream.fileno())),
            encoding="utf-8" if stream is None else stream.encoding,
            errors="backslashreplace" if stream is None or stream.errors == "strict" else stream.errors,
            newline="\n",
            line_buffering=stream is None or stream.line_buffering,
            write_through=stream is not None and stream.write_through,
        )
        setattr(sys, name, kept)


def _fill(fd: int) -> None:
    """Opens /dev/null for a closed standard stream; else the next opened file would get its number."""
    try:
        os.fstat(fd)
    except OSError:
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no keyword


def _leave_streams() -> None:
    """Flushes the standard streams once more, and takes them from the interpreter.

    The interpreter stops all daemon threads where they are, and then flushes its streams. If one of the threads was in the
    middle of a write, it still has the lock of the stream, and the process ends with SIGABRT.

    From here on a signal is ignored, since the interpreter takes its handlers away, and the next one would be the exit status.
    """
    _on_signals(dict.fromkeys(_ENDING, signal.SIG_IGN))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        setattr(sys, name, None)
        if stream is not None:
            with contextlib.suppress(Exception):  # nobody is left to whom a loss could be reported
                stream.flush()


def _output(stream: Any) -> _Output | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Output) else None


def _on_signals(handlers: Mapping[signal.Signals, Callable[..., object] | signal.Handlers]) -> None:
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _resend_signal(lost: sys.UnraisableHookArgs) -> None:
    """Sends a signal again if Python could not raise its exception, e.g. in a callback of a lock of its import system.

    A thread sends it a moment later, because Python ignores an exception here, too.
    """
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
    again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _leaving(code: int) -> Callable[..., object]:
    """Returns a signal handler that ends the process at once with a known exit code."""
    return lambda *_: os._exit(code)


def _terminate(*_: object) -> NoReturn:
    raise Terminated


_ENDING: Final[Mapping[signal.Signals, Callable[..., object]]] = MappingProxyType(
    {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate, signal.SIGHUP: _terminate}
)
