//! The possible next steps of a configuration, and the steps that the search can omit. Each reduction keeps the
//! search exact.
//!
//! - An observer that matches is linearized at once. It changes nothing, so earlier is never worse.
//! - The search branches only when an operation returns that is not linearized yet (just in time, Lowe 2016).
//! - Equal crashed operations are a counter.
//! - Of equal open operations, the one with the earliest end goes first.
//! - On machines whose mutators overwrite the whole state, a crashed operation is applied only directly before an
//!   operation that needs its result: an observer, a cas, or another crashed cas that leads to one.
//! - If the model is finite on the history, `reduce` finds more steps to omit.
//! - On sequences, each state must be a prefix of the next read to come. Any other state is dead unless a put can
//!   intervene.

use super::machine::{Machine, ILLEGAL};
use super::memo::{has, set, Bits};
use super::plan::{Plan, Window};
use super::reduce::{Counts, Reduced, Set, View};
use crate::ops::NONE;

/// Constant facts about a plan and its machine.
pub struct Rules<'p> {
    /// The history.
    pub plan: &'p Plan,
    /// By class.
    pub observes: &'p [bool],
    blind: Vec<bool>,
    overwrites: bool,
    ahead: Option<Ahead>,
    reduced: Option<Reduced>,
    commuting: bool,
    /// Whether a branch ends as soon as it is known to be lost, before the return at which it fails.
    look_ahead: bool,
    /// The number of returns that count. Operations that return later stay open forever.
    limit: usize,
}

/// For look-ahead: by return, the next return of an observer, and the number of resets called before it.
struct Ahead {
    next: Vec<u32>,
    resets: Vec<u32>,
    reset: Vec<bool>,
    info_resets: bool,
}

/// A possible next step.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The operation, or `NONE` for a crashed one.
    pub op: u32,
    /// The class of a crashed operation.
    pub info: u32,
    /// The state after it.
    pub state: u32,
    /// Its priority: lower goes first.
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
            reduced: None,
            commuting: false,
            look_ahead: true,
            limit: plan.returns.len(),
        }
    }

    /// Uses these facts about the model from now on. Results of earlier searches no longer count.
    pub fn reduce(&mut self, reduced: Reduced, commuting: bool) {
        self.reduced = Some(reduced);
        self.commuting = commuting;
    }

    /// The facts about the model.
    pub fn reduced(&self) -> Option<&Reduced> {
        self.reduced.as_ref()
    }

    /// The number of returns that count. Operations that return later stay open forever.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the number of returns that count.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        if let Some(reduced) = &self.reduced {
            reduced.set_limit(self.plan, limit);
        }
    }

    /// Whether a search can end before the first return without a linearization, because it looks ahead.
    pub fn looks_ahead(&self) -> bool {
        self.ahead.is_some() || self.reduced.as_ref().is_some_and(Reduced::looks_ahead)
    }

    /// Sets whether a branch ends as soon as it is known to be lost, or at the first return without a linearization.
    pub fn set_look_ahead(&mut self, look_ahead: bool) {
        self.look_ahead = look_ahead;
    }

    /// The number of a state's equivalence class at a return.
    #[inline]
    pub fn key(&self, at: usize, state: u32) -> u32 {
        self.reduced.as_ref().map_or(state, |reduced| reduced.key(at, state))
    }

    /// Linearizes every open observer that matches and every idle operation. Reports each and returns their number.
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
        let mut idle = 0;
        let view = self.view(machine, window.at, state);
        for &r in &window.open {
            let i = self.plan.returns[r as usize];
            let class = self.plan.class[i as usize];
            let slot = self.plan.slot[i as usize];
            let observes = self.observes[class as usize];
            if (!observes && view.is_none()) || has(bits, slot) {
                continue;
            }
            if (observes && machine.step(state, class) != ILLEGAL)
                || view.as_ref().is_some_and(|view| view.idle(class, r))
            {
                set(bits, slot);
                tell(i);
                count += 1;
                idle += u64::from(!observes);
            }
        }
        if idle > 0 {
            self.count(|counts| counts.idle += idle);
        }
        count
    }

    fn view<M: Machine>(&self, machine: &mut M, at: usize, state: u32) -> Option<View> {
        self.reduced.as_ref().and_then(|reduced| reduced.view(self.plan, machine, at, state))
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        if let Some(reduced) = &self.reduced {
            reduced.count(change);
        }
    }

    /// Whether look-ahead finds the configuration still possible.
    pub fn viable<M: Machine, B: Bits>(&self, window: &Window, machine: &mut M, bits: &B, state: u32) -> bool {
        if !self.look_ahead {
            return true;
        }
        if self.reduced.as_ref().is_some_and(Reduced::looks_ahead) {
            let view = self.view(machine, window.at, state);
            if view.is_some_and(|view| view.dead_end(self.plan, window, self.limit, bits)) {
                self.count(|counts| counts.dead_ends += 1);
                return false;
            }
        }
        let Some(ahead) = &self.ahead else {
            return true;
        };
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

    /// The most promising step: the operation that returns here, if it is possible.
    #[inline]
    pub fn forced<M: Machine>(&self, window: &Window, machine: &mut M, state: u32, hot: bool) -> Option<Move> {
        let op = window.forced();
        let class = self.plan.class[op as usize];
        // An observer that matches is linearized already.
        if self.observes[class as usize] || (hot && self.blind[class as usize]) {
            return None;
        }
        let next = machine.step(state, class);
        (next != ILLEGAL).then_some(Move { op, info: NONE, state: next, rank: 0 })
    }

    /// Puts the other possible steps into `out`, the most promising first.
    pub fn others<M: Machine, B: Bits>(
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
        let Scratch { stamps, set: members, .. } = scratch;
        let forced = window.forced();
        let wanted = plan.class[forced as usize];
        let chosen = self.choose(window, machine, members, bits, state);
        let left_out = |class: u32| chosen.as_ref().is_some_and(|view| !view.member(members, class));
        let mut commuting = 0;
        for &r in &window.open {
            let i = plan.returns[r as usize];
            let class = plan.class[i as usize];
            if self.observes[class as usize] || has(bits, plan.slot[i as usize]) {
                continue;
            }
            if left_out(class) {
                commuting += 1;
                continue;
            }
            let stamp = &mut stamps[class as usize];
            if *stamp == epoch || (hot && self.blind[class as usize]) {
                continue;
            }
            *stamp = epoch;
            if i == forced {
                continue;
            }
            steps += 1;
            let next = machine.step(state, class);
            if next == ILLEGAL {
                continue;
            }
            let rank = if machine.step(next, wanted) == ILLEGAL { 3 } else { 1 };
            out.push(Move { op: i, info: NONE, state: next, rank });
        }
        for (k, info) in plan.infos.iter().enumerate() {
            if info.used(bits) >= window.called[k] || (hot && self.blind[info.class as usize]) {
                continue;
            }
            if left_out(info.class) {
                commuting += 1;
                continue;
            }
            steps += 1;
            let next = machine.step(state, info.class);
            if next == ILLEGAL || self.key(window.at, next) == self.key(window.at, state) {
                continue;
            }
            let rank = if machine.step(next, wanted) == ILLEGAL { 4 } else { 2 };
            out.push(Move { op: NONE, info: k as u32, state: next, rank });
        }
        if let Some(reduced) = &self.reduced {
            reduced.earn(steps);
            if commuting > 0 {
                reduced.count(|counts| counts.commuting += commuting);
            }
        }
        out[from..].sort_by_key(|m| m.rank);
        steps
    }

    /// Finds the classes of the steps that the search has to try, if it can omit any.
    fn choose<M: Machine, B: Bits>(
        &self,
        window: &Window,
        machine: &mut M,
        set: &mut Set,
        bits: &B,
        state: u32,
    ) -> Option<View> {
        if !self.commuting {
            return None;
        }
        let view = self.view(machine, window.at, state)?;
        let plan = self.plan;
        let open = window.open.iter().map(|&r| plan.returns[r as usize] as usize);
        let waiting = open.filter(|&i| !has(bits, plan.slot[i])).map(|i| plan.class[i]);
        let crashed = plan.infos.iter().zip(&window.called).filter(|(info, &called)| info.used(bits) < called);
        let present = waiting.chain(crashed.map(|(info, _)| info.class));
        view.persistent(plan.class[window.forced() as usize], present, set).then_some(view)
    }

    /// Applies a step and then linearizes matching observers. Returns whether the configuration is hot: a crashed
    /// operation was applied, and no operation has needed it yet.
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

/// Buffers that `moves` reuses.
#[derive(Default)]
pub struct Scratch {
    stamps: Vec<u32>,
    epoch: u32,
    set: Set,
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
