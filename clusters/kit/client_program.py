"""A program in Python that carries out requests for the clients of a run, in the simulation of Linux programs.

A client library with threads or sockets of its own cannot run in virtual time in this process. So its part of a system is a
package that uses nothing but Python and the library. `loop.subprocess_exec` starts it, in virtual time as a program of the
simulation on the node of Labrys. A request is a JSON object on a line with an `id`, and so is its answer.

The package and the library are copied to the cache, which programs see, with their code compiled. So the program sees the same
files in each run, whatever else is installed beside them.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import itertools
import json
import os
import py_compile
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clusters.kit.answers import NoAnswer
from harness.cache import appearing, cache, locked
from harness.errors import InfrastructureError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FOLDER: Final = "programs"  # in the cache
PROGRAM: Final = "program"
COPY_S: Final = 120.0
DIGITS: Final = 16
MAX_SHOWN: Final = 200


class ClientProgram(asyncio.SubprocessProtocol):
    """The program of a run, which starts with the first request."""

    def __init__(self, package: Path, libraries: Sequence[str]) -> None:
        """Starts nothing yet.

        Args:
            package: The folder of its package, whose module `main` has a function `main`.
            libraries: The names of the packages that it needs, without the standard library.
        """
        self._package = package
        self._libraries = libraries
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._starting = asyncio.Lock()
        self._transport: asyncio.SubprocessTransport | None = None
        self._input: Any = None
        self._line = b""

    async def ask(self, request: Mapping[str, Any]) -> Any:
        """Sends a request, and returns the result.

        Raises:
            NoAnswer: The program answered with an error.
            InfrastructureError: It cannot be started, or it has ended.
        """
        async with self._starting:
            if self._transport is None:
                await self._start()
        number = next(self._numbers)
        future = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            self.tell({"id": number, **request})
            return await future
        finally:
            del self._answers[number]

    def tell(self, request: Mapping[str, Any]) -> None:
        """Sends a request that has no answer. Does nothing if the program does not run.

        Raises:
            InfrastructureError: The program has ended.
        """
        if self._transport is None:
            return
        if self._transport.get_returncode() is not None:
            raise self._gone()
        self._input.write(json.dumps(request).encode() + b"\n")

    async def _start(self) -> None:
        words = command(copied(self._package, self._libraries))
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.subprocess_exec(lambda: self, *words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        self._input = self._transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - there is one
        """Gives each whole line to who waits for it."""
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            match _read(line):
                case {"id": int(number), "ok": value} if number in self._answers:
                    self._answers[number].set_result(value)
                case {"id": int(number), "error": str(text)} if number in self._answers:
                    self._answers[number].set_exception(NoAnswer(text[:MAX_SHOWN]))

    def process_exited(self) -> None:
        """Nobody gets an answer any more."""
        for future in self._answers.values():
            if not future.done():
                future.set_exception(self._gone())

    def _gone(self) -> InfrastructureError:
        status = None if self._transport is None else self._transport.get_returncode()
        return InfrastructureError(
            f"the program with the clients of this run ended with status {status}; expected it to serve until the end"
        )


def command(path: Path) -> Sequence[str]:
    """Returns the command line of the program in a folder of `copied`. It sees this folder and the standard library only."""
    code = f"import sys; sys.path.insert(0, {str(path)!r}); from {PROGRAM}.main import main; main()"
    return os.path.realpath(sys.executable), "-I", "-S", "-B", "-c", code


def copied(package: Path, libraries: Sequence[str]) -> Path:
    """Returns a folder in the cache with the program and its libraries, compiled; it is made if it is not there.

    Raises:
        InfrastructureError: A library is not installed, or the cache cannot be used.
    """
    sources = {PROGRAM: package}
    for library in libraries:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise InfrastructureError(f"the package {library} is not installed, which the program {package} needs")
        folder = Path(spec.origin).parent
        # A wheel has the libraries of its machine code in a folder beside the package.
        sources |= {source.name: source for source in (folder, folder.with_name(f"{library}.libs")) if source.is_dir()}
    shelf = cache() / FOLDER
    shelf.mkdir(exist_ok=True)
    shelved = shelf / _digest(sources)
    with locked(shelved.with_name(f"{shelved.name}.lock"), timeout_s=COPY_S):
        if not shelved.is_dir():
            with appearing(shelved) as made:
                for name, source in sources.items():
                    shutil.copytree(source, made / name, ignore=shutil.ignore_patterns("__pycache__"))
                for path in sorted(made.rglob("*.py")):
                    _compile(path)
    return shelved


def _compile(path: Path) -> None:
    """Compiles a module. The program does not compare the time of its source, which is another one in the simulation."""
    py_compile.compile(str(path), quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def _digest(sources: Mapping[str, Path]) -> str:
    """Returns digits that change with the version of Python, and with the name or the content of a file."""
    digest = hashlib.sha256(sys.version.encode())
    for name, source in sources.items():
        for path in _files(source):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{name} {path.relative_to(source)} {content}\n".encode())
    return digest.hexdigest()[:DIGITS]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
