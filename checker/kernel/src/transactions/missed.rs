//! `missed-update`, against update atomic: a transaction writes after another one, and by a read it misses a write of that one.
//!
//! Under update atomic, of two transactions that write one key, the later one sees all of the earlier one (Cerone, Bernardi and Gotsman,
//! CONCUR 2015). So the later one must not read an older version of any key than the earlier one wrote. Without this, without
//! fractured reads and without cycles of ww and wr, each transaction sees those that it must, and any order that ww and wr agree with is
//! one of the model. Appends that nobody read have no order among each other here.
//!
//! The time is linear in the reads and writes, but quadratic in those of one transaction.

use std::collections::HashMap;

use super::graph::{Edge, RW, WW};
use super::visibility::{Reads, Walks};
use super::{FAIL, NONE};

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
pub fn missed(reads: &Reads<'_>, found: &mut Walks) {
    let history = reads.history;
    let mut pairs: HashMap<(u32, u32), Vec<Pair>> = HashMap::new();
    for row in (0..history.len() as u32).filter(|&row| history.kind[row as usize] != FAIL) {
        let writes = writes_of(reads, row);
        for &(key, elem) in &writes {
            let at = reads.place[elem as usize];
            for &(other_key, other_elem) in writes.iter().filter(|_| at != NONE) {
                let other = reads.place[other_elem as usize];
                pairs.entry((key, other_key)).or_default().push(Pair { at, other, row, elem, other_elem });
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
    for row in 0..history.len() as u32 {
        let own = reads.of(row);
        let writes = if own.is_empty() { Vec::new() } else { writes_of(reads, row) };
        let hit = writes.iter().find_map(|&(key, elem)| {
            own.iter().find_map(|read| {
                let some = pairs.get(&(key, read.key))?;
                let before = some.partition_point(|pair| pair.at < reads.place[elem as usize]);
                let pair = some[..before].last().filter(|pair| pair.other >= read.count && pair.row != row)?;
                Some((key, elem, *read, *pair))
            })
        });
        if let Some((key, elem, read, pair)) = hit {
            found.add(MISSED, 2, || {
                vec![
                    Edge {
                        from: row,
                        to: pair.row,
                        kind: RW,
                        key: read.key,
                        before: read.last,
                        after: pair.other_elem,
                    },
                    Edge { from: pair.row, to: row, kind: WW, key, before: pair.elem, after: elem },
                ]
            });
        }
    }
}

/// Returns the last append of a transaction to each key.
fn writes_of(reads: &Reads<'_>, row: u32) -> Vec<(u32, u32)> {
    let mops = reads.history.of(row as usize);
    let mut found: Vec<(u32, u32)> = mops.iter().filter(|mop| !mop.is_read).map(|mop| (mop.key, mop.elem)).collect();
    found.reverse();
    found.sort_by_key(|write| write.0);
    found.dedup_by_key(|write| write.0);
    found
}
