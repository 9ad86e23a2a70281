//! The scheduler: picks a thread by the seed, and lets it run to its next call.
//!
//! A thread runs until it blocks, or until a call after its quantum, which the seed draws. Computing costs no virtual time. A
//! thread that computes without a call is interrupted after a while of processor time and stepped. If it would do the same for
//! ever, it waits in a loop for another thread (`loops`). It then sleeps for some virtual time at the lowest address of the loop.
//! This place does not depend on when the controller looked, so the run stays the same. After the sleep, the thread is stepped at
//! once: it waits in the loop for as long as nobody changes what it looks at.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use super::dispatch::{After, Outcome};
use super::loads::Use;
use super::loops::Steps;
use super::objects::Kind;
use super::signals::may_be_made_again;
use super::sockets;
use super::{
    scaled, Fatal, Kernel, Nanos, Outside, Resume, Run, Settings, State, Thread, ThreadId, Wait, MICROSECOND,
    REALTIME_START, SECOND,
};
use crate::calls;
use crate::chance::Chance;
use crate::processor;
use crate::tracee::{self, Registers, Stop, Until};

const LOOKS: u32 = 2; // in the time of the first look: how often a timer lets the controller read the clock
const MOST_COMPUTING: Duration = Duration::from_secs(120);
const LOOP_SLEEP: u64 = 50 * MICROSECOND; // twice as long after each sleep in the same loop
const MOST_LOOPS: u32 = 6;
const SHARED_MEMORY_TIMES: u64 = 56; // their offset in a shmid_ds
const COUNTER_READ: u64 = 20; // ns of virtual time

/// The calls after which a lock of a file may be free; the end of a process is another way.
const MAY_UNLOCK: [libc::c_long; 6] =
    [libc::SYS_close, libc::SYS_close_range, libc::SYS_dup2, libc::SYS_dup3, libc::SYS_fcntl, libc::SYS_flock];

static LOOKED: AtomicBool = AtomicBool::new(false);
static PARENT: AtomicI32 = AtomicI32::new(0);
const LEFT_ALONE: i32 = 3; // the exit code if the program outside has gone

extern "C" fn look(_: libc::c_int) {
    LOOKED.store(true, Ordering::Relaxed);
    let mut input = libc::pollfd { fd: libc::STDIN_FILENO, events: 0, revents: 0 };
    // SAFETY: a handler may make these calls. All programs end with this process, because it traces them.
    unsafe {
        libc::poll(&raw mut input, 1, 0);
        if input.revents & libc::POLLHUP != 0 || libc::getppid() != PARENT.load(Ordering::Relaxed) {
            libc::_exit(LEFT_ALONE);
        }
    }
}

/// Lets a timer interrupt waits for a thread, so that one that computes for long is noticed, and so is the end of the program
/// outside, even if a thread computes.
///
/// `first_look` is the processor time of a computing thread before the first look at it.
pub fn watch(first_look: Duration) {
    // SAFETY: the handler sets a flag, and makes calls that a handler may make.
    unsafe {
        PARENT.store(libc::getppid(), Ordering::Relaxed);
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = look as *const () as usize;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        let every = first_look / LOOKS;
        let every = libc::timeval { tv_sec: every.as_secs() as i64, tv_usec: every.subsec_micros().into() };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
}

/// Returns whether a call for a lock of a file waits for it.
fn waits_for_lock(registers: &Registers) -> bool {
    let command = registers.rsi as libc::c_int;
    match registers.orig_rax as libc::c_long {
        libc::SYS_flock => command & libc::LOCK_NB == 0,
        _ => matches!(command, libc::F_SETLKW | libc::F_OFD_SETLKW),
    }
}

/// Draws the time for which a thread runs before another one may.
pub(super) fn quantum(settings: &Settings, chance: &mut Chance) -> Nanos {
    let Settings { quantum, preempt, call, .. } = *settings;
    let longest = quantum / 2 + chance.below(quantum);
    if preempt <= 0.0 {
        return longest;
    }
    longest.min(scaled(call, chance.exponential() / preempt))
}

/// Why a wait for a running thread ended.
enum Ran {
    Stopped(Stop),
    /// It sleeps in a loop that waits for another thread, at the lowest address of the loop.
    Loops(u64),
}

impl Kernel {
    /// Runs the simulation until it is over, or until the program outside has something to hear.
    pub fn run(&mut self) -> Run<()> {
        loop {
            self.deliver();
            if self.has_news() {
                return Ok(());
            }
            let candidates: Vec<usize> =
                (0..self.runnable.len()).filter(|place| !self.is_paused(self.runnable[*place])).collect();
            if candidates.is_empty() {
                let Some(next) = self.next_event() else { return Ok(()) };
                self.now = self.now.max(next);
                continue;
            }
            let place = candidates[self.scheduling.below(candidates.len() as u64) as usize];
            let thread = self.runnable.swap_remove(place);
            self.counts.switches += 1;
            self.digest.number(thread as u64);
            self.quantum_ends = self.now + quantum(&self.settings, &mut self.scheduling);
            self.go_on(thread)?;
        }
    }

    /// Returns whether the program outside has something to hear.
    pub(super) fn has_news(&self) -> bool {
        !self.links.probed.is_empty()
            || !self.steps.reached.is_empty()
            || !self.passing.passed.is_empty()
            || self.outside.as_ref().is_some_and(Outside::hears)
    }

    fn set_aside(&mut self, thread: ThreadId, resume: Resume) {
        self.threads[thread].resume = resume;
        self.threads[thread].state = State::Runnable;
        self.runnable.push(thread);
    }

    /// Lets a thread run until it blocks, ends, or has had its quantum.
    fn go_on(&mut self, thread: ThreadId) -> Run<()> {
        let tid = self.threads[thread].tid;
        match std::mem::replace(&mut self.threads[thread].resume, Resume::Continue) {
            Resume::Continue => {}
            Resume::Result(result) => {
                // The next call has a deadline of its own.
                self.threads[thread].timed_out = false;
                self.threads[thread].deadline = None;
                self.return_from_call(thread, result)?;
            }
            Resume::Interrupted => self.interrupted(thread)?,
            Resume::Retry(again) => {
                if !self.call(thread, again)? {
                    return Ok(());
                }
            }
        }
        let mut signal = 0;
        loop {
            let mut stop = match self.advance(thread, signal)? {
                Ran::Loops(_) => return Ok(()),
                Ran::Stopped(stop) => stop,
            };
            if stop == Stop::Call && self.has_new_pages(thread)? {
                stop = self.withhold_before_call(thread)?;
            }
            signal = 0;
            let is_made_again = std::mem::take(&mut self.threads[thread].signals.is_made_again);
            match stop {
                Stop::Ended(status) => return self.thread_ended(thread, status),
                Stop::Call => {
                    self.threads[thread].registers = tracee::registers(tid)?;
                    self.teach(thread);
                    self.now += self.settings.call;
                    self.threads[thread].processor_ns += self.settings.call;
                    let first = self.processes[self.threads[thread].process].first;
                    self.processes[first].calls += 1;
                    self.deliver();
                    if let Some(length) =
                        self.stalls.before_call(self.threads[thread].node, self.now, self.reads_wall_clock(thread))
                    {
                        self.counts.stalls += 1;
                        let label = self.label(thread);
                        self.digest.line(format_args!("{:>14} {label} stalls for {length} ns", self.now));
                        self.block(thread, Wait::Stall, Some(self.now + length));
                        return Ok(());
                    }
                    if self.end_step(thread) {
                        self.set_aside(thread, Resume::Retry(false));
                        return Ok(());
                    }
                    let is_up = self.now > self.quantum_ends || self.is_paused(thread);
                    if is_up && !self.runnable.is_empty() {
                        self.set_aside(thread, Resume::Retry(false));
                        return Ok(());
                    }
                    if !self.call(thread, false)? {
                        return Ok(());
                    }
                }
                Stop::Made(child, event) => {
                    if self.made(thread, child, event)? {
                        return Ok(());
                    }
                }
                Stop::Executed => self.replaced(self.threads[thread].process, tid)?,
                Stop::Other | Stop::CallEnded => {}
                Stop::Signal(mut number) => {
                    if number == libc::SIGSEGV {
                        if self.read_processor(thread)? {
                            continue;
                        }
                        match self.uses_page(thread)? {
                            Use::Own => {}
                            Use::Again => continue,
                            Use::Unread => number = self.bus_error(tid),
                        }
                    } else if number == libc::SIGBUS && self.goes_on_from_hole(thread)? {
                        continue;
                    }
                    self.counts.signals += 1;
                    self.digest.number(0x5160_0000 | number as u64);
                    let label = self.label(thread);
                    self.digest.line(format_args!("{:>14} {label} gets signal {number}", self.now));
                    if number != libc::SIGTRAP {
                        signal = number;
                        self.clean_signal(thread, number, is_made_again)?;
                        if self.is_fatal(tid, number) {
                            tracee::resume(tid, Until::Stops, number)?;
                            return self.reap(self.threads[thread].process);
                        }
                    }
                }
            }
        }
    }

    fn thread_ended(&mut self, thread: ThreadId, status: libc::c_int) -> Run<()> {
        let process = self.threads[thread].process;
        self.bury(thread);
        if self.threads[thread].tid == self.processes[process].pid {
            self.ended(process, status);
            return Ok(());
        }
        if libc::WIFSIGNALED(status) {
            self.reap(process)
        } else {
            Ok(())
        }
    }

    /// Lets a thread run to its next stop.
    fn advance(&mut self, thread: ThreadId, signal: libc::c_int) -> Run<Ran> {
        self.counts.stops += 1;
        self.share_time();
        self.offer_calls(thread);
        let was_in_loop = self.threads[thread].loops > 0 && signal == 0;
        let still = if was_in_loop { self.look_for_loop(thread)? } else { None };
        let ran = match still {
            Some(ran) => ran,
            None => self.run_until_stop(thread, signal)?,
        };
        self.take_time();
        self.take_answers(thread);
        if let Ran::Loops(lowest) = ran {
            self.digest.number(lowest); // after what the program has added itself
            if self.digest.logs() {
                let label = self.label(thread);
                self.digest.line(format_args!("{:>14} {label} waits in a loop at {lowest:#x}", self.now));
            }
            self.counts.loops += 1;
            let loops = &mut self.threads[thread].loops;
            let wakes = self.now + (LOOP_SLEEP << *loops);
            *loops = (*loops + 1).min(MOST_LOOPS);
            self.block(thread, Wait::Loop, Some(wakes));
        } else {
            self.threads[thread].loops = 0;
        }
        Ok(ran)
    }

    fn run_until_stop(&mut self, thread: ThreadId, signal: libc::c_int) -> Run<Ran> {
        let tid = self.threads[thread].tid;
        tracee::resume(tid, Until::Stops, signal)?;
        let pid = self.processes[self.threads[thread].process].pid;
        let mut first_time = None; // most stops come before anybody looks, and cost no look at the clock
        let mut next_look = self.settings.look;
        loop {
            if let Some(stop) = tracee::wait(tid)? {
                return Ok(Ran::Stopped(stop));
            }
            if !LOOKED.swap(false, Ordering::Relaxed) {
                continue;
            }
            let time = tracee::processor_time(pid);
            let computed = time.saturating_sub(*first_time.get_or_insert(time));
            if computed < next_look {
                continue;
            }
            next_look *= 2;
            if computed > MOST_COMPUTING {
                return Err(self.computes_for_long(thread));
            }
            tracee::interrupt(tid)?;
            match tracee::wait_on(tid)? {
                Stop::Other => {}
                Stop::Call => return Ok(Ran::Stopped(Self::come_again(tid)?)),
                stop => return Ok(Ran::Stopped(stop)),
            }
            match self.look_for_loop(thread)? {
                Some(ran) => return Ok(ran),
                None => tracee::resume(tid, Until::Stops, 0)?,
            }
        }
    }

    /// A thread stands before a call while it was asked to stop. Lets it stop for that, and come to its call again: else the kernel
    /// would break the call off.
    fn come_again(tid: libc::pid_t) -> Run<Stop> {
        tracee::stand_before_call(tid, &tracee::registers(tid)?)?;
        loop {
            tracee::resume(tid, Until::Stops, 0)?;
            match tracee::wait_on(tid)? {
                Stop::Other => {}
                stop => return Ok(stop),
            }
        }
    }

    fn computes_for_long(&self, thread: ThreadId) -> Fatal {
        let process = &self.processes[self.threads[thread].process];
        let at = tracee::interrupt(self.threads[thread].tid)
            .and_then(|()| tracee::wait_on(self.threads[thread].tid))
            .and_then(|_| tracee::registers(self.threads[thread].tid))
            .map_or_else(|_| "unknown".to_owned(), |registers| format!("{:#x}", registers.rip));
        Fatal(format!(
            "a thread of {} on {} has computed for {} s without a system call, at {at}; the simulation cannot stop it",
            process.program,
            self.nodes[process.node].name,
            MOST_COMPUTING.as_secs()
        ))
    }

    /// Steps a thread that stands still. Returns `Loops` if it waits in a loop, and None if it only computes.
    fn look_for_loop(&self, thread: ThreadId) -> Run<Option<Ran>> {
        let lowest = match self.step_through_loop(thread)? {
            Steps::Loop(lowest) => lowest,
            Steps::Computes => return Ok(None),
            Steps::Stopped(stop) => return Ok(Some(Ran::Stopped(stop))),
        };
        Ok(Some(Ran::Loops(lowest)))
    }

    /// Handles the call before which a thread stands. Returns whether the thread goes on now.
    fn call(&mut self, thread: ThreadId, again: bool) -> Run<bool> {
        let tid = self.threads[thread].tid;
        let outcome = self.handle(thread, again)?;
        if !matches!(outcome, Outcome::Block | Outcome::Interrupted) {
            self.threads[thread].sent = 0;
            self.threads[thread].timed_out = false;
            self.threads[thread].deadline = None;
        }
        match outcome {
            Outcome::Value(result) => {
                self.return_from_call(thread, result)?;
                Ok(true)
            }
            Outcome::Interrupted => {
                self.interrupted(thread)?;
                Ok(true)
            }
            Outcome::Native => {
                self.record(thread, None);
                Ok(true)
            }
            Outcome::Natively(changed, after) => self.run_natively(thread, changed.as_deref(), after),
            Outcome::Block => Ok(false),
            Outcome::Yield(result) => {
                self.set_aside(thread, Resume::Result(result));
                Ok(false)
            }
            Outcome::Exit => {
                self.record(thread, None);
                self.end_thread(thread)?;
                Ok(false)
            }
            Outcome::ExitGroup => {
                self.record(thread, None);
                tracee::resume(tid, Until::Stops, 0)?;
                self.reap(self.threads[thread].process)?;
                Ok(false)
            }
        }
    }

    /// Ends the call of a thread with a result, without the kernel.
    fn return_from_call(&mut self, thread: ThreadId, result: i64) -> Run<()> {
        self.record(thread, Some(result));
        let mut registers = self.threads[thread].registers;
        registers.orig_rax = u64::MAX;
        registers.rax = result as u64;
        tracee::set_registers(self.threads[thread].tid, &registers)?;
        Ok(())
    }

    /// Ends the call of a thread, because a signal came.
    fn interrupted(&mut self, thread: ThreadId) -> Run<()> {
        let is_made_again =
            may_be_made_again(&self.threads[thread].registers) && self.threads[thread].deadline.is_none();
        self.threads[thread].timed_out = false;
        self.threads[thread].deadline = None;
        self.return_from_call(thread, -i64::from(libc::EINTR))?;
        self.threads[thread].signals.is_made_again = is_made_again;
        Ok(())
    }

    /// Runs a call in the kernel to its end, and does what follows.
    fn run_natively(&mut self, thread: ThreadId, changed: Option<&Registers>, after: After) -> Run<bool> {
        let tid = self.threads[thread].tid;
        if let Some(changed) = changed {
            tracee::set_registers(tid, changed)?;
        }
        self.share_time();
        self.counts.stops += 1;
        tracee::resume(tid, Until::CallEnds, 0)?;
        let result = loop {
            match tracee::wait_on(tid)? {
                Stop::CallEnded => break tracee::registers(tid)?.rax as i64,
                Stop::Ended(status) => {
                    if let After::Signalled { number, signal, is_thread } = after {
                        self.signalled(thread, number, signal, is_thread)?; // it was among those that it killed
                    }
                    self.thread_ended(thread, status)?;
                    return Ok(false);
                }
                _ => tracee::resume(tid, Until::CallEnds, 0)?,
            }
        };
        self.follow(thread, result, after)?;
        self.record(thread, Some(result));
        let before = self.threads[thread].registers;
        let number = before.orig_rax as libc::c_long;
        if after == After::Locked && result == -i64::from(libc::EAGAIN) && waits_for_lock(&before) {
            self.block(thread, Wait::Lock, None);
            return Ok(tracee::stand_before_call(tid, &before).map(|()| false)?);
        }
        if MAY_UNLOCK.contains(&number) {
            self.wake_for_locks();
        }
        let mut registers = tracee::registers(tid)?;
        (registers.rdi, registers.rsi, registers.rdx) = (before.rdi, before.rsi, before.rdx);
        (registers.r10, registers.r8, registers.r9) = (before.r10, before.r8, before.r9);
        registers.rax = result as u64;
        tracee::set_registers(tid, &registers)?;
        Ok(true)
    }

    /// Does what follows a call that ran in the kernel.
    fn follow(&mut self, thread: ThreadId, result: i64, after: After) -> Run<()> {
        let registers = self.threads[thread].registers;
        let tid = self.threads[thread].tid;
        let node = self.threads[thread].node;
        let is_done = result >= 0;
        match after {
            After::Opened => {
                if let (true, Some((object, closes_at_exec))) = (is_done, self.threads[thread].opening.take()) {
                    self.set_descriptor(thread, result as i32, object, closes_at_exec);
                }
            }
            After::MadePipe(flags) if is_done => {
                let Some(made) = tracee::read_u64(tid, registers.rdi) else { return Ok(()) };
                let buffer = Kind::Buffer { bytes: std::collections::VecDeque::new(), readers: 1, writers: 1 };
                let buffer = self.make(node, buffer, false);
                for (number, is_writer) in [(made as i32, false), ((made >> 32) as i32, true)] {
                    let end = Kind::Pipe { buffer, is_writer };
                    let object = self.make(node, end, flags & libc::O_NONBLOCK != 0);
                    self.set_descriptor(thread, number, object, flags & libc::O_CLOEXEC != 0);
                }
            }
            After::MadePair(flags) if is_done => {
                let Some(made) = tracee::read_u64(tid, registers.r10) else { return Ok(()) };
                let is_nonblocking = flags & libc::SOCK_NONBLOCK != 0;
                let (one, other) = if flags & sockets::TYPE == libc::SOCK_DGRAM {
                    self.datagram_pair(node, is_nonblocking)
                } else {
                    self.pair(thread, is_nonblocking)
                };
                for (number, object) in [(made as i32, one), ((made >> 32) as i32, other)] {
                    self.set_descriptor(thread, number, object, flags & libc::SOCK_CLOEXEC != 0);
                }
            }
            After::Mapped if is_done => self.withhold(thread)?,
            After::Bound if is_done => self.bound_unix(thread),
            After::Duplicated(closes_at_exec) if is_done => {
                self.duplicated(thread, registers.rdi, result as i32, closes_at_exec);
            }
            After::Stat(..) | After::Statx(_) | After::Statfs(_) if result == 0 => self.clean(thread, after),
            After::Entries(address) if result > 0 => self.clean_entries(thread, address, result as usize),
            After::Link(address) if result > 0 => self.clean_link(thread, address, result as usize),
            After::Read(address) if result > 0 && address != 0 => {
                if let Some(bytes) = tracee::read(tid, address, result as usize) {
                    self.digest.bytes(&bytes);
                }
            }
            After::SignalsRead(address) if result > 0 => self.clean_signals(thread, address, result as usize),
            After::SignalTaken(address) if result == libc::SIGCHLD.into() && address != 0 => {
                tracee::write(tid, address + tracee::TIMES_OF_CHILD, &[0; 16]);
            }
            After::SharedMemory(address) if is_done => {
                let now = (REALTIME_START / SECOND).to_le_bytes(); // as the times of files
                tracee::write(tid, address + SHARED_MEMORY_TIMES, &now.repeat(3));
            }
            After::Waited if is_done => {
                self.waited(thread, result);
                if registers.orig_rax == libc::SYS_wait4 as u64 && registers.r10 != 0 {
                    tracee::write(tid, registers.r10, &[0; 144]); // the times of the child
                }
            }
            After::Signalled { number, signal, is_thread } if result == 0 => {
                self.signalled(thread, number, signal, is_thread)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A descriptor was duplicated: the new one stands for the same object, or for a file.
    fn duplicated(&mut self, thread: ThreadId, old: u64, new: i32, closes_at_exec: bool) {
        match self.object(thread, old) {
            Some(_) if old == new as u64 => {}
            Some(object) => self.set_descriptor(thread, new, object, closes_at_exec),
            None => {
                let process = self.threads[thread].process;
                if let Some(descriptor) = self.processes[process].descriptors.remove(&new) {
                    self.release(descriptor.object);
                }
            }
        }
    }

    /// Returns a thread for the log: its node, its program and its number.
    fn label(&self, thread: ThreadId) -> String {
        let Thread { node, process, .. } = self.threads[thread];
        let path = &self.processes[process].program;
        let program: String = path
            .rsplit('/')
            .next()
            .unwrap_or(path)
            .chars()
            .map(|letter| if letter.is_ascii_graphic() { letter } else { '?' })
            .collect();
        format!("{}/{program}/{thread}", self.nodes[node].name)
    }

    /// Puts a call into the digest and the log.
    fn record(&mut self, thread: ThreadId, result: Option<i64>) {
        let registers = self.threads[thread].registers;
        let number = registers.orig_rax as i64;
        let shown = result.unwrap_or(0x7777);
        for value in [
            self.now,
            thread as u64,
            number as u64,
            shown as u64,
            registers.rdi,
            registers.rsi,
            registers.rdx,
            registers.r10,
            registers.rip,
            registers.rsp,
        ] {
            self.digest.number(value);
        }
        *self.counts.calls.entry(number).or_insert(0) += 1;
        if self.digest.logs() {
            let label = self.label(thread);
            self.digest.line(format_args!(
                "{:>14} {label} {}({:#x}, {:#x}, {:#x}, {:#x}) = {shown} at {:#x}",
                self.now,
                calls::name(number),
                registers.rdi,
                registers.rsi,
                registers.rdx,
                registers.r10,
                registers.rip,
            ));
        }
    }

    /// A thread may read the clock up to the next event, the end of its quantum, or the next stall. Then a read is a call.
    fn share_time(&self) {
        if let Some(pages) = &self.pages {
            let next = self.next_event().unwrap_or(u64::MAX);
            pages.begin(self.now, next.min(self.quantum_ends).min(self.stalls.next()));
        }
    }

    /// Returns whether the call that a thread is about to make reads the wall clock.
    fn reads_wall_clock(&self, thread: ThreadId) -> bool {
        let registers = &self.threads[thread].registers;
        match registers.orig_rax as libc::c_long {
            libc::SYS_clock_gettime => registers.rdi == libc::CLOCK_REALTIME as u64,
            libc::SYS_gettimeofday | libc::SYS_time => true,
            _ => false,
        }
    }

    fn take_time(&mut self) {
        if let Some(pages) = &self.pages {
            self.now = self.now.max(pages.reached());
        }
    }

    /// Carries out rdtsc, rdtscp or cpuid, which the processor refuses to the programs. Returns whether it was one.
    fn read_processor(&mut self, thread: ThreadId) -> Run<bool> {
        let tid = self.threads[thread].tid;
        let mut registers = tracee::registers(tid)?;
        let Some(code) = tracee::read(tid, registers.rip, 3) else { return Ok(false) };
        let size = match code[..] {
            [0x0f, 0xa2, _] => {
                processor::identify(&mut registers);
                tracee::set_registers(tid, &registers)?;
                return Ok(true);
            }
            [0x0f, 0x31, _] => 2,
            [0x0f, 0x01, 0xf9] => 3,
            _ => return Ok(false),
        };
        self.now += COUNTER_READ;
        self.counts.counters_read += 1;
        let counter = self.monotonic(self.threads[thread].node);
        registers.rax = counter & 0xffff_ffff;
        registers.rdx = counter >> 32;
        if size == 3 {
            registers.rcx = 0;
        }
        registers.rip += size;
        tracee::set_registers(tid, &registers)?;
        Ok(true)
    }
}
