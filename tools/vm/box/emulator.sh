#!/bin/sh
# Runs QEMU with a small translation cache: by default, each emulated guest takes a gigabyte more. libvirt calls it.
set -f
count=$#
while [ "$count" -gt 0 ]; do
    argument=$1
    shift
    [ "$argument" != tcg ] || argument=tcg,thread=single,tb-size=128
    set -- "$@" "$argument"
    count=$((count - 1))
done
exec /usr/bin/qemu-system-x86_64 "$@"
