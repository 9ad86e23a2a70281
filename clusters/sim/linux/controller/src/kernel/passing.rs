//! Messages between nodes that the program outside waits for: the n-th on some links that has a text. From then on, all messages
//! between nodes are held for a moment, as in other simulated worlds, so that a fault can begin before a node reacts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Nanos, NodeId, MILLISECOND};

const HELD: Nanos = 5 * MILLISECOND;

/// A wait.
#[derive(Clone)]
pub struct Awaited {
    pub links: BTreeSet<(NodeId, NodeId)>,
    /// How many messages are still to come.
    pub left: u64,
    pub has: Vec<u8>,
}

impl Awaited {
    fn takes(&mut self, from: NodeId, to: NodeId, bytes: &[u8]) -> bool {
        let fits = || self.has.is_empty() || bytes.windows(self.has.len()).any(|part| part == self.has);
        if bytes.is_empty() || self.left == 0 || !self.links.contains(&(from, to)) || !fits() {
            return false;
        }
        self.left -= 1;
        self.left == 0
    }
}

/// A message that ended a wait.
#[derive(Clone)]
pub struct Passed {
    pub wait: u64,
    pub from: NodeId,
    pub to: NodeId,
    pub bytes: Vec<u8>,
}

/// The waits of a run.
#[derive(Clone, Default)]
pub struct Passing {
    pub awaited: BTreeMap<u64, Awaited>,
    pub passed: Vec<Passed>,
    held_until: Nanos,
}

impl Passing {
    /// A node sends a message to another one; without bytes of a program, it does not count. Returns for how long it is held.
    pub(super) fn sent(&mut self, now: Nanos, from: NodeId, to: NodeId, bytes: &[u8]) -> Nanos {
        let held = self.held_until.saturating_sub(now);
        for (wait, awaited) in &mut self.awaited {
            if awaited.takes(from, to, bytes) {
                self.held_until = now + HELD;
                self.passed.push(Passed { wait: *wait, from, to, bytes: bytes.to_owned() });
            }
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::{Awaited, Passing, HELD};

    #[test]
    fn the_nth_message_of_a_link_with_a_text_ends_a_wait_and_the_next_are_held() {
        let mut passing = Passing::default();
        passing.awaited.insert(7, Awaited { links: [(0, 1)].into(), left: 2, has: b"vote".to_vec() });
        let messages: [(usize, usize, &[u8]); 6] =
            [(0, 1, b"a vote"), (1, 0, b"vote"), (0, 1, b"other"), (0, 1, b""), (0, 1, b"votes"), (2, 0, b"vote")];
        let held: Vec<_> =
            messages.iter().zip(10..).map(|((from, to, bytes), now)| passing.sent(now, *from, *to, bytes)).collect();
        assert_eq!(held, [0, 0, 0, 0, 0, HELD - 1]);
        let passed: Vec<_> = passing.passed.iter().map(|it| (it.wait, it.from, it.to, it.bytes.as_slice())).collect();
        assert_eq!(passed, [(7, 0, 1, b"votes".as_slice())]);
        assert_eq!(passing.sent(14 + HELD, 0, 1, b"votes"), 0);
        assert_eq!(passing.passed.len(), 1);
    }
}
