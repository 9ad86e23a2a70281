"""Says which code of a user failed: an error of a plug-in becomes a sentence with its function, its file and its line.

The code of a system or of a model is foreign to Labrys. Its exceptions are no bugs of Labrys, and their tracebacks help nobody
but the author. `sys.exit` there must not end Labrys, least of all with 0. In an event loop it would end the loop at once, so
`without_exit` makes an error of it where the foreign code is called.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from harness.console.plain import name as plain_name
from harness.console.plain import one_line
from harness.errors import LabrysError, PluginError, sentence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Collection, Iterator, Sequence

T = TypeVar("T")
ErrorT = TypeVar("ErrorT", bound=BaseException)

MAX_REASON: Final = 300
OURS: Final = ("harness.", "checker.", "clusters.", "workloads.", "nemesis.", "results.", "commands.")
OWN_FILES: Final = "harness.console.own."  # the modules of files that the user names


def place_in(error: BaseException, files: Collection[str | None]) -> str | None:
    """Returns the last place of an exception in some files, e.g. `step (latch.py:7)`; None if it passed none of them."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return f"{frames[-1].name} ({plain_name(frames[-1].filename)}:{frames[-1].lineno})" if frames else None


def files_of(cls: type, ours: Collection[str]) -> frozenset[str | None]:
    """Returns the files of a class and of its bases.

    Args:
        cls: The class.
        ours: The beginnings of the names of modules that are no foreign code.
    """
    return frozenset(_file_of(name) for name in _modules_of(cls, ours))


def _modules_of(cls: type, ours: Collection[str]) -> set[str]:
    bases = getattr(cls, "__mro__", (cls,))  # the object of an entry point may be a function
    names = {base.__module__ for base in bases if base is not object}
    return {name for name in names if is_foreign(name, ours)}


def is_foreign(module: str, ours: Collection[str] = OURS) -> bool:
    """Returns whether a module is foreign code: one of a file that the user names, or of another package.

    Args:
        module: Its name.
        ours: As in `files_of`.
    """
    return module.startswith(OWN_FILES) or not module.startswith(tuple(ours))


def _file_of(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__file__", None)


def _files_of_package(cls: type) -> frozenset[str | None]:
    """Returns the files of a plug-in: those of its class, and of all modules in the packages of these."""
    theirs = _modules_of(cls, OURS)
    packages = tuple(f"{name.partition('.')[0]}." for name in theirs if "." in name and not name.startswith(OWN_FILES))
    return frozenset(map(_file_of, theirs | {name for name in sys.modules if name.startswith(packages)}))


class Blamable(NamedTuple):
    """A plug-in that is to blame for exceptions of its code.

    Attributes:
        cls: Its class.
        called: Its name in messages, e.g. `system my-store`.
    """

    cls: type
    called: str


@contextmanager
def blaming(*plugins: Blamable) -> Iterator[None]:
    """Raises an exception from the code of a plug-in as `PluginError`; other errors stay as they are.

    Args:
        plugins: The plug-ins. Two of them may be in one file.

    Raises:
        PluginError: The code of a plug-in failed; the message names the function, the file and the line.
    """
    try:
        yield
    except (LabrysError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if _cancels(error):
            raise
        blamed = blame(error, *plugins)
        if blamed is None:
            raise
        raise blamed from error


def blamed(error: ErrorT, *plugins: Blamable) -> ErrorT | PluginError:
    """Returns the sentence about an exception if it is from the code of a plug-in, and else the exception."""
    return error if isinstance(error, LabrysError) else blame(error, *plugins) or error


def blame(error: BaseException, *plugins: Blamable) -> PluginError | None:
    """Returns the sentence about an exception from the code of a plug-in; None if it is from other code."""
    files = [_files_of_package(plugin.cls) for plugin in plugins]
    location = place_in(error, frozenset().union(*files))
    if location is None:
        return None
    called = _whose(error, plugins, files).called
    kind = "" if isinstance(error, CalledExit) else f"{type(error).__name__}: "
    text = plain_name(one_line(sentence(error)), MAX_REASON)
    return PluginError(f"{called}: {location} failed: {kind}{text}; correct the {called.partition(' ')[0]}")


def _whose(error: BaseException, plugins: Sequence[Blamable], files: Sequence[Collection[str | None]]) -> Blamable:
    """Returns the plug-in whose method was called last; if none was, the first one with a file of the exception."""
    names = [{base.__qualname__ for base in getattr(plugin.cls, "__mro__", (plugin.cls,))} for plugin in plugins]
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    for code in reversed(codes):
        for plugin, own, methods in zip(plugins, files, names, strict=True):
            if code.co_filename in own and code.co_qualname.rpartition(".")[0] in methods:
                return plugin
    return next(
        plugin
        for code in reversed(codes)
        for plugin, own in zip(plugins, files, strict=True)
        if code.co_filename in own
    )


def _cancels(error: BaseException) -> bool:
    """Returns whether an exception may cancel a task. The checker needs no event loop, so this module does not load one."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # there is no task, so foreign code raised it
        return False
    return True


class CalledExit(RuntimeError):  # noqa: N818 - what the code did
    """Foreign code called `sys.exit`, or raised another exception that is no error, such as GeneratorExit."""


def exit_of(end: BaseException) -> CalledExit:
    """Returns the error in place of an exception that is no `Exception`, with its traceback."""
    text = f"called sys.exit({end.code!r})" if isinstance(end, SystemExit) else f"raised {type(end).__name__}"
    return CalledExit(f"it {text}").with_traceback(end.__traceback__)


async def without_exit(work: Awaitable[T]) -> T:
    """Awaits foreign code.

    Raises:
        CalledExit: It called `sys.exit`, or cancelled itself.
    """
    import asyncio  # noqa: PLC0415 - see `_cancels`

    try:
        return await work
    except (SystemExit, GeneratorExit) as end:
        raise exit_of(end) from None
    except asyncio.CancelledError as end:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise exit_of(end) from None
