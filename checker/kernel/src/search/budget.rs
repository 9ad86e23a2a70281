//! The limits of a search: time, memory, and cancellation by the caller.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use super::machine::Machine;

/// Why a search ended without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The time limit.
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

/// Limits for all searches of one call.
pub struct Limits {
    deadline: Option<Instant>,
    memory: usize,
    /// The limit for one search.
    steps: u64,
    cancelled: AtomicBool,
    used: AtomicUsize,
    /// Whether some search reached a limit.
    ran_out: AtomicBool,
}

impl Limits {
    /// Limits in wall time and bytes.
    pub fn new(deadline: Option<Instant>, memory: usize) -> Self {
        Self {
            deadline,
            memory,
            steps: u64::MAX,
            cancelled: AtomicBool::new(false),
            used: AtomicUsize::new(0),
            ran_out: AtomicBool::new(false),
        }
    }

    /// The same limits, with a limit of steps for each search.
    #[must_use]
    pub fn with_steps(&self, steps: u64) -> Self {
        Self { steps, ..Self::new(self.deadline, self.memory) }
    }

    /// Whether some search reached a limit.
    pub fn ran_out(&self) -> bool {
        self.ran_out.load(Ordering::Relaxed)
    }

    /// No limits except the address space.
    pub fn none() -> Self {
        Self::new(None, usize::MAX)
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
        if self.is_cancelled() {
            Some(Cause::Cancelled)
        } else if self.deadline.is_some_and(|at| Instant::now() >= at) {
            Some(Cause::Timeout)
        } else if self.used.load(Ordering::Relaxed) > self.memory {
            Some(Cause::OutOfMemory)
        } else {
            None
        }
    }
}

/// The meter of one search: counts its steps and its bytes.
pub struct Meter<'a> {
    limits: &'a Limits,
    stop: Option<&'a AtomicBool>,
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
    pub fn new(limits: &'a Limits, stop: Option<&'a AtomicBool>) -> Self {
        Self { limits, stop, steps: 0, beside: 0, next_check: 0, bytes: 0 }
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
