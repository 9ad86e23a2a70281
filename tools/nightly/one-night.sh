#!/bin/sh
# A night without a CI server: runs a suite with today's date as the seed, and makes the trend page and the page of causes.
#
# usage: one-night.sh SUITE FOLDER      as root, in the folder of the repository
#
# SUITE is a name in suites/ of that folder, or in the suites/ of a system of Labrys. LABRYS names the command, as in night.sh. FOLDER gets a folder
# `nights/DAY/SUITE` for each night, `trend` and `causes`. A second night of one day is refused. If TRACKER is set, issues are opened
# and closed; see issue.sh. If KEEP_SIZE is set, such as 20G, the nights together keep to it.
set -u

[ $# -eq 2 ] || { echo "usage: one-night.sh SUITE FOLDER" >&2; exit 254; }
tools=$(dirname "$0")
labrys=${LABRYS:-$([ -x .venv/bin/labrys ] && echo .venv/bin/labrys || echo labrys)}
day=$(date -u +%Y%m%d)
night=$2/nights/$day/$1
[ ! -e "$night" ] || { echo "one-night.sh: $night is there already; remove it to run this night again" >&2; exit 254; }
suite=$(ls clusters/systems/*/suites/"$1.toml" 2>/dev/null) || suite=suites/$1.toml
sh "$tools/night.sh" "$suite" "$day" "$night"
code=$?
morning() {
    mkdir -p "$2/causes" && sh "$tools/pack.sh" "$night" && sh "$tools/trend.sh" "$2/trend" "$night" || return
    [ -z "${TRACKER:-}" ] || sh "$tools/issue.sh" list "$2/causes/issues.json" || return
    sh "$tools/causes.sh" "$2/causes" "$2/trend" "$night" || return
    [ -z "${TRACKER:-}" ] || sh "$tools/issue.sh" carry-out "$2/causes/actions.json" || return
    [ -n "${KEEP_SIZE:-}" ] || return 0
    rm "$night/store.tar.gz" # the folder has the same
    "$labrys" store prune "$2"/nights/*/*/store --any-verdict --keep-size "$KEEP_SIZE"
}
morning "$@" || { [ "$code" -ne 0 ] || code=255; }
cat "$night/summary.md" "$2/causes/causes.md"
exit "$code"
