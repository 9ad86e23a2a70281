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
//! - G-SI: the same if an anti-dependency between transactions that write a common key is a dependency (`conflicts`). Or, in lists,
//!   writers of a common key that no order keeps apart (`overlaps`). Only this one is NP-complete, so it has a limit of steps.
//! - G2-item: an anti-dependency within a component.

use super::graph::{components, Components, Graph, Step, CONFLICT, PASS, PROCESS, REALTIME, RW, WR, WW};
use super::inside::Inside;
use super::overlaps::{overlaps, Overlap};
use super::witness::{Link, Rule, Witnesses};
use super::NONE;

/// Anti-dependencies that one sweep decides.
const SWEEP: usize = 64;

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
    /// Writers that no order keeps apart, or for which this is open: the type, and the size of their component.
    pub overlaps: Vec<(&'static str, usize, Overlap)>,
}

impl Cycles {
    /// Counts a type, and returns its number so far.
    pub fn count(&mut self, name: &'static str) -> usize {
        let place = self.counts.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.counts.push((name, 0));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
        self.counts[place].1
    }
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

/// Returns the place of the suffix of the types with some edges besides those of data.
fn suffix(extra: u8) -> usize {
    match extra {
        0 => 0,
        PROCESS => 1,
        _ => 2,
    }
}

/// Finds all types of cycles of a graph, and for each type the witnesses of the first `kept` components.
pub fn cycles(graph: &Graph, kept: usize) -> Cycles {
    let inside = Inside::new(graph);
    let mut found = Cycles::default();
    if !inside.is_empty() {
        Search { inside: &inside, witnesses: Witnesses::new(&inside) }.run(kept, &mut found);
    }
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
pub struct Layer {
    /// Which kinds its edges have besides rw.
    mask: u8,
    ww: Components,
    pub flow: Components,
    product: Components,
    /// The product with conflicts as dependencies, if there are any.
    snapshot: Option<Components>,
    all: Components,
}

/// What the searches in a graph share.
pub struct Search<'a> {
    pub inside: &'a Inside<'a>,
    pub witnesses: Witnesses<'a>,
}

impl Search<'_> {
    /// Returns the components of the edges of data, and of those of some other kinds.
    pub fn layer(&self, extra: u8, conflicts: bool) -> Layer {
        let nodes = self.inside.graph.nodes;
        let of =
            |mask: u8| components(nodes, |node, number| self.inside.step(node, number, mask).map(|step| step.to));
        let product_of = |mask: u8| {
            components(nodes * 2, |state, number| {
                self.inside.step(state / 2, number, mask).map(|step| match step {
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
        let whole = &self.inside.whole;
        let mut edges: Vec<Vec<u32>> = Vec::new(); // by component that has cycles: the edges inside
        let mut numbers = vec![NONE; self.inside.sizes.len()];
        let (mut extra, mut conflicts) = (0, false);
        for (place, edge) in self.inside.graph.edges.iter().enumerate() {
            if !self.inside.has_edge(edge.from, edge.to) {
                continue;
            }
            let number = &mut numbers[whole.of[edge.from as usize] as usize];
            if *number == NONE {
                *number = edges.len() as u32;
                edges.push(Vec::new());
            }
            edges[*number as usize].push(place as u32);
            extra |= edge.kind & PROCESS;
            conflicts |= edge.kind == CONFLICT;
        }
        if self.inside.graph.barriers > self.inside.graph.rows {
            extra = REALTIME;
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
        for node in 0..self.inside.graph.nodes {
            let number = numbers[whole.of[node as usize] as usize];
            if number != NONE {
                members[number as usize].push(node);
            }
        }
        let mut layers = vec![self.layer(0, conflicts)];
        if extra != 0 {
            layers.push(self.layer(extra, conflicts));
        }
        let mut contradicted = vec![NONE; self.inside.sizes.len()]; // by component: the first layer against snapshot isolation
        for (inside, members) in edges.iter().zip(&mut members) {
            let part = whole.of[members[0] as usize] as usize;
            let component = self.inside.sizes[part] as usize;
            for (class, layer, starts) in self.types(&layers, inside, members) {
                let name = NAMES[class][suffix(layers[layer].mask)];
                if class != G2 {
                    contradicted[part] = contradicted[part].min(layer as u32);
                }
                if found.count(name) <= kept {
                    let mask = layers[layer].mask;
                    let links = self.witness(class, mask, &starts);
                    found.kept.push(Cycle { name, links, component });
                }
            }
        }
        for (number, layer) in layers.iter().enumerate() {
            let name = NAMES[SNAPSHOT][suffix(layer.mask)];
            let wanted = |part: u32| contradicted[part as usize] > number as u32;
            for overlap in overlaps(self.inside, layer.mask, &layer.all, wanted) {
                let component = self.inside.sizes[overlap.part as usize] as usize;
                if overlap.decided {
                    contradicted[overlap.part as usize] = number as u32;
                }
                if !overlap.decided || found.count(name) <= kept {
                    found.overlaps.push((name, component, overlap));
                }
            }
        }
    }

    /// Returns the shortest cycle of a class that begins with one of some edges, as long as the searches are few.
    fn witness(&mut self, class: usize, extra: u8, starts: &[u32]) -> Vec<Link> {
        let mask = match class {
            G0 => WW | extra,
            G1C | SINGLE => WW | WR | extra,
            SNAPSHOT => WW | WR | RW | CONFLICT | extra,
            _ => WW | WR | RW | extra,
        };
        let rule = if class == NONADJACENT || class == SNAPSHOT { Rule::Apart } else { Rule::Anywhere };
        self.witnesses.shortest(mask, rule, starts)
    }

    /// Returns the types of one component: the class, the layer, and edges that such a cycle may begin with.
    fn types(&self, layers: &[Layer], inside: &[u32], members: &mut [u32]) -> Vec<(usize, usize, Vec<u32>)> {
        let edges = &self.inside.graph.edges;
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
            let edge = &self.inside.graph.edges[**place as usize];
            let (from, to) = (edge.from as usize * 2, edge.to as usize * 2);
            edge.kind == CONFLICT && (of[from] == of[to] || of[from + 1] == of[to])
        };
        inside.iter().filter(returns).copied().collect()
    }

    /// Returns some of the anti-dependencies whose target reaches their origin without another one; none if there is none.
    pub fn single(&self, layer: &Layer, candidates: &[u32], members: &mut [u32]) -> Vec<u32> {
        let edges = &self.inside.graph.edges;
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
                while let Some(step) = self.inside.step(node, number, WW | WR | layer.mask) {
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
}
