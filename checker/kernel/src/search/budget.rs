//! The limits of a search: time, memory, and cancellation by the caller.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::machine::Machine;

/// Why a search ended without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The limit of wall time or of processor time.
    Timeout,
    /// The memory limit.
    OutOfMemory,
    /// The caller cancelled the search.
    Cancelled,
    /// The model's own code failed; the caller has the error.
    ModelFailed,
    /// The requested algorithm does not apply.
    Unsuited,
    /// The limit of steps.
    Steps,
}

impl Cause {
    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::OutOfMemory => "out-of-memory",
            Self::Cancelled => "cancelled",
            Self::ModelFailed => "model-failed",
            Self::Unsuited => "unsuited",
            Self::Steps => "steps",
        }
    }
}

/// The use of memory up to which a search does not ask how much is free: this takes longer than many a search.
const SMALL_MEMORY: usize = 64 << 20;

/// Limits for all searches of one call.
pub struct Limits<'a> {
    deadline: Option<Instant>,
    /// Processor time of one search.
    processor: Option<Duration>,
    /// Bytes; empty until the limit is needed, if it is half of the free memory.
    memory: OnceLock<usize>,
    /// The limit for one search.
    steps: u64,
    /// Asks whether the caller wants an end.
    watch: Option<&'a dyn Watch>,
    cancelled: AtomicBool,
    used: AtomicUsize,
    /// Whether some search reached a limit.
    ran_out: AtomicBool,
}

/// A caller that may want an end.
pub trait Watch: Sync {
    /// Whether the caller wants an end. Searches call it every few thousand steps, on their own thread.
    fn wants_end(&self) -> bool;
}

impl<'a> Limits<'a> {
    /// Limits in wall time and bytes. The default limit in bytes is half of the free memory.
    pub fn new(deadline: Option<Instant>, memory: Option<usize>) -> Self {
        Self {
            deadline,
            processor: None,
            memory: memory.map_or_else(OnceLock::new, OnceLock::from),
            steps: u64::MAX,
            watch: None,
            cancelled: AtomicBool::new(false),
            used: AtomicUsize::new(0),
            ran_out: AtomicBool::new(false),
        }
    }

    /// The same limits, with a limit of steps for each search.
    #[must_use]
    pub fn with_steps(&self, steps: u64) -> Self {
        let Self { deadline, processor, watch, .. } = *self;
        Self { processor, steps, watch, ..Self::new(deadline, self.memory.get().copied()) }
    }

    /// The same limits, with a limit of processor time for each search. A busy machine does not change what a search
    /// finds within it.
    #[must_use]
    pub fn with_processor_time(self, processor: Option<Duration>) -> Self {
        Self { processor, ..self }
    }

    /// The same limits, with a caller that may want an end.
    #[must_use]
    pub fn with_watch(self, watch: &'a dyn Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Whether some search reached a limit.
    pub fn ran_out(&self) -> bool {
        self.ran_out.load(Ordering::Relaxed)
    }

    /// No limits except the address space.
    pub fn none() -> Self {
        Self::new(None, Some(usize::MAX))
    }

    /// Makes every search end at its next check.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether `cancel` was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// The reason why a search must end now, if there is one.
    pub fn exceeded(&self) -> Option<Cause> {
        if self.is_cancelled() || self.watch.is_some_and(Watch::wants_end) {
            Some(Cause::Cancelled)
        } else if self.deadline.is_some_and(|at| Instant::now() >= at) {
            Some(Cause::Timeout)
        } else if self.is_over(self.used.load(Ordering::Relaxed)) {
            Some(Cause::OutOfMemory)
        } else {
            None
        }
    }

    fn is_over(&self, used: usize) -> bool {
        match self.memory.get() {
            Some(&most) => used > most,
            None => used > SMALL_MEMORY && used > *self.memory.get_or_init(half_of_memory),
        }
    }
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `now`, which lives longer than the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    assert_eq!(failed, 0, "each thread has a clock");
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Half of the free memory in bytes; 4 GiB if it is unknown.
fn half_of_memory() -> usize {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.map_or(4 << 30, |kib| kib * 1024 / 2)
}

/// The meter of one search, on one thread: counts its steps, its processor time and its bytes.
pub struct Meter<'a> {
    limits: &'a Limits<'a>,
    stop: Option<&'a AtomicBool>,
    /// The end by the clock of this thread.
    processor_end: Option<Duration>,
    /// Model steps so far.
    pub steps: u64,
    /// Bytes besides those passed to `tick`: the memory of the other searches that take turns.
    pub beside: usize,
    next_check: u64,
    bytes: usize,
}

/// Steps between two checks of the limits.
const CHECK_EVERY: u64 = 2048;

impl<'a> Meter<'a> {
    /// A meter for shared limits; `stop` ends only this search.
    pub fn new(limits: &'a Limits<'a>, stop: Option<&'a AtomicBool>) -> Self {
        let processor_end = limits.processor.map(|most| processor_time().saturating_add(most));
        Self { limits, stop, processor_end, steps: 0, beside: 0, next_check: 0, bytes: 0 }
    }

    /// All work so far: steps, and the cost of the model's answers.
    #[inline]
    pub fn spent<M: Machine>(&self, machine: &M) -> u64 {
        self.steps + machine.spent()
    }

    /// Counts steps; returns the reason to end, if there is one. `bytes` is the memory of the search, without
    /// `beside`.
    #[inline]
    pub fn tick(&mut self, steps: u64, bytes: impl FnOnce() -> usize) -> Option<Cause> {
        self.steps += steps;
        if self.steps < self.next_check {
            return None;
        }
        self.next_check = (self.steps + CHECK_EVERY).min(self.limits.steps);
        self.account(self.beside + bytes());
        let stopped = self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
        let cause = if stopped {
            Some(Cause::Cancelled)
        } else if self.steps >= self.limits.steps {
            Some(Cause::Steps)
        } else if self.processor_end.is_some_and(|end| processor_time() >= end) {
            Some(Cause::Timeout)
        } else {
            self.limits.exceeded()
        };
        if cause.is_some() {
            self.limits.ran_out.store(true, Ordering::Relaxed);
        }
        cause
    }

    fn account(&mut self, bytes: usize) {
        if bytes >= self.bytes {
            self.limits.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.limits.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.account(0);
    }
}
