//! `forced-update` and `G-forced`: cycles without an anti-dependency, and with at most one, if appends that nobody read have the order
//! that anti-dependencies force.
//!
//! Let A miss a version that B wrote, and let both write a key whose order no read shows. Under update atomic, of two transactions that
//! write one key, the later one sees the earlier one. A does not see B, so A is the earlier one: A to B is a dependency. The same holds
//! under parallel snapshot isolation. Without snapshots, if B wrote the key first, then ww from B to A and rw from A to B are a cycle with
//! one anti-dependency, if a chain of ww leads from the next version to that of B.
//!
//! - `forced-update`, against update atomic: a cycle of ww, wr and these. Update atomic needs no more. What a transaction sees says
//!   nothing of what those see that it sees, so no two of these orders force a third one. Let there be no such cycle, no `missed-update`
//!   and no `fractured-read`. Then take any order that all these agree with. Each transaction sees those that it read from, and the
//!   earlier ones that write one of its keys. It misses none of these: else it would be before them.
//! - `G-forced`, against models that prohibit G-single: the same with at most one rw. Orders that several of these force together are
//!   not searched.
//!
//! `conflicts` has such a pair if B wrote the next version, and `beyond` has the others.

use std::collections::BTreeMap;

use super::accesses::Accesses;
use super::cycles::Search;
use super::graph::{Dependencies, Edge, Fan, Graph, CONFLICT, RW, WR, WW};
use super::inside::Inside;
use super::visibility::Walks;
use super::witness::{edges_of, Rule, Witnesses};
use super::NONE;

pub const FORCED: &str = "G-forced";
pub const UPDATED: &str = "forced-update";
pub const NAMES: [&str; 2] = [FORCED, UPDATED];

/// Adds those with some names, once for each component. `G-forced` is left out if the component has a cycle with one anti-dependency by
/// the known orders alone, or `forced-update`.
pub fn forced(accesses: Option<&Accesses>, graph: &Graph, names: &[&str], found: &mut Walks) {
    if !NAMES.iter().any(|name| names.contains(name)) {
        return;
    }
    let more = accesses.map(beyond).unwrap_or_default();
    let grown;
    let graph = if more.edges.is_empty() && more.fans.is_empty() {
        graph
    } else {
        grown = graph.with(more);
        &grown
    };
    let inside = Inside::new(graph);
    if inside.is_empty() || graph.edges.iter().all(|edge| edge.kind != CONFLICT) {
        return;
    }
    let mut search = Search { inside: &inside, witnesses: Witnesses::new(&inside) };
    let (known, layer) = (search.layer(0, false), search.layer(CONFLICT, false));
    let mut edges: Vec<Vec<u32>> = vec![Vec::new(); inside.sizes.len()];
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); inside.sizes.len()];
    for (place, edge) in (0..).zip(&graph.edges) {
        if inside.has_edge(edge.from, edge.to) && edge.kind & (RW | CONFLICT) != 0 {
            edges[inside.whole.of[edge.from as usize] as usize].push(place);
        }
    }
    for node in 0..graph.nodes {
        let part = inside.whole.of[node as usize];
        if part != NONE && !edges[part as usize].is_empty() {
            members[part as usize].push(node);
        }
    }
    let mut hits = Vec::new();
    for (part, (some, members)) in
        edges.iter().zip(&mut members).enumerate().filter(|(_, (some, _))| !some.is_empty())
    {
        let of_kind = |kind: u8| some.iter().copied().filter(move |&place| graph.edges[place as usize].kind == kind);
        let flow = &layer.flow.of;
        let same = |place: &u32| {
            let edge = &graph.edges[*place as usize];
            flow[edge.from as usize] == flow[edge.to as usize]
        };
        let mut starts: Vec<u32> = of_kind(CONFLICT).filter(same).collect();
        if !starts.is_empty() && names.contains(&UPDATED) {
            hits.push((UPDATED, part, starts));
            continue;
        }
        let readers: Vec<u32> = of_kind(RW).collect();
        if !names.contains(&FORCED) || !search.single(&known, &readers, members).is_empty() {
            continue;
        }
        if starts.is_empty() {
            starts = search.single(&layer, &readers, members);
        }
        if !starts.is_empty() {
            hits.push((FORCED, part, starts));
        }
    }
    hits.sort_by_key(|(name, ..)| *name == UPDATED);
    for (name, part, starts) in hits {
        found.add(name, inside.sizes[part] as usize, inside.first[part], || {
            edges_of(graph, &search.witnesses.shortest(WW | WR | CONFLICT, Rule::Anywhere, &starts))
        });
    }
}

/// An append of a transaction that also has one without a known order.
struct Other {
    at: u32,
    row: u32,
    elem: u32,
}

/// Returns the orders of transactions that write a key without a known order, if one of them missed any version of the other one.
///
/// Of the writers that a read missed, the first one in the order of the key suffices, because ww leads from there to the others.
/// The time is linear in the accesses, but quadratic in those of one transaction.
fn beyond(accesses: &Accesses) -> Dependencies {
    let mut writers: BTreeMap<(u32, u32), Vec<Other>> = BTreeMap::new(); // by the key without an order, and another one
    for row in 0..accesses.rows() {
        let writes = accesses.last_writes(row);
        for unread in writes.iter().filter(|write| write.at == NONE) {
            for other in &writes {
                let (at, elem) = (other.at, other.elem);
                writers.entry((unread.key, other.key)).or_default().push(Other { at, row, elem });
            }
        }
    }
    for some in writers.values_mut() {
        some.sort_unstable_by_key(|other| (other.at, other.row));
    }
    let mut found = Dependencies::default();
    let mut readers: BTreeMap<(u32, u32), Vec<(u32, u32)>> = BTreeMap::new();
    for row in 0..accesses.rows() {
        let own = accesses.reads(row);
        let writes = if own.is_empty() { Vec::new() } else { accesses.last_writes(row) };
        for unread in writes.iter().filter(|write| write.at == NONE) {
            for read in own {
                let Some(some) = writers.get(&(unread.key, read.key)) else { continue };
                let first = some.partition_point(|other| other.at < read.count);
                match some.get(first) {
                    Some(Other { at: NONE, .. }) => {
                        readers.entry((unread.key, read.key)).or_default().push((row, read.version));
                    }
                    Some(&Other { row: to, elem: after, .. }) => {
                        let (key, before) = (read.key, read.version);
                        found.add(Edge { from: row, to, kind: CONFLICT, key, before, after });
                    }
                    None => {}
                }
            }
        }
    }
    for (keys, readers) in readers {
        let later = writers[&keys].iter().filter(|other| other.at == NONE);
        let writers = later.map(|other| (other.row, other.elem)).collect();
        found.add_fan(Fan { kind: CONFLICT, key: keys.1, readers, writers });
    }
    found
}
