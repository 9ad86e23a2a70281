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

/// A classical search that can be continued.
pub struct Wgl<'h> {
    plan: &'h Plan,
    keep: &'h [(u32, i64)],
    /// By event: the entry, and for a call the event of its return.
    events: Vec<(u32, usize)>,
    left: Left,
    /// Calls that were lifted out, with the state before each.
    stack: Vec<(usize, u32)>,
    state: u32,
    /// The event to look at next; none before the first step.
    at: Option<usize>,
    furthest: usize,
    longest: Vec<u32>,
}

impl<'h> Wgl<'h> {
    /// A search from the initial state; operations are given as (index, end).
    pub fn new(plan: &'h Plan, ops: &Ops, keep: &'h [(u32, i64)]) -> Self {
        let (events, left) = lay_out(ops, keep);
        Self { plan, keep, events, left, stack: Vec::new(), state: 0, at: None, furthest: 0, longest: Vec::new() }
    }

    /// Goes on for about that many steps.
    pub fn run<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, budget: u64) -> Progress {
        let end = meter.steps.saturating_add(budget);
        let progress = self.go_on(machine, meter, end);
        if machine.failed() {
            Progress::Stopped(Cause::ModelFailed)
        } else {
            progress
        }
    }

    fn go_on<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, end: u64) -> Progress {
        let head = self.events.len();
        let mut at = self.at.unwrap_or_else(|| {
            self.state = machine.initial();
            self.left.next[head]
        });
        loop {
            self.at = Some(at);
            if self.left.must == 0 {
                return Progress::Valid;
            }
            if meter.steps >= end {
                return Progress::Pending;
            }
            if let Some(cause) = meter.tick(1, || self.bytes() + machine.bytes()) {
                return Progress::Stopped(cause);
            }
            let (entry, other) = self.events[at];
            if other == usize::MAX {
                // A return: everything before it was tried here.
                if at >= self.furthest {
                    self.furthest = at;
                    self.longest = self.order();
                }
                let Some((call, before)) = self.stack.pop() else { return Progress::Invalid };
                self.state = before;
                self.left.unlift(&self.events, call, self.keep);
                at = self.left.next[call];
                continue;
            }
            let next = machine.step(self.state, self.plan.class[self.op(at) as usize]);
            if next != ILLEGAL && self.left.remember(entry, next) {
                self.stack.push((at, self.state));
                self.state = next;
                self.left.lift(&self.events, at, self.keep);
                at = self.left.next[head];
            } else {
                self.left.forget(entry);
                at = self.left.next[at];
            }
        }
    }

    /// The operations linearized so far, in order: of a valid history, a linearization.
    pub fn order(&self) -> Vec<u32> {
        self.stack.iter().map(|&(call, _)| self.op(call)).collect()
    }

    /// The longest part of a linearization that was tried and failed.
    pub fn longest(&self) -> &[u32] {
        &self.longest
    }

    /// The furthest return that was met too early.
    pub fn furthest(&self) -> u32 {
        if self.furthest == 0 {
            NONE
        } else {
            self.op(self.furthest)
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.left.held + self.stack.capacity() * 16
    }

    fn op(&self, event: usize) -> u32 {
        self.keep[self.events[event].0 as usize].0
    }
}

/// Returns the events, and their list.
fn lay_out(ops: &Ops, keep: &[(u32, i64)]) -> (Vec<(u32, usize)>, Left) {
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
    let left = Left {
        next: (0..=n).map(|i| if i == n { 0 } else { i + 1 }).collect(),
        previous: (0..=n).map(|i| if i == 0 { n } else { i - 1 }).collect(),
        must: keep.iter().filter(|k| k.1 != INF).count(),
        linearized: vec![0; keep.len().div_ceil(64)],
        seen: HashSet::default(),
        held: 0,
    };
    (events, left)
}

/// The list of what is not linearized yet, and what was seen.
struct Left {
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Operations that must happen and are not linearized.
    must: usize,
    linearized: Vec<u64>,
    seen: HashSet<Box<[u64]>, FastHasher>,
    held: usize,
}

impl Left {
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
        self.must -= usize::from(keep[events[call].0 as usize].1 != INF);
    }

    fn unlift(&mut self, events: &[(u32, usize)], call: usize, keep: &[(u32, i64)]) {
        self.relink(events[call].1);
        self.relink(call);
        self.must += usize::from(keep[events[call].0 as usize].1 != INF);
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
