"""Events of the nemesis become rows of faults, whatever a foreign history has written there."""

from __future__ import annotations

import pytest

from results.pipeline.read.documents import event_row


@pytest.mark.parametrize("value", [{"fault": 1}, {"fault": 1, "targets": ["n1", "\ud800"]}])
def test_events_of_faults_are_kept(value: dict[str, object]) -> None:
    """Half a character is spelled out, so that a column can hold it."""
    targets = ["n1", "\\ud800"] if "targets" in value else []
    assert event_row("start-kill", value) == {"fault": 1, "kind": "kill", "begins": True, "targets": targets}
    assert event_row("stop-kill", value) == {"fault": 1, "kind": "kill", "begins": False, "targets": targets}


@pytest.mark.parametrize("value", [{"fault": "1"}, [1], None, {"fault": 9223372036854775808}])
def test_what_is_no_fault_says_nothing(value: object) -> None:
    """What is no object, or has no number of a fault that fits into a column, gives no row."""
    assert event_row("start-kill", value) is None
