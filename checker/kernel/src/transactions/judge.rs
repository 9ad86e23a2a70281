//! Finds the anomalies of a history of transactions: the dependencies, their cycles, and what is searched on demand.

use super::accesses::{Accesses, Versions};
use super::conflicts::conflicts;
use super::cycles::{cycles, Cycles};
use super::doubled::{told_apart, Apart};
use super::forced::{forced, FORCED, UPDATED};
use super::graph::{Extra, Graph, Reason};
use super::lists::{lists, Orders};
use super::missed::MISSED;
use super::ordering::{contradicts, ordering, Asked, Ordering};
use super::positions::{placed, Placed, SamePosition};
use super::registers::{places, registers, Sources};
use super::updates::{updates, UPDATE};
use super::views::{self, seen_in, Events};
use super::visibility::{visibility, Walks, CAUSAL, FRACTURED, VANISHES};
use super::{Findings, History, Table, Workload, Writers, WrittenTwice, KEPT};

/// The result for a history that could be judged.
pub struct Judged {
    pub findings: Findings,
    pub graph: Graph,
    pub reasons: Vec<Reason>,
    pub data_edges: usize,
    pub cycles: Cycles,
    pub walks: Walks,
    /// The sources of orders that contradict the others.
    pub contradicted: Vec<u8>,
    /// If the system's own order is used.
    pub placed: Option<Placed>,
    /// Of registers without an anomaly that is prohibited: whether their versions have an order.
    pub ordering: Option<Ordering>,
    /// If values were written twice.
    pub twice: Option<Twice>,
}

/// What is known of values that were written twice; see `doubled`.
pub struct Twice {
    pub first: WrittenTwice,
    /// The transactions that were judged.
    pub table: Table,
    /// How many values, each of one key.
    pub values: usize,
    /// How many reads were left out. Without any, the verdict is that of the whole history.
    pub reads: usize,
}

/// What to judge by.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    pub workload: Workload,
    pub sources: Sources,
    pub extra: Extra,
    /// The anomalies to search besides those that are always searched.
    pub more: &'a [&'a str],
    /// What the order of the versions of registers must keep.
    pub asked: Option<Asked<'a>>,
}

/// Returns whether some anomalies need what transactions read and wrote.
pub fn needs_accesses(more: &[&str]) -> bool {
    more.iter().any(|name| [VANISHES, FRACTURED, CAUSAL, MISSED, UPDATE, FORCED, UPDATED].contains(name))
}

/// Returns whether some anomalies need the places of reads.
pub fn needs_views(more: &[&str]) -> bool {
    more.iter().any(|name| views::NAMES.contains(name))
}

/// Finds the cycles of a graph, and some anomalies that are searched on demand.
pub fn searched(
    graph: &Graph,
    accesses: Option<&Accesses>,
    events: Option<&Events>,
    more: &[&str],
) -> (Cycles, Walks) {
    let found = cycles(graph, KEPT);
    let mut walks = Walks::default();
    forced(accesses, graph, more, &mut walks);
    visibility(accesses, graph, more, &mut walks);
    if let Some(events) = events {
        for name in views::NAMES.into_iter().filter(|name| more.contains(name)) {
            events.search(name, &mut walks);
        }
    }
    if let (Some(accesses), true) = (accesses, more.contains(&UPDATE)) {
        updates(accesses, graph, &mut walks);
    }
    (found, walks)
}

/// Returns the accesses of a history: of lists with their orders, or of registers with the reasons for the orders of versions.
pub fn accesses(history: &History<'_>, writers: &Writers, orders: Option<&Orders>, reasons: &[Reason]) -> Accesses {
    match orders {
        Some(orders) => Accesses::of_history(history, writers, &Versions::OfLists(orders)),
        None => Accesses::of_history(history, writers, &Versions::OfRegisters(&places(history, reasons))),
    }
}

/// Judges a history; its registers without an anomaly that is prohibited are decided by the orders of their versions.
pub fn judged(question: &Question<'_>, history: &History<'_>) -> Result<Judged, SamePosition> {
    let first = match Writers::of(history) {
        Ok(writers) => return decided(question, history, &writers),
        Err(first) => first,
    };
    let is_prohibited = |name| question.asked.is_some_and(|asked| asked.prohibited.contains(&name));
    let certain = question.sources == Sources::default() && ["G1a", "G1b", "G1c"].into_iter().all(is_prohibited);
    let Apart { table, values, reads } = told_apart(history, question.workload, certain);
    let apart = History { table: &table, place: history.place.clone(), ..*history };
    let Ok(writers) = Writers::of(&apart) else { unreachable!("each write has a version of its own") };
    let found = decided(question, &apart, &writers)?;
    Ok(Judged { twice: Some(Twice { first, table, values, reads }), ..found })
}

/// Judges a history whose writes are told apart.
fn decided(question: &Question<'_>, history: &History<'_>, writers: &Writers) -> Result<Judged, SamePosition> {
    let mut found = judge(question, history, writers)?;
    let asked = question
        .asked
        .filter(|asked| question.workload == Workload::Registers && !contradicts(&found, asked.prohibited));
    found.ordering = asked.map(|asked| ordering(question, asked, history, writers, &found.contradicted));
    Ok(found)
}

/// Judges a history by the known orders of its versions.
pub fn judge(question: &Question<'_>, history: &History<'_>, writers: &Writers) -> Result<Judged, SamePosition> {
    let placed = question.sources.transaction_order.then(|| placed(history)).transpose()?;
    let mut findings = Findings::default();
    let (mut dependencies, orders) = match question.workload {
        Workload::Lists => {
            let (dependencies, orders) = lists(history, writers, question.sources, &mut findings);
            (dependencies, (!question.more.is_empty()).then_some(orders))
        }
        Workload::Registers => (registers(history, writers, question.sources, &mut findings), None),
    };
    let data_edges = dependencies.len();
    let reasons = std::mem::take(&mut dependencies.reasons);
    let groups = std::mem::take(&mut dependencies.groups);
    let contradicted = std::mem::take(&mut dependencies.contradicted);
    let events = needs_views(question.more).then(|| {
        let (seen, fans) = seen_in(history, question.workload, &dependencies);
        Events::new(history.len() as u32, seen, fans)
    });
    conflicts(history.len(), &groups, &mut dependencies);
    drop(groups);
    let graph = Graph::new(history, dependencies, question.extra);
    let accesses = needs_accesses(question.more).then(|| accesses(history, writers, orders.as_ref(), &reasons));
    let (cycles, walks) = searched(&graph, accesses.as_ref(), events.as_ref(), question.more);
    Ok(Judged {
        findings,
        graph,
        reasons,
        data_edges,
        cycles,
        walks,
        placed,
        contradicted,
        ordering: None,
        twice: None,
    })
}
