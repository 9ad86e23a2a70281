//! What a part of a history leads to, if the rest of the history is elsewhere.

use super::graph::Graph;
use super::NONE;

/// Returns by row whether one of some rows leads to it.
pub fn reached(graph: &Graph, from: &[u32]) -> Vec<bool> {
    spread(graph, from, |node, number| graph.step(node, number).map(|step| step.to))
}

/// Returns by row whether it leads to one of some rows.
pub fn reaching(graph: &Graph, to: &[u32]) -> Vec<bool> {
    let mut first = vec![0u32; graph.nodes as usize + 1];
    let each = |visit: &mut dyn FnMut(u32, u32)| {
        for node in 0..graph.nodes {
            let mut number = 0;
            while let Some(step) = graph.step(node, number) {
                number += 1;
                visit(node, step.to);
            }
        }
    };
    each(&mut |_, to| first[to as usize + 1] += 1);
    for node in 0..graph.nodes as usize {
        first[node + 1] += first[node];
    }
    let mut next = first.clone();
    let mut before = vec![NONE; first[graph.nodes as usize] as usize];
    each(&mut |node, to| {
        before[next[to as usize] as usize] = node;
        next[to as usize] += 1;
    });
    spread(graph, to, |node, number| {
        let place = first[node as usize] + number;
        (place < first[node as usize + 1]).then(|| before[place as usize])
    })
}

fn spread(graph: &Graph, from: &[u32], next: impl Fn(u32, u32) -> Option<u32>) -> Vec<bool> {
    let mut found = vec![false; graph.nodes as usize];
    let mut left = Vec::new();
    for &row in from {
        if !std::mem::replace(&mut found[row as usize], true) {
            left.push(row);
        }
    }
    while let Some(node) = left.pop() {
        let mut number = 0;
        while let Some(to) = next(node, number) {
            number += 1;
            if !std::mem::replace(&mut found[to as usize], true) {
                left.push(to);
            }
        }
    }
    found.truncate(graph.rows as usize);
    found
}
