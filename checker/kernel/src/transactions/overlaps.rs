//! Snapshot isolation if no order of the appends to a key is known: which transactions cannot be kept apart.
//!
//! `conflicts` has the events and what orders them. Transactions that appended to one key, and whose appends no read returned, are in
//! any order, but no two of them overlap. An order of a pair may be possible alone and impossible with those of other pairs: let A
//! and B append to x, and C and D to y, and let each of A and B have an anti-dependency to and from each of C and D. Then A and B both
//! overlap with C and D. If A is before B, C and D both begin before A ends and end after B begins, so they overlap. No order is
//! *forced* by a path of events here, so orders that are forced, closed to a fixpoint, do not find this. It needs a distinction of cases.
//!
//! **It is NP-complete**, with all reads nil, and so without any version order. A literal is a pair of transactions that append to a key
//! of their own: A before B, or B before A. An anti-dependency from X to Y is a key that X reads as nil and Y appends to. It says that X
//! begins before Y ends. A copy A', B' of a pair with the anti-dependencies B to B' and A' to A is in the order of the pair if A is before
//! B: else B' ends before A' begins, A' begins before A ends, A ends before B begins, and B begins before B' ends. For the other
//! literal, exchange A and B. A clause forbids three copies to have all their first order: the anti-dependencies B1 to A2, B2 to A3
//! and B3 to A1. Each transaction of a copy leads only to its own pair or its own clause, so no other cycle of events exists: a history has
//! an order exactly if the clauses of three literals can be satisfied. A replay checks an order, so the question is in NP.
//!
//! Only the parts of the graph of events matter that have a cycle if both orders of each pair are there. The others, and these among
//! each other, follow in a topological order, which keeps all pairs of different parts apart. A graph whose components have no two
//! such appends to one key, as those of serializable histories, costs nothing. In such a part `schedule` searches, with a limit.

use std::collections::HashMap;

use super::conflicts::Keys;
use super::graph::{components, Components, Step, CONFLICT, PASS, RW, WR, WW};
use super::inside::Inside;
use super::schedule::{Answer, Holder, Problem};
use super::NONE;

/// Steps of one part, beside some for each of its events.
const STEPS: usize = 20_000_000;
/// Steps of the search for few transactions that show a contradiction.
const CORE_STEPS: usize = 20_000_000;
/// Steps of all parts of a history, beside some for each event.
const ALL_STEPS: usize = 200_000_000;
const STEPS_OF_EVENT: usize = 200;

/// Transactions of a component that appended to the same keys, and that no order keeps apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The component of the whole graph.
    pub part: u32,
    /// Whether no order keeps them apart; otherwise the steps did not suffice.
    pub decided: bool,
    /// Rows, each with a key that another one of them appended to; those of one key are neighbours.
    pub writers: Vec<(u32, u32)>,
}

/// The writers of a key that have no known order, within one component.
struct Group {
    key: u32,
    rows: Vec<u32>,
}

/// Returns the transactions that no order keeps apart, at most once for each component of the whole graph.
///
/// Args are the components of the whole graph, with what leads from a transaction besides data; the components of the edges with
/// `extra`; and whether a component of the whole graph is of interest.
pub fn overlaps(inside: &Inside<'_>, extra: u8, all: &Components, wanted: impl Fn(u32) -> bool) -> Vec<Overlap> {
    let groups = groups(inside, all, wanted);
    if groups.is_empty() {
        return Vec::new();
    }
    Events::new(inside, extra, &groups).overlaps()
}

fn groups(inside: &Inside<'_>, all: &Components, wanted: impl Fn(u32) -> bool) -> Vec<Group> {
    let mut found = Vec::new();
    for (key, rows) in &inside.graph.unordered {
        let mut rows: Vec<(u32, u32)> = rows
            .iter()
            .filter(|&&row| inside.has_cycle(row) && wanted(inside.whole.of[row as usize]))
            .map(|&row| (all.of[row as usize], row))
            .collect();
        rows.sort_unstable();
        rows.dedup();
        let several = rows.chunk_by(|one, other| one.0 == other.0).filter(|rows| rows.len() > 1);
        found.extend(several.map(|rows| Group { key: *key, rows: rows.iter().map(|&(_, row)| row).collect() }));
    }
    found
}

/// The graph of events: twice the node of a transaction is its start, and one more its end. After those of all nodes there is one
/// for each group, between the ends of its transactions and their starts.
struct Events<'a> {
    inside: &'a Inside<'a>,
    mask: u8,
    groups: &'a [Group],
    of_row: Keys,
}

impl<'a> Events<'a> {
    fn new(inside: &'a Inside<'a>, extra: u8, groups: &'a [Group]) -> Self {
        let pairs = (0..).zip(groups).flat_map(|(number, group)| group.rows.iter().map(move |&row| (row, number)));
        let of_row = Keys::of_pairs(inside.graph.rows as usize, pairs.collect());
        Self { inside, mask: WW | WR | RW | CONFLICT | extra, groups, of_row }
    }

    fn states(&self) -> u32 {
        self.inside.graph.nodes * 2
    }

    /// Returns an event after another one, by number; `NONE` for one that does not count.
    fn next(&self, state: u32, mut number: u32) -> Option<u32> {
        if state >= self.states() {
            return self.groups[(state - self.states()) as usize].rows.get(number as usize).map(|row| row * 2);
        }
        let (node, is_end) = (state / 2, state % 2 == 1);
        if !self.inside.has_cycle(node) {
            return None;
        }
        let is_row = node < self.inside.graph.rows;
        if is_row {
            let own = if is_end { self.of_row.of(node) } else { &[] };
            let before = if is_end { own.len() as u32 } else { 1 };
            if number < before {
                return Some(if is_end { self.states() + own[number as usize] } else { state + 1 });
            }
            number -= before;
        }
        self.inside.step(node, number, self.mask).map(|step| match step {
            Step { to: NONE, .. } => NONE,
            Step { to, kind: PASS, .. } => to * 2 + state % 2,
            Step { kind: RW, .. } if is_end => NONE,
            Step { to, kind: RW, .. } => to * 2 + 1,
            Step { .. } if is_row && !is_end => NONE,
            Step { to, .. } => to * 2,
        })
    }

    fn overlaps(&self) -> Vec<Overlap> {
        let states = self.states();
        let parts = components(states + self.groups.len() as u32, |state, number| self.next(state, number));
        let mut number_of: HashMap<u32, usize> = HashMap::new();
        let mut parts_with_groups: Vec<(Vec<u32>, Vec<u32>)> = Vec::new(); // their events and groups
        for group in 0..self.groups.len() as u32 {
            let number = *number_of.entry(parts.of[(states + group) as usize]).or_insert(parts_with_groups.len());
            if number == parts_with_groups.len() {
                parts_with_groups.push((Vec::new(), Vec::new()));
            }
            parts_with_groups[number].1.push(group);
        }
        let mut place = vec![NONE; states as usize];
        for state in 0..states {
            if let Some(&number) = number_of.get(&parts.of[state as usize]) {
                let events = &mut parts_with_groups[number].0;
                place[state as usize] = events.len() as u32;
                events.push(state);
            }
        }
        parts_with_groups.sort_by_key(|(events, _)| events.len());
        let mut found: HashMap<u32, Overlap> = HashMap::new(); // by component; a decided one excludes the others
        let mut left = ALL_STEPS + STEPS_OF_EVENT * states as usize;
        for (events, groups) in parts_with_groups {
            let component = self.inside.whole.of[(events[0] / 2) as usize];
            if found.get(&component).is_some_and(|known| known.decided) {
                continue;
            }
            if let Some(overlap) = self.decide(component, &events, &groups, &parts, &place, &mut left) {
                if overlap.decided || !found.contains_key(&component) {
                    found.insert(component, overlap);
                }
            }
        }
        let mut found: Vec<Overlap> = found.into_values().collect();
        found.sort_unstable_by_key(|overlap| overlap.writers.first().copied());
        found
    }

    /// Decides one part of the graph of events; `place` has the place of each event in its part.
    fn decide(
        &self,
        component: u32,
        events: &[u32],
        groups: &[u32],
        parts: &Components,
        place: &[u32],
        left: &mut usize,
    ) -> Option<Overlap> {
        let part = parts.of[events[0] as usize];
        let mut pairs = Vec::new();
        for (from, &state) in (0..).zip(events) {
            let mut number = 0;
            while let Some(to) = self.next(state, number) {
                number += 1;
                if to != NONE && to < self.states() && parts.of[to as usize] == part {
                    pairs.push((from, place[to as usize]));
                }
            }
        }
        let mut rows: Vec<(u32, u32)> = (0..)
            .zip(groups)
            .flat_map(|(key, &group)| self.groups[group as usize].rows.iter().map(move |&row| (row, key)))
            .collect();
        rows.sort_unstable();
        let by_row: Vec<&[(u32, u32)]> = rows.chunk_by(|one, other| one.0 == other.0).collect();
        let holder = |some: &&[(u32, u32)]| {
            let start = some[0].0 * 2;
            let keys = some.iter().map(|&(_, key)| key).collect();
            Holder { start: place[start as usize], end: place[start as usize + 1], keys }
        };
        let mut problem = Problem::new(events.len(), &pairs, by_row.iter().map(holder).collect(), groups.len());
        let mut steps = left.min(&mut (STEPS + STEPS_OF_EVENT * problem.size())).to_owned();
        let before = steps;
        let answer = problem.decide(&mut steps);
        *left -= before - steps;
        if answer == Answer::Order {
            return None;
        }
        let decided = answer == Answer::Contradiction;
        let mut shown: Vec<u32> = (0..by_row.len() as u32).collect();
        if decided {
            steps = CORE_STEPS.min(*left);
            let before = steps;
            shown = problem.core(&mut steps);
            *left -= before - steps;
        }
        let shown_rows: Vec<u32> = shown.iter().map(|&holder| by_row[holder as usize][0].0).collect();
        let mut writers = Vec::new();
        for &group in groups {
            let Group { key, rows } = &self.groups[group as usize];
            let both: Vec<u32> = rows.iter().copied().filter(|row| shown_rows.binary_search(row).is_ok()).collect();
            if both.len() > 1 {
                writers.extend(both.into_iter().map(|row| (row, *key)));
            }
        }
        Some(Overlap { part: component, decided, writers })
    }
}
