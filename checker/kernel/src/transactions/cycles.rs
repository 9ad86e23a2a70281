//! Decides which types of cycles a graph has, and finds a short witness of each.
//!
//! The types are those of Adya, with Elle's names. A type of a component is left out if another type of the same
//! component implies it: G0 implies G1c; G-single implies G-nonadjacent, which implies G2-item and contradicts what G-SI
//! contradicts; and each type implies the same one with process or real-time edges. So each question is about the existence of a cycle in a subgraph, and
//! is exact:
//!
//! - G0 and G1c: an edge ww or wr whose ends are in one component of the edges ww, or ww and wr.
//! - G-single: an anti-dependency (rw) from u to v such that v reaches u without another one. Reachability is decided
//!   for 64 edges in one sweep over the acyclic graph of the components of ww and wr.
//! - G-nonadjacent: a cycle without two neighbouring anti-dependencies. It is a component of the product of the graph
//!   with one bit, whether the last edge was an anti-dependency; from there no other one may follow. A closed walk that
//!   visits a transaction in both layers can be split there into two closed walks, and neither has neighbouring
//!   anti-dependencies. So a simple cycle exists if a closed walk does.
//! - G-SI: the same if an anti-dependency between transactions that write a common key is a dependency (`conflicts`).
//! - G2-item: an anti-dependency within a component.

use std::collections::VecDeque;

use super::graph::{components, Components, Graph, Step, CONFLICT, PASS, PROCESS, REALTIME, RW, WR, WW};
use super::NONE;

/// Steps of the searches for the witness of one type in one component. They decide only its length.
const WITNESS_STEPS: usize = 4_000_000;
/// Anti-dependencies that one sweep decides.
const SWEEP: usize = 64;

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

/// A cycle of one type; the end of each link is the start of the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub name: &'static str,
    pub links: Vec<Link>,
    /// The number of transactions in its component.
    pub component: usize,
}

/// The types of the cycles of a graph.
#[derive(Default)]
pub struct Cycles {
    pub kept: Vec<Cycle>,
    /// By type: in how many components it is.
    pub counts: Vec<(&'static str, usize)>,
}

const NAMES: [[&str; 3]; 6] = [
    ["G0", "G0-process", "G0-realtime"],
    ["G1c", "G1c-process", "G1c-realtime"],
    ["G-single-item", "G-single-item-process", "G-single-item-realtime"],
    ["G-nonadjacent-item", "G-nonadjacent-item-process", "G-nonadjacent-item-realtime"],
    ["G-SI", "G-SI-process", "G-SI-realtime"],
    ["G2-item", "G2-item-process", "G2-item-realtime"],
];
const G0: usize = 0;
const G1C: usize = 1;
const SINGLE: usize = 2;
const NONADJACENT: usize = 3;
const SNAPSHOT: usize = 4;
const G2: usize = 5;

/// Finds all types of cycles of a graph, and for each type the witnesses of the first `kept` components.
pub fn cycles(graph: &Graph, kept: usize) -> Cycles {
    let whole = components(graph.nodes, |node, number| graph.step(node, number).map(|step| step.to));
    let mut sizes = vec![0u32; whole.count as usize];
    for row in 0..graph.rows {
        sizes[whole.of[row as usize] as usize] += 1;
    }
    let mut found = Cycles::default();
    if sizes.iter().all(|&size| size < 2) {
        return found;
    }
    Search::new(graph, whole, sizes).run(kept, &mut found);
    found
}

/// Returns the transactions in an order that all edges of a graph agree with; None if it has a cycle.
pub fn order(graph: &Graph) -> Option<Vec<u32>> {
    let whole = components(graph.nodes, |node, number| graph.step(node, number).map(|step| step.to));
    let mut rows: Vec<u32> = (0..graph.rows).collect();
    rows.sort_by_key(|&row| std::cmp::Reverse(whole.of[row as usize]));
    let apart = rows.windows(2).all(|pair| whole.of[pair[0] as usize] != whole.of[pair[1] as usize]);
    apart.then_some(rows)
}

/// The components of a subgraph, and of its product with the bit of the last edge.
struct Layer {
    /// Which kinds its edges have besides rw.
    mask: u8,
    ww: Components,
    flow: Components,
    product: Components,
    /// The product with conflicts as dependencies, if there are any.
    snapshot: Option<Components>,
    all: Components,
}

struct Search<'a> {
    graph: &'a Graph,
    whole: Components,
    sizes: Vec<u32>,
    parent: Vec<(u32, Step)>,
    distance: Vec<u32>,
    touched: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph, whole: Components, sizes: Vec<u32>) -> Self {
        let states = graph.nodes as usize * 2;
        let nothing = Step { to: NONE, kind: 0, edge: NONE };
        Self {
            graph,
            whole,
            sizes,
            parent: vec![(NONE, nothing); states],
            distance: vec![NONE; states],
            touched: Vec::new(),
        }
    }

    /// Returns whether both ends of a step are in the same component of the whole graph, and it is no trivial one.
    fn inside(&self, node: u32, to: u32) -> bool {
        let part = self.whole.of[node as usize];
        self.sizes[part as usize] > 1 && part == self.whole.of[to as usize]
    }

    /// Returns a step inside a component by its number; it leads to `NONE` if it leaves the component or has another kind.
    fn step(&self, node: u32, number: u32, mask: u8) -> Option<Step> {
        let part = self.whole.of[node as usize];
        if self.sizes[part as usize] < 2 {
            return None;
        }
        let step = self.graph.step(node, number)?;
        let counts = step.kind & (mask | PASS) != 0 && self.whole.of[step.to as usize] == part;
        Some(if counts { step } else { Step { to: NONE, ..step } })
    }

    fn layer(&self, extra: u8, conflicts: bool) -> Layer {
        let nodes = self.graph.nodes;
        let of = |mask: u8| components(nodes, |node, number| self.step(node, number, mask).map(|step| step.to));
        let product_of = |mask: u8| {
            components(nodes * 2, |state, number| {
                self.step(state / 2, number, mask).map(|step| match step {
                    Step { to: NONE, .. } => NONE,
                    Step { to, kind: RW, .. } if state % 2 == 0 => to * 2 + 1,
                    Step { kind: RW, .. } => NONE,
                    Step { to, kind: PASS, .. } => to * 2 + state % 2,
                    Step { to, .. } => to * 2,
                })
            })
        };
        Layer {
            mask: extra,
            ww: of(WW | extra),
            flow: of(WW | WR | extra),
            product: product_of(WW | WR | RW | extra),
            snapshot: conflicts.then(|| product_of(WW | WR | RW | CONFLICT | extra)),
            all: of(WW | WR | RW | extra),
        }
    }

    fn run(mut self, kept: usize, found: &mut Cycles) {
        let mut edges: Vec<Vec<u32>> = Vec::new(); // by component that has cycles: the edges inside
        let mut numbers = vec![NONE; self.sizes.len()];
        let (mut extra, mut conflicts) = (0, false);
        for (place, edge) in self.graph.edges.iter().enumerate() {
            if !self.inside(edge.from, edge.to) {
                continue;
            }
            let number = &mut numbers[self.whole.of[edge.from as usize] as usize];
            if *number == NONE {
                *number = edges.len() as u32;
                edges.push(Vec::new());
            }
            edges[*number as usize].push(place as u32);
            extra |= edge.kind & PROCESS;
            conflicts |= edge.kind == CONFLICT;
        }
        if self.graph.barriers > self.graph.rows {
            extra = REALTIME;
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
        for node in 0..self.graph.nodes {
            let number = numbers[self.whole.of[node as usize] as usize];
            if number != NONE {
                members[number as usize].push(node);
            }
        }
        let mut layers = vec![self.layer(0, conflicts)];
        if extra != 0 {
            layers.push(self.layer(extra, conflicts));
        }
        for (inside, members) in edges.iter().zip(&mut members) {
            let component = self.sizes[self.whole.of[members[0] as usize] as usize] as usize;
            for (class, layer, starts) in self.types(&layers, inside, members) {
                let suffix = match layers[layer].mask {
                    0 => 0,
                    PROCESS => 1,
                    _ => 2,
                };
                let name = NAMES[class][suffix];
                let place = found.counts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                    found.counts.push((name, 0));
                    found.counts.len() - 1
                });
                found.counts[place].1 += 1;
                if found.counts[place].1 <= kept {
                    let links = self.witness(class, layers[layer].mask, &starts);
                    found.kept.push(Cycle { name, links, component });
                }
            }
        }
    }

    /// Returns the types of one component: the class, the layer, and edges that such a cycle may begin with.
    fn types(&self, layers: &[Layer], inside: &[u32], members: &mut [u32]) -> Vec<(usize, usize, Vec<u32>)> {
        let edges = &self.graph.edges;
        let among = |kind: u8, of: &Components| -> Vec<u32> {
            let same = |place: &&u32| {
                let edge = &edges[**place as usize];
                edge.kind == kind && of.of[edge.from as usize] == of.of[edge.to as usize]
            };
            inside.iter().filter(same).copied().collect()
        };
        let mut has = [[false; 2]; 6];
        let mut found = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            let mut add = |class: usize, starts: Vec<u32>, has: &mut [[bool; 2]; 6]| {
                if !starts.is_empty() {
                    has[class][number] = true;
                    found.push((class, number, starts));
                }
            };
            if !has[G0][0] {
                add(G0, among(WW, &layer.ww), &mut has);
            }
            if !(has[G0][0] || has[G1C][0] || has[G0][number]) {
                add(G1C, among(WR, &layer.flow), &mut has);
            }
            let apart: Vec<u32> = inside
                .iter()
                .filter(|&&place| {
                    let edge = &edges[place as usize];
                    edge.kind == RW
                        && layer.product.of[edge.from as usize * 2] == layer.product.of[edge.to as usize * 2 + 1]
                })
                .copied()
                .collect();
            let anti = |has: &[[bool; 2]; 6], classes: &[usize]| {
                classes.iter().any(|&class| has[class][..=number].iter().any(|&there| there))
            };
            if !has[SINGLE][0] {
                add(SINGLE, self.single(layer, &apart, members), &mut has);
            }
            if !anti(&has, &[SINGLE]) && !has[NONADJACENT][0] {
                add(NONADJACENT, apart, &mut has);
            }
            if !anti(&has, &[SINGLE, NONADJACENT]) && !has[SNAPSHOT][0] {
                add(SNAPSHOT, self.conflicting(layer, inside), &mut has);
            }
            if !anti(&has, &[SINGLE, NONADJACENT]) && !has[G2][0] {
                add(G2, among(RW, &layer.all), &mut has);
            }
        }
        found
    }

    /// Returns the conflicts that a cycle without two neighbouring anti-dependencies has, if conflicts are dependencies.
    fn conflicting(&self, layer: &Layer, inside: &[u32]) -> Vec<u32> {
        let Some(Components { of, .. }) = &layer.snapshot else { return Vec::new() };
        let returns = |place: &&u32| {
            let edge = &self.graph.edges[**place as usize];
            let (from, to) = (edge.from as usize * 2, edge.to as usize * 2);
            edge.kind == CONFLICT && (of[from] == of[to] || of[from + 1] == of[to])
        };
        inside.iter().filter(returns).copied().collect()
    }

    /// Returns some of the anti-dependencies whose target reaches their origin without another one; none if there is none.
    fn single(&self, layer: &Layer, candidates: &[u32], members: &mut [u32]) -> Vec<u32> {
        let edges = &self.graph.edges;
        let flow = &layer.flow.of;
        let direct = |place: &&u32| {
            let edge = &edges[**place as usize];
            flow[edge.from as usize] == flow[edge.to as usize]
        };
        let at_once: Vec<u32> = candidates.iter().filter(direct).copied().collect();
        if !at_once.is_empty() || candidates.is_empty() {
            return at_once;
        }
        members.sort_unstable_by_key(|&node| std::cmp::Reverse(flow[node as usize]));
        let low = flow[members[members.len() - 1] as usize];
        let high = flow[members[0] as usize];
        let mut reached = vec![0u64; (high - low) as usize + 1];
        for some in candidates.chunks(SWEEP) {
            reached.fill(0);
            for (bit, &place) in some.iter().enumerate() {
                reached[(flow[edges[place as usize].to as usize] - low) as usize] |= 1 << bit;
            }
            for &node in members.iter() {
                let here = reached[(flow[node as usize] - low) as usize];
                if here == 0 {
                    continue;
                }
                let mut number = 0;
                while let Some(step) = self.step(node, number, WW | WR | layer.mask) {
                    number += 1;
                    if step.to != NONE {
                        reached[(flow[step.to as usize] - low) as usize] |= here;
                    }
                }
            }
            let hits: Vec<u32> = some
                .iter()
                .enumerate()
                .filter(|(bit, &place)| {
                    reached[(flow[edges[place as usize].from as usize] - low) as usize] >> bit & 1 == 1
                })
                .map(|(_, &place)| place)
                .collect();
            if !hits.is_empty() {
                return hits;
            }
        }
        Vec::new()
    }

    /// Returns the shortest cycle of a class that begins with one of some edges, as long as the searches are few.
    fn witness(&mut self, class: usize, extra: u8, starts: &[u32]) -> Vec<Link> {
        let mask = match class {
            G0 => WW | extra,
            G1C | SINGLE => WW | WR | extra,
            SNAPSHOT => WW | WR | RW | CONFLICT | extra,
            _ => WW | WR | RW | extra,
        };
        let mut best: Vec<Link> = Vec::new();
        let mut left = WITNESS_STEPS;
        for &place in starts {
            let bound = if best.is_empty() { NONE } else { best.len() as u32 };
            if let Some(links) =
                self.shortest(place, mask, class == NONADJACENT || class == SNAPSHOT, bound, &mut left)
            {
                best = links;
            }
            if left == 0 && !best.is_empty() {
                break;
            }
        }
        if class == NONADJACENT || class == SNAPSHOT {
            return simple(best);
        }
        best
    }

    /// Returns the shortest cycle with an edge, if it has fewer links than a bound.
    ///
    /// A step to a barrier or a hub counts as a link, and those from there count nothing.
    fn shortest(&mut self, place: u32, mask: u8, apart: bool, bound: u32, left: &mut usize) -> Option<Vec<Link>> {
        let edge = self.graph.edges[place as usize];
        let layer = |state: u32, kind: u8| match kind {
            PASS => state % 2,
            _ => u32::from(apart && kind == RW),
        };
        let (origin, goal) = (edge.to * 2 + layer(0, edge.kind), edge.from * 2);
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
            while let Some(step) = self.step(node, number, mask) {
                number += 1;
                *left = left.saturating_sub(1);
                if step.to == NONE || (state % 2 == 1 && step.kind == RW) {
                    continue;
                }
                let cost = u32::from(node < self.graph.rows);
                let (next, far) = (step.to * 2 + layer(state, step.kind), distance + cost);
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
                written = self.graph.written(before / 2);
            }
            if before / 2 < self.graph.rows {
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

/// Returns a part of a closed walk without neighbouring anti-dependencies that visits no transaction twice.
fn simple(mut links: Vec<Link>) -> Vec<Link> {
    while let Some((first, second)) = twice(&links) {
        let inner = links[first..second].to_vec();
        let mut outer = links[second..].to_vec();
        outer.extend_from_slice(&links[..first]);
        links = if inner.iter().any(|link| link.kind & (RW | CONFLICT) != 0) { inner } else { outer };
    }
    links
}

fn twice(links: &[Link]) -> Option<(usize, usize)> {
    (0..links.len())
        .flat_map(|second| (0..second).map(move |first| (first, second)))
        .find(|&(first, second)| links[first].from == links[second].from)
}
