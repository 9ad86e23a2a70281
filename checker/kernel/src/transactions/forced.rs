//! `G-forced`, against models that prohibit G-single: a cycle with at most one anti-dependency, if appends that nobody read have the
//! order that anti-dependencies force.
//!
//! Let A read a version that B replaces, and let both write a key whose order no read shows. If B wrote it first, then ww from B to A
//! and rw from A to B are a cycle with one anti-dependency. So A wrote it first: the conflict (`conflicts`) is a dependency. Under
//! parallel snapshot isolation A does not see B, so B sees A, which is the same. Orders that several of these force together are
//! not searched.

use super::cycles::{Cycle, Cycles, Search};
use super::graph::{Graph, CONFLICT, RW, WR, WW};
use super::inside::Inside;
use super::witness::{Rule, Witnesses};
use super::NONE;

pub const FORCED: &str = "G-forced";

/// Adds each component that has such a cycle, and none with one anti-dependency by the known orders alone.
pub fn forced(graph: &Graph, kept: usize, found: &mut Cycles) {
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
    for (part, (some, members)) in
        edges.iter().zip(&mut members).enumerate().filter(|(_, (some, _))| !some.is_empty())
    {
        let of_kind = |kind: u8| some.iter().copied().filter(move |&place| graph.edges[place as usize].kind == kind);
        let readers: Vec<u32> = of_kind(RW).collect();
        if !search.single(&known, &readers, members).is_empty() {
            continue;
        }
        let flow = &layer.flow.of;
        let same = |place: &u32| {
            let edge = &graph.edges[*place as usize];
            flow[edge.from as usize] == flow[edge.to as usize]
        };
        let mut starts: Vec<u32> = of_kind(CONFLICT).filter(same).collect();
        if starts.is_empty() {
            starts = search.single(&layer, &readers, members);
        }
        if !starts.is_empty() && found.count(FORCED) <= kept {
            let links = search.witnesses.shortest(WW | WR | CONFLICT, Rule::Anywhere, &starts);
            found.kept.push(Cycle { name: FORCED, links, component: inside.sizes[part] as usize });
        }
    }
}
