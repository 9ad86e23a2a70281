//! The general search: for any deterministic model and any history, within a budget.

pub mod automaton;
pub mod bfs;
pub mod budget;
pub mod dfs;
pub mod machine;
pub mod memo;
pub mod moves;
pub mod pace;
pub mod plan;
pub mod prepare;
pub mod reduce;
pub mod wgl;

use automaton::Automaton;
use bfs::Bfs;
use budget::{Cause, Meter};
use dfs::Dfs;
use machine::{Closure, Machine};
use memo::{has, Bits};
use moves::Rules;
use pace::{shares, Pace};
use plan::{Plan, Window};
use reduce::{Allowed, Counts, Reduced, Start};
use wgl::Wgl;

use crate::ops::{Ops, NONE};

/// Marks a class of crashed operations in an order.
pub const INFO: u32 = 1 << 31;

/// The state of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It can continue.
    Pending,
    /// There is a linearization.
    Valid,
    /// There is none.
    Invalid,
    /// A limit or a cancellation ended it.
    Stopped(Cause),
}

/// The kind of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Depth first and breadth first in turns, with doubling budgets.
    Both,
    /// Breadth first only: the just-in-time search under its usual name.
    Linear,
    /// The classical search.
    Wgl,
}

/// A configuration at which a search ends or is stuck.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Operations whose classes lead from the initial state to this state.
    pub path: Vec<u32>,
    /// The last linearized operation.
    pub last: u32,
    /// The operations that are open and not linearized.
    pub pending: Vec<u32>,
}

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Found {
    /// Valid, invalid, or the reason for neither.
    pub progress: Progress,
    /// The search that decided.
    pub analyzer: &'static str,
    /// Invalid: the first operation at whose return no linearization is left. Otherwise the furthest return reached.
    pub op: u32,
    /// The linearization, if the caller asked for it and there is one.
    pub order: Option<Vec<u32>>,
    /// Configurations at the end, or before `op`.
    pub configs: Vec<Config>,
    /// Whether these are all; only the breadth-first search alone knows that.
    pub has_all_configs: bool,
    /// The number of model steps.
    pub steps: u64,
    /// How often each reduction applied.
    pub counts: Counts,
}

/// Steps per operation of the depth-first search before any other search starts.
const ATTEMPT: u64 = 16;
/// Steps per operation of the depth-first search before the first turn of the breadth-first search.
const FIRST_BUDGET: u64 = 64;
/// The cost of a model's answer, in steps, from which the two searches with the fewest questions run first.
const DEAR: u64 = 16;
/// The minimum work of these two searches before any other starts, and their maximum per operation.
const RACE_LEAST: u64 = 1 << 18;
const RACE_MOST: u64 = 1 << 12;
/// They may use this many times the work of their last progress. A search that is stuck may be stuck at a single
/// place.
const RACE_SLOWER: u64 = 8;
const RACE_STRIDE: f64 = 1.0 / 16.0;
/// A turn is one part in `RACE_TURNS` of the search's work so far.
const RACE_TURNS: u64 = 4;
/// One step in `CLOSURE_SHARE` goes to the model's automaton until it is known.
const CLOSURE_SHARE: u64 = 4;
/// A search that only finds the first return may take this many times the steps so far.
const BLIND_SHARE: u64 = 4;
/// The maximum number of a model's answers for which tests build its automaton before any search.
const SMALL: u64 = 1000;
/// The name of the classical search, which never looks ahead.
const CLASSICAL: &str = "wgl";
/// The maximum number of reported configurations.
const MAX_CONFIGS: usize = 10;
/// The same for the breadth-first search alone, and the maximum length of all their paths together.
const MAX_LINEAR_CONFIGS: usize = 2000;
const MAX_PATHS_LENGTH: usize = 1 << 19;
const LINEAR: &str = "linear";

/// Runs a search on a plan.
pub fn search<M: Machine>(
    plan: &Plan,
    ops: &Ops,
    keep: &[(u32, i64)],
    machine: &mut M,
    meter: &mut Meter,
    method: Method,
    allowed: Allowed,
    want_order: bool,
) -> Found {
    meter.beside = plan.bytes();
    if method == Method::Wgl {
        let mut classical = Classical::new(plan, ops, keep);
        let progress = classical.run(machine, meter, u64::MAX);
        return classical.found(machine, meter, progress, want_order);
    }
    // The breadth-first search alone uses no reductions.
    let allowed = if method == Method::Linear { Allowed::NONE } else { allowed };
    let run = match plan.layout.words {
        1 => both::<M, [u64; 1]>,
        2 => both::<M, [u64; 2]>,
        3 | 4 => both::<M, [u64; 4]>,
        5..=8 => both::<M, [u64; 8]>,
        _ => both::<M, Box<[u64]>>,
    };
    run(plan, ops, keep, machine, meter, method, allowed, want_order)
}

/// The classical search, with the data for its report.
struct Classical<'h> {
    plan: &'h Plan,
    ops: &'h Ops<'h>,
    keep: &'h [(u32, i64)],
    /// None before its first turn.
    wgl: Option<Wgl>,
}

impl<'h> Classical<'h> {
    fn new(plan: &'h Plan, ops: &'h Ops<'h>, keep: &'h [(u32, i64)]) -> Self {
        Self { plan, ops, keep, wgl: None }
    }

    /// Continues for about `budget` units of work.
    fn run<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter, budget: u64) -> Progress {
        let begin = || Wgl::new(self.plan, self.ops, self.keep);
        self.wgl.get_or_insert_with(begin).run(machine, meter, budget)
    }

    fn pace(&self) -> Pace {
        self.wgl.as_ref().map_or(Pace::default(), |wgl| wgl.pace)
    }

    fn bytes(&self) -> usize {
        self.wgl.as_ref().map_or(0, Wgl::bytes)
    }

    /// Returns its result.
    fn found<M: Machine>(&self, machine: &mut M, meter: &Meter, progress: Progress, want_order: bool) -> Found {
        let &Self { plan, ops, keep, ref wgl } = self;
        let wgl = wgl.as_ref().expect("it has begun");
        let order = if progress == Progress::Valid { wgl.order() } else { wgl.longest() };
        let furthest = wgl.furthest();
        let mut configs = Vec::new();
        let mut done = vec![false; ops.len()];
        let mut state = machine.initial();
        for &i in &order {
            done[i as usize] = true;
            state = machine.step(state, plan.class[i as usize]);
        }
        if progress != Progress::Stopped(Cause::ModelFailed) {
            let until =
                if furthest == NONE || progress == Progress::Valid { i64::MAX } else { ops.e[furthest as usize] };
            let open = |&i: &u32| !done[i as usize] && ops.s[i as usize] <= until;
            configs.push(Config {
                path: path_of(plan, machine, state),
                last: order.iter().rev().copied().find(|&i| plan.return_of[i as usize] != NONE).unwrap_or(NONE),
                pending: keep.iter().map(|k| k.0).filter(open).collect(),
            });
        }
        let order = (progress == Progress::Valid && want_order).then_some(order);
        let counts = Counts::default();
        let (analyzer, op, steps) = (CLASSICAL, furthest, meter.steps);
        Found { progress, analyzer, op, order, configs, has_all_configs: false, steps, counts }
    }
}

fn both<M: Machine, B: Bits>(
    plan: &Plan,
    ops: &Ops,
    keep: &[(u32, i64)],
    machine: &mut M,
    meter: &mut Meter,
    method: Method,
    allowed: Allowed,
    want_order: bool,
) -> Found {
    let observes = moves::observers(plan, machine);
    let mut rules = Rules::new(plan, &observes, machine);
    let mut others = Others { reducer: Reducer::new(allowed), classical: Classical::new(plan, ops, keep) };
    let mut found = within::<M, B>(&rules, machine, meter, method, want_order, Some(&mut others), u64::MAX);
    while let Some(reduced) = others.reducer.take(plan, meter) {
        rules.reduce(reduced, allowed.commuting);
        found = within::<M, B>(&rules, machine, meter, method, want_order, Some(&mut others), u64::MAX);
    }
    drop(others);
    if found.progress == Progress::Invalid && rules.looks_ahead() && found.analyzer != CLASSICAL {
        first_return::<M, B>(&mut rules, machine, meter, method, &mut found);
    }
    found.steps = meter.steps;
    found.counts = rules.reduced().map_or_else(Counts::default, Reduced::counts);
    found
}

/// Finds the first return without a linearization, after a search that looked ahead and therefore ended early. Uses a
/// search that does not look ahead; if that one takes long, halves the range of returns.
fn first_return<M: Machine, B: Bits>(
    rules: &mut Rules,
    machine: &mut M,
    meter: &mut Meter,
    method: Method,
    found: &mut Found,
) {
    let plan = rules.plan;
    if rules.reduced().is_some() {
        let budget = (BLIND_SHARE * meter.steps).max(FIRST_BUDGET * unit(plan));
        rules.set_look_ahead(false);
        let whole = within::<M, B>(rules, machine, meter, method, false, None, budget);
        rules.set_look_ahead(true);
        if whole.progress == Progress::Invalid {
            *found = whole;
            return;
        }
    }
    let place = |op: u32| plan.return_of.get(op as usize).map_or(0, |&r| r as usize + 1);
    let (mut low, mut high) = (place(found.op), plan.returns.len());
    while low < high {
        let middle = low + (high - low) / 2;
        rules.set_limit(middle);
        let shorter = within::<M, B>(rules, machine, meter, method, false, None, u64::MAX);
        match shorter.progress {
            Progress::Invalid => {
                high = middle;
                found.configs = shorter.configs;
            }
            Progress::Valid => low = middle + 1,
            _ => break,
        }
    }
    found.op = if low == high { plan.returns[high - 1] } else { NONE };
}

fn unit(plan: &Plan) -> u64 {
    plan.returns.len() as u64 + 16
}

/// The searches that take turns with the two just-in-time searches.
struct Others<'h> {
    reducer: Reducer,
    classical: Classical<'h>,
}

/// Explores the model for a small share of the search's steps: first in local segments, then as a whole.
struct Reducer {
    allowed: Allowed,
    /// Nothing is left to explore.
    done: bool,
    automaton: Option<Automaton>,
    local: bool,
    fresh: bool,
}

impl Reducer {
    fn new(allowed: Allowed) -> Self {
        Self { allowed, done: !allowed.any(), automaton: None, local: false, fresh: false }
    }

    /// Continues. Returns Pending if there are new facts with which the search should restart, and None if there are
    /// none.
    fn learn<M: Machine>(&mut self, machine: &mut M, meter: &mut Meter) -> Option<Progress> {
        if self.done || !machine.is_table() {
            return None;
        }
        let asks = match self.allowed.start {
            Start::Whole => SMALL,
            Start::Local => 0,
            Start::Later => meter.steps / (machine.cost() * CLOSURE_SHARE),
        };
        match machine.closure(asks, meter) {
            Closure::Complete(automaton) => {
                self.automaton = Some(automaton);
                self.done = true;
                self.fresh = true;
            }
            Closure::Unfinished => {}
            Closure::Never => self.done = true,
            Closure::Stopped(cause) => return Some(Progress::Stopped(cause)),
        }
        if !self.local && self.automaton.is_none() {
            self.local = true;
            self.fresh = true;
        }
        self.fresh.then_some(Progress::Pending)
    }

    /// Returns the facts found since the last call.
    fn take(&mut self, plan: &Plan, meter: &Meter) -> Option<Reduced> {
        if !std::mem::take(&mut self.fresh) {
            return None;
        }
        if let Some(automaton) = self.automaton.take() {
            return Some(Reduced::whole(plan, &automaton, self.allowed));
        }
        let allowance = if self.allowed.start == Start::Local { u64::MAX } else { meter.steps };
        Some(Reduced::local(plan, self.allowed, allowance))
    }
}

/// Searches up to the limit of the rules. Returns Pending if the reducer has new facts or after about `most` steps.
fn within<M: Machine, B: Bits>(
    rules: &Rules,
    machine: &mut M,
    meter: &mut Meter,
    method: Method,
    want_order: bool,
    mut others: Option<&mut Others>,
    most: u64,
) -> Found {
    let plan = rules.plan;
    let mut bfs: Bfs<B> = Bfs::new(rules, machine, want_order);
    meter.beside = plan.bytes();
    if method == Method::Linear {
        let progress = bfs.run(machine, meter, u64::MAX);
        return breadth(plan, &bfs, machine, meter, progress, LINEAR);
    }
    let mut dfs: Dfs<B> = Dfs::new(rules);
    let end = meter.steps.saturating_add(most);
    let attempts = rules.reduced().is_none() && others.as_ref().is_some_and(|others| !others.reducer.done);
    let first_turn = others.as_ref().and_then(|others| others.reducer.allowed.first_turn);
    let all_from = first_turn.unwrap_or(FIRST_BUDGET * unit(plan));
    let mut budget = if attempts { ATTEMPT * unit(plan) } else { all_from }.min(all_from);
    let mut at_once = others.as_ref().is_some_and(|others| others.reducer.allowed.start != Start::Later);
    if let Some(others) = others.as_mut().filter(|_| attempts && !at_once) {
        if machine.cost() >= DEAR || first_turn.is_some() {
            if let Some(found) = race(&mut dfs, &bfs, others, machine, meter, want_order) {
                return found;
            }
            (at_once, budget) = (true, all_from);
        }
    }
    loop {
        let classical_bytes = others.as_ref().map_or(0, |others| others.classical.bytes());
        let pace_classical = others.as_ref().map_or(Pace::default(), |others| others.classical.pace());
        // Equal turns serve registers as well.
        let shares = if machine.is_table() { shares([dfs.pace, bfs.pace, pace_classical]) } else { [1; 3] };
        let turns = shares.map(|share| budget.saturating_mul(share));
        meter.beside = plan.bytes() + bfs.bytes() + classical_bytes;
        let progress = if at_once { Progress::Pending } else { dfs.run(machine, meter, turns[0]) };
        at_once = false;
        if progress != Progress::Pending || meter.steps >= end {
            return depth(&dfs, &bfs, machine, meter, progress, want_order);
        }
        if let Some(progress) = others.as_mut().and_then(|others| others.reducer.learn(machine, meter)) {
            return depth(&dfs, &bfs, machine, meter, progress, false);
        }
        if budget >= all_from {
            meter.beside = plan.bytes() + dfs.bytes() + classical_bytes;
            let progress = bfs.run(machine, meter, turns[1]);
            if progress != Progress::Pending {
                let mut found = breadth(plan, &bfs, machine, meter, progress, "jit-bfs");
                if matches!(progress, Progress::Stopped(_)) && dfs.furthest as usize > bfs.window.at {
                    found.op = plan.returns[dfs.furthest as usize];
                    found.configs = deepest(plan, &dfs, rules, machine);
                }
                return found;
            }
            // Trying operations in order of their calls can succeed where order of returns is slow. Registers do not
            // need it.
            if let Some(others) = others.as_mut().filter(|_| machine.is_table()) {
                meter.beside = plan.bytes() + dfs.bytes() + bfs.bytes();
                let progress = others.classical.run(machine, meter, turns[2]);
                if let Some(found) = classical(&dfs, &bfs, others, machine, meter, progress, want_order) {
                    return found;
                }
            }
        }
        budget = budget.saturating_mul(2);
    }
}

/// Runs the depth-first and the classical search on a model that answers slowly, before its automaton is explored.
///
/// Each question that a search avoids saves time. The search that seems nearer to its end continues. Returns None if
/// neither has ended after a while.
fn race<M: Machine, B: Bits>(
    dfs: &mut Dfs<B>,
    bfs: &Bfs<B>,
    others: &mut Others,
    machine: &mut M,
    meter: &mut Meter,
    want_order: bool,
) -> Option<Found> {
    let plan = dfs.rules.plan;
    let first_turn = others.reducer.allowed.first_turn;
    let turn = first_turn.unwrap_or(unit(plan));
    let mut least = first_turn.map_or(RACE_LEAST, |turn| RACE_SLOWER * turn);
    let most = least.max(first_turn.map_or(RACE_MOST * turn, |_| 0));
    let mut mark = 0.0;
    loop {
        let (one, other) = (dfs.pace, others.classical.pace());
        let spent = one.spent + other.spent;
        if one.reached.max(other.reached) >= mark + RACE_STRIDE {
            mark = one.reached.max(other.reached);
            least = least.max(RACE_SLOWER * spent);
        }
        if spent >= least.min(most) {
            return None;
        }
        if one.expected() <= other.expected() {
            meter.beside = plan.bytes() + others.classical.bytes();
            let progress = dfs.run(machine, meter, turn.max(one.spent / RACE_TURNS));
            if progress != Progress::Pending {
                return Some(depth(dfs, bfs, machine, meter, progress, want_order));
            }
        } else {
            meter.beside = plan.bytes() + dfs.bytes();
            let progress = others.classical.run(machine, meter, turn.max(other.spent / RACE_TURNS));
            if let Some(found) = classical(dfs, bfs, others, machine, meter, progress, want_order) {
                return Some(found);
            }
        }
    }
}

/// The result of the classical search, if it has ended. If a limit ended it, the depth-first search reports its own
/// progress.
fn classical<M: Machine, B: Bits>(
    dfs: &Dfs<B>,
    bfs: &Bfs<B>,
    others: &Others,
    machine: &mut M,
    meter: &Meter,
    progress: Progress,
    want_order: bool,
) -> Option<Found> {
    match progress {
        Progress::Pending => None,
        Progress::Stopped(_) => Some(depth(dfs, bfs, machine, meter, progress, false)),
        _ => Some(others.classical.found(machine, meter, progress, want_order)),
    }
}

fn depth<M: Machine, B: Bits>(
    dfs: &Dfs<B>,
    bfs: &Bfs<B>,
    machine: &M,
    meter: &Meter,
    progress: Progress,
    want_order: bool,
) -> Found {
    let plan = dfs.rules.plan;
    let at = (dfs.furthest as usize).max(bfs.window.at);
    let order = (progress == Progress::Valid && want_order).then(|| dfs.witness());
    let configs = if progress == Progress::Valid { Vec::new() } else { deepest(plan, dfs, dfs.rules, machine) };
    let op = plan.returns.get(at).copied().unwrap_or(NONE);
    let counts = Counts::default();
    Found { progress, analyzer: "jit-dfs", op, order, configs, has_all_configs: false, steps: meter.steps, counts }
}

fn breadth<M: Machine, B: Bits>(
    plan: &Plan,
    bfs: &Bfs<B>,
    machine: &M,
    meter: &Meter,
    progress: Progress,
    analyzer: &'static str,
) -> Found {
    let most = if analyzer == LINEAR { MAX_LINEAR_CONFIGS } else { MAX_CONFIGS };
    let mut configs = Vec::new();
    let mut length = 0;
    for node in &bfs.frontier {
        if configs.len() == most || (configs.len() >= MAX_CONFIGS && length > MAX_PATHS_LENGTH) {
            break;
        }
        let next = config(plan, &bfs.window, machine, &node.bits, node.state, node.last);
        length += next.path.len();
        configs.push(next);
    }
    let has_all_configs = analyzer == LINEAR && configs.len() == bfs.frontier.len();
    let order = match (progress, bfs.frontier.first()) {
        (Progress::Valid, Some(node)) => bfs.marks(node).map(|marks| resolve(plan, &marks)),
        _ => None,
    };
    let op = plan.returns.get(bfs.window.at).copied().unwrap_or(NONE);
    let counts = Counts::default();
    Found { progress, analyzer, op, order, configs, has_all_configs, steps: meter.steps, counts }
}

fn deepest<M: Machine, B: Bits>(plan: &Plan, dfs: &Dfs<B>, rules: &Rules, machine: &M) -> Vec<Config> {
    let mut window = Window::new(plan, rules.observes);
    window.seek(dfs.furthest as usize);
    let entries = dfs.memo.entries.iter().filter(|entry| entry.at == dfs.furthest && !entry.dead && !entry.hot);
    entries
        .take(MAX_CONFIGS)
        .map(|entry| config(plan, &window, machine, &entry.bits, entry.state, entry.last))
        .collect()
}

fn config<M: Machine, B: Bits>(plan: &Plan, window: &Window, machine: &M, bits: &B, state: u32, last: u32) -> Config {
    let open = window.open.iter().map(|&r| plan.returns[r as usize]);
    let mut pending: Vec<u32> = open.filter(|&i| !has(bits, plan.slot[i as usize])).collect();
    for (k, members) in plan.info_members().iter().enumerate() {
        let used = plan.infos[k].used(bits) as usize;
        pending.extend(&members[used.min(members.len())..(window.called[k] as usize).min(members.len())]);
    }
    pending.sort_unstable();
    Config { path: path_of(plan, machine, state), last, pending }
}

fn path_of<M: Machine>(plan: &Plan, machine: &M, state: u32) -> Vec<u32> {
    machine.path(state).into_iter().map(|class| plan.representative[class as usize]).collect()
}

/// Replaces marks of crashed operations by the earliest operations of their class that are left.
pub fn resolve(plan: &Plan, marks: &[u32]) -> Vec<u32> {
    let members = plan.info_members();
    let mut taken = vec![0; members.len()];
    let mut order = Vec::with_capacity(marks.len());
    for &mark in marks {
        if mark & INFO == 0 {
            order.push(mark);
        } else {
            let k = (mark & !INFO) as usize;
            order.push(members[k][taken[k]]);
            taken[k] += 1;
        }
    }
    order
}
