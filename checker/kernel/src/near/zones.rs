//! Read/write register with unique written values: Gibbons and Korach's zones (SIAM J. Comput. 26(4), 1997).
//!
//! A value's cluster is its write and its reads; `m` is its minimum end, `M` its maximum start. The history is
//! linearizable iff every read has a write that does not start after the end of the read, and no two clusters
//! certainly overlap. This analyzer is for very long histories: it visits each operation twice, stores 32 bytes for
//! each value, and sorts 16 bytes for each value.

use std::collections::HashSet;

use super::blocks::{self, Conflict, Item};
use crate::hash::FastHasher;
use crate::ops::{op, Kind, Near, Ops, INF, NEG, NONE};

/// Whether there are only reads and writes.
pub fn suits(ops: &Ops) -> bool {
    ops.f.iter().all(|&f| f <= op::WRITE)
}

const INITIAL: u32 = 0;

/// The cluster of one value.
#[derive(Clone, Copy)]
struct Cluster {
    value: i64,
    /// The minimum end.
    m: i64,
    /// The maximum start.
    big: i64,
    /// The start of the write.
    written: i64,
}

struct Clusters {
    index: Index,
    list: Vec<Cluster>,
}

/// Maps a value to its cluster: an array if values are dense, else a hash table.
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
        let mut clusters = Self { index, list: Vec::with_capacity(writes) };
        clusters.add(initial, NEG, NEG);
        clusters
    }

    /// Adds an operation to a cluster; returns whether its value is new.
    fn add(&mut self, value: i64, s: i64, e: i64) -> bool {
        let fresh = self.list.len() as u32;
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
                    if self.list[slots[at] as usize].value == value {
                        return false;
                    }
                    at = (at + 1) & (slots.len() - 1);
                }
                slots[at] = fresh;
            }
        }
        self.list.push(Cluster { value, m: e, big: s, written: s });
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
                while slots[at] != NONE && self.list[slots[at] as usize].value != value {
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

/// A history up to and including one return: later returns are open, and later starts are left out.
#[derive(Clone, Copy)]
struct Until<'a> {
    ops: &'a Ops<'a>,
    end: (i64, u32),
}

impl Until<'_> {
    #[inline]
    fn e(&self, i: usize) -> i64 {
        let e = self.ops.e[i];
        if (e, i as u32) > self.end {
            INF
        } else {
            e
        }
    }

    /// Whether it is a write that has begun.
    #[inline]
    fn writes(&self, i: usize) -> bool {
        self.ops.f[i] == op::WRITE && self.ops.s[i] <= self.end.0
    }

    /// Whether it is a read that has returned.
    #[inline]
    fn reads(&self, i: usize) -> bool {
        self.ops.f[i] == op::READ && self.e(i) != INF
    }
}

/// Decides; unsuited if a value is written twice, or the initial value is written.
pub fn check(ops: &Ops, initial: i64, want_order: bool) -> Near {
    check_until(ops, initial, (INF, NONE), want_order)
}

/// Decides the history up to and including one return; of returns at the same position, those with higher numbers are
/// later.
pub fn check_until(ops: &Ops, initial: i64, end: (i64, u32), want_order: bool) -> Near {
    let until = Until { ops, end };
    let mut clusters = Clusters::new(ops, initial);
    for i in 0..ops.len() {
        if until.writes(i) && !clusters.add(ops.a[i], ops.s[i], until.e(i)) {
            return Near::Unsuited("a value is written twice, or the initial value is written");
        }
    }
    let mut worst: Option<(i64, u32, bool)> = None;
    for i in 0..ops.len() {
        if !until.reads(i) {
            continue;
        }
        let (s, e) = (ops.s[i], ops.e[i]);
        let c = clusters.find(ops.a[i]);
        if c == NONE || e < clusters.list[c as usize].written {
            if worst.is_none_or(|(end, _, _)| e < end) {
                worst = Some((e, i as u32, c == NONE));
            }
            continue;
        }
        let cluster = &mut clusters.list[c as usize];
        cluster.m = cluster.m.min(e);
        cluster.big = cluster.big.max(s);
    }
    if let Some((_, read, phantom)) = worst {
        if phantom {
            return Near::invalid(Kind::Phantom, &[read]);
        }
        let write = writer(ops, ops.a[read as usize]);
        return Near::invalid(Kind::Future, &[write, read]);
    }
    if want_order {
        return with_order(&until, initial, &clusters);
    }
    let pair = sweep(clusters.list);
    pair.map_or(Near::Valid(None), |(u, v)| conflict(&until, initial, u, v))
}

/// Sorts the zones and looks for two that overlap; returns their values. Consumes the clusters.
fn sweep(mut list: Vec<Cluster>) -> Option<(i64, i64)> {
    // From here on, `m` is the low end of the zone, `big` is the high end, and `written` is 1 for a forward zone.
    list.retain_mut(|cluster| {
        let forward = cluster.m < cluster.big;
        if !forward {
            std::mem::swap(&mut cluster.m, &mut cluster.big);
        }
        cluster.written = i64::from(forward);
        // A value that was never read, and perhaps never written, can stand anywhere.
        cluster.big != INF
    });
    sort(&mut list);
    let mut best: Option<&Cluster> = None;
    for zone in &list {
        let forward = zone.written == 1;
        if let Some(before) = best.filter(|before| before.big > if forward { zone.m } else { zone.big }) {
            return Some((before.value, zone.value));
        }
        if forward && best.is_none_or(|before| zone.big > before.big) {
            best = Some(zone);
        }
    }
    None
}

/// Sorts by (low, backward first). If operations come sorted by start, zones are nearly sorted. So each zone is first
/// inserted from behind; if that takes too long, all are sorted at once.
fn sort(zones: &mut [Cluster]) {
    let key = |zone: &Cluster| (zone.m, zone.written);
    let mut credit = 32 * zones.len();
    for i in 1..zones.len() {
        let zone = zones[i];
        let mut at = i;
        while at > 0 && key(&zones[at - 1]) > key(&zone) {
            zones[at] = zones[at - 1];
            at -= 1;
        }
        zones[at] = zone;
        if i - at > credit {
            zones.sort_unstable_by_key(key);
            return;
        }
        credit -= i - at;
    }
}

fn writer(ops: &Ops, value: i64) -> u32 {
    (0..ops.len()).find(|&i| ops.f[i] == op::WRITE && ops.a[i] == value).map_or(NONE, |i| i as u32)
}

/// The operations by which the clusters of two values precede each other, and the writes of these.
fn conflict(until: &Until, initial: i64, u: i64, v: i64) -> Near {
    let ops = until.ops;
    let edge = |value: i64| {
        let (mut ends, mut starts) = (NONE, NONE);
        for i in 0..ops.len() {
            if ops.a[i] != value || !(until.writes(i) || until.reads(i)) {
                continue;
            }
            if ends == NONE || until.e(i) < until.e(ends as usize) {
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

fn with_order(until: &Until, initial: i64, clusters: &Clusters) -> Near {
    let ops = until.ops;
    let mut items = Vec::with_capacity(ops.len());
    let never_read = clusters.list.iter().filter(|cluster| cluster.m == INF).map(|cluster| cluster.value);
    let unread: HashSet<i64, FastHasher> = never_read.collect();
    for i in 0..ops.len() {
        if !(until.writes(i) || until.reads(i)) || unread.contains(&ops.a[i]) {
            continue;
        }
        let block = clusters.find(ops.a[i]);
        items.push(Item { block, position: u32::from(ops.f[i] == op::READ), op: i as u32 });
    }
    match blocks::order(ops, &mut items, INITIAL, true) {
        Ok(order) => Near::Valid(order),
        Err(Conflict::Blocks(_, v, _, u)) => conflict(until, initial, ops.a[u as usize], ops.a[v as usize]),
        // A read that ends before its write starts was found earlier.
        Err(Conflict::Chain(write, read)) => Near::invalid(Kind::Future, &[write, read]),
    }
}
