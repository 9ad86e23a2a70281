//! Threads that stall for long, as on a machine where the kernel or a hypervisor takes their processor away.

use super::{scaled, Nanos, MILLISECOND, SECOND};
use crate::chance::Chance;

const LONGEST: f64 = 1000.0; // as a multiple of the shortest stall
const SHORTEST: Nanos = MILLISECOND;
const MOST_CALLS: u64 = 1000;

/// Draws when a thread stalls, and for how long.
pub struct Stalls {
    chance: Chance,
    rate: f64,
    next: Nanos,
    calls: u64,
}

impl Stalls {
    /// Makes stalls of a rate: the mean number in a second.
    pub fn new(seed: u64, rate: f64) -> Self {
        let mut stalls = Self { chance: Chance::new(seed, "stalls"), rate, next: Nanos::MAX, calls: 0 };
        stalls.plan(0);
        stalls
    }

    /// Draws the next time. From then on, the thread stalls that makes the n-th call: else it would mostly be a thread that a timer wakes.
    fn plan(&mut self, now: Nanos) {
        if self.rate > 0.0 {
            self.next = now + scaled(SECOND, self.chance.exponential() / self.rate);
            self.calls = self.chance.below(MOST_CALLS);
        }
    }

    /// Returns the time from which on a thread may stall.
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// A thread is about to make a call. Returns for how long it stalls before.
    pub fn before_call(&mut self, now: Nanos) -> Option<Nanos> {
        if now < self.next {
            return None;
        }
        if self.calls > 0 {
            self.calls -= 1;
            return None;
        }
        let length = scaled(SHORTEST, LONGEST.powf(self.chance.share()));
        self.plan(now);
        Some(length)
    }
}

#[cfg(test)]
mod tests {
    use super::{Stalls, MILLISECOND, SECOND};

    #[test]
    fn stalls_come_at_their_rate_and_take_their_time() {
        let mut stalls = Stalls::new(1, 5.0);
        let lengths: Vec<_> = (0..1_000_000).filter_map(|call| stalls.before_call(call * 100_000)).collect();
        assert!((400..600).contains(&lengths.len()), "{}", lengths.len());
        assert!(lengths.iter().all(|length| (MILLISECOND..=SECOND).contains(length)));
        assert!(
            lengths.iter().any(|length| *length > SECOND / 2)
                && lengths.iter().any(|length| *length < 3 * MILLISECOND)
        );
    }

    #[test]
    fn without_a_rate_nothing_stalls() {
        let mut stalls = Stalls::new(1, 0.0);
        assert!((0..1000).all(|second| stalls.before_call(second * SECOND).is_none()));
    }
}
