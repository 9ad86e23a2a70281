//! The graph of dependencies between transactions, and its strongly connected components.
//!
//! Real time needs no edge for each pair. Each transaction that returned ok has a *barrier* at its completion. The
//! barriers form a chain in the order of time, a transaction leads to its barrier, and a barrier leads to the
//! transactions that began before the next one. A path through barriers is one edge of real time. So the graph is
//! linear in the number of transactions, whatever the concurrency.

use super::{History, NONE, OK};

pub const WW: u8 = 1;
pub const WR: u8 = 2;
pub const RW: u8 = 4;
pub const PROCESS: u8 = 8;
pub const REALTIME: u8 = 16;

/// A dependency. `key`, `before` and `after` are the reason: the versions of a key that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: u8,
    pub key: u32,
    pub before: u32,
    pub after: u32,
}

/// What orders transactions besides their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    None,
    Process,
    Realtime,
}

/// A step from a node to its successor.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub to: u32,
    pub kind: u8,
    /// The place of the edge; `NONE` for a step to or from a barrier.
    pub edge: u32,
}

/// Nodes below `rows` are transactions; the others are barriers in the order of time.
pub struct Graph {
    pub rows: u32,
    pub nodes: u32,
    pub edges: Vec<Edge>,
    /// By row: the first of its edges; one more at the end.
    first: Vec<u32>,
    /// By row: the node of its barrier, or `NONE`.
    barrier: Vec<u32>,
    /// By barrier: the first row that began after it; one more at the end.
    began: Vec<u32>,
}

impl Graph {
    /// Makes the graph from the edges of the data.
    pub fn new(history: &History<'_>, mut edges: Vec<Edge>, extra: Extra) -> Self {
        let rows = history.len();
        if extra == Extra::Process {
            edges.extend(process_edges(history));
        }
        edges.sort_unstable_by_key(|edge| (edge.from, edge.kind, edge.to, edge.key, edge.before, edge.after));
        edges.dedup_by_key(|edge| (edge.from, edge.kind, edge.to));
        let mut first = vec![0u32; rows + 1];
        for edge in &edges {
            first[edge.from as usize + 1] += 1;
        }
        for row in 0..rows {
            first[row + 1] += first[row];
        }
        let mut barrier = vec![NONE; rows];
        let mut began = Vec::new();
        if extra == Extra::Realtime {
            let mut ended: Vec<u32> = (0..rows as u32).filter(|&row| history.kind[row as usize] == OK).collect();
            ended.sort_unstable_by_key(|&row| history.end[row as usize]);
            for (place, &row) in ended.iter().enumerate() {
                barrier[row as usize] = (rows + place) as u32;
                began.push(history.start.partition_point(|&start| start <= history.end[row as usize]) as u32);
            }
            began.push(rows as u32);
        }
        let nodes = (rows + began.len().saturating_sub(1)) as u32;
        Self { rows: rows as u32, nodes, edges, first, barrier, began }
    }

    /// Returns a step from a node by its number; None after the last one.
    #[inline]
    pub fn step(&self, node: u32, number: u32) -> Option<Step> {
        if node < self.rows {
            let place = self.first[node as usize] + number;
            if place < self.first[node as usize + 1] {
                let edge = &self.edges[place as usize];
                return Some(Step { to: edge.to, kind: edge.kind, edge: place });
            }
            let barrier = self.barrier[node as usize];
            return (place == self.first[node as usize + 1] && barrier != NONE).then_some(Step {
                to: barrier,
                kind: REALTIME,
                edge: NONE,
            });
        }
        let place = (node - self.rows) as usize;
        let to = if number == 0 && node + 1 < self.nodes {
            node + 1
        } else {
            let row = self.began[place] + number - u32::from(node + 1 < self.nodes);
            if row >= self.began[place + 1] {
                return None;
            }
            row
        };
        Some(Step { to, kind: REALTIME, edge: NONE })
    }
}

/// Returns an edge from each ok transaction to the next ok one of its process.
fn process_edges(history: &History<'_>) -> Vec<Edge> {
    let mut rows: Vec<u32> = (0..history.len() as u32).filter(|&row| history.kind[row as usize] == OK).collect();
    rows.sort_by_key(|&row| history.process[row as usize]);
    rows.windows(2)
        .filter(|pair| history.process[pair[0] as usize] == history.process[pair[1] as usize])
        .map(|pair| Edge { from: pair[0], to: pair[1], kind: PROCESS, key: NONE, before: NONE, after: NONE })
        .collect()
}

/// The strongly connected components of a graph.
///
/// Components have numbers in a reverse topological order: an edge leads to the same or a lower number.
pub struct Components {
    pub of: Vec<u32>,
    pub count: u32,
}

/// Finds components with Tarjan's algorithm (SIAM J. Comput. 1(2), 1972), without recursion.
///
/// `next(node, number)` returns None after the last step of a node, and `Some(NONE)` for a step that does not count.
pub fn components(nodes: u32, next: impl Fn(u32, u32) -> Option<u32>) -> Components {
    let size = nodes as usize;
    let mut of = vec![NONE; size];
    let mut low = vec![0u32; size]; // 0: not seen
    let mut stack: Vec<u32> = Vec::new();
    let mut path: Vec<(u32, u32, u32)> = Vec::new(); // a node, its own number, and its next step
    let mut seen = 0;
    let mut count = 0;
    for root in 0..nodes {
        if low[root as usize] != 0 {
            continue;
        }
        seen += 1;
        low[root as usize] = seen;
        stack.push(root);
        path.push((root, seen, 0));
        while let Some(top) = path.last_mut() {
            let (node, own, number) = *top;
            top.2 += 1;
            if let Some(to) = next(node, number) {
                if to == NONE {
                    continue;
                }
                if low[to as usize] == 0 {
                    seen += 1;
                    low[to as usize] = seen;
                    stack.push(to);
                    path.push((to, seen, 0));
                } else if of[to as usize] == NONE {
                    low[node as usize] = low[node as usize].min(low[to as usize]);
                }
                continue;
            }
            path.pop();
            let lowest = low[node as usize];
            if lowest == own {
                while let Some(member) = stack.pop() {
                    of[member as usize] = count;
                    if member == node {
                        break;
                    }
                }
                count += 1;
            }
            if let Some(&(parent, _, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(lowest);
            }
        }
    }
    Components { of, count }
}
