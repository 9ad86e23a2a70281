"""The store: registers over HTTP. The first node stores them, and all others forward to it.

CHANGE: remove this file, and let `system.py` install the system that you test. This file uses only Python's standard library,
because it runs on the nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FORWARD_TIMEOUT_S = 2.0


class Store:
    """Registers in memory, and also in a file if they must survive a kill."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._values: dict[str, Any] = json.loads(file.read_text()) if file and file.exists() else {}

    def apply(self, key: str, request: dict[str, Any]) -> dict[str, Any]:
        """Carries out one operation; returns whether it was applied, and the value of the register."""
        with self._lock:
            current = self._values.get(key)
            applied = request["op"] != "cas" or current == request["expected"]
            if applied and request["op"] != "read":
                self._values[key] = request["value"]
                self._save()
            return {"applied": applied, "value": self._values.get(key)}

    def _save(self) -> None:
        if self._file is None:
            return
        partial = self._file.with_suffix(".partial")
        with partial.open("w") as file:
            json.dump(self._values, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self._file)


def make_server(address: str, port: int, *, primary: str, file: Path | None = None) -> ThreadingHTTPServer:
    """Returns a server of one node, not yet serving."""
    store = Store(file) if address == primary else None

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"role": "leader" if store else "follower"})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if store is not None:
                self._answer(200, store.apply(self.path, json.loads(body)))
                return
            url = f"http://{primary}:{port}{self.path}"
            try:
                with urllib.request.urlopen(url, data=body, timeout=FORWARD_TIMEOUT_S) as answer:
                    self._answer(200, json.loads(answer.read()))
            except urllib.error.URLError as error:
                refused = isinstance(error.reason, ConnectionRefusedError)
                self._answer(503 if refused else 504, {"error": str(error.reason)})
            except (OSError, ValueError) as error:
                self._answer(504, {"error": str(error)})

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer((address, port), Handler)
    server.daemon_threads = True
    return server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--primary", required=True)
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    make_server(given.address, given.port, primary=given.primary, file=given.file).serve_forever()
