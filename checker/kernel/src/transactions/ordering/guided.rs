//! Searches an order of a large history in which transactions happen while they are open, or those that write do.
//!
//! `bounds` has what follows from real time, and `candidate` makes an order of it. Where writers that overlap contradict, the order
//! tells which of them should have come earlier; this is kept, and another order is made. Whether an order is one of the model is
//! checked elsewhere, so a wrong guess costs time only. No pass takes more than near-linear time.

use super::super::graph::Components;
use super::super::{History, OK};
use super::bounds::{narrow, Bounds};
use super::candidate::candidate;
use super::closure::{links_of, Link};
use super::problem::{in_real_time, Problem};

/// Which transactions happen while they are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guide {
    All,
    /// Those that write. The others may read an old state, e.g. of a replica.
    Writers,
}

/// Returns the events in a likely order; None if real time contradicts, or the passes do not suffice.
pub fn guided(problem: &Problem, history: &History<'_>, guide: Guide, passes: usize) -> Option<Vec<u32>> {
    let mut events = vec![None; history.len()]; // by row: its first and its last event
    for (event, &row) in (0..).zip(&problem.row) {
        let some = events[row as usize].get_or_insert((event, event));
        some.1 = event;
    }
    let writes = |row: u32| history.of(row as usize).iter().any(|mop| !mop.is_read);
    let is_held = |row: u32| guide == Guide::All || writes(row);
    let pairs = in_real_time(history, |row| events[row as usize].is_some() && is_held(row));
    let mut links: Vec<Link> = Vec::with_capacity(pairs.len());
    for (before, after) in pairs {
        if let (Some((_, from)), Some((to, _))) = (events[before as usize], events[after as usize]) {
            links.push((from, to));
        }
    }
    links.extend(links_of(&problem.arcs));
    let rows = || problem.row.iter().map(|&row| (row, row as usize));
    let mut bounds = Bounds {
        first: rows().map(|(row, at)| if is_held(row) { history.start[at] } else { i64::MIN }).collect(),
        last: rows()
            .map(|(row, at)| if is_held(row) && history.kind[at] == OK { history.end[at] } else { i64::MAX })
            .collect(),
    };
    let mut guesses: Vec<Link> = Vec::new();
    for _ in 0..passes {
        let mut narrowed = bounds.clone();
        match narrow(problem, &mut narrowed, &[&links[..], &guesses].concat()) {
            Ok(forced) => {
                bounds = narrowed;
                links.append(&mut guesses);
                // What only reads happens at once: no writer waits longer for it.
                let time =
                    rows().zip(&bounds.last).map(|((row, _), &last)| if writes(row) { last } else { i64::MIN });
                let likely = candidate(problem, &time.collect::<Vec<_>>(), &[&links[..], &forced].concat());
                if likely.is_free {
                    return Some(likely.order);
                }
                if likely.earlier.is_empty() {
                    return None;
                }
                guesses = likely.earlier;
            }
            Err(parts) => {
                let count = guesses.len();
                let row = |event: u32| problem.row[event as usize] as usize;
                let wrong = without_cycles(&mut guesses, &parts);
                links.extend(wrong.into_iter().filter_map(|(one, other)| {
                    Some((events[row(other)]?.1, events[row(one)]?.0)) // so it is the other way round
                }));
                if guesses.len() == count {
                    return None;
                }
            }
        }
    }
    None
}

/// Leaves one guess of those within a component that has a cycle, and takes it away too if it is the only one; these are returned.
fn without_cycles(guesses: &mut Vec<Link>, parts: &Components) -> Vec<Link> {
    let part = |link: &Link| {
        let [one, other] = [link.0, link.1].map(|event| parts.of[event as usize]);
        (one == other).then_some(one as usize)
    };
    let mut count = vec![0u32; parts.count as usize];
    for part in guesses.iter().filter_map(part) {
        count[part] += 1;
    }
    let mut wrong = Vec::new();
    guesses.retain(|link| match part(link) {
        None => true,
        Some(part) if count[part] == 1 => {
            wrong.push(*link);
            false
        }
        Some(part) => std::mem::replace(&mut count[part], u32::MAX) != u32::MAX,
    });
    wrong
}
