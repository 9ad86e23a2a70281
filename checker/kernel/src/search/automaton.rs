//! A model as a finite automaton, and the facts about it that the reductions of `reduce` use.
//!
//! `Automaton` has the answer of the model for every state that any order of the history's operations can reach, and
//! for every class of operations. It is complete: `Machine::closure` gives up rather than leave a state out. So the
//! search never meets a state that the analysis does not know.

use std::collections::HashMap;

use super::machine::ILLEGAL;
use crate::hash::FastHasher;

/// A complete transition table.
pub struct Automaton {
    /// The number of classes.
    pub classes: usize,
    /// By state and class: the next state, or `ILLEGAL`.
    next: Vec<u32>,
}

impl Automaton {
    /// The automaton with this table, which has a row of `classes` entries for each state.
    pub fn new(classes: usize, next: Vec<u32>) -> Self {
        debug_assert!(classes > 0 && next.len() % classes == 0);
        Self { classes, next }
    }

    /// The number of states.
    pub fn states(&self) -> usize {
        self.next.len() / self.classes
    }

    /// The state after an operation of the class, or `ILLEGAL`.
    #[inline]
    pub fn step(&self, state: u32, class: u32) -> u32 {
        self.next[state as usize * self.classes + class as usize]
    }

    /// Partitions states into blocks that no sequence of operations of the wanted classes can distinguish; by state
    /// its block.
    ///
    /// Partition refinement (Moore, "Gedanken-experiments on sequential machines", 1956). None if it takes more than
    /// `work` look-ups, because an unfinished partition is too coarse.
    pub fn blocks(&self, wanted: &[u32], work: &mut u64) -> Option<Vec<u32>> {
        let states = self.states();
        let mut block = vec![0; states];
        let mut count = 1;
        loop {
            *work = work.checked_sub((states * (wanted.len() + 1)) as u64)?;
            let mut numbers: HashMap<Vec<u32>, u32, FastHasher> = HashMap::default();
            let mut finer = Vec::with_capacity(states);
            for state in 0..states as u32 {
                let after = |&class: &u32| match self.step(state, class) {
                    ILLEGAL => ILLEGAL,
                    next => block[next as usize],
                };
                let mut signature = Vec::with_capacity(wanted.len() + 1);
                signature.push(block[state as usize]);
                signature.extend(wanted.iter().map(after));
                let fresh = numbers.len() as u32;
                finer.push(*numbers.entry(signature).or_insert(fresh));
            }
            block = finer;
            if numbers.len() == count {
                return Some(block);
            }
            count = numbers.len();
        }
    }

    /// The automaton of the blocks, for the wanted classes; other classes are `ILLEGAL` in it.
    #[must_use]
    pub fn quotient(&self, block: &[u32], wanted: &[u32]) -> Self {
        let count = block.iter().max().map_or(0, |&last| last as usize + 1);
        let mut next = vec![ILLEGAL; count * self.classes];
        for (state, &home) in block.iter().enumerate() {
            for &class in wanted {
                let after = self.step(state as u32, class);
                if after != ILLEGAL {
                    next[home as usize * self.classes + class as usize] = block[after as usize];
                }
            }
        }
        Self::new(self.classes, next)
    }

    /// By state, the classes for which `holds` is true in the state or in any reachable one.
    pub fn reached_from(&self, wanted: &[u32], holds: impl Fn(u32, u32) -> bool) -> Rows {
        let states = self.states();
        let mut rows = Rows::new(states, self.classes);
        let mut successors: Vec<Vec<u32>> = Vec::with_capacity(states);
        for state in 0..states as u32 {
            let mut after: Vec<u32> = Vec::new();
            for &class in wanted {
                if holds(state, class) {
                    rows.insert(state, class);
                }
                let next = self.step(state, class);
                if next != ILLEGAL && next != state {
                    after.push(next);
                }
            }
            after.sort_unstable();
            after.dedup();
            successors.push(after);
        }
        let order = post_order(&successors);
        // States come after their successors, except in cycles, which need further rounds.
        loop {
            let mut changed = false;
            for &state in &order {
                for &next in &successors[state as usize] {
                    changed |= rows.add_row(state, next);
                }
            }
            if !changed {
                return rows;
            }
        }
    }

    /// By class, the classes that it does not commute with: in some state the two orders end in different states, or
    /// only one of them is legal. If computing this takes more than `work` look-ups, two classes count as dependent.
    pub fn dependent(&self, wanted: &[u32], work: &mut u64) -> Rows {
        let mut rows = Rows::new(self.classes, self.classes);
        let two = |state: u32, first: u32, second: u32| match self.step(state, first) {
            ILLEGAL => ILLEGAL,
            next => self.step(next, second),
        };
        for (place, &one) in wanted.iter().enumerate() {
            for &other in &wanted[..place] {
                let mut differs = false;
                for state in 0..self.states() as u32 {
                    if *work == 0 || two(state, one, other) != two(state, other, one) {
                        differs = true;
                        break;
                    }
                    *work -= 1;
                }
                if differs {
                    rows.insert(one, other);
                    rows.insert(other, one);
                }
            }
        }
        rows
    }
}

fn post_order(successors: &[Vec<u32>]) -> Vec<u32> {
    let mut order = Vec::with_capacity(successors.len());
    let mut seen = vec![false; successors.len()];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for root in 0..successors.len() as u32 {
        if std::mem::replace(&mut seen[root as usize], true) {
            continue;
        }
        stack.push((root, 0));
        while let Some((state, place)) = stack.last_mut() {
            if let Some(&next) = successors[*state as usize].get(*place) {
                *place += 1;
                if !std::mem::replace(&mut seen[next as usize], true) {
                    stack.push((next, 0));
                }
            } else {
                order.push(*state);
                stack.pop();
            }
        }
    }
    order
}

/// Rows of bits, with one bit for each class.
#[derive(Clone)]
pub struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    /// This many empty rows.
    pub fn new(rows: usize, classes: usize) -> Self {
        let words = classes.div_ceil(64);
        Self { words, bits: vec![0; rows * words] }
    }

    /// The number of words in a row.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The words of a row.
    #[inline]
    pub fn row(&self, row: u32) -> &[u64] {
        &self.bits[row as usize * self.words..(row as usize + 1) * self.words]
    }

    /// Whether a class is in a row.
    #[inline]
    pub fn has(&self, row: u32, class: u32) -> bool {
        self.bits[row as usize * self.words + class as usize / 64] >> (class % 64) & 1 == 1
    }

    /// Adds a class to a row.
    pub fn insert(&mut self, row: u32, class: u32) {
        self.bits[row as usize * self.words + class as usize / 64] |= 1 << (class % 64);
    }

    /// Adds all classes of one row to another; returns whether that changed it.
    fn add_row(&mut self, into: u32, from: u32) -> bool {
        let mut changed = false;
        for word in 0..self.words {
            let (to, more) = (into as usize * self.words + word, self.bits[from as usize * self.words + word]);
            changed |= more & !self.bits[to] != 0;
            self.bits[to] |= more;
        }
        changed
    }
}
