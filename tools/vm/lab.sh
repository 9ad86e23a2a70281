#!/bin/sh
# A place for virtual machines that changes nothing else on this machine: a libvirt of its own, in namespaces of its own.
#
# usage: lab.sh up               starts it, as root, in the folder of the repository; does nothing if it runs
#        lab.sh run COMMAND...   runs a command in it, e.g. `lab.sh run vagrant status`
#        lab.sh down             ends it, with all virtual machines and networks in it
#
# The lab has namespaces for processes, mounts and the network. It keeps its files in build/vm. When its first process ends, the
# kernel ends everything in the lab. Guests reach each other and the lab, and no other network.
set -eu

folder=$PWD/build/vm
pid_file=$folder/lab.pid
log=$folder/lab.log
START_WAIT_S=60

usage() { echo "usage: lab.sh up | run COMMAND... | down" >&2; exit 254; }
[ $# -ge 1 ] || usage
[ "$(id -u)" -eq 0 ] || { echo "lab.sh: needs root, to make namespaces" >&2; exit 254; }
[ -e Vagrantfile ] || { echo "lab.sh: run it in the folder of the repository; $PWD has no Vagrantfile" >&2; exit 254; }

# The process number as this machine sees it; nothing if the lab does not run. The command line guards against a reused number.
first_process() {
    [ -e "$pid_file" ] || return 0
    pid=$(cat "$pid_file")
    if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q 'lab\.sh first'; then echo "$pid"; fi
}

# Runs as the first process of the lab.
first() {
    for name in etc/libvirt var/lib/libvirt run/libvirt var/log/libvirt var/cache/libvirt; do
        rm -rf "$folder/lab/$name"
        mkdir -p "$folder/lab/$name" "/$name"
        mount --bind "$folder/lab/$name" "/$name"
    done
    cat >/etc/libvirt/qemu.conf <<'CONF'
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
CONF
    cat >/etc/libvirt/libvirtd.conf <<'CONF'
auth_unix_ro = "none"
auth_unix_rw = "none"
CONF
    ip link set lo up
    libvirtd &
    while :; do wait || true; sleep 1; done
}

case $1 in
up)
    [ $# -eq 1 ] || usage
    mkdir -p "$folder"
    if [ -z "$(first_process)" ]; then
        setsid unshare --net --mount --pid --fork --mount-proc --propagation private sh "$0" first >"$log" 2>&1 </dev/null &
        outer=$!
        turn=0
        until pid=$(ps -o pid= --ppid "$outer") && [ -n "$pid" ]; do
            turn=$((turn + 1))
            [ "$turn" -lt 50 ] || { echo "lab.sh: the lab did not start; $log says:" >&2; tail "$log" >&2; exit 1; }
            sleep 0.1
        done
        echo "$pid" | tr -d ' ' >"$pid_file"
    fi
    turn=0
    until sh "$0" run virsh --connect qemu:///system version >/dev/null 2>&1; do
        turn=$((turn + 1))
        [ "$turn" -lt "$START_WAIT_S" ] || { echo "lab.sh: libvirt does not answer; the end of $log:" >&2; tail "$log" >&2; exit 1; }
        sleep 1
    done
    echo "lab.sh: the lab runs, first process $(first_process)"
    ;;
run)
    [ $# -ge 2 ] || usage
    shift
    pid=$(first_process)
    [ -n "$pid" ] || { echo "lab.sh: the lab does not run; \`lab.sh up\` starts it" >&2; exit 254; }
    export VAGRANT_HOME="$folder/vagrant.d" VAGRANT_DEFAULT_PROVIDER=libvirt VAGRANT_CHECKPOINT_DISABLE=1
    export LIBVIRT_DEFAULT_URI=qemu:///system
    exec nsenter --target "$pid" --net --mount --pid --wdns="$PWD" "$@"
    ;;
down)
    [ $# -eq 1 ] || usage
    pid=$(first_process)
    [ -z "$pid" ] || kill -KILL "$pid"
    rm -f "$pid_file"
    ;;
first) first ;;
*) usage ;;
esac
