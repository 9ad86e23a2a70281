# shellcheck shell=sh
# The first process of a local node. It runs in the node's own pid, mount, uts, ipc and network namespaces. When it ends, the
# kernel removes everything in them, mounts included.
#
# usage: node.sh NAME ADDRESS STATE_DIR HOSTS_FILE
set -eu
name=$1 address=$2 state=$3 hosts=$4

# The node's root is this machine's root under an overlay. The node's writes stay in its own memory.
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
# A locked root account cannot log in, not even by key. With `*` the account has no password, but is not locked.
sed -i 's/^root:![^:]*:/root:*:/' "$root/etc/shadow"

# The start-up file of this machine's root does not concern a node, and would slow down each command.
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
# Since OpenSSH 9.8, sshd refuses an address for a while after a wrong key. All our connections come from one address.
if chroot "$root" /usr/sbin/sshd -t "$@" -o PerSourcePenalties=no 2>/dev/null; then
    set -- "$@" -o PerSourcePenalties=no
fi
exec chroot "$root" /usr/sbin/sshd -D -e "$@"
