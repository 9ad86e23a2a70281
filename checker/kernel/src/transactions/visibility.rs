//! Anomalies of the models between read committed and snapshot isolation, each exact for its model. Elle has no names for them.
//!
//! Cerone, Bernardi and Gotsman (*A framework for transactional consistency models with atomic visibility*, CONCUR 2015) define a
//! model by an order of all transactions, and by the earlier ones that each of them sees. A transaction reads what the last visible
//! writer of the key left. So a writer that is read is visible, and a writer of a later version is not visible. Let rw* lead from
//! a reader to each writer of a later version, and not only to the next one.
//!
//! - `fractured-read`, against read atomic: wr from W to T and rw* from T to W. All of a visible transaction is visible.
//! - `G-causal`, against causal consistency: a path of wr from W to T, and rw* from T to W. What a visible transaction sees is visible.
//! - `G-prefix`, against prefix consistency: a cycle in which each rw follows a wr. A transaction sees a beginning of the order, so it
//!   has a snapshot: wr is from a commit to a snapshot, rw from a snapshot to a commit, and ww from a commit to a commit. Versions
//!   of appends that nobody read may follow each other in the order of the transactions, so they add no cycle.
//!
//! Without them, and without cycles of ww and wr, the visible ones are those that must be, and any order that ww, wr and, for
//! prefix consistency, wr with rw agree with is one of the model.
//!
//! - `observed-transaction-vanishes`, against monotonic atomic view: a fractured read whose read of the older version comes later in
//!   the transaction (Bailis and others, *Highly available transactions*, VLDB 2014).

use std::collections::VecDeque;

use super::accesses::{Accesses, Read};
use super::graph::{components, Edge, Graph, Step, RW, WR, WW};
use super::inside::Inside;
use super::missed::{missed, MISSED};
use super::witness::{edges_of, Rule, Witnesses};
use super::{KEPT, NONE};

pub const VANISHES: &str = "observed-transaction-vanishes";
pub const FRACTURED: &str = "fractured-read";
pub const CAUSAL: &str = "G-causal";
pub const PREFIX: &str = "G-prefix";
pub const NAMES: [&str; 5] = [VANISHES, FRACTURED, CAUSAL, PREFIX, MISSED];

/// Reads that one sweep decides.
const SWEEP: usize = 64;

/// A cycle; the end of each edge is the start of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    pub name: &'static str,
    pub edges: Vec<Edge>,
    /// The transaction that shows it, or the first one of its component.
    pub first: u32,
    /// The number of transactions in its component.
    pub component: usize,
}

/// Cycles by name: some in full, and the number of all.
#[derive(Default)]
pub struct Walks {
    pub kept: Vec<Walk>,
    pub counts: Vec<(&'static str, usize)>,
}

impl Walks {
    pub fn add(&mut self, name: &'static str, component: usize, first: u32, edges: impl FnOnce() -> Vec<Edge>) {
        let place = self.counts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.counts.push((name, 0));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
        if self.counts[place].1 <= KEPT {
            self.kept.push(Walk { name, edges: edges(), first, component });
        }
    }
}

/// Finds the anomalies with some of the `NAMES`; all but `G-prefix` need the accesses.
pub fn visibility(accesses: Option<&Accesses>, graph: &Graph, names: &[&str], found: &mut Walks) {
    if let Some(accesses) = accesses {
        for name in [VANISHES, FRACTURED].into_iter().filter(|name| names.contains(name)) {
            fractured(accesses, name, found);
        }
        if names.contains(&CAUSAL) {
            causal(accesses, graph, found);
        }
        if names.contains(&MISSED) {
            missed(accesses, found);
        }
    }
    if names.contains(&PREFIX) {
        prefix(graph, found);
    }
}

/// Adds each transaction that read a version of another one, and for another key an older version than that one's, once.
fn fractured(accesses: &Accesses, name: &'static str, found: &mut Walks) {
    for row in 0..accesses.rows() {
        let reads = accesses.reads(row);
        let mut by_key = reads.to_vec();
        by_key.sort_by_key(|read| (read.key, read.place));
        let older = |read: &Read| {
            let writer = accesses.writer(read.last).filter(|&writer| writer != row)?;
            accesses.writes(writer).iter().find_map(|write| {
                let end = by_key.partition_point(|other| other.key <= write.key);
                let other = by_key[..end].last().filter(|other| other.key == write.key)?;
                let is_later = name == FRACTURED || other.place > read.place;
                (is_later && write.at >= other.count).then_some((*other, writer, write.elem))
            })
        };
        if let Some((read, (other, writer, elem))) = reads.iter().find_map(|read| Some((read, older(read)?))) {
            found.add(name, 2, row, || {
                vec![
                    Edge { from: row, to: writer, kind: RW, key: other.key, before: other.version, after: elem },
                    Edge { from: writer, to: row, kind: WR, key: read.key, before: NONE, after: read.last },
                ]
            });
        }
    }
}

/// Adds each component of the graph in which a transaction misses a cause of what it read.
///
/// Reachability is decided for 64 reads in one sweep over the wr edges of a component, in a topological order of them.
fn causal(accesses: &Accesses, graph: &Graph, found: &mut Walks) {
    let inside = Inside::new(graph);
    let flow = components(graph.nodes, |node, number| inside.step(node, number, WR).map(|step| step.to));
    let part = |row: u32| inside.whole.of[row as usize];
    let mut rows: Vec<u32> = (0..graph.rows).filter(|&row| inside.has_cycle(row)).collect();
    rows.sort_unstable_by_key(|&row| (part(row), std::cmp::Reverse(flow.of[row as usize])));
    let mut seeds = vec![0u64; graph.rows as usize];
    let mut arrived = vec![0u64; graph.rows as usize];
    for members in rows.chunk_by(|one, other| part(*one) == part(*other)) {
        let mut in_order = members.to_vec();
        in_order.sort_unstable();
        let mut reads: Vec<Read> = in_order.iter().flat_map(|&row| accesses.reads(row)).copied().collect();
        reads.sort_by_key(|read| (read.key, read.count));
        let hit = reads.chunks(SWEEP).find_map(|some| {
            for &row in members {
                (seeds[row as usize], arrived[row as usize]) = (0, 0);
            }
            let mut number = 0;
            for of_key in some.chunk_by(|one, other| one.key == other.key) {
                let mut bits = 0u64;
                let mut waiting = of_key.iter().peekable();
                for write in accesses.later(&of_key[0]).filter(|write| part(write.row) == part(members[0])) {
                    while waiting.next_if(|read| read.count <= write.at).is_some() {
                        bits |= 1 << number;
                        number += 1;
                    }
                    seeds[write.row as usize] |= bits;
                }
                number += waiting.count();
            }
            for &row in members {
                let here = seeds[row as usize] | arrived[row as usize];
                let mut at = 0;
                while let Some(step) = inside.step(row, at, WR).filter(|_| here != 0) {
                    at += 1;
                    if step.to < graph.rows {
                        arrived[step.to as usize] |= here;
                    }
                }
            }
            let read = (0..).zip(some).find(|(bit, read)| arrived[read.row as usize] >> bit & 1 == 1);
            read.map(|(_, read)| *read)
        });
        let Some(read) = hit else { continue };
        found.add(CAUSAL, members.len(), in_order[0], || {
            let starts =
                accesses.later(&read).filter(|write| write.row != read.row && part(write.row) == part(read.row));
            path(&inside, starts.map(|write| (write.row, write.elem)), &read)
        });
    }
}

/// Returns a shortest path of wr from one of some writers of later versions to a reader, with the anti-dependency before it.
fn path(inside: &Inside<'_>, starts: impl Iterator<Item = (u32, u32)>, read: &Read) -> Vec<Edge> {
    let mut parent: Vec<Option<Edge>> = vec![None; inside.graph.rows as usize];
    let mut queue = VecDeque::new();
    for (row, elem) in starts {
        let first = Edge { from: read.row, to: row, kind: RW, key: read.key, before: read.version, after: elem };
        if parent[row as usize].is_none() {
            parent[row as usize] = Some(first);
            queue.push_back(row);
        }
    }
    while let Some(row) = queue.pop_front().filter(|&row| row != read.row) {
        let mut number = 0;
        while let Some(Step { to, edge, .. }) = inside.step(row, number, WR) {
            number += 1;
            if to < inside.graph.rows && parent[to as usize].is_none() {
                parent[to as usize] = Some(inside.graph.edges[edge as usize]);
                queue.push_back(to);
            }
        }
    }
    let mut edges = Vec::new();
    let mut row = read.row;
    while let Some(edge) = parent[row as usize] {
        edges.push(edge);
        row = edge.from;
        if row == read.row {
            break;
        }
    }
    edges.reverse();
    edges
}

/// Adds each component in which a cycle has anti-dependencies, and each of them follows a dependency wr.
///
/// It is a component of the product of the graph with one bit, whether the last edge was no wr. If a closed walk visits a
/// transaction with both bits, the part that leaves it with the bit is such a walk by itself, because it begins with no rw.
fn prefix(graph: &Graph, found: &mut Walks) {
    let inside = Inside::new(graph);
    if inside.is_empty() {
        return;
    }
    let mask = WW | WR | RW;
    let product = components(graph.nodes * 2, |state, number| {
        inside.step(state / 2, number, mask).map(|step| match step {
            Step { to: NONE, .. } => NONE,
            Step { kind: RW, .. } if state % 2 == 1 => NONE,
            Step { to, kind, .. } => to * 2 + Rule::AfterRead.layer(state, kind),
        })
    });
    let mut starts: Vec<(u32, u32)> = Vec::new();
    for (place, edge) in (0..).zip(&graph.edges).filter(|(_, edge)| edge.kind == RW) {
        if inside.has_edge(edge.from, edge.to)
            && product.of[edge.from as usize * 2] == product.of[edge.to as usize * 2 + 1]
        {
            starts.push((inside.whole.of[edge.from as usize], place));
        }
    }
    starts.sort_unstable();
    let mut witnesses = Witnesses::new(&inside);
    for some in starts.chunk_by(|one, other| one.0 == other.0) {
        found.add(PREFIX, inside.sizes[some[0].0 as usize] as usize, inside.first[some[0].0 as usize], || {
            let places: Vec<u32> = some.iter().map(|(_, place)| *place).collect();
            edges_of(graph, &witnesses.shortest(mask, Rule::AfterRead, &places))
        });
    }
}
