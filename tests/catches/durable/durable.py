"""The server of durable.c in Python, with the same requests, answers, files and bugs: `durable.py PORT FOLDER [BUG]`."""

from __future__ import annotations

import os
import socketserver
import sys
import threading
from pathlib import Path

SECTOR = 512
RECORD = 2 * SECTOR


class Durable:
    """The registers and the term."""

    def __init__(self, folder: Path, bug: str) -> None:
        """Reads the files, and cuts off a last record that is not whole."""
        self.bug = bug
        self.lock = threading.Lock()
        self._folder = folder
        self._registers: dict[str, str] = {}
        self._log = os.open(folder / "log", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        whole = 0
        while record := os.read(self._log, RECORD):
            if len(record) < RECORD and bug != "torn-tail":
                break
            key, value = (part.strip(b"\0").decode() for part in (record[:SECTOR], record[SECTOR:]))
            self._registers[key] = value
            whole += len(record)
        os.truncate(self._log, whole)
        os.fsync(self._log)
        self._sync_folder()
        term = folder / "term"
        self._term = int(term.read_text()) if term.exists() else 0

    def _sync_folder(self) -> None:
        directory = os.open(self._folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def _store(self, key: str, value: str) -> None:
        os.write(self._log, key.encode().ljust(SECTOR, b"\0") + value.encode().ljust(SECTOR, b"\0"))
        if self.bug != "acknowledged-before-sync":
            os.fsync(self._log)
        self._registers[key] = value

    def _store_term(self) -> None:
        new = self._folder / "term.new"
        with new.open("w") as file:
            file.write(f"{self._term}\n")
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._folder / "term")
        if self.bug != "lost-rename":
            self._sync_folder()

    def carry_out(self, words: list[str]) -> str:
        """Carries out one request. Returns the answer."""
        with self.lock:
            if words[0] == "vote":
                self._term += 1
                if self.bug != "vote-before-store":
                    self._store_term()
                return f"ok {self._term}"
            held = self._registers.get(words[1]) or "-"
            if words[0] == "cas" and held != words[2]:
                return f"no {held}"
            if words[0] != "read":
                self._store(words[1], words[-1])
            return f"ok {held}"

    def store_late(self) -> None:
        """Does after an answer what a planted bug does too late."""
        with self.lock:
            if self.bug == "acknowledged-before-sync":
                os.fsync(self._log)
            if self.bug == "vote-before-store":
                self._store_term()


class Handler(socketserver.StreamRequestHandler):
    """One connection."""

    def handle(self) -> None:
        """Answers requests."""
        for line in self.rfile:
            self.wfile.write(f"{durable.carry_out(line.decode().split())}\n".encode())
            durable.store_late()


class Server(socketserver.ThreadingTCPServer):
    """The server, with a thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    durable = Durable(Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "none")
    Server(("", int(sys.argv[1])), Handler).serve_forever()
