# shellcheck shell=sh
# The first process of a local node. Runs in the node's own pid, mount, uts and ipc namespaces and in its network namespace, so
# everything here, mounts included, is gone when it ends.
#
# usage: node.sh NAME ADDRESS STATE_DIR HOSTS_FILE
set -eu
name=$1 address=$2 state=$3 hosts=$4

# The node's root: this machine's, with whatever the node writes kept in memory of its own.
cell=$state/cell
mount -t tmpfs -o mode=0755 labrys "$cell"
mkdir "$cell/upper" "$cell/work" "$cell/root"
mount -t overlay -o "lowerdir=/,upperdir=$cell/upper,workdir=$cell/work" labrys "$cell/root"
root=$cell/root

cp "$hosts" "$root/etc/hosts"
echo "$name" >"$root/etc/hostname"
hostname "$name"
install -m 600 "$state/host_key" "$root/etc/ssh/labrys_host_key"
install -m 600 "$state/authorized_keys" "$root/etc/ssh/labrys_authorized_keys"
# A locked root account may not log in, not even by key; `*` is no password, but not locked.
sed -i 's/^root:![^:]*:/root:*:/' "$root/etc/shadow"

# What root's shell does on this machine at its start is no business of a node's, and costs each command its time.
: >"$root/root/.bashrc"

mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=0755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/run/sshd" "$root/run/lock"

set -- -f /dev/null -o ListenAddress="$address" -o HostKey=/etc/ssh/labrys_host_key \
    -o AuthorizedKeysFile=/etc/ssh/labrys_authorized_keys -o StrictModes=no \
    -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no \
    -o UsePAM=no -o UseDNS=no -o PidFile=none -o MaxStartups=100 -o Subsystem="sftp internal-sftp"
# Since OpenSSH 9.8 a wrong key shuts its sender out for a while, and all our connections have one sender.
if chroot "$root" /usr/sbin/sshd -t "$@" -o PerSourcePenalties=no 2>/dev/null; then
    set -- "$@" -o PerSourcePenalties=no
fi
exec chroot "$root" /usr/sbin/sshd -D -e "$@"
