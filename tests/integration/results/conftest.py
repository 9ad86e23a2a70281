"""One browser for all tests of this folder: it takes longer to start than a page takes to open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.results.browser import CHROMIUM, Browser

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser; each test opens its page anew."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with Browser() as browser:
        yield browser
