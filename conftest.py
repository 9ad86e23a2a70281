"""What holds for all tests: those of Labrys in `tests`, and those of one system in its folder."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.scheduling import ORDER, REAL, SPARK, UNTIMED, ByFolder, group_of
from tests.watching import Watching

pytest_plugins = ["tests.real_nodes"]

# How long an example takes says something about the machine, which may be busy, and nothing about the rule. Examples are the
# same in every run, so that a failure in CI is a failure here.
settings.register_profile(
    "labrys",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("labrys")

# A shell starts what it puts into the background with Ctrl-C ignored, and `nohup` ignores SIGHUP. Programs that the tests start
# would inherit that. They do not inherit a handler, and with one these tests go on after their terminal has closed.
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


# Who goes first on processors that all share: real nodes, whose answers are timed; then Spark, whose tests run one after the
# other, and the long tests in virtual time. The numbers are added to the niceness that the run was started with.
NICENESS = {REAL: 0, **dict.fromkeys((SPARK, *UNTIMED), 5)}
LAST = 15
OWN = os.getpriority(os.PRIO_PROCESS, 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the limits of `tests.watcher`."""
    seconds = {"type": float, "metavar": "SECONDS"}
    parser.addoption(
        "--run-limit", **seconds, default=math.inf, help="end the run after this time, and show what still runs"
    )
    parser.addoption(
        "--limit-grace", **seconds, default=30.0, help="kill what does not end so long after its limit; 30 by default"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Has all tests watched."""
    config.pluginmanager.register(Watching(config), "labrys-watching")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests on real nodes and those with Spark before all others, and the small ones last."""
    items.sort(key=lambda item: ORDER.index(group_of(item.nodeid)))


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out the plots of reports, which take most of the time of a small run; other tests check them."""
    monkeypatch.setattr("results.page.report.plots_of", lambda _: {})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives this process its place among those that run tests at once; only root may go forward."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, OWN + NICENESS.get(group_of(item.nodeid), LAST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Says what goes together where tests run in several processes, as `make test` runs them."""
    config.option.loadscopereorder = False  # groups in their order
    return ByFolder(config, log)
