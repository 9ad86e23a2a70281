//! The graph of dependencies between transactions, and its strongly connected components.
//!
//! Real time needs no edge for each pair. Each transaction that returned ok has a *barrier* at its completion. The
//! barriers form a chain in the order of time, a transaction leads to its barrier, and a barrier leads to the
//! transactions that began before the next one. A path through barriers is one edge of real time. So the graph is
//! linear in the number of transactions, whatever the concurrency.
//!
//! If several transactions read one version and several others may have written the next one, each reader precedes each
//! other writer. This *fan* has *hubs* in place of an edge for each pair. The writers stand in a row. Two chains of hubs
//! lead along it, one to the right and one to the left, and each hub leads to its writer. A reader that is no writer leads
//! to the beginning of the first chain. A reader that is a writer leads to the hubs beside its own, so never to itself.

use super::{History, NONE, OK};

pub const WW: u8 = 1;
pub const WR: u8 = 2;
pub const RW: u8 = 4;
pub const PROCESS: u8 = 8;
pub const REALTIME: u8 = 16;
/// A step from a hub. Only an anti-dependency leads to a hub, so such a step is a part of it.
pub const PASS: u8 = 32;
/// An anti-dependency between transactions that write a common key, as snapshot isolation takes it; see `conflicts`. It is
/// there beside the edge rw.
pub const CONFLICT: u8 = 64;

/// A dependency. `key`, `before` and `after` are the reason: the versions of a key that it is about. An edge that leads to a
/// hub has no `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: u8,
    pub key: u32,
    pub before: u32,
    pub after: u32,
}

/// Anti-dependencies from each reader of a version to each writer of a next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fan {
    /// The kind of each of them, `RW` or `CONFLICT`.
    pub kind: u8,
    pub key: u32,
    /// Rows, each with the version that it read.
    pub readers: Vec<(u32, u32)>,
    /// Rows, each with the version that it wrote.
    pub writers: Vec<(u32, u32)>,
}

/// The edges that follow from the data.
#[derive(Default)]
pub struct Dependencies {
    pub edges: Vec<Edge>,
    pub fans: Vec<Fan>,
    /// Keys with the writers whose versions no read shows, if there are several.
    pub unordered: Vec<(u32, Vec<u32>)>,
    /// Why one version follows another one, sorted; empty for lists, where a read shows it.
    pub reasons: Vec<Reason>,
    /// By key: the writers whose order `conflicts` does not know, each with its version.
    pub groups: Vec<Vec<(u32, u32)>>,
    /// The sources of `SOURCES` that contradict the others, and that were left out.
    pub contradicted: Vec<u8>,
}

/// The order of two versions: the one before, the one after, and the place of what it follows from in `SOURCES`.
pub type Reason = (u32, u32, u8);

/// What the order of two versions of a register follows from.
pub const SOURCES: [&str; 6] = [
    "initial",
    "writes-follow-reads",
    "sequential-keys",
    "linearizable-keys",
    "transaction-order",
    "atomic-visibility",
];

impl Dependencies {
    /// Adds an edge, but none from a transaction to itself.
    pub fn add(&mut self, edge: Edge) {
        if edge.from != edge.to {
            self.edges.push(edge);
        }
    }

    /// Adds the anti-dependencies between readers and writers.
    pub fn add_fan(&mut self, fan: Fan) {
        if fan.readers.len() > 1 && fan.writers.len() > 1 {
            self.fans.push(fan);
            return;
        }
        for &(from, before) in &fan.readers {
            for &(to, after) in &fan.writers {
                self.add(Edge { from, to, kind: fan.kind, key: fan.key, before, after });
            }
        }
    }

    /// Returns how many dependencies there are, at most; a fan counts each pair.
    pub fn len(&self) -> usize {
        let edges = self.edges.iter().filter(|edge| edge.kind != CONFLICT).count();
        let fans = self.fans.iter().filter(|fan| fan.kind != CONFLICT);
        edges + fans.map(|fan| fan.readers.len() * fan.writers.len()).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
    /// The place of the edge; `NONE` for a step to or from a barrier, and from a hub.
    pub edge: u32,
}

/// A node between the readers and the writers of a fan.
#[derive(Clone, Copy)]
struct Hub {
    /// The next node of its chain, or `NONE`.
    next: u32,
    row: u32,
    elem: u32,
}

/// Nodes below `rows` are transactions, those below `barriers` barriers in the order of time, and the others hubs.
#[derive(Clone)]
pub struct Graph {
    pub rows: u32,
    pub barriers: u32,
    pub nodes: u32,
    pub edges: Vec<Edge>,
    /// Keys with the writers whose versions have no known order, if there are several.
    pub unordered: Vec<(u32, Vec<u32>)>,
    /// By row: the first of its edges; one more at the end.
    first: Vec<u32>,
    /// By row: the node of its barrier, or `NONE`.
    barrier: Vec<u32>,
    /// By barrier: the first row that began after it; one more at the end.
    began: Vec<u32>,
    hubs: Vec<Hub>,
}

impl Graph {
    /// Makes the graph from the edges of the data.
    pub fn new(history: &History<'_>, dependencies: Dependencies, extra: Extra) -> Self {
        let rows = history.len();
        let Dependencies { mut edges, fans, unordered, .. } = dependencies;
        if extra == Extra::Process {
            edges.extend(process_edges(history));
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
        let barriers = (rows + began.len().saturating_sub(1)) as u32;
        let (rows, hubs) = (rows as u32, Vec::new());
        let empty =
            Self { rows, barriers, nodes: barriers, edges, unordered, first: Vec::new(), barrier, began, hubs };
        empty.grown(fans)
    }

    /// Returns the graph with more dependencies; of these, only the edges and the fans count.
    #[must_use]
    pub fn with(&self, more: Dependencies) -> Self {
        let edges = self.edges.iter().copied().chain(more.edges).collect();
        Self { edges, ..self.clone() }.grown(more.fans)
    }

    fn grown(mut self, fans: Vec<Fan>) -> Self {
        let (rows, edges) = (self.rows as usize, &mut self.edges);
        for fan in fans {
            add_hubs(fan, self.barriers, &mut self.hubs, edges);
        }
        edges.sort_unstable_by_key(|edge| (edge.from, edge.kind, edge.to, edge.key, edge.before, edge.after));
        edges.dedup_by_key(|edge| (edge.from, edge.kind, edge.to));
        self.first = vec![0u32; rows + 1];
        for edge in edges {
            self.first[edge.from as usize + 1] += 1;
        }
        for row in 0..rows {
            self.first[row + 1] += self.first[row];
        }
        self.nodes = self.barriers + self.hubs.len() as u32;
        self
    }

    /// Returns what the transaction behind a hub wrote; `NONE` for another node.
    pub fn written(&self, node: u32) -> u32 {
        node.checked_sub(self.barriers).map_or(NONE, |place| self.hubs[place as usize].elem)
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
        if node >= self.barriers {
            let hub = self.hubs[(node - self.barriers) as usize];
            let to = match number {
                0 if hub.next != NONE => hub.next,
                0 => hub.row,
                1 if hub.next != NONE => hub.row,
                _ => return None,
            };
            return Some(Step { to, kind: PASS, edge: NONE });
        }
        let place = (node - self.rows) as usize;
        let to = if number == 0 && node + 1 < self.barriers {
            node + 1
        } else {
            let row = self.began[place] + number - u32::from(node + 1 < self.barriers);
            if row >= self.began[place + 1] {
                return None;
            }
            row
        };
        Some(Step { to, kind: REALTIME, edge: NONE })
    }
}

/// Adds the hubs of a fan, and the edges of its readers to them.
fn add_hubs(mut fan: Fan, barriers: u32, hubs: &mut Vec<Hub>, edges: &mut Vec<Edge>) {
    fan.writers.sort_unstable();
    fan.writers.dedup_by_key(|(row, _)| *row);
    let count = fan.writers.len() as u32;
    let right = barriers + hubs.len() as u32;
    let left = right + count;
    for (place, &(row, elem)) in (1..).zip(&fan.writers) {
        let next = if place < count { right + place } else { NONE };
        hubs.push(Hub { next, row, elem });
    }
    let mut before = NONE;
    for &(row, elem) in &fan.writers {
        hubs.push(Hub { next: before, row, elem });
        before = barriers + hubs.len() as u32 - 1;
    }
    for &(from, version) in &fan.readers {
        let mut add = |to| edges.push(Edge { from, to, kind: fan.kind, key: fan.key, before: version, after: NONE });
        match fan.writers.binary_search_by_key(&from, |(row, _)| *row) {
            Ok(own) => {
                let own = own as u32;
                if own + 1 < count {
                    add(right + own + 1);
                }
                if own > 0 {
                    add(left + own - 1);
                }
            }
            Err(_) => add(right),
        }
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

impl Components {
    /// Returns the same components with numbers in the order of their first nodes.
    #[must_use]
    pub fn by_first(mut self) -> Self {
        let mut numbers = vec![NONE; self.count as usize];
        let mut next = 0;
        for of in &mut self.of {
            let number = &mut numbers[*of as usize];
            if *number == NONE {
                *number = next;
                next += 1;
            }
            *of = *number;
        }
        self
    }
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
