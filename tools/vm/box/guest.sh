#!/bin/sh
# Runs inside the new image, as root: makes it a guest that Vagrant can use. tools/vm/box.sh calls it.
set -eu

useradd --create-home --shell /bin/bash vagrant
echo 'vagrant ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/vagrant
chmod 440 /etc/sudoers.d/vagrant
install -d -m 700 -o vagrant -g vagrant /home/vagrant/.ssh
install -m 600 -o vagrant -g vagrant /opt/wheels/vagrant.pub /home/vagrant/.ssh/authorized_keys

echo labrys >/etc/hostname
printf '127.0.0.1 localhost\n::1 localhost\n' >/etc/hosts
echo '/dev/vda / ext4 rw,noatime 0 1' >/etc/fstab
cat >/etc/systemd/network/80-vagrant.network <<'NETWORK'
[Match]
Name=eth0

[Network]
DHCP=ipv4

[DHCPv4]
ClientIdentifier=mac
NETWORK
cat >/etc/ssh/sshd_config.d/labrys.conf <<'SSHD'
UseDNS no
PasswordAuthentication no
SSHD

# An emulated processor is slow: nothing runs that a node does not need.
systemctl enable systemd-networkd ssh
systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer \
    getty@tty1.service serial-getty@ttyS0.service systemd-networkd-wait-online.service systemd-timesyncd.service e2scrub_reap.service systemd-logind.service

# A small initial file system: the disk and the network are the only devices.
echo 'MODULES=list' >/etc/initramfs-tools/conf.d/labrys
printf 'virtio_pci\nvirtio_blk\nvirtio_net\next4\n' >>/etc/initramfs-tools/modules
update-initramfs -u

# The guests have no package sources, so the provisioning must find everything.
lacking="$(sh /opt/wheels/node.sh | sed -n 's/^installed: *//p')$(sh /opt/wheels/control.sh)"
[ -z "$lacking" ] || { echo "guest.sh: the packages of box.sh lack what the provisioning installs: $lacking" >&2; exit 1; }

python3 -m venv /opt/labrys
/opt/labrys/bin/pip install --quiet --no-index --find-links /opt/wheels --disable-pip-version-check /opt/wheels/*.whl
chown -R vagrant:vagrant /opt/labrys
