"""What programs in virtual time see of this machine, all of it read-only, and their variables.

It is the same in each run on a machine. `results.json` names the processor, because programs also ask that.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from harness.cache import cache

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN: Final = (Path("/usr"),)
# Go runs this many goroutines at once. With one, a goroutine would go on until it waits, wherever its thread stops.
GO_THREADS: Final = "4"
# The C library takes the code of x86-64-v2, and looks for no libraries of newer processors, so that its calls are the same.
NEWER: Final = (
    "AVX", "AVX2", "AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX512ER", "AVX512PF", "FMA", "F16C", "BMI1",
    "BMI2", "LZCNT", "MOVBE", "XSAVEC", "ERMS", "FSRM", "RTM",
)  # fmt: skip
# A JVM interprets a loop until its compiler is done. If a thread waits in such a loop for another one, the compiler never runs,
# because threads take turns at calls. So a thread waits for the compiler. Methods are compiled after ten times as many calls as
# usual, as the compiler would take a fifth of a short run.
JVM: Final = "-XX:-BackgroundCompilation -XX:CompileThresholdScaling=10"
VARIABLES: Final = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "GODEBUG": "asyncpreemptoff=1",
    "GOMAXPROCS": GO_THREADS,
    "JAVA_TOOL_OPTIONS": JVM,
    "GLIBC_TUNABLES": f"glibc.cpu.hwcaps={','.join(f'-{feature}' for feature in NEWER)}",
}
# A JVM says each time a thread takes a buffer for objects; see controller/src/kernel/work.rs.
JVM_WORK: Final = {
    "JAVA_TOOL_OPTIONS": f"{JVM} -XX:-ResizeTLAB -XX:TLABSize=16k -Xlog:gc+tlab=trace:file=/dev/labrys-work:none:filecount=0"
}


def seen() -> tuple[Sequence[Path], dict[str, str]]:
    """Returns the folders of this machine that programs see, and the variables of their environment."""
    java = _java()
    path = ":".join([*(str(home / "bin") for home in java[:1]), VARIABLES["PATH"]])
    return (*SHOWN, cache(), *java, *_python()), VARIABLES | {"PATH": path}


def processor() -> str:
    """Returns the model of this machine's processor; empty if the kernel does not say it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return ""


def _java() -> tuple[Path, ...]:
    """Returns the folders of this machine's Java, the one with the programs first; none without Java."""
    program = shutil.which("java")
    if program is None:
        return ()
    home = Path(program).resolve().parents[1]
    # Debian's packages have links from there to their configuration.
    return (home, *(path for path in sorted(Path("/etc").glob("java-*")) if path.is_dir()))


def _python() -> tuple[Path, ...]:
    """Returns the folder of the Python that runs Labrys, if the others do not have it."""
    home = Path(sys.base_prefix).resolve()
    return () if any(home.is_relative_to(shown) for shown in SHOWN) else (home,)
