//! Threads that stall for long, as on a machine where the kernel or a hypervisor takes their processor away.

use super::{scaled, Nanos, NodeId, MILLISECOND, SECOND};
use crate::chance::Chance;

const LONGEST: f64 = 1000.0; // as a multiple of the shortest stall
const SHORTEST: Nanos = MILLISECOND;
const MOST_CALLS: u64 = 1000;

/// A stall that somebody asks for who waits for a step of a disk.
#[derive(Clone)]
pub struct Asked {
    pub wait: u64,
    pub node: NodeId,
    /// From when on calls of the node count.
    pub from: Nanos,
    /// Whether only reads of the wall clock count. The runtime of Go reads the other one much more often, and code of its own.
    pub wall: bool,
    /// How many calls go on before the one that stalls.
    pub left: u64,
    pub length: Nanos,
}

/// Draws when a thread stalls, and for how long.
#[derive(Clone)]
pub struct Stalls {
    chance: Chance,
    rate: f64,
    drawn: Nanos,
    calls: u64,
    pub asked: Vec<Asked>,
}

impl Stalls {
    /// Makes stalls of a rate: the mean number in a second.
    pub fn new(seed: u64, rate: f64) -> Self {
        let chance = Chance::new(seed, "stalls");
        let mut stalls = Self { chance, rate, drawn: Nanos::MAX, calls: 0, asked: Vec::new() };
        stalls.plan(0);
        stalls
    }

    /// Draws by another seed from now on.
    pub fn reseed(&mut self, seed: u64, now: Nanos) {
        self.chance = Chance::new(seed, "stalls");
        self.plan(now);
    }

    /// Draws the next time. From then on, the thread stalls that makes the n-th call: else it would mostly be a thread that a timer wakes.
    fn plan(&mut self, now: Nanos) {
        if self.rate > 0.0 {
            self.drawn = now + scaled(SECOND, self.chance.exponential() / self.rate);
            self.calls = self.chance.below(MOST_CALLS);
        }
    }

    /// Returns the time from which on a thread may stall.
    pub fn next(&self) -> Nanos {
        self.asked.iter().map(|asked| asked.from).fold(self.drawn, Nanos::min)
    }

    /// A thread of a node is about to make a call, which may be a read of the wall clock. Returns for how long it stalls before.
    pub fn before_call(&mut self, node: NodeId, now: Nanos, wall: bool) -> Option<Nanos> {
        self.drawn_before_call(now).or_else(|| self.asked_before_call(node, now, wall))
    }

    fn drawn_before_call(&mut self, now: Nanos) -> Option<Nanos> {
        if now < self.drawn {
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

    fn asked_before_call(&mut self, node: NodeId, now: Nanos, wall: bool) -> Option<Nanos> {
        for place in 0..self.asked.len() {
            let asked = &mut self.asked[place];
            if asked.node != node || now < asked.from || (asked.wall && !wall) {
                continue;
            }
            if asked.left == 0 {
                return Some(self.asked.remove(place).length);
            }
            asked.left -= 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Nanos, Stalls, MILLISECOND, SECOND};

    #[test]
    fn stalls_come_at_their_rate_and_take_their_time() {
        let mut stalls = Stalls::new(1, 5.0);
        let lengths: Vec<_> =
            (0..1_000_000).filter_map(|call| stalls.before_call(0, call * 100_000, false)).collect();
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
        assert!((0..1000).all(|second| stalls.before_call(0, second * SECOND, true).is_none()));
    }

    #[test]
    fn an_asked_stall_comes_once_at_its_call_of_its_node() {
        let mut stalls = Stalls::new(1, 0.0);
        stalls.asked.push(Asked { wait: 7, node: 1, from: 50, wall: false, left: 2, length: SECOND });
        assert_eq!(stalls.next(), 50);
        let calls = [(1, 49), (1, 50), (0, 51), (1, 52), (0, 53), (1, 54), (1, 55)];
        let stalled: Vec<_> = calls.map(|(node, now)| stalls.before_call(node, now, false)).into();
        assert_eq!(stalled, [None, None, None, None, None, Some(SECOND), None]);
        assert_eq!(stalls.next(), Nanos::MAX);
        stalls.asked.push(Asked { wait: 7, node: 1, from: 50, wall: true, left: 0, length: SECOND });
        assert_eq!([false, true].map(|wall| stalls.before_call(1, 60, wall)), [None, Some(SECOND)]);
    }
}
