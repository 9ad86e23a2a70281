//! A contradiction as edges between transactions: a cycle, and why the versions on it have the orders that it needs.

use super::super::graph::{Edge, RW, WR, WW};
use super::super::NONE;
use super::problem::{Arc, Problem, Why};
use super::saturate::{path, Contradiction};

/// How many orders of versions are explained.
const ORDERS: usize = 12;

/// Why a version precedes another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub key: u32,
    pub before: u32,
    pub after: u32,
    pub why: How,
    /// From the writer of the first one to the writer or a reader of the second one.
    pub links: Vec<Edge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// A place of `SOURCES`.
    Source(u8),
    /// The links lead to the writer.
    Path,
    /// The links lead to a transaction that read the second version.
    Seen,
    /// It was tried.
    Chosen,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub cycle: Vec<Edge>,
    pub orders: Vec<Order>,
    /// How many orders of versions are not explained.
    pub left: usize,
}

/// Returns arcs as edges between transactions.
fn links(problem: &Problem, arcs: &[Arc]) -> Vec<Edge> {
    let row = |event: u32| problem.row[event as usize];
    let apart = arcs.iter().filter(|arc| row(arc.from) != row(arc.to));
    apart
        .map(|arc| Edge {
            from: row(arc.from),
            to: row(arc.to),
            kind: arc.kind,
            key: arc.key,
            before: arc.before,
            after: arc.after,
        })
        .collect()
}

pub fn shown(problem: &Problem, cycle: &Contradiction) -> Shown {
    let of = |places: &[u32]| places.iter().map(|&place| problem.arcs[place as usize]).collect::<Vec<Arc>>();
    let arcs = of(&cycle.0);
    let mut found = Shown { cycle: links(problem, &arcs), ..Shown::default() };
    let mut known: Vec<(u32, u32)> = Vec::new();
    let mut waiting: std::collections::VecDeque<Arc> = arcs.into();
    while let Some(arc) = waiting.pop_front() {
        if arc.kind & (WW | RW) == 0 || arc.before == NONE || known.contains(&(arc.before, arc.after)) {
            continue;
        }
        let (why, some) = match arc.why {
            Why::Data => continue,
            Why::Source(source) => (How::Source(source), Vec::new()),
            Why::Path(from, to) => (How::Path, of(&path(problem, from, to, arc.round, |_| true))),
            Why::Seen(from, to) => (How::Seen, of(&path(problem, from, to, arc.round, |_| true))),
            Why::Visible(from, to) => {
                (How::Seen, of(&path(problem, from, to, NONE, |arc| matches!(arc.kind, 0 | WR))))
            }
            Why::Chosen => (How::Chosen, Vec::new()),
        };
        // A read is before the writer of a later version by the order of both versions, which another arc may say.
        if let [only] = some[..] {
            if only.kind == WW && (only.before, only.after) == (arc.before, arc.after) {
                waiting.push_front(only);
                continue;
            }
        }
        known.push((arc.before, arc.after));
        if found.orders.len() == ORDERS {
            found.left += 1;
            continue;
        }
        let (key, before, after) = (arc.key, arc.before, arc.after);
        found.orders.push(Order { key, before, after, why, links: links(problem, &some) });
        waiting.extend(some);
    }
    found
}
