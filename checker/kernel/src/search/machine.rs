//! Sequential specifications as machines over small numbers: states and operation classes.

use std::collections::HashMap;

use super::automaton::Automaton;
use super::budget::{Cause, Meter};
use crate::hash::FastHasher;
use crate::models;
use crate::ops::{op, Family, Ops};

/// The result of an illegal step.
pub const ILLEGAL: u32 = u32::MAX;

/// A deterministic sequential object.
pub trait Machine {
    /// The initial state.
    fn initial(&self) -> u32;
    /// The state after an operation of a class; `ILLEGAL` if the step is illegal.
    fn step(&mut self, state: u32, class: u32) -> u32;
    /// Whether operations of a class never change the state.
    fn observer(&self, class: u32) -> bool;
    /// Whether a class has the same result in every state.
    fn blind(&self, class: u32) -> bool;
    /// Whether every mutator overwrites the whole state. Then a crashed one matters only to an observer of its
    /// result.
    fn overwrites(&self) -> bool;
    /// Whether a state can still lead to an observer of a class without a reset in between.
    fn viable(&mut self, state: u32, class: u32) -> bool;
    /// Whether `viable` can return false.
    fn looks_ahead(&self) -> bool;
    /// Whether operations of a class make `viable` meaningless.
    fn resets(&self, class: u32) -> bool;
    /// Whether the model's own code has failed, so that no result is valid.
    fn failed(&self) -> bool;
    /// All states that operations of its classes can reach, with all steps, if they are few.
    ///
    /// Asks the model's code at most `asks` times. The next call continues from there.
    fn closure(&mut self, asks: u64, meter: &mut Meter) -> Closure;
    /// The time of one answer of the model's code, in steps of a search (approximate).
    fn cost(&self) -> u64;
    /// Whether it asks a model for each step and can list the model's states.
    fn is_table(&self) -> bool;
    /// The number of questions to the model's code.
    fn asked(&self) -> u64;
    /// The time of its answers that no meter has counted, in steps of a search (approximate).
    fn spent(&self) -> u64;
    /// The first path to a state: classes from the initial state on.
    fn path(&self, state: u32) -> Vec<u32>;
    /// Bytes held.
    fn bytes(&self) -> usize;
}

/// The result of `Machine::closure`.
pub enum Closure {
    /// All states.
    Complete(Automaton),
    /// There are more states than `asks` allowed to find.
    Unfinished,
    /// There are more states than the limit.
    Never,
    /// A limit or a cancellation ended the search.
    Stopped(Cause),
}

/// A cell with read, write, cas and failed cas; also locks.
pub struct Register {
    /// By class: opcode, argument, argument, as value numbers.
    classes: Vec<(u8, u32, u32)>,
    initial: u32,
    /// By value number: a class that leads there, if any, and the value before it.
    reached: Vec<(u32, u32)>,
}

impl Register {
    /// A machine for classes given as opcodes and values.
    pub fn new(classes: &[(u8, i64, i64)], initial: i64) -> Self {
        let mut numbers: HashMap<i64, u32, FastHasher> = HashMap::default();
        let mut number = |value: i64| {
            let next = numbers.len() as u32;
            *numbers.entry(value).or_insert(next)
        };
        let initial = number(initial);
        let classes: Vec<_> = classes.iter().map(|&(f, a, b)| (f, number(a), number(b))).collect();
        let mut reached = vec![(ILLEGAL, ILLEGAL); numbers.len()];
        for (class, &(f, a, b)) in classes.iter().enumerate() {
            if f == op::WRITE {
                reached[a as usize] = (class as u32, ILLEGAL);
            } else if f == op::CAS && reached[b as usize].0 == ILLEGAL {
                reached[b as usize] = (class as u32, a);
            }
        }
        Self { classes, initial, reached }
    }
}

impl Machine for Register {
    fn initial(&self) -> u32 {
        self.initial
    }
    #[inline]
    fn step(&mut self, state: u32, class: u32) -> u32 {
        let (f, a, b) = self.classes[class as usize];
        match f {
            op::WRITE => a,
            op::READ if state == a => state,
            op::CAS if state == a => b,
            op::CAS_FAIL if state != a => state,
            _ => ILLEGAL,
        }
    }
    #[inline]
    fn observer(&self, class: u32) -> bool {
        matches!(self.classes[class as usize].0, op::READ | op::CAS_FAIL)
    }
    #[inline]
    fn blind(&self, class: u32) -> bool {
        self.classes[class as usize].0 == op::WRITE
    }
    fn overwrites(&self) -> bool {
        true
    }
    fn viable(&mut self, _: u32, _: u32) -> bool {
        true
    }
    fn looks_ahead(&self) -> bool {
        false
    }
    fn resets(&self, _: u32) -> bool {
        false
    }
    fn failed(&self) -> bool {
        false
    }
    fn closure(&mut self, _: u64, _: &mut Meter) -> Closure {
        Closure::Never
    }
    fn cost(&self) -> u64 {
        1
    }
    fn is_table(&self) -> bool {
        false
    }
    fn asked(&self) -> u64 {
        0
    }
    fn spent(&self) -> u64 {
        0
    }
    fn path(&self, state: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = state;
        while at != self.initial && path.len() <= self.reached.len() {
            let (class, from) = self.reached[at as usize];
            if class == ILLEGAL {
                break;
            }
            path.push(class);
            if from == ILLEGAL {
                break;
            }
            at = from;
        }
        path.reverse();
        path
    }
    fn bytes(&self) -> usize {
        self.classes.len() * 12 + self.reached.len() * 8
    }
}

/// Answers the questions of a `Table`.
pub trait Oracle {
    /// The number of the state after an operation of a class; `ILLEGAL`; None if the model's code failed.
    fn ask(&mut self, state: u32, class: u32) -> Option<u32>;
    /// See `Machine`.
    fn observer(&self, class: u32) -> bool;
    /// See `Machine`.
    fn viable(&mut self, _state: u32, _class: u32) -> bool {
        true
    }
    /// See `Machine`.
    fn looks_ahead(&self) -> bool {
        false
    }
    /// See `Machine`.
    fn resets(&self, _class: u32) -> bool {
        false
    }
    /// See `Machine`.
    fn cost(&self) -> u64;
    /// Bytes held.
    fn bytes(&self) -> usize;
}

/// A machine that asks its oracle once for each state and class.
pub struct Table<O> {
    oracle: O,
    classes: usize,
    dense: Vec<u32>,
    sparse: HashMap<u64, u32, FastHasher>,
    viable: HashMap<u64, bool, FastHasher>,
    /// By state: the state and the class of the first step to it.
    origin: Vec<(u32, u32)>,
    /// The number of questions to the oracle, and the number of these for a closure, which counts its answers as
    /// steps.
    asked: u64,
    counted: u64,
    cost: u64,
    /// The number of states all of whose steps are known.
    explored: usize,
    failed: bool,
}

/// The limits of a closure: states, entries of its table, and bytes of its states.
const MOST_STATES: usize = 1 << 16;
const MOST_ENTRIES: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;
const UNASKED: u32 = u32::MAX - 1;
const DENSE_CLASSES: usize = 256;

impl<O: Oracle> Table<O> {
    /// A table over `classes` classes. State 0 is the initial one.
    pub fn new(oracle: O, classes: usize) -> Self {
        Self {
            cost: oracle.cost(),
            oracle,
            classes,
            dense: Vec::new(),
            sparse: HashMap::default(),
            viable: HashMap::default(),
            origin: vec![(ILLEGAL, ILLEGAL)],
            asked: 0,
            counted: 0,
            explored: 0,
            failed: false,
        }
    }

    fn ask(&mut self, state: u32, class: u32) -> u32 {
        if self.failed {
            return ILLEGAL;
        }
        self.asked += 1;
        let Some(next) = self.oracle.ask(state, class) else {
            self.failed = true;
            return ILLEGAL;
        };
        if next != ILLEGAL && next as usize >= self.origin.len() {
            self.origin.resize(next as usize + 1, (state, class));
        }
        next
    }
}

impl<O: Oracle> Machine for Table<O> {
    fn initial(&self) -> u32 {
        0
    }
    #[inline]
    fn step(&mut self, state: u32, class: u32) -> u32 {
        if self.classes <= DENSE_CLASSES {
            let at = state as usize * self.classes + class as usize;
            if at >= self.dense.len() {
                self.dense.resize((state as usize + 1) * self.classes, UNASKED);
            }
            if self.dense[at] == UNASKED {
                self.dense[at] = self.ask(state, class);
            }
            return self.dense[at];
        }
        let key = u64::from(state) << 32 | u64::from(class);
        if let Some(&next) = self.sparse.get(&key) {
            return next;
        }
        let next = self.ask(state, class);
        self.sparse.insert(key, next);
        next
    }
    fn observer(&self, class: u32) -> bool {
        self.oracle.observer(class)
    }
    fn blind(&self, _: u32) -> bool {
        false
    }
    fn overwrites(&self) -> bool {
        false
    }
    fn viable(&mut self, state: u32, class: u32) -> bool {
        let key = u64::from(state) << 32 | u64::from(class);
        if let Some(&viable) = self.viable.get(&key) {
            return viable;
        }
        let viable = self.oracle.viable(state, class);
        self.viable.insert(key, viable);
        viable
    }
    fn looks_ahead(&self) -> bool {
        self.oracle.looks_ahead()
    }
    fn resets(&self, class: u32) -> bool {
        self.oracle.resets(class)
    }
    fn failed(&self) -> bool {
        self.failed
    }
    fn closure(&mut self, asks: u64, meter: &mut Meter) -> Closure {
        let classes = self.classes;
        let mut left = asks;
        while self.explored < self.origin.len() {
            let states = self.origin.len();
            if states > MOST_STATES || states * classes > MOST_ENTRIES || self.oracle.bytes() > MOST_BYTES {
                return Closure::Never;
            }
            if left < classes as u64 {
                return Closure::Unfinished;
            }
            let before = self.asked;
            for class in 0..classes as u32 {
                self.step(self.explored as u32, class);
            }
            let asked = self.asked - before;
            left -= asked;
            self.counted += asked;
            if let Some(cause) = meter.tick(asked * self.cost, || self.bytes()) {
                return Closure::Stopped(cause);
            }
            if self.failed {
                return Closure::Stopped(Cause::ModelFailed);
            }
            self.explored += 1;
        }
        let states = self.origin.len() as u32;
        let steps = (0..states).flat_map(|state| (0..classes as u32).map(move |class| (state, class)));
        let next = steps.map(|(state, class)| self.step(state, class)).collect();
        Closure::Complete(Automaton::new(classes, next))
    }
    fn cost(&self) -> u64 {
        self.cost
    }
    fn is_table(&self) -> bool {
        self.classes > 0
    }
    fn asked(&self) -> u64 {
        self.asked
    }
    #[inline]
    fn spent(&self) -> u64 {
        (self.asked - self.counted) * self.cost
    }
    fn path(&self, state: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = state;
        while at != 0 && at != ILLEGAL {
            let (from, class) = self.origin[at as usize];
            path.push(class);
            at = from;
        }
        path.reverse();
        path
    }
    fn bytes(&self) -> usize {
        self.dense.capacity() * 4
            + self.sparse.capacity() * 16
            + self.viable.capacity() * 16
            + self.origin.capacity() * 8
            + self.oracle.bytes()
    }
}

/// The built-in models, with lists of integers as states.
pub struct Native<'a> {
    family: Family,
    ops: Ops<'a>,
    /// By class: an operation of that class.
    representative: Vec<u32>,
    states: Vec<Box<[i64]>>,
    numbers: HashMap<Box<[i64]>, u32, FastHasher>,
    scratch: Vec<i64>,
    held: usize,
    /// A crashed dequeue takes some element, so an empty bag determines which elements were taken.
    takes_any: bool,
}

impl<'a> Native<'a> {
    /// An oracle for classes, each given by an example operation.
    pub fn new(family: Family, ops: Ops<'a>, representative: Vec<u32>, initial: &[i64]) -> Self {
        let first: Box<[i64]> = initial.into();
        let mut numbers: HashMap<Box<[i64]>, u32, FastHasher> = HashMap::default();
        numbers.insert(first.clone(), 0);
        let takes_any = family == Family::Bag && ops.f.contains(&op::DEQUEUE_ANY);
        Self { family, ops, representative, states: vec![first], numbers, scratch: Vec::new(), held: 0, takes_any }
    }
}

impl Oracle for Native<'_> {
    fn ask(&mut self, state: u32, class: u32) -> Option<u32> {
        self.scratch.clear();
        let i = self.representative[class as usize] as usize;
        if !models::step(self.family, &self.ops, i, &self.states[state as usize], &mut self.scratch) {
            return Some(ILLEGAL);
        }
        if let Some(&known) = self.numbers.get(self.scratch.as_slice()) {
            return Some(known);
        }
        let number = self.states.len() as u32;
        let fresh: Box<[i64]> = self.scratch.as_slice().into();
        self.held += 2 * fresh.len() * 8 + 80;
        self.states.push(fresh.clone());
        self.numbers.insert(fresh, number);
        Some(number)
    }
    fn observer(&self, class: u32) -> bool {
        let f = self.ops.f[self.representative[class as usize] as usize];
        crate::ops::observes(f) && !(f == op::DEQUEUE_EMPTY && self.takes_any)
    }
    fn viable(&mut self, state: u32, class: u32) -> bool {
        let wanted = self.ops.list(self.representative[class as usize] as usize);
        wanted.starts_with(&self.states[state as usize])
    }
    fn looks_ahead(&self) -> bool {
        self.family == Family::Sequence
    }
    fn resets(&self, class: u32) -> bool {
        self.ops.f[self.representative[class as usize] as usize] == op::PUT
    }
    fn cost(&self) -> u64 {
        4
    }
    fn bytes(&self) -> usize {
        self.held
    }
}
