//! Read/write register with unique written values: Gibbons and Korach's zones (SIAM J. Comput. 26(4), 1997).
//!
//! A value's cluster is its write and its reads; `m` is its least end, `M` its greatest start. The history is linearizable iff
//! every read has a write that does not start after the read ended, and no two clusters certainly overlap. This is the path
//! for very long histories: it touches each operation twice, keeps 32 bytes a value, and sorts 16 bytes a value.

use super::blocks::{self, Conflict, Item};
use super::Map;
use crate::ops::{op, Kind, Near, Ops, INF, NEG, NONE};

/// Whether there are only reads and writes.
pub fn suits(ops: &Ops) -> bool {
    ops.f.iter().all(|&f| f <= op::WRITE)
}

const INITIAL: u32 = 0;

struct Clusters {
    index: Index,
    value: Vec<i64>,
    /// Least end.
    m: Vec<i64>,
    /// Greatest start.
    big: Vec<i64>,
    /// Start of the write.
    written: Vec<i64>,
}

/// From a value to its cluster: an array where values are dense, else a hash table.
enum Index {
    Dense { least: i64, clusters: Vec<u32> },
    Hashed { slots: Vec<u32>, shift: u32 },
}

impl Clusters {
    fn new(ops: &Ops, initial: i64) -> Self {
        let (mut least, mut greatest, mut writes) = (initial, initial, 1_usize);
        for i in 0..ops.len() {
            if ops.f[i] == op::WRITE {
                writes += 1;
                least = least.min(ops.a[i]);
                greatest = greatest.max(ops.a[i]);
            }
        }
        let span = greatest.wrapping_sub(least) as u64;
        let index = if span < 4 * writes as u64 + 64 {
            Index::Dense { least, clusters: vec![NONE; span as usize + 1] }
        } else {
            let size = (writes * 2).next_power_of_two();
            Index::Hashed { slots: vec![NONE; size], shift: 64 - size.trailing_zeros() }
        };
        let mut clusters = Self {
            index,
            value: Vec::with_capacity(writes),
            m: Vec::with_capacity(writes),
            big: Vec::with_capacity(writes),
            written: Vec::with_capacity(writes),
        };
        clusters.add(initial, NEG, NEG);
        clusters
    }

    /// Adds a cluster; says whether its value is new.
    fn add(&mut self, value: i64, s: i64, e: i64) -> bool {
        let fresh = self.value.len() as u32;
        match &mut self.index {
            Index::Dense { least, clusters } => {
                let slot = &mut clusters[value.wrapping_sub(*least) as usize];
                if *slot != NONE {
                    return false;
                }
                *slot = fresh;
            }
            Index::Hashed { slots, shift } => {
                let mut at = place(value, *shift);
                while slots[at] != NONE {
                    if self.value[slots[at] as usize] == value {
                        return false;
                    }
                    at = (at + 1) & (slots.len() - 1);
                }
                slots[at] = fresh;
            }
        }
        self.value.push(value);
        self.m.push(e);
        self.big.push(s);
        self.written.push(s);
        true
    }

    #[inline]
    fn find(&self, value: i64) -> u32 {
        match &self.index {
            Index::Dense { least, clusters } => {
                let at = value.wrapping_sub(*least) as u64;
                if at < clusters.len() as u64 {
                    clusters[at as usize]
                } else {
                    NONE
                }
            }
            Index::Hashed { slots, shift } => {
                let mut at = place(value, *shift);
                while slots[at] != NONE && self.value[slots[at] as usize] != value {
                    at = (at + 1) & (slots.len() - 1);
                }
                slots[at]
            }
        }
    }
}

#[inline]
fn place(value: i64, shift: u32) -> usize {
    if shift == 64 {
        return 0;
    }
    ((value as u64 ^ (value as u64 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// Decides; unsuited if a value is written twice or is the initial one.
pub fn check(ops: &Ops, initial: i64, want_order: bool) -> Near {
    let mut clusters = Clusters::new(ops, initial);
    for i in 0..ops.len() {
        if ops.f[i] == op::WRITE && !clusters.add(ops.a[i], ops.s[i], ops.e[i]) {
            return Near::Unsuited("a value is written twice, or the initial value is written");
        }
    }
    let mut worst: Option<(i64, u32, bool)> = None;
    for i in 0..ops.len() {
        let (s, e) = (ops.s[i], ops.e[i]);
        if ops.f[i] != op::READ || e == INF {
            continue;
        }
        let c = clusters.find(ops.a[i]);
        if c == NONE || e < clusters.written[c as usize] {
            if worst.is_none_or(|(end, _, _)| e < end) {
                worst = Some((e, i as u32, c == NONE));
            }
            continue;
        }
        let c = c as usize;
        clusters.m[c] = clusters.m[c].min(e);
        clusters.big[c] = clusters.big[c].max(s);
    }
    if let Some((_, read, phantom)) = worst {
        if phantom {
            return Near::invalid(Kind::Phantom, &[read]);
        }
        let write = writer(ops, ops.a[read as usize]);
        return Near::invalid(Kind::Future, &[write, read]);
    }
    if want_order {
        return with_order(ops, initial, &clusters);
    }
    let pair = sweep(&mut clusters);
    pair.map_or(Near::Valid(None), |(u, v)| conflict(ops, initial, u, v))
}

/// Orders the zones and looks for two that overlap; returns their values. Uses up the clusters.
fn sweep(clusters: &mut Clusters) -> Option<(i64, i64)> {
    let count = clusters.value.len();
    // (low, high, forward) in one word each: the least bit of the first tells the direction, backward first.
    let mut zones: Vec<(i64, i64, u32)> = Vec::with_capacity(count);
    for c in 0..count {
        let (m, big) = (clusters.m[c], clusters.big[c]);
        if m == INF {
            continue;
        }
        zones.push(if m < big { (m, big, c as u32 | FORWARD) } else { (big, m, c as u32) });
    }
    clusters.index = Index::Dense { least: 0, clusters: Vec::new() };
    sort(&mut zones);
    let mut best = (NEG, NONE);
    for &(low, high, mark) in &zones {
        let forward = mark & FORWARD != 0;
        if best.0 > if forward { low } else { high } {
            let c = mark & !FORWARD;
            return Some((clusters.value[best.1 as usize], clusters.value[c as usize]));
        }
        if forward && high > best.0 {
            best = (high, mark & !FORWARD);
        }
    }
    None
}

const FORWARD: u32 = 1 << 31;

/// Sorts by (low, backward first). Zones come nearly in that order when operations come in the order of their starts.
fn sort(zones: &mut [(i64, i64, u32)]) {
    // The number's top bit is the direction, so it breaks ties rightly.
    zones.sort_unstable_by_key(|zone| (zone.0, zone.2 & FORWARD));
}

fn writer(ops: &Ops, value: i64) -> u32 {
    (0..ops.len()).find(|&i| ops.f[i] == op::WRITE && ops.a[i] == value).map_or(NONE, |i| i as u32)
}

/// The operations by which the clusters of two values precede each other, and their writes.
fn conflict(ops: &Ops, initial: i64, u: i64, v: i64) -> Near {
    let edge = |value: i64| {
        let (mut ends, mut starts) = (NONE, NONE);
        for i in 0..ops.len() {
            if ops.a[i] != value || (ops.f[i] == op::READ && ops.e[i] == INF) {
                continue;
            }
            if ends == NONE || ops.e[i] < ops.e[ends as usize] {
                ends = i as u32;
            }
            if starts == NONE || ops.s[i] > ops.s[starts as usize] {
                starts = i as u32;
            }
        }
        (if value == initial { NONE } else { ends }, starts)
    };
    let ((ue, us), (ve, vs)) = (edge(u), edge(v));
    Near::invalid(Kind::Stale, &[ue, vs, ve, us, writer(ops, u), writer(ops, v)])
}

fn with_order(ops: &Ops, initial: i64, clusters: &Clusters) -> Near {
    let mut items = Vec::with_capacity(ops.len());
    let mut unread: Map<()> = Map::default();
    for c in 0..clusters.value.len() {
        if clusters.m[c] == INF {
            unread.insert(clusters.value[c], ());
        }
    }
    for i in 0..ops.len() {
        if (ops.f[i] == op::READ && ops.e[i] == INF) || unread.contains_key(&ops.a[i]) {
            continue;
        }
        let block = clusters.find(ops.a[i]);
        items.push(Item { block, position: u32::from(ops.f[i] == op::READ), op: i as u32 });
    }
    match blocks::order(ops, &mut items, INITIAL, true) {
        Ok(order) => Near::Valid(order),
        Err(Conflict::Blocks(_, v, _, u)) => conflict(ops, initial, ops.a[u as usize], ops.a[v as usize]),
        // A read that ends before its write starts was found before.
        Err(Conflict::Chain(write, read)) => Near::invalid(Kind::Future, &[write, read]),
    }
}
