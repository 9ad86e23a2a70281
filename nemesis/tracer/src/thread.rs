//! A traced thread: its stops, its calls and its memory. The only module that calls `ptrace`.

use std::ffi::{c_int, c_void};
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use libc::pid_t;

const PATH_MAX: usize = 4096;
pub const OPTIONS: c_int =
    libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK;

/// Where a thread stands.
pub enum Stop {
    /// At a call or right after one.
    Call,
    /// At a call that a filter has named; see `filter`.
    Filtered,
    /// Before a signal that it gets.
    Signal(c_int),
    /// As all threads of its process do after SIGSTOP and its like.
    Group,
    /// Another stop of ptrace, such as the first one of a new thread.
    Other,
    /// Nowhere: it has ended.
    Ended,
}

/// What `wait` waits for.
pub enum Event {
    Of(pid_t, Stop),
    Alarm,
    /// No thread is traced any more.
    NothingLeft,
}

/// A call of a thread.
pub enum Call {
    Begins { number: i64, arguments: [u64; 6] },
    Ended { result: i64 },
    None,
}

pub fn request(kind: u32, tid: pid_t, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: each caller passes what its request takes; `data` is a number or points to memory that outlives the call.
    let result = unsafe { libc::ptrace(kind, tid, address, data) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Begins to trace a thread, which runs on. New threads and children of it are traced too.
pub fn seize(tid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize).map(drop)
}

/// Lets a thread that runs stop soon. A thread that has ended is no error.
pub fn interrupt(tid: pid_t) {
    let _ = request(libc::PTRACE_INTERRUPT, tid, 0, 0);
}

/// Lets a stopped thread run: up to its next call or the end of this one if `calls`, else up to another stop. A thread that was
/// killed meanwhile is no error.
pub fn resume(tid: pid_t, stop: &Stop, calls: bool) {
    let run = if calls { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    let (kind, signal) = match stop {
        Stop::Group => (libc::PTRACE_LISTEN, 0),
        Stop::Signal(signal) => (run, *signal),
        _ => (run, 0),
    };
    let _ = request(kind, tid, 0, signal as usize);
}

/// Waits until a traced thread stops or ends.
pub fn wait() -> Event {
    let mut status = 0;
    // SAFETY: the kernel writes the status.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if tid <= 0 {
        let interrupted = io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        return if interrupted { Event::Alarm } else { Event::NothingLeft };
    }
    if !libc::WIFSTOPPED(status) {
        return Event::Of(tid, Stop::Ended);
    }
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    let stop = match (signal, event) {
        (_, libc::PTRACE_EVENT_STOP) if signal != libc::SIGTRAP => Stop::Group,
        (_, 0) if signal == libc::SIGTRAP | 0x80 => Stop::Call,
        (_, 0) => Stop::Signal(signal),
        (_, libc::PTRACE_EVENT_SECCOMP) => Stop::Filtered,
        _ => Stop::Other,
    };
    Event::Of(tid, stop)
}

/// Returns the call of a thread that stands at one.
pub fn call(tid: pid_t) -> Call {
    // SAFETY: the struct is plain numbers, for which zeros are values.
    let mut told: libc::ptrace_syscall_info = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&told);
    if request(libc::PTRACE_GET_SYSCALL_INFO, tid, size, (&raw mut told) as usize).is_err() {
        return Call::None; // it was killed
    }
    // SAFETY: the kernel says which part of the union it has written.
    unsafe {
        match told.op {
            libc::PTRACE_SYSCALL_INFO_ENTRY => {
                Call::Begins { number: told.u.entry.nr as i64, arguments: told.u.entry.args }
            }
            libc::PTRACE_SYSCALL_INFO_SECCOMP => {
                Call::Begins { number: told.u.seccomp.nr as i64, arguments: told.u.seccomp.args }
            }
            libc::PTRACE_SYSCALL_INFO_EXIT => Call::Ended { result: told.u.exit.sval },
            _ => Call::None,
        }
    }
}

/// Lets the tracer get a signal after some seconds, which ends `wait`.
pub fn set_alarm(seconds: u32) {
    extern "C" fn nothing(_: c_int) {}
    // SAFETY: the action is whole, and its function does nothing. Without SA_RESTART, the signal ends `waitpid`.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as *const c_void as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        libc::alarm(seconds);
    }
}

/// Returns the threads of a process.
pub fn threads_of(pid: pid_t) -> io::Result<Vec<pid_t>> {
    let names = fs::read_dir(format!("/proc/{pid}/task"))?;
    Ok(names.filter_map(|name| name.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Returns the process of a thread.
pub fn process_of(tid: pid_t) -> Option<pid_t> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok())
}

/// Reads a path from the memory of a stopped thread.
pub fn path_at(tid: pid_t, address: u64) -> Option<PathBuf> {
    let memory = File::open(format!("/proc/{tid}/mem")).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < PATH_MAX {
        let at = address + bytes.len() as u64;
        let mut part = [0_u8; 256];
        let most = part.len().min(PATH_MAX - (at as usize % PATH_MAX)); // not beyond the page
        let read = memory.read_at(&mut part[..most], at).ok().filter(|read| *read > 0)?;
        if let Some(end) = part[..read].iter().position(|byte| *byte == 0) {
            bytes.extend_from_slice(&part[..end]);
            return Some(std::ffi::OsString::from_vec(bytes).into());
        }
        bytes.extend_from_slice(&part[..read]);
    }
    None
}

/// Returns what a descriptor of a thread has open.
pub fn opened(tid: pid_t, descriptor: i32) -> Option<PathBuf> {
    let name = if descriptor == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{descriptor}") };
    fs::read_link(format!("/proc/{tid}/{name}")).ok()
}
