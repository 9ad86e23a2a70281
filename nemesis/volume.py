"""A volume of our own under the data directory of a process of the system, for faults of the disk.

Power loss and a full disk must hit the system's data and nothing else, so before the system starts its data directory is
put on an ext4 file system in a sparse image file, mounted through a loop device. A power loss shuts that file system down
as it is (the kernel's own means for testing crashes): nothing that lies in memory only is written any more, and the next
mount replays the journal. A full disk is a file that takes all the room there.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a power loss did to a volume.

    Attributes:
        synced_kept: Whether a file that had been synced is whole.
        unsynced_lost: Whether a file that had just been written, and not synced, lost its content.
        files_changed: How many other files are gone, or have another size than before.
        files: How many other files there were before.
    """

    synced_kept: bool
    unsynced_lost: bool
    files_changed: int
    files: int


def _places(data_dir: str, role: str) -> str:
    """Returns a script that sets where the data of a role is, its image and its marks."""
    return f"data={shlex.quote(data_dir)} image={VOLUME_IMAGES}/{role}.img mark={VOLUME_MARKS}/{role}"


def attach(remote: Remote, data_dir: str, role: str) -> None:
    """Puts the data directory of a role on a fresh volume, with what it holds.

    Its process must not run, and there must be no volume for that role yet.
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


def lose_power(remote: Remote, data_dir: str, role: str) -> Loss:
    """Lets everything vanish that was not synced, and mounts the volume again. The process of the role must be dead.

    Raises:
        CommandFailed: The data directory is not on our volume, or could not be mounted again.
    """
    perl = f"open(my $d, '<', $ARGV[0]) or die $!; my $f = pack('L', {_NO_LOG_FLUSH}); ioctl($d, {_SHUTDOWN}, $f) or die $!"
    listing = f"find . -type f ! -name '{SYNCED}' ! -name '{UNSYNCED}' -printf '%P %s\\n' | sort"
    script = f"""set -e
{_places(data_dir, role)}
{_IS_OURS} || {{ echo "$data is not on a volume of ours" >&2; exit 1; }}
sum=$(cksum < "$data/{UNSYNCED}")
(cd "$data"; {listing}) > "$mark/before"
perl -e {shlex.quote(perl)} "$data"
i=0; until umount "$data"; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done
i=0; while losetup -j "$image" | grep -q .; do i=$((i+1)); [ $i -lt 50 ] || exit 1; sleep 0.1; done
mount -o loop "$image" "$data"
(cd "$data"; {listing}) > "$mark/after"
[ "$(cksum < "$data/{SYNCED}")" = "$(cat "$mark/cksum")" ] && echo synced-kept
[ -e "$data/{UNSYNCED}" ] && [ "$(cksum < "$data/{UNSYNCED}")" = "$sum" ] || echo unsynced-lost
echo "changed $(comm -23 "$mark/before" "$mark/after" | wc -l)"
echo "files $(wc -l < \"$mark/before\")"
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
    """Writes a file that is not synced, so that a power loss right after can be seen."""
    path = shlex.quote(f"{data_dir}/{UNSYNCED}")
    remote.run(f"head -c {CANARY_BYTES} /dev/urandom > {path}")


def filling(data_dir: str, role: str) -> tuple[str, str]:
    """Returns a script that fills the volume to the last block, and one that undoes that."""
    data = shlex.quote(data_dir)
    fill = f"""{_places(data_dir, role)}
{_IS_OURS} || {{ echo "$data is not on a volume of ours" >&2; exit 1; }}
free=$(df -B1 --output=avail "$data" | tail -n 1)
fallocate -l "$free" "$data/{FILLER}" 2>/dev/null || true
cat /dev/zero >> "$data/{FILLER}" 2>/dev/null || true"""
    return fill, f"rm -f {data}/{FILLER}"


def room(remote: Remote, data_dir: str) -> tuple[int, bool]:
    """Returns the bytes that are free in a data directory, and whether a small file can be written there."""
    data = shlex.quote(data_dir)
    script = f"""df -B1 --output=avail {data} | tail -n 1
if head -c 65536 /dev/urandom 2>/dev/null > {data}/.labrys-try && sync {data}/.labrys-try 2>/dev/null
then echo writable; else echo full; fi
rm -f {data}/.labrys-try"""
    free, said = remote.run(script, timeout_s=TIMEOUT_S).stdout.split()
    return int(free), said == "writable"
