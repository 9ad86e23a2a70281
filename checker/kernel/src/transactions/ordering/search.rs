//! Searches an order of the versions that a class allows, where no rule forces one.
//!
//! To find one is NP-complete for most classes (Biswas and Enea, *On the complexity of checking transactional consistency*, OOPSLA
//! 2019), so the search has a limit of steps. Only the parts of the events matter that have a cycle if both orders of each pair of
//! versions without one are there: a pair across two parts has an order already, and no path leaves a part and comes back. In
//! a part, a likely order is checked first. If it contradicts, both orders of a pair are tried, with all that each of them forces.

use super::super::graph::components;
use super::super::NONE;
use super::candidate::candidate;
use super::class::Rule;
use super::closure::{links_of, Closure};
use super::problem::{Arc, Key, Problem, Read, Why, Writer};
use super::saturate::{ordered, saturate, spend, Stop};
use super::shown::{shown, Shown};

/// Why there is no order, or none was found.
#[derive(Debug)]
pub enum Failure {
    /// Each case contradicts: the order of two versions that it begins with, if there are two, and how.
    Cases(Vec<(Option<Arc>, Option<Shown>)>, Vec<u32>),
    Limit,
}

/// Returns the events in an order that keeps all that a saturated problem asks.
pub fn search(problem: &mut Problem, closure: &Closure, time: &[i64], left: &mut usize) -> Result<Vec<u32>, Failure> {
    for part in parts(problem, closure, left)? {
        let (mut small, events) = part;
        let some: Vec<i64> = events.iter().map(|&event| time[event as usize]).collect();
        let last = problem.arcs.iter().map(|arc| arc.round).max().unwrap_or(0) + 1;
        let found = match saturate(&mut small, left) {
            Ok(closure) => tried(&small, closure, &some, left, true)?,
            Err(stop) => return Err(failure(&small, &stop)),
        };
        let mut place = vec![0u32; events.len()];
        for (at, &event) in (0..).zip(&found) {
            place[event as usize] = at;
        }
        for key in &small.keys {
            for arc in chain(key, &place) {
                let (from, to) = (events[arc.from as usize], events[arc.to as usize]);
                problem.arcs.push(Arc { from, to, round: last, ..arc });
            }
        }
    }
    match saturate(problem, left) {
        Ok(closure) => Ok(closure.order),
        // Parts do not touch each other, so this is no contradiction.
        Err(_) => Err(Failure::Limit),
    }
}

/// Returns what a stop of the saturation means.
pub fn failure(problem: &Problem, stop: &Stop) -> Failure {
    match stop {
        Stop::Limit => Failure::Limit,
        Stop::Contradiction(cycle) => {
            let shown = shown(problem, cycle);
            let rows = shown.cycle.iter().map(|edge| edge.from).collect();
            Failure::Cases(vec![(None, Some(shown))], rows)
        }
    }
}

/// Yields the orders of neighbours among the writers of a key, by the places of their commits.
fn chain<'a>(key: &'a Key, place: &[u32]) -> impl Iterator<Item = Arc> + 'a {
    let mut in_order: Vec<&Writer> = key.writers.iter().collect();
    in_order.sort_unstable_by_key(|writer| place[writer.commit as usize]);
    let pairs: Vec<Arc> = in_order.windows(2).map(|pair| ordered(key, pair[0], pair[1], Why::Chosen, 0)).collect();
    pairs.into_iter()
}

/// Tries a likely order, and then both orders of a pair. The problem is saturated.
fn tried(
    problem: &Problem,
    closure: Closure,
    time: &[i64],
    left: &mut usize,
    is_first: bool,
) -> Result<Vec<u32>, Failure> {
    let likely = candidate(problem, time, &links_of(&problem.arcs)).order;
    let mut place = vec![0u32; likely.len()];
    for (at, &event) in (0..).zip(&likely) {
        place[event as usize] = at;
    }
    let round = problem.arcs.iter().map(|arc| arc.round).max().unwrap_or(0) + 1;
    let mut open: Option<Arc> = None;
    let mut whole = problem.clone();
    for key in &problem.keys {
        let arcs = chain(key, &place).filter(|arc| !closure.leads(arc.from, arc.to));
        for arc in arcs {
            if open.is_none() {
                open = Some(Arc { round, ..arc });
            }
            whole.arcs.push(Arc { round, ..arc });
        }
    }
    drop(closure); // one table at a time, however deep the search is
    match saturate(&mut whole, left) {
        Ok(closure) => return Ok(closure.order),
        Err(Stop::Limit) => return Err(Failure::Limit),
        Err(Stop::Contradiction(_)) => {}
    }
    drop(whole);
    let rows = || {
        let mut rows: Vec<u32> = problem.row.clone();
        rows.sort_unstable();
        rows.dedup();
        rows
    };
    let Some(first) = open else {
        // All pairs have an order already, so the saturation of the same arcs contradicted.
        return Err(Failure::Cases(Vec::new(), rows()));
    };
    let mut cases = Vec::new();
    for arc in [first, turned(problem, &first)] {
        let mut child = problem.clone();
        child.arcs.push(arc);
        let result = match saturate(&mut child, left) {
            Ok(closure) => tried(&child, closure, time, left, false),
            Err(Stop::Limit) => Err(Failure::Limit),
            Err(Stop::Contradiction(cycle)) => {
                let how = is_first.then(|| shown(&child, &cycle));
                cases.push((Some(arc), how));
                continue;
            }
        };
        match result {
            Err(Failure::Cases(..)) => cases.push((Some(arc), None)),
            known => return known,
        }
    }
    Err(Failure::Cases(cases, rows()))
}

/// Returns the other order of two versions.
fn turned(problem: &Problem, arc: &Arc) -> Arc {
    let key = problem.keys.iter().find(|key| key.key == arc.key);
    let of = |version: u32| key.and_then(|key| key.writers.iter().find(|writer| writer.version == version));
    match (key, of(arc.after), of(arc.before)) {
        (Some(key), Some(one), Some(other)) => ordered(key, one, other, Why::Chosen, arc.round),
        _ => *arc,
    }
}

/// Returns the parts in which versions have no order: each as a problem, with its events in the whole.
fn parts(problem: &Problem, closure: &Closure, left: &mut usize) -> Result<Vec<(Problem, Vec<u32>)>, Failure> {
    let has_order = |one: &Writer, other: &Writer| closure.leads(one.commit, other.begin);
    let mut more: Vec<(u32, u32)> = problem.arcs.iter().map(|arc| (arc.from, arc.to)).collect();
    let mut open: Vec<bool> = vec![false; problem.events()];
    for key in &problem.keys {
        spend(left, key.writers.len() * (key.writers.len() + key.reads.len())).map_err(|_| Failure::Limit)?;
        for (at, one) in key.writers.iter().enumerate() {
            for other in &key.writers[at + 1..] {
                if !has_order(one, other) && !has_order(other, one) {
                    more.extend([(one.commit, other.begin), (other.commit, one.begin)]);
                    open[one.commit as usize] = true;
                }
            }
        }
        for read in key.reads.iter().filter(|read| read.rule != Rule::Nothing) {
            let of = key.writers.get(read.from as usize);
            for writer in key.writers.iter().filter(|writer| writer.row != read.row) {
                if of.is_none_or(|of| of.row != writer.row && !has_order(writer, of)) {
                    more.push((read.event, writer.commit));
                }
            }
        }
    }
    more.sort_unstable();
    more.dedup();
    let first: Vec<usize> =
        (0..=problem.events() as u32).map(|event| more.partition_point(|pair| pair.0 < event)).collect();
    let whole = components(problem.events() as u32, |event, number| {
        let place = first[event as usize] + number as usize;
        (place < first[event as usize + 1]).then(|| more[place].1)
    });
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); whole.count as usize];
    for (event, &part) in (0..).zip(&whole.of) {
        members[part as usize].push(event);
    }
    let mut has_choice = vec![false; whole.count as usize];
    for (event, _) in open.iter().enumerate().filter(|(_, open)| **open) {
        has_choice[whole.of[event] as usize] = true;
    }
    let with_choice = members.into_iter().zip(has_choice).filter(|(_, has_choice)| *has_choice);
    Ok(with_choice.map(|(events, _)| part(problem, closure, events)).collect())
}

/// Returns the problem of some events. The writers of versions that they read of are among its own, with their orders.
fn part(problem: &Problem, closure: &Closure, mut events: Vec<u32>) -> (Problem, Vec<u32>) {
    let mut inside = vec![false; problem.events()];
    for &event in &events {
        inside[event as usize] = true;
    }
    let core = inside.clone();
    let mut keys: Vec<(usize, Vec<bool>)> = Vec::new(); // the place of a key, and which of its writers are inside
    for (number, key) in problem.keys.iter().enumerate() {
        let mut kept: Vec<bool> = key.writers.iter().map(|writer| core[writer.commit as usize]).collect();
        for read in key.reads.iter().filter(|read| core[read.event as usize] && read.from != NONE) {
            kept[read.from as usize] = true;
        }
        if kept.iter().any(|&kept| kept) {
            for (writer, _) in key.writers.iter().zip(&kept).filter(|(_, kept)| **kept) {
                for event in [writer.begin, writer.commit] {
                    if !std::mem::replace(&mut inside[event as usize], true) {
                        events.push(event);
                    }
                }
            }
            keys.push((number, kept));
        }
    }
    let mut place = vec![NONE; problem.events()];
    for (at, &event) in (0..).zip(&events) {
        place[event as usize] = at;
    }
    let at = |event: u32| place[event as usize];
    let is_inside = |arc: &&Arc| inside[arc.from as usize] && inside[arc.to as usize];
    let mut arcs: Vec<Arc> = problem.arcs.iter().filter(is_inside).copied().collect();
    let round = arcs.iter().map(|arc| arc.round).max().unwrap_or(0);
    let mut found =
        Problem { row: events.iter().map(|&event| problem.row[event as usize]).collect(), ..Problem::default() };
    for (number, kept) in keys {
        let key = &problem.keys[number];
        let mut new = vec![NONE; key.writers.len()];
        let mut writers: Vec<Writer> = Vec::new();
        for (place, writer) in key.writers.iter().enumerate().filter(|(place, _)| kept[*place]) {
            for other in key.writers[..place].iter().zip(&kept).filter(|(_, kept)| **kept).map(|(other, _)| other) {
                for (one, other) in [(writer, other), (other, writer)] {
                    if closure.leads(one.commit, other.begin) {
                        let why = Why::Path(one.commit, other.begin);
                        arcs.push(ordered(key, one, other, why, round));
                    }
                }
            }
            new[place] = writers.len() as u32;
            writers.push(Writer { begin: at(writer.begin), commit: at(writer.commit), ..*writer });
        }
        let reads = key.reads.iter().filter(|read| core[read.event as usize]).map(|read| Read {
            event: at(read.event),
            from: if read.from == NONE { NONE } else { new[read.from as usize] },
            ..*read
        });
        found.keys.push(Key { key: key.key, reads: reads.collect(), writers });
    }
    found.arcs =
        arcs.into_iter().map(|arc| Arc { from: at(arc.from), to: at(arc.to), why: Why::Data, ..arc }).collect();
    found.written.clone_from(&problem.written);
    (found, events)
}
