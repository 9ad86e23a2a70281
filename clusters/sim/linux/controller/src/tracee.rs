//! A traced thread: its registers, its memory, and its stops. The only module that calls `ptrace`.

use std::io;
use std::mem;
use std::time::Duration;

use libc::{c_int, c_void, iovec, pid_t, user_regs_struct};

const PAGE: u64 = 4096;

/// What the kernel shows of a thread at a stop.
pub type Registers = user_regs_struct;

/// Where a traced thread stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Before a system call that the filter does not let pass.
    Call,
    /// After a system call that `Until::CallEnds` let run.
    CallEnded,
    /// It has made a thread or a process, with this id in the namespace of the controller.
    Made(pid_t, i32),
    /// It stands at the first instruction of another program.
    Executed,
    /// It got a signal.
    Signal(i32),
    /// Another stop of ptrace, such as the first one of a new thread.
    Other,
    /// It ended, with the status of `waitpid`.
    Ended(i32),
}

/// How far a thread runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// To its next stop.
    Stops,
    /// To the end of the system call before which it stands.
    CallEnds,
    /// One instruction.
    Stepped,
}

pub const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;

fn request(kind: u32, tid: pid_t, address: usize, data: usize) -> io::Result<i64> {
    // SAFETY: each caller passes what its request takes; `data` is a number or points to memory that outlives the call.
    let result = unsafe { libc::ptrace(kind, tid, address, data) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Begins to trace a process that waits for it.
pub fn seize(pid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, pid, 0, OPTIONS as usize).map(drop)
}

/// Returns the registers of a stopped thread.
pub fn registers(tid: pid_t) -> io::Result<Registers> {
    // SAFETY: the struct is plain numbers, for which zeros are values.
    let mut registers: Registers = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETREGS, tid, 0, (&raw mut registers) as usize)?;
    Ok(registers)
}

const XSTATE: usize = 0x202; // NT_X86_XSTATE of the kernel

/// Returns the registers of vectors and of floating point of a stopped thread, as XSAVE lays them out.
pub fn vector_registers(tid: pid_t) -> io::Result<Vec<u8>> {
    const MOST: usize = 16 << 10;
    let mut bytes = vec![0_u8; MOST];
    let mut there = iovec { iov_base: bytes.as_mut_ptr().cast::<c_void>(), iov_len: MOST };
    request(libc::PTRACE_GETREGSET, tid, XSTATE, (&raw mut there) as usize)?;
    bytes.truncate(there.iov_len);
    Ok(bytes)
}

/// Returns these registers without what depends on when the kernel saved them: which parts are in use.
pub fn values_of_vectors(tid: pid_t) -> io::Result<Vec<u8>> {
    const HEADER: std::ops::Range<usize> = 512..576;
    let mut bytes = vector_registers(tid)?;
    if let Some(header) = bytes.get_mut(HEADER) {
        header.fill(0);
    }
    Ok(bytes)
}

/// Sets what `vector_registers` returns.
pub fn set_vector_registers(tid: pid_t, bytes: &[u8]) -> io::Result<()> {
    let here = iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
    request(libc::PTRACE_SETREGSET, tid, XSTATE, (&raw const here) as usize).map(drop)
}

/// Returns whether a stopped thread stands before a system call: the kernel makes this call when the thread runs.
pub fn stands_before_call(tid: pid_t) -> io::Result<bool> {
    const GET_CALL: u32 = 0x420e; // PTRACE_GET_SYSCALL_INFO of the kernel, and the kind of a stop by the filter
    const BY_FILTER: u8 = 3;
    let mut information = [0_u8; 88];
    request(GET_CALL, tid, information.len(), information.as_mut_ptr() as usize)?;
    Ok(information[0] == BY_FILTER && registers(tid)?.orig_rax as i64 >= 0)
}

/// Sets the registers of a stopped thread.
pub fn set_registers(tid: pid_t, registers: &Registers) -> io::Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, std::ptr::from_ref(registers) as usize).map(drop)
}

/// Returns the address that a stopped thread could not use, when it got a signal for that.
pub fn fault_address(tid: pid_t) -> io::Result<u64> {
    // SAFETY: the struct is plain bits, for which zeros are values.
    let mut information: libc::siginfo_t = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut information) as usize)?;
    // SAFETY: the kernel has written all of it.
    Ok(unsafe { information.si_addr() } as u64)
}

/// Makes the signal that a stopped thread got for its use of memory that of a page that could not be read.
pub fn as_bus_error(tid: pid_t) -> io::Result<()> {
    const BUS_ADRERR: c_int = 2;
    // SAFETY: the struct is plain bits, for which zeros are values.
    let mut information: libc::siginfo_t = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut information) as usize)?;
    information.si_signo = libc::SIGBUS;
    information.si_code = BUS_ADRERR;
    request(libc::PTRACE_SETSIGINFO, tid, 0, (&raw mut information) as usize).map(drop)
}

/// The mask with which a thread gets no signal but those of `call_in`.
pub const UNDISTURBED: u64 = !(1 << (libc::SIGTRAP - 1));
const MASK_SIZE: usize = mem::size_of::<u64>();

/// Returns the signals that wait while a stopped thread runs.
pub fn mask(tid: pid_t) -> io::Result<u64> {
    const GET_MASK: u32 = 0x420a; // PTRACE_GETSIGMASK of the kernel
    let mut mask = 0_u64;
    request(GET_MASK, tid, MASK_SIZE, (&raw mut mask) as usize)?;
    Ok(mask)
}

/// Sets the signals that wait while a stopped thread runs.
pub fn set_mask(tid: pid_t, mask: u64) -> io::Result<()> {
    const SET_MASK: u32 = 0x420b; // PTRACE_SETSIGMASK of the kernel
    request(SET_MASK, tid, MASK_SIZE, (&raw const mask) as usize).map(drop)
}

/// Acts while a stopped thread gets no signal but those of `call_in`: they wait.
pub fn undisturbed<T>(tid: pid_t, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let before = mask(tid)?;
    set_mask(tid, UNDISTURBED)?;
    let result = act();
    set_mask(tid, before)?;
    result
}

/// Where the state of a signal has the processor time of a child: two numbers of 64 bits; see sigaction(2).
pub const TIMES_OF_CHILD: u64 = 32;

/// Makes what a signal of a child or of a timer says the same in each run, for a thread that is about to get it.
///
/// A child has used real time. The controller sends the signals of timers in the name of the kernel.
pub fn clean_signal(tid: pid_t) -> io::Result<()> {
    const FROM_KERNEL: c_int = 0x80;
    // SAFETY: the struct is plain bits, for which zeros are values.
    let mut information: libc::siginfo_t = unsafe { mem::zeroed() };
    request(libc::PTRACE_GETSIGINFO, tid, 0, (&raw mut information) as usize)?;
    match information.si_signo {
        // SAFETY: these bytes are within the struct.
        libc::SIGCHLD => unsafe {
            (&raw mut information).cast::<u8>().add(TIMES_OF_CHILD as usize).write_bytes(0, 16);
        },
        // SAFETY: a signal of kill has a process.
        libc::SIGALRM if information.si_code == libc::SI_USER && unsafe { information.si_pid() } == 0 => {
            information.si_code = FROM_KERNEL;
        }
        _ => return Ok(()),
    }
    request(libc::PTRACE_SETSIGINFO, tid, 0, (&raw mut information) as usize).map(drop)
}

/// Lets a thread make the call again before which it stood with these registers.
pub fn stand_before_call(tid: pid_t, at_call: &Registers) -> io::Result<()> {
    const SIZE: u64 = 2; // bytes of the instruction of a system call
    let mut registers = *at_call;
    registers.rax = registers.orig_rax;
    registers.orig_rax = u64::MAX;
    registers.rip -= SIZE;
    set_registers(tid, &registers)
}

/// Lets a stopped thread run, with a signal or 0. A thread that was killed meanwhile is no error: `wait` tells its end.
pub fn resume(tid: pid_t, until: Until, signal: i32) -> io::Result<()> {
    let kind = match until {
        Until::Stops => libc::PTRACE_CONT,
        Until::CallEnds => libc::PTRACE_SYSCALL,
        Until::Stepped => libc::PTRACE_SINGLESTEP,
    };
    match request(kind, tid, 0, signal as usize) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// Returns how long the threads of a process have used a processor; zero if it has ended.
pub fn processor_time(pid: pid_t) -> Duration {
    const SCHEDULED: i32 = 2; // the clock of a process that counts as the scheduler does; see clock_getcpuclockid(3)
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    if unsafe { libc::clock_gettime(!pid << 3 | SCHEDULED, &raw mut time) } < 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Asks a running thread to stop; `wait` returns `Stop::Other` then.
pub fn interrupt(tid: pid_t) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

/// Waits for the next stop of a thread. Returns None if a signal for the controller came first.
pub fn wait(tid: pid_t) -> io::Result<Option<Stop>> {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    let waited = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
    if waited == tid {
        return stop_of(tid, status).map(Some);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINTR) {
        Ok(None)
    } else {
        Err(error)
    }
}

/// Waits for the next stop of a thread, whatever signals the controller gets.
pub fn wait_on(tid: pid_t) -> io::Result<Stop> {
    loop {
        if let Some(stop) = wait(tid)? {
            return Ok(stop);
        }
    }
}

fn stop_of(tid: pid_t, status: i32) -> io::Result<Stop> {
    if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
        return Ok(Stop::Ended(status));
    }
    let signal = libc::WSTOPSIG(status);
    Ok(match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => Stop::Call,
        event @ (libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK) => {
            let mut made: u64 = 0;
            request(libc::PTRACE_GETEVENTMSG, tid, 0, (&raw mut made) as usize)?;
            Stop::Made(made as pid_t, event)
        }
        libc::PTRACE_EVENT_EXEC => Stop::Executed,
        0 if signal == libc::SIGTRAP | 0x80 => Stop::CallEnded,
        0 => Stop::Signal(signal),
        _ => Stop::Other,
    })
}

/// Returns bytes of a thread's memory; None if a part of it is not mapped.
pub fn read(tid: pid_t, address: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    if count == 0 {
        return Some(bytes);
    }
    let here = iovec { iov_base: bytes.as_mut_ptr().cast::<c_void>(), iov_len: count };
    let there = iovec { iov_base: address as *mut c_void, iov_len: count };
    // SAFETY: `here` names memory of this length that outlives the call; the kernel checks `there`.
    let read = unsafe { libc::process_vm_readv(tid, &raw const here, 1, &raw const there, 1, 0) };
    (read == count as isize).then_some(bytes)
}

/// Reads at most so many bytes of a thread's memory: fewer at the end of what is mapped.
pub fn read_some(tid: pid_t, address: u64, most: usize) -> Vec<u8> {
    let in_page = (PAGE - address % PAGE) as usize;
    read(tid, address, most).or_else(|| read(tid, address, most.min(in_page))).unwrap_or_default()
}

/// Writes bytes into a thread's memory. Returns whether all of it is mapped and writable.
pub fn write(tid: pid_t, address: u64, bytes: &[u8]) -> bool {
    if bytes.is_empty() {
        return true;
    }
    let here = iovec { iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(), iov_len: bytes.len() };
    let there = iovec { iov_base: address as *mut c_void, iov_len: bytes.len() };
    // SAFETY: `here` names memory of this length that is only read; the kernel checks `there`.
    let written = unsafe { libc::process_vm_writev(tid, &raw const here, 1, &raw const there, 1, 0) };
    written == bytes.len() as isize
}

/// Returns a number of 32 bits; None if it is not mapped.
pub fn read_u32(tid: pid_t, address: u64) -> Option<u32> {
    read(tid, address, 4).map(|bytes| u32_at(&bytes, 0))
}

/// Returns a number of 64 bits; None if it is not mapped.
pub fn read_u64(tid: pid_t, address: u64) -> Option<u64> {
    read(tid, address, 8).map(|bytes| u64_at(&bytes, 0))
}

/// Writes a number of 32 bits.
pub fn write_u32(tid: pid_t, address: u64, number: u32) -> bool {
    write(tid, address, &number.to_le_bytes())
}

/// Writes a number of 64 bits.
pub fn write_u64(tid: pid_t, address: u64, number: u64) -> bool {
    write(tid, address, &number.to_le_bytes())
}

/// Returns the text at an address up to its zero byte, as far as it is mapped, at most 4,096 bytes.
pub fn read_text(tid: pid_t, address: u64) -> String {
    let mut text = Vec::new();
    let mut next = address;
    while text.len() < PAGE as usize {
        let count = (PAGE - next % PAGE).min(256);
        let Some(bytes) = read(tid, next, count as usize) else { break };
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            text.extend(&bytes[..end]);
            break;
        }
        text.extend(bytes);
        next += count;
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the number of 32 bits at an offset.
pub fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("four bytes"))
}

/// Returns the number of 64 bits at an offset.
pub fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(bytes[offset..offset + 8].try_into().expect("eight bytes"))
}

/// Lets a thread that stands at its exec come to its first instruction, since the result of execve would overwrite rax.
pub fn to_first_instruction(tid: pid_t) -> io::Result<()> {
    let start = registers(tid)?.rip;
    with_code(tid, start, &[0xcc], || {
        loop {
            resume(tid, Until::Stops, 0)?;
            match wait_on(tid)? {
                Stop::Signal(libc::SIGTRAP) => break,
                Stop::Ended(_) => return Err(io::Error::other("the program ended before its first instruction")),
                _ => {}
            }
        }
        let mut registers = registers(tid)?;
        registers.rip = start;
        set_registers(tid, &registers)
    })
}

/// Runs one system call in a thread that stands at its first instruction; returns the result.
pub fn call_in(tid: pid_t, number: i64, arguments: [u64; 6]) -> io::Result<i64> {
    let before = registers(tid)?;
    let (result, _) = call_at(tid, before.rip, number, arguments)?;
    set_registers(tid, &before)?;
    Ok(result)
}

/// Runs one system call in a stopped thread, at the address of three bytes of its code. It stands there then.
///
/// A call before which it stands is not made. Returns the result, and the thread or the process that the call has made.
pub fn call_at(tid: pid_t, address: u64, number: i64, arguments: [u64; 6]) -> io::Result<(i64, Option<pid_t>)> {
    with_code(tid, address, &[0x0f, 0x05, 0xcc], || {
        let mut registers = registers(tid)?;
        registers.rip = address;
        registers.rax = number as u64;
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = arguments;
        set_registers(tid, &registers)?;
        let mut made = None;
        loop {
            resume(tid, Until::Stops, 0)?;
            match wait_on(tid)? {
                Stop::Signal(libc::SIGTRAP) => return Ok((self::registers(tid)?.rax as i64, made)),
                Stop::Made(child, _) => made = Some(child),
                Stop::Ended(_) => return Err(io::Error::other("the program ended in a call of the controller")),
                _ => {}
            }
        }
    })
}

/// Changes eight bytes of the code of a stopped thread. It stays as it is where it cannot be changed, as in a shared mapping.
pub fn change_code(tid: pid_t, address: u64, word: u64) {
    let _ = request(libc::PTRACE_POKEDATA, tid, address as usize, word as usize);
}

/// Replaces code of a thread for a while.
fn with_code<T>(tid: pid_t, address: u64, code: &[u8], act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let word = |value: u64| request(libc::PTRACE_POKEDATA, tid, address as usize, value as usize);
    // PEEKDATA returns the word itself, and -1 may be one; the memory of an exec is readable, so read it from there.
    let old = read_u64(tid, address).ok_or_else(|| io::Error::other("the code of the program is not readable"))?;
    let mut new = old.to_le_bytes();
    new[..code.len()].copy_from_slice(code);
    word(u64::from_le_bytes(new))?;
    let result = act();
    word(old)?;
    result
}
