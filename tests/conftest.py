"""What holds for all tests."""

from __future__ import annotations

import signal

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

# A shell starts what it puts into the background with Ctrl-C ignored, and programs started by the tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Says what goes together where tests run in several processes, as `make test` runs them.

    Real nodes are started by one process only, one cluster after the other, because what they do is timed. Spark is started by
    one only, because it takes seconds and all processors.
    """
    for item in items:
        for name in ("integration", "spark"):
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.xdist_group(name))
