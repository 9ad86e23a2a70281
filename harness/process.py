"""The end of the process of a command: its exit code, whatever happens to its output.

Invariants:

- Exit code 1 means an invalid verdict. Python's own 1 never leaves the process: an unhandled exception, a
  failed import and a library that calls `sys.exit` all end with 255.
- Lost output never raises an exception where it is written, so a command always reaches its verdict. At the end, lost output
turns
  0 into 255, and the other stream reports the loss. Every other code stays: nothing masks a definite failure.
- SIGTERM and SIGHUP end a command as Ctrl-C does. A signal that the parent ignores, as with `nohup`, stays ignored. A signal
that
  arrives while Python cannot raise an exception, in a callback of its own, is sent again.

This module and its imports need only the standard library, so that it can report any other failed import.
"""

from __future__ import annotations

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

from harness.errors import ExitCode, LabrysError, Terminated, sentence
from harness.plain import message, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from _typeshed import ReadableBuffer

COMMAND_MODULE = "cli"  # by name: no room imports the module that composes all rooms
LARGEST_CODE = 255
AGAIN_S = 0.05


class _Output(io.RawIOBase):
    """A standard stream that never raises: it records its first failure, and drops all later output.

    Attributes:
        failure: Why output is lost; None if no output is lost.
        written: How many bytes were written.
    """

    def __init__(self, fd: int | None) -> None:
        super().__init__()
        self.failure: str | None = None
        self.written = 0
        self._fd = fd
        self._again = b""  # what was written, and will be given again, because a signal hid that

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
        if self.failure is not None or not size:
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
        except OSError as error:
            self.failure = error.strerror or str(error)
            return size
        except KeyboardInterrupt:
            if counts:
                self.written += counts[0]
                self._again = bytes(memoryview(data)[: counts[0]])
            else:
                self.failure = "the command was interrupted"  # whoever does not read must not hold up the end
            raise
        self.written += counts[0]
        return counts[0]


def _write(fd: int, data: ReadableBuffer, counts: list[int]) -> None:
    """Writes some bytes and notes how many; waits for a reader even where the stream does not block by itself."""
    while not counts:
        try:
            # One call, so that no signal comes between the write and the note of it.
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
    # A signal that comes while an error is being told interrupts that; the code is that of an interruption then.
    with contextlib.suppress(KeyboardInterrupt):
        if own:
            _keep_streams()
            sys.unraisablehook = _not_lost
        _on_signals(_ENDING)
        code = _carry_out(command)
    if own:
        _on_signals(dict.fromkeys(_ENDING, _leaving(code)))
    with contextlib.suppress(KeyboardInterrupt):
        if _tell_losses(code) and code == ExitCode.VALID:
            code = int(ExitCode.INTERNAL)
    sys.exit(code)


def say(text: str) -> None:
    """Says something to a person: on standard error, or on standard output if that alone is left and nothing stands there."""
    with contextlib.suppress(Exception):  # a stream that is not ours may be closed
        _print(sys.stderr, text)
    out, err = _output(sys.stdout), _output(sys.stderr)
    if out is None or err is None or err.failure is None:
        return
    sys.stdout.flush()
    if not out.written and out.failure is None:
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
    except SystemExit as left:
        if left.code in {None, 0}:
            return ExitCode.VALID
        say(
            f"labrys: expected a command to end with a verdict or an error; something left the process with {left.code}"
        )
        return ExitCode.INTERNAL
    except BaseException as error:  # noqa: BLE001 - a panic of the kernel is no Exception, and no verdict either
        say(in_full(error))
        return ExitCode.INTERNAL
    return code if 0 <= code <= LARGEST_CODE else ExitCode.INTERNAL


def _interruptible(command: Callable[[], int]) -> int:
    """Carries out a command; an interruption is one also where Python 3.11 hides it.

    What a signal raises while a class is made, e.g. during an import, comes as a RuntimeError from it.
    """
    try:
        return command()
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def in_full(error: BaseException) -> str:
    """Returns the traceback of a mistake of our own."""
    try:
        return "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # noqa: BLE001 - memory may be short
        return f"labrys: {type(error).__name__}"


def _tell_losses(code: int) -> bool:
    """Writes the buffered output, and reports lost output. Returns whether output is lost."""
    reasons = {}
    for name, stream in (("standard output", sys.stdout), ("standard error", sys.stderr)):
        output = _output(stream)
        if output is not None:
            stream.flush()
            if output.failure is not None:
                reasons[name] = output.failure
    then = "the exit code is 255 in place of 0" if code == ExitCode.VALID else f"the exit code {code} stands"
    for name, reason in reasons.items():
        say(f"labrys: {name} could not be written, and output is lost: {reason}; {then}")
    return bool(reasons)


def _keep_streams() -> None:
    """Puts streams that never raise in the place of the standard ones."""
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
    """Opens a standard stream that is closed as nothing; else the next file that is opened would be taken for it."""
    try:
        os.fstat(fd)
    except OSError:
        with contextlib.suppress(OSError):
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)  # noqa: FBT003 - it takes no keyword


def _output(stream: Any) -> _Output | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw if isinstance(raw, _Output) else None


def _on_signals(handlers: Mapping[signal.Signals, Callable[..., object]]) -> None:
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _not_lost(lost: sys.UnraisableHookArgs) -> None:
    """Sends a signal again whose exception Python could not raise, e.g. in a callback of a lock of its import system.

    It is sent a moment later, by a thread: what is raised here is ignored, too.
    """
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    number = signal.SIGTERM if isinstance(lost.exc_value, Terminated) else signal.SIGINT
    again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _leaving(code: int) -> Callable[..., object]:
    """Returns what a signal does that comes when the exit code is known: the process ends with that code at once."""
    return lambda *_: os._exit(code)


def _terminate(*_: object) -> NoReturn:
    raise Terminated


_ENDING: Final[Mapping[signal.Signals, Callable[..., object]]] = MappingProxyType(
    {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminate, signal.SIGHUP: _terminate}
)
