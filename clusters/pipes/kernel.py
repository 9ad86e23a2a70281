"""What Linux tells in /proc about the processes of a node.

Sources: proc_pid_stat(5), proc_pid_syscall(5), proc_pid_task(5), proc_pid_status(5).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
STOPPED: Final = "TtZX"  # state letters of a thread that SIGSTOP has stopped, and of one that has ended


def letters_of(pid: int) -> list[str]:
    """Returns the state letters of the threads of a process, the first thread first; none if there is no such process."""
    found = []
    for thread in threads_of(pid):
        text = _text(PROC / str(pid) / "task" / thread / "stat")
        if text:
            found.append(text.rpartition(")")[2].split(maxsplit=1)[0])
    return found


def threads_of(pid: int) -> list[str]:
    """Returns the ids of the threads of a process; none if there is no such process."""
    try:
        return sorted((path.name for path in (PROC / str(pid) / "task").iterdir()), key=int)
    except OSError:
        return []


def group_of(pid: int) -> list[int]:
    """Returns a process and all that it has started and that still belongs to it, directly or not."""
    found = [pid]
    for each in found:  # it grows meanwhile
        for thread in threads_of(each):
            found += map(int, _text(PROC / str(each) / "task" / thread / "children").split())
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
