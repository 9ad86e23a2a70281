//! Locks whose users alternate between acquire and release: a hold is a block, and two holds must not certainly
//! overlap.
//!
//! If every process releases only what it acquired, a lock without an owner allows exactly the histories of one with
//! an owner: the first release after an acquire can only be by its holder.

use super::Map;
use crate::ops::{op, Kind, Near, Ops, INF, NONE};

struct Hold {
    /// The lock is certainly held between these.
    from: i64,
    to: i64,
    acquire: u32,
    release: u32,
}

/// Decides; unsuited if a process does not alternate between acquire and release, or if the lock is taken initially.
pub fn check(ops: &Ops, initial: i64, want_order: bool) -> Near {
    if initial != 0 {
        return Near::Unsuited("the lock is held at the beginning");
    }
    let mut order: Vec<u32> = (0..ops.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (ops.s[i as usize], ops.e[i as usize], i));
    let mut last: Map<u32> = Map::default();
    let mut hold_of: Map<usize> = Map::default();
    let mut holds: Vec<Hold> = Vec::new();
    for &i in &order {
        let at = i as usize;
        let before = last.insert(ops.a[at], i);
        let turns = match before {
            None => ops.f[at] == op::ACQUIRE,
            Some(before) => ops.f[before as usize] != ops.f[at] && ops.e[before as usize] < ops.s[at],
        };
        if !turns {
            return Near::Unsuited("a process does not acquire and release by turns");
        }
        if ops.f[at] == op::RELEASE {
            let hold = &mut holds[hold_of[&ops.a[at]]];
            hold.to = ops.s[at];
            hold.release = i;
        } else if ops.e[at] != INF {
            hold_of.insert(ops.a[at], holds.len());
            holds.push(Hold { from: ops.e[at], to: INF, acquire: i, release: NONE });
        }
    }
    holds.sort_unstable_by_key(|hold| (hold.from, hold.from < hold.to));
    for pair in holds.windows(2) {
        if pair[0].to > pair[1].from {
            return Near::invalid(
                Kind::Overlap,
                &[pair[0].acquire, pair[1].acquire, pair[0].release, pair[1].release],
            );
        }
    }
    let all = || holds.iter().flat_map(|hold| [hold.acquire, hold.release]).filter(|&i| i != NONE).collect();
    Near::Valid(want_order.then(all))
}
