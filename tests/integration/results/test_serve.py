"""The server shows only the store, and only to this machine."""

from __future__ import annotations

import errno
import http.client
import io
import json
import os
import shutil
import socket
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

import pytest

from harness.console import below
from harness.errors import InputError
from harness.suites.thresholds import read_threshold
from results.live.files import LEFT_OUT
from results.live.serve import ACCEPT_PAUSE_S, StoreServer
from results.publish import publish
from results.store.store import Run, Store
from tests.unit.results.stored import store_run, suite_document, write_history
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from collections.abc import Iterator

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run in a store, with foreign files in its folder."""
    made = record(seed=11, operations=900, stale=True)
    store = Store(tmp_path_factory.mktemp("served") / "store")
    run = store_run(store, made)
    run.plan_json.write_text('{"faults": [{"kind": "partition-leader"}, {"kind": 7}]}')
    (store.root.parent / "secret.txt").write_text("secret")
    (run.path / "outside").symlink_to(store.root.parent / "secret.txt")
    (run.path / "up").symlink_to("..")
    (run.nodes_dir / "n1" / "evil.html").write_text(HOSTILE)
    (run.nodes_dir / "n1" / f"{HOSTILE.replace('/', '')}.log").write_text("x")
    return run


@pytest.fixture
def server(run: Run) -> Iterator[StoreServer]:
    """A server of the store, on a free port."""
    with StoreServer(Store(run.path.parents[1]), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def get(
    server: StoreServer, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Requests a path without normalizing it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    try:
        connection.putrequest(method, path, skip_host=host is not None)
        if host is not None:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def place(run: Run) -> str:
    """Returns the path of a run's page."""
    return f"/run/{run.test_name}/{run.stamp}/"


def test_it_listens_on_this_machine_only(server: StoreServer) -> None:
    """The server listens on the loopback address."""
    assert server.socket.getsockname()[0] == "127.0.0.1"


def test_it_answers_to_no_foreign_name(server: StoreServer) -> None:
    """A web site that points its own name at this machine is refused."""
    port = server.server_address[1]
    assert [get(server, "/", host=host)[0] for host in ("evil.example", f"evil.example:{port}", "")] == [403, 403, 403]
    assert get(server, "/", host=f"localhost:{port}")[0] == 200


def test_the_list_shows_searches_and_sorts(server: StoreServer, run: Run) -> None:
    """The page has every run with verdict and reason; a search without a result has a message."""
    for query in (
        "",
        "?q=invalid",
        "?q=stale+k0&sort=verdict&up=1",
        f"?q={run.stamp}",
        "?q=--read-mode+unsafe",
        "?q=435687",
        "?q=partition",
        "?page=0&sort=y",
    ):
        status, _, body = get(server, f"/{query}")
        assert status == 200
        assert f"{run.test_name}/{run.stamp}".encode() in body
        assert "✗ invalid".encode() in body
    assert b"No runs match" in get(server, "/?q=valid")[2]
    assert HOSTILE.encode() not in get(server, "/?q=%3Cscript%3Ealert(1)%3C/script%3E")[2]


def test_a_report_is_a_page_and_every_other_file_is_not(server: StoreServer, run: Run) -> None:
    """Only the run's own report is HTML; the rest is text, an image, or a download, and none may run a script."""
    kinds = {
        "report.html": "text/html; charset=utf-8",
        "key-k0.html": "text/html; charset=utf-8",
        "nodes/n1/evil.html": "text/plain; charset=utf-8",
        "nodes/n1/server.log": "text/plain; charset=utf-8",
        "results.json": "application/json; charset=utf-8",
        "history.jsonl": "text/plain; charset=utf-8",
        "plots/rate.svg": "image/svg+xml",
        "junit.xml": "text/plain; charset=utf-8",
    }
    for name, kind in kinds.items():
        status, headers, body = get(server, place(run) + name)
        assert (status, headers["content-type"], headers["x-content-type-options"]) == (200, kind, "nosniff")
        assert body == (run.path / name).read_bytes()
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "sandbox" in headers["content-security-policy"]


def test_folders_are_listed_with_escaped_names(server: StoreServer, run: Run) -> None:
    """A folder without a slash redirects to the one with it."""
    status, _, body = get(server, place(run) + "nodes/n1/")
    assert status == 200
    assert b"server.log" in body
    assert b"<script>alert(1)" not in body
    for path in (place(run)[:-1], f"/{place(run)[:-1]}"):
        assert get(server, path)[1]["location"] == place(run)
    assert get(server, place(run) + "nodes/n1")[1]["location"] == place(run) + "nodes/n1/"


@pytest.mark.parametrize(
    "path",
    [
        "outside", "up/", "../", "../../../secret.txt", "%2e%2e/%2e%2e/%2e%2e/secret.txt", "..%2f..%2f..%2fsecret.txt",
        "nodes/../../../../secret.txt", "//etc/passwd", "%00", "nothing", "nodes/n1/server.log/x", "x" * 5000,
    ],
)  # fmt: skip
def test_nothing_outside_of_a_run_is_served(server: StoreServer, run: Run, path: str) -> None:
    """No path with dots, encoded or not, no link, and no odd path leads out of the store."""
    status, _, body = get(server, place(run) + path)
    assert status == 404
    assert b"secret" not in body or b"secret.txt" in body


@pytest.mark.parametrize(
    "path", ["/run/../../etc", "/run/latest/x/", "/zip/a/b.zip", "/zip/x", "/run", "/etc/passwd", "/%ff"]
)
def test_what_is_no_run_is_not_there(server: StoreServer, path: str) -> None:
    """The server finds runs by comparing names, and never joins a name to a path."""
    assert get(server, path)[0] == 404


def test_names_of_folders_command_no_headers(server: StoreServer, run: Run) -> None:
    """A foreign folder with line breaks in its name is shown as an escaped name."""
    odd = run.path.parents[1] / "a\r\nX-Odd: 1\r\n" / run.stamp
    odd.mkdir(parents=True)
    try:
        name = quote(odd.parent.name)
        for path in (f"/run/{name}/{run.stamp}", f"/run/{name}/{run.stamp}/", f"/zip/{name}/{run.stamp}.zip"):
            status, headers, _ = get(server, path)
            assert status in {200, 301}
            assert "x-odd" not in headers
        assert get(server, "/")[0] == 200
    finally:
        odd.rmdir()
        odd.parent.rmdir()


def test_too_many_questions_are_not_answered(server: StoreServer) -> None:
    """A query of thousands of fields is refused, not parsed."""
    assert get(server, "/?" + "a=1&" * 5000)[0] == 400


@pytest.mark.parametrize(
    "target",
    ["/?page=x", "/?page=-1", f"/?page={'9' * 5000}", "/?page=\u0663".encode().decode("latin-1"), "http://[x"],
)
def test_a_request_that_makes_no_sense_is_answered(server: StoreServer, target: str) -> None:
    """A bad request gets a 400 with a sentence."""
    connection = socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20)
    with connection, connection.makefile("rb") as answer:
        connection.sendall(f"GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode("latin-1"))
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.split()[1] == b"400"
    assert body.strip()


def test_a_page_that_cannot_be_made_says_so(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An internal error gets a 500 with a sentence."""
    monkeypatch.setattr(StoreServer, "summaries", lambda _: 1 / 0)
    status, _, body = get(server, "/")
    assert (status, body) == (500, b"this could not be answered: ZeroDivisionError: division by zero\n")


def test_a_name_of_any_bytes_has_its_pages(server: StoreServer, run: Run) -> None:
    """A folder whose name is not UTF-8 does not break other pages, and has its own page."""
    odd = Path(os.fsdecode(os.fsencode(run.path.parents[1]) + b"/odd\xff\x1b")) / run.stamp
    odd.mkdir(parents=True)
    (odd / os.fsdecode(b"x\xfe.log")).write_text("odd")
    try:
        status, _, body = get(server, "/")
        assert status == 200
        assert b"odd%FF%1B/" in body
        assert b"odd\\udcff\\x1b" in body
        assert b"x%FE.log" in get(server, f"/run/odd%FF%1B/{run.stamp}/")[2]
        assert get(server, f"/run/odd%FF%1B/{run.stamp}/x%FE.log")[::2] == (200, b"odd")
        assert get(server, f"/zip/odd%FF%1B/{run.stamp}.zip")[0] == 200
        assert get(server, f"/compare?run=odd%25FF%251B/{run.stamp}&run={run.test_name}/{run.stamp}")[0] == 200
    finally:
        shutil.rmtree(odd.parent)


def test_an_archive_that_would_not_be_whole_is_refused(
    server: StoreServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has the unreadable file, before any data is sent."""
    opened = below.open_file

    def refusing(root: Path, path: Path) -> BinaryIO:
        if path.name == "junit.xml":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(root, path)

    monkeypatch.setattr(below, "open_file", refusing)
    status, _, body = get(server, f"/zip/{run.test_name}/{run.stamp}.zip")
    assert status == 500
    assert b"junit.xml is unreadable: Permission denied" in body


def test_an_archive_that_breaks_off_is_no_archive(
    server: StoreServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file vanishes during the transfer, the archive has no table of contents, so it is visibly incomplete."""
    opened, asked = below.open_file, []

    def vanishing(root: Path, path: Path) -> BinaryIO:
        if path.name == "junit.xml":
            asked.append(path)
            if len(asked) > 1:
                raise FileNotFoundError(2, "No such file or directory", str(path))
        return opened(root, path)

    monkeypatch.setattr(below, "open_file", vanishing)
    status, _, body = get(server, f"/zip/{run.test_name}/{run.stamp}.zip")
    assert (status, len(asked)) == (200, 2)
    assert len(body) > 100
    assert not zipfile.is_zipfile(io.BytesIO(body))


def test_without_file_descriptors_accepting_waits(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page retries after a pause, and not in a tight loop."""
    waits: list[float] = []

    class Pause:
        def wait(self, seconds: float) -> None:
            waits.append(seconds)

    class Exhausted:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    with StoreServer(Store(server.store.root), 0) as other:
        monkeypatch.setattr(other, "exhausted", Pause())
        with other.socket:
            monkeypatch.setattr(other, "socket", Exhausted())
            with pytest.raises(OSError, match="Too many open files"):
                other.get_request()
            monkeypatch.undo()
    assert waits == [ACCEPT_PAUSE_S]


def test_a_run_is_sent_as_one_file(server: StoreServer, run: Run) -> None:
    """The archive is complete, and without the targets of links."""
    status, headers, body = get(server, f"/zip/{run.test_name}/{run.stamp}.zip")
    assert (status, headers["content-type"]) == (200, "application/zip")
    archive = zipfile.ZipFile(io.BytesIO(body))
    assert archive.testzip() is None
    names = {name.partition("/")[2] for name in archive.namelist()}
    assert {"report.html", "results.json", "nodes/n1/server.log"} <= names
    assert not {"outside", "up"} & names
    (left_out,) = [name for name in archive.namelist() if name.endswith(f"/{LEFT_OUT}")]
    told = archive.read(left_out).decode().splitlines()
    assert [line.partition(":")[0] for line in told] == ["outside", "up"]


def test_heads_have_no_body(server: StoreServer, run: Run) -> None:
    """A HEAD request gets the same headers and no body."""
    status, headers, body = get(server, place(run) + "report.html", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == run.report_html.stat().st_size
    assert get(server, "/", method="POST")[0] == 501


def test_runs_are_compared(server: StoreServer, run: Run) -> None:
    """Runs are shown side by side; unknown names are left out."""
    name = f"{run.test_name}/{run.stamp}"
    body = get(server, f"/compare?run={name}&run={name}")[2]
    assert body.count(run.stamp.encode()) >= 2
    assert b"--read-mode" in body
    assert b"Select at least two" in get(server, f"/compare?run={name}&run=../x")[2]


def test_the_run_that_goes_on_is_followed(tmp_path: Path) -> None:
    """New events are in the next answer; after the end of the run there are no more."""
    made = record(seed=7, operations=300)
    store = Store(tmp_path / "store")
    with StoreServer(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            assert json.loads(get(server, "/live.json")[2]) == {"run": None, "suite": None}
            run = store.create_run("going-on", made.test.started_utc)
            counts = json.loads(get(server, "/live.json")[2])["counts"]
            assert counts == {"ok": 0, "info": 0, "fail": 0, "refused": 0}
            write_history(run, made)
            state = json.loads(get(server, "/live.json")[2])
            assert state["run"] == f"going-on/{run.stamp}"
            assert sum(state["counts"].values()) == len(made.operations)
            assert "… running".encode() in get(server, "/")[2]
            assert get(server, "/live")[0] == 200
            publish(run, made)
            store.finish(run)
            assert json.loads(get(server, "/live.json")[2]) == {"run": None, "suite": None}
            assert "✓ valid".encode() in get(server, "/")[2]
        finally:
            server.shutdown()
            thread.join(10)


def test_a_copy_of_a_store_shows_the_run_that_goes_on_elsewhere(tmp_path: Path) -> None:
    """The store of another host, fetched with its links."""
    made = record(seed=7, operations=300)
    store = Store(tmp_path / "store")
    run = store.create_run("elsewhere", made.test.started_utc)
    write_history(run, made)
    shutil.copytree(store.root, tmp_path / "copy", symlinks=True)
    shutil.rmtree(store.root)
    with StoreServer(Store(tmp_path / "copy"), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            state = json.loads(get(server, "/live.json")[2])
        finally:
            server.shutdown()
            thread.join(10)
    assert state["run"] == f"elsewhere/{run.stamp}"
    assert sum(state["counts"].values()) == len(made.operations)


def test_suites_have_a_list_and_a_page_each(server: StoreServer, run: Run) -> None:
    """A case has its reason, and the report of its run if the store has that; names from the file are escaped."""
    document = suite_document(suite=HOSTILE)
    document["results"]["a"]["run"] = str(run.path)
    document["results"]["b"]["why"] = f"crossed {HOSTILE}"
    folder = server.store.root / "suites" / "s s" / "20260729T000000.000Z"
    folder.mkdir(parents=True)
    (folder / "suite.json").write_text(json.dumps(document))
    try:
        status, _, listed = get(server, "/suites")
        assert status == 200
        assert b'href="/suites/s%20s/20260729T000000.000Z"' in listed
        assert b"1 of 4 cases was as expected; 2 did not run" in listed
        status, _, page = get(server, "/suites/s%20s/20260729T000000.000Z")
        assert status == 200
        assert f'href="{place(run)}report.html"'.encode() in page
        assert b"valid, crossed a threshold" in page
        assert HOSTILE.encode() not in listed + page
        for path in ("/suites/..%2fx/20260729T000000.000Z", "/suites/s%20s/20260730T000000.000Z", "/suites/s%20s"):
            assert get(server, path)[0] == 404
    finally:
        shutil.rmtree(server.store.root / "suites")


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    """The error has a fix."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} on 127.0.0.1 cannot be taken: .*--port"):
            StoreServer(Store(tmp_path), port)


def test_a_run_that_crosses_a_threshold_is_not_green(server: StoreServer) -> None:
    """The list and the page of the run name the threshold, and a search finds its words."""
    made = record(seed=7, operations=300)
    test = replace(made.test, name="slow", thresholds=(read_threshold("operations < 1"),))
    crossed = store_run(server.store, replace(made, test=test))
    try:
        for path in ("/", "/?q=crossed", place(crossed)):
            status, _, page = get(server, path)
            assert status == 200
            if path != "/?q=crossed":
                assert '<span class="mark invalid">✗ valid, crossed a threshold</span>'.encode() in page
                assert f"Crossed operations &lt; 1: it is {len(made.operations)}.".encode() in page
            assert "✓ valid".encode() not in page
        assert b"slow" in get(server, "/?q=crossed")[2]
    finally:
        shutil.rmtree(crossed.path.parent)
