//! Finds the anomalies of a history of transactions: the dependencies, their cycles, and what is searched on demand.

use super::accesses::{Accesses, Versions};
use super::conflicts::conflicts;
use super::cycles::{cycles, Cycles};
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
use super::{Findings, History, Workload, Writers, WrittenTwice, KEPT};

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
}

/// Why a history could not be judged.
pub enum Unusable {
    Twice(WrittenTwice),
    Together(SamePosition),
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
pub fn judged(question: &Question<'_>, history: &History<'_>) -> Result<Judged, Unusable> {
    let writers = Writers::of(history).map_err(Unusable::Twice)?;
    let mut found = judge(question, history, &writers)?;
    let asked = question
        .asked
        .filter(|asked| question.workload == Workload::Registers && !contradicts(&found, asked.prohibited));
    found.ordering = asked.map(|asked| ordering(question, asked, history, &writers, &found.contradicted));
    Ok(found)
}

/// Judges a history by the known orders of its versions.
pub fn judge(question: &Question<'_>, history: &History<'_>, writers: &Writers) -> Result<Judged, Unusable> {
    let placed =
        question.sources.transaction_order.then(|| placed(history)).transpose().map_err(Unusable::Together)?;
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
    Ok(Judged { findings, graph, reasons, data_edges, cycles, walks, placed, contradicted, ordering: None })
}
