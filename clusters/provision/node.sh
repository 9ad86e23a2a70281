#!/bin/sh
# Makes a virtual machine a node: what systems and faults need, known keys, and a clock that only faults set.
#
# usage: node.sh [USER LOGIN_KEY HOST_KEY NAME=ADDRESS...]      as root, on Debian or Ubuntu
#
# Without arguments it only installs what is missing: somebody's host keeps its keys, its clock and its names. USER is a user with
# sudo, and LOGIN_KEY a public key that may log in as this user. HOST_KEY is the file of the private key that sshd shows from now
# on. The names go into /etc/hosts. A second run changes nothing.
set -eu

[ $# -eq 0 ] || [ $# -ge 4 ] || { echo "usage: node.sh [USER LOGIN_KEY HOST_KEY NAME=ADDRESS...]" >&2; exit 254; }

# A program that is there needs no package, so a second run needs no network.
missing=""
for pair in iptables:iptables tc:iproute2 java:openjdk-17-jre-headless faketime:faketime sudo:sudo ps:procps losetup:mount \
    mkfs.ext4:e2fsprogs bash:bash; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of package names
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi
if [ $# -eq 0 ]; then
    echo "installed:$missing"
    exit
fi
user=$1 login_key=$2 host_key=$3
shift 3

# Whatever sets the clock from outside would undo a clock fault while it is on.
for unit in systemd-timesyncd chrony chronyd ntp ntpsec vboxadd-service virtualbox-guest-utils; do
    systemctl disable --now "$unit" >/dev/null 2>&1 || true
done

# Debian's boxes name themselves at 127.0.1.1, where no other node would find them.
begin="# labrys begin" end="# labrys end"
{
    sed -e "/^$begin\$/,/^$end\$/d" -e '/^127\.0\.1\.1[[:space:]]/d' /etc/hosts
    echo "$begin"
    for pair in "$@"; do echo "${pair#*=} ${pair%%=*}"; done
    echo "$end"
} >/etc/hosts.labrys
mv /etc/hosts.labrys /etc/hosts

umask 077
ssh_folder=$(getent passwd "$user" | cut -d: -f6)/.ssh
mkdir -p "$ssh_folder"
touch "$ssh_folder/authorized_keys"
grep -qxF "$login_key" "$ssh_folder/authorized_keys" || echo "$login_key" >>"$ssh_folder/authorized_keys"
chown -R "$user:" "$ssh_folder"

if ! cmp -s "$host_key" /etc/ssh/ssh_host_ed25519_key; then
    install -m 600 "$host_key" /etc/ssh/ssh_host_ed25519_key
    ssh-keygen -y -f "$host_key" >/etc/ssh/ssh_host_ed25519_key.pub
    systemctl reload ssh
fi
rm -f "$host_key"
