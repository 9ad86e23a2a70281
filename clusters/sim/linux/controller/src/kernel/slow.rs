//! Slow disks: while the rule of a fault holds, syncs on a node take long.

use super::network::Key;
use super::{Kernel, Nanos, NodeId, State, ThreadId, Wait};

/// A rule on the disk of a node, and the syncs that have begun since.
pub struct Slow {
    pub key: Key,
    pub node: NodeId,
    /// The mean time of a sync.
    mean: Nanos,
    since: Nanos,
    ended: u64,
    longest: Nanos,
}

impl Kernel {
    /// Lets syncs on a node take long.
    pub fn slow_down(&mut self, key: Key, node: NodeId, mean: Nanos) {
        self.slow.push(Slow { key, node, mean, since: self.now, ended: 0, longest: 0 });
    }

    /// Returns the mean time of a sync that begins on a node now.
    pub(super) fn sync_mean(&self, node: NodeId) -> Nanos {
        let means = self.slow.iter().filter(|slow| slow.node == node).map(|slow| slow.mean);
        means.fold(self.nodes[node].sync_mean, Nanos::max)
    }

    /// A sync ends: it counts for the rules that it began under.
    pub(super) fn count_sync(&mut self, thread: ThreadId) {
        let (node, began) = (self.threads[thread].node, self.threads[thread].sync_began);
        for slow in self.slow.iter_mut().filter(|slow| slow.node == node && slow.since <= began) {
            slow.ended += 1;
            slow.longest = slow.longest.max(self.now - began);
        }
    }

    /// Returns how many syncs have begun under a rule, and the longest time that one has taken so far.
    pub fn slowed(&self, slow: &Slow) -> (u64, Nanos) {
        let waits = self.threads.iter().filter(|thread| {
            thread.node == slow.node
                && thread.state == State::Blocked
                && matches!(thread.wait, Wait::Sync)
                && thread.sync_began >= slow.since
        });
        waits.fold((slow.ended, slow.longest), |(count, longest), thread| {
            (count + 1, longest.max(self.now - thread.sync_began))
        })
    }
}
