"""Breakpoints in a running JVM, by the Java Debug Wire Protocol.

Source: "Java Debug Wire Protocol" and "JDWP Protocol Details" of the JDK's documentation, version 17. All numbers are
big-endian. A packet has its length, an id and flags in front; a command has its set and its number after them, and an answer a
code. When the connection ends, the JVM removes all breakpoints, and lets all threads go on.
"""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from nemesis.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.remote import Channel

HANDSHAKE: Final = b"JDWP-Handshake"
HEAD: Final = struct.Struct(">IIBH")  # length, id, flags, and the command's set and number or the code of the answer
ANSWER: Final = 0x80
MAX_PACKET_BYTES: Final = 32 << 20
ANSWER_TIMEOUT_S: Final = 10.0

# Commands: the set and the number.
ALL_CLASSES: Final = (1, 3)
ALL_THREADS: Final = (1, 4)
ID_SIZES: Final = (1, 7)
METHODS: Final = (2, 5)
LINE_TABLE: Final = (6, 1)
THREAD_NAME: Final = (11, 1)
RESUME: Final = (11, 3)
THREAD_STATUS: Final = (11, 4)
SET_EVENT: Final = (15, 1)
CLEAR_EVENT: Final = (15, 2)
EVENTS: Final = (64, 100)

BREAKPOINT: Final = 2  # a kind of events
VM_DEATH: Final = 99
HOLD_THREAD: Final = 1  # an event holds the thread that it is about
AT: Final = 7  # the modifier "location"
CLASS: Final = 1  # the tag of a type that is a class
NOT_PREPARED: Final = 21  # a code: the class is not prepared yet
WITHOUT_CODE: Final = 0x0100 | 0x0400  # native and abstract methods
NO_LINES: Final = (101, 511)  # codes: the class file has no lines, the method is native
GONE: Final = (10, 20, 22)  # codes: the thread has ended, the object or the class is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method with code of a loaded class.

    Attributes:
        of: The id of the class.
        id: Its id.
        name: Its name with that of its class, e.g. `org.example.Log.append`.
    """

    of: int
    id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a method.

    Attributes:
        method: The method.
        index: The index of its first instruction.
        number: The number of the line in the source.
    """

    method: Method
    index: int
    number: int

    def __str__(self) -> str:
        return f"{self.method.name}:{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A thread that came to a breakpoint, and is held there.

    Attributes:
        request: The breakpoint.
        thread: The id of the thread.
    """

    request: int
    thread: int


class Refused(FaultError):  # noqa: N818 - as it reads in `except`
    """The JVM answered a command with an error.

    Attributes:
        code: The code of the protocol.
    """

    def __init__(self, command: tuple[int, int], code: int) -> None:
        super().__init__(
            f"the JVM answered the command {command[0]}.{command[1]} of its debugger with the error {code}"
        )
        self.code = code


class Debugger:
    """A debugger of a JVM. Not for several threads."""

    def __init__(self, connection: Channel) -> None:
        """Greets the JVM.

        Raises:
            FaultError: What answers is no JVM with a debugger, or the connection ends.
        """
        self._connection = connection
        self._received = bytearray()
        self._hits: list[Hit] = []
        self._last = 0
        self.alive = True
        self._send(HANDSHAKE)
        answer = self._take(len(HANDSHAKE), time.monotonic() + ANSWER_TIMEOUT_S)
        if answer != HANDSHAKE:
            raise FaultError(f"expected the greeting of a JVM's debugger, not {answer!r}")
        sizes = self._ask(ID_SIZES).unpack(">5i")
        if not all(size in {4, 8} for size in sizes):
            raise FaultError(f"the JVM says that its ids have {sizes} bytes; expected 4 or 8")
        _, self._method_bytes, self._object_bytes, self._type_bytes, _ = sizes

    def methods(self, parts: Sequence[str]) -> list[Method]:
        """Returns the methods with code of loaded classes, without initializers of classes.

        Args:
            parts: Names of classes or packages; nested classes and packages are included.
        """
        answer = self._ask(ALL_CLASSES)
        classes = []
        for _ in range(answer.count()):
            tag, of, signature, _ = answer.byte(), answer.number(self._type_bytes), answer.text(), answer.count()
            name = signature[1:-1].replace("/", ".")
            if tag == CLASS and any(name == part or name.startswith((f"{part}.", f"{part}$")) for part in parts):
                classes.append((of, name))
        return [method for of, name in classes for method in self._methods(of, name)]

    def _methods(self, of: int, name: str) -> list[Method]:
        try:
            answer = self._ask(METHODS, self._id(of, self._type_bytes))
        except Refused as error:
            if error.code in {*GONE, NOT_PREPARED}:
                return []
            raise
        methods = []
        for _ in range(answer.count()):
            method, own, _, flags = answer.number(self._method_bytes), answer.text(), answer.text(), answer.count()
            if not flags & WITHOUT_CODE and own != "<clinit>":
                methods.append(Method(of=of, id=method, name=f"{name}.{own}"))
        return methods

    def lines(self, method: Method) -> list[Line]:
        """Returns the lines of a method; none if its class was compiled without them."""
        asked = self._id(method.of, self._type_bytes) + self._id(method.id, self._method_bytes)
        try:
            answer = self._ask(LINE_TABLE, asked)
        except Refused as error:
            if error.code in {*NO_LINES, *GONE}:
                return []
            raise
        answer.unpack(">qq")
        pairs = [answer.unpack(">qi") for _ in range(answer.count())]
        return [Line(method=method, index=index, number=number) for index, number in pairs]

    def hold(self, line: Line) -> int:
        """Sets a breakpoint that holds each thread that comes to a line. Returns its number.

        The protocol also has breakpoints that vanish after a number of threads. Java 17 answered one of 3,551 such requests
        with a wrong number, perhaps since a thread came there before the answer.
        """
        location = (
            struct.pack(">BB", AT, CLASS)
            + self._id(line.method.of, self._type_bytes)
            + self._id(line.method.id, self._method_bytes)
            + struct.pack(">q", line.index)
        )
        asked = struct.pack(">BBi", BREAKPOINT, HOLD_THREAD, 1) + location
        return self._ask(SET_EVENT, asked).count()

    def clear(self, request: int) -> None:
        """Removes a breakpoint. A thread that is held there stays held."""
        self._ask(CLEAR_EVENT, struct.pack(">Bi", BREAKPOINT, request))

    def hits(self, until_s: float) -> list[Hit]:
        """Returns the threads that have come to breakpoints since the last call. Waits for the first one.

        Args:
            until_s: When it stops waiting, in seconds of `time.monotonic`.
        """
        while not self._hits and self.alive:
            if not self._wait(until_s):
                break
            self._note(*self._packet(until_s + ANSWER_TIMEOUT_S))
        hits, self._hits = self._hits, []
        return hits

    def name_of(self, thread: int) -> str:
        """Returns the name of a thread."""
        return self._ask(THREAD_NAME, self._id(thread, self._object_bytes)).text()

    def is_held(self, thread: int) -> bool:
        """Returns whether the JVM reports a thread as suspended."""
        try:
            _, suspended = self._ask(THREAD_STATUS, self._id(thread, self._object_bytes)).unpack(">ii")
        except Refused as error:
            if error.code in GONE:
                return False
            raise
        return bool(suspended)

    def held(self) -> list[str]:
        """Returns the names of all threads that the JVM reports as suspended."""
        answer = self._ask(ALL_THREADS)
        threads = [answer.number(self._object_bytes) for _ in range(answer.count())]
        return [self.name_of(thread) for thread in threads if self.is_held(thread)]

    def resume(self, thread: int) -> None:
        """Lets a held thread go on."""
        self._ask(RESUME, self._id(thread, self._object_bytes))

    def close(self) -> None:
        """Ends the connection. The JVM removes all breakpoints, and lets all threads go on."""
        self._connection.close()

    def _id(self, number: int, size: int) -> bytes:
        return number.to_bytes(size, "big")

    def _ask(self, command: tuple[int, int], arguments: bytes = b"") -> _Answer:
        self._last += 1
        self._send(struct.pack(">IIBBB", HEAD.size + len(arguments), self._last, 0, *command) + arguments)
        deadline_s = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            number, flags, code, content = self._packet(deadline_s)
            if flags & ANSWER and number == self._last:
                if code:
                    raise Refused(command, code)
                return _Answer(content)
            self._note(number, flags, code, content)

    def _note(self, _number: int, flags: int, command: int, content: bytes) -> None:
        """Notes the breakpoints of a packet that the JVM sent by itself."""
        if flags & ANSWER or divmod(command, 256) != EVENTS:
            return
        events = _Answer(content)
        events.byte()
        for _ in range(events.count()):
            kind, request = events.byte(), events.count()
            if kind != BREAKPOINT:
                self.alive = self.alive and kind != VM_DEATH
                return  # none of the others was asked for, and they have other contents
            thread = events.number(self._object_bytes)
            events.skip(1 + self._type_bytes + self._method_bytes + 8)
            self._hits.append(Hit(request=request, thread=thread))

    def _packet(self, deadline_s: float) -> tuple[int, int, int, bytes]:
        length, number, flags, code = HEAD.unpack(self._take(HEAD.size, deadline_s))
        if not HEAD.size <= length <= MAX_PACKET_BYTES:
            raise FaultError(f"the JVM's debugger sent a packet of {length} bytes; expected at most {MAX_PACKET_BYTES}")
        return number, flags, code, self._take(length - HEAD.size, deadline_s)

    def _take(self, size: int, deadline_s: float) -> bytes:
        while len(self._received) < size:
            if not self._wait(deadline_s, more=True):
                raise FaultError("the JVM's debugger does not answer")
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _wait(self, until_s: float, *, more: bool = False) -> bool:
        """Waits until there are bytes. Returns whether there are."""
        if self._received and not more:
            return True
        self._connection.settimeout(max(until_s - time.monotonic(), 0.001))
        try:
            got = self._connection.recv(1 << 16)
        except TimeoutError:
            return False
        except OSError as error:
            raise FaultError(f"the connection to the JVM's debugger broke off: {error}") from error
        if not got:
            raise FaultError("the JVM ended the connection to its debugger")
        self._received += got
        return True

    def _send(self, content: bytes) -> None:
        self._connection.settimeout(ANSWER_TIMEOUT_S)
        try:
            self._connection.sendall(content)
        except OSError as error:  # a TimeoutError is an OSError
            raise FaultError(f"the connection to the JVM's debugger broke off: {error}") from error


class _Answer:
    """The content of a packet, read from its beginning."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def unpack(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self._next(struct.calcsize(form)))

    def byte(self) -> int:
        return self._next(1)[0]

    def count(self) -> int:
        return self.number(4)

    def number(self, size: int) -> int:
        return int.from_bytes(self._next(size), "big")

    def text(self) -> str:
        return self._next(self.count()).decode("utf-8", "replace")

    def skip(self, size: int) -> None:
        self._next(size)

    def _next(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._content):
            raise FaultError("the JVM's debugger sent a packet that ends too early")
        part = self._content[self._at : end]
        self._at = end
        return part
