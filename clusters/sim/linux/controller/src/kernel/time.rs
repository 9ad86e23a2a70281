//! Clocks, sleeps and timers. Each node has its own wall clock. The monotonic clocks of all nodes agree, unless a fault lets the clocks
//! of a node run faster or slower. Then its waits and timers follow its own clock, as on a machine with such a crystal. The
//! retransmissions of its connections and its syncs keep the true time.

use libc::{c_int, EBADF, EFAULT, EINVAL};

use super::dispatch::{failed, Outcome};
use super::objects::Kind;
use super::{
    Event, Kernel, Nanos, NodeId, ObjectId, State, ThreadId, Wait, MICROSECOND, MONOTONIC_START, REALTIME_START,
    SECOND,
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

/// The speed of a clock that is right, and the unit of speeds.
pub const TRUE_SPEED: u64 = 1_000_000;

/// The time that has passed on a node.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When it got its speed, and what had passed by then.
    since: Nanos,
    passed: Nanos,
    /// How much passes on the node in a million nanoseconds; more than 0.
    speed: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { since: 0, passed: 0, speed: TRUE_SPEED }
    }
}

#[allow(clippy::cast_possible_truncation)] // a simulation lasts days at most
fn share(time: Nanos, dividend: u64, divisor: u64) -> Nanos {
    (u128::from(time) * u128::from(dividend)).div_ceil(u128::from(divisor)) as Nanos
}

impl Clock {
    pub(super) const fn is_right(&self) -> bool {
        self.speed == TRUE_SPEED
    }

    /// Returns what has passed on the node by a time.
    fn passed(&self, now: Nanos) -> Nanos {
        self.passed + if self.is_right() { now - self.since } else { share(now - self.since, self.speed, TRUE_SPEED) }
    }

    /// Returns the true length of a time on the node.
    fn length(&self, time: Nanos) -> Nanos {
        if self.is_right() {
            time
        } else {
            share(time, TRUE_SPEED, self.speed)
        }
    }

    /// Returns the same clock with another speed from a time on.
    fn with_speed(&self, now: Nanos, speed: u64) -> Self {
        Self { since: now, passed: self.passed(now), speed }
    }

    /// Returns how far it is ahead of the true time.
    fn lead(&self, now: Nanos) -> i64 {
        self.passed(now) as i64 - now as i64
    }
}

impl Kernel {
    /// Returns the wall clock of a node.
    pub fn wall_clock(&self, node: NodeId) -> Nanos {
        (REALTIME_START + self.nodes[node].clock.passed(self.now))
            .saturating_add_signed(self.nodes[node].clock_offset)
    }

    /// Returns the monotonic clock of a node.
    pub fn monotonic(&self, node: NodeId) -> Nanos {
        MONOTONIC_START + self.nodes[node].clock.passed(self.now)
    }

    /// Returns the virtual time when a time has passed on a node.
    pub(super) fn after(&self, node: NodeId, time: Nanos) -> Nanos {
        self.now.saturating_add(self.nodes[node].clock.length(time))
    }

    /// Returns how much passes on a node until a virtual time.
    pub(super) fn left(&self, node: NodeId, until: Nanos) -> Nanos {
        let clock = &self.nodes[node].clock;
        clock.passed(until.max(self.now)) - clock.passed(self.now)
    }

    /// Returns how far the wall clock of a node is ahead of the true time, as its programs read it.
    pub fn ahead(&self, node: NodeId) -> i64 {
        let own = &self.nodes[node];
        match &self.pages {
            Some(pages) if own.clock.is_right() => pages.offset(node),
            _ => own.clock.lead(self.now) + own.clock_offset,
        }
    }

    /// Sets how far the wall clock of a node is ahead of the true time.
    pub fn set_offset(&mut self, node: NodeId, offset: i64) {
        self.nodes[node].clock_offset = offset - self.nodes[node].clock.lead(self.now);
        self.show_clock(node);
    }

    /// Lets the clocks of a node run at another speed from now on. Waits of programs there that have begun follow it.
    pub fn set_speed(&mut self, node: NodeId, speed: u64) {
        let earlier = self.nodes[node].clock;
        let clock = earlier.with_speed(self.now, speed);
        self.nodes[node].clock = clock;
        self.show_clock(node);
        let now = self.now;
        let moved = |at: Nanos| now + clock.length(earlier.passed(at) - earlier.passed(now));
        for thread in 0..self.threads.len() {
            let waiting = &mut self.threads[thread];
            let waits = !matches!(waiting.wait, Wait::Sync | Wait::Stall | Wait::Work | Wait::Loop);
            let Some(deadline) = waiting.deadline.filter(|deadline| waits && waiting.node == node && *deadline > now)
            else {
                continue;
            };
            waiting.deadline = Some(moved(deadline));
            if waiting.state == State::Blocked {
                waiting.turn += 1;
                let turn = waiting.turn;
                self.at(moved(deadline), Event::Timeout { thread, turn });
            }
        }
        for object in 0..self.objects.len() {
            if self.objects[object].node != node {
                continue;
            }
            let Kind::Timer { next, turn, .. } = &mut self.objects[object].kind else { continue };
            if *next > now {
                *next = moved(*next);
                *turn += 1;
                let (next, turn) = (*next, *turn);
                self.at(next, Event::Timer { object, turn });
            }
        }
        self.move_alarms(node, moved);
    }

    /// Writes the clock of a node where its programs read it.
    fn show_clock(&self, node: NodeId) {
        let own = &self.nodes[node];
        if let Some(pages) = &self.pages {
            let lead = own.clock.lead(self.now);
            pages.set_clock(node, lead + own.clock_offset, lead, own.clock.is_right());
        }
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
            | libc::CLOCK_BOOTTIME_ALARM => self.monotonic(self.threads[thread].node),
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
        let node = self.threads[thread].node;
        let shows = self.clock(thread, clock).unwrap_or_else(|| self.monotonic(node)) as i64;
        let left = time.saturating_sub(shows);
        u64::try_from(left).map_or_else(|_| self.now.saturating_add_signed(left), |left| self.after(node, left))
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
        let until = if is_absolute {
            self.when(thread, clock, time)
        } else {
            self.after(self.threads[thread].node, time as u64)
        };
        self.block(thread, Wait::Sleep, Some(until));
        Outcome::Block
    }

    pub(super) fn times(&self, thread: ThreadId, registers: &Registers) -> Outcome {
        let mut usage = vec![0; 32];
        usage[..8].copy_from_slice(&(self.threads[thread].processor_ns / TICK).to_le_bytes());
        match self.put(thread, registers.rdi, &usage) {
            Outcome::Value(_) => Outcome::Value((self.monotonic(self.threads[thread].node) / TICK) as i64),
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
            _ => self.after(self.threads[thread].node, value.max(0) as u64),
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
            Kind::Timer { next, interval, .. } => [
                timespec(interval),
                timespec(if next == 0 { 0 } else { self.left(self.objects[timer].node, next).max(1) }),
            ]
            .concat(),
            _ => vec![0; 32],
        }
    }

    /// A timer ends, unless it was set again meanwhile.
    pub(super) fn fire(&mut self, object: ObjectId, fired: u64) {
        let (now, clock) = (self.now, self.nodes[self.objects[object].node].clock);
        let Kind::Timer { next, interval, expired, turn, .. } = &mut self.objects[object].kind else { return };
        if *turn != fired {
            return;
        }
        *expired += 1;
        *next = if *interval > 0 { now + clock.length(*interval) } else { 0 };
        let again = *next;
        if again > 0 {
            self.at(again, Event::Timer { object, turn: fired });
        }
        self.changed(object);
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, SECOND, TRUE_SPEED};
    use crate::kernel::MILLISECOND;

    #[test]
    fn a_clock_keeps_what_has_passed_when_its_speed_changes() {
        let fast = Clock::default().with_speed(10 * SECOND, TRUE_SPEED * 3 / 2);
        assert_eq!(fast.passed(12 * SECOND), 13 * SECOND);
        assert_eq!((fast.length(3 * SECOND), fast.lead(12 * SECOND)), (2 * SECOND, SECOND as i64));
        let right = fast.with_speed(12 * SECOND, TRUE_SPEED);
        assert_eq!((right.passed(20 * SECOND), right.lead(20 * SECOND)), (21 * SECOND, SECOND as i64));
        assert!(right.is_right() && right.length(SECOND) == SECOND);
    }

    #[test]
    fn a_wait_is_never_shorter_than_on_its_clock() {
        for speed in [1, 333_333, 999_999, 1_000_001, 1_700_000, 9_999_999] {
            let clock = Clock::default().with_speed(7 * MILLISECOND, speed);
            for wait in [1, 999, 1_234_567, SECOND] {
                let begins = 9 * MILLISECOND;
                let ends = begins + clock.length(wait);
                assert!(clock.passed(ends) - clock.passed(begins) >= wait - 1, "{speed} {wait}");
            }
        }
    }
}
