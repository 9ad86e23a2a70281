"""One browser for all tests of this folder: it takes longer to start than a page takes to open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.results.browser import CHROMIUM, Browser

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def started() -> Iterator[Browser]:
    """The browser."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Browser:
    """The browser on an empty page: the page of an earlier test would go on, and complain that its server has ended."""
    started.load("about:blank")
    started.requests.clear()
    started.complaints.clear()
    return started
