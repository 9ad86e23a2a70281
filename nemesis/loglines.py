"""Waits for a line in a growing log on a node, without loading the log.

One command on the node follows the log for some seconds, and ends with the first line that matches. A later command goes on
where this one began: a line that did not match before does not match again, so nothing is lost or counted twice. The command
starts `tail -F`, which follows a log by its name through rotations. After a rotation between two commands, the next one finds
the rest of the old file by its inode. A log that was cut is read from its start. Nothing stays on the node: each command ends
by itself, also after a lost connection.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import NodeError
from harness.slowness import slowed

if TYPE_CHECKING:
    from harness.remote import Remote

LOOK_S = 2.0  # how long one command follows a log; the heal of a run waits for it at most
MAX_LINE_BYTES = 2000
NEAR_BYTES = 4096  # where the script looks for the end of the last whole line
OVERHEAD_S = 10.0
FOLLOWED = "followed"

# $1 to $4 are the log, its folder, the inode and the offset of the last look (or -), $5 the pattern, $6 the seconds. It prints
# the place where the last whole line ends, and then a line that matches, if there is one. If the file system has no inotify, as
# an overlay, `tail` looks at the log every 10 ms. The script ends it by a signal, because it would notice the end of its reader
# only with the next line.
_SCRIPT = f"""now=$(stat -c '%i %s' "$1" 2>/dev/null) || now='0 0'
inode=${{now% *}}; size=${{now#* }}; near={NEAR_BYTES}; old=
[ "$size" -ge "$near" ] || near=$size
end() {{ tail -c "+$((size - near + 1))" "$1" | head -c "$near"; }}
[ "$size" = 0 ] || [ -z "$(end "$1" | tail -c 1)" ] || size=$((size - $(end "$1" | tail -n 1 | wc -c)))
echo "{FOLLOWED} $inode $size"
if [ "$3" = - ]; then from=$((size + 1))
elif [ "$inode" = "$3" ] && [ "$size" -ge "$4" ]; then from=$(($4 + 1))
else
  from=1
  [ "$inode" = "$3" ] || old=$(find "$2" -maxdepth 1 -inum "$3" 2>/dev/null | head -n 1)
fi
lines=$(mktemp -u /tmp/labrys-lines.XXXXXXXX); mkfifo -m 600 "$lines" || exit
{{
  [ -z "$old" ] || tail -c "+$(($4 + 1))" "$old"
  exec timeout "$6" tail -s 0.01 -c "+$from" -F "$1"
}} >"$lines" 2>/dev/null &
exec 3<"$lines"; rm -f "$lines"
grep -a -m 1 -E -e "$5" <&3 | head -c {MAX_LINE_BYTES}
kill $! 2>/dev/null; exit 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a log.

    Attributes:
        inode: The file.
        offset: The position in it in bytes.
    """

    inode: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one command saw.

    Attributes:
        place: The end of the last whole line when the command began; the next command continues there.
        line: The first line that matches, without its line break; None if there was none.
    """

    place: Place
    line: str | None


def look(remote: Remote, path: str, pattern: str, after: Place | None, *, look_s: float = LOOK_S) -> Look:
    """Follows a log until a line matches, or for `look_s` seconds.

    Args:
        remote: The shell on the node.
        path: The absolute path of the log. It need not exist yet.
        pattern: The extended regular expression.
        after: The place of the look before; None: only lines that come after the start of this command count.
        look_s: The time in seconds.

    Raises:
        NodeError: The node cannot be reached, or its answer has another form.
    """
    inode, offset = ("-", "-") if after is None else (str(after.inode), str(after.offset))
    arguments = shlex.join([path, path.rpartition("/")[0] or "/", inode, offset, pattern, f"{slowed(look_s):g}"])
    done = remote.run(f"set -- {arguments}\n{_SCRIPT}", timeout_s=look_s + OVERHEAD_S, check=False)
    head, _, rest = done.stdout.partition("\n")
    word, *numbers = head.split()
    if word != FOLLOWED or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
        said = " ".join((done.stderr or done.stdout).split())[:MAX_LINE_BYTES]
        raise NodeError(remote.node, f"{path} could not be followed: {said or 'no output'}")
    line = rest.partition("\n")[0].rstrip("\r")
    return Look(place=Place(inode=int(numbers[0]), offset=int(numbers[1])), line=line or None)
