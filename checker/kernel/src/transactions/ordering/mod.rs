//! Decides whether the versions of registers have an order that a model allows. No read shows this order.
//!
//! `class` has what a model asks, and `problem` its events. A likely order is made (`candidate`; in real time `guided`) and checked by
//! the whole of `judge`, as if the system had told it. So `valid` is said only of a history with an order of its transactions
//! that has no anomaly. If it has one, all orders that are forced are added (`saturate`), and what they leave open is searched
//! (`search`). Then a cycle contradicts the model, whatever the order of the versions.

mod bounds;
mod candidate;
pub mod class;
mod closure;
mod guided;
pub mod problem;
mod saturate;
mod search;
pub mod shown;
#[cfg(test)]
mod tests;

use super::graph::Extra;
use super::judge::{judge, Judged, Question};
use super::positions::UNPLACED;
use super::registers::{source_pairs, Pair, Sources};
use super::{History, Writers, NONE, OK};
use candidate::candidate;
use class::Class;
use closure::links_of;
use guided::{guided, Guide};
use problem::{Arc, Maker, Problem};
use saturate::{causes, saturate};
use search::{failure, search, Failure};
use shown::Shown;

/// What a decision may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Words of the largest table of events.
    pub table: usize,
    /// Steps of a history that has a table.
    pub steps: usize,
    /// Orders that are made for each guide.
    pub passes: usize,
}

/// 128 MiB for the table.
pub const LIMITS: Limits = Limits { table: 1 << 24, steps: 2_000_000_000, passes: 12 };

/// Whether the versions have an order that the model allows.
#[derive(Debug)]
pub enum Ordering {
    Order,
    /// There is none: by cases, and the transactions of the contradiction.
    Contradiction(Vec<Case>, Vec<u32>),
    /// The history is too large for a table of its events.
    TooLarge,
    /// The steps did not suffice.
    Limit,
}

/// A part of a contradiction.
#[derive(Debug)]
pub struct Case {
    /// The order of two versions that it begins with: the key, and both versions.
    pub chosen: Option<(u32, u32, u32)>,
    /// How it contradicts, if that is short.
    pub shown: Option<Shown>,
}

/// What is asked of the order of versions.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub class: Class,
    pub extra: Extra,
    /// The anomalies that the history must not have.
    pub prohibited: &'a [&'a str],
    pub limits: Limits,
}

/// Decides a history whose known orders of versions make no anomaly that is prohibited.
pub fn ordering(
    question: &Question<'_>,
    asked: Asked<'_>,
    history: &History<'_>,
    writers: &Writers,
    contradicted: &[u8],
) -> Ordering {
    let sources = without(question.sources, contradicted);
    let pairs = known_pairs(asked.class, history, writers, sources);
    let mut problem = Maker::new(history, writers, asked.class).make(asked.extra, &pairs);
    drop(pairs);
    let time = times(&problem, history);
    let Limits { table, steps, passes } = asked.limits;
    let is_large = closure::words(problem.events()) > table;
    let links = links_of(&problem.arcs);
    if closure::order(problem.events(), &links).is_some() {
        let fits =
            |problem: &Problem, order: &[u32]| is_legal(question, asked, history, writers, problem, order, sources);
        let finds = |problem: &Problem, guide: Guide| {
            guided(problem, history, guide, passes).is_some_and(|order| fits(problem, &order))
        };
        // One transaction after the other is legal under all models.
        let serial = || Maker::new(history, writers, Class::Serial).make(Extra::None, &[]);
        let is_likely = || fits(&problem, &candidate(&problem, &time, &links).order);
        let is_guided = || {
            (asked.class != Class::Serial && finds(&serial(), Guide::All))
                || guides(asked.extra).iter().any(|&guide| finds(&problem, guide))
        };
        // Without a guide, a large history on few keys takes longer.
        let tries: [&dyn Fn() -> bool; 2] =
            if is_large { [&is_guided, &is_likely] } else { [&is_likely, &is_guided] };
        if tries.iter().any(|is_ordered| is_ordered()) {
            return Ordering::Order;
        }
    } else if is_large {
        return told(failure(&problem, &saturate::cycle(&problem)));
    }
    if is_large {
        return Ordering::TooLarge;
    }
    let mut left = steps;
    if asked.class == Class::Causal {
        if let Err(stop) = causes(&mut problem, &mut left) {
            return told(failure(&problem, &stop));
        }
    }
    let closure = match saturate(&mut problem, &mut left) {
        Ok(closure) => closure,
        Err(stop) => return told(failure(&problem, &stop)),
    };
    match search(&mut problem, &closure, &time, &mut left) {
        Ok(order) if is_legal(question, asked, history, writers, &problem, &order, sources) => Ordering::Order,
        Ok(_) => Ordering::Limit,
        Err(failure) => told(failure),
    }
}

/// Returns the guides of a search, given what orders transactions besides their data.
fn guides(extra: Extra) -> &'static [Guide] {
    if extra == Extra::Realtime {
        &[Guide::All]
    } else {
        &[Guide::All, Guide::Writers]
    }
}

fn told(failure: Failure) -> Ordering {
    match failure {
        Failure::Limit => Ordering::Limit,
        Failure::Cases(cases, mut rows) => {
            rows.sort_unstable();
            rows.dedup();
            let case = |(arc, shown): (Option<Arc>, Option<Shown>)| Case {
                chosen: arc.map(|arc| (arc.key, arc.before, arc.after)),
                shown,
            };
            Ordering::Contradiction(cases.into_iter().map(case).collect(), rows)
        }
    }
}

/// Returns the orders of versions that hold besides the data, each with the place of its source in `SOURCES`.
///
/// The classes with reads have the order of a read and the own write as a path. `Class::Uncommitted` has it of the versions whose order
/// the system does not tell.
fn known_pairs(class: Class, history: &History<'_>, writers: &Writers, sources: Sources) -> Vec<(u8, Vec<Pair>)> {
    let mut found = source_pairs(history, writers, sources);
    if class == Class::Uncommitted && !sources.writes_follow_reads {
        let is_told = |version: u32| {
            let row = writers.row.get(version as usize).copied().unwrap_or(NONE);
            sources.transaction_order && row != NONE && history.position[row as usize] != UNPLACED
        };
        let all = source_pairs(history, writers, Sources { writes_follow_reads: true, ..Sources::default() });
        let is_open = |&(one, other): &Pair| !(is_told(one) && is_told(other));
        found.extend(all.into_iter().map(|(source, pairs)| (source, pairs.into_iter().filter(is_open).collect())));
    }
    found
}

/// Returns the sources without those that contradict the others.
fn without(sources: Sources, contradicted: &[u8]) -> Sources {
    let keeps = |source: u8| !contradicted.contains(&source);
    Sources {
        writes_follow_reads: sources.writes_follow_reads && keeps(1),
        sequential_keys: sources.sequential_keys && keeps(2),
        linearizable_keys: sources.linearizable_keys && keeps(3),
        transaction_order: sources.transaction_order && keeps(4),
        atomic_visibility: sources.atomic_visibility && keeps(5),
        left_out: sources.left_out,
    }
}

/// Returns when each event likely happens: a transaction ends with its commit, and begins with all else.
fn times(problem: &Problem, history: &History<'_>) -> Vec<i64> {
    let mut last = vec![0u32; history.len()]; // by row: its last event
    for (event, &row) in (0..).zip(&problem.row) {
        last[row as usize] = event;
    }
    let mut time: Vec<i64> = (0..)
        .zip(&problem.row)
        .map(|(event, &row)| {
            let is_ok = history.kind[row as usize] == OK;
            if last[row as usize] == event && is_ok {
                history.end[row as usize]
            } else {
                history.start[row as usize]
            }
        })
        .collect();
    // Without an answer, it is likely not much earlier than the first one that shows it.
    let mut first: Vec<Option<i64>> = vec![None; problem.events()];
    for arc in &problem.arcs {
        if history.kind[problem.row[arc.from as usize] as usize] != OK {
            let known = &mut first[arc.from as usize];
            *known = Some(known.map_or(time[arc.to as usize], |known| known.min(time[arc.to as usize])));
        }
    }
    for (time, first) in time.iter_mut().zip(first) {
        *time = first.map_or(*time, |first| first.max(*time));
    }
    time
}

/// Returns whether a history has no anomaly that is prohibited, if its transactions happened in the order of all events.
fn is_legal(
    question: &Question<'_>,
    asked: Asked<'_>,
    history: &History<'_>,
    writers: &Writers,
    problem: &Problem,
    order: &[u32],
    sources: Sources,
) -> bool {
    if order.len() < problem.events() {
        return false; // what has no place in the order would not be checked
    }
    let mut position = vec![UNPLACED; history.len()];
    for (at, &event) in (0..).zip(order) {
        position[problem.row[event as usize] as usize] = at; // the last event is the commit
    }
    let (kind, process, start, end, table) =
        (history.kind, history.process, history.start, history.end, history.table);
    let placed = History { kind, process, start, end, table, place: history.place.clone(), position: &position };
    let question = Question { sources: Sources { transaction_order: true, ..sources }, asked: None, ..*question };
    judge(&question, &placed, writers).is_ok_and(|judged| !contradicts(&judged, asked.prohibited))
}

/// Returns whether some anomalies are prohibited, or not decided.
pub fn contradicts(judged: &Judged, prohibited: &[&str]) -> bool {
    let Judged { findings, cycles, walks, .. } = judged;
    let counts = findings.counts.iter().chain(&cycles.counts).chain(&walks.counts).map(|(name, _)| name);
    counts.chain(cycles.overlaps.iter().map(|(name, ..)| name)).any(|name| prohibited.contains(name))
}
