//! Slow disks: while the rule of a fault holds, syncs on a node take long.

use super::network::Key;
use super::{Kernel, Nanos, NodeId, State, ThreadId, Wait};

/// A rule on the disk of a node, and the syncs that have begun since.
#[derive(Clone)]
pub struct Slow {
    pub key: Key,
    pub node: NodeId,
    /// The mean time of a sync.
    mean: Nanos,
    since: Nanos,
    ended: u64,
    longest: Nanos,
    /// The longest sync of the node that ended before.
    pub before: Nanos,
}

/// A sync of a thread.
#[derive(Clone, Copy, Default)]
pub struct Sync {
    pub began: Nanos,
    /// Whether a rule slows it down.
    pub is_slowed: bool,
}

impl Kernel {
    /// Lets syncs on a node take long.
    pub fn slow_down(&mut self, key: Key, node: NodeId, mean: Nanos) {
        let before = self.nodes[node].longest_sync;
        self.slow.push(Slow { key, node, mean, since: self.now, ended: 0, longest: 0, before });
    }

    /// Returns the mean time of a sync that begins on a node now.
    pub(super) fn sync_mean(&self, node: NodeId) -> Nanos {
        let means = self.slow.iter().filter(|slow| slow.node == node).map(|slow| slow.mean);
        means.fold(self.nodes[node].sync_mean, Nanos::max)
    }

    /// Returns whether a rule slows down syncs on a node.
    pub(super) fn is_slow(&self, node: NodeId) -> bool {
        self.slow.iter().any(|slow| slow.node == node)
    }

    /// A sync ends: it counts for the rules that it began under, or among those without one.
    pub(super) fn count_sync(&mut self, thread: ThreadId) {
        let (node, Sync { began, is_slowed }) = (self.threads[thread].node, self.threads[thread].sync);
        let length = self.now - began;
        for slow in self.slow.iter_mut().filter(|slow| slow.node == node && slow.since <= began) {
            slow.ended += 1;
            slow.longest = slow.longest.max(length);
        }
        if !is_slowed {
            let longest = &mut self.nodes[node].longest_sync;
            *longest = length.max(*longest);
        }
    }

    /// Returns how many syncs have begun under a rule, and the longest time that one has taken so far.
    pub fn slowed(&self, slow: &Slow) -> (u64, Nanos) {
        let waits = self.threads.iter().filter(|thread| {
            thread.node == slow.node
                && thread.state == State::Blocked
                && matches!(thread.wait, Wait::Sync)
                && thread.sync.began >= slow.since
        });
        waits.fold((slow.ended, slow.longest), |(count, longest), thread| {
            (count + 1, longest.max(self.now - thread.sync.began))
        })
    }
}
