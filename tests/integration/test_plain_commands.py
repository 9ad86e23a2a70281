"""The plain command of each system and workload on real nodes, for some seconds: a healthy system is valid in each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import cli
from commands.options.choosing import Chosen, installed
from harness.console import plugins
from harness.errors import ExitCode
from tests.software import obtained

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

# These need no JVM. The lock of etcd failed in each acquire before its options followed the promise. In the final reads each
# node leads, which takes Redis seven seconds: so there are three nodes, and the default of five in the night.
CHEAP = {("etcd", "lock"): ("--nodes", "3"), ("redis", "lock"): ("--nodes", "3"), ("postgres", "rw-register"): ()}
NIGHT = pytest.mark.night
TIME_LIMIT_S = {"rocketmq-controller": 30}  # fewer operations may meet no master that has passed, and test nothing
USUAL_S = 8


def walk() -> Iterator[object]:
    """Yields each system on machines with each of its workloads for the night, and the cheap ones on few nodes."""
    for name, found in installed(plugins.SYSTEMS):
        assert isinstance(found, Chosen), found
        for workload in found.type.serves if not found.type.only_on else ():
            few = CHEAP.get((name, workload))
            yield pytest.param(name, workload, (), id=f"{name}-{workload}", marks=() if few == () else NIGHT)
            if few:
                yield pytest.param(name, workload, few, id=f"{name}-{workload}-on-few-nodes")


def get(system: Any) -> None:
    """Gets the software of a system with its default options."""
    packages = getattr(sys.modules[system.__module__], "PACKAGES", None)
    if packages is not None:
        packages.fetch()
    elif system.builds():
        system.build(system.Options(), lambda _: None)


def called(*arguments: str) -> int:
    """Carries out a command; returns its exit code."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    return int(ended.value.code or 0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("system", "workload", "nodes"), [*walk()])
def test_the_plain_command_is_a_fair_test(
    system: str, workload: str, nodes: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody disturbs the system, so it keeps what it promises."""
    found = dict(installed(plugins.SYSTEMS))[system]
    assert isinstance(found, Chosen), found
    obtained(system, lambda: get(found.type))
    seconds = str(TIME_LIMIT_S.get(system, USUAL_S))
    words = ("--system", system, "--workload", workload, "--seed", "7", "--time-limit", seconds)
    code = called("test", *words, *nodes, "--store", str(tmp_path))
    out = capsys.readouterr().out
    assert code == ExitCode.VALID, out
    assert out.splitlines()[1].startswith("  Tested: ")
