"""A volume of Labrys for the data directory of a process of the system, for faults of the disk.

Power loss and a full disk must affect only the system's data. So before the system starts, Labrys puts its data directory on an
ext4 file system in a sparse image file, mounted through a loop device. A power loss shuts that file system down with the
kernel's own means for crash tests. The kernel then writes no more data from memory, and the next mount replays the journal. For
a full disk, a file takes all the free space.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.healing import VOLUME_IMAGES, VOLUME_MARKS

if TYPE_CHECKING:
    from harness.remote import Remote

SIZE_MB = 1024
TIMEOUT_S = 30.0
SYNCED = ".labrys-synced"
UNSYNCED = ".labrys-unsynced"
FILLER = ".labrys-filler"
CANARY_BYTES = 65536
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2

_IS_OURS = (
    'dev=$(losetup -j "$image" | head -n 1 | cut -d: -f1); [ -n "$dev" ] && grep -q "^$dev $data ext4 " /proc/mounts'
)


_LISTING = f"find . -type f ! -name '{SYNCED}' ! -name '{UNSYNCED}' -printf '%P %s\\n' | sort"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The effect of a power loss on a volume.

    Attributes:
        synced_kept: Whether a synced file is whole.
        unsynced_lost: Whether a recently written file without a sync lost its content.
        files_changed: The number of other files that are gone or have another size.
        files: The number of other files before.
    """

    synced_kept: bool
    unsynced_lost: bool
    files_changed: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The state of a volume.

    Attributes:
        free_bytes: The number of free bytes.
        writable: Whether a small file can be written.
        files: The number of files, without those of Labrys.
    """

    free_bytes: int
    writable: bool
    files: int


def _places(data_dir: str, role: str) -> str:
    """Returns a script that sets the paths of a role's data, image and marks."""
    return f"data={shlex.quote(data_dir)} image={VOLUME_IMAGES}/{role}.img mark={VOLUME_MARKS}/{role}"


def attach(remote: Remote, data_dir: str, role: str) -> None:
    """Moves the data directory of a role, with its content, to a new volume.

    Its process must not run, and the role must not have a volume yet.
    """
    script = f"""set -e
{_places(data_dir, role)}
mkdir -p {VOLUME_IMAGES} "$mark" "$data"
truncate -s {SIZE_MB}M "$image"
mkfs.ext4 -q -m 0 -E lazy_itable_init=1,lazy_journal_init=1 "$image"
printf '%s' "$data" > "$mark/data"
stage=$(mktemp -d)
mount -o loop "$image" "$stage"
cp -a "$data/." "$stage/"
chmod --reference="$data" "$stage"; chown --reference="$data" "$stage"
head -c {CANARY_BYTES} /dev/urandom > "$stage/{SYNCED}"
umount "$stage"; rmdir "$stage"
mount -o loop "$image" "$data"
cksum < "$data/{SYNCED}" > "$mark/cksum"
"""
    remote.run(script, timeout_s=TIMEOUT_S)


def cut_power(remote: Remote, data_dir: str, role: str, *, stall_s: float = 0.0) -> None:
    """Shuts the volume down: what is not synced is lost, and each later write and sync fails.

    Args:
        remote: The shell of the node.
        data_dir: The data directory.
        role: The role of its process.
        stall_s: The time before, in seconds, for which each write and sync waits. What the process wrote before this time
            reaches the disk.

    Raises:
        CommandFailed: The data directory is not on a volume of Labrys, or does not stall.
    """
    perl = f"open(my $d, '<', $ARGV[0]) or die $!; my $f = pack('L', {_NO_LOG_FLUSH}); ioctl($d, {_SHUTDOWN}, $f) or die $!"
    script = f"""set -e
{_places(data_dir, role)}
{_IS_OURS} || {{ echo "$data is not on a volume of ours" >&2; exit 1; }}
cksum < "$data/{UNSYNCED}" > "$mark/unsynced"
(cd "$data"; {_LISTING}) > "$mark/before"
{_stall(stall_s) if stall_s else ""}
perl -e {shlex.quote(perl)} "$data"
"""
    remote.run(script, timeout_s=TIMEOUT_S)


def _stall(stall_s: float) -> str:
    """Returns a script that stalls the volume until the script ends. It writes the unsynced file of Labrys meanwhile."""
    return f"""rm "$data/{UNSYNCED}"
fsfreeze --freeze "$data"; trap 'fsfreeze --unfreeze "$data"' EXIT
(head -c {CANARY_BYTES} /dev/urandom > "$data/{UNSYNCED}") > /dev/null 2>&1 &
sleep {stall_s:g}
[ ! -e "$data/{UNSYNCED}" ] || {{ echo "$data took a write although it is frozen" >&2; exit 1; }}"""


def restore_power(remote: Remote, data_dir: str, role: str) -> Loss:
    """Mounts the volume again after `cut_power`. The process of the role must be dead.

    Raises:
        CommandFailed: The volume cannot be mounted again.
    """
    script = f"""set -e
{_places(data_dir, role)}
i=0; until umount "$data"; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done
i=0; while losetup -j "$image" | grep -q .; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done
mount -o loop "$image" "$data"
(cd "$data"; {_LISTING}) > "$mark/after"
[ "$(cksum < "$data/{SYNCED}")" = "$(cat "$mark/cksum")" ] && echo synced-kept
[ -e "$data/{UNSYNCED}" ] && [ "$(cksum < "$data/{UNSYNCED}")" = "$(cat "$mark/unsynced")" ] || echo unsynced-lost
echo "changed $(comm -23 "$mark/before" "$mark/after" | wc -l)"
echo "files $(wc -l < "$mark/before")"
rm -f "$data/{UNSYNCED}"
"""
    lines = remote.run(script, timeout_s=TIMEOUT_S).stdout.splitlines()
    numbers = {word: int(count) for word, _, count in (line.partition(" ") for line in lines) if count.isdigit()}
    return Loss(
        synced_kept="synced-kept" in lines,
        unsynced_lost="unsynced-lost" in lines,
        files_changed=numbers.get("changed", 0),
        files=numbers.get("files", 0),
    )


def write_unsynced(remote: Remote, data_dir: str) -> None:
    """Writes a file without a sync, so that a power loss right after has a visible effect."""
    path = shlex.quote(f"{data_dir}/{UNSYNCED}")
    remote.run(f"head -c {CANARY_BYTES} /dev/urandom > {path}")


def filling(data_dir: str, role: str) -> tuple[str, str]:
    """Returns a script that fills the volume to the last block, and one that frees the space again."""
    data = shlex.quote(data_dir)
    fill = f"""{_places(data_dir, role)}
{_IS_OURS} || {{ echo "$data is not on a volume of ours" >&2; exit 1; }}
free=$(df -B1 --output=avail "$data" | tail -n 1)
fallocate -l "$free" "$data/{FILLER}" 2>/dev/null || true
cat /dev/zero >> "$data/{FILLER}" 2>/dev/null || true"""
    return fill, f"rm -f {data}/{FILLER}"


def room(remote: Remote, data_dir: str) -> Room:
    """Looks at a data directory: its free space, whether a small file can be written, and the files of others in it."""
    data = shlex.quote(data_dir)
    script = f"""df -B1 --output=avail {data} | tail -n 1
if head -c 65536 /dev/urandom 2>/dev/null > {data}/.labrys-try && sync {data}/.labrys-try 2>/dev/null
then echo writable; else echo full; fi
rm -f {data}/.labrys-try
find {data} -type f ! -name '.labrys-*' | wc -l"""
    free, result, files = remote.run(script, timeout_s=TIMEOUT_S).stdout.split()
    return Room(free_bytes=int(free), writable=result == "writable", files=int(files))
