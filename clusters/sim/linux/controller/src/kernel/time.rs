//! Clocks, sleeps and timers. Each node has its own wall clock; the monotonic clocks of all nodes agree.

use libc::{c_int, EBADF, EFAULT, EINVAL};

use super::dispatch::{failed, Outcome};
use super::objects::Kind;
use super::{
    Event, Kernel, Nanos, NodeId, ObjectId, ThreadId, Wait, MICROSECOND, MONOTONIC_START, REALTIME_START, SECOND,
};
use crate::tracee::{self, Registers};

const MOST_SECONDS: i64 = 4_000_000_000;
const TICK: Nanos = SECOND / 100; // the unit of times(2)
const CLOCK_TAI: c_int = 11;

/// Returns the bytes of a timespec.
pub(super) fn timespec(time: Nanos) -> Vec<u8> {
    [(time / SECOND).to_le_bytes(), (time % SECOND).to_le_bytes()].concat()
}

pub(super) fn timeval(time: Nanos) -> Vec<u8> {
    [(time / SECOND).to_le_bytes(), (time % SECOND / MICROSECOND).to_le_bytes()].concat()
}

impl Kernel {
    /// Returns the wall clock of a node.
    pub fn wall_clock(&self, node: NodeId) -> Nanos {
        (REALTIME_START + self.now).saturating_add_signed(self.nodes[node].clock_offset)
    }

    fn clock(&self, thread: ThreadId, clock: c_int) -> Option<Nanos> {
        Some(match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_REALTIME_ALARM | CLOCK_TAI => {
                self.wall_clock(self.threads[thread].node)
            }
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => self.threads[thread].processor_ns,
            libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_BOOTTIME_ALARM => MONOTONIC_START + self.now,
            other if other < 0 => self.threads[thread].processor_ns, // the clock of a process or a thread
            _ => return None,
        })
    }

    /// Reads a timespec, in nanoseconds.
    pub(super) fn read_time(tid: i32, address: u64) -> Option<i64> {
        let bytes = tracee::read(tid, address, 16)?;
        let (seconds, nanos) = (tracee::u64_at(&bytes, 0) as i64, tracee::u64_at(&bytes, 8) as i64);
        Some(seconds.min(MOST_SECONDS) * SECOND as i64 + nanos)
    }

    /// Returns the virtual time at which a clock shows a time.
    pub(super) fn when(&self, thread: ThreadId, clock: c_int, time: i64) -> Nanos {
        let shows = self.clock(thread, clock).unwrap_or(MONOTONIC_START + self.now) as i64;
        self.now.saturating_add_signed(time.saturating_sub(shows))
    }

    fn put(&self, thread: ThreadId, address: u64, bytes: &[u8]) -> Outcome {
        if address == 0 || tracee::write(self.threads[thread].tid, address, bytes) {
            Outcome::Value(0)
        } else {
            failed(EFAULT)
        }
    }

    pub(super) fn clock_gettime(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        match self.clock(thread, registers.rdi as c_int) {
            Some(time) => self.put(thread, registers.rsi, &timespec(time)),
            None => failed(EINVAL),
        }
    }

    pub(super) fn clock_getres(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        self.put(thread, registers.rsi, &timespec(1))
    }

    pub(super) fn gettimeofday(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        self.put(thread, registers.rdi, &timeval(self.wall_clock(self.threads[thread].node)))
    }

    pub(super) fn time(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        let seconds = self.wall_clock(self.threads[thread].node) / SECOND;
        match self.put(thread, registers.rdi, &seconds.to_le_bytes()) {
            Outcome::Value(_) => Outcome::Value(seconds as i64),
            refused => refused,
        }
    }

    pub(super) fn sleep(&mut self, thread: ThreadId, clock: c_int, is_absolute: bool, asked: u64) -> Outcome {
        let Some(time) = Self::read_time(self.threads[thread].tid, asked) else { return failed(EFAULT) };
        if time < 0 {
            return failed(EINVAL);
        }
        let until = if is_absolute { self.when(thread, clock, time) } else { self.now + time as u64 };
        self.block(thread, Wait::Sleep, Some(until));
        Outcome::Block
    }

    pub(super) fn times(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        let mut usage = vec![0; 32];
        usage[..8].copy_from_slice(&(self.threads[thread].processor_ns / TICK).to_le_bytes());
        match self.put(thread, registers.rdi, &usage) {
            Outcome::Value(_) => Outcome::Value(((MONOTONIC_START + self.now) / TICK) as i64),
            refused => refused,
        }
    }

    pub(super) fn getrusage(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        const MOST_MEMORY: u64 = 50_000; // KiB, the same for all programs
        let mut usage = vec![0; 144];
        usage[..16].copy_from_slice(&timeval(self.threads[thread].processor_ns));
        usage[32..40].copy_from_slice(&MOST_MEMORY.to_le_bytes());
        self.put(thread, registers.rsi, &usage)
    }

    pub(super) fn timerfd_settime(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let tid = self.threads[thread].tid;
        let Some(timer) = self.object(thread, registers.rdi) else { return self.no_timer(thread, registers.rdi) };
        let Kind::Timer { clock, .. } = self.objects[timer].kind else { return failed(EINVAL) };
        let (Some(interval), Some(value)) =
            (Self::read_time(tid, registers.rdx), Self::read_time(tid, registers.rdx + 16))
        else {
            return failed(EFAULT);
        };
        if registers.r10 != 0 {
            let left = self.timer_state(timer);
            if !tracee::write(tid, registers.r10, &left) {
                return failed(EFAULT);
            }
        }
        let is_absolute = registers.rsi & 1 != 0;
        let at = match value {
            0 => 0,
            _ if is_absolute => self.when(thread, clock, value).max(self.now),
            _ => self.now + value.max(0) as u64,
        };
        if let Kind::Timer { next, interval: own, expired, turn, .. } = &mut self.objects[timer].kind {
            *turn += 1;
            (*next, *own, *expired) = (at, interval.max(0) as u64, 0);
            let turn = *turn;
            if at > 0 {
                self.at(at, Event::Timer { object: timer, turn });
            }
        }
        Outcome::Value(0)
    }

    pub(super) fn timerfd_gettime(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        match self.object(thread, registers.rdi) {
            Some(timer) if matches!(self.objects[timer].kind, Kind::Timer { .. }) => {
                self.put(thread, registers.rsi, &self.timer_state(timer))
            }
            Some(_) => failed(EINVAL),
            None => self.no_timer(thread, registers.rdi),
        }
    }

    fn no_timer(&self, thread: ThreadId, descriptor: u64) -> Outcome {
        failed(if self.is_native(thread, descriptor) { EINVAL } else { EBADF })
    }

    fn timer_state(&self, timer: ObjectId) -> Vec<u8> {
        match self.objects[timer].kind {
            Kind::Timer { next, interval, .. } => {
                [timespec(interval), timespec(if next == 0 { 0 } else { next.saturating_sub(self.now).max(1) })]
                    .concat()
            }
            _ => vec![0; 32],
        }
    }

    /// A timer ends, unless it was set again meanwhile.
    pub(super) fn fire(&mut self, object: ObjectId, fired: u64) {
        let now = self.now;
        let Kind::Timer { next, interval, expired, turn, .. } = &mut self.objects[object].kind else { return };
        if *turn != fired {
            return;
        }
        *expired += 1;
        *next = if *interval > 0 { now + *interval } else { 0 };
        let again = *next;
        if again > 0 {
            self.at(again, Event::Timer { object, turn: fired });
        }
        self.changed(object);
    }
}
