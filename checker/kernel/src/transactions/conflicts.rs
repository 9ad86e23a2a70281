//! Anti-dependencies between transactions that write a common key, for snapshot isolation.
//!
//! Under snapshot isolation a transaction has a start and a commit. It reads what was committed before its start. Of two
//! transactions that write a common key, one commits before the other one starts. So the edges order these events:
//!
//! - ww, wr, and the order of processes or of real time, from A to B: A commits before B starts.
//! - rw from A to B: A starts before B commits, because A did not see B's version.
//! - rw from A to B, and both write some key: B does not commit before A starts, so A commits before B starts.
//!
//! A cycle of events is a cycle of transactions without two neighbouring edges of the second kind. The third kind counts as the
//! first one here: it has the kind `CONFLICT`. If the order of the common key is known, it adds nothing: then a chain of ww
//! leads from A to B, or from B to A, which makes a cycle with the rw edge. So only the keys matter whose writers have no
//! known order. In lists these are the writers of appends that no read returned.
//!
//! A pair of such writers without a direct anti-dependency has no order here, though the other transactions may leave it none:
//! `overlaps` decides that.

use std::collections::BTreeMap;

use super::graph::{Dependencies, Edge, Fan, CONFLICT, RW};

/// By row: the keys without a known order that it writes, or other numbers; sorted.
pub struct Keys {
    first: Vec<u32>,
    of: Vec<u32>,
}

impl Keys {
    fn new(rows: usize, groups: &[Vec<(u32, u32)>]) -> Self {
        let several = |group: &&Vec<(u32, u32)>| group.iter().any(|(row, _)| *row != group[0].0);
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (key, group) in groups.iter().enumerate().filter(|(_, group)| several(group)) {
            pairs.extend(group.iter().map(|&(row, _)| (row, key as u32)));
        }
        Self::of_pairs(rows, pairs)
    }

    /// Makes it from pairs of a row and a number.
    pub fn of_pairs(rows: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        let mut first = vec![0u32; if pairs.is_empty() { 0 } else { rows + 1 }];
        for &(row, _) in &pairs {
            first[row as usize + 1] += 1;
        }
        for row in 1..first.len() {
            first[row] += first[row - 1];
        }
        Self { first, of: pairs.into_iter().map(|(_, key)| key).collect() }
    }

    pub fn of(&self, row: u32) -> &[u32] {
        &self.of[self.first[row as usize] as usize..self.first[row as usize + 1] as usize]
    }

    fn has(&self, row: u32, key: u32) -> bool {
        self.of(row).binary_search(&key).is_ok()
    }

    fn share(&self, one: u32, other: u32) -> bool {
        let (few, many) = if self.of(one).len() < self.of(other).len() { (one, other) } else { (other, one) };
        self.of(few).iter().any(|&key| self.has(many, key))
    }
}

/// Adds the conflicts among the anti-dependencies.
///
/// `groups` has for each key the writers without a known order, each with its version; a row may be there several times. The
/// time is linear in the dependencies, and for the readers of a fan in the square of the keys of one transaction.
pub fn conflicts(rows: usize, groups: &[Vec<(u32, u32)>], found: &mut Dependencies) {
    let keys = Keys::new(rows, groups);
    if keys.of.is_empty() {
        return;
    }
    let direct = found.edges.iter().filter(|edge| edge.kind == RW && keys.share(edge.from, edge.to));
    let direct: Vec<Edge> = direct.map(|edge| Edge { kind: CONFLICT, ..*edge }).collect();
    found.edges.extend(direct);
    let mut more = Vec::new();
    for fan in &found.fans {
        let mut writers = fan.writers.clone();
        writers.sort_unstable();
        let is_writer = |row: u32| writers.binary_search_by_key(&row, |writer| writer.0).is_ok();
        let readers = fan.readers.iter().copied();
        let (own, others) = readers.partition::<Vec<(u32, u32)>, _>(|reader| is_writer(reader.0));
        let mut by_key: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
        for reader in others {
            for &key in keys.of(reader.0) {
                by_key.entry(key).or_default().push(reader);
            }
        }
        if !own.is_empty() {
            more.push(Fan { kind: CONFLICT, key: fan.key, readers: own, writers: writers.clone() });
        }
        for (key, readers) in by_key {
            let group = &groups[key as usize];
            let both: Vec<(u32, u32)> = if group.len() < writers.len() {
                let place = |row: u32| writers.binary_search_by_key(&row, |writer| writer.0).ok();
                group.iter().filter_map(|&(row, _)| place(row).map(|place| writers[place])).collect()
            } else {
                writers.iter().copied().filter(|&(row, _)| keys.has(row, key)).collect()
            };
            if !both.is_empty() {
                more.push(Fan { kind: CONFLICT, key: fan.key, readers, writers: both });
            }
        }
    }
    for fan in more {
        found.add_fan(fan);
    }
}
