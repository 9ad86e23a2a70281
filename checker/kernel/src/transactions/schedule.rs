//! Decides whether events have an order in which no two transactions that hold a common key overlap.
//!
//! An event waits for others. Some transactions hold keys from their start to their end, and a key has one holder at a time. The
//! question is NP-complete (`overlaps` has the proof), so the search has a limit of steps, and its answer may be that it is open.
//! These rules make it fast for real histories:
//!
//! - An event that is no start of a holder happens as soon as it can. Nothing waits for its absence, and an end frees keys.
//! - A holder that can start, and whose end waits for nothing else, does both at once. Take any order of the rest: it stays one if
//!   both events move to its beginning, because the keys are free now and no other transaction loses a turn.
//! - So only the start of a holder whose end waits is a choice. It is none if its end would wait for itself.
//! - A state that has failed is not searched again. The events of the holders determine it.

use std::collections::HashSet;

use super::{pairs, NONE};

/// The part of the steps that the search over states has; one over pairs follows if its table has fewer words than that.
const PART: usize = 8;

/// A transaction that holds keys.
#[derive(Clone, Debug)]
pub struct Holder {
    pub start: u32,
    pub end: u32,
    pub keys: Vec<u32>,
}

/// Events, those that wait for others, and the transactions that hold keys.
pub struct Problem {
    first: Vec<u32>,
    after: Vec<u32>,
    first_before: Vec<u32>,
    before: Vec<u32>,
    pub holders: Vec<Holder>,
    pub keys: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// There is an order.
    Order,
    /// There is none.
    Contradiction,
    /// The limit was reached.
    Open,
}

impl Problem {
    /// Makes a problem of events below a number, of pairs of an event and one that waits for it, and of holders of keys below a
    /// number. The end of a holder waits for its start by one of the pairs.
    pub fn new(events: usize, pairs: &[(u32, u32)], holders: Vec<Holder>, keys: usize) -> Self {
        let (first, after) = grouped(events, pairs.iter().copied());
        let (first_before, before) = grouped(events, pairs.iter().map(|&(one, other)| (other, one)));
        Self { first, after, first_before, before, holders, keys }
    }

    /// Returns how many events and pairs there are.
    pub fn size(&self) -> usize {
        self.first.len() + self.after.len()
    }

    pub fn after(&self, event: u32) -> &[u32] {
        &self.after[self.first[event as usize] as usize..self.first[event as usize + 1] as usize]
    }

    pub fn before(&self, event: u32) -> &[u32] {
        &self.before[self.first_before[event as usize] as usize..self.first_before[event as usize + 1] as usize]
    }

    pub fn events(&self) -> usize {
        self.first.len() - 1
    }

    /// Decides the problem, and takes the steps from those that are left: by states first, and then by pairs if the table is small.
    pub fn decide(&self, left: &mut usize) -> Answer {
        let mut some = *left / PART;
        let is_small = pairs::words(self) <= some;
        *left -= some;
        let answer = Search::new(self, &mut some).run();
        *left += some;
        if answer == Answer::Open && is_small {
            return pairs::decide(self, left);
        }
        answer
    }

    /// Returns holders without an order whose number is small: without the keys of one of them there is an order, as far as the
    /// steps suffice to see that. The problem has no order.
    pub fn core(&mut self, left: &mut usize) -> Vec<u32> {
        let mut kept = Vec::new();
        for holder in 0..self.holders.len() {
            let keys = std::mem::take(&mut self.holders[holder].keys);
            if self.decide(left) != Answer::Contradiction {
                self.holders[holder].keys = keys;
                kept.push(holder as u32);
            }
        }
        kept
    }
}

/// Returns where the group of each event begins among the second events of pairs, grouped by the first ones, and these.
fn grouped(events: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> (Vec<u32>, Vec<u32>) {
    let mut first = vec![0u32; events + 1];
    for (one, _) in pairs.clone() {
        first[one as usize + 1] += 1;
    }
    for event in 0..events {
        first[event + 1] += first[event];
    }
    let mut next = first.clone();
    let mut of = vec![0u32; first[events] as usize];
    for (one, other) in pairs {
        of[next[one as usize] as usize] = other;
        next[one as usize] += 1;
    }
    (first, of)
}

struct Search<'a> {
    problem: &'a Problem,
    left: &'a mut usize,
    /// By event: how many of those that it waits for did not happen yet.
    waits: Vec<u32>,
    done: Vec<bool>,
    /// By event: the holder that it starts, and that it ends; or `NONE`.
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// By key: the holder that started and did not end; or `NONE`.
    held_by: Vec<u32>,
    happened: Vec<u32>,
    ready: Vec<u32>,
    /// By event: the last look back that came there.
    seen: Vec<u32>,
    looks: u32,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, left: &'a mut usize) -> Self {
        let events = problem.events();
        let waits: Vec<u32> = (0..events as u32).map(|event| problem.before(event).len() as u32).collect();
        let (mut starts, mut ends) = (vec![NONE; events], vec![NONE; events]);
        for (number, holder) in (0..).zip(&problem.holders).filter(|(_, holder)| !holder.keys.is_empty()) {
            starts[holder.start as usize] = number;
            ends[holder.end as usize] = number;
        }
        let ready = (0..events as u32).filter(|&event| waits[event as usize] == 0).collect();
        *left = left.saturating_sub(problem.size());
        Self {
            problem,
            left,
            waits,
            done: vec![false; events],
            starts,
            ends,
            held_by: vec![NONE; problem.keys],
            happened: Vec::with_capacity(events),
            ready,
            seen: vec![0; events],
            looks: 0,
        }
    }

    fn run(mut self) -> Answer {
        let events = self.done.len();
        let mut failed: HashSet<Vec<u64>> = HashSet::new();
        let mut choices: Vec<(usize, usize)> = Vec::new(); // how much had happened, and the next holder to try
        self.settle();
        loop {
            if self.happened.len() == events {
                return Answer::Order;
            }
            if *self.left == 0 {
                return Answer::Open;
            }
            let state = self.state();
            *self.left = self.left.saturating_sub(state.len());
            if failed.insert(state) {
                choices.push((self.happened.len(), 0));
            }
            let chosen = loop {
                let Some((happened, next)) = choices.last_mut() else { return Answer::Contradiction };
                let (happened, from) = (*happened, *next);
                self.undo(happened);
                if let Some(holder) = self.choice(from) {
                    choices.last_mut().expect("it was there").1 = holder + 1;
                    break holder;
                }
                choices.pop();
            };
            self.happen(self.problem.holders[chosen].start);
            self.settle();
        }
    }

    /// Returns the next holder that can start and need not wait for itself.
    fn choice(&mut self, from: usize) -> Option<usize> {
        (from..self.problem.holders.len()).find(|&holder| self.can_start(holder) && !self.waits_for_itself(holder))
    }

    fn can_start(&mut self, holder: usize) -> bool {
        let Holder { start, keys, .. } = &self.problem.holders[holder];
        *self.left = self.left.saturating_sub(1);
        !keys.is_empty()
            && !self.done[*start as usize]
            && self.waits[*start as usize] == 0
            && keys.iter().all(|&key| self.held_by[key as usize] == NONE)
    }

    /// Returns whether the end of a holder that starts now waits, through others, for the keys of this holder.
    fn waits_for_itself(&mut self, holder: usize) -> bool {
        let problem = self.problem;
        let own = &problem.holders[holder];
        self.looks += 1;
        let mut open = vec![own.end];
        while let Some(event) = open.pop() {
            let mut more: Vec<u32> = problem.before(event).to_vec();
            if let Some(other) = problem.holders.get(self.starts[event as usize] as usize) {
                if other.keys.iter().any(|key| own.keys.contains(key)) {
                    return true;
                }
                let holding = other.keys.iter().map(|&key| self.held_by[key as usize]).filter(|&by| by != NONE);
                more.extend(holding.map(|by| problem.holders[by as usize].end));
            }
            *self.left = self.left.saturating_sub(1 + more.len());
            for before in more {
                let known = &mut self.seen[before as usize];
                if before != own.start && !self.done[before as usize] && *known != self.looks {
                    *known = self.looks;
                    open.push(before);
                }
            }
        }
        false
    }

    /// Lets everything happen that is no choice.
    fn settle(&mut self) {
        let mut changes = true;
        while changes {
            changes = false;
            self.drain();
            for holder in 0..self.problem.holders.len() {
                let Holder { start, end, .. } = self.problem.holders[holder];
                if self.waits[end as usize] == 1 && self.can_start(holder) {
                    self.happen(start);
                    self.drain();
                    changes = true;
                }
            }
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.ready.pop() {
            if self.starts[event as usize] == NONE {
                self.happen(event);
            }
        }
    }

    fn happen(&mut self, event: u32) {
        self.done[event as usize] = true;
        self.happened.push(event);
        self.hold(event, false);
        let after = self.problem.after(event);
        *self.left = self.left.saturating_sub(1 + after.len());
        for &next in after {
            self.waits[next as usize] -= 1;
            if self.waits[next as usize] == 0 {
                self.ready.push(next);
            }
        }
    }

    fn undo(&mut self, happened: usize) {
        for event in self.happened.split_off(happened).into_iter().rev() {
            self.done[event as usize] = false;
            self.hold(event, true);
            for &next in self.problem.after(event) {
                self.waits[next as usize] += 1;
            }
        }
    }

    /// Changes who holds the keys of a holder, if an event starts or ends it.
    fn hold(&mut self, event: u32, undo: bool) {
        for (holder, holds) in [(self.starts[event as usize], !undo), (self.ends[event as usize], undo)] {
            if let Some(Holder { keys, .. }) = self.problem.holders.get(holder as usize) {
                for &key in keys {
                    self.held_by[key as usize] = if holds { holder } else { NONE };
                }
            }
        }
    }

    /// Returns which events of the holders happened.
    fn state(&self) -> Vec<u64> {
        let holders = &self.problem.holders;
        let mut bits = vec![0u64; (holders.len() * 2).div_ceil(64)];
        for (number, holder) in holders.iter().enumerate() {
            for (at, event) in [(number * 2, holder.start), (number * 2 + 1, holder.end)] {
                bits[at / 64] |= u64::from(self.done[event as usize]) << (at % 64);
            }
        }
        bits
    }
}
