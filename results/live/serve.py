"""Serves the store to web browsers, on this machine only.

The server reads the store and changes nothing. The content of the store is hostile input. So the server escapes every text, and
follows no link within a run. It sends every file except a report as plain text or as a download, and a report has its own
policy that forbids network access. A malformed request gets 400, and a failed one 500. The server binds the loopback address,
and accepts requests only for 127.0.0.1 and localhost. So no web site can reach it through a name of its own.
"""

from __future__ import annotations

import contextlib
import errno
import html
import json
import logging
import os
import re
import stat
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

from harness.console import below
from harness.console.plain import message, name, plain
from harness.errors import InputError
from results.live.causes import causes_page
from results.live.files import TEXT, TYPES, archive_of, copy, inside, quoted, write_archive
from results.live.listing import PAGE, listed
from results.live.tail import Tail, refusals_of, run_state, suite_state
from results.page.compare import comparison
from results.page.overlay import overlay
from results.page.pages import environment
from results.store.store import Run, Store, summarize
from results.store.suites import find_suite, newest_suites
from results.words.formatting import size

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from results.store.store import RunSummary

LOOPBACK = "127.0.0.1"
MAX_FILES = 500
MAX_FIELDS = 2 * PAGE
MAX_COMPARED = 6
LETTERS = "ABCDEF"
ACCEPT_PAUSE_S = 0.2
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; form-action 'self'"
)
_FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; sandbox allow-scripts"
_REPORT_PAGE = re.compile(r"report\.html|key-[A-Za-z0-9._-]+\.html")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    body: str
    kind: str = "text/html; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK


class StoreServer(ThreadingHTTPServer):
    """Serves one store on the loopback address.

    Attributes:
        store: The store.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, store: Store, port: int) -> None:
        """Binds the port; 0 takes a free one.

        Raises:
            InputError: The port is in use, or may not be taken.
        """
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise InputError(
                f"port {port} on {LOOPBACK} cannot be taken: {error.strerror}; choose another with --port"
            ) from error
        self.store = store
        self.pages = environment(finalize=lambda value: plain(value) if type(value) is str else value)
        self._summaries: dict[Path, tuple[tuple[int, int], RunSummary]] = {}
        self._tail: Tail | None = None
        self._lock = threading.Lock()
        self.comparing = threading.Lock()
        self.exhausted = threading.Event()  # never set; accepting waits on it if there are no file descriptors

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection; without a free file descriptor, waits a moment before the next attempt."""
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in _EXHAUSTED:
                self.exhausted.wait(ACCEPT_PAUSE_S)
            raise

    @property
    def url(self) -> str:
        """Returns the address to open."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/"

    def summaries(self) -> list[RunSummary]:
        """Returns the summaries of all runs, newest first; reads only runs whose verdict has changed."""
        current = self.store.current()
        rows = []
        for run in self.store.runs():
            running = current is not None and run.path.resolve() == current.path
            try:
                stat = run.results_json.stat()
                version = (stat.st_mtime_ns, stat.st_size)
            except OSError:
                rows.append(summarize(run, running=running))
                continue
            with self._lock:
                known = self._summaries.get(run.path)
            if known is None or known[0] != version or known[1].running != running:
                known = (version, summarize(run, running=running))
                with self._lock:
                    self._summaries[run.path] = known
            rows.append(known[1])
        return rows

    def live(self) -> dict[str, Any]:
        """Returns the state of the running test and of the running suite."""
        run = self.store.current()
        suite = suite_state(self.store)
        if run is None:
            return {"run": None, "suite": suite}
        with self._lock:
            if self._tail is None or self._tail.path != run.history_jsonl:
                self._tail = Tail(run.history_jsonl, refusals_of(run))
            self._tail.read()
            name = f"{run.test_name}/{run.stamp}"
            return {"run": name, "suite": suite, **run_state(run), **self._tail.state()}


class _Handler(BaseHTTPRequestHandler):
    server: StoreServer
    server_version = "labrys"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answers one request."""
        self._begun = False
        try:
            self._route()
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            self.close_connection = True
        except InputError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
        except Exception as error:
            # An error in one page must not look like a missing server.
            logger.exception("a request could not be answered")
            self._refuse(
                HTTPStatus.INTERNAL_SERVER_ERROR, f"this could not be answered: {type(error).__name__}: {error}"
            )

    def do_HEAD(self) -> None:
        """Answers one request for headers only."""
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
        """Writes nothing: the user watches the browser, not the terminal."""

    def send_response(self, code: int, message: str | None = None) -> None:
        """Starts a response."""
        self._begun = True
        super().send_response(code, message)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Responds with a sentence; if a response has started, closes the connection."""
        if self._begun:
            self.close_connection = True
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._send(_Answer(body=f"{message(text)}\n", kind=TEXT, status=status))

    def _route(self) -> None:
        if not self._has_local_host():
            self._send(
                _Answer(body="labrys serves 127.0.0.1 and localhost only\n", kind=TEXT, status=HTTPStatus.FORBIDDEN)
            )
            return
        try:
            address = urlsplit(self.path)
            fields = parse_qs(address.query, max_num_fields=MAX_FIELDS)
        except ValueError as error:
            raise InputError(f"the address is malformed: {error}") from error
        query = {key: values[0] for key, values in fields.items()}
        parts = [os.fsdecode(unquote_to_bytes(part)) for part in address.path.split("/") if part]
        match parts:
            case []:
                self._send(self._list(query))
            case ["live" | "live.json" | "causes" as name]:
                self._send(self._whole(name))
            case ["compare"]:
                self._send(self._compare(fields.get("run", [])))
            case ["suites", *rest]:
                self._suites(rest)
            case ["run", test, stamp, *rest]:
                self._run(test, stamp, rest, slash=address.path.endswith("/"))
            case ["zip", test, archive] if archive.endswith(".zip"):
                self._zip(test, archive.removesuffix(".zip"))
            case _:
                self._missing()

    def _has_local_host(self) -> bool:
        host = self.headers.get("Host", "")
        return host.rpartition(":")[0] in {LOOPBACK, "localhost"} or host in {LOOPBACK, "localhost"}

    def _page(self, name: str, **values: object) -> _Answer:
        return _Answer(body=self.server.pages.get_template(name).render(**values))

    def _whole(self, name: str) -> _Answer:
        """Returns a page about the whole store, or its live state as JSON."""
        match name:
            case "live":
                return self._page("live.html")
            case "live.json":
                return _Answer(body=json.dumps(self.server.live()), kind=TYPES[".json"])
            case _:
                with self.server.comparing:  # it reads many files, as a comparison does
                    return _Answer(body=causes_page(self.server.store, _report_folder))

    def _list(self, query: Mapping[str, str]) -> _Answer:
        return self._page(
            "store.html",
            **listed(self.server.summaries(), query),
            query=query,
            root=str(self.server.store.root),
            place=_place,
            running=self.server.store.current() is not None,
        )

    def _compare(self, names: Sequence[str]) -> _Answer:
        runs = self.server.store.runs()
        known = {f"{run.test_name}/{run.stamp}": run for run in runs} | {_place(run): run for run in runs}
        chosen = [known[run_name] for run_name in names[:MAX_COMPARED] if run_name in known]
        with self.server.comparing:  # only one comparison reads files at a time
            table = comparison(chosen)
            latency = overlay(chosen, LETTERS[: len(chosen)])
        return self._page("compare.html", table=table, place=_place, names=LETTERS, latency=latency)

    def _find(self, test: str, stamp: str) -> Run | None:
        """Returns the run with these names, if the store lists it; names of a request are never joined to a path."""
        return next((run for run in self.server.store.runs() if (run.test_name, run.stamp) == (test, stamp)), None)

    def _run(self, test: str, stamp: str, rest: Sequence[str], *, slash: bool) -> None:
        run = self._find(test, stamp)
        path = None if run is None else inside(run, rest)
        if run is None or path is None:
            self._missing()
        elif below.is_folder(run.path, path):
            if not slash:
                self.send_response(HTTPStatus.MOVED_PERMANENTLY)
                self.send_header("Location", f"/run/{_place(run)}/" + "".join(f"{quoted(part)}/" for part in rest))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self._send(self._folder(run, path, rest))
        else:
            self._file(run, path)

    def _suites(self, rest: Sequence[str]) -> None:
        """Sends the list of suites, or the page of the suite with these names of folders."""
        if not rest:
            self._send(self._page("suites.html", suites=newest_suites(self.server.store, PAGE), quoted=quoted))
            return
        suite = find_suite(self.server.store, rest[0], rest[1]) if len(rest) == 2 else None
        if suite is None:
            self._missing()
            return
        runs = {(run.test_name, run.stamp): _place(run) for run in self.server.store.runs()}
        self._send(self._page("suite.html", suite=suite, runs=runs))

    def _folder(self, run: Run, path: Path, rest: Sequence[str]) -> _Answer:
        entries = []
        members = sorted(below.walk(run.path, path, deepest=0), key=lambda pair: not stat.S_ISDIR(pair[1].st_mode))
        for entry, about in members[:MAX_FILES]:
            folder = stat.S_ISDIR(about.st_mode)
            note = (
                ""
                if folder
                else size(about.st_size)
                if stat.S_ISREG(about.st_mode)
                else "not served: not a regular file"
            )
            entries.append({"name": entry.name, "href": quoted(entry.name), "folder": folder, "size": note})
        return self._page(
            "run.html",
            summary=summarize(run),
            rest="/".join(rest),
            entries=entries,
            more=len(members) - len(entries),
            place=_place,
            report=not rest and any(entry["name"] == run.report_html.name for entry in entries),
        )

    def _file(self, run: Run, path: Path) -> None:
        report = path.parent == run.path and _REPORT_PAGE.fullmatch(path.name) is not None
        kind = "text/html; charset=utf-8" if report else TYPES.get(path.suffix, "application/octet-stream")
        try:
            file = below.open_file(run.path, path)
        except OSError:
            self._missing()
            return
        with file:
            length = os.fstat(file.fileno()).st_size
            self.send_response(HTTPStatus.OK)
            self._headers(kind, _REPORT_POLICY if report else _FILE_POLICY)
            self.send_header("Content-Length", str(length))
            if kind == "application/octet-stream":
                self.send_header("Content-Disposition", "attachment")
            self.end_headers()
            if self.command != "HEAD":
                copy(file, self.wfile, length)

    def _zip(self, test: str, stamp: str) -> None:
        run = self._find(test, stamp)
        if run is None:
            self._missing()
            return
        try:
            files, left_out = archive_of(run)
        except OSError as error:
            file = name(str(error.filename or run.path))
            text = f"{file} is unreadable: {error.strerror}; the archive of this run would be incomplete"
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, text)
            return
        self.send_response(HTTPStatus.OK)
        self._headers("application/zip", _FILE_POLICY)
        self.send_header("Content-Disposition", f"attachment; filename*=UTF-8''{quoted(test)}-{quoted(stamp)}.zip")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.command == "HEAD":
            return
        write_archive(self.wfile, run, files, left_out, folder=f"{test}-{stamp}")

    def _missing(self) -> None:
        path = html.escape(unquote(self.path))
        body = f"<!DOCTYPE html><title>Not here</title><p>There is no {path} here. <a href='/'>All runs</a>"
        self._send(_Answer(body=body, status=HTTPStatus.NOT_FOUND))

    def _send(self, answer: _Answer) -> None:
        body = answer.body.encode("utf-8", errors="backslashreplace")
        self.send_response(answer.status)
        self._headers(answer.kind, _POLICY)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _headers(self, kind: str, policy: str) -> None:
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")


def _report_folder(test: str, stamp: str) -> str:
    return f"/run/{quoted(test)}/{quoted(stamp)}/"


def _place(run: Run) -> str:
    return f"{quoted(run.test_name)}/{quoted(run.stamp)}"
