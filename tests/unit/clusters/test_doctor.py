"""The doctor shows missing programs and capabilities, their purpose, and how to get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.doctor import FIXES, PROGRAMS, as_lines, examine_machine, examine_nodes
from harness import capabilities as cap
from harness.capabilities import Capabilities
from harness.traits import Program

if TYPE_CHECKING:
    from pathlib import Path


def test_every_missing_program_comes_with_its_package() -> None:
    """On an empty machine, each program is missing with its purpose and package, and the doctor runs nothing."""
    findings = {finding.what: finding for finding in examine_machine(find=lambda _: None)}

    for program, package, purpose, needed in PROGRAMS:
        assert not findings[program].ok
        assert findings[program].needed == needed
        assert purpose in findings[program].detail
        assert findings[program].fix == f"apt-get install {package}"


def test_a_capability_is_there_if_every_node_has_it() -> None:
    """One node without a capability makes it missing; the finding has nodes, reasons and a fix."""
    all_but_netem = frozenset(cap.NAMES) - {cap.NETEM}
    findings = {
        finding.what: finding
        for finding in examine_nodes(
            {
                "n1": Capabilities(available=frozenset(cap.NAMES)),
                "n2": Capabilities(available=all_but_netem, missing={cap.NETEM: "no module"}),
                "n3": Capabilities(available=all_but_netem, missing={cap.NETEM: "no module"}),
            }
        )
    }

    assert set(findings) == set(cap.NAMES) == set(FIXES)
    assert findings[cap.TBF].ok
    assert findings[cap.TBF].detail == "3 of 3 nodes"
    assert (findings[cap.NETEM].ok, findings[cap.NETEM].detail) == (False, "n2, n3: no module")
    assert findings[cap.NETEM].fix == FIXES[cap.NETEM]


def test_lines_are_aligned_and_complete() -> None:
    """Each finding is a line with its mark, its name in a column, and the fix after an arrow."""
    nodes = {
        "n1": Capabilities(available=frozenset(cap.NAMES) - {cap.ROOT, cap.CLOCK}, missing={cap.ROOT: "plain user"})
    }
    lines = as_lines(examine_nodes(nodes))

    assert len(lines) == len(cap.NAMES)
    assert len({line.index(cap_name) for line, cap_name in zip(lines, cap.NAMES, strict=True)}) == 1
    assert any(line.startswith("MISSING  root") and "plain user -> a login as root" in line for line in lines)
    assert any(line.startswith("missing  clock") and "not found" in line for line in lines)


def test_a_system_says_which_programs_it_needs(tmp_path: Path) -> None:
    """A program that is too old is missing; a program that only builds the system is not required."""
    for name, says in (("runtime", 'echo version "16.0.1"'), ("compiler", "true")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{says}\n")
        (tmp_path / name).chmod(0o755)
    programs = [
        Program(
            name="runtime", package="rt-17", purpose="running it", least_version=17, version_pattern=r"version (\d+)"
        ),
        Program(name="compiler", package="cc", purpose="building it", build_only=True),
    ]
    by_name = {finding.what: finding for finding in examine_machine(programs, lambda name: str(tmp_path / name))}
    assert not by_name["runtime"].ok
    assert by_name["runtime"].needed
    assert f"{tmp_path / 'runtime'} is 16, not 17 or later; for running it" in by_name["runtime"].detail
    assert by_name["compiler"].ok
    assert not by_name["compiler"].needed
    assert "java" not in by_name


def test_a_library_of_the_clients_that_is_missing_has_the_extra_that_brings_it() -> None:
    """A system whose clients need a library says so before a run, with the command that installs it."""
    by_name = {
        finding.what: finding for finding in examine_machine(libraries={"json": "here", "no_such_library": "absent"})
    }
    assert by_name["json"].ok
    missing = by_name["no_such_library"]
    assert (missing.ok, missing.needed, missing.fix) == (False, True, "pip install 'labrys[absent]'")
