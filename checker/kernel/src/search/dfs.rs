//! Depth-first search: follows one linearization as far as possible, takes operations as late as possible, and
//! remembers dead ends.
//!
//! It is fast if there is a linearization, and returns it. Dominated configurations are dead ends too: a dominating
//! one was tried before, or is being tried further up the stack.

use super::budget::{Cause, Meter};
use super::machine::Machine;
use super::memo::{clear, has, Bits, Memo};
use super::moves::{Move, Rules, Scratch};
use super::pace::Pace;
use super::plan::Window;
use super::{resolve, Progress, INFO};
use crate::ops::NONE;

struct Frame<B> {
    at: u32,
    bits: B,
    /// Its place in the memory, while only the operation that returns here was tried.
    waiting: u32,
    /// The first move that was not tried yet, and the end of this frame's moves. One stack has the moves of all
    /// frames.
    next: u32,
    first: u32,
    end: u32,
    /// The number of linearized operations.
    linearized: u32,
}

/// A depth-first search that can be continued.
pub struct Dfs<'p, B> {
    /// The rules.
    pub rules: &'p Rules<'p>,
    window: Window<'p>,
    /// The memory of configurations.
    pub memo: Memo<B>,
    frames: Vec<Frame<B>>,
    moves: Vec<Move>,
    order: Vec<u32>,
    scratch: Scratch,
    started: bool,
    /// The furthest return that a configuration waits at.
    pub furthest: u32,
    /// Its pace.
    pub pace: Pace,
}

impl<'p, B: Bits> Dfs<'p, B> {
    /// A search from the initial state.
    pub fn new(rules: &'p Rules<'p>) -> Self {
        Self {
            rules,
            window: Window::new(rules.plan, rules.observes),
            memo: Memo::default(),
            frames: Vec::new(),
            moves: Vec::new(),
            order: Vec::new(),
            scratch: Scratch::default(),
            started: false,
            furthest: 0,
            pace: Pace::default(),
        }
    }

    /// Continues for about this much work: steps, and the cost of the model's answers.
    pub fn run<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, budget: u64) -> Progress {
        let before = meter.spent(machine);
        let progress = self.go_on(machine, meter, before.saturating_add(budget));
        self.pace.went(meter.spent(machine) - before, self.furthest as usize, self.rules.plan.returns.len());
        progress
    }

    fn go_on<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, end: u64) -> Progress {
        if !self.started {
            self.started = true;
            let bits = B::zero(self.rules.plan.layout.words);
            if self.enter(machine, meter, bits, machine.initial(), false, NONE) {
                return finished(machine, Progress::Valid);
            }
        }
        while let Some(frame) = self.frames.last_mut() {
            if frame.next == frame.end {
                if frame.waiting == NONE {
                    self.moves.truncate(frame.first as usize);
                    self.frames.pop();
                    continue;
                }
                let entry = &self.memo.entries[std::mem::replace(&mut frame.waiting, NONE) as usize];
                let (state, hot) = (entry.state, entry.hot);
                self.window.seek(frame.at as usize);
                let Self { rules, window, scratch, moves, .. } = self;
                meter.steps += rules.others(window, machine, scratch, &frame.bits, state, hot, moves);
                frame.end = moves.len() as u32;
                continue;
            }
            let chosen = self.moves[frame.next as usize];
            frame.next += 1;
            let mut bits = frame.bits.clone();
            let (at, linearized) = (frame.at as usize, frame.linearized as usize);
            self.window.seek(at);
            self.order.truncate(linearized);
            self.order.push(if chosen.op == NONE { INFO | chosen.info } else { chosen.op });
            let order = &mut self.order;
            let hot = self.rules.apply(&self.window, machine, &mut bits, &chosen, |i| order.push(i));
            if self.enter(machine, meter, bits, chosen.state, hot, chosen.op) {
                return finished(machine, Progress::Valid);
            }
            if let Some(cause) = meter.tick(1, || self.bytes() + machine.bytes()) {
                return Progress::Stopped(cause);
            }
            if meter.spent(machine) >= end {
                return Progress::Pending;
            }
        }
        finished(machine, Progress::Invalid)
    }

    /// Continues from a configuration while there is no choice; returns whether this reaches the end.
    fn enter<M: Machine>(
        &mut self,
        machine: &mut M,
        meter: &mut Meter,
        mut bits: B,
        state: u32,
        hot: bool,
        last: u32,
    ) -> bool {
        let plan = self.rules.plan;
        loop {
            if self.window.at == self.rules.limit() {
                return true;
            }
            let slot = plan.slot[self.window.forced() as usize];
            if !has(&bits, slot) {
                let order = &mut self.order;
                self.rules.absorb(&self.window, machine, &mut bits, state, |i| order.push(i));
                if !has(&bits, slot) {
                    break;
                }
            }
            clear(&mut bits, slot);
            self.window.forward();
        }
        let at = self.window.at as u32;
        self.furthest = self.furthest.max(at);
        if !self.rules.viable(&self.window, machine, &bits, state) {
            return false;
        }
        let key = self.rules.key(self.window.at, state);
        let seen = self.memo.insert(&plan.layout, &self.window.observers, at, state, key, hot, &bits, last);
        let Some(waiting) = seen else {
            return false;
        };
        // Other moves are computed only after this one failed. In most histories of real objects it does not fail.
        let first = self.moves.len();
        self.moves.extend(self.rules.forced(&self.window, machine, state, hot));
        meter.steps += 1;
        self.frames.push(Frame {
            at,
            bits,
            waiting,
            next: first as u32,
            first: first as u32,
            end: self.moves.len() as u32,
            linearized: self.order.len() as u32,
        });
        false
    }

    /// The linearization.
    pub fn witness(&self) -> Vec<u32> {
        resolve(self.rules.plan, &self.order)
    }

    /// The memory in bytes.
    pub fn bytes(&self) -> usize {
        self.memo.bytes()
            + self.frames.capacity() * size_of::<Frame<B>>()
            + self.moves.capacity() * size_of::<Move>()
            + self.order.capacity() * 4
    }
}

fn finished<M: Machine>(machine: &M, progress: Progress) -> Progress {
    if machine.failed() {
        Progress::Stopped(Cause::ModelFailed)
    } else {
        progress
    }
}
