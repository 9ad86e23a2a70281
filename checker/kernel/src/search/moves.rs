//! What can happen next in a configuration, and what need not be tried. Each reduction keeps the search exact.
//!
//! - An observer that matches is linearized at once: it changes nothing, so earlier is never worse.
//! - Operations branch only when a return forces one that is not linearized yet (just in time, Lowe 2016).
//! - Crashed operations that are alike are a counter.
//! - Of open operations that are alike the one with the earliest end goes first.
//! - On machines whose mutators overwrite everything, a crashed operation is applied only right before something that
//!   needs its result: an observer, a cas, or another crashed cas that leads to one.
//! - On sequences, a state that is no prefix of the next read that is still to come is dead, unless a put can intervene.

use super::machine::{Machine, ILLEGAL};
use super::memo::{has, set, Bits};
use super::plan::{Plan, Window};
use crate::ops::NONE;

/// Facts about a plan and its machine that never change.
pub struct Rules<'p> {
    /// The history.
    pub plan: &'p Plan,
    /// By class.
    pub observes: &'p [bool],
    blind: Vec<bool>,
    overwrites: bool,
    ahead: Option<Ahead>,
    /// How many returns count; what returns later is open for ever.
    pub limit: usize,
}

/// For look-ahead: by return, the next return of an observer, and how many resets were called before.
struct Ahead {
    next: Vec<u32>,
    resets: Vec<u32>,
    reset: Vec<bool>,
    info_resets: bool,
}

/// Something that can happen next.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The operation, or `NONE` for a crashed one.
    pub op: u32,
    /// The class of crashed operations, if it is one.
    pub info: u32,
    /// The state it leads to.
    pub state: u32,
    /// When to try it: lower first.
    rank: u8,
}

/// By class, whether it is an observer.
pub fn observers<M: Machine>(plan: &Plan, machine: &M) -> Vec<bool> {
    (0..plan.classes as u32).map(|class| machine.observer(class)).collect()
}

impl<'p> Rules<'p> {
    /// The rules for a machine.
    pub fn new<M: Machine>(plan: &'p Plan, observes: &'p [bool], machine: &M) -> Self {
        let classes = 0..plan.classes as u32;
        Self {
            plan,
            observes,
            blind: classes.clone().map(|class| machine.blind(class)).collect(),
            overwrites: machine.overwrites(),
            ahead: machine.looks_ahead().then(|| Ahead::new(plan, observes, machine)),
            limit: plan.returns.len(),
        }
    }

    /// Whether a search can end before the first return at which nothing is left, because it looks ahead.
    pub fn looks_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Linearizes every open observer that matches; tells each, and returns how many.
    #[inline]
    pub fn absorb<M: Machine, B: Bits>(
        &self,
        window: &Window,
        machine: &mut M,
        bits: &mut B,
        state: u32,
        mut tell: impl FnMut(u32),
    ) -> u64 {
        let mut count = 0;
        for &r in &window.open {
            let i = self.plan.returns[r as usize];
            let class = self.plan.class[i as usize];
            if self.observes[class as usize] {
                let slot = self.plan.slot[i as usize];
                if !has(bits, slot) && machine.step(state, class) != ILLEGAL {
                    set(bits, slot);
                    tell(i);
                    count += 1;
                }
            }
        }
        count
    }

    /// Whether look-ahead leaves the configuration any hope.
    pub fn viable<M: Machine, B: Bits>(&self, window: &Window, machine: &mut M, bits: &B, state: u32) -> bool {
        let Some(ahead) = &self.ahead else { return true };
        if ahead.info_resets {
            return true;
        }
        let plan = self.plan;
        let mut r = ahead.next[window.at];
        loop {
            if r as usize >= self.limit || ahead.resets[r as usize] != ahead.resets[window.at] {
                return true;
            }
            let open = window.open.binary_search(&r).is_ok();
            if !open || !has(bits, plan.slot[plan.returns[r as usize] as usize]) {
                break;
            }
            r = ahead.next[r as usize + 1];
        }
        for &open in &window.open {
            let i = plan.returns[open as usize] as usize;
            if ahead.reset[plan.class[i] as usize] && !has(bits, plan.slot[i]) {
                return true;
            }
        }
        machine.viable(state, plan.class[plan.returns[r as usize] as usize])
    }

    /// Puts what can happen next into `out`, the most promising first.
    pub fn moves<M: Machine, B: Bits>(
        &self,
        window: &Window,
        machine: &mut M,
        scratch: &mut Scratch,
        bits: &B,
        state: u32,
        hot: bool,
        out: &mut Vec<Move>,
    ) -> u64 {
        let plan = self.plan;
        let from = out.len();
        let mut steps = 0;
        let epoch = scratch.next_epoch(plan.classes);
        let forced = window.forced();
        let wanted = plan.class[forced as usize];
        for &r in &window.open {
            let i = plan.returns[r as usize];
            let class = plan.class[i as usize];
            if self.observes[class as usize] || has(bits, plan.slot[i as usize]) {
                continue;
            }
            let stamp = &mut scratch.stamps[class as usize];
            if *stamp == epoch || (hot && self.blind[class as usize]) {
                continue;
            }
            *stamp = epoch;
            steps += 1;
            let next = machine.step(state, class);
            if next == ILLEGAL {
                continue;
            }
            let rank = if i == forced {
                0
            } else if machine.step(next, wanted) != ILLEGAL {
                1
            } else {
                3
            };
            out.push(Move { op: i, info: NONE, state: next, rank });
        }
        for (k, info) in plan.infos.iter().enumerate() {
            if info.used(bits) >= window.called[k] || (hot && self.blind[info.class as usize]) {
                continue;
            }
            steps += 1;
            let next = machine.step(state, info.class);
            if next == ILLEGAL || next == state {
                continue;
            }
            let rank = if machine.step(next, wanted) == ILLEGAL { 4 } else { 2 };
            out.push(Move { op: NONE, info: k as u32, state: next, rank });
        }
        out[from..].sort_by_key(|m| m.rank);
        steps
    }

    /// Applies a move; observers are absorbed after it. Returns whether the configuration is hot: a crashed operation was
    /// applied that nothing has needed yet.
    #[inline]
    pub fn apply<M: Machine, B: Bits>(
        &self,
        window: &Window,
        machine: &mut M,
        bits: &mut B,
        chosen: &Move,
        tell: impl FnMut(u32),
    ) -> bool {
        if chosen.op == NONE {
            self.plan.infos[chosen.info as usize].take(bits);
            let absorbed = self.absorb(window, machine, bits, chosen.state, tell);
            self.overwrites && absorbed == 0
        } else {
            set(bits, self.plan.slot[chosen.op as usize]);
            self.absorb(window, machine, bits, chosen.state, tell);
            false
        }
    }
}

impl Ahead {
    fn new<M: Machine>(plan: &Plan, observes: &[bool], machine: &M) -> Self {
        let n = plan.returns.len();
        let reset: Vec<bool> = (0..plan.classes as u32).map(|class| machine.resets(class)).collect();
        let mut next = vec![NONE; n + 1];
        for r in (0..n).rev() {
            let class = plan.class[plan.returns[r] as usize];
            next[r] = if observes[class as usize] { r as u32 } else { next[r + 1] };
        }
        let info_resets = plan.infos.iter().any(|info| reset[info.class as usize]);
        Self { next, resets: plan.calls_of(&reset), reset, info_resets }
    }
}

/// Room that `moves` needs again and again.
#[derive(Default)]
pub struct Scratch {
    stamps: Vec<u32>,
    epoch: u32,
}

impl Scratch {
    fn next_epoch(&mut self, classes: usize) -> u32 {
        if self.stamps.len() < classes || self.epoch == u32::MAX {
            self.stamps = vec![0; classes];
            self.epoch = 0;
        }
        self.epoch += 1;
        self.epoch
    }
}
