#!/bin/sh
# Fetches the trend page of the newest night that has one, into OUT. The first night has none.
#
# usage: last-trend.sh WORKFLOW BRANCH OUT
#
# `gh` needs GH_TOKEN with the permission `actions: read`, and GH_REPO or a clone.
set -eu

[ $# -eq 3 ] || { echo "usage: last-trend.sh WORKFLOW BRANCH OUT" >&2; exit 254; }
for run in $(gh run list --workflow "$1" --branch "$2" --limit 30 --json databaseId --jq '.[].databaseId'); do
    if gh run download "$run" --name trend --dir "$3" 2>/dev/null; then
        echo "the trend page of run $run goes on"
        exit 0
    fi
    rm -rf "$3"
done
echo "no earlier run has a trend page; a new one begins"
