//! A filter within the traced process, so that only calls which may be steps stop. Without it, each call of each thread stops.
//!
//! A process cannot get a filter from outside. So the tracer lets one of its threads make the call `seccomp`. The filter stays for
//! the life of the process, and lets the named calls fail without a tracer. So a tracer with a filter stays as long as the
//! process, and the kernel kills the process if the tracer ends first.

use std::fs::OpenOptions;
use std::io;
use std::mem;
use std::os::unix::fs::FileExt;

use libc::{c_int, c_long, pid_t, sock_filter};

use crate::thread;

const OPTIONS: c_int = thread::OPTIONS | libc::PTRACE_O_TRACESECCOMP | libc::PTRACE_O_EXITKILL;
const ARCHITECTURE: u32 = 0xc000_003e; // AUDIT_ARCH_X86_64
const CALL: [u8; 2] = [0x0f, 0x05];
const BELOW_STACK: u64 = 4096; // beyond the red zone of the thread
/// The results with which the kernel says to itself that it makes an interrupted call again.
const AGAIN: [i64; 4] = [-512, -513, -514, -516];

/// Gives the process of some stopped threads a filter. Returns whether that worked; if not, nothing has changed.
pub fn install(threads: &[pid_t], numbers: &[c_long]) -> bool {
    let Some(tid) = threads.iter().copied().find(|tid| at_call(*tid)) else { return false };
    for tid in threads {
        if thread::request(libc::PTRACE_SETOPTIONS, *tid, 0, OPTIONS as usize).is_err() {
            return false;
        }
    }
    if inject(tid, &program(numbers)).unwrap_or(false) {
        return true;
    }
    for tid in threads {
        let _ = thread::request(libc::PTRACE_SETOPTIONS, *tid, 0, thread::OPTIONS as usize);
    }
    false
}

/// Returns the filter: it names these calls, and allows all others.
fn program(numbers: &[c_long]) -> Vec<sock_filter> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let returns = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let count = numbers.len() as u8;
    let mut steps = vec![step(load, 0, 0, 4), step(equals, 0, count + 1, ARCHITECTURE), step(load, 0, 0, 0)];
    steps.extend((0..count).zip(numbers).map(|(place, number)| step(equals, count - place, 0, *number as u32)));
    steps.push(step(returns, 0, 0, libc::SECCOMP_RET_ALLOW));
    steps.push(step(returns, 0, 0, libc::SECCOMP_RET_TRACE));
    steps
}

fn registers(tid: pid_t) -> io::Result<libc::user_regs_struct> {
    // SAFETY: the struct is plain numbers, for which zeros are values.
    let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
    thread::request(libc::PTRACE_GETREGS, tid, 0, (&raw mut registers) as usize)?;
    Ok(registers)
}

fn set_registers(tid: pid_t, registers: &libc::user_regs_struct) -> io::Result<()> {
    thread::request(libc::PTRACE_SETREGS, tid, 0, std::ptr::from_ref(registers) as usize).map(drop)
}

/// Returns whether a stopped thread is in a call, so that the instruction before its place is one of a call.
fn at_call(tid: pid_t) -> bool {
    let Ok(registers) = registers(tid) else { return false };
    let mut bytes = [0; 2];
    let memory = OpenOptions::new().read(true).open(format!("/proc/{tid}/mem"));
    let read = memory.and_then(|memory| memory.read_exact_at(&mut bytes, registers.rip.wrapping_sub(2)));
    read.is_ok() && bytes == CALL
}

/// Lets a stopped thread make the call `seccomp`, and puts it back where it was. Returns whether the call succeeded.
fn inject(tid: pid_t, program: &[sock_filter]) -> io::Result<bool> {
    let before = registers(tid)?;
    let at = (before.rsp - BELOW_STACK) & !15;
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&(program.len() as u64).to_ne_bytes()); // struct sock_fprog: a count, padding, and an address
    bytes.extend_from_slice(&(at + 16).to_ne_bytes());
    for step in program {
        bytes.extend_from_slice(&step.code.to_ne_bytes());
        bytes.extend_from_slice(&[step.jt, step.jf]);
        bytes.extend_from_slice(&step.k.to_ne_bytes());
    }
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))?;
    let mut kept = vec![0; bytes.len()];
    memory.read_exact_at(&mut kept, at)?;
    memory.write_all_at(&bytes, at)?;
    let mut call = before;
    call.rip = before.rip - 2;
    call.rax = libc::SYS_seccomp as u64;
    call.orig_rax = u64::MAX; // the interrupted call is not made again now
    call.rdi = u64::from(libc::SECCOMP_SET_MODE_FILTER);
    call.rsi = libc::SECCOMP_FILTER_FLAG_TSYNC;
    call.rdx = at;
    set_registers(tid, &call)?;
    let mut result = -1;
    for _ in 0..2 {
        thread::request(libc::PTRACE_SYSCALL, tid, 0, 0)?;
        let mut status = 0;
        // SAFETY: the kernel writes the status.
        if unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) } != tid || !libc::WIFSTOPPED(status) {
            return Ok(false);
        }
        result = registers(tid)?.rax as i64;
    }
    memory.write_all_at(&kept, at)?;
    let mut after = before;
    if AGAIN.contains(&(before.rax as i64)) && (before.orig_rax as i64) >= 0 {
        after.rip = before.rip - 2;
        after.rax = before.orig_rax;
    }
    after.orig_rax = u64::MAX;
    set_registers(tid, &after)?;
    Ok(result == 0)
}
