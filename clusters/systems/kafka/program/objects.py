"""The clients of librdkafka by name, and the threads that call them."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from .member import Member
from .records import Records
from .topics import Topics

if TYPE_CHECKING:
    from collections.abc import Sequence


class Ends(Protocol):
    """A client of the library."""

    def end(self) -> None:
        """Gives up what it does."""


KINDS: Final = {"records": Records, "member": Member, "topics": Topics}


class Handle(NamedTuple):
    """A client of the library.

    Attributes:
        name: Its name: one for each client.
        kind: One of `KINDS`.
        settings: The arguments by which it is made.
    """

    name: str
    kind: str
    settings: Sequence[Any]


class Objects:
    """The clients of the library, each made with its first call."""

    def __init__(self) -> None:
        self._made: dict[str, Ends] = {}
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._guard = threading.Lock()

    def call(self, caller: str, handle: Handle, method: str, arguments: Sequence[Any]) -> Future[Any]:
        """Calls a method of a client. The calls of one caller come one after the other.

        Args:
            caller: Whose thread carries it out.
            handle: The client.
            method: The name of the method.
            arguments: Its arguments.
        """
        return self._thread(caller).submit(lambda: getattr(self._object(handle), method)(*arguments))

    def end(self, caller: str, names: Sequence[str]) -> None:
        """Ends the clients with these names, in the background, and the thread of a caller after its last call."""
        thread = self._thread(caller)
        for name in names:
            made = self._made.pop(name, None)
            if made is not None:
                thread.submit(made.end)
        del self._threads[caller]
        thread.shutdown(wait=False)

    def _thread(self, caller: str) -> ThreadPoolExecutor:
        return self._threads.setdefault(caller, ThreadPoolExecutor(max_workers=1, thread_name_prefix="labrys-kafka"))

    def _object(self, handle: Handle) -> Ends:
        with self._guard:
            if handle.name not in self._made:
                self._made[handle.name] = KINDS[handle.kind](*handle.settings)
            return self._made[handle.name]
