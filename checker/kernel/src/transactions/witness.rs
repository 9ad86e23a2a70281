//! Short witnesses of the types of cycles: a breadth-first search over transactions and whether the last edge was an anti-dependency.

use std::collections::VecDeque;

use super::graph::{Edge, Graph, Step, CONFLICT, PASS, RW, WR};
use super::inside::Inside;
use super::NONE;

/// Steps of the searches for the witness of one type in one component. They decide only its length.
const WITNESS_STEPS: usize = 4_000_000;

/// Where a cycle may have anti-dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Anywhere,
    /// No two of them follow each other.
    Apart,
    /// Each of them follows a dependency wr.
    AfterRead,
}

impl Rule {
    /// Returns the bit after an edge: whether no anti-dependency may follow.
    pub fn layer(self, state: u32, kind: u8) -> u32 {
        match (kind, self) {
            (PASS, _) => state % 2,
            (_, Self::Anywhere) => 0,
            (_, Self::Apart) => u32::from(kind == RW),
            (_, Self::AfterRead) => u32::from(kind != WR),
        }
    }

    /// Returns whether a cycle has anti-dependencies, and keeps the rule.
    fn fits(self, links: &[Link]) -> bool {
        let before = |place: usize| links[(place + links.len() - 1) % links.len()].kind;
        let keeps = |place: usize| links[place].kind != RW || self.layer(0, before(place)) == 0;
        links.iter().any(|link| link.kind & (RW | CONFLICT) != 0) && (0..links.len()).all(keeps)
    }
}

/// A part of a cycle: an edge between two transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub from: u32,
    pub to: u32,
    pub kind: u8,
    /// The place of the edge in `Graph::edges`; `NONE` for real time.
    pub edge: u32,
    /// The version that `to` wrote, if the edge leads to a hub; else `NONE`.
    pub written: u32,
}

/// Returns a cycle without real time as edges between transactions, whatever hubs are on it.
pub fn edges_of(graph: &Graph, links: &[Link]) -> Vec<Edge> {
    let edges = links.iter().map(|link| {
        let edge = graph.edges[link.edge as usize];
        let after = if link.written == NONE { edge.after } else { link.written };
        Edge { from: link.from, to: link.to, kind: link.kind & !PASS, after, ..edge }
    });
    edges.collect()
}

/// Searches the components of a graph, and keeps its tables from one search to the next.
pub struct Witnesses<'a> {
    inside: &'a Inside<'a>,
    parent: Vec<(u32, Step)>,
    distance: Vec<u32>,
    touched: Vec<u32>,
}

impl<'a> Witnesses<'a> {
    pub fn new(inside: &'a Inside<'a>) -> Self {
        let states = inside.graph.nodes as usize * 2;
        let nothing = Step { to: NONE, kind: 0, edge: NONE };
        Self { inside, parent: vec![(NONE, nothing); states], distance: vec![NONE; states], touched: Vec::new() }
    }

    /// Returns the shortest cycle of edges of some kinds that begins with one of some edges and keeps a rule, as long as the searches
    /// are few.
    pub fn shortest(&mut self, mask: u8, rule: Rule, starts: &[u32]) -> Vec<Link> {
        let mut best: Vec<Link> = Vec::new();
        let mut left = WITNESS_STEPS;
        for &place in starts {
            let bound = if best.is_empty() { NONE } else { best.len() as u32 };
            if let Some(links) = self.beginning_with(place, mask, rule, bound, &mut left) {
                best = links;
            }
            if left == 0 && !best.is_empty() {
                break;
            }
        }
        if rule == Rule::Anywhere {
            return best;
        }
        simple(best, rule)
    }

    /// Returns the shortest cycle with an edge, if it has fewer links than a bound.
    ///
    /// A step to a barrier or a hub counts as a link, and those from there count nothing.
    fn beginning_with(
        &mut self,
        place: u32,
        mask: u8,
        rule: Rule,
        bound: u32,
        left: &mut usize,
    ) -> Option<Vec<Link>> {
        let edge = self.inside.graph.edges[place as usize];
        let (origin, goal) = (edge.to * 2 + rule.layer(0, edge.kind), edge.from * 2);
        for state in self.touched.drain(..) {
            self.distance[state as usize] = NONE;
        }
        let mut queue = VecDeque::from([(origin, 1u32)]);
        self.distance[origin as usize] = 1;
        self.touched.push(origin);
        let mut end = NONE;
        while let Some((state, distance)) = queue.pop_front() {
            if distance > self.distance[state as usize] {
                continue;
            }
            // After an anti-dependency only a conflict may follow, and the cycle begins with one.
            if state == goal || (state == goal + 1 && edge.kind == CONFLICT) {
                end = state;
                break;
            }
            let node = state / 2;
            let mut number = 0;
            while let Some(step) = self.inside.step(node, number, mask) {
                number += 1;
                *left = left.saturating_sub(1);
                if step.to == NONE || (state % 2 == 1 && step.kind == RW) {
                    continue;
                }
                let cost = u32::from(node < self.inside.graph.rows);
                let (next, far) = (step.to * 2 + rule.layer(state, step.kind), distance + cost);
                if far >= bound || far >= self.distance[next as usize] {
                    continue;
                }
                if self.distance[next as usize] == NONE {
                    self.touched.push(next);
                }
                self.distance[next as usize] = far;
                self.parent[next as usize] = (state, step);
                if cost == 0 {
                    queue.push_front((next, far));
                } else {
                    queue.push_back((next, far));
                }
            }
        }
        if end == NONE {
            return None;
        }
        let mut links = Vec::new();
        let mut state = end;
        let (mut to, mut written) = (edge.from, NONE);
        while state != origin {
            let (before, step) = self.parent[state as usize];
            if step.to == to {
                written = self.inside.graph.written(before / 2);
            }
            if before / 2 < self.inside.graph.rows {
                links.push(Link { from: before / 2, to, kind: step.kind, edge: step.edge, written });
                (to, written) = (before / 2, NONE);
            }
            state = before;
        }
        links.push(Link { from: edge.from, to, kind: edge.kind, edge: place, written });
        links.reverse();
        Some(links)
    }
}

/// Returns a part of a closed walk that visits no transaction twice and keeps the rule of the walk.
fn simple(mut links: Vec<Link>, rule: Rule) -> Vec<Link> {
    while let Some((first, second)) = twice(&links) {
        let inner = links[first..second].to_vec();
        let mut outer = links[second..].to_vec();
        outer.extend_from_slice(&links[..first]);
        links = if rule.fits(&inner) { inner } else { outer };
    }
    links
}

fn twice(links: &[Link]) -> Option<(usize, usize)> {
    (0..links.len())
        .flat_map(|second| (0..second).map(move |first| (first, second)))
        .find(|&(first, second)| links[first].from == links[second].from)
}
