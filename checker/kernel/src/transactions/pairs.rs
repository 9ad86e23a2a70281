//! Decides the same problem as `schedule` by the order of each two transactions that hold a common key.
//!
//! A table has which event leads to which other one. If the start of A leads to the end of B, then B does not end before A starts. So
//! the end of A leads to the start of B. Each such order is added, until there is no more. Then each order of each pair is tried: if
//! it forces both orders of another pair, or a cycle, the other order is added. What is left is decided by cases. An order
//! of the events exists if all pairs have one and there is no cycle.
//!
//! The table grows with the square of the events, so this is for few of them. It finds contradictions that the search over states
//! would find only after all the orders of unrelated pairs.

use super::schedule::{Answer, Problem};

/// Decides a problem, and takes the steps from those that are left; a step is a word of a table.
pub fn decide(problem: &Problem, left: &mut usize) -> Answer {
    let Some(pairs) = pairs(problem, *left) else { return Answer::Open };
    let mut search = Search { problem, pairs, left };
    *search.left = search.left.saturating_sub(words(problem));
    match Table::new(problem) {
        Some(table) => search.solve(table),
        None => Answer::Contradiction,
    }
}

/// Returns how many words the table of a problem has.
pub fn words(problem: &Problem) -> usize {
    problem.events() * problem.events().div_ceil(64)
}

/// Returns each two holders of a common key; None if there are more than a number.
fn pairs(problem: &Problem, most: usize) -> Option<Vec<(usize, usize)>> {
    let mut of_key = vec![Vec::new(); problem.keys];
    let mut found = Vec::new();
    for (number, holder) in problem.holders.iter().enumerate() {
        for &key in &holder.keys {
            let others: &mut Vec<usize> = &mut of_key[key as usize];
            found.extend(others.iter().map(|&other| (other, number)));
            others.push(number);
        }
        if found.len() > most {
            return None;
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// By event: a bit for each event that it leads to, and for itself.
#[derive(Clone)]
struct Table {
    words: usize,
    bits: Vec<u64>,
}

impl Table {
    /// Makes the table of a problem; None if its events have a cycle.
    fn new(problem: &Problem) -> Option<Self> {
        let events = problem.events();
        let words = events.div_ceil(64);
        let mut found = Self { words, bits: vec![0; events * words] };
        let mut waits: Vec<usize> = (0..events as u32).map(|event| problem.before(event).len()).collect();
        let mut order: Vec<u32> = (0..events as u32).filter(|&event| waits[event as usize] == 0).collect();
        let mut next = 0;
        while let Some(&event) = order.get(next) {
            next += 1;
            for &after in problem.after(event) {
                waits[after as usize] -= 1;
                if waits[after as usize] == 0 {
                    order.push(after);
                }
            }
        }
        for &event in order.iter().rev() {
            found.bits[event as usize * words + event as usize / 64] |= 1 << (event % 64);
            for &after in problem.after(event) {
                found.include(event as usize, after as usize);
            }
        }
        (order.len() == events).then_some(found)
    }

    fn leads(&self, from: u32, to: u32) -> bool {
        self.bits[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }

    /// Adds what an event leads to, to what another one leads to.
    fn include(&mut self, event: usize, after: usize) {
        for word in 0..self.words {
            self.bits[event * self.words + word] |= self.bits[after * self.words + word];
        }
    }

    /// Adds that one event is before another one, and returns how many words changed; None if that makes a cycle.
    fn add(&mut self, from: u32, to: u32) -> Option<usize> {
        if self.leads(to, from) {
            return None;
        }
        let events = self.bits.len() / self.words;
        let mut changed = events;
        for event in 0..events {
            if self.leads(event as u32, from) {
                self.include(event, to as usize);
                changed += self.words;
            }
        }
        Some(changed)
    }
}

struct Search<'a> {
    problem: &'a Problem,
    pairs: Vec<(usize, usize)>,
    left: &'a mut usize,
}

impl Search<'_> {
    /// Decides the orders of all pairs that have none in a table.
    fn solve(&mut self, table: Table) -> Answer {
        let Some(mut table) = self.forced(table) else { return Answer::Contradiction };
        let mut first = None;
        let mut added = true;
        while added {
            (first, added) = (None, false);
            for place in 0..self.pairs.len() {
                let (one, other) = self.pairs[place];
                if self.has_order(&table, one, other) {
                    continue;
                }
                if *self.left == 0 {
                    return Answer::Open;
                }
                match (self.with(&table, one, other), self.with(&table, other, one)) {
                    (None, None) => return Answer::Contradiction,
                    (Some(forced), None) | (None, Some(forced)) => (table, added) = (forced, true),
                    (Some(begin), Some(end)) => first = first.or(Some((begin, end))),
                }
            }
        }
        let Some((begin, end)) = first else { return Answer::Order };
        match self.solve(begin) {
            Answer::Contradiction => self.solve(end),
            known => known,
        }
    }

    fn has_order(&self, table: &Table, one: usize, other: usize) -> bool {
        let (one, other) = (&self.problem.holders[one], &self.problem.holders[other]);
        table.leads(one.end, other.start) || table.leads(other.end, one.start)
    }

    /// Returns a table with an order of a pair and all that it forces; None if it contradicts.
    fn with(&mut self, table: &Table, one: usize, other: usize) -> Option<Table> {
        let mut table = table.clone();
        *self.left = self.left.saturating_sub(table.bits.len());
        let changed = table.add(self.problem.holders[one].end, self.problem.holders[other].start)?;
        *self.left = self.left.saturating_sub(changed);
        self.forced(table)
    }

    /// Adds all orders of pairs that are forced; None if both orders of a pair are.
    fn forced(&mut self, mut table: Table) -> Option<Table> {
        let mut added = true;
        while added {
            added = false;
            *self.left = self.left.saturating_sub(self.pairs.len());
            for &(one, other) in &self.pairs {
                if self.has_order(&table, one, other) {
                    continue;
                }
                let (one, other) = (&self.problem.holders[one], &self.problem.holders[other]);
                for (first, second) in [(one, other), (other, one)] {
                    if table.leads(first.start, second.end) {
                        let changed = table.add(first.end, second.start)?;
                        *self.left = self.left.saturating_sub(changed);
                        added = true;
                    }
                }
            }
        }
        Some(table)
    }
}
