#!/bin/sh
# Packs what night.sh or hunt.sh has left in OUT, also after it was killed.
#
# usage: pack.sh OUT
#
# OUT gets summary.md, exit-code (255 if the script did not write it) and store.tar.gz.
set -eu

[ $# -eq 1 ] || { echo "usage: pack.sh OUT" >&2; exit 254; }
mkdir -p "$1"
cd "$1"
[ -s exit-code ] || echo 255 >exit-code
[ ! -d store/suites ] || cat store/suites/*/*/summary.md >summary.md 2>/dev/null || true
[ -s summary.md ] || echo "No run came to its end; the log of the job says why." >summary.md
[ ! -d store ] || tar -czf store.tar.gz store
