//! Anomalies of Adya's models that look at single reads (*Weak consistency*, MIT, 1999, chapter 4).
//!
//! A transaction is its reads, in their order, and then its commit. These events are the nodes here:
//!
//! - ww from W to T: W commits before T commits. wr: W commits before T's read. rw: T's read is before W commits.
//! - A read is before the next one of its transaction, and before its commit.
//!
//! The types:
//!
//! - `G-monotonic`, against PL-2L: a cycle of events with one rw. A transaction misses what it saw by an earlier read.
//! - `G-MSR`, against PL-MSR: a cycle of events with an rw. No order of all reads and commits explains what each read saw. Versions of
//!   appends that nobody read may follow each other in this order, so they add no cycle.

use std::collections::VecDeque;

use super::graph::{components, Components, Dependencies, Edge, PASS, RW, WR, WW};
use super::visibility::Walks;
use super::{History, Mop, Workload, NONE};

pub const MONOTONIC: &str = "G-monotonic";
pub const MSR: &str = "G-MSR";
pub const NAMES: [&str; 2] = [MONOTONIC, MSR];

/// Candidates that one sweep decides.
pub(super) const SWEEP: usize = 64;
/// Searches for the shortest witness in one component.
pub(super) const TRIES: usize = 64;

/// A step to a node, and the edge that it is or begins; `NONE` for an order of events or the rest of a fan.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub to: u32,
    pub edge: u32,
}

/// Reads, commits and fans as nodes.
pub struct Events {
    rows: u32,
    /// By node: the row of its transaction; `NONE` for a fan.
    row: Vec<u32>,
    first: Vec<u32>,
    steps: Vec<Step>,
    edges: Vec<Edge>,
}

/// A dependency, and the place of its read in the transaction that reads; `NONE` for ww.
pub struct Seen {
    pub edge: Edge,
    pub place: u32,
}

/// Each of some readers precedes each of some writers.
pub struct SeenFan {
    pub key: u32,
    /// Rows, versions, and the places of the reads.
    pub readers: Vec<(u32, u32, u32)>,
    pub writers: Vec<(u32, u32)>,
}

impl Events {
    /// Makes the events of some dependencies. Only those inside a component of transactions count.
    pub fn new(rows: u32, mut seen: Vec<Seen>, mut fans: Vec<SeenFan>) -> Self {
        hold_inside(rows, &mut seen, &mut fans);
        seen.sort_unstable_by_key(|Seen { edge, .. }| {
            (edge.from, edge.kind, edge.to, edge.key, edge.before, edge.after)
        });
        let mut reads: Vec<(u32, u32)> = Vec::new(); // rows and places
        for Seen { edge, place } in &seen {
            if *place != NONE {
                reads.push((if edge.kind == RW { edge.from } else { edge.to }, *place));
            }
        }
        for fan in &mut fans {
            fan.readers.sort_unstable_by_key(|&(row, _, place)| (row, place));
            fan.writers.sort_unstable();
            reads
                .extend(fan.readers.iter().filter(|(.., place)| *place != NONE).map(|&(row, _, place)| (row, place)));
        }
        reads.sort_unstable();
        reads.dedup();
        let event = |row: u32, place: u32| match reads.binary_search(&(row, place)) {
            Ok(number) => rows + number as u32,
            Err(_) => row,
        };
        let mut row: Vec<u32> = (0..rows).chain(reads.iter().map(|(row, _)| *row)).collect();
        let mut pairs: Vec<(u32, Step)> = Vec::new();
        for (number, &(of, _)) in reads.iter().enumerate() {
            let node = rows + number as u32;
            let is_last = reads.get(number + 1).is_none_or(|(other, _)| *other != of);
            pairs.push((node, Step { to: if is_last { of } else { node + 1 }, edge: NONE }));
        }
        let mut edges: Vec<Edge> = Vec::new();
        for Seen { edge, place } in &seen {
            let from = if edge.kind == RW { event(edge.from, *place) } else { edge.from };
            let to = if edge.kind == WR { event(edge.to, *place) } else { edge.to };
            pairs.push((from, Step { to, edge: edges.len() as u32 }));
            edges.push(*edge);
        }
        for fan in &fans {
            let hub = row.len() as u32;
            row.push(NONE);
            for &(from, before, place) in &fan.readers {
                pairs.push((event(from, place), Step { to: hub, edge: edges.len() as u32 }));
                edges.push(Edge { from, to: NONE, kind: RW, key: fan.key, before, after: NONE });
            }
            for &(to, after) in &fan.writers {
                pairs.push((hub, Step { to, edge: edges.len() as u32 }));
                edges.push(Edge { from: NONE, to, kind: PASS, key: fan.key, before: NONE, after });
            }
        }
        pairs.sort_by_key(|(from, _)| *from);
        let first = starts(row.len(), pairs.iter().map(|(from, _)| *from));
        Self { rows, row, first, steps: pairs.into_iter().map(|(_, step)| step).collect(), edges }
    }

    fn next(&self, node: u32, number: u32) -> Option<Step> {
        let place = self.first[node as usize] + number;
        (place < self.first[node as usize + 1]).then(|| self.steps[place as usize])
    }

    fn is_rw(&self, step: Step) -> bool {
        step.edge != NONE && self.edges[step.edge as usize].kind == RW
    }

    /// Returns a step that is no anti-dependency; one to `NONE` for an anti-dependency.
    fn flow(&self, node: u32, number: u32) -> Option<Step> {
        self.next(node, number).map(|step| if self.is_rw(step) { Step { to: NONE, ..step } } else { step })
    }

    /// Adds `G-monotonic` or `G-MSR`, once for each component of events that has it.
    pub fn search(&self, name: &'static str, found: &mut Walks) {
        let nodes = self.row.len() as u32;
        let whole = components(nodes, |node, number| self.next(node, number).map(|step| step.to)).by_first();
        let mut candidates: Vec<(u32, u32, Step)> = Vec::new(); // the component, the event that reads, and the step
        for node in self.rows..nodes {
            let mut number = 0;
            while let Some(step) = self.next(node, number) {
                number += 1;
                let part = whole.of[node as usize];
                if self.is_rw(step) && whole.of[step.to as usize] == part {
                    candidates.push((part, node, step));
                }
            }
        }
        candidates.sort_unstable_by_key(|(part, node, step)| (*part, *node, step.edge));
        let flow = (name == MONOTONIC && !candidates.is_empty())
            .then(|| components(nodes, |node, number| self.flow(node, number).map(|step| step.to)));
        let mut sizes = vec![0usize; whole.count as usize];
        for row in 0..self.rows {
            sizes[whole.of[row as usize] as usize] += 1;
        }
        let members = Members::new(&whole, candidates.iter().map(|(part, ..)| *part));
        for some in candidates.chunk_by(|one, other| one.0 == other.0) {
            let hits =
                flow.as_ref().map_or_else(|| some.to_vec(), |flow| self.single(some, members.of(some[0].0), flow));
            if !hits.is_empty() {
                let first = members.of(some[0].0)[0];
                found.add(name, sizes[some[0].0 as usize], first, || self.witness(&hits, flow.is_some()));
            }
        }
    }

    /// Returns those of some candidates whose target reaches their origin without an anti-dependency, of the first sweep with any.
    fn single(&self, some: &[(u32, u32, Step)], members: &[u32], flow: &Components) -> Vec<(u32, u32, Step)> {
        let mut members = members.to_vec();
        members.sort_unstable_by_key(|&node| std::cmp::Reverse(flow.of[node as usize]));
        let low = members.last().map_or(0, |&node| flow.of[node as usize]);
        let high = members.first().map_or(0, |&node| flow.of[node as usize]);
        let at = |node: u32| (flow.of[node as usize] - low) as usize;
        let mut reached = vec![0u64; (high - low) as usize + 1];
        for chunk in some.chunks(SWEEP) {
            reached.fill(0);
            for (bit, (_, _, step)) in chunk.iter().enumerate() {
                reached[at(step.to)] |= 1 << bit;
            }
            for &node in &members {
                let here = reached[at(node)];
                let mut number = 0;
                while let Some(step) = self.flow(node, number).filter(|_| here != 0) {
                    number += 1;
                    if step.to != NONE && (low..=high).contains(&flow.of[step.to as usize]) {
                        reached[at(step.to)] |= here;
                    }
                }
            }
            let hits = (0..).zip(chunk).filter(|(bit, (_, node, _))| reached[at(*node)] >> bit & 1 == 1);
            let hits: Vec<_> = hits.map(|(_, each)| *each).collect();
            if !hits.is_empty() {
                return hits;
            }
        }
        Vec::new()
    }

    /// Returns the shortest cycle that begins with one of some anti-dependencies, as edges between transactions.
    fn witness(&self, hits: &[(u32, u32, Step)], only_flow: bool) -> Vec<Edge> {
        let next = |node: u32, number: u32| if only_flow { self.flow(node, number) } else { self.next(node, number) };
        let cycle = |&(_, node, step): &(u32, u32, Step)| {
            let mut steps = path(step.to, node, self.row.len(), next);
            steps.insert(0, step);
            self.edges_of(&steps)
        };
        hits.iter().take(TRIES).map(cycle).min_by_key(Vec::len).unwrap_or_default()
    }

    fn edges_of(&self, steps: &[Step]) -> Vec<Edge> {
        let mut found: Vec<Edge> = Vec::new();
        for edge in steps.iter().filter(|step| step.edge != NONE).map(|step| self.edges[step.edge as usize]) {
            match found.last_mut() {
                Some(last) if edge.kind == PASS => (last.to, last.after) = (edge.to, edge.after),
                _ => found.push(edge),
            }
        }
        found.retain(|edge| edge.from != edge.to);
        found
    }
}

/// Returns the dependencies of a history and their fans, with the places of reads.
pub fn seen_in(history: &History<'_>, workload: Workload, dependencies: &Dependencies) -> (Vec<Seen>, Vec<SeenFan>) {
    let place = |of: u32, key: u32, version: u32, latest: bool| {
        let fits =
            |mop: &Mop| mop.is_read && mop.known && mop.key == key && version_of(history, workload, mop) == version;
        let mops = history.of(of as usize);
        let place = if latest { mops.iter().rposition(fits) } else { mops.iter().position(fits) };
        place.map_or(NONE, |place| place as u32)
    };
    let seen = dependencies.edges.iter().filter(|edge| edge.kind & (WW | WR | RW) != 0).map(|edge| Seen {
        edge: *edge,
        place: match edge.kind {
            RW => place(edge.from, edge.key, edge.before, true),
            WR => place(edge.to, edge.key, edge.after, false),
            _ => NONE,
        },
    });
    let fans = dependencies.fans.iter().filter(|fan| fan.kind == RW).map(|fan| {
        let reader = |&(row, version): &(u32, u32)| (row, version, place(row, fan.key, version, true));
        SeenFan { key: fan.key, readers: fan.readers.iter().map(reader).collect(), writers: fan.writers.clone() }
    });
    (seen.collect(), fans.collect())
}

/// Returns the version that a read returned.
pub fn version_of(history: &History<'_>, workload: Workload, mop: &Mop) -> u32 {
    match workload {
        Workload::Lists => history.list(mop).last().copied().unwrap_or(NONE),
        Workload::Registers => mop.elem,
    }
}

/// Returns by node the place of its first pair, if pairs are in the order of their first nodes; one more at the end.
fn starts(nodes: usize, from: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut first = vec![0u32; nodes + 1];
    from.for_each(|node| first[node as usize + 1] += 1);
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    first
}

/// Removes what leads from one component of transactions to another one.
fn hold_inside(rows: u32, seen: &mut Vec<Seen>, fans: &mut [SeenFan]) {
    let nodes = rows + fans.len() as u32;
    let mut pairs: Vec<(u32, u32)> = seen.iter().map(|Seen { edge, .. }| (edge.from, edge.to)).collect();
    for (hub, fan) in (rows..).zip(&*fans) {
        pairs.extend(fan.readers.iter().map(|&(row, ..)| (row, hub)));
        pairs.extend(fan.writers.iter().map(|&(row, _)| (hub, row)));
    }
    pairs.sort_unstable();
    let first = starts(nodes as usize, pairs.iter().map(|(from, _)| *from));
    let whole = components(nodes, |node, number| {
        let place = first[node as usize] + number;
        (place < first[node as usize + 1]).then(|| pairs[place as usize].1)
    });
    let same = |one: u32, other: u32| whole.of[one as usize] == whole.of[other as usize];
    seen.retain(|Seen { edge, .. }| same(edge.from, edge.to));
    for (hub, fan) in (rows..).zip(fans) {
        fan.readers.retain(|&(row, ..)| same(row, hub));
        fan.writers.retain(|&(row, _)| same(row, hub));
    }
}

/// The nodes of some components.
pub(super) struct Members {
    parts: Vec<u32>,
    of: Vec<Vec<u32>>,
}

impl Members {
    pub fn new(whole: &Components, parts: impl Iterator<Item = u32>) -> Self {
        let mut parts: Vec<u32> = parts.collect();
        parts.dedup();
        let mut of = vec![Vec::new(); parts.len()];
        for (node, part) in (0..).zip(&whole.of) {
            if let Ok(place) = parts.binary_search(part) {
                of[place].push(node);
            }
        }
        Self { parts, of }
    }

    pub fn of(&self, part: u32) -> &[u32] {
        self.parts.binary_search(&part).map_or(&[], |place| &self.of[place])
    }
}

/// Returns the steps of a shortest path; none if there is no path, or if both ends are one node. Only edges count, so other nodes
/// between them, such as those of fans, do not matter.
pub(super) fn path(from: u32, to: u32, nodes: usize, next: impl Fn(u32, u32) -> Option<Step>) -> Vec<Step> {
    let mut parent: Vec<(u32, Step)> = vec![(NONE, Step { to: NONE, edge: NONE }); nodes];
    let mut distance = vec![NONE; nodes];
    distance[from as usize] = 0;
    let mut queue = VecDeque::from([(from, 0)]);
    while let Some((node, at)) = queue.pop_front().filter(|&(node, _)| node != to) {
        let mut number = 0;
        while let Some(step) = next(node, number).filter(|_| at == distance[node as usize]) {
            number += 1;
            let there = at + u32::from(step.edge != NONE);
            if step.to == NONE || distance[step.to as usize] <= there {
                continue;
            }
            distance[step.to as usize] = there;
            parent[step.to as usize] = (node, step);
            if step.edge == NONE {
                queue.push_front((step.to, there));
            } else {
                queue.push_back((step.to, there));
            }
        }
    }
    let mut steps = Vec::new();
    let mut node = to;
    while node != from && parent[node as usize].0 != NONE {
        let (before, step) = parent[node as usize];
        steps.push(step);
        node = before;
    }
    steps.reverse();
    steps
}
