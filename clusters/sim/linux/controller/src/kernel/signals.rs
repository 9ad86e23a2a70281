//! Signals: who notices them, the calls that wait for them or that they interrupt, and timers that send them.
//!
//! The kernel keeps handlers, masks and what is pending, and delivers a signal when its thread runs. Here is what it must not decide
//! by itself: that a thread which waits in a call of the simulation leaves it.

use libc::{c_int, c_long, pid_t, EFAULT, EINVAL, ENOSYS};

use super::dispatch::{failed, natively, After, Outcome};
use super::objects::Kind;
use super::{
    Event, Kernel, Nanos, NodeId, Process, ProcessId, Resume, Run, State, ThreadId, Wait, MICROSECOND, SECOND,
};
use crate::tracee::{self, Registers};

/// The signals that a program without a handler for them does not notice.
const IGNORED: u64 = bit(libc::SIGCHLD) | bit(libc::SIGURG) | bit(libc::SIGWINCH) | bit(libc::SIGCONT);
const STOPPING: u64 = bit(libc::SIGSTOP) | bit(libc::SIGTSTP) | bit(libc::SIGTTIN) | bit(libc::SIGTTOU);
/// The result of a call that is made again if the handler of the signal asks for it; see signal(7).
const MADE_AGAIN: i64 = -512;
const MICROSECONDS: u64 = SECOND / MICROSECOND;
/// Of a `signalfd_siginfo`: its size, and where it has the processor time of a child.
pub const RECORD: usize = 128;
const TIMES_OF_RECORD: std::ops::Range<usize> = 56..72;

/// Returns the bit of a signal in a set.
const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// The sets of signals of a thread.
#[derive(Clone, Copy, Default)]
struct Signals {
    pending: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
}

impl Signals {
    /// Returns the signals that its program notices.
    fn noticed(self) -> u64 {
        self.caught | !(self.ignored | IGNORED)
    }
}

/// What a thread knows of signals that it has not got yet.
#[derive(Clone, Default)]
pub struct Coming {
    /// One may be there.
    pub is_signalled: bool,
    /// Those that its call does not let in, if the call says so.
    pub mask: Option<u64>,
    /// One has interrupted its call, which is made again if the handler asks for it.
    pub is_made_again: bool,
}

/// The timer of a process that sends SIGALRM.
#[derive(Clone, Default)]
pub struct Alarm {
    /// When it ends; zero: it does not run.
    next: Nanos,
    interval: Nanos,
    turn: u64,
}

impl Kernel {
    /// A thread gets a signal by a call of its own, such as SIGPIPE.
    pub(super) fn signal_thread(&self, thread: ThreadId, signal: c_int) {
        let pid = self.processes[self.threads[thread].process].pid;
        // SAFETY: the thread is traced by this process, so it exists.
        unsafe { libc::syscall(libc::SYS_tgkill, pid, self.threads[thread].tid, signal) };
    }

    fn signals(&self, tid: pid_t) -> Signals {
        let mut signals = Signals::default();
        let status = self.root.read_of(tid, "status").unwrap_or_default();
        for (name, value) in status.lines().filter_map(|line| line.split_once(':')) {
            let set = || u64::from_str_radix(value.trim(), 16).unwrap_or(0);
            match name {
                "SigPnd" | "ShdPnd" => signals.pending |= set(),
                "SigBlk" => signals.blocked = set(),
                "SigIgn" => signals.ignored = set(),
                "SigCgt" => signals.caught = set(),
                _ => {}
            }
        }
        signals
    }

    /// Returns the signals that wait for a thread or its process.
    pub(super) fn pending(&self, thread: ThreadId) -> u64 {
        self.signals(self.threads[thread].tid).pending
    }

    /// Returns whether a signal ends a process that has no handler for it.
    pub(super) fn is_fatal(&self, tid: pid_t, signal: c_int) -> bool {
        let signals = self.signals(tid);
        let harmless = signals.caught | signals.ignored | IGNORED | STOPPING | bit(libc::SIGTRAP);
        harmless & bit(signal) == 0
    }

    /// Returns the signal of a page that could not be read: nobody can block or ignore it, so it ends such a process.
    pub(super) fn bus_error(&self, tid: pid_t) -> c_int {
        let signals = self.signals(tid);
        if (signals.blocked | signals.ignored) & bit(libc::SIGBUS) == 0 {
            libc::SIGBUS
        } else {
            libc::SIGKILL
        }
    }

    /// A signal waits for a process: a blocked thread that takes it leaves its call.
    pub(super) fn notice_signal(&mut self, process: ProcessId, signal: c_int) {
        self.tell_descriptors(process, signal);
        for thread in self.processes[process].threads.clone() {
            if self.takes(thread, signal) {
                return;
            }
        }
    }

    /// Lets those look again that read the signals of a process from a descriptor.
    fn tell_descriptors(&mut self, process: ProcessId, signal: c_int) {
        let objects: Vec<_> =
            self.processes[process].descriptors.values().map(|descriptor| descriptor.object).collect();
        for object in objects {
            if matches!(self.objects[object].kind, Kind::Signals { set } if set & bit(signal) != 0) {
                self.changed(object);
            }
        }
    }

    /// A signal waits for a thread. Returns whether the thread takes it.
    fn takes(&mut self, thread: ThreadId, signal: c_int) -> bool {
        if matches!(self.threads[thread].state, State::Dead | State::Zombie) {
            return false;
        }
        if matches!(self.threads[thread].wait, Wait::Signals(set) if set & bit(signal) != 0) {
            self.wake(thread, Resume::Retry(true));
            return true;
        }
        let signals = self.signals(self.threads[thread].tid);
        if self.threads[thread].signals.mask.unwrap_or(signals.blocked) & bit(signal) != 0 {
            return false;
        }
        self.threads[thread].signals.is_signalled = true;
        if signals.noticed() & bit(signal) != 0 && self.threads[thread].state == State::Blocked {
            self.interrupt(thread);
        }
        true
    }

    /// A program has sent a signal with its own call.
    pub(super) fn signalled(&mut self, sender: ThreadId, number: i32, signal: c_int, is_thread: bool) -> Run<()> {
        if signal == 0 {
            return Ok(());
        }
        let own = self.threads[sender].process;
        if is_thread {
            let alive = |thread: &super::Thread| !matches!(thread.state, State::Dead | State::Zombie);
            let target = self.threads.iter().position(|thread| alive(thread) && thread.number == number);
            if let Some(target) = target {
                let process = self.threads[target].process;
                if signal == libc::SIGKILL {
                    return if process == own { Ok(()) } else { self.reap(process) };
                }
                self.tell_descriptors(process, signal);
                if target != sender {
                    self.takes(target, signal);
                }
            }
            return Ok(());
        }
        for process in self.addressed(own, number) {
            if signal != libc::SIGKILL {
                self.notice_signal(process, signal);
            } else if process != own {
                self.reap(process)?;
            }
        }
        Ok(())
    }

    /// Returns the processes that a call of kill with a number means: one, or those of a group.
    fn addressed(&self, sender: ProcessId, number: i32) -> Vec<ProcessId> {
        // SAFETY: it only asks the kernel.
        let group_of = |process: ProcessId| unsafe { libc::getpgid(self.processes[process].pid) };
        let alive = (0..self.processes.len()).filter(|process| self.processes[*process].is_alive);
        if number > 0 {
            let has_it = |process: &ProcessId| {
                self.processes[*process].threads.iter().any(|thread| self.threads[*thread].number == number)
            };
            return alive.filter(has_it).collect();
        }
        let group = match number {
            0 => group_of(sender),
            _ => match self.processes.iter().find(|process| process.number == -number) {
                Some(leader) => leader.pid,
                None => return Vec::new(),
            },
        };
        alive.filter(|process| group_of(*process) == group).collect()
    }

    /// A blocked thread leaves its call, because a signal came.
    pub(super) fn interrupt(&mut self, thread: ThreadId) {
        match self.threads[thread].wait {
            Wait::Futex(key) => self.leave_futex(thread, key),
            Wait::Vfork | Wait::Sync | Wait::Stall | Wait::Work => return, // the signal comes when the thread goes on
            Wait::Loop => return self.wake(thread, Resume::Continue),
            _ => {} // of a lock, too: the thread stands before its call, and leaves it
        }
        let has_mask = self.threads[thread].signals.mask.is_some();
        let resume = match std::mem::take(&mut self.threads[thread].sent) {
            0 if has_mask => Resume::Retry(true),
            0 => Resume::Interrupted,
            sent => Resume::Result(sent as i64), // a part of a write is through
        };
        self.wake(thread, resume);
    }

    /// A thread has begun to wait in a call, or its time is up. Returns what happens instead, if a signal is there that ends the wait.
    pub(super) fn signal_instead(&mut self, thread: ThreadId) -> Option<Outcome> {
        let mask = self.threads[thread].signals.mask;
        if !std::mem::take(&mut self.threads[thread].signals.is_signalled) && mask.is_none() {
            return None;
        }
        let signals = self.signals(self.threads[thread].tid);
        let blocked = mask.unwrap_or(signals.blocked);
        if signals.pending & !blocked & signals.noticed() == 0 {
            return None;
        }
        let sent = self.threads[thread].sent;
        if self.threads[thread].state == State::Blocked {
            self.interrupt(thread);
            if self.threads[thread].state == State::Blocked {
                self.threads[thread].signals.is_signalled = true; // the signal comes later
                return None;
            }
            self.runnable.retain(|other| *other != thread);
        }
        self.threads[thread].resume = Resume::Continue;
        if mask.is_none() {
            return Some(if sent > 0 { Outcome::Value(sent as i64) } else { Outcome::Interrupted });
        }
        // The kernel lets the signal in with the mask of the call, and takes the mask back after the handler.
        let mut changed = self.threads[thread].registers;
        changed.orig_rax = libc::SYS_rt_sigsuspend as u64;
        changed.rdi = mask_at(self.threads[thread].tid, &self.threads[thread].registers)?;
        changed.rsi = 8;
        Some(Outcome::Natively(Some(Box::new(changed)), After::Nothing))
    }

    /// A thread is about to get a signal: makes what it says the same in each run. If it has interrupted a call that may be made again,
    /// the kernel does that if the handler of the signal asks for it.
    pub(super) fn clean_signal(&mut self, thread: ThreadId, signal: c_int, may_repeat: bool) -> Run<()> {
        let tid = self.threads[thread].tid;
        if matches!(signal, libc::SIGCHLD | libc::SIGALRM) {
            tracee::clean_signal(tid)?;
        }
        if may_repeat {
            let mut registers = tracee::registers(tid)?;
            registers.orig_rax = self.threads[thread].registers.orig_rax;
            registers.rax = MADE_AGAIN as u64;
            tracee::set_registers(tid, &registers)?;
        }
        Ok(())
    }

    /// Notes the signals that a thread does not take while it waits in its call; None: those that it never takes.
    pub(super) fn set_mask(&mut self, thread: ThreadId, registers: &Registers) {
        let tid = self.threads[thread].tid;
        self.threads[thread].signals.mask =
            mask_at(tid, registers).and_then(|address| tracee::read_u64(tid, address));
    }

    /// Waits for one of some signals, which the program takes without a handler.
    pub(super) fn wait_for_signal(&mut self, thread: ThreadId, registers: &Registers, again: bool) -> Outcome {
        let Some(set) = tracee::read_u64(self.threads[thread].tid, registers.rdi) else { return failed(EFAULT) };
        if self.pending(thread) & set != 0 {
            return natively(After::SignalTaken(registers.rsi));
        }
        if self.threads[thread].timed_out {
            return failed(libc::EAGAIN);
        }
        let deadline = match self.timeout_at(thread, registers.rdx) {
            Err(error) => return failed(error),
            Ok(_) if again => self.threads[thread].deadline,
            Ok(timeout) => timeout.map(|timeout| self.after(self.threads[thread].node, timeout)),
        };
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            return failed(libc::EAGAIN);
        }
        self.block(thread, Wait::Signals(set), deadline);
        Outcome::Block
    }

    /// Makes a descriptor from which a program reads signals, or gives one another set.
    pub(super) fn signalfd(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Outcome {
        let Some(set) = tracee::read_u64(self.threads[thread].tid, registers.rsi) else { return failed(EFAULT) };
        let set = set & !(bit(libc::SIGKILL) | bit(libc::SIGSTOP));
        let mut changed = *registers;
        let flags = if number == libc::SYS_signalfd4 { registers.r10 as c_int } else { 0 };
        changed.orig_rax = libc::SYS_signalfd4 as u64;
        changed.r10 = (flags | libc::SFD_NONBLOCK) as u64; // the simulation waits, and not the kernel
        if (registers.rdi as i32).is_negative() {
            let node = self.threads[thread].node;
            let object = self.make(node, Kind::Signals { set }, flags & libc::SFD_NONBLOCK != 0);
            self.threads[thread].opening = Some((object, flags & libc::SFD_CLOEXEC != 0));
            return Outcome::Natively(Some(Box::new(changed)), After::Opened);
        }
        if let Some(object) = self.object(thread, registers.rdi) {
            if let Kind::Signals { set: own } = &mut self.objects[object].kind {
                *own = set;
                self.changed(object);
            }
        }
        Outcome::Natively(Some(Box::new(changed)), After::Nothing)
    }

    /// Makes what a program has read of signals the same in each run: children have used real time.
    pub(super) fn clean_signals(&mut self, thread: ThreadId, address: u64, count: usize) {
        let tid = self.threads[thread].tid;
        let Some(mut bytes) = tracee::read(tid, address, count) else { return };
        bytes.chunks_exact_mut(RECORD).for_each(|record| record[TIMES_OF_RECORD].fill(0));
        tracee::write(tid, address, &bytes);
        self.digest.bytes(&bytes);
    }

    /// Sets the timer of a process that sends SIGALRM.
    pub(super) fn setitimer(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let tid = self.threads[thread].tid;
        if registers.rdi as c_int != libc::ITIMER_REAL {
            return failed(ENOSYS); // the others count processor time
        }
        let mut times = [0; 2];
        if registers.rsi != 0 {
            let Some(bytes) = tracee::read(tid, registers.rsi, 32) else { return failed(EFAULT) };
            for (place, time) in times.iter_mut().enumerate() {
                let (seconds, more) = (tracee::u64_at(&bytes, 16 * place), tracee::u64_at(&bytes, 16 * place + 8));
                if more >= MICROSECONDS || (seconds as i64) < 0 {
                    return failed(EINVAL);
                }
                *time = seconds.saturating_mul(SECOND).saturating_add(more * MICROSECOND);
            }
        }
        let process = self.threads[thread].process;
        let left = self.alarm_left(process);
        let [interval, value] = times;
        self.set_alarm(process, value, interval);
        self.put_alarm(thread, registers.rdx, left)
    }

    /// Tells what is left of the timer of a process.
    pub(super) fn getitimer(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        if registers.rdi as c_int != libc::ITIMER_REAL {
            return failed(ENOSYS);
        }
        self.put_alarm(thread, registers.rsi, self.alarm_left(self.threads[thread].process))
    }

    /// Sets the timer of a process in seconds, and returns how many were left.
    pub(super) fn alarm(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        const HALF: Nanos = SECOND / 2;
        let process = self.threads[thread].process;
        let (_, left) = self.alarm_left(process);
        self.set_alarm(process, u64::from(registers.rdi as u32) * SECOND, 0);
        let is_short = left > 0 && left < SECOND;
        Outcome::Value((left / SECOND + u64::from(is_short || left % SECOND >= HALF)) as i64)
    }

    /// Returns the interval of the timer of a process, and what is left until it ends.
    fn alarm_left(&self, process: ProcessId) -> (Nanos, Nanos) {
        let Alarm { next, interval, .. } = self.processes[process].alarm;
        (interval, if next == 0 { 0 } else { self.left(self.processes[process].node, next).max(MICROSECOND) })
    }

    fn set_alarm(&mut self, process: ProcessId, after: Nanos, interval: Nanos) {
        let next = if after == 0 { 0 } else { self.after(self.processes[process].node, after) };
        let alarm = &mut self.processes[process].alarm;
        *alarm = Alarm { next, interval, turn: alarm.turn + 1 };
        let turn = alarm.turn;
        if next > 0 {
            self.at(next, Event::Alarm { process, turn });
        }
    }

    /// The clock of a node has another speed: its timers end at another time.
    pub(super) fn move_alarms(&mut self, node: NodeId, moved: impl Fn(Nanos) -> Nanos) {
        for process in 0..self.processes.len() {
            let Process { node: own, alarm, .. } = &mut self.processes[process];
            if *own == node && alarm.next > self.now {
                alarm.next = moved(alarm.next);
                alarm.turn += 1;
                let (next, turn) = (alarm.next, alarm.turn);
                self.at(next, Event::Alarm { process, turn });
            }
        }
    }

    fn put_alarm(&self, thread: ThreadId, address: u64, (interval, left): (Nanos, Nanos)) -> Outcome {
        let bytes = [super::time::timeval(interval), super::time::timeval(left)].concat();
        if address == 0 || tracee::write(self.threads[thread].tid, address, &bytes) {
            Outcome::Value(0)
        } else {
            failed(EFAULT)
        }
    }

    /// The timer of a process ends, unless it was set again meanwhile.
    pub(super) fn ring(&mut self, process: ProcessId, turn: u64) {
        let Alarm { interval, turn: own, .. } = self.processes[process].alarm;
        if own != turn || !self.processes[process].is_alive {
            return;
        }
        // SAFETY: the process is traced by this one, so it exists.
        unsafe { libc::kill(self.processes[process].pid, libc::SIGALRM) };
        self.notice_signal(process, libc::SIGALRM);
        self.set_alarm(process, interval, interval);
    }

    /// A process has ended: its children get the signals that they have asked for at its end.
    pub(super) fn tell_children(&mut self, parent: ProcessId) {
        let is_child = |process: &ProcessId| {
            self.processes[*process].parent == Some(parent) && self.processes[*process].is_alive
        };
        for child in (0..self.processes.len()).filter(is_child).collect::<Vec<_>>() {
            let pending = self.signals(self.processes[child].pid).pending;
            for signal in (1..=64).filter(|signal| pending & bit(*signal) != 0) {
                self.notice_signal(child, signal);
            }
        }
    }
}

/// Returns whether a call that a signal interrupts may be made again. It has no time limit.
pub(super) fn may_be_made_again(registers: &Registers) -> bool {
    let number = registers.orig_rax as c_long;
    matches!(
        number,
        libc::SYS_read
            | libc::SYS_readv
            | libc::SYS_recvfrom
            | libc::SYS_recvmsg
            | libc::SYS_write
            | libc::SYS_writev
            | libc::SYS_sendto
            | libc::SYS_sendmsg
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_futex
            | libc::SYS_wait4
            | libc::SYS_waitid
            | libc::SYS_flock
            | libc::SYS_fcntl
    )
}

/// Returns where a call has the mask of signals for its wait; None: it has none.
fn mask_at(tid: pid_t, registers: &Registers) -> Option<u64> {
    let address = match registers.orig_rax as c_long {
        libc::SYS_rt_sigsuspend => registers.rdi,
        libc::SYS_ppoll => registers.r10,
        libc::SYS_pselect6 if registers.r9 != 0 => tracee::read_u64(tid, registers.r9)?,
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => registers.r8,
        _ => 0,
    };
    (address != 0).then_some(address)
}
