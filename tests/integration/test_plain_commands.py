"""The plain command of each system and workload on real nodes, for some seconds: a healthy system is valid in each.

The folders of some systems without a JVM have such a test for the day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from commands.options.choosing import Chosen, installed
from harness.console import plugins
from tests.plain import USUAL_S, assert_the_plain_command_is_fair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.night]

TIME_LIMIT_S = {"rocketmq-controller": 30}  # fewer operations may meet no master that has passed, and test nothing


def walk() -> Iterator[object]:
    """Yields each system on machines with each of its workloads."""
    for name, chosen in installed(plugins.SYSTEMS):
        assert isinstance(chosen, Chosen), chosen
        for workload in chosen.type.serves if not chosen.type.only_on else ():
            yield pytest.param(name, workload, id=f"{name}-{workload}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("system", "workload"), [*walk()])
def test_the_plain_command_is_a_fair_test(
    system: str, workload: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody disturbs the system, so it keeps what it promises."""
    seconds = TIME_LIMIT_S.get(system, USUAL_S)
    assert_the_plain_command_is_fair(tmp_path, capsys, system, workload, seconds=seconds)
