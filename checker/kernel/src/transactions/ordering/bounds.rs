//! When each event can happen, if transactions happen while they are open.
//!
//! Real time does not follow from most models, but most systems keep it, so an order that keeps it is a likely witness. It says much:
//! an event happens between two points in time, and so does all that leads to it or follows from it. Let two transactions write a
//! key. If the last point of the first one precedes the first point of the second one, or of a read of its version, then its version
//! is the earlier one. So the second one follows all reads of the first version, which moves their points, and so on. A
//! round takes near-linear time, and needs no table of what leads to what.

use super::super::graph::{components, Components};
use super::class::Rule;
use super::closure::{in_order, Link, Next};
use super::problem::{Key, Problem};

/// How many rounds move the points at most.
const ROUNDS: usize = 12;
/// How many writers that have no order are compared with a later one at most.
const WIDTH: usize = 64;

/// By event: the points between which it happens.
#[derive(Clone, PartialEq, Eq)]
pub struct Bounds {
    pub first: Vec<i64>,
    pub last: Vec<i64>,
}

/// Moves the points by some links, and returns the orders of writers that follow.
///
/// Returns the components of the links with these orders if they have a cycle; then the points say nothing.
pub fn narrow(problem: &Problem, bounds: &mut Bounds, links: &[Link]) -> Result<Vec<Link>, Components> {
    let mut forced: Vec<Link> = Vec::new();
    for _ in 0..ROUNDS {
        let all = [links, &forced].concat();
        let next = Next::new(problem.events(), &all);
        let Some(in_order) = in_order(&all, &next) else { return Err(cyclic(&all, &next)) };
        let before = bounds.clone();
        bounds.move_along(&in_order, &all, &next);
        forced.clear();
        for key in &problem.keys {
            bounds.of_key(key, &mut forced);
        }
        if before == *bounds {
            break;
        }
    }
    let all = [links, &forced].concat();
    let next = Next::new(problem.events(), &all);
    in_order(&all, &next).map(|_| forced).ok_or_else(|| cyclic(&all, &next))
}

fn cyclic(links: &[Link], next: &Next) -> Components {
    components(next.events() as u32, |event, number| {
        next.of(event).get(number as usize).map(|&place| links[place as usize].1)
    })
}

impl Bounds {
    /// Moves the points by links, given the events in an order that these agree with.
    fn move_along(&mut self, in_order: &[u32], links: &[Link], next: &Next) {
        let ends = |event: u32| next.of(event).iter().map(|&place| links[place as usize].1 as usize);
        for &event in in_order {
            let first = self.first[event as usize];
            for to in ends(event) {
                self.first[to] = self.first[to].max(first);
            }
        }
        for &event in in_order.iter().rev() {
            let last = ends(event).map(|to| self.last[to]).min().unwrap_or(i64::MAX);
            self.last[event as usize] = self.last[event as usize].min(last);
        }
    }

    /// Moves the points by the writers and reads of a key, and adds the orders of its writers that follow.
    fn of_key(&mut self, key: &Key, forced: &mut Vec<Link>) {
        let commit = |place: usize| key.writers[place].commit as usize;
        let count = key.writers.len();
        // The last place is that of the initial version.
        let mut alive: Vec<i64> = (0..count).map(|place| self.first[commit(place)]).chain([i64::MIN]).collect();
        let reads = || key.reads.iter().filter(|read| read.rule != Rule::Nothing);
        for read in reads() {
            let of = &mut alive[(read.from as usize).min(count)];
            *of = (*of).max(self.first[read.event as usize]);
        }
        let last: Vec<i64> = (0..count).map(|place| self.last[commit(place)]).collect();
        let mut pairs = follow(key);
        compared(&last, &alive[..count], &mut pairs);
        if key.writers.iter().any(|writer| writer.begin != writer.commit) {
            let begins: Vec<i64> = key.writers.iter().map(|writer| self.last[writer.begin as usize]).collect();
            let commits: Vec<i64> = (0..count).map(|place| self.first[commit(place)]).collect();
            compared(&begins, &commits, &mut pairs);
        }
        let mut until = vec![i64::MAX; count + 1];
        for place in 0..count {
            pairs.push((count, place));
        }
        for (one, other) in pairs {
            let event = commit(other);
            self.first[event] = self.first[event].max(alive[one]);
            until[one] = until[one].min(self.last[event]);
            if one < count {
                forced.push((key.writers[one].commit, key.writers[other].begin));
            }
        }
        for read in reads() {
            let event = read.event as usize;
            self.last[event] = self.last[event].min(until[(read.from as usize).min(count)]);
        }
    }
}

/// Returns each writer with one that read its version; both as places.
fn follow(key: &Key) -> Vec<(usize, usize)> {
    // The writers of a key are in the order of their rows.
    let writer = |row: u32| key.writers.binary_search_by_key(&row, |writer| writer.row).ok();
    let reads = key.reads.iter().filter(|read| (read.from as usize) < key.writers.len());
    reads.filter_map(|read| writer(read.row).map(|place| (read.from as usize, place))).collect()
}

/// Adds each two places of which the last point of the first one is before the other point of the second one, without pairs that
/// follow from others.
fn compared(last: &[i64], alive: &[i64], pairs: &mut Vec<(usize, usize)>) {
    let mut ended: Vec<usize> = (0..last.len()).collect();
    let mut begun = ended.clone();
    ended.sort_unstable_by_key(|&place| last[place]);
    begun.sort_unstable_by_key(|&place| alive[place]);
    let mut ended = ended.into_iter().peekable();
    let mut frontier: Vec<usize> = Vec::new();
    for place in begun {
        while let Some(next) = ended.next_if(|&next| last[next] < alive[place]) {
            if last[next] < alive[next] {
                pairs.extend(frontier.iter().map(|&other| (other, next)));
            }
            frontier.retain(|&other| last[other] >= alive[next]);
            if frontier.len() == WIDTH {
                frontier.remove(0);
            }
            frontier.push(next);
        }
        pairs.extend(frontier.iter().filter(|&&other| other != place).map(|&other| (other, place)));
    }
}
