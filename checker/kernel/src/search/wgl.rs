//! The classical search of Wing and Gong with Lowe's memory of configurations, as a second opinion.
//!
//! Nothing here is shared with the just-in-time search but the machine: operations are entries of a doubly linked list of
//! calls and returns, an operation is lifted out of it when it is linearized, a return that is met sends the search back, and
//! a set remembers which operations were linearized with which state (Horn and Kroening, FORTE 2015). Crashed operations
//! have their returns behind all others, and the search is done when only such are left.

use std::collections::HashSet;

use super::budget::{Cause, Meter};
use super::machine::{Machine, ILLEGAL};
use super::plan::Plan;
use super::Progress;
use crate::hash::FastHasher;
use crate::ops::{Ops, INF, NONE};

/// What the classical search found.
pub struct Wgl {
    /// The linearization, if there is one, or the longest part of one that was tried.
    pub order: Vec<u32>,
    /// The furthest return that was met too early.
    pub furthest: u32,
}

/// Runs the classical search; operations are given as (index, end).
pub fn wgl<M: Machine>(
    plan: &Plan,
    ops: &Ops,
    keep: &[(u32, i64)],
    machine: &mut M,
    meter: &mut Meter,
) -> (Progress, Wgl) {
    let list = List::new(ops, keep);
    let mut search = Search {
        next: list.next,
        previous: list.previous,
        left: list.must,
        linearized: vec![0; keep.len().div_ceil(64)],
        seen: HashSet::default(),
        held: 0,
    };
    let events = &list.events;
    let head = events.len();
    let mut stack: Vec<(usize, u32)> = Vec::new();
    let mut state = machine.initial();
    let mut at = search.next[head];
    let mut furthest = NONE;
    let mut furthest_at = 0;
    let mut longest: Vec<u32> = Vec::new();
    let op = |event: usize| keep[events[event].0 as usize].0;
    let progress = loop {
        if search.left == 0 {
            break Progress::Valid;
        }
        if let Some(cause) = meter.tick(1, || search.held + stack.capacity() * 16 + machine.bytes()) {
            break Progress::Stopped(cause);
        }
        let (entry, other) = events[at];
        if other == usize::MAX {
            // A return: everything before it was tried here.
            if at >= furthest_at {
                furthest_at = at;
                furthest = op(at);
                longest = stack.iter().map(|&(call, _)| op(call)).collect();
            }
            let Some((call, before)) = stack.pop() else { break Progress::Invalid };
            state = before;
            search.unlift(events, call, keep);
            at = search.next[call];
            continue;
        }
        let next = machine.step(state, plan.class[op(at) as usize]);
        if next != ILLEGAL && search.remember(entry, next) {
            stack.push((at, state));
            state = next;
            search.lift(events, at, keep);
            at = search.next[head];
        } else {
            search.forget(entry);
            at = search.next[at];
        }
    };
    let progress = if machine.failed() { Progress::Stopped(Cause::ModelFailed) } else { progress };
    let order = if matches!(progress, Progress::Valid) {
        stack.iter().map(|&(call, _)| op(call)).collect()
    } else {
        longest
    };
    (progress, Wgl { order, furthest })
}

struct List {
    /// By event: the entry, and for a call the event of its return.
    events: Vec<(u32, usize)>,
    next: Vec<usize>,
    previous: Vec<usize>,
    must: usize,
}

impl List {
    fn new(ops: &Ops, keep: &[(u32, i64)]) -> Self {
        let mut marks: Vec<(i64, bool, u32)> = Vec::with_capacity(keep.len() * 2);
        for (entry, &(i, end)) in keep.iter().enumerate() {
            marks.push((ops.s[i as usize], false, entry as u32));
            marks.push((end, true, entry as u32));
        }
        marks.sort_unstable();
        let mut calls = vec![0; keep.len()];
        let mut events: Vec<(u32, usize)> = Vec::with_capacity(marks.len());
        for (event, &(_, returns, entry)) in marks.iter().enumerate() {
            if returns {
                events[calls[entry as usize]].1 = event;
            } else {
                calls[entry as usize] = event;
            }
            events.push((entry, usize::MAX));
        }
        let n = events.len();
        let next = (0..=n).map(|i| if i == n { 0 } else { i + 1 }).collect();
        let previous = (0..=n).map(|i| if i == 0 { n } else { i - 1 }).collect();
        Self { events, next, previous, must: keep.iter().filter(|k| k.1 != INF).count() }
    }
}

struct Search {
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Operations that must happen and are not linearized.
    left: usize,
    linearized: Vec<u64>,
    seen: HashSet<Box<[u64]>, FastHasher>,
    held: usize,
}

impl Search {
    fn unlink(&mut self, event: usize) {
        let (before, after) = (self.previous[event], self.next[event]);
        self.next[before] = after;
        self.previous[after] = before;
    }

    fn relink(&mut self, event: usize) {
        let (before, after) = (self.previous[event], self.next[event]);
        self.next[before] = event;
        self.previous[after] = event;
    }

    fn lift(&mut self, events: &[(u32, usize)], call: usize, keep: &[(u32, i64)]) {
        self.unlink(call);
        self.unlink(events[call].1);
        self.left -= usize::from(keep[events[call].0 as usize].1 != INF);
    }

    fn unlift(&mut self, events: &[(u32, usize)], call: usize, keep: &[(u32, i64)]) {
        self.relink(events[call].1);
        self.relink(call);
        self.left += usize::from(keep[events[call].0 as usize].1 != INF);
        self.forget(events[call].0);
    }

    fn forget(&mut self, entry: u32) {
        self.linearized[entry as usize / 64] &= !(1 << (entry % 64));
    }

    /// Remembers the set with that entry, and the state; says whether it is new. The key leaves out what all have in front.
    fn remember(&mut self, entry: u32, state: u32) -> bool {
        self.linearized[entry as usize / 64] |= 1 << (entry % 64);
        let words = &self.linearized;
        let first = words.iter().position(|&word| word != u64::MAX).unwrap_or(words.len());
        let last = words.iter().rposition(|&word| word != 0).map_or(first, |p| (p + 1).max(first));
        let mut key = Vec::with_capacity(last - first + 1);
        key.push((first as u64) << 32 | u64::from(state));
        key.extend_from_slice(&words[first..last]);
        self.held += key.len() * 8 + 24;
        self.seen.insert(key.into_boxed_slice())
    }
}
