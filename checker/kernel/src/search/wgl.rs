//! The classical search of Wing and Gong with Lowe's memory of configurations, as a second opinion.
//!
//! It shares only the machine with the just-in-time search. Operations are entries of a doubly linked list of calls
//! and returns. Linearizing an operation removes it from the list. A return that the search meets sends it back. A
//! memory has the sets of linearized operations with their states (Horn and Kroening, FORTE 2015). Crashed operations
//! have no return; the search ends when only crashed ones are left.
//!
//! Two additions keep it exact:
//!
//! - **Equal operations.** Take two equal operations, of which the first was called no later and ended before the
//!   second. The first goes first. *Proof.* Suppose that a linearization has the second one first, and exchange them.
//!   Each takes a place after both calls and before both ends, so real time is respected, and the states are the
//!   same. A crashed operation never ends.
//! - **Short keys.** The key of a configuration omits the prefix that all configurations share. Operations that
//!   return are numbered in order of their calls, so the difference is in a few words. Crashed operations have words
//!   of their own.

use std::hash::Hasher;

use super::budget::{Cause, Meter};
use super::machine::{Machine, ILLEGAL};
use super::pace::Pace;
use super::plan::Plan;
use super::Progress;
use crate::hash::Mixer;
use crate::ops::{Ops, INF, NONE};

/// A classical search that can be interrupted and continued.
pub struct Wgl {
    events: Vec<Event>,
    /// By entry: the operation. Operations that return come first, in order of their calls; `NONE` fills their last
    /// word.
    op_of: Vec<u32>,
    /// By entry: the class.
    class_of: Vec<u32>,
    /// By entry: an equal operation that goes first, or `NONE`.
    first: Vec<u32>,
    left: Left,
    /// Linearized calls, with the state before each.
    stack: Vec<(u32, u32)>,
    state: u32,
    /// The next event; None before the first step.
    at: Option<u32>,
    furthest: usize,
    longest: Longest,
    /// The largest number of linearized operations so far.
    most: usize,
    /// Its speed.
    pub pace: Pace,
}

/// A call or a return.
#[derive(Clone, Copy)]
struct Event {
    entry: u32,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Of an operation that returns, with its return.
    Call(u32),
    /// Of an operation that never returns.
    Crashed,
    Return,
}

impl Wgl {
    /// A search from the initial state. Operations are pairs (index, end).
    pub fn new(plan: &Plan, ops: &Ops, keep: &[(u32, i64)]) -> Self {
        let timed = |&(i, end): &(u32, i64)| (ops.s[i as usize], end, i);
        let (mut returning, mut crashed): (Vec<_>, Vec<_>) = keep.iter().map(timed).partition(|each| each.1 != INF);
        returning.sort_unstable();
        crashed.sort_unstable();
        let must = returning.len();
        let first_crashed = must.div_ceil(64) * 64;
        let entries = (0..must).chain(first_crashed..first_crashed + crashed.len()).map(|entry| entry as u32);
        let mut op_of = vec![NONE; first_crashed + crashed.len()];
        let mut class_of = op_of.clone();
        // Of returns at one position, the return of the operation with the higher number is later, as everywhere.
        let mut marks: Vec<(i64, bool, u32, u32)> = Vec::with_capacity(returning.len() * 2 + crashed.len());
        for (entry, &(start, end, op)) in entries.zip(returning.iter().chain(&crashed)) {
            op_of[entry as usize] = op;
            class_of[entry as usize] = plan.class[op as usize];
            marks.push((start, false, op, entry));
            if end != INF {
                marks.push((end, true, op, entry));
            }
        }
        marks.sort_unstable();
        let mut calls = vec![0; op_of.len()];
        let mut events: Vec<Event> = Vec::with_capacity(marks.len());
        for (event, &(_, returns, _, entry)) in marks.iter().enumerate() {
            if returns {
                events[calls[entry as usize]].kind = Kind::Call(event as u32);
            } else {
                calls[entry as usize] = event;
            }
            events.push(Event { entry, kind: if returns { Kind::Return } else { Kind::Crashed } });
        }
        let mut first = alike(plan, &returning, 0);
        first.resize(first_crashed, NONE);
        first.extend(alike(plan, &crashed, first_crashed as u32));
        Self {
            op_of,
            class_of,
            first,
            left: Left::new(events.len(), must, first_crashed, crashed.len()),
            events,
            stack: Vec::new(),
            state: 0,
            at: None,
            furthest: 0,
            longest: Longest::default(),
            most: 0,
            pace: Pace::default(),
        }
    }

    /// Continues for about `budget` units of work: steps, and the time of the model's answers.
    pub fn run<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, budget: u64) -> Progress {
        let before = meter.spent(machine);
        let progress = self.go_on(machine, meter, before.saturating_add(budget));
        self.pace.went(meter.spent(machine) - before, self.most, self.op_of.len());
        if machine.failed() {
            Progress::Stopped(Cause::ModelFailed)
        } else {
            progress
        }
    }

    fn go_on<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, end: u64) -> Progress {
        let mut at = self.at.unwrap_or_else(|| {
            self.state = machine.initial();
            self.left.head()
        });
        loop {
            self.at = Some(at);
            if self.left.must == 0 {
                return Progress::Valid;
            }
            if meter.spent(machine) >= end {
                return Progress::Pending;
            }
            if let Some(cause) = meter.tick(1, || self.bytes() + machine.bytes()) {
                return Progress::Stopped(cause);
            }
            let Event { entry, kind } = self.events[at as usize];
            if let Kind::Return = kind {
                // Every operation before it was tried here.
                if at as usize >= self.furthest {
                    self.furthest = at as usize;
                    self.longest.take(&self.stack);
                }
                let Some((call, before)) = self.stack.pop() else { return Progress::Invalid };
                self.longest.shared = self.longest.shared.min(self.stack.len());
                self.state = before;
                self.left.unlift(call, self.events[call as usize]);
                at = self.left.next[call as usize];
                continue;
            }
            let first = self.first[entry as usize];
            let waits = first != NONE && !self.left.has(first as usize);
            let next = if waits { ILLEGAL } else { machine.step(self.state, self.class_of[entry as usize]) };
            if next != ILLEGAL && self.left.remember(entry as usize, next) {
                self.stack.push((at, self.state));
                self.most = self.most.max(self.stack.len());
                self.state = next;
                self.left.lift(at, kind);
                at = self.left.head();
            } else {
                at = self.left.next[at as usize];
            }
        }
    }

    /// The operations linearized so far, in order. For a valid history, this is a linearization.
    pub fn order(&self) -> Vec<u32> {
        self.operations(&self.stack)
    }

    /// The longest partial linearization that was tried and failed.
    pub fn longest(&self) -> Vec<u32> {
        self.operations(&self.longest.lifted)
    }

    fn operations(&self, lifted: &[(u32, u32)]) -> Vec<u32> {
        lifted.iter().map(|&(call, _)| self.op_of[self.events[call as usize].entry as usize]).collect()
    }

    /// The furthest return that the search met.
    pub fn furthest(&self) -> u32 {
        if self.furthest == 0 {
            NONE
        } else {
            self.op_of[self.events[self.furthest].entry as usize]
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.left.bytes()
            + self.events.capacity() * size_of::<Event>()
            + self.op_of.capacity() * 12
            + (self.stack.capacity() + self.longest.lifted.capacity()) * 8
    }
}

/// For each operation, an equal one that goes first: the last to end of those that end before it and after its call.
/// Operations are (start, end, operation) in order of their calls. Their entries are numbered from `base` on.
fn alike(plan: &Plan, called: &[(i64, i64, u32)], base: u32) -> Vec<u32> {
    // Of returns at one position, the return of the operation with the higher number is later.
    let mut open: Vec<Vec<(i64, u32, u32)>> = vec![Vec::new(); plan.classes];
    let mut first = Vec::with_capacity(called.len());
    for (entry, &(start, end, op)) in (base..).zip(called) {
        let open = &mut open[plan.class[op as usize] as usize];
        open.retain(|&(other, ..)| other >= start);
        let before = open.iter().filter(|&&(other, number, _)| (other, number) < (end, op)).max();
        first.push(before.map_or(NONE, |&(_, _, entry)| entry));
        if end == INF {
            open.clear(); // this one goes after all of them
        }
        open.push((end, op, entry));
    }
    first
}

/// The longest partial linearization that failed. Its first operations may still be on the stack.
#[derive(Default)]
struct Longest {
    lifted: Vec<(u32, u32)>,
    shared: usize,
}

impl Longest {
    fn take(&mut self, stack: &[(u32, u32)]) {
        self.lifted.truncate(self.shared);
        self.lifted.extend_from_slice(&stack[self.shared..]);
        self.shared = stack.len();
    }
}

/// The list of operations that are not linearized yet, and the memory.
struct Left {
    /// By event, and one more: the linked list, which begins and ends at the last entry.
    next: Vec<u32>,
    previous: Vec<u32>,
    /// The number of operations that must happen and are not linearized.
    must: usize,
    /// A bit for each operation: first those that return, then the crashed ones from a new word on.
    linearized: Vec<u64>,
    first_crashed: usize,
    /// The words of those that return: all before `full` are full, and all from `empty` on are empty.
    full: usize,
    empty: usize,
    seen: Seen,
}

impl Left {
    fn new(events: usize, returning: usize, first_crashed: usize, crashed: usize) -> Self {
        let n = events as u32;
        Self {
            next: (0..=n).map(|i| if i == n { 0 } else { i + 1 }).collect(),
            previous: (0..=n).map(|i| if i == 0 { n } else { i - 1 }).collect(),
            must: returning,
            linearized: vec![0; first_crashed / 64 + crashed.div_ceil(64)],
            first_crashed,
            full: 0,
            empty: 0,
            seen: Seen::default(),
        }
    }

    fn head(&self) -> u32 {
        self.next[self.next.len() - 1]
    }

    /// Removes an operation whose bit `remember` has set.
    #[inline]
    fn lift(&mut self, call: u32, kind: Kind) {
        self.unlink(call);
        if let Kind::Call(returns) = kind {
            self.unlink(returns);
            self.must -= 1;
        }
    }

    #[inline]
    fn unlift(&mut self, call: u32, Event { entry, kind }: Event) {
        if let Kind::Call(returns) = kind {
            self.relink(returns);
            self.must += 1;
        }
        self.relink(call);
        self.clear(entry as usize);
    }

    #[inline]
    fn unlink(&mut self, event: u32) {
        let (before, after) = (self.previous[event as usize], self.next[event as usize]);
        self.next[before as usize] = after;
        self.previous[after as usize] = before;
    }

    #[inline]
    fn relink(&mut self, event: u32) {
        let (before, after) = (self.previous[event as usize], self.next[event as usize]);
        self.next[before as usize] = event;
        self.previous[after as usize] = event;
    }

    #[inline]
    fn has(&self, bit: usize) -> bool {
        self.linearized[bit / 64] >> (bit % 64) & 1 == 1
    }

    #[inline]
    fn set(&mut self, bit: usize) {
        self.linearized[bit / 64] |= 1 << (bit % 64);
        if bit < self.first_crashed {
            self.empty = self.empty.max(bit / 64 + 1);
            while self.full < self.empty && self.linearized[self.full] == u64::MAX {
                self.full += 1;
            }
        }
    }

    #[inline]
    fn clear(&mut self, bit: usize) {
        self.linearized[bit / 64] &= !(1 << (bit % 64));
        if bit < self.first_crashed {
            self.full = self.full.min(bit / 64);
            while self.empty > 0 && self.linearized[self.empty - 1] == 0 {
                self.empty -= 1;
            }
        }
    }

    /// Stores the linearized set with an entry added, and the state. Returns whether the pair is new. If so, the
    /// entry stays linearized.
    #[inline]
    fn remember(&mut self, entry: usize, state: u32) -> bool {
        self.set(entry);
        let head = (self.full as u64) << 32 | u64::from(state);
        let crashed = self.first_crashed / 64;
        let returned = &self.linearized[self.full..self.empty.max(self.full)];
        let fresh = self.seen.insert(head, returned, &self.linearized[crashed..]);
        if !fresh {
            self.clear(entry);
        }
        fresh
    }

    fn bytes(&self) -> usize {
        self.seen.bytes() + self.next.capacity() * 8 + self.linearized.capacity() * 8
    }
}

/// A set of keys. The words of all keys are in one array, one key after the other.
#[derive(Default)]
struct Seen {
    words: Vec<u64>,
    /// By key: the end of its words.
    ends: Vec<usize>,
    /// Open addressing: half of the hash, and the number of the key.
    slots: Vec<(u32, u32)>,
}

const LEAST_SLOTS: usize = 1 << 10;

impl Seen {
    /// Inserts a key. Returns whether it is new.
    #[inline]
    fn insert(&mut self, head: u64, body: &[u64], tail: &[u64]) -> bool {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut mixer = Mixer::default();
        mixer.write_u64(head);
        for &word in body.iter().chain(tail) {
            mixer.write_u64(word);
        }
        let hash = (mixer.finish() ^ mixer.finish() >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let (known, number) = self.slots[place];
            if number == NONE {
                self.slots[place] = (hash, self.ends.len() as u32);
                self.words.push(head);
                self.words.extend_from_slice(body);
                self.words.extend_from_slice(tail);
                self.ends.push(self.words.len());
                return true;
            }
            if known == hash && self.is_key(number as usize, head, body, tail) {
                return false;
            }
            place = (place + 1) & mask;
        }
    }

    #[inline]
    fn is_key(&self, number: usize, head: u64, body: &[u64], tail: &[u64]) -> bool {
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        let key = &self.words[begin..self.ends[number]];
        let split = key.len() - tail.len();
        key[0] == head && &key[1..split] == body && &key[split..] == tail
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 4).max(LEAST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![(0, NONE); size]);
        for (hash, number) in old.into_iter().filter(|slot| slot.1 != NONE) {
            let mut place = hash as usize & (size - 1);
            while self.slots[place].1 != NONE {
                place = (place + 1) & (size - 1);
            }
            self.slots[place] = (hash, number);
        }
    }

    fn bytes(&self) -> usize {
        (self.words.capacity() + self.ends.capacity() + self.slots.capacity()) * 8
    }
}
