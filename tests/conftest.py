"""What holds for all tests."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

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


# What takes longest begins first, so that no process is left with it at the end.
FIRST = ("integration", "spark")
# Who goes first on processors that all share: real nodes, whose answers are timed; then Spark, whose tests
# run one after the other. The numbers are added to the niceness that the run was started with.
NICENESS = {"integration": 0, "spark": 5}
LAST = 15
OWN = os.getpriority(os.PRIO_PROCESS, 0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the tests on real nodes and those with Spark before all others."""
    items.sort(key=lambda item: FIRST.index(folder) if (folder := _folder(item.nodeid)) in FIRST else len(FIRST))


def _folder(nodeid: str) -> str:
    parts = nodeid.split("/")
    return parts[1] if len(parts) > 1 else ""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Gives this process its place among those that run tests at once; only root may go forward."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, OWN + NICENESS.get(_folder(item.nodeid), LAST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Says what goes together where tests run in several processes, as `make test` runs them.

    Real nodes are started by one process only, one cluster after the other, because what they do is timed. Spark is started by
    one only, because it takes seconds and all processors.
    """
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - needed only there

    class ByFolder(LoadScopeScheduling):  # type: ignore[misc]  # the library has no types
        def _split_scope(self, nodeid: str) -> str:
            folder = _folder(nodeid)
            return folder if folder in FIRST else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # folders in their order: those two before what is left
    return ByFolder(config, log)
