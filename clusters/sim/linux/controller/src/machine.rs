//! What programs see of the machine and of processes below `/proc`, `/sys` and `/etc`: the same in each run.

/// The folder of a node with files that stand in for those of `/proc`.
pub const STAND_INS: &str = ".labrys";

const MEMINFO: &str = "MemTotal:        8388608 kB\nMemFree:         6291456 kB\nMemAvailable:    6815744 kB\nBuffers:          102400 kB\n\
    Cached:           524288 kB\nSwapCached:            0 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n\
    AnonHugePages:         0 kB\nHugePages_Total:       0\nHugePages_Free:        0\nHugePages_Rsvd:        0\n\
    HugePages_Surp:        0\nHugepagesize:       2048 kB\n";
const CPUINFO: &str = "processor\t: 0\nvendor_id\t: Simulated\ncpu family\t: 1\nmodel\t\t: 1\nmodel name\t: simulated\ncpu MHz\t\t: 1000.000\n\
    physical id\t: 0\nsiblings\t: 1\ncore id\t\t: 0\ncpu cores\t: 1\n\n";
const STAT: &str = "cpu  100 0 100 10000 0 0 0 0 0 0\ncpu0 100 0 100 10000 0 0 0 0 0 0\nintr 0\nctxt 0\nbtime 1699999000\nprocesses 100\n\
    procs_running 1\nprocs_blocked 0\n";

/// What `/proc` says of the machine: the path below it, and its content in each run. All else of the machine there is empty.
pub const MACHINE: &[(&str, &str)] = &[
    ("meminfo", MEMINFO),
    ("cpuinfo", CPUINFO),
    ("stat", STAT),
    ("loadavg", "0.00 0.00 0.00 1/100 100\n"),
    ("uptime", "1000.00 1000.00\n"),
    ("vmstat", "nr_free_pages 1000000\n"),
    ("cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"),
    ("version", "Linux version 6.1.0 (simulated)\n"),
    ("filesystems", "nodev\tproc\nnodev\ttmpfs\n"),
    ("swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"),
    ("sys/fs/file-max", "1000000\n"),
    ("sys/fs/file-nr", "1000\t0\t1000000\n"),
    ("sys/fs/nr_open", "1048576\n"),
    ("sys/fs/pipe-max-size", "1048576\n"),
    ("sys/kernel/cap_last_cap", "40\n"),
    ("sys/kernel/core_pattern", "core\n"),
    ("sys/kernel/ngroups_max", "65536\n"),
    ("sys/kernel/osrelease", "6.1.0\n"),
    ("sys/kernel/ostype", "Linux\n"),
    ("sys/kernel/pid_max", "4194304\n"),
    ("sys/kernel/random/boot_id", "00000000-0000-4000-8000-000000000001\n"),
    ("sys/kernel/random/entropy_avail", "256\n"),
    ("sys/kernel/random/uuid", "00000000-0000-4000-8000-000000000002\n"),
    ("sys/kernel/threads-max", "65536\n"),
    ("sys/net/core/rmem_max", "212992\n"),
    ("sys/net/core/somaxconn", "4096\n"),
    ("sys/net/core/wmem_max", "212992\n"),
    ("sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
    ("sys/net/ipv4/tcp_keepalive_intvl", "75\n"),
    ("sys/net/ipv4/tcp_keepalive_probes", "9\n"),
    ("sys/net/ipv4/tcp_keepalive_time", "7200\n"),
    ("sys/net/ipv4/tcp_max_syn_backlog", "4096\n"),
    ("sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
    ("sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n"),
    ("sys/vm/max_map_count", "262144\n"),
    ("sys/vm/mmap_min_addr", "65536\n"),
    ("sys/vm/nr_hugepages", "0\n"),
    ("sys/vm/overcommit_memory", "1\n"),
    ("sys/vm/overcommit_ratio", "50\n"),
    ("sys/vm/swappiness", "60\n"),
];

/// Files below `/sys` and `/etc`, which has nothing of the host.
pub const FILES: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0\n"),
    ("sys/devices/system/cpu/possible", "0\n"),
    ("sys/devices/system/cpu/present", "0\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n"),
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"),
    ("etc/resolv.conf", ""),
    ("etc/machine-id", "00000000000040008000000000000001\n"),
];

/// What the files of a process below `/proc/PID` say, whatever it does: they count real time, real bytes, and mount numbers.
pub const PROCESS: &[(&str, &str)] = &[
    ("stat", "1 (simulated) R 0 1 1 0 -1 4194560 100 0 0 0 10 10 0 0 20 0 1 0 1 100000000 2000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"),
    ("status", "Name:\tsimulated\nState:\tR (running)\nVmPeak:\t  100000 kB\nVmSize:\t  100000 kB\nVmRSS:\t    8000 kB\nThreads:\t1\n"),
    ("statm", "25000 2000 500 100 0 3000 0\n"),
    ("io", "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"),
    ("mountinfo", "1 0 0:1 / / rw - tmpfs none rw\n"),
    ("mounts", "none / tmpfs rw 0 0\n"),
    ("cgroup", "0::/\n"),
    ("smaps", ""),
    ("smaps_rollup", ""),
    ("numa_maps", ""),
    ("mountstats", ""),
    ("arch_status", ""),
    ("autogroup", "/autogroup-1 nice 0\n"),
    ("latency", ""),
    ("coredump_filter", "00000033\n"),
    ("cpuset", "/\n"),
    ("loginuid", "4294967295"),
    ("oom_adj", "0\n"),
    ("oom_score", "0\n"),
    ("oom_score_adj", "0\n"),
    ("sessionid", "4294967295"),
    ("pagemap", ""),
    ("patch_state", "-1\n"),
    ("sched", ""),
    ("schedstat", "0 0 0\n"),
    ("stack", ""),
    ("syscall", "running\n"),
    ("timers", ""),
    ("wchan", "0"),
    (FDINFO, "pos:\t0\nflags:\t02\nmnt_id:\t1\nino:\t1\n"),
    (NETWORK, ""),
];

/// The folders of a process whose files all have one stand-in. Sockets and links of a program are not those of the kernel.
const FDINFO: &str = "fdinfo";
const NETWORK: &str = "net";
/// The entries of `/proc` itself that lead to those of the process that reads them.
const LINKS: [&str; 2] = [NETWORK, "mounts"];

/// Returns the stand-in for a path below `/proc`, as the programs of a node see it; None if the path is what it is.
///
/// The path is absolute, without `.`, `..` and empty parts.
pub fn stand_in(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix("/proc/")?.split('/');
    let first = parts.next()?;
    let mut name = if is_process(first) { parts.next()? } else { first };
    if name == "task" {
        name = parts.nth(1)?;
    }
    if !is_process(first) && !LINKS.contains(&name) {
        return None;
    }
    let is_within = parts.next().is_some();
    let has_one = PROCESS.iter().any(|(known, _)| *known == name) && is_within == [FDINFO, NETWORK].contains(&name);
    has_one.then(|| format!("/{STAND_INS}/{name}"))
}

/// Returns whether a name below `/proc` is that of a process.
fn is_process(name: &str) -> bool {
    matches!(name, "self" | "thread-self") || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::stand_in;

    #[test]
    fn what_counts_real_things_has_a_stand_in() {
        assert_eq!(stand_in("/proc/self/io").as_deref(), Some("/.labrys/io"));
        assert_eq!(stand_in("/proc/12/task/13/stat").as_deref(), Some("/.labrys/stat"));
        assert_eq!(stand_in("/proc/self/fdinfo/7").as_deref(), Some("/.labrys/fdinfo"));
        assert_eq!(stand_in("/proc/net/sockstat").as_deref(), Some("/.labrys/net"));
        assert_eq!(stand_in("/proc/mounts").as_deref(), Some("/.labrys/mounts"));
        assert_eq!(stand_in("/proc/self/net/netlink").as_deref(), Some("/.labrys/net"));
        assert_eq!(stand_in("/proc/self/fdinfo"), None);
        assert_eq!(stand_in("/proc/sys/stat"), None);
        assert_eq!(stand_in("/proc/self/exe"), None);
        assert_eq!(stand_in("/proc/stat"), None);
        assert_eq!(stand_in("/var/lib/stat"), None);
    }
}
