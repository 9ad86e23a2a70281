"""A headless Chromium, driven over its debugging pipe.

The pipe is the DevTools protocol over two file descriptors, so no port is opened and no driver is needed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TIMEOUT_S = 40.0
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--no-default-browser-check",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


class Browser:
    """One browser with one page. A context manager.

    Attributes:
        requests: Every URL that the page requested.
        complaints: Console errors and uncaught exceptions of the page.
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self._number = 0
        self._buffer = b""
        self._session: str | None = None
        self._loaded = False

    def __enter__(self) -> Self:
        assert CHROMIUM is not None
        self._profile = tempfile.mkdtemp(prefix="labrys-browser-")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        self._out, self._in = ours_out, ours_in
        # The protocol wants descriptors 3 and 4, which a shell can give it.
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "browser", CHROMIUM, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        for descriptor in (self._in, self._out):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Sends a command and returns its result. It records events that come in between."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self._next(deadline, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, url: str, *, width: int = 1280, height: int = 1600, scheme: str = "light") -> None:
        """Opens a page in a window of this size and theme, and waits until it has drawn itself."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.load(url)
        self.settle()

    def load(self, url: str) -> None:
        """Goes to a page and waits until it has loaded."""
        self._loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + TIMEOUT_S
        while not self._loaded:
            self._next(deadline, f"loading {url}")

    def settle(self) -> None:
        """Waits until the page has finished drawing."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def evaluate(self, expression: str) -> Any:
        """Returns the result of a JavaScript expression; it awaits promises."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wheel(self, x: float, y: float, delta: float) -> None:
        """Turns the wheel over a point of the window."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=delta)
        self.settle()

    def mouse(self, kind: str, x: float, y: float, *, down: bool = False) -> None:
        """Sends a mouse event: `Moved`, `Pressed`, `Released`."""
        button = "none" if kind == "Moved" and not down else "left"
        self.call(
            "Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, button=button, buttons=int(down), clickCount=1
        )
        self.settle()

    def key(self, key: str) -> None:
        """Presses a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def screenshot(self, path: Path) -> None:
        """Saves a screenshot as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self, deadline: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._in], [], [], left_s)[0]:
                raise AssertionError(f"the browser did not answer in {TIMEOUT_S:g} s: {waiting_for}")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise AssertionError(f"the browser ended: {waiting_for}")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(message["params"]["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if message["params"]["type"] == "error":
                self.complaints.append(str(message["params"]["args"]))
            case "Log.entryAdded" if message["params"]["entry"]["level"] == "error":
                self.complaints.append(str(message["params"]["entry"]))
