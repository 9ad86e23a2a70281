//! Adds each order of two versions that the others force, until there is no more.
//!
//! Let two transactions write a key. If the first one cannot come after the second one, because then an event would precede itself,
//! the versions have the other order. So these orders are forced:
//!
//! - What a writer begins with leads to the commit of another one: its version is the earlier one.
//! - A writer leads to a read of another version of the key: its version is earlier than the one that was read.
//! - A reader of a version precedes the writer of a later one, if the class asks for it.
//!
//! Each round adds all that follow from the table of the last one. It is sound for all classes, and complete for those whose reads ask
//! nothing (`class`): any order that all arcs agree with is one of the class. For the others `search` tries the orders that are left.

use super::super::graph::{RW, WR, WW};
use super::super::NONE;
use super::class::Rule;
use super::closure::{links_of, order, words, Closure, Next};
use super::problem::{Arc, Key, Problem, Read, Why, Writer};

/// A cycle: the places of its arcs, in their order.
#[derive(Debug, PartialEq, Eq)]
pub struct Contradiction(pub Vec<u32>);

/// Why no order was found.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    Contradiction(Contradiction),
    /// The steps did not suffice.
    Limit,
}

/// Adds the orders of versions that follow from what paths of wr show.
pub fn causes(problem: &mut Problem, left: &mut usize) -> Result<(), Stop> {
    spend(left, words(problem.events()))?;
    let arcs: Vec<Arc> = problem.arcs.iter().filter(|arc| arc.kind == WR).copied().collect();
    let Some(closure) = Closure::new(problem.events(), &arcs) else { return Err(cycle(problem)) };
    let mut more = Vec::new();
    for key in &problem.keys {
        spend(left, key.reads.len() * key.writers.len())?;
        for read in &key.reads {
            for writer in others(key, read).filter(|writer| closure.leads(writer.commit, read.event)) {
                let why = Why::Visible(writer.commit, read.event);
                more.push(match key.writers.get(read.from as usize) {
                    Some(of) => ordered(key, writer, of, why, 0),
                    None => before(key, read, writer, Why::Data, 0),
                });
            }
        }
    }
    problem.arcs.extend(more);
    Ok(())
}

/// Yields the writers of a key besides that of the version that was read, and the reader.
fn others<'a>(key: &'a Key, read: &'a Read) -> impl Iterator<Item = &'a Writer> {
    let from = key.writers.get(read.from as usize).map_or(NONE, |writer| writer.row);
    key.writers.iter().filter(move |writer| writer.row != from && writer.row != read.row)
}

/// Returns the arc of an order of two versions.
pub fn ordered(key: &Key, one: &Writer, other: &Writer, why: Why, round: u32) -> Arc {
    let (before, after) = (one.version, other.version);
    Arc { from: one.commit, to: other.begin, kind: WW, key: key.key, before, after, why, round }
}

/// Returns the arc from a read to the writer of a later version.
fn before(key: &Key, read: &Read, writer: &Writer, why: Why, round: u32) -> Arc {
    let (from, to) = (read.event, writer.commit);
    Arc { from, to, kind: RW, key: key.key, before: read.version, after: writer.version, why, round }
}

pub fn spend(left: &mut usize, steps: usize) -> Result<(), Stop> {
    if *left < steps {
        *left = 0;
        return Err(Stop::Limit);
    }
    *left -= steps;
    Ok(())
}

/// Adds all forced orders, and returns what leads to what.
pub fn saturate(problem: &mut Problem, left: &mut usize) -> Result<Closure, Stop> {
    let first = problem.arcs.iter().map(|arc| arc.round + 1).max().unwrap_or(1);
    for round in first.. {
        spend(left, problem.arcs.len() * problem.events().div_ceil(64) + problem.events())?;
        let Some(closure) = Closure::new(problem.events(), &problem.arcs) else { return Err(cycle(problem)) };
        let mut place = vec![0u32; problem.events()];
        for (at, &event) in (0..).zip(&closure.order) {
            place[event as usize] = at;
        }
        let mut more = Vec::new();
        for key in &problem.keys {
            spend(left, key.writers.len() * (key.writers.len() + key.reads.len()))?;
            let mut in_order: Vec<&Writer> = key.writers.iter().collect();
            in_order.sort_unstable_by_key(|writer| place[writer.commit as usize]);
            pairs(key, &in_order, &closure, round, &mut more);
            for read in &key.reads {
                if let Some(arc) = reads(problem, key, &in_order, read, &closure, round, &mut more) {
                    problem.arcs.push(arc);
                    let mut links = vec![problem.arcs.len() as u32 - 1];
                    links.extend(path(problem, arc.to, arc.from, round, |_| true));
                    return Err(Stop::Contradiction(Contradiction(links)));
                }
            }
        }
        if more.is_empty() {
            return Ok(closure);
        }
        problem.arcs.extend(more);
    }
    Err(Stop::Limit)
}

/// Adds the orders of writers of which what one begins with leads to the commit of the other one.
fn pairs(key: &Key, in_order: &[&Writer], closure: &Closure, round: u32, more: &mut Vec<Arc>) {
    for (at, one) in in_order.iter().enumerate().filter(|(_, one)| one.begin != one.commit) {
        let mut fresh: Vec<&Writer> = Vec::new();
        for other in &in_order[at + 1..] {
            let is_forced = closure.leads(one.begin, other.commit) && !closure.leads(one.commit, other.begin);
            if is_forced && !fresh.iter().any(|known| closure.leads(known.begin, other.begin)) {
                more.push(ordered(key, one, other, Why::Path(one.begin, other.commit), round));
                fresh.push(other);
            }
        }
        // What begins before another one commits may come later in the order of the commits.
        for other in &in_order[..at] {
            if closure.leads(one.begin, other.commit) && !closure.leads(one.commit, other.begin) {
                more.push(ordered(key, one, other, Why::Path(one.begin, other.commit), round));
            }
        }
    }
}

/// Adds what a read forces; returns an arc that makes a cycle, if it forces both orders.
fn reads(
    problem: &Problem,
    key: &Key,
    in_order: &[&Writer],
    read: &Read,
    closure: &Closure,
    round: u32,
    more: &mut Vec<Arc>,
) -> Option<Arc> {
    if read.rule == Rule::Nothing {
        return None;
    }
    let of = key.writers.get(read.from as usize);
    let of_row = of.map_or(NONE, |of| of.row);
    let mut fresh: Vec<u32> = Vec::new();
    for writer in in_order.iter().filter(|writer| writer.row != of_row && writer.row != read.row) {
        let rule = problem.rule(read, writer);
        if rule == Rule::Nothing {
            continue;
        }
        let is_seen = closure.leads(writer.commit, read.event);
        let is_later = of.is_none_or(|of| closure.leads(of.commit, writer.begin));
        let why = of.map_or(Why::Data, |of| Why::Path(of.commit, writer.begin));
        if is_seen && is_later {
            return Some(before(key, read, writer, why, round));
        }
        if let (true, Some(of)) = (is_seen, of) {
            if !closure.leads(writer.commit, of.begin) {
                more.push(ordered(key, writer, of, Why::Seen(writer.commit, read.event), round));
            }
        }
        let is_new = is_later && rule == Rule::Before && !closure.leads(read.event, writer.commit);
        if is_new && !fresh.iter().any(|&known| closure.leads(known, writer.commit)) {
            more.push(before(key, read, writer, why, round));
            fresh.push(writer.commit);
        }
    }
    None
}

/// Returns a cycle of arcs, of those that follow from the fewest others.
pub fn cycle(problem: &Problem) -> Stop {
    let last = problem.arcs.iter().map(|arc| arc.round).max().unwrap_or(0);
    let round = (0..=last).find(|&round| {
        let some: Vec<Arc> = problem.arcs.iter().filter(|arc| arc.round <= round).copied().collect();
        order(problem.events(), &links_of(&some)).is_none()
    });
    let round = round.unwrap_or(last);
    let mut best: Vec<u32> = Vec::new();
    let some: Vec<(u32, &Arc)> = (0..).zip(&problem.arcs).filter(|(_, arc)| arc.round <= round).collect();
    let parts = {
        let arcs: Vec<Arc> = some.iter().map(|(_, arc)| **arc).collect();
        let next = Next::new(problem.events(), &links_of(&arcs));
        super::super::graph::components(problem.events() as u32, |event, number| {
            next.of(event).get(number as usize).map(|&arc| arcs[arc as usize].to)
        })
    };
    for (place, arc) in
        some.iter().filter(|(_, arc)| parts.of[arc.from as usize] == parts.of[arc.to as usize]).take(TRIES)
    {
        let mut links = vec![*place];
        links.extend(path(problem, arc.to, arc.from, round + 1, |_| true));
        if best.is_empty() || links.len() < best.len() {
            best = links;
        }
    }
    Stop::Contradiction(Contradiction(best))
}

/// From how many arcs a short cycle is searched.
const TRIES: usize = 64;

/// Returns the places of the arcs of a shortest path, of those of rounds below a number.
pub fn path(problem: &Problem, from: u32, to: u32, below: u32, fits: impl Fn(&Arc) -> bool) -> Vec<u32> {
    let next = Next::new(problem.events(), &links_of(&problem.arcs));
    let mut came = vec![NONE; problem.events()];
    let mut waiting = std::collections::VecDeque::from([from]);
    let mut seen = vec![false; problem.events()];
    seen[from as usize] = true;
    while let Some(event) = waiting.pop_front().filter(|_| !seen[to as usize] || from == to) {
        for &place in next.of(event) {
            let arc = &problem.arcs[place as usize];
            if arc.round < below && fits(arc) && !std::mem::replace(&mut seen[arc.to as usize], true) {
                came[arc.to as usize] = place;
                waiting.push_back(arc.to);
            }
        }
    }
    let mut found = Vec::new();
    let mut event = to;
    while event != from && came[event as usize] != NONE {
        found.push(came[event as usize]);
        event = problem.arcs[came[event as usize] as usize].from;
    }
    found.reverse();
    found
}
