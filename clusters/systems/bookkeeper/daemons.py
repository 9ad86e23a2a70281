"""The JVMs of the system: their flags, files and processes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clusters.kit import jvm
from harness.daemon import Daemon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from harness.system import System

PLACEMENT: Final = "org.apache.bookkeeper.client.DefaultEnsemblePlacementPolicy"
DATA_DIR: Final = "/var/lib/labrys/bookkeeper"
JVM_FLAGS: Final = (
    *jvm.JVM_FLAGS,
    "-Xms48m",
    "-Xmx128m",
    "-XX:MaxDirectMemorySize=128m",
    "-XX:ActiveProcessorCount=2",
    *jvm.SIMPLE_LOGGER,
)


def log_of(role: str) -> str:
    """Returns the path of the log of a role."""
    return f"/var/log/labrys/bookkeeper-{role}/{role}.log"


def config_of(role: str) -> str:
    """Returns the path of the settings of a role."""
    return f"/etc/labrys/bookkeeper-{role}.conf"


def lines_of(settings: Mapping[str, object]) -> str:
    """Returns settings as a file of properties."""
    return "".join(
        f"{key}={str(value).lower() if isinstance(value, bool) else value}\n" for key, value in settings.items()
    )


def daemon(
    system: System, role: str, program: Sequence[str], *, ports: Sequence[int], settings: Mapping[str, object]
) -> Daemon:
    """Returns the process of a role.

    Args:
        system: The system, whose artifact has the jars.
        role: The role.
        program: The class with the main method, and its arguments.
        ports: The ports that it listens on.
        settings: What its file of settings has.
    """
    return Daemon(
        role=role,
        argv=[
            "java",
            *JVM_FLAGS,
            f"-Duser.home={Path(log_of(role)).parent}",
            "-cp",
            f"{system.artifact.there}/*",
            *program,
        ],
        pattern=rf"^java .*{re.escape(program[0])}",
        ports=tuple(ports),
        data_dir=f"{DATA_DIR}-{role}",
        log_files=(log_of(role),),
        config_files={config_of(role): lines_of(settings)},
        java_packages=("org.apache.bookkeeper",),
        log_clock=jvm.simple_log_clock(log_of(role)),
    )
