//! Breadth-first search: the set of all undominated configurations, event by event.
//!
//! This is Lowe's just-in-time algorithm ("Testing for linearizability", 2016) with the reductions of `moves`, and
//! with dominance on crashed operations inside the closure. Configurations are expanded in the order of the number of
//! crashed operations that they used, so a dominating one always comes first. Memory is one frontier. It finds the
//! first return without a linearization.

use super::budget::{Cause, Meter};
use super::machine::Machine;
use super::memo::{clear, has, Bits, Memo};
use super::moves::{Move, Rules, Scratch};
use super::pace::Pace;
use super::plan::Window;
use super::{Progress, INFO};
use crate::ops::NONE;

/// A configuration between events.
#[derive(Clone)]
pub struct Node<B> {
    /// Slots and counters.
    pub bits: B,
    /// The state.
    pub state: u32,
    /// The last linearized operation.
    pub last: u32,
    /// The number of crashed operations that it used.
    used: u32,
    /// Its place in the trail, if that is recorded.
    trail: u32,
}

/// A breadth-first search that can be continued.
pub struct Bfs<'p, B> {
    rules: &'p Rules<'p>,
    /// The current position.
    pub window: Window<'p>,
    /// The configurations at this event.
    pub frontier: Vec<Node<B>>,
    memo: Memo<B>,
    /// By the number of used crashed operations: the configurations to expand.
    buckets: Vec<Vec<u32>>,
    bucket: usize,
    /// Configurations in which the forced operation is linearized, and their number of used crashed operations.
    reached: Vec<(u32, u32)>,
    in_closure: bool,
    moves: Vec<Move>,
    scratch: Scratch,
    /// The linearized operations, each with its predecessor; only if the linearization is wanted.
    trail: Option<Vec<(u32, u32)>>,
    /// By remembered configuration: its place in `trail`.
    trails: Vec<u32>,
    /// Its pace.
    pub pace: Pace,
}

impl<'p, B: Bits> Bfs<'p, B> {
    /// A search from the initial state.
    pub fn new<M: Machine>(rules: &'p Rules<'p>, machine: &M, want_order: bool) -> Self {
        let bits = B::zero(rules.plan.layout.words);
        let first = Node { bits, state: machine.initial(), last: NONE, used: 0, trail: NONE };
        Self {
            rules,
            window: Window::new(rules.plan, rules.observes),
            frontier: vec![first],
            memo: Memo::default(),
            buckets: vec![Vec::new()],
            bucket: 0,
            reached: Vec::new(),
            in_closure: false,
            moves: Vec::new(),
            scratch: Scratch::default(),
            trail: want_order.then(Vec::new),
            trails: Vec::new(),
            pace: Pace::default(),
        }
    }

    /// Continues for about this much work: steps, and the cost of the model's answers.
    pub fn run<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, budget: u64) -> Progress {
        let before = meter.spent(machine);
        let progress = self.go_on(machine, meter, before.saturating_add(budget));
        self.pace.went(meter.spent(machine) - before, self.window.at, self.rules.plan.returns.len());
        progress
    }

    fn go_on<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, end: u64) -> Progress {
        let last = self.rules.limit();
        while self.window.at < last {
            if !self.in_closure {
                self.open_closure(machine);
            }
            if let Some(progress) = self.close(machine, meter, end) {
                return progress;
            }
            if self.reached.is_empty() {
                return if machine.failed() { Progress::Stopped(Cause::ModelFailed) } else { Progress::Invalid };
            }
            self.advance();
        }
        if machine.failed() {
            Progress::Stopped(Cause::ModelFailed)
        } else {
            Progress::Valid
        }
    }

    fn open_closure<M: Machine>(&mut self, machine: &mut M) {
        self.memo.clear();
        self.trails.clear();
        self.reached.clear();
        self.bucket = 0;
        self.in_closure = true;
        let frontier = std::mem::take(&mut self.frontier);
        for node in &frontier {
            let mut bits = node.bits.clone();
            let mut path = Path { trail: self.trail.as_mut(), at: node.trail, last: node.last };
            self.rules.absorb(&self.window, machine, &mut bits, node.state, |i| path.add(i));
            let (last, at) = (path.last, path.at);
            self.remember(node.state, false, &bits, last, node.used, at);
        }
        self.frontier = frontier;
    }

    fn remember(&mut self, state: u32, hot: bool, bits: &B, last: u32, used: u32, trail: u32) {
        let layout = &self.rules.plan.layout;
        let at = self.window.at as u32;
        let key = self.rules.key(self.window.at, state);
        if let Some(index) = self.memo.insert(layout, &self.window.observers, at, state, key, hot, bits, last) {
            while self.buckets.len() <= used as usize {
                self.buckets.push(Vec::new());
            }
            self.buckets[used as usize].push(index);
            if self.trail.is_some() {
                self.trails.push(trail);
            }
        }
    }

    fn close<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, end: u64) -> Option<Progress> {
        let slot = self.rules.plan.slot[self.window.forced() as usize];
        while self.bucket < self.buckets.len() {
            let Some(index) = self.buckets[self.bucket].pop() else {
                self.bucket += 1;
                continue;
            };
            let entry = &self.memo.entries[index as usize];
            if entry.dead {
                continue;
            }
            let used = self.bucket as u32;
            if has(&entry.bits, slot) {
                self.reached.push((index, used));
                continue;
            }
            let (bits, state, hot, entry_last) = (entry.bits.clone(), entry.state, entry.hot, entry.last);
            let mut moves = std::mem::take(&mut self.moves);
            moves.clear();
            let mut steps = 1;
            if self.rules.viable(&self.window, machine, &bits, state) {
                moves.extend(self.rules.forced(&self.window, machine, state, hot));
                steps += 1;
                steps += self.rules.others(&self.window, machine, &mut self.scratch, &bits, state, hot, &mut moves);
            }
            let (last, trail) = (entry_last, self.trails.get(index as usize).copied().unwrap_or(NONE));
            for chosen in &moves {
                let mut next = bits.clone();
                let mut path = Path { trail: self.trail.as_mut(), at: trail, last };
                path.add(if chosen.op == NONE { INFO | chosen.info } else { chosen.op });
                let hot = self.rules.apply(&self.window, machine, &mut next, chosen, |i| path.add(i));
                let (last, at) = (path.last, path.at);
                let used = used + u32::from(chosen.op == NONE);
                self.remember(chosen.state, hot, &next, last, used, at);
            }
            self.moves = moves;
            if let Some(cause) = meter.tick(steps, || self.bytes() + machine.bytes()) {
                return Some(Progress::Stopped(cause));
            }
            if meter.spent(machine) >= end {
                return Some(Progress::Pending);
            }
        }
        None
    }

    fn advance(&mut self) {
        let slot = self.rules.plan.slot[self.window.forced() as usize];
        self.frontier.clear();
        for &(index, used) in &self.reached {
            let entry = &self.memo.entries[index as usize];
            if entry.dead {
                continue;
            }
            let mut bits = entry.bits.clone();
            clear(&mut bits, slot);
            let trail = self.trails.get(index as usize).copied().unwrap_or(NONE);
            self.frontier.push(Node { bits, state: entry.state, last: entry.last, used, trail });
        }
        self.in_closure = false;
        self.window.forward();
    }

    /// The linearization of a configuration, if it was recorded; crashed operations are marks.
    pub fn marks(&self, node: &Node<B>) -> Option<Vec<u32>> {
        let trail = self.trail.as_ref()?;
        let mut marks = Vec::new();
        let mut at = node.trail;
        while at != NONE {
            let (before, mark) = trail[at as usize];
            marks.push(mark);
            at = before;
        }
        marks.reverse();
        Some(marks)
    }

    /// The memory in bytes.
    pub fn bytes(&self) -> usize {
        self.memo.bytes()
            + self.frontier.capacity() * size_of::<Node<B>>()
            + self.buckets.iter().map(|bucket| bucket.capacity() * 4).sum::<usize>()
            + self.trail.as_ref().map_or(0, |trail| trail.capacity() * 8)
    }
}

/// Records the operations that a configuration linearizes.
struct Path<'a> {
    trail: Option<&'a mut Vec<(u32, u32)>>,
    at: u32,
    /// The last operation that must happen.
    last: u32,
}

impl Path<'_> {
    fn add(&mut self, mark: u32) {
        if mark & INFO == 0 {
            self.last = mark;
        }
        if let Some(trail) = &mut self.trail {
            trail.push((self.at, mark));
            self.at = trail.len() as u32 - 1;
        }
    }
}
