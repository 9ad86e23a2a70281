//! Removes crashed operations that cannot matter, and gives an end to crashed ones that must have happened by some
//! time.
//!
//! - Removing one is sound because a crashed operation may always be left out. It is complete because no
//!   linearization needs an operation whose effect nothing observes.
//! - A crashed operation that is the only source of an observed value must have happened before the earliest
//!   observation ended. It gets that end.

use std::collections::HashMap;

use crate::hash::FastHasher;
use crate::ops::{observes, op, Family, Ops, INF};

#[derive(Clone, Copy)]
struct Token {
    producers: u32,
    /// Observations, and each cas or crashed cas that needs it.
    consumers: u32,
    /// The earliest end of a certain observation.
    end: i64,
}

/// The operations that matter, as (index, end).
pub fn prepare(ops: &Ops, family: Family, initial: &[i64]) -> Vec<(u32, i64)> {
    let n = ops.len();
    let mut keep: Vec<bool> = (0..n).map(|i| ops.e[i] != INF || !observes(ops.f[i])).collect();
    if family == Family::Bag && !ops.f.contains(&op::DEQUEUE_EMPTY) {
        for (kept, &f) in keep.iter_mut().zip(ops.f) {
            *kept &= f != op::DEQUEUE_ANY;
        }
    }
    let mut ends = ops.e.to_vec();
    if tokens_make_sense(ops, family) && ops.e.contains(&INF) {
        tighten(ops, initial, &mut keep, &mut ends);
    }
    (0..n).filter(|&i| keep[i]).map(|i| (i as u32, ends[i])).collect()
}

fn tokens_make_sense(ops: &Ops, family: Family) -> bool {
    match family {
        Family::Register | Family::Set | Family::GrowSet | Family::Fifo | Family::Bag => true,
        Family::Sequence => {
            (0..ops.len()).all(|i| !matches!(ops.f[i], op::APPEND | op::PUT) || ops.list(i).len() == 1)
        }
        _ => false,
    }
}

fn produces(ops: &Ops, i: usize) -> Option<i64> {
    match ops.f[i] {
        op::WRITE | op::ENQUEUE | op::ADD => Some(ops.a[i]),
        op::CAS => Some(ops.b[i]),
        op::APPEND | op::PUT => ops.list(i).first().copied(),
        _ => None,
    }
}

fn each_consumed(ops: &Ops, i: usize, mut tell: impl FnMut(i64)) {
    match ops.f[i] {
        op::READ | op::CAS | op::DEQUEUE => tell(ops.a[i]),
        op::CONTAINS if ops.b[i] == 1 => tell(ops.a[i]),
        op::READ_SET | op::READ_LIST => ops.list(i).iter().for_each(|&x| tell(x)),
        _ => {}
    }
}

fn tighten(ops: &Ops, initial: &[i64], keep: &mut [bool], ends: &mut [i64]) {
    let mut tokens: HashMap<i64, Token, FastHasher> = HashMap::default();
    let blank = Token { producers: 0, consumers: 0, end: INF };
    for &x in initial {
        tokens.entry(x).or_insert(blank).producers += 1;
    }
    for i in (0..ops.len()).filter(|&i| keep[i]) {
        if let Some(x) = produces(ops, i) {
            tokens.entry(x).or_insert(blank).producers += 1;
        }
        each_consumed(ops, i, |x| {
            let token = tokens.entry(x).or_insert(blank);
            token.consumers += 1;
            token.end = token.end.min(ops.e[i]);
        });
    }
    // If a failed cas observed a difference from a value, any crashed write could be the cause.
    let may_drop = !ops.f.contains(&op::CAS_FAIL);
    let mut work: Vec<usize> = (0..ops.len()).filter(|&i| keep[i] && ops.e[i] == INF).collect();
    let mut crashed: HashMap<i64, Vec<usize>, FastHasher> = HashMap::default();
    for &i in &work {
        if let Some(x) = produces(ops, i) {
            crashed.entry(x).or_default().push(i);
        }
    }
    while let Some(i) = work.pop() {
        let Some(x) = produces(ops, i) else { continue };
        let token = tokens[&x];
        if token.consumers == 0 && may_drop && keep[i] {
            keep[i] = false;
            if ops.f[i] == op::CAS {
                let source = tokens.get_mut(&ops.a[i]).expect("it was counted");
                source.consumers -= 1;
                if source.consumers == 0 {
                    // Its crashed producers can go now, too.
                    work.extend(crashed.remove(&ops.a[i]).unwrap_or_default());
                }
            }
        } else if token.producers == 1 && token.end < INF && token.end >= ops.s[i] {
            ends[i] = token.end;
        }
    }
}
