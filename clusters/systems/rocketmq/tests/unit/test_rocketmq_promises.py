"""RocketMQ promises no fresh reads of a log."""

from __future__ import annotations

from tests.trials import settled_by


def test_the_options_of_a_log_follow_the_promise() -> None:
    """It need not be linearizable."""
    with settled_by("--system", "rocketmq", "--workload", "log") as settled:
        assert settled.options.values()["linearizable"] is False
