//! Sets that only grow: each observation only constrains the order, so one topological sort decides.
//!
//! An operation that did not see x comes before every add of x that took effect. One that saw it comes after the add
//! of x that started first (an exchange argument: any other add can be moved after it). Reads of the whole set must
//! be a chain of inclusions. They use auxiliary nodes, one for each level, and real time uses one node for each
//! moment. So the graph stays linear in size.

use super::Map;
use crate::ops::{op, Kind, Near, Ops, INF, NONE};

#[derive(Default)]
struct Graph {
    edges: Vec<Vec<u32>>,
}

impl Graph {
    fn node(&mut self) -> u32 {
        self.edges.push(Vec::new());
        self.edges.len() as u32 - 1
    }

    fn edge(&mut self, from: u32, to: u32) {
        self.edges[from as usize].push(to);
    }

    /// A topological order, or some of the nodes of a cycle in its order.
    fn sort(&self) -> Result<Vec<u32>, Vec<u32>> {
        let n = self.edges.len();
        let mut entering = vec![0_u32; n];
        for to in self.edges.iter().flatten() {
            entering[*to as usize] += 1;
        }
        let mut order: Vec<u32> = (0..n as u32).filter(|&node| entering[node as usize] == 0).collect();
        let mut done = 0;
        while done < order.len() {
            for &to in &self.edges[order[done] as usize] {
                entering[to as usize] -= 1;
                if entering[to as usize] == 0 {
                    order.push(to);
                }
            }
            done += 1;
        }
        if order.len() == n {
            return Ok(order);
        }
        // Every remaining node has a remaining predecessor: walk back until a node repeats.
        let mut before = vec![NONE; n];
        for from in (0..n).filter(|&from| entering[from] > 0) {
            for &to in &self.edges[from] {
                if entering[to as usize] > 0 {
                    before[to as usize] = from as u32;
                }
            }
        }
        let mut at = (0..n).find(|&node| entering[node] > 0).expect("some node is left") as u32;
        let mut seen = vec![false; n];
        while !seen[at as usize] {
            seen[at as usize] = true;
            at = before[at as usize];
        }
        let mut cycle = vec![at];
        let mut node = before[at as usize];
        while node != at {
            cycle.push(node);
            node = before[node as usize];
        }
        cycle.reverse();
        Err(cycle)
    }
}

#[derive(Default)]
struct Element {
    initial: bool,
    adds: Vec<u32>,
    seen_by: Vec<u32>,
    missed_by: Vec<u32>,
    level: Option<usize>,
}

/// Decides histories of add, contains and whole reads.
pub fn check(ops: &Ops, initial: &[i64], want_order: bool) -> Near {
    let n = ops.len();
    let mut elements: Map<Element> = Map::default();
    for &x in initial {
        elements.entry(x).or_default().initial = true;
    }
    let mut reads: Vec<u32> = Vec::new();
    for i in 0..n {
        match ops.f[i] {
            op::ADD => elements.entry(ops.a[i]).or_default().adds.push(i as u32),
            _ if ops.e[i] == INF => {}
            op::CONTAINS if ops.b[i] == 1 => elements.entry(ops.a[i]).or_default().seen_by.push(i as u32),
            op::CONTAINS => elements.entry(ops.a[i]).or_default().missed_by.push(i as u32),
            _ => reads.push(i as u32),
        }
    }
    reads.sort_unstable_by_key(|&i| (ops.list(i as usize).len(), i));
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for &i in &reads {
        let list = ops.list(i as usize);
        let before = levels.last().map(|level| level[0]);
        let smaller = before.map_or(initial, |before| ops.list(before as usize));
        if let Some(missing) = first_missing(smaller, list) {
            let Some(before) = before else { return Near::invalid(Kind::Lost, &[i]) };
            let add = elements.get(&missing).and_then(|element| element.adds.first()).copied().unwrap_or(NONE);
            return Near::invalid(Kind::Fork, &[add, before, i]);
        }
        if before.is_none() || list.len() > smaller.len() {
            for &x in list {
                let element = elements.entry(x).or_default();
                if element.level.is_none() && !element.initial {
                    element.level = Some(levels.len());
                    if element.adds.is_empty() {
                        return Near::invalid(Kind::Phantom, &[i]);
                    }
                }
            }
            levels.push(Vec::new());
        }
        levels.last_mut().expect("pushed above").push(i);
    }
    build(ops, &elements, &levels, want_order)
}

/// The first element of a sorted list that is missing in another.
fn first_missing(small: &[i64], big: &[i64]) -> Option<i64> {
    small.iter().copied().find(|x| big.binary_search(x).is_err())
}

fn build(ops: &Ops, elements: &Map<Element>, levels: &[Vec<u32>], want_order: bool) -> Near {
    let n = ops.len();
    let mut graph = Graph { edges: vec![Vec::new(); n] };
    let mut effective = vec![false; n];
    // after[l]: every read of level l or lower took effect. before[l]: every element of level l or lower was added.
    let after: Vec<u32> = levels.iter().map(|_| graph.node()).collect();
    let before: Vec<u32> = levels.iter().map(|_| graph.node()).collect();
    for (l, level) in levels.iter().enumerate() {
        for &i in level {
            effective[i as usize] = true;
            graph.edge(i, after[l]);
            graph.edge(before[l], i);
        }
        if l > 0 {
            graph.edge(after[l - 1], after[l]);
            graph.edge(before[l - 1], before[l]);
        }
    }
    for element in elements.values() {
        for &i in element.seen_by.iter().chain(&element.missed_by) {
            effective[i as usize] = true;
        }
        if element.initial {
            if let Some(&i) = element.missed_by.first() {
                return Near::invalid(Kind::Lost, &[i]);
            }
            for &i in &element.adds {
                effective[i as usize] = ops.e[i as usize] != INF;
            }
            continue;
        }
        let observed = element.level.is_some() || !element.seen_by.is_empty();
        let Some(&first) = element.adds.iter().min_by_key(|&&i| (ops.s[i as usize], i)) else {
            if let Some(&i) = element.seen_by.first() {
                return Near::invalid(Kind::Phantom, &[i]);
            }
            continue;
        };
        let gate = graph.node();
        for &i in &element.adds {
            effective[i as usize] = ops.e[i as usize] != INF || (observed && i == first);
            if effective[i as usize] {
                graph.edge(gate, i);
            }
        }
        for &i in &element.missed_by {
            graph.edge(i, gate);
        }
        for &i in &element.seen_by {
            graph.edge(first, i);
        }
        // Reads of lower levels did not see it; an element without a level was seen by no read.
        let lower = element.level.unwrap_or(levels.len());
        if lower > 0 {
            graph.edge(after[lower - 1], gate);
        }
        if let Some(level) = element.level {
            graph.edge(first, before[level]);
        }
    }
    real_time(ops, &effective, &mut graph);
    let is_op = |node: &u32| (*node as usize) < n && effective[*node as usize];
    match graph.sort() {
        Ok(order) => Near::Valid(want_order.then(|| order.into_iter().filter(is_op).collect())),
        Err(cycle) => {
            let core: Vec<u32> = cycle.into_iter().filter(is_op).collect();
            Near::invalid(Kind::Order, &core)
        }
    }
}

/// Adds real time: a node for each moment at which an operation ends.
fn real_time(ops: &Ops, effective: &[bool], graph: &mut Graph) {
    let each = || (0..ops.len()).filter(|&i| effective[i]);
    let mut ends: Vec<(i64, u32)> = each().filter(|&i| ops.e[i] != INF).map(|i| (ops.e[i], i as u32)).collect();
    ends.sort_unstable();
    let moments: Vec<u32> = ends.iter().map(|_| graph.node()).collect();
    for (k, &(_, i)) in ends.iter().enumerate() {
        graph.edge(i, moments[k]);
        if k > 0 {
            graph.edge(moments[k - 1], moments[k]);
        }
    }
    for i in each() {
        let over = ends.partition_point(|&(end, _)| end < ops.s[i]);
        if over > 0 {
            graph.edge(moments[over - 1], i as u32);
        }
    }
}
