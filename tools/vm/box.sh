#!/bin/sh
# Makes a Vagrant box for the Vagrantfile, for machines that cannot fetch one, and for emulated machines without /dev/kvm.
#
# usage: box.sh BOX      as root, in the folder of the repository, after `make dist`
#
# BOX is the file to write. The image is Debian 12 with everything that clusters/provision installs, so the guests need no
# network beyond their own. It also has the Python packages that Labrys depends on, in /opt/labrys. The packages come from the
# package sources of this machine. The box is for libvirt. Its guests boot their kernel directly, without a boot loader.
set -eu

[ $# -eq 1 ] || { echo "usage: box.sh BOX" >&2; exit 254; }
[ "$(id -u)" -eq 0 ] || { echo "box.sh: needs root, to make the file system of the image" >&2; exit 254; }
for program in mmdebstrap mke2fs qemu-img tar; do
    command -v "$program" >/dev/null 2>&1 || { echo "box.sh: $program is missing; tools/vm/host.sh installs it" >&2; exit 254; }
done
wheel=$(ls -t dist/labrys-*.whl 2>/dev/null | head -n 1)
[ -n "$wheel" ] || { echo "box.sh: dist/ lacks a wheel of Labrys; run \`make dist\` first" >&2; exit 254; }
public_key=$(dpkg -L vagrant 2>/dev/null | grep '/keys/vagrant.pub$') || true
[ -n "$public_key" ] || { echo "box.sh: found no vagrant.pub; install Debian's package vagrant" >&2; exit 254; }
box=$1
template=$(dirname "$0")/box
IMAGE_SIZE=6G

sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
[ -e "$sources" ] || { echo "box.sh: found no package sources: neither /etc/apt/sources.list nor $sources" >&2; exit 254; }

mkdir -p "$(dirname "$box")"
work=$(mktemp -d "$(dirname "$box")/box.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "box.sh: fetching the Python packages for Python 3.11"
.venv/bin/pip download --quiet --disable-pip-version-check --dest "$work/wheels" --only-binary :all: --python-version 3.11 \
    --implementation cp --platform manylinux_2_34_x86_64 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 "$wheel"
rm -f "$work/wheels"/labrys-*.whl
cp clusters/provision/node.sh clusters/provision/control.sh "$work/wheels"
# Vagrant logs in with the private half of this key, which every installation of Vagrant has.
cp "$public_key" "$work/wheels/vagrant.pub"

# The machine itself, then what node.sh installs, then what control.sh installs. guest.sh fails if one of them lacks a package.
packages="systemd,systemd-sysv,dbus,udev,kmod,linux-image-cloud-amd64,initramfs-tools,openssh-server,iputils-ping,rsync"
packages="$packages,iptables,iproute2,openjdk-17-jre-headless,faketime,sudo,procps,mount,e2fsprogs"
packages="$packages,openjdk-17-jdk-headless,maven,gcc,libc6-dev,python3,python3-venv,cargo-web,make"

echo "box.sh: installing Debian 12"
root=$work/root
mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --customize-hook="mkdir -p \"\$1/opt/wheels\" && cp $work/wheels/* \"\$1/opt/wheels\"" \
    --customize-hook="cp $template/guest.sh \"\$1/guest.sh\" && chroot \"\$1\" sh /guest.sh && rm \"\$1/guest.sh\"" \
    bookworm "$root" "$sources"
rm -rf "$root/opt/wheels" "$root"/var/cache/apt/*.bin "$root"/var/lib/apt/lists/*

echo "box.sh: packing"
mkdir "$work/box"
cp "$(ls "$root"/boot/vmlinuz-* | tail -n 1)" "$work/box/vmlinuz"
cp "$(ls "$root"/boot/initrd.img-* | tail -n 1)" "$work/box/initrd.img"
mke2fs -q -t ext4 -L labrys -d "$root" "$work/image.raw" "$IMAGE_SIZE"
qemu-img convert -f raw -O qcow2 "$work/image.raw" "$work/box/box.img"
cp "$template/Vagrantfile" "$template/metadata.json" "$work/box"
install -m 755 "$template/emulator.sh" "$work/box/emulator.sh"
tar -cf "$work/packed" -C "$work/box" metadata.json Vagrantfile emulator.sh vmlinuz initrd.img box.img
mv "$work/packed" "$box"
echo "box.sh: wrote $box, $(du -h "$box" | cut -f1)"
