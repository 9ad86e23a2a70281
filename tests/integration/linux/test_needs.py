"""The doctor tries each right that programs in virtual time need, as the controller uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clusters.local.namespaces import find_program
from clusters.sim.linux import needs
from clusters.sim.linux.needs import examine_for_programs

pytestmark = pytest.mark.integration

# Denies system calls by their numbers with EPERM, as a container does, and then examines the machine.
DENYING = """
import ctypes, struct, sys
from clusters.local.namespaces import find_program
from clusters.sim.linux.needs import examine_for_programs
denied = [int(word) for word in sys.argv[1:]]
code = [(0x20, 0, 0, 0)]
for number in denied:
    code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50001)]
code.append((0x06, 0, 0, 0x7FFF0000))
filter = b"".join(struct.pack("HBBI", *each) for each in code)
buffer = ctypes.create_string_buffer(filter, len(filter))
program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0
for finding in examine_for_programs(find_program):
    if not finding.ok:
        print(finding.what, "|", finding.detail, "|", finding.fix)
"""
PTRACE, SECCOMP, UNSHARE, MOUNT = 101, 317, 272, 165


def test_this_machine_has_what_the_other_tests_use() -> None:
    """Nothing is missing where programs run in virtual time."""
    assert [finding for finding in examine_for_programs(find_program) if not finding.ok] == []


@pytest.mark.parametrize(
    ("denied", "missing"),
    [
        (PTRACE, ["ptrace"]),
        (UNSHARE, ["namespaces", "/proc in a namespace", "files in memory"]),
        (MOUNT, ["namespaces", "/proc in a namespace", "files in memory"]),
    ],
)
def test_a_right_that_is_refused_is_missing(denied: int, missing: list[str]) -> None:
    """The line has the right, the error of the kernel, and what to do."""
    done = subprocess.run([sys.executable, "-c", DENYING, str(denied)], capture_output=True, text=True, check=True)
    lines = [line.split(" | ") for line in done.stdout.splitlines()]
    assert [what for what, _, _ in lines] == missing
    for _, detail, fix in lines:
        assert "it failed: " in detail
        assert "ermi" in detail  # permitted, or permission
        assert "--privileged" in fix


def test_a_filter_that_is_refused_is_missing() -> None:
    """Without the right to filter calls, no thread stops at one."""
    script = needs.SECCOMP.replace("libc.prctl(22", "(-1) if 1 else libc.prctl(22")
    assert "prctl" in str(needs._run([sys.executable, "-c", script]))
    without = needs.SECCOMP.replace("0x7FF00000", "0x7FFF0000")
    assert needs._run([sys.executable, "-c", without]) == "the filter has no effect"


def test_other_processors_and_missing_tools_are_named() -> None:
    """Each comes with the reason and with what to do."""
    processor = needs._processor("aarch64")
    assert not processor.ok
    assert "of x86_64 only" in processor.detail
    findings = {finding.what: finding for finding in examine_for_programs(lambda _: None)}
    assert findings["cargo"].fix.startswith("apt-get install cargo")
    assert findings["cc"].fix.startswith("apt-get install gcc")
    assert "unshare is not on PATH" in findings["namespaces"].detail
    old = needs._cargo(lambda _: "/bin/false")
    assert "of an unknown version" in old.detail
    assert not needs._space(1 << 20, None).ok
