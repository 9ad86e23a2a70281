#!/bin/sh
# Puts the runs of a night into groups, one for each cause, and says what to do with the issues.
#
# usage: causes.sh OUT TREND NIGHT...
#
# TREND is the folder of trend.sh, with the nights before if there were any. Each NIGHT is a folder that pack.sh has filled. OUT is a
# folder, which may have issues.json from issue.sh. It gets
#
#   causes.html, causes.md   the page of causes
#   actions.json             what issue.sh carries out
#
# URL leads to the night. LABRYS names the command, as in night.sh.
set -eu

[ $# -ge 3 ] || { echo "usage: causes.sh OUT TREND NIGHT..." >&2; exit 254; }
labrys=${LABRYS:-$([ -x .venv/bin/labrys ] && echo .venv/bin/labrys || echo labrys)}
out=$1 trend=$2
shift 2
for night in "$@"; do
    shift
    [ -d "$night/store" ] || [ ! -f "$night/store.tar.gz" ] || tar -xzf "$night/store.tar.gz" -C "$night"
    [ ! -d "$night/store" ] || set -- "$@" "$night/store"
done
mkdir -p "$out"
if [ $# -eq 0 ]; then
    echo "No night has a store, so there are no causes." >"$out/causes.md"
    echo '{"actions": [], "left": []}' >"$out/actions.json"
    exit 0
fi
[ ! -d "$trend" ] || set -- "$trend" "$@"
[ ! -f "$out/issues.json" ] || set -- "$@" --issues "$out/issues.json"
[ -z "${URL:-}" ] || set -- "$@" --link "$URL"
"$labrys" triage "$@" --html "$out/causes.html" --actions "$out/actions.json" --format markdown >"$out/causes.md"
