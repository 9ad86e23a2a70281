//! `missed-update`, against update atomic: a transaction writes after another one, and by a read it misses a write of that one.
//!
//! Under update atomic, of two transactions that write one key, the later one sees all of the earlier one (Cerone, Bernardi and Gotsman,
//! CONCUR 2015). So the later one must not read an older version of any key than the earlier one wrote. Without this, without
//! fractured reads and without cycles of ww and wr, each transaction sees those that it must, and any order that ww and wr agree with is
//! one of the model. Appends that nobody read have no order among each other here.
//!
//! The time is linear in the reads and writes, but quadratic in those of one transaction.

use std::collections::HashMap;

use super::accesses::{Accesses, AFTER_INITIAL};
use super::graph::{Edge, RW, WW};
use super::visibility::Walks;
use super::NONE;

pub const MISSED: &str = "missed-update";

/// A transaction that writes two keys, or one: the place of its write of the first key, and that of the second one.
#[derive(Clone, Copy)]
struct Pair {
    at: u32,
    other: u32,
    row: u32,
    elem: u32,
    other_elem: u32,
}

/// Adds each transaction that misses a write of one that it writes after, once.
pub fn missed(accesses: &Accesses, found: &mut Walks) {
    let mut pairs: HashMap<(u32, u32), Vec<Pair>> = HashMap::new();
    for row in 0..accesses.rows() {
        let writes = accesses.last_writes(row);
        for first in writes.iter().filter(|write| write.at != NONE && write.at != AFTER_INITIAL) {
            for other in &writes {
                let pair = Pair { at: first.at, other: other.at, row, elem: first.elem, other_elem: other.elem };
                pairs.entry((first.key, other.key)).or_default().push(pair);
            }
        }
    }
    for some in pairs.values_mut() {
        some.sort_unstable_by_key(|pair| pair.at);
        for place in 1..some.len() {
            // Each has the greatest second place up to its own.
            let (best, own) = (some[place - 1], some[place]);
            if best.other > own.other {
                some[place] = Pair { at: own.at, ..best };
            }
        }
    }
    for row in 0..accesses.rows() {
        let own = accesses.reads(row);
        let writes = if own.is_empty() { Vec::new() } else { accesses.last_writes(row) };
        let hit = writes.iter().find_map(|write| {
            own.iter().find_map(|read| {
                let some = pairs.get(&(write.key, read.key))?;
                let before = some.partition_point(|pair| pair.at < write.at);
                let pair = some[..before].last().filter(|pair| pair.other >= read.count && pair.row != row)?;
                Some((*write, *read, *pair))
            })
        });
        if let Some((write, read, pair)) = hit {
            found.add(MISSED, 2, row, || {
                let (before, after) = (read.version, pair.other_elem);
                vec![
                    Edge { from: row, to: pair.row, kind: RW, key: read.key, before, after },
                    Edge { from: pair.row, to: row, kind: WW, key: write.key, before: pair.elem, after: write.elem },
                ]
            });
        }
    }
}
