#!/bin/sh
# Adds the runs of this night to the trend page.
#
# usage: trend.sh OUT NIGHT...
#
# OUT is the output folder of `labrys analyze`, with the nights before if there were any. Each NIGHT is a folder that pack.sh has
# filled. A wrong verdict is no error here: negative controls are invalid on purpose. LABRYS names the command, as in night.sh.
set -eu

[ $# -ge 2 ] || { echo "usage: trend.sh OUT NIGHT..." >&2; exit 254; }
labrys=${LABRYS:-$([ -x .venv/bin/labrys ] && echo .venv/bin/labrys || echo labrys)}
out=$1
shift
for night in "$@"; do
    shift
    [ -f "$night/store.tar.gz" ] || continue
    [ -d "$night/store" ] || tar -xzf "$night/store.tar.gz" -C "$night"
    set -- "$@" "$night/store"
done
[ $# -gt 0 ] || { echo "trend.sh: no night has a store; the trend page stays as it was" >&2; exit 0; }
code=0
"$labrys" analyze "$@" --out "$out" --incremental || code=$?
[ "$code" -le 2 ] || exit "$code"
