//! `G-update`, against Adya's PL-3U (*Weak consistency*, MIT, 1999, chapter 4): a cycle with an rw of transactions that write, or of
//! these and one that only reads.
//!
//! Without a cycle with an rw among those that write, each reader is decided by reachability: the writers of what it missed must
//! not reach a writer of what it read. One sweep over the writers in a topological order decides 64 missed writes.

use std::collections::HashMap;

use super::accesses::Accesses;
use super::graph::{components, Edge, Graph, PASS, RW, WR, WW};
use super::views::{path, Members, Step, SWEEP, TRIES};
use super::visibility::Walks;
use super::NONE;

pub const UPDATE: &str = "G-update";

/// Adds `G-update`, once for each component of the graph that has it.
pub fn updates(accesses: &Accesses, graph: &Graph, found: &mut Walks) {
    // A failed transaction has no edges.
    let is_reader = |node: u32| node < graph.rows && accesses.writes(node).is_empty();
    let step = |node: u32, number: u32| {
        graph.step(node, number).map(|step| {
            let counts = step.kind & (WW | WR | RW | PASS) != 0;
            Step { to: if counts { step.to } else { NONE }, edge: step.edge }
        })
    };
    // Among the transactions that write, besides one reader.
    let among = |node: u32, number: u32, reader: u32| {
        let hidden = |node: u32| node != reader && is_reader(node);
        let open = step(node, number).filter(|_| !hidden(node));
        open.map(|step| if step.to != NONE && hidden(step.to) { Step { to: NONE, ..step } } else { step })
    };
    let whole = components(graph.nodes, |node, number| step(node, number).map(|step| step.to)).by_first();
    let writing = components(graph.nodes, |node, number| among(node, number, NONE).map(|step| step.to));
    let mut sizes = vec![0usize; whole.count as usize];
    for row in 0..graph.rows {
        sizes[whole.of[row as usize] as usize] += 1;
    }
    let mut starts: Vec<(u32, u32, bool)> = Vec::new(); // the component, an anti-dependency, and whether it is of a reader
    for (place, edge) in (0..).zip(&graph.edges).filter(|(_, edge)| edge.kind == RW) {
        let part = whole.of[edge.from as usize];
        let of_reader = is_reader(edge.from);
        let is_inside = part == whole.of[edge.to as usize];
        if is_inside && (of_reader || writing.of[edge.from as usize] == writing.of[edge.to as usize]) {
            starts.push((part, place, of_reader));
        }
    }
    starts.sort_unstable_by_key(|(part, place, of_reader)| (*part, *of_reader, *place));
    let members = Members::new(&whole, starts.iter().map(|(part, ..)| *part));
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); graph.rows as usize]; // by reader: those that it read of
    for edge in graph.edges.iter().filter(|edge| edge.kind == WR && is_reader(edge.to)) {
        into[edge.to as usize].push(edge.from);
    }
    for some in starts.chunk_by(|one, other| one.0 == other.0) {
        let of_writers: Vec<_> = some.iter().filter(|(.., of_reader)| !of_reader).copied().collect();
        let hits = if of_writers.is_empty() {
            let mut nodes = members.of(some[0].0).to_vec();
            nodes.sort_unstable_by_key(|&node| std::cmp::Reverse(writing.of[node as usize]));
            returning(graph, some, &nodes, &into, |node, number| among(node, number, NONE))
        } else {
            of_writers
        };
        if hits.is_empty() {
            continue;
        }
        found.add(UPDATE, sizes[some[0].0 as usize], members.of(some[0].0)[0], || {
            let cycle = |&(_, place, of_reader): &(u32, u32, bool)| {
                let edge = graph.edges[place as usize];
                let reader = if of_reader { edge.from } else { NONE };
                let rest = path(edge.to, edge.from, graph.nodes as usize, |node, number| among(node, number, reader));
                edges_of(graph, edge, &rest)
            };
            hits.iter().take(TRIES).map(cycle).min_by_key(Vec::len).unwrap_or_default()
        });
    }
}

/// Returns those of some anti-dependencies of readers whose target reaches, by writers alone, one that the reader read of; of the
/// first sweep with any. The nodes are in a topological order.
fn returning(
    graph: &Graph,
    some: &[(u32, u32, bool)],
    nodes: &[u32],
    into: &[Vec<u32>],
    next: impl Fn(u32, u32) -> Option<Step>,
) -> Vec<(u32, u32, bool)> {
    let place_of: HashMap<u32, usize> = nodes.iter().copied().zip(0..).collect();
    let mut reached = vec![0u64; nodes.len()];
    for chunk in some.chunks(SWEEP) {
        reached.fill(0);
        for (bit, (_, place, _)) in chunk.iter().enumerate() {
            reached[place_of[&graph.edges[*place as usize].to]] |= 1 << bit;
        }
        for (at, &node) in nodes.iter().enumerate() {
            let here = reached[at];
            let mut number = 0;
            while let Some(step) = next(node, number).filter(|_| here != 0) {
                number += 1;
                if let Some(&to) = place_of.get(&step.to) {
                    reached[to] |= here;
                }
            }
        }
        let returns = |(bit, (_, place, _)): &(usize, &(u32, u32, bool))| {
            let reader = graph.edges[*place as usize].from as usize;
            into[reader].iter().any(|from| place_of.get(from).is_some_and(|&at| reached[at] >> bit & 1 == 1))
        };
        let hits: Vec<_> = chunk.iter().enumerate().filter(returns).map(|(_, each)| *each).collect();
        if !hits.is_empty() {
            return hits;
        }
    }
    Vec::new()
}

/// Returns a cycle as edges between transactions, whatever hubs are on it.
fn edges_of(graph: &Graph, first: Edge, rest: &[Step]) -> Vec<Edge> {
    let mut found: Vec<Edge> = vec![first];
    for step in rest {
        if step.edge != NONE {
            found.push(graph.edges[step.edge as usize]);
        }
    }
    let mut hub = first.to;
    let mut at = 0;
    for step in rest {
        if step.edge != NONE {
            at += 1;
        } else if step.to < graph.rows {
            (found[at].to, found[at].after) = (step.to, graph.written(hub));
        }
        hub = step.to;
    }
    found
}
