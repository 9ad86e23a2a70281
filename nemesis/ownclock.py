"""Reads and sets the wall clock of a node that has a clock of its own.

The scripts run in bash, which reads the clock without starting a program. A program starts late on a busy node, and takes a
tenth of a second on an emulated one. The reference is the uptime, which no process can set. `date -s` sets the clock a little
late. So the script measures how late, and sets the clock again. A busy node may stop a script between two readings, so the
script reads again, and keeps the reading that took the shortest time.
"""

from __future__ import annotations

import shlex

# The wall clock at the uptime 0, in microseconds, is the `base` of a clock. /proc/uptime has hundredths of seconds.
_PROGRAM = r"""
read_base() {
  local up later now span best=-1 tries
  for ((tries = 0; tries < 25; tries++)); do
    read -r up _ < /proc/uptime; now=${EPOCHREALTIME/[.,]/}; read -r later _ < /proc/uptime
    up=$((10#${up/./})) later=$((10#${later/./})) span=$((later - up))
    if ((best < 0 || span < best)); then best=$span found=$((now - (up + later) * 5000)); fi
    if ((best <= 3)); then break; fi
  done
}
microseconds() {
  local size=${1#-} sign=1
  [ "$size" = "$1" ] || sign=-1
  case $size in *.*) ;; *) size=$size.0;; esac
  local part=${size#*.}000000
  echo $((sign * (10#${size%.*} * 1000000 + 10#${part:0:6})))
}
case $1 in
read)
  for ((sample = 0; sample < $2; sample++)); do
    if ((sample > 0)); then sleep "$3"; fi
    read_base; echo "$found"
  done;;
set)
  wanted=$(($2 + $(microseconds "$3"))) late=${4:-0}
  for tries in 1 2 3 4 5 6 7 8; do
    read -r up _ < /proc/uptime
    to=$((wanted + 10#${up/./} * 10000 + late))
    printf -v text '%d.%06d' $((to / 1000000)) $((to % 1000000))
    date -s "@$text" > /dev/null || exit
    read_base
    off=$((found - wanted))
    if ((-20000 <= off && off <= 20000)); then break; fi
    if ((off < -10000000 || off > 10000000)); then echo "the clock cannot be set: it is $off us off" >&2; exit 1; fi
    late=$((late - off))
  done
  echo $late;;
esac
"""
_CLOCK = f"bash -c {shlex.quote(_PROGRAM)} clock"

# Sets $base to the base of the clock.
BASE = f"base=$({_CLOCK} read 1 0)"

# `at OFFSET` sets the clock to the right time by $base plus OFFSET, in seconds.
AT = f'at() {{ late=$({_CLOCK} set "$base" "$1" "${{late:-0}}"); }}'


def readings(samples: int, gap_s: float) -> str:
    """Returns a script that prints the base of the clock in microseconds, `samples` times, with a pause between them."""
    return f"{_CLOCK} read {samples} {gap_s:.3f}"


def parsed_s(output: str) -> list[float]:
    """Returns the output of `readings` in seconds."""
    return [int(line) / 1e6 for line in output.split()]
