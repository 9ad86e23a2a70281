//! The parts of a graph that may have cycles: its components of more than one transaction.

use super::graph::{components, Components, Graph, Step, PASS};
use super::NONE;

/// A graph without the edges that leave a component. The numbers of components are in the order of their first transactions.
pub struct Inside<'a> {
    pub graph: &'a Graph,
    pub whole: Components,
    /// By component: its first transaction, or `NONE`.
    pub first: Vec<u32>,
    /// By component: its number of transactions.
    pub sizes: Vec<u32>,
}

impl<'a> Inside<'a> {
    pub fn new(graph: &'a Graph) -> Self {
        let whole = components(graph.nodes, |node, number| graph.step(node, number).map(|step| step.to)).by_first();
        let mut first = vec![NONE; whole.count as usize];
        for row in (0..graph.rows).rev() {
            first[whole.of[row as usize] as usize] = row;
        }
        let mut sizes = vec![0u32; whole.count as usize];
        for row in 0..graph.rows {
            sizes[whole.of[row as usize] as usize] += 1;
        }
        Self { graph, whole, first, sizes }
    }

    /// Returns whether no component has two transactions.
    pub fn is_empty(&self) -> bool {
        self.sizes.iter().all(|&size| size < 2)
    }

    /// Returns whether a node is in a component of several transactions.
    #[inline]
    pub fn has_cycle(&self, node: u32) -> bool {
        self.sizes[self.whole.of[node as usize] as usize] > 1
    }

    /// Returns whether both ends of an edge are in the same component of several transactions.
    pub fn has_edge(&self, from: u32, to: u32) -> bool {
        self.has_cycle(from) && self.whole.of[from as usize] == self.whole.of[to as usize]
    }

    /// Returns a step inside a component by its number; it leads to `NONE` if it leaves the component or has another kind.
    #[inline]
    pub fn step(&self, node: u32, number: u32, mask: u8) -> Option<Step> {
        let part = self.whole.of[node as usize];
        if self.sizes[part as usize] < 2 {
            return None;
        }
        let step = self.graph.step(node, number)?;
        let counts = step.kind & (mask | PASS) != 0 && self.whole.of[step.to as usize] == part;
        Some(if counts { step } else { Step { to: NONE, ..step } })
    }
}
