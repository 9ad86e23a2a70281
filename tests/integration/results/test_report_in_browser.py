"""The report in a browser, without a network, by mouse and by keyboard."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from harness.node_clocks import Clocks, NodeClock
from results.publish import draw
from results.store.store import Store
from results.stored.document import build
from tests.integration.results.browser import CHROMIUM
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import STARTED, record

if TYPE_CHECKING:
    from pathlib import Path

    from results.record.record import RunRecord
    from tests.integration.results.browser import Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def made() -> RunRecord:
    """An invalid run of twenty thousand operations."""
    return record(seed=11, operations=22_500, stale=True)


@pytest.fixture(scope="module")
def url(made: RunRecord, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of its report."""
    return store_run(Store(tmp_path_factory.mktemp("store")), made).report_html.as_uri()


def lanes(browser: Browser) -> tuple[int, int, int]:
    """Returns the number of drawn operations, and the window in microseconds."""
    drawn, window = browser.evaluate(
        "(() => { const data = document.getElementById('lanes').dataset; return [data.drawn, data.window]; })()"
    )
    start, end = window.split()
    return int(drawn), int(start), int(end)


def gutter_of(browser: Browser) -> int:
    """Returns the width of the names at the left of the timeline."""
    return int(browser.evaluate("document.getElementById('lanes').dataset.gutter"))


def canvas(browser: Browser) -> dict[str, Any]:
    """Scrolls to the timeline and returns the position of its canvas."""
    browser.evaluate("document.getElementById('timeline').scrollIntoView()")
    # The browser joins a wheel event to a recent scroll of the page, so wait before it.
    browser.evaluate("new Promise(done => setTimeout(done, 300))")
    browser.settle()
    box: dict[str, Any] = browser.evaluate("document.querySelector('#lanes canvas').getBoundingClientRect().toJSON()")
    return box


def test_it_opens_without_a_complaint_and_without_a_network(browser: Browser, url: str) -> None:
    """The page requests only the file itself."""
    browser.requests.clear()
    browser.open(url)
    assert browser.complaints == []
    assert browser.requests == [url]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1280, 1900])
def test_it_fits_every_width(browser: Browser, url: str, width: int, scheme: str) -> None:
    """The page never scrolls sideways."""
    browser.open(url, width=width, scheme=scheme)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_theme(browser: Browser, url: str, scheme: str) -> None:
    """Every text has a contrast of at least 4.5 against its background (WCAG AA)."""
    browser.open(url, scheme=scheme)
    weak = browser.evaluate("""(() => {
        const channel = (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const rgb = (text) => {
            const n = text.match(/[\\d.]+/g).map(Number);
            const scale = text.startsWith("color(") ? 1 : 255;
            return {v: n.slice(0, 3).map((c) => channel(c / scale)), a: n.length > 3 ? n[3] : 1};
        };
        const light = (c) => 0.2126 * c.v[0] + 0.7152 * c.v[1] + 0.0722 * c.v[2];
        const behind = (e) => {
            for (; e; e = e.parentElement) {
                const c = rgb(getComputedStyle(e).backgroundColor);
                if (c.a === 1) return c;
            }
            return {v: [1, 1, 1]};
        };
        const bad = [];
        const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) {
            const e = walker.currentNode.parentElement;
            if (!walker.currentNode.textContent.trim() || e.closest("svg, script, style, .sr, noscript")) continue;
            const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
            if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(walker.currentNode.textContent.trim().slice(0, 40));
        }
        return [...new Set(bad)];
    })()""")
    assert weak == []


def test_the_wheel_zooms_and_dragging_moves(browser: Browser, url: str, made: RunRecord) -> None:
    """The wheel zooms at the pointer, and the page draws exactly the operations in the window."""
    browser.open(url)
    box = canvas(browser)
    x, y = box["x"] + box["width"] * 0.6, box["y"] + 250
    _, start, end = lanes(browser)
    assert start == 0
    for _ in range(12):
        browser.wheel(x, y, -200)
    drawn, near, far = lanes(browser)
    assert far - near < (end - start) / 50
    inside = sum(
        1
        for op in made.operations
        if op.end_ns is not None and op.start_ns // 1000 <= far and op.end_ns // 1000 >= near
    )
    assert 0 < drawn <= inside
    browser.mouse("Moved", x, y)
    browser.mouse("Pressed", x, y, down=True)
    browser.mouse("Moved", x - 200, y, down=True)
    browser.mouse("Released", x - 200, y)
    _, moved, _ = lanes(browser)
    assert moved > near


def test_the_overview_shares_the_axis_of_the_lanes(browser: Browser, url: str) -> None:
    """Overview and lanes have the same bounds; a click on the overview leads to the time at that position."""
    browser.open(url)
    box = canvas(browser)
    strip = browser.evaluate("document.getElementById('overview').getBoundingClientRect().toJSON()")
    assert (strip["x"], strip["width"]) == (box["x"], box["width"])
    gutter = gutter_of(browser)
    _, start, end = lanes(browser)
    browser.evaluate("document.getElementById('lanes').focus()")
    for _ in range(4):
        browser.key("+")
    for share in (0.3, 0.5, 0.8):
        x, y = strip["x"] + gutter + share * (strip["width"] - gutter), strip["y"] + 30
        browser.mouse("Moved", x, y)
        browser.mouse("Pressed", x, y, down=True)
        browser.mouse("Released", x, y)
        _, near, far = lanes(browser)
        assert (near + far) / 2 == pytest.approx(start + share * (end - start), rel=0.01)


def test_the_keyboard_does_all_of_it(browser: Browser, url: str) -> None:
    """Zoom, move, the whole run, and the violation."""
    browser.open(url)
    browser.evaluate("document.getElementById('lanes').focus()")
    _, start, end = lanes(browser)
    browser.key("+")
    _, near, far = lanes(browser)
    assert start < near < far < end
    browser.key("ArrowRight")
    assert lanes(browser)[1] > near
    browser.key("0")
    assert lanes(browser)[1:] == (start, end)
    browser.key("v")
    _, near, far = lanes(browser)
    assert far - near < end / 5


def test_the_violation_is_shown_and_named(browser: Browser, url: str, made: RunRecord) -> None:
    """The button leads to the violation and dims other keys; a second press zooms in; a tooltip shows the operation."""
    browser.open(url)
    box = canvas(browser)
    browser.evaluate("document.getElementById('go').click()")
    browser.settle()
    assert browser.evaluate("document.getElementById('key').selectedOptions[0].textContent").startswith("k0")
    _, near, far = lanes(browser)
    browser.evaluate("document.getElementById('go').click()")
    browser.settle()
    _, closer, end = lanes(browser)
    assert end - closer <= far - near
    example = made.parts[0].details["counterexample"]
    read = example["operations"][-1]
    assert closer < read["start_ns"] // 1000 < end
    gutter = gutter_of(browser)
    across = gutter + ((read["start_ns"] + read["end_ns"]) / 2000 - closer) / (end - closer) * (box["width"] - gutter)
    texts = []
    for down in range(60, int(box["height"]), 6):
        browser.mouse("Moved", box["x"] + across, box["y"] + down)
        if not browser.evaluate("document.getElementById('tip').hidden"):
            texts.append(browser.evaluate("document.getElementById('tip').innerText"))
    assert any(f"read → {read['result']}" in text and "part of the counterexample" in text for text in texts)


def test_a_line_of_a_log_is_a_tick_with_its_text(browser: Browser, made: RunRecord, tmp_path: Path) -> None:
    """The tick is in the row of its node; on hover it shows the time and the text, as text."""
    clock = NodeClock(offset_ns=0, uncertain_ns=0, zone_s=0)
    few = replace(
        made,
        operations=made.operations[:300],
        parts=[],
        faults=[],
        clocks=Clocks(began_utc=STARTED, nodes={"n3": clock}),
    )
    few = replace(few, test=replace(few.test, log_texts=("candidate",)))
    run = store_run(Store(tmp_path), few)
    (run.nodes_dir / "n3" / "own.log").write_text(
        f"{STARTED + timedelta(seconds=30):%Y-%m-%d %H:%M:%S.%f} <b>n3 is candidate\n"
    )
    draw(run, few, build(few))
    browser.open(run.report_html.as_uri())
    box = canvas(browser)
    _, near, far = lanes(browser)
    gutter = gutter_of(browser)
    across = gutter + (30e6 - near) / (far - near) * (box["width"] - gutter)
    texts = set()
    for down in range(20, int(box["height"]), 5):
        browser.mouse("Moved", box["x"] + across, box["y"] + down)
        if not browser.evaluate("document.getElementById('tip').hidden"):
            texts.add(browser.evaluate("document.getElementById('tip').innerText"))
    assert any("n3's log, 30.000 s" in text and "<b>n3 is candidate" in text for text in texts)
    assert not browser.complaints


def test_twenty_thousand_operations_stay_fluid(browser: Browser, url: str) -> None:
    """A move is drawn in at most a quarter of a second, also on a busy machine without a GPU (about 0.06 s at rest)."""
    browser.open(url)
    canvas(browser)
    median_ms = browser.evaluate("""(async () => {
        const times = [];
        for (let n = 0; n < 8; n++) {
            const began = performance.now();
            document.getElementById(n % 2 ? "fit" : "in").click();
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            times.push(performance.now() - began);
        }
        return times.sort((a, b) => a - b)[4];
    })()""")
    assert median_ms < 250


def test_the_reproduce_line_is_copied(browser: Browser, url: str, made: RunRecord) -> None:
    """The button confirms the copy, and the line is selected or on the clipboard."""
    browser.open(url)
    browser.evaluate("document.querySelector('[data-copy]').click()")
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.evaluate("document.querySelector('[data-copy]').textContent") in {"Copied", "Press Ctrl+C"}
    assert browser.evaluate("document.getElementById('reproduce').textContent") == made.test.reproduce


def test_the_theme_can_be_switched(browser: Browser, url: str) -> None:
    """A button overrides the system's theme."""
    browser.open(url, scheme="light")
    before = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    browser.evaluate("document.getElementById('theme').click()")
    browser.settle()
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert browser.complaints == []


def test_everything_but_the_timeline_is_there_without_scripts(browser: Browser, url: str, made: RunRecord) -> None:
    """The verdict, the faults, the diagram and the plots need no JavaScript."""
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.load(url)
        root = browser.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        text = browser.call("DOM.getOuterHTML", nodeId=root)["outerHTML"]
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert made.parts[0].reason.split("'")[0] in text
    assert 'class="example"' in text
    assert text.count('class="topology"') == len(made.faults)
