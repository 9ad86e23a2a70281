"""Builds the software under test on this machine: once, into a cache outside of any repository.

A system describes a `Build`: a command, the folder of sources in whose copy it runs, the tools that it needs, and what it
makes. The result is an `Artifact`: a folder with a digest of its content and a provenance. `harness.cache` has the rules for
its place.

- The name of an entry has a digest of all that determines it: sources, command, version, patches, and the program files of the
  tools. So a change of any of them builds again, and runs nothing else.
- Every use checks the content by its digest. A damaged entry is built again.
- A package can carry entries (`Build.shelf`), so that a machine without the tools has the artifact too. A machine without the
  tools also takes an entry of the same sources that other tools have made.
- On a node, the path of an artifact has its digest. So two variants never overwrite each other.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cache import appearing, cache, locked
from harness.errors import InfrastructureError, InputError
from harness.remote.folders import PLACE, digest, put_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.remote import Remote
    from harness.traits import Program

    Say = Callable[[str], object]

TREE, ABOUT = "tree", "artifact.json"
SHOWN_DIGITS = 12
KEY_DIGITS = 16
FILES_ARE_OF_S = 946_684_800  # 2000-01-01, the time of all files of an artifact
TIMEOUT_S = 900.0
MORE_FOR_LOCK_S = 60.0
TELL_EVERY_S = 5.0
TOOL_TIMEOUT_S = 30.0
MAX_LINE = 120
LAST_LINES = 15
NAME = re.compile(r"[a-z0-9][a-z0-9.-]*")
NUMBER = re.compile(r"\d+(?:\.\d+)+")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class BuildFailedError(InfrastructureError):
    """The command of a build failed, did not end in time, or did not make what it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What an artifact is and where it comes from; `test.json` and `results.json` have it.

    Attributes:
        name: Its name, e.g. `my-store`.
        version: The base version of the software in it.
        digest: The SHA-256 of its content, in hexadecimal digits; see `harness.remote.folders.digest`.
        patches: The changes to the base version: a name each, then a colon and what it does if the name does not say it.
            Empty: it is the released software.
        commit: The commit of the sources, if they are in a git repository; `with changes` follows if some were not committed.
        made: How it was made: the digest of the sources, and the tools with their versions.
    """

    name: str
    version: str
    digest: str
    patches: list[str] = field(default_factory=list)
    commit: str | None = None
    made: str = ""

    @property
    def short(self) -> str:
        """Returns the first digits of the digest."""
        return self.digest[:SHOWN_DIGITS]

    @property
    def patch_names(self) -> list[str]:
        """Returns the names of its patches, without what they do."""
        return [patch.partition(": ")[0] for patch in self.patches]

    @property
    def mended(self) -> str:
        """Returns a sentence about its patches, for the first line of a report; empty without patches."""
        if not self.patches:
            return ""
        return f"This is {self.name} {self.version} with changes, not the released one: {', '.join(self.patch_names)}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A folder of this machine with what a system installs on its nodes.

    Attributes:
        path: The folder. Its content never changes.
        provenance: What it is.
    """

    path: Path
    provenance: Provenance

    @property
    def there(self) -> str:
        """Returns the folder on a node; its name has the digest."""
        return f"{PLACE}/{self.provenance.name}-{self.provenance.short}"

    def install(self, remote: Remote) -> None:
        """Copies it to a node, if it is not there yet. A node that sees this machine's files gets a link.

        Raises:
            NodeError: The node cannot unpack it.
            InfrastructureError: It cannot be read here.
        """
        put_folder(remote, self.path, self.there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A command that makes an artifact from a folder of sources.

    Attributes:
        name: The name of the artifact: lower-case letters, digits, hyphens and dots.
        version: The base version of the software in it.
        sources: The folder of sources.
        command: The command. It runs in a copy of the sources.
        product: The path in this copy of what it makes: a folder, or one file.
        files: Patterns for the sources in their folder, as for `Path.glob`; e.g. not the output of earlier builds.
        parts: Files of other artifacts that the command needs, by their path in the copy.
        tools: The programs that the command needs, e.g. `mvn`.
        variables: Environment variables that change what it makes, e.g. `JAVA_HOME`.
        patches: See `Provenance`.
        shelf: A folder with entries that the package carries; see `put_on_shelf`.
        timeout_s: The time limit of the command, in seconds.
    """

    name: str
    version: str
    sources: Path
    command: Sequence[str]
    product: str
    files: Sequence[str] = ("**/*",)
    parts: Mapping[str, Path] = field(default_factory=dict)
    tools: Sequence[Program] = ()
    variables: Sequence[str] = ()
    patches: Sequence[str] = ()
    shelf: Path | None = None
    timeout_s: float = TIMEOUT_S

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(
                f"expected a name of lower-case letters, digits, hyphens and dots for an artifact, not {self.name!r}"
            )

    def artifact(self, say: Say) -> Artifact:
        """Returns the artifact: from the cache or the package, or else built now.

        Args:
            say: Is called with a sentence about what goes on.

        Raises:
            InfrastructureError: A tool is missing, the command failed or did not end in time, or the cache cannot be used.
        """
        try:
            return self._artifact(say)
        except OSError as error:
            raise InfrastructureError(
                f"{self.name} cannot be built: {error}; if the disk is full, set XDG_CACHE_HOME to another folder"
            ) from error

    def lacking_tools(self) -> list[str]:
        """Returns the tools that this machine lacks to build the artifact; none if it is there. It starts no program."""
        if self._there(self._tools_key()) is not None:
            return []
        return [tool.name for tool in self.tools if shutil.which(tool.name) is None]

    def _there(self, by_tools: str | None) -> tuple[Artifact, str] | None:
        """Returns the artifact that is there already, and where; None if there is none."""
        shelf, by_sources = cache() / "builds", self._key()
        anything = f"{by_sources}-{'?' * KEY_DIGITS}/"  # whatever the tools
        own = None if by_tools is None else shelf / f"{by_sources}-{by_tools}"
        others = [] if own is not None else sorted(shelf.glob(anything), key=lambda path: path.stat().st_mtime)
        carried = [] if self.shelf is None else sorted(self.shelf.glob(anything))
        for entry, where in (
            *([(own, "the cache")] if own is not None else []),
            *((entry, "the package") for entry in carried),
            *((other, "the cache") for other in reversed(others)),
        ):
            artifact = _read(entry)
            if artifact is not None:
                return artifact, where
        return None

    def _artifact(self, say: Say) -> Artifact:
        shelf = cache() / "builds"
        shelf.mkdir(exist_ok=True)
        by_tools = self._tools_key()
        ready = self._there(by_tools)
        if ready is not None:
            say(f"{_called(ready[0])} comes from {ready[1]}")
            return ready[0]
        versions = self._tool_versions()
        own = shelf / f"{self._key()}-{by_tools or self._tools_key()}"  # a tool may have appeared this very moment
        lock = own.with_name(f"{own.name}.lock")
        wait_s = self.timeout_s + MORE_FOR_LOCK_S
        with locked(lock, timeout_s=wait_s, waits=lambda: say(f"waiting for another process that builds {self.name}")):
            artifact = _read(own)  # the other process may have built it
            if artifact is None:
                if own.exists():
                    say(f"{own} is damaged, so {self.name} is built again")
                artifact = self._build(own, versions, say)
        return artifact

    def _key(self) -> str:
        """Returns the beginning of the names of entries: the name, and a digest of all but the tools."""
        said = [self._sources_digest(), self.version, list(self.command), self.product, list(self.patches)]
        return f"{self.name}-{_hash(said)}"

    def _sources(self) -> Mapping[str, Path]:
        """Returns the source files by their path in the copy, in the order of their names, and then the parts."""
        paths = {path for pattern in self.files for path in self.sources.glob(pattern) if path.is_file()}
        if not paths:
            raise InfrastructureError(
                f"{self.name} cannot be built: {self.sources} has no files {' '.join(self.files)}, so this installation lacks "
                "its sources"
            )
        return {**{str(path.relative_to(self.sources)): path for path in sorted(paths)}, **self.parts}

    def _sources_digest(self) -> str:
        listed = [
            [
                name,
                os.access(path, os.X_OK),
                _file_digest(path, path.stat()),
            ]
            for name, path in self._sources().items()
        ]
        return _hash(listed)

    def _tools_key(self) -> str | None:
        """Returns a digest of the program files of the tools; None if one is missing. It starts no program."""
        said: list[Any] = [os.environ.get(variable) for variable in self.variables]
        for tool in self.tools:
            path = shutil.which(tool.name)
            if path is None:
                return None
            real = Path(path).resolve()
            state = real.stat()
            said.append([str(real), state.st_size, state.st_mtime_ns])
        return _hash(said)

    def _tool_versions(self) -> str:
        """Returns the tools with their versions, in words.

        Raises:
            InfrastructureError: A tool is missing or too old; the error says how to install it.
        """
        lacking = []
        versions = []
        for tool in self.tools:
            output = _output_of([tool.name, *tool.version_arguments])
            why = tool.lacking(output)
            if why:
                lacking.append(f"{why} (for {tool.purpose}; `apt-get install {tool.package}` installs it)")
            else:
                number = NUMBER.search(output or "")
                versions.append(f"{tool.name} {number[0] if number else 'of an unknown version'}")
        if lacking:
            raise InfrastructureError(
                f"{self.name} {self.version} is neither in the cache nor in this installation, and cannot be built here: "
                f"{'; '.join(lacking)}"
            )
        return ", ".join(versions)

    def _build(self, entry: Path, versions: str, say: Say) -> Artifact:
        """Builds an entry; the caller holds its lock."""
        began_s = time.monotonic()
        say(
            f"building {self.name} {self.version}{f' with {versions}' if versions else ''}; later runs take it from the cache"
        )
        with appearing(entry) as made:
            work = made / "work"
            self._fill(work)
            self._run(work, entry.with_name(f"{entry.name}.log"), say)
            product, tree = (work / self.product).resolve(), made / TREE
            if not product.exists() or not product.is_relative_to(work.resolve()):
                raise BuildFailedError(
                    f"`{shlex.join(self.command)}` ended without an error, but made no {self.product} for {self.name}"
                )
            if product.is_dir():
                product.rename(tree)
            else:
                tree.mkdir()
                product.rename(tree / Path(self.product).name)
            shutil.rmtree(work)
            _without_times(tree)
            provenance = Provenance(
                name=self.name,
                version=self.version,
                digest=digest(tree),
                patches=list(self.patches),
                commit=self._commit(),
                made=f"built from the sources {self._sources_digest()[:SHOWN_DIGITS]}"
                f"{f' with {versions}' if versions else ''}",
            )
            (made / ABOUT).write_text(json.dumps(asdict(provenance), indent=2), encoding="utf-8")
        digest.cache_clear()  # it may know the folder that was damaged
        artifact = _read(entry)
        if artifact is None:
            raise InfrastructureError(f"{entry} cannot be read again after the build of {self.name}; look at the disk")
        say(f"{_called(artifact)} was built in {time.monotonic() - began_s:.0f} s")
        return artifact

    def _fill(self, work: Path) -> None:
        """Copies the sources into the folder of the build."""
        for name, path in self._sources().items():
            copy = work / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)

    def _commit(self) -> str | None:
        """Returns the commit of the sources; None if git does not know them."""
        return _commit(self.sources)

    def _run(self, work: Path, log: Path, say: Say) -> None:
        """Runs the command in a session of its own, which ends with this call in any case."""
        with log.open("wb") as output:
            try:
                process = subprocess.Popen(
                    self.command, cwd=work, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                    start_new_session=True,
                )  # fmt: skip
            except (FileNotFoundError, PermissionError) as error:
                raise BuildFailedError(
                    f"{self.name} cannot be built: `{shlex.join(self.command)}` cannot be started: {error.strerror}"
                ) from error
            try:
                self._wait(process, log, say)
            finally:
                in_time = process.poll() is not None
                if not in_time:
                    os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
        if status == 0:
            return
        how = f"ended with status {status}" if in_time else f"did not end within {self.timeout_s:g} s"
        raise BuildFailedError(
            f"{self.name} cannot be built: `{shlex.join(self.command)}` {how}; {log} has its output, at its end:\n"
            f"{_last_lines(log, LAST_LINES)}"
        )

    def _wait(self, process: subprocess.Popen[bytes], log: Path, say: Say) -> None:
        """Waits until the command has ended or its time is up, and tells the last line of its output now and then."""
        began_s = time.monotonic()
        while (passed_s := time.monotonic() - began_s) < self.timeout_s:
            try:
                process.wait(min(TELL_EVERY_S, self.timeout_s - passed_s))
            except subprocess.TimeoutExpired:
                last = _last_lines(log, 1)[:MAX_LINE]
                say(f"building {self.name} for {time.monotonic() - began_s:.0f} s{f': {last}' if last else ''}")
            else:
                return


def put_on_shelf(artifact: Artifact, shelf: Path) -> None:
    """Copies an artifact into a folder that a package carries; see `Build.shelf`. Removes older ones of the same name."""
    entry = artifact.path.parent
    shelf.mkdir(parents=True, exist_ok=True)
    with locked(cache() / "shelves.lock", timeout_s=MORE_FOR_LOCK_S):
        for old in shelf.glob(f"{artifact.provenance.name}-*"):
            if old.name != entry.name:
                shutil.rmtree(old)
        if not (shelf / entry.name).exists():
            with appearing(shelf / entry.name) as made:
                shutil.copytree(entry, made, dirs_exist_ok=True)


def _read(entry: Path) -> Artifact | None:
    """Returns the artifact of an entry; None if the entry is absent or damaged."""
    from harness.console.members import read  # noqa: PLC0415 - its library takes a while to load, and most commands build nothing

    try:
        provenance = read(json.loads((entry / ABOUT).read_text(encoding="utf-8")), Provenance, "provenance")
        is_whole = digest(entry / TREE) == provenance.digest
    except (OSError, ValueError, InputError, InfrastructureError):
        return None
    return Artifact(path=entry / TREE, provenance=provenance) if is_whole else None


def _without_times(tree: Path) -> None:
    """Gives all files of an artifact the same time on each machine: programs in virtual time see it."""
    for path in (tree, *tree.rglob("*")):
        os.utime(path, (FILES_ARE_OF_S, FILES_ARE_OF_S), follow_symlinks=False)


def _called(artifact: Artifact) -> str:
    about = artifact.provenance
    return f"{about.name} {about.version} ({', '.join([about.short, *about.patch_names])})"


def _file_digest(path: Path, state: os.stat_result) -> str:
    return _digest_of_state(path, state.st_ino, state.st_size, state.st_mtime_ns)


@functools.cache
def _digest_of_state(path: Path, _inode: int, _size: int, _modified_ns: int) -> str:
    """Returns the digest of a file, which is read again if its state has changed: a hunt asks for it in each of its runs."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:KEY_DIGITS]


def _output_of(command: Sequence[str]) -> str | None:
    """Returns what a program prints; None if it is not on the PATH, or prints nothing in time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _COLOURS.sub("", f"{done.stdout}\n{done.stderr}").strip()


def _last_lines(log: Path, count: int) -> str:
    lines = _COLOURS.sub("", log.read_text(encoding="utf-8", errors="replace")).splitlines()
    return "\n".join([line for line in lines if line.strip()][-count:])


def _commit(sources: Path) -> str | None:
    """Returns the commit of the sources; None if git does not know them."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(sources), *words], capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=True
        ).stdout.strip()

    try:
        if not git("ls-files", "--", "."):
            return None  # e.g. an installed package below the repository of somebody
        changed = git("status", "--porcelain", "--", ".")
        return f"{git('rev-parse', 'HEAD')}{' with changes' if changed else ''}"
    except (OSError, subprocess.SubprocessError):
        return None
