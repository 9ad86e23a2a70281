#!/bin/sh
# Installs what this machine needs to make the box and to run the virtual machines. Debian or Ubuntu, as root.
set -eu

missing=""
for pair in mmdebstrap:mmdebstrap qemu-img:qemu-utils qemu-system-x86_64:qemu-system-x86 vagrant:vagrant libvirtd:libvirt-daemon-system \
    virsh:libvirt-clients dnsmasq:dnsmasq-base iptables:iptables ip:iproute2 rsync:rsync bsdtar:libarchive-tools mke2fs:e2fsprogs \
    nsenter:util-linux ssh:openssh-client; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair#*:}"
done
[ -d /usr/share/doc/vagrant-libvirt ] || missing="$missing vagrant-libvirt"
[ -n "$missing" ] || exit 0
echo "host.sh: installing$missing"
apt-get update -qq
# shellcheck disable=SC2086 # a list of package names
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
