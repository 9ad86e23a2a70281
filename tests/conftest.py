"""What holds for all tests."""

from __future__ import annotations

import signal

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
