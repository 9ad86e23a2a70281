"""Errors of a disk: from the n-th call of a kind on a file with a name, system calls fail.

Programs in virtual time have this fault, because their controller answers each call, and so have simulated nodes.
On real nodes, Labrys refuses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.capabilities import SIMULATED_CALLS
from harness.world import LOAD
from nemesis import options as opt
from nemesis.fault import DISK
from nemesis.faults.disk import DiskFault

if TYPE_CHECKING:
    from collections.abc import Mapping

CALLS = ("open", "read", "write", "fsync", "msync", "sync", "rename", LOAD)
ERRORS = ("EIO", "ENOSPC")
MOST = 10**9


class DiskError(DiskFault):
    """`disk-error`."""

    EFFECT: ClassVar[str] = "{nodes} had an error of the disk"
    SUMMARY: ClassVar[str] = "Lets the n-th system call of a kind on a file of the process fail, only in the simulator."
    PROOF: ClassVar[str] = "the simulator names each call that failed, with its number, its file and its program"
    NEEDS: ClassVar[frozenset[str]] = frozenset({SIMULATED_CALLS})
    GROUPS: ClassVar[frozenset[str]] = frozenset({DISK})
    WHOLE_NODE: ClassVar[str | None] = None
    DISABLES: ClassVar[bool] = True
    OPTIONS: ClassVar[Mapping[str, opt.Option]] = {
        "call": opt.choice(
            "fsync",
            CALLS,
            "The calls that fail; fsync has fdatasync too, sync has syncfs, and load is a use of a page in a mapped file.",
        ),
        "file": opt.text("*", "A glob pattern of file names or paths in the data directory."),
        "nth": opt.integer(
            1,
            1,
            MOST,
            "The number of the first call that fails, from 1, after the begin of the fault; of load, of its page.",
        ),
        "times": opt.integer(1, 1, MOST, "The number of calls that fail from there on."),
        "error": opt.choice("EIO", ERRORS, "The error that the calls return."),
    }
