//! The table of system calls: which pass without a stop, which the controller answers, and which it refuses.
//!
//! A call that is not in the table ends the run with its name and its program. A guess would be a wrong simulation.

use std::sync::LazyLock;

use libc::{
    c_long, SYS_accept, SYS_accept4, SYS_access, SYS_alarm, SYS_arch_prctl, SYS_bind, SYS_brk, SYS_capget,
    SYS_capset, SYS_chdir, SYS_chmod, SYS_chown, SYS_clock_getres, SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone,
    SYS_clone3, SYS_close, SYS_close_range, SYS_connect, SYS_copy_file_range, SYS_creat, SYS_dup, SYS_dup2, SYS_dup3,
    SYS_epoll_create, SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_pwait, SYS_epoll_pwait2, SYS_epoll_wait,
    SYS_eventfd, SYS_eventfd2, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_faccessat, SYS_faccessat2,
    SYS_fadvise64, SYS_fallocate, SYS_fchdir, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fcntl,
    SYS_fdatasync, SYS_flock, SYS_fork, SYS_fstat, SYS_fstatfs, SYS_fsync, SYS_ftruncate, SYS_futex,
    SYS_get_mempolicy, SYS_get_robust_list, SYS_getcpu, SYS_getcwd, SYS_getdents64, SYS_getegid, SYS_geteuid,
    SYS_getgid, SYS_getgroups, SYS_getitimer, SYS_getpeername, SYS_getpgid, SYS_getpgrp, SYS_getpid, SYS_getppid,
    SYS_getpriority, SYS_getrandom, SYS_getresgid, SYS_getresuid, SYS_getrlimit, SYS_getrusage, SYS_getsid,
    SYS_getsockname, SYS_getsockopt, SYS_gettid, SYS_gettimeofday, SYS_getuid, SYS_getxattr, SYS_inotify_init,
    SYS_inotify_init1, SYS_io_setup, SYS_io_uring_setup, SYS_ioctl, SYS_kill, SYS_lgetxattr, SYS_link, SYS_linkat,
    SYS_listen, SYS_lseek, SYS_lstat, SYS_madvise, SYS_mbind, SYS_membarrier, SYS_mincore, SYS_mkdir, SYS_mkdirat,
    SYS_mlock, SYS_mlockall, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_msync, SYS_munlock, SYS_munlockall, SYS_munmap,
    SYS_nanosleep, SYS_newfstatat, SYS_open, SYS_openat, SYS_openat2, SYS_pause, SYS_perf_event_open, SYS_pidfd_open,
    SYS_pipe, SYS_pipe2, SYS_poll, SYS_ppoll, SYS_prctl, SYS_pread64, SYS_preadv, SYS_prlimit64, SYS_pselect6,
    SYS_pwrite64, SYS_pwritev, SYS_read, SYS_readahead, SYS_readlink, SYS_readlinkat, SYS_readv, SYS_recvfrom,
    SYS_recvmmsg, SYS_recvmsg, SYS_rename, SYS_renameat, SYS_renameat2, SYS_restart_syscall, SYS_rmdir, SYS_rseq,
    SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait, SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_getaffinity,
    SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_setaffinity, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_sched_yield, SYS_select, SYS_sendfile, SYS_sendmmsg, SYS_sendmsg, SYS_sendto, SYS_set_mempolicy,
    SYS_set_robust_list, SYS_set_tid_address, SYS_setgid, SYS_setgroups, SYS_setitimer, SYS_setpgid, SYS_setpriority,
    SYS_setregid, SYS_setresgid, SYS_setresuid, SYS_setreuid, SYS_setrlimit, SYS_setsid, SYS_setsockopt, SYS_setuid,
    SYS_shmat, SYS_shmctl, SYS_shmdt, SYS_shmget, SYS_shutdown, SYS_sigaltstack, SYS_signalfd, SYS_signalfd4,
    SYS_socket, SYS_socketpair, SYS_splice, SYS_stat, SYS_statfs, SYS_statx, SYS_symlink, SYS_symlinkat, SYS_sync,
    SYS_sync_file_range, SYS_syncfs, SYS_sysinfo, SYS_tee, SYS_tgkill, SYS_time, SYS_timer_create,
    SYS_timerfd_create, SYS_timerfd_gettime, SYS_timerfd_settime, SYS_times, SYS_tkill, SYS_truncate, SYS_umask,
    SYS_uname, SYS_unlink, SYS_unlinkat, SYS_userfaultfd, SYS_utime, SYS_utimensat, SYS_utimes, SYS_vfork,
    SYS_vmsplice, SYS_wait4, SYS_waitid, SYS_write, SYS_writev, EINVAL, ENOSYS, EPERM,
};

/// What happens at a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It runs as it is, without a stop: no time, no chance and no other thread is in it.
    Passes,
    /// The controller answers it, or runs it and makes its result constant.
    Handled,
    /// It fails with this error number. The programs that were tried fall back to another call.
    Refused(i32),
}

/// A call of the table.
pub struct Call {
    pub number: c_long,
    pub name: &'static str,
    pub class: Class,
}

macro_rules! table {
    ($($class:expr => $($number:ident)*;)*) => {
        &[$($(Call { number: $number, name: stringify!($number), class: $class },)*)*]
    };
}

/// All known calls of x86-64.
pub const TABLE: &[Call] = table! {
    Class::Passes =>
        SYS_mmap SYS_mprotect SYS_munmap SYS_brk SYS_mremap SYS_madvise SYS_mlock SYS_munlock SYS_mlockall SYS_munlockall SYS_mincore
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_sigaltstack SYS_rt_sigpending SYS_membarrier
        SYS_fadvise64 SYS_readahead SYS_access SYS_faccessat SYS_faccessat2 SYS_getcwd
        SYS_chdir SYS_fchdir SYS_umask SYS_getxattr SYS_lgetxattr
        SYS_getpid SYS_gettid SYS_getppid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getresuid SYS_getresgid SYS_getgroups
        SYS_setgroups SYS_setuid SYS_setgid SYS_setreuid SYS_setregid SYS_setresuid SYS_setresgid SYS_setsid SYS_setpgid SYS_getpgid SYS_getpgrp SYS_getsid SYS_capget SYS_capset
        SYS_getrlimit SYS_setrlimit SYS_prlimit64 SYS_uname SYS_setpriority SYS_sched_getparam SYS_sched_getscheduler
        SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_arch_prctl SYS_set_robust_list SYS_get_robust_list
        SYS_prctl SYS_shmget SYS_shmat SYS_shmdt;
    Class::Handled =>
        SYS_clock_gettime SYS_clock_getres SYS_gettimeofday SYS_time SYS_nanosleep SYS_clock_nanosleep SYS_times SYS_getrusage
        SYS_sysinfo
        SYS_getrandom SYS_getcpu SYS_getpriority SYS_sched_getaffinity SYS_sched_setaffinity SYS_sched_setscheduler SYS_sched_setparam
        SYS_sched_yield SYS_futex SYS_set_tid_address SYS_set_mempolicy SYS_mbind
        SYS_clone SYS_clone3 SYS_fork SYS_vfork SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_kill SYS_tkill SYS_tgkill
        SYS_rt_sigsuspend SYS_rt_sigtimedwait SYS_pause SYS_signalfd SYS_signalfd4 SYS_getitimer SYS_setitimer SYS_alarm SYS_shmctl
        SYS_open SYS_openat SYS_openat2 SYS_creat SYS_stat SYS_lstat SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs
        SYS_getdents64 SYS_readlink SYS_readlinkat
        SYS_fsync SYS_fdatasync SYS_sync SYS_syncfs SYS_sync_file_range SYS_msync SYS_pread64 SYS_preadv SYS_pwrite64 SYS_pwritev SYS_copy_file_range
        SYS_truncate SYS_ftruncate SYS_fallocate SYS_rename SYS_renameat SYS_renameat2 SYS_mkdir SYS_mkdirat SYS_rmdir SYS_link
        SYS_linkat SYS_unlink SYS_unlinkat SYS_symlink SYS_symlinkat SYS_chmod SYS_fchmod SYS_fchmodat SYS_chown SYS_fchown
        SYS_fchownat SYS_utime SYS_utimes SYS_utimensat
        SYS_read SYS_readv SYS_lseek SYS_write SYS_writev SYS_close SYS_close_range SYS_dup SYS_dup2 SYS_dup3 SYS_fcntl SYS_flock SYS_ioctl
        SYS_pipe SYS_pipe2 SYS_eventfd SYS_eventfd2 SYS_timerfd_create SYS_timerfd_settime SYS_timerfd_gettime
        SYS_socket SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_getsockname SYS_getpeername
        SYS_setsockopt SYS_getsockopt SYS_shutdown SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom SYS_recvmsg
        SYS_sendfile
        SYS_poll SYS_ppoll SYS_select SYS_pselect6 SYS_epoll_create SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_wait SYS_epoll_pwait
        SYS_epoll_pwait2;
    Class::Refused(ENOSYS) =>
        SYS_rseq SYS_io_uring_setup SYS_perf_event_open SYS_pidfd_open SYS_inotify_init SYS_inotify_init1 SYS_io_setup
        SYS_userfaultfd SYS_get_mempolicy SYS_timer_create SYS_restart_syscall
        SYS_recvmmsg;
    Class::Refused(EINVAL) => SYS_splice SYS_vmsplice SYS_tee;
    Class::Refused(EPERM) => SYS_bpf;
};

use libc::SYS_bpf;

/// Returns the call of a number, if the table has it.
pub fn find(number: i64) -> Option<&'static Call> {
    static BY_NUMBER: LazyLock<Vec<Option<&'static Call>>> = LazyLock::new(|| {
        let most = TABLE.iter().map(|call| call.number).max().unwrap_or(0);
        (0..=most).map(|number| TABLE.iter().find(|call| call.number == number)).collect()
    });
    BY_NUMBER.get(usize::try_from(number).ok()?).copied().flatten()
}

/// Returns the name of a call, e.g. `read`, or `call 999` for one that the table lacks.
pub fn name(number: i64) -> String {
    find(number).map_or_else(|| format!("call {number}"), |call| call.name.trim_start_matches("SYS_").to_owned())
}

#[cfg(test)]
mod tests {
    use super::{find, name, Class, TABLE};
    use std::collections::HashSet;

    #[test]
    fn a_call_has_one_row() {
        let numbers: HashSet<_> = TABLE.iter().map(|call| call.number).collect();
        assert_eq!(numbers.len(), TABLE.len());
    }

    #[test]
    fn a_call_is_found_by_its_number() {
        assert_eq!(find(libc::SYS_read).map(|call| call.class), Some(Class::Handled));
        assert_eq!(name(libc::SYS_read), "read");
        assert_eq!(name(99_999), "call 99999");
    }
}
