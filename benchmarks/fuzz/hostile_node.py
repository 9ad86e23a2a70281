"""A program for Maelstrom that is right for the most part, and now and then hostile: `hostile_node.py SEED [ACT...]`.

The seed draws its acts, and at which messages they happen; with names of acts it has only these. It needs no Labrys. Each act
is a function of `Node` whose name begins with `act_`; its docstring says what it does.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

MARKUP = '"><script>alert(1)</script>\x1b]0;owned\x07\x1b[31m\u202e\x00\ud800'
VALUES: tuple[Any, ...] = (
    None, True, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, "", "0", MARKUP, "x" * 70_000, [], {},
    [[]], {"": 0}, {"a": {"b": [None]}}, [1, "x", None],
)  # fmt: skip
LINES: tuple[bytes, ...] = (
    b"", b"\x00", b"\xff\xfe", b"null", b"[]", b"{}", b'{"src":', b'"\\ud800"', b"NaN", b"1e999", b"[" * 100_000, b"9" * 5_000,
    b'{"src":"n0","dest":"n0","body":[]}', b'{"src":1,"dest":2,"body":{}}', b'{"src":"n0","dest":"c1","dest":"n0","body":{}}',
)  # fmt: skip
HUGE = 20 << 20
SLEEP_S = 0.15
LEFT_S = 600
LOOPS = 300
VICTIM = os.environ.get("LABRYS_FUZZ", "/nonexistent") + "/victim"  # a folder whose files must stay


class Node:
    """The node.

    Attributes:
        name: Its name.
        names: The names of all nodes.
    """

    def __init__(self, seed: str, acts: list[str]) -> None:
        self.name = ""
        self.names = ["n0"]
        self.rng = random.Random(seed)
        known = [name for name in dir(self) if name.startswith("act_")]
        self.acts = [f"act_{name}" for name in acts] or self.rng.sample(known, self.rng.choice((1, 1, 2, 4)))
        self.share = self.rng.choice((0.02, 0.1, 0.5, 1.0))
        self.asked: Any = {"src": "c1", "body": {"msg_id": 1, "type": "echo"}}
        self.loops = 0
        self.values: dict[str, Any] = {}

    def raw(self, data: bytes) -> None:
        """Writes bytes to stdout."""
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def say(self, dest: Any, body: Any, source: Any = None) -> None:
        """Writes a message."""
        self.raw(
            json.dumps({"src": self.name if source is None else source, "dest": dest, "body": body}).encode() + b"\n"
        )

    def answer(self, **more: Any) -> None:
        """Answers the message, as a program without replicas does."""
        body = self.asked["body"]
        kept = self.values.setdefault("all", [])
        key = json.dumps(body.get("key"))
        answers: dict[str, dict[str, Any]] = {
            "echo": {"echo": body.get("echo")},
            "generate": {"id": [self.name, body.get("msg_id")]},
            "send": {"offset": len(self.values.setdefault(f"log {key}", []))},
            "poll": {
                "msgs": {
                    at: self.values.get(f"log {json.dumps(at)}", [])[first:]
                    for at, first in body.get("offsets", {}).items()
                }
            },
            "list_committed_offsets": {"offsets": {}},
            "txn": {"txn": [[f, k, None if f == "r" else v] for f, k, v in body.get("txn", [])]},
            "read": {"value": self.values.get(key) if "key" in body else kept, "messages": kept},
        }
        answer_body = answers.get(body["type"], {})
        if body["type"] in {"add", "broadcast"}:
            kept.append(body.get("element", body.get("message", body.get("delta"))))
        elif body["type"] in {"write", "cas"}:
            self.values[key] = body.get("value", body.get("to"))
        elif body["type"] == "send":
            self.values[f"log {key}"].append([answer_body["offset"], body.get("msg")])
        self.say(
            self.asked["src"], {"type": f"{body['type']}_ok", "in_reply_to": body.get("msg_id"), **answer_body, **more}
        )

    def any(self) -> Any:
        """Returns a value that is seldom right."""
        return self.rng.choice(VALUES)

    def act_line(self) -> None:
        """Writes a line that is no message."""
        self.raw(self.rng.choice(LINES) + b"\n")

    def act_bytes(self) -> None:
        """Writes random bytes, often without the end of a line."""
        self.raw(self.rng.randbytes(self.rng.choice((1, 100, 70_000))) + self.rng.choice((b"", b"\n")))

    def act_endless_line(self) -> None:
        """Writes a line that does not end."""
        self.raw(b"x" * HUGE)

    def act_deep(self) -> None:
        """Answers with a value of some depth."""
        depth = self.rng.choice((20, 127, 128, 129, 200, 2_000, 100_000))
        head = json.dumps({"src": self.name, "dest": self.asked["src"]})[:-1]
        body = json.dumps({"type": "echo_ok", "in_reply_to": self.asked["body"].get("msg_id")})[:-1]
        self.raw(f'{head}, "body": {body}, "echo": {"[" * depth}{"]" * depth}}}}}\n'.encode())

    def act_number(self) -> None:
        """Answers with a number of many digits, or one that JSON does not have."""
        number = self.rng.choice(("9" * 400, "9" * 4_301, "NaN", "-Infinity", "1e400", "1E5", "-0", "0.1e-400"))
        head = json.dumps({"src": self.name, "dest": self.asked["src"]})[:-1]
        body = json.dumps({"type": "echo_ok", "in_reply_to": self.asked["body"].get("msg_id")})[:-1]
        self.raw(
            f'{head}, "body": {body}, "echo": {number}, "value": {number}, "offset": {number}, "id": {number}}}}}\n'.encode()
        )

    def act_member(self) -> None:
        """Answers with a member that is seldom right."""
        names = ("echo", "id", "value", "messages", "msgs", "offset", "offsets", "txn", "type", "in_reply_to", "msg_id")
        self.answer(**{self.rng.choice(names): self.any()})

    def act_wide(self) -> None:
        """Answers with a large value."""
        self.answer(**dict.fromkeys(("echo", "id", "value"), "y" * (2 << 20)))

    def act_inner(self) -> None:
        """Answers with odd values within lists and objects."""
        value = self.any()
        self.answer(
            messages=[value], value=[value], msgs={"0": [[value, value]], "1": value}, offsets={"0": value},
            txn=[["r", 0, value], [value] * 3, value],
        )  # fmt: skip

    def act_error(self) -> None:
        """Answers with an error."""
        code = self.rng.choice((0, 11, 13, 20, 22, 1000, *VALUES))
        self.say(
            self.asked["src"],
            {"type": "error", "in_reply_to": self.asked["body"].get("msg_id"), "code": code, "text": self.any()},
        )

    def act_twice(self) -> None:
        """Answers many times."""
        for _ in range(self.rng.choice((1, 500))):
            self.answer()

    def act_unasked(self) -> None:
        """Answers what nobody asked."""
        dest = self.rng.choice(("c0", "c1", "c2", "c99999", "", self.name))
        self.say(dest, {"type": "echo_ok", "in_reply_to": self.rng.choice((1, 2, -1, 10**30, *VALUES)), "echo": 1})

    def act_envelope(self) -> None:
        """Writes a message with odd ends."""
        names: tuple[Any, ...] = ("n0", "n1", "c0", "c1", "lin-kv", "timer", "nobody", MARKUP, 1, None, [])
        self.say(self.rng.choice(names), self.rng.choice(({"type": "hello"}, {}, {"type": 1})), self.rng.choice(names))

    def act_hand_on(self) -> None:
        """Hands the message on to whoever."""
        dest = self.rng.choice((*self.names, "lin-kv", "seq-kv", "timer"))
        self.say(dest, self.asked["body"], self.asked["src"])

    def act_flood(self) -> None:
        """Sends many messages to the nodes."""
        for number in range(self.rng.choice((10, 3_000))):
            self.say(self.rng.choice(self.names), {"type": "gossip", "number": number})

    def act_echoes(self) -> None:
        """Sends itself a message that makes it do the same again, some hundred times."""
        self.loops = self.loops - 1 if self.loops else LOOPS
        self.say(self.name, {"type": "echo", "echo": 1, "msg_id": 1})

    def act_service(self) -> None:
        """Asks a service for what it seldom knows."""
        body = {name: self.any() for name in ("key", "value", "from", "to", "ms", "create_if_not_exists")}
        kind = self.rng.choice(("read", "write", "cas", "ts", "wait", "hello"))
        dest = self.rng.choice(("lin-kv", "seq-kv", "lww-kv", "lin-tso", "timer"))
        self.say(dest, {**body, "type": kind, "msg_id": self.rng.choice((1, *VALUES))})

    def act_stderr(self) -> None:
        """Writes much to stderr, often without the end of a line."""
        text = self.rng.choice((MARKUP, "x" * (1 << 20), "line\n" * 2_000)).encode("utf-8", "surrogatepass")
        with contextlib.suppress(OSError):
            os.write(2, text[: 1 << 16])
            sys.stderr.buffer.write(text)
            sys.stderr.buffer.flush()

    def act_close(self) -> None:
        """Closes a pipe."""
        with contextlib.suppress(OSError):
            os.close(self.rng.choice((0, 1, 2)))

    def act_exit(self) -> None:
        """Ends."""
        os._exit(self.rng.choice((0, 1, 255)))

    def act_signal(self) -> None:
        """Sends itself a signal."""
        os.kill(
            os.getpid(),
            self.rng.choice((signal.SIGSEGV, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGPIPE)),
        )

    def act_kill_guard(self) -> None:
        """Kills the process that started it."""
        os.kill(os.getppid(), self.rng.choice((signal.SIGKILL, signal.SIGSTOP)))

    def act_compute(self) -> None:
        """Computes for some time."""
        end_s = time.monotonic() + SLEEP_S
        while time.monotonic() < end_s:
            pass

    def act_sleep(self) -> None:
        """Sleeps for some time."""
        time.sleep(SLEEP_S)

    def act_ignore(self) -> None:
        """Ignores signals from now on."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

    def act_leave(self) -> None:
        """Leaves a process behind, in a session of its own or not, with the pipes or without."""
        if os.fork():
            return
        if self.rng.random() < 0.7:
            os.setsid()
            if os.fork():
                os._exit(0)
        if self.rng.random() < 0.5:
            for number in (0, 1, 2):
                with contextlib.suppress(OSError):
                    os.close(number)
        time.sleep(LEFT_S)
        os._exit(0)

    def act_crowd(self) -> None:
        """Starts some processes."""
        for _ in range(8):
            if os.fork() == 0:
                time.sleep(LEFT_S)
                os._exit(0)

    def act_files(self) -> None:
        """Makes links, a FIFO, a large empty file and a deep folder."""
        here = Path.cwd()
        with contextlib.suppress(OSError):
            (here / "others").symlink_to(VICTIM)
            (here / "zero").symlink_to("/dev/zero")
            os.mkfifo(here / "fifo")
            os.truncate(os.open("large", os.O_CREAT | os.O_RDWR), 1 << 40)
        with contextlib.suppress(OSError):
            here.joinpath(*"d" * 30).mkdir(parents=True)
            (here / "d").chmod(0)

    def act_folder(self) -> None:
        """Removes the folder of the run, or puts something else in the place of its own."""
        choice = self.rng.randrange(3)
        with contextlib.suppress(OSError):
            here = Path.cwd()
            if not here.parent.name.startswith("labrys-pipes-"):
                return  # somebody has started it by hand
            if choice == 0:
                shutil.rmtree(here.parent, ignore_errors=True)
                return
            here.rename(here.with_name("moved"))
            if choice == 1:
                here.symlink_to(VICTIM)
            else:
                os.mkfifo(here)

    def run(self) -> None:
        """Handles messages until stdin ends."""
        for line in sys.stdin:
            message = json.loads(line)
            body = message["body"]
            if not message["src"].startswith("c") and not (self.loops and message["src"] == self.name):
                continue
            self.asked = message
            if body.get("type") == "init":
                self.name, self.names = body["node_id"], body["node_ids"]
            if self.rng.random() < self.share and (body.get("type") != "init" or self.rng.random() < 0.1):
                getattr(self, self.rng.choice(self.acts))()
            if "type" in body:
                self.answer()


if __name__ == "__main__":
    Node(sys.argv[1], sys.argv[2:]).run()
